"""One version of a table: by number, by time, its files, rows, history and applications. delta-rs is the writer."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

import tablefeed
from support.logs import TABLE_ID, a_log, add, col, commit_path, meta, metadata, protocol
from tablefeed import errors
from tablefeed.feed.api.table import Table
from tablefeed.feed.snapshot.timeline import parse_timestamp
from tablefeed.model.progress import Progress
from tablefeed.store import LocalStore


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Versions 0 to 3: two rows, two rows, one row deleted, one application's row."""
    path = tmp_path / "orders"
    write_deltalake(str(path), pa.table({"id": [1, 2], "day": ["mon", None]}), partition_by=["day"])
    write_deltalake(str(path), pa.table({"id": [3, 4], "day": ["tue", "tue"]}), mode="append")
    DeltaTable(str(path)).delete("id = 3")
    done = CommitProperties(app_transactions=[Transaction("loader", 7)], custom_metadata={"who": "me"})
    write_deltalake(str(path), pa.table({"id": [5], "day": ["wed"]}), mode="append", commit_properties=done)
    return path


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


def files_of(table: Table) -> list[dict[str, Any]]:
    return [row for batch in table.files() for row in batch.to_pylist()]


def set_times(path: Path, *seconds: float) -> None:
    """Gives each commit's file a modification time, in seconds since 1970."""
    for version, at_s in enumerate(seconds):
        os.utime(path / commit_path(version), (at_s, at_s))


def test_the_newest_version_is_opened_unless_another_is_asked_for(orders: Path) -> None:
    expected = {0: [1, 2], 1: [1, 2, 3, 4], 2: [1, 2, 4], 3: [1, 2, 4, 5], None: [1, 2, 4, 5]}
    assert {version: ids(tablefeed.open_table(orders, version=version)) for version in expected} == expected


def test_an_open_table_does_not_read_one_that_was_made_since_at_the_same_path(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    opened = []
    for row in (1, 2):
        shutil.rmtree(path, ignore_errors=True)
        tablefeed.append(path, pa.table({"id": [row]}))
        tablefeed.checkpoint(path)
        opened.append(tablefeed.open_table(path))
    first, second = opened

    for read in (first.to_arrow, first.plan, lambda: next(first.files()), lambda: next(first.history())):
        with pytest.raises(errors.OffsetError, match="Open the table again"):
            read()
    assert ids(second) == [2]


def test_a_table_tells_what_it_is_as_delta_rs_does(orders: Path) -> None:
    table, theirs = tablefeed.open_table(orders), DeltaTable(str(orders))

    assert table.version == theirs.version() == 3
    assert table.table_id == str(theirs.metadata().id)
    assert table.schema.names == ["id", "day"]
    assert table.partition_columns == ("day",)
    assert table.metadata.partition_columns == ("day",)
    assert table.protocol.min_reader_version == theirs.protocol().min_reader_version
    assert (table.txn_version("loader"), table.txn_version("nobody")) == (7, None)


def test_a_table_does_not_move_under_its_reader(orders: Path) -> None:
    table = tablefeed.open_table(orders)
    write_deltalake(str(orders), pa.table({"id": [9], "day": ["x"]}), mode="append")

    assert (table.version, ids(table)) == (3, [1, 2, 4, 5])


@pytest.mark.parametrize(
    ("version", "remedy"),
    [(-1, ""), (4, ", or wait until it is committed"), (10**12, ", or wait until it is committed")],
)
def test_a_version_that_is_not_there_is_refused_with_those_that_are_and_what_to_do(
    orders: Path, version: int, remedy: str
) -> None:
    with pytest.raises(errors.VersionNotFoundError, match="DELTA_VERSION_NOT_FOUND") as caught:
        tablefeed.open_table(orders, version=version)
    assert str(caught.value).endswith(f"its log holds versions 0 to 3. Choose a version that the log holds{remedy}.")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        *((lambda path, v=v: tablefeed.open_table(path, version=v), "whole number") for v in ("1", 1.0, object())),
        (lambda path: tablefeed.open_table(path, version=1, timestamp="2024-01-01"), "Give one of them"),
        *((lambda path, n=n: tablefeed.open_table(path).history(n), "'limit'") for n in (-1, 1.5, "2")),
    ],
)
def test_what_cannot_be_asked_of_a_table_is_refused(orders: Path, asked: Callable[[Path], object], said: str) -> None:
    with pytest.raises(errors.OptionError, match=said):
        asked(orders)


# --- by time ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [
        ("1970-01-01T00:16:40Z", 0),
        ("1970-01-01 00:16:41", 0),
        (dt.datetime(1970, 1, 1, 0, 33, 20, tzinfo=dt.UTC), 1),
        ("1970-01-01T02:33:20+02:00", 1),
        (dt.datetime(1970, 1, 1, 1, 6, 39, 999_000, tzinfo=dt.UTC), 2),
        ("1970-01-01T01:06:40Z", 3),
    ],
)
def test_a_time_means_the_newest_version_at_or_before_it(
    orders: Path, timestamp: str | dt.datetime, version: int
) -> None:
    set_times(orders, 1000, 2000, 3000, 4000)

    assert tablefeed.open_table(orders, timestamp=timestamp).version == version


def test_a_date_means_its_first_moment_in_utc(orders: Path) -> None:
    day = 86400
    set_times(orders, day, 2 * day, 2 * day + 1, 3 * day + 1)

    assert tablefeed.open_table(orders, timestamp=dt.date(1970, 1, 3)).version == 1
    assert tablefeed.open_table(orders, timestamp="1970-01-04").version == 2


@pytest.mark.parametrize("millisecond", [1, 7, 123, 999])
def test_a_time_is_exact_to_the_millisecond(millisecond: int) -> None:
    moment = dt.datetime(2024, 6, 1, 12, 0, 0, millisecond * 1000, tzinfo=dt.UTC)

    assert parse_timestamp(moment, argument="timestamp") == 1_717_243_200_000 + millisecond


@pytest.mark.parametrize("since", ["soon", "-1", "", "1" * 5_000])
def test_a_property_that_should_be_a_version_and_is_none_is_our_error(tmp_path: Path, since: str) -> None:
    broken = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": since}
    a_log(LocalStore(str(tmp_path)), v0=[protocol(), metadata(configuration=broken)])

    with pytest.raises(errors.TableError, match="inCommitTimestampEnablementVersion"):
        list(tablefeed.open_table(tmp_path).history())


# --- files and rows --------------------------------------------------------------------------------------------------


def test_files_are_described_as_delta_rs_describes_them(orders: Path) -> None:
    ours = files_of(tablefeed.open_table(orders))
    theirs = pa.table(DeltaTable(str(orders)).get_add_actions(flatten=True)).to_pylist()

    assert sorted(
        (f["path"], f["size_bytes"], dict(f["partition_values"])["day"], f["num_records"]) for f in ours
    ) == sorted((f["path"], f["size_bytes"], f["partition.day"], f["num_records"]) for f in theirs)
    assert {f["has_deletion_vector"] for f in ours} == {False}


def test_partition_values_of_mapped_columns_have_the_names_that_users_have(tmp_path: Path) -> None:
    names = {"day": "col-1", "hour": "day", "id": "col-3"}
    columns = [col(name, "string", physicalName=physical) for name, physical in names.items()]
    by_name = {"delta.columnMapping.mode": "name"}
    mapped = meta(*columns, partition_columns=["day", "hour"], configuration=by_name)
    values: list[dict[str, str | None]] = [{"col-1": "mon", "day": "7"}, {"col-1": None, "day": "8", "other": "x"}, {}]
    files = [add(str(number), partitionValues=value) for number, value in enumerate(values)]
    a_log(LocalStore(str(tmp_path)), v0=[protocol(2, 5), mapped, *files])

    found = sorted(files_of(tablefeed.open_table(tmp_path)), key=lambda file: str(file["path"]))

    expected = [{"day": "mon", "hour": "7"}, {"day": None, "hour": "8", "other": "x"}, {}]
    assert [dict(file["partition_values"]) for file in found] == expected


def test_a_file_without_statistics_has_no_count_and_one_with_a_deletion_vector_says_so(tmp_path: Path) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 1, "cardinality": 1}
    able = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"])
    files = [add("a%20b"), add("c", stats='{"numRecords":3}', deletionVector=vector)]
    a_log(LocalStore(str(tmp_path)), v0=[able, metadata()], v1=files)

    found = [(f["path"], f["num_records"], f["has_deletion_vector"]) for f in files_of(tablefeed.open_table(tmp_path))]

    assert found == [("a b", None, False), ("c", 3, True)]


def test_rows_come_as_batches_that_are_read_when_asked_for(orders: Path) -> None:
    reader = tablefeed.open_table(orders).to_batches(filter=pc.field("id") > 100)

    assert reader.schema.names == ["id", "day"]
    assert reader.read_all().num_rows == 0


def test_duckdb_pyarrow_and_pandas_take_a_table_as_it_is(orders: Path) -> None:
    table = tablefeed.open_table(orders)

    twice = """SELECT a.id FROM "table" a JOIN "table" b ON a.id = b.id ORDER BY 1"""
    assert duckdb.execute(twice).fetchall() == [(1,), (2,), (4,), (5,)]
    assert pa.table(table) == table.to_arrow()
    assert table.to_pandas(columns=["id"], filter="day = 'tue'").to_dict("list") == {"id": [4]}


def test_a_table_is_streamed_to_what_takes_it_file_by_file(orders: Path) -> None:
    table = tablefeed.open_table(orders, version=1)
    reader = pa.RecordBatchReader.from_stream(table)
    first = reader.read_next_batch()
    for path in orders.rglob("*.parquet"):
        path.unlink()

    assert first.num_rows < 4
    with pytest.raises(pa.ArrowInvalid, match=r"\[DELTA_FILE_NOT_FOUND\] The data file"):
        reader.read_all()


def test_a_long_read_tells_how_many_files_are_read_of_those_that_the_filter_leaves(orders: Path) -> None:
    heard: list[Progress] = []

    tablefeed.open_table(orders).to_arrow(filter="day >= 'tue'", on_progress=heard.append)

    assert [str(each) for each in heard] == ["files read: 1 of 2", "files read: 2 of 2"]


def test_an_unknown_column_is_refused_with_those_that_are_there(orders: Path) -> None:
    with pytest.raises(errors.SchemaMismatchError, match=r"has no column 'price'\. It has id, day"):
        tablefeed.open_table(orders).to_batches(columns=["price"])


@pytest.mark.parametrize(
    "condition", [pc.field("price") > 1, pc.field("day") > 1, pc.field("day"), "id >", "price > 1", [True]]
)
def test_a_filter_that_cannot_be_asked_is_refused_before_a_row_is_read(orders: Path, condition: Any) -> None:
    table = tablefeed.open_table(orders)

    with pytest.raises(errors.IllegalOptionError, match="'filter'"):
        table.to_batches(filter=condition)
    with pytest.raises(errors.IllegalOptionError, match="'filter'"):
        tablefeed.appends(orders, filter=condition)


def test_a_filter_may_be_a_predicate_in_sql(orders: Path) -> None:
    table, condition = tablefeed.open_table(orders), "id >= 2 AND day = 'tue'"

    assert table.to_arrow(filter=condition).to_pylist() == [{"id": 4, "day": "tue"}]
    assert tablefeed.appends(orders, end_version=1, filter=condition).read_all()["id"].to_pylist() == [3, 4]
    recorded = tablefeed.changes(orders, deduplication_mode="none", filter="_change_type = 'delete'", columns=["id"])
    assert 3 in recorded.read_all()["id"].to_pylist()


def test_a_version_older_than_removed_files_are_kept_is_read_for_as_long_as_its_files_are_there(tmp_path: Path) -> None:
    table, short = tmp_path / "t", {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    tablefeed.append(table, pa.table({"id": [1]}), properties=short)
    tablefeed.append(table, pa.table({"id": [2]}), mode="overwrite")
    set_times(table, 1, 2)

    assert ids(tablefeed.open_table(table, version=0)) == [1]
    assert ids(tablefeed.open_table(table, timestamp="1970-01-01T00:00:01Z")) == [1]
    assert tablefeed.vacuum(table, retention_hours=0, allow_short_retention=True).file_count == 1
    with pytest.raises(errors.DataFileError, match=r"is gone.*VACUUM"):
        ids(tablefeed.open_table(table, version=0))


def test_a_data_file_that_is_gone_is_an_error_that_names_it_and_the_table(orders: Path) -> None:
    gone = next(orders.glob("day=wed/*.parquet"))
    gone.unlink()

    with pytest.raises(errors.DataFileError, match=r"DELTA_FILE_NOT_FOUND.*VACUUM") as caught:
        tablefeed.open_table(orders).to_arrow()
    assert gone.name in str(caught.value)
    assert str(orders) in str(caught.value)


# --- history ---------------------------------------------------------------------------------------------------------


def test_history_tells_the_newest_commit_first_and_keeps_fields_that_nobody_knows(orders: Path) -> None:
    history = list(tablefeed.open_table(orders).history())

    assert [(c.version, c.operation) for c in history] == [(3, "WRITE"), (2, "DELETE"), (1, "WRITE"), (0, "WRITE")]
    assert history[0].fields["who"] == "me"
    assert [c.version for c in tablefeed.open_table(orders, version=2).history(limit=2)] == [2, 1]


def test_commits_are_those_of_the_history_with_their_files(orders: Path) -> None:
    table = tablefeed.open_table(orders)
    commits, history = list(table.commits()), list(table.history())

    assert [(c.version, c.committed_at_ms) for c in commits] == [(c.version, c.committed_at_ms) for c in history]
    assert [(len(c.added), len(c.removed)) for c in commits] == [(1, 0), (1, 1), (1, 0), (2, 0)]
    assert [txn.txn_version for txn in commits[0].txns] == [7]
    assert [c.version for c in tablefeed.open_table(orders, version=2).commits(limit=2)] == [2, 1]


def test_a_commit_that_says_nothing_of_itself_is_in_the_history_too(tmp_path: Path) -> None:
    a_log(LocalStore(str(tmp_path)), v0=[protocol(), metadata()])

    (only,) = tablefeed.open_table(tmp_path).history()

    assert (only.version, only.operation, dict(only.fields)) == (0, None, {})
    assert tablefeed.open_table(tmp_path).table_id == TABLE_ID


@pytest.mark.parametrize(
    ("info", "fields"),
    [
        ('{"n":1180591620717411303424}', {"n": 2**70}),
        ('{"n":-0.0,"":[null,{"b":[[]]}],"\\u0000":"\\u2028"}', {"n": -0.0, "": [None, {"b": [[]]}], "\x00": "\u2028"}),
        ('{"half":"\\ud800"}', {"half": "\ud800"}),
        ('{"large":1e400}', {"large": float("inf")}),
        ('"loaded by hand"', {"commitInfo": "loaded by hand"}),
        ("[1,18446744073709551616]", {"commitInfo": [1, 2**64]}),
        ("false", {"commitInfo": False}),
        ("null", {}),
    ],
)
def test_history_keeps_whatever_json_a_writer_said_of_its_commit(
    tmp_path: Path, info: str, fields: dict[str, object]
) -> None:
    a_log(LocalStore(str(tmp_path)), v0=[protocol(), metadata()])
    (tmp_path / commit_path(1)).write_text(f'{{"commitInfo":{info}}}\n{{"txn":{{"appId":"q","version":3}}}}\n')

    table = tablefeed.open_table(tmp_path)

    assert dict(next(table.history()).fields) == fields
    assert table.txn_version("q") == 3


# --- as Python and notebooks show it ---------------------------------------------------------------------------------


def test_a_table_is_shown_with_its_rows_and_nothing_is_read_for_that(tmp_path: Path) -> None:
    path = tmp_path / "t"
    tablefeed.append(path, pa.table({"id": [1, 2], "<i>": ["a", "b"]}))
    tablefeed.append(path, pa.table({"id": [3], "<i>": ["c"]}))
    table = tablefeed.open_table(path)
    shutil.rmtree(path)

    assert repr(table) == f"Table({str(path)!r}, version=1, rows=3)"
    assert "<td" in table._repr_html_()
    assert "&lt;i&gt;: string" in table._repr_html_()


def test_a_table_whose_files_are_in_a_checkpoint_is_shown_without_rows(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1, 2]}))
    tablefeed.checkpoint(tmp_path)

    assert repr(tablefeed.open_table(tmp_path)) == f"Table({str(tmp_path)!r}, version=0)"
    assert "not counted yet" in tablefeed.open_table(tmp_path)._repr_html_()


def test_a_data_file_that_was_replaced_after_its_commit_is_read_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    (file,) = tmp_path.glob("*.parquet")
    assert tablefeed.open_table(tmp_path).to_arrow().num_rows == 1
    assert caplog.messages == []
    pq.write_table(pa.table({"id": [1, 2, 3]}), file, compression="none")

    assert tablefeed.open_table(tmp_path).to_arrow().num_rows == 3
    (warning,) = caplog.messages
    assert f"{file.name} of {tmp_path} has {file.stat().st_size} bytes, but the log says" in warning


def test_a_plan_says_what_a_read_opens_and_reads_only_the_log(tmp_path: Path) -> None:
    for number in range(3):
        tablefeed.append(tmp_path, pa.table({"id": [number, number + 10]}))
    table = tablefeed.open_table(tmp_path)
    for file in tmp_path.glob("*.parquet"):
        file.unlink()

    whole, part = table.plan(), table.plan(filter="id = 12")

    assert (whole.files, whole.files_of_table, whole.rows, whole.filter) == (3, 3, 6, None)
    assert (part.files, part.files_of_table, part.rows, part.filter) == (1, 3, 2, "id = 12")
    assert 0 < part.bytes < whole.bytes
    assert "files of table" in part._repr_html_()
    assert table.plan(filter=pc.field("id") > 99).files == 0
