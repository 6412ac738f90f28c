"""That a batch stands once: replays, twins, zombies, and whose files are deleted."""

from __future__ import annotations

import pytest

from support.commits import a_write, already_applied, commit_files, committed, dead, faulty, still
from support.faulty_store import Fault
from support.logs import ID, a_log, a_table, add, live_paths, log_of, metadata, protocol, put, txn
from tablefeed.errors import CommitUnknownError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.write.sink import plan_write
from tablefeed.log.conflicts import WriteKind


@pytest.mark.parametrize("recorded", [7, 8])
def test_a_batch_that_the_table_records_is_not_committed_again(recorded: int) -> None:
    log = a_log(v0=[protocol(), metadata()], v1=[txn("query", recorded), add("first")])

    outcome, _ = commit_files(log, "again", txn=("query", 7))

    assert outcome == already_applied(1, recorded=recorded)
    assert live_paths(log) == ["first"]


def test_a_plan_tells_the_tasks_what_the_table_records_so_that_a_replay_writes_nothing() -> None:
    log = a_log(v0=[protocol(), metadata()], v1=[txn("query", 7), txn("other", 3), add("first")])

    plan = plan_write(log, log.load(), ID, partition_by=(), kind=WriteKind.APPEND)

    assert plan.recorded == {"query": 7, "other": 3}


def test_the_txn_latest_in_the_log_counts_even_where_its_version_falls() -> None:
    log = a_log(v0=[protocol(), metadata()], v1=[txn("query", 9), add("a")], v2=[txn("query", 4), add("b")])

    outcomes = [commit_files(log, path, txn=("query", version))[0] for path, version in (("c", 4), ("d", 5))]

    assert outcomes == [already_applied(2, recorded=4), committed(3)]


def test_a_query_whose_checkpoint_was_deleted_has_a_new_id_and_appends_again() -> None:
    log = a_log(v0=[protocol(), metadata()], v1=[txn("old query", 5), add("a")])

    assert commit_files(log, "b", txn=("new query", 0))[0] == committed(2)


def test_files_that_the_winner_names_are_never_deleted() -> None:
    log = a_table()
    snapshot = log.load()
    ours = a_write(log, snapshot, "shared", "ours", txn=("query", 7))
    put(log.store, 1, [txn("query", 7), add("shared")])

    commit(log, snapshot, ours, still())

    assert (log.store.exists("shared"), log.store.exists("ours")) == (True, False)


def test_files_of_a_commit_that_stands_though_its_answer_was_lost_stay_when_the_batch_is_run_again() -> None:
    store, log = faulty(*dead("after"))
    snapshot = log.load()
    ours = a_write(log, snapshot, "ours", txn=("query", 7))
    with pytest.raises(CommitUnknownError, match="The store said: "):
        commit(log, snapshot, ours, still())

    healthy = log_of(store._inner)
    again, _ = commit(healthy, snapshot, ours, still())

    assert again == already_applied(1, recorded=7)
    assert healthy.store.exists("ours")


def test_files_stay_where_the_winner_cannot_be_found_among_the_versions_since_the_plan() -> None:
    log = a_log(v0=[protocol(), metadata()], v1=[txn("query", 7), add("theirs")])

    outcome, _ = commit_files(log, "ours", txn=("query", 7))

    assert outcome == already_applied(1, recorded=7)
    assert log.store.exists("ours"), "the winner was there before the plan: what it names is not looked up"


def test_an_orphan_that_cannot_be_deleted_does_not_turn_a_replay_into_a_failure() -> None:
    _, log = faulty(Fault(operation="delete"))
    snapshot = log.load()
    ours = a_write(log, snapshot, "ours", txn=("query", 7))
    put(log.store, 1, [txn("query", 7), add("theirs")])

    assert commit(log, snapshot, ours, still())[0] == already_applied(1, recorded=7)
