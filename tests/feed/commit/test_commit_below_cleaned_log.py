"""A commit whose name is free for another reason than that its version was never made."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from support.faulty_store import Fault, FaultyStore
from support.logs import (
    a_log,
    a_table,
    a_write,
    add,
    commit_path,
    committed,
    live_paths,
    log_of,
    metadata,
    protocol,
    put,
    still,
)
from support.memory_store import MemoryStore
from tablefeed.errors import CommitUnknownError, ConflictError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Surroundings
from tablefeed.feed.upkeep.delta_checkpoint import CheckpointShape, write_checkpoint
from tablefeed.model.actions import Version
from tablefeed.store import LocalStore, Store
from tablefeed.store.durable import Disk

DAY_MS = 86_400_000
NEW_ID = "22222222-2222-2222-2222-222222222222"


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
    write_checkpoint(log_of(store).load(Version(kept)), CheckpointShape())
    for version in range(kept):
        store.delete(commit_path(version))


def commits(store: Store) -> list[str]:
    return [entry.name for entry in store.list("_delta_log") if entry.name.endswith(".json")]


@pytest.mark.parametrize("txn", [None, ("query", 7)])
def test_a_version_that_was_made_and_cleaned_up_while_its_writer_was_held_up_is_not_made_again(
    txn: tuple[str, int] | None,
) -> None:
    clock = Days()
    inner = three_versions(clock)

    def two_days() -> None:
        go_on(inner, 3, 8, kept=6)
        clock.day += 2

    log = log_of(FaultyStore(inner, faults=[Fault(operation="put_if_absent", name=commit_path(3), hook=two_days)]))
    before = log.load()

    with pytest.raises(ConflictError, match="gone from the log"):
        commit(log, before, a_write(log, before, "ours", txn=txn), at(clock))

    assert commits(inner) == [f"{version:020d}.json" for version in (6, 7, 8)]
    assert live_paths(log) == ["a", "b", *(f"theirs{version}" for version in range(3, 9))]


def test_nor_is_version_0_where_the_table_was_made_meanwhile() -> None:
    clock = Days()
    inner = MemoryStore("orders", now_ms=clock)

    def two_days() -> None:
        a_table(inner)
        go_on(inner, 1, 8, kept=6)
        clock.day += 2

    log = log_of(FaultyStore(inner, faults=[Fault(operation="put_if_absent", name=commit_path(0), hook=two_days)]))

    commit(log, None, a_write(log, None, "ours"), at(clock))

    assert commits(inner) == [f"{version:020d}.json" for version in (6, 7, 8, 9)]
    assert live_paths(log) == ["ours", *(f"theirs{version}" for version in range(1, 9))]


def test_a_commit_stays_where_the_version_before_it_is_cleaned_up_after_the_put() -> None:
    clock = Days()
    inner = three_versions(clock)

    cleaned_up = Fault(
        operation="put_if_absent", name=commit_path(3), when="after", hook=lambda: go_on(inner, 4, 8, kept=3)
    )
    log = log_of(FaultyStore(inner, faults=[cleaned_up]))
    before = log.load()
    clock.day += 31

    outcome, _ = commit(log, before, a_write(log, before, "ours"), at(clock))

    assert outcome == committed(3)
    assert live_paths(log) == ["a", "b", "ours", *(f"theirs{version}" for version in range(4, 9))]


def test_a_commit_that_was_itself_cleaned_up_before_its_writer_could_look_is_of_unknown_fate() -> None:
    clock = Days()
    inner = three_versions(clock)

    def two_days() -> None:
        clock.day += 2
        go_on(inner, 4, 8, kept=6)

    fault = Fault(operation="put_if_absent", name=commit_path(3), when="after", hook=two_days)
    log = log_of(FaultyStore(inner, faults=[fault]))
    before = log.load()

    with pytest.raises(CommitUnknownError, match="its file is gone again"):
        commit(log, before, a_write(log, before, "ours"), still())


def test_a_commit_that_lands_in_a_table_made_anew_is_taken_back() -> None:
    inner = three_versions(Days())

    def made_anew() -> None:
        for name in commits(inner):
            inner.delete(f"_delta_log/{name}")
        a_log(inner, v0=[protocol(), metadata(table_id=NEW_ID)], v1=[add("new")], v2=[add("newer")])

    log = log_of(FaultyStore(inner, faults=[Fault(operation="put_if_absent", name=commit_path(3), hook=made_anew)]))
    before = log.load()

    with pytest.raises(ConflictError, match="deleted and created again"):
        commit(log, before, a_write(log, before, "ours"), still())

    assert live_paths(log) == ["new", "newer"]


def test_a_version_that_was_cleaned_up_before_the_one_below_it_is_not_made_again_either() -> None:
    clock = Days()
    inner = three_versions(clock)

    def two_days() -> None:
        go_on(inner, 3, 8, kept=6)
        put(inner, 2, [add("b")])  # as by a cleaner that deletes in any order, and has not come to this one
        clock.day += 2

    log = log_of(FaultyStore(inner, faults=[Fault(operation="put_if_absent", name=commit_path(3), hook=two_days)]))
    before = log.load()

    with pytest.raises(ConflictError, match="gone from the log"):
        commit(log, before, a_write(log, before, "ours"), at(clock))

    assert commits(inner) == [f"{version:020d}.json" for version in (2, 6, 7, 8)]


def test_a_file_that_got_its_name_long_after_it_was_written_is_of_unknown_fate(tmp_path: Path) -> None:
    clock = Days()
    others = LocalStore(str(tmp_path))
    a_log(others, v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")])

    def two_days() -> None:
        go_on(others, 3, 8, kept=6)
        clock.day += 2

    def now_ms() -> int:
        return time.time_ns() // 1_000_000 + clock()

    log = log_of(LocalStore(str(tmp_path), disk=HeldUp(two_days)))
    before = log.load()
    write = a_write(log, before, "ours")

    with pytest.raises(CommitUnknownError, match="its file is older than the put"):
        commit(log, before, write, at(now_ms))


def test_a_commit_is_not_deleted_for_a_later_one_whose_time_is_a_little_before_its_own() -> None:
    clock = Days()
    inner = three_versions(clock)

    def a_clock_that_is_behind() -> None:
        clock.behind_ms = 1000
        go_on(inner, 4, 8, kept=3)
        clock.behind_ms = 0

    fault = Fault(operation="put_if_absent", name=commit_path(3), when="after", hook=a_clock_that_is_behind)
    log = log_of(FaultyStore(inner, faults=[fault]))
    before = log.load()

    with pytest.raises(CommitUnknownError, match="the file of a later version is older"):
        commit(log, before, a_write(log, before, "ours"), at(clock))

    assert live_paths(log) == ["a", "b", "ours", *(f"theirs{version}" for version in range(4, 9))]


def test_a_commit_that_others_go_on_from_while_it_is_taken_back_is_put_back() -> None:
    inner = three_versions(Days())

    def made_anew() -> None:
        for name in commits(inner):
            inner.delete(f"_delta_log/{name}")
        a_log(inner, v0=[protocol(), metadata(table_id=NEW_ID)], v1=[add("new")], v2=[add("newer")])

    faults = [
        Fault(operation="put_if_absent", name=commit_path(3), hook=made_anew),
        Fault(operation="delete", name=commit_path(3), hook=lambda: put(inner, 4, [add("theirs")])),
    ]
    log = log_of(FaultyStore(inner, faults=faults))
    before = log.load()

    with pytest.raises(CommitUnknownError, match="where later versions follow it"):
        commit(log, before, a_write(log, before, "ours"), still())

    assert commits(inner) == [f"{version:020d}.json" for version in range(5)]
    assert live_paths(log) == ["new", "newer", "ours", "theirs"]


def test_a_log_that_is_deleted_between_the_last_look_and_the_put_does_not_come_back(tmp_path: Path) -> None:
    inner = LocalStore(str(tmp_path))
    a_table(inner)
    deleted = Fault(operation="put_if_absent", name=commit_path(1), hook=lambda: shutil.rmtree(tmp_path / "_delta_log"))
    log = log_of(FaultyStore(inner, faults=[deleted]))
    before = log.load()

    with pytest.raises(ConflictError, match="the table is gone"):
        commit(log, before, a_write(log, before, "ours"), still())

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
