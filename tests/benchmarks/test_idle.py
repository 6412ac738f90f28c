from __future__ import annotations

from benchmarks.idle import ProcessTimes, parse_stat, tree_ticks


def process(parent: int, ticks: int) -> ProcessTimes:
    return ProcessTimes(parent=parent, ticks=ticks)


def test_a_process_has_its_own_time_and_that_of_its_ended_children() -> None:
    user, system, user_of_children, system_of_children = 500, 60, 7, 8
    times = f"{user} {system} {user_of_children} {system_of_children}"

    found = parse_stat(f"41 (a (b) c) S 40 41 41 0 -1 4194304 100 200 3 4 {times} 20 0 1 0 12345")

    assert found == process(parent=40, ticks=575)


def test_the_time_of_a_tree_is_that_of_all_below_its_root_and_of_no_other() -> None:
    processes = {1: process(0, 1000), 5: process(1, 100), 6: process(5, 20), 7: process(6, 3), 8: process(1, 4000)}

    assert tree_ticks(processes, 5) == 123
