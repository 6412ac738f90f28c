"""Reads the filter that a caller of the Python API passes, a pyarrow expression, as a predicate.

pyarrow has no public way to inspect an expression. It can export one in two forms. `to_substrait` is a standard but
incomplete: it lacks comparisons that need a cast (a long against 5.5), functions without a Substrait name, and the set
of `is_in`. So this module reads the pickled form, which is complete: an Arrow file of one row. Its columns are the
literals and the options, and its schema's metadata holds the tree in reading order. The form is internal to Arrow and
may change. Anything that is not exactly as expected is unreadable, and the caller must then assume that any row can
pass the filter.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.predicate import (
    COMPARISONS,
    FLIPPED,
    And,
    Column,
    Comparison,
    Constant,
    In,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    RowFilter,
    Unknown,
    columns_in,
    filter_by,
)
from tablefeed.delta.schema.arrow_schema import from_arrow
from tablefeed.errors import naming
from tablefeed.feed.arguments import bad_filter
from tablefeed.feed.scan.where import row_filter
from tablefeed.model.schema import Struct


def checked_filter(condition: Any, schema: pa.Schema, *, table: Struct, url: str) -> RowFilter | None:
    """Gives the filter by `condition` of rows of `schema`; it may be a text in SQL. None for None.

    `table` has the table's columns, with the metadata that Arrow does not keep: CHAR and collations. Raises
    IllegalOptionError if it cannot filter such rows, and as `row_filter` for a text.
    """
    # Any: what a caller passed.
    if condition is None:
        return None
    if isinstance(condition, str):
        with naming(url):
            known = {column.name: column for column in table}
            columns = Struct(tuple(known.get(column.name, column) for column in from_arrow(schema)))
            return row_filter(condition, columns, option="filter")
    if not isinstance(condition, pc.Expression):
        raise bad_filter(condition, url, "is not a pyarrow.compute.Expression")
    try:
        schema.empty_table().filter(condition)
    except pa.ArrowException as error:
        raise bad_filter(condition, url, str(error)) from error
    return read_filter(condition, schema)


def read_filter(condition: pc.Expression, schema: pa.Schema) -> RowFilter:
    """Gives the filter by `condition` of rows with the columns of `schema`.

    Where `condition` cannot be read (for example a column by its number), its predicate is `Unknown` and its fields are
    all columns.
    """
    found = predicate(condition)
    if found is None:
        return RowFilter(condition=condition, predicate=Unknown(frozenset()), fields=schema)
    return filter_by(found, schema, condition=condition)


def predicate(condition: pc.Expression) -> Predicate | None:
    """Gives `condition` as a predicate, with parts that have no node of their own as `Unknown`; None: unreadable."""
    try:
        _, (form,) = condition.__reduce__()
        row = pa.ipc.open_file(form).get_batch(0)
        return _predicate(_built(_metadata(row.schema), [column[0] for column in row.columns]))
    except (pa.ArrowException, ValueError, TypeError, LookupError):
        return None


class _UnreadableError(ValueError):
    """The pickled form is not as expected."""


_Argument: TypeAlias = "Predicate | pa.Scalar"


@dataclass(slots=True)
class _Call:
    """An Arrow function by its name, as far as it is read. `nested` counts calls of a joining function in itself."""

    function: str
    arguments: list[_Argument] = field(default_factory=list)
    options: list[pa.StructScalar] = field(default_factory=list)
    nested: int = 0

    def option(self, name: str) -> pa.Scalar | None:
        """Gives an option; None where the call does not have it."""
        known = self.options and self.options[0].type.get_field_index(name) >= 0
        return self.options[0][name] if known else None


def _built(steps: Iterator[tuple[str, str]], constants: list[pa.Scalar]) -> _Argument:
    # A call's steps are its name, its arguments, its options if any, and its end. No recursion: filters can be deep.
    unfinished: list[_Call] = []
    for key, value in steps:
        node: _Argument
        match key:
            case "call" if value in _JOINING and unfinished and unfinished[-1].function == value:
                unfinished[-1].nested += 1
                continue
            case "end" if unfinished[-1].nested and unfinished[-1].function == value:
                unfinished[-1].nested -= 1
                continue
            case "call":
                unfinished.append(_Call(value))
                continue
            case "options":
                unfinished[-1].options.append(_constant(constants, value))
                continue
            case "literal":
                node = _constant(constants, value)
            case "field_ref":
                node = Column((value,))
            case "nested_field_ref":
                node = Column(tuple(_name(next(steps, None)) for _ in range(int(value))))
                if not node.path:
                    raise _UnreadableError
            case "end":
                call = unfinished.pop()
                # `random` has no arguments. It gives another value at each call.
                if call.function != value or len(call.options) > 1 or not call.arguments:
                    raise _UnreadableError
                node = _understood(call)
            case _:
                raise _UnreadableError
        if unfinished:
            unfinished[-1].arguments.append(node)
        elif next(steps, None) is None:
            return node
        else:
            break
    raise _UnreadableError


_JOINING = frozenset({"and", "and_kleene", "or", "or_kleene"})
_MATCH = 0  # SetLookupOptions::NullMatchingBehavior, and the only one that `Expression.isin` makes


def _understood(call: _Call) -> Predicate:
    match call.function, call.arguments:
        case "and" | "and_kleene", parts:
            return And(tuple(map(_predicate, parts)))
        case "or" | "or_kleene", parts:
            return Or(tuple(map(_predicate, parts)))
        case "invert", [part]:
            return Not(_predicate(part))
        case function, [Column() as column, pa.Scalar() as value] if function in COMPARISONS:
            return Comparison(function, column, value)
        case function, [pa.Scalar() as value, Column() as column] if function in COMPARISONS:
            return Comparison(FLIPPED.get(function, function), column, value)
        case "is_valid", [Column() as column]:
            return Not(IsNull(column))
        case "is_null", [Column() as column] if (option := call.option("nan_is_null")) is not None:
            return IsNull(column, nan_is_null=bool(option.as_py()))
        case "is_nan", [Column() as column]:
            return IsNan(column)
        case "is_in", [Column() as column] if isinstance(wanted := call.option("value_set"), pa.ListScalar):
            matching = call.option("null_matching_behavior")
            if matching is not None and matching.as_py() == _MATCH:
                return In(column, wanted.values)
    named = (columns_in(part) for part in call.arguments if not isinstance(part, pa.Scalar))
    return Unknown(frozenset().union(*named))


def _predicate(argument: _Argument) -> Predicate:
    if not isinstance(argument, pa.Scalar):
        return argument
    return Constant(argument.as_py()) if pa.types.is_boolean(argument.type) else Unknown(frozenset())


def _constant(constants: list[pa.Scalar], index: str) -> pa.Scalar:
    if not index.isdecimal():
        raise _UnreadableError
    return constants[int(index)]


def _name(step: tuple[str, str] | None) -> str:
    if step is None or step[0] != "field_ref":
        raise _UnreadableError
    return step[1]


class _CSchema(ctypes.Structure):
    """The head of `struct ArrowSchema` (the Arrow C data interface, which is an ABI and does not change)."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


_pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """The schema's metadata in order. pyarrow gives it as a dict, which would keep only one value for a key."""
    capsule = schema.__arrow_c_schema__()  # owns the memory that is read here
    position = _CSchema.from_address(_pointer_in(capsule, b"arrow_schema")).metadata

    def number() -> int:
        nonlocal position
        data = ctypes.string_at(position, 4)
        position += 4
        return int.from_bytes(data, sys.byteorder, signed=True)

    def text() -> str:
        nonlocal position
        length = number()
        data = ctypes.string_at(position, length)
        position += length
        return data.decode()

    pairs = [(text(), text()) for _ in range(number())] if position else []
    return iter(pairs)
