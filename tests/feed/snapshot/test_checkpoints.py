"""Tables read from checkpoints, and what is done where a checkpoint or the hint at it is wrong. By delta-rs."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

import tablefeed
from support.faulty_store import Fault, FaultyStore
from support.logs import commit_path, live_paths
from support.maintained import ids
from tablefeed.errors import LogError, TablefeedError, VersionNotFoundError
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.store import LocalStore


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Versions 0 to 5 of a row each, and checkpoints of 2 and 4."""
    for row in range(6):
        done = CommitProperties(app_transactions=[Transaction("loader", row)])
        write_deltalake(str(tmp_path), pa.table({"id": [row]}), mode="append", commit_properties=done)
        if row in (2, 4):
            DeltaTable(str(tmp_path)).create_checkpoint()
    return tmp_path


def checkpoint(path: Path, version: int) -> Path:
    return path / "_delta_log" / f"{version:020d}.checkpoint.parquet"


def hint(path: Path) -> Path:
    return path / "_delta_log" / "_last_checkpoint"


def drop_commits(path: Path, *versions: int) -> None:
    for version in versions:
        (path / commit_path(version)).unlink()


def test_a_table_is_read_from_its_checkpoint_and_the_commits_behind_it(table: Path) -> None:
    drop_commits(table, 0, 1, 2, 3)

    opened = tablefeed.open_table(table)

    assert ids(table) == [0, 1, 2, 3, 4, 5]
    assert opened.txn_version("loader") == 5
    assert ids(table, 4) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "text",
    [
        '{"version":2,"size":5}',
        '{"version":99,"size":5}',
        '{"version":5,"size":5}',
        '{"version":4,"size":5,"parts":7}',
        '{"version":4,"size":5,"checksum":"wrong"}',
        '{"version":"four"}',
        '{"version":4,"size":5,"version":4}',
        '{"version":4,"v2Checkpoint":{"path":"x.json","sidecarFiles":[{"path":"gone.parquet"}]}}',
        "{",
        "",
        "[]",
    ],
)
def test_a_hint_that_is_stale_or_wrong_or_no_json_changes_nothing(table: Path, text: str) -> None:
    hint(table).write_text(text)

    assert ids(table) == [0, 1, 2, 3, 4, 5]
    assert ids(table, 1) == [0, 1]


def test_a_hint_that_is_missing_or_cannot_be_read_changes_nothing(table: Path) -> None:
    hint(table).unlink()
    assert ids(table) == [0, 1, 2, 3, 4, 5]
    hint(table).mkdir()
    assert ids(table) == [0, 1, 2, 3, 4, 5]

    store = FaultyStore(LocalStore(str(table)), faults=[Fault(operation="read", name="_last_checkpoint")])
    assert len(live_paths(DeltaLog(store, location=str(table), storage_options={}))) == 6


def test_a_version_with_a_checkpoint_and_without_its_commit_is_opened(table: Path) -> None:
    drop_commits(table, 0, 1, 2, 3, 4)

    assert ids(table, 4) == [0, 1, 2, 3, 4]
    assert ids(table, 2) == [0, 1, 2]
    with pytest.raises(LogError, match="version 3 is missing"):
        ids(table, 3)
    with pytest.raises(VersionNotFoundError, match="holds versions 2 to 5"):
        ids(table, 1)


@pytest.mark.parametrize("junk", [b"", b"PAR1", b"no parquet at all" * 100])
def test_a_checkpoint_that_cannot_be_read_is_passed_over_for_an_earlier_one(table: Path, junk: bytes) -> None:
    drop_commits(table, 0, 1)
    checkpoint(table, 4).write_bytes(junk)

    assert tablefeed.open_table(table).txn_version("loader") == 5
    assert ids(table) == [0, 1, 2, 3, 4, 5]


def test_a_writer_goes_on_behind_a_checkpoint(table: Path) -> None:
    drop_commits(table, 0, 1, 2, 3)

    outcome = tablefeed.append(table, pa.table({"id": [6]}), app_id="loader", txn_version=6)

    assert outcome.version == 6
    assert sorted(DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist()) == list(range(7))


def test_history_reaches_as_far_back_as_there_are_commits(table: Path) -> None:
    drop_commits(table, 0, 1, 2, 3)

    assert [c.version for c in tablefeed.open_table(table).history()] == [5, 4]


def test_appends_begin_at_the_earliest_commit_that_is_left(table: Path) -> None:
    drop_commits(table, 0, 1, 2, 3)

    assert tablefeed.appends(table).read_all()["id"].to_pylist() == [4, 5]
    with pytest.raises(TablefeedError, match="holds versions 4 to 5"):
        tablefeed.appends(table, start_version=3)


def test_a_checkpoint_of_a_table_that_delta_rs_rewrote_has_its_live_files_alone(table: Path) -> None:
    DeltaTable(str(table)).delete("id < 3")
    DeltaTable(str(table)).optimize.compact()
    DeltaTable(str(table)).create_checkpoint()
    drop_commits(table, 0, 1, 2, 3, 4, 5)

    assert ids(table) == [3, 4, 5]
    assert json.loads(hint(table).read_text())["version"] == 7
    assert len(live_paths(open_log(str(table)))) == 1
