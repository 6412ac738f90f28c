"""What comes of a commit when others commit at the same time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from support.commits import a_write, commit_files, committed, faulty, raced, still
from support.logs import (
    NOW_MS,
    VECTOR,
    Action,
    a_log,
    a_table,
    actions_of,
    add,
    col,
    json_lines,
    live_paths,
    log_of,
    meta,
    metadata,
    protocol,
    put,
    said,
)
from tablefeed.errors import ConflictError
from tablefeed.feed.commit.loop import commit
from tablefeed.log.conflicts import WriteKind
from tablefeed.store import LocalStore
from tablefeed.store.durable import Disk


def test_a_commit_says_of_itself_what_delta_spark_says() -> None:
    log = a_table()

    commit_files(log, "a", txn=("query", 7))

    about, recorded, added = actions_of(log, 1)
    assert about["commitInfo"]["operation"] == "STREAMING UPDATE"
    assert about["commitInfo"]["operationParameters"] == {"outputMode": "Append", "queryId": "query", "epochId": "7"}
    assert (about["commitInfo"]["readVersion"], about["commitInfo"]["isBlindAppend"]) == (0, True)
    assert recorded == {"txn": {"appId": "query", "version": 7, "lastUpdated": NOW_MS}}
    assert added["add"]["path"] == "a"


def test_retries_write_no_data_file_again() -> None:
    store, log = faulty()
    snapshot = log.load()
    ours = a_write(log, snapshot, "ours")
    for version in range(1, 6):
        put(store, version, [add(f"theirs{version}")])
    before = len(store.calls)

    commit(log, snapshot, ours, still())

    assert [c for c in store.calls[before:] if c.operation in ("create", "replace")] == []


def test_races_are_retried_at_once_twice_and_then_after_a_random_wait_that_becomes_shorter() -> None:
    store = a_table().store
    rivals = iter(range(1, 1101))
    log = raced(store, *[lambda: put(store, next(rivals), [add("theirs")])] * 1100)
    waited: list[float] = []

    outcome, _ = commit_files(log, "ours", around=still(waited))

    assert outcome == committed(1101)
    assert (len(waited), waited[:3], waited[-1]) == (1098, [0.5 * 0.02, 0.5 * 0.02 / 2, 0.5 * 0.02 / 3], 0.5 * 0.002)


def test_a_rival_between_the_plan_and_the_commit_is_judged_though_the_caller_has_read_it() -> None:
    log = a_log(v0=[protocol(), metadata(), add("old")])
    ours = a_write(log, log.load(), "ours", kind=WriteKind.OVERWRITE)
    put(log.store, 1, [add("theirs")])

    with pytest.raises(ConflictError, match="DELTA_CONCURRENT_APPEND"):
        commit(log, log.load(), ours, still())


def test_an_overwrite_removes_each_live_file_with_all_that_the_log_says_of_it() -> None:
    values: Action = {"partitionValues": {"p": "a%20b"}, "tags": {"OWNER": "me"}, "deletionVector": VECTOR}
    old = add("p=a%2520b/x", size=77, stats='{"numRecords":9}', **values)
    features = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"])
    log = a_log(v0=[features, meta(col("id"), col("p", "string"), partition_columns=["p"]), old])
    rows = pa.schema([("id", pa.int64()), ("p", pa.string())])

    commit_files(log, "new", kind=WriteKind.OVERWRITE, schema=rows)

    (removed,) = said(log, 1, "remove")
    gone = {"path": "p=a%2520b/x", "deletionTimestamp": NOW_MS, "dataChange": True, "extendedFileMetadata": True}
    assert removed == {**gone, "size": 77, **values}
    assert live_paths(log) == ["new"]


class Overtaken(Disk):
    """Another writer commits the version right before each of the first `races` links; notes what became durable."""

    def __init__(self, races: int) -> None:
        self.races, self.syncs = races, 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        super().sync(fd)

    def link(self, source: str, target: str, *, folder: int) -> None:
        if self.races:
            self.races -= 1
            Path(f"/proc/self/fd/{folder}", target).write_bytes(json_lines(add(f"theirs{self.races}")))
        super().link(source, target, folder=folder)


@pytest.mark.parametrize(("step_ms", "syncs"), [(1, 2), (1_000, 7)])
def test_a_commit_that_loses_versions_makes_its_bytes_durable_once_a_second(
    tmp_path: Path, step_ms: int, syncs: int
) -> None:
    a_table(LocalStore(str(tmp_path)))
    disk = Overtaken(races=5)
    log = log_of(LocalStore(str(tmp_path), disk=disk))
    times = iter(range(NOW_MS, NOW_MS + 1000 * step_ms, step_ms))
    known = log.load()
    ours = a_write(log, known, "ours")
    disk.syncs = 0

    outcome, _ = commit(log, known, ours, replace(still(), now_ms=lambda: next(times)))

    assert (outcome, disk.syncs) == (committed(6), syncs), "the bytes, then the entry of the last name"
    assert said(log, 6, "add")[0]["path"] == "ours"
    assert list((tmp_path / "_delta_log").glob(".*")) == []


def test_a_commit_that_ends_in_a_conflict_leaves_nothing_of_the_versions_that_it_lost(tmp_path: Path) -> None:
    a_table(LocalStore(str(tmp_path)))
    log = log_of(LocalStore(str(tmp_path), disk=Overtaken(races=1)))
    known = log.load()
    ours = a_write(log, known, "ours", kind=WriteKind.OVERWRITE)

    with pytest.raises(ConflictError, match="DELTA_CONCURRENT_APPEND"):
        commit(log, known, ours, still())

    assert list((tmp_path / "_delta_log").glob(".*")) == []
