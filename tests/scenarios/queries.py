"""Queries that changes of a table end: `Stream` keeps the rows since its last start, and is started again and again.

It runs on the model of Spark's batches and continues until it fails with the class that a scenario names. Each start
may have other options, and its schema may be tracked.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from scenarios.tables import Row
from support.micro_batches import Batch, Checkpoint, Frame, Query, SparkModel
from tablefeed.errors import TablefeedError

METADATA_EVOLUTION = "DELTA_STREAMING_METADATA_EVOLUTION"
NON_ADDITIVE = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
SCHEMA_CHANGED = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
INIT_FAILED = "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA"

RENAME = {"allowSourceColumnRename": "always", "allowSourceColumnDrop": "always"}


@dataclass(slots=True)
class Stream:
    """The query on `checkpoint` that reads `table` with `options`, whose rows are those since its last start."""

    table: Path
    checkpoint: Path
    options: dict[str, str] = field(default_factory=dict)
    once: bool = False
    feed_columns: bool = False  # whether rows of changes are told with what became of them, and in which version
    _query: Query | None = None
    _batches: list[list[Row]] = field(default_factory=list)

    @classmethod
    def on(cls, table: Path, **options: str) -> Stream:
        return cls(table, table.parent / "checkpoint", options)

    @property
    def tracked(self) -> Stream:
        """The same query, with its schema tracked below its checkpoint."""
        options = self.options | {"schemaTrackingLocation": str(self.checkpoint / "_schema_location")}
        return replace(self, options=options)

    def frame(self) -> Frame:
        return SparkModel().readStream.format("tablefeed").options(**self.options).load(str(self.table))

    def start(self, **options: str) -> Stream:
        """A new DataFrame and a run of the query from it; nothing is read yet."""
        self.options = self.options | options
        self._batches = []
        frame = self.frame()
        self._query = Query(
            frame=frame,
            sink=self._keep,
            checkpoint=Checkpoint.at(self.checkpoint),
            when="once" if self.once else "processingTime",
            planner=frame.reader(),
        )
        return self

    def run(self, **options: str) -> list[Row]:
        """Starts it and processes all that is there; gives the rows. Raises what ends it."""
        return self.start(**options).process()

    def process(self) -> list[Row]:
        """All that is there now, by the run that goes on: gives the rows since its start."""
        assert self._query is not None
        self._query.processAllAvailable()
        return self.rows

    def fails(self, error_class: str, **options: str) -> TablefeedError:
        """Starts it and processes until it fails with that class; the rows before are in `rows`."""
        with pytest.raises(TablefeedError) as caught:
            self.run(**options)
        assert caught.value.error_class == error_class, caught.value
        return caught.value

    def goes_down(self, error_class: str) -> TablefeedError:
        """As `fails`, by the run that goes on."""
        with pytest.raises(TablefeedError) as caught:
            self.process()
        assert caught.value.error_class == error_class, caught.value
        return caught.value

    @property
    def rows(self) -> list[Row]:
        return sorted((row for batch in self._batches for row in batch), key=repr)

    @property
    def ends(self) -> list[tuple[int, int]]:
        """Version and index of each batch's end, as the checkpoint has them."""
        values = [json.loads(end) for end in Checkpoint.at(self.checkpoint).ends]
        return [(value["reservoirVersion"], value["index"]) for value in values]

    @property
    def wire(self) -> dict[str, Any]:
        """The last batch's end."""
        last: dict[str, Any] = json.loads(Checkpoint.at(self.checkpoint).ends[-1])
        return last

    def plan(self, end: dict[str, Any]) -> None:
        """Logs a batch that another planned and did not run."""
        Checkpoint.at(self.checkpoint).begin(json.dumps(end))

    def entries(self) -> list[dict[str, Any]]:
        """What is tracked, as JSON."""
        found = Path(self.options["schemaTrackingLocation"]).glob("_schema_log_*/[0-9]*")
        paths = sorted(found, key=lambda path: int(path.name))
        return [json.loads(path.read_text("utf-8").split("\n")[1]) for path in paths]

    def tracked_version(self) -> int | None:
        entries = self.entries()
        return entries[-1]["deltaCommitVersion"] if entries else None

    def tracked_columns(self) -> list[str]:
        fields = json.loads(self.entries()[-1]["dataSchemaJson"])["fields"]
        return [each["name"] for each in fields]

    def _keep(self, batch: Batch, _number: int) -> None:
        self._batches.append([_plain(row) for row in self._told(batch.rows).to_pylist()])

    def _told(self, rows: pa.Table) -> pa.Table:
        untold = (
            ["_commit_timestamp"] if self.feed_columns else ["_commit_timestamp", "_change_type", "_commit_version"]
        )
        return rows.drop_columns([name for name in untold if name in rows.column_names])


def texts(numbers: range | list[int], width: int = 2) -> list[Row]:
    """Rows that have a number in each column, as text."""
    return sorted(((str(number),) * width for number in numbers), key=repr)


def _plain(row: dict[str, Any]) -> Row:
    return tuple(_plain(value) if isinstance(value, dict) else value for value in row.values())
