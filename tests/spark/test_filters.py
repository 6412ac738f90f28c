"""Which rows a read gives that is filtered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from spark.streams import grow, ids_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_queries_of_one_data_frame_do_not_see_each_others_filters(
    spark: SparkSession, tmp_path: Path, pushdown: str
) -> None:
    table = tmp_path / "t"
    grow(table, [1], [2], [3])
    session = spark.newSession()
    session.conf.set(PUSHDOWN, pushdown)
    rows = session.read.format("tablefeed").load(str(table))

    assert ids_of(rows.filter("id = 1")) == [1]
    assert ids_of(rows) == [1, 2, 3]
    assert ids_of(rows.filter("id = 2").union(rows.filter("id = 3"))) == [2, 3]
