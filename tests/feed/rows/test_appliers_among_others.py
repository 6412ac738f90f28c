"""`apply_changes` when another applier commits between its reading and its commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import tablefeed
from feed.rows.test_apply_changes import Event, a_target, apply, events, rows, state_files
from tablefeed.errors import SchemaMismatchError
from tablefeed.feed.commit.transaction import Surroundings, Transaction
from tablefeed.feed.rows.apply import applied_part, check, joined
from tablefeed.feed.rows.asking import Asking
from tablefeed.feed.rows.attempts import run
from tablefeed.feed.rows.folding import Ties
from tablefeed.feed.rows.incoming import batch_of
from tablefeed.feed.snapshot.known_state import current_snapshot
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.write.target_rows import TargetRows

AROUND = Surroundings(now_ms=lambda: 1_000, sleep=lambda _: None, uniform=lambda: 0.0)
ASKED = Asking(
    keys=("id",),
    sequence_by=("ts",),
    apply_as_deletes="op = 'd'",
    apply_as_truncates="op = 't'",
    except_column_list=("op",),
    ties=Ties.FAIL,
)


HISTORY = replace(ASKED, stored_as_scd_type=2, apply_as_truncates=None, except_column_list=("op", "ts"))


def apply_while(url: str, meanwhile: Callable[[], object], *given: Event, asked: Asking = ASKED) -> None:
    """Applies events; `meanwhile` runs once, after the first preparation."""
    log = open_log(url)
    left = [meanwhile]

    def prepared(target: TargetRows) -> Transaction | None:
        snapshot = target.snapshot
        batch = batch_of(events(*given), asked, snapshot.schema, snapshot.metadata.partition_columns)
        check(target, batch.how)
        found = joined(target, [applied_part(target, batch, task=0, now_ms=1_000)], batch.how, txn=None, now_ms=1_000)
        if left:
            left.pop()()
        return found

    run(log, current_snapshot(log), prepared, txn=None, around=AROUND)


@pytest.mark.parametrize(
    ("theirs", "ours", "left"),
    [
        ((1, None, 5, "d"), (1, "older", 3, "u"), []),
        ((0, None, 5, "t"), (1, "older", 3, "u"), []),
        ((1, "newer", 5, "u"), (1, None, 3, "d"), [(1, "newer", 5)]),
        ((1, None, 5, "d"), (2, "other", 3, "u"), [(2, "other", 3)]),
    ],
    ids=["delete of a key without a row", "truncate of no row", "insert after the delete", "other keys"],
)
def test_what_another_applier_remembers_meanwhile_decides_too(
    tmp_path: Path, theirs: Event, ours: Event, left: list[Event]
) -> None:
    url = a_target(tmp_path)
    apply_while(url, lambda: apply(url, theirs), ours)
    assert rows(url) == left


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_late_version_that_ends_where_a_version_begins_is_found_again_if_that_version_goes(
    tmp_path: Path, vectors: str
) -> None:
    url = a_target(tmp_path, scd_type=2, properties={"delta.enableDeletionVectors": vectors})
    apply(url, (1, "newer", 10, "u"), (2, "other", 1, "u"), scd_type=2)
    apply_while(url, lambda: tablefeed.delete(url, "id = 1"), (1, "late", 5, "u"), asked=HISTORY)
    assert rows(url) == [(1, "late", 5, None), (2, "other", 1, None)]


GOES: Mapping[str, Callable[[str], object]] = {
    "deleted": lambda url: tablefeed.delete(url, "id = 1"),
    "restored": lambda url: tablefeed.restore(url, version=1),
}


@pytest.mark.parametrize("how", GOES)
def test_an_event_is_not_late_because_of_a_row_that_goes_before_it_is_applied(tmp_path: Path, how: str) -> None:
    url = a_target(tmp_path)
    apply(url, (2, "other", 1, "u"))
    apply(url, (1, "newer", 10, "u"))
    apply_while(url, lambda: GOES[how](url), (1, "late", 5, "u"), (3, "new", 5, "u"))
    assert rows(url) == [(1, "late", 5), (2, "other", 1), (3, "new", 5)]


def test_changes_that_are_applied_again_leave_the_state_of_earlier_ones_alone(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (1, None, 5, "d"))
    theirs = events((2, "theirs", 1, "u")).drop_columns(["op"])
    apply_while(url, lambda: tablefeed.append(url, theirs), (2, None, 3, "d"))
    apply(url, (1, "late", 4, "u"))
    assert rows(url) == []


def test_of_two_first_appliers_the_other_one_decides_how_changes_are_applied(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    with pytest.raises(SchemaMismatchError, match="AUTOCDC_STATE_DRIFT"):
        apply_while(url, lambda: apply(url, (1, "a", 1, "u"), keys=["id", "v"]), (2, "b", 1, "u"))
    assert (rows(url), state_files(url)) == ([(1, "a", 1)], set())
