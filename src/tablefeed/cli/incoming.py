"""Rows from files and stdin: CSV, JSON lines, Parquet or an Arrow stream, as batches of one schema.

Text files have no types. If the table exists, values get the types of its columns. Otherwise the first file decides:
the types of a text file are guessed from all its values, and later files use them.
Values have the forms that `cat` writes.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

import tablefeed
from tablefeed.errors import TableNotFoundError

if TYPE_CHECKING:
    import pyarrow as pa

_STDIN = "-"


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
    except (pa.ArrowException, ValueError, TypeError, AttributeError, OverflowError, InvalidOperation) as error:
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


def _arrow(stream: IO[bytes], _known: pa.Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow as pa

    reader = pa.ipc.open_stream(stream)
    return reader.schema, iter(reader)


def _csv(stream: IO[bytes], known: pa.Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow as pa
    from pyarrow import csv

    types = {} if known is None else {f.name: pa.string() if _is_text_in_csv(f.type) else f.type for f in known}
    convert = csv.ConvertOptions(
        column_types=types,
        null_values=[""],  # an unquoted NA or null is a text like any other
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    found = csv.read_csv(stream, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=convert)
    for at, name in enumerate(found.schema.names):
        if name in found.schema.names[at + 1 :]:
            raise ValueError(f"column {name!r} is there twice")
        wanted = None if known is None or name not in known.names else known.field(name).type
        if wanted is not None and _is_text_in_csv(wanted):
            found = found.set_column(at, name, _from_texts(found[name], wanted, name))
    return found.schema, iter(found.to_batches())


def _is_text_in_csv(kind: pa.DataType) -> bool:
    """Whether `kind` has forms that pyarrow's reader does not read."""
    import pyarrow as pa

    return bool(pa.types.is_temporal(kind) or pa.types.is_floating(kind) or pa.types.is_binary(kind))


def _from_texts(texts: Any, kind: pa.DataType, name: str) -> Any:  # Any: pyarrow has no types
    import pyarrow as pa

    try:
        if pa.types.is_binary(kind):
            values = [None if text is None else base64.b64decode(text, validate=True) for text in texts.to_pylist()]
            return pa.array(values, kind)
        return texts.cast(kind)
    except (pa.ArrowException, binascii.Error) as error:
        raise ValueError(f"column {name!r} is no {kind}: {error}") from error


class _Number(float):
    """A float that remembers how it was written: a decimal has more digits."""

    text: str

    @classmethod
    def read(cls, text: str) -> _Number:
        number = cls(text)
        number.text = text
        return number

    def __int__(self) -> int:
        """Gives the whole number for a column of integers: pyarrow would leave a fraction out."""
        if math.isfinite(self) and not (exact := Decimal(self.text)) % 1:
            return int(exact)
        raise ValueError(f"{self.text} is no whole number")


def _jsonl(stream: IO[bytes], known: pa.Schema | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow as pa

    rows = [json.loads(line, parse_float=_Number.read) for line in stream if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("a line is not a JSON object")
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        kind = known.field(name).type if known is not None and name in known.names else pa.array(values).type
        for value in values:
            _check_shape(value, kind, name)
        is_known = known is not None and name in known.names
        columns.append(_from_json(values, kind, name) if is_known else pa.array(values, kind))
    found = pa.table(columns, names=names)
    return found.schema, iter(found.to_batches())


def _check_shape(value: Any, kind: pa.DataType, name: str) -> None:  # Any: JSON
    """Raises ValueError where pyarrow would make something else of a JSON value, or leave a part of it out."""
    import pyarrow as pa

    is_a = pa.types
    if value is None:
        return
    if is_a.is_floating(kind) and isinstance(value, bool):
        raise ValueError(f"{name!r} is {kind}, and true and false are no numbers")
    if is_a.is_list(kind):
        if not isinstance(value, list):
            raise ValueError(f"{name!r} is a list, and {json.dumps(value)} is none")
        for each in value:
            _check_shape(each, kind.value_type, name)
    if is_a.is_struct(kind) and isinstance(value, dict):
        members = {member.name: member.type for member in kind}
        for member, each in value.items():
            if member not in members:
                raise ValueError(f"{name!r} has no member {member!r}")
            _check_shape(each, members[member], f"{name}.{member}")
    if is_a.is_map(kind) and isinstance(value, dict):
        for each in value.values():
            _check_shape(each, kind.item_type, name)


def _from_json(values: list[Any], kind: pa.DataType, name: str) -> Any:  # Any: JSON, and pyarrow has no types
    import pyarrow as pa

    is_a = pa.types
    if is_a.is_temporal(kind) or is_a.is_binary(kind):
        return _from_texts(pa.array(values, pa.string()), kind, name)
    if is_a.is_decimal(kind):
        values = [None if value is None else Decimal(getattr(value, "text", str(value))) for value in values]
    elif is_a.is_floating(kind):
        values = [None if value is None else float(value) for value in values]
    elif is_a.is_map(kind):
        values = [None if value is None else list(value.items()) for value in values]
    return pa.array(values, kind)


_READERS: Mapping[TextOrBinary, Callable[[Any, Any], tuple[Any, Iterator[Any]]]] = {
    TextOrBinary.PARQUET: _parquet,
    TextOrBinary.ARROW: _arrow,
    TextOrBinary.CSV: _csv,
    TextOrBinary.JSONL: _jsonl,
}
