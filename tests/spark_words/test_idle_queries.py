"""An idle query's planner waits before it looks, and still finds each commit that is there. No JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadMaxFiles
from pyspark.sql.types import LongType, StructField, StructType

import tablefeed
from support.faulty_store import FaultyStore
from tablefeed.feed.stream.idle import QUIET_LOOKS
from tablefeed.spark.at_load import analyse
from tablefeed.spark.source import StreamReader

SCHEMA = StructType([StructField("id", LongType())])


def an_idle_reader(table: Path) -> tuple[StreamReader, dict[str, object], FaultyStore]:
    """A reader at the end of its table's log, the offset there, and its store."""
    tablefeed.append(table, pa.table({"id": [0]}))
    given = {"path": str(table), "startingversion": "latest"}
    reader = StreamReader(given, SCHEMA, analyse({"path": str(table)}))
    log = reader._planner._source._log
    log.store = store = FaultyStore(log.store)
    return reader, reader.initialOffset(), store


def waits(reader: StreamReader, start: dict[str, object], store: FaultyStore) -> int:
    """How often the reader waits in more looks than it takes to be idle; all of them find nothing."""
    before = len(store.calls)
    assert [reader.latestOffset(start, ReadMaxFiles(1)) for _ in range(QUIET_LOOKS + 3)] == [start] * (QUIET_LOOKS + 3)
    return sum(call.operation == "wait" for call in store.calls[before:])


def test_the_look_of_an_idle_query_finds_each_commit_made_before_it(tmp_path: Path) -> None:
    reader, start, store = an_idle_reader(tmp_path)
    for version in range(1, 4):
        assert waits(reader, start, store) >= 2

        tablefeed.append(tmp_path, pa.table({"id": [version]}))
        end = reader.latestOffset(start, ReadMaxFiles(1))

        assert end["reservoirVersion"] == version + 1
        start = end
    reader.stop()


def test_a_query_that_ends_with_the_newest_version_never_waits(tmp_path: Path) -> None:
    reader, start, store = an_idle_reader(tmp_path)
    reader.prepareForTriggerAvailableNow()

    assert waits(reader, start, store) == 0
    reader.stop()


def test_the_first_looks_that_find_nothing_are_answered_at_once(tmp_path: Path) -> None:
    reader, start, store = an_idle_reader(tmp_path)

    for _ in range(QUIET_LOOKS):
        reader.latestOffset(start, ReadMaxFiles(1))

    assert "wait" not in [call.operation for call in store.calls]
    reader.stop()
