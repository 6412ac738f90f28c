"""The scenarios of change pipelines, by their numbers, and the test that has each.

Tests of a scenario's rule are where the rule lives; here are those that belong to `tablefeed.apply_changes` as a whole.

 1  test_01_an_event_that_comes_twice_changes_nothing_the_second_time
 2  test_02_a_batch_that_is_committed_is_not_applied_again
 3  test_a_change_that_fails_at_any_call_of_the_store_is_whole_or_not_there_and_made_once_by_a_second_run
 4  test_04_05_what_is_older_than_the_row_or_its_delete_is_ignored_in_later_batches
 5  test_04_05_what_is_older_than_the_row_or_its_delete_is_ignored_in_later_batches
 6  test_06_an_event_that_is_older_than_a_forgotten_delete_is_counted_and_reported
 7  test_07_two_values_at_one_sequence_are_refused_and_nothing_is_left
 8  test_08_events_are_ordered_by_several_columns_one_after_the_other
 9  test_09_of_a_delete_and_an_upsert_at_one_sequence_the_upsert_wins_in_whatever_batch_it_comes
10  test_10_an_event_without_key_or_sequence_is_refused
11  test_a_sequence_that_has_no_order_is_refused_at_the_start
12  test_the_last_of_an_insert_a_delete_and_an_insert_in_a_batch_is_the_row
13  test_13_an_event_of_a_snapshot_loses_against_a_live_one_at_its_place
14  test_14_15_a_row_is_found_in_whatever_partition_it_is
15  test_14_15_a_row_is_found_in_whatever_partition_it_is
16  test_16_a_null_value_deletes_its_key_in_the_order_of_kafka
17  test_17_a_truncate_takes_what_is_older_and_is_remembered
18  test_18_19_nulls_are_ignored_where_asked_also_between_batches
19  test_18_19_nulls_are_ignored_where_asked_also_between_batches
20  test_20_an_absent_field_leaves_the_value_and_a_null_is_a_value
21  test_21_22_24_a_history_does_not_depend_on_the_order_of_its_batches
22  test_21_22_24_a_history_does_not_depend_on_the_order_of_its_batches
23  test_fifty_changes_of_a_column_that_is_not_tracked_are_one_row
24  test_21_22_24_a_history_does_not_depend_on_the_order_of_its_batches
25  test_25_changes_that_are_applied_in_another_way_than_before_are_refused
26  test_26_columns_that_the_table_lacks_are_added_with_the_batch_where_asked
27  test_27_a_backfill_beside_a_live_flow_leaves_newer_rows_and_is_made_once
28  test_28_a_key_that_a_snapshot_lacks_is_deleted_and_an_equal_row_is_no_change
29  test_the_outcome_is_that_of_one_writer_after_the_other_in_every_order_of_their_steps
30  test_the_outcome_is_that_of_one_writer_after_the_other_in_every_order_of_their_steps
31  test_31_events_in_190_partitions_are_one_commit
32  test_many_batches_of_deletes_leave_few_files_of_state
33  test_33_files_that_cannot_have_the_keys_are_not_opened
34  test_34_the_change_feed_has_an_update_as_an_update_and_what_stays_not_at_all
35  test_35_source_commits_of_one_time_are_all_applied_in_their_order
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from feed.rows.test_apply_changes import NEEDED, VECTORS, a_target, apply, rows
from tablefeed import AlreadyApplied, Committed
from tablefeed.model.actions import Version

TESTS = Path(__file__).parents[1]


def test_every_scenario_of_the_table_has_a_test_of_that_name() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    there = set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
    named = dict(re.findall(r"^ ?(\d+)  (test_\w+)$", __doc__ or "", re.MULTILINE))

    assert set(named.values()) - there == set()
    assert {str(number) for number in range(1, 36)} - set(named) == set()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_08_events_are_ordered_by_several_columns_one_after_the_other(tmp_path: Path, order: tuple[int, ...]) -> None:
    url = str(tmp_path / "target")
    tablefeed.append(url, pa.schema([("id", pa.int64()), ("v", pa.string())]).empty_table(), properties=NEEDED)
    given = [(1, "a", 1, 9), (1, "newest", 2, 2), (1, "b", 2, 1)]
    for number in order:
        columns: list[list[Any]] = [[value] for value in given[number]]
        changes = pa.table(columns, names=["id", "v", "day", "line"])
        options: dict[str, Any] = {"except_column_list": ["day", "line"]}
        tablefeed.apply_changes(url, changes, keys="id", sequence_by=["day", "line"], **options)
    assert rows(url) == [(1, "newest")]


@pytest.mark.parametrize("scd_type", [1, 2])
@pytest.mark.parametrize("delete_first", [True, False])
def test_09_of_a_delete_and_an_upsert_at_one_sequence_the_upsert_wins_in_whatever_batch_it_comes(
    tmp_path: Path, scd_type: int, *, delete_first: bool
) -> None:
    url = a_target(tmp_path, scd_type=scd_type)
    given = [(1, None, 5, "d"), (1, "a", 5, "u")]
    for event in given if delete_first else given[::-1]:
        apply(url, event, scd_type=scd_type)
    assert rows(url) == ([(1, "a", 5)] if scd_type == 1 else [(1, "a", 5, None)])


def test_27_a_backfill_beside_a_live_flow_leaves_newer_rows_and_is_made_once(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (1, "live", 5, "u"), (2, None, 5, "d"), app_id="live", txn_version=0)
    past = [(1, "old", 1, "u"), (2, "old", 1, "u"), (3, "old", 1, "u")]

    assert apply(url, *past, app_id="backfill", txn_version=0) == Committed(version=Version(2))
    again = apply(url, *past, app_id="backfill", txn_version=0)

    assert again == AlreadyApplied(version=Version(2), recorded_txn_version=0)
    assert rows(url) == [(1, "live", 5), (3, "old", 1)]


def test_31_events_in_190_partitions_are_one_commit(tmp_path: Path) -> None:
    url, ids = str(tmp_path / "target"), list(range(380))
    target = pa.table({"id": ids, "p": [number % 190 for number in ids], "v": ["old"] * 380, "ts": [1] * 380})
    tablefeed.append(url, target, partition_by=["p"], properties={**NEEDED, **VECTORS})
    changed = target.slice(0, 190).set_column(2, "v", [["new"] * 190]).set_column(3, "ts", [[2] * 190])

    outcome = tablefeed.apply_changes(url, changed, keys="id", sequence_by="ts")

    assert outcome == Committed(version=Version(1))
    assert [row[2] for row in sorted(rows(url), key=lambda row: row[0])] == ["new"] * 190 + ["old"] * 190


def test_35_source_commits_of_one_time_are_all_applied_in_their_order(tmp_path: Path) -> None:
    source, url = str(tmp_path / "source"), str(tmp_path / "copy")
    for value in ("a", "b", "c"):
        only = pa.table({"id": [1], "v": [value]})
        tablefeed.append(source, only, mode="overwrite", properties={"delta.enableChangeDataFeed": "true"})
    tablefeed.append(url, only.slice(0, 0), properties=NEEDED)
    feed = tablefeed.changes(source, start_version=0).read_all()
    at_once = pa.repeat(feed["_commit_timestamp"][0], feed.num_rows)
    feed = feed.set_column(feed.column_names.index("_commit_timestamp"), "_commit_timestamp", at_once)

    for number in reversed(range(feed.num_rows)):
        tablefeed.apply_changes(url, feed.slice(number, 1), keys="id", source="tablefeed")

    assert rows(url) == [(1, "c")]
