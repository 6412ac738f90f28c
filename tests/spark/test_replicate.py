"""`tablefeed.spark.replicate`: the files of a copy, made by Spark's tasks, also on Connect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tablefeed
import tablefeed.spark
from support.logs import said
from tablefeed.errors import DataFileError, StoreError
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.model.actions import Version
from tablefeed.model.outcome import Replicated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_tasks_copy_the_files_of_a_commit_and_name_one_that_is_gone(session: SparkSession, tmp_path: Path) -> None:
    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    tablefeed.append(source, pa.table({"id": range(40)}), max_records_per_file=1)
    tablefeed.append(source, pa.table({"id": [40]}))

    done = tablefeed.spark.replicate(session, source, target, starting_version=0, verify=True)

    assert done == Replicated(version=Version(1), source_version=Version(1), commits=2, files=41)
    assert sorted(tablefeed.open_table(target).to_arrow()["id"].to_pylist()) == list(range(41))
    tablefeed.append(source, pa.table({"id": range(50)}), max_records_per_file=1)
    (lost, *_) = (each["path"] for each in said(tmp_path / "source", 2, "add"))
    (tmp_path / "source" / lost).unlink()
    with pytest.raises(DataFileError, match=lost) as caught:
        tablefeed.spark.replicate(session, f"{source}/", target)
    # The URL that the store shows, which has no credentials.
    assert isinstance(caught.value.__cause__, StoreError)
    assert caught.value.__cause__.url == source
    assert tablefeed.open_table(target).version == 1
    wait_until_done()
