"""How many files a write makes, as OptimizedWritesSuite has it where nothing gathers rows from several tasks."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from scenarios.made_tables import Writes, actions, rows


def tasks(count: int, rows_of_all: int, *, columns: tuple[str, ...]) -> list[pa.Table]:
    """Rows in `count` tasks: `id`, a `part` of five, and a `part2` of twenty rows each."""
    each = rows_of_all // count
    return [
        pa.table({"id": ids, "part": [n % 5 for n in ids], "part2": [n // 20 for n in ids]}).select(columns)
        for ids in ([*range(number * each, (number + 1) * each)] for number in range(count))
    ]


@pytest.mark.parametrize(
    ("partition_by", "count", "rows_of_all", "expected"),
    [
        ((), 4, 100, 4),
        (("part",), 4, 100, 20),
        (("part", "part2"), 4, 100, 40),
        (("part",), 1, 20, 5),
    ],
    ids=["not partitioned", "partitioned", "two partition columns", "one task"],
)
def test_each_task_makes_one_file_for_each_partition_that_it_has_rows_of(
    tmp_path: Path, partition_by: tuple[str, ...], count: int, rows_of_all: int, expected: int
) -> None:
    options = {"optimizeWrite": "false", "delta.autoOptimize.optimizeWrite": "true"}
    query = Writes(tmp_path / "t", options | ({"partitionBy": ",".join(partition_by)} if partition_by else {}))

    query(*tasks(count, rows_of_all, columns=("id", *partition_by)))

    assert len(actions(query.path, 0)["add"]) == expected
    assert sorted(row["id"] for row in rows(query.path)) == [*range(rows_of_all)]


def test_a_batch_without_rows_makes_no_file(tmp_path: Path) -> None:
    query = Writes(tmp_path / "t", {"partitionBy": "part"})
    given = tasks(1, 20, columns=("id", "part"))

    query(*given)
    query(given[0].slice(0, 0))

    assert len(actions(query.path, 0)["add"]) == 5
    assert "add" not in actions(query.path, 1)
    assert tablefeed.open_table(query.path).version == 1
