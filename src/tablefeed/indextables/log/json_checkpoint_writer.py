"""A JSON checkpoint of an IndexTables log, written: the live files, protocol and metadata, in one file or in parts.

Lines are made batch by batch and compressed at once: memory holds one compressed file. Our transaction identifiers are
in the line of the protocol, under a key of our own: IndexTables refuses a checkpoint with an unknown line, but ignores
unknown keys in a line. It reads parts only where `_last_checkpoint` has their id.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import orjson
import pyarrow as pa

from tablefeed.indextables import names
from tablefeed.indextables.log import columns, fields, version_file
from tablefeed.indextables.log.last_checkpoint import Hint
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model import action_fields
from tablefeed.model.actions import Facts, Version

_KNOWS_PARTS = 3  # the protocol of readers that know parts
_LEVEL = 6  # of gzip: IndexTables' default


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFile:
    """A file to put, by its name below the log directory. The last one makes the checkpoint and has its `hint`."""

    name: str
    data: bytes
    hint: Hint | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt to write a checkpoint; `checkpoint_id`, 12 hexadecimal digits, is in the names of its parts."""

    version: Version
    created_ms: int
    checkpoint_id: str


def checkpoint_files(
    attempt: Attempt, facts: Facts, files: Iterable[pa.RecordBatch], *, writer: Writer, actions_per_part: int | None
) -> Iterator[CheckpointFile]:
    """The files of a checkpoint in the order in which they are put, the one with the checkpoint's name last.

    `files` are batches of `columns.FILE_COLUMNS`, the live files of the version, each once; `facts` must hold protocol
    and metadata. A checkpoint with more lines than `actions_per_part` (None: of any number) has parts, but not with a
    protocol below 3. Until the last file is put, readers do not see the
    checkpoint.
    """
    head = _head(facts, writer)
    knows_parts = facts.protocol is not None and facts.protocol.min_reader_version >= _KNOWS_PARTS
    most = actions_per_part if knows_parts else None
    parts, part = list[str](), _Part(writer)
    action_count = size_bytes = 0
    for line in chain(head, _add_lines(files, writer)):
        if part.line_count == most:
            parts.append(_part_name(attempt, len(parts) + 1))
            yield CheckpointFile(name=parts[-1], data=part.close())
            part = _Part(writer)
        part.write(line)
        action_count += 1
        size_bytes += len(line)
    data = part.close()
    if parts:
        parts.append(_part_name(attempt, len(parts) + 1))
        yield CheckpointFile(name=parts[-1], data=data)
        data = _part_list(attempt, parts)
    hint = Hint(
        version=attempt.version,
        action_count=action_count,
        size_bytes=size_bytes,
        file_count=action_count - len(head),
        created_ms=attempt.created_ms,
        part_count=len(parts) or None,
        checkpoint_id=attempt.checkpoint_id if parts else None,
    )
    yield CheckpointFile(name=names.checkpoint_name(attempt.version), data=data, hint=hint)


class _Part:
    """Lines as they are compressed into one file."""

    def __init__(self, writer: Writer) -> None:
        self.line_count = 0
        self._file = io.BytesIO(version_file.mark(writer))
        self._file.seek(0, io.SEEK_END)
        self._lines = gzip.GzipFile(fileobj=self._file, mode="wb", compresslevel=_LEVEL, mtime=0)

    def write(self, line: bytes) -> None:
        self._lines.write(line)
        self.line_count += 1

    def close(self) -> bytes:
        """The file."""
        self._lines.close()
        return self._file.getvalue()


def _head(facts: Facts, writer: Writer) -> list[bytes]:
    if facts.protocol is None or facts.metadata is None:
        raise ValueError("a checkpoint needs a protocol and metadata")
    native = writer is Writer.NATIVE
    protocol: dict[str, object] = {
        names.PROTOCOL: fields.write_values(action_fields.PROTOCOL, facts.protocol, native=native)
    }
    if facts.txns:
        protocol[names.TXNS] = [
            action_fields.write_fields(action_fields.TXN, txn) for _, txn in sorted(facts.txns.items())
        ]
    return [_line(protocol), _line({names.METADATA: fields.write_metadata(facts.metadata, native=native)})]


def _add_lines(files: Iterable[pa.RecordBatch], writer: Writer) -> Iterator[bytes]:
    for batch in files:
        for entry in columns.to_entries(batch):
            if writer is Writer.NATIVE:
                add = {wire: entry[wire] for wire in fields.NATIVE_ADD if entry[wire] is not None}
            else:
                add = {wire: entry[wire] for wire in fields.SCALA_ADD}
            yield _line({names.ADD: add})


def _line(values: Mapping[str, object]) -> bytes:
    return orjson.dumps(values, default=dict, option=orjson.OPT_APPEND_NEWLINE)


def _part_name(attempt: Attempt, part: int) -> str:
    return names.checkpoint_part_names(attempt.version, part=part, checkpoint_id=attempt.checkpoint_id)[0]


def _part_list(attempt: Attempt, parts: Sequence[str]) -> bytes:
    """The file that names the parts. It is not compressed, because IndexTables reads it so."""
    return orjson.dumps(
        {
            "version": attempt.version,
            "checkpointId": attempt.checkpoint_id,
            "parts": parts,
            "createdTime": attempt.created_ms,
            "format": "json",
        }
    )
