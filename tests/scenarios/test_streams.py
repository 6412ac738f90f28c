"""What streams deliver and refuse where no test of a lower room shows it (DeltaSourceSuite, DeltaCDCStreamSuite)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from scenarios.queries import NON_ADDITIVE, SCHEMA_CHANGED, Stream
from scenarios.tables import Column, Table
from support.logs import LONG_ID, Action, a_log, a_source, add, at, commit_path, info, metadata, protocol, put
from support.recorded import VECTORS, data_file, log, recorded, removed, schema, vector
from tablefeed.errors import LogError, SchemaChangedError, TablefeedError
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.timeline import CommitTimes
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Version

IGNORE_DELETES = {"ignoreDeletes": "true"}
IGNORE_CHANGES = {"ignoreChanges": "true"}
SKIP = {"skipChangeCommits": "true"}


def append(table: Path, *values: int) -> None:
    """A commit of one file, by delta-rs."""
    write_deltalake(str(table), pa.table({"value": list(values)}), mode="append")


@pytest.mark.parametrize(
    ("options", "after_overwrite"),
    [
        (IGNORE_DELETES, None),
        (SKIP, [9, 10]),
        (IGNORE_CHANGES, [6, 7, 8, 9, 10]),
        ({"ignoreFileDeletion": "true"}, [6, 7, 8, 9, 10]),
        (IGNORE_DELETES | IGNORE_CHANGES, [6, 7, 8, 9, 10]),
        (IGNORE_CHANGES | SKIP, [9, 10]),
        (IGNORE_DELETES | SKIP, [9, 10]),
        (IGNORE_DELETES | IGNORE_CHANGES | SKIP, [9, 10]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_each_option_lets_a_delete_through_and_decides_on_an_overwrite(
    table: Path, options: Mapping[str, str], after_overwrite: list[int] | None
) -> None:
    append(table, 1, 2, 3)
    stream = Stream.on(table, **options)
    stream.run()
    DeltaTable(str(table)).delete()
    append(table, 4, 5)
    assert [value for (value,) in stream.process()] == [1, 2, 3, 4, 5]
    write_deltalake(str(table), pa.table({"value": [6, 7, 8]}), mode="overwrite")
    append(table, 9, 10)

    if after_overwrite is None:
        assert "skipChangeCommits" in stream.goes_down("DELTA_SOURCE_TABLE_IGNORE_CHANGES").message
    else:
        assert sorted(value for (value,) in stream.process()) == [1, 2, 3, 4, 5, *after_overwrite]


@pytest.mark.parametrize("change_feed", [True, False], ids=["changes", "rows"])
@pytest.mark.parametrize("end", [at(2, 1), at(3)], ids=["within a commit", "behind a commit"])
def test_a_batch_whose_last_commit_is_gone_is_refused(
    change_feed: bool,  # noqa: FBT001 (a parameter)
    end: Any,
) -> None:
    log = a_log(v0=[protocol(1, 4), recorded(), add("a")], v1=[add("b")], v2=[add("c"), add("d"), add("e")])
    source = a_source(log, starting_version=0, change_feed=change_feed)
    log.store.delete(commit_path(2))

    with pytest.raises(LogError, match="ends at version 1, but this batch ends at version 2") as caught:
        source.tasks(source.initial(), end)
    assert caught.value.error_class == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"


@pytest.mark.parametrize("lost", [0, 1])
def test_a_table_without_a_checkpoint_that_lost_a_commit_is_refused(table: Path, lost: int) -> None:
    for value in range(4):
        append(table, value)
    (table / commit_path(lost)).unlink()
    (table / "_delta_log/_last_checkpoint").write_text('{"version":3,"size":6}', encoding="utf-8")

    with pytest.raises(LogError) as caught:
        Stream.on(table).frame()
    assert caught.value.error_class == "DELTA_MISSING_PART_FILES"


def test_a_log_without_a_commit_has_no_schema(table: Path) -> None:
    (table / "_delta_log").mkdir(parents=True)

    with pytest.raises(TablefeedError) as caught:
        Stream.on(table).frame()
    assert caught.value.error_class == "DELTA_SCHEMA_NOT_SET"


# --- changes of the schema -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param(schema(("id", "long"), ("newcol", "string")), id="snapshotHasExtraColumn"),
        pytest.param(schema(("other", "long")), id="analysisHasExtraColumn, columnRenamed"),
        pytest.param(schema(("id", "string")), id="columnTypeChanged"),
        pytest.param(schema(("ID", "long")), id="columnNameCaseDiffers"),
    ],
)
def test_a_dataframe_from_before_a_change_is_refused_though_its_query_went_past_it(columns: str) -> None:
    log = a_log(v0=[protocol(), metadata(LONG_ID)], v1=[add("a")])
    stale = a_source(log)
    put(log.store, 2, [metadata(columns)])
    put(log.store, 3, [add("b")])

    with pytest.raises(SchemaChangedError) as caught:
        stale.latest(at(3), Limits())
    assert caught.value.error_class == SCHEMA_CHANGED


def test_a_restart_between_a_rename_and_its_reversal_is_refused(tmp_path: Path) -> None:
    table = Table(tmp_path / "table").create("id", mapping="name")
    table.append(1)
    table.rename("id", "number")
    started = table.append(2)
    table.rename("number", "id")
    table.append(3)

    Stream.on(table.path, startingVersion=str(started)).fails(NON_ADDITIVE)


# --- unusual columns -------------------------------------------------------------------------------------------------


def test_a_column_of_nulls_is_not_dropped(table: Path) -> None:
    columns = schema(("nothing", "void"), ("id", "long"))
    log(table, v0=[protocol(), metadata(columns)], v1=[add(data_file(table, "1.parquet", id=[0, 1]))])

    assert Stream.on(table).run() == [(None, 0), (None, 1)]


def variants(*numbers: int) -> pa.Array:
    """Variants of one byte's numbers, in the Parquet encoding of a column that is not shredded."""
    parts = pa.array([b"\x0c" + bytes([n]) for n in numbers]), pa.array([b"\x01\x00\x00"] * len(numbers))
    fields = [pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata")]
    return pa.StructArray.from_arrays(parts, fields=fields)


def test_arrays_and_variants_stay_with_their_rows_beside_rows_that_are_deleted(table: Path) -> None:
    features = ["deletionVectors", "variantType"]
    arrays = [[10 * n, 10 * n + 1] for n in range(10)]
    file = data_file(table, "0.parquet", id=list(range(10)), arr=arrays, v=variants(*range(10)))
    array = {"type": "array", "elementType": "long", "containsNull": True}
    columns = metadata(schema(("id", "long"), ("arr", array), ("v", "variant")))
    log(table, v0=[protocol(3, 7, readerFeatures=features, writerFeatures=features), columns, add(file)])
    stream = Stream.on(table)

    def expected(*numbers: int) -> list[Any]:
        return [(n, [10 * n, 10 * n + 1], (b"\x0c" + bytes([n]), b"\x01\x00\x00")) for n in numbers]

    assert stream.run() == expected(*range(10))
    log(table, v1=[removed(file), add(file, deletionVector=vector(0, 2, 4, 6, 8))])
    assert replace(stream, checkpoint=table / "another").run() == expected(1, 3, 5, 7, 9)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"columns": "Name,id"}, [(10, 1), (20, 2)]),
        ({"columns": "id,_change_type", "readChangeFeed": "true"}, [(1, "insert"), (2, "insert")]),
    ],
    ids=["rows", "changes"],
)
def test_the_columns_that_are_asked_for_are_read_and_no_others(
    tmp_path: Path, options: dict[str, str], expected: list[Any]
) -> None:
    table = Table(tmp_path / "table").create("id", "name", "value", kind="long", enableChangeDataFeed="true")
    table.append((1, 10, 100), (2, 20, 200))

    assert replace(Stream.on(table.path, **options), feed_columns=True).run() == expected


# --- changes ---------------------------------------------------------------------------------------------------------


def changes(table: Table, start: int) -> Stream:
    stream = Stream.on(table.path, readChangeFeed="true", startingVersion=str(start))
    return replace(stream, feed_columns=True)


def test_commits_that_come_while_changes_are_read_are_each_dated_after_the_one_before(table: Path) -> None:
    def dated(**versions: list[Action]) -> None:
        log(table, **versions)
        for name in versions:
            os.utime(table / commit_path(int(name[1:])), (5, 5))

    def time_of(version: int) -> int | None:
        commit = known.commit(Version(version))
        assert commit is not None
        return times.of(commit)

    dated(v0=[protocol(), recorded()])
    known = open_log(str(table))
    times = CommitTimes(known)
    assert time_of(0) == 5000

    dated(v1=[info()], v2=[info()])

    assert [time_of(2), time_of(1)] == [5002, 5001]


@pytest.mark.parametrize("mapping", ["", "name"])
def test_changes_of_a_table_that_tracks_its_rows_come_without_their_ids(tmp_path: Path, mapping: str) -> None:
    on = {"enableRowTracking": "true", "enableChangeDataFeed": "true"}
    table = Table(tmp_path / "table").create("id", "name", mapping=mapping, **on)
    features = ["rowTracking", "domainMetadata", "changeDataFeed", "appendOnly", "invariants"]
    mapped = ["columnMapping"] if mapping else []
    table.commit(protocol(2 if mapping else 1, 7, writerFeatures=features + mapped))
    added = table.added(("1", "Alice"), ("2", "Bob"))
    added["add"] |= {"baseRowId": 0, "defaultRowCommitVersion": 2}
    table.commit(added)

    assert changes(table, 0).run() == [("1", "Alice", "insert", 2), ("2", "Bob", "insert", 2)]


def test_rows_deleted_by_vector_have_their_partition(tmp_path: Path) -> None:
    columns = tuple(Column(name=name, kind="long") for name in ("id", "part"))
    table = Table(tmp_path / "table", columns=columns, partition_columns=("part",))
    table.configuration = {"delta.enableChangeDataFeed": "true"}
    table.commit(VECTORS, table.metadata)
    name = table.append_file((1, 7), (2, 7))
    table.append((3, 8))
    table.delete_by_vector((name, [1]))

    assert changes(table, 3).run() == [(2, 7, "delete", 3)]
