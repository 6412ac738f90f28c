"""Every IndexTables table of another writer, read whole and version by version, against numbers written out."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from support.corpus import Tally
from support.index_log import URL, IndexLog, rows_by_version
from support.recordings import index_table
from tablefeed.errors import LogGapError
from tablefeed.indextables.log import listing, protocol, schema_registry, state_writer, version_file
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import AddFile, Protocol, RemoveFile, Version

fastavro = pytest.importorskip("fastavro")


class Flavour(StrEnum):
    """Who writes a log, by its file names."""

    JSON = "json"
    STATES = "state-only"
    NATIVE = "native"


def flavour_of(log: listing.Log) -> Flavour:
    if not log.states:
        return Flavour.JSON
    return Flavour.NATIVE if log.states.keys() <= log.commits.keys() else Flavour.STATES


EVENTS = [(0, 0, 0), (5, 1, 0), (5, 1, 0), (4, 1, 0), (0, 0, 0), (3, 1, 0), (0, 0, 1), (4, 1, 2), (2, 1, 0)]
"""Rows and files added, files removed, by version: version 4 is a compaction, 6 drops a partition, 7 overwrites."""

NOTHING, PAIR, PARTS = (0, 0, 0), (3, 2, 0), (3, 3, 0)
OF_EVENTS = "id:long day:string name:string score:double flag:boolean"
OF_TYPES = (
    "i:integer l:long f:float d:double b:boolean s:string dt:date ts:timestamp bin:binary st:struct arr:array "
    "arri:array mp:map js:string txt:string ip:string"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a table holds: its feed from `first` on, live files and their rows, its columns and partitioning."""

    flavour: Flavour = Flavour.STATES
    feed: list[tuple[int, int, int]]
    first: int = 0
    files: int
    rows: int
    columns: str = "id:integer text:string"
    partitioned_by: tuple[str, ...] = ()


_EVENTS = Expected(feed=EVENTS, files=2, rows=6, columns=OF_EVENTS, partitioned_by=("day",))
_DAYS = "id:long day:string name:string"
_OVERWRITTEN = [NOTHING, (5, 2, 0), (5, 2, 0), (5, 2, 0), (1, 1, 6)]
_MIXED = [NOTHING, (1, 1, 0), (1, 1, 0), (1, 1, 2), (1, 1, 0)]
_TOMB = [NOTHING, *[(2, 1, 0)] * 12, (0, 0, 1), (2, 1, 0)]
_REGIONS = [NOTHING, PARTS, PARTS, PARTS, (0, 0, 3), NOTHING]
_TRUNCATED = [NOTHING, *[(5, 2, 0)] * 8, NOTHING]
TABLES = {
    "it053_events_avro": _EVENTS,
    "it053_events_json": replace(_EVENTS, flavour=Flavour.JSON),
    "it053_events_json_nockpt": replace(_EVENTS, flavour=Flavour.JSON),
    "it053_json_skip": Expected(
        flavour=Flavour.JSON, feed=[(3, 1, 0)] * 2, first=5, files=6, rows=18, columns=_DAYS, partitioned_by=("day",)
    ),
    "it053_tomb_avro": Expected(feed=_TOMB, files=12, rows=24, columns=_DAYS, partitioned_by=("day",)),
    "it053_types_row": Expected(feed=[NOTHING, (3, 1, 0)], files=1, rows=3, columns=OF_TYPES),
    "itnative_events": replace(_EVENTS, flavour=Flavour.NATIVE),
    "upstream_v0.5.4/01_single_write": Expected(
        feed=[NOTHING, PAIR], files=2, rows=3, columns="id:integer text:string score:double"
    ),
    "upstream_v0.5.4/03_with_removes": Expected(feed=_OVERWRITTEN, files=1, rows=1),
    "upstream_v0.5.4/05_many_transactions": Expected(feed=[NOTHING, *[PAIR] * 15], files=30, rows=45),
    "upstream_v0.5.4/07_two_writes_no_checkpoint": Expected(feed=[NOTHING, PAIR, PAIR], files=4, rows=6),
    "upstream_v0.5.4/09_partitioned_multi_append": Expected(
        feed=[NOTHING, *[(2, 2, 0)] * 5],
        files=10,
        rows=10,
        columns="id:integer date:string text:string",
        partitioned_by=("date",),
    ),
    "upstream_v0.5.4/11_mixed_operations": Expected(feed=_MIXED, files=2, rows=2),
    "upstream_v0.5.4/13_after_purge": Expected(feed=[NOTHING, *[PAIR] * 5], files=10, rows=15),
    "upstream_v0.5.4/15_drop_then_purge": Expected(
        feed=_REGIONS, files=6, rows=6, columns="id:integer region:string text:string", partitioned_by=("region",)
    ),
    "upstream_v0.5.4/17_truncated_log": Expected(feed=_TRUNCATED, files=16, rows=40),
}
EVENT_TABLES = [name for name in TABLES if "_events" in name]


def table(index_tables: Path, name: str) -> IndexLog:
    return IndexLog.of_folder(index_table(index_tables, name))


def test_no_table_is_left_out(index_tables: Path, corpus: Path) -> None:
    found = {str(log.parent.relative_to(index_tables)) for log in index_tables.rglob("_transaction_log")}

    assert (corpus / "indextables").is_dir()
    assert found == TABLES.keys()


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_its_writer_left(index_tables: Path, name: str, record_corpus: Tally) -> None:
    expected, found = TABLES[name], table(index_tables, name)
    snapshot = found.snapshot()
    metadata = snapshot.facts.metadata
    assert metadata is not None
    fields = json.loads(metadata.schema_string)["fields"]
    kinds = {f["name"]: f["type"] if isinstance(f["type"], str) else f["type"]["type"] for f in fields}

    assert flavour_of(found.log) is expected.flavour
    assert snapshot.facts.protocol == Protocol(min_reader_version=4, min_writer_version=4)
    assert metadata.format_provider == "indextables"
    assert [f"{column}:{kind}" for column, kind in kinds.items()] == expected.columns.split()
    assert metadata.partition_columns == expected.partitioned_by
    assert len(snapshot.files) == expected.files
    assert sum((file.split.num_records or 0) if file.split else 0 for file in snapshot.files.values()) == expected.rows
    folder, recorded = index_tables / name, index_tables / f"{name}.expected_final.jsonl"  # what its own reader found
    assert not recorded.exists() or expected.rows == len(recorded.read_bytes().splitlines())
    assert all((folder / path).stat().st_size == file.size_bytes for path, file in snapshot.files.items())
    protocol.refuse_writing(snapshot.facts.protocol, url=URL)
    protocol.refuse_companion(metadata, url=URL)
    record_corpus(right=1)


@pytest.mark.parametrize("name", TABLES)
def test_the_feed_of_a_table_tells_each_version(index_tables: Path, name: str) -> None:
    expected, found = TABLES[name], table(index_tables, name)
    newest = found.log.newest

    assert found.log.earliest_change == expected.first
    assert newest == expected.first + len(expected.feed) - 1
    assert rows_by_version(found, range(expected.first, newest + 1)) == expected.feed


@pytest.mark.parametrize("name", TABLES)
def test_the_changes_of_all_versions_add_up_to_each_snapshot(index_tables: Path, name: str) -> None:
    expected, found = TABLES[name], table(index_tables, name)
    live: dict[str, AddFile] = dict(found.snapshot(expected.first).files)

    for version in range(expected.first + 1, expected.first + len(expected.feed)):
        for file in found.change(version).files:
            if isinstance(file, AddFile):
                live[file.path] = file
            elif isinstance(file, RemoveFile):
                assert file.path in live
                del live[file.path]
        assert live.keys() == found.snapshot(version).files.keys()


def test_what_truncation_left_of_a_log_has_its_table_and_no_changes_before_it(index_tables: Path) -> None:
    found = table(index_tables, "it053_json_skip")
    metadata = found.snapshot().facts.metadata

    assert metadata is not None
    assert metadata.table_id == "9bf85512-b68c-48ac-952a-c73a0451ad75"  # commit 0, made anew, has another
    with pytest.raises(LogGapError, match="versions 1 to 4 are missing"):
        found.snapshot(3)
    with pytest.raises(LogGapError, match="from version 5 on"):
        listing.change_source(found.log, Version(4), url=URL)


def test_every_hash_of_a_doc_mapping_is_ours(index_tables: Path) -> None:
    seen: set[str] = set()
    for name in TABLES:
        found = table(index_tables, name)
        commits = [found.commit(file) for file in found.log.commits.values()]
        registries = [dict(found.state(file).registry) for file in found.log.states.values()]
        registries += [
            schema_registry.registry_of_configuration(c.metadata.configuration) for c in commits if c.metadata
        ]
        snapshot = found.snapshot()
        if snapshot.facts.metadata is not None:
            registries.append(schema_registry.registry_of_configuration(snapshot.facts.metadata.configuration))
        for key, text in (item for each in registries for item in each.items()):
            assert schema_registry.doc_mapping_hash(text) == key
            seen.add(key)
        for add in snapshot.files.values():
            assert add.split is not None
            ref, mapping = add.split.doc_mapping_ref, add.split.doc_mapping
            assert ref in seen or mapping is not None
            assert ref is None or mapping is None or schema_registry.doc_mapping_hash(mapping) == ref

    assert sorted(seen) == [
        "1VaJSuu3ytkWlBL5",
        "UdI2ioVCJizN073l",
        "VngtsBzBZFNn7wJ1",
        "gC45RGOqJ_Grt0xH",
        "z7TwwZ-tDWGD-uX5",
    ]


@pytest.mark.parametrize("name", EVENT_TABLES)
def test_our_line_for_an_add_is_that_of_the_tables_writer(index_tables: Path, name: str) -> None:
    found = table(index_tables, name)
    writer = Writer.NATIVE if flavour_of(found.log) is Flavour.NATIVE else Writer.SCALA
    for file in found.log.commits.values():
        theirs = version_file.decompress(found.files[file.name], url=URL, log_file=file.name)
        ours = version_file.encode_commit(found.commit(file), writer=writer)
        lines = [json.loads(line) for line in theirs.splitlines()]
        written = [json.loads(line) for line in version_file.decompress(ours, url=URL, log_file="ours").splitlines()]

        assert written == lines
        if writer is Writer.SCALA:
            keys = [[list(fields) for fields in line.values()] for line in lines]
            assert [[list(fields) for fields in line.values()] for line in written] == keys


@pytest.mark.parametrize("name", TABLES)
def test_our_schemas_of_states_and_manifests_are_those_of_the_tables_writer(index_tables: Path, name: str) -> None:
    found = table(index_tables, name)
    writer = Writer.NATIVE if flavour_of(found.log) is Flavour.NATIVE else Writer.SCALA
    for file, data in found.files.items():
        if file.endswith(".avro") and data.startswith(b"Obj\x01"):
            header = fastavro.reader(io.BytesIO(data))
            is_state = file.endswith("/_manifest.avro")

            expected = state_writer.STATE_MANIFEST if is_state else state_writer.file_entry(writer)
            assert _without_words(json.loads(header.metadata["avro.schema"])) == _without_words(expected)
            assert header.codec == ("null" if writer is Writer.NATIVE and not is_state else "zstandard")


def _without_words(schema: Any) -> Any:  # Any: JSON
    """The schema without descriptions and without the namespace, which one of the writers repeats."""
    match schema:
        case dict():
            return {key: _without_words(value) for key, value in schema.items() if key not in ("doc", "namespace")}
        case list():
            return [_without_words(each) for each in schema]
    return schema
