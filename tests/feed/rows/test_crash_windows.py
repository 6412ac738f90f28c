"""A row change whose store fails, or whose process dies, at each of its calls: the table is as before or as after.

A second run with the same txn then makes the change exactly once. Data files are written without faults here;
tests/feed/write/test_sink.py has those.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import tablefeed
from feed.rows.test_appliers_among_others import AROUND, ASKED
from feed.rows.test_apply_changes import FED, VECTORS, a_target, apply, events, rows
from support.faulty_store import Fault, FaultyStore, StoreCall
from support.logs import log_of
from tablefeed import Delete, Insert, Update
from tablefeed.errors import TablefeedError
from tablefeed.feed.api.row_changes import filter_of
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.rows.apply import applied_part, joined
from tablefeed.feed.rows.attempts import run
from tablefeed.feed.rows.incoming import batch_of
from tablefeed.feed.rows.merge import merging
from tablefeed.feed.rows.merge_clauses import Merging
from tablefeed.feed.rows.state import MOST_FILES
from tablefeed.feed.rows.update import deletion, updating
from tablefeed.feed.snapshot.known_state import current_snapshot
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.model.actions import Txn
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.store import LocalStore, Store

TXN = Txn(app_id="job", txn_version=7)
NOW_MS = 1_000
EFFECTS = frozenset({"put_if_absent", "create", "publish", "replace", "delete"})
"""The calls that change something."""

Outcome = Literal["before", "after", "death before", "death after"]


class Death(BaseException):
    """The process is gone: nothing that it would do after this happens."""


def die() -> None:
    raise Death


def delete(target: TargetRows) -> Transaction | None:
    where = "id IN (2, 10)"
    return deletion(target, filter_of(where, target), shown=where, txn=TXN, now_ms=lambda: NOW_MS)


def update(target: TargetRows) -> Transaction | None:
    where = filter_of("id IN (2, 10)", target)
    return updating(target, {"v": "concat(v, '!')"}, where, shown="", txn=TXN, now_ms=lambda: NOW_MS)


def merge(target: TargetRows) -> Transaction | None:
    given = pa.table({"id": [2, 10, 50], "v": ["new", "d", "new"], "ts": [9, 9, 9]})
    matched = (Delete(where="source.v = 'd'"), Update())
    asked = Merging(rows=given, on=("id",), matched=matched, not_matched=(Insert(),))
    return merging(target, asked, txn=TXN, now_ms=NOW_MS)


def apply_changes(target: TargetRows) -> Transaction | None:
    snapshot = target.snapshot
    is_history = "__START_AT" in snapshot.schema.names
    asked = replace(ASKED, apply_as_truncates=None)
    if is_history:
        asked = replace(asked, stored_as_scd_type=2, except_column_list=("op", "ts"))
    given = events((2, "new", 9, "u"), (10, None, 9, "d"), (50, "new", 9, "u"), (60, None, 9, "d"))
    batch = batch_of(given, asked, snapshot.schema, snapshot.metadata.partition_columns)
    part = applied_part(target, batch, task=0, now_ms=NOW_MS)
    return joined(target, [part], batch.how, txn=TXN, now_ms=NOW_MS)


CHANGES: Mapping[str, tuple[int, Callable[[TargetRows], Transaction | None], list[tuple[Any, ...]]]] = {
    "delete": (1, delete, [(1, "a", 1), (11, "a", 1)]),
    "update": (1, update, [(1, "a", 1), (10, "a!", 1), (11, "a", 1), (2, "a!", 1)]),
    "merge": (1, merge, [(1, "a", 1), (11, "a", 1), (2, "new", 9), (50, "new", 9)]),
    "apply_changes": (1, apply_changes, [(1, "a", 1), (11, "a", 1), (2, "new", 9), (50, "new", 9)]),
    "apply_changes with history": (
        2,
        apply_changes,
        [
            (1, "a", 1, None),
            (10, "a", 1, 9),
            (11, "a", 1, None),
            (2, "a", 1, 9),
            (2, "new", 9, None),
            (50, "new", 9, None),
        ],
    ),
}


KINDS = {"copies": FED, "vectors": {**VECTORS, **FED}}
TRIED = {
    "delete": "vectors",
    "update": "copies",
    "merge": "vectors",
    "apply_changes": "copies",
    "apply_changes with history": "vectors",
}
"""Of each change one kind of table. tests/faults kills processes that change rows of both kinds."""


def a_table(path: Path, scd_type: int, properties: dict[str, str], *, state_files: int) -> str:
    """Two files with two rows each, and so many of the state."""
    url = a_target(path, scd_type=scd_type, properties=properties)
    apply(url, (1, "a", 1, "u"), (2, "a", 1, "u"), scd_type=scd_type)
    apply(url, (10, "a", 1, "u"), (11, "a", 1, "u"), scd_type=scd_type)
    for key in range(90, 90 + state_files):
        apply(url, (key, None, 1, "d"), scd_type=scd_type)
    tablefeed.checkpoint(url)
    wait_until_done()
    return url


def left_over(url: str) -> list[str]:
    """The files in the table's folder that no commit names."""
    log = "".join(path.read_text() for path in sorted((Path(url) / "_delta_log").glob("*.json")))
    found = [path.relative_to(url) for path in Path(url).rglob("*") if path.is_file()]
    return sorted(str(path) for path in found if path.parts[0] != "_delta_log" and not is_named(path.name, log))


def is_named(name: str, log: str) -> bool:
    # The log has the number of a file of deletion vectors in another form: a table here has one such file at most.
    return name in log or (name.startswith("deletion_vector") and '"storageType":"u"' in log)


def txns(url: str) -> int:
    return sum(path.read_text().count('"job"') for path in (Path(url) / "_delta_log").glob("*.json"))


def faults(at: int, when: Outcome) -> list[Fault]:
    match when:
        case "before" | "after":
            return [Fault(operation=None, at=at, when=when)]
        case "death before" | "death after":
            first = Fault(operation=None, at=at, when="before" if when == "death before" else "after", hook=die)
            return [first, *(Fault(operation=None, at=later, hook=die) for later in range(at + 1, at + 100))]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("name", "properties"),
    [pytest.param(name, KINDS[kind], id=f"{name}-{kind}") for name, kind in TRIED.items()],
)
def test_a_change_that_fails_at_any_call_of_the_store_is_whole_or_not_there_and_made_once_by_a_second_run(
    tmp_path: Path, name: str, properties: dict[str, str]
) -> None:
    scd_type, prepare, new = CHANGES[name]
    made = a_table(tmp_path, scd_type, properties, state_files=MOST_FILES if prepare is apply_changes else 0)
    old = rows(made)

    def change(store: Store) -> Committed | AlreadyApplied:
        log = log_of(store)
        return run(log, current_snapshot(log), prepare, txn=TXN, around=AROUND)[0]

    def attempt(at: int, when: Outcome) -> None:
        url = str(tmp_path / f"{at} {when}")
        shutil.copytree(made, url)
        store, committed = FaultyStore(LocalStore(url), faults=faults(at, when)), False
        with contextlib.suppress(TablefeedError, Death):
            change(store)
            committed = True
        now = rows(url)
        assert now == new or (now == old and not committed)
        if when == "before" and store.calls[at - 1].operation != "delete":
            assert left_over(url) == []

        outcome = change(LocalStore(url))

        assert isinstance(outcome, AlreadyApplied if now == new else Committed)
        assert (rows(url), txns(url)) == (new, 1)
        if left_over(url):
            tablefeed.vacuum(url, retention_hours=0, allow_short_retention=True)
        assert left_over(url) == []

    every = FaultyStore(LocalStore(str(shutil.copytree(made, tmp_path / "whole"))))
    change(every)
    assert (rows(every.url), left_over(every.url)) == (new, [])
    for at, when in windows(every.calls):
        attempt(at, when)


def windows(calls: Sequence[StoreCall]) -> Iterator[tuple[int, Outcome]]:
    """Which calls fail, by their number from 1, and how.

    Of reads of one folder in a row the first fails. A process that dies after a call leaves what one leaves that dies
    before the next; only after the put is there none.
    """
    before = None
    for at, call in enumerate(calls, start=1):
        if call.operation in EFFECTS:
            yield from ((at, "before"), (at, "after"), (at, "death before"))
        elif (call.operation, call.name.rpartition("/")[0]) != before:
            yield at, "before"
        if call.operation == "put_if_absent":
            yield at, "death after"
        before = call.operation, call.name.rpartition("/")[0]
