"""First batches that make a table, and tables that are deleted or made anew under a write."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from support.commits import a_write, commit_files, committed, raced, still
from support.faulty_store import Fault, FaultyStore
from support.logs import (
    ID,
    Action,
    a_log,
    a_table,
    actions_of,
    add,
    commit_path,
    live_paths,
    log_of,
    metadata,
    protocol,
    put,
)
from tablefeed.errors import CommitUnknownError, ConflictError, TablefeedError, UnsupportedFeatureError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.write.sink import plan_write
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.store.memory import MemoryStore


def kinds(log: TableLog, version: int) -> list[str]:
    return [next(iter(action)) for action in actions_of(log, version)]


def test_the_first_batch_makes_the_table() -> None:
    log = a_log()

    outcome, after = commit_files(log, "a", txn=("query", 0))

    assert (outcome, after.version, after.facts.txns["query"].txn_version) == (committed(0), 0, 0)
    assert kinds(log, 0) == ["commitInfo", "metaData", "protocol", "txn", "add"]


def test_a_table_without_rows_is_made_by_an_empty_first_batch() -> None:
    outcome, after = commit_files(a_log(), txn=("query", 0))

    assert (outcome, after.schema.names) == (committed(0), ("id",))


def test_of_two_first_batches_with_one_schema_both_stand() -> None:
    log = a_log()
    writes = [a_write(log, None, path, txn=(path, 0)) for path in ("first", "second")]

    assert [commit(log, None, write, still())[0] for write in writes] == [committed(0), committed(1)]

    assert live_paths(log) == ["first", "second"]
    assert kinds(log, 1) == ["commitInfo", "txn", "add"], "one table, made once"


def test_two_first_batches_that_meet_at_the_put_both_stand() -> None:
    store = MemoryStore("orders")
    log = raced(store, lambda: commit_files(log_of(store), "first", txn=("q1", 0)))

    outcome, _ = commit_files(log, "second", txn=("q2", 0))

    assert outcome == committed(1)
    assert live_paths(log) == ["first", "second"]


def test_a_table_that_another_writer_made_meanwhile_is_the_same_whatever_its_json_looks_like() -> None:
    log = a_log()
    ours = a_write(log, None, "ours")
    spaced = '{"fields": [{"metadata": {}, "name": "id", "nullable": true, "type": "long"}], "type": "struct"}'
    put(log.store, 0, [protocol(), metadata(spaced), add("theirs")])

    outcome, _ = commit(log, None, ours, still())

    assert outcome == committed(1)
    assert live_paths(log) == ["ours", "theirs"]


def test_a_first_batch_whose_files_went_with_the_folder_of_a_table_that_others_made_twice_is_run_again() -> None:
    log = a_log()
    ours = a_write(log, None, "ours", txn=("query", 0))
    log.store.delete("ours")  # with the folder of a table that another writer made and deleted
    put(log.store, 0, [protocol(), metadata()])

    with pytest.raises(ConflictError, match=r"DELTA_METADATA_CHANGED.*ours is gone"):
        commit(log, None, ours, still())

    assert (log.load().version, live_paths(log)) == (0, [])


def test_a_first_commit_whose_files_are_gone_when_it_is_put_is_taken_back_with_the_rest_of_them() -> None:
    store = MemoryStore("orders")
    log = raced(store, lambda: store.delete("p=1/b"))  # another empties the folder right before the put
    ours = a_write(log, None, "a", "p=1/b", "p=1/c", "p=2/d", txn=("query", 0))

    with pytest.raises(ConflictError, match=r"DELTA_METADATA_CHANGED.*1 of 4 .*p=1/b.*Run the write again"):
        commit(log, None, ours, still())

    assert [store.exists(name) for name in ("a", "p=1/c", "p=2/d", commit_path(0))] == [False] * 4
    assert commit_files(log_of(store), "again", txn=("query", 0))[0] == committed(0)


def test_a_first_commit_whose_files_are_gone_stays_where_another_commit_follows_it_already() -> None:
    store = MemoryStore("orders")
    gone_late = Fault(operation="list", at=3, hook=lambda: put(store, 1, [add("theirs")]))
    faulty = FaultyStore(store, faults=[gone_late])
    log = log_of(faulty)
    ours = a_write(log, None, "ours")
    store.delete("ours")

    with pytest.raises(CommitUnknownError, match="ours is gone, and others have continued from it"):
        commit(log, None, ours, still())

    assert "delete" not in [call.operation for call in faulty.calls], "readers never see a log without version 0"
    assert log.load().version == 1


def test_a_first_commit_is_not_taken_for_that_of_a_table_which_was_made_anew_right_after_it() -> None:
    store = MemoryStore("orders")

    def made_anew() -> None:
        store.delete(commit_path(0))
        put(store, 0, [protocol(), metadata()])

    log = log_of(FaultyStore(store, faults=[Fault(operation="stat", at=1, hook=made_anew)]))

    _, after = commit_files(log, txn=("query", 0))

    assert after.metadata.table_id == log_of(store).load().metadata.table_id


def test_of_two_first_batches_with_different_schemas_the_second_changes_nothing() -> None:
    log = a_log()
    second = a_write(log, None, "second", txn=("q2", 0), schema=pa.schema([("id", pa.string())]))
    commit_files(log, "first", txn=("q1", 0))

    with pytest.raises(ConflictError, match="DELTA_METADATA_CHANGED"):
        commit(log, None, second, still())

    assert log.load().version == 0
    assert live_paths(log) == ["first"]


def test_an_overwrite_that_meant_to_make_the_table_does_not_replace_a_rivals_rows() -> None:
    log = a_log()
    ours = a_write(log, None, "ours", kind=WriteKind.OVERWRITE)
    commit_files(log, "theirs")

    with pytest.raises(ConflictError, match="DELTA_CONCURRENT_APPEND"):
        commit(log, None, ours, still())


CONSTRAINED = {"delta.constraints.positive": "id > 0"}


@pytest.mark.parametrize(
    ("rival", "error", "match"),
    [
        ([protocol(1, 7, writerFeatures=["collations"]), metadata()], UnsupportedFeatureError, "collations"),
        ([protocol(1, 3), metadata(configuration=CONSTRAINED)], ConflictError, "DELTA_METADATA_CHANGED"),
    ],
    ids=["not to be written", "constraints"],
)
def test_a_first_batch_does_not_append_to_a_rivals_table_with_constraints_that_its_rows_were_not_held_against(
    rival: list[Action], error: type[TablefeedError], match: str
) -> None:
    log = a_log()
    ours = a_write(log, None, "ours")
    put(log.store, 0, rival)

    with pytest.raises(error, match=match):
        commit(log, None, ours, still())


def test_a_first_batch_that_lost_to_a_rivals_table_stops_for_what_changes_that_table_before_it_lands() -> None:
    store = MemoryStore("orders")
    changed = metadata(configuration={"a": "b"})
    log = raced(store, lambda: put(store, 0, [protocol(), metadata()]), lambda: put(store, 1, [changed]))

    with pytest.raises(ConflictError, match="DELTA_METADATA_CHANGED") as caught:
        commit_files(log, "ours")

    assert caught.value.winner == 1


def remade(log: TableLog) -> None:
    """Deletes the table and makes another in its place, which comes to the same version."""
    for log_file in log.listing():
        log.store.delete(f"_delta_log/{log_file.name}")
    put(log.store, 0, [protocol(), metadata(table_id="22222222-2222-2222-2222-222222222222")])
    put(log.store, 1, [add("of the new table")])


def clocked() -> TableLog:
    """A table of two versions in a store whose clock goes on with each write."""
    times = iter(range(1, 1000))
    store = MemoryStore("orders", now_ms=lambda: next(times))
    return a_log(store, v0=[protocol(), metadata()], v1=[add("a")])


def test_a_table_made_anew_between_plan_and_commit_is_not_written_to() -> None:
    log = clocked()
    snapshot = log.load()
    ours = a_write(log, snapshot, "ours", txn=("query", 0))
    remade(log)

    with pytest.raises(ConflictError, match="deleted and created again"):
        commit(log, snapshot, ours, still())

    assert live_paths(log) == ["of the new table"]


@pytest.mark.parametrize("kind", [WriteKind.APPEND, WriteKind.OVERWRITE, WriteKind.CHANGE])
@pytest.mark.parametrize("since", [[], ["b"], ["b", "c"]], ids=["older", "as old", "newer"])
def test_a_write_whose_version_is_gone_because_an_older_copy_was_restored_is_run_again(
    kind: WriteKind, since: Sequence[str]
) -> None:
    log = clocked()
    snapshot = log.load()
    ours = a_write(log, snapshot, "ours", kind=kind)
    log.store.delete(commit_path(1))  # an older copy has version 0 alone
    for version, path in enumerate(since, start=1):
        put(log.store, version, [add(path)])

    with pytest.raises(ConflictError, match=r"version 1.*restored.*run the write again"):
        commit(log, snapshot, ours, still())

    assert (live_paths(log), log.store.exists("ours")) == ([*since], False)


def test_a_table_deleted_between_plan_and_commit_is_not_made_again_by_an_append() -> None:
    log = clocked()
    snapshot = log.load()
    ours = a_write(log, snapshot, "ours", txn=("query", 3))
    for log_file in log.listing():
        log.store.delete(f"_delta_log/{log_file.name}")

    with pytest.raises(ConflictError, match="the table is gone"):
        commit(log, snapshot, ours, still())

    assert log.listing() == []


def test_a_new_table_with_properties_that_ask_for_more_than_we_do_is_refused_by_name() -> None:
    log = a_log()
    rules = WriteRules(properties={"delta.feature.collations": "supported"})

    with pytest.raises(UnsupportedFeatureError, match="collations"):
        plan_write(log, None, ID, partition_by=(), kind=WriteKind.APPEND, rules=rules)


def test_a_write_without_an_application_is_committed_as_often_as_it_is_asked_for() -> None:
    log = a_table()
    snapshot = log.load()
    write = a_write(log, snapshot, "a")

    outcomes = [commit(log, snapshot, write, still())[0] for _ in range(2)]

    assert outcomes == [committed(1), committed(2)]
