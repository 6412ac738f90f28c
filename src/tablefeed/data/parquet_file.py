"""One Parquet file being written: row groups in, size and statistics out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from tablefeed.data.retype import inner_fields
from tablefeed.data.statistics import RunningStatistics
from tablefeed.model.statistics import FileStatistics, LeafPath

WRITER_OPTIONS: dict[str, Any] = {
    "version": "2.6",  # microseconds and unsigned numbers as themselves; every reader of Delta has it
    "use_deprecated_int96_timestamps": False,  # microseconds, which every reader takes; Delta-Spark still writes INT96
    "store_decimal_as_integer": True,  # up to 18 digits, as Spark does: smaller, and with bounds in the footer
    "store_schema": False,  # Arrow's own schema says nothing here that Parquet's does not
    # Measured with unique and with repeated values: a column that outgrows 256 KiB of distinct values is given up
    # early enough to write 1.3 times as fast as with the default of 1 MiB, and repeated ones stay as small.
    "dictionary_pagesize_limit": 256 * 1024,
    "write_page_index": True,  # as Spark does, whose filters skip pages by it
}


def _leaves(parent: str, fields: list[pa.Field]) -> Iterator[tuple[str, pa.DataType]]:
    """The leaves with their paths, as pyarrow names them: a column `a.b` has the path of the member `b` of `a`."""
    for field in fields:
        kind, path = field.type, f"{parent}{field.name}"
        if inner := inner_fields(kind):
            group = "list." if pa.types.is_list(kind) else "key_value." if pa.types.is_map(kind) else ""
            yield from _leaves(f"{path}.{group}", inner)
        else:
            yield path, kind


def _bounded(schema: pa.Schema) -> list[str]:
    """The leaves with bounds in the footer: all but floats, because Arrow's bounds there ignore NaN.

    Readers for which NaN is the largest number (Spark, DataFusion) would then skip row groups that have matching rows.
    The bounds in the log include NaN.
    """
    leaves = list(_leaves("", list(schema)))
    floats = {path for path, kind in leaves if pa.types.is_floating(kind)}
    return [path for path, _ in leaves if path not in floats]


_SAMPLES, _SAMPLE_ROWS = 64, 128  # a run of a 64th of the rows is in one: texts may be in a small part of a column only
_LEAST_ROWS = 64 * 1024  # below, choosing costs more than it saves
_WORTH_IT = 0.8
# Measured with a million texts of 20 random hex digits: Snappy makes them an eighth smaller, and takes 0.11 of the 0.15
# s of writing them and 0.06 of the 0.09 s of reading them.


def codecs_that_save(rows: pa.Table) -> str | dict[str, str]:
    """Gives Snappy for the columns of `rows` that it makes smaller by a fifth, and no codec for the others.

    Samples from all parts of `rows` are written to find that out. With fewer than 65,536 rows all columns get Snappy.
    """
    if rows.num_rows < _LEAST_ROWS:
        return "snappy"
    step = rows.num_rows // _SAMPLES
    sample = pa.concat_tables([rows.slice(i * step, _SAMPLE_ROWS) for i in range(_SAMPLES)])
    written = pa.BufferOutputStream()
    pq.write_table(sample, written, compression="snappy", **WRITER_OPTIONS)
    group = pq.read_metadata(pa.BufferReader(written.getvalue())).row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return {
        column.path_in_schema: "snappy"
        if column.total_compressed_size <= _WORTH_IT * column.total_uncompressed_size
        else "none"
        for column in columns
    }


class OpenParquet:
    """A file that is being written, with `options` of pyarrow besides ours.

    `finish` or `abort` ends it; both leave its context.
    """

    def __init__(
        self,
        path: str,
        opened: AbstractContextManager[BinaryIO],
        schema: pa.Schema,
        *,
        leaves: tuple[LeafPath, ...],
        options: Mapping[str, Any],
    ) -> None:
        self.path = path
        self._statistics = RunningStatistics(schema, leaves)
        with ExitStack() as context:
            self._sink = pa.PythonFile(context.enter_context(opened), mode="w")
            every = {**WRITER_OPTIONS, "write_statistics": _bounded(schema), **options}
            self._writer = pq.ParquetWriter(self._sink, schema, **every)
            self._context = context.pop_all()

    @property
    def size_bytes(self) -> int:
        """The number of bytes written so far."""
        return int(self._sink.tell())

    def write_row_group(self, rows: pa.Table) -> None:
        """Writes `rows`, which are of the schema, as one row group."""
        with self._in_its_contexts_words():
            self._writer.write_table(rows, row_group_size=rows.num_rows)
        self._statistics.add(rows)

    def finish(self) -> tuple[int, FileStatistics]:
        """Completes the file; gives its size in bytes and its statistics."""
        with self._in_its_contexts_words():
            self._writer.close()
        size_bytes = self.size_bytes
        self._context.close()
        return size_bytes, self._statistics.result()

    def abort(self, error: BaseException) -> None:
        """Leaves the file's context with `error`, which the caller must raise; never raises itself."""
        try:
            self._leave(error)
        except BaseException as second:  # noqa: BLE001 - the first error is the one to raise, and other files wait
            if second is not error:
                error.add_note(f"Dropping {self.path} failed as well: {second!r}")

    @contextmanager
    def _in_its_contexts_words(self) -> Iterator[None]:
        """Leaves the file's context with an OSError, so that the context can name the file in the error."""
        try:
            yield
        except OSError as error:
            self._leave(error)
            raise

    def _leave(self, error: BaseException) -> None:
        # A writer that is left open would write a footer when it is garbage collected, into a file that no longer
        # exists.
        with suppress(pa.ArrowException, OSError, ValueError):
            self._writer.close()
        self._context.__exit__(type(error), error, error.__traceback__)
