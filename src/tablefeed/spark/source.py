"""The stream reader: translates between Spark's offsets, limits and partitions and `tablefeed.feed.stream.source`.

One instance, in its own process, plans for the life of a query; instances in other processes only read. So the feed
is opened on first use and is never pickled. Options are also checked on first use, because Spark hides an error of a
reader's constructor behind its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from tablefeed.errors import ConflictingOptionsError, OptionError, TablefeedError
from tablefeed.feed.stream.lag import lag_to_json
from tablefeed.feed.stream.offset_json import offset_from_json, offset_to_json
from tablefeed.feed.stream.source import StreamSource, open_source
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.feed.stream.stream_bounds import Bound
from tablefeed.log.admission import ChangePolicy
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset
from tablefeed.spark.char import padded
from tablefeed.spark.options import (
    ParsedOptions,
    check_bounds,
    check_tracking,
    event_time_column,
    parse_options,
    refuse_time_travel,
    schema_given,
    table_path,
    tracking_options,
)
from tablefeed.spark.partition import read_partition
from tablefeed.spark.worker import acknowledge_at_once, write_json_without_blanks

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from tablefeed.spark.analysis import Analysis

DEFAULT_MAX_FILES = 1000
"""The default of maxFilesPerTrigger where no limit is set, as in Delta-Spark."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark's reader of one table's feed in one streaming query."""

    def __init__(self, options: Mapping[str, str], schema: StructType, analysis: Analysis | None) -> None:
        self._given = dict(options)
        self._schema = schema
        self._analysis = analysis
        self._opened: StreamSource | None = None
        self._planned: Offset | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the opened feed out: only the process that plans has one."""
        return {**self.__dict__, "_opened": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restores the reader in a worker, as the first code of tablefeed in a task."""
        acknowledge_at_once()
        self.__dict__.update(state)

    def initialOffset(self) -> dict[str, object]:  # noqa: N802 - Spark's name
        """The offset at which a new query begins."""
        write_json_without_blanks()  # PySpark sends an offset as JSON, in the process that plans
        return offset_to_json(self._source.initial())

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:  # noqa: N802
        """The offset at which the next batch ends; `start` where nothing is new."""
        write_json_without_blanks()
        self._planned = self._source.latest(self._offset(start), self._limits(limit))
        return offset_to_json(self._planned)

    def reportLatestOffset(self) -> dict[str, object] | None:  # noqa: N802 - Spark's name
        """The lag after the batch just planned, for the query's progress; None where it cannot be computed.

        An error here never fails the query: it is raised when the query reads that part of the table.
        """
        if self._planned is None:
            return None
        try:
            lag = self._source.lag(self._planned, now_ms=time.time_ns() // 1_000_000)
        except TablefeedError:
            return None
        return lag_to_json(lag, self._planned)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """One limit of the options: Spark's API takes only one, and `latestOffset` adds the others."""
        match self._options.limits:
            case Limits(files=int(files)):
                return ReadMaxFiles(files)
            case Limits(size_bytes=int(size_bytes)):
                return ReadMaxBytes(size_bytes)
            case limits:
                return ReadMaxRows(limits.rows or 1)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Makes the query end with the newest version that exists now."""
        self._source.bound_now()

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        """The files of a batch as tasks."""
        return [InputPartition(task) for task in self._source.tasks(self._offset(start), self._offset(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        return padded(read_partition(partition, self._schema), self._schema)

    def commit(self, end: dict[str, object]) -> None:
        """Drops what was kept for batches before `end`. An error here ends the query after the batch is done."""
        self._source.delivered(self._offset(end))

    def stop(self) -> None:
        """Closes the feed, if this instance opened it."""
        if self._opened is not None:
            self._opened.close()

    @cached_property
    def _parsed(self) -> ParsedOptions:
        refuse_time_travel(self._given, table_path(self._given, call="load"))
        return parse_options(self._given, "stream read")

    @cached_property
    def _options(self) -> SourceOptions:
        return source_options(self._parsed)

    @property
    def _source(self) -> StreamSource:
        if self._opened is None:
            options = self._options
            if self._analysis is None:
                raise schema_given()
            self._opened = open_source(
                table_path(self._given, call="load"),
                storage_options=self._parsed.storage,
                schema_string=self._analysis.schema_string,
                analysed_at=Version(self._analysis.version),
                options=options,
                clock=time.monotonic,
            )
        return self._opened

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
    check_bounds(parsed)
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
    start, end = (
        Bound(
            version=parsed[f"{side}Version"],
            timestamp=parsed[f"{side}Timestamp"],
            time_zone=parsed["timeZone"],
            inclusive=parsed[f"{side}BoundInclusive"],
        )
        for side in ("starting", "ending")
    )
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
