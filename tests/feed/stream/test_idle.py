"""When the planner of an idle query waits before it looks at the log."""

from __future__ import annotations

import pytest

from tablefeed.feed.stream.idle import LONGEST_WAIT_S, OWN_PAUSE_S, QUIET_LOOKS, Idle


class Query:
    """A query that looks at its log every `pause_s` seconds; its store sees changes, or only sleeps."""

    def __init__(self, *, sees_changes: bool = True) -> None:
        self.sees_changes, self.now_s = sees_changes, 100.0
        self.waits: list[float] = []
        self.idle = Idle(self._wait, clock=lambda: self.now_s)

    def look(self, times: int = 1, *, has_found: bool = False, pause_s: float = 0.01) -> list[float]:
        """Gives the waits before these looks."""
        self.waits = []
        for _ in range(times):
            self.now_s += pause_s
            self.idle.before_look()
            self.idle.looked(has_found=has_found)
        return self.waits

    def _wait(self, timeout_s: float) -> bool:
        self.waits.append(timeout_s)
        self.now_s += timeout_s
        return self.sees_changes and timeout_s == 0


def test_a_query_waits_when_looks_in_a_row_have_found_nothing() -> None:
    query = Query()

    assert query.look(QUIET_LOOKS) == []
    assert query.look(3) == [0, LONGEST_WAIT_S, LONGEST_WAIT_S], "the first call only learns whether changes are seen"


def test_a_query_that_has_found_something_looks_again_without_a_wait() -> None:
    query = Query()
    query.look(QUIET_LOOKS + 5)
    query.look(has_found=True)

    assert query.look(QUIET_LOOKS) == []
    assert query.look(2) == [LONGEST_WAIT_S] * 2


def test_a_store_that_cannot_see_changes_is_never_waited_for() -> None:
    assert Query(sees_changes=False).look(QUIET_LOOKS + 5) == [0]


@pytest.mark.parametrize(("pause_s", "waits"), [(OWN_PAUSE_S - 0.01, 5), (OWN_PAUSE_S + 0.01, 0)])
def test_a_query_whose_looks_are_rare_by_themselves_does_not_wait(pause_s: float, waits: int) -> None:
    query = Query()
    query.look(QUIET_LOOKS + 1)

    assert len(query.look(5, pause_s=pause_s)) == waits
