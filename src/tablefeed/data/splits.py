"""Reads the rows of one split (the data file of an IndexTables table) as Arrow batches of the wanted schema.

This module builds the Arrow columns; `indextables` decodes the split's bytes. No log, no store: it gets a function that
reads a range of bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from tablefeed.data.conform import no_columns
from tablefeed.data.read import ReadPlan, Share
from tablefeed.data.required import RequiredColumns
from tablefeed.errors import TABLE, DataFileError, ObjectNotFoundError, UnsupportedFeatureError
from tablefeed.indextables.split import split_file as splits
from tablefeed.indextables.split.damage import DamagedSplitError, UnsupportedSplitError
from tablefeed.indextables.split.doc_store import Checksum, Read, read_blocks, unpacked
from tablefeed.indextables.split.pieces import Pieces
from tablefeed.indextables.split.row_columns import column
from tablefeed.indextables.split.shapes import Wanted
from tablefeed.indextables.split.split_file import Chunk, SplitStores
from tablefeed.indextables.split.walk import read_pieces

CHUNK_ROWS = 65_536
CHUNK_BYTES = 8 << 20
"""The most stored bytes of one chunk. Memory holds a few times as much of a split at one time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitFile:
    """The facts of one split's add, and which of its rows are wanted.

    `num_records` and `footer` (from which byte to before which) are None where the add has none. `constants`: the
    partition columns' values, in their types; each is used only where the split itself has not stored the column.
    `chunks` None: the whole split; else some from `chunks_of`, which divides a split between tasks.
    """

    path: str
    size_bytes: int
    num_records: int | None
    footer: tuple[int, int] | None = None
    constants: Mapping[str, pa.Scalar] = field(default_factory=dict)
    chunks: Sequence[Chunk] | None = None


def read_split_batches(read: Read, plan: ReadPlan, file: SplitFile) -> Iterator[pa.RecordBatch]:
    """Yield the rows of the split, in its order, in batches of at most `plan.batch_rows`; none is empty.

    `read` gives the split's bytes from an offset on, of a length. The footer, the list of segments, the end of each
    doc store and then one chunk after the other are read; no chunk is, where no column is stored. A column that the
    split does not know is null.

    Raises DataFileError for a split that is missing or damaged, has another number of rows than the log says, has a
    value that does not fit its column's type, or has a null where `plan.schema` allows none. Raises
    UnsupportedFeatureError for a feature that is not handled (see `indextables.split`), or a column that the index does
    not store.
    """
    with _refused_by_name(file):
        split = _opened(read, file)
        reader = _Reader(read, split, plan, file)
        for chunk in file.chunks if file.chunks is not None else _chunks(split):
            for rows in reader.rows(chunk):
                starts = range(0, rows.num_rows, plan.batch_rows)
                yield from (rows.slice(start, plan.batch_rows) for start in starts)


def chunks_of(read: Read, file: SplitFile, share: Share = (None, None)) -> list[Chunk]:
    """The chunks of `share` of the split, in its order; a block belongs to the share in which it begins.

    All rows are assumed to have the same size. Raises as `read_split_batches`.
    """
    with _refused_by_name(file):
        split = _opened(read, file)
        begin, end = (None if edge is None else _row_at(edge, split, file) for edge in share)
        return list(_chunks(split, range(begin or 0, split.row_count if end is None else end)))


def share_places(read: Read, file: SplitFile, *, most: int) -> list[tuple[int, int]]:
    """Divides the split into about `most` runs of blocks; gives the byte that decides each one's `Share`, and its size.

    Raises as `read_split_batches`.
    """
    with _refused_by_name(file):
        split = _opened(read, file)
        runs = splits.chunks(split, most_rows=-(-split.row_count // most), most_bytes=file.size_bytes)
        return [(run.first_row * file.size_bytes // split.row_count, run.size_bytes) for run in runs]


def _row_at(byte: int, split: SplitStores, file: SplitFile) -> int:
    """The first row whose place is at `byte` or after it."""
    return min(split.row_count, -(-byte * split.row_count // max(1, file.size_bytes)))


def _opened(read: Read, file: SplitFile) -> SplitStores:
    split = splits.read_split(read, size_bytes=file.size_bytes, footer=file.footer)
    if file.num_records is not None and split.row_count != file.num_records:
        raise DamagedSplitError(f"has {split.row_count} rows, but the log says {file.num_records}")
    return split


def _chunks(split: SplitStores, rows: range | None = None) -> Iterator[Chunk]:
    return splits.chunks(split, most_rows=CHUNK_ROWS, most_bytes=CHUNK_BYTES, rows=rows)


class _Reader:
    """One split, read in the columns of the plan."""

    def __init__(self, read: Read, split: SplitStores, plan: ReadPlan, file: SplitFile) -> None:
        self._read, self._split = read, split
        self._schema, self._constants = plan.schema, file.constants
        numbers = {f.name: number for number, f in enumerate(split.fields) if f.name in plan.schema.names}
        unstored = [name for name, number in numbers.items() if not split.fields[number].is_stored]
        if missing := [name for name in unstored if name not in file.constants]:
            raise UnsupportedSplitError(f"indexes column {missing[0]} without storing it", feature="notStored")
        self._numbers = {name: number for name, number in numbers.items() if name not in unstored}
        self._required = RequiredColumns(plan.schema)
        self._checksum = Checksum()

    def rows(self, chunk: Chunk) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one chunk."""
        if not self._numbers:
            yield self._checked(self._of({}, chunk.row_count, units_a_us=1))
            return
        store, blocks = splits.blocks_of(self._split, chunk)
        packed = read_blocks(self._read, store, blocks)
        self._checksum.add(store, blocks, packed)
        wanted = {number: Wanted(name, self._schema.field(name).type) for name, number in self._numbers.items()}
        field_count, units_a_us = len(self._split.fields), store.units_a_us
        for documents in unpacked(store, blocks, packed):
            pieces = read_pieces(documents, field_count=field_count, wanted=wanted, units_a_us=units_a_us)
            yield self._checked(self._of(pieces, len(documents.ends), units_a_us=units_a_us))

    def _checked(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if (broken := self._required.first_null(rows)) is not None:
            raise DamagedSplitError(f"has a null in column {broken}, which is NOT NULL in the schema")
        return rows

    def _of(self, pieces: Pieces, row_count: int, *, units_a_us: int) -> pa.RecordBatch:
        if not len(self._schema):
            return no_columns(row_count)
        columns = []
        for wanted in self._schema:
            number = self._numbers.get(wanted.name)
            if number is not None and number in pieces:
                found = pieces[number]
                columns.append(column(wanted.name, found, wanted.type, row_count=row_count, units_a_us=units_a_us))
            elif number is None and wanted.name in self._constants:
                columns.append(pa.repeat(self._constants[wanted.name].cast(wanted.type), row_count))
            else:
                columns.append(pa.nulls(row_count, wanted.type))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


@contextmanager
def _refused_by_name(file: SplitFile) -> Iterator[None]:
    """Turns the errors of the decoder into ours, with the names of the table and the file."""
    what = f"The split {file.path} of {TABLE}"
    try:
        yield
    except UnsupportedSplitError as error:
        raise UnsupportedFeatureError(
            f"{what} {error}, which this version of tablefeed does not read. Upgrade tablefeed, or have the table "
            "written without it.",
            features=(error.feature,),
        ) from error
    except DamagedSplitError as error:
        raise DataFileError(
            f"{what} {error}. Restore the file from a copy, or remove it from the table.", path=file.path
        ) from error
    except (FileNotFoundError, ObjectNotFoundError) as error:
        raise DataFileError(
            f"{what} is gone, but the log still names it. It was deleted by hand, or by a PURGE INDEXTABLES "
            "whose retention is shorter than this reader's lag, or it is on the disk of another machine. Restore it, "
            "or start again.",
            path=file.path,
        ) from error
    except OSError as error:
        raise DataFileError(f"{what} cannot be read: {error}.", path=file.path) from error
