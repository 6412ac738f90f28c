"""What a task leaves on disk, whose files are dropped after a failed batch, and what a process remembers of a table."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from support.commits import already_applied, committed, still
from support.logs import ID
from support.maintained import ids
from tablefeed.errors import (
    CommitError,
    InvalidRowsError,
    NotExclusiveError,
    ObjectNotFoundError,
    StoreError,
    TableError,
)
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction, micro_batch
from tablefeed.feed.snapshot import known_state
from tablefeed.feed.snapshot.known_state import KEPT_TABLES, current_snapshot, last_known, newest_state, remember
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.write.orphans import delete_after_abort
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.feed.write.write_plan import WritePlan
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Txn
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.store import LocalStore

TWO = pa.schema([("id", pa.int64()), ("day", pa.string())])


def batch(*ids: int) -> pa.RecordBatch:
    return pa.record_batch([list(ids)], schema=ID)


def planned(path: Path) -> tuple[TableLog, WritePlan]:
    log = open_log(str(path))
    return log, plan_write(log, current_snapshot(log), ID, partition_by=(), kind=WriteKind.APPEND)


def a_batch(plan: WritePlan, files: tuple[AddFile, ...], number: int) -> Transaction:
    return Transaction(
        plan=plan,
        files=files,
        kind=WriteKind.APPEND,
        operation=micro_batch(WriteKind.APPEND, "query", number),
        txn=Txn(app_id="query", txn_version=number),
    )


def data_files(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*.parquet"))


@pytest.fixture(autouse=True)
def _a_fresh_process() -> Iterator[None]:
    known_state._known.clear()
    yield
    known_state._known.clear()


# --- tasks -----------------------------------------------------------------------------------------------------------


def test_what_a_task_wrote_is_not_seen_before_it_is_committed(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    log, plan = planned(tmp_path)

    files = write_task(plan, [batch(2, 3)], task=0, now_ms=0)
    before = ids(tmp_path)
    commit(log, log.load(), a_batch(plan, files, 0), still())

    assert (before, ids(tmp_path)) == ([1], [1, 2, 3])


def test_a_task_that_fails_leaves_no_file(tmp_path: Path) -> None:
    plan = plan_write(open_log(str(tmp_path)), None, TWO, partition_by=["day"], kind=WriteKind.APPEND)

    def failing() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[1, 2], ["mon", "tue"]], schema=TWO)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_task(plan, failing(), task=0, now_ms=0)
    assert data_files(tmp_path) == []


def test_a_task_that_can_create_no_more_files_leaves_none_of_those_that_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = WriteRules(most_rows_of_a_file=1)
    plan = plan_write(open_log(str(tmp_path)), None, ID, partition_by=(), kind=WriteKind.APPEND, rules=rules)
    create = LocalStore.create

    def of_two(self: LocalStore, name: str, **how: Any) -> AbstractContextManager[BinaryIO]:
        if len(data_files(tmp_path)) == 2:
            raise StoreError("The disk is full.")
        return create(self, name, **how)

    monkeypatch.setattr(LocalStore, "create", of_two)

    with pytest.raises(StoreError, match="The disk is full"):
        write_task(plan, [batch(1, 2, 3)], task=0, now_ms=0)
    assert data_files(tmp_path) == []


def test_tasks_with_another_working_directory_write_to_the_table_of_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("driver", "executor"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "driver")
    log, plan = planned(Path("orders"))

    monkeypatch.chdir(tmp_path / "executor")
    files = write_task(plan, [batch(1)], task=0, now_ms=0)
    monkeypatch.chdir(tmp_path / "driver")
    commit(log, None, a_batch(plan, files, 0), still())

    assert ids(tmp_path / "driver" / "orders") == [1]
    assert not any((tmp_path / "executor").iterdir())


@pytest.mark.parametrize("is_new", [True, False])
def test_files_on_the_disk_of_another_machine_are_never_committed(tmp_path: Path, is_new: bool) -> None:  # noqa: FBT001
    here, there = tmp_path / "here", tmp_path / "there"
    if not is_new:
        tablefeed.append(here, pa.table({"id": [1]}))
        shutil.copytree(here, there)
    log, plan = planned(here)
    files = write_task(plan, [batch(2)], task=0, now_ms=0, store=LocalStore(str(there)))

    with pytest.raises(CommitError, match="A task wrote them to the disk of another machine"):
        commit(log, current_snapshot(log), a_batch(plan, files, 0), still())

    assert list(there.glob(files[0].path))
    assert not here.exists() if is_new else ids(here) == [1]


def test_a_task_does_not_create_the_folder_of_a_table_on_another_machine(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    tablefeed.append(here, pa.table({"id": [1]}))
    _, plan = planned(here)

    with pytest.raises(ObjectNotFoundError, match=r"no folder at .*there.* on the disk of another machine"):
        write_task(plan, [batch(2)], task=0, now_ms=0, store=LocalStore(str(there)))

    assert not there.exists()


def test_a_task_without_rows_writes_no_file(tmp_path: Path) -> None:
    _, plan = planned(tmp_path)

    assert write_task(plan, [batch()], task=0, now_ms=0) == ()
    assert data_files(tmp_path) == []


def test_two_attempts_of_one_task_write_under_different_names(tmp_path: Path) -> None:
    _, plan = planned(tmp_path)

    first, twin = (write_task(plan, [batch(1)], task=7, now_ms=0)[0].path for _ in range(2))

    assert first != twin
    assert first.startswith("part-00007-")


def test_of_twin_attempts_the_one_that_spark_chose_is_in_the_table(tmp_path: Path) -> None:
    log, plan = planned(tmp_path)
    chosen, twin = (write_task(plan, [batch(1)], task=0, now_ms=0) for _ in range(2))

    commit(log, None, a_batch(plan, chosen, 0), still())

    assert ids(tmp_path) == [1]
    assert twin[0].path in data_files(tmp_path), "nobody knows that it lost: VACUUM takes it"


def test_rows_with_a_null_where_there_must_be_none_leave_no_file(tmp_path: Path) -> None:
    strict = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    write_deltalake(str(tmp_path), pa.table({"id": [1]}, schema=strict))
    before = data_files(tmp_path)
    _, plan = planned(tmp_path)

    with pytest.raises(InvalidRowsError):
        write_task(plan, [batch(2), pa.record_batch([pa.array([None], pa.int64())], schema=ID)], task=0, now_ms=0)
    assert data_files(tmp_path) == before


def test_a_store_that_is_not_exclusive_is_refused_by_name() -> None:
    with pytest.raises(NotExclusiveError, match="memory://somewhere/orders"):
        tablefeed.append("memory://somewhere/orders", pa.table({"id": [1]}))


def test_what_a_task_or_a_commit_left_half_written_when_it_died_is_no_row_and_no_version(tmp_path: Path) -> None:
    run_batch(tmp_path, 0)
    whole = (tmp_path / data_files(tmp_path)[0]).read_bytes()
    (tmp_path / "part-00000-11111111-1111-1111-1111-111111111111.c000.snappy.parquet").write_bytes(whole[:100])
    (tmp_path / "_delta_log" / ".00000000000000000001.json.0f.tmp").write_text('{"commitInfo":{"oper')
    known_state._known.clear()

    assert run_batch(tmp_path, 1) == committed(1)
    assert ids(tmp_path) == [0, 1]
    assert sorted(DeltaTable(str(tmp_path)).to_pyarrow_table()["id"].to_pylist()) == [0, 1]


# --- a batch that Spark gives up ------------------------------------------------------------------------------------


def test_the_files_of_a_batch_that_was_given_up_go_where_the_log_shows_that_a_twin_was_committed(
    tmp_path: Path,
) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [0]}))
    log, plan = planned(tmp_path)
    ours, twin = (write_task(plan, [batch(1)], task=0, now_ms=0) for _ in range(2))
    commit(log, log.load(), a_batch(plan, twin, 0), still())

    delete_after_abort(log, ours, Txn(app_id="query", txn_version=0), plan.next_version)

    assert ours[0].path not in data_files(tmp_path)
    assert ids(tmp_path) == [0, 1]


def test_the_files_of_a_batch_that_was_given_up_and_yet_committed_stay(tmp_path: Path) -> None:
    log, plan = planned(tmp_path)
    ours = write_task(plan, [batch(1)], task=0, now_ms=0)
    commit(log, None, a_batch(plan, ours, 0), still())

    delete_after_abort(log, ours, Txn(app_id="query", txn_version=0), plan.next_version)

    assert ids(tmp_path) == [1]


def test_the_files_of_a_batch_that_may_still_be_committed_stay(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [0]}))
    log, plan = planned(tmp_path)
    ours = write_task(plan, [batch(1)], task=0, now_ms=0)

    delete_after_abort(log, ours, Txn(app_id="query", txn_version=0), plan.next_version)

    assert ours[0].path in data_files(tmp_path)


# --- what a process remembers ----------------------------------------------------------------------------------------


def run_batch(path: Path, number: int) -> Committed | AlreadyApplied:
    """A micro-batch as Spark's sink runs it: planned and committed from what this process knows."""
    log, state = newest_state(str(path), {})
    plan = plan_write(log, state, ID, partition_by=(), kind=WriteKind.APPEND)
    replayed = plan.recorded.get("query", -1) >= number
    files = () if replayed else write_task(plan, [batch(number)], task=0, now_ms=0)
    log, known = last_known(plan.location, dict(plan.storage_options))
    outcome, after = commit(log, known, a_batch(plan, files, number), still())
    remember(log, after)
    return outcome


def test_batches_build_on_what_the_process_knows_and_see_what_others_did(tmp_path: Path) -> None:
    first = run_batch(tmp_path, 0)
    tablefeed.append(tmp_path, pa.table({"id": [100]}))
    second = run_batch(tmp_path, 1)

    assert (first, second) == (committed(0), committed(2))
    assert ids(tmp_path) == [0, 1, 100]


def test_a_batch_run_again_in_another_process_writes_no_file(tmp_path: Path) -> None:
    run_batch(tmp_path, 0)
    before = data_files(tmp_path)
    known_state._known.clear()

    assert run_batch(tmp_path, 0) == already_applied(0, recorded=0)
    assert data_files(tmp_path) == before


def test_a_process_that_knew_a_table_makes_it_again_after_it_was_deleted(tmp_path: Path) -> None:
    run_batch(tmp_path, 0)
    shutil.rmtree(tmp_path)

    assert run_batch(tmp_path, 0) == committed(0)
    assert ids(tmp_path) == [0]


def test_a_process_that_knew_a_table_takes_one_made_anew_for_what_it_is(tmp_path: Path) -> None:
    for number in range(3):
        run_batch(tmp_path, number)
    shutil.rmtree(tmp_path)
    for row in (7, 8, 9):
        tablefeed.append(tmp_path, pa.table({"id": [row]}))

    assert run_batch(tmp_path, 0) == committed(3)
    assert ids(tmp_path) == [0, 7, 8, 9]


def test_a_process_that_knew_a_delta_table_finds_the_splits_that_were_made_in_its_place(tmp_path: Path) -> None:
    table, splits = tmp_path / "table", tmp_path / "splits"
    run_batch(table, 0)
    plan = plan_write(*newest_state(str(table), {}), ID, partition_by=(), kind=WriteKind.APPEND)
    tablefeed.append(splits, pa.table({"id": [7]}), table_format="indextables")
    shutil.rmtree(table)
    shutil.move(splits, table)

    with pytest.raises(TableError, match="an IndexTables table, not a Delta one"):
        commit(*last_known(str(table), {}), a_batch(plan, (), 1), still())
    tablefeed.append(table, pa.table({"id": [8]}))

    assert not (table / "_delta_log").exists()
    assert sorted(tablefeed.open_table(table).to_arrow()["id"].to_pylist()) == [7, 8]


def test_a_process_remembers_a_few_tables_and_not_all(tmp_path: Path) -> None:
    for number in range(KEPT_TABLES + 3):
        newest_state(str(tmp_path / str(number)), {})

    assert len(known_state._known) == KEPT_TABLES


def test_a_column_of_the_rows_without_a_type_is_null_in_splits(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1], "v": ["a"]}), table_format="indextables")

    tablefeed.append(tmp_path, pa.table({"id": [2], "v": pa.nulls(1)}))

    assert tablefeed.open_table(tmp_path).to_arrow(filter="v IS NULL").to_pylist() == [{"id": 2, "v": None}]
