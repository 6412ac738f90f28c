"""The peer is what it says it is: without that, no test beside it proves a thing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_jar_writes_version_0_and_both_formats_read_it_back(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"

    delta_spark.range(3).coalesce(1).write.format("delta").save(str(table))

    lines = (table / "_delta_log" / "00000000000000000000.json").read_text().splitlines()
    engines = [action["commitInfo"]["engineInfo"] for line in lines if "commitInfo" in (action := json.loads(line))]
    assert engines == ["Apache-Spark/4.2.0 Delta-Lake/4.4.0"]
    for form in ("delta", "tablefeed"):
        rows = delta_spark.read.format(form).load(str(table)).collect()
        assert sorted(row["id"] for row in rows) == [0, 1, 2], form
