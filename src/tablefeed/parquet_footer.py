"""What every reader of a Parquet file must know before it trusts the footer: checkpoints and data files.

Knows pyarrow and no log. pyarrow lets no error out of `RowGroupMetaData.column` and
`ColumnChunkMetaData.statistics`: Arrow's ends the process there.
"""

from __future__ import annotations

import io
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

MOST_IN_A_LIST = 100_000
"""The most columns, or row groups, of a Parquet file. Arrow allocates memory for the number that the footer claims
before it has read one: about 700 bytes for each column of a row group. Arrow's own limit is ten times as high."""


def open_parquet(source: BinaryIO | pa.NativeFile, **options: Any) -> pq.ParquetFile:
    """Opens a file whose footer and pages may be damaged, with the `options` of `ParquetFile`. `check_columns` it next.

    Where pages have checksums, a damaged page raises an error instead of giving a wrong value. INT96 has nanoseconds at
    any date; it is read as microseconds, because nanoseconds in 64 bits would overflow outside the years 1677 to 2262.
    """
    return pq.ParquetFile(
        source,
        coerce_int96_timestamp_unit="us",
        page_checksum_verification=True,
        thrift_container_size_limit=MOST_IN_A_LIST,
        **options,
    )


def check_counts(metadata: pq.FileMetaData) -> None:
    """Raises ArrowInvalid for a row group that has more or fewer columns than the schema."""
    for number in range(metadata.num_row_groups):
        count = metadata.row_group(number).num_columns
        if count != metadata.num_columns:
            raise pa.ArrowInvalid(f"Row group {number} has {count} columns, but the schema has {metadata.num_columns}")


def check_columns(metadata: pq.FileMetaData) -> None:
    """Raises OSError or ArrowInvalid if a column of a row group is damaged, is encrypted, or is not in the schema.

    Call it once before `RowGroupMetaData.column`, which ends the process for such a column. It takes about 0.1 ms.
    """
    check_counts(metadata)
    # A reader that reads ahead checks the columns of all row groups before it reads its first byte. This one has none.
    reader = pq.ParquetFile(pa.PythonFile(_NoBytes(), mode="r"), metadata=metadata, pre_buffer=True)
    try:
        next(reader.iter_batches(1, use_threads=False), None)
    except _NoBytesError as error:
        error.__traceback__ = None  # the reader keeps the error, which must not keep the reader


def null_count(chunk: pq.ColumnChunkMetaData, column: pq.ColumnSchema) -> int | None:
    """Gives the number of nulls in a chunk of `column` by the footer's statistics; None where they do not say it.

    Raises ArrowInvalid if the chunk has another type than its column. pyarrow would end the process for its statistics.
    """
    if chunk.physical_type != column.physical_type:
        stored = chunk.physical_type
        raise pa.ArrowInvalid(
            f"A chunk of column {column.path} is {stored}, but the schema says {column.physical_type}"
        )
    known = chunk.statistics
    return known.null_count if known is not None and known.has_null_count else None


class _NoBytesError(Exception):
    """A file was read that has no bytes."""


class _NoBytes(io.RawIOBase):
    """A file of any size of which no byte can be read."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    _at = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = 1 << 60 if whence == io.SEEK_END else offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, _size: int = -1) -> bytes:
        raise _NoBytesError
