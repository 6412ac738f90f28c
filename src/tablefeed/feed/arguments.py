"""What callers of the Python API pass, judged where it comes in: a bad argument is our error, before a row is read."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tablefeed.errors import IllegalOptionError, MissingPathError, SchemaMismatchError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

_MOST = 2**63 - 1
"""A long, which versions of both kinds are in the log."""


def location(url: object) -> str:
    """Gives the path or URL of a table as text. Raises MissingPathError for None, IllegalOptionError for no path."""
    if url is None:
        raise MissingPathError("No path was given. Give the path or URL of the table.")
    path = os.fspath(url) if isinstance(url, str | os.PathLike) else None
    if not isinstance(path, str):
        raise IllegalOptionError(
            option="url", value=str(url), explain="must be a path or a URL, as text or os.PathLike"
        )
    return text(path, argument="url")


def store_options(given: object) -> dict[str, str]:
    """Gives storage options as a dict; none for None. Raises IllegalOptionError, which does not show their values."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise IllegalOptionError(
            option="storage_options", value=f"a {type(given).__name__}", explain="must map names to values, both text"
        )
    return dict(given)


def switch(value: object, *, argument: str) -> bool:
    """Gives `value`. Raises IllegalOptionError for what is no bool: the text 'false' is true."""
    if not isinstance(value, bool):
        raise IllegalOptionError(option=argument, value=str(value), explain="must be True or False")
    return value


def text(value: object, *, argument: str) -> str:
    """Gives `value`. Raises IllegalOptionError for what is no text, or one that no log can hold: a lone surrogate."""
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


def column_names(value: object, *, argument: str) -> tuple[str, ...]:
    """Gives the names that `value` iterates over. Raises IllegalOptionError for anything else."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise IllegalOptionError(option=argument, value=str(value), explain="must be a list of column names")
    return tuple(text(name, argument=argument) for name in value)


def whole_number(value: object, *, argument: str, least: int | None = None) -> int:
    """Gives `value` as an int of 64 bits, at least `least`. Raises IllegalOptionError for anything else."""
    bound = "" if least is None else f" of at least {least}"
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # what has no __index__ raises, and that is the question
    except TypeError:
        number = None
    if number is None or abs(number) > _MOST or (least is not None and number < least):
        raise IllegalOptionError(option=argument, value=str(value), explain=f"must be a whole number{bound}")
    return number


def selected(schema: pa.Schema, columns: object, *, url: str) -> pa.Schema:
    """Gives the fields of `columns`, names, in that order and as often as they are named; all where it is None.

    Raises SchemaMismatchError for a name that is no column's, IllegalOptionError as `column_names` does.
    """
    import pyarrow as pa

    if columns is None:
        return schema
    wanted, there = column_names(columns, argument="columns"), {*schema.names}
    unknown = next((name for name in wanted if name not in there), None)
    if unknown is not None:
        raise SchemaMismatchError(f"{url} has no column {unknown!r}; it has {', '.join(schema.names)}.", url=url)
    return pa.schema([schema.field(name) for name in wanted])


def delivered(
    read: Callable[[pa.Schema], Iterator[pa.RecordBatch]],
    wanted: pa.Schema,
    condition: Any,
    *,
    available: pa.Schema,
    url: str,
) -> pa.RecordBatchReader:
    """Gives rows as `wanted` that `read` gives of columns of `available`, those that `condition` lets through.

    No column is read that is neither wanted nor named by `condition`, and none twice. Raises IllegalOptionError for a
    condition that rows of `available` cannot be filtered by.
    """
    # Any: what a caller passed.
    import pyarrow as pa

    if condition is not None:
        check_filter(condition, available, url=url)
        needed = columns_to_read(available, wanted, condition)
        return pa.RecordBatchReader.from_batches(wanted, filtered(read(needed), condition, wanted, url=url))
    once = pa.schema({field.name: field for field in wanted}.values())
    rows = read(once)
    if len(once) < len(wanted):
        rows = (batch.select(wanted.names) for batch in rows)
    return pa.RecordBatchReader.from_batches(wanted, rows)


def check_filter(condition: Any, schema: pa.Schema, *, url: str) -> None:
    """Raises IllegalOptionError unless `condition` is an expression that rows of `schema` can be filtered by."""
    # Any: what a caller passed.
    import pyarrow as pa
    import pyarrow.compute as pc

    if not isinstance(condition, pc.Expression):
        raise _bad_filter(condition, url, "is no pyarrow.compute.Expression")
    try:
        schema.empty_table().filter(condition)
    except pa.ArrowException as error:
        raise _bad_filter(condition, url, str(error)) from error


def columns_to_read(schema: pa.Schema, wanted: pa.Schema, condition: pc.Expression) -> pa.Schema:
    """Gives the fields of `schema` that are in `wanted` or that `condition` names: all where that cannot be told."""
    import pyarrow as pa

    from tablefeed.data.condition import columns_in, tree

    node = tree(condition)
    if node is None:
        return schema
    names = {*wanted.names, *(column.path[0] for column in columns_in(node))}
    # At least one, for rows without columns cannot be filtered.
    return pa.schema([field for field in schema if field.name in names] or schema)


def filtered(
    rows: Iterator[pa.RecordBatch], condition: pc.Expression, wanted: pa.Schema, *, url: str
) -> Iterator[pa.RecordBatch]:
    """Gives the rows that `condition` lets through, cut to the columns of `wanted`."""
    import pyarrow as pa

    for batch in rows:
        try:
            kept = pa.Table.from_batches([batch]).filter(condition)
        except pa.ArrowException as error:
            raise _bad_filter(condition, url, str(error)) from error
        yield from kept.select(wanted.names).to_batches()


def _bad_filter(condition: object, url: str, reason: str) -> IllegalOptionError:
    try:
        shown = str(condition)
    except UnicodeDecodeError:  # pyarrow cuts a long text wherever it likes
        shown = "an expression"
    return IllegalOptionError(option="filter", value=shown, explain=f"cannot be asked of the rows of {url}: {reason}")
