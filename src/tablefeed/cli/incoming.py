"""Rows from files and stdin: CSV, JSON lines, Parquet or an Arrow stream, as batches of one schema.

Text files have no types. If the table exists, values get the types of its columns. Otherwise the first file decides:
the types of a text file are guessed from all its values, and later files use them.
Values have the forms that `cat` writes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from json import JSONDecodeError
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

import tablefeed
from tablefeed.cli.text_values import UnfitValueError, array_of, from_texts, guessed_type, read_json, unfit
from tablefeed.errors import TableNotFoundError

if TYPE_CHECKING:
    import pyarrow as pa

_STDIN = "-"
_UNREADABLE = (ValueError, TypeError, ArithmeticError, NotImplementedError)
"""What pyarrow and Python raise for a value that they cannot convert."""


class TextOrBinary(StrEnum):
    """The formats that can be read."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"


InputFormat = Annotated[
    TextOrBinary | None, typer.Option("--format", help="The format of the files; default: as their names end.")
]

_ENDINGS = {
    ".csv": TextOrBinary.CSV,
    ".json": TextOrBinary.JSONL,
    ".jsonl": TextOrBinary.JSONL,
    ".ndjson": TextOrBinary.JSONL,
    ".parquet": TextOrBinary.PARQUET,
    ".arrow": TextOrBinary.ARROW,
    ".arrows": TextOrBinary.ARROW,
}


@contextmanager
def opened_rows(
    files: Sequence[str],
    shape: TextOrBinary | None,
    table: str,
    options: Mapping[str, str],
    on_rows: Callable[[int], None],
) -> Iterator[pa.RecordBatchReader]:
    """Gives the rows of all files, which must have one schema. `on_rows` is called with the rows of each batch.

    Parquet and Arrow are streamed, text is in memory file by file.
    """
    import pyarrow as pa

    formats = [_format_of(name, shape) for name in files]
    known = _schema_of(table, options) if {*formats} & {TextOrBinary.CSV, TextOrBinary.JSONL} else None
    with ExitStack() as opened:
        schema, batches = _read(opened, files[0], formats[0], known)

        def rows() -> Iterator[pa.RecordBatch]:
            yield from _checked(files[0], batches, on_rows)
            for name, shape in zip(files[1:], formats[1:], strict=True):
                other, more = _read(opened, name, shape, known or schema)
                if other != schema:
                    raise _unreadable(name, _difference(other, schema, files[0]))
                yield from _checked(name, more, on_rows)

        yield pa.RecordBatchReader.from_batches(schema, rows())


def _format_of(name: str, given: TextOrBinary | None) -> TextOrBinary:
    found = given or _ENDINGS.get(Path(name).suffix.lower())
    if found is None:
        raise typer.BadParameter(f"give it for {name}", param_hint="--format")
    return found


def _schema_of(table: str, options: Mapping[str, str]) -> pa.Schema | None:
    try:
        return tablefeed.open_table(table, storage_options=options).schema
    except TableNotFoundError:
        return None


def _read(
    opened: ExitStack, name: str, shape: TextOrBinary, known: pa.Schema | None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow as pa

    try:
        if name == _STDIN:
            return _READERS[shape](io.BufferedReader(_Stdin()), known)
        stream = opened.enter_context(Path(name).open("rb"))  # noqa: SIM115 - the stack closes it
        return _READERS[shape](stream, known)
    except OSError as error:
        raise _unreadable(name, error.strerror or str(error)) from error
    except RecursionError as error:
        raise _unreadable(name, "a value is too deep") from error
    except (pa.ArrowException, *_UNREADABLE) as error:
        raise _unreadable(name, str(error)) from error


def _difference(found: pa.Schema, wanted: pa.Schema, of: str) -> str:
    if found.names != wanted.names:
        return f"its columns are {', '.join(found.names)}, and those of {of} are {', '.join(wanted.names)}"
    field, other = next((a, b) for a, b in zip(found, wanted, strict=True) if a != b)
    return f"its column {field.name} is {field.type}, and in {of} it is {other.type}"


class _Stdin(io.RawIOBase):
    """Stdin for pyarrow, whose reads run in Python: so Ctrl-C ends also a read that begins just after it."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # Any: a buffer that can be written
        data = typer.get_binary_stream("stdin").read1(len(buffer))  # type: ignore[attr-defined]  # it is buffered
        buffer[: len(data)] = data
        return len(data)


def _checked(name: str, batches: Iterator[pa.RecordBatch], on_rows: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    try:
        for batch in batches:
            on_rows(batch.num_rows)
            yield batch
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(name, str(error)) from error


def _unreadable(name: str, reason: str) -> typer.BadParameter:
    shown = "stdin" if name == _STDIN else name
    return typer.BadParameter(f"{shown} cannot be read: {' '.join(reason.split())}", param_hint="FILE")


# --- the formats -----------------------------------------------------------------------------------------------------


def _parquet(stream: IO[bytes], _known: pa.Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow as pa
    from pyarrow import parquet

    file = parquet.ParquetFile(stream if stream.seekable() else pa.BufferReader(stream.read()))
    return file.schema_arrow, file.iter_batches()


class _Noticing(io.RawIOBase):
    """A stream that knows whether a read got nothing: Arrow reads none behind the mark at the end of its stream."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.has_ended = stream, False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.has_ended |= not data and size != 0
        return data


def _arrow(stream: IO[bytes], _known: pa.Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow as pa

    source = _Noticing(stream)
    reader = pa.ipc.open_stream(source)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from reader
        if source.has_ended:  # Arrow takes that for the end of the rows
            raise pa.ArrowInvalid("the stream has no mark at its end, so it may be cut off")

    return reader.schema, batches()


def _csv(stream: IO[bytes], known: pa.Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow as pa
    from pyarrow import csv

    data = stream.read()
    if not data:  # Arrow's own error for this may abort the process when it ends
        raise pa.ArrowInvalid("Empty CSV file")
    parse = csv.ParseOptions(newlines_in_values=True)
    names = csv.open_csv(pa.BufferReader(data), parse_options=parse).schema.names
    _check_names(names)
    # A row of nulls follows. In a file that is cut off within quotes it would be a part of the last value.
    data += (b"" if data.endswith(b"\n") else b"\n") + b"," * (len(names) - 1) + b"\n"
    parse.ignore_empty_lines = len(names) > 1  # in a file of one column an empty line is a null
    types = {name: kind for name in names if (kind := _known_type(name, known)) is not None}

    def read() -> pa.Table:
        convert = csv.ConvertOptions(
            column_types=dict.fromkeys(types, pa.string()),
            null_values=[""],  # an unquoted NA or null is a text like any other
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        # A reader of its own: the threads of the one before may still read ahead.
        rows = csv.read_csv(pa.BufferReader(data), parse_options=parse, convert_options=convert)
        if not rows.num_rows or any(column[-1].is_valid for column in rows.columns):
            raise pa.ArrowInvalid("it ends within a quoted value")
        return rows.slice(0, rows.num_rows - 1)

    found = read()
    large = {field.name: field.type for field in found.schema if _has_large_floats(found[field.name])}
    if large:  # the text says whether it is a number that a double does not hold
        types |= large
        found = read()
    for at, name in enumerate(names):
        if name in types:
            by_row = _whole_or_float if name in large else from_texts
            column = _located(found[name], types[name], name, by_row, lambda row: f"row {row + 1}")
            found = found.set_column(at, name, column)
    return found.schema, iter(found.to_batches())


def _has_large_floats(column: Any) -> bool:  # Any: pyarrow has no types
    """Whether a column of floats has one to which a whole number may have been rounded, or an infinite one."""
    import pyarrow as pa
    from pyarrow import compute as pc

    return bool(pa.types.is_floating(column.type) and pc.any(pc.greater_equal(pc.abs(column), 2.0**53)).as_py())


def _whole_or_float(texts: Any, kind: pa.DataType, name: str) -> Any:
    """As `from_texts`, for a type that was guessed. Refuses a whole number that the type does not hold exactly."""
    from pyarrow import compute as pc

    texts = pc.utf8_trim(texts, " \t")  # as Arrow's guess does
    column = from_texts(texts, kind, name)
    for text, value in zip(texts.to_pylist(), column.to_pylist(), strict=True):
        if text is not None and text.lstrip("+-").isdecimal() and int(text) != value:
            raise unfit(name, kind, text)
    return column


def _known_type(name: str, known: pa.Schema | None) -> pa.DataType | None:
    """The type of the table's column of that name; names are compared as the write does, without case."""
    return next((field.type for field in known or () if field.name.lower() == name.lower()), None)


def _check_names(names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            other = seen[name.lower()]
            raise ValueError(f"column {name!r} is there twice{'' if other == name else f', once as {other!r}'}")
        seen[name.lower()] = name


def _located(
    values: Any, kind: pa.DataType, name: str, read: Callable[..., Any], place: Callable[[int], str]
) -> Any:  # Any: JSON, and pyarrow has no types
    """Gives the column. An error names the place of the first value that does not fit it."""
    try:
        return read(values, kind, name)
    except _UNREADABLE:
        for at in range(len(values)):
            try:
                read(values[at : at + 1], kind, name)
            except UnfitValueError as error:
                raise ValueError(f"{place(at)}: {error}") from error
            except _UNREADABLE as error:
                value = values[at] if isinstance(values, list) else values[at].as_py()
                raise ValueError(f"{place(at)}: {unfit(name, kind, value)}") from error
        raise


def _jsonl(stream: IO[bytes], known: pa.Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow as pa

    rows, lines = list[dict[str, Any]](), list[int]()
    for number, line in enumerate(stream, 1):
        if line.strip():
            try:
                row = read_json(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except _UNREADABLE as error:
                reason = f"{error.msg} at character {error.colno}" if isinstance(error, JSONDecodeError) else error
                raise ValueError(f"line {number}: {reason}") from error
            if not isinstance(row, dict):
                raise ValueError(f"line {number} is not a JSON object")
            rows.append(row)
            lines.append(number)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if known is not None and not names:
        names = known.names[:1]  # Arrow does not count rows without columns
    _check_names(names)
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        kind = _known_type(name, known) or guessed_type(values, name)
        columns.append(_located(values, kind, name, array_of, lambda row: f"line {lines[row]}"))
    found = pa.table(columns, names=names)
    return found.schema, iter(found.to_batches())


_READERS: Mapping[TextOrBinary, Callable[[Any, Any], tuple[Any, Iterator[Any]]]] = {
    TextOrBinary.PARQUET: _parquet,
    TextOrBinary.ARROW: _arrow,
    TextOrBinary.CSV: _csv,
    TextOrBinary.JSONL: _jsonl,
}
