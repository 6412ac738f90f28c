"""Logs line by line as bytes, valid and nearly valid, over three small data files; and a plain replay of them.

The replay shares no code with the package: dicts, json, and the protocol's words ("Action Reconciliation").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from support.logs import commit_path, info, metadata, protocol, txn
from tablefeed.feed.upkeep.background import wait_until_done

Json = Any  # Any: what JSON can hold
Key = tuple[str, str | None]
"""A logical file: its decoded path and its deletion vector's id."""

SCHEMA = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"p","type":"string","nullable":true,"metadata":{}}]}'
)
DATA = {"a.parquet": (0, 1, 2), "b c/d.parquet": (10, 11, 12), "é%25.parquet": (20, 21, 22)}
"""The ids in each data file, by its decoded path."""

VECTORS = {
    "i^Bg9^0rr910000000000iXQKl0rr91000005c8Xg00000": (34, {0}),
    "i^Bg9^0rr910000000000iXQKl0rr91000315c8Xg0rrf3": (36, {1, 2}),
}
"""Inline deletion vectors by their unique id: their size in bytes and the positions that they delete."""


def line(action: Json) -> bytes:
    return json.dumps(action).encode()


def vector(unique_id: str) -> Json:
    size, positions = VECTORS[unique_id]
    inline = {"storageType": "i", "pathOrInlineDv": unique_id[1:], "sizeInBytes": size}
    return {**inline, "cardinality": len(positions)}


def _files() -> Iterator[Json]:
    for path in DATA:
        for spelled in {quote(path), path.replace("%", "%25"), quote(path, safe="").replace("a", "%61")}:
            for of_file in ({}, *({"deletionVector": vector(unique_id)} for unique_id in VECTORS)):
                values = {"path": spelled, "dataChange": bool(of_file) or "%61" in spelled, **of_file}
                yield {"remove": {**values, "deletionTimestamp": 1}}
                for value in (None, "", "x"):
                    more = {"partitionValues": {"p": value}, "size": len(path), "modificationTime": 1}
                    yield {"add": {**values, **more, "stats": '{"numRecords":3}'}}


FIRST = (line(protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"])),)
"""What version 0 begins with, besides a metaData."""
METADATA = tuple(
    line(metadata(SCHEMA, partition_columns=columns, table_id=table_id))
    for columns, table_id in ((["p"], "one"), (["p"], "two"), ([], "one"))
)
FILES = tuple(line(action) for action in _files())
OTHERS = (
    line(txn("app", 7)),
    line(txn("app", 3)),
    line(txn("other", 1)),
    line(info(operation="WRITE", anything=[{"at": "all"}])),
    line({"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}),
    line({"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}}),
    line({"fromTheFuture": {"add": {"path": "a.parquet"}}}),
    line({"add": None, "remove": None, "txn": None}),
    b"{}",
    b"",
    b" \t\r",
)
"""Lines that change no file: each is valid anywhere and any number of times."""


def replay(commits: Sequence[bytes]) -> tuple[dict[Key, Json], dict[str, Json]]:
    """The live files and, by kind, the newest of all other actions; txns and domains are by their ids within."""
    live: dict[Key, Json] = {}
    newest: dict[str, Json] = {"txn": {}}
    for commit in commits:
        for text in commit.split(b"\n"):
            for kind, action in (json.loads(text) if text.strip() else {}).items():
                if kind in ("add", "remove") and action is not None:
                    live.pop(key(action), None)
                    live |= {key(action): action} if kind == "add" else {}
                elif kind == "txn" and action is not None:
                    newest["txn"][action["appId"]] = action["version"]
                elif action is not None:
                    newest[kind] = action
    return live, newest


def key(action: Json) -> Key:
    found = action.get("deletionVector")
    if found is None:
        return decoded(action["path"]), None
    offset = found.get("offset")
    return decoded(action["path"]), f"{found['storageType']}{found['pathOrInlineDv']}" + (
        "" if offset is None else f"@{offset}"
    )


def decoded(path: str) -> str:
    try:
        return unquote(re.sub("^file:(//[^/]*)?", "", path), errors="strict")
    except UnicodeDecodeError:
        return path


def rows(live: Mapping[Key, Json], partition_columns: Sequence[str]) -> list[tuple[int, str | None]] | None:
    """The (id, p) that readers must see, sorted; None where a file or its deletion vector is not there to be read."""
    found: list[tuple[int, str | None]] = []
    for (path, unique_id), add in live.items():
        if path not in DATA or not (unique_id is None or add["deletionVector"] == vector_of(unique_id)):
            return None
        gone = VECTORS[unique_id][1] if unique_id else set()
        value = add["partitionValues"].get("p") or None if "p" in partition_columns else None
        found += [(number, value) for at, number in enumerate(DATA[path]) if at not in gone]
    return sorted(found, key=str)


def vector_of(unique_id: str) -> Json:
    return vector(unique_id) if unique_id in VECTORS else None


class Folder:
    """A table's folder with the data files of `DATA`, and whatever log it is given."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "_delta_log").mkdir(parents=True)
        for name, ids in DATA.items():
            (path / name).parent.mkdir(exist_ok=True)
            pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), path / name, write_page_checksum=True)

    def log(self, commits: Sequence[bytes], *, first: int = 0, beside: Mapping[str, bytes] | None = None) -> Path:
        """Makes `commits` from version `first` on the whole log, with the files `beside`, by their paths.

        What an append to the log before still does behind its caller's back is waited for.
        """
        wait_until_done()
        for old in (self.path / "_delta_log").iterdir():
            if old.is_file():
                old.unlink()
        for version, commit in enumerate(commits):
            if version >= first:
                (self.path / commit_path(version)).write_bytes(commit)
        for path, data in (beside or {}).items():
            (self.path / path).write_bytes(data)
        return self.path
