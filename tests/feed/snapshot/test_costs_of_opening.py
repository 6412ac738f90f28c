"""What opening a table asks of the store: with a long log, what its tail costs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.checkpoints import classic_name, in_parquet, of_version, put_checkpoint, sidecar, uuid_name
from support.faulty_store import Fault, FaultyStore
from support.logs import Action, a_log, add, commit_path, log_of, metadata, protocol
from tablefeed.errors import LogGapError, VersionNotFoundError
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.open_log import found_at
from tablefeed.feed.snapshot.table_format import TableFormat
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.log.segment import LogSegment
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFileKind
from tablefeed.store import Entry
from tablefeed.store.memory import MemoryStore

COMMITS = 10_000
AT = 9_995
"""The version of the newest checkpoint."""


@pytest.fixture(scope="module")
def long_log() -> MemoryStore:
    """10,000 commits of a file each, and a checkpoint four before the newest."""
    store = MemoryStore("orders")
    a_log(store, v0=[protocol(), metadata(), add("f0")])
    for version in range(1, COMMITS):
        store.replace(commit_path(version), json.dumps(add(f"f{version}")).encode())
    put_checkpoint(store, classic_name(AT), [protocol(), metadata(), *(add(f"f{v}") for v in range(AT + 1))])
    return store


def paths_of(snapshot: Snapshot) -> list[str]:
    return [path for batch in snapshot.live_files() for path in batch["log_path"].to_pylist()]


def asked(store: FaultyStore) -> list[str]:
    return [f"{call.operation} {call.name.removeprefix('_delta_log/').lstrip('0')}" for call in store.calls]


TAIL = [f"read {version}.json" for version in range(AT + 1, COMMITS)]
CHECKPOINT = f"open_input {AT}.checkpoint.parquet"
HEAD = f"stat {COMMITS - 1}.json"


def test_with_a_good_hint_the_newest_version_costs_one_listing_the_checkpoint_and_the_tail(
    long_log: MemoryStore,
) -> None:
    long_log.replace("_delta_log/_last_checkpoint", json.dumps({"version": AT, "size": AT}).encode())
    listed: list[str] = []

    class Listed(FaultyStore):
        def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
            for entry in super().list(directory, start=start):
                listed.append(entry.name)
                yield entry

    store = Listed(long_log)

    snapshot = log_of(store).load_for_files()

    assert snapshot.version == COMMITS - 1
    assert asked(store) == ["read _last_checkpoint", "list _delta_log", CHECKPOINT, *TAIL, HEAD]
    assert listed == [classic_name(AT), *(f"{version:020d}.json" for version in range(AT, COMMITS)), "_last_checkpoint"]

    assert sum(batch.num_rows for batch in snapshot.live_files()) == COMMITS
    assert asked(store)[-1:] == [CHECKPOINT]  # and nothing but the checkpoint is read for the files
    assert len(store.calls) == len(TAIL) + 5


@pytest.mark.parametrize("hint", [None, b"{", b'{"version":3}', b'{"version":123456}'])
def test_without_a_good_hint_it_costs_what_the_store_lists_and_no_older_commit_is_read(
    long_log: MemoryStore, hint: bytes | None
) -> None:
    long_log.delete("_delta_log/_last_checkpoint")
    if hint is not None:
        long_log.replace("_delta_log/_last_checkpoint", hint)
    store = FaultyStore(long_log)

    assert log_of(store).load().version == COMMITS - 1

    listings = ["list _delta_log"] * (2 if hint and b"123456" in hint else 1)
    assert asked(store) == ["read _last_checkpoint", *listings, CHECKPOINT, *TAIL, HEAD]


def test_an_older_version_is_listed_from_the_hint_only_where_the_hint_is_not_after_it(long_log: MemoryStore) -> None:
    long_log.replace("_delta_log/_last_checkpoint", json.dumps({"version": AT}).encode())
    store = FaultyStore(long_log)

    assert log_of(store).load(Version(AT + 2)).version == AT + 2

    assert asked(store)[:3] == ["read _last_checkpoint", "list _delta_log", CHECKPOINT]
    assert asked(store)[3:] == [*TAIL[:2], f"stat {AT + 2}.json"]


def test_sidecars_cost_one_request_each_and_only_for_the_files() -> None:
    store = FaultyStore(MemoryStore("orders"))
    head: list[Action] = [protocol(), metadata(), of_version(7)]
    put_checkpoint(store, uuid_name(7, "json"), [*head, *(sidecar(f"{n}.parquet") for n in range(3))])
    for n in range(3):
        store.replace(f"_delta_log/_sidecars/{n}.parquet", in_parquet([add(f"f{n}")]))
    store.calls.clear()

    snapshot = log_of(store).load_for_files()
    opened = [call.name for call in store.calls if call.operation == "open_input"]
    assert opened == [f"_delta_log/{uuid_name(7, 'json')}"]

    assert sum(batch.num_rows for batch in snapshot.live_files()) == 3
    opened = [call.name for call in store.calls if call.operation == "open_input"]
    assert opened[1:] == [f"_delta_log/_sidecars/{n}.parquet" for n in range(3)]


def test_the_format_of_a_table_with_a_checkpoint_is_found_without_a_listing(long_log: MemoryStore) -> None:
    long_log.replace("_delta_log/_last_checkpoint", json.dumps({"version": AT}).encode())
    store = FaultyStore(long_log)

    hint = long_log.read("_delta_log/_last_checkpoint")
    assert found_at(store) == (TableFormat.DELTA, hint)

    assert asked(store) == ["read _last_checkpoint"]


def test_a_hint_that_cannot_be_read_is_a_hint_at_the_format_alone(long_log: MemoryStore) -> None:
    long_log.replace("_delta_log/_last_checkpoint", json.dumps({"version": AT}).encode())
    store = FaultyStore(long_log, faults=[Fault(operation="read")])

    assert found_at(store) == (TableFormat.DELTA, b"")


def test_a_table_that_is_followed_commit_after_commit_is_listed_once_for_each_checkpoint() -> None:
    inner = MemoryStore("orders")
    a_log(inner, v0=[protocol(), metadata(), add("f0")], v1=[add("f1")])
    put_checkpoint(inner, classic_name(1), [protocol(), metadata(), add("f0"), add("f1")])
    inner.replace("_delta_log/_last_checkpoint", b'{"version":1}')
    store = FaultyStore(inner)
    log = log_of(store)
    snapshot: Snapshot = log.load()
    for version in range(2, 9):
        if version == 6:
            put_checkpoint(inner, classic_name(5), [protocol(), metadata(), *(add(f"f{v}") for v in range(6))])
            inner.replace("_delta_log/_last_checkpoint", b'{"version":5}')
        a_log(inner, **{f"v{version}": [add(f"f{version}")]})
        snapshot = log.advance(snapshot)

        assert sorted(paths_of(snapshot)) == [f"f{v}" for v in range(version + 1)]

    assert asked(store).count("list _delta_log") == 2


def test_where_log_files_that_were_listed_are_gone_the_log_is_listed_again() -> None:
    inner = MemoryStore("orders")
    a_log(inner, v0=[protocol(), metadata(), add("f0")], v1=[add("f1")])
    put_checkpoint(inner, classic_name(0), [protocol(), metadata(), add("f0")])
    inner.replace("_delta_log/_last_checkpoint", b'{"version":0}')
    log = log_of(inner)
    snapshot = log.load()
    inner.delete(f"_delta_log/{classic_name(0)}")

    assert sorted(paths_of(snapshot)) == ["f0", "f1"]


def test_a_version_whose_commit_was_listed_and_is_gone_is_refused_as_the_log_is_now() -> None:
    inner = MemoryStore("orders")
    a_log(inner, v0=[protocol(), metadata()], v1=[add("f1")], v2=[add("f2")], v3=[add("f3")])
    put_checkpoint(inner, classic_name(0), [protocol(), metadata()])
    inner.replace("_delta_log/_last_checkpoint", b'{"version":0}')
    log = log_of(inner)
    log.load()

    inner.delete("_delta_log/00000000000000000002.json")
    with pytest.raises(LogGapError, match="version 2 is missing"):
        log.load(Version(3))

    inner.delete("_delta_log/00000000000000000003.json")
    log.load(Version(1))
    with pytest.raises(VersionNotFoundError):
        log.load(Version(2))


def test_readers_of_one_log_get_their_own_version_also_where_another_reads_in_between() -> None:
    inner = MemoryStore("orders")
    a_log(inner, v0=[protocol(), metadata(), add("f0")], v1=[add("f1")])
    put_checkpoint(inner, classic_name(0), [protocol(), metadata(), add("f0")])
    inner.replace("_delta_log/_last_checkpoint", b'{"version":0}')

    class Shared(DeltaLog):
        """Another thread reads version 0 as soon as this one has listed the log."""

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "_listed" and isinstance(value, LogSegment) and value.version == 1:
                self.segment(Version(0))

    snapshot = Shared(inner, location=inner.url, storage_options={}).load(Version(1))

    assert (snapshot.version, sorted(paths_of(snapshot))) == (1, ["f0", "f1"])


def test_a_commit_that_a_listing_lacks_is_found_if_the_listing_has_a_later_one() -> None:
    """A disk may list two commits that are made meanwhile so: the later one alone."""
    log = a_log(v0=[protocol(), metadata()], v1=[add("a")], v2=[add("b")], v3=[add("c")])

    class Growing(FaultyStore):
        def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
            return (each for each in super().list(directory, start=start) if each.name != f"{2:020d}.json")

    store = Growing(log.store)
    growing = log_of(store)

    assert sorted(paths_of(growing.load())) == ["a", "b", "c"]
    assert sorted(file.version for file in growing.listing(1)) == [1, 2, 3]
    put_checkpoint(log.store, classic_name(2), [protocol(), metadata(), add("a"), add("b")])
    assert LogFileKind.COMMIT in [file.kind for file in growing.listing(1) if file.version == 2]
    log.store.delete(f"_delta_log/{classic_name(2)}")
    log.store.delete(commit_path(2))
    with pytest.raises(LogGapError, match="version 2 is missing"):
        growing.load()
