"""A task over Parquet files of a Delta table: which of a file's rows count, and how its columns are found."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import SEEK_END
from typing import TYPE_CHECKING

from tablefeed.delta import names, partition_values
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.column_mapping import mapping_mode, physical_name
from tablefeed.delta.schema.stored_schema import stored_schema
from tablefeed.errors import DataFileError, ObjectNotFoundError, naming
from tablefeed.feed.scan.task import BATCH_ROWS, PartitionColumn, RowChange, ScanFile, ScanTask, change_constants
from tablefeed.feed.snapshot.table_files import TableFiles
from tablefeed.log.changes import ChangedFile
from tablefeed.model.actions import AddFile, DeletionVector, Metadata
from tablefeed.model.schema import Field, Struct
from tablefeed.store import Store

if TYPE_CHECKING:
    import pyarrow as pa
    from pyroaring import BitMap64

    from tablefeed.data.read import RowSelection

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFile(ScanFile):
    """A row is delivered if it is not in `deletion_vector` nor `without`, and in `only_in` and `only` where given.

    `without` and `only` are positions in the file, from 0.
    """

    deletion_vector: DeletionVector | None = None
    only_in: DeletionVector | None = None
    only: BitMap64 | None = None
    without: BitMap64 | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaColumns:
    """How a Delta table's columns are found in files: its partition columns, by logical name, and those stored.

    `stored` has the stored columns by logical name; None where files use the table's own names. With `by_file`, files
    may be partitioned by different columns: `partitions` then has all columns, and those with a value in a file are the
    partition columns of that file.
    """

    partitions: Mapping[str, PartitionColumn]
    stored: Mapping[str, pa.Field] | None = None
    by_file: bool = False

    def path_in_log(self, fields: Sequence[Field]) -> tuple[str, ...]:
        """See `LoggedColumns`."""
        return tuple(field.name if self.stored is None else physical_name(field) for field in fields)


def delta_columns(
    schema: Struct,
    metadata: Metadata,
    *,
    partitioned_by: Collection[str] | None = None,
    by_file: bool = False,
) -> DeltaColumns:
    """Gives how the columns of `schema` are found in files of a Delta table.

    `partitioned_by` are the names in the log of the files' partition columns; None: those of `metadata`. With `by_file`
    files may be partitioned by different columns. Raises LogError for an invalid column mapping.
    """
    stored = stored_schema(schema, mapping_mode(TableProperties.of(metadata)))
    logged = {f.name: f.name if stored is None else physical_name(f) for f in schema}
    if by_file:
        partitioned_by = logged.values()
    elif partitioned_by is None:
        partitioned_by = [logged[name] for name in metadata.partition_columns if name in logged]
    return DeltaColumns(
        partitions={
            f.name: PartitionColumn(physical_name=logged[f.name], type=f.type)
            for f in schema
            if logged[f.name] in partitioned_by
        },
        stored=None if stored is None else dict(zip(schema.names, stored, strict=True)),
        by_file=by_file,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaTask(ScanTask):
    """A task over files of a Delta table."""

    columns: DeltaColumns
    files: tuple[ParquetFile, ...] = ()

    def file(self, file: AddFile | ChangedFile, change: RowChange | None = None) -> ParquetFile:
        """See `ScanTask`."""
        return ParquetFile(
            path=file.path,
            size_bytes=file.size_bytes,
            partition_values=file.partition_values or {},
            deletion_vector=file.deletion_vector,
            only_in=file.only_in if isinstance(file, ChangedFile) else None,
            change=change,
        )

    def read(self, schema: pa.Schema, store: Store, *, positions: str | None) -> Iterator[pa.RecordBatch]:
        """See `ScanTask`."""
        from tablefeed.data.read import FileColumns, ReadPlan, read_batches

        plan = ReadPlan(schema=schema, stored=_stored(self.columns, schema), batch_rows=BATCH_ROWS)
        files = TableFiles(store, storage_options=self.storage_options)
        for file in self.files:
            try:
                source = files.open_input(file.path)
            except ObjectNotFoundError as error:
                raise DataFileError(
                    f"The data file {file.path} of {store.url} is gone, though the log still names it: VACUUM or "
                    "another hand removed it, or it is on the disk of another machine. Restart from a newer version, "
                    "or keep deleted files longer (delta.deletedFileRetentionDuration).",
                    url=store.url,
                    path=file.path,
                    error_class="DELTA_FILE_NOT_FOUND",
                ) from error
            with source, naming(store.url):
                _compare_size(file, source.seek(0, SEEK_END), store.url)
                columns = FileColumns(
                    path=file.path,
                    constants=_constants(file, self.columns, schema, store.url),
                    selection=_selection(file, files),
                    share=file.share,
                    positions=positions,
                )
                for batch in read_batches(source, plan, columns):
                    _check_change_types(file, batch, store.url)
                    yield batch

    def row_groups(self, file: ScanFile, store: Store, *, most: int) -> list[tuple[int, int]]:  # noqa: ARG002 - as the file has them
        """See `ScanTask`."""
        from tablefeed.data.read import row_group_places

        with TableFiles(store, storage_options=self.storage_options).open_input(file.path) as source:
            return row_group_places(source)


def _compare_size(file: ParquetFile, size_bytes: int, url: str) -> None:
    """Logs a warning where the file may not be the one that was committed. The log need not know a size, which is 0."""
    if file.size_bytes not in (0, size_bytes):
        logger.warning(
            "The data file %s of %s has %d bytes, but the log says %d. Its rows are read. If another program replaced "
            "the file after its commit, restore it from a copy.",
            file.path,
            url,
            size_bytes,
            file.size_bytes,
        )


def _stored(columns: DeltaColumns, schema: pa.Schema) -> pa.Schema | None:
    """The columns of `schema` as they are in files; a column that the table does not have keeps its name."""
    import pyarrow as pa

    if columns.stored is None:
        return None
    return pa.schema([columns.stored.get(field.name, field) for field in schema])


def _selection(file: ParquetFile, files: TableFiles) -> RowSelection | None:
    if all(each is None for each in (file.deletion_vector, file.only_in, file.only, file.without)):
        return None
    from tablefeed.data.read import RowSelection
    from tablefeed.feed.scan.vectors import deleted_positions

    without, only = (
        None if vector is None else deleted_positions(files, vector, of_file=file.path)
        for vector in (file.deletion_vector, file.only_in)
    )
    if file.only is not None:
        only = file.only if only is None else only & file.only
    if file.without is not None:
        without = file.without if without is None else without | file.without
    return RowSelection(without=without, only=only)


def _constants(file: ParquetFile, columns: DeltaColumns, schema: pa.Schema, url: str) -> dict[str, pa.Scalar]:
    from tablefeed.data.scalars import scalar_of

    def refuse(reason: str) -> DataFileError:
        return DataFileError(
            f"The log of {url} describes the data file {file.path} wrongly: {reason}.", url=url, path=file.path
        )

    constants = change_constants(file.change)
    for name, column in columns.partitions.items():
        has_value = not columns.by_file or column.physical_name in file.partition_values
        if has_value and name in schema.names:
            text = file.partition_values.get(column.physical_name)
            value = partition_values.parse(text, column.type, refuse=refuse)
            constants[name] = scalar_of(value, schema.field(name).type)
    return constants


def _check_change_types(file: ParquetFile, batch: pa.RecordBatch, url: str) -> None:
    """Raises DataFileError where the feed needs `_change_type` and a row of `file` has none."""
    if file.change is None or names.CHANGE_TYPE not in batch.schema.names or not batch[names.CHANGE_TYPE].null_count:
        return
    raise DataFileError(
        f"The file {file.path} of the changes of version {file.change.version} of {url} does not say of each row what "
        f"became of it ({names.CHANGE_TYPE} is null or missing). Read from a later version.",
        url=url,
        path=file.path,
    )
