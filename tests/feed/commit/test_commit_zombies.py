"""An older run of a query that is still alive: whatever it holds, and whenever it wakes, each batch stands once.

The zombie holds batch 7, with the files of its own tasks. Spark wrote what batch 7 is before either run began it, so
that both hold the same rows; and it begins batch 8 only when it knows that batch 7 was committed.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from support.commits import a_write, already_applied, commit_files, raced, still
from support.logs import a_log, add, live_paths, log_of, metadata, protocol, put, txn
from tablefeed.errors import ConflictError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog


def at_batch_six() -> TableLog:
    return a_log(v0=[protocol(), metadata()], v1=[txn("query", 6), add("batch6")])


def commit_batches(log: TableLog, batches: Sequence[int]) -> None:
    """What the newer run does, batch after batch."""
    for batch in batches:
        commit_files(log, f"batch{batch}", txn=("query", batch))


def a_zombie(log: TableLog) -> tuple[Snapshot, Transaction]:
    snapshot = log.load()
    return snapshot, a_write(log, snapshot, "zombie", txn=("query", 7))


@pytest.mark.parametrize("when", ["before our commit", "while we put"])
@pytest.mark.parametrize("newer", [[7], [7, 8], [7, 8, 9]])
def test_a_zombie_commits_nothing_once_the_newer_run_has_committed_its_batch(newer: list[int], when: str) -> None:
    inner = at_batch_six().store
    log = raced(inner, *[lambda: commit_batches(log_of(inner), newer)] * (when == "while we put"))
    snapshot, zombie = a_zombie(log)
    if when == "before our commit":
        commit_batches(log, newer)

    outcome, _ = commit(log, snapshot, zombie, still())

    assert outcome == already_applied(1 + len(newer), recorded=newer[-1])
    assert live_paths(log) == ["batch6", *(f"batch{n}" for n in newer)]
    assert not inner.exists("zombie")


def test_a_zombie_that_is_first_has_committed_the_batch_and_the_newer_run_goes_on_after_it() -> None:
    log = at_batch_six()
    known = log.load()
    newer = a_write(log, known, "newer", txn=("query", 7))
    commit(log, *a_zombie(log), still())

    outcome, _ = commit(log, known, newer, still())
    commit_batches(log, [8])

    assert outcome == already_applied(2, recorded=7)
    assert live_paths(log) == ["batch6", "batch8", "zombie"]
    assert not log.store.exists("newer")


def test_a_zombie_is_held_off_by_the_record_alone_also_where_other_writers_made_all_the_newest_versions() -> None:
    log = at_batch_six()
    snapshot, zombie = a_zombie(log)
    commit_batches(log, [7, 8])
    for version in range(4, 20):
        put(log.store, version, [add(f"theirs{version}"), txn("another", version)])

    outcome, _ = commit(log, snapshot, zombie, still())

    assert outcome == already_applied(19, recorded=8)


def test_a_zombie_of_the_first_batch_does_not_add_to_the_table_that_the_newer_run_made() -> None:
    log = a_log()
    zombie = a_write(log, None, "zombie", txn=("query", 0))
    commit_files(log, "newer", txn=("query", 0))

    outcome, _ = commit(log, None, zombie, still())

    assert outcome == already_applied(0, recorded=0)
    assert live_paths(log) == ["newer"]


def test_a_run_that_finds_its_query_a_batch_behind_stops_for_only_one_of_the_two_is_right() -> None:
    # Not by Spark's rules: who holds batch 8 knows that batch 7 stands. So the ids are one, and the checkpoints two.
    log = at_batch_six()
    snapshot, zombie = a_zombie(log)
    ahead = a_write(log, snapshot, "ahead", txn=("query", 8))
    commit(log, snapshot, zombie, still())

    with pytest.raises(ConflictError, match="DELTA_CONCURRENT_TRANSACTION"):
        commit(log, snapshot, ahead, still())

    assert live_paths(log) == ["batch6", "zombie"]
