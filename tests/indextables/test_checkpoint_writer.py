from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import replace

import hypothesis.strategies as st
import orjson
import pytest
from hypothesis import given

from support.index_log import IN_LINES, IN_SCALA_LINES, METADATA, PROTOCOL, URL, IndexLog, add, any_add, json_log
from tablefeed.errors import CorruptLogError
from tablefeed.indextables import names
from tablefeed.indextables.log import columns, version_file
from tablefeed.indextables.log import json_checkpoint as checkpoint
from tablefeed.indextables.log.json_checkpoint_writer import Attempt, CheckpointFile, checkpoint_files
from tablefeed.indextables.log.last_checkpoint import Hint
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import AddFile, Facts, Txn, Version

ATTEMPT = Attempt(version=Version(3), created_ms=42, checkpoint_id="1f0c2b3a4d5e")
FACTS = Facts(protocol=PROTOCOL, metadata=METADATA)
WHOLE = f"{3:020d}.checkpoint.json"


def written(
    adds: Iterable[AddFile], *, facts: Facts = FACTS, writer: Writer = Writer.SCALA, per_part: int | None = 100_000
) -> list[CheckpointFile]:
    """The files of a checkpoint of `adds`, which come three to a batch."""
    files = list(adds)
    batches = [columns.of_adds(files[begin : begin + 3]) for begin in range(0, len(files), 3)]
    return list(checkpoint_files(ATTEMPT, facts, batches, writer=writer, actions_per_part=per_part))


def text(file: CheckpointFile) -> list[dict[str, dict[str, object]]]:
    return [orjson.loads(line) for line in gzip.decompress(file.data[2:]).splitlines()]


def test_a_checkpoint_is_protocol_metadata_and_a_line_for_each_file() -> None:
    (file,) = written([add("a"), add("b")])

    assert file.name == WHOLE
    assert file.data.startswith(b"\x01\x01\x1f\x8b")
    assert [next(iter(line)) for line in text(file)] == ["protocol", "metaData", "add", "add"]
    assert text(file)[2]["add"]["path"] == "a"
    assert text(file)[2]["add"]["hasFooterOffsets"] is False


def test_each_writer_has_its_own_header_and_its_own_way_to_say_nothing() -> None:
    (file,) = written([add("a")], writer=Writer.NATIVE)
    line = orjson.loads(gzip.decompress(file.data).splitlines()[2])

    assert line["add"] == {
        "path": "a",
        "partitionValues": {},
        "size": 10,
        "modificationTime": 1,
        "dataChange": True,
        "numRecords": 1,
    }


def test_more_lines_than_a_part_holds_make_parts_that_the_last_file_lists() -> None:
    *parts, listing = written((add(f"{n}") for n in range(5)), per_part=3)

    assert [part.name for part in parts] == [f"{3:020d}.checkpoint.1f0c2b3a4d5e.{n:05d}.json" for n in (1, 2, 3)]
    assert [[next(iter(line)) for line in text(part)] for part in parts] == [
        ["protocol", "metaData", "add"],
        ["add", "add", "add"],
        ["add"],
    ]
    assert listing.name == WHOLE
    assert orjson.loads(listing.data) == {  # as it stands: IndexTables does not decompress it
        "version": 3,
        "checkpointId": "1f0c2b3a4d5e",
        "parts": [part.name for part in parts],
        "createdTime": 42,
        "format": "json",
    }


@pytest.mark.parametrize(("count", "files"), [(1, 1), (2, 3)])
def test_a_checkpoint_of_as_many_lines_as_a_part_holds_is_one_file(count: int, files: int) -> None:
    assert len(written((add(f"{n}") for n in range(count)), per_part=3)) == files


def test_no_parts_are_written_where_a_reader_may_not_know_them() -> None:
    old = replace(PROTOCOL, min_reader_version=2)

    assert len(written((add(f"{n}") for n in range(5)), per_part=3, facts=replace(FACTS, protocol=old))) == 1
    assert len(written((add(f"{n}") for n in range(5)), per_part=None)) == 1


def test_the_last_file_says_what_last_checkpoint_is_to_say() -> None:
    (whole,) = written([add("a")])
    *parts, listing = written([add("a"), add("b")], per_part=2)

    assert whole.hint == Hint(
        version=Version(3), action_count=3, size_bytes=len(gzip.decompress(whole.data[2:])), file_count=1, created_ms=42
    )
    assert [part.hint for part in parts] == [None, None]
    assert listing.hint is not None
    assert (listing.hint.action_count, listing.hint.file_count) == (4, 2)
    assert (listing.hint.part_count, listing.hint.checkpoint_id) == (2, "1f0c2b3a4d5e")


def test_txns_stand_beside_the_protocol_so_that_indextables_knows_every_line() -> None:
    txns = {app: Txn(app_id=app, txn_version=n, last_updated_ms=7) for n, app in enumerate(("q", "r"))}
    (file,) = written([], facts=replace(FACTS, txns=txns))

    assert [sorted(line) for line in text(file)] == [["protocol", "tablefeedTxns"], ["metaData"]]
    assert checkpoint.decode_checkpoint([(file.name, file.data)], url=URL).facts.txns == txns


@pytest.mark.parametrize("txns", [{}, 7, "q", [7], [{"appId": "q"}]])
def test_txns_that_are_none_are_damage(txns: object) -> None:
    line = {"protocol": {"minReaderVersion": 4, "minWriterVersion": 4}, "tablefeedTxns": txns}
    data = version_file.compress(
        orjson.dumps(line) + b'\n{"metaData":{"id":"t","schemaString":"s"}}', writer=Writer.SCALA
    )
    if not txns:
        assert checkpoint.decode_checkpoint([("c", data)], url=URL).facts.txns == {}
        return
    with pytest.raises(CorruptLogError, match="line 1"):
        checkpoint.decode_checkpoint([("c", data)], url=URL)


def test_a_log_that_lost_the_commits_before_it_is_read_from_the_checkpoint() -> None:
    files = {file.name: file.data for file in written([add("a"), add("b"), add("c")], per_part=2)}
    log = IndexLog({**json_log({4: [add("d")]}), **files})

    assert log.snapshot().files.keys() == {"a", "b", "c", "d"}
    assert log.snapshot().facts.metadata == METADATA


def test_the_same_table_gives_the_same_bytes() -> None:
    assert written([add("a")]) == written([add("a")])


@given(st.data(), st.sampled_from(Writer), st.integers(1, 6))
def test_a_checkpoint_is_read_back_as_it_was_written(data: st.DataObject, writer: Writer, per_part: int) -> None:
    of_writer = any_add(IN_LINES if writer is Writer.NATIVE else IN_SCALA_LINES)
    adds = data.draw(st.lists(of_writer, max_size=8, unique_by=lambda file: file.path))
    files = written(adds, writer=writer, per_part=per_part)
    named = {file.name: file.data for file in files}
    listed = checkpoint.part_list(named[WHOLE], version=Version(3), url=URL, log_file=WHOLE)
    parts = listed.names_among(named) if listed else (WHOLE,)
    assert parts is not None
    read = checkpoint.decode_checkpoint([(name, named[name]) for name in parts], url=URL)

    assert [file for batch in read.files for file in columns.to_add_files(batch)] == adds
    assert (read.facts.protocol, read.facts.metadata) == (PROTOCOL, METADATA)
    assert names.LAST_CHECKPOINT not in named
