"""Sorts any number of file actions by their keys, adds before removes: in runs that are kept on disk and then merged.

So the rows of a checkpoint have the same order whoever writes it, and memory does not grow with the table.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc

RUN_BYTES = 64 << 20
"""The size of a run in memory. A table of about 100,000 files is one run, and nothing is written to disk."""

_BATCH_ROWS = 8192

_ORDER = pa.field("order", pa.string())
"""What rows are sorted by. Then row groups of adds have no removes, and readers of adds can leave out the others."""


class SortedFiles:
    """Takes batches of `tablefeed.delta.columns.FILE_COLUMNS` and gives them back sorted, any number of times.

    A merge holds one batch of each run in memory, and must end before the next one begins. Raises OSError where the
    disk for temporary files is full.
    """

    def __init__(self, schema: pa.Schema, *, run_bytes: int = RUN_BYTES) -> None:
        self._schema, self._run_bytes = schema.append(_ORDER), run_bytes
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

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds rows in any order; each key may come only once."""
        self.count += batch.num_rows
        self.add_count += batch["is_add"].true_count
        first = pc.if_else(batch["is_add"], "0", "1")
        self._pending.append(batch.append_column(_ORDER, pc.binary_join_element_wise(first, batch["key"], "")))
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= self._run_bytes:
            self._spill()

    def clear(self) -> None:
        """Drops all rows that were added."""
        self._files.close()
        self._runs, self._pending, self._pending_bytes = [], [], 0
        self.add_count = self.count = 0

    def batches(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Gives all rows, the adds sorted by `key` and then the removes, in batches of exactly `rows` rows.

        Only the last batch may have fewer.
        """
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
            # The smallest of the last keys: no row that is still to be read has a smaller key.
            bound = min(table[_ORDER.name][-1].as_py().encode() for _, table in live).decode()
            counts = [pc.sum(pc.less_equal(table[_ORDER.name], bound)).as_py() for _, table in live]
            merged = pa.concat_tables([table.slice(0, n) for (_, table), n in zip(live, counts, strict=True)])
            yield merged.take(pc.sort_indices(merged[_ORDER.name])) if len(live) > 1 else merged
            rest = [(head, table.slice(n)) for (head, table), n in zip(live, counts, strict=True)]
            refilled = [(head, table if table.num_rows else next(head, None)) for head, table in rest]
            live = [(head, table) for head, table in refilled if table is not None]

    def _sorted(self) -> pa.Table:
        table = pa.Table.from_batches(self._pending, self._schema)
        return table.take(pc.sort_indices(table[_ORDER.name]))

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
    # Each merge reads a run from its beginning. Only one reader of a run may be active at a time.
    run.seek(0)
    for batch in pa.ipc.open_stream(run):
        yield pa.Table.from_batches([batch])


def _one(table: pa.Table) -> pa.RecordBatch:
    return table.drop_columns([_ORDER.name]).combine_chunks().to_batches()[0]
