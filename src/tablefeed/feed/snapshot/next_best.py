"""Reads a version from other log files where those that were chosen first are damaged or gone.

One version can often be read in several ways: from its checkpoint, from an earlier one, from the commits alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tablefeed.errors import CorruptLogError, ObjectNotFoundError, TablefeedError

Damage = CorruptLogError | ObjectNotFoundError
DAMAGE = (CorruptLogError, ObjectNotFoundError)
"""What is raised where a log file cannot be read."""

_Files = TypeVar("_Files")
_Read = TypeVar("_Read")


@dataclass(slots=True)
class NextBest(Generic[_Files]):
    """The best log files to read a version from, without those that could not be read.

    `choose` gives the best ones that do without the named log files; it raises where there are none. `left_out` names
    the log files to do without after an error. Where nothing is left to try, the first error is raised.
    """

    choose: Callable[[frozenset[str]], _Files]
    left_out: Callable[[_Files, Damage], frozenset[str]]
    without: frozenset[str] = frozenset()
    _first: Damage | None = field(init=False, default=None)
    _tried: _Files | None = field(init=False, default=None)

    def read(self, read: Callable[[_Files], _Read]) -> _Read:
        """Gives what `read` gives of the best files; calls it again where it raises because of a log file."""
        while True:
            chosen = self.next()
            try:
                return read(chosen)
            except DAMAGE as error:
                self.failed(chosen, error)

    def next(self) -> _Files:
        """Gives the files to try now. Raises the first error where they are those that failed last."""
        try:
            chosen = self.choose(self.without)
        except TablefeedError as error:
            if self._first is None:
                raise
            raise self._first from error
        if self._first is not None and chosen == self._tried:
            raise self._first
        return chosen

    def failed(self, chosen: _Files, error: Damage) -> Damage:
        """Records that `chosen` could not be read; gives the first error."""
        self._tried, self._first = chosen, self._first or error
        self.without |= self.left_out(chosen, error)
        return self._first
