"""How a stream that tracks its table's schema goes on over one change after another, whatever triggers its batches.

The stories are those of DeltaSourceSchemaEvolutionSuite (docs/scenarios/delta-source-schema-evolution.md), each told of
the rows that a table gains and of its changes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.queries import BLOCKED, METADATA_EVOLUTION, PASSED, REACHED, RENAME, Stream, texts
from scenarios.tables import Column, Table
from support.logs import protocol
from support.recorded import cdc, data_file, removed


def a_table(path: Path, mapping: str) -> Table:
    """Of a and b; version 0 is without rows, 1 has the row of -1, and 2 to 6 those of 0 to 4."""
    table = Table(path / "table").create("a", "b", mapping=mapping, enableChangeDataFeed="true")
    table.append(*range(-1, 5))
    return table


@pytest.fixture
def table(tmp_path: Path, mapping: str) -> Table:
    return a_table(tmp_path, mapping)


@pytest.fixture
def stream(table: Table, feed: dict[str, str]) -> Stream:
    return Stream.on(table.path, **feed, **RENAME).tracked


def test_a_batch_of_trigger_once_ends_at_a_change_and_the_next_one_behind_it(table: Table, stream: Stream) -> None:
    dropped_at = table.drop("b")
    table.append(*range(5, 10))
    stream = replace(stream, once=True)
    stream.fails(METADATA_EVOLUTION, startingVersion="2")
    assert (stream.ends, stream.tracked_version()) == ([], 2)

    assert stream.run() == texts(range(5))
    assert (stream.ends, stream.wire["sourceVersion"]) == ([(dropped_at, REACHED)], 3)
    assert stream.tracked_version() == 2
    stream.fails(METADATA_EVOLUTION)
    assert (stream.rows, stream.ends[-1], stream.wire["sourceVersion"]) == ([], (dropped_at, PASSED), 3)
    assert stream.tracked_version() == dropped_at

    assert stream.run() == []
    assert stream.run() == texts(range(5, 10), width=1)
    assert stream.ends[-1] == (table.version + 1, -1)

    added_at = table.add_column("b")
    table.append(10)
    assert stream.run() == []
    assert stream.ends[-1] == (added_at, REACHED)
    stream.fails(METADATA_EVOLUTION)
    assert (stream.rows, stream.ends[-1]) == ([], (added_at, PASSED))


def test_available_now_stops_behind_a_change_and_the_next_run_takes_the_rest(table: Table, stream: Stream) -> None:
    dropped_at = table.drop("b")
    table.append(*range(5, 10))
    stream.bounded = True
    stream.fails(METADATA_EVOLUTION, startingVersion="2")
    assert (stream.ends, stream.tracked_version()) == ([], 2)
    stream.fails(METADATA_EVOLUTION)
    assert (stream.rows, stream.ends[-1]) == (texts(range(5)), (dropped_at, PASSED))
    assert stream.tracked_version() == dropped_at
    assert stream.run() == texts(range(5, 10), width=1)
    assert stream.ends[-1] == (table.version + 1, -1)

    added_at = table.add_column("b")
    table.append(10)
    stream.fails(METADATA_EVOLUTION)
    assert (stream.rows, stream.ends[-1]) == ([], (added_at, PASSED))
    assert stream.run() == texts([10])


def test_changes_that_follow_one_another_are_one_when_the_dataframe_is_made_again(table: Table, stream: Stream) -> None:
    five = table.version
    table.rename("b", "c")
    table.rename("c", "b")
    table.drop("b")
    last = table.add_column("b")
    table.append(5)

    stream.fails(METADATA_EVOLUTION, startingVersion=str(five))
    assert (stream.ends, stream.tracked_version(), stream.tracked_columns()) == ([], five, ["a", "b"])
    stream.fails(METADATA_EVOLUTION)
    assert (stream.rows, stream.ends[-1]) == (texts([4]), (five + 1, PASSED))
    assert (stream.tracked_version(), stream.tracked_columns()) == (five + 1, ["a", "c"])

    assert stream.frame().schema.fieldNames()[:2] == ["a", "b"]
    assert stream.tracked_version() == last
    assert stream.run() == texts([5])


def test_changes_that_end_with_one_of_the_protocol_are_one_too(table: Table, stream: Stream) -> None:
    five = table.version
    table.rename("b", "c")
    table.add_column("d")
    table.drop("c")
    features = ["columnMapping", "changeDataFeed", "domainMetadata", "appendOnly", "invariants"]
    last = table.commit(protocol(2, 7, writerFeatures=features))
    table.append(5)

    stream.fails(METADATA_EVOLUTION, startingVersion=str(five))
    assert (stream.tracked_version(), stream.tracked_columns()) == (five, ["a", "b"])
    stream.fails(METADATA_EVOLUTION)
    assert (stream.rows, stream.tracked_version(), stream.tracked_columns()) == (texts([4]), five + 1, ["a", "c"])

    assert stream.frame().schema.fieldNames()[:2] == ["a", "d"]
    assert (stream.tracked_version(), stream.tracked_columns()) == (last, ["a", "d"])


def test_a_stream_goes_on_over_mapping_that_is_turned_on(tmp_path: Path, feed: dict[str, str]) -> None:
    table = a_table(tmp_path, "")
    mapped_at = table.upgrade()
    renamed_at = table.rename("b", "c")
    table.append(*range(5, 10))
    stream = Stream.on(table.path, **feed, **RENAME).tracked

    stream.fails(METADATA_EVOLUTION, startingVersion="2")
    assert (stream.rows, stream.tracked_version()) == ([], 2)
    assert "physicalName" not in stream.entries()[-1]["dataSchemaJson"]
    stream.fails(METADATA_EVOLUTION)
    assert (stream.rows, stream.tracked_version()) == (texts(range(5)), mapped_at)
    assert "physicalName" in stream.entries()[-1]["dataSchemaJson"]
    assert stream.run() == texts(range(5, 10))
    assert (stream.tracked_version(), stream.tracked_columns()) == (renamed_at, ["a", "c"])


def test_a_stream_goes_on_over_another_partitioning(table: Table, feed: dict[str, str], stream: Stream) -> None:
    by_a = table.overwrite_schema(partition_columns=["a"])
    table.append(*range(5, 10))
    by_b = table.overwrite_schema(partition_columns=["b"])

    stream.fails(METADATA_EVOLUTION, startingVersion="2", ignoreDeletes="true")
    assert (stream.rows, stream.tracked_version()) == ([], 2)
    stream.fails(METADATA_EVOLUTION)
    assert (stream.rows, stream.tracked_version()) == (texts(range(5)), by_a)
    stream.fails(METADATA_EVOLUTION)
    overwritten = texts(range(-1, 5)) if feed else []
    assert (stream.rows, stream.tracked_version()) == (sorted([*overwritten, *texts(range(5, 10))], key=repr), by_b)


def test_a_stream_goes_on_over_properties_and_protocols_and_heeds_no_property_of_the_users(
    tmp_path: Path, feed: dict[str, str]
) -> None:
    table = a_table(tmp_path, "")
    upgraded_at = table.commit(protocol(2, 5))
    table.append(*range(5, 10))
    set_at = table.set_properties(delta__isolationLevel="SERIALIZABLE")
    table.append(*range(10, 13))
    table.set_properties(hello="its me")
    table.append(*range(13, 15))
    stream = Stream.on(table.path, **feed).tracked

    stream.fails(METADATA_EVOLUTION, startingVersion="2")
    assert (stream.rows, stream.tracked_version()) == ([], 2)
    stream.fails(METADATA_EVOLUTION)
    assert (stream.rows, stream.tracked_version()) == (texts(range(5)), upgraded_at)
    assert '"minReaderVersion":2' in stream.entries()[-1]["protocolJson"]
    stream.fails(METADATA_EVOLUTION)
    assert (stream.rows, stream.tracked_version()) == (texts(range(5, 10)), set_at)
    assert stream.entries()[-1]["tableConfigurations"]["delta.isolationLevel"] == "SERIALIZABLE"
    assert stream.run() == texts(range(10, 15))


def test_a_stream_of_changes_goes_on_over_a_merge_that_adds_a_column(tmp_path: Path) -> None:
    table = Table(tmp_path / "table").create("id", kind="long", enableChangeDataFeed="true")
    table.append_at_once(*((number,) for number in range(10)))
    path = table.path
    even = [0, 2, 4, 6, 8]
    images = ["update_preimage"] * 5 + ["update_postimage"] * 5
    change = data_file(path, "cdc.parquet", id=even * 2, age=[None] * 5 + ["string"] * 5, _change_type=images)
    table.columns = (*table.columns, Column(name="age"))
    merged_at = table.commit(table.metadata, cdc(change), *(removed(name) for name in list(table.live)[::2]))
    stream = Stream.on(path, readChangeFeed="true", startingVersion="1").tracked

    stream.fails(METADATA_EVOLUTION)
    assert (stream.rows, stream.tracked_version()) == ([], 1)
    stream.fails(METADATA_EVOLUTION)
    assert stream.rows == [(number,) for number in range(10)]
    assert (stream.tracked_version(), stream.tracked_columns()) == (merged_at, ["id", "age"])
    assert stream.run() == sorted([(n, age) for n in even for age in (None, "string")], key=repr)


@pytest.mark.parametrize("word", ["always", "version"])
@pytest.mark.parametrize(
    ("option", "says"), [("allowSourceColumnDrop", "s.x"), ("allowSourceColumnRename", "s.x is now s.z")]
)
def test_a_member_of_a_struct_that_is_dropped_or_renamed_waits_for_the_users_word(
    tmp_path: Path, feed: dict[str, str], option: str, says: str, word: str
) -> None:
    columns = (Column(name="a"), Column(name="s", members=(Column(name="x"), Column(name="y"))))
    table = Table(tmp_path / "table").create(*columns, mapping="name", enableChangeDataFeed="true")
    table.append(0)
    stream = Stream.on(table.path, **feed).tracked
    assert stream.run() == [("0", ("0", "0"))]

    if option == "allowSourceColumnDrop":
        table.drop("x", within="s")
        changed_at = table.add_column("x", within="s")
    else:
        changed_at = table.rename("x", "z", within="s")
    table.append(1)
    stream.fails(METADATA_EVOLUTION)
    error = stream.fails(BLOCKED)
    assert says in error.message
    stream.fails(BLOCKED)

    assert stream.run(**{option: "always" if word == "always" else str(changed_at)}) == [("1", ("1", "1"))]
