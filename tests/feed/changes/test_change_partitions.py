"""By which columns the files of a commit are partitioned, and where a removed file does not tell its values."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from support.checkpoints import classic_name, put_checkpoint
from support.logs import Action, a_source, add, protocol
from support.recorded import cdc, changed_ids, data_file, log, recorded, removed, schema
from tablefeed.errors import ChangeDataError
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.log.plan import Limits
from tablefeed.store import LocalStore

ID_DAY = schema(("id", "long"), ("day", "string"))


def repartitioned(path: Path) -> Path:
    """A table that version 1 overwrites and partitions by day."""
    old = data_file(path, "1.parquet", id=[1], day=["file"])
    new = data_file(path, "2.parquet", id=[2], day=["b"])
    return log(
        path,
        v0=[protocol(), recorded(ID_DAY), add(old, partitionValues={"day": "log"})],
        v1=[
            recorded(ID_DAY, partition_columns=["day"]),
            removed(old, partitionValues={"day": "log"}),
            add(new, partitionValues={"day": "c"}),
        ],
    )


def refused(path: Path) -> ChangeDataError:
    with pytest.raises(ChangeDataError) as caught:
        changed_ids(path)
    return caught.value


def test_files_of_changes_and_removed_files_have_their_partition_from_the_log(tmp_path: Path) -> None:
    by_day = schema(("id", "long"), ("day", "date"))
    one = data_file(tmp_path, "1.parquet", id=[1])
    changes = data_file(tmp_path, "_change_data/c.parquet", id=[2], _change_type=["delete"])
    table = log(
        tmp_path,
        v0=[protocol(), recorded(by_day, partition_columns=["day"])],
        v1=[removed(one, partitionValues={"day": "2024-01-31"})],
        v2=[cdc(changes, partition_values={"day": None})],
    )

    rows = tablefeed.changes(table, columns=["id", "day"]).read_all()

    assert [(row["id"], str(row["day"])) for row in rows.to_pylist()] == [(1, "2024-01-31"), (2, "None")]


def test_a_remove_that_does_not_tell_its_partition_is_refused(tmp_path: Path) -> None:
    one = data_file(tmp_path, "1.parquet", id=[1])
    bare: Action = {"remove": {"path": one, "dataChange": True}}
    by_day = schema(("id", "long"), ("day", "date"))
    table = log(tmp_path / "by_day", v0=[protocol(), recorded(by_day, partition_columns=["day"]), bare])

    error = refused(table)

    assert error.error_class == "DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA"
    assert one in str(error)
    assert changed_ids(log(tmp_path, v0=[protocol(), recorded(), bare])) == [(0, "delete", 1)]


@pytest.mark.parametrize(
    ("partition_columns", "values", "day"), [([], {"day": "log"}, "file"), (["day"], {"day": "log"}, "log")]
)
def test_the_metadata_says_which_columns_partition_a_file_and_not_its_values(
    tmp_path: Path, partition_columns: list[str], values: dict[str, str], day: str
) -> None:
    file = data_file(tmp_path, "1.parquet", id=[1], day=["file"])
    change = data_file(tmp_path, "c.parquet", id=[1], day=["file"], _change_type=["delete"])
    table = log(
        tmp_path,
        v0=[protocol(), recorded(ID_DAY, partition_columns=partition_columns), add(file, partitionValues=values)],
        v1=[cdc(change, partition_values=values)],
        v2=[removed(file, partitionValues=values)],
    )

    assert tablefeed.changes(table).read_all()["day"].to_pylist() == [day] * 3
    assert tablefeed.open_table(table, version=0).to_arrow()["day"].to_pylist() == [day]


def test_a_file_without_a_value_has_null_whatever_is_in_it(tmp_path: Path) -> None:
    file = data_file(tmp_path, "1.parquet", id=[1], day=["file"])
    by_day = recorded(ID_DAY, partition_columns=["day"])
    table = log(tmp_path, v0=[protocol(), by_day, add(file)], v1=[removed(file)])

    assert tablefeed.changes(table).read_all()["day"].to_pylist() == [None, None]
    assert tablefeed.open_table(table, version=0).to_arrow()["day"].to_pylist() == [None]


def test_a_removed_file_is_partitioned_as_the_table_was_before_also_where_the_range_begins_there(
    tmp_path: Path,
) -> None:
    table = repartitioned(tmp_path)

    for start in (0, 1):
        rows = tablefeed.changes(table, start_version=start).read_all().to_pylist()
        assert [(row["_change_type"], row["day"]) for row in rows][-2:] == [("delete", "file"), ("insert", "c")]


def test_a_removed_file_of_a_partitioning_that_the_log_does_not_know_any_more_is_read_only_if_it_is_todays(
    tmp_path: Path,
) -> None:
    old = data_file(tmp_path, "1.parquet", id=[1])
    by_day = recorded(ID_DAY, partition_columns=["day"])
    for folder, values in (("told", {"day": "log"}), ("not told", {"day": "log", "hour": "1"})):
        table = log(tmp_path / folder, v1=[by_day, removed(f"../{old}", partitionValues=values)])
        put_checkpoint(LocalStore(str(table)), classic_name(1), [protocol(), by_day])

        options = {"start_version": 1, "storage_options": {"allow_absolute_paths": "true"}}
        if folder == "told":
            assert changed_ids(table, **options) == [(1, "delete", 1)]
        else:
            with pytest.raises(ChangeDataError, match="without its partition values"):
                changed_ids(table, **options)


def test_a_stream_reads_removed_files_by_the_same_rule(tmp_path: Path) -> None:
    source = a_source(open_log(str(repartitioned(tmp_path))), change_feed=True, starting_version=1)

    start = source.initial()
    tasks = source.tasks(start, source.latest(start, Limits()))

    days = pa.schema([("day", pa.string())])
    assert sorted(d.as_py() for task in tasks for b in read_task(task, days) for d in b["day"]) == ["c", "file"]


@pytest.mark.parametrize(("partition_columns", "day"), [([], "file"), (["day"], "log")])
def test_a_stream_that_begins_with_the_table_reads_it_as_its_metadata_says(
    tmp_path: Path, partition_columns: list[str], day: str
) -> None:
    file = data_file(tmp_path, "1.parquet", id=[1], day=["file"])
    by = recorded(ID_DAY, partition_columns=partition_columns)
    table = log(tmp_path, v0=[protocol(), by, add(file, partitionValues={"day": "log"})])
    source = a_source(open_log(str(table)), change_feed=True)

    tasks = source.tasks(source.initial(), source.latest(source.initial(), Limits()))

    days = pa.schema([("day", pa.string())])
    assert [row.as_py() for task in tasks for batch in read_task(task, days) for row in batch["day"]] == [day]
