"""The rules of a table that its rows are held against when they are written, in SQL as the log has them.

That a column is NOT NULL is a part of its schema (`Field.nullable`) and stands there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A condition that must be true of every row: a CHECK constraint by its name, or a column's invariant."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLimit:
    """The most characters of a text that was declared as CHAR(n) or VARCHAR(n).

    `path` names it from its column down; elements, keys and values are called `element`, `key` and `value`.
    """

    path: tuple[str, ...]
    length: int
    kind: Literal["char", "varchar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityColumn:
    """A column of longs whose values are made by writers: `start` + k * `step`, no value twice.

    `high_water_mark` is the last value that was made, None where none was; `step` is not 0 and the mark one of the
    values. Rows may bring values of their own where `takes_given`.
    """

    name: str
    start: int
    step: int
    high_water_mark: int | None
    takes_given: bool

    @property
    def next(self) -> int:
        """The first value that was not made yet, in the direction of `step`."""
        mark = self.high_water_mark
        is_before_start = mark is not None and (mark - self.start) * self.step < 0
        return self.start if mark is None or is_before_start else mark + self.step


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRules:
    """All rules of a table. `generated` and `defaults` are expressions by column, as the schema spells it."""

    checks: tuple[Check, ...] = ()
    generated: Mapping[str, str] = field(default_factory=lambda: _NONE)
    defaults: Mapping[str, str] = field(default_factory=lambda: _NONE)
    limits: tuple[TextLimit, ...] = ()

    @property
    def needs_sql(self) -> bool:
        """Whether expressions are to be evaluated."""
        return bool(self.checks or self.generated or self.defaults)
