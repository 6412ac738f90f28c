"""How a stream begins to track its table's schema, also in the middle of its life and in the middle of a batch.

The stories are those of DeltaSourceSchemaEvolutionSuite (docs/scenarios/delta-source-schema-evolution.md), each told of
the rows that a table gains and of its changes, of columns mapped by name and by id.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.queries import INIT_FAILED, METADATA_EVOLUTION, NON_ADDITIVE, PASSED, RENAME, Stream, texts
from scenarios.tables import Table
from support.logs import TABLE_ID


@pytest.fixture
def table(tmp_path: Path, mapping: str) -> Table:
    """Of a and b; version 0 is without rows, 1 has the row of -1, and 2 to 6 those of 0 to 4."""
    table = Table(tmp_path / "table").create("a", "b", mapping=mapping, enableChangeDataFeed="true")
    table.append(*range(-1, 5))
    return table


@pytest.fixture
def stream(table: Table, feed: dict[str, str]) -> Stream:
    return Stream.on(table.path, **feed, **RENAME)


def test_a_stream_begins_with_the_newest_schema_and_stops_at_each_that_adds_a_column(
    table: Table, stream: Stream
) -> None:
    tracked = stream.tracked
    assert tracked.run() == texts(range(-1, 5))
    assert tracked.tracked_version() == table.version

    first = table.add_column("c")
    table.append(*range(5, 10))
    tracked.fails(METADATA_EVOLUTION)
    assert (tracked.rows, tracked.tracked_version()) == ([], first)

    assert tracked.run() == texts(range(5, 10), width=3)
    second = table.add_column("d")
    table.append(*range(10, 15))
    tracked.goes_down(METADATA_EVOLUTION)
    assert (tracked.ends[-1], tracked.tracked_version()) == ((second, PASSED), second)

    assert tracked.run() == texts(range(10, 15), width=4)


def test_a_stream_that_a_rename_stopped_goes_on_with_a_log_that_it_begins_where_it_was(
    table: Table, stream: Stream
) -> None:
    table.rename("b", "c")
    table.append(*range(5, 10))
    assert stream.run() == texts(range(-1, 10))
    renamed_at = table.rename("c", "d")
    table.append(*range(10, 15))
    stream.goes_down(NON_ADDITIVE)
    assert stream.rows == texts(range(-1, 10))

    tracked = stream.tracked
    tracked.fails(METADATA_EVOLUTION)
    assert (tracked.rows, tracked.tracked_version()) == ([], renamed_at - 1)
    tracked.fails(METADATA_EVOLUTION)
    assert (tracked.rows, tracked.tracked_version()) == ([], renamed_at)
    assert tracked.run() == texts(range(10, 15))
    newest = table.version
    assert tracked.wire == {
        "sourceVersion": 1,
        "reservoirId": TABLE_ID,
        "reservoirVersion": newest + 1,
        "index": -1,
        "isStartingVersion": False,
    }

    table.add_column("e")
    table.append(*range(15, 20))
    tracked.goes_down(METADATA_EVOLUTION)
    assert tracked.rows == texts(range(10, 15))
    assert (tracked.ends[-1], tracked.tracked_version()) == ((newest + 1, PASSED), newest + 1)
    assert tracked.run() == texts(range(15, 20), width=3)


def test_a_stream_that_failed_in_its_first_batch_begins_its_log_where_it_begins(table: Table, stream: Stream) -> None:
    renamed_at = table.rename("b", "c")
    table.append(*range(5, 10))
    stream.fails(NON_ADDITIVE, startingVersion="2", maxFilesPerTrigger="1")
    assert (stream.rows, stream.ends) == ([], [])

    tracked = stream.tracked
    tracked.fails(METADATA_EVOLUTION, maxFilesPerTrigger="1000")
    assert (tracked.rows, tracked.tracked_version()) == ([], 2)
    tracked.fails(METADATA_EVOLUTION)
    assert (tracked.rows, tracked.tracked_version()) == (texts(range(5)), renamed_at)
    assert tracked.run() == texts(range(5, 10))


@pytest.mark.parametrize("change", ["rename", "drop"])
def test_a_planned_batch_over_a_change_and_its_reversal_is_not_tracked(
    table: Table, stream: Stream, change: str
) -> None:
    assert stream.run(startingVersion="2") == texts(range(5))
    table.append(6)
    _ = table.rename("b", "c") if change == "rename" else table.add_column("c")
    table.append(7)
    _ = table.rename("c", "b") if change == "rename" else table.drop("c")
    table.append(8)
    stream.plan(stream.wire | {"reservoirVersion": table.version})
    tracked = stream.tracked
    del tracked.options["startingVersion"]
    tracked.fails(INIT_FAILED)
    assert tracked.rows == []

    again = Stream(table.path, table.path.parent / "again", tracked.options)
    again.checkpoint.joinpath("offsets").mkdir(parents=True)
    again.plan(stream.wire)
    _ = table.rename("a", "x") if change == "rename" else table.drop("b")
    table.append(9)
    again.plan(stream.wire | {"reservoirVersion": table.version})
    again.fails(INIT_FAILED)
    assert (again.rows, again.entries()) == ([], [])


def test_a_planned_batch_that_ends_before_a_change_is_read_under_what_held_before(table: Table, stream: Stream) -> None:
    assert stream.run(startingVersion="2") == texts(range(5))
    last = table.version
    table.append(5)
    renamed_at = table.rename("b", "c")
    stream.plan(stream.wire | {"reservoirVersion": renamed_at})
    tracked = stream.tracked

    tracked.fails(METADATA_EVOLUTION)
    assert (tracked.rows, tracked.tracked_version()) == ([], last + 1)
    tracked.fails(METADATA_EVOLUTION)
    assert (tracked.rows, tracked.tracked_version()) == (texts([5]), renamed_at)


def test_a_planned_batch_is_read_with_the_schema_that_has_all_of_its_columns(table: Table, stream: Stream) -> None:
    assert stream.run(startingVersion="2") == texts(range(5))
    table.add_column("c")
    table.append(5)
    table.add_column("d")
    planned = table.append(*range(6, 10)) + 1
    renamed_at = table.rename("d", "d2")
    stream.plan(stream.wire | {"reservoirVersion": planned})
    tracked = stream.tracked

    tracked.fails(METADATA_EVOLUTION)
    assert (tracked.rows, tracked.tracked_columns()) == ([], ["a", "b", "c", "d"])
    assert tracked.tracked_version() == planned - 1
    tracked.fails(METADATA_EVOLUTION)
    assert tracked.rows == [("5", "5", "5", None), *texts(range(6, 10), width=4)]
    assert (tracked.tracked_columns(), tracked.tracked_version()) == (["a", "b", "c", "d2"], renamed_at)


def test_a_stream_that_came_to_track_its_schema_does_not_go_over_the_change_without(
    table: Table, stream: Stream
) -> None:
    assert stream.run(startingVersion="2") == texts(range(5))
    last = table.version
    assert stream.ends == [(last + 1, -1)]
    table.append(5)
    dropped_at = table.drop("b")

    tracked = stream.tracked
    tracked.fails(METADATA_EVOLUTION)
    assert (len(tracked.ends), tracked.tracked_version()) == (1, last)
    tracked.fails(METADATA_EVOLUTION)
    assert (tracked.rows, tracked.ends[-1]) == (texts([5]), (dropped_at, PASSED))
    assert tracked.tracked_version() == dropped_at

    table.append(6)
    stream.fails(NON_ADDITIVE)
    assert tracked.run() == texts([6], width=1)


@pytest.mark.parametrize("place", ["", "schema", "a % ^ * _ b"])
@pytest.mark.parametrize("scheme", ["", "file:"])
def test_a_location_may_be_the_checkpoint_and_anything_below_it(tmp_path: Path, place: str, scheme: str) -> None:
    table = Table(tmp_path / "table").create("a", "b")
    table.append(*range(5))
    stream = Stream.on(table.path)
    location = str(stream.checkpoint / place)
    stream.checkpoint.mkdir()
    (stream.checkpoint / "metadata").write_text('{"id":"a-query"}', "utf-8")

    assert stream.run(schemaTrackingLocation=scheme + location) == texts(range(5))

    (entry,) = Stream(table.path, stream.checkpoint, {"schemaTrackingLocation": location}).entries()
    assert entry["sourceMetadataPath"] == f"file:{stream.checkpoint}/sources/0"
