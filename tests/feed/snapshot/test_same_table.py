"""Another table in the place of the one that a reader began with: whoever reads goes no further, whatever it reads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace

import pytest

from support.checkpoints import classic_name, put_checkpoint
from support.clocks import Clock
from support.faulty_store import Fault, FaultyStore, Operation
from support.logs import a_log, a_source, add, at, commit_path, delivered, log_of, metadata, protocol, put, txn
from tablefeed.errors import LogError, OffsetError, TableNotFoundError
from tablefeed.feed.snapshot.bounds import read_commits
from tablefeed.feed.snapshot.same_table import SameTable
from tablefeed.feed.snapshot.tail import GAP_CHECK_S
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Commit, Version
from tablefeed.store import Store
from tablefeed.store.memory import MemoryStore

OTHER = "22222222-2222-2222-2222-222222222222"


def a_store() -> MemoryStore:
    """Each of its objects is of a time of its own."""
    times = iter(range(10_000))
    return MemoryStore("orders", now_ms=lambda: next(times))


def emptied(store: MemoryStore) -> None:
    for entry in list(store.list("_delta_log")):
        store.delete(f"_delta_log/{entry.name}")


def made_again(store: MemoryStore, *, newest: int) -> None:
    emptied(store)
    put(store, 0, [protocol(), metadata(table_id=OTHER)])
    for version in range(1, newest + 1):
        put(store, version, [add(f"of another table, {version}"), add("and more")])


# --- what a file shows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["begun with", "read", "read before a restart"])
@pytest.mark.parametrize("copied", [False, True], ids=["replaced", "copied"])
def test_a_commit_of_the_same_size_in_the_place_of_the_last_one_is_noticed_and_a_copy_of_that_is_none(
    how: str, *, copied: bool
) -> None:
    store = a_store()
    log = a_log(store, v0=[protocol(), metadata()], v1=[add("a")])
    same_table = SameTable(log.load(), remedy="")
    same_table.note_content()
    if how != "begun with":
        put(store, 2, [add("b")])
    if how == "read":
        same_table.compare_after_reading(Version(2), log.commit(Version(2)), found=log.head(Version(2)))
    elif how == "read before a restart":
        same_table.compare_after_restart(Version(2))
    last = 1 if how == "begun with" else 2
    before, size = log.head(Version(last)), len(store.read(commit_path(last)))

    put(store, last, [add("ab"[last - 1] if copied else "z")])

    assert log.head(Version(last)) != before
    assert len(store.read(commit_path(last))) == size
    with nullcontext() if copied else pytest.raises(LogError, match=f"up to version {last}, whose commit is gone"):
        same_table.compare()


@pytest.mark.parametrize("copied", [False, True], ids=["replaced", "copied"])
def test_a_commit_in_the_place_of_one_that_went_while_it_was_read_is_noticed_and_a_copy_of_that_is_none(
    *, copied: bool
) -> None:
    store = a_store()
    log = a_log(store, v0=[protocol(), metadata()])
    same_table = SameTable(log.load(), remedy="")
    put(store, 1, [add("a")])
    read = log.commit(Version(1))
    store.delete(commit_path(1))
    same_table.compare_after_reading(Version(1), read, found=log.head(Version(1)))

    put(store, 1, [add("a" if copied else "z")])

    with nullcontext() if copied else pytest.raises(LogError, match="up to version 1, whose commit is gone"):
        same_table.compare()


@pytest.mark.parametrize("knows_file", [False, True], ids=["read again", "its file was found first"])
@pytest.mark.parametrize("copied", [False, True], ids=["replaced", "copied"])
def test_a_commit_that_is_replaced_right_after_it_was_read_is_noticed_and_a_copy_of_that_is_none(
    *, copied: bool, knows_file: bool
) -> None:
    store = a_store()
    log = a_log(store, v0=[protocol(), metadata()])
    same_table = SameTable(log.load(), remedy="")
    put(store, 1, [add("a")])
    found, read = log.head(Version(1)), log.commit(Version(1))

    put(store, 1, [add("a" if copied else "z")])

    with nullcontext() if copied else pytest.raises(LogError, match="up to version 1, whose commit is gone"):
        same_table.compare_after_reading(Version(1), read, found=found if knows_file else None)
        same_table.compare()


# --- what a listing shows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_ms", [1_000_000, 1_000_789])
@pytest.mark.parametrize("seconds", [False, True], ids=["times in ms", "single objects in seconds"])
def test_a_listing_has_the_last_commit_only_if_its_size_and_its_time_are_those_of_its_file(
    at_ms: int, *, seconds: bool
) -> None:
    store = MemoryStore("orders", now_ms=lambda: at_ms)
    begun = a_log(store, v0=[protocol(), metadata()], v1=[add("a")]).load()
    assert begun.head is not None
    seen = replace(begun.head, modified_ms=at_ms // 1000 * 1000 if seconds else at_ms)
    same_table = SameTable(replace(begun, head=seen), remedy="")
    before, listed = begun.log.listing()

    assert same_table.is_in(listed)
    assert not same_table.is_in(None)
    assert not same_table.is_in(before)
    assert not same_table.is_in(replace(listed, size_bytes=listed.size_bytes + 1))
    assert not same_table.is_in(replace(listed, modified_ms=at_ms + 1000))
    assert not same_table.is_in(replace(listed, modified_ms=at_ms - 1000))
    assert not SameTable(replace(begun, head=None), remedy="").is_in(listed)


# --- streams ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("newest", [0, 1, 5], ids=["shorter", "equal", "longer"])
def test_a_stream_that_waits_notices_within_a_minute_that_its_table_was_made_again(newest: int) -> None:
    store, clock = a_store(), Clock()
    source = a_source(a_log(store, v0=[protocol(), metadata()], v1=[add("a")]), clock=clock)
    end = source.latest(source.initial(), Limits())
    made_again(store, newest=newest)

    clock.now_s += GAP_CHECK_S
    with pytest.raises(OffsetError, match=f"is now the table with id {OTHER}.* Use a new checkpoint"):
        source.latest(end, Limits())


def test_a_stream_that_waits_notices_within_a_minute_that_its_table_was_deleted() -> None:
    store, clock = a_store(), Clock()
    source = a_source(a_log(store, v0=[protocol(), metadata()], v1=[add("a")]), clock=clock)
    end = source.latest(source.initial(), Limits())
    emptied(store)

    assert source.latest(end, Limits()) == end
    clock.now_s += GAP_CHECK_S
    with pytest.raises(TableNotFoundError):
        source.latest(end, Limits())


def test_a_stream_does_not_go_on_behind_a_commit_that_was_replaced_right_after_it_was_read() -> None:
    inner, clock = a_store(), Clock()
    a_log(inner, v0=[protocol(), metadata()], v1=[add("a")])
    replacing = Fault(operation="read", name=commit_path(2), when="after", hook=lambda: put(inner, 2, [add("z")]))
    source = a_source(log_of(FaultyStore(inner, faults=[replacing])), clock=clock)
    begun = source.latest(source.initial(), Limits())
    put(inner, 2, [add("b")])
    end = source.latest(begun, Limits())
    put(inner, 3, [add("c")])

    with pytest.raises(LogError, match="up to version 2, whose commit is gone or was replaced"):
        source.latest(end, Limits())


@pytest.mark.parametrize("lags", [False, True], ids=["", "lag"])
@pytest.mark.parametrize("files", [None, 1, 2, 3])
def test_commits_of_two_logs_are_not_read_as_one_at_whatever_request_a_copy_is_restored(
    files: int | None, *, lags: bool
) -> None:
    """Others commit to the copy at once. A stream that does not stop has delivered what is in the log then."""
    for newest, copied_to in ((3, 1), (6, 1), (6, 3), (9, 4)):
        there = [f"{'old' if version <= copied_to else 'new'}{version}" for version in range(2, newest + 1)]
        for request in itertools.count(1):
            store = Restored(a_store(), copied_to=copied_to, newest=newest)
            with suppress(LogError):
                found = stream(store, request, Limits(files=files), lags=lags)
                if not store.is_copy:
                    break
                assert found == there, (newest, copied_to, request)


class Restored(FaultyStore):
    """A table with a version 1, whose log goes back to `copied_to` at a request. Others then commit up to `newest`."""

    def __init__(self, inner: MemoryStore, *, copied_to: int, newest: int) -> None:
        super().__init__(inner)
        self.inner, self.copied_to, self.newest = inner, copied_to, newest
        self.requests, self.at, self.is_copy = 0, 0, False
        a_log(inner, v0=[protocol(), metadata()], v1=[add("old1")])

    def commit(self, first: int, how: str) -> None:
        for version in range(first, self.newest + 1):
            put(self.inner, version, [add(f"{how}{version}")])

    @contextmanager
    def _call(self, operation: Operation, name: str) -> Iterator[bool]:
        self.requests += 1
        if self.requests == self.at:
            self.is_copy = True
            for version in range(self.copied_to + 1, self.newest + 1):
                self.inner.delete(commit_path(version))
            self.commit(self.copied_to + 1, "new")
        with super()._call(operation, name) as is_short:
            yield is_short


def stream(store: Restored, request: int, limits: Limits, *, lags: bool) -> list[str]:
    """The files that a stream delivers which begins behind version 1, and looks on for minutes after its last batch."""
    clock = Clock()
    source = a_source(log_of(store), clock=clock)
    start = source.latest(source.initial(), Limits())
    delivered(source, source.initial(), start)
    store.commit(2, "old")
    store.requests, store.at = 0, request
    found, idle = list[str](), 0
    while idle < 4:
        end = source.latest(start, limits)
        if lags:
            source.lag(end, now_ms=0)
        found += delivered(source, start, end)
        source.delivered(end)
        if end == start:
            store.at, idle, clock.now_s = 0, idle + 1, clock.now_s + 2 * GAP_CHECK_S
        start = end
    return sorted(found, key=lambda path: int(path[3:]))


def test_a_commit_that_is_delivered_in_part_is_of_the_same_table() -> None:
    store = a_store()
    source = a_source(a_log(store, v0=[protocol(), metadata()], v1=[add("a")]))
    end = source.latest(source.initial(), Limits())
    made_again(store, newest=2)

    with pytest.raises(OffsetError, match=f"is now the table with id {OTHER}"):
        source.latest(end, Limits(files=1))


def test_a_batch_that_is_read_again_is_of_the_same_table() -> None:
    store = a_store()
    source = a_source(a_log(store, v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")]), starting_version=1)
    end = source.latest(source.initial(), Limits())
    source.delivered(end)
    made_again(store, newest=2)

    with pytest.raises(OffsetError, match=f"is now the table with id {OTHER}"):
        source.tasks(at(1), end)


def test_an_initial_snapshot_is_of_the_table_that_the_query_began_with() -> None:
    store = a_store()
    source = a_source(a_log(store, v0=[protocol(), metadata()], v1=[add("a")]))
    start = source.initial()
    made_again(store, newest=1)

    with pytest.raises(OffsetError, match=f"is now the table with id {OTHER}"):
        source.latest(start, Limits())


def test_files_of_an_initial_snapshot_are_of_the_table_that_the_query_began_with() -> None:
    store = a_store()
    source = a_source(a_log(store, v0=[protocol(), metadata()], v1=[add("a"), add("b")]))
    start = source.initial()
    made_again(store, newest=1)

    with pytest.raises(OffsetError, match=f"is now the table with id {OTHER}"):  # no commit is read that could show it
        source.tasks(start, at(1, 1, in_snapshot=True))


def test_a_stream_that_may_lose_data_goes_on_over_commits_that_were_read_and_are_made_again() -> None:
    store = a_store()
    log = a_log(store, v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")])
    strict, lenient = a_source(log), a_source(log, fail_on_data_loss=False)
    ends = [source.latest(source.initial(), Limits()) for source in (strict, lenient)]
    put(store, 2, [add("another b"), add("c")])
    put(store, 3, [add("d")])

    with pytest.raises(LogError, match="read up to version 2, whose commit is gone or was replaced") as caught:
        strict.latest(ends[0], Limits())
    assert caught.value.error_class == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"
    assert delivered(lenient, ends[1], lenient.latest(ends[1], Limits())) == ["d"]


# --- bounded reads ---------------------------------------------------------------------------------------------------


def three_commits(store: Store) -> Iterator[Commit]:
    log = a_log(store, v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")])
    return read_commits(log.load(), log.listing(), range(1, 3))


@pytest.mark.parametrize("newest", [0, 2, 5], ids=["shorter", "equal", "longer"])
def test_a_range_that_is_read_later_is_of_the_table_that_it_was_planned_for(newest: int) -> None:
    store = a_store()
    commits = three_commits(store)
    assert next(commits).version == 1

    made_again(store, newest=newest)

    with pytest.raises(OffsetError, match=f"is now the table with id {OTHER}.* Read again"):
        next(commits)


def test_a_range_whose_table_was_deleted_says_so() -> None:
    store = a_store()
    commits = three_commits(store)
    emptied(store)

    with pytest.raises(TableNotFoundError):
        next(commits)


# --- what a process remembers ----------------------------------------------------------------------------------------


def test_a_state_is_not_brought_up_to_date_with_the_commits_of_another_table() -> None:
    store = a_store()
    a_log(store, v0=[protocol(), metadata()], v1=[add("a")])
    replaced = Fault(operation="stat", name=commit_path(2), hook=lambda: made_again(store, newest=2))
    log = log_of(FaultyStore(store, faults=[replaced]))
    known = log.load()

    newest = log.advance(known)

    assert (newest.version, newest.metadata.table_id) == (2, OTHER)


@pytest.mark.parametrize("newest", [2, 3])
def test_a_state_whose_newest_commit_is_replaced_right_after_it_was_read_is_not_the_newest_of_the_log(
    newest: int,
) -> None:
    store = a_store()
    known = a_log(store, v0=[protocol(), metadata()], v1=[add("a")]).load()
    for version in range(2, newest + 1):
        put(store, version, [txn("a", version)])
    replacing = Fault(
        operation="read", name=commit_path(newest), when="after", hook=lambda: put(store, newest, [txn("b", newest)])
    )
    log = log_of(FaultyStore(store, faults=[replacing]))

    found = log.advance(log.advance(known))

    assert found.version == newest
    assert found.facts.txns["b"].txn_version == newest


def test_a_state_whose_commit_and_the_next_ones_were_cleaned_up_is_not_the_newest() -> None:
    store = a_store()
    log = a_log(store, v0=[protocol(), metadata()])
    put_checkpoint(store, classic_name(0), [protocol(), metadata()])
    store.delete(commit_path(0))
    known = log.load()
    a_log(store, v1=[add("a")], v2=[add("b")])
    put_checkpoint(store, classic_name(2), [protocol(), metadata(), add("a"), add("b")])
    store.delete(commit_path(1))

    assert log.advance(known).version == 2


# --- a table that is replaced while it is loaded ----------------------------------------------------------------------


@pytest.mark.parametrize("newest", [0, 1], ids=["by a commit of the same size", "by a larger commit"])
def test_a_table_that_is_replaced_between_its_commit_and_the_time_of_its_file_is_loaded_anew(newest: int) -> None:
    store = a_store()
    a_log(store, v0=[protocol(), metadata()], **{"v1": [add("a")]} if newest else {})
    replaced = Fault(operation="stat", hook=lambda: made_again(store, newest=newest))

    snapshot = log_of(FaultyStore(store, faults=[replaced])).load()

    assert snapshot.metadata.table_id == OTHER
    assert snapshot.head == store.stat(commit_path(newest))


def test_a_table_whose_newest_commit_goes_while_it_is_loaded_is_loaded_anew() -> None:
    store = a_store()
    a_log(store, v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")])
    restored = Fault(operation="stat", hook=lambda: store.delete(commit_path(2)))

    snapshot = log_of(FaultyStore(store, faults=[restored])).load()

    assert (snapshot.version, snapshot.head) == (1, store.stat(commit_path(1)))


def test_a_table_that_is_replaced_while_newer_commits_are_read_is_loaded_anew() -> None:
    store = a_store()
    begun = a_log(store, v0=[protocol(), metadata()]).load()
    put(store, 1, [add("a")])
    replaced = Fault(operation="stat", at=2, hook=lambda: made_again(store, newest=1))

    snapshot = log_of(FaultyStore(store, faults=[replaced])).advance(begun)

    assert snapshot.metadata.table_id == OTHER
