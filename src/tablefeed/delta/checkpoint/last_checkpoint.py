"""The `_last_checkpoint` file: a hint where the newest checkpoint may be (PROTOCOL.md, "Last Checkpoint File Schema").

Parses the file into a hint, or None where it is malformed. Reading raises no error, because a listing of the whole log
finds the checkpoint too. The hint is not trusted until a listing confirms it. Also writes the file in the form that
Delta-Spark's readers accept.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tablefeed.model.actions import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """The checkpoint of `version`. `action_count` and `size_bytes` None: not given; `part_count` None: also one file.

    `size_bytes` is that of all files of the checkpoint, sidecars included.
    """

    version: Version
    action_count: int | None = None
    part_count: int | None = None
    size_bytes: int | None = None


@functools.lru_cache(maxsize=16)  # the same bytes come until the next checkpoint; the checksum of a schema is slow
def parse_last_checkpoint(data: bytes) -> Hint | None:
    """The hint in `data`; None where it is malformed, has a key twice or does not match its own checksum."""
    try:
        values = json.loads(data, object_pairs_hook=_without_doubles, parse_int=_Number, parse_float=_Number)
        if not isinstance(values, dict) or not _fits_its_checksum(values):
            return None
        version, size, parts, size_bytes = map(_whole, map(values.get, ("version", "size", "parts", "sizeInBytes")))
    except (ValueError, RecursionError):
        return None
    if version is None:
        return None
    return Hint(version=Version(version), action_count=size, part_count=parts, size_bytes=size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCheckpoint:
    """A checkpoint for `_last_checkpoint`. `schema` is parsed JSON; None where it is too long or the file is JSON.

    `v2` is the object `v2Checkpoint`, with Delta-Spark's keys, of a UUID-named checkpoint; None for any other.
    """

    version: Version
    action_count: int
    add_count: int
    size_bytes: int
    part_count: int | None = None
    schema: object = None
    v2: Mapping[str, object] | None = None


def encode_last_checkpoint(written: WrittenCheckpoint) -> bytes:
    """The file that points to `written`, with its checksum."""
    values: dict[str, Any] = {
        "version": written.version,
        "size": written.action_count,
        "parts": written.part_count,
        "sizeInBytes": written.size_bytes,
        "numOfAddFiles": written.add_count,
        "v2Checkpoint": written.v2,
        "checkpointSchema": written.schema,
    }
    text = json.dumps({name: value for name, value in values.items() if value is not None}, separators=(",", ":"))
    parsed = json.loads(text, parse_int=_Number, parse_float=_Number)
    return f'{text[:-1]},"{_CHECKSUM}":"{_digest(parsed)}"}}'.encode()


def checksum_text(values: Mapping[str, Any]) -> str:
    """The canonical form of a parsed file ("JSON checksum"): `path=value` of all but `checksum`, sorted by path.

    Raises ValueError where the paths together are too long: a path repeats the names of all that is above its value.
    """
    leaves = _Leaves()
    leaves.add({name: value for name, value in values.items() if name != _CHECKSUM}, "")
    return ",".join(f"{path}={value}" for path, value in sorted(leaves.found))


_CHECKSUM = "checksum"


def _fits_its_checksum(values: Mapping[str, Any]) -> bool:
    digest = _digest(values)
    return bool(values.get(_CHECKSUM, digest) == digest)


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.md5(checksum_text(values).encode(), usedforsecurity=False).hexdigest()


class _Number(str):
    """A number as its text, which is its canonical form (rule 2)."""

    __slots__ = ()


_MOST_PATH_CHARACTERS = 4 << 20
"""Of all paths of a file. Delta-Spark leaves a schema of more than 20,000 characters out, and all else is short."""


class _Leaves:
    """Collects the paths and texts of leaves in a list: a schema has thousands, and nested generators are slow."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._left = _MOST_PATH_CHARACTERS

    def add(self, value: Any, path: str) -> None:
        self._left -= len(path)
        if self._left < 0:
            raise ValueError("the paths are too long")
        before = f"{path}+" if path else ""
        match value:
            case dict():
                for name, member in value.items():
                    self.add(member, f"{before}{_quoted(name)}")
            case list():
                for index, element in enumerate(value):
                    self.add(element, f"{before}{index}")
            case _Number():
                self.found.append((path, str(value)))
            case str():
                self.found.append((path, _quoted(value)))
            case _:
                self.found.append((path, json.dumps(value)))


@functools.lru_cache(maxsize=1024)  # each checkpoint repeats the same few names
def _quoted(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key comes twice")
    return values


def _whole(value: object) -> int | None:
    """`value` as a version or count; None for null and -1. Raises ValueError for anything else."""
    if value is None:
        return None
    if not isinstance(value, _Number) or not -1 <= int(value) < 2**63:
        raise ValueError(f"{value!r:.60} is not a count")
    return int(value) if int(value) >= 0 else None  # Delta-Spark writes -1 for what it has not counted
