"""The files of an initial snapshot in the order in which offsets count them; all but a few are kept on disk.

What decides how far a batch goes is in memory: the sizes of the files and what was appended to them, some 10 to 40
bytes a file. Paths and the rest are read for the files of a batch. Up to about 100,000 files are in memory as a whole.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta.columns import FILE_COLUMNS
from tablefeed.errors import TABLE, StoreError
from tablefeed.feed.snapshot.sorted_files import ON_DISK, RUN_BYTES, SortedFiles
from tablefeed.log.replay import without_statistics
from tablefeed.model.cached import cached_property

ORDER = ("modified_ms", "log_path", "key")
"""Delta-Spark's (DeltaSourceSnapshot): by modification time, then by the bytes of the path as logged, still
percent-encoded; by key where one path is live with two deletion vectors, a case that Delta-Spark does not define. Not
done: Delta-Spark first normalises `.`, `..` and `//` in a path, and puts its default file system before an absolute one
without a scheme."""

_BATCH_ROWS = 4096


class SnapshotFiles:
    """Sorts `files`, which have `schema`: `tablefeed.delta.columns.FILE_COLUMNS` and others.

    `columns` has the sizes and the others. `between` and `where` give all columns but `key`; `stats` is null: no stream
    needs it, and it is most of the bytes. Close it. Raises StoreError where the disk for temporary files is full.
    """

    def __init__(self, files: Iterable[pa.RecordBatch], *, schema: pa.Schema, run_bytes: int = RUN_BYTES) -> None:
        whole = pa.schema(field for field in schema if field.name != "key")  # it is of no use once files are sorted
        in_memory = pa.schema([schema.field("size_bytes"), *list(schema)[len(FILE_COLUMNS) :]])
        columns: list[pa.RecordBatch] = []
        with SortedFiles(schema, by=ORDER, run_bytes=run_bytes) as sorting:
            for batch in files:
                with _disk():
                    sorting.add(without_statistics(batch))
            self._batch_rows = _BATCH_ROWS if sorting.on_disk else max(sorting.count, 1)
            with _disk():
                self._batches = _OnDisk(whole) if sorting.on_disk else list[pa.RecordBatch]()
                for batch in sorting.batches(self._batch_rows):
                    columns.append(batch.select(in_memory.names))
                    self._batches.append(batch.select(whole.names))
        together = pa.Table.from_batches(columns, in_memory)
        self.columns = pa.RecordBatch.from_arrays([c.combine_chunks() for c in together.columns], schema=in_memory)

    def between(self, begin: int, end: int) -> Iterator[pa.RecordBatch]:
        """Gives the files from index `begin` to before `end`."""
        end = min(end, self.columns.num_rows)
        while begin < end:
            number, first = divmod(begin, self._batch_rows)
            batch = self._read(number).slice(first, end - begin)
            begin += batch.num_rows
            yield batch

    def where(self, chosen: pa.BooleanArray) -> Iterator[pa.RecordBatch]:
        """Gives the files for which `chosen` is true."""
        for number, begin in enumerate(range(0, len(chosen), self._batch_rows)):
            some = chosen.slice(begin, self._batch_rows)
            if pc.any(some).as_py():
                yield self._read(number).filter(some)

    def close(self) -> None:
        """Deletes what is on disk."""
        self._batches.clear()

    def _read(self, number: int) -> pa.RecordBatch:
        with _disk():
            return self._batches[number]


class _OnDisk:
    """A list of batches in a temporary file, which is gone when it is closed. First written, then read."""

    def __init__(self, schema: pa.Schema) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `clear`
        self._writer = pa.ipc.new_file(self._file, schema, options=ON_DISK)

    def append(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def __getitem__(self, number: int) -> pa.RecordBatch:
        return self._reader.get_batch(number)

    def clear(self) -> None:
        self._file.close()

    @cached_property
    def _reader(self) -> pa.ipc.RecordBatchFileReader:
        self._writer.close()
        return pa.ipc.open_file(self._file)


@contextlib.contextmanager
def _disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"The initial snapshot of {TABLE} has too many files to sort them in memory, and they could not be kept in "
            f"{tempfile.gettempdir()}: {error}. Make room there, or name another folder in TMPDIR.",
            url=TABLE,
        ) from error
