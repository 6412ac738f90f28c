"""One task of a batch, as small frozen values that are sent to where the rows are read, and how it is read.

A task is planned where the log is known and read where it is not, so it holds everything that reading needs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, Self

from tablefeed.delta import names
from tablefeed.feed.arguments import filtered
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.log.changes import ChangedFile
from tablefeed.model.actions import AddFile
from tablefeed.model.schema import DataType, Field
from tablefeed.store import Store, open_store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.predicate import RowFilter

BATCH_ROWS = 65_536
"""Rows of one Arrow batch. Measured: with 8k rows the transfer to Spark costs up to 3x; more than 64k gain nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """How the commit of `version` changed the rows of a file.

    `committed_at_us` is its time in microseconds since 1970 UTC, None where it is no longer known. `type` is the
    `_change_type` of all rows; None where the file has that column and gives it row by row.
    """

    type: str | None
    version: int
    committed_at_us: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFile:
    """A data file to read: its decoded path, size in bytes, and partition values as in the log.

    `change` is how its rows changed, None outside a change feed. `share` is a range of bytes; its end is excluded, and
    a bound may be None. Of the file only the row groups whose middle is in the range are read, of a split the blocks
    that begin in it. None: all of the file.
    """

    path: str
    size_bytes: int
    partition_values: Mapping[str, str | None]
    change: RowChange | None = None
    share: tuple[int | None, int | None] | None = None


ChangedRows = tuple[AddFile | ChangedFile, RowChange | None]
"""Rows of a file that the log names, and how they changed; None: outside a change feed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumn:
    """The name of a partition column in the log, and its type."""

    physical_name: str
    type: DataType


class LoggedColumns(Protocol):
    """How a table's columns are found in what the log says of a file."""

    @property
    def partitions(self) -> Mapping[str, PartitionColumn]:
        """The columns that have values in partition values, not in statistics, by logical name."""

    def path_in_log(self, fields: Sequence[Field]) -> tuple[str, ...]:
        """Gives the path of a column in statistics and partition values; `fields` lead to it from the schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask(ABC):
    """The files of one table that one task reads, in order, and how the table's columns are found in them.

    Each format has its own: `DeltaTask` and `SplitTask`. `rows` filters the delivered rows; None: all rows.
    """

    url: str
    storage_options: Mapping[str, str] = field(repr=False)
    columns: LoggedColumns
    files: tuple[ScanFile, ...] = ()
    rows: RowFilter | None = None

    def of(self, adds: Iterable[AddFile]) -> Self:
        """Gives this task with the files of `adds` instead of its own."""
        return replace(self, files=tuple(self.file(add) for add in adds))

    def of_changes(self, changes: Iterable[ChangedRows]) -> Self:
        """Gives this task with the files of `changes` instead of its own."""
        return replace(self, files=tuple(self.file(file, change) for file, change in changes))

    @abstractmethod
    def file(self, file: AddFile | ChangedFile, change: RowChange | None = None) -> ScanFile:
        """Gives what the task needs to read `file`.

        A file that a commit changed must have the values of exactly its partition columns
        (`change_partitions.partitioned`).
        """

    @abstractmethod
    def read(self, schema: pa.Schema, store: Store, *, positions: str | None) -> Iterator[pa.RecordBatch]:
        """Gives the unfiltered rows of the task as batches of `schema`. See `read_task`."""

    @abstractmethod
    def row_groups(self, file: ScanFile, store: Store, *, most: int) -> list[tuple[int, int]]:
        """Gives the byte that decides which share a row group of `file` is in, and its size, in ascending order.

        A split is divided into about `most` parts or fewer. Raises TablefeedError where the file cannot be read.
        """


def read_task(
    task: ScanTask, schema: pa.Schema, *, store: Store | None = None, positions: str | None = None
) -> Iterator[pa.RecordBatch]:
    """Gives the rows of `task` as batches of exactly `schema`, of up to 64k rows, which may be from several files.

    `positions` names a column of `schema`, of longs, that gets each row's position in its file, from 0; Parquet only.
    Raises DataFileError where a file is gone or differs from what the log says, LogError where its path is outside the
    table and the storage options do not allow that.
    """
    from tablefeed.data.windows import coalesced

    return coalesced(_read_rows(task, schema, store, positions), most_rows=BATCH_ROWS)


def _read_rows(
    task: ScanTask, schema: pa.Schema, store: Store | None, positions: str | None
) -> Iterator[pa.RecordBatch]:
    store = store or task_store(task)
    if task.rows is None:
        return task.read(schema, store, positions=positions)
    import pyarrow as pa

    read = pa.schema([*schema, *(field for field in task.rows.fields if field.name not in schema.names)])
    rows = task.read(read, store, positions=positions)
    return filtered(rows, task.rows.condition, schema, url=task.url)


def change_constants(change: RowChange | None) -> dict[str, pa.Scalar]:
    """Gives the values of the change feed's columns that are the same for all rows of `change`; none for None."""
    if change is None:
        return {}
    import pyarrow as pa

    from tablefeed.data.scalars import scalar_of

    constants = {
        names.COMMIT_VERSION: scalar_of(change.version, pa.int64()),
        names.COMMIT_TIMESTAMP: scalar_of(change.committed_at_us, pa.timestamp("us", tz="UTC")),
    }
    if change.type is not None:
        constants[names.CHANGE_TYPE] = scalar_of(change.type, pa.string())
    return constants


def task_store(task: ScanTask) -> Store:
    """Gives the store of the table of `task`; a process keeps the last 32 stores open."""
    return _store(task.url, tuple(sorted(task.storage_options.items())))


@lru_cache(maxsize=32)
def _store(url: str, storage_options: tuple[tuple[str, str], ...]) -> Store:
    return open_store(url, for_store(dict(storage_options)))
