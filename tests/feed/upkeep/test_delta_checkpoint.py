"""Checkpoints of ours: what is in them, that they stand whole or not at all, and that others read them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tablefeed
from support.checkpoints import damage
from support.faulty_store import Fault, FaultyStore
from support.logs import (
    Action,
    a_log,
    add,
    col,
    commit_path,
    info,
    live_paths,
    log_of,
    meta,
    metadata,
    protocol,
    put,
    txn,
)
from tablefeed.delta.checkpoint.last_checkpoint import parse_last_checkpoint
from tablefeed.errors import StoreError, TableReplacedError
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.open_log import open_maintained
from tablefeed.feed.upkeep import delta_checkpoint
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.model.actions import Version
from tablefeed.store.memory import MemoryStore

DAY_MS = 86_400_000
NOW_MS = 100 * DAY_MS
V2 = {"readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint"]}
V2_POLICY = {"delta.checkpointPolicy": "v2"}
VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 36, "cardinality": 2}


def a_store() -> MemoryStore:
    return MemoryStore("t", now_ms=lambda: NOW_MS)


def remove(path: str, *, at_ms: int | None = NOW_MS, **more: object) -> Action:
    return {"remove": {"path": path, "dataChange": True, "deletionTimestamp": at_ms, **more}}


def write(log: DeltaLog, **shape: Any) -> None:
    write_checkpoint(log.load(), **shape)


def log_names(log: DeltaLog, containing: str) -> list[str]:
    return [entry.name for entry in log.store.list("_delta_log") if containing in entry.name]


def rows_of(log: DeltaLog, name: str) -> list[tuple[str, dict[str, Any]]]:
    """The actions of a Parquet file of the log, in order, each with its kind; what is null is left out."""
    table = pq.read_table(io.BytesIO(log.store.read(f"_delta_log/{name}")))
    return [(kind, _present(value)) for row in table.to_pylist() for kind, value in row.items() if value is not None]


def _present(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _present(member) for name, member in value.items() if member is not None}
    return dict(value) if isinstance(value, list) and value and isinstance(value[0], tuple) else value


def classic(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


def test_a_checkpoint_holds_the_facts_the_live_files_by_path_and_the_tombstones_that_are_young() -> None:
    week_ago = NOW_MS - 7 * DAY_MS
    log = a_log(
        a_store(),
        v0=[protocol(), metadata(), info(a=1), txn("q", 1), add("b", stats='{"numRecords":3}', tags={"k": "v"})],
        v1=[add("c"), add("a", deletionVector=VECTOR, baseRowId=7, clusteringProvider="x"), txn("q", 2), txn("a", 1)],
        v2=[remove("c", size=10, partitionValues={}, extendedFileMetadata=True, tags={"k": "v"}, stats="{}")],
        v3=[remove("old", at_ms=week_ago), remove("young", at_ms=week_ago + 1), remove("when", at_ms=None)],
    )

    write(log)

    rows = rows_of(log, classic(3))
    assert [kind for kind, _ in rows] == ["protocol", "metaData", "txn", "txn", "add", "add", "remove", "remove"]
    assert [value for _, value in rows[2:4]] == [{"appId": "a", "version": 1}, {"appId": "q", "version": 2}]
    added = {"partitionValues": [], "size": 10, "modificationTime": 0, "dataChange": False}
    told = {"tags": {"k": "v"}, "stats": '{"numRecords":3}', "stats_parsed": {"numRecords": 3}}
    gone = {"deletionTimestamp": NOW_MS, "dataChange": False, "extendedFileMetadata": True}
    assert [value for _, value in rows[4:7]] == [
        {"path": "a", **added, "deletionVector": VECTOR, "baseRowId": 7, "clusteringProvider": "x"},
        {"path": "b", **added, **told},
        {"path": "c", **gone, "partitionValues": [], "size": 10},
    ]
    assert rows[7][1]["path"] == "young"


def test_txns_that_are_expired_are_left_out() -> None:
    kept = {"txn": {"appId": "kept", "version": 1, "lastUpdated": NOW_MS - DAY_MS + 1}}
    gone = {"txn": {"appId": "gone", "version": 1, "lastUpdated": NOW_MS - DAY_MS}}
    properties = {"delta.setTransactionRetentionDuration": "1 day"}
    log = a_log(a_store(), v0=[protocol(), metadata(configuration=properties), kept, gone, txn("no time", 1)])

    write(log)

    assert [value["appId"] for kind, value in rows_of(log, classic(0)) if kind == "txn"] == ["kept"]


@pytest.mark.parametrize("ahead_ms", [30 * DAY_MS, -30 * DAY_MS], ids=["a clock that is ahead", "a copied log"])
def test_of_the_commits_own_time_and_that_of_its_file_the_earlier_says_what_is_expired(ahead_ms: int) -> None:
    properties = {"delta.enableInCommitTimestamps": "true", "delta.setTransactionRetentionDuration": "1 day"}
    at_ms = min(NOW_MS, NOW_MS + ahead_ms)
    log = a_log(
        a_store(),
        v0=[
            info(inCommitTimestamp=NOW_MS + ahead_ms),
            protocol(3, 7, readerFeatures=[], writerFeatures=["inCommitTimestamp"]),
            metadata(configuration=properties),
            {"txn": {"appId": "kept", "version": 1, "lastUpdated": at_ms}},
            remove("kept", at_ms=at_ms),
        ],
    )

    write(log)

    rows = rows_of(log, classic(0))
    assert [(kind, value.get("appId", value.get("path"))) for kind, value in rows[2:]] == [
        ("txn", "kept"),
        ("remove", "kept"),
    ]


def test_the_next_checkpoint_goes_on_from_the_one_before_tombstones_and_all() -> None:
    log = a_log(a_store(), v0=[protocol(), metadata(), add("a"), add("b"), add("c")], v1=[remove("a"), remove("b")])
    write(log)
    for version in (0, 1):
        log.store.delete(commit_path(version))
    put(log.store, 2, [add("b"), remove("c"), add("d")])

    write(log)

    found = [(kind, value["path"]) for kind, value in rows_of(log, classic(2)) if "path" in value]
    assert found == [("add", "b"), ("add", "d"), ("remove", "a"), ("remove", "c")]


def test_the_caller_is_told_how_much_of_the_log_is_read_and_written() -> None:
    log = log_of(a_store())
    put(log.store, 0, [protocol(), metadata(), add("a"), add("b")])
    put(log.store, 1, [remove("a")])
    heard: list[str] = []

    write_checkpoint(log.load(), on_progress=lambda progress: heard.append(str(progress)))

    assert heard[-3:] == ["log entries read: 2", "log entries written: 1 of 2", "log entries written: 2 of 2"]


def test_no_row_group_has_both_live_files_and_tombstones() -> None:
    log = a_log(a_store(), v0=[protocol(), metadata(), add("a"), add("b"), add("c")], v1=[remove("b")])

    write(log)

    with log.store.open_input(f"_delta_log/{classic(1)}") as source:
        parquet = pq.ParquetFile(source)
        groups = [parquet.read_row_group(n).to_pylist() for n in range(parquet.num_row_groups)]
    kinds = [{kind for row in group for kind, value in row.items() if value is not None} for group in groups]
    assert kinds == [{"protocol", "metaData"}, {"add"}, {"remove"}]


@pytest.mark.parametrize(
    ("properties", "has_text", "has_struct"),
    [
        ({}, True, True),
        ({"delta.checkpoint.writeStatsAsStruct": "false"}, True, False),
        ({"delta.checkpoint.writeStatsAsJson": "false"}, False, True),
    ],
)
def test_statistics_are_kept_as_the_tables_properties_say(
    *, properties: Mapping[str, str], has_text: bool, has_struct: bool
) -> None:
    stats = '{"numRecords":1,"minValues":{"id":5},"maxValues":{"id":5},"nullCount":{"id":0}}'
    log = a_log(v0=[protocol(), metadata(configuration=properties), add("a", stats=stats)])

    write(log)

    ((_, found),) = [row for row in rows_of(log, classic(0)) if row[0] == "add"]
    assert found.get("stats") == (stats if has_text else None)
    assert found.get("stats_parsed") == (json.loads(stats) if has_struct else None)
    put(log.store, 1, [txn("q", 1)])
    log.store.delete(commit_path(0))
    (batch,) = [batch for batch in log.load().live_files(with_stats=True) if batch.num_rows]
    assert batch["stats"].to_pylist() == [stats]


def test_parts_are_cut_by_sparks_hash_of_the_path_so_that_who_races_writes_the_same() -> None:
    versions = {"v0": [protocol(), metadata(), *(add(f"f{n}") for n in range(20))], "v1": [remove("f3"), txn("q", 1)]}
    one, other = a_log(a_store(), **versions), a_log(a_store(), **versions)
    write_checkpoint(other.load(version=Version(0)))  # which the second goes on from

    for log in (one, other):
        write(log, part_actions=6)

    parts = [f"{1:020d}.checkpoint.{part:010d}.{4:010d}.parquet" for part in (1, 2, 3, 4)]
    assert log_names(one, f".{4:010d}.") == parts
    for name in parts:
        assert one.store.read(f"_delta_log/{name}") == other.store.read(f"_delta_log/{name}")
    assert [kind for kind, _ in rows_of(one, parts[2])][:3] == ["protocol", "metaData", "txn"]  # 42 % 4
    assert live_paths(log_of(one.store)) == sorted(f"f{n}" for n in range(20) if n != 3)


def test_a_v2_checkpoint_has_its_files_in_sidecars() -> None:
    log = a_log(
        a_store(),
        v0=[protocol(3, 7, **V2), metadata(configuration=V2_POLICY), *(add(f"f{n}") for n in range(5))],
        v1=[remove("f1"), txn("q", 1)],
    )

    write(log, part_actions=2)

    (name,) = log_names(log, ".checkpoint.")
    assert name.endswith(".json")
    sidecars = [entry.name for entry in log.store.list("_delta_log/_sidecars")]
    paths = [[value["path"] for _, value in rows_of(log, f"_sidecars/{sidecar}")] for sidecar in sidecars]
    assert paths == [["f0", "f2"], ["f3", "f4"], ["f1"]]
    actions = [json.loads(line) for line in log.store.read(f"_delta_log/{name}").splitlines()]
    (tags,) = (action["checkpointMetadata"]["tags"] for action in actions if "checkpointMetadata" in action)
    assert (tags["sidecarNumActions"], tags["numOfAddFiles"]) == ("5", "4")
    assert [column["name"] for column in json.loads(tags["sidecarFileSchema"])["fields"]] == ["add", "remove"]
    for version in (0, 1):
        log.store.delete(commit_path(version))
    put(log.store, 2, [txn("q", 2)])
    assert live_paths(log) == ["f0", "f2", "f3", "f4"]
    hint = json.loads(log.store.read("_delta_log/_last_checkpoint"))
    assert (hint["version"], hint["size"], hint["numOfAddFiles"]) == (1, 12, 4)
    assert hint["v2Checkpoint"]["path"] == name
    assert [sidecar["path"] for sidecar in hint["v2Checkpoint"]["sidecarFiles"]] == sidecars


@pytest.mark.parametrize(
    "first",
    [[protocol(3, 7, **V2), metadata()], [protocol(), metadata(configuration=V2_POLICY)]],
    ids=["not wanted", "not known"],
)
def test_a_v2_checkpoint_must_be_known_and_wanted_and_who_knows_it_never_has_parts(first: list[Action]) -> None:
    log = a_log(v0=[*first, *(add(f"f{n}") for n in range(5))])

    write(log, part_actions=2 if "readerFeatures" in first[0]["protocol"] else None)

    assert log_names(log, ".checkpoint.") == [classic(0)]


def test_the_last_checkpoint_file_tells_of_it_and_fits_its_checksum() -> None:
    log = a_log(a_store(), v0=[protocol(), metadata(), add("a"), add("b")], v1=[remove("a"), txn("q", 1)])

    write(log)

    data = log.store.read("_delta_log/_last_checkpoint")
    values = json.loads(data)
    schema, checksum = values.pop("checkpointSchema"), values.pop("checksum")
    size_bytes = len(log.store.read(f"_delta_log/{classic(1)}"))
    assert values == {"version": 1, "size": 5, "sizeInBytes": size_bytes, "numOfAddFiles": 1}
    members = [member["name"] for member in schema["fields"]]
    assert members == ["txn", "add", "remove", "metaData", "protocol", "domainMetadata"]
    hint = parse_last_checkpoint(data)
    assert hint is not None
    assert hint.version == 1
    assert parse_last_checkpoint(data.replace(checksum.encode(), b"0" * 32)) is None


def test_the_last_checkpoint_file_never_goes_back() -> None:
    log = a_log(v0=[protocol(), metadata()], v1=[add("a")])
    log.store.replace("_delta_log/_last_checkpoint", b'{"version":7,"size":1}')

    write(log)

    assert json.loads(log.store.read("_delta_log/_last_checkpoint"))["version"] == 7


def test_a_schema_that_is_long_is_left_out_of_the_last_checkpoint_file() -> None:
    properties = {"delta.dataSkippingNumIndexedCols": "-1"}
    log = a_log(v0=[protocol(), meta(*(col(f"c{n}") for n in range(200)), configuration=properties)])

    write(log)

    assert "checkpointSchema" not in json.loads(log.store.read("_delta_log/_last_checkpoint"))


def test_the_checkpoint_of_another_writer_is_not_taken_back_with_ours() -> None:
    log = a_log(a_store(), v0=[protocol(), metadata()], v1=[add("a")])
    snapshot, steps = log.load(), list[None]()
    write_checkpoint(snapshot, before_step=lambda: steps.append(None))
    log.store.delete("_delta_log/_last_checkpoint")
    left = iter(steps[1:])

    def replaced_before_the_last_step() -> None:
        if next(left, steps) is steps:
            put(log.store, 1, [add("another")])

    with pytest.raises(TableReplacedError):
        write_checkpoint(snapshot, before_step=replaced_before_the_last_step)

    assert log_names(log, "checkpoint") == [classic(1)]


@pytest.mark.parametrize("policy", [{}, V2_POLICY], ids=["classic", "v2"])
def test_a_checkpoint_that_breaks_off_at_any_file_is_none_and_the_next_attempt_makes_it(
    policy: Mapping[str, str],
) -> None:
    versions = {"v0": [protocol(3, 7, **V2) if policy else protocol(), metadata(configuration=policy)]}
    versions |= {"v1": [add(f"f{n}") for n in range(6)]}
    for at in (1, 2, 3):
        inner = a_log(a_store(), **versions).store
        faulty = log_of(FaultyStore(inner, faults=[Fault(operation="publish", at=at)]))
        with pytest.raises(StoreError, match="on purpose"):
            write(faulty, part_actions=2)

        log = log_of(inner)
        assert log.segment().checkpoint == ()
        assert not inner.exists("_delta_log/_last_checkpoint")
        assert live_paths(log) == [f"f{n}" for n in range(6)]
        write(log, part_actions=2)
        assert log.segment().checkpoint != ()
        assert live_paths(log) == [f"f{n}" for n in range(6)]


@pytest.mark.parametrize("damaged", [lambda _: b"PAR1 no more PAR1", partial(damage, column="add.path", row_group=1)])
def test_a_damaged_checkpoint_is_passed_over_however_late_it_shows_and_no_file_is_there_twice(
    damaged: Callable[[bytes], bytes],
) -> None:
    log = a_log(a_store(), v0=[protocol(), metadata(), add("a")], v1=[add("b"), remove("gone")])
    name = f"_delta_log/{classic(0)}"
    write_checkpoint(log.load(version=Version(0)))
    log.store.replace(name, damaged(log.store.read(name)))

    write(log)

    assert [value["path"] for kind, value in rows_of(log, classic(1)) if "path" in value] == ["a", "b", "gone"]


def test_a_table_of_many_files_is_sorted_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_checkpoint, "_ROW_GROUP", 100)
    monkeypatch.setattr("tablefeed.feed.snapshot.sorted_files.RUN_BYTES", 1)
    log = a_log(v0=[protocol(), metadata(), *(add(f"f{n:04}") for n in range(950))], v1=[remove("f0005")])

    write(log)

    paths = [value["path"] for kind, value in rows_of(log, classic(1)) if kind == "add"]
    assert paths == [f"f{n:04}" for n in range(950) if n != 5]
    assert live_paths(log) == paths


FILES = [f"p%3D{n}/f" for n in range(6)]


@st.composite
def histories(draw: st.DrawFn) -> list[list[Action]]:
    """Commits that add files, also again, with another vector, and remove them, also those that are not there."""
    files, stats = st.sampled_from(FILES), [None, '{"numRecords":1}', '{"numRecords":2,"minValues":{"id":null}}']
    vectors = st.integers(0, 2).map(lambda offset: {**VECTOR, "offset": offset} if offset else None)
    an_add = st.builds(add, files, deletionVector=vectors, stats=st.sampled_from(stats))
    a_remove = st.builds(remove, files, deletionVector=vectors)
    a_txn = st.builds(txn, st.sampled_from("ab"), st.integers(0, 9))
    return draw(st.lists(st.lists(an_add | a_remove | a_txn, min_size=1, max_size=5), min_size=1, max_size=8))


def state_of(log: DeltaLog) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    snapshot = log.load()
    rows = [row for batch in snapshot.live_files(with_stats=True) for row in batch.to_pylist()]
    for row in rows:
        del row["data_change"]
    return sorted(rows, key=lambda row: str(row["key"])), snapshot.facts.txns


@given(history=histories(), data=st.data())
def test_a_table_is_the_same_from_its_checkpoints_as_from_its_commits(
    history: Sequence[list[Action]], data: st.DataObject
) -> None:
    first = [protocol(3, 7, **V2), metadata(configuration=data.draw(st.sampled_from([{}, V2_POLICY])))]
    log, plain = (a_log(a_store(), v0=first) for _ in range(2))
    tombstones: dict[str, bool] = {}
    for version, actions in enumerate(history, 1):
        put(log.store, version, actions)
        put(plain.store, version, actions)
        if data.draw(st.booleans()):
            write(log, part_actions=data.draw(st.sampled_from([None, 2])))
            for earlier in range(version):
                log.store.delete(commit_path(earlier))
    write(log)
    log.store.delete(commit_path(len(history)))
    assert state_of(log) == state_of(plain)

    # And what was removed is told to VACUUM.
    for actions in history:
        for action in actions:
            for kind in ("add", "remove"):
                if kind in action:
                    tombstones[_key(action[kind])] = kind == "remove"
    hint = json.loads(log.store.read("_delta_log/_last_checkpoint"))
    files = [f"_sidecars/{sidecar['path']}" for sidecar in hint.get("v2Checkpoint", {}).get("sidecarFiles", [])]
    (newest,) = log.segment().checkpoint
    files = files if newest.name.endswith(".json") else [newest.name]
    written = [value for name in files for kind, value in rows_of(log, name) if kind == "remove"]
    assert sorted(map(_key, written)) == sorted(key for key, is_removed in tombstones.items() if is_removed)


def _key(file: Mapping[str, Any]) -> str:
    return f"{file['path']} {(file.get('deletionVector') or {}).get('offset')}"


ROWS = pa.table({"id": [1, 2, 3], "p": ["a", "b c", None], "d": pa.array([1, None, 3], pa.decimal128(10, 2))})


@pytest.mark.parametrize(
    ("properties", "shape"),
    [({}, {}), ({}, {"part_actions": 2}), (V2_POLICY, {"part_actions": 2})],
    ids=str,
)
def test_another_reader_takes_our_checkpoint_for_the_table(
    tmp_path: Path, properties: dict[str, str], shape: dict[str, Any]
) -> None:
    for mode in ("append", "append", "overwrite", "append"):
        tablefeed.append(tmp_path, ROWS, mode=mode, partition_by="p", properties=properties)
    log = open_maintained(str(tmp_path))
    write(log, **shape)
    for version in range(4):
        (tmp_path / commit_path(version)).unlink()

    theirs = deltalake.DeltaTable(str(tmp_path))

    assert theirs.version() == 3
    assert len(theirs.file_uris()) == 6
    if not properties:  # its Arrow reader refuses tables that know V2 checkpoints, whichever they have
        assert sorted(theirs.to_pyarrow_table()["id"].to_pylist()) == [1, 1, 2, 2, 3, 3]


KILLED = """
import os, sys
from tablefeed.delta.checkpoint.writing import CheckpointLayout
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.feed.snapshot.open_log import open_maintained

left = int(sys.argv[2])
file_rows = CheckpointLayout.file_rows

def dies(*arguments):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), 9)
    return file_rows(*arguments)

CheckpointLayout.file_rows = dies
write_checkpoint(open_maintained(sys.argv[1]).load(), part_actions=2)
"""


@pytest.mark.parametrize("properties", [{}, V2_POLICY], ids=str)
@pytest.mark.parametrize("at", [1, 2])
def test_a_process_that_is_killed_while_it_writes_leaves_nothing_that_anyone_sees(
    tmp_path: Path, properties: dict[str, str], at: int
) -> None:
    for _ in range(2):
        tablefeed.append(tmp_path, ROWS, partition_by="p", properties=properties)

    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(at)], check=False, timeout=120)

    assert ended.returncode == -9
    log = open_maintained(str(tmp_path))
    assert log.segment().checkpoint == ()
    assert not log.store.exists("_delta_log/_last_checkpoint")
    assert len(live_paths(log)) == len(deltalake.DeltaTable(str(tmp_path)).file_uris()) == 6
    write(log, part_actions=2)
    assert log.segment().checkpoint != ()
    assert len(live_paths(log)) == len(deltalake.DeltaTable(str(tmp_path)).file_uris()) == 6
