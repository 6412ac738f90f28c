"""Temporary files of puts whose process was killed, wherever in a table they are."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed

LEFT = ".x.0123456789abcdef0123456789abcdef.tmp"
FOLDERS = ("", "p=1", "_tablefeed/consumers")


def left_in(table: Path, *folders: str, hours: int) -> None:
    for folder in folders:
        (table / folder).mkdir(parents=True, exist_ok=True)
        (table / folder / LEFT).touch()
        then = time.time() - hours * 3600
        os.utime(table / folder / LEFT, (then, then))


def folders_with_left(table: Path) -> set[str]:
    return {path.parent.relative_to(table).as_posix() for path in table.rglob(LEFT)}


def test_a_vacuum_deletes_those_that_are_a_day_old_and_counts_none(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1], "p": [1]}), partition_by=["p"])
    left_in(tmp_path, *FOLDERS, "_delta_log", hours=25)
    left_in(tmp_path, "p=2", hours=23)

    assert tablefeed.vacuum(tmp_path, dry_run=True).file_count == 0
    assert folders_with_left(tmp_path) == {".", "p=1", "p=2", "_tablefeed/consumers", "_delta_log"}
    assert tablefeed.vacuum(tmp_path).file_count == 0
    assert folders_with_left(tmp_path) == {"p=2"}


def test_a_cleanup_of_an_index_tables_log_deletes_those_of_the_whole_table(tmp_path: Path) -> None:
    pytest.importorskip("fastavro")
    tablefeed.append(tmp_path, pa.table({"id": [1], "p": [1]}), partition_by=["p"], table_format="indextables")
    left_in(tmp_path, *FOLDERS, "_transaction_log/manifests", "_transaction_log/_tablefeed/x", hours=25)
    left_in(tmp_path, "p=2", hours=23)

    assert tablefeed.checkpoint(tmp_path, clean_up=True).log_files_deleted == 0
    assert folders_with_left(tmp_path) == {"p=2"}
