"""The rows of a partition, whose value is `RELEASE` and a `ScanTask`, in the Arrow schema that Spark expects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import to_arrow_schema

from tablefeed.feed.scan.task import read_task
from tablefeed.spark.worker import settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType


def read_partition(partition: InputPartition, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Gives the rows of `partition` in exactly the Arrow schema that Spark derives from `schema`.

    A source without partitions gets one from Spark, with `value` None: it has no rows.
    """
    if partition.value is not None:
        _release, task = partition.value
        yield from read_task(task, to_arrow_schema(schema, timezone="UTC"))
    settle()
