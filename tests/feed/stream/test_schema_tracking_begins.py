"""What a stream finds in an empty log of tracked metadata, and before its initial snapshot."""

from __future__ import annotations

import json

import pytest

from support.logs import (
    LONG_ID,
    Action,
    a_source,
    add,
    at,
    commit_path,
    delivered,
    log_of,
    metadata,
    protocol,
    put,
    remove,
)
from support.tracking import ADDED, ALWAYS, Checkpoint, mapped, passed, reached, schema
from tablefeed.errors import (
    LogError,
    SchemaLogError,
    UnsupportedFeatureError,
)
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.log.admission import ChangePolicy
from tablefeed.log.plan import Limits
from tablefeed.model.offset import Offset
from tablefeed.store import LocalStore


def test_a_stream_that_begins_with_the_newest_schema_just_begins(query: Checkpoint) -> None:
    assert query.start() == [["a"]]
    assert query.versions() == [1]


def test_a_stream_that_begins_before_a_change_stops_at_once_and_begins_with_what_held_then(
    table: LocalStore, query: Checkpoint
) -> None:
    put(table, 2, [ADDED, add("b")])

    query.evolves(starting_version=0)
    assert (query.columns, query.ends, query.versions()) == (["id", "more"], [], [0])

    query.evolves(starting_version=0)
    assert (query.columns, query.ends) == (["id"], [reached(2), passed(2)])
    assert query.start(starting_version=0) == [[], ["b"]]


def test_a_stream_that_begins_before_its_table_was_replaced_continues_over_that(
    table: LocalStore, query: Checkpoint
) -> None:
    """CREATE OR REPLACE TABLE gives the table a new id, which the offsets and the tracked entries of the query have."""
    put(table, 2, [metadata(schema(id="long", more="string"), table_id="replaced"), remove("a"), add("b")])
    changes = ChangePolicy(ignore_changes=True)

    query.evolves(starting_version=0, policy=changes)
    query.evolves(starting_version=0, policy=changes)
    assert (query.columns, query.files) == (["id"], [["a"]])
    assert query.start(starting_version=0, policy=changes) == [[], ["b"]]
    assert query.columns == ["id", "more"]


def test_a_stream_that_begins_with_the_commit_of_a_change_has_it_from_the_start(
    table: LocalStore, query: Checkpoint
) -> None:
    put(table, 2, [ADDED, add("b")])

    assert query.start(starting_version=2) == [["b"]]
    assert query.versions() == [2]


def test_a_new_query_with_the_log_of_an_earlier_one_begins_with_what_holds_where_it_begins(
    table: LocalStore, query: Checkpoint
) -> None:
    query.start()
    put(table, 2, [ADDED, add("b")])
    put(table, 3, [add("c")])
    query.ends, query.done = [], 0

    query.evolves(starting_version=3)

    assert (query.columns, query.ends, query.versions()) == (["id"], [], [1, 3])
    assert query.start(starting_version=3) == [["c"]]
    assert query.columns == ["id", "more"]


def test_a_stream_of_what_is_still_to_come_begins_with_what_is_there(table: LocalStore, query: Checkpoint) -> None:
    source = query.source(starting_version="latest")
    assert source.latest(source.initial(), Limits()) == at(2)
    put(table, 2, [ADDED, add("b")])

    assert source.latest(at(2), Limits()) == reached(2)
    assert query.versions() == [1]


def test_a_stream_that_is_tracked_later_in_its_life_begins_with_what_it_has_read(
    table: LocalStore, query: Checkpoint
) -> None:
    put(table, 2, [ADDED, add("b")])
    query.ends, query.done = [at(2)], 1

    query.evolves()
    assert (query.versions(), query.ends) == ([1], [at(2)])
    query.evolves()

    assert query.start() == [[], ["b"]]


@pytest.mark.parametrize("start", [at(3), at(3, 1)], ids=["between commits", "within one"])
def test_a_stream_that_ran_untracked_over_a_change_reads_on_with_that_when_it_is_tracked_again(
    table: LocalStore, query: Checkpoint, start: Offset
) -> None:
    query.start()
    put(table, 2, [ADDED, add("b")])
    put(table, 3, [add("c"), add("d")])
    query.ends.append(start)  # without the option, a restart was enough to read the added column
    query.done += 1

    query.evolves()

    assert query.versions() == [1, 2]
    assert query.start() == [["c", "d"][start.file_index :]]
    assert query.columns == ["id", "more"]


def test_a_stream_that_was_set_back_before_a_dropped_column_reads_no_row_without_it(
    table: LocalStore, query: Checkpoint
) -> None:
    put(table, 0, [protocol(2, 5), mapped(id="c1", name="c2")])
    query.start()
    put(table, 2, [add("b")])
    put(table, 3, [mapped(id="c1")])
    put(table, 4, [mapped(id="c1"), add("c")])
    query.evolves()
    query.start(allowed=ALWAYS)
    query.ends.append(at(2))
    query.done += 1

    with pytest.raises(SchemaLogError, match=r"DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT.*streamingSourceTrackingId"):
        query.start(allowed=ALWAYS)

    query.tracking_id = "again"
    query.evolves()
    query.evolves()
    assert (query.files[-1], query.columns) == (["b"], ["id", "name"])


def test_a_stream_whose_last_version_is_gone_from_the_log_reads_on_with_what_is_tracked(
    table: LocalStore, query: Checkpoint
) -> None:
    query.start()
    put(table, 2, [add("b")])
    query.start()
    put(table, 3, [add("c")])
    write_checkpoint(log_of(table).load())
    for version in range(3):
        table.delete(commit_path(version))

    assert query.start() == [["c"]]


def test_a_batch_that_was_planned_before_the_stream_was_tracked_is_read_with_what_its_last_commit_left(
    table: LocalStore, query: Checkpoint
) -> None:
    put(table, 2, [ADDED, add("b")])
    put(table, 3, [add("c")])
    query.ends, query.done = [at(1), at(3)], 1

    assert query.start() == [["a", "b"], ["c"]]
    assert query.versions() == [2]


def test_a_stream_that_is_not_tracked_any_more_goes_on_behind_a_barrier_whose_commit_is_gone(table: LocalStore) -> None:
    put(table, 2, [ADDED, add("b")])
    put(table, 3, [add("c")])
    source = a_source(log_of(table), fail_on_data_loss=False)
    source.initial()
    table.delete("_delta_log/00000000000000000002.json")

    end = source.latest(passed(2), Limits())

    assert (end, delivered(source, passed(2), end)) == (at(4), ["c"])


@pytest.mark.parametrize("tracked", [True, False])
def test_a_stream_behind_a_barrier_goes_on_with_what_that_brought_though_its_log_is_lost(
    table: LocalStore,
    query: Checkpoint,
    tracked: bool,  # noqa: FBT001
) -> None:
    put(table, 0, [protocol(2, 5), mapped(id="c1")])
    put(table, 2, [mapped(other="c1"), add("b")])
    source = query.source() if tracked else a_source(log_of(table))

    end = source.latest(passed(2), Limits())

    assert (end, delivered(source, passed(2), end)) == (at(3), ["b"])


def test_a_stream_does_not_go_on_under_a_tracked_protocol_that_is_not_handled_though_the_table_dropped_it(
    table: LocalStore, query: Checkpoint
) -> None:
    query.start()
    fancy = protocol(3, 7, readerFeatures=["fancy"], writerFeatures=["fancy"])
    put(table, 2, [fancy])
    put(table, 3, [add("b")])
    put(table, 4, [protocol(3, 7, readerFeatures=[], writerFeatures=[])])
    entry = {**query.entries()[0], "deltaCommitVersion": 2, "protocolJson": json.dumps(fancy)}
    (query.log / "1").write_text(f"v1\n{json.dumps(entry)}")  # by a reader that handles the feature
    query.ends.append(at(3))
    query.done += 1

    with pytest.raises(UnsupportedFeatureError, match="fancy"):
        query.start()
    assert query.files == [["a"]]


def test_a_location_that_is_below_no_checkpoint_is_warned_of(
    query: Checkpoint, caplog: pytest.LogCaptureFixture
) -> None:
    query.start()
    assert "is not below a checkpoint" in caplog.text
    caplog.clear()

    query.folder.joinpath("metadata").write_text('{"id":"a-query"}', encoding="utf-8")
    other = Checkpoint(query.table, query.folder, tracking_id="other")
    other.start()
    assert caplog.text == ""
    assert other.entries()[0]["sourceMetadataPath"] == f"file:{query.folder}/sources/0"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param([metadata(schema(id="string"))], id="another type"),
        pytest.param([metadata(schema(other="long"))], id="another column"),
        pytest.param([metadata(LONG_ID, partition_columns=["id"])], id="another partitioning"),
        pytest.param(
            [metadata(LONG_ID), protocol(3, 7, readerFeatures=[], writerFeatures=["appendOnly"])], id="fewer features"
        ),
    ],
)
def test_a_planned_batch_that_no_schema_reads_is_not_tracked(
    table: LocalStore, query: Checkpoint, change: list[Action]
) -> None:
    put(table, 0, [protocol(3, 7, readerFeatures=[], writerFeatures=["domainMetadata"]), metadata(LONG_ID)])
    put(table, 2, [*change, add("b")])
    query.ends, query.done = [at(1), at(3)], 1

    with pytest.raises(SchemaLogError, match="DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA"):
        query.start()
    assert query.versions() == []


def test_where_the_start_is_gone_from_the_log_nothing_is_tracked_by_guess(table: LocalStore, query: Checkpoint) -> None:
    put(table, 2, [ADDED, add("b")])
    put(table, 3, [add("c")])
    source = query.source(starting_version=1)
    start = source.initial()
    table.delete("_delta_log/00000000000000000000.json")

    with pytest.raises(LogError):
        source.latest(start, Limits())
    assert query.versions() == []


def test_a_snapshot_that_is_newer_than_what_is_tracked_replaces_it_once(table: LocalStore, query: Checkpoint) -> None:
    source = query.source()
    source.latest(source.initial(), Limits())  # tracked, and then the query dies before its first batch is logged
    put(table, 2, [ADDED, add("b")])

    query.evolves()
    assert [(entry["deltaCommitVersion"], entry.get("previousMetadataSeqNum")) for entry in query.entries()] == [
        (1, None),
        (2, -1),
    ]

    assert query.start() == [["a", "b"]]


def test_a_snapshot_that_is_newer_and_alike_is_read(table: LocalStore, query: Checkpoint) -> None:
    source = query.source()
    source.latest(source.initial(), Limits())
    put(table, 2, [add("b")])

    assert query.start() == [["a", "b"]]
    assert query.versions() == [1]


def test_a_stream_stopped_within_its_snapshot_ends_that_with_the_schema_that_it_began_with(
    table: LocalStore, query: Checkpoint
) -> None:
    put(table, 1, [add("a"), add("b")])
    source = query.source()
    next(query.batches(source, Limits(files=1)))
    put(table, 2, [ADDED, add("c")])

    query.evolves()

    assert query.files == [["a"], ["b"]]
    assert query.start() == [[], ["c"]]


def test_a_planned_batch_over_a_column_made_anew_under_its_name_is_not_tracked(
    table: LocalStore, query: Checkpoint
) -> None:
    put(table, 0, [protocol(2, 5), mapped(id="c1")])
    put(table, 2, [mapped(id="c2"), add("b")])
    query.ends, query.done = [at(1), at(3)], 1

    with pytest.raises(SchemaLogError, match="no single schema can read it"):
        query.start()
