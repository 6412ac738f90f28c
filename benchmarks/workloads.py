"""The tables that are read, made by another writer (delta-rs) or file by file from a seed: the same in every run.

A row is `id long, key long, value double, name string`; keys and values are random, names are 20 random hex digits, so
that nothing is small because it repeats.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake

from benchmarks import commits
from benchmarks.questions import Measurement

NAME_LENGTH = 20

READY_ROWS = 65_536
"""Rows of a ready-made batch for many rows, as many as our own have."""

COLD_FILES, COLD_ROWS = 10, 1_000

YOUNG, OLD = 20, 20_000
"""How many commits a log has before those that are read, where it is asked what the log's length costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """How much is read and written. The bulk table has one file a commit, and so has the table of small commits."""

    bulk_rows: int
    bulk_files: int
    commit_count: int
    commit_rows: int
    appended_commits: int
    appended_rows: int
    append_interval_s: float
    old_log_batches: int
    backlog_commits: int
    backlog_rows: int
    backlog_batch_files: int
    inserted_rows: int
    idle_s: float

    def describe(self) -> list[str]:
        """Gives the content in words, for a report."""
        row = f"id long, key long, value double, name string of {NAME_LENGTH} characters; all but id random"
        return [
            f"rows: {row}",
            f"bulk table: {self.bulk_rows:,} rows in {self.bulk_files} files, read as the initial snapshot",
            f"one-file batches: {self.commit_count} commits of one file of {self.commit_rows:,} rows, read from the "
            "first commit on with maxFilesPerTrigger=1",
            f"ready-made: files of one Arrow batch of {self.commit_rows:,} rows, one a batch; for the bulk, one of "
            f"{READY_ROWS:,} rows, given again and again",
            f"cold: {COLD_FILES} files of {COLD_ROWS:,} rows",
            f"latency: {self.appended_commits} commits of {self.appended_rows} rows by another process, one every "
            f"{self.append_interval_s:g} s (give or take a fifth), to a query without a pause between batches",
            f"catch-up: {self.backlog_commits:,} commits of one file of {self.backlog_rows} rows, read from version 0 "
            f"on with maxFilesPerTrigger={self.backlog_batch_files}",
            f"changes: {2 * self.inserted_rows:,} of {self.inserted_rows:,} inserted rows, made by the Delta JAR: half "
            "of the updates and deletes by copies of files, half by deletion vectors",
            f"length of the log: {self.old_log_batches} commits of one file of {self.commit_rows:,} rows after version "
            f"{YOUNG} and after version {OLD:,}",
            f"idle: {self.idle_s:g} s without a pause between looks at the log of the one-file batches",
        ]


FULL = Workload(
    bulk_rows=10_000_000,
    bulk_files=50,
    commit_count=60,
    commit_rows=1_000,
    appended_commits=12,
    appended_rows=10,
    append_interval_s=0.4,
    old_log_batches=12,
    backlog_commits=10_000,
    backlog_rows=100,
    backlog_batch_files=1_000,
    inserted_rows=10_000_000,
    idle_s=30.0,
)
QUICK = Workload(
    bulk_rows=500_000,
    bulk_files=5,
    commit_count=20,
    commit_rows=1_000,
    appended_commits=6,
    appended_rows=10,
    append_interval_s=0.5,
    old_log_batches=6,
    backlog_commits=300,
    backlog_rows=100,
    backlog_batch_files=100,
    inserted_rows=100_000,
    idle_s=3.0,
)
"""To see that everything runs; its numbers say nothing."""


def bulk_table(folder: Path) -> Path:
    """Where `make_tables` puts the bulk table."""
    return folder / "bulk"


def commits_table(folder: Path) -> Path:
    """Where `make_tables` puts the table of small commits."""
    return folder / "commits"


def cold_table(folder: Path) -> Path:
    """Where `make_tables` puts the table of ten files."""
    return folder / "cold"


def ready_bulk(folder: Path) -> Path:
    """Where `make_tables` puts the one file of the ready-made bulk (ready.py)."""
    return folder / "ready-bulk"


def ready_files(folder: Path) -> Path:
    """Where `make_tables` puts the ready-made small batches (ready.py)."""
    return folder / "ready"


def backlog_table(folder: Path) -> Path:
    """Where `make_tables` puts the table of many commits."""
    return folder / "backlog"


def log_table(folder: Path, after: int) -> Path:
    """Where `make_tables` puts the table whose files to read come after `after` commits."""
    return folder / f"after-{after}"


def changes_table(folder: Path) -> Path:
    """Where the table of changes is put (changes.py)."""
    return folder / "changes"


def make_tables(folder: Path, workload: Workload, measurements: Collection[Measurement]) -> None:
    """Makes below `folder` the tables that `measurements` read, but for the one that the JAR makes."""
    folder.mkdir(parents=True)
    needed = set(measurements)
    if needed & {
        Measurement.SOURCE_ROWS,
        Measurement.SINK_ROWS,
        Measurement.SINK_ROWS_OF_PARQUET,
        Measurement.SINK_TASK,
    }:
        write(bulk_table(folder), workload.bulk_files, workload.bulk_rows // workload.bulk_files)
    if needed & {Measurement.SOURCE_BATCHES, Measurement.SINK_BATCHES, Measurement.IDLE, Measurement.NOTHING_NEW}:
        write(commits_table(folder), workload.commit_count, workload.commit_rows)
    if Measurement.COLD in needed:
        write(cold_table(folder), COLD_FILES, COLD_ROWS)
    _make_ready(ready_bulk(folder), 1, READY_ROWS)
    _make_ready(ready_files(folder), workload.commit_count, workload.commit_rows)
    if Measurement.CATCH_UP in needed:
        few = rows(0, workload.backlog_rows, _chance())
        commits.make(backlog_table(folder), few, commits=workload.backlog_commits)
    if Measurement.OLD_LOG in needed:
        for after in (YOUNG, OLD):
            some, last = rows(0, workload.commit_rows, _chance()), after + workload.old_log_batches
            commits.make(log_table(folder, after), some, commits=last, first_with_data=after + 1)


def _make_ready(folder: Path, count: int, rows_each: int) -> None:
    folder.mkdir()
    chance = _chance()
    for number in range(count):
        put_ready(folder, number, rows(number * rows_each, rows_each, chance))


def put_ready(folder: Path, number: int, some: pa.Table) -> None:
    """Gives the source of ready.py its file `number`, which is complete when it appears."""
    (batch,) = some.combine_chunks().to_batches()
    being_written = folder / f"{number}.tmp"
    with pa.OSFile(str(being_written), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write(batch)
    being_written.rename(folder / f"{number}.arrow")


def bytes_a_row(folder: Path, workload: Workload) -> float:
    """Gives the bytes on disk of a row of the bulk table."""
    return sum(file.stat().st_size for file in bulk_table(folder).glob("*.parquet")) / workload.bulk_rows


def row_count(table: Path) -> int:
    """Counts the rows of a table by its log, as delta-rs reads it."""
    files = pa.table(DeltaTable(str(table)).get_add_actions(flatten=True))
    return int(pc.sum(files["num_records"]).as_py() or 0)


def rows(first_id: int, count: int, chance: random.Random) -> pa.Table:
    """Gives `count` rows with ids from `first_id` on."""
    ids = pa.array(range(first_id, first_id + count), pa.int64())
    keys, numbers = (pa.Array.from_buffers(pa.int64(), count, [None, _random(8 * count, chance)]) for _ in range(2))
    values = pc.divide(pc.cast(numbers, pa.float64(), safe=False), 1e6)
    offsets = pa.array(range(0, NAME_LENGTH * (count + 1), NAME_LENGTH), pa.int32()).buffers()[1]
    digits = pa.py_buffer(chance.randbytes(NAME_LENGTH // 2 * count).hex().encode())
    names = pa.Array.from_buffers(pa.string(), count, [None, offsets, digits])
    return pa.table({"id": ids, "key": keys, "value": values, "name": names})


def start_appended(table: Path) -> None:
    """Makes the table that `append_slowly` appends to: one row, whose id is the version 0."""
    write_deltalake(str(table), first_row())


def first_row() -> pa.Table:
    """Gives one row, whose id is the version 0."""
    return commit_rows(0, 1, random.Random(0))  # noqa: S311 - the same row in every run, no secret


def append_slowly(append: Callable[[int, pa.Table], None], *, count: int, row_count: int, interval_s: float) -> None:
    """Appends `count` commits, one every `interval_s` or so; the ids of the commit of version v are all v.

    The pauses differ so that they do not march in step with whatever polls.
    """
    chance = random.Random(count)  # noqa: S311 - pauses, no secret
    for version in range(1, count + 1):
        time.sleep(interval_s * chance.uniform(0.8, 1.2))
        append(version, commit_rows(version, row_count, chance))


def _commit(table: str, _: int, some: pa.Table) -> None:
    write_deltalake(table, some, mode="append")


def commit_rows(version: int, count: int, chance: random.Random) -> pa.Table:
    """Gives rows whose ids are all `version`."""
    return rows(0, count, chance).set_column(0, "id", pa.array([version] * count, pa.int64()))


def _chance() -> random.Random:
    return random.Random(20130101)  # noqa: S311 - the same rows in every run, no secret


def write(table: Path, commit_count: int, rows_each: int) -> None:
    """Commits `commit_count` files of `rows_each` rows each to a new table."""
    chance = _chance()
    for number in range(commit_count):
        write_deltalake(str(table), rows(number * rows_each, rows_each, chance), mode="append")


def _random(size: int, chance: random.Random) -> pa.Buffer:
    return pa.py_buffer(chance.randbytes(size))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Append small commits to a table, slowly.")
    parser.add_argument("table")
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--interval-s", type=float, required=True)
    parser.add_argument("--ready", action="store_true", help="files of ready.py instead of commits")
    given = parser.parse_args()

    appends = partial(put_ready, Path(given.table)) if given.ready else partial(_commit, given.table)
    append_slowly(appends, count=given.count, row_count=given.rows, interval_s=given.interval_s)
