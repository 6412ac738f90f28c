"""A task of the feed as Spark's input partition, and its rows as Spark wants them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from tablefeed.feed.scan.task import ScanTask, read_task
from tablefeed.spark.worker import settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class TaskPartition(InputPartition):
    """One `ScanTask`; `value` is it."""

    def __init__(self, task: ScanTask) -> None:
        super().__init__(task)


def read_partition(partition: InputPartition, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Gives the rows of `partition` in exactly the Arrow schema that Spark derives from `schema`.

    The one partition that Spark makes up for a source without any is empty.
    """
    if partition.value is not None:
        yield from read_task(partition.value, to_arrow_schema(schema, timezone="UTC"))
    settle()
