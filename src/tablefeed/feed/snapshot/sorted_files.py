"""Sorts any number of file actions, adds before removes: in runs that are kept on disk and then merged.

So a checkpoint has its rows, and a stream its files, in the same order whoever writes or reads it, and memory does not
grow with the table.
"""

from __future__ import annotations

import contextlib
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

RUN_BYTES = 64 << 20
"""The size of a run in memory. A table of about 100,000 files is one run, and nothing is written to disk."""

_BATCH_ROWS = 4096

ON_DISK = pa.ipc.IpcWriteOptions(compression="lz4")
"""Paths and partition values take about a third of their size. This costs less time than writing them would."""

_IS_REMOVE = pa.field("is_remove", pa.bool_())
"""What rows are sorted by first. Then row groups of adds have no removes, and readers of adds can leave out others."""


class SortedFiles:
    """Takes batches of `schema`, `tablefeed.delta.columns.FILE_COLUMNS` and others, and gives them back sorted.

    Adds come before removes, and both are sorted by the columns `by`, which together differ in each row; text is
    sorted by its bytes. A merge holds two batches of each run in memory, and must end before the next one begins.
    Raises OSError where the disk for temporary files is full.
    """

    def __init__(self, schema: pa.Schema, *, by: Sequence[str] = ("key",), run_bytes: int = RUN_BYTES) -> None:
        self._schema, self._by, self._run_bytes = schema.append(_IS_REMOVE), (_IS_REMOVE.name, *by), run_bytes
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._runs: list[IO[bytes]] = []
        self._files = contextlib.ExitStack()
        self.add_count = self.count = 0

    def __enter__(self) -> SortedFiles:
        """Gives this object."""
        return self

    def __exit__(self, *_: object) -> None:
        """Deletes the runs on disk."""
        self._files.close()

    @property
    def on_disk(self) -> bool:
        """Whether there are more rows than memory should hold."""
        return bool(self._runs)

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds rows in any order; each may come only once."""
        self.count += batch.num_rows
        self.add_count += batch["is_add"].true_count
        self._pending.append(batch.append_column(_IS_REMOVE, pc.invert(batch["is_add"])))
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= self._run_bytes:
            self._spill()

    def clear(self) -> None:
        """Drops all rows that were added."""
        self._files.close()
        self._runs, self._pending, self._pending_bytes = [], [], 0
        self.add_count = self.count = 0

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Gives all rows in order, in batches of exactly `rows` rows. Only the last batch may have fewer."""
        waiting: list[pa.Table] = []
        count = 0
        for table in self._merged():
            waiting.append(table)
            count += table.num_rows
            while count >= rows:
                together = pa.concat_tables(waiting)
                yield _one(together.slice(0, rows))
                waiting, count = [together.slice(rows)], count - rows
        if count:
            yield _one(pa.concat_tables(waiting))

    def _merged(self) -> Iterator[pa.Table]:
        last = self._sorted()
        if not self._runs:
            yield last
            return
        heads = [_slices(last), *(_read(run) for run in self._runs)]
        live = [(head, table) for head in heads if (table := next(head, None)) is not None]
        while live:
            # The smallest of the last rows: no row that is still to be read comes before it.
            bound = min(self._row(table, -1) for _, table in live)
            counts = [self._count_up_to(bound, table) for _, table in live]
            first = [table.slice(0, count) for (_, table), count in zip(live, counts, strict=True)]
            yield self._in_order(pa.concat_tables(first))
            rest = [_refilled(head, table.slice(count)) for (head, table), count in zip(live, counts, strict=True)]
            live = [(head, table) for head, table in rest if table.num_rows]

    def _row(self, table: pa.Table, row: int) -> tuple[Any, ...]:  # Any: what a column may hold
        # Python compares text by code points, which is the order of its bytes in UTF-8.
        return tuple(table[name][row].as_py() for name in self._by)

    def _count_up_to(self, bound: tuple[Any, ...], table: pa.Table) -> int:
        return bisect_right(range(table.num_rows), bound, key=lambda row: self._row(table, row))

    def _in_order(self, table: pa.Table) -> pa.Table:
        return table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in self._by]))

    def _sorted(self) -> pa.Table:
        return self._in_order(pa.Table.from_batches(self._pending, self._schema))

    def _spill(self) -> None:
        run: IO[bytes] = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed by the stack
        with pa.ipc.new_stream(run, self._schema, options=ON_DISK) as writer:
            for table in _slices(self._sorted()):
                writer.write_table(table)
        self._runs.append(run)
        self._pending, self._pending_bytes = [], 0


def _slices(table: pa.Table) -> Iterator[pa.Table]:
    for begin in range(0, table.num_rows, _BATCH_ROWS):
        yield table.slice(begin, _BATCH_ROWS)


def _read(run: IO[bytes]) -> Iterator[pa.Table]:
    # Each merge reads a run from its beginning. Only one reader of a run may be active at a time.
    run.seek(0)
    for batch in pa.ipc.open_stream(run):
        yield pa.Table.from_batches([batch])


def _refilled(head: Iterator[pa.Table], table: pa.Table) -> tuple[Iterator[pa.Table], pa.Table]:
    """`table`, with more of its `head` where few rows are left, so that each step of a merge takes many."""
    more = next(head, None) if table.num_rows < _BATCH_ROWS // 2 else None
    return head, table if more is None else pa.concat_tables([table, more])


def _one(table: pa.Table) -> pa.RecordBatch:
    return table.drop_columns([_IS_REMOVE.name]).combine_chunks().to_batches()[0]
