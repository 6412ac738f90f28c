"""A query's checkpoint, looked at from outside while the query rests or runs: where it is, how far behind, a new start.

Spark's checkpoint does not say which table a source reads. It has the table's id, so a caller names the tables.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tablefeed.errors import IllegalOptionError, MissingPathError, OffsetError, TablefeedError
from tablefeed.feed.arguments import location, store_options, whole_number
from tablefeed.feed.snapshot.bounds import check_available
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.stream.lag import Lag
from tablefeed.feed.stream.query_id import query_id
from tablefeed.feed.stream.resting_lag import resting_lag
from tablefeed.feed.stream.spark_checkpoint import PlannedBatch, SparkCheckpoint, offset_text, read_offset
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFileKind
from tablefeed.model.offset import Offset
from tablefeed.store import open_store


class Reader(StrEnum):
    """Whose source is to read the offsets of a checkpoint."""

    TABLEFEED = "tablefeed"
    JAR = "jar"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceEnd:
    """Where a batch ends for the source with the number `source` of the query.

    `text` is what the checkpoint has, None where the source has no offset yet. `offset` is None where the source is no
    table of tablefeed or Delta.
    """

    source: int
    text: str | None
    offset: Offset | None

    @property
    def position(self) -> str | None:
        """What the offset means, in words; None where there is none."""
        at = self.offset
        if at is None:
            return None
        if at.event_time is not None:
            return f"in the snapshot of version {at.version}, by the times in {at.event_time.column}"
        if at.in_snapshot:
            return f"{at.file_index} files of the snapshot of version {at.version} are delivered"
        if at.file_index:
            return f"{at.file_index} files of version {at.version}, and all before it, are delivered"
        return f"everything before version {at.version} is delivered"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBatch:
    """A batch of a query. One that is planned and not done runs again when the query starts."""

    batch_id: int
    is_done: bool
    ends: tuple[SourceEnd, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTime:
    """When a batch was planned and when it was done, None where it is not: the times of its files in the checkpoint."""

    batch_id: int
    planned_at_ms: int
    done_at_ms: int | None

    @property
    def seconds(self) -> float | None:
        """How long the batch took after it was planned; None where it is not done."""
        return None if self.done_at_ms is None else max(self.done_at_ms - self.planned_at_ms, 0) / 1000


class QueryCheckpoint:
    """The checkpoint of a streaming query of Spark at `url`. Raises OffsetError where it cannot be read, StoreError."""

    def __init__(self, url: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._options = store_options(storage_options)
        self._location = location(url)
        self._files = SparkCheckpoint(open_store(self._location, self._options))
        self._planned, self._done = self._files.planned(), {*self._files.done()}
        self.url = self._files.url
        if not self._planned:
            raise MissingPathError(
                f"{self.url} is no checkpoint of a query, or its first batch is not planned yet: it has no folder "
                "`offsets` with files. Give the value of the option checkpointLocation."
            )

    @property
    def query_id(self) -> str:
        """The id of the query, which is also the appId of its commits."""
        return query_id(self._location, self._options)

    def batches(self) -> Iterable[QueryBatch]:
        """Gives the batches that the checkpoint still has, the newest first."""
        return (self._batch(batch_id) for batch_id in reversed(self._planned))

    def times(self) -> list[BatchTime]:
        """Gives when the batches that the checkpoint still has were made, the oldest first."""
        planned, done = self._files.times_ms()
        return [BatchTime(batch_id=n, planned_at_ms=planned[n], done_at_ms=done.get(n)) for n in sorted(planned)]

    def newest(self) -> QueryBatch:
        """Gives the batch that was planned last."""
        return self._batch(self._planned[-1])

    def newest_done(self) -> QueryBatch | None:
        """Gives the last batch that is done, None where none is."""
        both = [batch_id for batch_id in self._planned if batch_id in self._done]
        return self._batch(both[-1]) if both else None

    def _batch(self, batch_id: int) -> QueryBatch:
        found = self._files.batch(batch_id)
        ends = [
            SourceEnd(source=number, text=text, offset=None if text is None else read_offset(text, url=self.url))
            for number, text in enumerate(found.ends)
        ]
        return QueryBatch(batch_id=batch_id, is_done=batch_id in self._done, ends=tuple(ends))

    # --- beside the tables ---------------------------------------------------------------------------------------

    def lag(self, tables: Sequence[str], storage_options: Mapping[str, str] | None = None) -> dict[int, Lag]:
        """Gives how far each source that reads one of `tables` is behind, by its number.

        A batch that is not done counts as not delivered. Raises OffsetError where no batch is done, or a source of a
        table reads none of `tables`, and as `resting_lag`.
        """
        done = self.newest_done()
        if done is None:
            raise OffsetError(
                f"No batch of the query with the checkpoint {self.url} is done, so it has delivered nothing yet.",
                url=self.url,
            )
        logs = self._by_table_id(tables, storage_options)
        found: dict[int, Lag] = {}
        for end in done.ends:
            if end.offset is not None:
                log = self._log_of(end, end.offset, logs)
                found[end.source] = resting_lag(log, end.offset, now_ms=time.time_ns() // 1_000_000)
        return found

    def problems(self, tables: Sequence[str], storage_options: Mapping[str, str] | None = None) -> list[str]:
        """Gives what keeps the query from going on, one text each; none where it can, as far as its logs say."""
        found: list[str] = []
        try:
            _ = self.query_id
        except TablefeedError as error:
            found.append(error.message)
        try:
            newest, done = self.newest(), self.newest_done()
        except TablefeedError as error:
            return [*found, error.message]
        logs = self._by_table_id(tables, storage_options)
        for end in (done or newest).ends:
            if end.offset is None:
                continue
            try:
                resting_lag(self._log_of(end, end.offset, logs), end.offset, now_ms=0)
            except TablefeedError as error:
                found.append(f"source {end.source}: {error.message}")
        return found

    def reset(
        self,
        table: str,
        *,
        version: int | None,
        source: int | None = None,
        write: bool,
        storage_options: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Adds a batch without rows after which the query goes on at `version` (None: after the newest) of `table`.

        Gives the id of that batch and the new offset; nothing is written without `write`, or where the newest batch
        ends there. `source` is the number of a source that reads the table with this id, by default the only one. The
        query must not run. A query that keeps state is refused: its state belongs to the batches that it has done.
        """
        log = open_log(location(table), store_options(storage_options))
        snapshot = log.load()
        newest, batch = self._files.batch(self._planned[-1]), self.newest()
        at = self._source_to_reset(batch, source, table_id=snapshot.metadata.table_id, url=log.url)
        first = Version(snapshot.version + 1 if version is None else whole_number(version, argument="version", least=0))
        if first <= snapshot.version:
            earliest = min((f.version for f in log.listing() if f.kind is LogFileKind.COMMIT), default=first)
            check_available((first,), earliest=earliest, newest=snapshot.version, url=log.url)
        elif first > snapshot.version + 1:
            raise IllegalOptionError(
                option="version", value=str(first), explain=f"must be at most {snapshot.version + 1}, the next version"
            )
        self._refuse_state("Start the query with a new checkpoint and startingVersion.")
        text = offset_text(Offset(table_id=snapshot.metadata.table_id, version=first))
        ends = tuple(text if number == at else end for number, end in enumerate(newest.ends))
        is_there = newest.ends == ends  # at least the first file, where an earlier call was killed
        added = newest if is_there else replace(newest, batch_id=newest.batch_id + 1, ends=ends)
        if write:
            self._put(added)
        return added.batch_id, text

    def convert(self, reader: Reader, *, write: bool) -> tuple[int, tuple[str | None, ...]] | None:
        """Adds a batch without rows after which the source of `reader` can read the offsets, at the same positions.

        Gives the id of that batch and the text of each source's end; None if no change is needed. Nothing is written
        without `write`. The query must not run. Raises OffsetError, and writes nothing, where `reader` has no offset
        for a position, where the newest batch is not done, and where the query keeps state.
        """
        newest, batch = self._files.batch(self._planned[-1]), self.newest()
        before = self._batch(self._planned[-2]) if len(self._planned) > 1 else batch
        is_there = not batch.is_done and before is not batch and _positions(batch) == _positions(before)
        if not (batch.is_done or is_there):
            raise OffsetError(
                f"Batch {batch.batch_id} of the checkpoint {self.url} is planned but not finished. Nothing was "
                "written. Start the query with the source that planned it, stop it after the batch, then convert.",
                url=self.url,
            )
        texts = tuple(each.text if each.offset is None else offset_text(each.offset) for each in batch.ends)
        if reader is Reader.JAR:
            for end in batch.ends:
                self._refuse_event_time(end)
        # The JAR plans the last batch again, also one that is done. So it reads where that batch began, too.
        starts_late = reader is Reader.JAR and any(map(_is_by_event_time, before.ends))
        if texts == newest.ends and not (is_there or starts_late):
            return None
        self._refuse_state("Let the query run until the newest two batches have offsets that the other source reads.")
        is_ours = is_there and texts == newest.ends
        added = newest if is_ours else replace(newest, batch_id=newest.batch_id + 1, ends=texts)
        if write:
            for each in dict.fromkeys((newest, added) if is_there else (added,)):
                self._put(each)
        return added.batch_id, texts

    def _refuse_event_time(self, end: SourceEnd) -> None:
        if _is_by_event_time(end):
            raise OffsetError(
                f"Source {end.source} of the checkpoint {self.url} is {end.position}. The Delta JAR has no offset for "
                "that. Nothing was written. Let the query deliver the rest of the snapshot, and convert then.",
                url=self.url,
            )

    def _refuse_state(self, remedy: str) -> None:
        if self._files.has_state():
            raise OffsetError(
                f"The query with the checkpoint {self.url} keeps state, which belongs to its batches. Nothing was "
                f"written. {remedy}",
                url=self.url,
            )

    def _put(self, added: PlannedBatch) -> None:
        if not self._files.put(added):
            raise OffsetError(
                f"Batch {added.batch_id} of the checkpoint {self.url} was added by another process. Nothing was "
                "written. Stop the query first.",
                url=self.url,
            )

    def _source_to_reset(self, batch: QueryBatch, source: int | None, *, table_id: str, url: str) -> int:
        if source is not None and not 0 <= source < len(batch.ends):
            raise IllegalOptionError(
                option="source", value=str(source), explain=f"must be from 0 to {len(batch.ends) - 1}"
            )
        reading = [e.source for e in batch.ends if e.offset is not None and e.offset.table_id == table_id]
        if source in reading:
            return source
        if source is None and len(reading) == 1:
            return reading[0]
        query = f"of the query with the checkpoint {self.url}"
        if source is not None:
            said, remedy = f"Source {source} {query} does not read", "Name the table that it reads"
        elif reading:
            which = "Say which one (on the command line: --source); 0 is the first"
            said, remedy = f"{len(reading)} sources {query} read", which
        else:
            said, remedy = f"No sources {query} read", "Name a table that the query reads"
        raise OffsetError(
            f"{said} the table {url}, which has the id {table_id}. Nothing was written. {remedy}.", url=self.url
        )

    def _by_table_id(self, tables: Sequence[str], storage_options: Mapping[str, str] | None) -> dict[str, TableLog]:
        logs = [open_log(location(table), store_options(storage_options)) for table in tables]
        return {log.load().metadata.table_id: log for log in logs}

    def _log_of(self, end: SourceEnd, offset: Offset, logs: Mapping[str, TableLog]) -> TableLog:
        found = logs.get(offset.table_id)
        if found is None:
            named = ", ".join(log.url for log in logs.values()) or "none"
            raise OffsetError(
                f"Source {end.source} of the query reads the table with the id {offset.table_id}, at version "
                f"{offset.version}. The checkpoint {self.url} does not say where that table is. Name the table (on the "
                f"command line: --table). Named are {named}.",
                url=self.url,
            )
        return found


def _positions(batch: QueryBatch) -> list[Offset | str | None]:
    return [end.offset or end.text for end in batch.ends]


def _is_by_event_time(end: SourceEnd) -> bool:
    return end.offset is not None and end.offset.event_time is not None
