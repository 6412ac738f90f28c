"""Says what a batch of a streaming query did: from Spark's progress event, and from the log of the table it writes.

Listeners run on the driver or in a client of Spark Connect. Spark's event has the sources and their lag. It does not
say which table the sink writes, so the user names it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tablefeed.errors import IllegalOptionError, TablefeedError
from tablefeed.feed.api.batch_commits import BatchCommit, BatchCommits
from tablefeed.feed.stream.batch_span import last_version
from tablefeed.feed.stream.lag import Lag, lag_from_json
from tablefeed.feed.stream.offset_json import offset_from_json
from tablefeed.model.actions import Txn, Version

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import QueryStartedEvent, SourceProgress, StreamingQueryProgress

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBatch:
    """What a batch read of one table: `rows`, up to `version` (None: not known), and the lag after it."""

    rows: int
    version: Version | None
    lag: Lag


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """A batch of a query. `query` is the query's name, or else its id; `triggered_at_s` is in seconds since 1970.

    `sink` is None where the user named no table, where the table does not record the batch, or where it cannot be read.
    """

    query: str
    run_id: str
    batch_id: int
    triggered_at_s: float
    duration_s: float
    sources: Sequence[SourceBatch]
    sink: BatchCommit | None


class BatchReports:
    """Reports the batches of queries. `sinks` names the table that each query writes, by the query's name or id."""

    def __init__(
        self, sinks: Mapping[str, str] | None = None, storage_options: Mapping[str, str] | None = None
    ) -> None:
        given: object = {} if sinks is None else sinks
        if not isinstance(given, Mapping):
            explain = "must map the names or ids of queries to the tables that they write"
            raise IllegalOptionError(option="sinks", value=str(sinks), explain=explain)
        self._sinks = {query: BatchCommits(url, storage_options) for query, url in given.items()}

    def of(self, progress: StreamingQueryProgress) -> BatchReport | None:
        """Reports the batch of `progress`; None for a query of which nothing is known. It never raises."""
        query, commits = query_label(progress.name, progress.id), self.commits(progress)
        sources = [found for source in progress.sources if (found := _source_batch(source)) is not None]
        if not sources and commits is None:
            return None
        return BatchReport(
            query=query,
            run_id=str(progress.runId),
            batch_id=progress.batchId,
            triggered_at_s=seconds(progress.timestamp),
            duration_s=progress.batchDuration / 1000,
            sources=sources,
            sink=None if commits is None else _found(commits, progress, query),
        )

    def commits(self, query: StreamingQueryProgress | QueryStartedEvent) -> BatchCommits | None:
        """Gives the commits of the table that `query` writes; None where the user named none."""
        return self._sinks.get(query.name or "") or self._sinks.get(str(query.id))


def query_label(name: str | None, query_id: object) -> str:
    """Gives what people know a query by."""
    return name or str(query_id)


def seconds(timestamp: str) -> float:
    """Gives the seconds since 1970 of a timestamp of Spark's events."""
    return datetime.fromisoformat(timestamp).timestamp()


def _found(commits: BatchCommits, progress: StreamingQueryProgress, query: str) -> BatchCommit | None:
    try:
        return commits.find(Txn(app_id=str(progress.id), txn_version=progress.batchId))
    except TablefeedError as error:  # the query goes on, and its next batch may be found
        logger.warning("query=%s batch=%s commit not read: %s", query, progress.batchId, error)
        return None


def _source_batch(source: SourceProgress) -> SourceBatch | None:
    lag = lag_from_json(source.latestOffset)
    if lag is None:
        return None  # another source, or a batch run again after a restart, for which Spark asks no source
    return SourceBatch(rows=source.numInputRows, version=_version(source.endOffset, lag.url), lag=lag)


def _version(end: str | None, url: str) -> Version | None:
    try:
        value = json.loads(end or "null")
        version = last_version(offset_from_json(value, url=url)) if isinstance(value, dict) else None
    except (ValueError, TablefeedError):
        return None
    return version if version is not None and version >= 0 else None
