"""A stream of row changes: where it begins, which rows it gives, and what stops it.

The stories are those of DeltaCDCStreamSuite (docs/scenarios/delta-cdc-stream.md).
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.queries import Stream
from scenarios.tables import Column, Table
from support.logs import info, protocol
from support.recorded import VECTORS, removed

ON = {"enableChangeDataFeed": "true"}


def changes(table: Table, **options: str) -> Stream:
    stream = Stream.on(table.path, readChangeFeed="true", **options)
    return replace(stream, feed_columns=True)


MAPPINGS = pytest.mark.parametrize("mapping", ["", "name", "id"])


def numbers(path: Path, *names: str, partition_by: tuple[str, ...] = (), on: bool = True, mapping: str = "") -> Table:
    """A table of whole numbers, without rows."""
    table = Table(path / "table", partition_columns=partition_by)
    return table.create(*names, kind="long", mapping=mapping, **(ON if on else {}))


def date_commits(table: Table, seconds: int) -> None:
    """Each commit's log file is of that many seconds times its version and one."""
    for version in range(table.version + 1):
        os.utime(table.path / f"_delta_log/{version:020}.json", ((version + 1) * seconds,) * 2)


@MAPPINGS
def test_without_a_start_the_whole_table_comes_first_as_inserts_of_its_version(tmp_path: Path, mapping: str) -> None:
    table = numbers(tmp_path, "value", on=False, mapping=mapping)
    table.append_at_once((1,), (9,))
    table.delete((9,))
    table.append((2,))
    table.set_properties(delta__enableChangeDataFeed="true")
    version = table.version
    stream = changes(table)

    assert stream.run() == [(1, "insert", version), (2, "insert", version)]
    table.delete((1,))
    assert stream.process() == [(1, "delete", version + 1), (1, "insert", version), (2, "insert", version)]


def test_the_snapshot_ends_where_the_next_version_begins(tmp_path: Path) -> None:
    table = numbers(tmp_path, "value")
    table.append_at_once((5,), (6,))
    stream = changes(table)

    assert stream.run() == [(5, "insert", 1), (6, "insert", 1)]
    assert stream.ends == [(2, -1)]
    assert stream.wire["isStartingVersion"] is False


def test_a_stream_from_latest_has_what_comes(tmp_path: Path) -> None:
    table = numbers(tmp_path, "value")
    table.append_at_once((1,), (2,))
    stream = changes(table, startingVersion="latest")

    assert stream.run() == []
    table.append((3,))
    assert stream.process() == [(3, "insert", 2)]


@MAPPINGS
def test_a_stream_from_a_version_has_that_and_what_follows(tmp_path: Path, mapping: str) -> None:
    table = numbers(tmp_path, "id", mapping=mapping)
    table.append_at_once((1,), (2,), (3,))
    table.append_at_once((4,), (5,))
    stream = changes(table, startingVersion="2")

    assert stream.run() == [(4, "insert", 2), (5, "insert", 2)]
    table.delete((3,))
    assert stream.process() == [(3, "delete", 3), (4, "insert", 2), (5, "insert", 2)]


def test_a_start_before_changes_were_recorded_is_refused_by_what_held_there(tmp_path: Path) -> None:
    table = numbers(tmp_path, "id", on=False)
    table.append_at_once((1,), (2,))
    table.append_at_once((3,), (4,))
    table.set_properties(delta__enableChangeDataFeed="true")
    table.append((5,))

    changes(table, startingVersion="2").fails("DELTA_MISSING_CHANGE_DATA")
    assert changes(table, startingVersion="3").run() == [(5, "insert", 4)]


def test_a_stream_from_a_time_has_the_first_commit_of_then_and_what_follows(tmp_path: Path) -> None:
    table = numbers(tmp_path, "id")
    table.append_at_once((1,), (2,), (3,))
    table.append((-1,))
    date_commits(table, 1)
    stream = changes(table, startingTimestamp="1970-01-01 00:00:03", timeZone="UTC")

    assert stream.run() == [(-1, "insert", 2)]
    table.update(((-1,), (4,)))
    assert stream.process() == [(-1, "insert", 2), (-1, "update_preimage", 3), (4, "update_postimage", 3)]


@pytest.mark.parametrize(
    ("start", "error_class"),
    [
        ({"startingVersion": "2"}, "DELTA_VERSION_NOT_FOUND"),
        ({"startingTimestamp": "1970-01-01 00:00:03", "timeZone": "UTC"}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
    ],
)
def test_a_start_beyond_the_newest_version_is_refused(tmp_path: Path, start: dict[str, str], error_class: str) -> None:
    table = numbers(tmp_path, "id")
    table.append_at_once((1,), (2,))
    date_commits(table, 1)

    changes(table, **start).fails(error_class)


def test_a_checkpoint_goes_before_the_start_that_an_option_names(tmp_path: Path) -> None:
    table = numbers(tmp_path, "id")
    table.append_at_once((1,), (2,), (3,))
    table.append_at_once((4,), (5,), (6,))
    table.delete((5,))
    rows = [(4, "insert", 2), (5, "delete", 3), (5, "insert", 2), (6, "insert", 2)]
    stream = changes(table, startingVersion="2")

    assert stream.run() == rows
    assert stream.run() == []
    assert replace(stream, checkpoint=tmp_path / "another").run() == rows


def test_a_merge_that_changed_no_row_has_none(tmp_path: Path) -> None:
    table = numbers(tmp_path, "id")
    table.append((1,))
    counted = {f"numTargetRows{what}": "0" for what in ("Inserted", "Updated", "Deleted")}
    (old,) = table.live
    row = table.live[old]
    table.commit(info(operation="MERGE", operationMetrics=counted), removed(old), table.added(row))
    stream = changes(table, startingVersion="2")

    assert stream.run() == []
    assert stream.ends == [(3, -1)]


@pytest.mark.parametrize("feed", ["true", "false"])
def test_commits_without_a_change_move_the_offset(tmp_path: Path, feed: str) -> None:
    table = numbers(tmp_path, "id")
    table.append_at_once((1,), (2,))
    stream = Stream.on(table.path, readChangeFeed=feed)
    assert len(stream.run()) == 2
    for _ in range(3):
        table.commit(info(operation="Manual Update"))

    assert stream.run() == []
    assert stream.ends == [(2, -1), (5, -1)]


def parted(path: Path) -> Table:
    """Of id and part, with the rows (0, 0) and (1, 1) in a partition each."""
    table = numbers(path, "id", "part", partition_by=("part",))
    table.append_at_once((0, 0), (1, 1))
    return table


def test_removed_files_are_changes_by_themselves(tmp_path: Path) -> None:
    table = parted(tmp_path)
    stream = changes(table, startingVersion="0")
    assert stream.run() == [(0, 0, "insert", 1), (1, 1, "insert", 1)]

    table.delete((0, 0))

    assert stream.process() == [(0, 0, "delete", 2), (0, 0, "insert", 1), (1, 1, "insert", 1)]
    assert changes(table, startingVersion="2").table == table.path
    assert replace(changes(table, startingVersion="2"), checkpoint=tmp_path / "2").run() == [(0, 0, "delete", 2)]


def test_a_stream_may_begin_with_files_of_changes(tmp_path: Path) -> None:
    table = numbers(tmp_path, "id", "more")
    table.append_at_once((0, 0), (1, 1))
    table.update(((0, 0), (0, 5)))
    stream = changes(table, startingVersion="2")

    assert stream.run() == [(0, 0, "update_preimage", 2), (0, 5, "update_postimage", 2)]
    table.append((2, 0))
    assert stream.process()[2:] == [(2, 0, "insert", 3)]


def test_files_left_out_by_their_path_are_no_changes(tmp_path: Path) -> None:
    table = parted(tmp_path)
    first, _ = table.live

    assert changes(table, startingVersion="0", excludeRegex=first).run() == [(1, 1, "insert", 1)]


def test_a_file_of_changes_that_is_left_out_brings_no_file_of_its_commit_in(tmp_path: Path) -> None:
    table = numbers(tmp_path, "id", "more")
    table.append((0, 0))
    table.update(((0, 0), (0, 1)))

    stream = changes(table, startingVersion="0", excludeRegex="_change_data/cdc-2-0")

    assert stream.run() == [(0, 0, "insert", 1)]


def test_a_schema_that_is_said_again_stops_no_stream_and_another_does(tmp_path: Path) -> None:
    table = numbers(tmp_path, "value")
    table.append(*((number,) for number in range(5)))
    rows = [(number, "insert", number + 1) for number in range(5)]
    stream = changes(table, startingVersion="0")
    assert stream.run() == rows

    table.write_metadata()
    assert stream.process() == rows
    table.overwrite_schema(Column(name="id", kind="long"), Column(name="value"))
    stream.goes_down("DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS")


def test_a_version_that_is_still_to_come_is_not_read(tmp_path: Path) -> None:
    table = numbers(tmp_path, "id")
    table.append((1,))
    stream = changes(table)
    stream.run()
    end = stream.wire
    planner = stream.frame().reader()

    assert end["reservoirVersion"] == table.version + 1
    assert planner.partitions(end, end) == []
    planner.stop()
    assert stream.run() == []


def test_the_columns_that_are_asked_for_are_read_and_no_others(tmp_path: Path) -> None:
    table = numbers(tmp_path, "id", "name", "value")
    table.append_at_once((1, 10, 100), (2, 20, 200))
    table.append((3, 30, 300))

    stream = changes(table, startingVersion="0", columns="id,_change_type")

    assert stream.run() == [(1, "insert"), (2, "insert"), (3, "insert")]


def test_a_partition_column_stands_where_the_table_has_it(tmp_path: Path) -> None:
    table = numbers(tmp_path, "id", "part", "name", partition_by=("part",))
    table.append_at_once((1, 7, 10), (2, 8, 20))

    assert changes(table, startingVersion="0").run() == [(1, 7, 10, "insert", 1), (2, 8, 20, "insert", 1)]


@pytest.mark.parametrize("mapping", ["", "name"])
def test_a_stream_of_a_table_that_tracks_its_rows_has_them_without_their_ids(tmp_path: Path, mapping: str) -> None:
    table = Table(tmp_path / "table").create("id", "name", mapping=mapping, enableRowTracking="true", **ON)
    features = ["rowTracking", "domainMetadata", "changeDataFeed", "appendOnly", "invariants"]
    mapped = ["columnMapping"] if mapping else []
    table.commit(protocol(2 if mapping else 1, 7, writerFeatures=features + mapped))
    added = table.added(("1", "Alice"), ("2", "Bob"))
    added["add"] |= {"baseRowId": 0, "defaultRowCommitVersion": 2}
    table.commit(added)

    assert changes(table, startingVersion="0").run() == [("1", "Alice", "insert", 2), ("2", "Bob", "insert", 2)]


# --- deletion vectors ------------------------------------------------------------------------------------------------


def with_vectors(path: Path, *names: str, partition_by: tuple[str, ...] = ()) -> Table:
    table = Table(path / "table", columns=tuple(Column(name=name, kind="long") for name in names))
    table.configuration, table.partition_columns = {"delta.enableChangeDataFeed": "true"}, partition_by
    table.commit(VECTORS, table.metadata)
    return table


@pytest.mark.parametrize("start", ["2", "3"])
def test_of_a_delete_by_vector_the_rows_come_that_it_deleted_and_no_others(tmp_path: Path, start: str) -> None:
    table = with_vectors(tmp_path, "id")
    name = table.append_file(*((number,) for number in range(1, 11)))
    table.delete_by_vector((name, [2]))
    table.delete_by_vector((name, [2, 6]))

    rows = [(3, "delete", 2), (7, "delete", 3)]
    assert changes(table, startingVersion=start).run() == rows[int(start) - 2 :]


def test_rows_deleted_by_vector_have_their_partition(tmp_path: Path) -> None:
    table = with_vectors(tmp_path, "id", "part", partition_by=("part",))
    name = table.append_file((1, 7), (2, 7))
    table.append((3, 8))
    table.delete_by_vector((name, [1]))

    assert changes(table, startingVersion="3").run() == [(2, 7, "delete", 3)]


@pytest.mark.parametrize("limit", [{}, {"maxFilesPerTrigger": "1"}])
def test_vectors_of_several_files_in_one_commit_come_in_one_batch(tmp_path: Path, limit: dict[str, str]) -> None:
    table = with_vectors(tmp_path, "id")
    names = [table.append_file(*((n,) for n in range(first, first + 5))) for first in (1, 6)]
    table.delete_by_vector(*((name, [2]) for name in names))
    stream = changes(table, startingVersion="3", **limit)

    assert stream.run() == [(3, "delete", 3), (8, "delete", 3)]
    assert [rows for rows in stream.rows_per_batch if rows] == [2]


@pytest.mark.parametrize("limit", [{"maxBytesPerTrigger": "1b"}, {"maxFilesPerTrigger": "1"}])
def test_deletes_of_one_file_after_one_another_come_in_batches_of_their_own(
    tmp_path: Path, limit: dict[str, str]
) -> None:
    table = with_vectors(tmp_path, "id")
    name = table.append_file(*((number,) for number in range(10)))
    table.delete_by_vector((name, [1, 3, 6]))
    table.delete_by_vector((name, [1, 2, 3, 4, 6, 7]))
    stream = changes(table, startingVersion="2", **limit)

    assert stream.run() == [
        (1, "delete", 2),
        (2, "delete", 3),
        (3, "delete", 2),
        (4, "delete", 3),
        (6, "delete", 2),
        (7, "delete", 3),
    ]
    assert [rows for rows in stream.rows_per_batch if rows] == [3, 3]
