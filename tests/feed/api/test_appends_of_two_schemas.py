"""`tablefeed.appends` where the schema, the partitioning or the table itself changed within the versions or before."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from support.logs import LONG_ID, add, commit_path, metadata, protocol
from support.recorded import data_file, log, schema
from support.tracking import mapped
from tablefeed.errors import OffsetError, SchemaChangedError, VersionNotFoundError

MAPPING = protocol(2, 5)
ID_DAY = schema(("id", "long"), ("day", "string"))


def rows(path: Path, **arguments: object) -> list[dict[str, object]]:
    found: list[dict[str, object]] = tablefeed.appends(path, **arguments).read_all().to_pylist()  # type: ignore[arg-type]  # keywords of several kinds
    return found


def refused(path: Path, start: int | None, end: int | None = None) -> SchemaChangedError:
    with pytest.raises(SchemaChangedError) as caught:
        tablefeed.appends(path, start_version=start, end_version=end)
    return caught.value


# --- the schema before the first version ---------------------------------------------------------------------------


def a_column_made_anew(path: Path) -> Path:
    """`price` is dropped and added again: in files it was p1 and is p2."""
    older = data_file(path, "1.parquet", i=[1], p1=[111])
    newer = data_file(path, "2.parquet", i=[2], p2=[222])
    return log(
        path,
        v0=[MAPPING, mapped(id="i", price="p1")],
        v1=[add(older)],
        v2=[mapped(id="i")],
        v3=[mapped(id="i", price="p2")],
        v4=[add(newer)],
    )


def test_values_of_a_column_that_was_dropped_and_made_anew_do_not_come_as_null(tmp_path: Path) -> None:
    table = a_column_made_anew(tmp_path)

    assert refused(table, 1).version == 1
    assert rows(table, start_version=1, end_version=1) == [{"id": 1, "price": 111}]
    assert rows(table, start_version=3) == [{"id": 2, "price": 222}]


def test_columns_whose_names_were_swapped_before_the_end_are_not_mixed_up(tmp_path: Path) -> None:
    file = data_file(tmp_path, "1.parquet", p1=[1], p2=[2])
    table = log(tmp_path, v0=[MAPPING, mapped(a="p1", b="p2")], v1=[add(file)], v2=[mapped(a="p2", b="p1")])

    assert refused(table, 1).version == 1
    assert rows(table, start_version=1, end_version=1) == [{"a": 1, "b": 2}]


def test_values_of_a_column_that_an_overwrite_drops_are_not_left_out(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1], "price": [5]}))
    write_deltalake(tmp_path, pa.table({"id": [2], "price": [6]}), mode="append")
    write_deltalake(tmp_path, pa.table({"id": [3]}), mode="overwrite", schema_mode="overwrite")

    assert refused(tmp_path, 1).version == 1
    assert rows(tmp_path, start_version=1, end_version=1) == [{"id": 2, "price": 6}]
    assert rows(tmp_path, start_version=2, skip_change_commits=True) == []
    assert rows(tmp_path, start_version=2, ignore_changes=True) == [{"id": 3}]


def test_rows_come_in_the_schema_of_the_end(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    write_deltalake(tmp_path, pa.table({"id": [2], "new": ["x"]}), mode="append", schema_mode="merge")

    assert rows(tmp_path, end_version=0) == [{"id": 1}]
    assert rows(tmp_path) == [{"id": 1, "new": None}, {"id": 2, "new": "x"}]


def cleaned_up(path: Path, *, before: int, checkpoint: int) -> Path:
    """Without the commits before a version; the first that can be read as a table is later."""
    DeltaTable(str(path), version=checkpoint).create_checkpoint()
    for version in range(before):
        (path / commit_path(version)).unlink()
    return path


def test_a_start_that_the_log_does_not_reach_back_to_is_told_by_the_next_version_that_it_does(tmp_path: Path) -> None:
    for row in range(4):
        write_deltalake(tmp_path, pa.table({"id": [row]}), mode="append")
    cleaned_up(tmp_path, before=1, checkpoint=3)

    assert rows(tmp_path) == [{"id": 1}, {"id": 2}, {"id": 3}]


def test_a_start_whose_schema_is_not_known_any_more_is_refused_by_the_first_that_is(tmp_path: Path) -> None:
    for row in range(2):
        write_deltalake(tmp_path, pa.table({"id": [row]}), mode="append")
    write_deltalake(tmp_path, pa.table({"id": [2], "new": [2]}), mode="append", schema_mode="merge")
    write_deltalake(tmp_path, pa.table({"id": [3], "new": [3]}), mode="append")
    cleaned_up(tmp_path, before=1, checkpoint=3)

    with pytest.raises(VersionNotFoundError) as caught:
        tablefeed.appends(tmp_path)
    assert (caught.value.version, caught.value.earliest) == (1, 2)
    assert rows(tmp_path, start_version=2) == [{"id": 2, "new": 2}, {"id": 3, "new": 3}]


# --- another table, another partitioning ---------------------------------------------------------------------------


def test_versions_of_two_tables_are_not_read_as_one(tmp_path: Path) -> None:
    files = [data_file(tmp_path, f"{n}.parquet", id=[n]) for n in range(2)]
    table = log(tmp_path, v0=[protocol(), metadata(), add(files[0])], v1=[metadata(table_id="another"), add(files[1])])

    with pytest.raises(OffsetError, match="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"):
        rows(table)
    assert rows(table, start_version=1) == [{"id": 1}]
    assert rows(table, end_version=0) == [{"id": 0}]


@pytest.mark.parametrize(
    ("partition_columns", "values", "day"),
    [([], {"day": "log"}, "file"), (["day"], {}, None), (["day"], {"day": "log"}, "log")],
)
def test_the_metadata_says_which_columns_partition_a_file_and_not_its_values(
    tmp_path: Path, partition_columns: list[str], values: dict[str, str], day: str | None
) -> None:
    file = data_file(tmp_path, "1.parquet", id=[1], day=["file"])
    by = metadata(ID_DAY, partition_columns=partition_columns)
    table = log(tmp_path, v0=[protocol(), by, add(file, partitionValues=values)])

    assert rows(table) == tablefeed.open_table(table).to_arrow().to_pylist() == [{"id": 1, "day": day}]


def test_each_version_is_partitioned_as_its_own_metadata_says(tmp_path: Path) -> None:
    in_folder, in_file = data_file(tmp_path, "1.parquet", id=[1]), data_file(tmp_path, "2.parquet", id=[2], day=["b"])
    table = log(
        tmp_path,
        v0=[protocol(), metadata(ID_DAY, partition_columns=["day"])],
        v1=[add(in_folder, partitionValues={"day": "a"})],
        v2=[metadata(ID_DAY), add(in_file)],
    )

    assert rows(table) == [{"id": 1, "day": "a"}, {"id": 2, "day": "b"}]
    assert rows(table, start_version=1, filter=pc.field("day") == "a") == [{"id": 1, "day": "a"}]


def test_a_range_of_one_version_needs_no_other(tmp_path: Path) -> None:
    file = data_file(tmp_path, "1.parquet", id=[1])
    table = log(tmp_path, v0=[protocol(), metadata(LONG_ID)], v1=[add(file)], v2=[metadata(schema(("id", "string")))])

    assert rows(table, start_version=1, end_version=1) == [{"id": 1}]
