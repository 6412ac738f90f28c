"""Merges in which several source rows match one row, and merges into append-only tables, by the JAR and by us.

Both merge the same rows into two copies of one table. Both refuse with the same class, or leave the same rows, the same
change rows and the same counts of rows in the commit.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import tablefeed
from peer.tables import commit_actions, error_class, in_spark, rows, run
from tablefeed import Delete, Insert, Update
from tablefeed.errors import TablefeedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Clauses = Mapping[str, Any]  # Any: lists of clauses, by the names that our merge has for them
Outcome = dict[str, Any]  # Any: texts, and counts by name
COPIES: Mapping[str, str] = {}
VECTORS = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
COUNTS = (
    "numSourceRows",
    "numTargetRowsInserted",
    "numTargetRowsUpdated",
    "numTargetRowsDeleted",
    "numTargetRowsCopied",
    "numOutputRows",
    "numTargetFilesRemoved",
)
WHEN = {"matched": "MATCHED", "not_matched": "NOT MATCHED", "not_matched_by_source": "NOT MATCHED BY SOURCE"}


def table_of(*given: tuple[int, str]) -> pa.Table:
    ids, values = zip(*given, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(values, pa.string())})


def a_table(path: Path, properties: Mapping[str, str]) -> Path:
    """Two files: the ids 0 to 4, and 5 to 7."""
    for ids in (range(5), range(5, 8)):
        tablefeed.append(path, table_of(*((number, f"v{number}") for number in ids)), properties=properties)
    return path


def in_sql(clauses: Clauses) -> str:
    """The clauses as MERGE INTO has them."""
    parts = []
    for kind in WHEN:
        for clause in clauses.get(kind, ()):
            condition = "" if clause.where is None else f" AND {clause.where}"
            match clause:
                case Delete():
                    action = "DELETE"
                case Insert():
                    action = "INSERT *"
                case Update(set=None):
                    action = "UPDATE SET *"
                case _:
                    action = "UPDATE SET " + ", ".join(f"{name} = {value}" for name, value in clause.set.items())
            parts.append(f"WHEN {WHEN[kind]}{condition} THEN {action}")
    return " ".join(parts)


def outcome(path: Path, merge: Callable[[], object]) -> Outcome:
    """The class of the error, or the rows, the change rows and what the commit counts."""
    before = tablefeed.open_table(path).version
    try:
        merge()
    except TablefeedError as error:
        return {"refused": error.error_class}
    except (PySparkException, Py4JJavaError) as error:
        return {"refused": error_class(str(error))}
    after = tablefeed.open_table(path)
    found: Outcome = {"rows": rows(after.to_arrow())}
    if after.version > before:
        (info,) = (action for kind, action in commit_actions(path, after.version) if kind == "commitInfo")
        found["counts"] = {name: int(info["operationMetrics"][name]) for name in COUNTS}
        if "delta.enableChangeDataFeed" in after.metadata.configuration:
            changes = tablefeed.changes(path, start_version=after.version).read_all()
            found["changes"] = rows(changes.drop_columns(["_commit_version", "_commit_timestamp"]))
    return found


def outcomes(session: SparkSession, table: Path, given: pa.Table, clauses: Clauses) -> tuple[Outcome, Outcome]:
    """Of the same merge by the JAR and by us."""
    theirs = Path(shutil.copytree(table, f"{table}_theirs"))
    in_spark(session, given).createOrReplaceTempView("source")
    merge = f"MERGE INTO {{t}} AS target USING source ON target.id = source.id {in_sql(clauses)}"
    by_jar = outcome(theirs, lambda: run(session, theirs, merge))
    return by_jar, outcome(table, lambda: tablefeed.merge(table, given, on=["id"], **clauses))


ONE = "source.v <> 'b'"
BY_SOURCE = [Update(set={"v": "'gone'"}, where="target.id = 2")]
REFUSED: Mapping[str, Clauses] = {
    "a condition chooses one": {"matched": [Update(where=ONE)]},
    "a condition chooses none": {"matched": [Delete(where="source.v = 'nope'")]},
    "and inserts": {"matched": [Delete(where=ONE)], "not_matched": [Insert()]},
    "no clause for them": {"not_matched_by_source": BY_SOURCE},
}
ALLOWED: Mapping[str, Clauses] = {
    "deletes": {"matched": [Delete()]},
    "deletes and inserts": {"matched": [Delete()], "not_matched": [Insert()]},
    "inserts": {"not_matched": [Insert()]},
    "deletes, and updates others": {"matched": [Delete()], "not_matched_by_source": BY_SOURCE},
}


@pytest.mark.in_turn
@pytest.mark.parametrize("clauses", [*REFUSED.values(), *ALLOWED.values()], ids=[*REFUSED, *ALLOWED])
def test_several_source_rows_match_one_row(delta_spark: SparkSession, tmp_path: Path, clauses: Clauses) -> None:
    twice = table_of((1, "a"), (1, "b"), (6, "c"), (20, "n"), (20, "n"))
    theirs, ours = outcomes(delta_spark, a_table(tmp_path / "table", VECTORS), twice, clauses)
    assert ours == theirs
    several = {"refused": "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"}
    assert (theirs == several) == (clauses in REFUSED.values())


NONE = "target.id > 100"
TAKES_NO_ROW: Clauses = {"matched": [Update(where=NONE)], "not_matched": [Insert()]}


@pytest.mark.parametrize(
    ("clauses", "properties", "refused"),
    [
        ({"not_matched": [Insert()]}, COPIES, None),
        (TAKES_NO_ROW, VECTORS, None),
        ({"not_matched": [Insert()], "not_matched_by_source": [Delete(where=NONE)]}, VECTORS, None),
        ({"matched": [Update()], "not_matched": [Insert()]}, COPIES, "DELTA_CANNOT_MODIFY_APPEND_ONLY"),
        ({"matched": [Delete()]}, VECTORS, "DELTA_CANNOT_MODIFY_APPEND_ONLY"),
    ],
    ids=["inserts", "updates no row", "deletes no row", "updates", "deletes"],
)
def test_a_merge_into_an_append_only_table(
    delta_spark: SparkSession, tmp_path: Path, clauses: Clauses, properties: Mapping[str, str], refused: str | None
) -> None:
    table = a_table(tmp_path / "table", {**properties, "delta.appendOnly": "true"})
    theirs, ours = outcomes(delta_spark, table, table_of((1, "a"), (20, "n")), clauses)
    assert ours == theirs
    assert theirs.get("refused") == refused


def test_the_jar_refuses_to_copy_rows_of_an_append_only_table_and_we_copy_none(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """Without deletion vectors the JAR rewrites each file that has a matched row, also if no clause chooses the row."""
    table = a_table(tmp_path / "table", {"delta.appendOnly": "true"})
    theirs, ours = outcomes(delta_spark, table, table_of((1, "a"), (20, "n")), TAKES_NO_ROW)
    assert theirs == {"refused": "DELTA_CANNOT_MODIFY_APPEND_ONLY"}
    assert ours["rows"] == rows(table_of(*((number, f"v{number}") for number in range(8)), (20, "n")))
