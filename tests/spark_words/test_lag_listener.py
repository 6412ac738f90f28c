"""What a listener makes of the progress that Spark tells, as a client of Spark Connect receives it. No JVM."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.metrics import CallbackOptions, NoOpMeter, Observation
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from pyspark.sql.streaming.listener import QueryIdleEvent, QueryProgressEvent, QueryTerminatedEvent

from support import pages
from tablefeed.feed.stream.lag import Lag, lag_to_json
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset
from tablefeed.spark import LagListener
from tablefeed.spark.lag_board import GAUGES

if TYPE_CHECKING:
    from opentelemetry.metrics import ObservableGauge

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


def progress(*latest: str | None, name: str | None = "copy", run: str = RUN) -> QueryProgressEvent:
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
        "batchId": 5,
        "batchDuration": 10,
        "stateOperators": [],
        "sources": [source | {"latestOffset": None if text is None else json.loads(text)} for text in latest],
        "sink": {"description": "sink", "numOutputRows": 1},
    }
    return QueryProgressEvent.fromJson({"progress": value})


def terminated(run: str = RUN) -> QueryTerminatedEvent:
    return QueryTerminatedEvent(uuid.UUID(QUERY), uuid.UUID(run), None, None)


def exported(registry: CollectorRegistry) -> dict[str, float]:
    """The samples that Prometheus scrapes, as it reads them."""
    lines = generate_latest(registry).decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_a_batch_is_one_line_of_the_log_for_each_source_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    listener = LagListener(registry=CollectorRegistry())

    with caplog.at_level(logging.INFO, logger="tablefeed"):
        listener.onQueryProgress(progress(told(lag()), KAFKA, None, told(lag(table="/lake/users", files=None))))

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "INFO",
            "query=copy batch=5 table=s3://lake/orders versions_behind=3 seconds_behind=12.5 files_outstanding=40 "
            "bytes_outstanding=400",
        ),
        ("INFO", "query=copy batch=5 table=/lake/users versions_behind=3 seconds_behind=12.5"),
    ]


def test_prometheus_reads_what_is_known_and_no_number_for_what_is_not() -> None:
    registry = CollectorRegistry()

    LagListener(registry=registry).onQueryProgress(progress(told(lag()), told(lag(table="/users", files=None))))

    orders, users = '{query="copy",table="s3://lake/orders"}', '{query="copy",table="/users"}'
    assert exported(registry) == {
        f"tablefeed_source_lag_versions{orders}": 3.0,
        f"tablefeed_source_lag_versions{users}": 3.0,
        f"tablefeed_source_lag_seconds{orders}": 12.5,
        f"tablefeed_source_lag_seconds{users}": 12.5,
        f"tablefeed_source_files_outstanding{orders}": 40.0,
        f"tablefeed_source_bytes_outstanding{orders}": 400.0,
        f"tablefeed_source_last_trigger_timestamp_seconds{orders}": 1795255200.5,
        f"tablefeed_source_last_trigger_timestamp_seconds{users}": 1795255200.5,
    }


def test_a_query_without_a_name_is_labelled_with_its_id() -> None:
    registry = CollectorRegistry()

    LagListener(registry=registry).onQueryProgress(progress(told(lag()), name=None))

    assert registry.get_sample_value(
        "tablefeed_source_lag_versions", {"query": QUERY, "table": "s3://lake/orders"}
    ) == pytest.approx(3)


def test_of_two_sources_on_one_table_the_one_that_is_further_behind_counts() -> None:
    registry = CollectorRegistry()

    LagListener(registry=registry).onQueryProgress(
        progress(told(lag(versions=2)), told(lag(versions=9)), told(lag(versions=4)))
    )

    assert exported(registry)['tablefeed_source_lag_versions{query="copy",table="s3://lake/orders"}'] == 9.0


def test_an_idle_query_is_as_far_behind_as_it_was_and_has_looked_just_now() -> None:
    registry = CollectorRegistry()
    listener = LagListener(registry=registry)
    listener.onQueryProgress(progress(told(lag(versions=0))))

    listener.onQueryIdle(QueryIdleEvent(uuid.UUID(QUERY), uuid.UUID(RUN), "2026-11-21T10:01:00.500Z"))

    labels = '{query="copy",table="s3://lake/orders"}'
    samples = exported(registry)
    assert samples[f"tablefeed_source_lag_versions{labels}"] == 0.0
    assert samples[f"tablefeed_source_last_trigger_timestamp_seconds{labels}"] == 1795255260.5


def test_a_query_that_ended_has_no_gauges_and_another_run_of_it_keeps_its_own() -> None:
    registry = CollectorRegistry()
    listener = LagListener(registry=registry)
    again = "cccccccc-0000-0000-0000-000000000000"
    listener.onQueryProgress(progress(told(lag(versions=3))))
    listener.onQueryProgress(progress(told(lag(versions=1)), run=again))

    listener.onQueryTerminated(terminated(RUN))
    assert exported(registry)['tablefeed_source_lag_versions{query="copy",table="s3://lake/orders"}'] == 1.0
    listener.onQueryTerminated(terminated(again))
    assert exported(registry) == {}


def test_a_query_of_other_sources_alone_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    listener = LagListener(registry=registry)

    with caplog.at_level(logging.INFO, logger="tablefeed"):
        listener.onQueryProgress(progress(KAFKA))
        listener.onQueryIdle(QueryIdleEvent(uuid.UUID(QUERY), uuid.UUID(RUN), "2026-11-21T10:01:00.500Z"))
        listener.onQueryTerminated(terminated())

    assert (caplog.messages, exported(registry)) == ([], {})


class ReadMeter(NoOpMeter):
    """A meter whose gauges can be read as an exporter reads them."""

    def __init__(self) -> None:
        super().__init__("test")
        self.gauges: dict[str, tuple[str, Sequence[Callable[[CallbackOptions], Iterable[Observation]]]]] = {}

    def create_observable_gauge(
        self,
        name: str,
        callbacks: Any = None,  # Any: the API allows generators too
        unit: str = "",
        description: str = "",
    ) -> ObservableGauge:
        self.gauges[name] = (unit, callbacks)
        return super().create_observable_gauge(name, callbacks, unit, description)

    def read(self) -> dict[str, list[tuple[object, object]]]:
        return {
            name: [(o.value, o.attributes) for callback in callbacks for o in callback(CallbackOptions())]
            for name, (_, callbacks) in self.gauges.items()
        }


def test_opentelemetry_reads_the_same_numbers_with_the_same_names_and_labels() -> None:
    meter = ReadMeter()
    listener = LagListener(meter=meter)
    assert not any(meter.read().values())

    listener.onQueryProgress(progress(told(lag())))

    labels = {"query": "copy", "table": "s3://lake/orders"}
    assert meter.read() == {
        "tablefeed_source_lag_versions": [(3, labels)],
        "tablefeed_source_lag_seconds": [(12.5, labels)],
        "tablefeed_source_files_outstanding": [(40, labels)],
        "tablefeed_source_bytes_outstanding": [(400, labels)],
        "tablefeed_source_snapshot_percent": [],
        "tablefeed_source_last_trigger_timestamp_seconds": [(1795255200.5, labels)],
    }


def test_a_listener_made_twice_in_a_process_exports_each_number_once() -> None:
    first, second = LagListener(), LagListener()
    try:
        first.onQueryProgress(progress(told(lag(versions=5))))
        second.onQueryProgress(progress(told(lag(versions=5))))

        lines = generate_latest(REGISTRY).decode().splitlines()
        ours = [line for line in lines if line.startswith("tablefeed_source_lag_versions{")]
        assert ours == ['tablefeed_source_lag_versions{query="copy",table="s3://lake/orders"} 5.0']
    finally:
        first.onQueryTerminated(terminated())


def test_the_page_has_a_row_for_every_gauge_and_every_number_in_the_progress() -> None:
    page = pages.page("lag.md")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    in_progress = json.loads(told(lag()))["lag"]

    assert {name for line in rows for name in re.findall(r"`(\w+)`", line.split("|")[2])} == {g.name for g in GAUGES}
    assert {name for line in rows[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])} == set(in_progress)


_WITHOUT_EXTRAS = """
import sys
sys.modules["prometheus_client"] = sys.modules["opentelemetry"] = None  # as if they were not installed
from tablefeed.spark import LagListener
LagListener()
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
