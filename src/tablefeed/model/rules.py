"""The rules of a table that written rows must obey, as SQL text from the log.

NOT NULL is not among them: it is part of the schema (`Field.nullable`).
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

    `path` leads from the column down to the text; elements, keys and values are called `element`, `key` and `value`.
    """

    path: tuple[str, ...]
    length: int
    kind: Literal["char", "varchar"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityColumn:
    """A column of longs whose values writers generate: `start` + k * `step`, no value twice.

    `high_water_mark` is the last generated value, None where there is none yet. `step` is not 0. Rows may bring values
    of their own where `takes_given`.
    """

    name: str
    start: int
    step: int
    high_water_mark: int | None
    takes_given: bool

    @property
    def next(self) -> int:
        """The next value to generate, in the direction of `step`."""
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
