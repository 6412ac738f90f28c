"""`tablefeed.vacuum`: what no version needs goes when it is old; all else stays, whoever asks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

import tablefeed
from support.checkpoints import damage
from support.faulty_store import Fault, FaultyStore
from support.logs import LONG_ID, VECTOR, VECTOR_FILE, Action, add, commit_path, log_of, metadata, protocol, put, remove
from support.maintained import delete_rows, ids, live
from support.recorded import cdc
from tablefeed.errors import ConflictError, IllegalOptionError, LogError, UnsupportedFeatureError
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.upkeep import vacuum as module
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.feed.upkeep.vacuum import Vacuumed
from tablefeed.model.actions import Version
from tablefeed.store import LocalStore
from tablefeed.store.memory import MemoryStore

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def age(table: Path, *paths: str, days: float = 30) -> None:
    then = time.time() - days * 86_400
    for path in paths:
        os.utime(table / path, (then, then))


def old(table: Path, path: str, *, days: float = 30) -> str:
    (table / path).parent.mkdir(parents=True, exist_ok=True)
    (table / path).write_bytes(b"orphan")
    age(table, path, days=days)
    return path


def names(outcome: Vacuumed) -> list[str]:
    return sorted(outcome.paths.to_pylist())


def a_table(table: Path, **more: Any) -> None:
    for n in range(2):
        tablefeed.append(table, pa.table({"id": [n]}), **more)


def overwritten(table: Path, **more: Any) -> list[str]:
    """A table of one file; gives the two that were removed for it, which are old."""
    a_table(table, **more)
    removed = live(table)
    tablefeed.append(table, pa.table({"id": [9]}), mode="overwrite")
    age(table, *removed)
    return removed


def everything(table: Path, **more: Any) -> Vacuumed:
    return tablefeed.vacuum(table, retention_hours=0, allow_short_retention=True, **more)


def vacuumed(log: DeltaLog | Path, *, retention_ms: int | None = 0, now_ms: int = NOW_MS) -> Vacuumed:
    """A vacuum at a time of the test's choice."""
    log = log_of(LocalStore(str(log))) if isinstance(log, Path) else log
    return module.vacuumed(log, retention_ms=retention_ms, allow_short=True, dry_run=False, now_ms=now_ms)


# --- what goes -------------------------------------------------------------------------------------------------------


def test_an_old_file_that_nobody_names_goes_unless_it_is_a_dry_run_and_a_young_one_stays(tmp_path: Path) -> None:
    a_table(tmp_path)
    old(tmp_path, "part-1.parquet", days=8)
    old(tmp_path, "p=a/part-2.parquet", days=8)
    old(tmp_path, "part-3.parquet", days=6.9)

    assert names(tablefeed.vacuum(tmp_path, dry_run=True)) == ["p=a/part-2.parquet", "part-1.parquet"]
    assert (tmp_path / "part-1.parquet").exists()
    heard: list[str] = []
    outcome = tablefeed.vacuum(tmp_path, on_progress=lambda progress: heard.append(str(progress)))

    assert names(outcome) == ["p=a/part-2.parquet", "part-1.parquet"]
    assert heard == ["files listed: 5", "files deleted: 2 of 2"]
    assert (outcome.file_count, outcome.size_bytes, outcome.dry_run) == (2, 12, False)
    assert [path.name for path in tmp_path.glob("part-?.parquet")] == ["part-3.parquet"]
    assert ids(tmp_path) == [0, 1]


def test_live_files_stay_however_old_they_are_and_whatever_the_log_and_the_disk_call_them(tmp_path: Path) -> None:
    for value in ("a b", "ü/%=", "x:y"):
        tablefeed.append(tmp_path, pa.table({"id": [1], "p": [value]}), partition_by="p")
    age(tmp_path, *live(tmp_path), days=3000)

    assert names(everything(tmp_path)) == []
    assert len(ids(tmp_path)) == DeltaTable(str(tmp_path)).to_pyarrow_table().num_rows == 3


def test_a_removed_file_stays_until_its_retention_is_over_then_it_goes(tmp_path: Path) -> None:
    removed = overwritten(tmp_path)

    assert names(tablefeed.vacuum(tmp_path)) == []
    assert names(vacuumed(tmp_path, retention_ms=None, now_ms=now_ms() + 8 * DAY_MS)) == removed
    assert ids(tmp_path) == [9]


def test_tombstones_in_a_checkpoint_speak_too(tmp_path: Path) -> None:
    overwritten(tmp_path)
    DeltaTable(str(tmp_path)).create_checkpoint()
    for version in range(3):
        (tmp_path / commit_path(version)).unlink()

    assert names(tablefeed.vacuum(tmp_path)) == []


def test_a_removed_file_stays_where_a_compaction_is_passed_over_for_its_commits(tmp_path: Path) -> None:
    removed = overwritten(tmp_path)
    tablefeed.append(tmp_path, pa.table({"id": [10]}))
    log = log_of(LocalStore(str(tmp_path)))
    actions = [protocol(), metadata(), add(removed[0]), add(removed[0])]
    log.store.replace(f"_delta_log/{0:020d}.{2:020d}.compacted.json", b"\n".join(map(orjson.dumps, actions)))

    assert names(tablefeed.vacuum(tmp_path)) == []
    assert ids(tmp_path) == [9, 10]


def test_a_longer_retention_than_the_tables_keeps_what_tombstones_no_longer_tell_of(tmp_path: Path) -> None:
    removed = overwritten(tmp_path, properties={"delta.deletedFileRetentionDuration": "interval 0 hours"})
    DeltaTable(str(tmp_path)).create_checkpoint()

    assert names(tablefeed.vacuum(tmp_path, retention_hours=24)) == []
    assert names(tablefeed.vacuum(tmp_path)) == removed


# --- what is left alone ----------------------------------------------------------------------------------------------


def test_hidden_names_stay_but_for_changes_indexes_and_partitions(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "_p": ["a"]})
    tablefeed.append(tmp_path, rows, partition_by="_p")
    for path in ("_spark_metadata/1", "_x", ".hidden", ".tmp/x", "metadata/v1.json", "p=a/_x", "_other=1/x"):
        old(tmp_path, path)
    gone = [old(tmp_path, path) for path in ("_change_data/c.parquet", "_delta_index/i", "_p=a/x", "_p=a/_p=b/x")]
    old(tmp_path, "_delta_log/00000000000000000000.crc2")

    assert names(tablefeed.vacuum(tmp_path)) == sorted(gone)


def test_a_table_in_a_folder_of_this_one_is_left_alone(tmp_path: Path) -> None:
    a_table(tmp_path)
    a_table(tmp_path / "inner" / "table")
    age(tmp_path, *(f"inner/table/{path}" for path in live(tmp_path / "inner" / "table")))
    old(tmp_path, "inner/table/orphan")
    old(tmp_path, "inner/orphan")

    assert names(tablefeed.vacuum(tmp_path)) == ["inner/orphan"]
    assert ids(tmp_path / "inner" / "table") == [0, 1]


def test_a_table_of_indextables_in_a_folder_of_this_one_is_left_alone(tmp_path: Path) -> None:
    a_table(tmp_path)
    old(tmp_path, "inner/_transaction_log/00000000000000000000.json")
    old(tmp_path, "inner/day=1/part-0.split")
    old(tmp_path, "day=1/part-1.split")

    assert names(tablefeed.vacuum(tmp_path)) == ["day=1/part-1.split"]


def test_no_link_is_followed(tmp_path: Path) -> None:
    a_table(tmp_path / "table")
    old(tmp_path, "elsewhere/precious")
    (tmp_path / "table" / "link").symlink_to(tmp_path / "elsewhere")

    assert names(everything(tmp_path / "table")) == []


def test_changes_of_a_young_commit_stay_however_long_their_writer_took(tmp_path: Path) -> None:
    put(LocalStore(str(tmp_path)), 0, [protocol(1, 4), metadata(), cdc("_change_data/c.parquet")])
    old(tmp_path, "_change_data/c.parquet")
    old(tmp_path, "_change_data/d.parquet")

    assert names(tablefeed.vacuum(tmp_path)) == ["_change_data/d.parquet"]
    assert names(vacuumed(tmp_path, retention_ms=None, now_ms=now_ms() + 8 * DAY_MS)) == ["_change_data/c.parquet"]


WITH_VECTORS = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"])


def test_the_file_of_a_deletion_vector_stays_while_its_data_file_is_live(tmp_path: Path) -> None:
    put(LocalStore(str(tmp_path)), 0, [WITH_VECTORS, metadata(), add("a", deletionVector=VECTOR)])
    for path in ("a", VECTOR_FILE, "ab/deletion_vector_11111111-8816-431a-aaf6-d3fe2512ff61.bin"):
        old(tmp_path, path)

    assert names(everything(tmp_path)) == ["ab/deletion_vector_11111111-8816-431a-aaf6-d3fe2512ff61.bin"]


def test_a_deletion_vector_that_says_no_place_keeps_everything(tmp_path: Path) -> None:
    put(LocalStore(str(tmp_path)), 0, [WITH_VECTORS, metadata(), add("a", deletionVector=VECTOR | {"offset": -1})])
    old(tmp_path, "orphan")

    with pytest.raises(LogError, match="deletion vector"):
        everything(tmp_path)
    assert (tmp_path / "orphan").exists()


def test_a_file_deleted_by_vector_then_folded_goes_with_its_retention(tmp_path: Path) -> None:
    for n in range(2):
        rows = pa.table({"id": [n, n + 10]})
        tablefeed.append(tmp_path, rows, properties={"delta.enableDeletionVectors": "true"})
    paths = live(tmp_path)
    delete_rows(tmp_path, paths[0], 0)
    age(tmp_path, *paths)

    assert names(everything(tmp_path)) == []
    tablefeed.optimize(tmp_path)
    assert names(vacuumed(tmp_path, now_ms=now_ms() + 1)) == paths
    assert len(ids(tmp_path)) == 3


@pytest.mark.parametrize(
    "spelling", ["file://{table}/{path}", "{table}/{path}", "file:{table}/./{path}", "{linked}/{path}"]
)
def test_a_file_that_the_log_names_absolutely_stays_however_the_table_is_reached(tmp_path: Path, spelling: str) -> None:
    table, linked = tmp_path / "table", tmp_path / "linked"
    table.mkdir()
    linked.symlink_to(table)
    path = "p=a/part-1.parquet"
    named = spelling.format(table=table, linked=linked, path=path)
    put(LocalStore(str(table)), 0, [protocol(), metadata(), add(named)])
    old(table, path)

    assert names(everything(table)) == []
    assert names(everything(linked)) == []


def test_a_disk_that_lists_names_in_other_code_points_loses_nothing() -> None:
    store = MemoryStore("orders", now_ms=lambda: NOW_MS - 30 * DAY_MS)
    put(store, 0, [protocol(), metadata(LONG_ID), add("\u00fc.parquet")])
    store.replace("u\u0308.parquet", b"rows")

    assert names(vacuumed(log_of(store))) == []


# --- who may ---------------------------------------------------------------------------------------------------------


def test_a_retention_below_the_tables_is_refused_unless_it_is_meant(tmp_path: Path) -> None:
    a_table(tmp_path)
    old(tmp_path, "orphan", days=2)

    with pytest.raises(IllegalOptionError, match=r"DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT.*168"):
        tablefeed.vacuum(tmp_path, retention_hours=24)
    assert names(tablefeed.vacuum(tmp_path, retention_hours=24, allow_short_retention=True)) == ["orphan"]


@pytest.mark.parametrize("hours", [-1, float("nan"), float("inf"), "7", True])
def test_a_retention_that_is_none_is_refused(tmp_path: Path, hours: Any) -> None:
    a_table(tmp_path)

    with pytest.raises(IllegalOptionError, match="retention_hours"):
        tablefeed.vacuum(tmp_path, retention_hours=hours)


def test_a_retention_that_cannot_be_read_keeps_everything(tmp_path: Path) -> None:
    unread = metadata(configuration={"delta.deletedFileRetentionDuration": "interval 1 month"})
    put(LocalStore(str(tmp_path)), 0, [protocol(), unread])
    old(tmp_path, "orphan", days=3000)

    assert names(tablefeed.vacuum(tmp_path)) == []


def test_a_table_that_cannot_be_written_is_not_vacuumed(tmp_path: Path) -> None:
    features = protocol(3, 7, readerFeatures=["vacuumProtocolCheck"], writerFeatures=["vacuumProtocolCheck", "newest"])
    put(LocalStore(str(tmp_path)), 0, [features, metadata()])
    old(tmp_path, "orphan")

    with pytest.raises(UnsupportedFeatureError, match="newest"):
        tablefeed.vacuum(tmp_path)


# --- writers meanwhile -----------------------------------------------------------------------------------------------


def raced(store: MemoryStore, rival: Callable[[], None]) -> DeltaLog:
    """A log whose folders are listed just after a rival was there."""
    return log_of(FaultyStore(store, faults=[Fault(operation="list", at=4, when="after", name="", hook=rival)]))


def a_memory_table() -> MemoryStore:
    store = MemoryStore("orders", now_ms=lambda: NOW_MS - 30 * DAY_MS)
    put(store, 0, [protocol(), metadata(LONG_ID)])
    store.replace("slow.parquet", b"rows")
    store.replace("orphan.parquet", b"rows")
    return store


def test_what_a_slow_writer_commits_while_folders_are_listed_stays() -> None:
    store = a_memory_table()

    outcome = vacuumed(raced(store, lambda: put(store, 1, [add("slow.parquet")])))

    assert names(outcome) == ["orphan.parquet"]
    assert store.exists("slow.parquet")


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(["append", "delete", "overwrite", "optimize", "vacuum", "checkpoint"]), max_size=8))
def test_no_order_of_writers_and_vacuums_takes_a_live_file(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    table = tmp_path_factory.mktemp("table") / "t"
    doing: dict[str, Callable[[], object]] = {
        "append": lambda: tablefeed.append(table, pa.table({"id": [1, 2, 3]})),
        "overwrite": lambda: tablefeed.append(table, pa.table({"id": [4]}), mode="overwrite"),
        "delete": lambda: DeltaTable(str(table)).delete("id = 2"),
        "optimize": lambda: tablefeed.optimize(table),
        "checkpoint": lambda: DeltaTable(str(table)).create_checkpoint(),
        "vacuum": lambda: vacuumed(table, now_ms=now_ms() + HOUR_MS),
    }
    doing["append"]()
    for step in steps:
        doing[step]()
        before = ids(table)
        doing["vacuum"]()
        assert ids(table) == before
        there = {str(path.relative_to(table)) for path in table.glob("*.parquet")}
        assert there == set(live(table))


LONGER = {"delta.deletedFileRetentionDuration": "interval 365 days"}


@pytest.mark.parametrize(
    ("commits", "said"),
    [
        ({0: [protocol(), metadata(LONG_ID, table_id="another")], 1: [add("slow.parquet")]}, "created again"),
        ({1: [add("slow.parquet")]}, "restored"),
        ({2: [metadata(LONG_ID, configuration=LONGER)]}, "another protocol or retention"),
        ({2: [protocol(3, 7, readerFeatures=[], writerFeatures=["newest"])]}, "another protocol or retention"),
    ],
    ids=["made anew", "set back to a copy", "another retention", "another protocol"],
)
def test_a_table_that_is_another_when_its_folders_were_listed_loses_nothing(
    commits: Mapping[int, list[Action]], said: str
) -> None:
    store = a_memory_table()
    put(store, 1, [add("later.parquet")])

    def rival() -> None:
        for version, actions in commits.items():
            put(store, version, actions)

    with pytest.raises((ConflictError, UnsupportedFeatureError), match=said):
        vacuumed(raced(store, rival))

    assert (store.exists("slow.parquet"), store.exists("orphan.parquet")) == (True, True)


def test_a_file_that_is_brought_back_while_others_are_deleted_stays() -> None:
    store = a_memory_table()
    for n in range(2000):
        store.replace(f"old-{n:04d}.parquet", b"rows")
    back = Fault(operation="delete", hook=lambda: put(store, 1, [add("old-1999.parquet")]))

    outcome = vacuumed(log_of(FaultyStore(store, faults=[back])))

    assert store.exists("old-1999.parquet")
    assert (outcome.file_count, "old-1999.parquet" in names(outcome)) == (2001, False)


# --- a damaged checkpoint --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["add.path", "remove.path", None])
def test_a_checkpoint_that_cannot_be_read_costs_no_file_that_the_commits_name(column: str | None) -> None:
    store = MemoryStore("orders", now_ms=lambda: NOW_MS - DAY_MS)
    for version in range(4):
        removed = remove(f"f{version - 1}", deletionTimestamp=NOW_MS - DAY_MS)
        begin = [protocol(), metadata()] if version == 0 else [removed]
        put(store, version, [*begin, add(f"f{version}"), add(f"live{version}")])
    for name in ("f0", "f1", "f2", "f3", "live0", "live1", "live2", "live3", "orphan"):
        store.replace(name, b"rows")
    log = log_of(store)
    write_checkpoint(log.load(Version(2)))
    checkpoint = f"_delta_log/{2:020d}.checkpoint.parquet"
    data = store.read(checkpoint)
    store.replace(checkpoint, data[: len(data) // 2] if column is None else damage(data, column))

    assert names(vacuumed(log)) == ["f0", "f1", "f2", "orphan"]
    store.replace("f0", b"rows")
    assert names(vacuumed(log, retention_ms=2 * DAY_MS)) == []
