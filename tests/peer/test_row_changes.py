"""Rows that change, on two tables that begin as one: at each step the JAR changes one of them, and we the other.

At the next step it is the other way round, so each works on what the other left. After each step both tables have the
same rows to the JAR, to delta-rs and to us, and at the end the same change rows.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import tablefeed
from peer.jar_log import JarLog
from peer.tables import any_retention, commit_actions, in_spark, read, read_all, run
from peer.tables import rows as texts
from tablefeed import Delete, Insert, Update
from tablefeed.feed.snapshot.open_log import open_maintained
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.feed.upkeep.vacuum import vacuumed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VECTORS = {"delta.enableDeletionVectors": "true"}
FED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}

CREATE = (
    "CREATE TABLE {t} (id LONG, v STRING, n DECIMAL(10, 2), at TIMESTAMP, inner STRUCT<a: INT, b: STRING>, p STRING) "
    "USING delta {partitioned} TBLPROPERTIES ({properties})"
)
INSERT = (
    "INSERT INTO {t} SELECT id, concat('v', id), id / 4, timestamp_seconds(1700000000 + id), "
    "named_struct('a', cast(id AS INT), 'b', IF(id % 3 = 0, NULL, 'b')), IF(id % 2 = 0, 'a b', NULL) "
    "FROM range({first}, {first} + 2000, 1, 1)"
)

Do = Callable[["Side"], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two tables, and where the JAR runs."""

    session: SparkSession
    path: Path

    @property
    def version(self) -> int:
        return tablefeed.open_table(self.path).version

    def sql(self, statement: str) -> None:
        run(self.session, self.path, statement)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The same change by the JAR and by us. `source` are the rows of the view s; they are ours to merge or apply."""

    theirs: str | Do
    ours: Callable[[Path, pa.Table], object]
    source: pa.Table = field(default_factory=lambda: events(0))


def events(at: int, *given: tuple[int, str | None, str, str | None]) -> pa.Table:
    """Changes of a sequence: a key, a value, what is done (u or d), and a partition."""
    kinds = {"id": pa.int64(), "v": pa.string(), "op": pa.string(), "p": pa.string()}
    columns = list(zip(*given, strict=True)) or [()] * len(kinds)
    arrays = {name: pa.array(values, kinds[name]) for name, values in zip(kinds, columns, strict=True)}
    return pa.table({**arrays, "ts": pa.array([at] * len(given), pa.int64())})


MERGE = (
    "MERGE INTO {t} AS t USING s ON t.id = s.id WHEN MATCHED AND s.op = 'd' THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET v = s.v, p = s.p "
    "WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT (id, v, p) VALUES (s.id, s.v, s.p)"
)
MERGE_BY_SOURCE = (
    "MERGE INTO {t} AS t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id < 1010 THEN UPDATE SET p = 'rest' "
    "WHEN NOT MATCHED BY SOURCE AND t.id > 3900 THEN DELETE"
)
SET = {"v": "source.v", "p": "source.p"}


def merge(path: Path, source: pa.Table) -> object:
    return tablefeed.merge(
        path,
        source,
        on=["id"],
        matched=[Delete(where="source.op = 'd'"), Update(set=SET)],
        not_matched=[Insert(where="source.op <> 'd'", values={"id": "source.id", **SET})],
    )


def apply(path: Path, source: pa.Table) -> object:
    always: dict[str, Any] = {"keys": "id", "sequence_by": "ts", "apply_as_deletes": "op = 'd'"}
    return tablefeed.apply_changes(path, source, **always, except_column_list=["op", "ts"])


def merge_by_source(path: Path, source: pa.Table) -> object:
    rest: list[Update | Delete] = [
        Update(set={"p": "'rest'"}, where="target.id < 1010"),
        Delete(where="target.id > 3900"),
    ]
    return tablefeed.merge(path, source, on=["id"], not_matched_by_source=rest)


def vacuum_ours(path: Path, _: pa.Table) -> object:
    later_ms = time.time_ns() // 1_000_000 + 60_000  # so that everything is older than a retention of nothing
    log = open_maintained(str(path))
    return vacuumed(log, retention_ms=0, allow_short=True, dry_run=False, now_ms=later_ms)


def vacuum_theirs(side: Side) -> None:
    with any_retention(side.session):
        side.sql("VACUUM {t} RETAIN 0 HOURS")


STEPS: Mapping[str, Step] = {
    "merge": Step(
        theirs=MERGE,
        ours=merge,
        source=events(1, (1, None, "d", None), (4, "m", "u", "ü/%"), (1505, None, "u", None), (9001, "i", "u", "a b")),
    ),
    "update of few": Step(
        theirs="UPDATE {t} SET v = concat(v, '!'), p = 'moved' WHERE id IN (1, 4, 9, 1001)",
        ours=lambda path, _: tablefeed.update(path, {"v": "concat(v, '!')", "p": "'moved'"}, "id IN (1, 4, 9, 1001)"),
    ),
    "changes": Step(
        theirs=MERGE,
        ours=apply,
        source=events(2, (9, "c", "u", None), (1000, None, "d", None), (9002, None, "d", ""), (9003, "i", "u", "ü/%")),
    ),
    "delete of many": Step(
        theirs="MERGE INTO {t} AS t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        ours=lambda path, source: tablefeed.merge(path, source, on=["id"], matched=[Delete()]),
        source=events(0, *((number, None, "d", None) for number in range(0, 3500, 3))),
    ),
    "more changes": Step(
        theirs=MERGE,
        ours=apply,
        source=events(3, (9003, "c", "u", ""), (9002, "i", "u", "b"), (1001, None, "d", None), (2, None, "d", None)),
    ),
    "merge by source": Step(
        theirs=MERGE_BY_SOURCE,
        ours=merge_by_source,
        source=events(0, (4, "", "", ""), (3901, "", "", "")),
    ),
    "optimize": Step(theirs="OPTIMIZE {t}", ours=lambda path, _: tablefeed.optimize(path)),
    "update after it": Step(
        theirs="UPDATE {t} SET v = NULL WHERE id > 3000 AND id < 3010",
        ours=lambda path, _: tablefeed.update(path, {"v": "NULL"}, "id > 3000 AND id < 3010"),
    ),
    "vacuum": Step(theirs=vacuum_theirs, ours=vacuum_ours),
    "checkpoint": Step(
        theirs=lambda side: JarLog(side.session, side.path).write_checkpoint(),
        ours=lambda path, _: tablefeed.checkpoint(path),
    ),
    "delete of all but few": Step(
        theirs="DELETE FROM {t} WHERE id > 1500 OR p IS NULL",
        ours=lambda path, _: tablefeed.delete(path, "id > 1500 OR p IS NULL"),
    ),
    "last changes": Step(
        theirs=MERGE,
        ours=apply,
        source=events(4, (9003, "l", "u", "a b"), (1001, "l", "u", None), (1002, None, "d", None)),
    ),
}


def do(number: int, step: Step, sides: Sequence[Side]) -> None:
    theirs, ours = sides[number % 2], sides[1 - number % 2]
    if isinstance(step.theirs, str):
        in_spark(theirs.session, step.source).createOrReplaceTempView("s")
        theirs.sql(step.theirs)
    else:
        step.theirs(theirs)
    step.ours(ours.path, step.source)
    wait_until_done()


def read_by_all(sides: Sequence[Side]) -> list[list[str]]:
    """The rows of each table as each of the three reads them."""
    found = []
    for side, theirs in zip(sides, read_all(sides[0].session, [side.path for side in sides]), strict=True):
        found.append(texts(theirs))
        found.append(texts(tablefeed.open_table(side.path).to_arrow()))
        by_delta_rs = QueryBuilder().register("t", DeltaTable(side.path)).execute("SELECT * FROM t").read_all()
        found.append(texts(pa.table(by_delta_rs)))
    return found


NEEDED = {"delta.feature.domainMetadata": "supported"}


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("properties", "partitioned"),
    [(FED, True), (VECTORS, False), ({**VECTORS, **FED, **MAPPED}, True)],
    ids=["copies, fed, in parts", "vectors", "vectors, fed, mapped, in parts"],
)
def test_each_changes_the_rows_that_the_other_left_and_all_read_the_same(
    delta_spark: SparkSession, tmp_path: Path, properties: Mapping[str, str], *, partitioned: bool
) -> None:
    sides = [Side(session=delta_spark, path=tmp_path / name) for name in ("one", "other")]
    told = ", ".join(f"'{name}' = '{value}'" for name, value in {**NEEDED, **properties}.items())
    parts = "PARTITIONED BY (p)" if partitioned else ""
    run(delta_spark, sides[0].path, CREATE, properties=told, partitioned=parts)
    for first in (0, 2000):
        run(delta_spark, sides[0].path, INSERT, first=first)
    shutil.copytree(sides[0].path, sides[1].path)

    begun, is_fed = [2, 2], "delta.enableChangeDataFeed" in properties
    for number, (name, step) in enumerate(STEPS.items()):
        if is_fed and name == "vacuum":  # which takes the change files
            assert different(changes_since(sides, begun)) == []
        do(number, step, sides)
        assert different(read_by_all(sides)) == [], name
        begun = [side.version for side in sides] if name == "vacuum" else begun
    if is_fed:
        assert different(changes_since(sides, begun)) == []
    check_counts(sides)
    if "delta.enableDeletionVectors" in properties:
        for side in sides:
            check_vectors(side.path)


def different(found: Sequence[Sequence[str]]) -> list[list[str]]:
    """What is in one of the lists and not in the first; nothing where all are the same."""
    return [sorted({*each} ^ {*found[0]})[:5] or ["counts"] for each in found if each != found[0]]


def changes_since(sides: Sequence[Side], versions: Sequence[int]) -> list[list[str]]:
    """The rows that changed after a version of each table, as the JAR and we read them."""
    found = []
    for side, version in zip(sides, versions, strict=True):
        theirs = read(side.session, side.path, readChangeFeed="true", startingVersion=version + 1)
        ours = tablefeed.changes(side.path, start_version=version + 1).read_all()
        found += [texts(feed.drop_columns(["_commit_version", "_commit_timestamp"])) for feed in (theirs, ours)]
    return found


def check_counts(sides: Sequence[Side]) -> None:
    """What the JAR answers from statistics alone holds, and so does the newest checksum, of the JAR or of ours."""
    for side in sides:
        ids = tablefeed.open_table(side.path).to_arrow(columns=["id"])["id"].to_pylist()
        counted = run(side.session, side.path, "SELECT count(*), min(id), max(id) FROM {t}")
        assert tuple(counted[0]) == (len(ids), min(ids), max(ids))
        assert JarLog(side.session, side.path).checksum_faults(side.version) == []


def check_vectors(table: Path) -> None:
    """The vectors are in files, and the statistics of their data files are not said to be tight."""
    actions = [
        each for version in range(1, 1 + tablefeed.open_table(table).version) for each in commit_actions(table, version)
    ]
    marked = [action for kind, action in actions if kind == "add" and action.get("deletionVector")]
    assert len(marked) > 4
    for add in marked:
        statistics = json.loads(add["stats"])
        assert statistics["tightBounds"] is False
        assert statistics["numRecords"] > add["deletionVector"]["cardinality"]
