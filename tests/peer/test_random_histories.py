"""Random histories of tables with every feature at once, changed by the JAR and by us in turn.

The first table has rows of one version: a plain dict says which rows each step must leave. The other table keeps each
version of its rows (SCD type 2): the JAR maintains it between our batches of events, of which some come late.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

import tablefeed
from peer.jar_log import JarLog
from peer.tables import any_retention, in_spark, read, rows, run
from tablefeed import Delete, Insert, Update
from tablefeed.feed.snapshot.open_log import open_maintained
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.feed.upkeep.vacuum import vacuumed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY: Mapping[str, str] = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableRowTracking": "true",
    "delta.columnMapping.mode": "name",
    "delta.checkpointInterval": "4",
    "delta.feature.domainMetadata": "supported",
}
PLACES = ("a b", "ü/%", "", None)
FAR_MS = 32_503_680_000_000  # the year 3000: by then, everything is older than any retention

Model = dict[int, tuple[str | None, str | None]]
"""The value and the partition of each id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The table, and the JAR's session."""

    session: SparkSession
    path: Path

    @property
    def version(self) -> int:
        return tablefeed.open_table(self.path).version

    def sql(self, statement: str, source: pa.Table | None = None) -> None:
        if source is not None:
            in_spark(self.session, source).createOrReplaceTempView("source")
        run(self.session, self.path, statement)

    def optimize(self, *, by_jar: bool) -> None:
        if by_jar:
            self.sql("OPTIMIZE {t}")
        else:
            tablefeed.optimize(self.path)

    def vacuum(self, *, by_jar: bool) -> None:
        """Deletes each file that the newest version does not need."""
        if by_jar:
            with any_retention(self.session):
                self.sql("VACUUM {t} RETAIN 0 HOURS")
        else:
            vacuumed(open_maintained(str(self.path)), retention_ms=0, allow_short=True, dry_run=False, now_ms=FAR_MS)

    def checkpoint(self, *, by_jar: bool) -> None:
        if by_jar:
            JarLog(self.session, self.path).write_checkpoint()
        else:
            tablefeed.checkpoint(self.path)

    def read_by_all(self) -> list[list[str]]:
        """The rows as the JAR, we and delta-rs read them."""
        by_delta_rs = QueryBuilder().register("t", DeltaTable(self.path)).execute("SELECT * FROM t").read_all()
        found = (read(self.session, self.path), tablefeed.open_table(self.path).to_arrow(), pa.table(by_delta_rs))
        return [rows(each) for each in found]

    def check_changes(self, since: int) -> None:
        """Of each version the JAR and we read the same change rows."""
        theirs = read(self.session, self.path, readChangeFeed="true", startingVersion=since)
        ours = tablefeed.changes(self.path, start_version=since).read_all()
        assert ours.num_rows > 0
        kept = [name for name in ours.column_names if name != "_commit_timestamp"]
        assert rows(theirs.select(kept)) == rows(ours.select(kept))

    def row_ids(self) -> dict[int, int]:
        found = self.session.read.format("delta").load(str(self.path)).selectExpr("id", "_metadata.row_id AS row")
        return {row["id"]: row["row"] for row in found.collect()}


# --- rows of one version ----------------------------------------------------------------------------------------------


def some_rows(chance: random.Random, model: Model, *, fresh: bool = False) -> pa.Table:
    """Rows with an id of the table or a new one, and what is to be done (u or d)."""
    known = [] if fresh else chance.sample(sorted(model), min(len(model), 6))
    ids = [*known, *chance.sample([number for number in range(200) if number not in model], 4)]
    given = [(number, f"v{chance.randrange(1000)}", chance.choice("uud"), chance.choice(PLACES)) for number in ids]
    columns = zip(*given, strict=True)
    return pa.table(dict(zip(("id", "v", "op", "p"), map(list, columns), strict=True)))


def merge(table: Table, chance: random.Random, model: Model, *, by_jar: bool) -> None:
    source = some_rows(chance, model)
    if by_jar:
        table.sql(
            "MERGE INTO {t} AS target USING source ON target.id = source.id "
            "WHEN MATCHED AND source.op = 'd' THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET v = source.v, p = source.p "
            "WHEN NOT MATCHED AND source.op <> 'd' THEN INSERT (id, v, p) VALUES (source.id, source.v, source.p)",
            source,
        )
    else:
        values = {"v": "source.v", "p": "source.p"}
        tablefeed.merge(
            table.path,
            source,
            on=["id"],
            matched=[Delete(where="source.op = 'd'"), Update(set=values)],
            not_matched=[Insert(where="source.op <> 'd'", values={"id": "source.id", **values})],
        )
    for row in source.to_pylist():
        model.pop(row["id"], None)
        if row["op"] == "u":
            model[row["id"]] = row["v"], row["p"] or None


def update(table: Table, chance: random.Random, model: Model, *, by_jar: bool) -> None:
    ids, place = chance.sample(range(200), 20), chance.choice(PLACES)
    condition, given = f"id IN ({str(ids)[1:-1]})", "NULL" if place is None else f"'{place}'"
    if by_jar:
        table.sql(f"UPDATE {{t}} SET v = concat(v, '!'), p = {given} WHERE {condition}")  # noqa: S608 - our own words
    else:
        tablefeed.update(table.path, {"v": "concat(v, '!')", "p": given}, condition)
    model |= {number: (f"{v}!", place or None) for number, (v, _) in model.items() if number in ids}


def delete(table: Table, chance: random.Random, model: Model, *, by_jar: bool) -> None:
    first = chance.randrange(200)
    condition = f"id BETWEEN {first} AND {first + 12}"
    if by_jar:
        table.sql(f"DELETE FROM {{t}} WHERE {condition}")  # noqa: S608 - our own words
    else:
        tablefeed.delete(table.path, condition)
    for number in range(first, first + 13):
        model.pop(number, None)


def append(table: Table, chance: random.Random, model: Model, *, by_jar: bool) -> None:
    source = some_rows(chance, model, fresh=True).drop_columns(["op"])
    if by_jar:
        table.sql("INSERT INTO {t} (id, v, p) SELECT id, v, p FROM source", source)
    else:
        tablefeed.append(table.path, source)
    model |= {row["id"]: (row["v"], row["p"] or None) for row in source.to_pylist()}


def optimize(table: Table, _: random.Random, __: Model, *, by_jar: bool) -> None:
    table.optimize(by_jar=by_jar)


CHANGES = [merge, update, delete, append, merge, optimize]


def test_rows_and_change_rows_of_a_random_history_are_the_same_to_all(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    chance, model, table = random.Random(1), Model(), Table(session=delta_spark, path=tmp_path / "table")  # noqa: S311
    kinds = {"id": pa.int64(), "v": pa.string(), "p": pa.string()}
    begin = pa.table({"id": range(90), "v": [f"b{n}" for n in range(90)], "p": [PLACES[n % 4] for n in range(90)]})
    tablefeed.append(table.path, begin.cast(pa.schema(kinds)), partition_by=["p"], properties=EVERY)
    model |= {row["id"]: (row["v"], row["p"] or None) for row in begin.to_pylist()}
    since, by_jar = 0, False
    for _ in range(2):
        for change in chance.sample(CHANGES, len(CHANGES)):
            change(table, chance, model, by_jar=by_jar)
            wait_until_done()
            by_jar = not by_jar
        expected = rows(pa.table([[*model], *zip(*model.values(), strict=True)], schema=pa.schema(kinds)))
        assert table.read_by_all() == [expected] * 3
        table.check_changes(since)
        table.vacuum(by_jar=by_jar)  # takes the change files
        by_jar = not by_jar
        table.checkpoint(by_jar=by_jar)
        since = table.version + 1
    assert table.row_ids().keys() == model.keys()
    assert len({*table.row_ids().values()}) == len(model)
    assert JarLog(delta_spark, table.path).checksum_faults(table.version) == []


# --- each version of a row --------------------------------------------------------------------------------------------


def events(chance: random.Random) -> pa.Table:
    """Ten events of some twenty keys, whose sequences are in no order and each one once."""
    at = [chance.randrange(1_000_000) for _ in range(10)]
    ids = [chance.randrange(20) for _ in at]
    return pa.table(
        {
            "id": ids,
            "v": [f"v{chance.randrange(3)}" for _ in at],
            "note": [f"n{number}" for number in at],
            "p": [PLACES[number % 2] for number in ids],
            "at": at,
            "op": [chance.choice("uuud") for _ in at],
        }
    )


def apply(table: Path, given: pa.Table) -> None:
    tablefeed.apply_changes(
        table,
        given,
        keys="id",
        sequence_by="at",
        apply_as_deletes="op = 'd'",
        except_column_list=["op", "at"],
        stored_as_scd_type=2,
        track_history_except_column_list=["note"],
    )


def test_a_table_of_each_version_of_its_rows_is_kept_right_in_the_hands_of_the_jar(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    chance = random.Random(3)  # noqa: S311
    table, beside = Table(session=delta_spark, path=tmp_path / "table"), tmp_path / "beside"
    kinds = {"id": pa.int64(), "v": pa.string(), "note": pa.string(), "p": pa.string()}
    empty = pa.schema([*kinds.items(), ("__START_AT", pa.int64()), ("__END_AT", pa.int64())]).empty_table()
    for path in (table.path, beside):
        tablefeed.append(path, empty, partition_by=["p"], properties=EVERY)
    history: list[pa.Table] = []
    since = 1
    for by_jar in (True, False):
        for _ in range(2):
            history.append(events(chance))
            apply(table.path, history[-1])
        table.optimize(by_jar=by_jar)
        history.append(events(chance))
        apply(table.path, history[-1])
        table.check_changes(since)
        table.vacuum(by_jar=by_jar)
        table.checkpoint(by_jar=by_jar)
        since = table.version + 1
    history.append(events(chance))
    apply(table.path, history[-1])
    apply(beside, pa.concat_tables(reversed(history)))
    assert table.read_by_all() == [rows(tablefeed.open_table(beside).to_arrow())] * 3
    table.check_changes(since)
