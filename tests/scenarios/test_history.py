"""What the history says of writes (DescribeDeltaHistorySuite)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

import tablefeed
from scenarios.sinks import save, stream_into, told_by
from support.logs import add, metadata, protocol
from support.recorded import log, schema, vector
from tablefeed.feed.snapshot.known_state import newest_state
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.log.conflicts import WriteKind
from tablefeed.spark.sink import BatchWriter
from tablefeed.spark.written import Written


def ids(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def events(*rows: tuple[int, int], **more: str) -> pa.Table:
    columns = {"id": [row[0] for row in rows], "part": [row[1] for row in rows]}
    names = {"event_name": [f"event{row[0]}" for row in rows]}
    return pa.table(columns | names | {name: [text] * len(rows) for name, text in more.items()})


def size_of_files(table: Path, version: int) -> int:
    batches = tablefeed.open_table(table, version=version).files()
    return sum(size for batch in batches for size in batch["size_bytes"].to_pylist())


def test_a_write_that_comes_behind_others_tells_the_version_that_it_was_planned_on(table: Path) -> None:
    save(table, ids(0))
    planned = plan_write(*newest_state(str(table), {}), ids().schema, partition_by=(), kind=WriteKind.APPEND)
    for _ in range(2):
        save(table, ids(1))

    files = write_task(planned, ids(2).to_batches(), task=0, now_ms=0)
    BatchWriter({"path": str(table)}, StructType().add("id", LongType()), overwrite=False).commit(
        [Written(plan=planned, files=files)]
    )

    history = tablefeed.open_table(table).history()
    assert [(about.version, about.fields.get("readVersion")) for about in history] == [
        (3, 0),
        (2, 1),
        (1, 0),
        (0, None),
    ]


def test_a_write_counts_its_files_rows_and_bytes(table: Path) -> None:
    save(table, *(ids(*range(n, n + 20)) for n in range(0, 100, 20)))

    size = size_of_files(table, 0)
    assert size > 0
    assert told_by(table)["operationMetrics"] == {
        "numFiles": "5",
        "numOutputRows": "100",
        "numOutputBytes": str(size),
    }


def test_an_overwrite_counts_what_it_removes_too(table: Path) -> None:
    save(table, *(ids(n) for n in range(4)))
    save(table, ids(*range(10)), ids(*range(10, 20)), mode="overwrite")

    assert told_by(table)["operationMetrics"] == {
        "numFiles": "2",
        "numRemovedFiles": "4",
        "numRemovedBytes": str(size_of_files(table, 0)),
        "numOutputRows": "20",
        "numOutputBytes": str(size_of_files(table, 1)),
    }


@pytest.mark.parametrize("with_change_feed", [True, False])
def test_a_replace_where_on_partitions_counts_the_rows_that_make_way(table: Path, *, with_change_feed: bool) -> None:
    changes = {"delta.enableChangeDataFeed": "true"} if with_change_feed else {}
    save(table, pa.table({"id": list(range(10)), "b": [1] * 10}), partitionBy="b", **changes)

    halves = [pa.table({"id": list(ids), "b": [1] * 10}) for ids in (range(10), range(10, 20))]
    save(table, *halves, mode="overwrite", replaceWhere="b = 1")

    assert told_by(table)["operationMetrics"] == {
        "numFiles": "2",
        "numRemovedFiles": "1",
        "numRemovedBytes": str(size_of_files(table, 0)),
        "numAddedChangeFiles": "0",
        "numDeletedRows": "10",
        "numCopiedRows": "0",
        "numOutputRows": "20",
        "numOutputBytes": str(size_of_files(table, 1)),
    }


def test_rows_that_no_statistics_tell_of_are_not_counted(table: Path) -> None:
    fields = schema(("id", "long"), ("b", "long"))
    file = add("b=1/a.parquet", size=7, partitionValues={"b": "1"})
    log(table, v0=[protocol(), metadata(fields, partition_columns=["b"])], v1=[file])

    save(table, pa.table({"id": [1], "b": [1]}), mode="overwrite", replaceWhere="b = 1")

    assert told_by(table)["operationMetrics"] == {
        "numFiles": "1",
        "numRemovedFiles": "1",
        "numRemovedBytes": "7",
        "numAddedChangeFiles": "0",
        "numOutputRows": "1",
        "numOutputBytes": str(size_of_files(table, 2)),
    }


def test_rows_that_were_deleted_before_do_not_make_way(table: Path) -> None:
    fields = schema(("id", "long"), ("b", "long"))
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    file = add("b=1/a.parquet", partitionValues={"b": "1"}, stats='{"numRecords":5}', deletionVector=vector(0, 3))
    log(table, v0=[protocol(3, 7, **features), metadata(fields, partition_columns=["b"])], v1=[file])

    save(table, pa.table({"id": [1], "b": [1]}), mode="overwrite", replaceWhere="b = 1")

    assert told_by(table)["operationMetrics"]["numDeletedRows"] == "3"


def test_a_streaming_update_counts_the_files_and_rows_of_its_batch(table: Path) -> None:
    save(table, ids(*range(10)))
    query = stream_into(table)
    counted = []

    for rows in (ids(1), ids(1, 2, 3)):
        query.write(rows)
        metrics = told_by(table)["operationMetrics"]
        assert int(metrics.pop("numOutputBytes")) > 0
        counted.append(metrics)

    assert counted == [
        {"numAddedFiles": "1", "numRemovedFiles": "0", "numOutputRows": "1"},
        {"numAddedFiles": "1", "numRemovedFiles": "0", "numOutputRows": "3"},
    ]


MERGED = events((8, 1), newcol="extra", anothercol="extra2")


@pytest.mark.parametrize(
    ("mode", "rows", "options", "told"),
    [
        (
            "overwrite",
            events((4, 1)),
            {"partitionOverwriteMode": "dynamic"},
            {"isDynamicPartitionOverwrite": True},
        ),
        ("overwrite", events((5, 1), (6, 1)), {"replaceWhere": "part = 1"}, {"predicate": "part = 1"}),
        ("append", events((9, 1)), {"mergeSchema": "false"}, {}),
        ("overwrite", events((13, 1)), {"mergeSchema": "false", "overwriteSchema": "false"}, {}),
        ("overwrite", events((7, 1), newcol="extra"), {"overwriteSchema": "true"}, {"canOverwriteSchema": True}),
        ("append", MERGED, {"mergeSchema": "true"}, {"canMergeSchema": True}),
        (
            "overwrite",
            events((11, 1), newcol="extra"),
            {"overwriteSchema": "true", "mergeSchema": "true"},
            {"canOverwriteSchema": True, "canMergeSchema": True},
        ),
        (
            "overwrite",
            events((14, 1), newcol="extra"),
            {"partitionOverwriteMode": "dynamic", "mergeSchema": "true"},
            {"isDynamicPartitionOverwrite": True, "canMergeSchema": True},
        ),
        ("append", events((7, 1)), {"overwriteSchema": "true"}, {"canOverwriteSchema": True}),
        ("append", MERGED, {"MERGESCHEMA": "TRUE"}, {"canMergeSchema": True}),
    ],
    ids=[
        "dynamic",
        "replaceWhere",
        "false",
        "false-twice",
        "overwriteSchema",
        "mergeSchema",
        "both",
        "dynamic-mergeSchema",
        "append-overwriteSchema",
        "in-capitals",
    ],
)
def test_a_write_tells_the_options_that_it_was_given_and_no_others(
    table: Path, mode: str, rows: pa.Table, options: dict[str, str], told: dict[str, object]
) -> None:
    save(table, events((1, 1), (2, 2), (3, 1)), partitionBy="part")

    save(table, rows, mode=mode, **options)

    parameters = told_by(table)["operationParameters"]
    partition_by = parameters.pop("partitionBy")
    assert (parameters.pop("mode").lower(), parameters) == (mode, told)
    # An overwrite of the schema is one of the partitioning too.
    assert partition_by == ("[]" if "overwriteSchema" in options and told and mode == "overwrite" else '["part"]')
