"""A JSON checkpoint of an IndexTables log: all that the commits up to its version leave, in one file or in several.

With several files, the file with the checkpoint's name holds the names of the others. A checkpoint that lacks a part,
or cannot be read, is ignored: the caller asks the listing again `without` it, and the commits give the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from tablefeed.errors import CorruptLogError
from tablefeed.indextables import names
from tablefeed.indextables.log import columns, fields, version_file
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
    others, batches = list[object](), list[pa.RecordBatch]()
    for name, data in files:
        rows = _rows(data, others, url=url, log_file=name)
        while some := list(islice(rows, _BATCH_ROWS)):
            with fields.corrupt_if_bad(url=url, log_file=name):
                batches.append(columns.of_lines(some))
    protocol = next((each for each in reversed(others) if isinstance(each, Protocol)), None)
    metadata = next((each for each in reversed(others) if isinstance(each, Metadata)), None)
    txns = {each.app_id: each for each in others if isinstance(each, Txn)}
    if protocol is None or metadata is None:
        raise CorruptLogError("it has no protocol or no metaData", url=url, log_file=files[0][0] if files else "it")
    return Checkpoint(facts=Facts(protocol=protocol, metadata=metadata, txns=txns), files=tuple(_live(batches)))


def _rows(data: bytes, others: list[object], *, url: str, log_file: str) -> Iterator[tuple[bool, dict[str, Any]]]:
    """Yield the adds (true) and removes (false) of a file, as parsed; other actions are appended to `others`."""
    for line, action, values in version_file.read_lines(data, url=url, log_file=log_file):
        if action in (names.ADD, names.REMOVE):
            yield action == names.ADD, values
        else:
            others.append(version_file.read_action(action, values, url=url, log_file=log_file, line=line))


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
