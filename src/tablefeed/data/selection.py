"""Which rows of a file count, by position in the file. Knows bitmaps and Arrow, not where a bitmap comes from."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyroaring import BitMap64

from tablefeed.data.conform import no_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSelection:
    """The rows at positions (from 0) in `only` and not in `without`. `only` None: all; `without` None: no position."""

    without: BitMap64 | None = None
    only: BitMap64 | None = None

    @property
    def row_count(self) -> int:
        """The least number of rows of a file that has all these positions."""
        return 1 + max((positions.max() for positions in (self.without, self.only) if positions), default=-1)

    @property
    def is_empty(self) -> bool:
        """Whether no row of any file counts."""
        return self.only is not None and not self.only - (self.without or BitMap64())

    def of(self, batch: pa.RecordBatch, *, first: int) -> pa.RecordBatch:
        """The rows of `batch` that count, in order; `first` is the position of its first row."""
        selected = BitMap64(range(first, first + batch.num_rows))
        if self.only is not None:
            selected &= self.only
        if self.without is not None:
            selected -= self.without
        if len(selected) == batch.num_rows:
            return batch
        if not batch.num_columns:
            return no_columns(len(selected))
        positions = BitMap64.to_array(selected.shift(-first))
        indices = pa.Array.from_buffers(pa.uint64(), len(positions), [None, pa.py_buffer(positions)])
        return batch.take(indices)
