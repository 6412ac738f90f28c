from __future__ import annotations

from collections import Counter

from benchmarks.changes import change_counts


def test_the_feed_of_changes_has_the_counts_that_its_statements_make() -> None:
    counted: Counter[str] = Counter()
    for row in range(400):
        counted["insert"] += 1
        if row % 20 in {1, 2, 3, 4, 5, 6}:
            counted["update_preimage"] += 1
            counted["update_postimage"] += 1
        if row % 20 in {7, 8, 9, 10, 11, 12, 13, 14}:
            counted["delete"] += 1

    assert change_counts(400) == {(kind,): count for kind, count in counted.items()}


def test_there_are_twice_as_many_changes_as_inserted_rows() -> None:
    assert sum(change_counts(10_000_000).values()) == 20_000_000
