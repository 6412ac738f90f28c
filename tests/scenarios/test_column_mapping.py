"""What becomes of a stream over a mapped table whose columns come, go and are renamed, and that tracks no schema.

The stories are those of DeltaSourceColumnMappingSuite (docs/scenarios/delta-source-column-mapping.md), each told of the
rows that a table gains and of its changes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.queries import NON_ADDITIVE, SCHEMA_CHANGED, Stream, texts
from scenarios.tables import Table

ONE_FILE = {"maxFilesPerTrigger": "1"}
FEEDS = [pytest.param({}, id="rows"), pytest.param({"readChangeFeed": "true"}, id="changes")]
Options = dict[str, str]


def a_table(path: Path, mapping: str, *columns: str) -> Table:
    return Table(path / "table").create(*columns, mapping=mapping, enableChangeDataFeed="true")


def a_table_of_ten(path: Path, mapping: str) -> Table:
    """Of ten rows; where columns go by name, five of them are from before that was turned on."""
    if mapping == "id":
        table = a_table(path, "id", "id", "value")
        table.append(*range(10))
        return table
    table = a_table(path, "", "id", "value")
    table.append(*range(5))
    table.upgrade()
    table.append(*range(5, 10))
    return table


@pytest.mark.parametrize("feed", FEEDS)
def test_the_snapshot_that_a_stream_began_with_stays_though_others_look_at_the_table(
    tmp_path: Path, mapping: str, feed: Options
) -> None:
    table = a_table(tmp_path, mapping, "id", "value")
    table.append(1)
    stream = Stream.on(table.path, **feed, **ONE_FILE)
    assert stream.run() == texts([1])

    table.append(2)
    other = Stream(table.path, tmp_path / "other", stream.options)
    assert other.run() == texts([1, 2])

    assert stream.process() == texts([1, 2])
    assert stream.ends == [(2, -1), (3, -1)]


@pytest.mark.parametrize("feed", FEEDS)
def test_a_column_that_is_added_stops_a_stream_and_is_read_when_it_is_started_again(
    tmp_path: Path, mapping: str, feed: Options
) -> None:
    table = a_table(tmp_path, mapping, "id", "value")
    table.append(*range(5))
    stream = Stream.on(table.path, **feed, **ONE_FILE)
    assert stream.run() == texts(range(5))

    table.add_column("value2")
    table.append(*range(5, 10))
    stream.goes_down(SCHEMA_CHANGED)

    assert stream.run() == texts(range(5, 10), width=3)


@pytest.mark.parametrize("feed", FEEDS)
def test_mapping_by_name_turned_on_stops_no_stream(tmp_path: Path, feed: Options) -> None:
    table = a_table(tmp_path, "", "id", "name")
    table.append(*range(5))
    stream = Stream.on(table.path, **feed, **ONE_FILE)
    assert stream.run() == texts(range(5))

    table.upgrade()
    table.append(*range(5, 10))
    assert stream.process() == texts(range(10))
    table.add_column("value2")
    table.append(*range(10, 15))
    stream.goes_down(SCHEMA_CHANGED)

    assert stream.run() == texts(range(10, 15), width=3)
    everything = sorted([(*row, None) for row in texts(range(10))] + texts(range(10, 15), width=3), key=repr)
    assert Stream(table.path, tmp_path / "anew", stream.options).run() == everything
    assert Stream(table.path, tmp_path / "from0", stream.options).run(startingVersion="0") == everything


@pytest.mark.parametrize("feed", FEEDS)
def test_a_column_that_is_dropped_stops_a_stream_for_good(tmp_path: Path, mapping: str, feed: Options) -> None:
    table = a_table_of_ten(tmp_path, mapping)
    table.drop("value")
    table.append(*range(10, 15))
    stream = Stream.on(table.path, **feed, **ONE_FILE)
    assert stream.run() == texts(range(15), width=1)
    table.append(*range(15, 20))
    assert stream.process() == texts(range(20), width=1)

    table.add_column("value")
    table.append(*range(20, 25))
    stream.goes_down(SCHEMA_CHANGED)
    assert stream.rows == texts(range(20), width=1)

    assert stream.run() == texts(range(20, 25))
    table.drop("value")
    stream.goes_down(NON_ADDITIVE)
    stream.fails(NON_ADDITIVE)
    assert stream.rows == []


@pytest.mark.parametrize("feed", FEEDS)
def test_a_column_that_is_dropped_between_the_dataframe_and_the_start_of_its_query_stops_that(
    tmp_path: Path, mapping: str, feed: Options
) -> None:
    table = a_table_of_ten(tmp_path, mapping)
    stream = Stream.on(table.path, **feed, **ONE_FILE)
    stream.start()
    table.drop("value")
    table.append(10)

    stream.goes_down(NON_ADDITIVE)

    assert stream.rows == []


@pytest.mark.parametrize("feed", FEEDS)
def test_a_stream_does_not_read_a_column_made_anew_as_the_one_that_was_dropped(
    tmp_path: Path, mapping: str, feed: Options
) -> None:
    table = a_table_of_ten(tmp_path, mapping)
    table.drop("value")
    table.add_column("value")
    table.append(10)

    stream = Stream.on(table.path, **feed, **ONE_FILE, startingVersion="0")

    stream.fails(NON_ADDITIVE)
    assert (stream.rows, stream.ends) == ([], [])


@pytest.mark.parametrize("feed", FEEDS)
def test_a_column_that_is_renamed_stops_a_stream_for_good(tmp_path: Path, mapping: str, feed: Options) -> None:
    table = a_table_of_ten(tmp_path, mapping)
    renamed_at = table.rename("value", "value2")
    table.append(*range(10, 15))
    stream = Stream.on(table.path, **feed, **ONE_FILE)
    assert stream.run() == texts(range(15))
    table.append(*range(15, 20))
    assert stream.process() == texts(range(20))

    table.append(*range(20, 25))
    table.rename("value2", "value")
    stream.fails(NON_ADDITIVE)
    assert stream.rows == []

    whole = Stream(table.path, tmp_path / "from0", stream.options)
    whole.fails(NON_ADDITIVE, startingVersion="0")
    assert all(version <= renamed_at for version, _ in whole.ends)
    whole.fails(NON_ADDITIVE)
    assert whole.rows == []


@pytest.mark.parametrize("feed", FEEDS)
def test_no_offset_goes_beyond_a_change_that_the_stream_cannot_read(
    tmp_path: Path, mapping: str, feed: Options
) -> None:
    table = a_table(tmp_path, mapping, "id", "value")
    table.append(*range(5))
    renamed_at = table.rename("value", "value2")
    table.append(*range(5, 10))

    first = Stream(table.path, tmp_path / "renamed", {**feed, **ONE_FILE, "startingVersion": "1"})
    first.fails(NON_ADDITIVE)
    dropped_at = table.drop("value2")
    table.append(*range(10, 15))
    second = Stream(table.path, tmp_path / "dropped", {**feed, **ONE_FILE, "startingVersion": str(renamed_at + 1)})
    second.fails(NON_ADDITIVE)
    assert (first.ends, second.ends) == ([], [])

    third = Stream.on(table.path, **feed, **ONE_FILE, startingVersion=str(dropped_at + 1))
    assert third.run() == texts(range(10, 15), width=1)
    ends = third.ends
    table.rename("id", "id2")
    table.append(15)
    third.goes_down(NON_ADDITIVE)
    third.fails(NON_ADDITIVE)
    assert (third.rows, third.ends) == ([], ends)


@pytest.mark.parametrize("feed", FEEDS)
def test_a_stream_reads_what_is_there_and_what_comes_while_it_is_up_and_down(
    tmp_path: Path, mapping: str, feed: Options
) -> None:
    table = a_table(tmp_path, mapping, "value")
    stream = Stream.on(table.path, **feed)
    assert stream.run() == []
    table.append_at_once(1, 2, 3)
    assert stream.process() == texts([1, 2, 3], width=1)

    table.append_at_once(4, 5, 6)
    assert stream.run() == texts([4, 5, 6], width=1)
    table.append_at_once(7, 8, 9)
    assert stream.process() == texts(range(4, 10), width=1)


@pytest.mark.parametrize("limit", [{"maxFilesPerTrigger": "1"}, {"maxBytesPerTrigger": "1b"}])
def test_batches_of_one_file_are_as_many_as_the_files_of_a_table_with_a_checkpoint(
    tmp_path: Path, mapping: str, limit: Options
) -> None:
    table = a_table(tmp_path, mapping, "value")
    table.append(*range(10))
    table.checkpoint()
    table.append(*range(10, 20))
    stream = Stream.on(table.path, **limit)

    assert stream.run() == texts(range(20), width=1)
    assert [rows for rows in stream.rows_per_batch if rows] == [1] * 20


def test_a_column_that_was_added_before_a_stream_begins_is_null_in_older_rows(tmp_path: Path, mapping: str) -> None:
    table = a_table(tmp_path, mapping, "id")
    table.append(*range(5))
    table.add_column("value")
    table.append(*range(5, 10))

    older = [(str(number), None) for number in range(5)]
    assert Stream.on(table.path).run() == [*older, *texts(range(5, 10))]


def test_a_stream_of_changes_reads_the_rows_of_a_mapped_table(tmp_path: Path, mapping: str) -> None:
    table = a_table(tmp_path, mapping, "id", "user_name")
    table.append_at_once(("1", "Alice"), ("2", "Bob"))

    stream = Stream.on(table.path, readChangeFeed="true", startingVersion="0")

    assert stream.run() == [("1", "Alice"), ("2", "Bob")]
