"""`tablefeed.changes`: what happened to the rows of a table that records its changes, between two versions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from support.logs import commit_path
from tablefeed import errors
from tablefeed.feed.arguments import Bound
from tablefeed.feed.changes.change_range import change_versions
from tablefeed.feed.snapshot.open_log import open_log

TEXT = pa.string()
RECORDED = {"delta.enableChangeDataFeed": "true"}
Change = tuple[int, str, int, str]


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """By delta-rs, a change a version: created, updated, deleted from, merged into, appended to, overwritten."""
    url = str(tmp_path)
    first = pa.table({"id": [1, 2, 3], "day": ["a", "a", "b"]})
    write_deltalake(url, first, partition_by=["day"], configuration=RECORDED)
    table = DeltaTable(url)
    table.update(updates={"id": "id + 10"}, predicate="id = 2")
    table.delete("id = 3")
    matched = table.merge(
        pa.table({"id": [1, 7], "day": ["z", "a"]}), "t.id = s.id", source_alias="s", target_alias="t"
    ).when_matched_update_all()
    matched.when_not_matched_insert_all().execute()
    write_deltalake(url, pa.table({"id": [8], "day": ["b"]}), mode="append")
    write_deltalake(url, pa.table({"id": [9], "day": ["q"]}), mode="overwrite")
    return tmp_path


HISTORY: list[Change] = [
    (0, "insert", 1, "a"),
    (0, "insert", 2, "a"),
    (0, "insert", 3, "b"),
    (1, "update_postimage", 12, "a"),
    (1, "update_preimage", 2, "a"),
    (2, "delete", 3, "b"),
    (3, "insert", 7, "a"),
    (3, "update_postimage", 1, "z"),
    (3, "update_preimage", 1, "a"),
    (4, "insert", 8, "b"),
    (5, "delete", 1, "z"),
    (5, "delete", 7, "a"),
    (5, "delete", 8, "b"),
    (5, "delete", 12, "a"),
    (5, "insert", 9, "q"),
]


def changes(path: Path, **arguments: Any) -> list[Change]:
    """Version, change, id and day of each changed row, sorted."""
    rows = tablefeed.changes(path, **arguments).read_all()
    return sorted(zip(*(rows[name].to_pylist() for name in _NAMES), strict=True))


_NAMES = ("_commit_version", "_change_type", "id", "day")


def versions(path: Path, **arguments: Any) -> list[int]:
    rows = tablefeed.changes(path, columns=["_commit_version"], **arguments).read_all()
    return sorted(set(rows["_commit_version"].to_pylist()))


def test_each_changed_row_comes_with_what_became_of_it_and_when(orders: Path) -> None:
    theirs = pa.table(DeltaTable(str(orders)).load_cdf(starting_version=0).read_all())
    in_order = tablefeed.changes(orders).read_all()["_commit_version"].to_pylist()

    assert changes(orders) == HISTORY
    assert sorted(zip(*(theirs[name].to_pylist() for name in _NAMES), strict=True)) == HISTORY
    assert in_order == sorted(in_order)


def test_the_columns_are_the_tables_and_then_those_of_the_feed(orders: Path) -> None:
    when = {"_commit_version": pa.int64(), "_commit_timestamp": pa.timestamp("us", tz="UTC")}
    assert tablefeed.changes(orders).schema == pa.schema({"id": pa.int64(), "day": TEXT, "_change_type": TEXT} | when)


# --- bounds --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"start_version": 3}, [3, 4, 5]),
        ({"end_version": 1}, [0, 1]),
        ({"start_version": 1, "end_version": 3}, [1, 2, 3]),
        ({"start_version": 2, "end_version": 2}, [2]),
    ],
)
def test_both_bounds_are_included_and_none_is_as_far_as_the_log_reaches(
    orders: Path, bounds: dict[str, int], found: list[int]
) -> None:
    assert versions(orders, **bounds) == found


@pytest.fixture
def hourly(orders: Path) -> Path:
    """Version n is committed at n o'clock."""
    for version in range(6):
        at_s = datetime(2024, 1, 1, version, tzinfo=UTC).timestamp()
        os.utime(orders / commit_path(version), (at_s, at_s))
    return orders


NO_RANGE = "DELTA_INVALID_CDC_RANGE"


def clock(time: str) -> str:
    return f"2024-01-01 {time}"


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        ("01:00", None, [1, 2, 3, 4, 5]),  # at the time of a commit: that commit
        ("01:01", None, [2, 3, 4, 5]),  # between two: the later one
        (None, "02:00", [0, 1, 2]),
        (None, "02:59", [0, 1, 2]),  # between two: the earlier one
        ("01:30", "04:30", [2, 3, 4]),
        ("03:00", "03:00", [3]),
        ("01:10", "01:50", []),  # no commit in between
    ],
)
def test_times_mean_the_commits_from_the_first_to_the_last_of_them(
    hourly: Path, start: str | None, end: str | None, found: list[int]
) -> None:
    bounds = {"start_timestamp": start and clock(start), "end_timestamp": end and clock(end)}

    assert versions(hourly, **bounds) == found


def test_times_are_those_of_commits_whatever_else_is_in_the_log(hourly: Path) -> None:
    (hourly / commit_path(2)).with_suffix(".crc").write_text("{}")

    assert versions(hourly, start_timestamp=clock("01:30"), end_timestamp=clock("03:30")) == [2, 3]


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (Bound(version=1, inclusive=False), Bound(version=3), [2, 3]),
        (Bound(version=1), Bound(version=3, inclusive=False), [1, 2]),
        (Bound(version=2, inclusive=False), Bound(version=2), []),
        (Bound(version=5, inclusive=False), Bound(), []),
        (Bound(timestamp=clock("01:00"), inclusive=False), Bound(timestamp=clock("03:00")), [2, 3]),
        (Bound(timestamp=clock("01:00")), Bound(timestamp=clock("03:00"), inclusive=False), [1, 2]),
        (Bound(timestamp=clock("02:00"), inclusive=False), Bound(timestamp=clock("02:00"), inclusive=False), []),
        (Bound(timestamp=clock("00:59:59.999"), inclusive=False), Bound(version=2), [1, 2]),
        (Bound(version=2), Bound(timestamp=clock("03:00:00.001"), inclusive=False), [2, 3]),
        (Bound(version=2), Bound(timestamp=clock("03:00:00.0001"), inclusive=False), [2, 3]),
    ],
    ids=str,
)
def test_the_commit_at_a_bound_may_be_excluded(hourly: Path, start: Bound, end: Bound, found: list[int]) -> None:
    log = open_log(str(hourly))

    assert list(change_versions(start, end, log.load(), log.listing())) == found


def test_a_time_and_a_version_may_bound_one_range(hourly: Path) -> None:
    assert versions(hourly, start_version=1, end_timestamp=clock("03:30")) == [1, 2, 3]
    assert versions(hourly, start_timestamp="2023-12-31", end_version=1) == [0, 1]
    assert versions(hourly, start_timestamp=datetime(2024, 1, 1, 4, tzinfo=UTC), end_version=5) == [4, 5]


@pytest.mark.parametrize(
    ("bounds", "error", "said"),
    [
        ({"start_version": 6}, errors.VersionNotFoundError, "CDC_START_VERSION_AFTER_LATEST.*holds versions 0 to 5"),
        ({"start_version": -1}, errors.VersionNotFoundError, "VERSION_NOT_FOUND.*holds versions 0 to 5"),
        ({"end_version": 6}, errors.VersionNotFoundError, "VERSION_NOT_FOUND.*holds versions 0 to 5"),
        ({"start_version": 1.5}, errors.IllegalOptionError, "start_version"),
        ({"end_timestamp": "soon"}, errors.IllegalOptionError, "end_timestamp"),
        ({"start_version": 1, "start_timestamp": clock("01")}, errors.ConflictingOptionsError, "MULTIPLE_CDC_BOUND"),
        ({"end_version": 1, "end_timestamp": clock("01")}, errors.ConflictingOptionsError, "MULTIPLE_CDC_BOUND"),
        ({"start_timestamp": clock("05:01")}, errors.TableError, "TIMESTAMP_GREATER_THAN_COMMIT"),
        ({"end_timestamp": clock("05:01")}, errors.TableError, "TIMESTAMP_GREATER_THAN_COMMIT"),
        ({"end_timestamp": "2023-12-31"}, errors.TableError, "TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
        ({"start_version": 2, "end_version": 1}, errors.IllegalOptionError, f"{NO_RANGE}.*end_version.* version 2"),
        (
            {"start_timestamp": clock("03:00"), "end_timestamp": clock("01:00")},
            errors.IllegalOptionError,
            f"{NO_RANGE}.*end_timestamp.* version 3",
        ),
        # though no commit is in between
        ({"start_timestamp": clock("01:50"), "end_timestamp": clock("01:10")}, errors.IllegalOptionError, NO_RANGE),
        # one apart, but not both are times
        ({"start_version": 2, "end_timestamp": clock("01:30")}, errors.IllegalOptionError, NO_RANGE),
        ({"start_timestamp": clock("01:10"), "end_version": 1}, errors.IllegalOptionError, NO_RANGE),
    ],
    ids=str,
)
def test_bounds_that_are_none_are_refused(
    hourly: Path, bounds: dict[str, Any], error: type[tablefeed.TablefeedError], said: str
) -> None:
    with pytest.raises(error, match=said):
        tablefeed.changes(hourly, **bounds)


def test_without_a_start_the_feed_begins_where_the_log_does(orders: Path) -> None:
    DeltaTable(str(orders)).create_checkpoint()
    for version in range(5):
        (orders / commit_path(version)).unlink()

    assert versions(orders) == [5]
    with pytest.raises(errors.VersionNotFoundError, match="its log holds versions 5 to 5"):
        tablefeed.changes(orders, start_version=4)


def test_without_a_start_the_feed_begins_with_the_first_commit_behind_a_checkpoint(orders: Path) -> None:
    DeltaTable(str(orders)).create_checkpoint()
    for _ in range(2):
        write_deltalake(str(orders), pa.table({"id": [10], "day": ["q"]}), mode="append")
    for version in range(6):
        (orders / commit_path(version)).unlink()

    assert versions(orders) == [6, 7]


def test_a_hole_in_the_log_is_passed_over_to_what_stands_behind_it(orders: Path) -> None:
    DeltaTable(str(orders)).create_checkpoint()
    write_deltalake(str(orders), pa.table({"id": [10], "day": ["q"]}), mode="append")
    (orders / commit_path(3)).unlink()

    assert versions(orders) == [5, 6]  # at 4 the log stands, but what held there is not known
    with pytest.raises(errors.VersionNotFoundError, match="its log holds versions 5 to 6"):
        tablefeed.changes(orders, start_version=4)


# --- when ----------------------------------------------------------------------------------------------------------


def committed_at(path: Path) -> Iterator[datetime]:
    rows = tablefeed.changes(path, columns=["_commit_version", "_commit_timestamp"]).read_all()
    yield from dict(sorted(set(zip(*rows.to_pydict().values(), strict=True)))).values()


def test_a_commit_is_dated_by_its_log_file(hourly: Path) -> None:
    assert list(committed_at(hourly)) == [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in range(6)]


def test_times_grow_with_the_version_as_the_history_tells_them(hourly: Path) -> None:
    at_s = datetime(2024, 1, 1, 0, 30, tzinfo=UTC).timestamp()
    os.utime(hourly / commit_path(3), (at_s, at_s))  # copied, say

    times = [
        datetime.fromtimestamp(info.committed_at_ms / 1000, UTC) for info in tablefeed.open_table(hourly).history()
    ]

    assert list(committed_at(hourly)) == times[::-1]
    assert times[2] == datetime(2024, 1, 1, 2, 0, 0, 1000, tzinfo=UTC)


# --- columns and filter --------------------------------------------------------------------------------------------


def test_columns_may_be_any_of_the_feed_in_any_order(orders: Path) -> None:
    rows = tablefeed.changes(orders, columns=["_change_type", "id"], start_version=2, end_version=2).read_all()

    assert rows.to_pydict() == {"_change_type": ["delete"], "id": [3]}
    with pytest.raises(errors.SchemaMismatchError, match="has no column 'price'"):
        tablefeed.changes(orders, columns=["price"])


def test_a_filter_may_ask_for_any_column_and_none_of_them_need_be_delivered(orders: Path) -> None:
    def ids(condition: pc.Expression) -> list[int]:
        return sorted(tablefeed.changes(orders, columns=["id"], filter=condition).read_all()["id"].to_pylist())

    assert ids(pc.field("_commit_version") == 1) == [2, 12]
    assert ids(pc.field("_change_type") == "delete") == [1, 3, 7, 8, 12]
    assert ids((pc.field("_change_type") == "insert") & (pc.field("day") == "a")) == [1, 2, 7]
    assert len(ids(pc.field("_commit_timestamp") > pa.scalar(0, pa.timestamp("us", tz="UTC")))) == len(HISTORY)
    deleted = pc.field("_change_type") == "delete"
    rows = tablefeed.changes(orders, columns=["_commit_version"], filter=deleted).read_all()
    assert (rows.num_columns, rows.num_rows) == (1, 5)


def test_a_filter_that_cannot_be_asked_is_refused_before_a_row_is_read(orders: Path) -> None:
    with pytest.raises(errors.IllegalOptionError, match="price"):
        tablefeed.changes(orders, filter=pc.field("price") > 1)


# --- what other commands leave ------------------------------------------------------------------------------------


def test_a_restored_table_deletes_what_came_and_inserts_what_went(orders: Path) -> None:
    DeltaTable(str(orders)).restore(4)

    assert changes(orders, start_version=6) == [
        (6, "delete", 9, "q"),
        (6, "insert", 1, "z"),
        (6, "insert", 7, "a"),
        (6, "insert", 8, "b"),
        (6, "insert", 12, "a"),
    ]


# --- refusals ------------------------------------------------------------------------------------------------------


def test_a_file_that_is_gone_is_named(orders: Path) -> None:
    (gone,) = orders.glob("_change_data/day=b/*.parquet")
    gone.unlink()

    with pytest.raises(errors.DataFileError, match=r"DELTA_FILE_NOT_FOUND.*_change_data/day=b"):
        changes(orders, start_version=2, end_version=2)
