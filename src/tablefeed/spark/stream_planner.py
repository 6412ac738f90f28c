"""Plans the batches of a stream: translates Spark's offsets and limits to and from `tablefeed.feed.stream.source`.

Only the process that plans a query imports this module. One planner lives there as long as the query. The feed is
opened and the options are checked on first use, because Spark hides an error of a reader's constructor behind its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, ReadMaxFiles, ReadMaxRows

from tablefeed.errors import ConflictingOptionsError, OptionError, TablefeedError
from tablefeed.feed.stream.idle import Idle
from tablefeed.feed.stream.lag import lag_to_json
from tablefeed.feed.stream.offset_json import offset_from_json, offset_to_json
from tablefeed.feed.stream.source import StreamSource, open_source
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.log.admission import ChangePolicy
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Version
from tablefeed.model.cached import cached_property
from tablefeed.model.offset import Offset
from tablefeed.spark.options import (
    bounds_of,
    check_tracking,
    event_time_column,
    parse_options,
    refuse_time_travel,
    schema_given,
    table_path,
    tracking_options,
)
from tablefeed.spark.parsed_options import ParsedOptions
from tablefeed.spark.release import RELEASE
from tablefeed.spark.worker import plan_without_pandas, write_json_without_blanks

if TYPE_CHECKING:
    from tablefeed.feed.upkeep.consumers import Reports
    from tablefeed.spark.analysis import Analysis

DEFAULT_MAX_FILES = 1000
"""The default of maxFilesPerTrigger where no limit is set, as in Delta-Spark."""


class StreamPlanner:
    """The planner of one table's feed in one streaming query. Its offsets are JSON objects; `given` are the options."""

    def __init__(self, given: Mapping[str, str], analysis: Analysis | None) -> None:
        plan_without_pandas()
        self._given = given
        self._analysis = analysis
        self._planned: Offset | None = None
        self._idle: Idle | None = Idle(lambda timeout_s: self._source.wait(timeout_s), clock=time.monotonic)

    def initial(self) -> dict[str, object]:
        """Gives the offset at which a new query begins."""
        write_json_without_blanks()  # PySpark sends an offset as JSON, in the process that plans
        offset = self._source.initial()
        self._reads_from(offset)
        return offset_to_json(offset)

    def latest(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:
        """Gives the offset at which the next batch ends; `start` where nothing is new. May wait first: see `Idle`."""
        write_json_without_blanks()
        begin = self._offset(start)
        self._reads_from(begin)
        if self._idle is not None:
            self._idle.before_look()
        self._planned = self._source.latest(begin, self._limits(limit))
        if self._idle is not None:
            self._idle.looked(has_found=self._planned != begin)
        return offset_to_json(self._planned)

    def lag(self) -> dict[str, object] | None:
        """Gives the lag after the batch just planned; None where it cannot be computed. It never raises."""
        if self._planned is None:
            return None
        try:
            lag = self._source.lag(self._planned, now_ms=time.time_ns() // 1_000_000)
        except TablefeedError:
            return None
        return lag_to_json(lag, self._planned)

    def default_limit(self) -> ReadLimit:
        """Gives one limit of the options: Spark's API takes only one, and `latest` adds the others."""
        match self._options.limits:
            case Limits(files=int(files)):
                return ReadMaxFiles(files)
            case Limits(size_bytes=int(size_bytes)):
                return ReadMaxBytes(size_bytes)
            case limits:
                return ReadMaxRows(limits.rows or 1)

    def bound_now(self) -> None:
        """Makes the query end with the newest version that exists now."""
        self._idle = None  # it never waits for more
        self._source.bound_now()

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> list[InputPartition]:
        """Gives the files of a batch as tasks."""
        self._reads_from(self._offset(start))
        tasks = self._source.tasks(self._offset(start), self._offset(end))
        return [InputPartition((RELEASE, task)) for task in tasks]

    def delivered(self, end: dict[str, object]) -> None:
        """Drops what was kept for batches before `end`, and reports the progress of the stream as a consumer.

        An error here ends the query after the batch is done. So ends, on purpose, a stream that tracks the schema of
        its table where that changed (schema_tracking.py).
        """
        if self._reports is not None:
            self._reports.has_read(self._offset(end).read_through)
        self._source.delivered(self._offset(end))

    def close(self) -> None:
        """Closes the feed, if it was opened."""
        if "_source" in self.__dict__:
            self._source.close()

    @cached_property
    def _parsed(self) -> ParsedOptions:
        refuse_time_travel(self._given, table_path(self._given, call="load"))
        return parse_options(self._given, "stream read")

    @cached_property
    def _options(self) -> SourceOptions:
        return source_options(self._parsed)

    @cached_property
    def _source(self) -> StreamSource:
        options = self._options
        if self._analysis is None:
            raise schema_given()
        return open_source(
            table_path(self._given, call="load"),
            storage_options=self._parsed.storage,
            schema_string=self._analysis.schema_string,
            analysed_at=Version(self._analysis.version),
            options=options,
            clock=time.monotonic,
        )

    @cached_property
    def _reports(self) -> Reports | None:
        consumer_id = self._parsed["consumerId"]
        if consumer_id is None:
            return None
        from tablefeed.feed.upkeep.consumers import Reports, consumers

        table = consumers(table_path(self._given, call="load"), self._parsed.storage)
        return Reports(table, consumer_id, clock=time.monotonic)

    def _reads_from(self, start: Offset) -> None:
        if self._reports is not None:
            self._reports.reads_after(start.read_through)

    def _offset(self, value: dict[str, object]) -> Offset:
        return offset_from_json(value, url=self._source.url)

    def _limits(self, limit: ReadLimit) -> Limits:
        limits = self._options.limits
        match limit:
            case ReadAllAvailable():
                return Limits()
            case ReadMaxFiles(max_files=files):
                return replace(limits, files=files)
            case ReadMaxBytes(max_bytes=size_bytes):
                return replace(limits, size_bytes=size_bytes)
            case ReadMaxRows(max_rows=rows) if limits.rows is not None:
                return replace(limits, rows=rows)
            case _:
                raise OptionError(
                    f"Spark asked for a batch limited by {limit!r}; this source limits files, bytes and rows.",
                    error_class="DELTA_UNKNOWN_READ_LIMIT",
                )


def source_options(parsed: ParsedOptions) -> SourceOptions:
    """Gives the feed's options for the parsed ones.

    Raises ConflictingOptionsError for options that exclude each other, such as two starts. Raises IllegalOptionError
    where only one of withEventTimeOrder and eventTimeColumn is set.
    """
    start, end = bounds_of(parsed)
    check_tracking(parsed)
    files, size_bytes, rows = (parsed[f"max{what}PerTrigger"] for what in ("Files", "Bytes", "Rows"))
    change_feed = parsed["readChangeFeed"] or parsed["readChangeData"]
    if change_feed and rows is not None:
        raise ConflictingOptionsError(
            options=("readChangeFeed", "maxRowsPerTrigger"),
            remedy="Change data files have no row count. Limit the batch by files or bytes.",
        )
    if files is None and size_bytes is None and rows is None:
        files = DEFAULT_MAX_FILES
    return SourceOptions(
        start=start,
        end=end,
        limits=Limits(files=files, size_bytes=size_bytes, rows=rows, split_commits=parsed["splitCommits"]),
        policy=ChangePolicy(
            ignore_deletes=parsed["ignoreDeletes"],
            ignore_changes=parsed["ignoreChanges"] or parsed["ignoreFileDeletion"],
            skip_change_commits=parsed["skipChangeCommits"],
        ),
        fail_on_data_loss=parsed["failOnDataLoss"],
        exclude=parsed["excludeRegex"],
        change_feed=change_feed,
        least_tasks=parsed["minPartitions"],
        ignore_added_columns=parsed["ignoreAddedColumns"],
        tracking=tracking_options(parsed),
        where=parsed["where"],
        event_time_column=event_time_column(parsed),
    )
