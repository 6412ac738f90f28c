"""Every version checksum that our commits leave says what a replay of the log says, or is not there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.commits import commit_files, still
from support.faulty_store import Fault, FaultyStore
from support.logs import a_log, add, info, metadata, protocol, put, remove, txn
from tablefeed.delta.checkpoint.checksum import differences, parse_checksum
from tablefeed.delta.checkpoint.checksum_writer import FileCounts
from tablefeed.errors import StoreError
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.upkeep.checksums import begin_checksums, put_checksum, put_checksums_from
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import Commit, Version


def append(log: TableLog, *paths: str, **more: Any) -> None:
    def put_beside(state: Snapshot, entry: Commit, also_removed: FileCounts) -> None:
        put_checksum(state, entry, also_removed)

    commit_files(log, *paths, around=replace(still(), on_committed=put_beside), **more)


def checksum(log: TableLog, version: int) -> dict[str, Any] | None:
    name = f"_delta_log/{version:020d}.crc"
    return json.loads(log.store.read(name)) if log.store.exists(name) else None


def faults(log: TableLog, version: int) -> list[str]:
    """What the checksum of a version says otherwise than its replay."""
    snapshot = log.load(Version(version))
    parsed = parse_checksum(log.store.read(f"_delta_log/{version:020d}.crc"))
    values = checksum(log, version)
    assert parsed is not None
    assert values is not None
    rows = [row for batch in snapshot.live_files(with_stats=True) for row in batch.to_pylist()]
    size_bytes = sum(row["size_bytes"] for row in rows)
    found = list(differences(parsed, snapshot.facts, file_count=len(rows), size_bytes=size_bytes))
    txns = {app_id: each.txn_version for app_id, each in snapshot.facts.txns.items()}
    if {t["appId"]: t["version"] for t in values["setTransactions"]} != txns:
        found.append("setTransactions")
    if sum(values["fileSizeHistogram"]["totalBytes"]) != size_bytes:
        found.append("fileSizeHistogram")
    listed = sorted((file["path"], file.get("stats")) for file in values.get("allFiles", ()))
    if "allFiles" in values and listed != sorted((row["log_path"], row["stats"]) for row in rows):
        found.append("allFiles")
    return found


def test_a_table_that_we_make_has_a_checksum_from_its_first_version_on() -> None:
    log = a_log()
    append(log, "a", "b")
    append(log, "c", txn=("q", 1))
    append(log, "d", "e", kind=WriteKind.OVERWRITE)
    append(log)

    assert [faults(log, version) for version in range(4)] == [[], [], [], []]
    newest = checksum(log, 3)
    assert newest is not None
    assert (newest["numFiles"], newest["tableSizeBytes"]) == (2, 20)
    assert newest["setTransactions"] == [{"appId": "q", "version": 1, "lastUpdated": still().now_ms()}]
    assert newest["txnId"] == (log.commit(Version(3)) or Commit(version=Version(0), committed_at_ms=None)).info["txnId"]  # type: ignore[index]


def test_after_a_commit_without_a_checksum_there_is_none_until_the_next_checkpoint() -> None:
    log = a_log()
    append(log, "a")
    put(log.store, 1, [add("theirs"), info(engineInfo="another")])
    append(log, "b")
    append(log, "c")
    assert [checksum(log, version) is None for version in range(4)] == [False, True, True, True]

    snapshot = log.load(Version(2))
    put_checksums_from(snapshot, write_checkpoint(snapshot))

    assert checksum(log, 1) is None
    assert [faults(log, version) for version in (0, 2, 3)] == [[], [], []]
    append(log, "d")
    assert faults(log, 4) == []


def test_a_checksum_that_begins_anew_lists_the_statistics_of_files_in_a_checkpoint() -> None:
    log = a_log(v0=[protocol(), metadata(), add("a", stats='{"numRecords":1}')])
    write_checkpoint(log.load())
    put(log.store, 1, [add("b", stats='{"numRecords":2}')])

    begin_checksums(log.load())

    assert faults(log, 1) == []


def test_what_another_writer_committed_after_a_checkpoint_is_not_counted_on() -> None:
    log = a_log(v0=[protocol(), metadata(), add("a")])
    snapshot = log.load()
    put(log.store, 1, [add("a", data_change=False), info(engineInfo="another")])

    put_checksums_from(snapshot, write_checkpoint(snapshot))

    assert faults(log, 0) == []
    assert checksum(log, 1) is None


def test_a_checksum_that_stands_is_not_overwritten() -> None:
    log = a_log()
    append(log, "a")
    append(log, "b")
    theirs = json.dumps({**(checksum(log, 1) or {}), "txnId": "theirs"}).encode()
    log.store.replace("_delta_log/00000000000000000001.crc", theirs)

    entry = log.commit(Version(1))
    assert entry is not None
    put_checksum(log.load(), entry)

    assert log.store.read("_delta_log/00000000000000000001.crc") == theirs


@pytest.mark.parametrize("damage", [b"", b"{}", b"no json", None], ids=["empty", "{}", "no json", "another table's"])
def test_nothing_is_counted_on_from_a_checksum_that_is_damaged_or_of_the_table_before(damage: bytes | None) -> None:
    log = a_log()
    append(log, "a")
    if damage is None:
        put(log.store, 0, [protocol(), metadata(table_id="another"), add("x", size=77)])
    else:
        log.store.replace("_delta_log/00000000000000000000.crc", damage)

    append(log, "b")

    assert checksum(log, 1) is None


def test_what_a_checksum_costs_does_not_grow_with_the_log() -> None:
    counts = []
    for commits in (2, 60):
        log = a_log()
        for n in range(commits):
            append(log, f"f{n}")
        snapshot, entry = log.load(), log.commit(Version(commits - 1))
        assert entry is not None
        store = FaultyStore(log.store)
        log.store = store
        put_checksum(snapshot, entry)
        counts.append([(call.operation, call.name[-4:]) for call in store.calls])

    assert counts[0] == counts[1] == [("read", ".crc"), ("put_if_absent", ".crc")]


steps = st.lists(
    st.tuples(st.sampled_from(["append", "overwrite", "theirs", "checkpoint"]), st.integers(0, 30)), max_size=8
)


@given(steps=steps)
def test_no_checksum_is_wrong_whoever_commits_between(steps: list[tuple[str, int]]) -> None:
    log = a_log()
    append(log, "first")
    for number, (step, files) in enumerate(steps):
        paths = [f"{number}-{n}" for n in range(files)]
        newest = log.load()
        match step:
            case "append":
                append(log, *paths, txn=("q", number))
            case "overwrite":
                append(log, *paths, kind=WriteKind.OVERWRITE)
            case "theirs":
                gone = [path for batch in newest.live_files() for path in batch["log_path"].to_pylist()][:1]
                actions = [add("first", data_change=False), *(add(p) for p in paths), *(remove(p) for p in gone[1:])]
                put(log.store, newest.version + 1, [*actions, txn("theirs", number)])
            case "checkpoint":
                put_checksums_from(newest, write_checkpoint(newest))

    there = [version for version in range(log.load().version + 1) if checksum(log, version) is not None]
    assert 0 in there
    assert {version: found for version in there if (found := faults(log, version))} == {}


def test_a_store_that_fails_is_for_the_caller_to_hear() -> None:
    log = a_log()
    append(log, "a")
    entry = log.commit(Version(0))
    assert entry is not None
    snapshot = log.load()
    log.store.delete("_delta_log/00000000000000000000.crc")
    log.store = FaultyStore(log.store, faults=[Fault(operation="put_if_absent")])

    with pytest.raises(StoreError, match="on purpose"):
        put_checksum(snapshot, entry)
