"""When a stream that tracks its table's metadata stops at a change, and how it goes on.

The cases are those of Delta-Spark's own tests (DeltaSourceSchemaEvolutionSuite), as are those of its neighbours here.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from support.logs import LONG_ID, Action, add, at, col, commit_path, log_of, meta, metadata, protocol, put, remove
from support.tracking import ADDED, ALWAYS, MAPPED, Checkpoint, mapped, passed, reached, schema
from tablefeed.errors import (
    ChangeRefusedError,
    LogGapError,
    MetadataEvolvedError,
    OffsetError,
    SchemaChangedError,
    SchemaLogError,
)
from tablefeed.feed.scan.delta_task import DeltaTask
from tablefeed.feed.stream.schema_analysis import _replaced
from tablefeed.feed.stream.schema_tracking import schema_log_of
from tablefeed.feed.stream.source_options import DROP, RENAME
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset
from tablefeed.store import LocalStore


def test_a_stream_stops_before_a_change_and_goes_on_with_it_when_it_is_started_again(
    table: LocalStore, query: Checkpoint
) -> None:
    assert query.start() == [["a"]]
    put(table, 2, [add("b")])
    put(table, 3, [ADDED, add("c")])
    put(table, 4, [add("d")])

    with pytest.raises(MetadataEvolvedError, match="more") as caught:
        query.start()
    assert (caught.value.error_class, caught.value.version) == ("DELTA_STREAMING_METADATA_EVOLUTION", 3)
    assert query.files[1:] == [["b"]]
    assert query.columns == ["id"]

    assert query.start() == [[], ["c", "d"]]
    assert query.columns == ["id", "more"]
    assert query.ends == [at(2), reached(3), passed(3), at(5)]
    assert query.versions() == [1, 3]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param([metadata(LONG_ID, configuration={"delta.appendOnly": "true"})], id="property alone"),
        pytest.param([protocol(1, 3)], id="protocol alone"),
        pytest.param([ADDED], id="column added"),
        pytest.param([metadata(schema(id="long"), partition_columns=["id"])], id="partitioning"),
    ],
)
def test_each_kind_of_change_is_a_barrier(table: LocalStore, query: Checkpoint, change: list[Action]) -> None:
    query.start()
    put(table, 2, [*change, add("b", partitionValues={"id": "7"})])

    query.evolves()

    assert query.start() == [[], ["b"]]
    tracked = json.loads(query.entries()[1]["protocolJson"])["protocol"]
    assert tracked["minWriterVersion"] == (3 if "protocol" in change[0] else 2)


@pytest.mark.parametrize("begins", ["before the loss", "after the loss"])
def test_a_change_that_was_lost_stops_a_stream_that_may_lose_data(
    table: LocalStore, query: Checkpoint, begins: str
) -> None:
    query.start()
    running = query.source(fail_on_data_loss=False)
    assert running.initial()
    put(table, 2, [metadata(schema(number="long"))])
    for version in (3, 4):
        put(table, version, [add(str(version))])
    write_checkpoint(log_of(table).load())
    table.delete(commit_path(2))
    source = running if begins == "before the loss" else query.source(fail_on_data_loss=False)

    with pytest.raises(LogGapError, match="One of them changed the metadata that this stream tracks") as caught:
        source.latest(query.ends[-1], Limits())
    assert (caught.value.expected, caught.value.found) == (2, 3)


def test_a_stream_that_tracks_metadata_and_may_lose_data_goes_on_where_it_did_not_change(
    table: LocalStore, query: Checkpoint
) -> None:
    query.start()
    for version in (2, 3, 4):
        put(table, version, [add(str(version))])
    write_checkpoint(log_of(table).load())
    table.delete(commit_path(2))

    assert query.start(fail_on_data_loss=False) == [["3", "4"]]


@pytest.mark.parametrize(
    "no_change",
    [
        pytest.param(metadata(LONG_ID), id="the same again"),
        pytest.param(metadata(LONG_ID, configuration={"owner": "me"}), id="a property of the user's"),
        pytest.param(
            metadata(LONG_ID.replace('"metadata":{}', '"metadata":{"delta.identity.highWaterMark":9}')),
            id="book-keeping",
        ),
    ],
)
def test_what_changes_nothing_that_is_read_with_stops_nothing(
    table: LocalStore, query: Checkpoint, no_change: Action
) -> None:
    query.start()
    put(table, 2, [no_change, protocol(), add("b")])

    assert query.start() == [["b"]]


def test_until_the_change_is_tracked_no_offset_goes_beyond_it(table: LocalStore, query: Checkpoint) -> None:
    query.start()
    put(table, 2, [ADDED, add("b")])
    source = query.source()

    assert source.latest(at(2), Limits()) == reached(2)
    assert source.latest(at(2), Limits()) == reached(2)
    assert source.latest(reached(2), Limits()) == passed(2)
    assert query.versions() == [1]


@pytest.mark.parametrize("told", [reached(2), passed(2)])
def test_either_barrier_that_is_said_to_be_done_is_tracked(table: LocalStore, query: Checkpoint, told: Offset) -> None:
    query.start()
    put(table, 2, [ADDED, add("b")])
    source = query.source()

    with pytest.raises(MetadataEvolvedError):
        source.delivered(told)

    assert query.versions() == [1, 2]
    query.source().delivered(told)
    with pytest.raises(OffsetError, match="began with the table with id"):
        query.source().delivered(replace(told, table_id="another"))


def test_a_dataframe_from_before_a_change_is_not_read_with(table: LocalStore, query: Checkpoint) -> None:
    query.start()
    before = query.source()
    put(table, 2, [ADDED, add("b")])
    query.evolves()

    with pytest.raises(SchemaChangedError, match=r"DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART.*Make a new DataFrame"):
        before.latest(reached(2), Limits())


def test_a_commit_that_cannot_be_delivered_stops_the_stream_before_its_barrier(
    table: LocalStore, query: Checkpoint
) -> None:
    query.start()
    put(table, 2, [ADDED, remove("a"), add("b")])

    with pytest.raises(ChangeRefusedError):
        query.start()


def test_consecutive_changes_without_files_become_one(table: LocalStore, query: Checkpoint) -> None:
    query.start()
    put(table, 2, [ADDED])
    put(table, 3, [protocol(1, 3)])
    put(table, 4, [metadata(schema(id="long", more="string", most="date"))])
    put(table, 5, [add("b")])
    put(table, 6, [ADDED])

    query.evolves()
    query.evolves()

    assert query.columns == ["id", "more", "most"]
    assert query.ends == [at(2), reached(2), passed(2), reached(6), passed(6)]
    assert query.files == [["a"], [], [], ["b"]]
    merged = query.entries()[2]
    assert (merged["deltaCommitVersion"], merged["previousMetadataSeqNum"]) == (4, 0)
    assert json.loads(merged["protocolJson"])["protocol"]["minWriterVersion"] == 3
    assert query.versions() == [1, 2, 4, 6]
    query.start(allowed={DROP: 6})
    assert query.versions() == [1, 2, 4, 6]


def test_rows_of_the_version_where_a_stream_begins_are_not_read_without_a_column_that_is_dropped_next(
    mapped_table: LocalStore, query: Checkpoint
) -> None:
    put(mapped_table, 2, [add("b")])
    put(mapped_table, 3, [mapped(id="c1", name="c2", more="c3")])
    source = query.source()
    next(query.batches(source, Limits(files=1)))
    put(mapped_table, 4, [mapped(id="c1", name="c2")])

    query.evolves()

    assert (query.columns, query.files) == (["id", "name", "more"], [["a"], ["b"]])
    with pytest.raises(SchemaChangedError, match="more"):
        query.start()
    assert query.start(allowed={DROP: 4}) == [[], []]


def test_a_change_whose_commit_has_files_is_not_merged_with_the_next(table: LocalStore, query: Checkpoint) -> None:
    query.start()
    put(table, 2, [ADDED, add("b")])
    put(table, 3, [metadata(LONG_ID, configuration={"delta.appendOnly": "true"})])

    for _ in range(2):
        query.evolves()

    assert query.versions() == [1, 2, 3]
    assert query.files == [["a"], [], [], ["b"]]


def test_two_streams_on_one_log_are_told_apart_where_the_second_writes(table: LocalStore, query: Checkpoint) -> None:
    query.start()
    put(table, 2, [ADDED])
    mine, other = query.source(), query.source()
    assert mine.latest(at(2), Limits()) == other.latest(at(2), Limits()) == reached(2)

    with pytest.raises(MetadataEvolvedError):
        other.delivered(reached(2))
    with pytest.raises(SchemaLogError, match=r"DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT.*streamingSourceTrackingId"):
        mine.delivered(reached(2))
    assert query.versions() == [1, 2]


def test_sources_with_ids_of_their_own_share_a_location(table: LocalStore, tmp_path: Path) -> None:
    one, two = (Checkpoint(Path(table.url), tmp_path / "checkpoint", tracking_id=each) for each in ("one", "two"))

    assert one.start() == [["a"]]
    put(table, 2, [ADDED, add("b")])
    assert two.start() == [["a", "b"]]

    assert (one.versions(), two.versions()) == ([1], [2])
    one.evolves()
    assert two.start() == []


def test_a_stream_that_has_read_into_a_change_that_is_not_tracked_reads_no_file_of_it(
    table: LocalStore, query: Checkpoint
) -> None:
    query.start()
    put(table, 2, [ADDED, add("b"), add("c")])
    source = query.source()

    for ask in (lambda: source.latest(at(2, 1), Limits()), lambda: source.tasks(at(2), at(2, 2))):
        with pytest.raises(SchemaLogError, match="older copy"):
            ask()


CHANGES = {"delta.enableChangeDataFeed": "true"}


@pytest.mark.parametrize("limits", [Limits(), Limits(files=1)])
def test_a_stream_of_changes_goes_on_over_changes_of_the_schema_too(
    table: LocalStore, query: Checkpoint, limits: Limits
) -> None:
    put(table, 0, [protocol(1, 4), metadata(LONG_ID, configuration=CHANGES)])
    query.start(change_feed=True)
    put(table, 2, [remove("a")])
    put(table, 3, [metadata(schema(id="long", more="string"), configuration=CHANGES), add("b")])
    put(table, 4, [add("c")])

    query.evolves(limits=limits, change_feed=True)
    query.start(limits=limits, change_feed=True)

    assert [file for batch in query.files for file in batch] == ["a", "a", "b", "c"]
    assert {reached(3), passed(3)} < set(query.ends)
    assert query.ends == sorted(query.ends, key=lambda end: end.position)


def test_a_stream_of_changes_is_read_with_the_partitioning_that_is_tracked(
    table: LocalStore, query: Checkpoint
) -> None:
    put(table, 0, [protocol(1, 4), metadata(LONG_ID, configuration=CHANGES)])
    query.start(change_feed=True)
    put(table, 2, [remove("a")])  # tells no partition values, and needs none
    put(table, 3, [metadata(LONG_ID, partition_columns=["id"], configuration=CHANGES)])

    query.evolves(change_feed=True)

    assert query.files[1:] == [["a"]]


def test_a_stream_of_changes_goes_on_over_a_replaced_column_of_the_rows_that_a_commit_removes(
    table: LocalStore, query: Checkpoint
) -> None:
    """Without tracking it does not begin there (test_change_stream.py); an option allowed the dropped column."""
    before, after = (
        meta(col("id", id=number, physicalName=f"c{number}"), configuration={**MAPPED, **CHANGES}) for number in (1, 2)
    )
    put(table, 0, [protocol(2, 5), before])
    query.start(change_feed=True, allowed=ALWAYS)
    put(table, 2, [after, remove("a"), add("b")])

    query.evolves(change_feed=True, allowed=ALWAYS)
    query.start(change_feed=True, allowed=ALWAYS)

    assert [file for batch in query.files for file in batch] == ["a", "a", "b"]


def test_files_before_a_change_are_read_with_the_partitioning_and_the_names_of_then(
    table: LocalStore, query: Checkpoint
) -> None:
    query.start()
    put(table, 2, [add("b")])
    put(table, 3, [protocol(2, 5), mapped(id="id")])
    put(table, 4, [metadata(LONG_ID, partition_columns=["id"], configuration=MAPPED)])
    source = query.source()

    (task,) = source.tasks(at(2), source.latest(at(2), Limits()))

    assert isinstance(task, DeltaTask)
    assert (dict(task.columns.partitions), task.columns.stored) == ({}, None)


def test_two_dataframes_that_merge_the_same_changes_at_a_time_agree(table: LocalStore, query: Checkpoint) -> None:
    query.start()
    log = schema_log_of(log_of(table), log_of(table).load().metadata, query.tracking())
    first = log.newest()
    assert first is not None
    merged = replace(first.metadata, version=Version(2))
    stands = log.replace(first, merged)

    assert _replaced(log, first, merged) == stands
    with pytest.raises(SchemaLogError, match="written by another"):
        _replaced(log, first, replace(merged, version=Version(3)))


def test_a_merged_change_is_judged_against_what_was_read_before_it(mapped_table: LocalStore, query: Checkpoint) -> None:
    query.start()
    put(mapped_table, 2, [mapped(id="c1", word="c2")])
    put(mapped_table, 3, [mapped(id="c1", word="c2", more="c3")])
    put(mapped_table, 4, [add("b")])
    query.evolves()

    with pytest.raises(SchemaChangedError, match="name is now word"):
        query.start(allowed={RENAME: 2})
    assert query.start(allowed={RENAME: 3}) == [[], ["b"]]


def test_a_predicate_is_of_the_columns_that_are_tracked(mapped_table: LocalStore, query: Checkpoint) -> None:
    pytest.importorskip("sqlglot")
    query.start(where="name >= 0")
    put(mapped_table, 2, [add("b", stats='{"numRecords":1,"maxValues":{"c2":-1}}'), add("c")])
    put(mapped_table, 3, [mapped(id="c1", word="c2"), add("d")])

    query.evolves(where="name >= 0")
    query.start(where="word >= 0", allowed={RENAME: 3})

    assert query.files == [["a"], ["c"], [], ["d"]]
