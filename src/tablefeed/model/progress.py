"""How far long work is, as the caller's `on_progress` is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """In one `step` of long work, such as "files merged", `done` of `total` are done; `total` None: not known.

    Its text is one line, so that `print`, or the `info` of a logger, can be the callback.
    """

    step: str
    done: int
    total: int | None = None

    def __str__(self) -> str:
        return f"{self.step}: {self.done:,}" + ("" if self.total is None else f" of {self.total:,}")


OnProgress = Callable[[Progress], None]


def unreported(progress: Progress) -> None:
    """The callback of work whose caller gave none."""
