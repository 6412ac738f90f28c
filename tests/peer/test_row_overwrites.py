"""`replaceWhere` on any column: the JAR does the same to a copy, and rows and changes are equal to both readers."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablefeed
from peer.tables import commit_actions, in_spark, read_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("p", pa.string())])
Row = tuple[int | None, float | None, str | None]
OLD: Sequence[Row] = [
    (1, 1.5, "a"),
    (2, math.nan, "a"),
    (3, None, None),
    (None, 0.0, "b"),
    (5, -0.0, "b"),
    (6, math.inf, None),
    (7, 7.5, "a"),
    (8, 8.5, "b"),
]
CASES: Mapping[str, tuple[str, Sequence[Row]]] = {
    "rows and nulls": ("id > 2", [(3, None, "z"), (40, 4.0, "a")]),
    "not": ("NOT (id > 2)", [(1, math.nan, "a")]),
    "NaN": ("x > 2.0", [(9, math.nan, "b"), (10, 3.0, None)]),
    "zeros": ("x = 0.0", [(9, -0.0, "b")]),
    "null": ("id IS NULL OR x IS NULL", [(None, 1.0, "a")]),
    "mixed": ("p = 'a' AND id >= 2", [(2, 2.0, "a")]),
    "a whole file": ("id = 7 OR id = 8", [(7, None, None)]),
    "no row": ("id = 1000", [(1000, 1.0, "a")]),
    "no new row": ("id < 3", []),
}
TABLES: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "fed": {"delta.enableChangeDataFeed": "true"},
    "fed, mapped": {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "name"},
    "fed, by id": {"delta.enableChangeDataFeed": "true", "delta.columnMapping.mode": "id"},
    "fed, with vectors": {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"},
}
EVERYWHERE = ("rows and nulls", "mixed", "a whole file")
"""The cases of every table; the one that is fed and no more has all."""


def texts(rows: pa.Table, *names: str) -> list[str]:
    """The rows in an order, in which NaN is NaN and 0.0 is not -0.0."""
    return sorted(str([row[name] for name in names]) for row in rows.to_pylist())


def frame_of(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def made(session: SparkSession, table: Path, properties: Mapping[str, str], *, partitioned: bool) -> int:
    """A table of three files, or one for each partition of each, of which a row is deleted; gives its version."""
    parts = "PARTITIONED BY (p)" if partitioned else ""
    told = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    told = f"TBLPROPERTIES ({told})" if told else ""
    session.sql(f"CREATE TABLE delta.`{table}` (id LONG, x DOUBLE, p STRING) USING delta {parts} {told}")
    for rows in (OLD[:3], OLD[3:6], OLD[6:]):
        in_spark(session, frame_of(rows)).write.format("delta").mode("append").save(str(table))
    session.sql(f"DELETE FROM delta.`{table}` WHERE id = 5")  # noqa: S608 (a path of this test)
    return 4


def left(session: SparkSession, tables: Sequence[Path], version: int, *, fed: bool) -> list[dict[str, Any]]:
    """What the JAR and we read of each table and of the changes of its last version."""
    told = (*SCHEMA.names, "_change_type", "_commit_version")
    by_the_jar = [texts(rows, *SCHEMA.names) for rows in read_all(session, tables)]
    changed = read_all(session, tables, readChangeFeed="true", startingVersion=version) if fed else []
    changes = [texts(rows, *told) for rows in changed]
    assert [texts(tablefeed.open_table(table).to_arrow(), *SCHEMA.names) for table in tables] == by_the_jar
    ours = [tablefeed.changes(table, start_version=version).read_all() for table in tables if fed]
    assert [texts(rows, *told) for rows in ours] == changes
    found = []
    for number, table in enumerate(tables):
        [said] = [action for kind, action in commit_actions(table, version) if kind == "commitInfo"]
        found.append(
            {
                "rows": by_the_jar[number],
                "changes": changes[number] if fed else None,
                "version": tablefeed.open_table(table).version,
                "said": (said["operation"], said["operationParameters"]["predicate"]),
                "deleted": said["operationMetrics"].get("numDeletedRows"),
            }
        )
    return found


@pytest.mark.in_turn
@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("properties", TABLES.values(), ids=TABLES)
def test_both_leave_the_same_rows_and_tell_the_same_changes(
    delta_spark: SparkSession,
    tmp_path: Path,
    properties: Mapping[str, str],
    partitioned: bool,  # noqa: FBT001
) -> None:
    fed = "delta.enableChangeDataFeed" in properties
    source = tmp_path / "source"
    version = made(delta_spark, source, properties, partitioned=partitioned)

    cases = CASES if properties == TABLES["fed"] and not partitioned else EVERYWHERE
    tables: dict[str, list[Path]] = {}
    for provider in ("delta", "tablefeed"):
        for name in cases:
            predicate, new = CASES[name]
            table = shutil.copytree(source, tmp_path / f"{name} by {provider}")
            writer = delta_spark.createDataFrame(frame_of(new)).write.format(provider).mode("overwrite")
            writer.option("replaceWhere", predicate).save(str(table))
            tables.setdefault(provider, []).append(table)

    found = left(delta_spark, [*tables["delta"], *tables["tablefeed"]], version + 1, fed=fed)
    theirs, ours = found[: len(cases)], found[len(cases) :]
    assert dict(zip(cases, ours, strict=True)) == dict(zip(cases, theirs, strict=True))


STRANGE: Sequence[tuple[str, Sequence[Row]]] = [
    ("id > 2", [(1, 1.0, "a")]),
    ("id > 2", [(None, 1.0, "a")]),
    ("id > 2", [(9, 1.0, "a"), (2, 1.0, "a")]),
    ("p = 'a'", [(10, 1.0, "a"), (11, 1.0, "b")]),
]


@pytest.mark.parametrize("provider", ["delta", "tablefeed"])
def test_both_refuse_rows_of_which_the_predicate_is_not_true(
    delta_spark: SparkSession, tmp_path: Path, provider: str
) -> None:
    made(delta_spark, tmp_path / "table", {}, partitioned=True)

    for predicate, strange in STRANGE:
        writer = in_spark(delta_spark, frame_of(strange)).write.format(provider).mode("overwrite")
        with pytest.raises(Exception, match="DELTA_REPLACE_WHERE_MISMATCH"):
            writer.option("replaceWhere", predicate).save(str(tmp_path / "table"))

    assert tablefeed.open_table(tmp_path / "table").version == 4
