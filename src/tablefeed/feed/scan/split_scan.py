"""Reads rows from splits, the data files of an IndexTables table. It reads only the byte ranges that it needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tablefeed.data.read import ReadPlan
from tablefeed.data.splits import SplitFile, chunks_of, read_split_batches, share_places
from tablefeed.delta.paths import refuse_escape
from tablefeed.errors import DataFileError
from tablefeed.indextables.log.partition_values import Constants

if TYPE_CHECKING:
    from tablefeed.indextables.split.doc_store import Read
    from tablefeed.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitShare:
    """A split to read, or a share of it as in `ScanFile`. `known` are values that all of its rows have, by column."""

    path: str
    size_bytes: int
    row_count: int | None
    partition_values: Mapping[str, str | None]
    known: Mapping[str, pa.Scalar]
    share: tuple[int | None, int | None] | None


def read_split(
    split: SplitShare, plan: ReadPlan, store: Store, *, partitions: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Gives the rows of `split`, of a table partitioned by `partitions`, as batches of the plan's schema.

    Raises DataFileError where the split is gone or differs from what the log says, LogError where its path is outside
    the table, and UnsupportedFeatureError for contents that cannot be read.
    """
    refuse_escape(split.path, root_url=store.url, clones=False)

    read = _reads(split.path, store)

    def refuse(reason: str) -> DataFileError:
        return DataFileError(
            f"The log of {store.url} describes the split {split.path} wrongly: {reason}.",
            url=store.url,
            path=split.path,
        )

    columns = pa.schema([field for field in plan.schema if field.name in partitions])
    values = Constants(texts=split.partition_values, columns=columns, refuse=refuse, known=split.known)
    whole = SplitFile(
        path=split.path,
        size_bytes=split.size_bytes or _size(split.path, store),
        num_records=split.row_count,
        constants=values,
    )
    if split.share is not None:
        whole = replace(whole, chunks=chunks_of(read, whole, split.share))
    yield from read_split_batches(read, plan, whole)


def split_places(path: str, size_bytes: int, store: Store, *, most: int) -> list[tuple[int, int]]:
    """Divides a split into about `most` parts or fewer; gives the byte that decides each one's share, and its size.

    Raises as `read_split`.
    """
    refuse_escape(path, root_url=store.url, clones=False)
    file = SplitFile(path=path, size_bytes=size_bytes, num_records=None)
    return share_places(_reads(path, store), file, most=most)


def _reads(path: str, store: Store) -> Read:
    return lambda offset, length: store.read(path, start=offset, end=offset + length)


def _size(path: str, store: Store) -> int:
    entry = store.stat(path)
    return 0 if entry is None else entry.size_bytes  # the reader then raises: the split is gone
