from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from tablefeed.model.cached import cached_property


class Table:
    def __init__(self, load: Callable[[], int]) -> None:
        self._load = load

    @cached_property
    def rows(self) -> int:
        return self._load()


def test_a_value_is_computed_once() -> None:
    loaded = iter([1, 2])
    table = Table(lambda: next(loaded))

    assert [table.rows, table.rows] == [1, 1]


def test_no_object_waits_for_the_value_of_another() -> None:
    begun, answered = Event(), Event()

    def slow() -> int:
        begun.set()
        return answered.wait(60)

    with ThreadPoolExecutor(2) as threads:
        held_up = threads.submit(lambda: Table(slow).rows)
        try:
            assert begun.wait(60)
            assert threads.submit(lambda: Table(lambda: 7).rows).result(timeout=5) == 7
        finally:
            answered.set()
        assert held_up.result() is True
