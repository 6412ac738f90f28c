"""What a table's properties mean: their defaults, and what an invalid text stands for."""

from __future__ import annotations

import pytest

from tablefeed.delta.intervals import DAY_MS
from tablefeed.delta.properties import TableProperties
from tablefeed.model.actions import Txn


def of(**properties: str) -> TableProperties:
    return TableProperties({f"delta.{name}": value for name, value in properties.items()})


@pytest.mark.parametrize(
    ("text", "is_on"), [("true", True), ("TRUE", True), ("false", False), ("1", False), ("", False)]
)
def test_a_boolean_property_is_on_where_it_is_true_in_any_case_and_off_for_any_other_text(
    text: str, *, is_on: bool
) -> None:
    assert of(enableRowTracking=text).tracks_rows is is_on
    assert of(**{"checkpoint.writeStatsAsJson": text}).has_stats_as_text is is_on


def test_a_boolean_property_that_is_not_set_has_its_default() -> None:
    assert (of().tracks_rows, of().has_stats_as_text, of().has_stats_as_struct) == (False, True, True)


def test_the_older_name_of_the_change_feed_counts_where_the_newer_one_is_not_set() -> None:
    assert of(enableChangeDataCapture="true").records_changes
    assert not of(enableChangeDataCapture="true", enableChangeDataFeed="false").records_changes
    assert not of().records_changes


def test_either_name_of_auto_compaction_turns_it_on() -> None:
    assert of(**{"autoOptimize.autoCompact": "auto"}).folds_files
    assert of(autoOptimize="true").folds_files
    assert not of().folds_files


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("104857600", 104857600),
        ("128mb", 128 << 20),
        ("1 GB", 1 << 30),
        ("16k", 16 << 10),
        ("0", None),
        ("", None),
        ("large", None),
        ("-1", None),
        ("9" * 40, None),
    ],
)
def test_a_target_size_is_bytes_or_has_a_unit_and_what_cannot_be_read_is_none(text: str, size_bytes: int) -> None:
    assert of(targetFileSize=text).target_file_bytes == size_bytes


@pytest.mark.parametrize(("text", "versions"), [("3", 3), ("0", 10), ("-1", 10), ("x", 10)])
def test_the_interval_of_checkpoints_is_ten_unless_the_table_names_a_positive_number(text: str, versions: int) -> None:
    assert of(checkpointInterval=text).checkpoint_interval == versions


@pytest.mark.parametrize(("text", "version"), [("0", 0), ("17", 17), ("soon", 2**63)])
def test_a_protection_that_cannot_be_read_protects_all(text: str, version: int) -> None:
    assert of(requireCheckpointProtectionBeforeVersion=text).protected_before == version
    assert of().protected_before == 0


def test_a_table_that_says_nothing_keeps_deleted_files_a_week_its_log_a_month_and_txns_for_ever() -> None:
    table = of()

    assert (table.deleted_files_ms, table.txns_ms, table.log_ms) == (7 * DAY_MS, None, 30 * DAY_MS)
    assert table.cleans_log


def test_a_table_says_how_long_it_keeps_what() -> None:
    table = of(
        deletedFileRetentionDuration="1 day",
        setTransactionRetentionDuration="2 days",
        logRetentionDuration="3 days",
        enableExpiredLogCleanup="False",
    )

    assert (table.deleted_files_ms, table.txns_ms, table.log_ms) == (DAY_MS, 2 * DAY_MS, 3 * DAY_MS)
    assert not table.cleans_log


def test_a_duration_that_cannot_be_read_drops_nothing_and_cleans_nothing_up() -> None:
    table = of(
        deletedFileRetentionDuration="a while",
        setTransactionRetentionDuration="1 month",
        logRetentionDuration="1 month",
    )

    assert not table.cleans_log
    assert table.keeps_txn(Txn(app_id="a", txn_version=1, last_updated_ms=0), now_ms=10**15)
    assert table.deleted_files_ms > 10**15


@pytest.mark.parametrize(("last_updated_ms", "kept"), [(101, True), (100, False), (None, False)])
def test_a_txn_is_expired_when_its_duration_is_over_or_its_time_is_not_known(
    *, last_updated_ms: int | None, kept: bool
) -> None:
    table = of(setTransactionRetentionDuration="900 milliseconds")

    txn = Txn(app_id="a", txn_version=1, last_updated_ms=last_updated_ms)
    assert table.keeps_txn(txn, now_ms=1000) is kept


def test_the_cutoff_of_the_log_is_the_midnight_before_its_duration_began() -> None:
    table = of(logRetentionDuration="2 days")

    assert table.log_cutoff_ms(now_ms=10 * DAY_MS + 5) == 8 * DAY_MS
    assert table.log_cutoff_ms(now_ms=10 * DAY_MS - 1) == 7 * DAY_MS
