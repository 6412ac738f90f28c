"""Rows out of one Parquet file as a stream of Arrow batches of exactly the wanted schema.

Knows Parquet and Arrow; no log, no store: it is given an open file, and what its columns are called there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tablefeed.data.conform import Conformer, no_columns
from tablefeed.data.retype import LossyConversionError
from tablefeed.errors import DataFileError

BATCH_ROWS = 65_536
"""Rows of a batch: what Spark takes three times as fast as batches of 8,000, and small enough to hold a few."""

_WHOLE_CHUNK_BYTES = 64 * 1024 * 1024
# A row group's columns are read in one request each up to here, which object stores like; beyond, piece by piece,
# so that a file of one huge row group is never held whole.
_PIECE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """What is read from every file of a table; small, and pickled to whoever reads.

    `schema` is what each batch has: names, order, types and nullability. `stored` is the same shape with the names
    that the files use, at every depth (column mapping by name); None, the usual case, means the same names.
    `url` names the table in errors.
    """

    url: str
    schema: pa.Schema
    stored: pa.Schema | None = None
    batch_rows: int = BATCH_ROWS

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise ValueError(f"a batch has at least one row: batch_rows={self.batch_rows}")
        if self.stored is not None and len(self.stored) != len(self.schema):
            raise ValueError("the stored schema must have the shape of the wanted one")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """What is particular to one file: its `path` in errors, and its partition values by logical column name."""

    path: str
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)


def read_batches(
    source: Any, plan: ReadPlan, file: FileColumns, *, row_groups: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the file's rows in file order, in batches of `plan.batch_rows` (the last is shorter; none is empty).

    `source` is what pyarrow.parquet.ParquetFile takes; it is not closed. Batches cross row groups. As order is kept
    and nothing is dropped, the running count of rows is the row position that a deletion vector speaks of (from the
    first of `row_groups` where these are given, which must ascend).

    A column that the file lacks is null; one with a constant takes it even if the file has the column too; a column
    that is not wanted is not read. With no column to read, the rows are counted from the footer alone.
    Raises DataFileError for a file that is gone, damaged, or of types that cannot be read as wanted without loss.
    """
    # Any: a path, a Python file or an Arrow file, as ParquetFile says.
    try:
        yield from _read(source, plan, file, row_groups)
    except FileNotFoundError as error:
        raise DataFileError(
            f"The data file {file.path} of {plan.url} is gone while the log still names it. It was removed by hand, "
            f"or by a VACUUM with a retention shorter than this reader is behind: restore it, or start anew.",
            url=plan.url,
            path=file.path,
            error_class="DELTA_FILE_NOT_FOUND",
        ) from error
    except LossyConversionError as error:
        raise DataFileError(
            f"The data file {file.path} of {plan.url} does not fit the table's schema: {error}. "
            f"Rewrite the file with the table's types.",
            url=plan.url,
            path=file.path,
        ) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last for a footer whose names are no text
        raise DataFileError(
            f"The data file {file.path} of {plan.url} cannot be read as Parquet: {error}. "
            f"Restore the file from a copy, or remove it from the table.",
            url=plan.url,
            path=file.path,
        ) from error


def _read(source: Any, plan: ReadPlan, file: FileColumns, row_groups: Sequence[int] | None) -> Iterator[pa.RecordBatch]:
    parquet = _open(source)
    conform = Conformer(parquet.schema_arrow, plan.schema, stored=plan.stored, constants=file.constants)
    chosen = list(range(parquet.num_row_groups) if row_groups is None else row_groups)
    columns = list(conform.source_names)
    if not columns:
        yield from map(conform, _counted(parquet.metadata, chosen, plan.batch_rows))
        return
    if max((parquet.metadata.row_group(i).total_byte_size for i in chosen), default=0) > _WHOLE_CHUNK_BYTES:
        parquet = _open(source, metadata=parquet.metadata, buffer_size=_PIECE_BYTES)
    # One thread: the caller runs as many readers as it has cores. Row groups are not read ahead (memory).
    for batch in parquet.iter_batches(plan.batch_rows, row_groups=chosen, columns=columns, use_threads=False):
        if batch.num_rows:
            yield conform(batch)


def _open(source: Any, **options: Any) -> pq.ParquetFile:
    # INT96 carries nanoseconds of any date: as microseconds it fits 64 bits, as nanoseconds it would wrap (1677-2262).
    return pq.ParquetFile(source, coerce_int96_timestamp_unit="us", pre_buffer=False, **options)


def _counted(metadata: pq.FileMetaData, row_groups: Sequence[int], batch_rows: int) -> Iterator[pa.RecordBatch]:
    remaining = sum(metadata.row_group(i).num_rows for i in row_groups)
    while remaining > 0:
        yield no_columns(min(batch_rows, remaining))
        remaining -= batch_rows
