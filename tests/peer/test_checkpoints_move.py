"""A stream moves from the JAR to tablefeed and back on its checkpoint, and no row comes twice or is left out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException

import tablefeed
from peer.checkpoints import Batches, copied, copy, drain, forget_last_commit, offset_texts, offsets
from peer.tables import actions_of_kind, run
from spark.streams import PATIENCE_S, drained, ids_of
from spark.streams import grow as stream_grow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JAR, OURS = "delta", "tablefeed"


def grow(table: Path, *first_ids: int) -> None:
    """Commits a version of two files, of two rows each, for each of `first_ids`."""
    for first in first_ids:
        ids = pa.array(range(first, first + 4), pa.int64())
        tablefeed.append(table, pa.table({"id": ids, "half": [0, 0, 1, 1]}), partition_by=["half"])


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table for streams that only read: the first that comes by makes it grow, and nobody after it."""
    path = tmp_path_factory.mktemp("streams") / "table"
    grow(path, 0, 4)
    return path


@pytest.fixture(scope="module")
def by_the_jar(delta_spark: SparkSession, table: Path) -> tuple[Path, Batches]:
    """The JAR's checkpoint over a snapshot of four files (batches 0-3) and two commits of two, and its batches."""
    checkpoint = table.with_name("by-the-jar")
    batches = drain(delta_spark, JAR, table, checkpoint)
    grow(table, 8, 12)
    return checkpoint, batches | drain(delta_spark, JAR, table, checkpoint)


@pytest.mark.parametrize(
    ("done", "planned"),
    [
        pytest.param(1, 1, id="in the initial snapshot"),
        pytest.param(1, 2, id="in the initial snapshot, the next batch planned and not done"),
        pytest.param(3, 4, id="after the initial snapshot, the next batch planned and not done"),
        pytest.param(4, 4, id="in a commit"),
    ],
)
def test_a_checkpoint_of_the_jar_is_continued_and_handed_back(
    delta_spark: SparkSession, table: Path, by_the_jar: tuple[Path, Batches], tmp_path: Path, done: int, planned: int
) -> None:
    theirs, expected = by_the_jar

    continued = copied(theirs, tmp_path / "continued", committed=done, planned=planned)
    by_us = drain(delta_spark, OURS, table, continued)
    assert by_us == {batch: ids for batch, ids in expected.items() if batch > done}
    assert offsets(continued) == offsets(theirs)

    back = copied(continued, tmp_path / "back", committed=done + 2, planned=planned + 2)
    by_them = drain(delta_spark, JAR, table, back)
    assert by_them == {batch: ids for batch, ids in expected.items() if batch > done + 2}
    assert offsets(back) == offsets(theirs)


@pytest.mark.parametrize("order", [(JAR, OURS, JAR), (OURS, JAR, OURS)], ids=" ".join)
def test_an_idle_stream_changes_hands_each_time_the_table_grew(
    delta_spark: SparkSession, tmp_path: Path, order: tuple[str, ...]
) -> None:
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"
    batches: Batches = {}
    for turn, by in enumerate(order):
        grow(table, 4 * turn)
        batches |= drain(delta_spark, by, table, checkpoint)

    assert batches == {batch: [2 * batch, 2 * batch + 1] for batch in range(6)}
    assert [list(offset) for offset in offsets(checkpoint)] == [KEYS] * 6


KEYS = ["sourceVersion", "reservoirId", "reservoirVersion", "index", "isStartingVersion"]


def test_a_sink_changes_hands_and_writes_no_batch_twice_though_the_last_is_run_again(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    for turn, by in enumerate((JAR, OURS, JAR)):
        grow(source, 4 * turn)
        checkpoint = copy(delta_spark, by, source, target)
        for again_by in {JAR: [OURS], OURS: [OURS, JAR]}[by]:
            forget_last_commit(checkpoint)
            copy(delta_spark, again_by, source, target)

    query = json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"]
    txns = [(txn["appId"], txn["version"]) for txn in actions_of_kind(target, "txn")]
    assert txns == [(query, batch) for batch in range(3)]
    assert sorted(tablefeed.open_table(target).to_arrow()["id"].to_pylist()) == list(range(12))


MAPPED = "'delta.columnMapping.mode' = 'name'"
RECORDED = "'delta.enableChangeDataFeed' = 'true'"
VECTORS = "'delta.enableDeletionVectors' = 'true'"


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("properties", "options", "first", "then"),
    [
        pytest.param(
            (MAPPED,),
            {},
            ["ALTER TABLE {t} ADD COLUMNS (w LONG)", "INSERT INTO {t} VALUES (20, 2, 2)"],
            ["INSERT INTO {t} VALUES (30, 3, 3)"],
            id="a mapped table with an added column",
        ),
        pytest.param(
            (RECORDED, VECTORS),
            {"readChangeFeed": "true"},
            ["INSERT INTO {t} VALUES (20, 2), (21, 2)", "DELETE FROM {t} WHERE id = 20"],
            ["DELETE FROM {t} WHERE id IN (21, 30)", "INSERT INTO {t} VALUES (30, 3)"],
            id="a change feed with deletion vectors",
        ),
        pytest.param(
            (RECORDED, MAPPED),
            {"readChangeFeed": "true"},
            ["INSERT INTO {t} SELECT id, 2 FROM range(20, 22, 1, 1)", "UPDATE {t} SET v = 4 WHERE id = 20"],
            ["UPDATE {t} SET v = 5 WHERE id = 21"],
            id="a change feed whose last commit recorded its changes",
        ),
    ],
)
def test_who_takes_a_stream_over_and_finds_nothing_new_makes_no_batch(
    delta_spark: SparkSession,
    tmp_path: Path,
    properties: tuple[str, ...],
    options: dict[str, str],
    first: list[str],
    then: list[str],
) -> None:
    table, alone = tmp_path / "table", tmp_path / "alone"
    checkpoints = {(JAR, OURS): tmp_path / "the jar's", (OURS, JAR): tmp_path / "ours"}
    create = f"CREATE TABLE {{t}} (id LONG, v LONG) USING delta TBLPROPERTIES ({', '.join(properties)})"

    for statements in ([create, "INSERT INTO {t} VALUES (10, 1)"], first, then):
        run(delta_spark, table, *statements)
        expected = drain(delta_spark, JAR, table, alone, **options)
        for (one, other), checkpoint in checkpoints.items():
            assert drain(delta_spark, one, table, checkpoint, **options) == expected
            texts = offset_texts(checkpoint)
            if statements in (first, then):
                assert drain(delta_spark, other, table, checkpoint, **options) == {}
                assert drain(delta_spark, one, table, checkpoint, **options) == {}
            assert offset_texts(checkpoint) == texts == offset_texts(alone)


def test_behind_recorded_changes_the_offset_of_a_newer_jar_is_gone_on_from_as_the_released_ones(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """A newer JAR moves on to the next version where the released one stays at the commit's last file."""
    table, released = tmp_path / "table", tmp_path / "released"
    changes = {"readChangeFeed": "true"}
    create = f"CREATE TABLE {{t}} (id LONG, v LONG) USING delta TBLPROPERTIES ({RECORDED})"
    run(delta_spark, table, create, "INSERT INTO {t} SELECT id, 1 FROM range(0, 2, 1, 1)")
    drain(delta_spark, JAR, table, released, **changes)
    run(delta_spark, table, "UPDATE {t} SET v = 2 WHERE id = 0")
    drain(delta_spark, JAR, table, released, **changes)
    assert offsets(released)[-1] | {"reservoirId": ""} == {**AT_2, "index": 0}
    newer = with_last_offset(released, tmp_path / "newer", {"reservoirVersion": 3, "index": -1})
    found = [
        (by, shutil.copytree(checkpoint, tmp_path / f"{checkpoint.name} by {by}"))
        for by in (JAR, OURS)
        for checkpoint in (released, newer)
    ]

    for by, checkpoint in found:
        texts = offset_texts(checkpoint)
        assert drain(delta_spark, by, table, checkpoint, **changes) == {}
        assert offset_texts(checkpoint) == texts

    run(delta_spark, table, "UPDATE {t} SET v = 3 WHERE id = 1")
    for by, checkpoint in found:
        assert drain(delta_spark, by, table, checkpoint, **changes) == {2: [1, 1]}
        assert offsets(checkpoint)[-1] | {"reservoirId": ""} == {**AT_2, "reservoirVersion": 3, "index": 0}


AT_2 = {"sourceVersion": 1, "reservoirId": "", "reservoirVersion": 2, "isStartingVersion": False}


def with_last_offset(checkpoint: Path, into: Path, changed: dict[str, int]) -> Path:
    """A copy whose last batch ended elsewhere."""
    shutil.copytree(checkpoint, into)
    last = max((into / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    *head, text = last.read_text(encoding="utf-8").splitlines()
    text = json.dumps(json.loads(text) | changed, separators=(",", ":"))
    last.write_text("\n".join([*head, text]), encoding="utf-8")
    last.with_name(f".{last.name}.crc").unlink()
    return into


@pytest.mark.parametrize("properties", ["'delta.appendOnly' = 'false'", MAPPED], ids=["plain", "mapped"])
def test_behind_an_empty_first_batch_from_latest_the_jar_goes_on_without_the_option(
    delta_spark: SparkSession, tmp_path: Path, properties: str
) -> None:
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"
    create = f"CREATE TABLE {{t}} (id LONG) USING delta TBLPROPERTIES ({properties})"
    run(delta_spark, table, create, "INSERT INTO {t} VALUES (1)")
    assert drain(delta_spark, OURS, table, checkpoint, startingVersion="latest") == {0: []}
    assert drain(delta_spark, JAR, table, checkpoint) == {}

    run(delta_spark, table, "INSERT INTO {t} VALUES (2)")
    assert drain(delta_spark, JAR, table, checkpoint) == {1: [2]}


@pytest.mark.parametrize(("by", "rows"), [(JAR, [[3]]), (OURS, [[2], [3]])], ids=[JAR, OURS])
def test_a_first_batch_from_latest_that_fails_is_lost_by_the_jar_and_not_by_us(
    delta_spark: SparkSession, tmp_path: Path, by: str, rows: list[list[int]]
) -> None:
    table, checkpoint = tmp_path / "table", tmp_path / "checkpoint"
    stream_grow(table, [1])

    def stream() -> DataFrame:
        return delta_spark.readStream.format(by).option("startingVersion", "latest").load(str(table))

    def fail(batch: DataFrame, _batch_id: int) -> None:
        if ids_of(batch):
            raise InterruptedError("the sink is not ready")

    query = stream().writeStream.foreachBatch(fail).option("checkpointLocation", str(checkpoint)).start()
    query.processAllAvailable()
    stream_grow(table, [2])
    with pytest.raises(StreamingQueryException, match="the sink is not ready"):
        query.awaitTermination(PATIENCE_S)
    stream_grow(table, [3])

    assert drained(stream(), checkpoint) == rows


@pytest.mark.parametrize(("by", "first"), [(JAR, [4, 6]), (OURS, [0, 2])], ids=[JAR, OURS])
def test_of_a_planned_first_batch_before_a_start_was_set_the_jar_has_other_rows_and_we_have_its_own(
    delta_spark: SparkSession, tmp_path: Path, by: str, first: list[int]
) -> None:
    table = tmp_path / "table"
    stream_grow(table, [0, 2], [4, 6])
    whole = drain(delta_spark, by, table, tmp_path / "whole")
    checkpoint = copied(tmp_path / "whole", tmp_path / "checkpoint", committed=-1, planned=0)

    assert drain(delta_spark, by, table, checkpoint, startingVersion="1") == whole | {0: first}
