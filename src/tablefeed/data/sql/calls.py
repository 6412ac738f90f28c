"""The call of a function: casts its arguments to the types that functions take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tablefeed.data.sql import kinds
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.terms import Failure, Scope, Term, strict
from tablefeed.data.sql.times import clock_of
from tablefeed.model.schema import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function's call: `part` is its text, for errors."""

    scope: Scope
    part: str
    arguments: Sequence[Term]

    def refuse(self, reason: str) -> Exception:
        """The error of this call for `reason`."""
        return self.scope.refuse(self.part, reason)

    def literal(self, index: int) -> str:
        """An argument that must be a text literal."""
        value = self.arguments[index].literal
        if not isinstance(value, str):
            raise self.refuse("this argument must be a literal")
        return value

    def argument(self, index: int, takes: str) -> Term:
        """An argument as one of _TYPES, or as the wall clock of a timestamp: c."""
        term = self.arguments[index]
        if takes == "c" and term.type == kinds.NTZ:
            return clock_of(self.scope, term)
        accepted, to = _TYPES[takes]
        if term.type not in (*accepted, kinds.VOID) and accepted:
            raise self.refuse(f"{kinds.spelt(term.type)} is not accepted as {kinds.spelt(to)} here")
        term = term if to == term.type else cast(self.scope, term, to)
        return clock_of(self.scope, term) if takes == "c" else term

    def strict(self, kind: DataType, operands: Sequence[Term], sql: str, failure: Failure | None = None) -> Term:
        """As `terms.strict`."""
        return strict(self.scope, kind, operands, sql, failure)


_TIMES = (kinds.DATE, kinds.TIMESTAMP, kinds.STRING)
_TYPES: Mapping[str, tuple[Sequence[DataType], DataType]] = {
    "s": ((), kinds.STRING),
    "b": ((kinds.BINARY,), kinds.BINARY),
    "i": ((*kinds.INTEGRALS, kinds.STRING), kinds.INT),
    "n": (kinds.INTEGRALS, kinds.LONG),
    "d": ((*_TIMES, kinds.NTZ), kinds.DATE),
    "t": (_TIMES, kinds.TIMESTAMP),
    "m": ((kinds.TIMESTAMP,), kinds.TIMESTAMP),
    "c": (_TIMES, kinds.TIMESTAMP),
}
"""What a function takes, by a letter: the types that are accepted (all, if empty) and the type to cast them to."""

Maker = Callable[[Call], Term]

Known = Mapping[str, tuple[Sequence[int], Maker]]
"""Functions by their names, with the numbers of arguments that they are evaluated with."""

ANY = range(1, 1000)
"""Any number of arguments from 1 on."""


def simple(takes: str, gives: DataType, sql: str, failure: Failure | None = None) -> tuple[Sequence[int], Maker]:
    """A function, null where an argument is: its arguments, as letters of _TYPES, its type and `strict`'s SQL."""

    def make(c: Call) -> Term:
        return c.strict(gives, [c.argument(i, letter) for i, letter in enumerate(takes)], sql, failure)

    return (len(takes),), make
