from __future__ import annotations

from benchmarks.idle import ProcessTimes, parse_stat, ticks_since, tree


def process(parent: int, ticks: int) -> ProcessTimes:
    return ProcessTimes(parent=parent, ticks=ticks)


def test_a_process_has_its_own_time() -> None:
    user, system, user_of_children, system_of_children = 500, 60, 7, 8
    times = f"{user} {system} {user_of_children} {system_of_children}"

    found = parse_stat(f"41 (a (b) c) S 40 41 41 0 -1 4194304 100 200 3 4 {times} 20 0 1 0 12345")

    assert found == process(parent=40, ticks=560)


def test_a_tree_is_all_below_its_root_and_no_other() -> None:
    processes = {1: process(0, 1000), 5: process(1, 100), 6: process(5, 20), 7: process(6, 3), 8: process(1, 4000)}

    assert tree(processes, 5) == {5: 100, 6: 20, 7: 3}


def test_a_process_that_ends_takes_nothing_back() -> None:
    assert ticks_since({5: 100, 6: 9000}, {5: 130, 7: 2}) == 32
