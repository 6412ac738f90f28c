"""The lag that each running query reported last, and how Prometheus and OpenTelemetry read it (docs/how-to/lag.md).

Both read the numbers when they export. So there is one copy of them, and no metric is left of a query that has ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from tablefeed.errors import UnsupportedOptionError
from tablefeed.feed.stream.lag import Lag

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class LagReading:
    """The lag of one source of a query. `triggered_at_s` is when the query's trigger began, in seconds since 1970."""

    query: str
    lag: Lag
    triggered_at_s: float


class LagBoard:
    """The last readings of the running queries. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_run: dict[str, Mapping[str, LagReading]] = {}

    def put(self, run_id: str, readings: Iterable[LagReading]) -> None:
        """Replaces the readings of a query's run. Of two sources on one table, the one further behind counts."""
        by_table = {r.lag.url: r for r in sorted(readings, key=lambda r: r.lag.versions_behind)}
        with self._lock:
            self._by_run[run_id] = by_table

    def touch(self, run_id: str, triggered_at_s: float) -> None:
        """Records that the readings of a run still hold at a later trigger."""
        with self._lock:
            if (told := self._by_run.get(run_id)) is not None:
                self._by_run[run_id] = {url: replace(r, triggered_at_s=triggered_at_s) for url, r in told.items()}

    def drop(self, run_id: str) -> None:
        """Forgets a run that has ended."""
        with self._lock:
            self._by_run.pop(run_id, None)

    def readings(self) -> list[LagReading]:
        """Gives one reading for each query and table."""
        with self._lock:
            told = [reading for by_table in self._by_run.values() for reading in by_table.values()]
        return list({(r.query, r.lag.url): r for r in told}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One exported number of a reading; `read` gives None where the number is not known."""

    name: str
    unit: str
    doc: str
    read: Callable[[LagReading], float | None]


GAUGES: Sequence[Gauge] = (
    Gauge(
        name="tablefeed_source_lag_versions",
        unit="{version}",
        doc="Versions of the table that are not delivered whole.",
        read=lambda reading: reading.lag.versions_behind,
    ),
    Gauge(
        name="tablefeed_source_lag_seconds",
        unit="s",
        doc="Age of the oldest version that is not delivered whole.",
        read=lambda reading: reading.lag.seconds_behind,
    ),
    Gauge(
        name="tablefeed_source_files_outstanding",
        unit="{file}",
        doc="Data files still to deliver.",
        read=lambda reading: reading.lag.files_outstanding,
    ),
    Gauge(
        name="tablefeed_source_bytes_outstanding",
        unit="By",
        doc="Bytes of the data files still to deliver.",
        read=lambda reading: reading.lag.bytes_outstanding,
    ),
    Gauge(
        name="tablefeed_source_snapshot_percent",
        unit="%",
        doc="Share of the initial snapshot that is delivered.",
        read=lambda reading: reading.lag.snapshot_percent,
    ),
    Gauge(
        name="tablefeed_source_last_trigger_timestamp_seconds",
        unit="s",
        doc="When the query last looked for new versions, in seconds since 1970.",
        read=lambda reading: reading.triggered_at_s,
    ),
)


@cache
def exported_board() -> LagBoard:
    """Gives the board of this process, exported where prometheus-client or opentelemetry-api is installed."""
    board = LagBoard()
    try:
        from prometheus_client import REGISTRY
    except ImportError:
        pass
    else:
        export_to_prometheus(board, REGISTRY)
    try:
        from opentelemetry.metrics import get_meter
    except ImportError:
        pass
    else:
        export_to_opentelemetry(board, get_meter("tablefeed"))
    return board


def export_to_prometheus(board: LagBoard, registry: CollectorRegistry) -> None:
    """Makes `registry` read `board` whenever it is scraped."""
    try:
        from prometheus_client.metrics_core import GaugeMetricFamily
        from prometheus_client.registry import Collector
    except ModuleNotFoundError as error:
        raise _missing("registry", "metrics") from error

    class BoardCollector(Collector):
        def collect(self) -> Iterable[Metric]:
            readings = board.readings()
            for gauge in GAUGES:
                family = GaugeMetricFamily(gauge.name, gauge.doc, labels=("query", "table"))
                for reading in readings:
                    if (value := gauge.read(reading)) is not None:
                        family.add_metric((reading.query, reading.lag.url), value)
                yield family

    registry.register(BoardCollector())


def export_to_opentelemetry(board: LagBoard, meter: Meter) -> None:
    """Makes `meter` read `board` whenever its metrics are collected."""
    try:
        from opentelemetry.metrics import Observation
    except ModuleNotFoundError as error:
        raise _missing("meter", "otel") from error

    def observer(gauge: Gauge) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_options: CallbackOptions) -> Iterable[Observation]:
            for reading in board.readings():
                if (value := gauge.read(reading)) is not None:
                    yield Observation(value, {"query": reading.query, "table": reading.lag.url})

        return observe

    for gauge in GAUGES:
        meter.create_observable_gauge(gauge.name, [observer(gauge)], unit=gauge.unit, description=gauge.doc)


def _missing(argument: str, extra: str) -> UnsupportedOptionError:
    remedy = f'A package is missing: pip install "tablefeed[{extra}]".'
    return UnsupportedOptionError(option=argument, remedy=remedy)
