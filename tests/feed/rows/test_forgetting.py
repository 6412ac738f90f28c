"""Deletes that are forgotten after a time: when, what it costs, and how the user learns of it."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from feed.rows.test_apply_changes import a_target, apply, rows
from support.change_events import Target, delete, table_of, upsert
from tablefeed.errors import IllegalOptionError
from tablefeed.feed.rows.fold import fold
from tablefeed.feed.rows.folding import Folding, Known

AT_ONCE: dict[str, Any] = {"tombstone_gc_threshold_in_seconds": 0}
LATER: dict[str, Any] = {"tombstone_gc_threshold_in_seconds": 1_000_000}
LAST: dict[str, Any] = {"tombstone_gc_threshold_in_seconds": sys.maxsize}
EACH_TYPE = pytest.mark.parametrize("scd_type", [1, 2])


def after_many_deletes(url: str, **more: Any) -> None:
    """Each batch writes a file of state; the ninth merges them."""
    for key in range(1, 10):
        apply(url, (key, None, 5, "d"), **more)


def values(url: str) -> list[tuple[int, str]]:
    return [row[:2] for row in rows(url)]


def doubtful(url: str) -> str:
    [commit] = tablefeed.open_table(url).history(1)
    metrics = commit.fields["operationMetrics"]
    assert isinstance(metrics, dict)
    return str(metrics["numRowsAfterForgottenDeletes"])


@EACH_TYPE
def test_06_an_event_that_is_older_than_a_forgotten_delete_is_counted_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, scd_type: int
) -> None:
    url = a_target(tmp_path, scd_type=scd_type)
    after_many_deletes(url, **AT_ONCE, scd_type=scd_type)

    with caplog.at_level(logging.WARNING):
        apply(url, (1, "late", 3, "u"), (2, "equal", 5, "u"), (3, "new", 6, "u"), **AT_ONCE, scd_type=scd_type)

    assert values(url) == [(1, "late"), (2, "equal"), (3, "new")]
    assert doubtful(url) == "2"
    assert "rows=2: these rows come from events that are not newer than a forgotten delete" in caplog.text


@EACH_TYPE
@pytest.mark.parametrize("when", [{}, LATER, LAST], ids=["never", "later", "last"])
def test_a_delete_is_remembered_for_the_given_time_or_else_forever(
    tmp_path: Path, scd_type: int, when: dict[str, Any]
) -> None:
    url = a_target(tmp_path, scd_type=scd_type)
    after_many_deletes(url, **when, scd_type=scd_type)

    apply(url, (1, "late", 3, "u"), (20, "of no deleted key", 3, "u"), **when, scd_type=scd_type)

    # With SCD type 2 the late row ends at its delete.
    assert [row[:2] for row in rows(url) if scd_type == 1 or row[-1] is None] == [(20, "of no deleted key")]
    assert doubtful(url) == "0"


def test_deletes_that_were_applied_without_a_time_are_remembered_forever(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (0, None, 5, "d"))
    after_many_deletes(url, **AT_ONCE)

    apply(url, (0, "late", 3, "u"), (1, "late", 3, "u"), **AT_ONCE)

    assert values(url) == [(1, "late")]


def test_what_was_known_of_a_key_before_a_forgotten_delete_does_not_come_back(tmp_path: Path) -> None:
    """The large file of the first batch is not merged: it still has the sequence of the row that was deleted."""
    url = str(tmp_path / "target")
    columns = pa.schema([("id", pa.int64()), ("v", pa.string())])
    tablefeed.append(url, columns.empty_table(), properties={"delta.feature.domainMetadata": "supported"})
    more: dict[str, Any] = {**AT_ONCE, "except_column_list": ["op", "ts"]}
    apply(url, *((key, "a", 1, "u") for key in range(100)), **more)
    after_many_deletes(url, **more)

    apply(url, (1, "again", 1, "u"), **more)

    assert (1, "again") in values(url)
    assert doubtful(url) == "1"


def test_a_delete_of_a_key_that_has_a_row_again_is_not_forgotten(tmp_path: Path) -> None:
    """Where upserts leave columns as they are, an older one must not fill a column of the row."""
    url = a_target(tmp_path)
    more: dict[str, Any] = {**AT_ONCE, "ignore_null_updates_column_list": ["v"]}
    apply(url, (1, None, 5, "d"), **more)
    apply(url, (1, None, 6, "u"), **more)
    for key in range(2, 12):
        apply(url, (key, None, 5, "d"), **more)

    apply(url, (1, "late", 4, "u"), **more)

    assert rows(url) == [(1, None, 6)]


@EACH_TYPE
def test_a_row_is_counted_only_if_its_key_had_no_row_and_no_remembered_delete(scd_type: int) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    how = Folding(schema=schema, keys=("id",), sequence=pa.int64(), scd_type=scd_type)
    target = Target(how)
    target.apply(upsert(1, id=1), upsert(1, id=2), delete(5, id=2), delete(5, id=3))
    known = Known(rows=target.rows, state=target.state, forgotten_at=pa.scalar(10))

    counted = [
        fold(table_of([upsert(at, id=key)], how), known, how).counts.unguarded
        for key, at in [(1, 7), (2, 7), (3, 7), (4, 7), (4, 10), (4, 11)]
    ]

    # Key 1 has a row, key 3 a delete. Key 2 has a delete with SCD type 1, but only the end of its row with type 2.
    assert counted == [0, scd_type - 1, 0, 1, 1, 0]


def test_a_version_that_begins_between_others_is_counted_too() -> None:
    """A delete that was forgotten may have ended it before the next one begins."""
    how = Folding(schema=pa.schema([("id", pa.int64())]), keys=("id",), sequence=pa.int64(), scd_type=2)
    target = Target(how)
    target.apply(upsert(1, id=1), delete(3, id=1), upsert(9, id=1))
    known = Known(rows=target.rows, state=target.state, forgotten_at=pa.scalar(7))

    counted = [
        fold(table_of([upsert(at, id=1) for at in sequences], how), known, how).counts.unguarded
        for sequences in [(0,), (2,), (5,), (8,), (4, 5)]
    ]

    # At 2 there is a version, 8 is newer than what was forgotten, and 4 and 5 are one version.
    assert counted == [1, 0, 1, 0, 1]


@pytest.mark.parametrize("wrong", [-1, "1 day", 1.5])
def test_a_time_that_is_no_number_of_seconds_is_refused(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(IllegalOptionError, match="tombstone_gc_threshold_in_seconds"):
        apply(a_target(tmp_path), (1, "a", 1, "u"), tombstone_gc_threshold_in_seconds=wrong)
