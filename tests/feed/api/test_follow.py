"""Commits as they land: in order, once, woken on local disk and asked for ever less often elsewhere."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from support.faulty_store import Fault, FaultyStore
from support.logs import a_log, add, commit_path, log_of, metadata, protocol, put
from support.logs import a_table as a_table_in
from tablefeed import errors
from tablefeed.feed.api.follow import LOOKS_BEFORE_LISTING, SLOWEST_POLL_FACTOR, _commits, version_before
from tablefeed.model.actions import Commit, Version
from tablefeed.store import Entry
from tablefeed.store.memory import MemoryStore


class Deaf(MemoryStore):
    """Sees no changes, as object stores do: waiting is time that passes, in which `meanwhile` happens."""

    def __init__(self, meanwhile: Callable[[int], None]) -> None:
        super().__init__("orders")
        self.waited_s: list[float] = []
        self._meanwhile = meanwhile

    def wait(self, directory: str, *, timeout_s: float) -> bool:  # noqa: ARG002 - it sees no directory's changes
        self.waited_s.append(timeout_s)
        self._meanwhile(len(self.waited_s))
        return False


def versions(commits: Iterator[Commit], count: int) -> list[int]:
    return [next(commits).version for _ in range(count)]


def a_table(path: Path, rows: int = 3) -> Path:
    for row in range(rows):
        write_deltalake(str(path), pa.table({"id": [row]}), mode="append")
    return path


# --- what is given ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "first"), [(-1, 0), (0, 1), (1, 2)])
def test_commits_after_a_version_come_in_order(tmp_path: Path, after: int, first: int) -> None:
    commits = tablefeed.follow(a_table(tmp_path), after=after)

    assert versions(commits, 3 - first) == list(range(first, 3))


def test_a_commit_comes_with_its_files_and_its_time(tmp_path: Path) -> None:
    at_ms = DeltaTable(str(a_table(tmp_path, 1))).history()[0]["timestamp"]

    commit = next(tablefeed.follow(tmp_path, after=-1))

    assert commit.metadata is not None
    assert len(commit.added) == 1
    assert commit.committed_at_ms is not None
    assert abs(commit.committed_at_ms - at_ms) < 60_000
    assert (commit.info or {})["operation"] == "WRITE"


def test_without_a_version_it_is_the_commits_from_now_on(tmp_path: Path) -> None:
    commits = tablefeed.follow(a_table(tmp_path))
    write_deltalake(str(tmp_path), pa.table({"id": [3]}), mode="append")

    assert versions(commits, 1) == [3]


def test_commits_of_another_writer_are_given_while_it_writes(tmp_path: Path) -> None:
    commits = tablefeed.follow(a_table(tmp_path), poll_interval_s=0.2)
    writer = threading.Thread(target=a_table, args=(tmp_path, 20))
    writer.start()

    assert versions(commits, 20) == list(range(3, 23))
    writer.join()


def test_what_delta_rs_does_besides_appending_is_a_commit_too(tmp_path: Path) -> None:
    commits = tablefeed.follow(a_table(tmp_path))
    DeltaTable(str(tmp_path)).delete("id = 1")
    DeltaTable(str(tmp_path)).optimize.compact()

    deleted, packed = next(commits), next(commits)

    assert ((deleted.info or {})["operation"], (packed.info or {})["operation"]) == ("DELETE", "OPTIMIZE")
    assert not any(file.data_change for file in packed.added)


# --- how it waits ----------------------------------------------------------------------------------------------------


def test_on_the_local_disk_a_commit_wakes_the_reader_long_before_a_poll_would(tmp_path: Path) -> None:
    commits = tablefeed.follow(a_table(tmp_path), poll_interval_s=3600.0)
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.extend(versions(commits, 2)), daemon=True)
    reader.start()

    for row in (3, 4):
        write_deltalake(str(tmp_path), pa.table({"id": [row]}), mode="append")
    reader.join(timeout=30.0)

    assert found == [3, 4]


def test_a_store_that_sees_no_changes_is_asked_less_and_less_often_until_something_comes() -> None:
    lands = {6: 1, 8: 2}
    store = Deaf(lambda wait: put(store, lands[wait], [add("a")]) if wait in lands else None)

    assert versions(_commits(a_table_in(store).load(), Version(1), 0.5), 2) == [1, 2]
    assert store.waited_s == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 0.5, 1.0]
    assert max(store.waited_s) == 0.5 * SLOWEST_POLL_FACTOR


def test_the_next_version_is_asked_for_by_name_and_nothing_is_listed() -> None:
    inner = Deaf(lambda wait: put(inner, 1, [add("a")]) if wait == 4 else None)
    a_table_in(inner)
    store = FaultyStore(inner)
    begun = log_of(store).load()
    since = len(store.calls)
    commits = _commits(begun, Version(1), 0.5)
    next(commits)

    calls = store.calls[since:]
    assert [c.operation for c in calls].count("list") == 1, "once, before the first: is there a hole?"
    assert {c.name for c in calls if c.operation == "read"} == {commit_path(0), commit_path(1)}, "the first, once"


def test_a_reader_that_is_closed_ends_its_watch(tmp_path: Path) -> None:
    a_table(tmp_path)
    commits = tablefeed.follow(tmp_path, after=1)
    before = set(threading.enumerate())
    assert versions(commits, 1) == [2]
    landing = threading.Thread(target=a_table, args=(tmp_path, 1))
    landing.start()
    assert versions(commits, 1) == [3]
    landing.join()

    commits.close()  # type: ignore[attr-defined]  # the iterator is a generator

    assert {t.name for t in set(threading.enumerate()) - before} == set()


# --- holes and errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "said"),
    [
        *((version, "must be at most the newest version, 2") for version in (3, 99)),
        *((value, "'after'") for value in (-2, 1.5, "1")),
    ],
)
def test_after_is_a_version_that_is_there_or_minus_one_for_all(tmp_path: Path, after: Any, said: str) -> None:
    with pytest.raises(errors.IllegalOptionError, match=said):
        tablefeed.follow(a_table(tmp_path), after=after)


def test_a_time_begins_with_the_first_commit_at_or_after_it_and_else_with_the_next(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    times_ms = [commit.committed_at_ms for commit in tablefeed.open_table(url).history()]

    def before(ms: int) -> int:
        return version_before(url, datetime.fromtimestamp(ms / 1000, UTC))

    assert [before(ms) for ms in reversed(times_ms) if ms is not None] == [-1, 0, 1]
    assert (version_before(url, "1990-01-01"), version_before(url, "2999-01-01")) == (-1, 2)


def test_commits_that_were_removed_are_not_passed_over() -> None:
    log = a_log(v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")], v3=[add("c")])
    begun = log.load()
    log.store.delete(commit_path(1))

    with pytest.raises(errors.LogGapError, match=r"Begin with version 2 \(in Python after=1\)") as caught:
        next(_commits(begun, Version(1), 1.0))
    assert (caught.value.expected, caught.value.found) == (1, 2)


def test_a_hole_that_opens_before_a_waiting_reader_is_found_after_a_few_looks() -> None:
    store = Deaf(lambda wait: put(store, 2, [add("b")]) if wait == 1 else None)

    with pytest.raises(errors.LogGapError):
        next(_commits(a_table_in(store).load(), Version(1), 1.0))
    assert len(store.waited_s) < LOOKS_BEFORE_LISTING


def test_a_commit_that_cannot_be_read_is_an_error_and_not_skipped() -> None:
    log = a_table_in()
    begun = log.load()
    log.store.replace(commit_path(1), b"junk\n")

    with pytest.raises(errors.CorruptLogError, match="line 1"):
        next(_commits(begun, Version(1), 1.0))


def test_a_reader_that_failed_can_be_started_again_behind_the_last_commit_it_had() -> None:
    inner = MemoryStore("orders")
    begun = a_log(inner, v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")]).load()
    failing = log_of(FaultyStore(inner, faults=[Fault(operation="read", name=commit_path(2), at=2)]))
    broken = _commits(replace(begun, log=failing), Version(1), 1.0)
    last = next(broken).version
    with pytest.raises(tablefeed.TablefeedError):
        next(broken)

    assert versions(_commits(begun, Version(last + 1), 1.0), 1) == [2]


# --- another table at the same place ---------------------------------------------------------------------------------

TableFormat = Literal["delta", "indextables"]
OTHER_TABLE = "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def made(table: Path, rows: int, table_format: TableFormat) -> None:
    for row in range(rows):
        tablefeed.append(table, pa.table({"id": [row]}), table_format=table_format)


@pytest.mark.parametrize("table_format", ["delta", "indextables"])
@pytest.mark.parametrize("commits_again", [1, 3, 5], ids=["shorter", "equal", "longer"])
@pytest.mark.parametrize("after", [-1, 1], ids=["behind", "at the end"])
def test_a_table_made_again_at_the_same_place_is_not_followed(
    after: int, commits_again: int, table_format: TableFormat, tmp_path: Path
) -> None:
    made(tmp_path / "t", 3, table_format)
    commits = tablefeed.follow(tmp_path / "t", after=after, poll_interval_s=0.01)
    assert next(commits).version == after + 1

    shutil.rmtree(tmp_path / "t")
    made(tmp_path / "t", commits_again, table_format)

    with pytest.raises(errors.OffsetError, match=rf"{OTHER_TABLE}.*Call `follow` again"):
        next(commits)


@pytest.mark.parametrize("table_format", ["delta", "indextables"])
def test_a_table_that_is_deleted_is_not_waited_for(table_format: TableFormat, tmp_path: Path) -> None:
    made(tmp_path / "t", 3, table_format)
    commits = tablefeed.follow(tmp_path / "t", after=1, poll_interval_s=0.01)
    next(commits)

    shutil.rmtree(tmp_path / "t")

    with pytest.raises(errors.TableNotFoundError):
        next(commits)


@pytest.mark.parametrize("again", [0, 1, 2], ids=["lost", "made again in part", "made again"])
def test_a_log_that_lost_commits_that_were_given_is_not_followed(again: int) -> None:
    def lose(wait: int) -> None:
        if wait == 1:
            for version in (2, 3):
                store.delete(commit_path(version))
            for version in range(2, 2 + again):
                put(store, version, [add("another file"), add("and another")])

    store = Deaf(lose)
    log = a_log(store, v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")], v3=[add("c")])
    commits = _commits(log.load(), Version(2), 1.0)
    assert versions(commits, 2) == [2, 3]

    said = "DELTA_STREAMING_TRAILING_COMMIT_MISSING.* read up to version 3, whose commit is gone or was replaced"
    with pytest.raises(errors.LogError, match=said):
        next(commits)


def test_a_table_made_again_just_before_a_commit_is_read_is_not_followed() -> None:
    times = iter(range(1000))
    inner = MemoryStore("orders", now_ms=lambda: next(times))
    begun = a_log(inner, v0=[protocol(), metadata()], v1=[add("a")]).load()

    class MadeAgain(FaultyStore):
        """Another table takes the place of this one when version 2 is asked for."""

        def stat(self, name: str) -> Entry | None:
            if name == commit_path(2):
                a_log(inner, v0=[protocol(), metadata(table_id="other")], v1=[add("a")], v2=[add("of another table")])
            return super().stat(name)

    commits = _commits(replace(begun, log=log_of(MadeAgain(inner))), Version(2), 1.0)

    with pytest.raises(errors.OffsetError, match="is now the table with id other"):
        next(commits)


def test_a_table_whose_commit_was_replaced_right_after_it_was_read_is_not_followed_further() -> None:
    times = iter(range(1000))
    inner = MemoryStore("orders", now_ms=lambda: next(times))
    a_log(inner, v0=[protocol(), metadata()], v1=[add("a")])
    replacing = Fault(operation="read", name=commit_path(2), when="after", hook=lambda: put(inner, 2, [add("z")]))
    commits = _commits(log_of(FaultyStore(inner, faults=[replacing])).load(), Version(2), 1.0)
    put(inner, 2, [add("b")])
    assert next(commits).version == 2
    put(inner, 3, [add("c")])

    with pytest.raises(errors.LogError, match="up to version 2, whose commit is gone or was replaced"):
        next(commits)


@pytest.mark.parametrize("copied_again", [0, 1], ids=["the commit before it", "the commit itself"])
def test_a_commit_that_gives_the_table_another_id_is_followed(copied_again: int, tmp_path: Path) -> None:
    # delta-rs replaces a table so: by one more commit in the same log, with another id in it.
    a_table(tmp_path, 1)
    commits = tablefeed.follow(tmp_path, after=-1)
    assert versions(commits, 1) == [0]

    DeltaTable.create(str(tmp_path), pa.schema([("id", pa.int64())]), mode="overwrite")
    assert copied_again == 0 or versions(commits, 1) == [1]
    os.utime(tmp_path / commit_path(copied_again), (1, 1))
    a_table(tmp_path, 1)

    assert versions(commits, 2 - copied_again) == list(range(1 + copied_again, 3))


def test_a_commit_that_is_cleaned_up_behind_a_checkpoint_does_not_stop_a_reader(tmp_path: Path) -> None:
    made(tmp_path, 3, "delta")
    commits = tablefeed.follow(tmp_path, after=1, poll_interval_s=0.01)
    next(commits)
    tablefeed.checkpoint(tmp_path)
    (tmp_path / commit_path(2)).unlink()

    made(tmp_path, 1, "delta")

    assert versions(commits, 1) == [3]


def test_a_wait_costs_a_listing_once_in_a_while_and_never_a_snapshot_or_another_look_at_the_last_commit() -> None:
    inner = Deaf(lambda wait: put(inner, 1, [add("a")]) if wait == 2 * LOOKS_BEFORE_LISTING else None)
    a_table_in(inner)
    store = FaultyStore(inner)
    begun = log_of(store).load()
    since = len(store.calls)

    next(_commits(begun, Version(1), 1.0))

    calls = store.calls[since:]
    assert {c.name for c in calls if c.operation == "read"} == {commit_path(0), commit_path(1)}, "the first, once"
    assert [c.name for c in calls if c.operation == "stat"].count(commit_path(0)) == 1, "behind the new commit"
    assert [c.operation for c in calls].count("list") == 3, "at first, and twice waiting"


# --- as a consumer ---------------------------------------------------------------------------------------------------


def read_to(table: Path) -> dict[str, int]:
    return {each.consumer_id: each.version for each in tablefeed.consumers(table).list()}


def test_a_consumer_has_read_a_commit_when_it_asks_for_the_next_and_goes_on_there(tmp_path: Path) -> None:
    commits = tablefeed.follow(a_table(tmp_path), after=-1, consumer_id="sums")
    assert read_to(tmp_path) == {"sums": -1}

    assert versions(commits, 2) == [0, 1]
    assert read_to(tmp_path) == {"sums": 0}
    assert versions(tablefeed.follow(tmp_path, consumer_id="sums"), 2) == [1, 2]


def test_a_consumer_that_is_new_begins_at_the_newest_version_and_one_that_is_told_goes_back(tmp_path: Path) -> None:
    tablefeed.follow(a_table(tmp_path), consumer_id="sums")
    tablefeed.follow(tmp_path, consumer_id="sums")  # it has read all there is
    assert read_to(tmp_path) == {"sums": 2}

    assert versions(tablefeed.follow(tmp_path, after=0, consumer_id="sums"), 1) == [1]
    assert read_to(tmp_path) == {"sums": 0}


@pytest.mark.parametrize(("rows", "days", "reason"), [(4, 1, "made after that"), (2, 0, "the newest is 1")])
def test_a_consumer_does_not_go_on_in_a_table_that_was_made_anew_since_it_read(
    tmp_path: Path, rows: int, days: int, reason: str
) -> None:
    tablefeed.follow(a_table(tmp_path), consumer_id="sums")
    for name in ("_delta_log", "*.parquet"):
        for path in tmp_path.glob(name):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    a_table(tmp_path, rows)
    report = tmp_path / "_tablefeed/consumers/sums.json"
    reported_s = report.stat().st_mtime - 86_400 * days
    os.utime(report, (reported_s, reported_s))

    with pytest.raises(errors.OffsetError, match=f"'sums' of .* has read up to version 2, .*{reason}"):
        tablefeed.follow(tmp_path, consumer_id="sums")
    assert versions(tablefeed.follow(tmp_path, after=-1, consumer_id="sums"), rows) == list(range(rows))
