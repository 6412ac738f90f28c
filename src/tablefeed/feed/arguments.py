"""Checks the arguments of the Python API: a bad argument raises our own error before a row is read."""

from __future__ import annotations

import json
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tablefeed.errors import IllegalOptionError, MissingPathError, SchemaMismatchError, naming
from tablefeed.store.address import parse_address

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from tablefeed.data.predicate import RowFilter

_Word = TypeVar("_Word", bound=StrEnum)

_MOST = 2**63 - 1
"""The largest long: log versions and txn versions are longs in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The begin or the end of a read as the user named it: by `version`, by `timestamp`, or not at all.

    A timestamp that names no zone is read in `time_zone`, in UTC where that is None. Unless the bound is `inclusive`,
    the commit at the bound itself is not delivered. Only a stream begins at "latest".
    """

    version: int | Literal["latest"] | None = None
    timestamp: str | datetime | date | None = None
    time_zone: tzinfo | None = None
    inclusive: bool = True

    @property
    def is_named(self) -> bool:
        """Whether the user named this bound."""
        return self.version is not None or self.timestamp is not None


def location(url: object, *, argument: str = "url") -> str:
    """Gives the path or URL of a table as text. Raises MissingPathError for None, else IllegalOptionError."""
    if url is None:
        raise MissingPathError("No path was given. Give the path or URL of the table.")
    path = os.fspath(url) if isinstance(url, str | os.PathLike) else None
    if not isinstance(path, str):
        raise IllegalOptionError(
            option=argument, value=str(url), explain="must be a path or a URL, as text or os.PathLike"
        )
    return text(path, argument=argument)


def from_any_folder(location: str) -> str:
    """Gives `location` for processes with other working directories: a relative path becomes absolute."""
    address = parse_address(location)
    return address.location if address.scheme == "file" else location


def store_options(given: object, *, argument: str = "storage_options") -> dict[str, str]:
    """Gives storage options as a dict, empty for None; a mapping among them as JSON, as the store reads it.

    Raises IllegalOptionError, which does not show their values.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise IllegalOptionError(
            option=argument, value=f"a {type(given).__name__}", explain="must map names to values, both text"
        )
    return {name: _store_option(f"{argument}[{name!r}]", value) for name, value in given.items()}


def _store_option(argument: str, value: Any) -> Any:  # Any: numbers and credentials of a client pass as they are
    try:
        if isinstance(value, Mapping | list | set):
            return json.dumps(value if isinstance(value, list | set) else dict(value), sort_keys=True)
        hash(value)  # stores and tables that a process keeps are found by their options
    except TypeError as error:
        raise IllegalOptionError(
            option=argument, value=f"a {type(value).__name__}", explain="must be JSON or a text"
        ) from error
    return value


def switch(value: object, *, argument: str) -> bool:
    """Gives `value`. Raises IllegalOptionError unless it is a bool: Python would take the text 'false' as true."""
    if not isinstance(value, bool):
        raise IllegalOptionError(option=argument, value=str(value), explain="must be True or False")
    return value


def check_function(value: object, *, argument: str) -> None:
    """Raises IllegalOptionError unless `value` is a function or None."""
    if value is not None and not callable(value):
        raise IllegalOptionError(option=argument, value=str(value), explain="must be a function")


def word(words: type[_Word], value: object, *, argument: str) -> _Word:
    """Gives the one of `words` that `value` is, in upper or lower case. Raises IllegalOptionError."""
    if isinstance(value, str) and value.lower() in list(words):
        return words(value.lower())
    *most, last = (repr(str(each)) for each in words)
    raise IllegalOptionError(option=argument, value=str(value), explain=f"must be {', '.join(most)} or {last}")


def text(value: object, *, argument: str) -> str:
    """Gives `value`. Raises IllegalOptionError unless it is a text without lone surrogates, which no log can hold."""
    if not isinstance(value, str):
        raise IllegalOptionError(option=argument, value=str(value), explain="must be a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise IllegalOptionError(
            option=_shown(argument), value=_shown(value), explain="must be a text that UTF-8 can hold"
        ) from error
    return value


def _shown(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def checked_id(value: object, *, argument: str) -> str:
    """Gives `value`. Raises IllegalOptionError unless `is_id`."""
    if isinstance(value, str) and is_id(value):
        return value
    explain = "must be 1 to 128 letters, digits, dots, hyphens and underscores, and begin with a letter or a digit"
    raise IllegalOptionError(option=argument, value=str(value), explain=explain)


def is_id(value: str) -> bool:
    """Says whether `value` can name a file on every store, and one that does not look hidden."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", value) is not None


def column_names(value: object, *, argument: str) -> tuple[str, ...]:
    """Gives the names in `value`. Raises IllegalOptionError for a single text and unless it is an iterable of texts."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise IllegalOptionError(option=argument, value=str(value), explain="must be a list of column names")
    return tuple(text(name, argument=argument) for name in value)


def whole_number(value: object, *, argument: str, least: int | None = None) -> int:
    """Gives `value` as an int that fits 64 bits and is at least `least`. Raises IllegalOptionError for others.

    A bool is refused: Python would take True as 1.
    """
    bound = "" if least is None else f" of at least {least}"
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]  # raises TypeError
    except TypeError:
        number = None
    if number is None or abs(number) > _MOST or (least is not None and number < least):
        if number is not None and abs(number) > _MOST:
            bound += f", at most {_MOST}"
        raise IllegalOptionError(option=argument, value=str(value), explain=f"must be a whole number{bound}")
    return number


def zone(value: object) -> tzinfo | None:
    """Gives the zone that the argument `time_zone` names; None for None. Raises IllegalOptionError."""
    if value is None:
        return None
    from tablefeed.feed.timestamp_text import read_zone

    found = read_zone(text(value, argument="time_zone").strip())
    if found is None:
        raise IllegalOptionError(
            option="time_zone", value=str(value), explain="must be a time zone such as 'Europe/Berlin' or '+01:00'"
        )
    return found


def selected(schema: pa.Schema, columns: object, *, url: str) -> pa.Schema:
    """Gives the fields that `columns` names, in that order and as often as it names them; None: all fields.

    Raises SchemaMismatchError for a name that is no column of `schema`, IllegalOptionError as `column_names` does.
    """
    import pyarrow as pa

    if columns is None:
        return schema
    wanted, there = column_names(columns, argument="columns"), {*schema.names}
    unknown = next((name for name in wanted if name not in there), None)
    if unknown is not None:
        raise SchemaMismatchError(f"{url} has no column {unknown!r}. It has {', '.join(schema.names)}.", url=url)
    return pa.schema([schema.field(name) for name in wanted])


def delivered(
    read: Callable[[pa.Schema], Iterator[pa.RecordBatch]], wanted: pa.Schema, row_filter: RowFilter | None, *, url: str
) -> pa.RecordBatchReader:
    """Gives the rows of `read` that pass `row_filter` (None: all), with the columns `wanted`.

    `read` gets the columns to read: those of `wanted` and of `row_filter`, each once.
    """
    import pyarrow as pa

    named = wanted if row_filter is None else [*row_filter.fields, *wanted]
    rows = read(pa.schema({field.name: field for field in named}.values()))
    if row_filter is not None:
        rows = filtered(rows, row_filter.condition, wanted, url=url)
    elif len({*wanted.names}) < len(wanted):
        rows = (batch.select(wanted.names) for batch in rows)
    return pa.RecordBatchReader.from_batches(wanted, _named(rows, url))


def _named(rows: Iterator[pa.RecordBatch], url: str) -> Iterator[pa.RecordBatch]:
    with naming(url):
        yield from rows


def filtered(
    rows: Iterator[pa.RecordBatch], condition: pc.Expression, wanted: pa.Schema, *, url: str
) -> Iterator[pa.RecordBatch]:
    """Gives the rows for which `condition` is true, with only the columns of `wanted`."""
    import pyarrow as pa

    for batch in rows:
        try:
            kept = pa.Table.from_batches([batch]).filter(condition)
        except pa.ArrowException as error:
            raise bad_filter(condition, url, str(error)) from error
        yield from kept.select(wanted.names).to_batches()


def bad_filter(condition: object, url: str, reason: str) -> IllegalOptionError:
    """The error for a `filter` of the Python API that cannot be used."""
    explain = f"cannot filter the rows of {url}: {reason}"
    return IllegalOptionError(option="filter", value=shown_filter(condition), explain=explain)


def shown_filter(condition: object) -> str:
    """Gives the text of a `filter` for people."""
    try:
        return str(condition)
    except UnicodeDecodeError:  # pyarrow shortens a long text and may cut through a character
        return "an expression"
