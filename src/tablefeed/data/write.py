"""Rows into Parquet files, with their statistics. Knows Parquet and partitions; no log, and files only as given.

Batches come small (Spark's have 10,000 rows) and are gathered into windows, split by partition, and written as row
groups of about a million rows. Memory never holds more than one window and `buffered_bytes` of rows that wait for their
row group.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import BinaryIO, Literal

import pyarrow as pa

from tablefeed.data.conform import Conformer
from tablefeed.data.parquet_file import OpenParquet, codecs_that_save
from tablefeed.data.partition import PartitionValues, Waiting, by_partition, empty_is_null, hashable
from tablefeed.data.required import refuse_nulls
from tablefeed.data.statistics import all_leaves
from tablefeed.data.windows import windows
from tablefeed.model.statistics import FileStatistics, LeafPath

_MIB = 1024 * 1024

Compression = Literal["snappy", "zstd", "gzip", "brotli", "lz4", "none"]
"""Arrow's names of the codecs that Parquet readers support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLayout:
    """How rows become files; small, and pickled to whoever writes.

    `schema` is the rows' schema in the names that files have, `partition_by` some of its columns. The partition
    columns are not stored in the files unless `stores_partitions`, then behind the others: every reader takes them from
    the log, and files without them are smaller and cannot contradict it. (Delta-Spark stores them unless
    `delta.writePartitionColumnsToParquet` is false.) Columns and struct members of type null are not stored either:
    readers take an absent one for the same, also after it got another type.

    `stored_as` has the shape of `schema` and the names and field ids that the files' columns get, None: the schema's
    own. Statistics use those names. `leaves` are the columns that get statistics, None all of them.
    """

    schema: pa.Schema
    partition_by: tuple[str, ...] = ()
    stored_as: pa.Schema | None = None
    leaves: tuple[LeafPath, ...] | None = None
    stores_partitions: bool = False
    row_group_rows: int = 1024 * 1024
    """Measured: row groups of 10,000 rows write at 0.6 of this one's speed, and none above is faster."""
    row_group_bytes: int = 128 * _MIB
    """In memory. The size of Spark's row groups, and of the splits that its readers make."""
    buffered_bytes: int = 128 * _MIB
    """The most bytes of waiting rows of all partitions: one row group, as for a task without partitions."""
    max_file_bytes: int = 1024 * _MIB
    """A file is closed above this size, which is the target size of OPTIMIZE."""
    most_file_rows: int | None = None
    """No file has more; None: any number."""
    compression: Compression | None = None
    """None: Snappy, which is what Delta-Spark writes, in the columns that it makes much smaller."""
    data_pages: str = "1.0"
    """The version of data pages; Spark's vectorised reader takes this one at full speed."""

    def of_files_of(self, target_bytes: int | None) -> FileLayout:
        """The same with files of about `target_bytes`, whose row groups are no larger; None: as it is.

        A file is closed at the end of a row group, so a small target needs small row groups; but not below a megabyte,
        where the footer would be as large as the rows.
        """
        if target_bytes is None:
            return self
        row_group_bytes = min(self.row_group_bytes, max(target_bytes, _MIB))
        return replace(self, max_file_bytes=target_bytes, row_group_bytes=row_group_bytes)

    def __post_init__(self) -> None:
        if len(self.columns) == 0:
            raise ValueError(f"no column of {self.schema.names} would be stored: partition_by={self.partition_by}")
        if self.most_file_rows is not None and self.most_file_rows < 1:
            raise ValueError(f"a file has at least one row: most_file_rows={self.most_file_rows}")
        absent = set(self.partition_by).difference(self.schema.names)
        if absent:
            raise ValueError(f"partition columns {sorted(absent)} are not in the schema")

    @property
    def columns(self) -> pa.Schema:
        """The columns of `schema` that are stored, except partition columns: those that get statistics."""
        return pa.schema(_without_nulls(f for f in self.schema if f.name not in self.partition_by))

    @property
    def stored(self) -> pa.Schema:
        """The columns of `schema` that the files have."""
        partitions = [self.schema.field(name) for name in self.partition_by] if self.stores_partitions else []
        return pa.schema([*self.columns, *partitions])

    def as_stored(self, columns: pa.Schema) -> pa.Schema:
        """Some of the columns, with the names and ids that the files use."""
        if self.stored_as is None:
            return columns
        names = dict(zip(self.schema.names, self.stored_as, strict=True))
        return pa.schema(_without_nulls(names[field.name] for field in columns))

    @property
    def of_files(self) -> pa.Schema:
        """The schema of the files."""
        return self.as_stored(self.stored)


def _without_nulls(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """`fields` without those of type null, also in structs."""
    kept = (field for field in fields if not pa.types.is_null(field.type))
    structs = pa.types.is_struct
    return [f.with_type(pa.struct(_without_nulls(f.type))) if structs(f.type) else f for f in kept]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file to be written: its `path`, and a context that opens it, keeps it on success and drops it on an error."""

    path: str
    opened: AbstractContextManager[BinaryIO]


OpenFile = Callable[[PartitionValues, int], NewFile]
"""Names a new file for the partition with these values; the number counts the files of one `write_files` from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A complete file. `partition_values` are typed, by column, null for the null partition."""

    path: str
    size_bytes: int
    statistics: FileStatistics
    partition_values: PartitionValues


def write_files(batches: Iterable[pa.RecordBatch], layout: FileLayout, open_file: OpenFile) -> list[WrittenFile]:
    """Write all rows and give the files, each complete and closed; none where there are no rows.

    Batches have exactly the layout's schema. Within a partition rows keep their order.

    On an error the contexts of the open files are left with it. Files that are complete by then are not reported: the
    caller, which named them, must delete them. InvalidRowsError: a null in a required column (an empty text is null in
    a partition column). Whatever `batches` or a file raises passes through.
    """
    writing = FilesWriting(layout, open_file)
    try:
        # Splitting by partition needs three times a window's memory, besides the waiting rows. Smaller windows are as
        # fast.
        most_bytes = layout.row_group_bytes // (8 if layout.partition_by else 2)
        for window in windows(batches, most_rows=layout.row_group_rows, most_bytes=most_bytes):
            writing.add(window)
            del window  # its batch is as large as a window or larger, and the next one is made while it is held
        return writing.finish()
    except BaseException as error:
        writing.abort(error)
        raise


class _Partition(Waiting):
    """One partition's rows that wait for their row group, and its open file if it has one."""

    file: OpenParquet | None = None
    file_rows = 0


_MOST_OPEN_FILES = 64
# Far below the default limit of 1,024 handles per process. At the limit, the file opened first is closed.


class FilesWriting:
    """Writes as `write_files`, for rows that come in pieces. `finish` or `abort` ends it."""

    def __init__(self, layout: FileLayout, open_file: OpenFile) -> None:
        self._layout, self._open_file = layout, open_file
        self._stored = layout.stored
        self._of_files = layout.of_files
        found = pa.schema([layout.schema.field(name) for name in self._stored.names])
        as_found = self._of_files.equals(found, check_metadata=True)
        self._as_in_files = None if as_found else Conformer(found, self._of_files, stored=self._stored)
        self._leaves = all_leaves(layout.as_stored(layout.columns)) if layout.leaves is None else layout.leaves
        self._partitions: dict[Hashable, _Partition] = {}
        self._open_partitions: list[_Partition] = []
        self._done: list[WrittenFile] = []
        self._opened_count = 0

    def add(self, window: pa.Table) -> None:
        """Writes the rows of `window`, or keeps them until a row group is full."""
        layout = self._layout
        most = {"most_rows": layout.row_group_rows, "most_bytes": layout.row_group_bytes}
        window = empty_is_null(window, layout.partition_by)
        refuse_nulls(window, error_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED")
        for values, rows in by_partition(window, layout.partition_by):
            partition = self._partitions.setdefault(hashable(values), _Partition(values))
            rows = rows.select(self._stored.names)
            if not partition.has_room_for(rows, **most):
                self._write_row_group(partition)
            partition.add(rows)
            if not partition.has_room_for(rows, **most):  # so memory does not hold the next such rows besides
                self._write_row_group(partition)
        self._make_room()

    def _make_room(self) -> None:
        # Largest first, and down to half of the limit: this gives fewer and larger row groups than one at a time.
        waiting = sum(p.size_bytes for p in self._partitions.values())
        if waiting <= self._layout.buffered_bytes:
            return
        for partition in sorted(self._partitions.values(), key=lambda p: p.size_bytes, reverse=True):
            waiting -= partition.size_bytes
            self._write_row_group(partition)
            if waiting <= self._layout.buffered_bytes // 2:
                return

    def finish(self) -> list[WrittenFile]:
        """Gives the files, each complete and closed."""
        for partition in self._partitions.values():
            if partition.row_count:
                self._write_row_group(partition)
            self._close(partition)
        return self._done

    def abort(self, error: BaseException) -> None:
        """Drops the open files because of `error`."""
        for partition in self._partitions.values():
            if partition.file is not None:
                partition.file.abort(error)

    def _write_row_group(self, partition: _Partition) -> None:
        rows, most = partition.take(), self._layout.most_file_rows
        while most is not None and rows.num_rows > (room := most - partition.file_rows):
            self._write_rows(partition, rows.slice(0, room))
            rows = rows.slice(room)
        self._write_rows(partition, rows)

    def _write_rows(self, partition: _Partition, rows: pa.Table) -> None:
        if self._as_in_files is not None:
            rows = pa.Table.from_batches([self._as_in_files(batch) for batch in rows.to_batches()], self._of_files)
        if partition.file is None:
            partition.file = self._open(partition.values, rows)
            self._open_partitions.append(partition)
        partition.file_rows += rows.num_rows
        partition.file.write_row_group(rows)
        if (
            partition.file.size_bytes >= self._layout.max_file_bytes
            or partition.file_rows == self._layout.most_file_rows
        ):
            self._close(partition)

    def _open(self, values: PartitionValues, rows: pa.Table) -> OpenParquet:
        if len(self._open_partitions) >= _MOST_OPEN_FILES:
            self._close(self._open_partitions[0])
        new = self._open_file(values, self._opened_count)
        self._opened_count += 1
        options = {
            "compression": self._layout.compression or codecs_that_save(rows),
            "data_page_version": self._layout.data_pages,
        }
        return OpenParquet(new.path, new.opened, self._of_files, leaves=self._leaves, options=options)

    def _close(self, partition: _Partition) -> None:
        if partition.file is None:
            return
        size_bytes, statistics = partition.file.finish()
        self._done.append(
            WrittenFile(
                path=partition.file.path,
                size_bytes=size_bytes,
                statistics=statistics,
                partition_values=partition.values,
            )
        )
        partition.file, partition.file_rows = None, 0
        self._open_partitions.remove(partition)
