"""Reads a filter expression as a tree, and finds the columns that it names.

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
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a member of a struct, by the names from the top."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that is written in the filter."""

    value: pa.Scalar


@dataclass(frozen=True, slots=True)
class Call:
    """An Arrow function by its name. `options` is a struct with a member for each option, None where it has none."""

    function: str
    arguments: tuple[Node, ...]
    options: pa.StructScalar | None


Node = Column | Literal | Call


def tree(condition: pc.Expression) -> Node | None:
    """Gives the tree of `condition`; None where it cannot be read (for example a column by its number)."""
    try:
        _, (form,) = condition.__reduce__()
        row = pa.ipc.open_file(form).get_batch(0)
        return _built(_metadata(row.schema), [column[0] for column in row.columns])
    except (pa.ArrowException, ValueError, TypeError, LookupError):
        return None


def columns_in(node: Node) -> frozenset[Column]:
    """Gives the columns that the tree names, also those below unknown functions."""
    found: set[Column] = set()
    waiting = [node]
    while waiting:
        match waiting.pop():
            case Column() as column:
                found.add(column)
            case Call(arguments=arguments):
                waiting += arguments
            case Literal():
                pass
    return frozenset(found)


class _UnreadableError(ValueError):
    """The pickled form is not as expected."""


def _built(steps: Iterator[tuple[str, str]], constants: list[pa.Scalar]) -> Node:
    # A call's steps are its name, its arguments, its options if any, and its end. No recursion: filters can be deep.
    unfinished: list[tuple[str, list[Node], list[pa.StructScalar]]] = []
    for key, value in steps:
        node: Node
        match key:
            case "call":
                unfinished.append((value, [], []))
                continue
            case "options":
                unfinished[-1][2].append(_constant(constants, value))
                continue
            case "literal":
                node = Literal(_constant(constants, value))
            case "field_ref":
                node = Column((value,))
            case "nested_field_ref":
                node = Column(tuple(_name(next(steps, None)) for _ in range(int(value))))
                if not node.path:
                    raise _UnreadableError
            case "end":
                function, arguments, options = unfinished.pop()
                if function != value or len(options) > 1:
                    raise _UnreadableError
                if not arguments:  # `random`, which gives another value at each call
                    raise _UnreadableError
                node = Call(function, tuple(arguments), options[0] if options else None)
            case _:
                raise _UnreadableError
        if unfinished:
            unfinished[-1][1].append(node)
        elif next(steps, None) is None:
            return node
        else:
            break
    raise _UnreadableError


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
