"""The same streams written by the JAR and by us: one schema afterwards, one set of rows, one class of refusal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors import PySparkException

import tablefeed
from peer.tables import actions_of_kind, error_class, read_all
from peer.tables import rows as text_rows
from spark.streams import finish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = tuple[list[str], dict[str, str]]
"""One stream: its columns as expressions, and the writer's options."""


def rows(*columns: str, **options: str) -> Rows:
    return list(columns), options


MERGE = {"mergeSchema": "true"}
CREATE = "CREATE TABLE delta.`{table}` "
MAPPED = "USING delta TBLPROPERTIES ('delta.columnMapping.mode' = '%s')"
WIDENING = "USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
NEW = ["17L AS id", "named_struct('B', '5', 'c', 1.5D) AS s", "array(named_struct('k', 1)) AS l", "X'AB' AS bin"]

SCENARIOS: dict[str, list[Rows | str]] = {
    # DeltaSinkImplicitCastSuite, whose cases that pass share one table
    "values of other types": [
        rows(
            *("17 AS int", "1L AS long", "CAST(1234.56 AS DECIMAL(6, 2)) AS d", "'abc' AS text"),
            *("named_struct('a', 17) AS s", "map(17, 57) AS m", "array(17, 57) AS a", "17L AS value"),
            "TIMESTAMP'2024-07-28 12:00:00' AS at",
        ),
        rows(
            *("23L AS int", "23 AS long", "CAST(98.7654 AS DECIMAL(10, 4)) AS d", "DATE'2024-07-25' AS text"),
            *("named_struct('a', -12L) AS s", "map(-12L, '3') AS m", "array('-12', '3') AS a", "23 AS VALUE"),
            "'2024-07-28T13:00:00+02:00' AS at",
        ),
        rows("DATE'2024-07-29' AS at", "9.99D AS INT"),
    ],
    "in a partition column": [
        CREATE + "(day DATE, value INT) USING delta PARTITIONED BY (day)",
        rows("DATE'2024-07-26' AS day", "1 AS value"),
        rows("TIMESTAMP'2024-07-27 05:00:00' AS day", "CAST(2 AS DECIMAL(4, 1)) AS value"),
        rows("3 AS value"),
    ],
    "with a new column": [
        rows("CAST(123 AS DECIMAL(6, 3)) AS a"),
        rows("678L AS a", "'abc' AS b", **MERGE),
    ],
    "after renaming and dropping": [
        rows("1 AS a", "100L AS b"),
        "ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')",
        "ALTER TABLE delta.`{table}` DROP COLUMN a",
        "ALTER TABLE delta.`{table}` RENAME COLUMN b TO a",
        rows("'17' AS a"),
        rows("'18' AS a", "named_struct('x', 1) AS b", **MERGE),
    ],
    "values that do not fit": [
        rows("17 AS int", "true AS flag", "DATE'2024-07-25' AS day", "named_struct('a', 17) AS s"),
        rows("9223372036854775807L AS int"),
        rows("'x' AS int"),
        rows("named_struct('a', 1) AS int"),
        rows("1 AS flag"),
        rows("1 AS day"),
        rows("array(17) AS s"),
    ],
    # SchemaEnforcementSuite, DeltaSinkSuite
    "columns that may not be added, and one that may": [
        rows("1 AS a", "named_struct('a', 1) AS s"),
        rows("1 AS a", "2 AS b"),
        rows("1 AS a", "2 AS b", mergeSchema="false"),
        rows("named_struct('a', 1, 'b', 2) AS s"),
        rows("1 AS a", "2 AS `b c`", **MERGE),
        rows("null AS a"),
        rows("1 AS a", "array(null) AS inside", **MERGE),
        rows("1 AS a", "null AS none", **MERGE),
        rows("1 AS a", "TIMESTAMP_NTZ'2024-01-01 00:00:00' AS clock", **MERGE),
    ],
    "new columns": [rows("1L AS id", "named_struct('b', 'x') AS s"), rows(*NEW, **MERGE), rows("'3' AS ID")],
    "missing members in another order": [
        rows("named_struct('a', 1, 'b', 'x', 'c', 1) AS s", "array(named_struct('a', 1, 'b', 2)) AS l"),
        rows("named_struct('B', 3, 'A', '7') AS s", "array(named_struct('B', 3)) AS l"),
    ],
    "a comment and a property stay": [
        CREATE + "(a INT COMMENT 'first', b VARCHAR(5)) USING delta COMMENT 'all' TBLPROPERTIES ('mine' = 'x')",
        rows("1 AS a", "'x' AS b", "2 AS c", **MERGE),
    ],
    # type widening
    "wider types": [
        CREATE + "(b TINYINT, f FLOAT, d DECIMAL(5, 2), s STRUCT<x: INT>, m MAP<INT, ARRAY<INT>>, "
        "t INT, u SMALLINT, v BIGINT) " + WIDENING,
        rows("1 AS b"),
        rows("1000 AS b"),
        rows(
            *("1000 AS b", "1.5D AS f", "CAST(1.234 AS DECIMAL(7, 3)) AS d", "named_struct('x', 5000000000L) AS s"),
            *("map(5000000000L, array(1L)) AS m", "7.9D AS t", "CAST(1.5 AS DECIMAL(12, 2)) AS u", "7.9D AS v"),
            **MERGE,
        ),
        rows("5000000000L AS b", **MERGE),
        rows("1 AS b"),
    ],
    # column mapping
    "new columns by name": [
        CREATE + "(id INT, s STRUCT<b: STRING>) " + MAPPED % "name",
        rows(*NEW, "2 AS `x y`", **MERGE),
        rows("'3' AS ID"),
    ],
    "new columns by id": [CREATE + "(id INT, s STRUCT<b: STRING>) " + MAPPED % "id", rows(*NEW, **MERGE)],
    "partitions by name": [
        CREATE + "(id INT, p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        rows("1 AS id", "'a=b/c' AS p"),
        rows("2 AS id", "null AS p"),
        rows("3 AS id", "4 AS p"),
    ],
}


@pytest.fixture(scope="module")
def one_row(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one_row")
    write_deltalake(str(folder), pa.table({"one": [1]}))
    return folder


def run(session: SparkSession, writer: str, scenario: list[Rows | str], one_row: Path, folder: Path) -> list[str]:
    """Takes all steps; gives the number of each that was refused, with the class of the error."""
    table, refusals = folder / "table", []
    for number, step in enumerate(scenario):
        if isinstance(step, str):
            session.sql(step.replace("{table}", str(table)))
            continue
        columns, options = step
        stream = session.readStream.format("delta").load(str(one_row)).selectExpr(*columns)
        sink = stream.writeStream.format(writer).options(**options)
        sink = sink if writer == "delta" else sink.option("timeZone", "UTC")
        try:
            finish(sink.option("checkpointLocation", str(folder / f"checkpoint{number}")).option("path", str(table)))
        except PySparkException as error:
            refusals.append(f"{number}: {error_class(str(error))}")
    return refusals


def metadata(table: Path) -> dict[str, Any]:
    """The newest metaData, random names as the ids beside them, and what names this table alone left out."""
    told = dict(actions_of_kind(table, "metaData")[-1])
    told["schemaString"] = without_random(json.loads(told["schemaString"]))
    return {key: value for key, value in told.items() if key not in ("id", "createdTime")}


def without_random(part: Any) -> Any:  # Any: JSON
    if isinstance(part, list):
        return [without_random(one) for one in part]
    if not isinstance(part, dict):
        return part
    inner = {key: without_random(value) for key, value in part.items()}
    name = inner.get("delta.columnMapping.physicalName", "")
    if name.startswith("col-"):
        inner["delta.columnMapping.physicalName"] = "random"
    return inner


def assert_equal_rows(session: SparkSession, ours: Path, theirs: Path) -> None:
    one, other = read_all(session, [ours, theirs])
    assert text_rows(one) == text_rows(other)


def leave_the_same(session: SparkSession, steps: list[Rows | str], source: Path, folder: Path) -> None:
    """Has both write the streams of a scenario, a table each, and holds one against the other."""
    theirs, ours = folder / "theirs", folder / "ours"

    refusals = [run(session, w, steps, source, f) for w, f in (("delta", theirs), ("tablefeed", ours))]

    assert refusals[1] == refusals[0]
    assert metadata(ours / "table") == metadata(theirs / "table")
    assert_equal_rows(session, ours / "table", theirs / "table")


@pytest.mark.in_turn
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_streams_leave_the_same_schema_and_rows_or_are_refused_alike(
    delta_spark: SparkSession, tmp_path: Path, one_row: Path, name: str
) -> None:
    leave_the_same(delta_spark, SCENARIOS[name], one_row, tmp_path)


LEGACY = {"storeAssignmentPolicy": "legacy"}  # of ours; the JAR's is a setting of the session
WRAPPED: dict[str, list[Rows | str]] = {
    "values that do not fit": [
        rows(
            *("17 AS int", "CAST(1 AS TINYINT) AS tiny", "1L AS long", "'abc' AS text", "DATE'2024-07-25' AS day"),
            *("CAST(1.5 AS DECIMAL(3, 2)) AS d", "1.5D AS f", "TIMESTAMP'2024-07-28 12:00:00' AS at"),
            *("named_struct('x', 1) AS s", "map(1, 1) AS m", "array(1) AS a", "true AS flag"),
        ),
        rows(
            *("9223372036854775807L AS int", "1e10D AS tiny", "CAST('NaN' AS DOUBLE) AS long"),
            *("CAST(0 AS DECIMAL(38, 18)) AS text", "'soon' AS day", "1000 AS d", "'x' AS f", "'2024-02-30' AS at"),
            *("named_struct('x', '1.9') AS s", "map(4294967297L, 'y') AS m", "array('x', '-7.5') AS a"),
            **LEGACY,
        ),
        rows("1 AS flag", **LEGACY),
    ],
    "null where there must be none": [CREATE + "(value INT NOT NULL) USING delta", rows("'x' AS value", **LEGACY)],
}


@pytest.fixture
def legacy(delta_spark: SparkSession) -> Any:
    delta_spark.conf.set("spark.sql.storeAssignmentPolicy", "LEGACY")
    yield delta_spark
    delta_spark.conf.unset("spark.sql.storeAssignmentPolicy")


@pytest.mark.parametrize("name", WRAPPED)
def test_the_same_streams_by_the_policy_legacy_leave_the_same_rows_or_are_refused_alike(
    legacy: SparkSession, tmp_path: Path, one_row: Path, name: str
) -> None:
    leave_the_same(legacy, WRAPPED[name], one_row, tmp_path)


Batch = tuple[list[str], str, dict[str, str]]
"""One batch write: its columns as expressions, its mode, its options, `partitionBy` among them."""
OVERWRITE = {"overwriteSchema": "true"}

BATCHES: dict[str, list[Batch | str]] = {
    "another schema": [
        (["1 AS id", "'x' AS p", "2L AS same"], "append", {"partitionBy": "p"}),
        (["'a' AS id", "2L AS same", "1.5D AS q"], "overwrite", {"partitionBy": "q", **OVERWRITE}),
    ],
    "no partitions any more": [
        (["1 AS id", "'x' AS p"], "append", {"partitionBy": "p"}),
        (["1 AS id", "'y' AS p"], "overwrite", OVERWRITE),
    ],
    "comments go, properties stay": [
        CREATE + "(a INT COMMENT 'first', b INT NOT NULL) USING delta TBLPROPERTIES ('mine' = 'x')",
        (["1 AS a", "2 AS b"], "overwrite", OVERWRITE),
    ],
    "mapped columns of one name and type": [
        CREATE + "(a INT, b STRING, s STRUCT<x: INT, y: INT>, c INT) " + MAPPED % "name",
        (
            ["'x' AS b", "1L AS a", "named_struct('x', 1, 'z', 2) AS s", "7 AS d"],
            "overwrite",
            OVERWRITE,
        ),
    ],
    "leave to overwrite, and to merge": [
        (["1 AS a"], "append", {}),
        (["2 AS a"], "overwrite", OVERWRITE),
        (["1 AS a", "2 AS b"], "append", OVERWRITE),
        (["1 AS a", "2 AS b"], "append", {**OVERWRITE, **MERGE}),
        (["2 AS c"], "overwrite", MERGE),
    ],
    "partitioned otherwise": [
        (["1 AS a", "2 AS b", "3 AS c"], "append", {"partitionBy": "a"}),
        (["1 AS a", "2 AS b", "3 AS c", "4 AS d"], "append", {"partitionBy": "b", **MERGE}),
        (["1 AS a"], "overwrite", {"partitionBy": "a", **OVERWRITE}),
    ],
}


def run_batches(session: SparkSession, writer: str, steps: list[Batch | str], table: Path) -> list[str]:
    refusals = []
    for number, step in enumerate(steps):
        if isinstance(step, str):
            session.sql(step.replace("{table}", str(table)))
            continue
        columns, mode, options = step
        frame = session.range(1).selectExpr(*columns).coalesce(1)
        sink = frame.write.format(writer).mode(mode).options(**options)
        if writer == "delta" and "partitionBy" in options:
            sink = sink.partitionBy(options["partitionBy"])
        try:
            sink.save(str(table))
        except PySparkException as error:
            refusals.append(f"{number}: {error_class(str(error))}")
    return refusals


@pytest.mark.parametrize("name", BATCHES)
def test_the_same_batches_leave_the_same_schema_and_rows_or_are_refused_alike(
    delta_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"

    refusals = [run_batches(delta_spark, w, BATCHES[name], t) for w, t in (("delta", theirs), ("tablefeed", ours))]

    assert refusals[1] == refusals[0]
    assert metadata(ours) == metadata(theirs)
    assert_equal_rows(delta_spark, ours, theirs)


def test_a_new_table_of_mapped_columns_is_the_jars(delta_spark: SparkSession, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    rows = pa.table({"id": [1], "a b": ["x"], "s": [{"k": [{"z": 1}]}]})
    columns = "(id BIGINT, `a b` STRING, s STRUCT<k: ARRAY<STRUCT<z: BIGINT>>>) "
    delta_spark.sql((CREATE + columns + MAPPED % "name").replace("{table}", str(theirs)))

    tablefeed.append(theirs, rows)
    tablefeed.append(ours, rows, properties={"delta.columnMapping.mode": "name"})

    told = metadata(theirs)
    told["configuration"] = {k: v for k, v in told["configuration"].items() if k.startswith("delta.columnMapping")}
    assert metadata(ours) == told
    assert_equal_rows(delta_spark, ours, theirs)
    features = [actions_of_kind(table, "protocol")[-1]["writerFeatures"] for table in (ours, theirs)]
    assert set(features[0]) <= set(features[1])
