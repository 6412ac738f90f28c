"""Rows committed to IndexTables tables, in the flavour that each has, and what stands of them whatever happens."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import tablefeed
from support.commits import already_applied, committed, still, written
from support.faulty_store import Fault, FaultyStore
from support.index_tables import (
    ROWS,
    field_types,
    index_fields,
    live,
    log_files,
    log_of,
    merge_all,
    put_state,
    rows_of,
)
from support.maintained import ids
from tablefeed import errors
from tablefeed.feed.commit import index_states
from tablefeed.feed.commit.index_attempts import NOTES_DIR
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.settled_put import LOST_ANSWER_RETRIES
from tablefeed.feed.commit.transaction import Transaction, batch_write
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.indextables import names
from tablefeed.indextables.log.next_state import StateUpdate
from tablefeed.indextables.log.state_writer import encode_state
from tablefeed.indextables.log.version_file import Writer
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Version
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.store.memory import MemoryStore

FLAVOURS = {
    "json": ("it053_events_json", {"{}.json"}),
    "json without a checkpoint": ("it053_events_json_nockpt", {"{}.json"}),
    "states": ("it053_events_avro", {"state-v{}/_manifest.avro"}),
    "native": ("itnative_events", {"{}.json", "state-v{}/_manifest.avro"}),
}
"""The corpus' tables of the same eight commits, and what log files a version of each is made of."""

MANIFESTS = "manifests/"


@pytest.fixture(params=FLAVOURS)
def flavour(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(flavour: str, corpus: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "table"
    shutil.copytree(corpus / "indextables" / FLAVOURS[flavour][0], copy)
    return copy


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """A table of ours: version 1 has `ROWS`."""
    tablefeed.append(tmp_path / "table", ROWS, table_format="indextables")
    return tmp_path / "table"


def new_rows(table: Path, *ids: int) -> pa.Table:
    """Rows as the table's first one, with other ids."""
    first = tablefeed.open_table(table).to_arrow().slice(0, 1)
    rows = pa.concat_tables([first] * len(ids))
    return rows.set_column(rows.schema.get_field_index("id"), "id", pa.array(ids, rows.schema.field("id").type))


def test_an_append_adds_its_rows_in_the_flavour_of_the_log_and_leaves_every_other_file_as_it_is(
    table: Path, flavour: str
) -> None:
    before, there = rows_of(table), log_files(table)
    contents = {name: (table / names.LOG_DIR / name).read_bytes() for name in there - {names.LAST_CHECKPOINT}}
    version = tablefeed.open_table(table).version
    rows = new_rows(table, 901, 902)

    outcome = tablefeed.append(table, rows)

    assert outcome == committed(version + 1)
    assert rows_of(table) == sorted([*before, *map(repr, rows.to_pylist())])
    expected = {name.format(f"{version + 1:020d}") for name in FLAVOURS[flavour][1]}
    new = {name for name in log_files(table) - there if not name.startswith(MANIFESTS)}
    assert new == expected
    if f"{version + 1:020d}.json" in new:
        begins = [(table / names.LOG_DIR / names.commit_name(v)).read_bytes()[:2] for v in (version, version + 1)]
        assert begins[1] == (b"\x1f\x8b" if flavour == "native" else begins[0])
    assert {name: (table / names.LOG_DIR / name).read_bytes() for name in contents} == contents


def test_an_overwrite_takes_the_place_of_all_rows_and_the_feed_tells_both(table: Path) -> None:
    before = tablefeed.open_table(table)
    rows = new_rows(table, 901)

    version = tablefeed.append(table, rows, mode="overwrite").version

    assert rows_of(table) == [repr(rows.to_pylist()[0])]
    changes = tablefeed.changes(table, start_version=version).read_all()
    assert changes.filter(pa.compute.equal(changes["_change_type"], "delete")).num_rows == before.to_arrow().num_rows
    assert changes.filter(pa.compute.equal(changes["_change_type"], "insert"))["id"].to_pylist() == [901]


def test_older_versions_stay_as_they_were(table: Path) -> None:
    version = tablefeed.open_table(table).version
    before = rows_of(table)

    tablefeed.append(table, new_rows(table, 901))
    tablefeed.append(table, new_rows(table, 902), mode="overwrite")

    assert rows_of(table, version) == before
    assert len(rows_of(table, version + 1)) == len(before) + 1


def test_a_write_that_is_run_again_is_not_written_again(table: Path) -> None:
    rows = new_rows(table, 901)
    first = tablefeed.append(table, rows, app_id="loader", txn_version=3)
    splits = {path.name for path in table.rglob("*.split")}

    again = tablefeed.append(table, rows, app_id="loader", txn_version=3)

    assert again == already_applied(first.version, recorded=3)
    assert {path.name for path in table.rglob("*.split")} == splits


def test_a_write_is_known_after_its_splits_were_merged_and_the_log_compacted(table: Path, flavour: str) -> None:
    for batch in range(3):
        tablefeed.append(table, new_rows(table, 901 + batch), app_id="loader", txn_version=batch)
    merge_all(table, as_state=flavour == "states")
    merged = rows_of(table)
    assert not any("loader" in add.path or "-2-" in add.path for add in live(table))

    again = tablefeed.append(table, new_rows(table, 903), app_id="loader", txn_version=2)

    assert isinstance(again, AlreadyApplied)
    assert rows_of(table) == merged


@pytest.mark.parametrize("ours", [[], [901, 902]], ids=["without rows", "with rows"])
@pytest.mark.parametrize("merged", [False, True], ids=["", "merged"])
def test_an_overwrite_that_is_run_again_takes_nothing_away_of_what_came_since(
    table: Path, flavour: str, ours: list[int], *, merged: bool
) -> None:
    rows, theirs = new_rows(table, 901, 902).slice(0, len(ours)), new_rows(table, 903)
    tablefeed.append(table, rows, mode="overwrite", app_id="loader", txn_version=7)
    tablefeed.append(table, theirs)
    if merged:
        merge_all(table, as_state=flavour == "states")
    version = tablefeed.open_table(table).version

    outcome = tablefeed.append(table, rows, mode="overwrite", app_id="loader", txn_version=7)

    assert outcome == already_applied(version, recorded=7)
    assert (ids(table), tablefeed.open_table(table).version) == ([*ours, 903], version)


def test_an_overwrite_without_rows_of_a_table_without_rows_is_recorded_too_and_a_later_one_takes_what_came_since(
    table: Path,
) -> None:
    theirs = new_rows(table, 903)
    rows = theirs.slice(0, 0)

    def overwrite(version: int) -> Committed | AlreadyApplied:
        return tablefeed.append(table, rows, mode="overwrite", app_id="loader", txn_version=version)

    tablefeed.append(table, rows, mode="overwrite")
    overwrite(7)
    tablefeed.append(table, theirs)

    assert (type(overwrite(7)), ids(table)) == (AlreadyApplied, [903])
    assert (type(overwrite(8)), ids(table)) == (Committed, [])
    assert (type(overwrite(7)), ids(table)) == (AlreadyApplied, [])


def test_an_overwrite_without_rows_of_unknown_fate_is_found(table: Path, flavour: str) -> None:
    theirs = new_rows(table, 903)
    rows, log = theirs.slice(0, 0), log_of(table)
    following = Version(log.load().version + 1)
    put = names.state_name(following) if flavour == "states" else names.commit_name(following)
    silent = [Fault(operation="read", name=put, at=call) for call in range(1, 10)]
    lost = log_of(table, Fault(operation="put_if_absent", name=put, when="after"), *silent)
    write = written(log, rows, txn=("loader", 7), kind=WriteKind.OVERWRITE)
    with pytest.raises(errors.CommitUnknownError):
        commit(lost, log.load(), write, still())
    tablefeed.append(table, theirs)

    assert isinstance(tablefeed.append(table, rows, mode="overwrite", app_id="loader", txn_version=7), AlreadyApplied)
    assert ids(table) == [903]


def test_a_write_is_known_although_a_restored_copy_lacks_its_note(table: Path) -> None:
    append = partial(tablefeed.append, table, new_rows(table, 901), app_id="loader", txn_version=7)
    append()
    version, there = tablefeed.open_table(table).version, ids(table)
    shutil.rmtree(table / NOTES_DIR)

    assert append() == already_applied(version, recorded=7)
    assert ids(table) == there


def of_unknown_outcome(table: Path, flavour: str, rows: pa.Table) -> tuple[IndexTablesLog, Version]:
    """Commits `rows` as batch 7, whose answer is lost. Gives the log through which it was done, and its version."""
    following = Version(tablefeed.open_table(table).version + 1)
    put = names.state_name(following) if flavour == "states" else names.commit_name(following)
    silent = [Fault(operation="read", name=put, at=call) for call in range(1, LOST_ANSWER_RETRIES)]
    log = log_of(table, Fault(operation="put_if_absent", name=put, when="after"), *silent)
    with pytest.raises(errors.CommitUnknownError):
        commit(log, log.load(), written(log, rows, txn=("loader", 7)), still())
    return log, following


def test_who_does_not_know_the_outcome_finds_the_write_although_a_restored_copy_lacks_its_note(
    table: Path, flavour: str
) -> None:
    rows = new_rows(table, 901)
    log, following = of_unknown_outcome(table, flavour, rows)
    shutil.rmtree(table / NOTES_DIR)

    outcome, _ = commit(log, log.load(), written(log, rows, txn=("loader", 7)), still())

    assert outcome == already_applied(following, recorded=7)


@pytest.mark.parametrize("flavour", ["states", "native"], indirect=True)
def test_who_does_not_know_the_outcome_finds_the_write_although_its_split_was_overwritten_and_its_note_is_gone(
    table: Path, flavour: str
) -> None:
    rows, others = new_rows(table, 901), new_rows(table, 902)
    log, following = of_unknown_outcome(table, flavour, rows)
    tablefeed.append(table, others, mode="overwrite")
    shutil.rmtree(table / NOTES_DIR)

    outcome, _ = commit(log, log.load(), written(log, rows, txn=("loader", 7)), still())

    assert outcome == already_applied(Version(following + 1), recorded=7)
    assert ids(table) == [902]


@pytest.mark.parametrize("flavour", ["states", "native"], indirect=True)
def test_a_batch_after_one_of_unknown_outcome_is_committed_although_those_versions_were_purged(
    table: Path, flavour: str
) -> None:
    seven, eight, others = new_rows(table, 901), new_rows(table, 902), new_rows(table, 903)
    log, following = of_unknown_outcome(table, flavour, seven)
    commit(log, log.load(), written(log, seven, txn=("loader", 7)), still())
    for _ in range(3):
        tablefeed.append(table, others)
    for version in range(following, following + 3):
        shutil.rmtree(table / names.LOG_DIR / names.state_dir(Version(version)))
        (table / names.LOG_DIR / names.commit_name(Version(version))).unlink(missing_ok=True)

    outcome, _ = commit(log, log.load(), written(log, eight, txn=("loader", 8)), still())

    assert isinstance(outcome, Committed)


@pytest.mark.parametrize("flavour", ["json"], indirect=True)
def test_an_overwrite_without_rows_is_known_by_its_commit_although_its_note_is_gone(table: Path) -> None:
    rows = new_rows(table, 903)
    overwrite = partial(tablefeed.append, table, rows.slice(0, 0), mode="overwrite", app_id="loader", txn_version=7)
    overwrite()
    tablefeed.append(table, rows)
    version = tablefeed.open_table(table).version
    shutil.rmtree(table / NOTES_DIR)

    assert overwrite() == already_applied(version, recorded=7)
    assert ids(table) == [903]


def test_an_older_write_that_wakes_late_commits_nothing(table: Path) -> None:
    for batch in (7, 8):
        tablefeed.append(table, new_rows(table, 901), app_id="loader", txn_version=batch)
    before, version = rows_of(table), tablefeed.open_table(table).version

    late = tablefeed.append(table, new_rows(table, 999), app_id="loader", txn_version=7)

    assert late == already_applied(version, recorded=8)
    assert rows_of(table) == before


def test_notes_of_earlier_writes_are_deleted_and_other_files_beside_them_stay(new: Path) -> None:
    tablefeed.append(new, ROWS, app_id="loader", txn_version=7)
    (folder,) = (new / NOTES_DIR).iterdir()
    (folder / "other").touch()

    assert isinstance(tablefeed.append(new, ROWS, app_id="loader", txn_version=8), Committed)

    assert sorted(file.name for file in folder.iterdir()) == ["other", f"txn-{8:020d}"]


def test_a_write_that_was_tried_and_never_committed_is_written(table: Path) -> None:
    failing = (Fault(operation="put_if_absent", name=names.LOG_DIR, at=n) for n in range(2, 9))
    write = written(log_of(table), new_rows(table, 901), txn=("loader", 0))
    with pytest.raises((errors.CommitUnknownError, errors.StoreError)):
        commit(log_of(table, *failing), None, write, still())
    assert list((table / NOTES_DIR).rglob("txn-*"))

    assert isinstance(tablefeed.append(table, new_rows(table, 901), app_id="loader", txn_version=0), Committed)


def test_a_note_that_comes_into_the_log_of_another_table_hides_no_write_to_it(new: Path) -> None:
    tablefeed.append(new, ROWS)

    def made_anew() -> None:
        shutil.rmtree(new)
        tablefeed.append(new, ROWS, table_format="indextables")

    log = log_of(new, Fault(operation="put_if_absent", name="/txn-", hook=made_anew))
    with pytest.raises(errors.TablefeedError):
        commit(log, None, written(log_of(new), ROWS, txn=("loader", 0)), still())

    assert tablefeed.append(new, ROWS, app_id="loader", txn_version=0) == committed(2)
    assert tablefeed.append(new, ROWS, app_id="loader", txn_version=0) == already_applied(2, recorded=0)


@pytest.mark.parametrize("damaged", ["", "7", '{"after":"7"}', '{"after":true}', '{"after":null}'])
def test_a_write_of_which_the_note_is_damaged_is_refused(new: Path, damaged: str) -> None:
    rows = pa.table({"id": [1]})
    for _ in range(2):
        tablefeed.append(new, rows, table_format="indextables", app_id="app", txn_version=7)
    (note,) = (new / "_transaction_log" / "_tablefeed").glob("*/txn-*")
    note.write_text(damaged)

    with pytest.raises(errors.LogError, match="not known whether write 7 of app was committed"):
        tablefeed.append(new, rows, table_format="indextables", app_id="app", txn_version=7)


def test_where_the_version_that_may_hold_a_write_was_purged_the_write_is_refused(corpus: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    shutil.copytree(corpus / "indextables" / FLAVOURS["states"][0], table)
    first = tablefeed.append(table, new_rows(table, 901), app_id="loader", txn_version=0)
    merge_all(table, as_state=True)
    merge_all(table, as_state=True)
    shutil.rmtree(table / names.LOG_DIR / names.state_dir(first.version))

    with pytest.raises(errors.CommitUnknownError, match="purged"):
        tablefeed.append(table, new_rows(table, 901), app_id="loader", txn_version=0)


def test_a_write_whose_version_was_purged_is_known_by_its_live_split(corpus: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    shutil.copytree(corpus / "indextables" / FLAVOURS["states"][0], table)
    first = tablefeed.append(table, new_rows(table, 901), app_id="loader", txn_version=0)
    tablefeed.append(table, new_rows(table, 902))
    shutil.rmtree(table / names.LOG_DIR / names.state_dir(first.version))

    assert isinstance(tablefeed.append(table, new_rows(table, 901), app_id="loader", txn_version=0), AlreadyApplied)
    assert sorted(ids(table))[-2:] == [901, 902]


def test_who_loses_the_race_takes_the_version_after(table: Path) -> None:
    log = log_of(table)
    state = log.load()
    ours = written(log, new_rows(table, 901), txn=("ours", 0))
    theirs = tablefeed.append(table, new_rows(table, 902))

    outcome, after = commit(log, state, ours, still())

    assert (outcome, after.version) == (committed(theirs.version + 1), theirs.version + 1)
    assert {901, 902} <= set(ids(table))


@pytest.mark.parametrize("flavour", ["states"], indirect=True)
def test_a_state_that_lost_its_put_leaves_no_manifest(table: Path) -> None:
    there, state_file = log_files(table), names.state_name(Version(tablefeed.open_table(table).version + 1))

    def overtake() -> None:
        tablefeed.append(table, new_rows(table, 902))

    log = log_of(table, Fault(operation="put_if_absent", name=state_file, hook=overtake))

    ours, _ = commit(log, None, written(log, new_rows(table, 901)), still())

    state = log_of(table).state(ours.version)
    assert state is not None
    new = {name for name in log_files(table) - there if name.startswith(MANIFESTS)}
    assert new == {manifest.name for manifest in state.manifests} - there
    assert {901, 902} <= set(ids(table))


@pytest.mark.parametrize("flavour", ["states"], indirect=True)
def test_a_state_whose_manifest_went_when_a_copy_with_the_same_newest_version_was_restored_is_put_again(
    table: Path,
) -> None:
    there = log_files(table)

    def lose_what_the_copy_lacks() -> None:
        for name in log_files(table) - there:
            (table / names.LOG_DIR / name).unlink()

    log = log_of(table, Fault(operation="put_if_absent", name=names.STATE_MANIFEST, hook=lose_what_the_copy_lacks))

    commit(log, None, written(log, new_rows(table, 901)), still())

    assert 901 in ids(table)


def lose_last_manifest(table: Path) -> None:
    """As where an older copy was restored after the writer of the newest state put its manifest, and before the state.

    The writer has not deleted the state again yet.
    """
    state = log_of(table).state(Version(tablefeed.open_table(table).version))
    assert state is not None
    (table / names.LOG_DIR / state.manifests[-1].name).unlink()


@pytest.mark.parametrize("flavour", ["states"], indirect=True)
def test_no_state_is_committed_after_one_whose_manifest_is_gone(table: Path) -> None:
    tablefeed.append(table, new_rows(table, 901))
    noted = Fault(operation="put_if_absent", name="/txn-", when="after", hook=partial(lose_last_manifest, table))
    log = log_of(table, noted)
    before = log_of(table).load().version

    with pytest.raises(errors.ConflictError, match="names a manifest that is gone") as caught:
        commit(log, None, written(log, new_rows(table, 902), txn=("loader", 7)), still())

    assert caught.value.error_class == "INDEXTABLES_TABLE_REPLACED"
    assert log_of(table).load().version == before


@pytest.mark.parametrize("flavour", ["states"], indirect=True)
def test_nor_after_one_whose_manifest_this_process_had_seen_before_an_older_copy_was_restored(table: Path) -> None:
    log, there = log_of(table), log_files(table)
    commit(log, None, written(log, new_rows(table, 901)), still())
    base, write = log.state(Version(9)), written(log, new_rows(table, 902))
    for name in log_files(table) - there:
        (table / names.LOG_DIR / name).unlink()
    # A writer that was held up since puts its state.
    put_state(log, base, StateUpdate(version=Version(10), created_ms=1))

    with pytest.raises(errors.ConflictError, match="names a manifest that is gone"):
        commit(log, None, write, still())


def test_a_commit_gets_no_state_that_continues_from_one_whose_manifest_is_gone(new: Path) -> None:
    tablefeed.append(new, ROWS)
    log = log_of(new)
    put = f"{names.LOG_DIR}/{names.commit_name(3)}"
    losing = Fault(operation="put_if_absent", name=put, hook=partial(lose_last_manifest, new))

    commit(log_of(new, losing), None, written(log, ROWS), still())

    assert log.state(Version(3)) is None
    (new / names.LOG_DIR / names.state_name(2)).unlink()  # as its writer does
    assert len(rows_of(new)) == 9


def test_the_state_that_another_writer_put_for_a_commit_goes_with_it(new: Path) -> None:
    def made_anew() -> None:
        shutil.rmtree(new)
        tablefeed.append(new, ROWS, table_format="indextables")

    def completed() -> None:
        index_states.complete(log_of(new), log_of(new).load(), now_ms=1)
        assert log_of(new).state(Version(2)) is not None

    log = log_of(
        new,
        Fault(operation="put_if_absent", name=names.commit_name(2), hook=made_anew),
        Fault(operation="put_if_absent", name=names.commit_name(2), when="after", hook=completed),
    )
    with pytest.raises(errors.ConflictError):
        commit(log, None, written(log, ROWS), still())

    assert log_of(new).state(Version(2)) is None
    assert len(rows_of(new)) == 3


@pytest.mark.parametrize("flavour", ["states"], indirect=True)
def test_an_overwrite_leaves_no_gap_in_a_log_that_was_restored_from_an_older_copy(table: Path) -> None:
    newest = tablefeed.open_table(table).version

    def lose_the_newest() -> None:
        shutil.rmtree(table / names.LOG_DIR / names.state_dir(newest))

    log = log_of(table, Fault(operation="put_if_absent", name=MANIFESTS, hook=lose_the_newest))

    commit(log, None, written(log, new_rows(table, 901), kind=WriteKind.OVERWRITE), still())

    assert (tablefeed.open_table(table).version, ids(table)) == (newest, [901])


def test_an_overwrite_takes_away_what_was_appended_before_it_won(table: Path) -> None:
    log = log_of(table)
    state = log.load()
    ours = written(log, new_rows(table, 901), txn=("ours", 0), kind=WriteKind.OVERWRITE)
    tablefeed.append(table, new_rows(table, 902))

    commit(log, state, ours, still())

    assert ids(table) == [901]


@pytest.mark.parametrize(
    ("when", "puts"),
    [("after", (".json", f"/{names.STATE_MANIFEST}")), ("again", (".json", f"/{names.STATE_MANIFEST}", MANIFESTS))],
    ids=["error", "sent again"],
)
def test_a_lost_answer_is_settled_by_reading_back(
    table: Path, when: Literal["after", "again"], puts: tuple[str, ...]
) -> None:
    log = log_of(table, *(Fault(operation="put_if_absent", name=name, when=when) for name in puts))
    before = len(rows_of(table))

    outcome, _ = commit(log, None, written(log, new_rows(table, 901), txn=("ours", 0)), still())

    assert isinstance(outcome, Committed)
    assert len(rows_of(table)) == before + 1


@pytest.mark.parametrize("flavour", ["states", "native"], indirect=True)
def test_a_version_that_was_made_and_purged_while_its_writer_was_held_up_is_not_made_again(
    table: Path, flavour: str
) -> None:
    base = tablefeed.open_table(table).version
    files = [name.format(f"{version:020d}") for version in range(base + 2) for name in FLAVOURS[flavour][1]]

    def held_up() -> None:
        for n in range(3):
            tablefeed.append(table, new_rows(table, 901 + n))
        for name in files:
            (table / names.LOG_DIR / name).unlink(missing_ok=True)
        for path in (table / names.LOG_DIR).rglob("*"):
            os.utime(path, (0, 0))  # all of that was long ago

    log = log_of(table, Fault(operation="put_if_absent", name=f"{base + 1:020d}", hook=held_up))

    with pytest.raises(errors.CommitUnknownError, match="purged"):
        commit(log, None, written(log, new_rows(table, 999), txn=("ours", 0)), still())

    assert log_files(table).isdisjoint(files)
    assert tablefeed.open_table(table).version == base + 3


@pytest.mark.parametrize("flavour", ["states"], indirect=True)
def test_a_state_that_is_put_into_the_log_of_another_table_is_taken_back(table: Path) -> None:
    def made_anew() -> None:
        shutil.rmtree(table)
        tablefeed.append(table, ROWS, table_format="indextables")

    put_late(table, made_anew)

    assert tablefeed.open_table(table).version == 1
    assert ids(table) == [1, 2, 3]


@pytest.mark.parametrize("flavour", ["states"], indirect=True)
@pytest.mark.parametrize("before", ["/manifests/", names.STATE_MANIFEST])
@pytest.mark.parametrize("kind", [WriteKind.APPEND, WriteKind.OVERWRITE, "overwrite without rows"])
def test_a_state_that_is_put_after_the_table_was_deleted_does_not_bring_it_back(
    table: Path, before: str, kind: WriteKind | Literal["overwrite without rows"]
) -> None:
    def deleted() -> None:
        for path in filter(Path.is_file, [*table.rglob("*")]):
            path.unlink()  # an object store has no folders, so its puts do not fail

    if isinstance(kind, WriteKind):
        put_late(table, deleted, before=before, kind=kind)
    else:
        put_late(table, deleted, before=before, kind=WriteKind.OVERWRITE, has_rows=False)

    with pytest.raises(errors.TableNotFoundError):
        tablefeed.open_table(table)


def put_late(
    table: Path,
    hook: Callable[[], None],
    *,
    before: str = names.STATE_MANIFEST,
    kind: WriteKind = WriteKind.APPEND,
    has_rows: bool = True,
) -> None:
    """Writes a row, or none; `hook` runs right before a file like `before` is put, and the write must raise an error.

    The state before has the metadata, as one of CHECKPOINT: ours repeats it.
    """
    there = log_of(table).load()
    base = Version(there.version + 1)
    update = StateUpdate(version=base, created_ms=1, metadata=there.metadata)
    put_state(log_of(table), log_of(table).state(there.version), update)
    log = log_of(table, Fault(operation="put_if_absent", name=before, hook=hook))
    rows = new_rows(table, 901).slice(0, int(has_rows))
    with pytest.raises(errors.TablefeedError):
        commit(log, None, written(log_of(table), rows, txn=("ours", 0), kind=kind), still())


def test_writers_at_once_each_have_their_rows_once(table: Path) -> None:
    before = ids(table)
    rows = [new_rows(table, 1000 + writer) for writer in range(3)]

    def write(writer: int) -> None:
        for batch in range(3):
            tablefeed.append(table, rows[writer], app_id=f"writer {writer}", txn_version=batch)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))

    assert ids(table) == sorted([*before, *(1000 + writer for writer in range(3) for _ in range(3))])


def test_the_hint_moves_to_a_state_and_never_back(table: Path, flavour: str) -> None:
    hint = table / names.LOG_DIR / names.LAST_CHECKPOINT
    before = hint.read_bytes() if hint.exists() else None
    (hint.parent / f".{names.LAST_CHECKPOINT}.crc").write_bytes(b"of what stood there")

    version = tablefeed.append(table, new_rows(table, 901)).version

    if flavour.startswith("json"):
        assert (hint.read_bytes() if hint.exists() else None) == before
    else:
        assert f'"version":{version},' in hint.read_text()
        assert not (hint.parent / f".{names.LAST_CHECKPOINT}.crc").exists()


# --- tables that a write makes --------------------------------------------------------------------------------


def test_a_new_table_is_whole_by_its_commits_and_by_its_states(tmp_path: Path) -> None:
    table = tmp_path / "table"
    for batch in range(3):
        tablefeed.append(table, ROWS, table_format="indextables", app_id="loader", txn_version=batch)
    whole = rows_of(table)
    assert len(whole) == 9
    by_commits, by_states = tmp_path / "commits", tmp_path / "states"
    for copy in (by_commits, by_states):
        shutil.copytree(table, copy)
    for state in (by_commits / names.LOG_DIR).glob("state-v*"):
        shutil.rmtree(state)
    for version in (1, 2, 3):
        (by_states / names.LOG_DIR / names.commit_name(version)).unlink()

    assert rows_of(by_commits) == whole
    assert rows_of(by_states) == whole


def test_a_new_table_is_partitioned_as_asked_and_keeps_every_kind_of_partition_value(tmp_path: Path) -> None:
    table = tmp_path / "table"
    rows = pa.table({"id": [1, 2, 3, 4], "k": ["a b/c:d%", None, "", "ü"]})

    tablefeed.append(table, rows, table_format="indextables", partition_by=["k"])

    assert rows_of(table) == sorted(map(repr, rows.to_pylist()))
    assert len(live(table)) == 4


@pytest.mark.parametrize(("there", "asked"), [("delta", "indextables"), ("indextables", "delta")])
def test_a_table_of_the_other_format_is_not_written_to(tmp_path: Path, there: str, asked: str) -> None:
    table = tmp_path / "table"
    tablefeed.append(table, ROWS, table_format=there)  # type: ignore[arg-type]
    files = sorted(table.rglob("*"))

    with pytest.raises(errors.TableError, match="TABLEFEED_OTHER_FORMAT"):
        tablefeed.append(table, ROWS, table_format=asked)  # type: ignore[arg-type]
    assert sorted(table.rglob("*")) == files


@pytest.mark.parametrize(("there", "asked"), [("delta", "indextables"), ("indextables", "delta")])
def test_a_table_is_not_made_beside_one_of_the_other_format_that_was_made_during_the_write(
    tmp_path: Path, there: str, asked: str
) -> None:
    table = tmp_path / "table"

    def batches() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        tablefeed.append(table, ROWS, table_format=there)  # type: ignore[arg-type]

    with pytest.raises(errors.TableError, match="TABLEFEED_OTHER_FORMAT"):
        tablefeed.append(table, batches(), table_format=asked)  # type: ignore[arg-type]

    files = [path for batch in tablefeed.open_table(table).files() for path in batch["path"].to_pylist()]
    assert [path.name for path in table.iterdir() if path.is_file()] == files
    assert rows_of(table) == sorted(map(repr, ROWS.to_pylist()))
    assert len([*table.glob("*_log")]) == 1


@pytest.mark.parametrize("late", [False, True], ids=["before the put", "at the put"])
def test_a_first_write_whose_split_went_with_the_folder_of_a_table_that_another_made_is_run_again(
    *, late: bool
) -> None:
    store = MemoryStore("events")
    gone = Fault(operation="put_if_absent", name=names.commit_name(1), hook=lambda: store.delete(files[0].path))
    faulty = FaultyStore(store, faults=[gone])
    log = IndexTablesLog(faulty, location=store.url, storage_options={})
    plan = plan_write(log, None, ROWS.schema, partition_by=(), kind=WriteKind.APPEND)
    files = write_task(plan, ROWS.to_batches(), task=0, now_ms=1, store=store)
    operation = batch_write(WriteKind.APPEND, ())
    ours = Transaction(plan=plan, files=files, kind=WriteKind.APPEND, operation=operation, txn=None)
    commit(log, None, replace(ours, files=()), still())
    if not late:
        store.delete(files[0].path)

    with pytest.raises(errors.ConflictError, match=r"split is gone|DELTA_METADATA_CHANGED.*1 of 1 new files are gone"):
        commit(log, None, ours, still())

    assert log.load().version == 0
    puts = [call.name for call in faulty.calls if call.operation == "put_if_absent"]
    assert (f"{names.LOG_DIR}/{names.commit_name(1)}" in puts) == late


def test_a_first_write_without_rows_makes_the_table(tmp_path: Path) -> None:
    table = tmp_path / "table"

    outcome = tablefeed.append(table, ROWS.slice(0, 0), table_format="indextables")

    assert outcome == committed(0)
    assert tablefeed.open_table(table).to_arrow().schema.names == ["id", "name"]
    assert isinstance(tablefeed.append(table, ROWS), Committed)
    assert len(rows_of(table)) == 3


def test_a_write_without_rows_makes_no_version(table: Path) -> None:
    version = tablefeed.open_table(table).version

    assert tablefeed.append(table, new_rows(table, 1).slice(0, 0)) == committed(version, written=False)


def test_a_state_that_its_writer_could_not_put_is_made_up_for(tmp_path: Path) -> None:
    table = tmp_path / "table"
    for batch in range(2):
        tablefeed.append(table, ROWS, table_format="indextables", app_id="loader", txn_version=batch)
    lost = table / names.LOG_DIR / names.state_dir(2)
    shutil.rmtree(lost)

    tablefeed.append(table, ROWS, app_id="loader", txn_version=1)
    assert (lost / names.STATE_MANIFEST).exists()
    shutil.rmtree(lost)
    tablefeed.append(table, ROWS, app_id="loader", txn_version=2)

    for version in (1, 2, 3):
        (table / names.LOG_DIR / names.commit_name(version)).unlink()
    assert len(rows_of(table)) == 9


def test_a_state_made_up_for_has_the_doc_mappings_that_only_an_earlier_registry_has(tmp_path: Path) -> None:
    """As after CHECKPOINT, which gives doc mappings other hashes where a table has many."""
    by_key = [pa.table({"by": pa.array([[(key, 1)]], pa.map_(pa.string(), pa.int64()))}) for key in "abc"]
    tablefeed.append(tmp_path / "made", by_key[0], table_format="indextables")
    table = tmp_path / "table"
    shutil.copytree(tmp_path / "made", table)  # nothing is remembered of it
    state = log_of(table).state(Version(1))
    assert state is not None
    assert state.metadata is not None
    state = replace(state, metadata=replace(state.metadata, configuration={}))
    there = encode_state(state, writer=Writer.SCALA, sync=os.urandom(16), url=str(table))
    (table / names.LOG_DIR / names.state_name(1)).write_bytes(there)
    tablefeed.append(table, by_key[1])
    shutil.rmtree(table / names.LOG_DIR / names.state_dir(2))

    tablefeed.append(table, by_key[2])

    made = log_of(table).state(Version(3))
    assert made is not None
    named = {ref for files in log_of(table).live_in(made) for ref in files["doc_mapping_ref"].to_pylist()}
    assert len(named) == 3
    assert made.registry.keys() == named


NEWER = b'{"protocol":{"minReaderVersion":4,"minWriterVersion":9}}\n'


def test_no_state_is_made_up_for_in_a_table_that_cannot_be_written_any_more(new: Path) -> None:
    log = log_of(new)
    state, (first, again) = log.load(), (written(log, ROWS, txn=("loader", 0)) for _ in range(2))
    commit(log, state, first, still())
    log.store.replace(f"{names.LOG_DIR}/{names.commit_name(3)}", NEWER)
    there = log_files(new)

    assert commit(log, state, again, still())[0] == already_applied(3, recorded=0)
    assert log_files(new) == there


@pytest.mark.parametrize("appends", [1, 2])
def test_states_that_go_on_from_before_a_commit_without_a_state_are_refused_by_name(new: Path, appends: int) -> None:
    """The state of a commit could not be put, and a writer of 0.5.4, which sees states alone, came next."""
    ours = log_of(new, Fault(operation="put_if_absent", name=f"/{names.STATE_MANIFEST}"))
    _, after = commit(ours, None, written(log_of(new), ROWS, txn=("ours", 0)), still())
    assert len(rows_of(new)) == 6
    there = live(new)[0]
    for version in range(2, 2 + appends):
        append_as_state_alone(new, there, version)
    write = written(log_of(new), ROWS, known=after)

    with pytest.raises(errors.LogError, match="INDEXTABLES_MIXED_LOG"):
        commit(ours, after, write, still())
    with pytest.raises(errors.LogError, match="INDEXTABLES_MIXED_LOG") as read:
        log_of(new).load()
    assert "does not hold" in str(read.value)
    assert "which the commit adds" in str(read.value)
    assert rows_of(new, version=1) == sorted(map(repr, ROWS.to_pylist()))


def test_a_state_that_another_writer_put_in_the_place_of_ours_is_compared_with_our_commit(new: Path) -> None:
    there = live(new)[0]
    theirs = Fault(
        operation="put_if_absent", name=f"/{names.STATE_MANIFEST}", hook=lambda: append_as_state_alone(new, there, 2)
    )
    log = log_of(new, theirs)
    _, after = commit(log, None, written(log_of(new), ROWS), still())

    with pytest.raises(errors.LogError, match="INDEXTABLES_MIXED_LOG"):
        commit(log, after, written(log_of(new), ROWS, known=after), still())


def test_a_state_goes_on_from_the_one_before_and_not_from_one_that_came_meanwhile(new: Path) -> None:
    """The state of version 2 could not be put. It comes while that of version 3 is made, without our commit's split."""
    [first] = live(new)
    failing = Fault(operation="put_if_absent", name=f"/{names.STATE_MANIFEST}")
    second = written(log_of(new), ROWS)
    _, after = commit(log_of(new, failing), None, second, still())
    late = Fault(operation="list", at=2, name=names.LOG_DIR, hook=lambda: append_as_state_alone(new, first, 2))
    third = written(log_of(new), ROWS, known=after)

    commit(log_of(new, late), after, third, still())

    assert log_of(new).state(Version(2)) is not None
    assert {add.path for add in live(new)} == {add.path for add in (first, *second.files, *third.files)}


def append_as_state_alone(table: Path, like: AddFile, version: int) -> None:
    """What the Scala writer does to append a copy of a split: it goes on from the newest state, and makes no commit."""
    path = f"{uuid.uuid4()}.split"
    shutil.copy(table / like.path, table / path)
    base = log_of(table).state(Version(version - 1))
    assert base is not None
    added = (replace(like, path=path, log_path=path),)
    put_state(
        log_of(table), base, StateUpdate(version=Version(version), created_ms=1, added=added, metadata=base.metadata)
    )


def test_two_writers_that_both_make_the_table_share_it(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    ours = written(log, ROWS, txn=("ours", 0))
    tablefeed.append(tmp_path, ROWS, table_format="indextables")

    assert commit(log, None, ours, still())[0] == committed(2)
    assert len(rows_of(tmp_path)) == 6


def test_a_table_made_meanwhile_with_other_columns_is_not_written_to(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    ours = written(log, ROWS, txn=("ours", 0))
    tablefeed.append(tmp_path, pa.table({"other": [1]}), table_format="indextables")

    with pytest.raises(errors.TableError, match="has created the table with other"):
        commit(log, None, ours, still())
    assert not any((tmp_path / add.path).exists() for add in ours.files)


@pytest.mark.parametrize("made_anew", [True, False], ids=["made anew", "deleted"])
def test_a_table_replaced_since_the_plan_is_not_written_to_and_leaves_no_split(new: Path, *, made_anew: bool) -> None:
    log = log_of(new)
    state, ours = log.load(), written(log, ROWS, txn=("ours", 0))
    shutil.rmtree(new / names.LOG_DIR)
    if made_anew:
        tablefeed.append(new, ROWS, table_format="indextables")

    with pytest.raises(errors.ConflictError, match="INDEXTABLES_TABLE_REPLACED") as conflict:
        commit(log, state, ours, still())
    assert conflict.value.winner == (1 if made_anew else -1)
    assert (new / names.LOG_DIR).exists() == made_anew
    assert not any((new / add.path).exists() for add in ours.files)


def test_a_write_whose_split_went_before_an_older_copy_was_restored_is_run_again(new: Path) -> None:
    ours = written(log_of(new), ROWS, txn=("ours", 0))

    def restored() -> None:
        for add in ours.files:
            (new / add.path).unlink()
        for path in (new / names.LOG_DIR).rglob("*"):
            os.utime(path, (1, 1))

    log = log_of(new, Fault(operation="put_if_absent", name=names.commit_name(2), hook=restored))
    with pytest.raises(errors.ConflictError, match=r"restored, and .* is gone"):
        commit(log, None, ours, still())
    assert len(rows_of(new)) == 3


def test_splits_that_an_earlier_try_committed_stay_though_the_table_cannot_be_written_any_more(new: Path) -> None:
    log = log_of(new)
    state, ours = log.load(), written(log, ROWS)
    commit(log, state, ours, still())
    log.store.replace(f"{names.LOG_DIR}/{names.commit_name(3)}", NEWER)

    with pytest.raises(errors.TableError, match="protocol version 9"):
        commit(log, state, ours, still())
    assert len(rows_of(new)) == 6


@pytest.mark.parametrize(
    "asked",
    [
        {"merge_schema": True},
        {"mode": "overwrite", "overwrite_schema": True},
        {"mode": "overwrite", "replace_where": "id = 1"},
        {"mode": "overwrite", "partition_overwrite_mode": "dynamic"},
        {"cluster_by": ["id"]},
        {"log_compaction_every": 5},
        {"compression": "zstd"},
        {"properties": {"delta.appendOnly": "true"}},
    ],
)
def test_what_only_a_delta_table_can_be_asked_for_is_refused_by_name(new: Path, asked: dict[str, object]) -> None:
    with pytest.raises(errors.UnsupportedOptionError):
        tablefeed.append(new, ROWS, **asked)  # type: ignore[arg-type]
    assert len(rows_of(new)) == 3


def test_a_column_that_the_table_lacks_is_refused_without_advice_that_only_a_delta_table_can_follow(new: Path) -> None:
    with pytest.raises(errors.SchemaMismatchError, match="Drop the column, or write to another table"):
        tablefeed.append(new, ROWS.append_column("more", pa.nulls(ROWS.num_rows, pa.string())))
    assert len(rows_of(new)) == 3


def test_history_tells_who_wrote_what(new: Path) -> None:
    tablefeed.append(new, ROWS, mode="overwrite")

    told = [(info.version, info.operation) for info in tablefeed.open_table(new).history()]

    assert [each for each in told if each[0]] == [(2, "WRITE"), (1, "WRITE")]


@pytest.fixture
def by_the_log_alone(corpus: Path, tmp_path: Path) -> Path:
    """A table whose splits do not hold its partition column."""
    table = tmp_path / "table"
    shutil.copytree(corpus / "indextables" / "upstream_v0.5.4" / "09_partitioned_multi_append", table)
    return table


def of_partition(table: Path, value: str | None) -> pa.Table:
    """A row of the table's in the partition `value`."""
    rows = tablefeed.open_table(table).to_arrow().slice(0, 1)
    (column,) = tablefeed.open_table(table).partition_columns
    return rows.set_column(rows.schema.get_field_index(column), column, pa.array([value], pa.string()))


@pytest.mark.parametrize("value", ["a b/c:d%", "%41", "ü", None])
def test_a_partition_value_that_the_log_alone_tells_is_told_as_it_is(by_the_log_alone: Path, value: str | None) -> None:
    rows = of_partition(by_the_log_alone, value)
    before = rows_of(by_the_log_alone)

    tablefeed.append(by_the_log_alone, rows)

    assert rows_of(by_the_log_alone) == sorted([*before, repr(rows.to_pylist()[0])])
    (column,) = tablefeed.open_table(by_the_log_alone).partition_columns
    assert all(column not in index_fields(by_the_log_alone, add) for add in live(by_the_log_alone))


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_a_partition_value_that_the_log_would_tell_as_another_is_refused(by_the_log_alone: Path, value: str) -> None:
    rows = of_partition(by_the_log_alone, value)
    splits = sorted(by_the_log_alone.rglob("*.split"))

    with pytest.raises(errors.InvalidRowsError, match="no IndexTables log can hold"):
        tablefeed.append(by_the_log_alone, rows)
    assert sorted(by_the_log_alone.rglob("*.split")) == splits


def test_an_attempt_that_stands_keeps_its_splits_though_it_wakes_after_a_later_batch(table: Path) -> None:
    log = log_of(table)
    state = log.load()
    ours = written(log, new_rows(table, 901), txn=("loader", 0))
    commit(log, state, ours, still())
    tablefeed.append(table, new_rows(table, 902), app_id="loader", txn_version=1)
    before = rows_of(table)

    commit(log_of(table), state, ours, still())

    assert rows_of(table) == before


def test_a_new_table_indexes_its_columns_as_asked_and_later_writes_as_it_does(tmp_path: Path) -> None:
    table = tmp_path / "table"
    rows = pa.table({"id": ["a 1"], "words": ["the lazy dog"], "at": ["10.0.0.1"]})

    tablefeed.append(table, rows, table_format="indextables", index_as={"Words": "text", "at": "ip"})
    tablefeed.append(table, rows)

    told = [field_types(table, add) for add in live(table)]
    assert told[0] == told[1] == {"id": ("text", "raw"), "words": ("text", "default"), "at": ("ip_addr", None)}
    assert rows_of(table) == 2 * [repr(rows.to_pylist()[0])]


def test_a_table_that_was_made_without_rows_is_indexed_as_its_first_rows_ask(tmp_path: Path) -> None:
    table = tmp_path / "table"
    rows = pa.table({"id": ["a 1"], "words": ["the lazy dog"]})
    tablefeed.append(table, rows.slice(0, 0), table_format="indextables", index_as={"words": "text"})

    tablefeed.append(table, rows, index_as={"words": "text"})

    (add,) = live(table)
    assert field_types(table, add) == {"id": ("text", "raw"), "words": ("text", "default")}


@pytest.mark.parametrize(("column", "way"), [("words", "string"), ("id", "text")])
def test_a_write_that_would_index_a_column_otherwise_is_refused(tmp_path: Path, column: str, way: str) -> None:
    table = tmp_path / "table"
    rows = pa.table({"id": ["a 1"], "words": ["the lazy dog"]})
    tablefeed.append(table, rows, table_format="indextables", index_as={"words": "text"})

    with pytest.raises(errors.UnsupportedOptionError, match=f"typemap.{column}"):
        tablefeed.append(table, rows, index_as={column: way})


@pytest.mark.parametrize(("column", "way"), [("nowhere", "text"), ("n", "text"), ("id", "fulltext")])
def test_a_way_to_index_that_there_is_not_is_an_error_of_the_option(tmp_path: Path, column: str, way: str) -> None:
    rows = pa.table({"id": ["a 1"], "n": [1]})

    with pytest.raises(errors.IllegalOptionError, match=f"typemap.{column}"):
        tablefeed.append(tmp_path / "table", rows, table_format="indextables", index_as={column: way})
    assert not (tmp_path / "table" / "_transaction_log").exists()


def test_a_delta_table_is_not_indexed(tmp_path: Path) -> None:
    with pytest.raises(errors.UnsupportedOptionError, match="Only IndexTables tables are indexed"):
        tablefeed.append(tmp_path / "table", ROWS, index_as={"name": "text"})
