"""A store that fails at any call, a process that dies, two runs at once: the target is some version of the source."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Literal

import pyarrow as pa
import pytest

import tablefeed
from support.faulty_store import Fault, FaultyStore
from support.logs import live_paths, log_of, put, remove, said
from tablefeed.errors import ConflictError, ObjectNotFoundError, TablefeedError, TableNotFoundError, TableReplacedError
from tablefeed.feed.commit.transaction import Surroundings
from tablefeed.feed.replication.comparison import digest_of
from tablefeed.feed.replication.replica import Replication
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.model.actions import Version
from tablefeed.model.outcome import Replicated
from tablefeed.store import Store
from tablefeed.store.memory import MemoryStore

AROUND = Surroundings(now_ms=lambda: 1_700_000_000_000, sleep=lambda _s: None, uniform=lambda: 0.0)


class Killed(BaseException):
    """The end of a process: nothing of ours handles it."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A table with files, vectors, changes and an overwrite: its files by name."""
    table = tmp_path_factory.mktemp("made")
    fed = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    tablefeed.append(table, pa.table({"id": range(300)}), properties=fed)
    tablefeed.append(table, pa.table({"id": range(300, 302)}))
    tablefeed.delete(table, f"id IN ({', '.join(map(str, range(0, 300, 2)))})")
    tablefeed.append(table, pa.table({"id": [7]}), mode="overwrite")
    wait_until_done()
    return {path.relative_to(table).as_posix(): path.read_bytes() for path in table.rglob("*") if path.is_file()}


def a_source(files: dict[str, bytes]) -> Store:
    store = MemoryStore("source")
    for name, data in files.items():
        store.replace(name, data)
    return store


def run(source: Store, target: Store, *, first: int = 1, until: int | None = None, resync: bool = False) -> Replicated:
    log = log_of(source)
    newest = log.load(None if until is None else Version(until))
    copies = Replication(log, log_of(target), "copier", AROUND)
    return copies.run(newest, first=Version(first), until=newest.version, resync=resync)


def digests(log: DeltaLog, versions: Sequence[int]) -> list[tuple[int, str]]:
    return [digest_of(log.load_for_files(Version(version))) for version in versions]


def check_is_a_version(target: Store, right: list[tuple[int, str]]) -> None:
    """Each version of the target that there is equals the one of the source that its txn names; none comes twice."""
    log = log_of(target)
    try:
        newest = log.load().version
    except TableNotFoundError:
        return
    copied = [txn["version"] for version in range(newest + 1) for txn in said(log, version, "txn")]
    assert copied == list(range(1, newest + 2))
    assert digests(log, range(newest + 1)) == [right[version] for version in copied]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("ends", ["an error", "the process"])
def test_whatever_fails_the_target_is_a_version_of_the_source_and_the_next_run_ends_at_the_newest(
    made: dict[str, bytes], side: str, when: Literal["before", "after"], ends: str
) -> None:
    right = digests(log_of(a_source(made)), range(4))
    watched = {"source": FaultyStore(a_source(made)), "target": FaultyStore(MemoryStore("target"))}
    run(watched["source"], watched["target"])
    calls = watched[side].calls
    failed = 0
    for index, call in enumerate(calls):
        nth = sum(other.operation == call.operation for other in calls[: index + 1])
        hook = None if ends == "an error" else _kill
        fault = Fault(operation=call.operation, at=nth, when=when, hook=hook)
        stores: dict[str, Store] = {"source": a_source(made), "target": MemoryStore("target")}
        faulty = {**stores, side: FaultyStore(stores[side], faults=[fault])}
        try:
            run(faulty["source"], faulty["target"])
        except (TablefeedError, Killed):
            failed += 1
        check_is_a_version(stores["target"], right)
        done = run(stores["source"], stores["target"])
        assert (done.source_version, done.version) == (3, 2)
        check_is_a_version(stores["target"], right)
    assert failed > len(calls) // 3


def _kill() -> None:
    raise Killed


@pytest.mark.parametrize("operation", ["read", "open_input"])
def test_a_file_that_is_read_short_is_never_taken_for_whole(
    made: dict[str, bytes], operation: Literal["read", "open_input"]
) -> None:
    right = digests(log_of(a_source(made)), range(4))
    watched = FaultyStore(a_source(made))
    run(watched, MemoryStore("target"))
    count = sum(call.operation == operation for call in watched.calls)
    assert count > 2
    for nth in range(1, count + 1):
        source, target = a_source(made), MemoryStore("target")
        with contextlib.suppress(TablefeedError):
            run(FaultyStore(source, faults=[Fault(operation=operation, at=nth, when="short")]), target)
        check_is_a_version(target, right)
        run(source, target)
        check_is_a_version(target, right)


@pytest.mark.parametrize("commit", [1, 2, 3])
def test_of_two_runs_at_once_each_version_is_copied_once(made: dict[str, bytes], commit: int) -> None:
    source, target = a_source(made), MemoryStore("target")

    def other() -> None:
        run(source, target)

    faulty = FaultyStore(target, faults=[Fault(operation="put_if_absent", at=commit, hook=other)])

    done = run(source, faulty)

    assert (done.source_version, done.version) == (3, 2)
    check_is_a_version(target, digests(log_of(source), range(4)))


def test_a_run_that_read_an_older_source_does_not_take_back_what_another_copied(made: dict[str, bytes]) -> None:
    source, target = a_source(made), MemoryStore("target")
    run(source, target)

    done = run(source, target, until=2, resync=True)

    assert (done.source_version, done.version, done.commits) == (3, 2, 0)
    check_is_a_version(target, digests(log_of(source), range(4)))


def test_of_two_runs_that_copy_anew_at_once_none_goes_back_behind_the_other(made: dict[str, bytes]) -> None:
    source, target = a_source(made), MemoryStore("target")
    run(source, target, until=1)
    put(target, 1, [remove(path) for path in live_paths(log_of(target))])  # another writer

    def other() -> None:
        run(source, target, resync=True)

    done = run(source, FaultyStore(target, faults=[Fault(operation="put_if_absent", hook=other)]), until=2, resync=True)

    assert (done.source_version, done.version, done.commits) == (3, 2, 0)


def test_a_target_that_is_deleted_during_the_run_is_not_made_anew(made: dict[str, bytes]) -> None:
    source, target = a_source(made), MemoryStore("target")

    def gone() -> None:
        for entry in list(target.list("_delta_log")):
            target.delete(f"_delta_log/{entry.name}")

    with pytest.raises(TablefeedError):
        run(source, FaultyStore(target, faults=[Fault(operation="copy", at=2, hook=gone)]))

    with pytest.raises(TableNotFoundError):
        log_of(target).load()


def test_a_first_copy_is_taken_back_if_the_target_was_emptied_before_its_commit(made: dict[str, bytes]) -> None:
    source, target = a_source(made), MemoryStore("target")

    def emptied() -> None:
        for entry in list(target.list("")):
            target.delete(entry.name)

    with pytest.raises(ConflictError, match="its folder was emptied while the table was made"):
        run(source, FaultyStore(target, faults=[Fault(operation="put_if_absent", hook=emptied)]))

    with pytest.raises(TableNotFoundError):
        log_of(target).load()


def test_a_source_that_is_restored_while_it_is_copied_is_noticed(made: dict[str, bytes]) -> None:
    source, target = a_source(made), MemoryStore("target")
    last = "_delta_log/00000000000000000003.json"

    def restored() -> None:
        source.replace(last, source.read(last).replace(b'"version":1', b'"version":2') + b"\n")

    with pytest.raises(TableReplacedError, match="restored from a backup"):
        run(FaultyStore(source, faults=[Fault(operation="read", name="2.json", at=2, hook=restored)]), target)

    assert log_of(target).load().version < 2


def test_a_file_that_the_source_loses_while_it_is_copied_is_named(made: dict[str, bytes]) -> None:
    source, target = a_source(made), MemoryStore("target")
    (name,) = (each["path"] for each in said(log_of(source), 3, "add"))
    lost = Fault(operation="open_input", name=name, hook=lambda: _lose(source, name))

    with pytest.raises(TablefeedError, match=name):
        run(FaultyStore(source, faults=[lost]), target)

    assert log_of(target).load().version == 1


def _lose(store: Store, name: str) -> None:
    store.delete(name)
    raise ObjectNotFoundError(url=store.url, name=name)
