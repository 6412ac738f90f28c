"""A stream of a table that another writer is committing to misses nothing and delivers nothing twice."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from spark.streams import PATIENCE_S, grow, reader, tailing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS = 30


def test_every_row_of_thirty_commits_made_meanwhile_is_delivered_once_and_in_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    grow(table, [0])
    writer = threading.Thread(target=grow, args=(table, *([n, n + 1000] for n in range(1, COMMITS + 1))))

    delivered: list[int] = []
    with tailing(reader(spark, table, maxFilesPerTrigger=4), tmp_path / "checkpoint") as (query, batches):
        writer.start()
        while COMMITS + 1000 not in delivered:
            delivered += [n for n in batches.get(timeout=PATIENCE_S) if n < 1000 or n == COMMITS + 1000]
        writer.join()
        query.processAllAvailable()
        assert batches.empty()

    assert delivered == [*range(COMMITS + 1), COMMITS + 1000]
