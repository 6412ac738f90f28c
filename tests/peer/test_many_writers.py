"""The JAR, delta-rs and we at one table at the same time: nobody's commit is lost, and each reads what all wrote."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tablefeed
from peer.jar_log import JarLog
from peer.tables import commit_actions
from support.maintained import ids
from support.writers import (
    all_at_once,
    by_delta_rs,
    by_tablefeed,
    checkpoint_versions,
    forget_commits_before,
    rows_by_delta_rs,
    versions_in_log,
    wrong_checksums,
)
from tablefeed.feed.upkeep.background import wait_until_done

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def by_the_jar(session: SparkSession, location: str, rows: range) -> None:
    insert = "INSERT INTO delta.`{t}` VALUES ({n})"
    for row in rows:
        session.sql(insert.format(t=location, n=row))


def written_by_the_jar(table: Path, version: int) -> bool:
    (info,) = [action for kind, action in commit_actions(table, version) if kind == "commitInfo"]
    return str(info.get("engineInfo", "")).startswith("Apache-Spark/")


def rows_by_the_jar(session: SparkSession, location: str) -> list[int]:
    return sorted(row["id"] for row in session.read.format("delta").load(location).collect())


def test_processes_of_ours_the_jar_and_delta_rs_at_one_table_lose_nothing_of_each_other(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    location = str(tmp_path / "orders")
    tablefeed.append(location, pa.table({"id": pa.array([], pa.int64())}))

    with ThreadPoolExecutor(2) as pool:
        theirs = [pool.submit(by_the_jar, delta_spark, location, rows) for rows in (range(6), range(6, 12))]
        ours = [(by_tablefeed, range(first, first + 12)) for first in (12, 24, 36, 48)]
        others = [(by_delta_rs, range(first, first + 6)) for first in (60, 66)]
        versions = all_at_once(location, [*ours, *others])
        for future in theirs:
            future.result(timeout=300)
    if any(written_by_the_jar(Path(location), version) for version in versions):
        pytest.skip("Hadoop's rename replaced a commit of ours: on a local disk it looks, and then renames")
    tablefeed.append(location, pa.table({"id": [72]}))
    wait_until_done()

    assert len(versions) == len(set(versions)) == 48
    assert versions_in_log(location) == list(range(74))
    assert rows_by_the_jar(delta_spark, location) == list(range(73))
    assert rows_by_delta_rs(location) == ids(location) == list(range(73))
    assert wrong_checksums(location) == {}
    log = JarLog(delta_spark, Path(location))
    # The JAR computes a whole state for each.
    assert "it is wrong" not in [fault for version in range(1, 74, 9) for fault in log.checksum_faults(version)]
    forget_commits_before(location, checkpoint_versions(location)[-1])
    assert rows_by_the_jar(delta_spark, location) == list(range(73))
    assert rows_by_delta_rs(location) == ids(location) == list(range(73))
