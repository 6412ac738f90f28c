"""When a query that has nothing to do waits for a change of the log, before it looks for the next commit.

Spark asks the source of an idle query for its latest offset about every 10 ms. Each question costs the JVM and the
planner a millisecond of processor time. So where the store sees changes, the planner answers some questions late: after
a change, or after `LONGEST_WAIT_S`. It then looks in any case, because a change may be reported late, or never.
"""

from __future__ import annotations

from collections.abc import Callable

QUIET_LOOKS = 10
"""So many looks in a row must find nothing before one is held back. A caller of processAllAvailable waits for one."""

LONGEST_WAIT_S = 0.2
"""Long enough to save nineteen of twenty questions. It bounds the time that `stop`, processAllAvailable and the other
sources of the same query wait for this one."""

OWN_PAUSE_S = 0.05
"""Looks that are further apart are rare enough: the query's trigger has an interval, or other sources have work."""


class Idle:
    """Holds back the looks of one query at one log. `clock` gives seconds and never goes back.

    `wait` takes seconds, as `Store.wait` of the log's folder: its first call gives True where the store sees changes.
    """

    def __init__(self, wait: Callable[[float], bool], *, clock: Callable[[], float]) -> None:
        self._wait, self._clock = wait, clock
        self._quiet_looks, self._looked_at_s = 0, clock()
        self._sees_changes: bool | None = None

    def before_look(self) -> None:
        """Waits for a change of the log where the query is idle; at most `LONGEST_WAIT_S`."""
        if self._quiet_looks < QUIET_LOOKS or self._clock() - self._looked_at_s > OWN_PAUSE_S:
            return
        if self._sees_changes is None:
            self._sees_changes = self._wait(0)
        elif self._sees_changes:
            self._wait(LONGEST_WAIT_S)

    def looked(self, *, has_found: bool) -> None:
        """Notes a look and whether it found something to do."""
        self._quiet_looks = 0 if has_found else self._quiet_looks + 1
        self._looked_at_s = self._clock()
