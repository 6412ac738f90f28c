"""Turns a stream of batches of any size into tables, or into batches, of about equal size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

import pyarrow as pa

BATCH_BYTES = 16 << 20
"""The most bytes of a batch of rows that are read. Rows of up to 256 bytes fill a batch of 64k rows within it, and the
memory of a task is a few times as much."""


def windows(batches: Iterable[pa.RecordBatch], *, most_rows: int, most_bytes: int) -> Iterator[pa.Table]:
    """Yield all rows in order, in tables as large as the two limits allow; none is empty. Nothing is copied.

    A larger batch is cut by the mean size of its rows, so a table of very uneven rows can exceed `most_bytes`. A table
    ends where another batch of the last one's size would not fit. So the generator holds no rows of
    earlier batches when it reads the next one.
    """
    gathered: list[pa.RecordBatch] = []
    rows = size = 0
    for piece in chain.from_iterable(map(partial(_pieces, most_rows=most_rows, most_bytes=most_bytes), batches)):
        if rows and (rows + piece.num_rows > most_rows or size + piece.nbytes > most_bytes):
            yield pa.Table.from_batches(gathered)
            gathered, rows, size = [], 0, 0
        gathered.append(piece)
        rows += piece.num_rows
        size += piece.nbytes
        is_full = rows + piece.num_rows > most_rows or size + piece.nbytes > most_bytes
        del piece
        if is_full:
            yield pa.Table.from_batches(gathered)
            gathered, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(gathered)


def coalesced(
    batches: Iterable[pa.RecordBatch], *, most_rows: int, most_bytes: int = BATCH_BYTES
) -> Iterator[pa.RecordBatch]:
    """Yield all rows in order, in batches as large as the two limits allow; a larger batch stays as it is.

    Small neighbours are copied into one, so that the consumer's cost per batch is paid once for many small files.
    """
    gathered: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if rows and (rows + batch.num_rows > most_rows or size + batch.nbytes > most_bytes):
            yield from _joined(gathered)
            gathered, rows, size = [], 0, 0
        gathered.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    yield from _joined(gathered)


def cut(batches: Iterable[pa.RecordBatch], *, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield all rows in order, in batches of about `most_bytes` at most. Nothing is copied."""
    for batch in batches:
        fits = batch.nbytes <= most_bytes
        yield from (batch,) if fits else _pieces(batch, most_rows=batch.num_rows, most_bytes=most_bytes)
        del batch  # so that the next batch is not made while a large one is held


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    if len(batches) < 2 or not batches[0].num_columns:  # without columns a table would forget how many rows it has
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def _pieces(batch: pa.RecordBatch, most_rows: int, most_bytes: int) -> Iterator[pa.RecordBatch]:
    per_row = max(1, batch.nbytes // max(1, batch.num_rows))
    most = max(1, min(most_rows, most_bytes // per_row))
    count = -(-batch.num_rows // most)
    for piece in range(count):  # of equal size: a small rest would wait for the next batch
        start, end = batch.num_rows * piece // count, batch.num_rows * (piece + 1) // count
        yield batch.slice(start, end - start)
