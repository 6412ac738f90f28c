"""The tree of a filter. `where`, `replaceWhere` and a reader's `filter` become one, and everything asks that tree.

Rows are filtered by the Arrow expression that `arrow` makes of it. Files and manifests are judged by walking it
(`tablefeed.feed.snapshot.verdicts`). A node means what the Arrow function with its name means: it is true, false or
null for a row. Its values are Arrow scalars, because their types decide which casts Arrow inserts into a comparison.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a member of a struct, by the names from the top. As a predicate: its value, a boolean."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """A predicate with the same answer for every row: true, false or null."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`column` compared with `value` by one of `COMPARISONS`; null where either is null. NaN only differs from all."""

    function: str
    column: Column
    value: pa.Scalar

    def __reduce__(self) -> tuple[Callable[..., Comparison], tuple[object, ...]]:
        # pyarrow pickles a scalar as a Python object, and Python's times end with the year 9999. An array has no limit.
        return _with_first, (self.function, self.column, pa.array([self.value], self.value.type))


def _with_first(function: str, column: Column, values: pa.Array) -> Comparison:
    return Comparison(function, column, values[0])


@dataclass(frozen=True, slots=True)
class In:
    """Whether the column is one of `values`; never null. Null is one where they have a null. Floats match by bits."""

    column: Column
    values: pa.Array


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether the column is null, or NaN where `nan_is_null`; never null itself."""

    column: Column
    nan_is_null: bool = False


@dataclass(frozen=True, slots=True)
class IsNan:
    """Whether a floating point column is NaN; null where it is null."""

    column: Column


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part that is not understood. `columns` are all columns that it names."""

    columns: frozenset[Column]


@dataclass(frozen=True, slots=True)
class Not:
    """True where `part` is false, and null where it is null."""

    part: Predicate


@dataclass(frozen=True, slots=True)
class And:
    """True where all of `parts` are true, false where one is false, else null. There is at least one part."""

    parts: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """True where one of `parts` is true, false where all are false, else null. There is at least one part."""

    parts: tuple[Predicate, ...]


Atom = Column | Comparison | In | IsNull | IsNan
"""A question about one column."""

Predicate = Atom | Constant | Unknown | Not | And | Or

COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {  # Any: pyarrow has no types
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
"""The comparisons by their names in Arrow."""

FLIPPED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
"""The same comparison with its sides swapped, where that is another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Which rows are delivered: those for which `condition` is true, neither false nor null.

    `predicate` is the tree of `condition`, which filters rows. `fields` are the columns that it needs, at least one.
    """

    condition: pc.Expression
    predicate: Predicate
    fields: pa.Schema


def filter_by(predicate: Predicate, schema: pa.Schema, *, condition: pc.Expression | None = None) -> RowFilter:
    """Gives the filter by `predicate` of rows with the columns of `schema`.

    `condition` is the expression that `predicate` was read from; None: it was not, and has no `Unknown` part.
    """
    named = {column.path[0] for column in columns_in(predicate)}
    fields = pa.schema([field for field in schema if field.name in named] or schema)  # a row needs a column
    return RowFilter(condition=arrow(predicate) if condition is None else condition, predicate=predicate, fields=fields)


def column_of(atom: Atom) -> Column:
    """Gives the column that `atom` asks about."""
    return atom if isinstance(atom, Column) else atom.column


def columns_in(predicate: Predicate, *, understood: bool = False) -> frozenset[Column]:
    """Gives the columns that `predicate` names; with `understood` only those in parts that are."""
    found: set[Column] = set()
    waiting = [predicate]
    while waiting:
        match waiting.pop():
            case And(parts=parts) | Or(parts=parts):
                waiting += parts
            case Not(part=part):
                waiting.append(part)
            case Unknown(columns=columns):
                found |= frozenset() if understood else columns
            case Constant():
                pass
            case atom:
                found.add(column_of(atom))
    return frozenset(found)


def arrow(predicate: Predicate) -> pc.Expression:
    """Gives `predicate`, which has no `Unknown` part, as an Arrow expression."""
    match predicate:
        case Column(path=path):
            return pc.field(*path)
        case Comparison(function=function, column=column, value=value):
            return COMPARISONS[function](arrow(column), value)
        case In(column=column, values=values):
            return arrow(column).isin(values)
        case IsNull(column=column, nan_is_null=nan_is_null):
            return arrow(column).is_null(nan_is_null=nan_is_null)
        case IsNan(column=column):
            return pc.is_nan(arrow(column))
        case Constant(value=value):
            return pc.scalar(pa.scalar(value, pa.bool_()))
        case Not(part=part):
            return ~arrow(part)
        case And(parts=parts):
            return _joined([arrow(part) for part in parts], operator.and_)
        case Or(parts=parts):
            return _joined([arrow(part) for part in parts], operator.or_)
        case Unknown():
            raise ValueError("a part of a filter that is not understood cannot be made anew")


def _joined(parts: Sequence[pc.Expression], join: Callable[[Any, Any], Any]) -> pc.Expression:
    """The `parts` joined as a balanced tree: a long list joined one after the other overflows Arrow's stack."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [*(join(one, other) for one, other in pairs), *parts[len(parts) & ~1 :]]
    return parts[0]
