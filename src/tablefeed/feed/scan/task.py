"""One task of a batch, as small frozen values that are sent to where the rows are read, and how it is read.

A task is planned where the log is known and read where it is not, so it holds everything that reading needs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tablefeed.delta import names, partition_values
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.column_mapping import mapping_mode, physical_name, stored_schema
from tablefeed.delta.stats.stats_text import num_records
from tablefeed.errors import DataFileError, ObjectNotFoundError, naming
from tablefeed.feed.arguments import filtered
from tablefeed.feed.snapshot.table_files import TableFiles, for_store
from tablefeed.model.actions import AddFile, DeletionVector, Metadata
from tablefeed.model.schema import DataType, Struct
from tablefeed.store import Store, open_store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.predicate import RowFilter
    from tablefeed.data.selection import RowSelection
    from tablefeed.feed.scan.vectors import VectorReader
    from tablefeed.feed.snapshot.table_log import Snapshot

SPLIT_SUFFIX = ".split"

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
    """One data file to read: its decoded path, size in bytes, partition values as in the log, and which rows.

    A row is delivered if it is not in `deletion_vector` and, where `only_in` is given, if it is in that. `change` is
    how its rows changed, None outside a change feed. `share` is a range of bytes; its end is excluded, and a
    bound may be None. Of the file only the row groups whose middle is in the range are read, of a split the blocks that
    begin in it. None: all of the file.
    """

    path: str
    size_bytes: int
    partition_values: Mapping[str, str | None]
    deletion_vector: DeletionVector | None = None
    only_in: DeletionVector | None = None
    change: RowChange | None = None
    share: tuple[int | None, int | None] | None = None
    row_count: int | None = None
    """The row count of a split in the log; None: the log has none, or the file is not a split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionColumn:
    """The name of a partition column in the log, and its type."""

    physical_name: str
    type: DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """How a table's columns are found in files: its partition columns, by logical name, and the columns as stored.

    `stored` has the stored columns by logical name; None where files use the table's own names. With `by_file`, files
    may be partitioned by different columns: `partitions` then has all columns, and those with a value in a `ScanFile`
    are the partition columns of that file.
    """

    partitions: Mapping[str, PartitionColumn]
    stored: Mapping[str, pa.Field] | None = None
    by_file: bool = False

    def read(
        self, task: ScanTask, schema: pa.Schema, store: Store, *, positions: str | None
    ) -> Iterator[pa.RecordBatch]:
        """Gives the rows of the files of `task`, which are Parquet, as batches of `schema`. See `read_task`."""
        return _read_files(task, schema, store, positions)

    def row_groups(self, file: ScanFile, task: ScanTask, store: Store, *, most: int) -> list[tuple[int, int]]:  # noqa: ARG002 - as the file has them
        """Gives the byte that decides which share a row group of `file` is in, and its size, in ascending order.

        A split is divided into about `most` parts or fewer. Raises TablefeedError where the file cannot be read.
        """
        from tablefeed.data.read import row_group_places

        with TableFiles(store, storage_options=task.storage_options).open_input(file.path) as source:
            return row_group_places(source)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitColumns(TableColumns):
    """How the columns of a table whose files are splits are found: by their names.

    `partition_columns` may be stored in splits too. `partitions` is empty: the statistics have their values.
    """

    partition_columns: frozenset[str]

    def read(
        self,
        task: ScanTask,
        schema: pa.Schema,
        store: Store,
        *,
        positions: str | None,  # noqa: ARG002 - Parquet only
    ) -> Iterator[pa.RecordBatch]:
        """See `TableColumns`."""
        return _read_splits(task, schema, store, self.partition_columns)

    def row_groups(self, file: ScanFile, task: ScanTask, store: Store, *, most: int) -> list[tuple[int, int]]:  # noqa: ARG002 - splits are below the table
        """See `TableColumns`: the blocks of its doc stores."""
        from tablefeed.feed.scan.split_scan import split_places

        return split_places(file.path, file.size_bytes, store, most=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """The files of one table that one task reads, in order, and how the table's columns are found in them.

    `rows` filters the delivered rows; None: all rows.
    """

    url: str
    storage_options: Mapping[str, str]
    files: tuple[ScanFile, ...]
    columns: TableColumns
    rows: RowFilter | None = None


def scan_file(add: AddFile) -> ScanFile:
    """Gives what a task needs to read the file of `add`."""
    return ScanFile(
        path=add.path,
        size_bytes=add.size_bytes,
        partition_values=add.partition_values,
        deletion_vector=add.deletion_vector,
        row_count=num_records(add.stats) if add.path.endswith(SPLIT_SUFFIX) else None,
    )


def columns_of(
    read: Snapshot,
    schema: Struct | None = None,
    *,
    partitioned_by: Collection[str] | None = None,
    by_file: bool = False,
) -> TableColumns:
    """Gives how the columns of `schema`, by default that of `read`, are found in files of the table as of `read`.

    See `table_columns` for the rest.
    """
    from tablefeed.feed.snapshot.delta_log import DeltaSnapshot

    if not isinstance(read, DeltaSnapshot):
        return SplitColumns(partitions={}, partition_columns=frozenset(read.metadata.partition_columns))
    schema, url = read.schema if schema is None else schema, read.log.url
    return table_columns(schema, read.metadata, url=url, partitioned_by=partitioned_by, by_file=by_file)


def table_columns(
    schema: Struct,
    metadata: Metadata,
    *,
    url: str,
    partitioned_by: Collection[str] | None = None,
    by_file: bool = False,
) -> TableColumns:
    """Gives how the columns of `schema` are found in files of a Delta table.

    `partitioned_by` are the names in the log of the files' partition columns; None: those of `metadata`. With `by_file`
    files may be partitioned by different columns. Raises LogError for an invalid column mapping.
    """
    stored = stored_schema(schema, mapping_mode(TableProperties.of(metadata), url=url), url=url)
    logged = {f.name: f.name if stored is None else physical_name(f) for f in schema}
    if by_file:
        partitioned_by = logged.values()
    elif partitioned_by is None:
        partitioned_by = [logged[name] for name in metadata.partition_columns if name in logged]
    return TableColumns(
        partitions={
            f.name: PartitionColumn(physical_name=logged[f.name], type=f.type)
            for f in schema
            if logged[f.name] in partitioned_by
        },
        stored=None if stored is None else dict(zip(schema.names, stored, strict=True)),
        by_file=by_file,
    )


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
        return task.columns.read(task, schema, store, positions=positions)
    import pyarrow as pa

    read = pa.schema([*schema, *(field for field in task.rows.fields if field.name not in schema.names)])
    rows = task.columns.read(task, read, store, positions=positions)
    return filtered(rows, task.rows.condition, schema, url=task.url)


def _read_files(task: ScanTask, schema: pa.Schema, store: Store, positions: str | None) -> Iterator[pa.RecordBatch]:
    from tablefeed.data.read import FileColumns, ReadPlan, Share, read_batches
    from tablefeed.feed.scan.vectors import VectorReader

    plan = ReadPlan(schema=schema, stored=_stored(task.columns, schema), batch_rows=BATCH_ROWS)
    files = TableFiles(store, storage_options=task.storage_options)
    vectors = VectorReader(files)
    for file in task.files:
        try:
            source = files.open_input(file.path)
        except ObjectNotFoundError as error:
            raise DataFileError(
                f"The data file {file.path} of {store.url} is gone, though the log still names it: VACUUM or another "
                "hand removed it. Restart from a newer version, or keep deleted files longer "
                "(delta.deletedFileRetentionDuration).",
                url=store.url,
                path=file.path,
                error_class="DELTA_FILE_NOT_FOUND",
            ) from error
        with source, naming(store.url):
            columns = FileColumns(
                path=file.path,
                constants=_constants(file, task.columns, schema, store.url),
                selection=_selection(file, vectors),
                share=None if file.share is None else Share(begin=file.share[0], end=file.share[1]),
                positions=positions,
            )
            for batch in read_batches(source, plan, columns):
                _check_told(file, batch, store.url)
                yield batch


def _read_splits(
    task: ScanTask, schema: pa.Schema, store: Store, partitions: frozenset[str]
) -> Iterator[pa.RecordBatch]:
    from tablefeed.data.read import ReadPlan
    from tablefeed.feed.scan.split_scan import SplitShare, read_split

    plan = ReadPlan(schema=schema, stored=None, batch_rows=BATCH_ROWS)
    for file in task.files:
        split = SplitShare(
            path=file.path,
            size_bytes=file.size_bytes,
            row_count=file.row_count,
            partition_values=file.partition_values,
            known={} if file.change is None else change_constants(file.change),
            share=file.share,
        )
        with naming(store.url):
            yield from read_split(split, plan, store, partitions=partitions)


def _stored(columns: TableColumns, schema: pa.Schema) -> pa.Schema | None:
    """The columns of `schema` as they are in files; a column that the table does not have keeps its name."""
    import pyarrow as pa

    if columns.stored is None:
        return None
    return pa.schema([columns.stored.get(field.name, field) for field in schema])


def _selection(file: ScanFile, vectors: VectorReader) -> RowSelection | None:
    from tablefeed.data.selection import RowSelection

    if file.deletion_vector is None and file.only_in is None:
        return None
    return RowSelection(
        without=None if file.deletion_vector is None else vectors.positions(file.deletion_vector, of_file=file.path),
        only=None if file.only_in is None else vectors.positions(file.only_in, of_file=file.path),
    )


def _constants(file: ScanFile, columns: TableColumns, schema: pa.Schema, url: str) -> dict[str, pa.Scalar]:
    import pyarrow as pa

    def refuse(reason: str) -> DataFileError:
        return DataFileError(
            f"The log of {url} describes the data file {file.path} wrongly: {reason}.", url=url, path=file.path
        )

    constants = {} if file.change is None else change_constants(file.change)
    for name, column in columns.partitions.items():
        has_value = not columns.by_file or column.physical_name in file.partition_values
        if has_value and name in schema.names:
            text = file.partition_values.get(column.physical_name)
            value = partition_values.parse(text, column.type, refuse=refuse)
            constants[name] = pa.scalar(value, type=schema.field(name).type)
    return constants


def change_constants(change: RowChange) -> dict[str, pa.Scalar]:
    """Gives the values of the change feed's columns that are the same for all rows of `change`."""
    import pyarrow as pa

    constants = {
        names.COMMIT_VERSION: pa.scalar(change.version, pa.int64()),
        names.COMMIT_TIMESTAMP: pa.scalar(change.committed_at_us, pa.timestamp("us", tz="UTC")),
    }
    if change.type is not None:
        constants[names.CHANGE_TYPE] = pa.scalar(change.type, pa.string())
    return constants


def _check_told(file: ScanFile, batch: pa.RecordBatch, url: str) -> None:
    """Raises DataFileError where the feed needs `_change_type` and a row of `file` has none."""
    if file.change is None or names.CHANGE_TYPE not in batch.schema.names or not batch[names.CHANGE_TYPE].null_count:
        return
    raise DataFileError(
        f"The file {file.path} of the changes of version {file.change.version} of {url} does not say of each row what "
        f"became of it ({names.CHANGE_TYPE} is null or missing). Read from a later version.",
        url=url,
        path=file.path,
    )


def task_store(task: ScanTask) -> Store:
    """Gives the store of the table of `task`; a process keeps the last 32 stores open."""
    return _store(task.url, tuple(sorted(task.storage_options.items())))


@lru_cache(maxsize=32)
def _store(url: str, storage_options: tuple[tuple[str, str], ...]) -> Store:
    return open_store(url, for_store(dict(storage_options)))
