"""What a user says of schema tracking, and what Spark is told: a plan's schema, and an error that ends the query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.logs import LONG_ID, a_log, add, metadata, protocol, put
from tablefeed.errors import ConflictingOptionsError, IllegalOptionError, MetadataEvolvedError, UnsupportedOptionError
from tablefeed.feed.stream.source_options import DROP, RENAME, TYPE_CHANGE, TrackingOptions
from tablefeed.spark.analysis import Analysis, spark_schema
from tablefeed.spark.at_load import analyse
from tablefeed.spark.batch import BatchReader
from tablefeed.spark.options import parse_options
from tablefeed.spark.source import StreamReader
from tablefeed.spark.stream_planner import source_options
from tablefeed.store import LocalStore

MORE = LONG_ID.replace("]}", ',{"name":"more","type":"string","nullable":true,"metadata":{}}]}')


NONE = dict.fromkeys((RENAME, DROP, TYPE_CHANGE))


def options_of(**given: str) -> TrackingOptions | None:
    return source_options(parse_options(given, "stream read")).tracking


@pytest.fixture
def table(tmp_path: Path) -> LocalStore:
    store = LocalStore(str(tmp_path / "table"))
    a_log(store, v0=[protocol(), metadata(LONG_ID)], v1=[add("a")])
    return store


@pytest.fixture
def given(table: LocalStore, tmp_path: Path) -> dict[str, str]:
    """The options as Spark passes them: keys in lower case."""
    return {"path": table.url, "schematrackinglocation": str(tmp_path / "tracked")}


def reader(given: dict[str, str], analysis: Analysis | None = None) -> StreamReader:
    analysis = analyse(given) if analysis is None else analysis
    return StreamReader(given, spark_schema(analysis), analysis)


def at_rest(given: dict[str, str]) -> dict[str, object]:
    """Where a query stands that has read all there is."""
    stream = reader(given)
    return stream.latestOffset(stream.initialOffset(), stream.getDefaultReadLimit())


def test_what_the_user_says_reaches_the_feed() -> None:
    assert options_of() is None
    assert options_of(schemaLocation="/c") == TrackingOptions(location="/c", allowed=NONE)
    assert options_of(schemaTrackingLocation="/c", schemaLocation="/d") == TrackingOptions(location="/c", allowed=NONE)
    assert options_of(
        schemaTrackingLocation="/c",
        streamingSourceTrackingId="orders",
        allowSourceColumnRename="3",
        allowSourceColumnDrop="always",
    ) == TrackingOptions(location="/c", tracking_id="orders", allowed={**NONE, RENAME: 3, DROP: "always"})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("schemaTrackingLocation", ""),
        ("streamingSourceTrackingId", "../orders"),
        ("allowSourceColumnRename", "Always"),
        ("allowSourceColumnDrop", "true"),
        ("allowSourceColumnTypeChange", "-1"),
    ],
)
def test_a_word_that_would_have_no_effect_is_refused(option: str, value: str) -> None:
    with pytest.raises(IllegalOptionError):
        options_of(**{option: value})


def test_commits_that_are_gone_are_not_passed_over_where_one_may_have_changed_the_schema() -> None:
    with pytest.raises(ConflictingOptionsError, match="failOnDataLoss"):
        options_of(schemaTrackingLocation="/c", failOnDataLoss="false")


def test_a_stream_does_not_both_stop_at_added_columns_and_go_on_without_them() -> None:
    with pytest.raises(ConflictingOptionsError, match="Set one of them"):
        options_of(schemaLocation="/c", ignoreAddedColumns="true")


def test_a_stream_is_analysed_with_the_schema_that_is_tracked(table: LocalStore, given: dict[str, str]) -> None:
    assert analyse(given).tracked is False
    at_rest(given)
    put(table, 2, [metadata(MORE), add("b")])

    found = analyse(given)

    assert (found.tracked, spark_schema(found).names) == (True, ["id"])
    assert spark_schema(analyse({"path": table.url})).names == ["id", "more"]


def test_a_stream_of_changes_has_the_feeds_columns_after_those_that_are_tracked(
    table: LocalStore, given: dict[str, str]
) -> None:
    at_rest(given)
    put(table, 2, [metadata(MORE), add("b")])

    names = spark_schema(analyse({**given, "readchangefeed": "true"})).names

    assert names == ["id", "_change_type", "_commit_version", "_commit_timestamp"]


def test_a_batch_read_is_not_given_the_schema_of_a_stream(given: dict[str, str]) -> None:
    at_rest(given)
    analysis = analyse(given)

    with pytest.raises(UnsupportedOptionError, match="Leave it out of a batch read"):
        BatchReader(given, spark_schema(analysis), analysis)


def test_spark_is_told_of_a_change_when_it_says_that_all_before_is_done(
    table: LocalStore, given: dict[str, str], tmp_path: Path
) -> None:
    start = at_rest(given)
    put(table, 2, [metadata(MORE), add("b")])
    stream = reader(given)
    barrier = stream.latestOffset(start, stream.getDefaultReadLimit())
    behind = stream.latestOffset(barrier, stream.getDefaultReadLimit())

    assert [(offset["sourceVersion"], offset["index"]) for offset in (barrier, behind)] == [(3, -20), (3, -19)]
    assert stream.partitions(start, barrier) == stream.partitions(barrier, behind) == []
    report: Any = stream.reportLatestOffset()
    assert (report["index"], report["lag"]["versionsBehind"]) == (-1, 1)
    with pytest.raises(MetadataEvolvedError) as caught:
        stream.commit(barrier)

    assert str(caught.value).startswith("[DELTA_STREAMING_METADATA_EVOLUTION]")
    (log,) = (tmp_path / "tracked").iterdir()
    assert [json.loads(file.read_bytes()[3:])["deltaCommitVersion"] for file in sorted(log.iterdir())] == [1, 2]
    assert spark_schema(analyse(given)).names == ["id", "more"]
