"""Writes with an application and a version, each done once (DeltaSuite's idempotent writes)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from scenarios.sinks import rows_of, save
from tablefeed.errors import IllegalOptionError, OptionError

ROWS = pa.table({"a": [1, 4, 7], "b": [2, 5, 8], "c": [3, 6, 9]})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.mark.parametrize(
    ("mode", "row_counts"),
    [("append", [3, 6, 9, 9, 9, 12, 12]), ("overwrite", [3, 3, 3, 3, 3, 3, 3])],
)
def test_a_version_of_an_application_is_written_once(table: Path, mode: str, row_counts: list[int]) -> None:
    writes = [("one", 1), ("one", 2), ("one", 5), ("one", 5), ("one", 4), ("two", 5), ("two", 5)]
    found = []

    for app_id, version in writes:
        save(table, ROWS, mode=mode, txnAppId=app_id, txnVersion=str(version))
        found.append((len(rows_of(table)), tablefeed.open_table(table).version))

    assert found == list(zip(row_counts, [0, 1, 2, 2, 2, 3, 3], strict=True))
    opened = tablefeed.open_table(table)
    assert (opened.txn_version("one"), opened.txn_version("two")) == (5, 5)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@pytest.mark.parametrize("half", [{"txnAppId": "1"}, {"txnVersion": "1"}], ids=["application", "version"])
def test_an_application_without_a_version_or_the_reverse_is_refused(
    table: Path, mode: str, half: dict[str, str]
) -> None:
    save(table, ROWS)

    with pytest.raises(OptionError) as caught:
        save(table, ROWS, mode=mode, **half)

    assert caught.value.error_class == "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS"
    assert tablefeed.open_table(table).version == 0


def test_a_version_is_a_whole_number(table: Path) -> None:
    with pytest.raises(IllegalOptionError, match="txnVersion"):
        save(table, ROWS, txnAppId="app", txnVersion="someVersion")

    assert not table.exists()


class Terminated(Exception):  # noqa: N818 - no error
    """What ends a query between its two writes."""


def test_a_batch_that_writes_to_two_tables_and_dies_between_them_is_in_both_once(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"

    def run_batch(batch_id: int, *values: int, fails: bool = False) -> tuple[int, int]:
        once = {"txnAppId": "query", "txnVersion": str(batch_id)}
        rows = pa.table({"value": list(values)})
        save(first, rows, **once)
        if fails:
            raise Terminated
        save(second, rows, **once)
        return len(rows_of(first)), len(rows_of(second))

    assert run_batch(0, 0) == (1, 1)
    with pytest.raises(Terminated):
        run_batch(1, 1, fails=True)
    assert (len(rows_of(first)), len(rows_of(second))) == (2, 1)
    assert run_batch(1, 1) == (2, 2)
    assert run_batch(2, 2) == (3, 3)
    assert rows_of(first) == rows_of(second) == [0, 1, 2]
