"""The numbers of running queries (docs/how-to/monitoring.md). exported_metrics.py says who reads them.

One list has all metrics, by their OpenTelemetry names. The names in Prometheus follow from them by the rule that
OpenTelemetry has for it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING

from tablefeed.feed.api.batch_commits import BatchCommit
from tablefeed.spark.watching.batch_report import BatchReport

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram


class Kind(StrEnum):
    """How a number behaves: it goes up and down, it only grows, or it is a distribution."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One exported number, by its OpenTelemetry name. `unit` is in UCUM, as OpenTelemetry writes units."""

    name: str
    unit: str
    kind: Kind
    labels: tuple[str, ...]
    doc: str

    @property
    def prometheus_name(self) -> str:
        """The name in Prometheus: with the unit as its end, and `_total` for a counter."""
        unit = {"s": "_seconds", "By": "_bytes"}.get(self.unit, "")
        return self.name.replace(".", "_") + unit + ("_total" if self.kind is Kind.COUNTER else "")


_OF_TABLE = ("query", "table")

LAG_VERSIONS = Metric(
    name="tablefeed.source.lag_versions",
    unit="{version}",
    kind=Kind.GAUGE,
    labels=_OF_TABLE,
    doc="Versions of the source table that are not fully delivered.",
)
LAG = Metric(
    name="tablefeed.source.lag",
    unit="s",
    kind=Kind.GAUGE,
    labels=_OF_TABLE,
    doc="Age of the oldest version of the source table that is not fully delivered.",
)
OUTSTANDING_FILES = Metric(
    name="tablefeed.source.outstanding_files",
    unit="{file}",
    kind=Kind.GAUGE,
    labels=_OF_TABLE,
    doc="Data files of the source table that are still to be delivered.",
)
OUTSTANDING = Metric(
    name="tablefeed.source.outstanding",
    unit="By",
    kind=Kind.GAUGE,
    labels=_OF_TABLE,
    doc="Size of the data files that are still to be delivered.",
)
SNAPSHOT = Metric(
    name="tablefeed.source.snapshot_ratio",
    unit="1",
    kind=Kind.GAUGE,
    labels=_OF_TABLE,
    doc="Share of the initial snapshot that is delivered.",
)
LAST_TRIGGER = Metric(
    name="tablefeed.source.last_trigger_timestamp",
    unit="s",
    kind=Kind.GAUGE,
    labels=_OF_TABLE,
    doc="When the query last looked for new versions, in seconds since 1970.",
)
SOURCE_ROWS = Metric(
    name="tablefeed.source.rows",
    unit="{row}",
    kind=Kind.COUNTER,
    labels=_OF_TABLE,
    doc="Rows that the query read of the source table.",
)
SINK_VERSION = Metric(
    name="tablefeed.sink.version",
    unit="{version}",
    kind=Kind.GAUGE,
    labels=_OF_TABLE,
    doc="Version of the table that the query's last batch made.",
)
SINK_COMMITS = Metric(
    name="tablefeed.sink.commits",
    unit="{commit}",
    kind=Kind.COUNTER,
    labels=_OF_TABLE,
    doc="Commits of the query's batches.",
)
CONCURRENT_COMMITS = Metric(
    name="tablefeed.sink.concurrent_commits",
    unit="{commit}",
    kind=Kind.COUNTER,
    labels=_OF_TABLE,
    doc="Commits of other writers that a batch's commit had to be checked against and put after.",
)
SINK_ROWS = Metric(
    name="tablefeed.sink.rows",
    unit="{row}",
    kind=Kind.COUNTER,
    labels=(*_OF_TABLE, "change"),
    doc="Rows that the query inserted, updated and deleted.",
)
BAD_ROWS = Metric(
    name="tablefeed.sink.bad_rows",
    unit="{row}",
    kind=Kind.COUNTER,
    labels=_OF_TABLE,
    doc="Rows that the option badRecords took out of the query's batches.",
)
SINK_FILES = Metric(
    name="tablefeed.sink.files",
    unit="{file}",
    kind=Kind.COUNTER,
    labels=(*_OF_TABLE, "action"),
    doc="Data files that the query added and removed.",
)
SINK_SIZE = Metric(
    name="tablefeed.sink.size",
    unit="By",
    kind=Kind.COUNTER,
    labels=(*_OF_TABLE, "action"),
    doc="Size of the data files that the query added and removed.",
)
BATCH_DURATION = Metric(
    name="tablefeed.query.batch_duration",
    unit="s",
    kind=Kind.HISTOGRAM,
    labels=("query",),
    doc="How long the query's batches took.",
)
FAILURES = Metric(
    name="tablefeed.query.failures",
    unit="{failure}",
    kind=Kind.COUNTER,
    labels=("query", "error_class"),
    doc="How often the query failed, by the class of the error.",
)

METRICS = (
    LAG_VERSIONS,
    LAG,
    OUTSTANDING_FILES,
    OUTSTANDING,
    SNAPSHOT,
    LAST_TRIGGER,
    SOURCE_ROWS,
    SINK_VERSION,
    SINK_COMMITS,
    CONCURRENT_COMMITS,
    SINK_ROWS,
    BAD_ROWS,
    SINK_FILES,
    SINK_SIZE,
    BATCH_DURATION,
    FAILURES,
)

BUCKETS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""The upper bounds of the buckets of batch durations: a batch takes from a tenth of a second to some minutes."""

_Key = tuple[Metric, tuple[str, ...]]
_Numbers = Mapping[_Key, float]


class Board:
    """The numbers of this process. Safe to use from several threads.

    Gauges are those of running queries. Counters and durations stay when a query ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gauges: dict[str, dict[_Key, float]] = {}
        self._counters: defaultdict[_Key, float] = defaultdict(float)
        self._durations: dict[tuple[str, ...], tuple[list[int], float]] = {}
        self._counted: dict[str, int] = {}
        self._commits_counted: dict[str, int] = {}
        """The last batch of a run whose commit is counted: not each listener knows the table that a query writes."""
        self._is_ours: dict[str, bool] = {}
        """Per run that goes on, whether it is known to read or write a table of tablefeed."""
        self._histograms: list[Histogram] = []
        """OpenTelemetry has no histogram that is read when it is exported."""

    def begin(self, run_id: str, *, is_ours: bool) -> None:
        """Takes note of a run that has begun. `is_ours`: it is known to write a table that the user named."""
        with self._lock:
            self._is_ours[run_id] = is_ours or self._is_ours.get(run_id, False)

    def put(self, report: BatchReport) -> None:
        """Counts a batch, once even if several listeners report it, and replaces the gauges of its query's run."""
        run_id, gauges = report.run_id, dict(_gauges(report))
        with self._lock:
            self._is_ours[run_id] = True
            is_new = self._counted.get(run_id, -1) < report.batch_id
            if gauges:
                self._gauges[run_id] = gauges if is_new else self._gauges.get(run_id, {}) | gauges
            if report.sink is not None and self._commits_counted.get(run_id, -1) < report.batch_id:
                self._commits_counted[run_id] = report.batch_id
                self._add(_commit_counts(report.query, report.sink))
            if not is_new:
                return
            self._counted[run_id] = report.batch_id
            self._add(((SOURCE_ROWS, (report.query, source.lag.url)), source.rows) for source in report.sources)
            labels = (report.query,)
            buckets, total_s = self._durations.get(labels, ([0] * (len(BUCKETS_S) + 1), 0.0))
            buckets[bisect_left(BUCKETS_S, report.duration_s)] += 1
            self._durations[labels] = (buckets, total_s + report.duration_s)
            for histogram in self._histograms:
                histogram.record(report.duration_s, attributes(BATCH_DURATION, labels))

    def touch(self, run_id: str, triggered_at_s: float) -> None:
        """Records that the gauges of a run still hold at a later trigger."""
        with self._lock:
            gauges = self._gauges.get(run_id, {})
            gauges.update({key: triggered_at_s for key in gauges if key[0] is LAST_TRIGGER})

    def end(self, run_id: str, *, failed: tuple[str, str] | None, is_ours: bool) -> None:
        """Drops the gauges of a run that has ended; counts its failure once: `failed` has the query and the class.

        `is_ours`: the end shows that the query read or wrote a table of tablefeed.
        """
        with self._lock:
            for kept in (self._gauges, self._counted, self._commits_counted):
                kept.pop(run_id, None)
            was_ours = self._is_ours.pop(run_id, None)  # None: another listener has counted the failure
            if failed is not None and was_ours is not None and (was_ours or is_ours):
                self._counters[FAILURES, failed] += 1

    def numbers(self, metric: Metric) -> list[tuple[tuple[str, ...], float]]:
        """Gives the numbers of a gauge or counter, with the values of its labels."""
        with self._lock:
            every = [*self._gauges.values(), self._counters]
            found = {key: number for numbers in every for key, number in numbers.items() if key[0] is metric}
        return [(labels, number) for (_, labels), number in found.items()]

    def durations(self) -> list[tuple[tuple[str, ...], list[int], float]]:
        """Gives, for each query, how many batches took up to each of BUCKETS_S and longer, and all their seconds."""
        with self._lock:
            return [(labels, list(accumulate(buckets)), total) for labels, (buckets, total) in self._durations.items()]

    def _add(self, numbers: Iterable[tuple[_Key, float]]) -> None:
        for key, number in numbers:
            self._counters[key] += number

    def also_record(self, histogram: Histogram) -> None:
        """Records the durations of later batches in `histogram` too."""
        with self._lock:
            self._histograms.append(histogram)


def _gauges(report: BatchReport) -> Iterator[tuple[_Key, float]]:
    """The gauges after a batch. Of two sources on one table the one that is further behind counts."""
    by_lag = sorted((source.lag for source in report.sources), key=lambda lag: lag.versions_behind)
    for lag in {lag.url: lag for lag in by_lag}.values():
        percent = lag.snapshot_percent
        numbers: Mapping[Metric, float | None] = {
            LAG_VERSIONS: lag.versions_behind,
            LAG: lag.seconds_behind,
            OUTSTANDING_FILES: lag.files_outstanding,
            OUTSTANDING: lag.bytes_outstanding,
            SNAPSHOT: None if percent is None else percent / 100,
            LAST_TRIGGER: report.triggered_at_s,
        }
        for metric, number in numbers.items():
            if number is not None:
                yield (metric, (report.query, lag.url)), number
    if report.sink is not None:
        yield (SINK_VERSION, (report.query, report.sink.url)), report.sink.version


def _commit_counts(query: str, sink: BatchCommit) -> Iterator[tuple[_Key, float]]:
    of_table = (query, sink.url)
    yield (SINK_COMMITS, of_table), 1
    yield (CONCURRENT_COMMITS, of_table), sink.concurrent_commits
    yield (BAD_ROWS, of_table), sink.bad_rows
    for change, rows in sink.rows.items():
        yield (SINK_ROWS, (*of_table, change)), rows
    yield (SINK_FILES, (*of_table, "add")), sink.files_added
    yield (SINK_FILES, (*of_table, "remove")), sink.files_removed
    yield (SINK_SIZE, (*of_table, "add")), sink.bytes_added
    yield (SINK_SIZE, (*of_table, "remove")), sink.bytes_removed


def attributes(metric: Metric, labels: tuple[str, ...]) -> dict[str, str]:
    """Gives the labels of a number with their values, as OpenTelemetry has them."""
    return dict(zip(metric.labels, labels, strict=True))
