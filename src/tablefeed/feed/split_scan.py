"""The rows of splits, the data files of an IndexTables table: a task's share of them, by the ranges that are needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tablefeed.data.read import ReadPlan
from tablefeed.data.splits import SplitFile, chunks_of, read_split_batches
from tablefeed.delta.paths import refuse_escape
from tablefeed.errors import DataFileError, ObjectNotFoundError
from tablefeed.feed.scan import BATCH_ROWS, ScanFile, ScanTask, change_constants
from tablefeed.indextables.partition_values import constants

if TYPE_CHECKING:
    from tablefeed.indextables.split import Chunk
    from tablefeed.store import Store


def read_splits(
    task: ScanTask, schema: pa.Schema, store: Store, *, partitions: Collection[str]
) -> Iterator[pa.RecordBatch]:
    """Gives the rows of the splits of `task` as batches of `schema`, whose columns of changes each file's change tells.

    Raises DataFileError where a split is gone or is not what the log says, UnsupportedFeatureError for what is in one
    and not read.
    """
    plan = ReadPlan(url=store.url, schema=schema, stored=None, batch_rows=BATCH_ROWS)
    for file in task.files:
        try:
            yield from _rows(file, plan, store, partitions)
        except ObjectNotFoundError as error:
            raise DataFileError(
                f"The split {file.path} of {store.url} is gone, though the log still names it: PURGE INDEXTABLES or "
                "another hand removed it. Restart from a newer version, or keep removed files longer.",
                url=store.url,
                path=file.path,
                error_class="DELTA_FILE_NOT_FOUND",
            ) from error


def _rows(file: ScanFile, plan: ReadPlan, store: Store, partitions: Collection[str]) -> Iterator[pa.RecordBatch]:
    refuse_escape(file.path, root_url=store.url, clones=False)

    def read(offset: int, length: int) -> bytes:
        return store.read(file.path, start=offset, end=offset + length)

    def refuse(reason: str) -> DataFileError:
        return DataFileError(
            f"The log of {store.url} describes the split {file.path} wrongly: {reason}.", url=store.url, path=file.path
        )

    columns = pa.schema([field for field in plan.schema if field.name in partitions])
    values = constants(file.partition_values, columns, refuse=refuse)
    whole = SplitFile(
        path=file.path,
        size_bytes=file.size_bytes or _size(file, store),
        num_records=file.row_count,
        constants=values | ({} if file.change is None else change_constants(file.change)),
    )
    if file.share is None:
        return read_split_batches(read, plan, whole)
    begin, end = file.share
    chunks = _within(chunks_of(read, plan, whole), whole.size_bytes, begin or 0, end)
    return read_split_batches(read, plan, replace(whole, chunks=chunks))


def _within(chunks: Sequence[Chunk], size_bytes: int, begin: int, end: int | None) -> list[Chunk]:
    """Those of all `chunks` of a split that begin in its share; where one begins is told by the rows before it."""
    rows = max(1, sum(chunk.row_count for chunk in chunks))
    places = [chunk.first_row * size_bytes // rows for chunk in chunks]
    return [chunk for chunk, at in zip(chunks, places, strict=True) if begin <= at and (end is None or at < end)]


def _size(file: ScanFile, store: Store) -> int:
    entry = store.stat(file.path)
    if entry is None:
        raise ObjectNotFoundError(url=store.url, name=file.path)
    return entry.size_bytes
