"""What Spark tells of a query's lag: it falls to nothing as the backlog is delivered, and a listener hears of it."""

from __future__ import annotations

import queue
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from spark.streams import PATIENCE_S, action, grow, ids_by_delta_rs, reader
from tablefeed.feed.stream.lag import Lag, lag_from_json
from tablefeed.spark import MetricsListener

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import QueryProgressEvent, QueryTerminatedEvent


class HeardListener(MetricsListener):
    """A MetricsListener that says when it has heard."""

    def __init__(self, registry: CollectorRegistry, copy: Path) -> None:
        super().__init__(registry=registry, sinks={"lagging": str(copy)})
        self.heard: queue.Queue[tuple[Lag | None, float | None]] = queue.Queue()
        self.ended: queue.Queue[str] = queue.Queue()
        self._registry = registry

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        super().onQueryProgress(event)
        lag = lag_from_json(event.progress.sources[0].latestOffset)
        labels = {"query": event.progress.name or "", "table": lag.url if lag else ""}
        self.heard.put((lag, self._registry.get_sample_value("tablefeed_source_lag_versions", labels)))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        super().onQueryTerminated(event)
        self.ended.put(str(event.runId))


def test_the_lag_falls_to_nothing_as_a_backlog_is_delivered_a_file_at_a_time(
    session: SparkSession, tmp_path: Path
) -> None:
    table, copy = tmp_path / "t", tmp_path / "copy"
    grow(table, [1], [2], [3], [4])
    sizes = [int(action(table, version, "add")["size"]) for version in range(4)]
    registry = CollectorRegistry()
    listener = HeardListener(registry, copy)
    session.streams.addListener(listener)
    try:
        stream = reader(session, table, startingVersion=0, maxFilesPerTrigger=1).writeStream.format("tablefeed")
        query = stream.queryName("lagging").option("checkpointLocation", str(tmp_path / "checkpoint")).start(str(copy))
        try:
            heard = [listener.heard.get(timeout=PATIENCE_S) for _ in range(4)]
            query.processAllAvailable()
            assert query.lastProgress is not None
            told = lag_from_json(query.lastProgress.sources[0].latestOffset)
            assert told is not None
            assert told.versions_behind == 0
        finally:
            query.stop()
        assert listener.ended.get(timeout=PATIENCE_S) == str(query.runId)
    finally:
        session.streams.removeListener(listener)

    assert ids_by_delta_rs(copy) == [1, 2, 3, 4]
    lags = [lag for lag, _ in heard if lag is not None]
    assert [gauge for _, gauge in heard] == [3.0, 2.0, 1.0, 0.0]
    assert [(lag.versions_behind, lag.files_outstanding, lag.bytes_outstanding) for lag in lags] == [
        (3, 3, sum(sizes[1:])),
        (2, 2, sum(sizes[2:])),
        (1, 1, sizes[3]),
        (0, 0, 0),
    ]
    assert [lag.seconds_behind is not None and lag.seconds_behind > 0 for lag in lags] == [True, True, True, False]
    left = {sample.name: sample.value for family in registry.collect() for sample in family.samples}
    counted = ("source_rows_total", "sink_commits_total", "sink_rows_total", "query_batch_duration_seconds_count")
    assert [left[f"tablefeed_{name}"] for name in counted] == [4.0, 4.0, 4.0, 4.0]
    assert [name for name in left if name.startswith(("tablefeed_source_lag", "tablefeed_sink_version"))] == []
