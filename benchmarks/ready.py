"""A Python source and sink that do nothing: batches are ready-made, rows are dropped. What they cost is Spark's share.

The source gives the files of a folder, `0.arrow`, `1.arrow` and so on, each one Arrow batch. Its options: `folder`;
`batches`, how often in all a file's batch is given, by as many tasks as the benchmark has cores; `most`, files a batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from benchmarks.session import CORES, READY

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    import pyarrow as pa
    from pyspark.sql.types import StructType


class Ready(DataSource):
    """`format("ready")`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        """The name in `format(...)`."""
        return READY

    def schema(self) -> str:
        """That of the benchmark's rows (workloads.py)."""
        return "id long, key long, value double, name string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's
        """The source."""
        return _Reader(
            self.options["folder"], int(self.options.get("batches", "1")), int(self.options.get("most", "0"))
        )

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: ARG002, FBT001, N802 - Spark's
        """The sink."""
        return _Writer()


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, folder: str, batches: int, most: int) -> None:
        self._folder, self._batches, self._most = folder, batches, most
        self._bound: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"files": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002, N802 - Spark's
        there = self._there() if self._bound is None else self._bound
        return {"files": min(there, start["files"] + self._most) if self._most else there}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._bound = self._there()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        files = [f"{self._folder}/{n}.arrow" for n in range(start["files"], end["files"])]
        if self._batches == 1:
            return [InputPartition((file, 1)) for file in files]
        each = [self._batches * (n + 1) // CORES - self._batches * n // CORES for n in range(CORES)]
        return [InputPartition((file, times)) for file in files for times in each]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        file, times = partition.value
        with pa.memory_map(file) as source:
            batch = pa.ipc.open_file(source).get_batch(0)
            for _ in range(times):
                yield batch

    def _there(self) -> int:
        return sum(name.endswith(".arrow") for name in os.listdir(self._folder))  # noqa: PTH208 - only names


class _Writer(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        pass

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        pass
