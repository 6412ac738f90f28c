"""Two appliers and an optimizer at one table, in every order of their steps; with an appender, in every fifth.

A writer has two steps: it reads the table and writes its files, up to its first put; then it commits, with all tries
that this takes. Of two steps that only read and write files of no commit, either may be first. So an order is that of
the commits, and for each writer the commit before which it begins.
"""

from __future__ import annotations

import queue
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, permutations, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from feed.rows.test_appliers_among_others import AROUND, ASKED
from feed.rows.test_apply_changes import FED, VECTORS, Event, a_target, events, rows
from feed.rows.test_crash_windows import left_over
from support.commits import written
from support.faulty_store import Fault, FaultyStore
from support.logs import log_of
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.rows.apply import applied_part, joined
from tablefeed.feed.rows.attempts import run
from tablefeed.feed.rows.incoming import batch_of
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.known_state import current_snapshot
from tablefeed.feed.upkeep.background import waited_for
from tablefeed.feed.upkeep.optimize import Folding, fold
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.store import LocalStore

Row = tuple[int, str, int]

FIRST: list[Row] = [(number, "first", 1) for number in range(1, 7)]
A: list[Event] = [(1, "A", 5, "u"), (2, None, 5, "d"), (3, "A", 5, "u")]
B: list[Event] = [(1, "B", 6, "u"), (3, "older", 4, "u"), (4, None, 6, "d"), (8, None, 9, "d"), (9, None, 1, "d")]
NEW: list[Row] = [(8, "appended", 4), (9, "appended", 2)]


def applier(given: Sequence[Event]) -> Callable[[DeltaLog], object]:
    def prepared(target: TargetRows) -> Transaction | None:
        snapshot = target.snapshot
        asked = replace(ASKED, apply_as_truncates=None)
        batch = batch_of(events(*given), asked, snapshot.schema, snapshot.metadata.partition_columns)
        return joined(target, [applied_part(target, batch, task=0, now_ms=1)], batch.how, txn=None, now_ms=1)

    return lambda log: run(log, current_snapshot(log), prepared, txn=None, around=AROUND)


def append(log: DeltaLog) -> object:
    columns = [pa.array(column) for column in zip(*NEW, strict=True)]
    return commit(log, log.load(), written(log, pa.table(columns, names=["id", "v", "ts"])), AROUND)


WRITERS: Mapping[str, Callable[[DeltaLog], object]] = {
    "a": applier(A),
    "b": applier(B),
    "optimizer": waited_for()(lambda log: fold(log.load_for_files(), Folding(target_bytes=1 << 30))),
    "appender": append,
}


def after(commits: Sequence[str]) -> list[Row]:
    """What the table has after one commit after the other: the fold of all events, and the appended rows.

    The delete of 8 is newer than the appended row, and takes it if it is there. That of 9 is older.
    """
    taken = commits.index("appender") < commits.index("b") if "appender" in commits else False
    folded = [(1, "B", 6), (3, "A", 5), (5, "first", 1), (6, "first", 1)]
    appended = [row for row in NEW if row[0] != 8 or not taken] if "appender" in commits else []
    return sorted([*folded, *appended], key=str)


class Writer:
    """A writer that stops before its first put, and goes on when it is told to."""

    def __init__(self, name: str, url: str) -> None:
        self._goes_on, self._stopped = threading.Event(), queue.SimpleQueue[tuple[bool, BaseException | None]]()
        pause = Fault(operation="put_if_absent", name=".json", hook=self._pause)
        log = log_of(FaultyStore(LocalStore(url), faults=[pause]))
        self._thread = threading.Thread(target=self._run, args=(WRITERS[name], log), daemon=True)

    def step(self) -> None:
        """Runs it up to its first put, then to its end."""
        if self._thread.ident is None:
            self._thread.start()
        elif self._thread.is_alive():
            self._goes_on.set()
        else:
            return  # an optimizer that finds nothing to fold puts nothing
        ended, error = self._stopped.get(timeout=60)
        if ended:
            self._thread.join()
        if error is not None:
            raise error

    def _pause(self) -> None:
        self._stopped.put((False, None))
        assert self._goes_on.wait(60)

    def _run(self, work: Callable[[DeltaLog], object], log: DeltaLog) -> None:
        error: BaseException | None = None
        try:
            work(log)
        except BaseException as raised:  # noqa: BLE001 - it is raised again where it is seen
            error = raised
        self._stopped.put((True, error))


def orders(names: Sequence[str]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """The commits in their order, and the steps of all writers; each writer is named for its begin and its commit."""
    for commits in permutations(names):
        latest = [range(place if name == "appender" else 0, place + 1) for place, name in enumerate(commits)]
        for begins in product(*latest):  # an append reads nothing: it begins just before it commits
            steps: list[str] = []
            for place, name in enumerate(commits):
                steps += [other for other, begin in zip(commits, begins, strict=True) if begin == place]
                steps.append(name)
            yield commits, steps


THREE, ALL = ("a", "b", "optimizer"), ("a", "b", "optimizer", "appender")


@pytest.mark.parametrize(
    ("names", "first", "properties"),
    [
        pytest.param(THREE, THREE, FED, id="no appender, copies"),
        pytest.param(THREE, THREE, {**VECTORS, **FED}, id="no appender, vectors"),
        *(pytest.param(ALL, (name,), {**VECTORS, **FED}, id=f"{name} first", marks=pytest.mark.slow) for name in ALL),
    ],
)
def test_the_outcome_is_that_of_one_writer_after_the_other_in_every_order_of_their_steps(
    tmp_path: Path, names: Sequence[str], first: Sequence[str], properties: dict[str, str]
) -> None:
    made = a_target(tmp_path, properties=properties)
    for begin in (0, 3):
        columns: list[Any] = [list(column) for column in zip(*FIRST[begin : begin + 3], strict=True)]
        tablefeed.append(made, pa.table(columns, names=["id", "v", "ts"]))

    every = (order for order in orders(names) if order[0][0] in first)
    for number, (commits, steps) in enumerate(islice(every, 0, None, 1 if names == THREE else 5)):
        url = str(shutil.copytree(made, tmp_path / str(number)))
        writers = {name: Writer(name, url) for name in names}
        for name in steps:
            writers[name].step()
        assert rows(url) == after(commits), steps
        assert left_over(url) == [], steps
