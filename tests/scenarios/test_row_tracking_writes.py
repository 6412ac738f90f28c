"""The ids that writes give to rows, as RowIdSuite and the suites of row tracking beside it have it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from feed.commit.test_commit_features import ENABLED, TRACKED, ids, mark, marks, write
from scenarios.made_tables import a_struct, actions, by_batch, make, rows
from support.commits import still
from support.logs import Action, a_log, actions_of, add, metadata, protocol, put
from tablefeed.feed.commit.loop import commit

LISTED = protocol(1, 7, writerFeatures=["appendOnly", "invariants", *TRACKED])


def given(table: Path, version: int) -> list[tuple[object, object]]:
    """The first id and the version of the rows of each file that a commit added."""
    return [(each.get("baseRowId"), each.get("defaultRowCommitVersion")) for each in actions(table, version)["add"]]


def test_no_ids_are_given_without_row_tracking(tmp_path: Path) -> None:
    for _ in range(2):
        by_batch(tmp_path / "t", pa.table({"id": [1, 2]}))

    assert given(tmp_path / "t", 0) == given(tmp_path / "t", 1) == [(None, None)]
    assert "rowtracking" not in str(tablefeed.open_table(tmp_path / "t").metadata.configuration).lower()


@pytest.mark.parametrize("name", ["row_id", "_metadata.row_id", "_metadata.row_commit_version", "_metadata"])
def test_a_column_may_be_called_as_the_ids_are(tmp_path: Path, name: str) -> None:
    table = make(tmp_path, a_struct((name, "long")), LISTED, properties=ENABLED)

    by_batch(table, pa.table({name: [10_000, 10_001]}))

    assert [row[name] for row in rows(table)] == [10_000, 10_001]
    assert given(table, 1) == [(0, 1)]


def of_rival(number: int, *, first_id: int | None = None) -> list[Action]:
    """The commit of a rival's file of `number` rows."""
    theirs = add(f"theirs-{number}", stats=json.dumps({"numRecords": number}))
    if first_id is None:
        return [theirs]
    theirs["add"] |= {"baseRowId": first_id, "defaultRowCommitVersion": 1}
    return [theirs, mark({"rowIdHighWaterMark": first_id + number - 1})]


@pytest.mark.parametrize(
    ("told", "before", "rivals", "expected"),
    [
        (protocol(), [], [[LISTED]], ([(0, 2)], 0)),
        (protocol(), [], [[LISTED], of_rival(11, first_id=0)], ([(11, 3)], 11)),
        (protocol(), [], [[LISTED, *of_rival(1, first_id=0)]], ([(1, 2)], 1)),
        (LISTED, of_rival(7, first_id=0), [of_rival(11, first_id=7)], ([(18, 2)], 18)),
        (LISTED, of_rival(7, first_id=0), [[LISTED]], ([(7, 2)], 7)),
        (LISTED, [], [[], []], ([(0, 3)], 0)),
        (protocol(), [], [[LISTED], []], ([(0, 3)], 0)),
        (protocol(), [], [[LISTED], [metadata(configuration=ENABLED)]], ([(0, 3)], 0)),
    ],
    ids=[
        "feature",
        "feature and rows",
        "feature with rows",
        "rows",
        "no rows",
        "two empty",
        "feature and empty",
        "feature and property",
    ],
)
def test_a_write_that_comes_after_its_rivals_gives_ids_behind_theirs(
    told: Action, before: Sequence[Action], rivals: list[list[Action]], expected: tuple[list[tuple[int, int]], int]
) -> None:
    log = a_log(v0=[told, metadata(), *before])
    known, ours = log.load(), write(log, 1)
    for version, rival in enumerate(rivals, 1):
        put(log.store, version, [{"commitInfo": {}}, *rival])

    commit(log, known, ours, still())

    last = len(rivals) + 1
    assert ids(log, last) == expected[0]
    assert [json.loads(told) for told in marks(log, last)] == [{"rowIdHighWaterMark": expected[1]}]


def test_a_write_says_that_it_kept_all_ids_which_were_promised_behind_its_back() -> None:
    """PROTOCOL.md, "Row Tracking": to be said where no rows are updated or copied."""
    log = a_log(v0=[LISTED, metadata()])
    known, ours = log.load(), write(log, 1)
    put(log.store, 1, [metadata(configuration=ENABLED)])

    commit(log, known, ours, still())

    assert ids(log, 2) == [(0, 2)]
    assert actions_of(log, 2)[0]["commitInfo"]["tags"] == {"delta.rowTracking.preserved": "true"}
