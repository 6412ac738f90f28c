"""A JSON checkpoint of an IndexTables log: all that the commits up to its version leave, in one file or in several.

With several files, the file with the checkpoint's name holds the names of the others. A checkpoint that lacks a part,
or cannot be read, is ignored: the caller asks the listing again `without` it, and the commits give the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tablefeed.errors import CorruptLogError
from tablefeed.indextables import names
from tablefeed.indextables.log import columns, version_file
from tablefeed.model.actions import Facts, Metadata, Protocol, Txn, Version

_BATCH_ROWS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class PartList:
    """The parts of a checkpoint in several files: each is a name, or a number where no name is given."""

    version: Version
    checkpoint_id: str | None
    parts: tuple[str | int, ...]

    def names_among(self, listed: Iterable[str]) -> tuple[str, ...] | None:
        """The names of all parts, each of them `listed`; None where one is missing."""
        present, found = frozenset(listed), list[str]()
        for part in self.parts:
            choices = (part,) if isinstance(part, str) else self._names(part)
            name = next((choice for choice in choices if choice in present), None)
            if name is None:
                return None
            found.append(name)
        return tuple(found)

    def _names(self, part: int) -> tuple[str, ...]:
        return names.checkpoint_part_names(self.version, part=part, checkpoint_id=self.checkpoint_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What a checkpoint says: facts, and the live files as batches of `columns.FILE_COLUMNS`, each path once."""

    facts: Facts
    files: tuple[pa.RecordBatch, ...]


def part_list(data: bytes, *, version: Version, url: str, log_file: str) -> PartList | None:
    """The parts that a checkpoint's file names; None where it holds the actions themselves.

    Raises CorruptLogError, and UnsupportedFeatureError for an unknown compression, as `version_file.decode_commit`.
    """
    for _, values in version_file.read_objects(data, url=url, log_file=log_file):
        found = _listed_parts(values)
        if found is None:
            return None
        parts, checkpoint_id = found
        if not all(_is_part(part) for part in parts):
            raise CorruptLogError("it lists a part under a name that no part can have", url=url, log_file=log_file)
        return PartList(version=version, checkpoint_id=checkpoint_id, parts=tuple(parts))
    return None


def decode_checkpoint(files: Sequence[tuple[str, bytes]], *, url: str) -> Checkpoint:
    """The checkpoint in `files`, names and bytes in order: the one file, or all parts.

    The last add or remove of a path counts, and the last line of protocol and of metaData. Raises CorruptLogError where
    a file is damaged, or no file has a protocol or metaData: such a checkpoint does not describe a table.
    """
    reading = _Reading()
    batches = [batch for name, data in files for batch in reading.batches(data, url=url, log_file=name)]
    if reading.protocol is None or reading.metadata is None:
        raise CorruptLogError("it has no protocol or no metaData", url=url, log_file=files[0][0] if files else "it")
    return Checkpoint(facts=reading.facts(), files=tuple(_live(batches)))


class _Reading:
    """A checkpoint's lines as they are read."""

    def __init__(self) -> None:
        self.protocol: Protocol | None = None
        self.metadata: Metadata | None = None
        self._txns: dict[str, Txn] = {}

    def facts(self) -> Facts:
        return Facts(protocol=self.protocol, metadata=self.metadata, txns=self._txns)

    def batches(self, data: bytes, *, url: str, log_file: str) -> Iterator[pa.RecordBatch]:
        rows: list[tuple[bool, dict[str, Any]]] = []
        for line, action, values in version_file.read_lines(data, url=url, log_file=log_file):
            if action in (names.ADD, names.REMOVE):
                rows.append((action == names.ADD, values))
            else:
                self._take(version_file.read_action(action, values, url=url, log_file=log_file, line=line))
            if len(rows) >= _BATCH_ROWS:
                yield _batch(rows, url=url, log_file=log_file)
                rows = []
        if rows:
            yield _batch(rows, url=url, log_file=log_file)

    def _take(self, action: object) -> None:
        match action:
            case Protocol():
                self.protocol = action
            case Metadata():
                self.metadata = action
            case Txn():
                self._txns[action.app_id] = action


def _batch(rows: list[tuple[bool, dict[str, Any]]], *, url: str, log_file: str) -> pa.RecordBatch:
    try:
        return columns.of_lines(rows)
    except columns.BadRowsError as bad:
        raise CorruptLogError(str(bad), url=url, log_file=log_file) from bad


def _live(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    rows = columns.last_of_each_key(pa.Table.from_batches(batches, columns.FILE_COLUMNS))
    return [batch for each in rows.to_batches() if (batch := each.filter(each["is_add"])).num_rows]


def _listed_parts(values: dict[str, Any]) -> tuple[list[Any], str | None] | None:
    """The parts and the id in a line that is a list of parts, itself or under the one key that it has."""
    inner = next(iter(values.values())) if len(values) == 1 else values
    if not isinstance(inner, dict) or "checkpointId" not in inner or not isinstance(inner.get("parts"), list):
        return None
    checkpoint_id = inner["checkpointId"]
    return inner["parts"], checkpoint_id if isinstance(checkpoint_id, str) else None


def _is_part(part: object) -> bool:
    if type(part) is int:
        return 0 <= part < 100_000
    return isinstance(part, str) and names.is_part_name(part)
