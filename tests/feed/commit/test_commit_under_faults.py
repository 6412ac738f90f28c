"""What comes of a commit when the store fails before, while or after it puts."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Literal

import pytest

from support.commits import a_write, already_applied, commit_files, committed, dead, faulty, raced, still
from support.faulty_store import Fault, FaultyStore
from support.logs import a_table, add, commit_path, live_paths, log_of, metadata, protocol, put
from tablefeed.errors import (
    CommitUnknownError,
    NotExclusiveError,
    StoreConfigError,
    StoreError,
    TablefeedError,
    UnsupportedFeatureError,
)
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.settled_put import LOST_ANSWER_RETRIES
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.store import Content, LocalStore, Within
from tablefeed.store.durable import Disk
from tablefeed.store.memory import MemoryStore


def puts(store: FaultyStore) -> list[str]:
    return [call.name for call in store.calls if call.operation == "put_if_absent"]


@pytest.mark.parametrize(("when", "tries"), [("before", 2), ("after", 1)], ids=["it failed", "its answer was lost"])
def test_a_put_that_failed_is_tried_again_and_one_whose_answer_is_lost_is_read_back(
    when: Literal["before", "after"], tries: int
) -> None:
    store, log = faulty(Fault(operation="put_if_absent", when=when))

    outcome, _ = commit_files(log, "a")

    assert (outcome, log.load().version, live_paths(log)) == (committed(1), 1, ["a"])
    assert puts(store) == [commit_path(1)] * tries


def test_a_lost_answer_of_a_put_that_lost_the_race_is_no_commit_of_ours() -> None:
    store = a_table().store

    def a_rival_lands_and_the_line_breaks() -> None:
        put(store, 1, [add("theirs")])
        raise StoreError("the line broke", url="memory:orders")

    log = raced(store, a_rival_lands_and_the_line_breaks)

    assert commit_files(log, "ours")[0] == committed(2)
    assert live_paths(log) == ["ours", "theirs"]


def test_a_commit_of_which_only_the_beginning_is_read_back_is_not_taken_for_that_of_a_rival() -> None:
    cut = [Fault(operation="read", name=commit_path(1), when="short", at=n) for n in (1, 2)]
    store, log = faulty(Fault(operation="put_if_absent", when="after"), *cut)

    outcome, _ = commit_files(log, "a")

    assert (outcome, log.load().version) == (committed(1), 1)
    assert puts(store) == [commit_path(1)]


def test_a_put_that_the_store_repeats_and_answers_no_is_ours_all_the_same() -> None:
    class RepeatingStore(MemoryStore):
        """Sends each put twice and gives the second answer, as clients do that retry on their own."""

        def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:
            super().put_if_absent(name, data, within=within)
            return super().put_if_absent(name, data, within=within)

    log = a_table(RepeatingStore("orders"))

    assert commit_files(log, "a")[0] == committed(1)
    assert live_paths(log) == ["a"]


def test_a_put_that_arrives_late_is_recognised_when_the_name_is_found_taken() -> None:
    inner = a_table().store
    late: list[Content] = []

    class LateStore(FaultyStore):
        """The first put fails, and arrives only just before the second."""

        def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:
            if not late:
                late.append(data)
                raise StoreError("no answer", url=self.url)
            inner.put_if_absent(name, late[0])
            return super().put_if_absent(name, data, within=within)

    log = log_of(LateStore(inner))

    assert commit_files(log, "a")[0] == committed(1)
    assert live_paths(log) == ["a"]


@pytest.mark.parametrize(("when", "then"), [("before", committed(1)), ("after", already_applied(1, recorded=7))])
def test_a_commit_of_unknown_fate_says_so_and_the_same_batch_run_again_stands_once(
    when: Literal["before", "after"], then: Committed | AlreadyApplied
) -> None:
    store, log = faulty(*dead(when))
    snapshot = log.load()
    with pytest.raises(CommitUnknownError, match="Run the same batch again"):
        commit_files(log, "a", txn=("query", 7))

    healthy = log_of(store._inner)
    again, _ = commit(healthy, snapshot, a_write(healthy, snapshot, "b", txn=("query", 7)), still())

    assert again == then
    assert len(live_paths(healthy)) == 1


def test_a_store_that_fails_is_asked_a_few_times_and_not_for_ever() -> None:
    _, log = faulty(*dead("before"))
    waited: list[float] = []

    with pytest.raises(CommitUnknownError) as caught:
        commit_files(log, "a", around=still(waited))

    assert len(waited) == LOST_ANSWER_RETRIES
    assert caught.value.version == 1
    assert isinstance(caught.value.__cause__, StoreError)


class FullDisk(Disk):
    def write(self, fd: int, data: memoryview) -> int:  # noqa: ARG002 - as Disk
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_local_disk_that_refused_a_commit_is_named_and_the_commit_is_known_not_to_be_there(tmp_path: Path) -> None:
    put(LocalStore(str(tmp_path)), 0, [protocol(), metadata()])
    full, healthy = log_of(LocalStore(str(tmp_path), disk=FullDisk())), log_of(LocalStore(str(tmp_path)))
    known = healthy.load()
    ours = a_write(healthy, known, "ours")

    with pytest.raises(StoreError, match=r"Could not put .*: No space left on device"):
        commit(full, known, ours, still())

    assert commit(healthy, known, ours, still())[0] == committed(1)


class LinksAtTheLastTry(Disk):
    def __init__(self) -> None:
        self._tries = 0

    def link(self, source: str, target: str, *, folder: int) -> None:
        self._tries += 1
        if self._tries == LOST_ANSWER_RETRIES:
            super().link(source, target, folder=folder)
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_commit_that_is_on_a_local_disk_after_its_last_try_failed_is_not_said_to_be_refused(tmp_path: Path) -> None:
    put(LocalStore(str(tmp_path)), 0, [protocol(), metadata()])
    log = log_of(LocalStore(str(tmp_path), disk=LinksAtTheLastTry()))
    known = log.load()

    with pytest.raises(CommitUnknownError, match="version 1 of"):
        commit(log, known, a_write(log, known, "ours"), still())

    assert log.load().version == 1


def test_a_commit_that_stands_is_told_though_the_store_fails_right_after_it() -> None:
    _, log = faulty(Fault(operation="stat", name=commit_path(1), at=2))  # the first look is before the put

    outcome, after = commit_files(log, "a")

    assert outcome == committed(1)
    assert log.advance(after).version == 1


def test_a_store_that_cannot_promise_one_winner_is_refused_without_retries() -> None:
    def refuse() -> None:
        raise NotExclusiveError("no links", url="memory:orders")

    store, log = faulty(Fault(operation="put_if_absent", hook=refuse))

    with pytest.raises(NotExclusiveError):
        commit_files(log, "a")
    assert len(puts(store)) == 1


REFUSALS = [
    StoreConfigError("the catalog answered 403", url="memory:orders"),
    UnsupportedFeatureError("the catalog manages the commits", url="memory:orders", features=("catalogManaged",)),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: type(refusal).__name__)
def test_a_put_that_is_refused_before_it_is_sent_is_no_commit_of_unknown_fate(refusal: TablefeedError) -> None:
    store, log = faulty(Fault(operation="put_if_absent", hook=lambda: raised(refusal)))

    with pytest.raises(type(refusal)):
        commit_files(log, "a")
    assert len(puts(store)) == 1


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: type(refusal).__name__)
def test_a_commit_stays_of_unknown_fate_if_its_next_put_is_refused(refusal: TablefeedError) -> None:
    refused = [Fault(operation="put_if_absent", at=2 + n, hook=lambda: raised(refusal)) for n in range(9)]
    _, log = faulty(Fault(operation="put_if_absent"), *refused)

    with pytest.raises(CommitUnknownError):
        commit_files(log, "a")


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: type(refusal).__name__)
def test_a_commit_that_stands_is_told_though_the_store_refuses_right_after_it(refusal: TablefeedError) -> None:
    looks = Fault(operation="stat", name=commit_path(1), at=2, hook=lambda: raised(refusal))  # the first is before
    _, log = faulty(looks)

    assert commit_files(log, "a")[0] == committed(1)


def raised(error: TablefeedError) -> None:
    raise error
