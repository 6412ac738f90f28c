"""Streams that track metadata, for tests: a query that stops and starts as Spark would have it, and what it tracked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.logs import TABLE_ID, Action, col, delivered, meta, metadata, source_options, struct
from tablefeed.delta.schema.schema_string import parse_schema
from tablefeed.errors import MetadataEvolvedError
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.stream.schema_analysis import tracked_schema
from tablefeed.feed.stream.source import StreamSource
from tablefeed.feed.stream.source_options import DROP, RENAME, TYPE_CHANGE, Allowed, TrackingOptions
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Version
from tablefeed.model.offset import Barrier, Offset

ALWAYS: Allowed = dict.fromkeys((RENAME, DROP, TYPE_CHANGE), "always")
MAPPED = {"delta.columnMapping.mode": "name"}


def schema(**columns: str) -> str:
    return json.dumps(struct(*(col(name, kind) for name, kind in columns.items())))


ADDED = metadata(schema(id="long", more="string"))
"""With a column more than the tables of these tests have at first."""


def mapped(**physical: str) -> Action:
    columns = enumerate(physical.items(), start=1)
    return meta(*(col(name, id=n, physicalName=in_files) for n, (name, in_files) in columns), configuration=MAPPED)


def _barrier(version: int, which: Barrier) -> Offset:
    return Offset(table_id=TABLE_ID, version=Version(version), barrier=which)


def reached(version: int) -> Offset:
    return _barrier(version, Barrier.REACHED)


def passed(version: int) -> Offset:
    return _barrier(version, Barrier.PASSED)


@dataclass(slots=True)
class Checkpoint:
    """A streaming query by its checkpoint in `folder`: what ended each of its batches, and how many are done."""

    table: Path
    folder: Path
    tracking_id: str | None = None
    ends: list[Offset] = field(default_factory=list)
    done: int = 0
    files: list[list[str]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)

    def start(self, *, allowed: Allowed | None = None, limits: Limits | None = None, **options: Any) -> list[list[str]]:
        """Runs the query to the end of what is there; gives the files of each batch. Raises what ends it."""
        first = len(self.files)
        source = self.source(allowed=allowed, **options)
        source.bound_now()
        for _ in self.batches(source, limits or Limits()):
            pass
        return self.files[first:]

    def evolves(self, **options: Any) -> None:
        """Runs the query to where it stops for a change of its table's metadata."""
        with pytest.raises(MetadataEvolvedError):
            self.start(**options)

    def source(self, *, allowed: Allowed | None = None, **options: Any) -> StreamSource:
        """The feed as a new DataFrame has it."""
        tracking = self.tracking(allowed)
        log = open_log(str(self.table))
        tracked = tracked_schema(str(self.table), storage_options={}, tracking=tracking)
        schema = log.load().schema if tracked is None else parse_schema(tracked)
        self.columns = list(schema.names)
        return StreamSource(
            log, read_schema=schema, options=source_options(tracking=tracking, **options), clock=lambda: 0.0
        )

    def tracking(self, allowed: Allowed | None = None) -> TrackingOptions:
        return TrackingOptions(
            location=str(self.folder / "tracked"), tracking_id=self.tracking_id, allowed=allowed or {}
        )

    def batches(self, source: StreamSource, limits: Limits) -> Iterator[Offset]:
        """In Spark's order: a batch's end is logged, the batch before is said to be done, and then it runs."""
        while self.done < len(self.ends) or self._plan(source, limits):
            start = self.ends[-2] if len(self.ends) > 1 else source.initial()
            self.files.append(delivered(source, start, self.ends[-1]))
            self.done = len(self.ends)
            yield self.ends[-1]

    def _plan(self, source: StreamSource, limits: Limits) -> bool:
        start = self.ends[-1] if self.ends else source.initial()
        end = source.latest(start, limits)
        if end == start:
            return False
        self.ends.append(end)
        if len(self.ends) > 1:
            source.delivered(start)
        return True

    @property
    def log(self) -> Path:
        suffix = "" if self.tracking_id is None else f"_{self.tracking_id}"
        return self.folder / "tracked" / f"_schema_log_{TABLE_ID}{suffix}"

    def entries(self) -> list[Any]:
        """What was tracked, as JSON."""
        paths = sorted(self.log.iterdir(), key=lambda path: int(path.name)) if self.log.exists() else []
        return [json.loads(path.read_text(encoding="utf-8").split("\n")[1]) for path in paths]

    def versions(self) -> list[int]:
        """The versions of the table that were tracked, in order."""
        return [entry["deltaCommitVersion"] for entry in self.entries()]
