"""A plain reader of an IndexTables log: from the bytes of its files, by the words of the protocol, not by our code.

It knows the three flavours: JSON commits, states, and both. fastavro decodes single records, pyarrow decompresses.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Collection, Iterator
from typing import Any, Protocol

import fastavro
import orjson
import pyarrow as pa

LOG_DIR = "_transaction_log"
Action = dict[str, Any]  # Any: JSON

_FILE = re.compile(rf"{LOG_DIR}/(\d{{20}}\.json|\d{{20}}\.checkpoint\.json|state-v\d{{20}}/_manifest\.avro)")


class Files(Protocol):
    """What is read: the files of a table by their names."""

    def names(self) -> list[str]: ...
    def exists(self, name: str) -> bool: ...
    def read(self, name: str) -> bytes: ...


def plain_lines(data: bytes) -> bytes:
    """The lines of a version file, whichever compression it has."""
    data = data.removeprefix(b"\x01\x01")
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def actions(data: bytes) -> list[Action]:
    """The actions in the lines of a version file."""
    return [orjson.loads(line) for line in data.splitlines()]


def replayed(found: Collection[Action], live: Collection[str] = ()) -> set[str]:
    """The live files after some actions."""
    gone = {action["remove"]["path"] for action in found if "remove" in action}
    return {*live} - gone | {action["add"]["path"] for action in found if "add" in action}


def live_in_state(files: Files, name: str) -> dict[str, Action]:
    """The live files of a state with their entries; raises ValueError where the state contradicts itself."""
    (state,) = _records(files.read(name))
    live: dict[str, Action] = {}
    for manifest in state["manifests"]:
        path = manifest["path"]
        folder = LOG_DIR if "/" in path else name.rpartition("/")[0]
        live |= {entry["path"]: entry for entry in _records(files.read(f"{folder}/{path}"))}
    for path in state["tombstones"]:
        live.pop(path, None)
    if len(live) != state["numFiles"]:
        raise ValueError(f"{name} has {len(live)} files and says {state['numFiles']}")
    return live


def change_of_state(files: Files, name: str, before: Collection[str]) -> bytes:
    """What a state that is a commit of its own changes, as lines of a version file."""
    after = live_in_state(files, name)
    adds = [{"add": {"path": path, "dataChange": after[path]["dataChange"]}} for path in after if path not in before]
    merges = bool(adds) and not any(each["add"]["dataChange"] for each in adds)
    removes = [{"remove": {"path": path, "dataChange": not merges}} for path in before if path not in after]
    return b"\n".join(map(orjson.dumps, [*removes, *adds]))


def log_files(files: Files) -> list[str]:
    """The log files that make a table: commits, checkpoints and states."""
    return [name for name in files.names() if _FILE.fullmatch(name)]


def version_in(name: str) -> int:
    """The version in the name of a log file."""
    return int(name.removeprefix(f"{LOG_DIR}/").removeprefix("state-v")[:20])


def newest(files: Files, *, without: Collection[str]) -> tuple[int, set[str]]:
    """The newest version and its live files, from the newest state or checkpoint and the commits after it."""
    there = {name: version_in(name) for name in log_files(files) if name not in without}
    bases = {name: version for name, version in there.items() if not name.endswith(f"{version:020d}.json") and version}
    base = max(bases, key=lambda name: (bases[name], name), default=None)
    live: set[str] = set() if base is None else live_at_base(files, base)
    last = max(there.values())
    for version in range(0 if base is None else bases[base] + 1, last + 1):
        live = replayed(actions(plain_lines(files.read(f"{LOG_DIR}/{version:020d}.json"))), live)
    return last, live


def live_at_base(files: Files, name: str) -> set[str]:
    """The live files in a state or a checkpoint in one file."""
    if name.endswith(".avro"):
        return set(live_in_state(files, name))
    return replayed(actions(plain_lines(files.read(name))))


def _records(data: bytes) -> Iterator[Action]:
    stream = io.BytesIO(data)
    header = _record(stream, _HEADER)
    schema, sync = fastavro.parse_schema(orjson.loads(header["meta"]["avro.schema"])), header["sync"]
    while stream.tell() < len(data):
        block = _record(stream, _BLOCK)
        if block["sync"] != sync:
            raise ValueError("a block of an Avro file ends elsewhere")
        packed = block["data"]
        if header["meta"].get("avro.codec") == b"zstandard":
            packed = pa.input_stream(pa.BufferReader(packed), compression="zstd").read()
        records = io.BytesIO(packed)
        for _ in range(block["count"]):
            yield _record(records, schema)


def _record(source: io.BytesIO, schema: Any) -> Any:  # Any: a schema, and what it says
    return fastavro.schemaless_reader(source, schema, None)


_SYNC = {"type": "fixed", "name": "Sync", "size": 16}
_HEADER = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": _SYNC},
        ],
    }
)
_BLOCK = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Block",
        "fields": [
            {"name": "count", "type": "long"},
            {"name": "data", "type": "bytes"},
            {"name": "sync", "type": _SYNC},
        ],
    }
)
