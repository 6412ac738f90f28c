"""Cleanup of an IndexTables log reads what stays before anything goes: a state with its manifests, or commits."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from support.faulty_store import Fault, FaultyStore
from support.index_tables import log_files, log_of, manifests_of
from support.maintained import ids
from tablefeed.errors import LogError
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.upkeep import background, index_cleanup
from tablefeed.feed.upkeep.index_checkpoint import write_json_checkpoint
from tablefeed.feed.upkeep.index_cleanup import clean_up
from tablefeed.indextables import names
from tablefeed.indextables.log.retention import Retention
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import Version
from tablefeed.store import LocalStore

pytest.importorskip("fastavro")

NOW_MS = time.time_ns() // 1_000_000


def a_table(table: Path, *, versions: int = 6) -> Path:
    """A commit of one row each, ids from 1 on as the versions, each with its state; 400 days old."""
    for version in range(1, versions + 1):
        tablefeed.append(table, pa.table({"id": [version]}), table_format="indextables")
    background.wait_until_done()
    age(table, days=400)
    return table


def age(table: Path, *, days: float) -> None:
    then = time.time() - days * 86_400
    for name in log_files(table):
        os.utime(table / names.LOG_DIR / name, (then, then))


def cleaned(table: Path) -> int:
    return clean_up(log_of(table), Retention(), now_ms=NOW_MS).log_files


def versions_of(table: Path) -> tuple[list[int], list[int]]:
    """The versions that have a commit, and those that have a state."""
    listing = log_of(table)._reader.listed()
    return sorted(listing.commits), sorted(log_of(table)._reader.known(listing, list(listing.states)).states)


def manifests(table: Path, version: int) -> list[Path]:
    return [table / names.LOG_DIR / name for name in manifests_of(table, version)]


def cut_in_half(path: Path) -> None:
    written = path.stat()
    path.write_bytes(path.read_bytes()[: written.st_size // 2])
    os.utime(path, (written.st_mtime, written.st_mtime))


BREAK = pytest.mark.parametrize("spoil", [cut_in_half, Path.unlink], ids=["damaged", "missing"])


def test_commits_go_up_to_a_state_that_can_be_read(tmp_path: Path) -> None:
    table = a_table(tmp_path)

    cleaned(table)

    assert versions_of(table) == ([0, 5, 6], [5, 6])
    assert [ids(table, version) for version in (5, 6)] == [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]]


@BREAK
def test_a_state_with_a_manifest_that_cannot_be_read_stands_in_for_no_commit(
    spoil: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = a_table(tmp_path)
    (of_version_5,) = set(manifests(table, 5)) - set(manifests(table, 4))
    spoil(of_version_5)

    cleaned(table)

    assert versions_of(table) == ([0, 4, 5, 6], [4, 5, 6])
    assert [ids(table, version) for version in (4, 5, 6)] == [[1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]]
    assert of_version_5.name in caplog.text


@BREAK
def test_no_commit_goes_where_all_states_share_a_manifest_that_cannot_be_read(
    spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    table = a_table(tmp_path)
    spoil(manifests(table, 6)[0])

    cleaned(table)

    assert versions_of(table)[0] == [0, 1, 2, 3, 4, 5, 6]
    assert [ids(table, version) for version in range(1, 7)] == [list(range(1, n + 1)) for n in range(1, 7)]


def test_no_state_goes_that_stands_in_for_a_commit_that_cannot_be_read(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    age(table, days=10)  # states are old, commits are not
    cut_in_half(table / names.LOG_DIR / names.commit_name(2))

    assert cleaned(table) == 0

    assert [ids(table, version) for version in (3, 4, 5, 6)] == [list(range(1, n + 1)) for n in (3, 4, 5, 6)]


def test_states_beside_commits_that_can_be_read_go(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    age(table, days=10)

    cleaned(table)

    assert versions_of(table) == ([0, 1, 2, 3, 4, 5, 6], [5, 6])


@BREAK
@pytest.mark.parametrize("part", [0, -1], ids=["first part", "last part"])
def test_a_json_checkpoint_stands_in_for_commits_only_when_each_part_can_be_read(
    part: int, spoil: Callable[[Path], None], corpus: Path, tmp_path: Path
) -> None:
    table = Path(shutil.copytree(corpus / "indextables" / "it053_events_json_nockpt", tmp_path / "t"))
    log = log_of(table)
    for version in (3, 6):
        write_json_checkpoint(log, log.load(Version(version)), writer=Writer.SCALA, part_actions=2, now_ms=NOW_MS)
    age(table, days=400)
    parts = sorted((table / names.LOG_DIR).glob(f"{6:020d}.checkpoint.*.json"))
    assert len(parts) > 1
    spoil(parts[part])
    before = [len(tablefeed.open_table(table, version=version).to_arrow()) for version in range(3, 9)]

    cleaned(table)

    assert versions_of(table)[0] == [0, 3, 4, 5, 6, 7, 8]
    assert [len(tablefeed.open_table(table, version=version).to_arrow()) for version in range(3, 9)] == before


def test_nothing_goes_of_a_table_that_was_made_anew_while_what_stays_was_read(tmp_path: Path) -> None:
    table = a_table(tmp_path / "t")
    last_read = manifests(table, 5)[0].name
    copy = str(shutil.copytree(table, tmp_path / "copy"))
    calls = FaultyStore(LocalStore(copy))
    clean_up(IndexTablesLog(calls, location=copy, storage_options={}), Retention(), now_ms=NOW_MS)
    reads = sum(call.operation == "read" and call.name.endswith(last_read) for call in calls.calls)

    def made_anew() -> None:
        shutil.rmtree(table / names.LOG_DIR)
        a_table(table, versions=7)

    log = log_of(table, Fault(operation="read", name=last_read, at=reads, when="after", hook=made_anew))
    assert clean_up(log, Retention(), now_ms=NOW_MS).log_files == 0

    assert versions_of(table)[0] == list(range(8))
    assert ids(table, 7) == [1, 2, 3, 4, 5, 6, 7]


def test_another_cleanup_that_was_faster_is_no_error(tmp_path: Path) -> None:
    table = a_table(tmp_path)

    def again() -> None:
        cleaned(table)

    log = log_of(table, Fault(operation="delete", when="after", hook=again))

    assert clean_up(log, Retention(), now_ms=NOW_MS).log_files == 1

    assert versions_of(table) == ([0, 5, 6], [5, 6])
    assert ids(table, 6) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("at", [1, 3])
def test_a_cleanup_stops_where_a_copy_without_the_state_was_restored(tmp_path: Path, at: int) -> None:
    table = a_table(tmp_path / "t")
    shutil.copytree(table, tmp_path / "copy", ignore=shutil.ignore_patterns("state-*"))

    def restored() -> None:
        shutil.rmtree(table)
        shutil.copytree(tmp_path / "copy", table)

    log = log_of(table, Fault(operation="delete", at=at, when="after", hook=restored))

    with pytest.raises(LogError, match=r"_manifest\.avro, which readers would need, is gone"):
        clean_up(log, Retention(), now_ms=NOW_MS)

    assert versions_of(table) == ([0, 1, 2, 3, 4, 5, 6], [])
    assert ids(table, 6) == [1, 2, 3, 4, 5, 6]


# --- consumers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "kept", "waits_for"),
    [
        (6, [5, 6], ()),
        (5, [5, 6], ()),
        (4, [4, 5, 6], ("sums",)),
        (2, [2, 3, 4, 5, 6], ("sums",)),
        (0, None, ("sums",)),
    ],
)
def test_the_version_that_a_consumer_has_read_and_all_after_it_stay_and_the_consumer_is_named(
    tmp_path: Path, version: int, kept: list[int] | None, waits_for: tuple[str, ...]
) -> None:
    table = a_table(tmp_path)
    tablefeed.consumers(table).register("sums", version=version)

    done = clean_up(log_of(table), Retention(), now_ms=NOW_MS)

    assert done.waits_for == waits_for
    assert versions_of(table)[0] == ([0, *kept] if kept else list(range(7)))
    assert [ids(table, at) for at in range(version or 1, 7)] == [[*range(1, at + 1)] for at in range(version or 1, 7)]


def test_nothing_goes_where_a_consumer_comes_while_what_stays_is_read(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    comes = Fault(operation="list", name="_tablefeed", when="after", hook=lambda: register(table))

    done = clean_up(log_of(table, comes), Retention(), now_ms=NOW_MS)

    assert (done.log_files, done.waits_for) == (0, ("sums",))
    assert versions_of(table)[0] == list(range(7))


def register(table: Path) -> None:
    tablefeed.consumers(table).register("sums", version=2)


def test_the_rest_stays_where_a_consumer_comes_while_files_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = a_table(tmp_path)
    monkeypatch.setattr(index_cleanup, "FILES_A_LOOK", 1)
    comes = Fault(operation="delete", hook=lambda: register(table))

    done = clean_up(log_of(table, comes), Retention(), now_ms=NOW_MS)

    assert (done.log_files, done.waits_for) == (1, ("sums",))
    assert versions_of(table)[0] == [0, 2, 3, 4, 5, 6]
