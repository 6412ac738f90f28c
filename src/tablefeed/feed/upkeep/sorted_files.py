"""File actions in the order of their keys, however many there are: sorted in runs, which wait on disk to be merged.

So that a checkpoint has its rows in one order whoever writes it, in memory that does not grow with the table.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

RUN_BYTES = 64 << 20
"""A run as it is in memory. A table of 100,000 files or so is one run, and touches no disk."""

_BATCH_ROWS = 8192


class SortedFiles:
    """Batches of `tablefeed.delta.columns.FILE_COLUMNS` are added, and given back sorted by `key`, as often as asked.

    Two that merge at a time hold a batch of each run. Raises OSError where the disk for temporary files is full.
    """

    def __init__(self, schema: pa.Schema, *, run_bytes: int = RUN_BYTES) -> None:
        self._schema, self._run_bytes = schema, run_bytes
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._runs: list[IO[bytes]] = []
        self._files = contextlib.ExitStack()
        self.add_count = self.count = 0

    def __enter__(self) -> SortedFiles:
        """Gives itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Removes what waits on disk."""
        self._files.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes in rows, in any order; each key once."""
        self.count += batch.num_rows
        self.add_count += batch["is_add"].true_count
        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= self._run_bytes:
            self._spill()

    def clear(self) -> None:
        """Forgets all that was added."""
        self._files.close()
        self._runs, self._pending, self._pending_bytes = [], [], 0
        self.add_count = self.count = 0

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Gives all, sorted, in batches of just so many rows; the last has what is left."""
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
        heads = [_slices(last), *(_read(run) for run in self._runs)]
        tables = [(head, next(head, None)) for head in heads]
        live = [(head, table) for head, table in tables if table is not None]
        while live:
            # Up to the first of the last keys, nothing can come that is not at hand.
            bound = min(table["key"][-1].as_py().encode() for _, table in live).decode()
            counts = [pc.sum(pc.less_equal(table["key"], bound)).as_py() for _, table in live]
            merged = pa.concat_tables([table.slice(0, n) for (_, table), n in zip(live, counts, strict=True)])
            yield merged.take(pc.sort_indices(merged["key"])) if len(live) > 1 else merged
            rest = [(head, table.slice(n)) for (head, table), n in zip(live, counts, strict=True)]
            refilled = [(head, table if table.num_rows else next(head, None)) for head, table in rest]
            live = [(head, table) for head, table in refilled if table is not None]

    def _sorted(self) -> pa.Table:
        table = pa.Table.from_batches(self._pending, self._schema)
        return table.take(pc.sort_indices(table["key"]))

    def _spill(self) -> None:
        run: IO[bytes] = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed by the stack
        with pa.ipc.new_stream(run, self._schema) as writer:
            for table in _slices(self._sorted()):
                writer.write_table(table)
        self._runs.append(run)
        self._pending, self._pending_bytes = [], 0


def _slices(table: pa.Table) -> Iterator[pa.Table]:
    for begin in range(0, table.num_rows, _BATCH_ROWS):
        yield table.slice(begin, _BATCH_ROWS)


def _read(run: IO[bytes]) -> Iterator[pa.Table]:
    # One reader of a run at a time: it is read from its begin each time that all are asked for.
    run.seek(0)
    for batch in pa.ipc.open_stream(run):
        yield pa.Table.from_batches([batch])


def _one(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]
