"""The stream reader that Spark pickles: it plans by `stream_planner` and reads by `partition`.

One instance, in its own process, plans for the life of a query; instances in other processes only read. So each
imports its half when it is first needed, and the planner is never pickled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property  # noqa: TID251 - a process has one reader, and imports little
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from tablefeed.spark.worker import BeginsInTask

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from tablefeed.spark.analysis import Analysis
    from tablefeed.spark.stream_planner import StreamPlanner


class StreamReader(BeginsInTask, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark's reader of one table's feed in one streaming query."""

    def __init__(self, options: Mapping[str, str], schema: StructType, analysis: Analysis | None) -> None:
        self._given = dict(options)
        self._schema = schema
        self._analysis = analysis

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the planner out: only the process that plans has one."""
        return {name: value for name, value in super().__getstate__().items() if name != "_planner"}

    def initialOffset(self) -> dict[str, object]:  # noqa: N802 - Spark's name
        """The offset at which a new query begins."""
        return self._planner.initial()

    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:  # noqa: N802
        """The offset at which the next batch ends; `start` where nothing is new."""
        return self._planner.latest(start, limit)

    def reportLatestOffset(self) -> dict[str, object] | None:  # noqa: N802 - Spark's name
        """The lag after the batch just planned, for the query's progress; None where it cannot be computed.

        An error here never fails the query: it is raised when the query reads that part of the table.
        """
        return self._planner.lag()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """One limit of the options: Spark's API takes only one, and `latestOffset` adds the others."""
        return self._planner.default_limit()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Makes the query end with the newest version that exists now."""
        self._planner.bound_now()

    def partitions(self, start: dict[str, object], end: dict[str, object]) -> Sequence[InputPartition]:
        """The files of a batch as tasks."""
        return self._planner.partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        from tablefeed.spark.char import padded
        from tablefeed.spark.partition import read_partition

        return padded(read_partition(partition, self._schema), self._schema)

    def commit(self, end: dict[str, object]) -> None:
        """Drops what was kept for batches before `end`. An error here ends the query after the batch is done."""
        self._planner.delivered(end)

    def stop(self) -> None:
        """Closes the feed, if this instance opened it."""
        if "_planner" in self.__dict__:
            self._planner.close()

    @cached_property
    def _planner(self) -> StreamPlanner:
        from tablefeed.spark.stream_planner import StreamPlanner

        return StreamPlanner(self._given, self._analysis)
