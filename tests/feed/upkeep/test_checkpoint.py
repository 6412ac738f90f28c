"""`tablefeed.checkpoint`: no row changes, readers begin from one place, and what is old goes for who asks."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import tablefeed
from support.index_tables import hint_in, live, log_files, log_of, manifests_of, rows_of
from support.logs import metadata, protocol, put
from tablefeed import Checkpointed
from tablefeed.errors import LogError, UnsupportedFeatureError
from tablefeed.feed.snapshot.open_log import open_maintained
from tablefeed.feed.upkeep import background
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.feed.upkeep.index_cleanup import clean_up
from tablefeed.indextables import names
from tablefeed.indextables.log import version_file
from tablefeed.indextables.log.retention import Retention
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import AddFile, Commit, Protocol, Version
from tablefeed.store import LocalStore

pytest.importorskip("fastavro")

NOW_MS = time.time_ns() // 1_000_000


@pytest.fixture
def copied(corpus: Path, tmp_path: Path) -> Callable[[str], Path]:
    return lambda name: Path(shutil.copytree(corpus / "indextables" / name, tmp_path / name))


def told(files: list[AddFile]) -> list[AddFile]:
    """What IndexTables' states say of files: not the last delete, and doc mappings by their hash alone."""
    return [
        replace(file, split=replace(file.split, delete_opstamp=None, doc_mapping=None)) for file in files if file.split
    ]


def manifests(table: Path) -> set[str]:
    return {name for name in log_files(table) if name.startswith("manifests/")}


def append_one(table: Path) -> None:
    tablefeed.append(table, tablefeed.open_table(table).to_arrow().slice(0, 1))
    background.wait_until_done()


# --- IndexTables -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["it053_events_json", "it053_events_json_nockpt", "it053_json_skip"])
def test_a_log_of_json_gets_the_state_of_its_newest_version(name: str, copied: Callable[[str], Path]) -> None:
    table = copied(name)
    version = tablefeed.open_table(table).version
    before, files, there = rows_of(table), live(table), log_files(table)

    assert tablefeed.checkpoint(table) == Checkpointed(version=Version(version), written=True)

    assert rows_of(table) == before
    assert told(live(table)) == told(files)
    assert log_files(table) - there - manifests(table) - {names.LAST_CHECKPOINT} == {names.state_name(version)}
    state = log_of(table).state(Version(version))
    assert state is not None
    assert state.file_count == len(files)
    assert {file.split and file.split.doc_mapping_ref for file in files} <= state.registry.keys()
    assert (hint_in(table).version, hint_in(table).is_state) == (version, True)


def test_a_state_goes_before_the_json_checkpoint_of_its_version(copied: Callable[[str], Path]) -> None:
    table = copied("it053_events_json")
    log = table / names.LOG_DIR
    for version in (6, 7, 8):
        (log / names.commit_name(version)).unlink()
    tablefeed.checkpoint(table)

    assert (hint_in(table).version, hint_in(table).is_state) == (5, True)


def test_commits_after_it_bring_their_states_and_the_feed_goes_on(copied: Callable[[str], Path]) -> None:
    table = copied("it053_events_json")
    tablefeed.checkpoint(table)
    before = rows_of(table)
    append_one(table)

    assert {names.commit_name(9), names.state_name(9)} <= log_files(table)
    assert len(rows_of(table)) == len(before) + 1
    assert tablefeed.changes(table, start_version=8).read_all()["_commit_version"].to_pylist() == [8, 8, 9]


@pytest.mark.parametrize("name", ["it053_events_avro", "itnative_events"])
def test_a_table_whose_newest_version_has_a_state_is_left_as_it_is(name: str, copied: Callable[[str], Path]) -> None:
    table = copied(name)
    there = log_files(table)

    assert tablefeed.checkpoint(table) == Checkpointed(version=Version(8), written=False)
    assert log_files(table) == there


def test_a_state_of_the_newest_version_that_cannot_be_read_is_named(
    copied: Callable[[str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    table = copied("itnative_events")
    (table / names.LOG_DIR / names.state_name(8)).write_bytes(b"Obj")

    assert tablefeed.checkpoint(table) == Checkpointed(version=Version(8), written=False)

    assert f"delete {names.state_name(8)}" in caplog.text


def test_a_table_whose_readers_may_not_know_states_is_refused_by_name(copied: Callable[[str], Path]) -> None:
    table = copied("it053_events_json_nockpt")
    of_0_5 = Protocol(min_reader_version=3, min_writer_version=3)
    old = Commit(version=Version(9), protocol=of_0_5, committed_at_ms=None)
    path = table / names.LOG_DIR / names.commit_name(9)
    path.write_bytes(version_file.encode_commit(old, writer=Writer.SCALA))
    there = log_files(table)

    with pytest.raises(UnsupportedFeatureError, match=r"^\[INDEXTABLES_STATES_UNKNOWN\].*protocol 3"):
        tablefeed.checkpoint(table)
    assert log_files(table) == there


def test_a_table_of_no_version_but_the_first_is_refused_by_name(copied: Callable[[str], Path]) -> None:
    table = copied("it053_events_json_nockpt")
    for version in range(1, 9):
        (table / names.LOG_DIR / names.commit_name(version)).unlink()

    with pytest.raises(LogError, match=r"^\[INDEXTABLES_NOTHING_TO_CHECKPOINT\]"):
        tablefeed.checkpoint(table)


# --- what is old -----------------------------------------------------------------------------------------------------


def age(table: Path, *found: str, days: float) -> None:
    then = time.time() - days * 86_400
    for name in found:
        os.utime(table / names.LOG_DIR / name, (then, then))


def test_nothing_goes_for_who_does_not_ask(copied: Callable[[str], Path]) -> None:
    table = copied("it053_events_avro")
    age(table, *log_files(table), days=400)
    there = log_files(table)

    assert tablefeed.checkpoint(table).log_files_deleted == 0
    assert log_files(table) == there


def test_old_states_go_and_with_them_the_manifests_that_no_other_names(copied: Callable[[str], Path]) -> None:
    table = copied("it053_events_avro")
    before, there = rows_of(table), log_files(table)
    age(table, *there, days=400)
    # state-v0 is what IndexTables left of a later version: somebody may go by it
    named = {manifest for version in (0, 7, 8) for manifest in manifests_of(table, version)}

    outcome = tablefeed.checkpoint(table, clean_up=True)

    left = log_files(table)
    assert manifests(table) == named
    assert {name for name in left if name.startswith("state-v")} >= {names.state_name(7), names.state_name(8)}
    assert not {names.state_name(version) for version in range(1, 7)} & left
    assert names.commit_name(0) in left
    assert outcome.log_files_deleted == len(there - left)
    assert rows_of(table) == before
    append_one(table)
    assert len(rows_of(table)) == len(before) + 1


def test_a_manifest_stays_for_a_day_that_a_suspended_writer_may_be_about_to_name(copied: Callable[[str], Path]) -> None:
    table = copied("it053_events_avro")
    age(table, *log_files(table), days=400)
    fresh, stale = "manifests/manifest-fresh000.avro", "manifests/manifest-stale000.avro"
    for name in (fresh, stale):
        (table / names.LOG_DIR / name).write_bytes(b"of a state that is not there yet")
    age(table, fresh, days=0.95)
    age(table, stale, days=1.05)
    tablefeed.checkpoint(table, clean_up=True)

    assert fresh in log_files(table)
    assert stale not in log_files(table)


def test_no_manifest_goes_where_a_state_cannot_be_read(copied: Callable[[str], Path]) -> None:
    table = copied("it053_events_avro")
    (table / names.LOG_DIR / "manifests/manifest-stale000.avro").write_bytes(b"which that state may name")
    age(table, *log_files(table), days=400)
    before = manifests(table)
    (table / names.LOG_DIR / names.state_name(7)).write_bytes(b"Obj")
    tablefeed.checkpoint(table, clean_up=True)

    assert manifests(table) == before


def test_commits_go_only_where_a_state_or_a_checkpoint_stands_for_them(copied: Callable[[str], Path]) -> None:
    table, whole = copied("it053_events_json"), copied("it053_events_json_nockpt")
    before = rows_of(table)
    for each in (table, whole):
        age(each, *log_files(each), days=400)
        clean_up(log_of(each), Retention(), now_ms=NOW_MS)

    assert log_files(table) == {
        *(names.commit_name(version) for version in (0, 5, 6, 7, 8)),
        names.checkpoint_name(5),
        names.LAST_CHECKPOINT,
    }
    assert {names.commit_name(version) for version in range(9)} <= log_files(whole)
    assert rows_of(table) == rows_of(whole) == before


def test_what_hadoop_wrote_of_a_file_goes_with_it(copied: Callable[[str], Path]) -> None:
    table = copied("it053_events_avro")
    age(table, *log_files(table), days=400)
    tablefeed.checkpoint(table, clean_up=True)
    log = table / names.LOG_DIR

    sums = list(log.rglob(".*.crc"))
    assert sums
    assert [path.name for path in sums if not (path.parent / path.name[1:-4]).exists()] == []


# --- Delta -----------------------------------------------------------------------------------------------------------


def rows(table: Path, count: int, **properties: str) -> Path:
    """Appends a row a version; gives the folder of the log."""
    for n in range(count):
        tablefeed.append(table, pa.table({"id": [n]}), properties=properties if n == 0 else None)
    return table / "_delta_log"


def test_a_delta_table_gets_a_checkpoint_now(tmp_path: Path) -> None:
    log = rows(tmp_path, 3)

    assert tablefeed.checkpoint(str(tmp_path)) == Checkpointed(version=Version(2), written=True)
    assert (log / f"{2:020d}.checkpoint.parquet").exists()
    for version in range(3):
        (log / f"{version:020d}.json").unlink()
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]


def test_a_delta_table_with_a_checkpoint_of_its_newest_version_is_left_as_it_is(tmp_path: Path) -> None:
    rows(tmp_path, 1)
    tablefeed.checkpoint(tmp_path)

    assert tablefeed.checkpoint(tmp_path) == Checkpointed(version=Version(0), written=False)


def cut_in_half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_a_damaged_checkpoint_whose_name_is_taken_is_named_and_not_said_to_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = rows(tmp_path, 1) / f"{0:020d}.checkpoint.parquet"
    tablefeed.checkpoint(tmp_path)
    cut_in_half(damaged)
    left = damaged.read_bytes()

    assert tablefeed.checkpoint(tmp_path) == Checkpointed(version=Version(0), written=False)

    assert damaged.read_bytes() == left
    assert f"delete {damaged.name}" in caplog.text
    damaged.unlink()
    assert tablefeed.checkpoint(tmp_path) == Checkpointed(version=Version(0), written=True)


def test_a_damaged_checkpoint_in_parts_gets_one_in_a_single_file_beside_it(tmp_path: Path) -> None:
    rows(tmp_path, 2)
    log = open_maintained(str(tmp_path))
    write_checkpoint(log.load(), part_actions=1)
    cut_in_half(tmp_path / "_delta_log" / f"{1:020d}.checkpoint.{1:010d}.{2:010d}.parquet")

    assert tablefeed.checkpoint(tmp_path) == Checkpointed(version=Version(1), written=True)

    assert log.store.exists(f"_delta_log/{1:020d}.checkpoint.parquet")


@pytest.mark.parametrize("spoil", [cut_in_half, Path.unlink], ids=["damaged", "missing"])
def test_a_v2_checkpoint_with_a_sidecar_that_cannot_be_read_gets_another_beside_it(
    spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    log = rows(tmp_path, 2, **{"delta.checkpointPolicy": "v2", "delta.feature.v2Checkpoint": "supported"})
    tablefeed.checkpoint(tmp_path)
    (sidecar,) = (log / "_sidecars").glob("*.parquet")
    spoil(sidecar)

    assert tablefeed.checkpoint(tmp_path) == Checkpointed(version=Version(1), written=True)

    for version in range(2):
        (log / f"{version:020d}.json").unlink()
    assert sorted(tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist()) == [0, 1]
    assert tablefeed.checkpoint(tmp_path) == Checkpointed(version=Version(1), written=False)


def test_a_delta_table_is_cleaned_up_as_its_properties_allow(tmp_path: Path) -> None:
    log = rows(tmp_path, 3)
    tablefeed.checkpoint(tmp_path)
    then = time.time() - 60 * 86_400
    for path in log.iterdir():
        os.utime(path, (then, then))

    assert tablefeed.checkpoint(tmp_path, clean_up=True).log_files_deleted > 0
    assert sorted(DeltaTable(tmp_path).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]


def test_a_delta_table_with_two_columns_of_one_physical_name_gets_no_checkpoint(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "place": [{"city": "Bern"}]})
    tablefeed.append(tmp_path, rows, properties={"delta.columnMapping.mode": "name"})
    commit = tmp_path / "_delta_log" / f"{0:020d}.json"
    commit.write_text(re.sub("col-[0-9a-f-]{36}", "col-1", commit.read_text()))

    with pytest.raises(LogError, match=f"The column mapping of the table at {tmp_path} is broken"):
        tablefeed.checkpoint(tmp_path)

    assert not list((tmp_path / "_delta_log").glob("*checkpoint*"))


def test_a_delta_table_that_cannot_be_written_here_is_refused(tmp_path: Path) -> None:
    actions = [protocol(3, 7, writerFeatures=["tomorrow"], readerFeatures=[]), metadata()]
    put(LocalStore(str(tmp_path)), 0, actions)

    with pytest.raises(UnsupportedFeatureError, match="tomorrow"):
        tablefeed.checkpoint(tmp_path)
