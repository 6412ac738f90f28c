"""A task over splits, the data files of an IndexTables table. It reads only the byte ranges that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tablefeed.delta.paths import refuse_escape
from tablefeed.delta.stats.stats_text import num_records
from tablefeed.errors import DataFileError, naming
from tablefeed.feed.scan.task import BATCH_ROWS, PartitionColumn, RowChange, ScanFile, ScanTask, change_constants
from tablefeed.log.changes import ChangedFile
from tablefeed.model.actions import AddFile
from tablefeed.model.schema import Field
from tablefeed.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.read import ReadPlan
    from tablefeed.indextables.split.doc_store import Read


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitFile(ScanFile):
    """`row_count` is that in the log; None: the log has none."""

    row_count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitColumns:
    """How the columns of an IndexTables table are found: by their names.

    Those that the table is partitioned by, `partitioned_by`, may be stored in splits too.
    """

    partitioned_by: frozenset[str]

    @property
    def partitions(self) -> Mapping[str, PartitionColumn]:
        """Empty: the statistics have the values of partition columns (split_statistics.py)."""
        return {}

    def path_in_log(self, fields: Sequence[Field]) -> tuple[str, ...]:
        """See `LoggedColumns`."""
        return tuple(field.name for field in fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitTask(ScanTask):
    """A task over splits of an IndexTables table."""

    columns: SplitColumns
    files: tuple[SplitFile, ...] = ()

    def file(self, file: AddFile | ChangedFile, change: RowChange | None = None) -> SplitFile:
        """See `ScanTask`."""
        return SplitFile(
            path=file.path,
            size_bytes=file.size_bytes,
            partition_values=file.partition_values or {},
            row_count=num_records(file.stats) if isinstance(file, AddFile) else None,
            change=change,
        )

    def read(
        self,
        schema: pa.Schema,
        store: Store,
        *,
        positions: str | None,  # noqa: ARG002 - Parquet only
    ) -> Iterator[pa.RecordBatch]:
        """See `ScanTask`. Raises UnsupportedFeatureError for contents that cannot be read."""
        from tablefeed.data.read import ReadPlan

        plan = ReadPlan(schema=schema, stored=None, batch_rows=BATCH_ROWS)
        for file in self.files:
            with naming(store.url):
                yield from _rows(file, plan, store, self.columns.partitioned_by)

    def row_groups(self, file: ScanFile, store: Store, *, most: int) -> list[tuple[int, int]]:
        """See `ScanTask`: the blocks of its doc stores."""
        from tablefeed.data import splits

        described = splits.SplitFile(path=file.path, size_bytes=file.size_bytes, num_records=None)
        return splits.share_places(_reads(file, store), described, most=most)


def _rows(file: SplitFile, plan: ReadPlan, store: Store, partitions: frozenset[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    from tablefeed.data import splits
    from tablefeed.indextables.log.partition_values import Constants

    def refuse(reason: str) -> DataFileError:
        return DataFileError(
            f"The log of {store.url} describes the split {file.path} wrongly: {reason}.", url=store.url, path=file.path
        )

    read = _reads(file, store)
    columns = pa.schema([field for field in plan.schema if field.name in partitions])
    whole = splits.SplitFile(
        path=file.path,
        size_bytes=file.size_bytes or _size(file.path, store),
        num_records=file.row_count,
        constants=Constants(
            texts=file.partition_values, columns=columns, refuse=refuse, known=change_constants(file.change)
        ),
    )
    if file.share is not None:
        whole = replace(whole, chunks=splits.chunks_of(read, whole, file.share))
    yield from splits.read_split_batches(read, plan, whole)


def _reads(file: ScanFile, store: Store) -> Read:
    """Raises LogError where the path of `file` is outside the table."""
    refuse_escape(file.path, root_url=store.url, clones=False)
    return lambda offset, length: store.read(file.path, start=offset, end=offset + length)


def _size(path: str, store: Store) -> int:
    entry = store.stat(path)
    return 0 if entry is None else entry.size_bytes  # the reader then raises: the split is gone
