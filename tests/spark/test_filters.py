"""Which rows a read gives that is filtered: by Spark, and by the option `where`."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark.streams import drain, grow, ids_of, newest_version, offsets
from tablefeed.feed.scan.snapshot_tasks import snapshot_tasks
from tablefeed.feed.scan.task import read_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


NAN, INF = math.nan, math.inf
NOON = dt.datetime(2024, 1, 31, 12)  # noqa: DTZ001 - a wall clock's
DAY = dt.timedelta(days=1)

COLUMNS: Mapping[str, tuple[pa.DataType, list[object]]] = {
    "byte": (pa.int8(), [-128, 0, 127]),
    "short": (pa.int16(), [-32768, 5, 32767]),
    "int": (pa.int32(), [-(2**31), 5, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), 2**53 + 1, 2**63 - 1]),
    "float": (pa.float32(), [0.1, -0.0, NAN, INF, 16777216.0]),
    "double": (pa.float64(), [0.1, -0.0, NAN, -INF, 9007199254740992.0]),
    "small": (pa.decimal128(5, 2), [Decimal("-999.99"), Decimal("0.10"), Decimal("5.00")]),
    "large": (pa.decimal128(38, 18), [Decimal("5"), Decimal("0.000000000000000001")]),
    "flag": (pa.bool_(), [True, False]),
    "text": (pa.string(), ["", "Z", "a", "ä", "𝄞", "it's", "5"]),
    "bytes": (pa.binary(), [b"", b"a"]),
    "date": (pa.date32(), [dt.date(1582, 10, 4), dt.date(2024, 1, 31)]),
    "moment": (pa.timestamp("us", "UTC"), [NOON.replace(tzinfo=dt.UTC), (NOON + DAY).replace(tzinfo=dt.UTC)]),
    "wall": (pa.timestamp("us"), [NOON, NOON + DAY]),
    "nested": (pa.struct([("x", pa.int32()), ("d", pa.float64())]), [{"x": 5, "d": NAN}, {"x": None, "d": 0.1}]),
    "list": (pa.list_(pa.int32()), [[], [5]]),
    "map": (pa.map_(pa.string(), pa.int32()), [{}, {"a": 5}]),
}
LITERALS: Mapping[str, Sequence[str]] = {
    "byte": ("5", "127.5", "-300", "127", "-128"),
    "short": ("5", "32767", "-32768.0", "5.5"),
    "int": ("5", "2147483648", "-2147483648", "5.5", "-5.0"),
    "long": ("9007199254740993", "9223372036854775807", "-9223372036854775808", "9007199254740993.5", "0"),
    "float": ("0.1", "0", "16777217.0", "-0.0", "1e-1", "1e300", "16777216"),
    "double": ("0.1", "0", "9007199254740993", "-0.0", "1e-1", "-1e308"),
    "small": ("5", "0.1", "0.105", "-1000", "5.000", "-999.99"),
    "large": ("5", "0.000000000000000001", "4.9"),
    "flag": ("TRUE", "false"),
    "text": ("''", "'a'", '"it\'s"', "'Z'", "'ä'", "'5'"),
    "date": ("DATE'2024-01-31'", "DATE'1582-10-04'", "'2024-01-31'"),
    "moment": ("TIMESTAMP'2024-01-31 12:00:00Z'", "TIMESTAMP'2024-02-01 13:00:00.000001+01:00'"),
    "wall": ("TIMESTAMP_NTZ'2024-01-31 12:00:00'", "TIMESTAMP_NTZ'2024-02-01 11:59:59.999999'"),
    "nested.x": ("5", "4.5"),
    "nested.d": ("0.1", "5"),
}


def predicates() -> Iterator[str]:
    for name, literals in LITERALS.items():
        comparisons = ("=", "<>", "<=>") if name == "flag" else ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")
        for literal in literals:
            for comparison in comparisons:
                yield f"{name} {comparison} {literal}"
                yield f"NOT {literal} {comparison} {name}"
        yield f"{name} IN ({', '.join(literals)})"
        yield f"NOT {name} IN ({', '.join(literals)})"
        yield f"{name} NOT IN ({literals[0]}) OR id = 0"
        if name != "flag":
            yield f"{name} BETWEEN {literals[0]} AND {literals[-1]}"
            yield f"NOT {name} BETWEEN {literals[1]} AND {literals[0]} AND id > 0"
    for name in (*COLUMNS, "nested.x", "nested.d"):
        yield f"{name} IS NULL"
        yield f"NOT {name} IS NULL AND NOT ({name} IS NOT NULL AND id <> 0)"
    yield "flag"
    yield "NOT flag"
    yield "!flag OR text = 'a' AND id > 3"
    yield "NOT flag AND id > 3 OR NOT (text <= 'a' OR double > 0)"
    yield "FLAG <=> NULL AND `id` >= 0"


@pytest.fixture
def every_type(tmp_path: Path) -> Path:
    """Each value of each type in a row and a file with nulls beside it, and one row of nulls alone."""
    table = tmp_path / "every"
    schema = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in COLUMNS.items())])
    most = max(len(values) for _, values in COLUMNS.values())
    for first in range(0, most + 1, 2):
        rows = [
            {"id": row, **{name: values[row] for name, (_, values) in COLUMNS.items() if row < len(values)}}
            for row in (first, first + 1)
        ]
        write_deltalake(str(table), pa.Table.from_pylist(rows, schema=schema), mode="append")
    return table


@pytest.mark.one_spark
@pytest.mark.slow
def test_a_predicate_lets_those_rows_through_for_which_spark_finds_it_true_with_and_without_ansi(
    spark: SparkSession, every_type: Path
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    rows = session.read.format("tablefeed").load(str(every_type)).cache()
    texts = list(predicates())
    asked = {}
    for ansi in ("true", "false"):
        session.conf.set("spark.sql.ansi.enabled", ansi)
        columns = (f"coalesce({text}, false) AS `{n}`" for n, text in enumerate(texts))
        asked[ansi] = rows.selectExpr("id", *columns).toArrow()

    version, wrong = newest_version(every_type), {}
    for n, text in enumerate(texts):
        tasks = snapshot_tasks(str(every_type), version=version, storage_options={}, where=text)
        schema = pa.schema([("id", pa.int64())])
        found = sorted(i for task in tasks for batch in read_task(task, schema) for i in batch["id"].to_pylist())
        for ansi, answers in asked.items():
            expected = sorted(answers["id"].filter(answers[str(n)]).to_pylist())
            if found != expected:
                wrong[text, ansi] = (found, expected)
    assert wrong == {}
    assert len(texts) > 500


def test_where_and_columns_hold_for_a_stream_a_batch_read_and_changes(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    for day, first in (("a", 1), ("b", 11), ("c", 21)):
        rows = pa.table({"id": [first, first + 1], "Day": [day, day], "more": ["x", "y"]})
        config = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(str(table), rows, mode="append", partition_by=["Day"], configuration=config)
    for path in (table / "Day=a").glob("*.parquet"):
        path.unlink()
    options = {"where": "Day <> 'a' AND id <> 21", "columns": "more, ID"}
    read = spark.read.format("tablefeed").options(**options)
    changes = read.option("readChangeFeed", "true").option("startingVersion", 1)

    batch = read.load(str(table))

    assert (batch.columns, ids_of(batch)) == (["more", "id"], [11, 12, 22])
    assert ids_of(batch.filter("more = 'y'")) == [12, 22]
    assert drain(spark, table, tmp_path / "c", maxFilesPerTrigger=1, **options) == [[11, 12], [22]]
    assert [offset["reservoirVersion"] for offset in offsets(tmp_path / "c")][-1] == 3
    told = changes.option("columns", "_change_type,id,_commit_version").load(str(table))
    assert sorted(map(tuple, told.collect())) == [("insert", 11, 1), ("insert", 12, 1), ("insert", 22, 2)]
