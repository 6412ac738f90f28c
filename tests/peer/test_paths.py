"""What is one file to the JAR is one file to us."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tablefeed
from corpus.verdict import GONE_AS_IN_DELTA_SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("table", sorted(GONE_AS_IN_DELTA_SPARK))
def test_a_file_removed_by_another_spelling_of_its_path_is_gone(
    delta_spark: SparkSession, corpus: Path, table: str
) -> None:
    folder = corpus / "delta" / table

    found = [
        len(delta_spark.read.format("delta").option("versionAsOf", version).load(str(folder)).inputFiles())
        for version in (0, 1)
    ]

    assert found == [1, 0]
    assert [sum(b.num_rows for b in tablefeed.open_table(folder, version=v).files()) for v in (0, 1)] == found
