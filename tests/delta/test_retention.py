from __future__ import annotations

import pytest

from tablefeed.delta.retention import (
    DAY_MS,
    Retention,
    checkpoint_interval,
    parse_interval,
    protected_before,
    retention_of,
)
from tablefeed.model.actions import Metadata, Txn


def of(**properties: str) -> Metadata:
    named = {f"delta.{name}": value for name, value in properties.items()}
    return Metadata(table_id="t", schema_string="{}", configuration=named)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("interval 1 week", 7 * DAY_MS),
        ("30 days", 30 * DAY_MS),
        ("INTERVAL 2 WEEKS 1 second", 14 * DAY_MS + 1000),
        ("1 day -1 hour", 23 * 3_600_000),
        ("1.5 seconds", 1500),
        ("999 microseconds", 0),
        ("0 days", 0),
    ],
)
def test_an_interval_is_read_as_spark_reads_it(text: str, milliseconds: int) -> None:
    assert parse_interval(text) == milliseconds


@pytest.mark.parametrize("text", ["", "interval", "1 month", "1 year", "-1 day", "P1D", "7", "1.5 days", "1 day 2"])
def test_what_is_no_interval_or_has_no_certain_length_is_none(text: str) -> None:
    assert parse_interval(text) is None


def test_a_table_that_says_nothing_keeps_deleted_files_a_week_its_log_a_month_and_txns_for_ever() -> None:
    assert retention_of(of()) == Retention(
        deleted_files_ms=7 * DAY_MS, txns_ms=None, log_ms=30 * DAY_MS, cleans_log=True
    )


def test_a_table_says_how_long_it_keeps_what() -> None:
    metadata = of(
        deletedFileRetentionDuration="1 day",
        setTransactionRetentionDuration="2 days",
        logRetentionDuration="3 days",
        enableExpiredLogCleanup="False",
    )

    assert retention_of(metadata) == Retention(
        deleted_files_ms=DAY_MS, txns_ms=2 * DAY_MS, log_ms=3 * DAY_MS, cleans_log=False
    )


def test_a_duration_that_cannot_be_read_drops_nothing_and_cleans_nothing_up() -> None:
    metadata = of(
        deletedFileRetentionDuration="a while",
        setTransactionRetentionDuration="1 month",
        logRetentionDuration="1 month",
    )

    retention = retention_of(metadata)

    assert not retention.cleans_log
    assert retention.keeps_txn(Txn(app_id="a", txn_version=1, last_updated_ms=0), now_ms=10**15)
    assert retention.deleted_files_ms > 10**15


@pytest.mark.parametrize(("last_updated_ms", "kept"), [(101, True), (100, False), (None, False)])
def test_a_txn_is_expired_when_its_duration_is_over_or_its_time_is_not_known(
    *, last_updated_ms: int | None, kept: bool
) -> None:
    retention = Retention(deleted_files_ms=0, txns_ms=900, log_ms=0, cleans_log=True)

    txn = Txn(app_id="a", txn_version=1, last_updated_ms=last_updated_ms)
    assert retention.keeps_txn(txn, now_ms=1000) is kept


def test_the_cutoff_of_the_log_is_the_midnight_before_its_duration_began() -> None:
    retention = Retention(deleted_files_ms=0, txns_ms=None, log_ms=2 * DAY_MS, cleans_log=True)

    assert retention.log_cutoff_ms(now_ms=10 * DAY_MS + 5) == 8 * DAY_MS
    assert retention.log_cutoff_ms(now_ms=10 * DAY_MS - 1) == 7 * DAY_MS


@pytest.mark.parametrize(("text", "versions"), [("3", 3), ("0", 10), ("-1", 10), ("x", 10)])
def test_the_interval_of_checkpoints_is_ten_unless_the_table_names_a_positive_number(text: str, versions: int) -> None:
    assert checkpoint_interval(of(checkpointInterval=text)) == versions


@pytest.mark.parametrize(("text", "version"), [("0", 0), ("17", 17), ("soon", 2**63)])
def test_a_protection_that_cannot_be_read_protects_all(text: str, version: int) -> None:
    assert protected_before(of(requireCheckpointProtectionBeforeVersion=text)) == version
    assert protected_before(of()) == 0
