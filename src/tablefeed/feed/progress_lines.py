"""Logs how far long work is, a line every ten seconds. Short work logs none."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tablefeed.feed.arguments import check_function
from tablefeed.model.progress import OnProgress, Progress, unreported
from tablefeed.wording.log_lines import log_facts

logger = logging.getLogger(__name__)

INTERVAL_S = 10.0
"""Often enough to see that the work goes on. More lines would hide the others of a log."""


def logged(on_progress: OnProgress | None, *, url: str, clock: Callable[[], float] = time.monotonic) -> OnProgress:
    """Gives a callback for work on the table at `url`: it logs, and calls `on_progress` where that is not None.

    Raises IllegalOptionError unless `on_progress` is a function or None.
    """
    check_function(on_progress, argument="on_progress")
    tell, told_at_s = on_progress or unreported, clock()

    def report(progress: Progress) -> None:
        nonlocal told_at_s
        if (now_s := clock()) - told_at_s >= INTERVAL_S:
            told_at_s = now_s
            facts = {"table": url, "step": progress.step, "done": progress.done, "total": progress.total}
            log_facts(logger, "progress", facts)
        tell(progress)

    return report
