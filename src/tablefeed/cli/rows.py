"""Rows to the terminal, a pipe or a file: a table, CSV, JSON lines, Parquet or an Arrow stream.

A file appears under its name when it is complete. Rows are streamed: memory holds some batches.
"""

from __future__ import annotations

import io
import stat
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import date
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, cast

import typer

from tablefeed.cli.output import aligned, json_line
from tablefeed.cli.progress import counted
from tablefeed.errors import TableError
from tablefeed.model.spark_texts import date_text, timestamp_text

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_OF_A_PAGE = 500
"""Rows whose cells decide the widths of columns together."""
_ROWS_OF_A_GROUP = 1 << 20
"""Rows in a row group of Parquet."""
_BYTES_OF_A_GROUP = 128 << 20
_FIRST_DAY, _LAST_DAY = (day.toordinal() - date(1970, 1, 1).toordinal() for day in (date.min, date.max))
"""The first and the last day, since 1970, of the years 1 to 9999. Arrow writes their dates and times as SQL does."""


class RowFormat(StrEnum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"


Format = Annotated[
    RowFormat | None,
    typer.Option(
        "--format",
        help="Default: as the name of --output ends, else table on a terminal and jsonl elsewhere.",
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file, which appears when complete.")
]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=0, metavar="N", help="At most so many rows.")]

_ENDINGS = {
    ".csv": RowFormat.CSV,
    ".json": RowFormat.JSONL,
    ".jsonl": RowFormat.JSONL,
    ".ndjson": RowFormat.JSONL,
    ".parquet": RowFormat.PARQUET,
    ".arrow": RowFormat.ARROW,
    ".arrows": RowFormat.ARROW,
}


def chosen_format(given: RowFormat | None, output: Path | None, *, as_json: bool) -> RowFormat:
    """Gives the format to write. A terminal gets no binary data."""
    if as_json and given not in (None, RowFormat.JSONL):
        raise typer.BadParameter(f"contradicts --format {given}", param_hint="--json")
    if as_json:
        return RowFormat.JSONL
    if given is None and output is not None:
        given = _ENDINGS.get(output.suffix.lower())
        if given is None:
            raise typer.BadParameter("give --format: the name of the file does not say it", param_hint="--output")
    on_terminal = output is None and sys.stdout.isatty()
    if given is None:
        return RowFormat.TABLE if on_terminal else RowFormat.JSONL
    if on_terminal and given in (RowFormat.PARQUET, RowFormat.ARROW):
        raise typer.BadParameter(f"{given} is binary: give --output, or write to a pipe", param_hint="--format")
    return given


def write_rows(reader: pa.RecordBatchReader, shape: RowFormat, *, output: Path | None, limit: int | None) -> None:
    """Writes the rows of `reader`, at most `limit`. Shows their number meanwhile, unless a terminal shows the rows."""
    batches = reader if limit is None else _first(reader, limit)
    if output is None and sys.stdout.isatty():
        with _stdout() as sink:
            _WRITERS[shape](batches, reader.schema, sink)
        return
    with counted("written") as on_rows, _opened(output) as sink:
        _WRITERS[shape](_noted(batches, on_rows), reader.schema, sink)


def _noted(batches: Iterable[pa.RecordBatch], on_rows: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        on_rows(batch.num_rows)


def _first(batches: Iterable[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    if limit == 0:
        return
    for batch in batches:
        yield batch.slice(0, min(limit, batch.num_rows))
        limit -= min(batch.num_rows, limit)
        if limit == 0:
            return


def _opened(output: Path | None) -> AbstractContextManager[IO[bytes]]:
    return _stdout() if output is None else whole_file(output)


@contextmanager
def _stdout() -> Iterator[IO[bytes]]:
    stream = typer.get_binary_stream("stdout")
    yield stream
    stream.flush()


@contextmanager
def whole_file(output: Path) -> Iterator[IO[bytes]]:
    """Gives a file beside `output`, renamed at the end. An error or an interrupt deletes it.

    Gives `output` itself where it is a pipe or a device: renaming would replace it.
    """
    try:
        is_renamed = _is_a_file(output)
        target = output.resolve() if is_renamed else output  # follows a link
        # Not the id of the process: two containers that write to one folder can have the same.
        beside = target.with_name(f".tablefeed.{uuid.uuid4().hex}.tmp") if is_renamed else target
        try:
            with beside.open("xb" if is_renamed else "wb") as stream:
                if is_renamed and target.exists():
                    beside.chmod(target.stat().st_mode)
                yield stream
            if is_renamed:
                beside.replace(target)
        finally:
            if is_renamed:
                beside.unlink(missing_ok=True)  # raises where its folder is no folder or cannot be written
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise typer.BadParameter(f"cannot write {output}: {error.strerror}", param_hint="--output") from error


def _is_a_file(output: Path) -> bool:
    """Whether `output` is a file, or will be one. Raises OSError where it can be neither, such as for a long name."""
    try:
        return stat.S_ISREG(output.stat().st_mode)
    except FileNotFoundError:
        return True


# --- the formats -----------------------------------------------------------------------------------------------------


def values(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Gives rows as Python values. A date or time that Python does not have is a text.

    A map is a dict. Where its keys cannot be keys of a dict, or a key is there twice, it is a list of pairs.
    """
    return [dict(zip(batch.schema.names, row, strict=True)) for row in _tuples(batch)]


def _tuples(batch: pa.RecordBatch) -> Iterable[tuple[Any, ...]]:
    return zip(*map(_column, batch.columns), strict=True) if batch.num_columns else [()] * batch.num_rows


def _column(column: pa.Array) -> list[Any]:
    import pyarrow as pa

    try:
        return cast("list[Any]", column.to_pylist(maps_as_pydicts="strict"))
    except (TypeError, KeyError, ValueError, OverflowError, pa.ArrowException):
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:  # Any: pyarrow has no types
    import pyarrow as pa

    is_a, kind = pa.types, scalar.type
    if not scalar.is_valid:
        return None
    if is_a.is_list(kind):
        return [_value(each) for each in scalar.values]
    if is_a.is_struct(kind):
        return {name: _value(each) for name, each in scalar.items()}
    if is_a.is_map(kind):
        pairs = [(_value(entry["key"]), _value(entry["value"])) for entry in scalar.values]
        try:
            found = dict(pairs)
        except TypeError:
            return pairs
        return found if len(found) == len(pairs) else pairs
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        raise TableError(
            f"A text of the rows is not UTF-8: {error.object!r:.200}. Leave its column out, or use --format parquet or "
            "arrow, which keep the bytes."
        ) from error
    except (ValueError, OverflowError):
        if not is_a.is_temporal(kind):
            raise
    if is_a.is_date(kind):
        return date_text(scalar.value)
    return timestamp_text(scalar.cast(pa.timestamp("us", kind.tz)).value) + ("" if kind.tz is None else "Z")


def _write_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    header = True
    for page in _pages(batches):
        lines = aligned(schema.names, page)
        sink.write("".join(f"{line}\n" for line in (lines if header else lines[1:])).encode())
        header = False
    if header:
        sink.write(f"{aligned(schema.names, [])[0]}\n".encode())


def _pages(batches: Iterable[pa.RecordBatch]) -> Iterator[list[tuple[Any, ...]]]:
    rows = chain.from_iterable(
        _tuples(batch.slice(at, _ROWS_OF_A_PAGE))
        for batch in batches
        for at in range(0, batch.num_rows, _ROWS_OF_A_PAGE)
    )
    while page := list(islice(rows, _ROWS_OF_A_PAGE)):
        yield page


def _write_jsonl(batches: Iterable[pa.RecordBatch], _schema: pa.Schema, sink: IO[bytes]) -> None:
    for batch in batches:
        for at in range(0, batch.num_rows, _ROWS_OF_A_PAGE):
            sink.write("".join(f"{json_line(row)}\n" for row in values(batch.slice(at, _ROWS_OF_A_PAGE))).encode())


def _write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    import pyarrow as pa
    from pyarrow import csv

    header = csv.WriteOptions(include_header=True)
    for batch in batches:
        csv.write_csv(
            pa.RecordBatch.from_arrays(list(map(_csv_column, batch.columns)), names=schema.names), sink, header
        )
        header = csv.WriteOptions(include_header=False)
    if header.include_header:
        csv.write_csv(pa.table([pa.array([], pa.string())] * len(schema), names=schema.names), sink, header)


def _csv_column(column: pa.Array) -> pa.Array:
    """Gives nested values as JSON and bytes as base64. Times that Arrow writes wrongly are the texts that JSON has."""
    import pyarrow as pa
    from pyarrow import compute as pc

    is_a, kind = pa.types, column.type
    if is_a.is_temporal(kind):
        days = column.cast(pa.date32()).cast(pa.int32())
        if pc.all(pc.and_(pc.greater_equal(days, _FIRST_DAY), pc.less_equal(days, _LAST_DAY))).as_py() is not False:
            return column
    elif not (is_a.is_nested(kind) or is_a.is_binary(kind) or is_a.is_large_binary(kind)):
        return column
    texts = (None if value is None else json_line(value) for value in _column(column))
    return pa.array((text if text is None or is_a.is_nested(kind) else text.strip('"') for text in texts), pa.string())


class _Whole(io.RawIOBase):
    """A stream of a format that marks its end: rows that break off get no such mark, and no reader takes them."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._is_cut = stream, False

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:  # Any: a buffer
        return len(data) if self._is_cut else self._stream.write(data)

    @contextmanager
    def or_cut(self, end: bytes = b"") -> Iterator[None]:
        """Where the block raises, writes `end`, and nothing after that."""
        try:
            yield
        except BaseException:
            with suppress(OSError):
                self._stream.write(end)
            self._is_cut = True
            raise


_BEGIN_OF_A_MESSAGE = b"\xff" * 4
"""Of Arrow. A stream may end after a message, without a mark, but not within one."""


def _write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    whole = _Whole(sink)
    with parquet.ParquetWriter(whole, schema) as writer, whole.or_cut():
        group: list[pa.RecordBatch] = []
        rows = size_bytes = 0
        for batch in chain(batches, [None]):
            if group and (batch is None or rows >= _ROWS_OF_A_GROUP or size_bytes >= _BYTES_OF_A_GROUP):
                writer.write_table(pa.Table.from_batches(group, schema), row_group_size=rows)
                group, rows, size_bytes = [], 0, 0
            if batch is not None:
                group.append(batch)
                rows, size_bytes = rows + batch.num_rows, size_bytes + batch.nbytes


def _write_arrow(batches: Iterable[pa.RecordBatch], schema: pa.Schema, sink: IO[bytes]) -> None:
    import pyarrow as pa

    whole = _Whole(sink)
    with pa.ipc.new_stream(whole, schema) as writer, whole.or_cut(_BEGIN_OF_A_MESSAGE):
        for batch in batches:
            writer.write_batch(batch)


_WRITERS: dict[RowFormat, Callable[[Iterable[pa.RecordBatch], pa.Schema, IO[bytes]], None]] = {
    RowFormat.TABLE: _write_table,
    RowFormat.CSV: _write_csv,
    RowFormat.JSONL: _write_jsonl,
    RowFormat.PARQUET: _write_parquet,
    RowFormat.ARROW: _write_arrow,
}
