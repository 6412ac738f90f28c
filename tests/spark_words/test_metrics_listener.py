"""What a listener makes of the progress that Spark tells, as a client of Spark Connect receives it. No JVM."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

import tablefeed
from scenarios.sinks import Sink
from support import pages
from tablefeed.errors import IllegalOptionError
from tablefeed.feed.stream.lag import Lag, lag_to_json
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset
from tablefeed.spark import MetricsListener
from tablefeed.spark.watching.metrics import METRICS, Kind

QUERY, RUN = "aaaaaaaa-0000-0000-0000-000000000000", "bbbbbbbb-0000-0000-0000-000000000000"
KAFKA = '{"orders":{"0":17}}'


def lag(*, table: str = "s3://lake/orders", versions: int = 3, files: int | None = 40) -> Lag:
    return Lag(
        url=table,
        versions_behind=versions,
        seconds_behind=12.5,
        files_outstanding=files,
        bytes_outstanding=None if files is None else files * 10,
        snapshot_percent=None,
    )


def told(lag: Lag) -> str:
    end = Offset(table_id="t", version=Version(7))
    return json.dumps(lag_to_json(lag, end))


def progress(*latest: str | None, name: str | None = "copy", run: str = RUN, batch: int = 5) -> QueryProgressEvent:
    """A batch whose sources told these latest offsets: JSON objects on the wire, as Connect has them."""
    source: dict[str, Any] = {  # Any: JSON
        "description": "org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStream@1",
        "startOffset": None,
        "endOffset": None,
        "numInputRows": 1,
        "inputRowsPerSecond": 1.0,
        "processedRowsPerSecond": 1.0,
    }
    value: dict[str, Any] = {
        "id": QUERY,
        "runId": run,
        "name": name,
        "timestamp": "2026-11-21T10:00:00.500Z",
        "batchId": batch,
        "batchDuration": 300,
        "stateOperators": [],
        "sources": [source | {"latestOffset": None if text is None else json.loads(text)} for text in latest],
        "sink": {"description": "sink", "numOutputRows": 1},
    }
    return QueryProgressEvent.fromJson({"progress": value})


def started(run: str = RUN) -> QueryStartedEvent:
    return QueryStartedEvent(uuid.UUID(QUERY), uuid.UUID(run), "copy", "2026-11-21T10:00:00.000Z", set())


def terminated(run: str = RUN, error: str | None = None) -> QueryTerminatedEvent:
    return QueryTerminatedEvent(uuid.UUID(QUERY), uuid.UUID(run), error, None)


def exported(registry: CollectorRegistry, of: str = "tablefeed_") -> dict[str, float]:
    """The samples that Prometheus scrapes, as it reads them: those whose names begin so."""
    lines = generate_latest(registry).decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(of)}


def gauges(registry: CollectorRegistry) -> dict[str, float]:
    """The gauges that Prometheus scrapes."""
    names = tuple(f"{metric.prometheus_name}{{" for metric in METRICS if metric.kind is Kind.GAUGE)
    return {name: number for name, number in exported(registry).items() if name.startswith(names)}


def test_a_batch_is_one_line_of_the_log_for_each_source_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    listener = MetricsListener(registry=CollectorRegistry())

    with caplog.at_level(logging.INFO, logger="tablefeed"):
        listener.onQueryProgress(progress(told(lag()), KAFKA, None, told(lag(table="/lake/users", files=None))))

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "INFO",
            "batch query=copy batch=5 table=s3://lake/orders versions_behind=3 seconds_behind=12.5 "
            "files_outstanding=40 bytes_outstanding=400",
        ),
        ("INFO", "batch query=copy batch=5 table=/lake/users versions_behind=3 seconds_behind=12.5"),
    ]


def test_prometheus_reads_what_is_known_and_no_number_for_what_is_not() -> None:
    registry = CollectorRegistry()

    MetricsListener(registry=registry).onQueryProgress(progress(told(lag()), told(lag(table="/users", files=None))))

    orders, users = '{query="copy",table="s3://lake/orders"}', '{query="copy",table="/users"}'
    assert gauges(registry) == {
        f"tablefeed_source_lag_versions{orders}": 3.0,
        f"tablefeed_source_lag_versions{users}": 3.0,
        f"tablefeed_source_lag_seconds{orders}": 12.5,
        f"tablefeed_source_lag_seconds{users}": 12.5,
        f"tablefeed_source_outstanding_files{orders}": 40.0,
        f"tablefeed_source_outstanding_bytes{orders}": 400.0,
        f"tablefeed_source_last_trigger_timestamp_seconds{orders}": 1795255200.5,
        f"tablefeed_source_last_trigger_timestamp_seconds{users}": 1795255200.5,
    }


def test_a_query_without_a_name_is_labelled_with_its_id() -> None:
    registry = CollectorRegistry()

    MetricsListener(registry=registry).onQueryProgress(progress(told(lag()), name=None))

    assert registry.get_sample_value(
        "tablefeed_source_lag_versions", {"query": QUERY, "table": "s3://lake/orders"}
    ) == pytest.approx(3)


def test_of_two_sources_on_one_table_the_one_that_is_further_behind_counts() -> None:
    registry = CollectorRegistry()

    MetricsListener(registry=registry).onQueryProgress(
        progress(told(lag(versions=2)), told(lag(versions=9)), told(lag(versions=4)))
    )

    assert exported(registry)['tablefeed_source_lag_versions{query="copy",table="s3://lake/orders"}'] == 9.0


def test_an_idle_query_is_as_far_behind_as_it_was_and_has_looked_just_now() -> None:
    registry = CollectorRegistry()
    listener = MetricsListener(registry=registry)
    listener.onQueryProgress(progress(told(lag(versions=0))))

    listener.onQueryIdle(QueryIdleEvent(uuid.UUID(QUERY), uuid.UUID(RUN), "2026-11-21T10:01:00.500Z"))

    labels = '{query="copy",table="s3://lake/orders"}'
    samples = exported(registry)
    assert samples[f"tablefeed_source_lag_versions{labels}"] == 0.0
    assert samples[f"tablefeed_source_last_trigger_timestamp_seconds{labels}"] == 1795255260.5


def test_a_query_that_ended_has_no_gauges_and_another_run_of_it_keeps_its_own() -> None:
    registry = CollectorRegistry()
    listener = MetricsListener(registry=registry)
    again = "cccccccc-0000-0000-0000-000000000000"
    listener.onQueryProgress(progress(told(lag(versions=3))))
    listener.onQueryProgress(progress(told(lag(versions=1)), run=again))

    listener.onQueryTerminated(terminated(RUN))
    assert exported(registry)['tablefeed_source_lag_versions{query="copy",table="s3://lake/orders"}'] == 1.0
    listener.onQueryTerminated(terminated(again))
    assert gauges(registry) == {}


def test_a_query_of_other_sources_alone_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    listener = MetricsListener(registry=registry)

    with caplog.at_level(logging.INFO, logger="tablefeed"):
        listener.onQueryProgress(progress(KAFKA))
        listener.onQueryIdle(QueryIdleEvent(uuid.UUID(QUERY), uuid.UUID(RUN), "2026-11-21T10:01:00.500Z"))
        listener.onQueryTerminated(terminated())

    assert (caplog.messages, exported(registry)) == ([], {})


# --- what a batch wrote, and how queries end -------------------------------------------------------------------------


def test_what_each_batch_wrote_is_read_of_the_log_of_the_table_that_the_user_names(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    tablefeed.create(table, pa.schema([("id", pa.int64())]), constraints={"small": "id < 100"})
    sink = Sink(Path(table), {"badRecords": str(tmp_path / "bad")}, query_id=QUERY)
    registry = CollectorRegistry()
    listener = MetricsListener(registry=registry, sinks={"copy": table})

    for batch, ids in enumerate([[1, 2, 300], [3]]):
        sink.write(pa.table({"id": ids}))
        tablefeed.append(table, pa.table({"id": [9]}))  # another writer, before the event arrives
        listener.onQueryProgress(progress(KAFKA, batch=batch))
        listener.onQueryProgress(progress(KAFKA, batch=batch))  # a batch counts once

    labels = f'query="copy",table="{table}"'
    size = sum(file.size_bytes for version in (1, 3) for file in added(table, version))
    assert exported(registry, "tablefeed_sink") == {
        f"tablefeed_sink_version{{{labels}}}": 3.0,
        f"tablefeed_sink_commits_total{{{labels}}}": 2.0,
        f"tablefeed_sink_concurrent_commits_total{{{labels}}}": 0.0,
        f'tablefeed_sink_rows_total{{change="insert",{labels}}}': 3.0,
        f"tablefeed_sink_bad_rows_total{{{labels}}}": 1.0,
        f'tablefeed_sink_files_total{{action="add",{labels}}}': 2.0,
        f'tablefeed_sink_files_total{{action="remove",{labels}}}': 0.0,
        f'tablefeed_sink_size_bytes_total{{action="add",{labels}}}': float(size),
        f'tablefeed_sink_size_bytes_total{{action="remove",{labels}}}': 0.0,
    }


def test_a_batch_whose_event_comes_after_the_next_commit_counts_too(tmp_path: Path) -> None:
    sink, registry = Sink(tmp_path / "t", {}, query_id=QUERY), CollectorRegistry()
    listener = MetricsListener(registry=registry, sinks={"copy": str(tmp_path / "t")})
    for ids in ([1], [2], [3]):
        sink.write(pa.table({"id": ids}))

    for batch in range(3):
        listener.onQueryProgress(progress(KAFKA, batch=batch))

    counted = exported(registry, "tablefeed_sink_commits_total").values()
    assert list(counted) == [3.0]


def added(table: str, version: int) -> Any:  # Any: the actions of a commit
    commits = tablefeed.follow(table, after=version - 1)
    return next(commits).added


def test_row_changes_of_a_batch_are_counted_by_their_kind(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    columns = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    tablefeed.create(table, columns, properties={"delta.feature.domainMetadata": "supported"})
    tablefeed.append(table, pa.table({"id": [1, 2, 3], "v": [0, 0, 0]}))
    events = pa.table({"id": [1, 2, 7, 8], "v": [5, 5, 5, 5], "op": ["u", "d", "u", "u"], "at": [1, 1, 1, 1]})
    registry = CollectorRegistry()

    tablefeed.apply_changes(
        table,
        events,
        keys=["id"],
        sequence_by="at",
        apply_as_deletes="op = 'd'",
        except_column_list=["op", "at"],
        app_id=QUERY,
        txn_version=5,
    )
    MetricsListener(registry=registry, sinks={QUERY: table}).onQueryProgress(progress(KAFKA, name=None))

    rows = {key: n for key, n in exported(registry, "tablefeed_sink_rows").items() if "change" in key}
    assert {re.findall(r'change="(\w+)"', key)[0]: n for key, n in rows.items()} == {
        "insert": 2.0,
        "update": 1.0,
        "delete": 1.0,
    }


def test_a_table_that_cannot_be_read_costs_its_numbers_and_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = CollectorRegistry()
    listener = MetricsListener(registry=registry, sinks={"copy": str(tmp_path / "t")})
    listener.onQueryProgress(progress(told(lag())))
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").write_text("{")
    listener.onQueryProgress(progress(told(lag()), batch=6))

    assert exported(registry, "tablefeed_sink") == {}
    assert exported(registry)['tablefeed_source_rows_total{query="copy",table="s3://lake/orders"}'] == 2.0
    assert [text.partition(":")[0] for text in caplog.messages] == ["query=copy batch=6 commit not read"]


@pytest.mark.parametrize("sinks", [["s3://lake/orders_copy"], "s3://lake/orders_copy", "", {"copy": 5}])
def test_sinks_that_name_no_tables_by_query_are_refused(sinks: Any) -> None:
    with pytest.raises(IllegalOptionError, match=r"'sinks': it must map the names|'url': it must be a path"):
        MetricsListener(sinks=sinks)


def test_durations_of_batches_are_a_distribution() -> None:
    registry = CollectorRegistry()
    listener = MetricsListener(registry=registry)
    for batch in range(3):
        listener.onQueryProgress(progress(told(lag()), batch=batch))

    of = "tablefeed_query_batch_duration_seconds"
    numbers = exported(registry, of)
    assert numbers[f'{of}_bucket{{le="0.25",query="copy"}}'] == 0.0
    assert numbers[f'{of}_bucket{{le="0.5",query="copy"}}'] == 3.0
    assert numbers[f'{of}_count{{query="copy"}}'] == 3.0
    assert numbers[f'{of}_sum{{query="copy"}}'] == pytest.approx(0.9)


def test_a_failure_is_counted_by_its_class_also_in_the_first_batch_and_a_query_of_others_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = CollectorRegistry()
    listener = MetricsListener(registry=registry)
    error = "Traceback\ntablefeed.errors.ConflictError: [DELTA_CONCURRENT_TRANSACTION] Another run won."
    runs = [str(uuid.UUID(int=number)) for number in range(4)]

    for run, text in zip(runs, [error, None, "[DIVIDE_BY_ZERO] Division by zero.", error], strict=True):
        listener.onQueryStarted(started(run))
        listener.onQueryTerminated(terminated(run, text))

    assert exported(registry, "tablefeed_query_failures") == {
        'tablefeed_query_failures_total{error_class="DELTA_CONCURRENT_TRANSACTION",query="copy"}': 2.0
    }
    assert caplog.messages == ["query=copy failed: [DELTA_CONCURRENT_TRANSACTION] Another run won."] * 2


def test_a_failure_that_is_not_of_tablefeed_is_counted_by_sparks_class() -> None:
    registry = CollectorRegistry()
    listener = MetricsListener(registry=registry)
    listener.onQueryStarted(started(RUN))
    listener.onQueryProgress(progress(told(lag())))
    listener.onQueryTerminated(terminated(RUN, "org.apache.spark.SparkException: [DIVIDE_BY_ZERO] By zero.\n\tat x"))

    assert exported(registry, "tablefeed_query_failures") == {
        'tablefeed_query_failures_total{error_class="DIVIDE_BY_ZERO",query="copy"}': 1.0
    }


# --- names -----------------------------------------------------------------------------------------------------------


def test_opentelemetrys_own_exporter_for_prometheus_gives_the_same_names_labels_and_numbers(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    tablefeed.append(table, pa.table({"id": [1]}), app_id=QUERY, txn_version=5)
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    provider = MeterProvider([PrometheusMetricReader(disable_target_info=True, registry=theirs)])
    listener = MetricsListener(registry=ours, meter=provider.get_meter("test"), sinks={"copy": table})
    try:
        listener.onQueryProgress(progress(told(replace(lag(), snapshot_percent=40.0))))
        failed = "tablefeed.errors.ConflictError: [DELTA_CONCURRENT_TRANSACTION] Another run won."
        listener.onQueryStarted(started("cccccccc-0000-0000-0000-000000000000"))
        listener.onQueryTerminated(terminated("cccccccc-0000-0000-0000-000000000000", failed))

        expected = exported(ours)
        assert {name.partition("{")[0] for name in expected} >= {
            metric.prometheus_name for metric in METRICS if metric.kind is not Kind.HISTOGRAM
        }
        assert without_scope(exported(theirs)) == expected
    finally:
        provider.shutdown()


def without_scope(numbers: dict[str, float]) -> dict[str, float]:
    """The samples of OpenTelemetry's exporter without the labels that name the library."""
    return {re.sub(r'otel_scope_\w+="[^"]*",?', "", name).replace(",}", "}"): n for name, n in numbers.items()}


@pytest.mark.parametrize("registry", [None, CollectorRegistry(), CollectorRegistry(auto_describe=True)])
def test_a_listener_made_twice_in_a_process_exports_each_number_once(registry: CollectorRegistry | None) -> None:
    first, second = MetricsListener(registry=registry), MetricsListener(registry=registry)
    try:
        first.onQueryProgress(progress(told(lag(versions=5))))
        second.onQueryProgress(progress(told(lag(versions=5))))

        lines = generate_latest(registry or REGISTRY).decode().splitlines()
        ours = [
            line
            for line in lines
            if line.startswith(("tablefeed_source_lag_versions{", "tablefeed_source_rows_total{"))
        ]
        assert ours == [
            'tablefeed_source_lag_versions{query="copy",table="s3://lake/orders"} 5.0',
            'tablefeed_source_rows_total{query="copy",table="s3://lake/orders"} 1.0',
        ]
    finally:
        first.onQueryTerminated(terminated())


ROOT = Path(__file__).parents[2]


def test_the_page_has_a_row_for_every_metric_and_every_number_in_the_progress() -> None:
    page = pages.page("monitoring.md")
    in_progress = json.loads(told(lag()))["lag"]

    documented = set(re.findall(r"^\| `(tablefeed_\w+)`", page, re.MULTILINE))
    assert documented == {metric.prometheus_name for metric in METRICS}
    assert set(re.findall(r"^\| `tablefeed_source_\w+` \|[^|]*\| `(\w+)` \|", page, re.MULTILINE)) == set(in_progress)


@pytest.mark.parametrize("name", ["alerts.yml", "grafana-dashboard.json"])
def test_the_ready_rules_and_dashboard_ask_for_metrics_and_labels_that_are_exported(name: str) -> None:
    text = (ROOT / "examples" / "monitoring" / name).read_text(encoding="utf-8")
    labels = {
        exported: {*metric.labels, "le"}
        for metric in METRICS
        for exported in (
            metric.prometheus_name,
            *(metric.prometheus_name + end for end in ("_bucket", "_sum", "_count") if metric.kind is Kind.HISTOGRAM),
        )
    }

    asked = re.findall(r"\b(tablefeed_\w+)(?:\{([^}]*)\})?", text)
    assert {metric for metric, _ in asked} <= set(labels)
    for metric, matchers in asked:
        assert set(re.findall(r"(\w+) ?(?:=|!)", matchers)) <= labels[metric], metric


_WITHOUT_EXTRAS = """
import sys
sys.modules["prometheus_client"] = sys.modules["opentelemetry"] = None  # as if they were not installed
from tablefeed.spark import MetricsListener
MetricsListener()
"""

_LAZY = """
import sys
import tablefeed, tablefeed.spark
print(*sorted({"pyspark", "prometheus_client", "opentelemetry"} & set(sys.modules)))
"""


def test_without_the_extras_a_listener_still_logs() -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT_EXTRAS], check=True)


def test_the_listener_costs_nothing_where_it_is_not_used() -> None:
    done = subprocess.run([sys.executable, "-c", _LAZY], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_a_name_that_is_not_there_is_an_attribute_error_like_any_modules() -> None:
    import tablefeed.spark

    with pytest.raises(AttributeError, match=r"module 'tablefeed\.spark' has no attribute 'NoSuchName'"):
        tablefeed.spark.NoSuchName  # type: ignore[attr-defined]  # noqa: B018
