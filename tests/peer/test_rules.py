"""Tables with rules of every kind, made by the JAR: we fill what it fills, refuse what it refuses, and it goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from peer.tables import actions_of_kind, error_class, read, read_all, rows, run
from spark.streams import finish, grow
from tablefeed.feed.snapshot.open_log import open_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RULES = (
    "CREATE TABLE {t} (id BIGINT NOT NULL, s STRING, at TIMESTAMP, v VARCHAR(3), c CHAR(3), "
    "st STRUCT<x: INT NOT NULL, y: INT>, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), "
    "twice BIGINT GENERATED ALWAYS AS (id * 2), p STRING, d STRING) USING delta PARTITIONED BY (day, p)",
    "ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
    "ALTER TABLE {t} ALTER COLUMN d SET DEFAULT concat('n', 'one')",
    "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0)",
    "ALTER TABLE {t} ADD CONSTRAINT known CHECK (p IS NOT NULL)",
)

GOOD = {
    "id": "id + 1",
    "s": "'x'",
    "at": "TIMESTAMP'2024-06-01 23:00:00.5'",
    "v": "'äöü'",
    "c": "'a'",
    "st": "named_struct('x', 1, 'y', 2)",
    "p": "'a b'",
}

BATCHES: dict[str, dict[str, str | None]] = {
    "all that must be there": {},
    "an absent struct": {"st": None},
    "a null struct": {"st": "CAST(NULL AS STRUCT<x: INT, y: INT>)"},
    "a default that is given": {"d": "'mine'"},
    "a default that is null": {"d": "CAST(NULL AS STRING)"},
    "generated values that are right": {"twice": "2 * (id + 1)", "day": "DATE'2024-06-01'"},
    "a generated value that is wrong": {"twice": "id"},
    "a generated value that is null": {"twice": "CAST(NULL AS BIGINT)"},
    "a generated partition that is wrong": {"day": "DATE'2024-06-02'"},
    "what it is generated from is null": {"at": "CAST(NULL AS TIMESTAMP)"},
    "a broken constraint": {"id": "id - 1"},
    "a generated value out of range": {"id": "9223372036854775807L"},
    "a null in a required column": {"id": "CAST(NULL AS BIGINT)"},
    "a null in a required member": {"st": "named_struct('x', CAST(NULL AS INT), 'y', 2)"},
    "an absent required column": {"id": None},
    "a text too long": {"v": "'äöüß'"},
    "a text too long by spaces": {"v": "'abc '"},
    "a fixed text too long": {"c": "'abcd'"},
    "an empty text that partitions": {"p": "''"},
    "a null that breaks a constraint": {"p": "CAST(NULL AS STRING)"},
}


OTHERWISE = {
    # Ours has the expression, the failure and the row, and no class of Spark's.
    "a generated value out of range": "ARITHMETIC_OVERFLOW",
    # Ours has the class that it has where no generated column uses the column.
    "an absent required column": "UNRESOLVED_COLUMN",
    # Ours has that of a null struct.
    "an absent struct": "DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
}
"""Rows that both refuse, by another class: the JAR's."""

STREAMED = {
    "all that must be there",
    "a default that is given",
    "a generated value that is wrong",
    "a broken constraint",
    "a null in a required column",
    "a text too long",
    *OTHERWISE,
}
"""Rows that come by a stream, too: what is filled, what the query is refused for, and each way in which a row is."""


def given(change: dict[str, str | None]) -> list[str]:
    return [f"{text} AS {name}" for name, text in {**GOOD, **change}.items() if text is not None]


def batch(writer: str, frame: DataFrame, table: Path) -> str | None:
    """Appends; gives the class of the error that kept it from it."""
    try:
        frame.write.format(writer).mode("append").options(**zone(writer)).save(str(table))
    except (PySparkException, Py4JJavaError) as error:
        return error_class(str(error))
    return None


def stream(session: SparkSession, writer: str, columns: list[str], source: Path, table: Path, at: Path) -> str | None:
    """The same by a stream, whose source is the JAR's: ours starts a Python process for each query."""
    frame = session.readStream.format("delta").load(str(source)).selectExpr(*columns)
    sink = frame.writeStream.format(writer).options(**zone(writer), checkpointLocation=str(at), path=str(table))
    try:
        finish(sink)
    except PySparkException as error:
        return error_class(str(error))
    return None


def zone(writer: str) -> dict[str, str]:
    return {"timeZone": "UTC"} if writer == "tablefeed" else {}


@pytest.fixture(scope="module")
def with_rules(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tmp_path_factory.mktemp("rules") / "table"
    run(delta_spark, table, *RULES)
    return table


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("three") / "source"
    grow(source, [0, 1, 2])
    return source


@pytest.mark.in_turn
@pytest.mark.parametrize("name", BATCHES)
def test_the_same_rows_are_filled_alike_or_refused_alike(
    delta_spark: SparkSession, tmp_path: Path, with_rules: Path, three: Path, name: str
) -> None:
    columns = given(BATCHES[name])
    ways = ("batch", "stream") if name in STREAMED else ("batch",)
    refusals: dict[str, list[str | None]] = {}
    for writer in ("delta", "tablefeed"):
        tables = {way: shutil.copytree(with_rules, tmp_path / writer / way) for way in ways}
        frame = delta_spark.range(3).coalesce(1).selectExpr(*columns)
        refusals[writer] = [batch(writer, frame, tables["batch"])]
        if "stream" in tables:
            at = tmp_path / writer / "checkpoint"
            refusals[writer].append(stream(delta_spark, writer, columns, three, tables["stream"], at))

    if name in OTHERWISE:
        assert refusals["delta"] == [OTHERWISE[name]] * 2
        assert None not in refusals["tablefeed"]
    else:
        assert refusals["tablefeed"] == refusals["delta"]
    for way in ways:
        ours, theirs = read_all(delta_spark, [tmp_path / writer / way for writer in ("tablefeed", "delta")])
        assert rows(ours) == rows(theirs)
        if refusals["tablefeed"][0] is not None:
            assert [file for file in (tmp_path / "tablefeed" / way).rglob("*.parquet") if "_log" not in str(file)] == []


WORDS = (
    "CREATE TABLE {t} (id BIGINT, s STRING, at TIMESTAMP, `array` ARRAY<INT>, tags ARRAY<STRING>, "
    "h INT GENERATED ALWAYS AS (hash(id, s, at)), second INT GENERATED ALWAYS AS (array[1]), "
    "hour TIMESTAMP GENERATED ALWAYS AS (make_timestamp(year(at), month(at), day(at), hour(at), 0, 0))) USING delta",
    "ALTER TABLE {t} ADD CONSTRAINT liked CHECK (s LIKE ANY ('a%', '%z') AND s NOT LIKE ALL ('%x%', '%y%'))",
    "ALTER TABLE {t} ADD CONSTRAINT tagged CHECK (array_size(array_compact(array_append(tags, 'x'))) > 1)",
    "ALTER TABLE {t} ADD CONSTRAINT shown "
    "CHECK (date_part('YEAR', at) > 2000 OR decode(encode(s, 'utf-8'), 'utf-8') = 'az')",
)

WORDED = {
    "id": "id - 1",
    "s": "'aé'",
    "at": "TIMESTAMP'2024-06-01 23:59:59.5'",
    "`array`": "array(1, CAST(id AS INT))",
    "tags": "array('a', NULL)",
}

WORDED_BATCHES: dict[str, dict[str, str]] = {
    "as they should be": {},
    "like the other": {"s": "'bz'"},
    "like none": {"s": "'b'"},
    "like what is excluded": {"s": "'ax'"},
    "a null text": {"s": "CAST(NULL AS STRING)"},
    "nulls that are left out": {"tags": "array(CAST(NULL AS STRING))"},
    "a null array": {"tags": "CAST(NULL AS ARRAY<STRING>)"},
    "too early": {"at": "TIMESTAMP'1999-06-01 23:59:59.5'"},
    "early and decoded": {"at": "TIMESTAMP'1999-06-01 23:59:59.5'", "s": "'az'"},
    "hashed nulls": {"id": "CAST(NULL AS BIGINT)"},
    "a null array of numbers": {"`array`": "CAST(NULL AS ARRAY<INT>)"},
    "a hash that is wrong": {"h": "7"},
}


@pytest.fixture(scope="module")
def with_words(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = tmp_path_factory.mktemp("words") / "table"
    run(delta_spark, table, *WORDS)
    return table


@pytest.mark.in_turn
@pytest.mark.parametrize("name", WORDED_BATCHES)
def test_rules_in_more_words_fill_and_refuse_alike(
    delta_spark: SparkSession, tmp_path: Path, with_words: Path, name: str
) -> None:
    columns = [f"{text} AS {column}" for column, text in {**WORDED, **WORDED_BATCHES[name]}.items()]
    tables = [shutil.copytree(with_words, tmp_path / writer) for writer in ("delta", "tablefeed")]
    frame = delta_spark.range(3).coalesce(1).selectExpr(*columns)
    refusals = [batch(table.name, frame, table) for table in tables]

    assert refusals[1] == refusals[0]
    theirs, ours = read_all(delta_spark, tables)
    assert rows(ours) == rows(theirs)


IDENTITY = (
    "CREATE TABLE {t} (a BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5), "
    "b BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH -1 INCREMENT BY -2), x BIGINT) USING delta",
)


def mark(table: Path) -> list[int | None]:
    schema = json.loads(actions_of_kind(table, "metaData")[-1]["schemaString"])
    return [field["metadata"].get("delta.identity.highWaterMark") for field in schema["fields"][:2]]


def test_values_of_identity_columns_are_made_in_turns_with_the_jar(
    delta_spark: SparkSession, tmp_path: Path, three: Path
) -> None:
    table = tmp_path / "table"
    run(delta_spark, table, *IDENTITY)
    twelve = delta_spark.range(12).selectExpr("id AS x").repartition(4)

    seen: set[int] = set()
    extreme = [5, 1]
    for number in range(6):
        writer = "delta" if number % 3 == 0 else "tablefeed"
        if number % 3 == 1:
            at = tmp_path / f"checkpoint{number}"
            assert stream(delta_spark, writer, ["id AS x"], three, table, at) is None
        else:
            assert batch(writer, twelve, table) is None
        now = read(delta_spark, table)
        values = set(now["a"].to_pylist())
        assert len(values) == len(set(now["b"].to_pylist())) == now.num_rows
        assert min(values - seen) > extreme[0]
        assert max(b for b in now["b"].to_pylist()) == -1 or number > 0
        assert all(a % 5 == 0 and a >= 10 for a in values)
        assert all((b + 1) % 2 == 0 and b <= -1 for b in now["b"].to_pylist())
        extreme = [max(values), min(now["b"].to_pylist())]
        assert mark(table) == extreme, writer
        seen = values


@pytest.mark.parametrize("columns", [["id AS a", "id AS x"], ["id AS b", "id AS x"]], ids=["always", "by default"])
def test_values_of_rows_for_identity_columns_are_taken_or_refused_alike(
    delta_spark: SparkSession, tmp_path: Path, three: Path, columns: list[str]
) -> None:
    found: dict[str, Any] = {}
    for writer in ("delta", "tablefeed"):
        table = tmp_path / writer
        run(delta_spark, table, *IDENTITY)
        frame = delta_spark.range(3).coalesce(1).selectExpr(*columns)
        refusals = [
            batch(writer, frame, table),
            stream(delta_spark, writer, columns, three, table, tmp_path / f"{writer}-checkpoint"),
        ]
        kept = read(delta_spark, table)
        found[writer] = refusals, sorted(kept["b"].to_pylist()), mark(table)[1]

    assert found["tablefeed"] == found["delta"]


def test_the_jar_reads_the_history_of_a_moved_mark(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    run(delta_spark, table, *IDENTITY)
    assert batch("tablefeed", delta_spark.range(3).selectExpr("id AS x"), table) is None

    entry = actions_of_kind(table, "commitInfo")[-1]

    assert entry["tags"] == {"delta.identity.schemaUpdate": "true"}
    history = run(delta_spark, table, "DESCRIBE HISTORY {t}")
    assert [row["version"] for row in history] == [1, 0]
    assert open_log(str(table)).load().version == 1
