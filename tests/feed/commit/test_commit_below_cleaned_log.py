"""A commit whose name is free for another reason than that its version was never made."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

from support.commits import a_write, commit_files, committed, still
from support.faulty_store import Fault, FaultyStore
from support.logs import a_log, a_table, add, commit_path, live_paths, log_of, metadata, protocol, put
from tablefeed.errors import CommitUnknownError, ConflictError
from tablefeed.feed.commit.loop import UNSEEN_PAUSE_S, commit
from tablefeed.feed.commit.transaction import Surroundings
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.model.actions import Version
from tablefeed.store import LocalStore, Store
from tablefeed.store.durable import Disk
from tablefeed.store.memory import MemoryStore

DAY_MS = 86_400_000


class Days:
    """A clock that is set."""

    def __init__(self) -> None:
        self.day = 1
        self.behind_ms = 0

    def __call__(self) -> int:
        return self.day * DAY_MS - self.behind_ms


def at(clock: Callable[[], int]) -> Surroundings:
    return replace(still(), now_ms=clock)


class HeldUp(Disk):
    """A writer that is held up when its commit is written, and does not have its name yet."""

    def __init__(self, until: Callable[[], None]) -> None:
        self._until = until

    def link(self, source: str, target: str, *, folder: int) -> None:
        self._until()
        super().link(source, target, folder=folder)


def three_versions(clock: Callable[[], int]) -> MemoryStore:
    store = MemoryStore("orders", now_ms=clock)
    a_log(store, v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")])
    return store


def go_on(store: Store, first: int, last: int, *, kept: int) -> None:
    """Others commit versions `first` to `last`, put a checkpoint of `kept`, and clean up what is before that."""
    for version in range(first, last + 1):
        put(store, version, [add(f"theirs{version}")])
    write_checkpoint(log_of(store).load(Version(kept)))
    for version in range(kept):
        store.delete(commit_path(version))


def two_days(store: Store, clock: Days) -> None:
    """The commits of two days, of which the younger ones are left."""
    go_on(store, 3, 8, kept=6)
    clock.day += 2


def made_anew(store: Store) -> None:
    """The table is deleted, and another of as many versions is made in its place."""
    for version in commits(store):
        store.delete(commit_path(version))
    another = metadata(table_id="22222222-2222-2222-2222-222222222222")
    a_log(store, v0=[protocol(), another], v1=[add("new")], v2=[add("newer")])


def meeting(
    store: Store, meanwhile: Callable[[], None], *, when: Literal["before", "after"] = "before", version: int = 3
) -> DeltaLog:
    """A log in which `meanwhile` happens before or after the put of a version."""
    fault = Fault(operation="put_if_absent", name=commit_path(version), when=when, hook=meanwhile)
    return log_of(FaultyStore(store, faults=[fault]))


def commits(store: Store) -> list[int]:
    return [int(entry.name[:20]) for entry in store.list("_delta_log") if entry.name.endswith(".json")]


def theirs(versions: Sequence[int]) -> list[str]:
    return [f"theirs{version}" for version in versions]


@pytest.mark.parametrize("txn", [None, ("query", 7)])
def test_a_version_that_was_made_and_cleaned_up_while_its_writer_was_held_up_is_not_made_again(
    txn: tuple[str, int] | None,
) -> None:
    clock = Days()
    store = three_versions(clock)
    log = meeting(store, lambda: two_days(store, clock))

    with pytest.raises(ConflictError, match="gone from the log"):
        commit_files(log, "ours", txn=txn, around=at(clock))

    assert commits(store) == [6, 7, 8]
    assert live_paths(log) == ["a", "b", *theirs(range(3, 9))]


def test_nor_is_version_0_where_the_table_was_made_meanwhile() -> None:
    clock = Days()
    store = MemoryStore("orders", now_ms=clock)

    def table_is_made() -> None:
        a_table(store)
        go_on(store, 1, 8, kept=6)
        clock.day += 2

    log = meeting(store, table_is_made, version=0)

    commit_files(log, "ours", around=at(clock))

    assert commits(store) == [6, 7, 8, 9]
    assert live_paths(log) == ["ours", *theirs(range(1, 9))]


def test_a_commit_stays_where_the_version_before_it_is_cleaned_up_after_the_put() -> None:
    clock = Days()
    store = three_versions(clock)
    log = meeting(store, lambda: go_on(store, 4, 8, kept=3), when="after")
    before = log.load()
    clock.day += 31

    outcome, _ = commit(log, before, a_write(log, before, "ours"), at(clock))

    assert outcome == committed(3)
    assert live_paths(log) == ["a", "b", "ours", *theirs(range(4, 9))]


def test_a_commit_that_was_itself_cleaned_up_before_its_writer_could_look_is_of_unknown_fate() -> None:
    clock = Days()
    store = three_versions(clock)

    def cleaned_up() -> None:
        clock.day += 2
        go_on(store, 4, 8, kept=6)

    with pytest.raises(CommitUnknownError, match="its file is gone again"):
        commit_files(meeting(store, cleaned_up, when="after"), "ours")


def test_a_commit_that_lands_in_a_table_made_anew_is_taken_back() -> None:
    store = three_versions(Days())
    log = meeting(store, lambda: made_anew(store))

    with pytest.raises(ConflictError, match="deleted and created again"):
        commit_files(log, "ours")

    assert live_paths(log) == ["new", "newer"]


def test_a_commit_is_taken_back_also_where_a_listing_does_not_have_it_yet() -> None:
    store = three_versions(Days())
    replaced = Fault(operation="put_if_absent", name=commit_path(3), hook=lambda: made_anew(store))
    late = [Fault(operation="list", at=at, when="short") for at in (2, 3)]

    with pytest.raises(ConflictError, match="deleted and created again"):
        commit_files(log_of(FaultyStore(store, faults=[replaced, *late])), "ours")

    assert live_paths(log_of(store)) == ["new", "newer"]


def test_a_commit_that_lands_behind_another_version_than_it_read_is_taken_back() -> None:
    """An older copy of the table was restored: it has the same id, and another commit of the version before ours."""
    clock = Days()
    store = three_versions(clock)

    def restored() -> None:
        store.delete(commit_path(2))
        clock.day += 1
        put(store, 2, [add("other")])

    log = meeting(store, restored)

    with pytest.raises(ConflictError):
        commit_files(log, "ours", around=at(clock))

    assert live_paths(log_of(store)) == ["a", "other"]


def test_a_version_that_was_cleaned_up_before_the_one_below_it_is_not_made_again_either() -> None:
    clock, sleeps = Days(), list[float]()
    store = three_versions(clock)

    def in_any_order() -> None:
        go_on(store, 3, 8, kept=6)
        put(store, 2, [add("b")])  # as by a cleaner that deletes in any order, and has not come to this one
        clock.day += 2

    with pytest.raises(ConflictError, match="gone from the log"):
        commit_files(meeting(store, in_any_order), "ours", around=replace(still(sleeps), now_ms=clock))

    assert commits(store) == [2, 6, 7, 8]
    assert sleeps == [0.5 * UNSEEN_PAUSE_S]


def test_a_file_that_got_its_name_long_after_it_was_written_is_of_unknown_fate(tmp_path: Path) -> None:
    clock = Days()
    others = LocalStore(str(tmp_path))
    a_log(others, v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")])
    log = log_of(LocalStore(str(tmp_path), disk=HeldUp(lambda: two_days(others, clock))))

    with pytest.raises(CommitUnknownError, match="its file is older than the put"):
        commit_files(log, "ours", around=at(lambda: time.time_ns() // 1_000_000 + clock()))


def test_a_commit_is_not_deleted_for_a_later_one_whose_time_is_a_little_before_its_own() -> None:
    clock = Days()
    store = three_versions(clock)

    def a_clock_that_is_behind() -> None:
        clock.behind_ms = 1000
        go_on(store, 4, 8, kept=3)
        clock.behind_ms = 0

    log = meeting(store, a_clock_that_is_behind, when="after")

    with pytest.raises(CommitUnknownError, match="the file of a later version is older"):
        commit_files(log, "ours", around=at(clock))

    assert live_paths(log) == ["a", "b", "ours", *theirs(range(4, 9))]


def test_a_commit_that_others_go_on_from_while_it_is_taken_back_is_put_back() -> None:
    store = three_versions(Days())
    others = Fault(operation="delete", name=commit_path(3), hook=lambda: put(store, 4, [add("theirs")]))
    log = meeting(FaultyStore(store, faults=[others]), lambda: made_anew(store))

    with pytest.raises(CommitUnknownError, match="others have continued from it"):
        commit_files(log, "ours")

    assert commits(store) == [0, 1, 2, 3, 4]
    assert live_paths(log) == ["new", "newer", "ours", "theirs"]


def test_a_commit_of_which_others_wrote_a_checkpoint_before_it_is_taken_back_is_put_back() -> None:
    store = three_versions(Days())

    def write() -> None:
        write_checkpoint(log_of(store).load())

    others = Fault(operation="delete", name=commit_path(3), hook=write)
    log = meeting(FaultyStore(store, faults=[others]), lambda: made_anew(store))

    with pytest.raises(CommitUnknownError, match="others have continued from it"):
        commit_files(log, "ours")

    assert commits(store) == [0, 1, 2, 3]
    assert live_paths(log) == ["new", "newer", "ours"]


def test_a_log_that_is_deleted_between_the_last_look_and_the_put_does_not_come_back(tmp_path: Path) -> None:
    a_table(LocalStore(str(tmp_path)))
    log = meeting(LocalStore(str(tmp_path)), partial(shutil.rmtree, tmp_path / "_delta_log"), version=1)

    with pytest.raises(ConflictError, match="the table is gone"):
        commit_files(log, "ours")

    assert not (tmp_path / "_delta_log").exists()


LOOKS = [
    ("stat", commit_path(3)),  # it tells the table from one made anew, at the next commit
    ("stat", commit_path(2)),
]


@pytest.mark.parametrize(("days", "looks"), [(1, LOOKS), (2, [*LOOKS, ("list", "_delta_log")])])
def test_it_costs_a_look_at_the_version_before_and_a_listing_where_that_is_older_than_a_day(
    days: int, looks: list[tuple[str, str]]
) -> None:
    clock = Days()
    store = FaultyStore(three_versions(clock))
    log = log_of(store)
    before = log.load()
    write = a_write(log, before, "ours")
    clock.day += days

    commit(log, before, write, at(clock))

    calls = [(call.operation, call.name) for call in store.calls]
    assert calls[calls.index(("put_if_absent", commit_path(3))) + 1 :] == looks
