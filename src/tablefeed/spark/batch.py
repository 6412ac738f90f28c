"""The batch reader: one version of a table, or the row changes of a range of versions, as Spark's partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from tablefeed.errors import ConflictingOptionsError, IllegalOptionError, UnsupportedOptionError
from tablefeed.feed.api.changes import change_tasks
from tablefeed.feed.arguments import Bound
from tablefeed.spark.options import bounds_of, named_as_options, parse_options, schema_given, table_path
from tablefeed.spark.parsed_options import ParsedOptions
from tablefeed.spark.partition import read_partition
from tablefeed.spark.release import RELEASE
from tablefeed.spark.worker import Begins

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from tablefeed.spark.analysis import Analysis


class BatchReader(Begins, DataSourceReader):
    """Reads the version that the DataFrame was analysed with, whatever is committed since.

    It has no `pushFilters`, on purpose. Spark 4.2 and 4.3 keep the partitions planned for one query's filters with the
    DataFrame and re-use them for its other queries, which have other filters or none. The second query would lose the
    rows of files that the first left out. The option `where` applies to the whole DataFrame, so it may leave files out.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, analysis: Analysis | None) -> None:
        self._path = table_path(options, call="load")
        if analysis is None:
            raise schema_given()
        if analysis.tracked:
            raise UnsupportedOptionError(
                option="schemaTrackingLocation", remedy="It is for streams. Leave it out of a batch read."
            )
        parsed = parse_options(options, "read of changes" if analysis.change_feed else "batch read")
        self._storage = parsed.storage
        self._where = parsed["where"]
        self._least_tasks = parsed["minPartitions"]
        self._bounds = change_bounds(parsed) if analysis.change_feed else None
        self._schema = schema
        self._version, self._table_id = analysis.version, analysis.table_id

    def partitions(self) -> Sequence[InputPartition]:
        """The table's files as tasks."""
        chosen = {
            "version": self._version,
            "table_id": self._table_id,
            "storage_options": self._storage,
            "where": self._where,
            "least_tasks": self._least_tasks,
        }
        if self._bounds is None:
            from tablefeed.feed.scan.snapshot_tasks import snapshot_tasks

            tasks = snapshot_tasks(self._path, **chosen)
        else:
            start, end = self._bounds
            with named_as_options():
                tasks = change_tasks(self._path, start=start, end=end, **chosen)
        return [InputPartition((RELEASE, task)) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        return read_partition(partition, self._schema)


def change_bounds(parsed: ParsedOptions) -> tuple[Bound, Bound]:
    """Gives the range of changes that the user asked for. Raises OptionError for none, or more than one."""
    if parsed["versionAsOf"] is not None or parsed["timestampAsOf"] is not None:
        raise ConflictingOptionsError(
            options=("readChangeFeed", "versionAsOf"),
            remedy="Changes are read from a range of versions. Set startingVersion instead.",
        )
    start, end = bounds_of(parsed)
    if not start.is_named:
        raise IllegalOptionError(
            option="readChangeFeed",
            value="true",
            explain="needs startingVersion or startingTimestamp, the begin of the range",
            error_class="DELTA_NO_START_FOR_CDC_READ",
        )
    return start, end
