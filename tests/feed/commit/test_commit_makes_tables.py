"""First batches that make a table, and tables that are deleted or made anew under a write."""

from __future__ import annotations

import pyarrow as pa
import pytest

from support.faulty_store import Fault, FaultyStore
from support.logs import (
    ID,
    a_log,
    a_table,
    a_write,
    actions_of,
    add,
    committed,
    live_paths,
    log_of,
    metadata,
    protocol,
    put,
    still,
)
from support.memory_store import MemoryStore
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.errors import ConflictError, UnsupportedFeatureError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.write.sink import plan_write
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind


def test_the_first_batch_makes_the_table() -> None:
    log = log_of(MemoryStore("orders"))

    outcome, after = commit(log, None, a_write(log, None, "a", txn=("query", 0)), still())

    assert outcome == committed(0)
    assert after.version == 0
    assert after.facts.txns["query"].txn_version == 0
    assert [next(iter(action)) for action in actions_of(log, 0)] == ["commitInfo", "metaData", "protocol", "txn", "add"]


def test_a_table_without_rows_is_made_by_an_empty_first_batch() -> None:
    log = log_of(MemoryStore("orders"))

    outcome, after = commit(log, None, a_write(log, None, txn=("query", 0)), still())

    assert outcome == committed(0)
    assert after.schema.names == ("id",)


def creators(schema: pa.Schema) -> tuple[TableLog, Transaction, Transaction]:
    log = log_of(MemoryStore("orders"))
    first = a_write(log, None, "first", txn=("q1", 0))
    return log, first, a_write(log, None, "second", txn=("q2", 0), schema=schema)


def test_of_two_first_batches_with_one_schema_both_stand() -> None:
    log, first, second = creators(ID)

    outcomes = [commit(log, None, write, still())[0] for write in (first, second)]

    assert outcomes == [committed(0), committed(1)]
    assert live_paths(log) == ["first", "second"]
    assert [next(iter(a)) for a in actions_of(log, 1)] == ["commitInfo", "txn", "add"], "one table, made once"


def test_two_first_batches_that_meet_at_the_put_both_stand() -> None:
    inner = MemoryStore("orders")
    rival = a_write(log_of(inner), None, "first", txn=("q1", 0))

    def land() -> None:
        commit(log_of(inner), None, rival, still())

    log = log_of(FaultyStore(inner, faults=[Fault(operation="put_if_absent", hook=land)]))

    outcome, _ = commit(log, None, a_write(log, None, "second", txn=("q2", 0)), still())

    assert outcome == committed(1)
    assert live_paths(log) == ["first", "second"]


def test_a_table_that_another_writer_made_meanwhile_is_the_same_whatever_its_json_looks_like() -> None:
    log = log_of(MemoryStore("orders"))
    ours = a_write(log, None, "ours")
    spaced = '{"fields": [{"metadata": {}, "name": "id", "nullable": true, "type": "long"}], "type": "struct"}'
    put(log.store, 0, [protocol(), metadata(spaced), add("theirs")])

    outcome, _ = commit(log, None, ours, still())

    assert outcome == committed(1)
    assert live_paths(log) == ["ours", "theirs"]


def test_of_two_first_batches_with_different_schemas_the_second_changes_nothing() -> None:
    log, first, second = creators(pa.schema([("id", pa.string())]))
    commit(log, None, first, still())

    with pytest.raises(ConflictError, match="DELTA_METADATA_CHANGED"):
        commit(log, None, second, still())

    assert log.load().version == 0
    assert live_paths(log) == ["first"]


def test_an_overwrite_that_meant_to_make_the_table_does_not_replace_a_rivals_rows() -> None:
    log = log_of(MemoryStore("orders"))
    ours = a_write(log, None, "ours", kind=WriteKind.OVERWRITE)
    commit(log, None, a_write(log, None, "theirs"), still())

    with pytest.raises(ConflictError, match="DELTA_CONCURRENT_APPEND"):
        commit(log, None, ours, still())


def test_a_first_batch_does_not_append_to_a_rivals_table_that_it_may_not_write() -> None:
    log = log_of(MemoryStore("orders"))
    ours = a_write(log, None, "ours")
    schema = format_schema(ours.plan.schema)
    collated = protocol(1, 7, writerFeatures=["collations"])
    put(log.store, 0, [collated, metadata(schema)])

    with pytest.raises(UnsupportedFeatureError, match="collations"):
        commit(log, None, ours, still())


def test_a_first_batch_does_not_append_to_a_rivals_table_with_constraints_that_its_rows_were_not_held_against() -> None:
    log = log_of(MemoryStore("orders"))
    ours = a_write(log, None, "ours")
    constrained = {"delta.constraints.positive": "id > 0"}
    put(log.store, 0, [protocol(1, 3), metadata(format_schema(ours.plan.schema), configuration=constrained)])

    with pytest.raises(ConflictError, match="DELTA_METADATA_CHANGED"):
        commit(log, None, ours, still())


def test_a_first_batch_that_lost_to_a_rivals_table_stops_for_what_changes_that_table_before_it_lands() -> None:
    inner = MemoryStore("orders")
    schema = format_schema(a_write(log_of(inner), None).plan.schema)
    land = [
        Fault(operation="put_if_absent", at=1, hook=lambda: put(inner, 0, [protocol(), metadata(schema)])),
        Fault(
            operation="put_if_absent", at=2, hook=lambda: put(inner, 1, [metadata(schema, configuration={"a": "b"})])
        ),
    ]
    log = log_of(FaultyStore(inner, faults=land))

    with pytest.raises(ConflictError, match="DELTA_METADATA_CHANGED") as caught:
        commit(log, None, a_write(log, None, "ours"), still())

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
    log = log_of(MemoryStore("orders"))
    rules = WriteRules(properties={"delta.feature.collations": "supported"})

    with pytest.raises(UnsupportedFeatureError, match="collations"):
        plan_write(log, None, ID, partition_by=(), kind=WriteKind.APPEND, rules=rules)


def test_a_write_without_an_application_is_committed_as_often_as_it_is_asked_for() -> None:
    log = a_table()
    snapshot = log.load()
    write = a_write(log, snapshot, "a")

    outcomes = [commit(log, snapshot, write, still())[0] for _ in range(2)]

    assert outcomes == [committed(1), committed(2)]
