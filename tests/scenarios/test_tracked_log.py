"""What a stream makes of the entries in its log of tracked metadata, and which commits it takes together into one.

The stories are those of DeltaSourceSchemaEvolutionSuite, and of commits taken together MetadataEvolutionHandlerTest's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios.queries import METADATA_EVOLUTION, Stream
from scenarios.tables import Table
from support.logs import TABLE_ID, protocol

IN_FORCE = {"allowSourceColumnRename": "always", "allowSourceColumnDrop": "always"}


def track(stream: Stream, number: int, table: Table, *, version: int, table_id: str = TABLE_ID) -> None:
    """Writes an entry by hand: what the table is in `table`, as of a version."""
    folder = Path(stream.options["schemaTrackingLocation"]) / f"_schema_log_{TABLE_ID}"
    folder.mkdir(parents=True, exist_ok=True)
    partition = [column.json() for column in table.columns if column.name in table.partition_columns]
    entry = {
        "tableId": table_id,
        "deltaCommitVersion": version,
        "dataSchemaJson": table.metadata["metaData"]["schemaString"],
        "partitionSchemaJson": json.dumps({"type": "struct", "fields": partition}),
        "sourceMetadataPath": "",
        "tableConfigurations": table.configuration,
        "protocolJson": json.dumps(table.protocol),
    }
    (folder / str(number)).write_text(f"v1\n{json.dumps(entry)}", "utf-8")


def test_rows_come_with_the_columns_that_are_tracked(tmp_path: Path) -> None:
    table = Table(tmp_path / "table").create("a", "b")
    table.append(*range(5))
    stream = Stream.on(table.path, startingVersion="1").tracked
    wider = Table(tmp_path / "elsewhere").create("a", "b", "c")
    track(stream, 0, wider, version=0)

    assert stream.run() == [(str(number), str(number), None) for number in range(5)]

    track(stream, 1, wider, version=0, table_id="some_random_id")
    stream.fails("DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID")


def add_c3(table: Table) -> None:
    table.add_column("c3")


def rename_the_partition(table: Table) -> None:
    table.partition_columns = ("id_renamed",)
    table.rename("id", "id_renamed")


def drop_name(table: Table) -> None:
    table.drop("name")


def bump_protocol(table: Table) -> None:
    features = ["columnMapping", "appendOnly", "invariants"]
    table.set_protocol(protocol(3, 7, readerFeatures=["columnMapping"], writerFeatures=features))


def insert(table: Table) -> None:
    table.append(1)


MERGES = [
    pytest.param([], 0, id="noLaterCommits"),
    pytest.param([insert], 0, id="nextCommitHasFileAction"),
    pytest.param([rename_the_partition], 1, id="renamePartitionColumn"),
    pytest.param([drop_name], 1, id="dropNonPartitionColumn"),
    pytest.param([add_c3, bump_protocol], 2, id="schemaChangeThenProtocolUpgrade"),
    pytest.param([add_c3, rename_the_partition, bump_protocol], 3, id="mergesDataSchemaPartitionAndProtocol"),
    pytest.param([add_c3, insert, drop_name], 1, id="stopsAtFileActionDoesNotSkipAhead"),
]


@pytest.mark.parametrize(("statements", "last"), MERGES)
def test_commits_of_metadata_alone_that_follow_an_entry_are_one_with_it(
    tmp_path: Path, statements: list[Callable[[Table], None]], last: int
) -> None:
    table = Table(tmp_path / "table", partition_columns=("id",)).create("id", "name", mapping="name")
    stream = Stream.on(table.path, **IN_FORCE).tracked
    track(stream, 0, table, version=0)
    held = [(table.metadata["metaData"], table.protocol["protocol"])]
    for statement in statements:
        statement(table)
        held.append((table.metadata["metaData"], table.protocol["protocol"]))

    stream.frame()

    assert [entry["deltaCommitVersion"] for entry in stream.entries()] == ([0, last] if last else [0])
    metadata, held_protocol = held[last]
    entry = stream.entries()[-1]
    assert json.loads(entry["dataSchemaJson"]) == json.loads(metadata["schemaString"])
    partition = [each["name"] for each in json.loads(entry["partitionSchemaJson"])["fields"]]
    assert partition == metadata["partitionColumns"]
    told = json.loads(entry["protocolJson"])["protocol"]
    assert {key: sorted(v) if isinstance(v, list) else v for key, v in told.items()} == {
        key: sorted(v) if isinstance(v, list) else v for key, v in held_protocol.items()
    }


def test_a_commit_with_files_of_changes_is_not_taken_together_with_those_before(tmp_path: Path) -> None:
    table = Table(tmp_path / "table").create("id", "name", mapping="name", enableChangeDataFeed="true")
    table.append(("1", "a"))
    added_at = table.add_column("c3")
    stream = Stream.on(table.path, readChangeFeed="true", **IN_FORCE).tracked
    track(stream, 0, table, version=added_at)
    renamed_at = table.rename("name", "display_name")
    (old,) = table.live
    table.live[old] = ("1", "a", None)
    table.update((("1", "a", None), ("1", "a", "10")))

    stream.frame()

    assert stream.tracked_version() == renamed_at
    assert stream.tracked_columns() == ["id", "display_name", "c3"]


def test_a_query_without_a_log_of_its_schema_notes_nothing_and_one_with_an_empty_log_begins_it(tmp_path: Path) -> None:
    table = Table(tmp_path / "table").create("a", "b")
    table.append(1)
    stream = Stream.on(table.path)
    location = tmp_path / "tracked"

    stream.run()
    assert not location.exists()
    again = Stream(table.path, tmp_path / "again", {"SCHEMATRACKINGLOCATION": str(location)})
    again.frame()
    assert list(location.glob("*/*")) == []
    again.run()
    assert [path.name for path in location.glob("*/*")] == ["0"]


def test_an_entry_newer_than_any_commit_is_what_is_tracked(tmp_path: Path) -> None:
    table = Table(tmp_path / "table").create("a", "b")
    stream = Stream.on(table.path).tracked
    track(stream, 0, table, version=42)

    assert stream.frame().schema.fieldNames() == ["a", "b"]
    assert [entry["deltaCommitVersion"] for entry in stream.entries()] == [42]


def test_what_an_entry_does_not_tell_is_the_tables(tmp_path: Path) -> None:
    table = Table(tmp_path / "table").create("a", "b", mapping="name")
    table.append(1)
    stream = Stream.on(table.path, startingVersion="0").tracked
    track(stream, 0, table, version=0)
    (entry,) = Path(stream.options["schemaTrackingLocation"]).glob("*/0")
    told = json.loads(entry.read_text("utf-8").split("\n")[1])
    del told["tableConfigurations"], told["protocolJson"]
    entry.write_text(f"v1\n{json.dumps(told)}", "utf-8")

    assert stream.run() == [("1", "1")]
    table.add_column("c")
    stream.goes_down(METADATA_EVOLUTION)
