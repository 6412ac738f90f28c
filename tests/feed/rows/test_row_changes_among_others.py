"""A change of rows when another writer commits between its reading and its commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import tablefeed
from feed.rows.test_delete_and_update import FED, VECTORS, a_table, ids, unnamed_files
from tablefeed import AlreadyApplied, Committed, Insert
from tablefeed.errors import ConflictError
from tablefeed.feed.api.row_changes import filter_of
from tablefeed.feed.commit.transaction import Surroundings, Transaction
from tablefeed.feed.rows.attempts import TRIES, run
from tablefeed.feed.rows.merge import merging
from tablefeed.feed.rows.merge_clauses import Merging
from tablefeed.feed.rows.update import deletion
from tablefeed.feed.snapshot.known_state import current_snapshot
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.model.actions import Txn, Version

AROUND = Surroundings(now_ms=lambda: 1_000, sleep=lambda _: None, uniform=lambda: 0.0)


def delete(url: str, where: str, meanwhile: Callable[[], object], *, times: int = 1, txn: Txn | None = None) -> int:
    """Deletes rows; `meanwhile` runs after the rows were found, the first `times`. Gives the version."""
    log = open_log(url)
    left = [meanwhile] * times

    def prepared(target: TargetRows) -> Transaction | None:
        found = deletion(target, filter_of(where, target), shown=where, txn=txn, now_ms=lambda: 1_000)
        if left:
            left.pop()()
        return found

    outcome, *_ = run(log, current_snapshot(log), prepared, txn=txn, around=AROUND)
    assert isinstance(outcome, Committed)
    return outcome.version


def row(number: int) -> pa.Table:
    return pa.table({"id": [number], "p": [0], "v": ["new"]})


@pytest.mark.parametrize("properties", [VECTORS, FED, {}], ids=["vectors", "fed", "plain"])
@pytest.mark.parametrize(
    ("meanwhile", "left"),
    [
        (lambda url: tablefeed.append(url, row(50)), [0, 1, 3, 5, 6, 7, 8, 9, 10, 11, 12, 50]),
        (lambda url: tablefeed.append(url, row(2)), [0, 1, 3, 5, 6, 7, 8, 9, 10, 11, 12]),
        (lambda url: tablefeed.delete(url, "id = 6"), [0, 1, 3, 5, 7, 8, 9, 10, 11, 12]),
        (lambda url: tablefeed.delete(url, "id IN (2, 6)"), [0, 1, 3, 5, 7, 8, 9, 10, 11, 12]),
        (lambda url: tablefeed.update(url, {"id": "60"}, "id = 2"), [0, 1, 3, 5, 6, 7, 8, 9, 10, 11, 12, 60]),
        (lambda url: tablefeed.update(url, {"id": "4"}, "id = 6"), [0, 1, 3, 5, 7, 8, 9, 10, 11, 12]),
        (lambda url: tablefeed.optimize(url), [0, 1, 3, 5, 6, 7, 8, 9, 10, 11, 12]),
        (lambda url: DeltaTable(url).restore(0), [0, 1, 3, 5, 6, 7, 8, 9]),  # it repeats protocol and metadata
    ],
    ids=["append", "append of it", "other rows", "the same rows", "moved away", "moved here", "optimize", "restore"],
)
def test_the_outcome_is_that_of_one_change_after_the_other(
    tmp_path: Path, properties: dict[str, str], meanwhile: Callable[[str], object], left: list[int]
) -> None:
    url = a_table(tmp_path, properties)
    assert delete(url, "id IN (2, 4)", lambda: meanwhile(url)) == 3
    assert ids(url) == left
    assert not unnamed_files(url)


def test_a_merge_that_met_a_row_which_then_goes_is_prepared_again(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    asked = Merging(rows=pa.concat_tables([row(1), row(20)]), on=("id",), not_matched=(Insert(),))
    log, left = open_log(url), [lambda: tablefeed.delete(url, "TRUE")]

    def prepared(target: TargetRows) -> Transaction | None:
        found = merging(target, asked, txn=None, now_ms=1_000)
        if left:
            left.pop()()
        return found

    run(log, current_snapshot(log), prepared, txn=None, around=AROUND)
    assert ids(url) == [1, 20]
    assert not unnamed_files(url)


def test_an_append_of_other_rows_does_not_make_the_rows_be_found_again(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    found: list[int] = []

    def append() -> None:
        found.append(1)
        tablefeed.append(url, row(50))

    delete(url, "id = 2", append, times=TRIES)
    assert len(found) == 1


@pytest.mark.parametrize("txn_version", [3, 4])
def test_a_change_that_the_table_records_already_is_not_prepared(tmp_path: Path, txn_version: int) -> None:
    url = a_table(tmp_path)
    tablefeed.delete(url, "id = 2", app_id="job", txn_version=4)
    log, prepared = open_log(url), list[TargetRows]()
    txn = Txn(app_id="job", txn_version=txn_version)
    outcome, *_ = run(log, current_snapshot(log), prepared.append, txn=txn, around=AROUND)
    assert outcome == AlreadyApplied(version=Version(2), recorded_txn_version=4)
    assert not prepared


def test_a_change_that_never_gets_its_turn_ends_with_the_conflict_and_leaves_no_file(tmp_path: Path) -> None:
    url = a_table(tmp_path, {})
    with pytest.raises(ConflictError, match="DELTA_CONCURRENT_APPEND"):
        delete(url, "id = 2", lambda: tablefeed.append(url, row(2)), times=TRIES)
    assert ids(url).count(2) == 1 + TRIES
    assert not unnamed_files(url)


@pytest.mark.parametrize(
    ("meanwhile", "error_class"),
    [
        (
            lambda url: DeltaTable(url).alter.set_table_properties({"delta.appendOnly": "false"}),
            "DELTA_METADATA_CHANGED",
        ),
        (lambda url: tablefeed.append(url, row(5), app_id="job", txn_version=3), "DELTA_CONCURRENT_TRANSACTION"),
    ],
    ids=["properties", "the same application"],
)
def test_a_true_conflict_ends_the_change_at_once_and_leaves_no_file(
    tmp_path: Path, meanwhile: Callable[[str], object], error_class: str
) -> None:
    url = a_table(tmp_path, {})
    with pytest.raises(ConflictError, match=error_class):
        delete(url, "id = 2", lambda: meanwhile(url), txn=Txn(app_id="job", txn_version=4))
    assert 2 in ids(url)
    assert not unnamed_files(url)


def test_the_vectors_of_a_change_that_lost_are_deleted(tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    tablefeed.append(url, pa.table({"id": range(10_000), "p": [0] * 10_000, "v": ["a"] * 10_000}), properties=VECTORS)
    many = " OR ".join(f"id = {number}" for number in range(0, 10_000, 20))
    delete(url, many, lambda: tablefeed.delete(url, "id = 1"))
    assert len(list(Path(url).glob("deletion_vector_*.bin"))) == 2, "of the rival, and of the change that won"
    assert len(ids(url)) == 10_000 - 501


def test_the_log_of_a_change_can_be_read_from_its_checkpoint(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    tablefeed.delete(url, "id = 2")
    tablefeed.delete(url, "id = 4")
    tablefeed.checkpoint(url)
    for version in range(3):
        (Path(url) / "_delta_log" / f"{version:020d}.json").unlink()
    assert ids(url) == [0, 1, 3, 5, 6, 7, 8, 9, 10, 11, 12]
    assert tablefeed.open_table(url).version == Version(3)
