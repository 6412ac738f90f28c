"""What a stream makes of the log of its tracked schema where no test of tests/feed/stream shows it.

The stories are those of DeltaSourceSchemaEvolutionSuite, and of commits taken together MetadataEvolutionHandlerTest's.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.queries import INIT_FAILED, METADATA_EVOLUTION, RENAME, Stream, texts
from scenarios.tables import Table
from support.logs import TABLE_ID

REACHED, PASSED = -20, -19
"""The index of an offset at the barrier before a change of the schema, and at the one behind it."""


def track(stream: Stream, table: Table, *, version: int) -> Path:
    """Writes the first entry by hand: what the table is in `table`, as of a version."""
    folder = Path(stream.options["schemaTrackingLocation"]) / f"_schema_log_{TABLE_ID}"
    folder.mkdir(parents=True)
    entry = {
        "tableId": TABLE_ID,
        "deltaCommitVersion": version,
        "dataSchemaJson": table.metadata["metaData"]["schemaString"],
        "partitionSchemaJson": json.dumps({"type": "struct", "fields": []}),
        "sourceMetadataPath": "",
        "tableConfigurations": table.configuration,
        "protocolJson": json.dumps(table.protocol),
    }
    (folder / "0").write_text(f"v1\n{json.dumps(entry)}", "utf-8")
    return folder / "0"


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Of a and b, mapped by name; version 0 is without rows, 1 has the row of -1, and 2 to 6 those of 0 to 4."""
    table = Table(tmp_path / "table").create("a", "b", mapping="name", enableChangeDataFeed="true")
    table.append(*range(-1, 5))
    return table


feeds = pytest.mark.parametrize("feed", [{}, {"readChangeFeed": "true"}], ids=["rows", "changes"])


@feeds
def test_a_batch_of_trigger_once_ends_at_a_change_and_the_next_one_behind_it(
    table: Table, feed: dict[str, str]
) -> None:
    dropped_at = table.drop("b")
    table.append(*range(5, 10))
    stream = replace(Stream.on(table.path, **feed, **RENAME).tracked, once=True)
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


@feeds
def test_a_stream_goes_on_over_another_partitioning(table: Table, feed: dict[str, str]) -> None:
    stream = Stream.on(table.path, **feed, **RENAME).tracked
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


@pytest.mark.parametrize("change", ["rename", "drop"])
def test_a_planned_batch_over_a_change_and_its_reversal_is_not_tracked(table: Table, change: str) -> None:
    stream = Stream.on(table.path, **RENAME)
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

    assert (tracked.rows, tracked.entries()) == ([], [])


@pytest.mark.parametrize("place", ["", "a % ^ * _ b"])
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


def test_a_commit_with_files_of_changes_is_not_taken_together_with_those_before(tmp_path: Path) -> None:
    table = Table(tmp_path / "table").create("id", "name", mapping="name", enableChangeDataFeed="true")
    table.append(("1", "a"))
    added_at = table.add_column("c3")
    stream = Stream.on(table.path, readChangeFeed="true", **RENAME).tracked
    entry = track(stream, table, version=added_at)
    entry.with_name("1").write_bytes(entry.read_bytes())  # a barrier's: the first is of where the stream began
    renamed_at = table.rename("name", "display_name")
    (old,) = table.live
    table.live[old] = ("1", "a", None)
    table.update((("1", "a", None), ("1", "a", "10")))

    stream.frame()

    assert stream.tracked_version() == renamed_at
    assert stream.tracked_columns() == ["id", "display_name", "c3"]


def test_an_entry_newer_than_any_commit_is_what_is_tracked(table: Table) -> None:
    stream = Stream.on(table.path).tracked
    track(stream, table, version=42)

    assert stream.frame().schema.fieldNames() == ["a", "b"]
    assert [entry["deltaCommitVersion"] for entry in stream.entries()] == [42]


def test_what_an_entry_does_not_say_is_the_tables(table: Table) -> None:
    stream = Stream.on(table.path, startingVersion="1").tracked
    entry = track(stream, table, version=0)
    told = json.loads(entry.read_text("utf-8").split("\n")[1])
    del told["tableConfigurations"], told["protocolJson"]
    entry.write_text(f"v1\n{json.dumps(told)}", "utf-8")

    assert stream.run() == texts(range(-1, 5))
    table.add_column("c")
    stream.goes_down(METADATA_EVOLUTION)
