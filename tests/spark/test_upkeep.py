"""What a query that writes leaves beside its commits, though it stops at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from spark.streams import PATIENCE_S, grow, log_file, newest_version, reader, write_out
from tablefeed.store import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def checkpoint_after(target: Path, version: int) -> int:
    """The newest checkpoint of the table, as soon as there is one of `version` or after it."""
    store = LocalStore(str(target))
    patience_ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < patience_ends:
        found = [int(entry.name[:20]) for entry in store.list("_delta_log") if ".checkpoint." in entry.name]
        if max(found, default=-1) >= version:
            return max(found)
        store.wait("_delta_log", timeout_s=1)
    raise AssertionError(f"there was no checkpoint of version {version} or later")


def test_a_query_of_25_commits_has_a_checksum_for_each_and_a_checkpoint_at_the_latest_with_the_next_querys_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, target, checkpoint = tmp_path / "source", tmp_path / "target", tmp_path / "checkpoint"
    grow(source, *([n] for n in range(25)))
    write_out(reader(spark, source, maxFilesPerTrigger=1), target, checkpoint)
    assert newest_version(target) == 24
    assert [n for n in range(25) if not log_file(target, n).with_suffix(".crc").exists()] == []

    grow(source, [25])
    write_out(reader(spark, source, maxFilesPerTrigger=1), target, checkpoint)

    found = checkpoint_after(target, 20)
    for version in range(found):
        log_file(target, version).unlink()
    assert sorted(DeltaTable(str(target)).to_pyarrow_table()["id"].to_pylist()) == list(range(26))
    assert not [path.name for path in (target / "_delta_log").iterdir() if path.name.endswith(".tmp")]
