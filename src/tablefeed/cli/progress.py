"""What long work shows on stderr while it runs, on a terminal only: for how long, and how many rows are done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counted(what: str) -> Iterator[Callable[[int], None]]:
    """Gives a function that is called with how many rows were done since the last call."""
    with _shown(f"{what} {{task.completed:,}} rows") as advance:
        yield advance


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows that work goes on whose progress is not known."""
    with _shown(what):
        yield


@contextmanager
def _shown(text: str) -> Iterator[Callable[[int], None]]:
    if not sys.stderr.isatty():
        yield lambda _count: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(text), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda count: progress.advance(task, count)
