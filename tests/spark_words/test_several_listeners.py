"""What several listeners of one process count together, each of which may know other tables. No JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest

from scenarios.sinks import Sink
from spark_words.test_metrics_listener import (
    KAFKA,
    QUERY,
    exported,
    gauges,
    lag,
    progress,
    started,
    terminated,
    told,
    without_scope,
)
from tablefeed.spark import MetricsListener
from tablefeed.spark.watching.exported_metrics import exported_boards


@pytest.mark.parametrize("knowing", [0, 1])
def test_a_commit_is_counted_once_whichever_of_two_listeners_knows_the_table_of_the_query(
    tmp_path: Path, knowing: int
) -> None:
    sink, registry = Sink(tmp_path / "t", {}, query_id=QUERY), CollectorRegistry()
    sinks = [{"another": str(tmp_path / "another")}] * 2
    sinks[knowing] = {"copy": str(tmp_path / "t")}
    listeners = [MetricsListener(registry=registry, sinks=each) for each in sinks]

    for batch in range(2):
        sink.write(pa.table({"id": [1, 2]}))
        for listener in listeners:
            listener.onQueryProgress(progress(told(lag()), batch=batch))

    numbers = exported(registry)
    table = f'query="copy",table="{tmp_path / "t"}"'
    assert numbers[f"tablefeed_sink_version{{{table}}}"] == 1.0
    assert numbers[f"tablefeed_sink_commits_total{{{table}}}"] == 2.0
    assert numbers[f'tablefeed_sink_rows_total{{change="insert",{table}}}'] == 4.0
    assert numbers['tablefeed_source_rows_total{query="copy",table="s3://lake/orders"}'] == 2.0
    assert numbers['tablefeed_query_batch_duration_seconds_count{query="copy"}'] == 2.0


@pytest.mark.parametrize("knowing", [0, 1])
def test_a_failure_is_counted_once_whichever_of_two_listeners_knows_the_query(knowing: int) -> None:
    registry = CollectorRegistry()
    sinks: list[dict[str, str]] = [{}, {}]
    sinks[knowing] = {"copy": "/lake/copy"}
    listeners = [MetricsListener(registry=registry, sinks=each) for each in sinks]

    for listener in listeners:
        listener.onQueryStarted(started())
    for listener in listeners:
        listener.onQueryTerminated(terminated(error="[DIVIDE_BY_ZERO] Division by zero."))

    assert exported(registry, "tablefeed_query_failures") == {
        'tablefeed_query_failures_total{error_class="DIVIDE_BY_ZERO",query="copy"}': 1.0
    }


def test_a_registry_has_each_number_once_also_if_only_one_of_two_listeners_has_a_meter_too() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    provider = MeterProvider([PrometheusMetricReader(disable_target_info=True, registry=theirs)])
    try:
        listeners = [
            MetricsListener(registry=ours),
            MetricsListener(registry=ours, meter=provider.get_meter("test")),
        ]
        for listener in listeners:
            listener.onQueryProgress(progress(told(lag())))

        assert generate_latest(ours).decode().count("\ntablefeed_source_lag_versions{") == 1
        assert exported(ours)['tablefeed_source_rows_total{query="copy",table="s3://lake/orders"}'] == 1.0
        assert without_scope(exported(theirs)) == exported(ours)
    finally:
        provider.shutdown()


def test_the_default_registry_may_also_be_given_by_name() -> None:
    MetricsListener()
    MetricsListener(registry=REGISTRY)

    assert set(exported_boards(REGISTRY)) < set(exported_boards())


def test_a_query_in_sinks_that_fails_in_its_first_batch_is_counted_also_without_an_error_of_ours() -> None:
    registry = CollectorRegistry()
    listener = MetricsListener(registry=registry, sinks={"copy": "/lake/copy"})

    listener.onQueryStarted(started())
    listener.onQueryTerminated(terminated(error="[DIVIDE_BY_ZERO] Division by zero."))
    listener.onQueryStarted(started("cccccccc-0000-0000-0000-000000000000"))
    listener.onQueryProgress(progress(KAFKA, run="cccccccc-0000-0000-0000-000000000000"))
    listener.onQueryTerminated(terminated("cccccccc-0000-0000-0000-000000000000", error="[OUT_OF_MEMORY] No more."))

    assert exported(registry, "tablefeed_query_failures") == {
        'tablefeed_query_failures_total{error_class="DIVIDE_BY_ZERO",query="copy"}': 1.0,
        'tablefeed_query_failures_total{error_class="OUT_OF_MEMORY",query="copy"}': 1.0,
    }


def test_of_two_sources_on_one_table_no_number_is_of_the_one_that_is_less_behind() -> None:
    registry = CollectorRegistry()

    MetricsListener(registry=registry).onQueryProgress(
        progress(told(lag(versions=900, files=None)), told(lag(versions=0, files=0)))
    )

    assert [name for name in gauges(registry) if "outstanding" in name] == []
