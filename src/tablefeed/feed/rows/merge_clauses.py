"""What a user asks a merge to do: its clauses, and the columns by which rows of the source and of the table match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tablefeed.data.sql import NotExactError
from tablefeed.errors import IllegalOptionError
from tablefeed.feed.arguments import text
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


Clause = Update | Delete | Insert


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """What is merged: the rows of the source, by which columns they match, and the clauses in their order."""

    rows: pa.Table
    on: str | tuple[str, ...]
    matched: tuple[Update | Delete, ...] = ()
    not_matched: tuple[Insert, ...] = ()
    not_matched_by_source: tuple[Update | Delete, ...] = ()

    def __post_init__(self) -> None:
        if not (self.matched or self.not_matched or self.not_matched_by_source):
            explain = "must be given a clause, or not_matched or not_matched_by_source"
            raise IllegalOptionError(option="matched", value="()", explain=explain, error_class="MERGE_WITHOUT_WHEN")


_NOT_LAST = {
    "matched": "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    "not_matched": "NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION",
    "not_matched_by_source": "NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}
"""Spark's error classes, by the argument."""


def clauses(given: object, argument: str, kinds: tuple[type[Any], ...]) -> Iterator[Any]:  # Any: `kinds`
    """Yields the clauses that a user passed, one or several. Raises IllegalOptionError for anything else.

    Also for a clause without a condition that is not the last: those after it would never apply.
    """
    several: list[Any] = [given] if isinstance(given, str) or not isinstance(given, Iterable) else [*given]
    for number, clause in enumerate(several, 1):
        if not isinstance(clause, kinds):
            names = " or ".join(f"tablefeed.{kind.__name__}" for kind in kinds)
            raise IllegalOptionError(option=argument, value=str(clause), explain=f"must be a list of {names}")
        _check(clause, argument)
        if clause.where is None and number < len(several):
            explain = "has no condition, so that the clauses after it never apply: give it `where`, or put it last"
            error_class = _NOT_LAST[argument]
            raise IllegalOptionError(option=argument, value=str(clause), explain=explain, error_class=error_class)
        yield clause


def _check(clause: Clause, argument: str) -> None:
    given: object = None if isinstance(clause, Delete) else clause.set if isinstance(clause, Update) else clause.values
    if given is not None and not (isinstance(given, Mapping) and given):
        raise IllegalOptionError(option=argument, value=str(clause), explain="must give columns their new values")
    named = (*given, *given.values()) if isinstance(given, Mapping) else ()
    for each in named if clause.where is None else (*named, clause.where):
        text(each, argument=argument)


def compared(on: str | tuple[str, ...], source: Struct, target: Struct) -> tuple[str, list[tuple[Field, Field]]]:
    """Gives the condition as SQL, and the pairs of columns of source and table that it compares for equality."""
    if isinstance(on, str):
        shown, pairs = on, _equalities(on, source, target)
    else:
        pairs = [(_column(source, name, SOURCE), _column(target, name, TARGET)) for name in on]
        shown = " AND ".join(f"{TARGET}.{ours.name} = {SOURCE}.{theirs.name}" for theirs, ours in pairs)
        if len({ours.name for _, ours in pairs}) < len(pairs):
            raise IllegalOptionError(option="on", value=", ".join(on), explain="names a column twice")
    if not pairs:
        explain = (
            f"must compare a column of {SOURCE} with one of {TARGET}, such as target.id = source.id; columns that both "
            "have are given as a list, such as ['id']"
        )
        raise IllegalOptionError(option="on", value=shown, explain=explain)
    return shown, pairs


def _column(schema: Struct, name: str, side: str) -> Field:
    alike = [field for field in schema if field.name.lower() == name.lower()]
    if len(alike) != 1:
        explain = f"names {name}, but the {side} has {', '.join(schema.names)}"
        raise IllegalOptionError(option="on", value=name, explain=explain)
    return alike[0]


def _equalities(condition: str, source: Struct, target: Struct) -> list[tuple[Field, Field]]:
    from sqlglot import exp

    from tablefeed.data.sql.parse import parse

    try:
        tree = parse(condition)
    except NotExactError as error:
        explain = f"cannot be evaluated at {error.part!r:.200}: {error.reason}"
        raise IllegalOptionError(option="on", value=condition, explain=explain) from error
    pairs: dict[str, tuple[Field, Field]] = {}
    for part in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        part = part.unnest()
        if isinstance(part, exp.EQ) and isinstance(part.left, exp.Column) and isinstance(part.right, exp.Column):
            # source.target.id is a member of the column target of the source, not a column of the target.
            sides = {side.table.lower(): side.name for side in (part.left, part.right) if len(side.parts) == 2}
            if sides.keys() == {SOURCE, TARGET}:
                # One suffices to find rows by a column: the whole condition decides later.
                ours = _column(target, sides[TARGET], TARGET)
                pairs.setdefault(ours.name, (_column(source, sides[SOURCE], SOURCE), ours))
    return list(pairs.values())
