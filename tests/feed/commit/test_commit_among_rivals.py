"""What comes of a commit when others commit at the same time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from support.commits import a_write, commit_files, committed, faulty, raced, still
from support.logs import (
    NOW_MS,
    VECTOR,
    Action,
    a_log,
    a_table,
    actions_of,
    add,
    col,
    live_paths,
    meta,
    metadata,
    protocol,
    put,
    said,
)
from tablefeed.errors import ConflictError
from tablefeed.feed.commit.loop import commit
from tablefeed.log.conflicts import WriteKind


def test_a_commit_says_of_itself_what_delta_spark_says() -> None:
    log = a_table()

    commit_files(log, "a", txn=("query", 7))

    about, recorded, added = actions_of(log, 1)
    assert about["commitInfo"]["operation"] == "STREAMING UPDATE"
    assert about["commitInfo"]["operationParameters"] == {"outputMode": "Append", "queryId": "query", "epochId": "7"}
    assert (about["commitInfo"]["readVersion"], about["commitInfo"]["isBlindAppend"]) == (0, True)
    assert recorded == {"txn": {"appId": "query", "version": 7, "lastUpdated": NOW_MS}}
    assert added["add"]["path"] == "a"


def test_retries_write_no_data_file_again() -> None:
    store, log = faulty()
    snapshot = log.load()
    ours = a_write(log, snapshot, "ours")
    for version in range(1, 6):
        put(store, version, [add(f"theirs{version}")])
    before = len(store.calls)

    commit(log, snapshot, ours, still())

    assert [c for c in store.calls[before:] if c.operation in ("create", "replace")] == []


def test_races_are_retried_at_once_twice_and_then_after_a_random_wait_that_grows() -> None:
    store = a_table().store
    rivals = iter(range(1, 1101))
    log = raced(store, *[lambda: put(store, next(rivals), [add("theirs")])] * 1100)
    waited: list[float] = []

    outcome, _ = commit_files(log, "ours", around=still(waited))

    assert outcome == committed(1101)
    assert (len(waited), waited[:2], max(waited)) == (1098, [0.5 * 0.01 * 2**3, 0.5 * 0.01 * 2**4], 0.25)


def test_a_rival_between_the_plan_and_the_commit_is_judged_though_the_caller_has_read_it() -> None:
    log = a_log(v0=[protocol(), metadata(), add("old")])
    ours = a_write(log, log.load(), "ours", kind=WriteKind.OVERWRITE)
    put(log.store, 1, [add("theirs")])

    with pytest.raises(ConflictError, match="DELTA_CONCURRENT_APPEND"):
        commit(log, log.load(), ours, still())


def test_an_overwrite_removes_each_live_file_with_all_that_the_log_says_of_it() -> None:
    values: Action = {"partitionValues": {"p": "a%20b"}, "tags": {"OWNER": "me"}, "deletionVector": VECTOR}
    old = add("p=a%2520b/x", size=77, stats='{"numRecords":9}', **values)
    features = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"])
    log = a_log(v0=[features, meta(col("id"), col("p", "string"), partition_columns=["p"]), old])
    rows = pa.schema([("id", pa.int64()), ("p", pa.string())])

    commit_files(log, "new", kind=WriteKind.OVERWRITE, schema=rows)

    (removed,) = said(log, 1, "remove")
    gone = {"path": "p=a%2520b/x", "deletionTimestamp": NOW_MS, "dataChange": True, "extendedFileMetadata": True}
    assert removed == {**gone, "size": 77, **values}
    assert live_paths(log) == ["new"]
