"""What long work shows on stderr while it runs, on a terminal only: for how long, and how much is done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from tablefeed.model.progress import OnProgress, Progress


@contextmanager
def counted(what: str) -> Iterator[Callable[[int], None]]:
    """Gives a function that is called with how many rows were done since the last call."""
    with _shown(what, f"{what} {{task.completed:,}} rows") as shown:

        def show(count: int) -> None:
            if shown is not None:
                shown[0].advance(shown[1], count)

        yield show


@contextmanager
def working(what: str) -> Iterator[OnProgress]:
    """Shows that work goes on. Gives a function that shows how far it is, as a bar where its end is known."""
    with _shown(what, "{task.description}") as shown:

        def show(progress: Progress) -> None:
            if shown is not None:
                bars, task = shown
                bars.update(task, description=str(progress), completed=progress.done, total=progress.total)

        yield show


@contextmanager
def _shown(what: str, text: str) -> Iterator[tuple[Bars, TaskID] | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(text), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield bars, bars.add_task(what, total=None)
