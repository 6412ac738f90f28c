"""Takes the lag and the work of streaming queries to the log and to metrics (docs/how-to/monitoring.md)."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from tablefeed.feed.stream.lag import Lag
from tablefeed.spark.explaining import explain
from tablefeed.spark.watching.batch_report import BatchReports, query_label, seconds
from tablefeed.spark.watching.exported_metrics import exported_boards
from tablefeed.wording.log_lines import log_facts
from tablefeed.wording.spark_errors import messages_in

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from prometheus_client import CollectorRegistry
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

logger = logging.getLogger(__name__)


class MetricsListener(StreamingQueryListener):
    """Logs how far each tablefeed source of each query is behind, one line per batch, and exports metrics.

    Use: `spark.streams.addListener(MetricsListener(sinks={"copy": "s3://lake/orders_copy"}))`. `sinks` names the Delta
    table that a query writes, by the query's name or id: the listener then reads the commit of each batch in the log
    of that table, with `storage_options`. A query that has neither a source of tablefeed nor a table in `sinks` is
    ignored.

    The metrics go to Prometheus' default registry and OpenTelemetry's global meter provider where those packages are
    installed (`tablefeed[metrics]`, `tablefeed[otel]`). If a `registry` or `meter` is given, they go only there. A
    query that has ended has no gauges. Raises IllegalOptionError for an invalid path or option.
    """

    def __init__(
        self,
        *,
        sinks: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        registry: CollectorRegistry | None = None,
        meter: Meter | None = None,
    ) -> None:
        self._reports = BatchReports(sinks, storage_options)
        self._labels: dict[str, str] = {}
        self._known: set[str] = set()
        """Runs that read a table of tablefeed, or whose query is in `sinks`."""
        self._boards = exported_boards(registry, meter)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Keeps the query's name, which the event of its end does not have."""
        run_id, is_named = str(event.runId), self._reports.commits(event) is not None
        self._labels[run_id] = query_label(event.name, event.id)
        if is_named:
            self._known.add(run_id)
        for board in self._boards:
            board.begin(run_id, is_ours=is_named)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Logs the lag that the sources of a batch reported, and keeps what the batch did."""
        report = self._reports.of(event.progress)
        if report is None:
            return
        self._labels[report.run_id] = report.query
        self._known.add(report.run_id)
        for board in self._boards:
            board.put(report)
        for source in report.sources:
            log_facts(logger, "batch", {"query": report.query, "batch": report.batch_id, **_facts(source.lag)})

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Marks the query's last readings as current: it looked for new versions and found none."""
        for board in self._boards:
            board.touch(str(event.runId), seconds(event.timestamp))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Drops the gauges of the ended query, because nothing updates them any more, and counts a failure."""
        run_id, error = str(event.runId), event.exception or ""
        query = self._labels.pop(run_id, str(event.id))
        is_known = run_id in self._known or next(messages_in(error), None) is not None
        self._known.discard(run_id)
        if error and is_known:
            logger.error("query=%s failed: %s", query, explain(error))
        for board in self._boards:
            board.end(run_id, failed=(query, _error_class(error)) if error else None, is_ours=is_known)


def _error_class(error: str) -> str:
    """The error class at the begin of the plain message, tablefeed's or Spark's; `none` where it has none."""
    found = re.match(r"\[(\w+)", explain(error))
    return found[1] if found else "none"


def _facts(lag: Lag) -> dict[str, object]:
    return {"table" if field.name == "url" else field.name: getattr(lag, field.name) for field in fields(lag)}
