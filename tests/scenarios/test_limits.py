"""How far a batch goes: `maxFilesPerTrigger` and `maxBytesPerTrigger`, with every trigger (DeltaSourceSuite)."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from scenarios.streams import append, commit, grown, stream
from support.logs import info, metadata, protocol
from tablefeed.errors import IllegalOptionError


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


ONE_FILE = pytest.mark.parametrize("limit", [{"maxFilesPerTrigger": "1"}, {"maxBytesPerTrigger": "1b"}])


@ONE_FILE
def test_a_limit_of_one_file_or_one_byte_takes_a_file_at_a_time(table: Path, limit: dict[str, str]) -> None:
    query = stream(grown(table, *range(5)), **limit)

    query.start().processAllAvailable()

    assert sorted(query.batches) == [[value] for value in range(5)]


@ONE_FILE
def test_a_limit_of_one_file_or_one_byte_holds_for_the_files_of_a_checkpoint(
    table: Path, limit: dict[str, str]
) -> None:
    DeltaTable(str(grown(table, *range(11)))).create_checkpoint()
    query = stream(grown(table, *range(11, 20)), **limit)

    query.start().processAllAvailable()

    assert sorted(query.batches) == [[value] for value in range(20)]


@pytest.mark.parametrize(
    ("limit", "then", "batches"),
    [
        ({"maxFilesPerTrigger": "1"}, {"maxFilesPerTrigger": "2"}, [2, 2, 2, 2, 2]),
        ({"maxBytesPerTrigger": "1b"}, {"maxBytesPerTrigger": "100g"}, [10]),
    ],
)
def test_a_limit_changes_with_a_restart(
    table: Path, limit: dict[str, str], then: dict[str, str], batches: list[int]
) -> None:
    query = stream(grown(table, *range(10)))
    query.start(query.frame(**limit)).processAllAvailable()
    assert [len(batch) for batch in query.batches] == [1] * 10
    grown(table, *range(10, 20))

    query.start(query.frame(**then)).processAllAvailable()

    assert [len(batch) for batch in query.batches[10:]] == batches
    assert query.rows == list(range(20))


@pytest.mark.parametrize("option", ["maxFilesPerTrigger", "maxBytesPerTrigger"])
@pytest.mark.parametrize("value", ["0", "-1", "string"])
def test_a_limit_that_is_no_positive_number_is_refused(table: Path, option: str, value: str) -> None:
    with pytest.raises(IllegalOptionError, match=f"Invalid value '{value}' for option '{option}'") as caught:
        stream(grown(table, 0), **{option: value}).run()
    assert caught.value.error_class == "DELTA_ILLEGAL_OPTION"


def test_limits_are_ignored_when_using_trigger_once(table: Path) -> None:
    query = stream(grown(table, *range(5)), maxFilesPerTrigger="1")

    assert [len(batch) for batch in query.run(once=True)] == [5]
    grown(table, *range(5, 10))
    assert [len(batch) for batch in query.run(once=True)] == [5]
    assert query.rows == list(range(10))


@ONE_FILE
def test_trigger_available_now_respects_read_limits(table: Path, limit: dict[str, str]) -> None:
    query = stream(grown(table, *range(5)), **limit)

    assert [len(batch) for batch in query.run()] == [1] * 5
    assert query.ends == [*((4, index, True) for index in range(4)), (5, -1, False)]
    assert query.run() == []
    grown(table, 5, 6, 7)
    assert query.run() == [[5], [6], [7]]
    assert query.ends[5:] == [(6, -1, False), (7, -1, False), (8, -1, False)]
    assert query.run() == []


def test_trigger_available_now_with_an_empty_table(table: Path) -> None:
    commit(table, 0, protocol(), metadata())

    assert stream(table, maxFilesPerTrigger="1").run() == []


@pytest.mark.parametrize(("files", "size"), [("1", "100gb"), ("2", "1b")])
def test_of_max_bytes_and_max_files_together_the_first_that_is_met_ends_a_batch(
    table: Path, files: str, size: str
) -> None:
    query = stream(grown(table, *range(5)), maxFilesPerTrigger=files, maxBytesPerTrigger=size)

    query.start().processAllAvailable()

    assert sorted(query.batches) == [[value] for value in range(5)]


def test_a_source_advances_with_non_data_inserts_whose_batches_are_empty(table: Path) -> None:
    append(table, 1, 2, 3)
    query = stream(table)
    live = query.start()
    live.processAllAvailable()
    for version in (1, 2):
        commit(table, version, info(operation="Manual Update"))
        live.processAllAvailable()

    assert query.batches == [[1, 2, 3]]
    assert query.ends == [(1, -1, False), (2, -1, False), (3, -1, False)]


def test_a_rate_limited_source_advances_with_non_data_inserts(table: Path) -> None:
    append(table, 1, 2, 3)
    query = stream(table, maxFilesPerTrigger="2")
    live = query.start()
    live.processAllAvailable()
    for version in (1, 2, 3, 4):
        commit(table, version, info(operation="Manual Update"))
    live.processAllAvailable()
    commit(table, 5, info(operation="Manual Update"))
    live.processAllAvailable()

    assert query.ends == [(1, -1, False), (5, -1, False), (6, -1, False)]


def test_a_source_does_not_hang_or_reprocess_data_when_using_available_now(table: Path) -> None:
    """Where a filter leaves no file of the newest commit, the batch ends behind it all the same."""
    append(table, id=[0], part=[0])
    query = stream(table, where="part = 0")
    assert query.run() == [[(0, 0)]]
    append(table, id=list(range(1, 10)), part=list(range(1, 10)))

    assert query.run() == []
    assert query.ends == [(1, -1, False), (2, -1, False)]
    assert query.run() == []
    assert len(query.ends) == 2
