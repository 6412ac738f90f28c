"""`delta.autoOptimize.autoCompact`: partitions with many small files are folded behind who writes to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from support.logs import put, remove
from support.maintained import ids, live
from tablefeed.feed.upkeep import auto_compact, optimize
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.store import LocalStore

WANTED = {"delta.autoOptimize.autoCompact": "true"}


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty commits a test would be slow."""
    monkeypatch.setattr(auto_compact, "LEAST_FILES", 5)
    monkeypatch.setattr(auto_compact, "_files_left", type(auto_compact._files_left)())


def append(path: Path, n: int, p: int = 0, **more: Any) -> None:
    tablefeed.append(path, pa.table({"id": [n], "p": [p]}), partition_by="p", **more)
    wait_until_done()


def operations(path: Path) -> list[str | None]:
    return [info.operation for info in tablefeed.open_table(path).history()][::-1]


def test_a_partition_with_enough_small_files_is_folded_and_others_are_left(tmp_path: Path) -> None:
    append(tmp_path, 100, p=1, properties=WANTED)
    append(tmp_path, 101, p=1)
    for n in range(5):
        append(tmp_path, n)

    assert operations(tmp_path) == ["WRITE"] * 7 + ["OPTIMIZE"]
    assert len(live(tmp_path)) == 3
    assert ids(tmp_path) == [0, 1, 2, 3, 4, 100, 101]


def test_changes_of_rows_fold_small_files_as_appends_do(tmp_path: Path) -> None:
    vectors = {"delta.enableDeletionVectors": "true", "delta.feature.domainMetadata": "supported"}
    tablefeed.append(tmp_path, pa.table({"id": range(8), "n": [0] * 8}), properties={**WANTED, **vectors})
    for n in range(1, 5):
        tablefeed.apply_changes(tmp_path, pa.table({"id": [n], "n": [n]}), keys="id", sequence_by="n")
        wait_until_done()

    assert operations(tmp_path) == ["WRITE"] + ["MERGE"] * 4 + ["OPTIMIZE"]
    assert len(live(tmp_path)) == 1
    assert ids(tmp_path) == list(range(8))


def test_what_other_processes_left_is_seen_at_the_first_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(4):
        append(tmp_path, n, properties=WANTED)
    monkeypatch.setattr(auto_compact, "_files_left", type(auto_compact._files_left)())

    append(tmp_path, 4)

    assert operations(tmp_path)[-1] == "OPTIMIZE"
    assert len(live(tmp_path)) == 1


def test_files_are_listed_only_when_enough_may_have_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    look = auto_compact._look

    def counted(*told: Any) -> None:
        looks.append(1)
        look(*told)

    monkeypatch.setattr(auto_compact, "_look", counted)

    for n in range(10):
        append(tmp_path, n, p=n, properties=WANTED)

    # One file in the fullest partition each time: four more could make five of one.
    assert len(looks) == 3
    assert operations(tmp_path) == ["WRITE"] * 10


@pytest.mark.parametrize("properties", [{}, {"delta.autoOptimize.autoCompact": "false"}], ids=str)
def test_nothing_is_folded_where_the_table_does_not_ask_for_it(tmp_path: Path, properties: dict[str, str]) -> None:
    for n in range(6):
        append(tmp_path, n, properties=properties)

    assert operations(tmp_path) == ["WRITE"] * 6


def test_a_table_that_cannot_be_folded_is_written_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append(tmp_path, 0, properties=WANTED)
    (tmp_path / live(tmp_path)[0]).unlink()
    for n in range(1, 6):
        append(tmp_path, n)

    assert operations(tmp_path) == ["WRITE"] * 6
    assert "DELTA_FILE_NOT_FOUND" in caplog.text


def test_a_rival_that_comes_between_wins_and_the_next_commit_sees_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(4):
        append(tmp_path, n, properties=WANTED)
    fold = optimize.fold

    def fold_late(*told: Any, **more: Any) -> object:
        version = tablefeed.open_table(tmp_path).version
        put(LocalStore(str(tmp_path)), version + 1, [remove(live(tmp_path)[0])])
        return fold(*told, **more)

    with monkeypatch.context() as until:
        until.setattr(optimize, "fold", fold_late)
        append(tmp_path, 4)
    assert "OPTIMIZE" not in operations(tmp_path)

    append(tmp_path, 5)
    assert operations(tmp_path)[-1] == "OPTIMIZE"
    assert len(ids(tmp_path)) == 5
