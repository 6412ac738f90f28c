"""Tables that scenarios of writes begin with, and a write into them by a batch or by a query. No JVM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pyarrow as pa

import tablefeed
from scenarios.sinks import Sink
from support.logs import Action, a_log, metadata, protocol
from tablefeed.store import LocalStore

Row = dict[str, Any]
Column = tuple[str, object] | tuple[str, object, dict[str, Any]]


def a_field(column: Column, *, nullable: bool = True) -> Row:
    """A field as the log has it; `column` is its name, its type and what its metadata says."""
    name, kind, *more = column
    return {"name": name, "type": kind, "nullable": nullable, "metadata": dict(*more)}


def a_struct(*columns: Column, required: tuple[str, ...] = ()) -> Row:
    """A type of members, all of which may be null but the `required`."""
    return {"type": "struct", "fields": [a_field(each, nullable=each[0] not in required) for each in columns]}


def an_array(element: object) -> Row:
    return {"type": "array", "elementType": element, "containsNull": True}


def a_map(key: object, value: object) -> Row:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def make(
    path: Path,
    schema: Row,
    told: Action | None = None,
    *,
    partition_by: tuple[str, ...] = (),
    constraints: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
) -> Path:
    """An empty table as another writer made it."""
    checks = {f"delta.constraints.{name}": condition for name, condition in (constraints or {}).items()}
    meta = metadata(json.dumps(schema), partition_columns=partition_by, configuration={**checks, **(properties or {})})
    a_log(LocalStore(str(path)), v0=[told or protocol(1, 4), meta])
    return path


class Write(Protocol):
    """One append of rows, with the options `timeZone` and `mergeSchema`."""

    def __call__(self, path: Path, rows: pa.Table, *, zone: str | None = None, merge: bool = False) -> None: ...


def by_batch(path: Path, rows: pa.Table, *, zone: str | None = None, merge: bool = False) -> None:
    """A batch append."""
    tablefeed.append(path, rows, time_zone=zone, merge_schema=merge)


def by_stream(path: Path, rows: pa.Table, *, zone: str | None = None, merge: bool = False) -> None:
    """The first batch of a query of its own."""
    options = {"mergeSchema": str(merge).lower(), **({} if zone is None else {"timeZone": zone})}
    Sink(path, options, query_id=str(uuid4())).write(rows)


BOTH: Mapping[str, Write] = {"batch": by_batch, "stream": by_stream}


def rows(path: Path) -> list[Row]:
    """The table's rows, in an order of their own."""
    return sorted(tablefeed.open_table(path).to_arrow().to_pylist(), key=str)


def actions(path: Path, version: int) -> dict[str, list[Any]]:
    """The actions of a version by their kinds."""
    found: dict[str, list[Any]] = {}
    for line in (path / f"_delta_log/{version:020}.json").read_text(encoding="utf-8").splitlines():
        for kind, value in json.loads(line).items():
            found.setdefault(kind, []).append(value)
    return found
