"""`tablefeed.apply_changes_from_snapshot`: a table that is kept equal to snapshots of its source."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from feed.rows.test_apply_changes import FED, INTERVAL, NEEDED, VECTORS, rows, state_files
from tablefeed import Committed
from tablefeed.errors import (
    IllegalOptionError,
    InvalidEventsError,
    InvalidRowsError,
    SchemaMismatchError,
    TablefeedError,
)
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.rows import apply

COLUMNS = {"id": pa.int64(), "v": pa.string(), "w": pa.string()}


def a_target(path: Path, scd_type: int = 1, more: dict[str, str] | None = None) -> str:
    url = str(path / "target")
    columns = {**COLUMNS, **(INTERVAL if scd_type == 2 else {})}
    tablefeed.append(
        url, pa.schema(list(columns.items())).empty_table(), properties={**NEEDED, **VECTORS, **(more or {})}
    )
    return url


def snapshot(*given: tuple[int, str, str]) -> pa.Table:
    columns = zip(*given, strict=True) if given else [()] * 3
    return pa.table([pa.array(c, kind) for c, kind in zip(columns, COLUMNS.values(), strict=True)], list(COLUMNS))


def put(url: str, version: Any, *given: tuple[int, str, str], **more: Any) -> Committed:
    return tablefeed.apply_changes_from_snapshot(url, (snapshot(*given), version), keys="id", **more)


def test_28_a_key_that_a_snapshot_lacks_is_deleted_and_an_equal_row_is_no_change(tmp_path: Path) -> None:
    url = a_target(tmp_path, more=FED)
    put(url, 1, (1, "a", ""), (2, "b", ""), (3, "c", ""))
    put(url, 2, (1, "a", ""), (2, "B", ""), (4, "d", ""))
    assert rows(url) == [(1, "a", ""), (2, "B", ""), (4, "d", "")]
    feed = tablefeed.changes(url, start_version=2).read_all().to_pylist()
    assert sorted((row["_change_type"], row["id"], row["v"]) for row in feed) == [
        ("delete", 3, "c"),
        ("insert", 4, "d"),
        ("update_postimage", 2, "B"),
        ("update_preimage", 2, "b"),
    ]
    assert state_files(url) == set()


def test_a_snapshot_is_compared_again_where_a_row_goes_before_it_is_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = a_target(tmp_path)
    put(url, 1, (1, "a", ""))
    put(url, 2, (1, "a", ""), (2, "b", ""))  # in another file
    name, given = "tablefeed.feed.api.row_changes.joined", ((1, "a", ""), (2, "B", ""))

    def joined(*arguments: Any, **more: Any) -> Transaction | None:
        found = apply.joined(*arguments, **more)
        monkeypatch.setattr(name, apply.joined)
        tablefeed.delete(url, "id = 1")
        return found

    monkeypatch.setattr(name, joined)
    put(url, 3, *given)

    assert rows(url) == [*given]


def test_28_an_older_snapshot_is_refused_and_the_same_one_does_nothing(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    put(url, 2, (1, "a", ""))
    assert put(url, 2, (9, "z", "")).version == 1
    with pytest.raises(InvalidEventsError, match=r"AUTOCDC_SNAPSHOT_OUT_OF_ORDER.*Version 2 of the source was applied"):
        put(url, 1, (1, "old", ""))
    assert put(url, 3, (1, "a", "")).version == 2
    with pytest.raises(InvalidEventsError, match="Version 3"):
        put(url, 2, (1, "old", ""))
    assert rows(url) == [(1, "a", "")]


def test_an_empty_snapshot_deletes_all_rows(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    put(url, 1, (1, "a", ""))
    put(url, 2)
    assert rows(url) == []


def test_rows_of_the_table_without_a_key_are_named_and_no_row_of_the_snapshot_is(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    tablefeed.append(url, pa.table({"id": pa.array([None, 1], pa.int64()), "v": ["a", "b"]}))
    with pytest.raises(
        InvalidRowsError, match=r"it has 1 rows with null or NaN in the key column id.*Delete these rows"
    ):
        put(url, 1, (1, "c", ""))


def test_28_the_history_of_a_row_begins_and_ends_with_the_versions_of_snapshots(tmp_path: Path) -> None:
    url = a_target(tmp_path, 2)
    more: dict[str, Any] = {"stored_as_scd_type": 2, "track_history_except_column_list": ["w"]}
    put(url, 10, (1, "a", "x"), (2, "b", "x"), **more)
    put(url, 20, (1, "a", "y"), (3, "c", "x"), **more)
    put(url, 30, (1, "A", "y"), (2, "b", "x"), **more)
    put(url, 40, (1, "A", "y"), (2, "b", "x"), **more)
    assert rows(url) == [
        (1, "A", "y", 30, None),
        (1, "a", "y", 10, 30),
        (2, "b", "x", 10, 20),
        (2, "b", "x", 30, None),
        (3, "c", "x", 20, 30),
    ]
    assert state_files(url) == set()


def test_a_function_is_called_with_the_newest_version_until_it_gives_none(tmp_path: Path) -> None:
    url, called = a_target(tmp_path), []
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2)]

    def after(latest: datetime | None) -> tuple[pa.Table, datetime] | None:
        called.append(latest)
        day = next((day for day in days if latest is None or day > latest), None)
        return None if day is None else (snapshot((1, str(day.day), "")), day)

    outcome = tablefeed.apply_changes_from_snapshot(url, after, keys="id")
    assert (outcome, called, rows(url)) == (Committed(version=outcome.version), [None, *days], [(1, "2", "")])
    assert outcome.version == 2
    assert tablefeed.apply_changes_from_snapshot(url, after, keys="id") == replace(outcome, written=False)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("version", "other"),
    [
        (date(2026, 1, 1), NOON.replace(tzinfo=None)),
        (NOON.replace(tzinfo=None), NOON),
        (3, 3.0),
        (3, "3"),
    ],
    ids=["date", "zone", "float", "text"],
)
def test_a_version_of_another_type_is_refused_and_not_taken_for_the_same(
    tmp_path: Path, version: Any, other: Any
) -> None:
    url = a_target(tmp_path)
    put(url, version, (1, "a", ""))
    with pytest.raises(SchemaMismatchError, match=r"AUTOCDC_STATE_DRIFT.*sequenceType"):
        put(url, other, (1, "b", ""))
    assert rows(url) == [(1, "a", "")]


def test_times_of_any_zone_are_versions_in_one_order(tmp_path: Path) -> None:
    url, west = a_target(tmp_path), timezone(timedelta(hours=-1))
    put(url, datetime(2026, 1, 1, 9, tzinfo=west), (1, "a", ""), (2, "b", ""))
    assert put(url, datetime(2026, 1, 1, 10, tzinfo=UTC), (9, "z", "")).version == 1
    put(url, datetime(2026, 1, 1, 10, tzinfo=west), (1, "A", ""))
    assert rows(url) == [(1, "A", "")]


def test_what_another_writer_did_between_two_snapshots_is_undone(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    put(url, 1, (1, "a", ""), (2, "b", ""))
    tablefeed.append(url, snapshot((7, "foreign", "")))
    tablefeed.delete(url, "id = 1")
    put(url, 2, (1, "a", ""), (2, "b", ""))
    assert rows(url) == [(1, "a", ""), (2, "b", "")]


def test_25_snapshots_and_events_are_not_applied_to_one_table(tmp_path: Path) -> None:
    one, other = a_target(tmp_path / "one"), a_target(tmp_path / "other")
    put(one, 1, (1, "a", ""))
    changes = snapshot((1, "b", "")).append_column("ts", pa.array([5]))
    given: dict[str, Any] = {"keys": "id", "sequence_by": "ts", "except_column_list": ["ts"]}
    with pytest.raises(SchemaMismatchError, match=r"AUTOCDC_STATE_DRIFT.*snapshots was True"):
        tablefeed.apply_changes(one, changes, **given)
    tablefeed.apply_changes(other, changes, **given)
    with pytest.raises(SchemaMismatchError, match=r"AUTOCDC_STATE_DRIFT.*snapshots was None"):
        put(other, 9, (1, "a", ""))
    assert (rows(one), rows(other)) == ([(1, "a", "")], [(1, "b", "")])


@pytest.mark.parametrize(
    ("version", "given", "error", "text"),
    [
        (None, [(1, "a", "")], IllegalOptionError, "must come with a version"),
        (True, [(1, "a", "")], IllegalOptionError, "must come with a version"),
        (object(), [(1, "a", "")], IllegalOptionError, "must come with a version"),
        (float("nan"), [], IllegalOptionError, "must come with a version"),
        ({"day": 1}, [(1, "a", "")], IllegalOptionError, "must come with a version"),
        (1, [(1, "a", ""), (1, "b", "")], TablefeedError, "id=1 at sequence 1"),
        ("1", [(1, "b", "")], SchemaMismatchError, "AUTOCDC_STATE_DRIFT"),
    ],
    ids=["none", "bool", "object", "nan", "struct", "two rows", "another type"],
)
def test_a_snapshot_without_an_order_or_with_two_rows_of_a_key_is_refused(
    tmp_path: Path, version: Any, given: list[tuple[int, str, str]], error: type[Exception], text: str
) -> None:
    url = a_target(tmp_path)
    put(url, 0, (5, "e", ""))
    with pytest.raises(error, match=text):
        put(url, version, *given)
    assert rows(url) == [(5, "e", "")]


@pytest.mark.parametrize("name", ["__IS_GONE", "__SNAPSHOT_AT"])
def test_a_column_of_a_snapshot_deletes_no_row_by_its_name(tmp_path: Path, name: str) -> None:
    url = a_target(tmp_path)
    put(url, 1, (1, "a", ""))
    given = snapshot((1, "a", "")).append_column(name, pa.array([True]))
    with pytest.raises(
        SchemaMismatchError, match=rf"AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT.*target have a column {name}"
    ):
        tablefeed.apply_changes_from_snapshot(url, (given, 2), keys="id", except_column_list=[name])
    assert rows(url) == [(1, "a", "")]
