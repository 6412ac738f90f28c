"""What an IndexTables log gets besides its commits, and what it must not get."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from support.faulty_store import Fault, FaultyStore
from support.index_tables import hint_in, live, log_files, log_of, rows_of
from tablefeed.errors import TablefeedError, TableReplacedError
from tablefeed.feed.commit.index_states import put_whole
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.upkeep import after_commit as upkeep
from tablefeed.feed.upkeep import background
from tablefeed.feed.upkeep.after_commit import UpkeepOptions
from tablefeed.feed.upkeep.index_checkpoint import checkpoint_if_due, write_json_checkpoint
from tablefeed.indextables import names
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import Txn, Version
from tablefeed.store import LocalStore


@pytest.fixture
def table(corpus: Path, tmp_path: Path) -> Path:
    """A table of JSON commits 0 to 8, with a checkpoint of version 5."""
    return Path(shutil.copytree(corpus / "indextables" / "it053_events_json", tmp_path / "table"))


def grow(table: Path, *, to: int) -> None:
    """Appends a row at a time until the table is at version `to`."""
    row = tablefeed.open_table(table).to_arrow().slice(0, 1)
    for version in range(tablefeed.open_table(table).version + 1, to + 1):
        at = row.schema.get_field_index("id")
        tablefeed.append(table, row.set_column(at, "id", pa.array([version], row.schema.field("id").type)))
    background.wait_until_done()


def forget_commits(table: Path, count: int) -> None:
    for version in range(count):
        (table / names.LOG_DIR / names.commit_name(version)).unlink()


def checkpoints(table: Path) -> set[str]:
    return {name for name in log_files(table) if ".checkpoint." in name}


def test_a_table_that_has_checkpoints_gets_the_next_one_in_time(table: Path) -> None:
    grow(table, to=20)
    before, files = rows_of(table), live(table)

    assert checkpoints(table) == {names.checkpoint_name(5), names.checkpoint_name(20)}
    hint = hint_in(table)
    assert (hint.version, hint.file_count, hint.is_state) == (20, len(files), False)
    forget_commits(table, 20)
    assert rows_of(table) == before
    assert live(table) == files


@pytest.mark.parametrize("name", ["it053_events_json_nockpt", "it053_events_avro"])
def test_a_table_without_a_checkpoint_and_one_of_states_get_none(corpus: Path, tmp_path: Path, name: str) -> None:
    table = Path(shutil.copytree(corpus / "indextables" / name, tmp_path / "table"))
    had_hint = names.LAST_CHECKPOINT in log_files(table)
    grow(table, to=20)

    assert checkpoints(table) == set()
    assert (names.LAST_CHECKPOINT in log_files(table)) is had_hint


def test_none_is_due_within_ten_versions_of_the_last(table: Path) -> None:
    grow(table, to=14)
    assert not checkpoint_if_due(log_of(table).load(), 10, part_actions=None, now_ms=42)
    grow(table, to=15)
    assert checkpoint_if_due(log_of(table).load(), 10, part_actions=None, now_ms=42)
    assert not checkpoint_if_due(log_of(table).load(), 10, part_actions=None, now_ms=42)
    assert checkpoints(table) == {names.checkpoint_name(5), names.checkpoint_name(15)}


@pytest.mark.parametrize(("interval", "due"), [(3, True), (4, False), (None, False)])
def test_how_many_versions_lie_between_two_can_be_asked_for(table: Path, *, interval: int | None, due: bool) -> None:
    upkeep.look_after(log_of(table).load(), UpkeepOptions(index_interval=interval, index_part_actions=2))
    background.wait_until_done()

    assert (names.checkpoint_name(8) in checkpoints(table)) is due
    assert (len(checkpoints(table)) > 2) is due


def test_many_files_make_parts_that_are_read_as_one(table: Path) -> None:
    grow(table, to=10)
    log = log_of(table)
    before = live(table)

    assert write_json_checkpoint(log, log.load(), writer=Writer.SCALA, part_actions=2, now_ms=42)
    assert len(checkpoints(table)) > 3
    forget_commits(table, 11)
    assert live(table) == before


def test_what_another_writer_has_checkpointed_is_left_as_it_is(table: Path) -> None:
    log = log_of(table)
    snapshot = log.load(Version(5))
    there = log_files(table)
    theirs = (table / names.LOG_DIR / names.checkpoint_name(5)).read_bytes()

    assert not write_json_checkpoint(log, snapshot, writer=Writer.SCALA, part_actions=2, now_ms=42)
    assert (table / names.LOG_DIR / names.checkpoint_name(5)).read_bytes() == theirs
    assert log_files(table) == there


def test_the_progress_of_applications_is_kept_in_a_checkpoint(table: Path) -> None:
    row = tablefeed.open_table(table).to_arrow().slice(0, 1)
    tablefeed.append(table, row, app_id="loader", txn_version=3)
    log = log_of(table)
    write_json_checkpoint(log, log.load(), writer=Writer.SCALA, part_actions=None, now_ms=42)
    forget_commits(table, 10)

    txn = log_of(table).load().facts.txns["loader"]
    assert txn == Txn(app_id="loader", txn_version=3, last_updated_ms=txn.last_updated_ms)


def test_last_checkpoint_loses_the_checksum_of_what_it_said_before_and_never_goes_back(table: Path) -> None:
    store = FaultyStore(LocalStore(str(table)))
    log = IndexTablesLog(store, location=str(table), storage_options={})
    write_json_checkpoint(log, log.load(), writer=Writer.SCALA, part_actions=None, now_ms=42)
    write_json_checkpoint(log, log.load(Version(7)), writer=Writer.SCALA, part_actions=None, now_ms=43)

    # On the local disk the checksum is gone with the file that is replaced; other stores are told to delete it.
    checksum = f"{names.LOG_DIR}/.{names.LAST_CHECKPOINT}.crc"
    assert [call.name for call in store.calls if call.operation == "delete"] == [checksum]
    assert hint_in(table).version == 8


def checkpointed(log: IndexTablesLog, snapshot: Snapshot) -> None:
    write_json_checkpoint(log, snapshot, writer=Writer.SCALA, part_actions=5, now_ms=42)


def with_a_state(log: IndexTablesLog, snapshot: Snapshot) -> None:
    put_whole(log, snapshot, writer=Writer.SCALA, now_ms=42)


@pytest.mark.parametrize("work", [checkpointed, with_a_state])
def test_what_names_other_files_keeps_them_where_the_answer_to_its_put_was_lost(
    table: Path, work: Callable[[IndexTablesLog, Snapshot], None]
) -> None:
    """The put is sent again then, and refused."""
    grow(table, to=10)
    before = [add.path for add in live(table)]
    heads = (names.checkpoint_name(10), f"/{names.STATE_MANIFEST}")
    log = log_of(table, *(Fault(operation="put_if_absent", name=name, when="again") for name in heads))

    work(log, log.load())

    forget_commits(table, 11)
    assert [add.path for add in live(table)] == before


@pytest.mark.parametrize("work", [checkpointed, with_a_state])
def test_of_a_put_whose_answer_was_lost_while_the_table_was_replaced_no_file_stays(
    table: Path, work: Callable[[IndexTablesLog, Snapshot], None]
) -> None:
    grow(table, to=10)
    before = log_files(table)
    commit = table / names.LOG_DIR / names.commit_name(10)

    def restored() -> None:
        commit.write_bytes(commit.read_bytes() + b"\n")

    head = names.checkpoint_name(10) if work is checkpointed else f"/{names.STATE_MANIFEST}"
    lost = Fault(operation="put_if_absent", name=head, when="again")
    log = log_of(table, lost, Fault(operation="read", name=head, hook=restored))

    with pytest.raises(TableReplacedError):
        work(log, log.load())

    assert log_files(table) == before


def test_manifests_stay_that_later_states_share_though_the_commit_of_their_first_state_was_cleaned_up(
    tmp_path: Path,
) -> None:
    table, row = tmp_path / "table", pa.table({"id": [1]})
    tablefeed.append(table, row, table_format="indextables")
    shutil.rmtree(table / names.LOG_DIR / names.state_dir(1))

    def others_go_on() -> None:
        tablefeed.append(table, row)
        for version in (0, 1):
            (table / names.LOG_DIR / names.commit_name(version)).unlink()

    held_up = Fault(operation="stat", name=names.commit_name(1), at=3, hook=others_go_on)
    log = log_of(table, held_up)

    with pytest.raises(TableReplacedError):
        with_a_state(log, log.load())

    assert len(rows_of(table)) == 2


@pytest.mark.parametrize("work", [checkpointed, with_a_state])
@pytest.mark.parametrize("anew", [False, True], ids=["deleted", "made anew"])
def test_at_whatever_step_a_table_is_deleted_or_made_anew_nothing_of_the_old_one_is_in_its_log(
    table: Path, tmp_path: Path, work: Callable[[IndexTablesLog, Snapshot], None], *, anew: bool
) -> None:
    """With as many versions as before, whose commits are younger."""

    def gone(root: Path) -> None:
        shutil.rmtree(root)
        if anew:
            shutil.copytree(table, root, copy_function=shutil.copyfile)

    for root in disturbed(table, tmp_path, work, gone):
        assert root.exists() == anew, root.name
        assert not anew or log_files(root) == log_files(table), root.name


@pytest.mark.parametrize("work", [checkpointed, with_a_state])
def test_at_whatever_step_a_copy_with_the_same_newest_version_is_restored_what_is_put_is_whole(
    table: Path, tmp_path: Path, work: Callable[[IndexTablesLog, Snapshot], None]
) -> None:
    grow(table, to=10)
    before = [add.path for add in live(table)]

    def restored(root: Path) -> None:
        shutil.rmtree(root)
        shutil.copytree(table, root)

    for root in disturbed(table, tmp_path, work, restored):
        if log_files(root) != log_files(table):
            forget_commits(root, 11)
            assert [add.path for add in live(root)] == before, root.name


def disturbed(
    table: Path,
    folder: Path,
    work: Callable[[IndexTablesLog, Snapshot], None],
    disturb: Callable[[Path], None],
) -> Iterator[Path]:
    """Copies of the table on which `work` was done; before one of its calls, another in each, `disturb` was called."""

    def worked(root: Path, *faults: Fault) -> FaultyStore:
        shutil.copytree(table, root)
        store = FaultyStore(LocalStore(str(root)), faults=faults)
        log = IndexTablesLog(store, location=str(root), storage_options={})
        snapshot = replace(log_of(root).load(), log=log)
        with suppress(TablefeedError):
            work(log, snapshot)
        return store

    undisturbed = worked(folder / "undisturbed")
    assert log_files(folder / "undisturbed") > log_files(table)
    for operation, count in Counter(call.operation for call in undisturbed.calls).items():
        for at in range(1, count + 1):
            root = folder / f"{operation}{at}"
            worked(root, Fault(operation=operation, at=at, hook=partial(disturb, root)))
            yield root
