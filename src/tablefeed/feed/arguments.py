"""What callers of the Python API pass, judged where it comes in: a bad argument is our error, before a row is read."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tablefeed.errors import IllegalOptionError, SchemaMismatchError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

_MOST = 2**63 - 1
"""A long, which versions of both kinds are in the log."""


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


def selected(schema: pa.Schema, columns: Sequence[str] | None, *, url: str) -> pa.Schema:
    """Gives the fields of `columns` in that order, all where it is None. Raises SchemaMismatchError for others."""
    import pyarrow as pa

    if columns is None:
        return schema
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        raise SchemaMismatchError(f"{url} has no column {unknown[0]!r}; it has {', '.join(schema.names)}.", url=url)
    return pa.schema([schema.field(name) for name in columns])


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
