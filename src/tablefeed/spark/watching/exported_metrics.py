"""Lets Prometheus and OpenTelemetry read the numbers of metrics.py.

Both read them when they export, so there is one copy of them for each registry and each meter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

from tablefeed.errors import UnsupportedOptionError
from tablefeed.spark.watching.metrics import BUCKETS_S, METRICS, Board, Kind, Metric, attributes

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric as Family


def exported_boards(registry: CollectorRegistry | None = None, meter: Meter | None = None) -> tuple[Board, ...]:
    """Gives the board of this process that `registry` exports and that of `meter`: one for all listeners that name it.

    If neither is given, the defaults of prometheus-client and opentelemetry-api are used where these are installed.
    """
    if registry is None and meter is None:
        registry, meter = _default_registry(), _default_meter()
    of_registry = () if registry is None else (_board_of_registry(registry),)
    return of_registry if meter is None else (*of_registry, _board_of_meter(meter))


@cache
def _board_of_registry(registry: CollectorRegistry) -> Board:
    export_to_prometheus(board := Board(), registry)
    return board


@cache
def _board_of_meter(meter: Meter) -> Board:
    export_to_opentelemetry(board := Board(), meter)
    return board


def _default_registry() -> CollectorRegistry | None:
    try:
        from prometheus_client import REGISTRY
    except ImportError:
        return None
    return REGISTRY


@cache
def _default_meter() -> Meter | None:
    try:
        from opentelemetry.metrics import get_meter
    except ImportError:
        return None
    return get_meter("tablefeed")


def export_to_prometheus(board: Board, registry: CollectorRegistry) -> None:
    """Makes `registry` read `board` whenever it is scraped."""
    try:
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
        from prometheus_client.registry import Collector
    except ModuleNotFoundError as error:
        raise _missing("registry", "metrics") from error

    bounds = [*map(str, BUCKETS_S), "+Inf"]

    class BoardCollector(Collector):
        def collect(self) -> Iterable[Family]:
            for metric in METRICS:
                name = metric.prometheus_name
                if metric.kind is Kind.HISTOGRAM:
                    family = HistogramMetricFamily(name, metric.doc, labels=metric.labels)
                    for labels, counts, total_s in board.durations():
                        family.add_metric(labels, list(zip(bounds, counts, strict=True)), total_s)
                    yield family
                else:
                    of_kind = GaugeMetricFamily if metric.kind is Kind.GAUGE else CounterMetricFamily
                    numbers = of_kind(name, metric.doc, labels=metric.labels)
                    for labels, number in board.numbers(metric):
                        numbers.add_metric(labels, number)
                    yield numbers

    registry.register(BoardCollector())


def export_to_opentelemetry(board: Board, meter: Meter) -> None:
    """Makes `meter` read `board` whenever its metrics are collected."""
    try:
        from opentelemetry.metrics import Observation
    except ModuleNotFoundError as error:
        raise _missing("meter", "otel") from error

    def observer(metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_options: CallbackOptions) -> Iterable[Observation]:
            for labels, number in board.numbers(metric):
                yield Observation(number, attributes(metric, labels))

        return observe

    for metric in METRICS:
        what = {"unit": metric.unit, "description": metric.doc}
        match metric.kind:
            case Kind.GAUGE:
                meter.create_observable_gauge(metric.name, [observer(metric)], **what)
            case Kind.COUNTER:
                meter.create_observable_counter(metric.name, [observer(metric)], **what)
            case Kind.HISTOGRAM:
                board.also_record(
                    meter.create_histogram(metric.name, explicit_bucket_boundaries_advisory=BUCKETS_S, **what)
                )


def _missing(argument: str, extra: str) -> UnsupportedOptionError:
    remedy = f'A package is missing: pip install "tablefeed[{extra}]".'
    return UnsupportedOptionError(option=argument, remedy=remedy)
