"""A stream that tracks its table's metadata moves between the JAR and tablefeed at every step over a change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from peer.checkpoints import offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JAR, OURS = "delta", "tablefeed"
PATIENCE_S = 120

EVOLVED = "DELTA_STREAMING_METADATA_EVOLUTION"
WAITS = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"
RENAMED = {"allowSourceColumnRename": "3"}
DROPPED = {"allowSourceColumnDrop": "always"}
STEPS: list[tuple[list[str], dict[str, str], list[list[Any]] | str]] = [
    # What is done to the table, the options of the query then run, and its rows or the class that ends it.
    (["INSERT INTO {table} VALUES (1, 'one')"], {}, [[1, "one"]]),
    (
        [
            "ALTER TABLE {table} RENAME COLUMN name TO word",
            "ALTER TABLE {table} ADD COLUMNS (more INT)",
            "INSERT INTO {table} VALUES (2, 'two', 22)",
        ],
        {},
        EVOLVED,
    ),
    ([], {}, WAITS),
    ([], RENAMED, [[2, "two", 22]]),
    (["ALTER TABLE {table} DROP COLUMN word", "INSERT INTO {table} VALUES (3, 33)"], RENAMED, EVOLVED),
    ([], DROPPED, [[3, 33]]),
    (["ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '7')"], DROPPED, EVOLVED),
    (["INSERT INTO {table} VALUES (4, 44)"], {}, [[4, 44]]),
]


@pytest.mark.parametrize("change_feed", [False, True], ids=["appends", "changes"])
def test_a_tracked_stream_goes_on_alike_whoever_runs_it(
    delta_spark: SparkSession,
    tmp_path: Path,
    change_feed: bool,  # noqa: FBT001
) -> None:
    table = tmp_path / "table"
    checkpoints = {turns: tmp_path / "-".join(turns) for turns in ((JAR,), (OURS,), (JAR, OURS), (OURS, JAR))}
    create = f"CREATE TABLE delta.`{table}` (id INT, name STRING) USING delta TBLPROPERTIES ("
    delta_spark.sql(create + "'delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true')")

    for step, (statements, options, expected) in enumerate(STEPS):
        for statement in statements:
            delta_spark.sql(statement.format(table=f"delta.`{table}`"))
        for turns, checkpoint in checkpoints.items():
            by = turns[step % len(turns)]
            found = run(delta_spark, by, table, checkpoint, {**options, "readChangeFeed": str(change_feed).lower()})
            assert found == expected, (step, by, turns)

    assert [offsets(checkpoint) for checkpoint in checkpoints.values()] == [offsets(checkpoints[JAR,])] * 4
    assert [tracked(checkpoint) for checkpoint in checkpoints.values()] == [tracked(checkpoints[JAR,])] * 4


def run(spark: SparkSession, by: str, table: Path, checkpoint: Path, options: dict[str, str]) -> list[list[Any]] | str:
    """What a query over what is there now delivers, or the class of what ended it."""
    rows: list[list[Any]] = []

    def collect(batch: DataFrame, _batch_id: int) -> None:
        columns = [column for column in batch.columns if not column.startswith("_")]
        rows.extend(list(row) for row in batch.select(columns).collect())

    location = str(checkpoint / "tracked")
    stream = spark.readStream.format(by).options(schemaTrackingLocation=location, **options).load(str(table))
    writer = stream.writeStream.foreachBatch(collect).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(PATIENCE_S)
    except StreamingQueryException as error:
        classes = [name for name in (EVOLVED, WAITS) if name in str(error)]
        return classes[0] if classes else str(error)
    return rows


def tracked(checkpoint: Path) -> list[dict[str, Any]]:
    """The entries of the log, texts of JSON parsed, and the stream's own name in them without its checkpoint's."""
    (log,) = (checkpoint / "tracked").iterdir()
    found = []
    for number in range(len([file for file in log.iterdir() if file.name.isdecimal()])):
        first, line = (log / str(number)).read_text(encoding="utf-8").split("\n")
        assert first == "v1"
        entry = json.loads(line)
        for key in ("dataSchemaJson", "partitionSchemaJson", "protocolJson"):
            entry[key] = json.loads(entry[key])
        for features in ("readerFeatures", "writerFeatures"):
            entry["protocolJson"]["protocol"].get(features, []).sort()
        entry["sourceMetadataPath"] = entry["sourceMetadataPath"].removeprefix(f"file:{checkpoint}")
        found.append({"keys": list(entry), **entry})
    return found
