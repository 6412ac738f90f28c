"""A table that we made in the JAR's hands, and in ours again: each reads what both wrote, whoever rewrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablefeed
from peer.jar_log import JarLog
from peer.tables import any_retention, read, run
from tablefeed.feed.upkeep.background import wait_until_done

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]  # Any: of any column


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How a table is made: by our first append with `properties`, or by the statements of the JAR's in `ddl`."""

    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    ddl: Mapping[str, str] = field(default_factory=dict)
    """By operation."""


KINDS: Mapping[str, Kind] = {
    "partitioned": Kind(partition_by=("p",)),
    "mapped, with deletion vectors and changes": Kind(
        properties={
            "delta.columnMapping.mode": "name",
            "delta.enableDeletionVectors": "true",
            "delta.enableChangeDataFeed": "true",
        }
    ),
    "row tracking, times of its own, v2 checkpoints": Kind(
        properties={
            "delta.enableRowTracking": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.checkpointPolicy": "v2",
        }
    ),
    "rules, made by the JAR": Kind(
        ddl={
            "CREATE TABLE": (
                "CREATE TABLE {t} (id LONG, name STRING, p STRING, twice LONG GENERATED ALWAYS AS (id * 2), "
                "n LONG GENERATED ALWAYS AS IDENTITY) USING delta"
            ),
            "ADD CONSTRAINT": "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id >= 0)",
        }
    ),
}


def rows_of(*ids: int) -> pa.Table:
    columns = {"id": pa.array(ids, pa.int64()), "name": [f"n{n}" for n in ids], "p": [f"{n % 2} ü/" for n in ids]}
    return pa.table(columns)


def expected(*ids: int, changed: int | None = None) -> list[Row]:
    return [(n, "changed" if n == changed else f"n{n}", f"{n % 2} ü/") for n in sorted(ids)]


def told(rows: pa.Table) -> list[Row]:
    return sorted(tuple(row[name] for name in ("id", "name", "p")) for row in rows.to_pylist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """One table, and the two that have hold of it."""

    session: SparkSession
    path: Path

    def sql(self, statement: str) -> Sequence[Any]:  # Any: Spark's rows
        return run(self.session, self.path, statement)

    def by_the_jar(self) -> pa.Table:
        return read(self.session, self.path)

    def by_us(self) -> pa.Table:
        return tablefeed.open_table(self.path).to_arrow()

    def both(self) -> list[list[Row]]:
        """The rows as each reads them."""
        theirs, ours = self.by_the_jar(), self.by_us()
        assert sorted(map(repr, theirs.to_pylist())) == sorted(map(repr, ours.select(theirs.column_names).to_pylist()))
        return [told(theirs), told(ours)]


def made(hands: Hands, kind: Kind) -> None:
    """A table of two commits of ours, with the ids 0 to 9, after one of the JAR's where that makes the table."""
    for statement in kind.ddl.values():
        hands.sql(statement)
    tablefeed.append(hands.path, rows_of(*range(5)), properties=kind.properties, partition_by=kind.partition_by)
    tablefeed.append(hands.path, rows_of(*range(5, 10)))


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_jar_changes_and_maintains_a_table_of_ours_and_we_go_on(
    delta_spark: SparkSession, tmp_path: Path, kind: Kind
) -> None:
    hands = Hands(session=delta_spark, path=tmp_path / "table")
    made(hands, kind)

    hands.sql("INSERT INTO {t} (id, name, p) VALUES (10, 'n10', '0 ü/'), (11, 'n11', '1 ü/')")
    hands.sql("DELETE FROM {t} WHERE id = 1")
    hands.sql("UPDATE {t} SET name = 'changed' WHERE id = 2")
    optimized = hands.sql("OPTIMIZE {t}")[0]["metrics"]
    assert optimized["numFilesRemoved"] > optimized["numFilesAdded"] > 0
    JarLog(delta_spark, hands.path).write_checkpoint()
    with any_retention(delta_spark):
        hands.sql("VACUUM {t} RETAIN 0 HOURS")
    left = (0, *range(2, 12))
    assert hands.both() == [expected(*left, changed=2)] * 2

    ours = tablefeed.append(hands.path, rows_of(12, 13))
    wait_until_done()
    assert hands.both() == [expected(*left, 12, 13, changed=2)] * 2
    assert told(tablefeed.appends(hands.path, start_version=ours.version).read_all()) == expected(12, 13)
    check_history(hands, kind)
    assert JarLog(delta_spark, hands.path).checksum_faults(ours.version) == []
    check_made_columns(hands.by_us())


def check_made_columns(rows: pa.Table) -> None:
    """The columns that neither's rows bring have their values in all of them."""
    for row in rows.to_pylist():
        assert row.get("twice", 2 * row["id"]) == 2 * row["id"]
    if "n" in rows.column_names:
        assert len(set(rows["n"].to_pylist()) - {None}) == rows.num_rows


def check_history(hands: Hands, kind: Kind) -> None:
    """Both tell the same operations, ours and the JAR's, and the JAR what our writes did."""
    history = hands.sql("DESCRIBE HISTORY {t}")
    operations = [*kind.ddl]
    operations += ["WRITE", "WRITE", "WRITE", "DELETE", "UPDATE", "OPTIMIZE", "VACUUM START", "VACUUM END", "WRITE"]
    assert [entry["operation"] for entry in reversed(history)] == operations
    assert [entry.operation for entry in tablefeed.open_table(hands.path).history()] == operations[::-1]
    ours = [entry for entry in history if (entry["engineInfo"] or "").startswith("tablefeed")]
    assert [(entry["operation"], entry["operationMetrics"]["numOutputRows"]) for entry in ours] == [
        ("WRITE", "2"),
        ("WRITE", "5"),
        ("WRITE", "5"),
    ]
    assert all(entry["isBlindAppend"] and entry["operationParameters"]["mode"] == "Append" for entry in ours)


def test_a_stream_of_ours_goes_on_over_what_the_jar_maintains(delta_spark: SparkSession, tmp_path: Path) -> None:
    hands = Hands(session=delta_spark, path=tmp_path / "table")
    made(hands, KINDS["mapped, with deletion vectors and changes"])

    def stream() -> list[int]:
        rows = delta_spark.readStream.format("tablefeed").option("skipChangeCommits", "true").load(str(hands.path))
        writer = rows.writeStream.format("tablefeed").option("checkpointLocation", str(tmp_path / "state"))
        writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
        return sorted(tablefeed.open_table(tmp_path / "out").to_arrow()["id"].to_pylist())

    assert stream() == [*range(10)]
    hands.sql("INSERT INTO {t} VALUES (10, 'n10', 'p')")
    hands.sql("DELETE FROM {t} WHERE id IN (1, 10)")
    hands.sql("OPTIMIZE {t}")
    JarLog(delta_spark, hands.path).write_checkpoint()
    tablefeed.append(hands.path, rows_of(11))

    assert stream() == [*range(12)], "the row that was deleted since was appended once"
