"""Queries whose scenarios ask for batches: `Stream` keeps what all of its runs delivered, batch by batch.

It runs on the model of Spark's batches, to what is there, or tails a table, and what ends it comes out of `run` as it
is. Its tables are delta-rs's, or commits written here. Where a scenario asks for the rows since the last start, the
class of an error, or what is tracked, its query is that of queries.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from support.logs import TABLE_ID, Action, metadata
from support.micro_batches import Batch, Frame, Query, SparkModel

BY_NAME = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
Row = Any  # the value of a table of one column, and of another a tuple of its values
Offset = tuple[int, int, bool]  # reservoirVersion, index and isStartingVersion of the JSON


@dataclass(slots=True)
class Stream:
    """A query over the table at `table`, what it has delivered in all its runs, and where its batches ended."""

    table: Path
    options: dict[str, str]
    checkpoint: Path
    batches: list[list[Row]] = field(default_factory=list)
    """Those that had rows."""

    @property
    def rows(self) -> list[Row]:
        """Every row that was delivered, sorted, nulls first."""
        return sorted((row for batch in self.batches for row in batch), key=_nulls_first)

    @property
    def ends(self) -> list[Offset]:
        """The logged offsets."""
        batches = sorted((self.checkpoint / "offsets").iterdir(), key=lambda batch: int(batch.name))
        ends = [json.loads(batch.read_text().split("\n")[2]) for batch in batches]
        return [(end["reservoirVersion"], end["index"], end["isStartingVersion"]) for end in ends]

    def frame(self, **options: str) -> Frame:
        return SparkModel().readStream.format("tablefeed").options(**(self.options | options)).load(str(self.table))

    def run(self, frame: Frame | None = None, *, once: bool = False) -> list[list[Row]]:
        """Runs the query to what is there now, and gives the batches of this run that had rows."""
        before = len(self.batches)
        writer = self._writer(self.frame() if frame is None else frame)
        (writer.trigger(once=True) if once else writer.trigger(availableNow=True)).start()
        return self.batches[before:]

    def stand_at(self, version: int) -> None:
        """Makes the query one that has delivered all before `version`, in whatever way."""
        offset = {"sourceVersion": 1, "reservoirId": TABLE_ID, "reservoirVersion": version, "index": -1}
        for name, logged in (("offsets", json.dumps({**offset, "isStartingVersion": False})), ("commits", "")):
            batches = self.checkpoint / name
            batches.mkdir(exist_ok=True)
            (batches / str(len(list(batches.iterdir())))).write_text(f"v1\n{{}}\n{logged}")

    def start(self, frame: Frame | None = None) -> Query:
        """A query that goes on when the table does, at each `processAllAvailable`."""
        query: Query = self._writer(self.frame() if frame is None else frame).start()
        return query

    def _writer(self, frame: Frame) -> Any:
        def keep(batch: Batch, _number: int) -> None:
            columns = batch.toArrow().to_pydict()
            rows = list(zip(*columns.values(), strict=True))
            if rows:
                self.batches.append([row[0] for row in rows] if len(columns) == 1 else rows)

        return frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(self.checkpoint))


def stream(table: Path, **options: str) -> Stream:
    """A query whose checkpoint lies beside the table."""
    number = len(list(table.parent.glob("checkpoint-*")))
    checkpoint = table.parent / f"checkpoint-{number}"
    checkpoint.mkdir()
    return Stream(table, options, checkpoint)


def append(table: Path, *values: Row, name: str = "value", **columns: list[Any]) -> None:
    """A commit of one file, by delta-rs; it makes the table, and adds columns that are new."""
    rows = pa.table(columns or {name: list(values)})
    write_deltalake(str(table), rows, mode="append", schema_mode="merge")


def commit_file(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    """Another writer's commit of these actions."""
    commit_file(table, version).parent.mkdir(parents=True, exist_ok=True)
    commit_file(table, version).write_text("".join(json.dumps(action) + "\n" for action in actions))


def mapped(mapping: Mapping[str, str] = BY_NAME, **columns: tuple[int, str]) -> Action:
    """The metadata of a table whose columns have an id, by which their name in files is made, and a type."""
    fields = [
        {
            "name": name,
            "type": kind,
            "nullable": True,
            "metadata": {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"},
        }
        for name, (number, kind) in columns.items()
    ]
    return metadata(json.dumps({"type": "struct", "fields": fields}), configuration=mapping)


def _nulls_first(row: Row) -> Any:
    return [(value is not None, value) for value in (row if isinstance(row, tuple) else (row,))]
