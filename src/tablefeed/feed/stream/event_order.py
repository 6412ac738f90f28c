"""Delivers the initial snapshot in the order of the times in a column, so that a watermark drops none of its rows.

Each batch takes the next bucket of time: it reads every file that may have rows between two moments, and delivers only
those rows. The first batch also delivers the rows without a time. The last bucket has no end, so it delivers what is
left of files without statistics. Offsets contain the moments, so a restart delivers the same rows in a batch, whatever
its limits are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tablefeed.feed.stream.event_time import EventTimes, may_have_rows
from tablefeed.feed.stream.lag import SnapshotLeft
from tablefeed.feed.stream.stream_snapshot import InitialSnapshot
from tablefeed.log.event_time import Spans, Spread, bucket_end, spans
from tablefeed.log.plan import Limits
from tablefeed.model.actions import AddFile, Version
from tablefeed.model.offset import EventTime, Offset

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.predicate import RowFilter


logger = logging.getLogger(__name__)


class ByEventTime:
    """A `SnapshotOrder` by `event_times`; `snapshot` must be made with them. Only rows that pass `where` are delivered.

    Files that `where` rules out count towards the limits of a batch, as they do in `ByFiles`.
    """

    def __init__(
        self, snapshot: InitialSnapshot, event_times: EventTimes, *, where: RowFilter | None, url: str
    ) -> None:
        self._snapshot, self._event_times, self._where, self._url = snapshot, event_times, where, url
        self._costs: _Costs | None = None

    def furthest(self, start: Offset, limits: Limits) -> Offset:
        """Gives where a batch ends that begins at `start` in the snapshot: within the snapshot, or right after it."""
        behind = Offset(table_id=start.table_id, version=Version(start.version + 1))
        if limits.take_all:
            return behind
        costs = self._costs_of(start.version)
        if costs.spans is None:
            if costs.file_count:
                logger.warning(
                    "url=%s version=%d has no statistics of %s: the whole table is one batch",
                    self._url,
                    start.version,
                    self._event_times.column,
                )
            return behind
        begin_us = None if start.event_time is None else start.event_time.before_us
        end_us = bucket_end(begin_us, costs.spans, costs.limited(costs.spans, limits))
        if end_us is None:
            return behind
        return Offset(
            table_id=start.table_id,
            version=start.version,
            in_snapshot=True,
            event_time=EventTime(column=self._event_times.column, before_us=end_us),
        )

    def part(self, start: Offset, end: Offset) -> tuple[Iterator[AddFile], RowFilter | None]:
        """See `SnapshotOrder`."""
        begin_us, end_us = (None if at.event_time is None else at.event_time.before_us for at in (start, end))
        files = self._snapshot.files(start.version)
        adds = self._snapshot.adds(files.where(may_have_rows(files.columns, begin_us, end_us)))
        return adds, self._event_times.rows(begin_us, end_us, self._where)

    def left(self, end: Offset) -> SnapshotLeft:
        """See `SnapshotOrder`. Bytes are estimated as in `furthest`: a file's are spread evenly over its times."""
        files, costs = self._snapshot.files(end.version).columns, self._costs_of(end.version)
        before_us, delivered = None, 0.0
        if end.event_time is not None and costs.spans is not None:
            before_us = end.event_time.before_us
            delivered = costs.spread("size_bytes", costs.spans).before(before_us)
        return SnapshotLeft(
            files=may_have_rows(files, before_us, None).true_count,
            size_bytes=max(costs.size_bytes - int(delivered), 0),
            total_bytes=costs.size_bytes,
        )

    def forget(self) -> None:
        """See `SnapshotOrder`."""
        self._snapshot.forget()
        self._costs = None

    def _costs_of(self, version: Version) -> _Costs:
        if self._costs is None or self._costs.version != version:
            self._costs = _Costs(version, self._snapshot.files(version).columns)
        return self._costs


class _Costs:
    """The cost of the files of one version, over time. Each `Spread` is computed when it is first needed."""

    def __init__(self, version: Version, files: pa.RecordBatch) -> None:
        import pyarrow.compute as pc

        self.version = version
        self._files = files
        self.file_count = files.num_rows
        self.spans = spans(files["event_low"], files["event_high"], files["event_may_have_value"])
        self.size_bytes = int(pc.sum(files["size_bytes"]).as_py() or 0)
        self._spreads: dict[tuple[str, int], Spread] = {}

    def limited(self, over: Spans, limits: Limits) -> Iterator[tuple[Spread, int]]:
        if limits.files is not None:
            yield self.spread("files", over), limits.files
        if limits.size_bytes is not None:
            yield self.spread("size_bytes", over), limits.size_bytes
        if limits.rows is not None:
            yield self.spread("num_records", over, if_unknown=limits.rows), limits.rows

    def spread(self, what: str, over: Spans, *, if_unknown: int = 0) -> Spread:
        import pyarrow as pa
        import pyarrow.compute as pc

        if (what, if_unknown) not in self._spreads:
            if what == "files":
                weights = pa.repeat(pa.scalar(1, pa.int64()), self._files.num_rows)
            else:
                weights = pc.fill_null(self._files[what], if_unknown)
            self._spreads[what, if_unknown] = Spread(over, weights)
        return self._spreads[what, if_unknown]
