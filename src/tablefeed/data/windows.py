"""A stream of batches of any size as tables of about one size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa


def windows(batches: Iterable[pa.RecordBatch], *, most_rows: int, most_bytes: int) -> Iterator[pa.Table]:
    """Yield all rows in order, in tables as large as the two limits allow; none is empty. Nothing is copied.

    A larger batch is cut by the mean size of its rows, so a table of very uneven rows can exceed `most_bytes`.
    """
    gathered: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        for piece in _pieces(batch, most_rows, most_bytes):
            if rows and (rows + piece.num_rows > most_rows or size + piece.nbytes > most_bytes):
                yield pa.Table.from_batches(gathered)
                gathered, rows, size = [], 0, 0
            gathered.append(piece)
            rows += piece.num_rows
            size += piece.nbytes
    if rows:
        yield pa.Table.from_batches(gathered)


def _pieces(batch: pa.RecordBatch, most_rows: int, most_bytes: int) -> Iterator[pa.RecordBatch]:
    per_row = max(1, batch.nbytes // max(1, batch.num_rows))
    step = max(1, min(most_rows, most_bytes // per_row))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)
