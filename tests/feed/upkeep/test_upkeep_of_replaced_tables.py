"""What happens behind a commit's back must not reach a table that was deleted or made anew meanwhile."""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import tablefeed
from support.faulty_store import Fault, FaultyStore, Operation
from support.logs import LONG_ID, a_log, add, log_of, metadata, protocol, put
from tablefeed.errors import TablefeedError, TableReplacedError
from tablefeed.feed.snapshot.delta_log import DeltaLog, DeltaSnapshot
from tablefeed.feed.upkeep.after_commit import UpkeepOptions, behind, look_after
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.feed.upkeep.checkpoint import checkpointed
from tablefeed.feed.upkeep.checksums import begin_checksums
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.feed.upkeep.optimize import Folding, fold
from tablefeed.store import LocalStore, Store
from tablefeed.store.memory import MemoryStore

NEW_ID = "22222222-2222-2222-2222-222222222222"
EVERY_THIRD = {"delta.checkpointInterval": "3"}
CHECKPOINT = f"_delta_log/{3:020d}.checkpoint.parquet"
V2 = {**EVERY_THIRD, "delta.checkpointPolicy": "v2"}

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _nothing_left_to_do() -> Iterator[None]:
    yield
    wait_until_done()


def old_table(store: Store, *, v2: bool = False) -> None:
    features = {"readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint"]} if v2 else {}
    told = metadata(configuration=V2 if v2 else EVERY_THIRD)
    a_log(store, v0=[protocol(3, 7, **features) if v2 else protocol(), told])
    for version in range(1, 4):
        put(store, version, [add(f"old{version}")])


def make_anew(store: Store) -> None:
    """Deletes all of the log, and makes another table of as many versions in its place."""
    for folder in ("_delta_log/_sidecars", "_delta_log"):
        for entry in list(store.list(folder)):
            store.delete(f"{folder}/{entry.name}")
    put(store, 0, [protocol(), metadata(LONG_ID, table_id=NEW_ID)])
    for version in range(1, 4):
        put(store, version, [add(f"a-file-of-the-new-table{version}")])


def log_files(store: Store) -> list[str]:
    folders = ("_delta_log", "_delta_log/_sidecars")
    return [entry.name for folder in folders for entry in store.list(folder)]


def upkeep(**options: Any) -> Upkeep:
    return lambda snapshot: look_after(snapshot, UpkeepOptions(**options))


Upkeep = Callable[[DeltaSnapshot], None]
WORKS: Mapping[str, tuple[Upkeep, bool]] = {
    "checkpoint": (upkeep(clean_up=False), False),
    "sidecars": (upkeep(clean_up=False), True),
    "parts": (upkeep(clean_up=False, part_actions=2), False),
    "compaction": (upkeep(checkpoint=False, compact_every=4), False),
    "checksum": (lambda snapshot: behind(snapshot, "checksum", partial(begin_checksums, snapshot)), False),
}
EACH = pytest.mark.parametrize(("work", "v2"), WORKS.values(), ids=WORKS)
NEW_LOG = [f"{version:020d}.json" for version in range(4)]


def done_with(inner: Store, work: Upkeep, *, v2: bool, faults: tuple[Fault, ...] = ()) -> FaultyStore:
    """What `work` does to the old table, among `faults`."""
    old_table(inner, v2=v2)
    store = FaultyStore(inner, faults=faults)
    work(replace(log_of(inner).load(), log=log_of(store)))
    wait_until_done()
    return store


def calls_of(inner: Store, work: Upkeep, *, v2: bool) -> Counter[Operation]:
    """How often each operation is called where nothing disturbs the work, which then has put something."""
    counts = Counter(call.operation for call in done_with(inner, work, v2=v2).calls)
    assert len(log_files(inner)) > len(NEW_LOG)
    return counts


@EACH
def test_at_whatever_step_a_table_is_made_anew_nothing_of_the_old_one_is_in_its_log(work: Upkeep, *, v2: bool) -> None:
    for operation, count in calls_of(MemoryStore(f"old{next(_numbers)}"), work, v2=v2).items():
        for at in range(1, count + 1):
            inner = MemoryStore(f"old{next(_numbers)}")
            done_with(inner, work, v2=v2, faults=(Fault(operation=operation, at=at, hook=partial(make_anew, inner)),))
            assert log_files(inner) == NEW_LOG, (operation, at)


@EACH
def test_a_table_made_anew_between_the_look_at_it_and_the_put_gets_nothing_that_stays(
    work: Upkeep, *, v2: bool
) -> None:
    looks = calls_of(MemoryStore(f"old{next(_numbers)}"), work, v2=v2)["stat"]

    for at in range(1, looks + 1):
        inner = MemoryStore(f"old{next(_numbers)}")
        fault = Fault(operation="stat", at=at, when="after", hook=partial(make_anew, inner))
        done_with(inner, work, v2=v2, faults=(fault,))
        assert log_files(inner) == NEW_LOG, at


@EACH
def test_at_whatever_step_the_folder_of_a_table_is_deleted_it_stays_deleted(
    work: Upkeep, tmp_path: Path, *, v2: bool
) -> None:
    for operation, count in calls_of(LocalStore(str(tmp_path / "undisturbed")), work, v2=v2).items():
        for at in range(1, count + 1):
            root = tmp_path / f"{operation}{at}"
            fault = Fault(operation=operation, at=at, hook=partial(shutil.rmtree, root))
            done_with(LocalStore(str(root)), work, v2=v2, faults=(fault,))
            assert not root.exists(), (operation, at)


def test_a_checkpoint_that_is_asked_for_says_that_the_table_was_made_anew() -> None:
    inner = MemoryStore("asked")
    old_table(inner)
    log: DeltaLog = log_of(FaultyStore(inner, faults=[Fault(operation="publish", hook=lambda: make_anew(inner))]))

    with pytest.raises(TableReplacedError, match="deleted, made again or restored"):
        checkpointed(log, clean_up=False, now_ms=0)

    assert log_files(inner) == NEW_LOG


def theirs(store: Store) -> None:
    store.put_if_absent(CHECKPOINT, b"theirs")


def restored(store: Store, checkpoint: bytes) -> None:
    """Puts the table back from a copy: its last commit and, under the name of ours, its own checkpoint."""
    for name in (f"_delta_log/{3:020d}.json", CHECKPOINT):
        store.delete(name)
    put(store, 3, [add("a-file-of-the-restored-table")])
    store.put_if_absent(CHECKPOINT, checkpoint)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_checkpoint_of_the_same_name_that_others_put_is_not_taken_back(when: Literal["before", "after"]) -> None:
    inner = MemoryStore(f"restored-{when}")
    old_table(inner)
    faults = [
        # Others take the name right before ours, or the table is restored right after it.
        Fault(operation="publish", hook=partial(theirs, inner)),
        Fault(operation="replace", hook=partial(restored, inner, b"theirs, restored")),
    ]
    log = log_of(FaultyStore(inner, faults=faults if when == "before" else faults[1:]))

    with pytest.raises(TableReplacedError, match="deleted, made again or restored"):
        write_checkpoint(log.load())

    assert inner.read(CHECKPOINT) == b"theirs, restored"


FAILS_ONCE: Mapping[str, Sequence[Fault]] = {
    "nothing": [],
    "the look at the sidecars": [Fault(operation="exists", name="_sidecars/")],
    "the look at the file": [Fault(operation="stat", name=".checkpoint.", at=3)],  # after two of a sidecar
    "the second look at the file": [Fault(operation="stat", name=".checkpoint.", at=5)],
    "the deletion": [Fault(operation="delete", name=".checkpoint.")],
}


@pytest.mark.parametrize("fails", FAILS_ONCE)
def test_a_checkpoint_whose_sidecars_went_when_a_copy_with_the_same_newest_commit_was_restored_is_taken_back(
    fails: str,
) -> None:
    inner = MemoryStore("copied")
    old_table(inner, v2=True)

    def lose_what_the_copy_lacks() -> None:
        for name in set(log_files(inner)).difference(NEW_LOG):
            inner.delete(f"_delta_log/_sidecars/{name}")

    fault = Fault(operation="put_if_absent", name=".checkpoint.", hook=lose_what_the_copy_lacks)

    with pytest.raises(TableReplacedError, match=r"_sidecars/.* is gone: the table was restored from a copy"):
        write_checkpoint(log_of(FaultyStore(inner, faults=[fault, *FAILS_ONCE[fails]])).load())

    assert log_files(inner) == NEW_LOG


def test_a_fold_does_not_bring_the_folder_of_a_deleted_table_back(tmp_path: Path) -> None:
    root = tmp_path / "table"
    for n in range(3):
        tablefeed.append(root, pa.table({"id": [n]}))
    wait_until_done()
    deleted = Fault(operation="open_input", at=3, name="part-", when="after", hook=partial(shutil.rmtree, root))
    log = log_of(FaultyStore(LocalStore(str(root)), faults=[deleted]))

    with pytest.raises(TablefeedError):
        fold(log.load_for_files(), Folding(target_bytes=1_000_000))

    assert not root.exists()
