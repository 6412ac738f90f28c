"""What comes of a commit when others commit at the same time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from support.faulty_store import Fault, FaultyStore
from support.logs import (
    NOW_MS,
    VECTOR,
    a_log,
    a_table,
    a_write,
    actions_of,
    add,
    committed,
    faulty,
    live_paths,
    log_of,
    metadata,
    protocol,
    put,
    still,
)
from support.memory_store import MemoryStore
from tablefeed.errors import ConflictError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.log.conflicts import WriteKind

TWO_COLUMNS = (
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
    '{"name":"new","type":"string","nullable":true,"metadata":{}}]}'
)


def committed_once(log: TableLog, path: str) -> bool:
    return live_paths(log).count(path) == 1


def puts(store: FaultyStore) -> list[str]:
    return [call.name for call in store.calls if call.operation == "put_if_absent"]


def test_a_commit_says_of_itself_what_delta_spark_says() -> None:
    log = a_table()
    snapshot = log.load()

    commit(log, snapshot, a_write(log, snapshot, "a", txn=("query", 7)), still())

    said = actions_of(log, 1)
    about = said[0]["commitInfo"]
    assert about["operation"] == "STREAMING UPDATE"
    assert about["operationParameters"] == {"outputMode": "Append", "queryId": "query", "epochId": "7"}
    assert (about["readVersion"], about["isBlindAppend"]) == (0, True)
    assert said[1] == {"txn": {"appId": "query", "version": 7, "lastUpdated": NOW_MS}}
    assert said[2]["add"]["path"] == "a"


def test_retries_write_no_data_file_again() -> None:
    store, log = faulty()
    snapshot = log.load()
    ours = a_write(log, snapshot, "ours")
    for version in range(1, 6):
        put(store, version, [add(f"theirs{version}")])
    before = len(store.calls)

    commit(log, snapshot, ours, still())

    written = [c for c in store.calls[before:] if c.operation in ("create", "replace")]
    assert written == []


def test_races_are_retried_at_once_twice_and_then_after_a_random_wait_that_grows() -> None:
    rivals = iter(range(1, 5))

    def land() -> None:
        version = next(rivals)
        put(inner, version, [add(f"theirs{version}")])

    inner = MemoryStore("orders")
    a_table(inner)
    store = FaultyStore(inner, faults=[Fault(operation="put_if_absent", at=n, hook=land) for n in range(1, 5)])
    log = log_of(store)
    snapshot = log.load()
    waited: list[float] = []

    outcome, _ = commit(log, snapshot, a_write(log, snapshot, "ours"), still(waited))

    assert outcome == committed(5)
    assert waited == [0.5 * 0.01 * 2**3, 0.5 * 0.01 * 2**4]


def test_a_thousand_races_lost_are_no_reason_to_give_up_or_to_wait_for_ever() -> None:
    rivals = iter(range(1, 1101))
    inner = MemoryStore("orders")
    a_table(inner)
    land = [
        Fault(operation="put_if_absent", at=n, hook=lambda: put(inner, next(rivals), [add("theirs")]))
        for n in range(1, 1101)
    ]
    log = log_of(FaultyStore(inner, faults=land))
    snapshot = log.load()
    waited: list[float] = []

    outcome, _ = commit(log, snapshot, a_write(log, snapshot, "ours"), still(waited))

    assert outcome == committed(1101)
    assert max(waited) == 0.25


def test_a_rival_between_the_plan_and_the_commit_is_judged_though_the_caller_has_read_it() -> None:
    log = a_log(v0=[protocol(), metadata(), add("old")])
    ours = a_write(log, log.load(), "ours", kind=WriteKind.OVERWRITE)
    put(log.store, 1, [add("theirs")])

    with pytest.raises(ConflictError, match="DELTA_CONCURRENT_APPEND"):
        commit(log, log.load(), ours, still())


def test_an_overwrite_removes_each_live_file_with_all_that_the_log_says_of_it() -> None:
    old = add("p=a%2520b/x", size=77, partitionValues={"p": "a%20b"}, tags={"OWNER": "me"}, stats='{"numRecords":9}')
    old["add"]["deletionVector"] = VECTOR
    partitioned = (
        '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},'
        '{"name":"p","type":"string","nullable":true,"metadata":{}}]}'
    )
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    log = a_log(v0=[protocol(3, 7, **features), metadata(partitioned, partition_columns=["p"]), old])
    snapshot = log.load()
    rows = pa.schema([("id", pa.int64()), ("p", pa.string())])

    commit(log, snapshot, a_write(log, snapshot, "new", kind=WriteKind.OVERWRITE, schema=rows), still())

    removed = [action["remove"] for action in actions_of(log, 1) if "remove" in action]
    assert removed == [
        {
            "path": "p=a%2520b/x",
            "deletionTimestamp": NOW_MS,
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": {"p": "a%20b"},
            "size": 77,
            "tags": {"OWNER": "me"},
            "deletionVector": VECTOR,
        }
    ]
    assert live_paths(log) == ["new"]
