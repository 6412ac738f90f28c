"""Spark imports every top-level `pyspark_*` module on its first data-source lookup: this must not fail or be slow.

Only the class that Spark registers as `format("tablefeed")` is here. What it does is `tablefeed.spark`'s, imported
when one of its methods is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import __version__ as pyspark_version
from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pyspark.sql.datasource import (
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
    )
    from pyspark.sql.types import StructType

    from tablefeed.spark.analysis import Analysis

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """`format("tablefeed")`: tails a table's log and commits to it."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        if [int(part) for part in pyspark_version.split(".")[:2]] < [4, 2]:
            from tablefeed.spark.old_pyspark import too_old

            raise too_old(pyspark_version)
        super().__init__(options)
        # What `schema` found is kept for the plan: rows are delivered in the schema that the query was analysed with.
        self.analysis: Analysis | None = None

    @classmethod
    def name(cls) -> str:
        """The name in `format(...)`."""
        return "tablefeed"

    def schema(self) -> StructType:
        """The table's schema now."""
        from tablefeed.spark.analysis import spark_schema
        from tablefeed.spark.at_load import analyse

        self.analysis = analyse(self.options)
        return spark_schema(self.analysis)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read of the version that was analysed."""
        from tablefeed.spark.batch import BatchReader

        return BatchReader(self.options, schema, self.analysis)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """A stream of the table's appended rows."""
        from tablefeed.spark.source import StreamReader

        return StreamReader(self.options, schema, self.analysis)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: FBT001 - Spark's signature
        """A batch append or overwrite, or with `keys` a batch of change events."""
        if "keys" in self.options:
            from tablefeed.spark.changes.keyed_sink import BatchOfChangesWriter

            return BatchOfChangesWriter(self.options, schema, overwrite=overwrite)
        from tablefeed.spark.sink import BatchWriter

        return BatchWriter(self.options, schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802 - Spark's name
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001 - Spark's signature
    ) -> DataSourceStreamArrowWriter:
        """A streaming append, or with `keys` a stream of change events, one commit a batch."""
        if "keys" in self.options:
            from tablefeed.spark.changes.keyed_sink import StreamOfChangesWriter

            return StreamOfChangesWriter(self.options, schema, overwrite=overwrite)
        from tablefeed.spark.sink import StreamWriter

        return StreamWriter(self.options, schema, overwrite=overwrite)
