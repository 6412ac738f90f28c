"""What a user asks a merge to do: its clauses, and the columns by which rows of the source and of the table match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from tablefeed.data.sql import NotExactError
from tablefeed.errors import IllegalOptionError
from tablefeed.model.schema import Field, Struct

SOURCE, TARGET = "source", "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Sets columns of a row of the table where `where` is true (None: always).

    `set` maps columns to SQL over `source` and `target`; None sets every column that the source has.
    """

    set: Mapping[str, str] | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Deletes a row of the table where `where` is true (None: always)."""

    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """Inserts a row of the source where `where` is true (None: always).

    `values` maps columns to SQL over `source`; None takes every column that the source has. A column without a value
    gets its default, or null.
    """

    values: Mapping[str, str] | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """What is merged: the rows of the source, by which columns they match, and the clauses in their order."""

    rows: pa.Table
    on: str | tuple[str, ...]
    matched: tuple[Update | Delete, ...] = ()
    not_matched: tuple[Insert, ...] = ()
    not_matched_by_source: tuple[Update | Delete, ...] = ()


_Clause = TypeVar("_Clause")


def clauses(given: Sequence[_Clause], argument: str, kinds: tuple[type, ...]) -> tuple[_Clause, ...]:
    """Gives the clauses that a user passed. Raises IllegalOptionError for anything else."""
    found = tuple(given) if isinstance(given, Sequence) else (given,)
    for clause in found:
        if not isinstance(clause, kinds):
            names = " or ".join(f"tablefeed.{kind.__name__}" for kind in kinds)
            raise IllegalOptionError(option=argument, value=str(clause), explain=f"must be a list of {names}")
    return found


def column(schema: Struct, name: str, side: str) -> Field:
    """Gives the column `name` of `schema`, which is that of the source or the target (`side`).

    Raises IllegalOptionError where there is none, or several that differ in case.
    """
    alike = [field for field in schema if field.name.lower() == name.lower()]
    if len(alike) != 1:
        explain = f"names {name}, but the {side} has {', '.join(schema.names)}"
        raise IllegalOptionError(option="on", value=name, explain=explain)
    return alike[0]


def compared(on: str | tuple[str, ...], source: Struct, target: Struct) -> tuple[str, list[tuple[str, str]]]:
    """Gives the condition as SQL, and the pairs of columns of source and table that it compares for equality."""
    if not isinstance(on, str):
        pairs = [(column(source, name, SOURCE).name, column(target, name, TARGET).name) for name in on]
        shown = " AND ".join(f"{TARGET}.{ours} = {SOURCE}.{theirs}" for theirs, ours in pairs)
    else:
        shown, pairs = on, _equalities(on, source, target)
    if not pairs:
        explain = f"must compare a column of {SOURCE} with one of {TARGET}, such as target.id = source.id"
        raise IllegalOptionError(option="on", value=shown, explain=explain)
    return shown, pairs


def _equalities(text: str, source: Struct, target: Struct) -> list[tuple[str, str]]:
    from sqlglot import exp

    from tablefeed.data.sql.parse import parse

    try:
        tree = parse(text)
    except NotExactError as error:
        raise IllegalOptionError(option="on", value=text, explain=str(error)) from error
    parts = list(tree.flatten()) if isinstance(tree, exp.And) else [tree]
    pairs: list[tuple[str, str]] = []
    for part in parts:
        part = part.unnest()
        if isinstance(part, exp.EQ) and isinstance(part.left, exp.Column) and isinstance(part.right, exp.Column):
            sides = {side.table.lower(): side.name for side in (part.left, part.right)}
            if sides.keys() == {SOURCE, TARGET}:
                pairs.append((column(source, sides[SOURCE], SOURCE).name, column(target, sides[TARGET], TARGET).name))
    return pairs
