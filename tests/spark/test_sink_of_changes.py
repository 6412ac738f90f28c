"""A query with the option `keys`: the sink applies change events, also on Connect and from a batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tablefeed
from feed.rows.test_apply_changes import a_target, rows
from spark.test_apply_changes import batch, feed, txns
from spark.test_apply_changes import run as by_the_call
from spark.test_sink import forget_last_batch
from tablefeed.feed.rows.divided import EVENTS_DIR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OPTIONS = {"keys": "id", "sequenceBy": "ts", "applyAsDeletes": "op = 'd'", "exceptColumnList": "op"}


def by_the_sink(session: SparkSession, source: Path, target: str, checkpoint: Path) -> str:
    """Applies all that is there, one commit of the source a batch; gives the query's id."""
    stream = session.readStream.format("tablefeed").option("maxFilesPerTrigger", 1).load(str(source))
    writer = stream.writeStream.format("tablefeed").options(**OPTIONS)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start(target)
    query.awaitTermination()
    return str(query.id)


Run = Callable[["SparkSession", Path, str, Path], str]
both = pytest.mark.parametrize("run", [by_the_call, by_the_sink])


@both
def test_each_micro_batch_is_one_commit_and_order_holds_between_them(
    run: Run, session: SparkSession, tmp_path: Path
) -> None:
    target = a_target(tmp_path)
    source = feed(
        tmp_path / "source",
        [(1, "a", 1, "u"), (2, "b", 1, "u"), (3, "c", 2, "u")],
        [(1, "A", 5, "u"), (2, None, 6, "d"), (4, "d", 1, "u")],
        [(1, "late", 3, "u"), (2, "late", 3, "u"), (5, "e", 1, "u")],
    )
    query_id = run(session, source, target, tmp_path / "checkpoint")
    assert rows(target) == [(1, "A", 5), (3, "c", 2), (4, "d", 1), (5, "e", 1)]
    assert txns(target) == [(query_id, 0), (query_id, 1), (query_id, 2)]


@both
def test_a_batch_that_spark_runs_again_after_a_restart_changes_nothing(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    target, checkpoint = a_target(tmp_path), tmp_path / "checkpoint"
    source = feed(tmp_path / "source", [(1, "a", 1, "u")], [(2, "b", 1, "u"), (1, None, 2, "d")])
    query_id = run(spark, source, target, checkpoint)
    forget_last_batch(checkpoint)
    tablefeed.delete(target, "id = 2")
    feed(source, [(3, "c", 1, "u")])
    assert run(spark, source, target, checkpoint) == query_id
    assert rows(target) == [(3, "c", 1)]
    assert txns(target) == [(query_id, 0), (query_id, 1), (query_id, 2)]


def test_many_events_go_through_files_that_are_gone_after_the_commit(spark: SparkSession, tmp_path: Path) -> None:
    target = a_target(tmp_path)
    events = spark.range(0, 200_000, 1, 3).selectExpr(
        "id % 90000 AS id", "concat('v', id) AS v", "id AS ts", "if(id % 10 = 0, 'd', 'u') AS op"
    )
    for _ in range(2):
        once = {"txnAppId": "job", "txnVersion": "1"}
        events.write.format("tablefeed").options(**OPTIONS, **once).mode("append").save(target)
    newest = {key: max(range(key, 200_000, 90_000)) for key in range(90_000)}
    expected = [(key, f"v{at}", at) for key, at in newest.items() if at % 10]
    assert sorted(rows(target)) == expected
    assert (tablefeed.open_table(target).version, list((Path(target) / EVENTS_DIR).glob("*"))) == (1, [])


def test_a_batch_is_appended_as_change_events(session: SparkSession, tmp_path: Path) -> None:
    target = a_target(tmp_path)
    for given in ([(1, "a", 1, "u"), (2, "b", 1, "u")], [(1, "late", 0, "u"), (2, None, 2, "d")]):
        batch(session, *given).write.format("tablefeed").options(**OPTIONS).mode("append").save(target)
    assert rows(target) == [(1, "a", 1)]


@pytest.mark.parametrize(
    ("mode", "options", "text"),
    [
        ("overwrite", {}, "Option 'keys' is not supported here"),
        ("append", {"partitionBy": "id"}, "Option 'partitionBy' is not supported here"),
        ("append", {"columnList": "id"}, "'columnList' and 'exceptColumnList' cannot be combined"),
        ("append", {}, "Make sequenceBy finer"),
    ],
    ids=["overwrite", "partitionBy", "both lists", "equal sequences"],
)
def test_what_is_refused_reaches_the_user_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path, mode: str, options: dict[str, str], text: str
) -> None:
    target = a_target(tmp_path)
    given = batch(spark, (1, "a", 1, "u"), (1, "b", 1, "u"))
    with pytest.raises(Exception, match=text):
        given.write.format("tablefeed").options(**OPTIONS, **options).mode(mode).save(target)
    assert tablefeed.open_table(target).version == 0
