"""What is said of a write that meets its own application's records, and which batches need none."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import tablefeed
from support.commits import a_write, already_applied, committed, still
from support.logs import a_log, a_table, add, live_paths, metadata, protocol, put, txn
from tablefeed.errors import CommitError, IllegalOptionError
from tablefeed.feed.commit.collisions import OnCollision
from tablefeed.feed.commit.loop import changes_nothing, commit
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.outcome import AlreadyApplied, Committed

ROWS = pa.table({"id": [1]})


def recorded(app_id: str, version: int) -> tuple[TableLog, Snapshot]:
    log = a_log(v0=[protocol(), metadata()], v1=[txn(app_id, version), add("first")])
    return log, log.load()


def of_version(log: TableLog, snapshot: Snapshot, version: int, on_collision: OnCollision) -> Transaction:
    return replace(a_write(log, snapshot, "again", txn=("app", version)), on_collision=on_collision)


@pytest.mark.parametrize("version", [0, 6])
def test_who_meets_a_later_version_of_its_application_is_warned_and_writes_nothing(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    log, snapshot = recorded("app", 7)

    with caplog.at_level(logging.WARNING, logger="tablefeed"):
        outcome, _ = commit(log, snapshot, of_version(log, snapshot, version, OnCollision.WARN), still())

    assert outcome == already_applied(1, recorded=7)
    [said] = [record.getMessage() for record in caplog.records]
    assert f"memory:orders: it records version 7 of the application app, and this is version {version}" in said
    assert "new txnAppId" in said
    assert live_paths(log) == ["first"]


def test_who_meets_a_later_version_of_its_application_fails_where_that_is_asked_for() -> None:
    log, snapshot = recorded("app", 7)

    with pytest.raises(CommitError, match="records version 7 of the application app, and this is version 0"):
        commit(log, snapshot, of_version(log, snapshot, 0, OnCollision.FAIL), still())

    assert live_paths(log) == ["first"]


def test_a_later_version_that_lands_while_we_write_is_a_collision_too() -> None:
    log = a_table()
    snapshot = log.load()
    ours = of_version(log, snapshot, 0, OnCollision.FAIL)
    put(log.store, 1, [txn("app", 7), add("first")])

    with pytest.raises(CommitError, match="version 7"):
        commit(log, snapshot, ours, still())

    assert live_paths(log) == ["first"]


@pytest.mark.parametrize(
    ("version", "on_collision"), [(7, OnCollision.FAIL), (7, OnCollision.WARN), (0, OnCollision.SKIP)]
)
def test_a_batch_that_is_run_again_meets_its_own_version_in_silence(
    version: int, on_collision: OnCollision, caplog: pytest.LogCaptureFixture
) -> None:
    log, snapshot = recorded("app", 7)

    with caplog.at_level(logging.WARNING, logger="tablefeed"):
        outcome, _ = commit(log, snapshot, of_version(log, snapshot, version, on_collision), still())

    assert outcome == already_applied(1, recorded=7)
    assert caplog.records == []


def test_an_append_that_meets_a_later_version_is_told_before_a_row_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = str(tmp_path / "t")

    def write(version: int, on_collision: Literal["skip", "warn", "fail"] = "warn") -> Committed | AlreadyApplied:
        return tablefeed.append(table, ROWS, app_id="app", txn_version=version, txn_version_collision=on_collision)

    assert write(7) == committed(0)
    with caplog.at_level(logging.WARNING, logger="tablefeed"):
        assert write(7, "fail") == already_applied(0, recorded=7)
        assert write(3, "skip") == already_applied(0, recorded=7)
        assert caplog.records == []
        assert write(3) == already_applied(0, recorded=7)
    assert len(caplog.records) == 1
    with pytest.raises(CommitError, match="version 7"):
        write(3, "fail")
    assert tablefeed.open_table(table).version == 0


def test_another_word_for_a_collision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalOptionError, match="'skip', 'warn' or 'fail'"):
        tablefeed.append(str(tmp_path / "t"), ROWS, txn_version_collision="raise")  # type: ignore[arg-type]  # on purpose


def empty(transaction: Transaction) -> bool:
    return changes_nothing(transaction, lambda: pytest.fail("the plan tells"))


def test_a_batch_without_rows_is_committed_where_it_changes_more_than_its_record() -> None:
    log = a_log(v0=[protocol(), metadata(), add("x")], v1=[txn("query", 3)])
    snapshot = log.load()
    wider = pa.schema([("id", pa.int64()), ("more", pa.string())])
    merging = WriteRules(merges_schema=True)

    assert empty(a_write(log, snapshot, txn=("query", 7)))
    assert not empty(a_write(log, snapshot, "rows", txn=("query", 7)))
    assert not empty(a_write(log, snapshot, txn=("query", 7), schema=wider, rules=merging))
    assert not empty(a_write(log, snapshot, txn=("query", 7), kind=WriteKind.OVERWRITE))
    assert not empty(a_write(log, None, txn=("query", 0)))


def test_a_batch_whose_tasks_wrote_nothing_because_it_is_recorded_is_not_taken_for_an_empty_one() -> None:
    log, snapshot = recorded("query", 7)

    assert [v for v in (6, 7, 8) if empty(a_write(log, snapshot, txn=("query", v)))] == [8]
