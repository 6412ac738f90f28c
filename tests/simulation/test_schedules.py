"""Schedules of everything that may happen at once to a stream, or to a table whose rows are changed.

A seed makes up a schedule (kinds.py): who does what in which order, where each pauses so that others go on, where a
call of the store fails, loses its answer, answers late or ends the process, and when the clock jumps. The actors
(actors.py) are appenders, a stream from a source to a target, changers of rows, an optimizer, a vacuum, cleanups,
checkpoints, the work behind commits, readers, and whoever deletes, makes anew and restores tables. They call what
Spark's side and the Python API call, on disks in memory (world.py). Some tables are IndexTables tables
(index_tables.py), whose logs a plain reader reads (plain_index.py). Then the laws (laws.py) are checked:

- Each row of each source commit is in the target once, in the order of the commits.
- Every reader sees the rows of the commits up to its version. What is acknowledged is in the log, once. What is
  reported as unknown is there at most once.
- A table whose rows are changed or overwritten has the rows that a plain fold of its batches gives, in the order of the
  commits.
- The change feed of a table, recorded or found by row ids, leads from the rows of each version to those of the next. A
  stream of it delivers each change once. No two rows have one id.
- Each checkpoint and checksum that is left describes the table that is there; a deleted table stays deleted.
- delta-rs reads the same rows from the logs that are left.

`make simulate FIRST=10000 SCHEDULES=1000000` runs other and more seeds than the usual ones. A failure prints its seed
and the shortest schedule that still fails. One seed always makes up the same schedule, and a schedule always runs
alike, to the last byte of each file.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from simulation.course import courses
from simulation.kinds import (
    schedule_aimed,
    schedule_disturbed,
    schedule_indexed,
    schedule_of,
    schedule_overwritten,
    schedule_recorded,
    schedule_without_txns,
)
from simulation.schedule import STREAMED, Schedule, failure_of, left_behind, shrunk

FIRST, COUNT = int(os.environ.get("FIRST", "0")), int(os.environ.get("SCHEDULES", "10000"))
OTHERS = COUNT // 10
"""So many have steps that pause and fail only at the log, so many, and some more, record no transactions, so many have
IndexTables tables, so many overwrite a table, half as many record their changes, and in so many one step is disturbed
by one event."""
USUAL = COUNT - 5 * OTHERS - OTHERS // 2
BLOCKS = max(100, COUNT // 25)
"""Blocks of seeds, which processes share out: small ones, so that no process waits long for the other at the end."""


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    """Tables of three rows are read sooner by one thread of Arrow.

    Warnings are not logged: there is one for each fault, and pytest would keep them with all that they refer to.
    """
    count = pa.cpu_count()
    pa.set_cpu_count(1)
    logging.disable()
    yield
    logging.disable(logging.NOTSET)
    pa.set_cpu_count(count)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_after_any_schedule_each_row_is_there_once_and_every_log_says_the_same(block: int) -> None:
    for seed in range(FIRST + block, FIRST + USUAL, BLOCKS):
        _check(schedule_of(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS // 8))
def test_the_same_holds_where_steps_pause_and_fail_only_at_the_log(block: int) -> None:
    for seed in range(FIRST + block, FIRST + OTHERS, BLOCKS // 8):
        _check(schedule_aimed(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS // 8))
def test_an_append_without_a_transaction_is_there_once_if_it_was_acknowledged_and_never_twice(block: int) -> None:
    for seed in range(FIRST + block, FIRST + OTHERS * 11 // 10, BLOCKS // 8):  # a tenth have no stream
        schedule = schedule_without_txns(seed)
        if schedule.tables == STREAMED:
            _check(schedule)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS // 8))
def test_the_same_holds_where_the_source_or_the_target_is_an_indextables_table(block: int) -> None:
    for seed in range(FIRST + block, FIRST + OTHERS, BLOCKS // 8):
        _check(schedule_indexed(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS // 8))
def test_a_table_that_is_appended_to_and_overwritten_has_the_rows_of_its_batches_in_order(block: int) -> None:
    for seed in range(FIRST + block, FIRST + OTHERS, BLOCKS // 8):
        _check(schedule_overwritten(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS // 8))
def test_the_same_holds_whatever_happens_to_a_table_during_one_step(block: int) -> None:
    for seed in range(FIRST + block, FIRST + OTHERS, BLOCKS // 8):
        _check(schedule_disturbed(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS // 8))
def test_changes_lead_from_each_version_to_the_next_and_each_row_has_an_id_of_its_own(block: int) -> None:
    for seed in range(FIRST + block, FIRST + OTHERS // 2, BLOCKS // 8):  # each takes twice as long as others
        _check(schedule_recorded(seed))


def _check(schedule: Schedule) -> None:
    error = failure_of(schedule)
    if error is not None:
        schedule, error = shrunk(schedule, error)
        pytest.fail(f"seed {schedule.seed}: {error!r}\nThe shortest schedule that fails like it:\n{schedule}")


def test_delta_rs_reads_the_same_rows_from_the_logs_that_schedules_leave(tmp_path: Path) -> None:
    for seed in range(FIRST, FIRST + COUNT, COUNT // 50 or 1):
        for table, rows in left_behind(schedule_of(seed), tmp_path):
            found = pa.table(QueryBuilder().register("t", DeltaTable(table)).execute("SELECT * FROM t").read_all())
            assert sorted(tuple(row.values()) for row in found.to_pylist()) == rows, table


def test_a_schedule_always_runs_alike() -> None:
    """Also in a process whose sets have another order, to the last byte of each table."""
    first, count = f"{FIRST}", f"{min(COUNT, ALIKE)}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "1"}
    command = [sys.executable, "-m", "simulation.course", first, count]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as other:
        here = [line for seed in range(FIRST, FIRST + min(COUNT, ALIKE)) for line in courses(seed)]
        there, _ = other.communicate()
    assert there.splitlines() == here


ALIKE = 100
"""How many schedules are run a second time, in another process."""
