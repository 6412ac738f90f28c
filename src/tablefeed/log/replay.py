"""The live files of a table, reconciled from columns (PROTOCOL.md, "Action Reconciliation"). facts.py folds its facts.

Files are batches of columns that the dialect made; only `key`, `is_add`, `modified_ms`, `log_path` and `stats` are used
here. pyarrow computes on them, and no Python value per file is built. No file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.errors import TABLE, LogError


def live_files(
    checkpoint: Iterable[pa.RecordBatch], newest_first: Iterable[Sequence[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The live files: first those that the commits after `checkpoint` leave, then those that no such commit names.

    `checkpoint` holds only adds, each key once. `newest_first` gives the adds and removes of the commits in groups: the
    newest commits first, the rows of a group in log order. For each key the last row in log order decides, so an add
    for a live key replaces the earlier add. Memory holds one group and the keys of the groups before it. Batches of
    `checkpoint` may come out empty.
    """
    return _decided(checkpoint, newest_first, lambda rows, new: pc.and_(new, rows["is_add"]))


def reconciled(
    checkpoint: Iterable[pa.RecordBatch], newest_first: Iterable[Sequence[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The live files as `live_files` gives them, and with them the last remove of each key that is not live.

    The next checkpoint has this content; `checkpoint` holds the adds and the removes of the previous one.
    """
    return _decided(checkpoint, newest_first, lambda _, new: new)


class Remaining:
    """Leaves out of a stream of files those with a key in `given`. `given` has each key once, and so has the stream."""

    def __init__(self, given: Sequence[pa.Array]) -> None:
        self._given = pa.chunked_array(given, pa.string())
        self._met = 0

    @property
    def met_all(self) -> bool:
        """Whether each file of `given` was in the part of the stream that has been consumed."""
        return self._met == len(self._given)

    def of(self, files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Those of `files` that are not in `given`; batches may be empty."""
        if len(self._given) == 0:
            yield from files
            return
        for batch in files:
            new = pc.invert(pc.is_in(batch["key"], value_set=self._given))
            self._met += new.false_count
            yield batch.filter(new)


def each_once(checkpoint: Iterable[pa.RecordBatch], *, log_file: str) -> Iterator[pa.RecordBatch]:
    """Gives the files of `checkpoint`, read from `log_file` on; raises LogError at the end where a key came twice.

    A checkpoint's writer reconciles it, so a reader does not choose between two rows of one key: it would read both.
    Eight bytes per file are kept in memory: Python's salted hash, for which nobody can prepare a log with collisions.
    """
    hashes = [pa.array([], pa.int64())]
    for batch in checkpoint:
        hashes.append(pa.array(map(hash, batch["key"].to_pylist()), pa.int64()))
        yield batch
    if not _are_distinct(pa.chunked_array(hashes)):
        raise LogError(
            f"The checkpoint {log_file} of {TABLE} names a data file twice, so its rows would be read twice. Delete "
            "the checkpoint if the commits up to its version still exist, or let the table's writer make a new one."
        )


def without_statistics(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` with `stats` null: they are most of what a file takes in memory."""
    index = batch.schema.get_field_index("stats")
    field = batch.schema.field(index)
    return batch.set_column(index, field, pa.nulls(batch.num_rows, field.type))


_COUNTED_AT_ONCE = 1 << 20
"""Counting distinct values takes some 80 bytes for each, so many are counted in parts."""


def _are_distinct(hashes: pa.ChunkedArray) -> bool:
    parts = 1 << (len(hashes) // _COUNTED_AT_ONCE).bit_length()
    part_of = pc.bit_wise_and(hashes, parts - 1)
    return all(
        pc.count_distinct(few := hashes.filter(pc.equal(part_of, part))).as_py() == len(few) for part in range(parts)
    )


def _decided(
    checkpoint: Iterable[pa.RecordBatch],
    newest_first: Iterable[Sequence[pa.RecordBatch]],
    kept: Callable[[pa.Table, pa.Array], pa.Array],
) -> Iterator[pa.RecordBatch]:
    """Of each key the row that decides: of the commits the rows that are `kept`, then the rest of `checkpoint`."""
    decided: list[pa.ChunkedArray] = []
    for rows in _turns(newest_first):
        yield from _where(rows, kept(rows, _not_in(rows["key"], decided)))
        decided.append(rows["key"])
    for batch in checkpoint:
        yield batch.filter(_not_in(batch["key"], decided)) if decided else batch


def _turns(newest_first: Iterable[Sequence[pa.RecordBatch]]) -> Iterator[pa.Table]:
    """The last row of each key in each group; empty groups are left out."""
    for turn in newest_first:
        if turn:
            rows = _last_of_each_key(pa.Table.from_batches(turn))
            if rows.num_rows:
                yield rows


def _last_of_each_key(rows: pa.Table) -> pa.Table:
    """The last row of each key, in the order of the rows."""
    if pc.count_distinct(rows["key"]).as_py() == rows.num_rows:
        return rows
    ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
    numbered = pa.table({"key": rows["key"], "row": pc.cumulative_sum(ones)})
    last = numbered.group_by("key", use_threads=False).aggregate([("row", "max")])["row_max"]
    return rows.take(pc.subtract(last.take(pc.sort_indices(last)), 1))


def _not_in(keys: pa.Array | pa.ChunkedArray, decided: Sequence[pa.ChunkedArray]) -> pa.Array | pa.ChunkedArray:
    if not decided:
        return pa.repeat(pa.scalar(value=True), len(keys))
    known = pa.chunked_array([chunk for each in decided for chunk in each.chunks], pa.string())
    return pc.invert(pc.is_in(keys, value_set=known))


def _where(rows: pa.Table, mask: pa.Array | pa.ChunkedArray) -> list[pa.RecordBatch]:
    """The rows for which `mask` is true. Where it is true for all, nothing is copied."""
    kept = rows if pc.all(mask).as_py() else rows.filter(mask)
    return [batch for batch in kept.to_batches() if batch.num_rows]
