"""A stream of row changes: what a batch reads, as what, and where it is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from support.checkpoints import classic_name, put_checkpoint
from support.logs import LONG_ID, a_source, add, at, info, metadata, protocol, remove
from support.recorded import VECTORS, cdc, data_file, log, recorded, removed, vector
from tablefeed.errors import ChangeDataError, SchemaChangedError
from tablefeed.feed.changes.java_regex import java_regex
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.timeline import CommitTimes
from tablefeed.feed.stream.source import StreamSource
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset
from tablefeed.store import LocalStore

ROWS = pa.schema([("id", pa.int64()), ("_change_type", pa.string()), ("_commit_version", pa.int64())])
TIMES = pa.schema([("_commit_version", pa.int64()), ("_commit_timestamp", pa.timestamp("us", tz="UTC"))])


def changes_of(path: Path, **options: Any) -> StreamSource:
    return a_source(open_log(str(path)), change_feed=True, **options)


def read(source: StreamSource, start: Offset, end: Offset, schema: pa.Schema = ROWS) -> list[tuple[Any, ...]]:
    """The rows of a batch, sorted."""
    batches = [batch for task in source.tasks(start, end) for batch in read_task(task, schema)]
    table = pa.Table.from_batches(batches, schema)
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """0: rows 1 and 2. 1: recorded, an update of 2. 2: row 1 removed with its file."""
    one, two = data_file(tmp_path, "one.parquet", id=[1]), data_file(tmp_path, "two.parquet", id=[2])
    change = data_file(tmp_path, "change.parquet", id=[2, 20], _change_type=["update_preimage", "update_postimage"])
    new = data_file(tmp_path, "new.parquet", id=[20])
    return log(
        tmp_path,
        v0=[protocol(), recorded(), add(one), add(two)],
        v1=[cdc(change), removed(two), add(new)],
        v2=[removed(one)],
    )


def test_the_table_comes_first_as_inserts_of_its_version(orders: Path) -> None:
    source = changes_of(orders)
    start = source.initial()

    end = source.latest(start, Limits(files=1000))

    assert (start, end) == (at(2, in_snapshot=True), at(3))
    assert read(source, start, end) == [(20, "insert", 2)]


def test_a_table_whose_time_no_timestamp_can_have_is_refused(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", id=[1])
    source = changes_of(log(tmp_path, v0=[info(inCommitTimestamp=2**63 - 1), protocol(), recorded(), add(file)]))

    with pytest.raises(ChangeDataError, match="outside the range of a timestamp"):
        source.tasks(source.initial(), at(1))


def test_from_a_version_on_each_changed_row_comes_with_what_became_of_it(orders: Path) -> None:
    source = changes_of(orders, starting_version=0)

    end = source.latest(at(0), Limits(files=1000))

    assert read(source, at(0), end) == [
        (1, "delete", 2),
        (1, "insert", 0),
        (2, "insert", 0),
        (2, "update_preimage", 1),
        (20, "update_postimage", 1),
    ]


def test_each_batch_has_the_rows_between_its_offsets_and_none_twice(orders: Path) -> None:
    source = changes_of(orders, starting_version=0)

    first, second, third = at(0, 1), at(1, 1), at(3)

    assert [source.latest(s, Limits(files=1)) for s in (at(0), first)] == [first, at(1)]
    assert source.latest(at(0), Limits(size_bytes=1)) == first
    assert source.latest(at(1), Limits(files=1)) == second
    assert read(source, at(0), first) == [(1, "insert", 0)]
    assert read(source, first, second) == [(2, "insert", 0), (2, "update_preimage", 1), (20, "update_postimage", 1)]
    assert read(source, second, third) == [(1, "delete", 2)]


def test_the_lag_of_a_stream_of_changes_counts_files_of_changes_and_removed_files(orders: Path) -> None:
    log(orders, v3=[remove("new.parquet")])  # of which the log has no size
    source = changes_of(orders, starting_version=0)

    lag = source.lag(source.latest(at(0), Limits(files=1)), now_ms=0)

    assert (lag.versions_behind, lag.files_outstanding, lag.bytes_outstanding) == (4, 4, 10 + 1 + 1)


@pytest.mark.parametrize("start", [at(1, 1), at(2)], ids=["the commit's last file", "the next version"])
def test_behind_recorded_changes_either_offset_that_delta_spark_writes_waits_and_goes_on_alike(
    tmp_path: Path, start: Offset
) -> None:
    limits = Limits(files=1000)
    one, new = data_file(tmp_path, "one.parquet", id=[1]), data_file(tmp_path, "new.parquet", id=[10])
    change = data_file(tmp_path, "change.parquet", id=[1, 10], _change_type=["update_preimage", "update_postimage"])
    log(tmp_path, v0=[protocol(), recorded(), add(one)], v1=[cdc(change), removed(one), add(new)])
    assert changes_of(tmp_path, starting_version=0).latest(at(0), limits) == at(1, 1), "what is written"

    source = changes_of(tmp_path)
    assert source.latest(start, limits) == start
    log(tmp_path, v2=[removed(new)])
    end = source.latest(start, limits)

    assert end == at(3)
    assert read(source, start, end) == [(10, "delete", 2)]


def test_two_deletion_vectors_of_a_file_are_told_by_their_difference(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", id=[10, 11, 12])
    table = log(
        tmp_path,
        v0=[VECTORS, recorded(), add(file, deletionVector=vector(0))],
        v1=[removed(file, deletionVector=vector(0)), add(file, deletionVector=vector(0, 2))],
    )
    source = changes_of(table, starting_version=1)

    assert read(source, at(1), source.latest(at(1), Limits(files=1))) == [(12, "delete", 1)]


def test_a_stream_does_not_begin_with_a_commit_that_replaced_a_column_of_the_rows_that_it_removes(
    tmp_path: Path,
) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    rows = pa.table({"id": [1], "kind": ["a"]})
    tablefeed.append(tmp_path, rows, properties={"delta.enableChangeDataFeed": "true", **mapped})
    newer = pa.table({"id": [2], "kind": [2]})
    tablefeed.append(tmp_path, newer, mode="overwrite", overwrite_schema=True)

    source = changes_of(tmp_path, starting_version=1)
    begin = source.initial()
    with pytest.raises(SchemaChangedError, match="start at version 2"):
        source.tasks(begin, source.latest(begin, Limits()))


def test_a_stream_that_an_overwrite_of_a_type_stops_begins_anew_with_the_whole_table(tmp_path: Path) -> None:
    recorded_changes = {"delta.enableChangeDataFeed": "true"}
    tablefeed.append(tmp_path, pa.table({"id": [1], "kind": [1]}), properties=recorded_changes)
    source = changes_of(tmp_path)
    first = source.latest(source.initial(), Limits())
    tablefeed.append(tmp_path, pa.table({"id": [2], "kind": ["b"]}), mode="overwrite", overwrite_schema=True)

    with pytest.raises(SchemaChangedError, match="With readChangeFeed, begin with the whole table"):
        source.latest(first, Limits())

    anew, from_there = changes_of(tmp_path), changes_of(tmp_path, starting_version=1)
    assert read(anew, anew.initial(), anew.latest(anew.initial(), Limits())) == [(2, "insert", 1)]
    with pytest.raises(SchemaChangedError, match="start at version 2"):  # before a row is read
        from_there.tasks(from_there.initial(), from_there.latest(from_there.initial(), Limits()))


def test_nor_where_the_log_does_not_say_any_more_which_columns_these_rows_have(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    rows = pa.table({"id": [1], "kind": ["a"]})
    tablefeed.append(tmp_path, rows, properties={"delta.enableChangeDataFeed": "true", **mapped})
    tablefeed.append(tmp_path, pa.table({"id": [2], "kind": [2]}), mode="overwrite", overwrite_schema=True)
    tablefeed.checkpoint(tmp_path)
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()

    source = changes_of(tmp_path, starting_version=1)
    begin = source.initial()
    with pytest.raises(SchemaChangedError, match="start at version 2"):
        source.tasks(begin, source.latest(begin, Limits()))


def test_a_start_at_which_nothing_was_recorded_is_refused_when_its_batch_is_read(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", id=[1])
    table = log(tmp_path, v0=[protocol(), metadata(LONG_ID), add(file)], v1=[recorded()])

    for start in (at(0), at(0, in_snapshot=True)):
        source = changes_of(table)
        end = source.latest(start, Limits(files=1000))
        with pytest.raises(ChangeDataError, match="DELTA_MISSING_CHANGE_DATA"):
            source.tasks(start, end)


def test_a_batch_that_begins_where_recording_ended_is_refused_though_the_one_before_was_not(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", id=[1])
    table = log(tmp_path, v0=[protocol(), recorded(), add(file)], v1=[metadata(LONG_ID)], v2=[removed(file)])
    source = changes_of(table, starting_version=0)

    assert read(source, at(0), at(2)) == [(1, "insert", 0)]
    with pytest.raises(ChangeDataError, match="version 2 did not record them"):
        source.tasks(at(2), at(3))


def test_a_batch_at_a_version_that_cannot_be_loaded_is_read_with_the_metadata_of_the_next_one_that_can(
    tmp_path: Path,
) -> None:
    file = data_file(tmp_path, "a.parquet", id=[1])
    table = log(tmp_path, v0=[protocol(), recorded()], v1=[add(file)], v2=[info()], v3=[metadata(LONG_ID)])
    put_checkpoint(LocalStore(str(table)), classic_name(2), [protocol(), recorded(), add(file)])
    (table / "_delta_log" / f"{0:020d}.json").unlink()

    assert read(changes_of(table), at(1), at(2)) == [(1, "insert", 1)]


def test_an_earlier_batch_is_read_with_the_metadata_of_its_own_start(tmp_path: Path) -> None:
    one, two = (data_file(tmp_path, f"{number}.parquet", id=[number]) for number in (1, 2))
    table = log(tmp_path, v0=[protocol(), recorded()], v1=[add(one)], v2=[metadata(LONG_ID)], v3=[add(two)])
    source = changes_of(table, starting_version=0)
    with pytest.raises(ChangeDataError, match="version 3 did not record them"):
        source.tasks(at(3), at(4))

    assert read(source, at(1), at(2)) == [(1, "insert", 1)]


def test_a_removed_file_without_its_partition_is_refused(tmp_path: Path) -> None:
    file = data_file(tmp_path, "a.parquet", id=[1])
    gone = removed(file)
    del gone["remove"]["partitionValues"]
    partitioned = recorded(partition_columns=["id"])
    table = log(tmp_path, v0=[protocol(), partitioned, add(file, partitionValues={"id": "1"})], v1=[gone])

    with pytest.raises(ChangeDataError, match="DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA"):
        changes_of(table).tasks(at(1), at(2))


def test_files_that_the_pattern_finds_are_not_read(orders: Path) -> None:
    source = changes_of(orders, starting_version=0, exclude=java_regex("change|two", option="excludeRegex"))

    assert read(source, at(0), at(3)) == [(1, "delete", 2), (1, "insert", 0)]
    of_snapshot = changes_of(orders, exclude=java_regex("new", option="excludeRegex"))
    assert read(of_snapshot, of_snapshot.initial(), at(3)) == []


def test_a_commit_is_of_its_own_time_else_of_its_log_files_which_grow(tmp_path: Path) -> None:
    files = [data_file(tmp_path, f"{number}.parquet", id=[number]) for number in range(3)]
    own = info(inCommitTimestamp=7)
    table = log(tmp_path, v0=[protocol(), recorded(), add(files[0])], v1=[add(files[1])], v2=[own, add(files[2])])
    for version in range(2):
        os.utime(table / f"_delta_log/{version:020}.json", (5, 5))
    source = changes_of(table, starting_version=0)

    rows = read(source, at(0), at(3), TIMES)

    assert [(version, time.timestamp()) for version, time in rows] == [(0, 5.0), (1, 5.001), (2, 0.007)]


def test_the_times_of_commits_are_the_same_whichever_is_asked_for_first(tmp_path: Path) -> None:
    table = log(tmp_path, v0=[protocol(), recorded()], v1=[info()], v2=[info()], v3=[info()])
    for version in range(4):
        os.utime(table / f"_delta_log/{version:020}.json", (5, 5))
    commits = [open_log(str(table)).commit(Version(version)) for version in range(4)]

    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)):
        times = CommitTimes(open_log(str(table)))
        asked = {}
        for version in order:
            commit = commits[version]
            assert commit is not None
            asked[version] = times.of(commit)
            times.forget_before(Version(version))
        assert asked == {0: 5000, 1: 5001, 2: 5002, 3: 5003}, order
