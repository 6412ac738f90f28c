"""Complete mode and overwrites: the JAR reads what they leave, and replaces the same rows itself."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import tablefeed
from peer.tables import read_all

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Changes = list[tuple[int, str, int | None, int | None]]


def changes_by_the_jar(session: SparkSession, table: Path) -> Changes:
    read = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(str(table))
    return ordered(read.toArrow())


def ordered(changes: pa.Table) -> Changes:
    names = ("_commit_version", "_change_type", "id", "count")
    return sorted(tuple(row[name] for name in names) for row in changes.to_pylist())


def test_the_jar_reads_a_table_of_complete_mode_its_changes_and_its_history(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    source, table, location = tmp_path / "source", tmp_path / "table", f"delta.`{tmp_path / 'table'}`"
    none = pa.table({"id": pa.array([], pa.int64()), "count": pa.array([], pa.int64())})
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}
    tablefeed.append(table, none, properties=properties)

    def count(*ids: int) -> str:
        tablefeed.append(source, pa.table({"id": list(ids)}))
        rows = delta_spark.readStream.format("tablefeed").load(str(source)).groupBy("id").count()
        writer = rows.coalesce(1).writeStream.format("tablefeed").outputMode("complete")
        query = (
            writer.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start(str(table))
        )
        query.awaitTermination()
        return str(query.id)

    query_id = count(1, 2, 2)
    delta_spark.sql(f"DELETE FROM {location} WHERE id = 1")  # noqa: S608 (a path of this test)
    count(3)

    rows = delta_spark.read.format("delta").load(str(table)).toArrow().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "count": 1}, {"id": 2, "count": 2}, {"id": 3, "count": 1}]
    expected: Changes = [
        (1, "insert", 1, 1),
        (1, "insert", 2, 2),
        (2, "delete", 1, 1),
        (3, "delete", 2, 2),
        (3, "insert", 1, 1),
        (3, "insert", 2, 2),
        (3, "insert", 3, 1),
    ]
    assert changes_by_the_jar(delta_spark, table) == expected
    assert ordered(tablefeed.changes(table, start_version=0).read_all()) == expected
    last = delta_spark.sql(f"DESCRIBE HISTORY {location} LIMIT 1").collect()[0]
    assert (last["version"], last["operation"], last["isBlindAppend"]) == (3, "STREAMING UPDATE", False)
    assert last["operationParameters"] == {"outputMode": "Complete", "queryId": query_id, "epochId": "1"}
    assert last["operationMetrics"]["numRemovedFiles"] == "1"


DAY = datetime(2024, 1, 1, tzinfo=UTC)
PARTITIONS: Mapping[str, tuple[pa.DataType, Sequence[object], Sequence[object], str]] = {
    "texts": (pa.string(), ["a", "b", "", None], ["a", None], "p IS NULL OR p = 'a'"),
    "empty": (pa.string(), ["a", "", None], [""], "p IS NULL"),
    "longs": (pa.int64(), [1, 2, 10], [1], "p = 1"),
    "doubles": (pa.float64(), [float("nan"), 0.0, 1.5], [float("nan"), -0.0], "p > 1.5 OR p = 0.0"),
    "decimals": (pa.decimal128(6, 2), [Decimal("1.50"), Decimal("2.00")], [Decimal("1.50")], "p = 1.5"),
    "dates": (pa.date32(), [date(2024, 1, 31), date(2024, 2, 1), None], [date(2024, 2, 1)], "p >= DATE'2024-02-01'"),
    "times": (pa.timestamp("us", "UTC"), [DAY, DAY.replace(hour=5)], [DAY], "p < TIMESTAMP'2024-01-01 01:00:00Z'"),
    "booleans": (pa.bool_(), [True, False, None], [False], "NOT p"),
}


def frame(session: SparkSession, first_id: int, values: Sequence[object], kind: pa.DataType) -> DataFrame:
    ids = pa.array(range(first_id, first_id + len(values)), pa.int64())
    return session.createDataFrame(pa.table({"id": ids, "p": pa.array(values, kind)}))


@pytest.mark.in_turn
@pytest.mark.parametrize(("kind", "values", "written", "predicate"), PARTITIONS.values(), ids=PARTITIONS)
def test_both_replace_the_same_rows_and_say_so_in_the_same_words(
    delta_spark: SparkSession,
    tmp_path: Path,
    kind: pa.DataType,
    values: Sequence[object],
    written: Sequence[object],
    predicate: str,
) -> None:
    how = {"dynamic": {"partitionOverwriteMode": "dynamic"}, "where": {"replaceWhere": predicate}}
    made = tmp_path / "made"
    frame(delta_spark, 1, values, kind).write.format("delta").partitionBy("p").save(str(made))

    tables = {}
    for name, options in how.items():
        for provider in ("delta", "tablefeed"):
            tables[name, provider] = table = shutil.copytree(made, tmp_path / f"{name} by {provider}")
            new = frame(delta_spark, 100, written, kind)
            new.write.format(provider).mode("overwrite").options(**options).save(str(table))

    left = dict(zip(tables, read_all(delta_spark, [*tables.values()]), strict=True))
    for name in how:
        found = {}
        for provider in ("delta", "tablefeed"):
            said = delta_spark.sql(f"DESCRIBE HISTORY delta.`{tables[name, provider]}` LIMIT 1").collect()[0]
            ids = sorted(left[name, provider]["id"].to_pylist())
            found[provider] = (ids, said["operation"], said["operationParameters"])

        assert found["tablefeed"][:2] == found["delta"][:2]
        assert (
            found["tablefeed"][2].items() >= {k: v for k, v in found["delta"][2].items() if k != "partitionBy"}.items()
        )
