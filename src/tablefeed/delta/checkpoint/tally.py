"""Counts live files in columns, for a checksum: of a snapshot that is read as a whole, or that a commit removes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta.checkpoint.checksum_writer import DELETED_BINS, MOST_FILES, SIZE_BINS, FileCounts, no_files, summed
from tablefeed.delta.columns import to_add_files
from tablefeed.model.actions import AddFile


class Tally:
    """Counts the files of a snapshot that is read as a whole, batch by batch."""

    def __init__(self) -> None:
        self._counts = no_files()
        self._few: list[AddFile] = []

    def take(self, adds: pa.RecordBatch) -> None:
        """Counts `adds` (`columns.FILE_COLUMNS`)."""
        vectors = adds["deletion_vector"]
        deleted = pc.fill_null(pc.struct_field(vectors, "cardinality"), 0)
        self._counts = summed(self._counts, _counted(adds["size_bytes"], deleted, len(vectors) - vectors.null_count), 1)
        if len(self._few) <= MOST_FILES:
            self._few += to_add_files(adds.slice(0, MOST_FILES + 1 - len(self._few)))

    def result(self) -> FileCounts:
        """The counts of all files taken so far."""
        counts = self._counts
        return replace(counts, files=tuple(self._few) if counts.file_count <= MOST_FILES else None)


def _counted(sizes: pa.Array, deleted: pa.Array, vector_count: int) -> FileCounts:
    return FileCounts(
        file_count=len(sizes),
        size_bytes=pc.sum(sizes).as_py() or 0,
        histogram=_binned(sizes, SIZE_BINS),
        vector_count=vector_count,
        deleted_rows=pc.sum(deleted).as_py() or 0,
        deleted_histogram=_binned(deleted, DELETED_BINS)[0],
    )


def _binned(values: pa.Array, bins: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many of `values` are in each bin, and their sums."""
    most = pc.max(values).as_py()
    counts, sums = [0] * (len(bins) + 1), [0] * (len(bins) + 1)  # of the values at or above each bin's begin
    for index, begin in enumerate(bins):
        if most is None or most < begin:
            break
        beyond = values.filter(pc.greater_equal(values, begin))
        counts[index], sums[index] = len(beyond), pc.sum(beyond).as_py()
    return (
        tuple(here - beyond for here, beyond in pairwise(counts)),
        tuple(here - beyond for here, beyond in pairwise(sums)),
    )
