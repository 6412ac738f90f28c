"""A batch of a query in complete mode takes the place of all that is there, once, in one commit."""

from __future__ import annotations

import json
import tracemalloc

import pyarrow as pa
import pytest

from support.commits import a_write, already_applied, commit_files, committed, still
from support.logs import ID, a_log, a_table, actions_of, add, commit_path, live_paths, metadata, protocol, said, txn
from tablefeed.errors import AppendOnlyError, SchemaMismatchError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.write.sink import plan_write
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind

WHOLE = WriteKind.OVERWRITE


def test_a_batch_of_all_rows_removes_the_files_that_are_there_and_adds_its_own_in_one_commit() -> None:
    log = a_log(v0=[protocol(), metadata(), add("x"), add("y")])

    assert commit_files(log, "new", kind=WHOLE, txn=("query", 7))[0] == committed(1)

    assert [kind for action in actions_of(log, 1) for kind in action] == ["commitInfo", "txn", "add", *["remove"] * 2]
    (about,) = said(log, 1, "commitInfo")
    assert about["operation"] == "STREAMING UPDATE"
    assert about["operationParameters"] == {"outputMode": "Complete", "queryId": "query", "epochId": "7"}
    assert about["isBlindAppend"] is False
    metrics = {"numRemovedFiles": "2", "numAddedFiles": "1", "numOutputRows": "1", "numOutputBytes": "10"}
    assert about["operationMetrics"] == metrics
    assert live_paths(log) == ["new"]


def test_what_is_removed_is_never_a_value_a_file() -> None:
    small, large = (
        a_log(v0=[protocol(), metadata(), *(add(f"part-{n:05d}.parquet") for n in range(count))])
        for count in (100, 20_000)
    )
    for log in (small, large):  # the small one loads what is loaded when it is needed
        snapshot = log.load()
        ours = a_write(log, snapshot, "new", kind=WHOLE, txn=("query", 0))
        tracemalloc.start()
        commit(log, snapshot, ours, still())
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    # The bytes of the commit, and little more: a value would be some 300 a file.
    assert peak_bytes < len(large.store.read(commit_path(1))) + 20_000 * 100
    assert live_paths(large) == ["new"]


def test_a_batch_without_rows_leaves_the_table_empty() -> None:
    log = a_log(v0=[protocol(), metadata(), add("x")])

    commit_files(log, kind=WHOLE, txn=("query", 7))

    assert live_paths(log) == []


def test_a_batch_that_the_table_records_does_not_replace_what_came_after_it() -> None:
    log = a_log(v0=[protocol(), metadata()], v1=[txn("query", 7), add("ours")], v2=[add("another's")])

    assert commit_files(log, "again", kind=WHOLE, txn=("query", 7))[0] == already_applied(2, recorded=7)
    assert live_paths(log) == ["another's", "ours"]


def test_a_table_that_may_only_grow_refuses_complete_mode_before_a_file_is_written() -> None:
    log = a_log(v0=[protocol(), metadata(configuration={"delta.appendOnly": "true"}), add("x")])

    with pytest.raises(AppendOnlyError, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        plan_write(log, log.load(), ID, partition_by=(), kind=WHOLE)


def test_with_overwrite_schema_the_table_takes_the_schema_of_the_batch_and_only_then() -> None:
    log = a_table()
    counted = pa.schema([("word", pa.string()), ("count", pa.int64())])

    with pytest.raises(SchemaMismatchError):
        plan_write(log, log.load(), counted, partition_by=(), kind=WHOLE)
    for batch, path in enumerate(["new", "newer"]):
        rules = WriteRules(overwrites_schema=True)
        commit_files(log, path, kind=WHOLE, txn=("query", batch), schema=counted, rules=rules)

    [changed] = said(log, 1, "metaData")
    assert [field["name"] for field in json.loads(changed["schemaString"])["fields"]] == ["word", "count"]
    assert said(log, 2, "metaData") == []
    assert live_paths(log) == ["newer"]
