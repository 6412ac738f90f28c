"""What the source costs without Spark: one measurement in one process, which prints one line of JSON.

The stream is planned, and its tasks are read, by the same calls that the Spark source makes.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

import tablefeed
from benchmarks import commits, environment, logs, workloads
from benchmarks.bench import WARM_UP_BATCHES, percentile
from benchmarks.workloads import OLD, YOUNG
from tablefeed.feed.arguments import Bound
from tablefeed.feed.scan.task import ScanTask, read_task
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.stream.source import StreamSource
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.log.plan import Limits
from tablefeed.model.offset import Offset
from tablefeed.store import LocalStore, Store, open_store

LOOKS = 5_000
"""How often an idle stream looks at its log."""

BATCHES = 100
"""One-file batches at each version."""

FOLLOWED, INTERVAL_S = 200, 0.05
"""How many commits are followed, or copied to another table, and their distance."""

SNAPSHOT_BATCH_FILES = 1_000

TASK_FILE_BYTES, ROW_GROUP_ROWS = 2 << 30, 2_950_000
"""A large file, and the rows of its groups: 128 MB of each."""

ASKS = ("list", "exists", "is_file_at_root", "read", "stat", "open_input")
"""The calls of a store that are requests where it is an object store."""


def make_idle(folder: Path) -> None:
    """A log of 100 commits."""
    commits.make(folder / "idle", _some_rows(), commits=100, first_with_data=101)


def idle(folder: Path) -> dict[str, float]:
    """Looks for a next commit that does not come, as Spark does: where the batch ends, and how far behind that is."""
    local = _idle_look(LocalStore(str(folder / "idle")))
    remote = _idle_look(_in_memory(folder / "idle"))
    return {
        "idle_look_us": local[0],
        "idle_look_requests": local[1],
        "idle_look_remote_us": remote[0],
        "idle_look_remote_requests": remote[1],
    }


def make_old_log(folder: Path) -> None:
    """A short log and a long one."""
    for after in (YOUNG, OLD):
        commits.make(workloads.log_table(folder, after), _some_rows(), commits=after, first_with_data=after + 1)


def old_log(folder: Path) -> dict[str, float]:
    """Plans and reads commits of one file as they come, at the end of a short log and of a long one, alternating."""
    tables = {after: workloads.log_table(folder, after) for after in (YOUNG, OLD)}
    streams = {after: Stream(LocalStore(str(table)), starting_version="latest") for after, table in tables.items()}
    took_ms: dict[int, list[float]] = {after: [] for after in tables}
    data, newest = commits.small_file(_some_rows()), {after: _newest(table) for after, table in tables.items()}
    for stream in streams.values():
        stream.look()  # the first look of a stream from "latest" ends where the log ended when it began
    for number in range(1, WARM_UP_BATCHES + BATCHES + 1):
        for after, stream in streams.items():
            commits.append(tables[after], newest[after] + number, _some_rows().num_rows, data)
            begun = time.perf_counter()
            rows = stream.batch()
            took_ms[after].append((time.perf_counter() - begun) * 1000)
            if rows != _some_rows().num_rows:
                raise SystemExit(f"a batch had {rows} rows: its time would say nothing")
    for after, table in tables.items():
        commits.cut_off(table, newest[after])
    young, old = (statistics.median(took_ms[after][WARM_UP_BATCHES:]) for after in (YOUNG, OLD))
    return {"old_log_batch_ms": old, "old_log_growth": old / young}


def make_follow(folder: Path) -> None:
    """A log that another process adds to."""
    commits.make(folder / "followed", _some_rows(), commits=1, first_with_data=2)


def follow(folder: Path) -> dict[str, float]:
    """Times commits by another process until `tablefeed.follow` gives them."""
    table = folder / "followed"
    first = _newest(table) + 1
    last = first + WARM_UP_BATCHES + FOLLOWED - 1
    followed = tablefeed.follow(table, after=first - 1)
    seen_ns: dict[int, int] = {}
    with _writer(table, first, last) as writer:
        for commit in followed:
            seen_ns[commit.version] = time.monotonic_ns()
            if commit.version == last:
                break
        written_ns = json.loads(writer.communicate()[0])
    counted = range(first + WARM_UP_BATCHES, last + 1)
    took_ms = sorted((seen_ns[version] - written_ns[str(version)]) / 1e6 for version in counted)
    return {"follow_p50_ms": statistics.median(took_ms), "follow_p95_ms": percentile(took_ms, 95)}


def relay(after: int, folder: Path) -> dict[str, float]:
    """Times commits by another process until `append` has their rows in another table; the log begins with `after`."""
    source, target = workloads.log_table(folder, after), folder / "target"
    first = _newest(source) + 1
    last = first + WARM_UP_BATCHES + FOLLOWED - 1
    done_ns: dict[int, int] = {}
    followed = tablefeed.follow(source, after=first - 1)
    with _writer(source, first, last, rows=True) as writer:
        for commit in followed:
            rows = tablefeed.appends(source, start_version=commit.version, end_version=commit.version)
            tablefeed.append(target, rows, app_id="relay", txn_version=commit.version)
            done_ns[commit.version] = time.monotonic_ns()
            if commit.version == last:
                break
        written_ns = json.loads(writer.communicate()[0])
    wait_until_done()
    if (rows := tablefeed.open_table(target).to_arrow().num_rows) != len(done_ns) * _some_rows().num_rows:
        raise SystemExit(f"{rows} rows arrived: the time would say nothing")
    shutil.rmtree(target)
    commits.cut_off(source, first - 1)
    took_ms = [(done_ns[n] - written_ns[str(n)]) / 1e6 for n in range(first + WARM_UP_BATCHES, last + 1)]
    name = "old_relay" if after == OLD else "relay"
    return {f"{name}_p50_ms": statistics.median(took_ms), f"{name}_p95_ms": percentile(took_ms, 95)}


def write(table: Path, first: int, last: int, *, rows: bool = False) -> None:
    """Commits the versions from `first` to `last`, slowly, each with a file of rows or without; prints when."""
    chance, written_ns = random.Random(first), {}  # noqa: S311 - pauses, no secret
    count, data = (_some_rows().num_rows, commits.small_file(_some_rows())) if rows else (0, None)
    for version in range(first, last + 1):
        time.sleep(INTERVAL_S * chance.uniform(0.8, 1.2))
        written_ns[version] = commits.append(table, version, count, data)
    print(json.dumps(written_ns))


def _writer(table: Path, first: int, last: int, *, rows: bool = False) -> subprocess.Popen[str]:
    named = ["--write", str(table), str(first), str(last), *(["--rows"] if rows else [])]
    return subprocess.Popen([sys.executable, "-m", "benchmarks.planner", *named], stdout=subprocess.PIPE, text=True)


def make_snapshot(folder: Path, files: int = logs.CHECKPOINT_FILES, form: logs.Form = logs.Form.ONE_FILE) -> None:
    """A checkpoint of many files."""
    logs.large_checkpoint(folder / "snapshot", files=files, form=form)


def snapshot(folder: Path) -> dict[str, float]:
    """Plans the initial snapshot of many files in batches, which are not read."""
    stream = Stream(LocalStore(str(folder / "snapshot")))
    took_ms, planned, first_cpu_s, begun_cpu_s = [], 0, 0.0, time.process_time()
    while True:
        begun = time.perf_counter()
        files = sum(len(task.files) for task in stream.plan(Limits(files=SNAPSHOT_BATCH_FILES)))
        took_ms.append((time.perf_counter() - begun) * 1000)
        first_cpu_s = first_cpu_s or time.process_time() - begun_cpu_s
        planned += files
        if not files:
            break
    if planned != logs.file_count(folder / "snapshot"):
        raise SystemExit(f"{planned} files were planned: their time would say nothing")
    return {
        "snapshot_files": planned,
        "snapshot_peak_mb": environment.peak_mb(),
        "snapshot_first_batch_cpu_s": first_cpu_s,
        "snapshot_first_batch_ms": took_ms[0],
        "snapshot_batch_ms": statistics.median(took_ms[1:-1]),
    }


def make_task(folder: Path) -> None:
    """A table of one file with row groups as large as Parquet's documentation would have them."""
    table, name, chance = folder / "large", "large.parquet", random.Random(20130101)  # noqa: S311 - rows, no secret
    rows = workloads.rows(0, ROW_GROUP_ROWS, chance)
    commits.begin(table, rows.schema)
    count = 0
    with pq.ParquetWriter(table / name, rows.schema) as writer:
        while (table / name).stat().st_size < TASK_FILE_BYTES:
            writer.write_table(rows, row_group_size=len(rows))
            count += len(rows)
            rows = workloads.rows(count, ROW_GROUP_ROWS, chance)
    commits.add(table, 1, name, size_bytes=(table / name).stat().st_size, row_count=count)


def task(folder: Path) -> dict[str, float]:
    """Reads the largest task of a batch of one large file."""
    stream = Stream(LocalStore(str(folder / "large")))
    largest = max(stream.plan(), key=lambda task: sum((f.share or (0, 0))[1] or 0 for f in task.files))
    begun = time.perf_counter()
    rows = sum(batch.num_rows for batch in read_task(largest, stream.schema))
    return {"task_peak_mb": environment.peak_mb(), "task_rows_per_s": rows / (time.perf_counter() - begun)}


MAKES: Mapping[str, Callable[[Path], None]] = {
    "idle": make_idle,
    "old log": make_old_log,
    "follow": make_follow,
    "relay": make_old_log,
    "snapshot": make_snapshot,
    "task": make_task,
}
MEASURES: Mapping[str, Callable[[Path], dict[str, float]]] = {
    "idle": idle,
    "old log": old_log,
    "follow": follow,
    "relay": lambda folder: {**relay(YOUNG, folder), **relay(OLD, folder)},
    "snapshot": snapshot,
    "task": task,
}


class Stream:
    """A stream as the Spark source plans it; it stands behind what was planned last."""

    def __init__(self, store: Store, *, starting_version: int | Literal["latest"] | None = None) -> None:
        log = DeltaLog(store, location=store.url, storage_options={})
        begun = log.load()
        self.schema = begun.arrow_schema
        options = SourceOptions(start=Bound(version=starting_version))
        self._source = StreamSource(log, read_schema=begun.schema, options=options, clock=time.monotonic)
        self._at = self._source.initial()

    def look(self) -> Offset:
        """Asks where a batch ends and what is there beyond."""
        end = self._source.latest(self._at, Limits())
        self._source.lag(end, now_ms=time.time_ns() // 1_000_000)
        return end

    def plan(self, limits: Limits | None = None) -> list[ScanTask]:
        """Plans the next batch, and takes it for done."""
        end = self._source.latest(self._at, limits or Limits())
        self._source.lag(end, now_ms=time.time_ns() // 1_000_000)
        tasks = self._source.tasks(self._at, end)
        self._source.delivered(end)
        self._at = end
        return tasks

    def batch(self) -> int:
        """Plans and reads the next batch; gives its rows."""
        return sum(batch.num_rows for task in self.plan() for batch in read_task(task, self.schema))


class _Counted:
    """A store that counts the requests made of `inner`."""

    def __init__(self, inner: Store) -> None:
        self._inner, self.requests = inner, 0

    def __getattr__(self, name: str) -> Any:
        self.requests += name in ASKS
        return getattr(self._inner, name)


def _idle_look(inner: Store) -> tuple[float, float]:
    """The microseconds and the requests of one look."""
    store = _Counted(inner)
    stream = Stream(cast("Store", store), starting_version="latest")
    for _ in range(LOOKS // 10):
        stream.look()
    since, begun = store.requests, time.perf_counter()
    for _ in range(LOOKS):
        stream.look()
    seconds = time.perf_counter() - begun
    return seconds / LOOKS * 1e6, (store.requests - since) / LOOKS


def _in_memory(table: Path) -> Store:
    """The same log as objects: in memory, so that what is counted is requests and no network."""
    location = "memory://idle"
    fsspec.filesystem("memory").put(str(table), "/idle", recursive=True)
    return open_store(location)


def _newest(table: Path) -> int:
    return max(int(log_file.stem) for log_file in (table / "_delta_log").glob("*.json") if log_file.stem.isdigit())


def _some_rows() -> pa.Table:
    return workloads.rows(0, 1_000, random.Random(0))  # noqa: S311 - the same rows in every run, no secret


def main() -> None:
    """Measures what the command line names, or writes for one that does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "FOLDER"), help="measure one thing once and print it")
    parser.add_argument("--write", nargs=3, metavar=("TABLE", "FIRST", "LAST"), help="commit slowly and print when")
    parser.add_argument("--rows", action="store_true", help="with --write: each commit has a file of rows")
    given = parser.parse_args()
    if given.write:
        write(Path(given.write[0]), int(given.write[1]), int(given.write[2]), rows=given.rows)
    else:
        print(json.dumps(MEASURES[given.one[0]](Path(given.one[1]))))


if __name__ == "__main__":
    main()
