"""The call of a function: casts its arguments to the types that functions take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.terms import (
    DATE,
    INT,
    INTEGRALS,
    NTZ,
    STRING,
    TIMESTAMP,
    VOID,
    Failure,
    Scope,
    Term,
    spelt,
    strict,
)
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

    def text(self, index: int) -> Term:
        """An argument as a text."""
        return cast(self.scope, self.arguments[index], STRING)

    def whole(self, index: int) -> Term:
        """An argument as an INT."""
        term = self.arguments[index]
        if term.type not in (*INTEGRALS, STRING, VOID):
            raise self.refuse(f"{spelt(term.type)} is not accepted as a whole number here")
        return cast(self.scope, term, INT)

    def literal(self, index: int) -> str:
        """An argument that must be a text literal."""
        value = self.arguments[index].literal
        if not isinstance(value, str):
            raise self.refuse("this argument must be a literal")
        return value

    def date(self, index: int) -> Term:
        """An argument as a date."""
        return self._time(index, DATE)

    def timestamp(self, index: int) -> Term:
        """An argument as a timestamp."""
        return self._time(index, TIMESTAMP)

    def _time(self, index: int, kind: DataType) -> Term:
        term = self.arguments[index]
        if term.type not in (DATE, TIMESTAMP, NTZ, STRING, VOID):
            raise self.refuse(f"{spelt(term.type)} is no {spelt(kind)}")
        if term.type == NTZ and kind == TIMESTAMP:
            raise self.refuse("it is not evaluated here for a timestamp_ntz")
        return cast(self.scope, term, kind)

    def strict(self, kind: DataType, operands: Sequence[Term], sql: str, failure: Failure | None = None) -> Term:
        """As `terms.strict`."""
        return strict(self.scope, kind, operands, sql, failure)


Maker = Callable[[Call], Term]


Known = Mapping[str, tuple[Sequence[int], Maker]]
"""Functions by their names, with the numbers of arguments that they are evaluated with."""

ANY = range(1, 1000)
"""Any number of arguments from 1 on."""
