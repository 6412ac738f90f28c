"""The batch reader: one version of a table as Spark's partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from tablefeed.errors import UnsupportedOptionError
from tablefeed.feed.scan import snapshot_tasks
from tablefeed.spark.options import parse_options, table_path
from tablefeed.spark.partition import TaskPartition, read_partition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from tablefeed.spark.analysis import Analysis


class BatchReader(DataSourceReader):
    """Reads the version that the DataFrame was analysed with, whatever is committed since."""

    def __init__(self, options: Mapping[str, str], schema: StructType, analysis: Analysis | None) -> None:
        self._path = table_path(options, call="load")
        self._storage = parse_options(options, "batch read").storage
        if analysis is None:
            raise UnsupportedOptionError(
                option="schema",
                remedy="A table has its own schema: leave .schema(...) out and select or cast its columns.",
                error_class="DELTA_READ_SOURCE_SCHEMA_CONFLICT",
            )
        self._schema = schema
        self._version = analysis.version

    def partitions(self) -> Sequence[InputPartition]:
        """The table's files as tasks."""
        tasks = snapshot_tasks(self._path, version=self._version, storage_options=self._storage)
        return [TaskPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        return read_partition(partition, self._schema)
