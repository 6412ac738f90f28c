"""Tables that scenarios of writes begin with, and one batch write or the micro-batches of a query into them. No JVM."""

from __future__ import annotations

import gc
import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import tablefeed
from support.logs import ID, Action, a_log, metadata, protocol
from tablefeed.errors import InvalidRowsError
from tablefeed.feed.write.sink import write_task
from tablefeed.spark.sink import StreamWriter, Written
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


@dataclass(slots=True)
class Writes:
    """A query that writes to the table at `path`; each call is its next batch, of a task for each table of rows."""

    path: Path
    options: dict[str, str] = field(default_factory=dict)
    batch_id: int = 0
    query: str = "8e2f7f9e-6c4c-4a5f-9a0e-6f2f4c1b2a3d"
    schema: pa.Schema = ID
    """Of the rows of its newest batch."""

    def __call__(self, *tasks: pa.Table) -> None:
        self.commit(self.write(*tasks))
        self.batch_id += 1

    def write(self, *tasks: pa.Table) -> list[Written]:
        """What the tasks of a batch tell of the rows that they wrote, which are not committed yet."""
        self.schema = tasks[0].schema
        writer = self._writer()
        messages = []
        for number, rows in enumerate(tasks):
            there: StreamWriter = pickle.loads(pickle.dumps(writer))  # noqa: S301 - our own
            is_replay = there._plan.recorded.get(self.query, -1) >= self.batch_id
            files = () if is_replay else write_task(there._plan, rows.to_batches(), task=number, now_ms=0)
            messages.append(Written(plan=there._plan, files=files, query_id=self.query, batch_id=self.batch_id))
        return messages

    def commit(self, messages: Sequence[Written]) -> None:
        """Commits a batch, by another writer, as Spark does it."""
        try:
            self._writer().commit(messages, self.batch_id)
        finally:
            gc.unfreeze()  # what a worker of Spark's keeps for good

    def abort(self, messages: Sequence[Written | None]) -> None:
        """Gives a batch up. None stands for a task that failed."""
        self._writer().abort(messages, self.batch_id)

    def _writer(self) -> StreamWriter:
        return StreamWriter({"path": str(self.path), **self.options}, from_arrow_schema(self.schema), overwrite=False)


class Write(Protocol):
    """One append of rows, with the options `timeZone` and `mergeSchema`."""

    def __call__(self, path: Path, rows: pa.Table, *, zone: str | None = None, merge: bool = False) -> None: ...


def by_batch(path: Path, rows: pa.Table, *, zone: str | None = None, merge: bool = False) -> None:
    """A batch append."""
    tablefeed.append(path, rows, time_zone=zone, merge_schema=merge)


def by_stream(path: Path, rows: pa.Table, *, zone: str | None = None, merge: bool = False) -> None:
    """The first batch of a query of its own."""
    told = {} if zone is None else {"timeZone": zone}
    Writes(path, {"mergeSchema": str(merge).lower(), **told}, query=str(uuid4()))(rows)


BOTH: Mapping[str, Write] = {"batch": by_batch, "stream": by_stream}


def rows(path: Path) -> list[Row]:
    """The table's rows, in an order of their own."""
    return sorted(tablefeed.open_table(path).to_arrow().to_pylist(), key=str)


def is_untouched(path: Path) -> bool:
    """Whether the table has no file, and no version after its first."""
    return not list(path.rglob("*.parquet")) and tablefeed.open_table(path).version == 0


def refused(write: Write, table: Path, given: pa.Table, said: str, *, zone: str | None = None) -> None:
    """That `given` breaks a rule, of which the error tells, and leaves nothing."""
    with pytest.raises(InvalidRowsError) as caught:
        write(table, given, zone=zone)

    assert caught.value.error_class == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert said in caught.value.message
    assert is_untouched(table)


def actions(path: Path, version: int) -> dict[str, list[Any]]:
    """The actions of a version by their kinds."""
    found: dict[str, list[Any]] = {}
    for line in (path / f"_delta_log/{version:020}.json").read_text(encoding="utf-8").splitlines():
        for kind, value in json.loads(line).items():
            found.setdefault(kind, []).append(value)
    return found
