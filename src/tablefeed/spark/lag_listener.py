"""Takes the lag of streaming queries from their progress events to the log and to metrics (docs/how-to/lag.md).

It reads no table, only the events that Spark sends for each trigger. So it works wherever Spark sends them: on the
driver and in a client of Spark Connect.
"""

from __future__ import annotations

import logging
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from tablefeed.feed.stream.lag import Lag, lag_from_json
from tablefeed.spark.lag_board import (
    LagBoard,
    LagReading,
    export_to_opentelemetry,
    export_to_prometheus,
    exported_board,
)

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from prometheus_client import CollectorRegistry
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

logger = logging.getLogger(__name__)


class LagListener(StreamingQueryListener):
    """Logs how far each tablefeed source of each query is behind, one line per batch, and exports it as gauges.

    Use: `spark.streams.addListener(LagListener())`. The gauges have the labels `query` (its name, or else its id) and
    `table`. They go to Prometheus' default registry and OpenTelemetry's global meter provider where those packages are
    installed (`tablefeed[metrics]`, `tablefeed[otel]`). If a `registry` or `meter` is given, they go only there. A
    query that has ended has no gauges.
    """

    def __init__(self, *, registry: CollectorRegistry | None = None, meter: Meter | None = None) -> None:
        self._board = exported_board() if registry is None and meter is None else LagBoard()
        if registry is not None:
            export_to_prometheus(self._board, registry)
        if meter is not None:
            export_to_opentelemetry(self._board, meter)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing is known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Logs and keeps the lag that the sources of a batch reported."""
        progress = event.progress
        readings = [
            LagReading(query=_query(progress), lag=lag, triggered_at_s=_seconds(progress.timestamp))
            for source in progress.sources
            if (lag := lag_from_json(source.latestOffset)) is not None
        ]
        if not readings:
            return  # no tablefeed source, or a batch run again after a restart, for which Spark asks no source
        self._board.put(str(progress.runId), readings)
        for reading in readings:
            logger.info("query=%s batch=%s %s", reading.query, progress.batchId, _facts(reading.lag))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Marks the query's last readings as current: it looked for new versions and found none."""
        self._board.touch(str(event.runId), _seconds(event.timestamp))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Drops the readings of the ended query, because nothing updates them any more."""
        self._board.drop(str(event.runId))


def _query(progress: StreamingQueryProgress) -> str:
    return progress.name or str(progress.id)


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def _facts(lag: Lag) -> str:
    facts = {"table" if field.name == "url" else field.name: getattr(lag, field.name) for field in fields(lag)}
    return " ".join(f"{name}={value}" for name, value in facts.items() if value is not None)
