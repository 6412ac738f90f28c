"""The Delta JAR reads the same rows as the model from the logs that made-up schedules leave (tests/simulation)."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from simulation.kinds import schedule_of
from simulation.schedule import left_behind


def test_the_jar_reads_the_same_rows_from_the_logs_that_schedules_leave(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    for seed in range(0, 400, 20):
        for table, rows in left_behind(schedule_of(seed), tmp_path):
            found = delta_spark.read.format("delta").load(str(table)).collect()
            assert sorted(tuple(row) for row in found) == rows, table
