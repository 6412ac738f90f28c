"""`python -m benchmarks.task_memory`: how much memory one task of an executor takes, for files of 128 MB.

The tasks are those of the Spark source, change feed and sink, without Spark: the same calls, each in a process of its
own. A task's memory is the peak of the process less what it has after a small task of the same kind, by when
everything is imported. A reader's rows are dropped at once. The sink's come in batches of 10,000, as from Spark.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import environment
from benchmarks.questions import AtMost
from benchmarks.source import Figure, Sample, as_markdown
from benchmarks.turns import facts, keep, measured

ROUNDS = 3
PACKAGES = ("tablefeed", "pyarrow")
FILE_BYTES = 128 << 20
"""A file as large as the largest task (Spark's maxPartitionBytes)."""
SPARK_ROWS = 10_000
GOAL = AtMost(bound=256)
ONE = 1 << 40
"""More rows than any file has: one row group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A file: how `count` rows from the number `first` on are made, how many a row group has, and how many the file."""

    text: str
    rows: Callable[[int, int], pa.RecordBatch]
    group_rows: int = ONE
    most_rows: int = ONE


def _plain(first: int, count: int) -> pa.RecordBatch:
    made = random.Random(first)  # noqa: S311 - data, not secrets
    return pa.record_batch(
        {
            "id": pa.array(range(first, first + count)),
            "key": pa.array([made.getrandbits(62) for _ in range(count)]),
            "value": pa.array([made.random() for _ in range(count)]),
            "name": pa.array([made.randbytes(10).hex() for _ in range(count)]),
        }
    )


def _texts(*, distinct: int, times: int = 1, columns: int = 1) -> Callable[[int, int], pa.RecordBatch]:
    """Texts of `distinct` random hex digits, repeated."""

    def rows(first: int, count: int) -> pa.RecordBatch:
        made = random.Random(first)  # noqa: S311 - data, not secrets
        texts = [[made.randbytes(distinct // 2).hex() * times for _ in range(count)] for _ in range(columns)]
        return pa.record_batch(
            {"id": pa.array(range(first, first + count)), **{f"text{n}": pa.array(t) for n, t in enumerate(texts)}}
        )

    return rows


def _repeated(first: int, count: int) -> pa.RecordBatch:
    """Rows of 100 texts of 10,000 random hex digits: each row has one of them."""
    made = random.Random(0)  # noqa: S311 - data, not secrets
    texts = [made.randbytes(5_000).hex() for _ in range(100)]
    rows = range(first, first + count)
    return pa.record_batch({"id": pa.array(rows), "text": pa.array([texts[n % 100] for n in rows])})


def _nested(first: int, count: int) -> pa.RecordBatch:
    made = random.Random(first)  # noqa: S311 - data, not secrets
    numbers = range(first, first + count)
    points = [{"x": i, "y": made.random(), "label": made.randbytes(6).hex()} for i in numbers]
    pairs = [[(made.randbytes(3).hex(), i)] for i in numbers]
    return pa.record_batch(
        {
            "id": pa.array(numbers),
            "tags": pa.array([[made.randbytes(5).hex() for _ in range(3)] for _ in numbers]),
            "point": pa.array(points),
            "pairs": pa.array(pairs, pa.map_(pa.string(), pa.int64())),
        }
    )


SHAPES = {
    "one_group": Shape(text="plain columns in one row group", rows=_plain),
    "many_groups": Shape(text="plain columns in row groups of 50,000 rows", rows=_plain, group_rows=50_000),
    "wide": Shape(text="three texts of 200 characters in one row group", rows=_texts(distinct=200, columns=3)),
    "long": Shape(text="texts of 10,000 characters in one row group", rows=_texts(distinct=10_000)),
    "packed": Shape(text="the same, compressed to a tenth", rows=_texts(distinct=500, times=20)),
    "repeated": Shape(
        text="100 texts of 10,000 characters, repeated in a file of 2 MB", rows=_repeated, most_rows=200_000
    ),
    "nested": Shape(text="an array, a struct and a map in one row group", rows=_nested),
}
TASKS = {
    "source": "source",
    "vector": "source, every third row deleted by a deletion vector",
    "changes": "change feed",
    "sink": "sink",
}
FIGURES = tuple(
    Figure(key=f"{task}_{shape}_mb", text=f"{what}: {SHAPES[shape].text}", unit="MB", goal=GOAL)
    for task, what in TASKS.items()
    for shape in SHAPES
)


def main() -> None:
    """Makes the files, measures each task alone and writes the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.task_memory", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--task", choices=TASKS, action="append", help="only this; may be repeated")
    parser.add_argument("--shape", choices=SHAPES, action="append", help="only this; may be repeated")
    parser.add_argument("--results", type=Path, help="where the report goes; without it, it is only printed")
    parser.add_argument("--scratch", type=Path, help="where files are made and removed: some 5 GB (the system's)")
    parser.add_argument("--one", nargs=3, metavar=("TASK", "SHAPE", "FOLDER"), help="measure once and print it")
    given = parser.parse_args()
    if given.one:
        task, shape, folder = given.one
        print(json.dumps(_measured(task, shape, Path(folder))))
        return
    shapes = given.shape or list(SHAPES)
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=given.scratch) as scratch:
        for shape in shapes:
            environment.in_a_process("benchmarks.task_memory", "--one", "make", shape, scratch)
        samples = [
            measured("benchmarks.task_memory", task, shape, scratch)
            for _ in range(given.rounds)
            for task in given.task or TASKS
            for shape in shapes
        ]
    title = "The memory of one task of 128 MB"
    page = as_markdown(samples, rounds=given.rounds, told=facts(PACKAGES), title=title, figures=FIGURES)
    if given.results:
        keep("task-memory", page, given.results, PACKAGES, samples=samples)
    print(page)


def _measured(task: str, shape: str, folder: Path) -> Sample:
    if task == "make":
        return {"rows": _make(folder, shape)}
    run = _write if task == "sink" else _read
    run(task, shape, folder, is_small=True)
    before_mb = environment.peak_mb()
    rows = run(task, shape, folder, is_small=False)
    arrow_mb = pa.default_memory_pool().max_memory() / 2**20
    return {f"{task}_{shape}_mb": environment.peak_mb() - before_mb, "arrow_mb": arrow_mb, "rows": rows}


def _file(folder: Path, shape: str, *, is_small: bool) -> Path:
    return folder / f"{shape}{'-small' if is_small else ''}.parquet"


def _batches(folder: Path, shape: str, *, is_small: bool) -> Path:
    """The same rows in batches, as Spark sends them to a task."""
    return folder / f"{shape}{'-small' if is_small else ''}.arrows"


def _make(folder: Path, shape: str) -> int:
    """Writes a file of `FILE_BYTES`, a small one, and the number of rows of both."""
    made = SHAPES[shape]
    first = made.rows(0, 1_000)
    small = _file(folder, shape, is_small=True)
    pq.write_table(pa.Table.from_batches([first]), small)
    count = min(int(1_000 * FILE_BYTES / small.stat().st_size), made.most_rows)
    first = first.slice(0, 10)
    pq.write_table(pa.Table.from_batches([first]), small)
    begins = range(0, count, SPARK_ROWS)
    batches = [made.rows(begin, min(SPARK_ROWS, count - begin)) for begin in begins]
    pq.write_table(pa.Table.from_batches(batches), _file(folder, shape, is_small=False), row_group_size=made.group_rows)
    for is_small in (True, False):
        path = _batches(folder, shape, is_small=is_small)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, first.schema) as stream:
            for batch in [first] if is_small else batches:
                stream.write_batch(batch)
    return count


def _read(task: str, shape: str, folder: Path, *, is_small: bool) -> int:
    from pyroaring import BitMap64

    from tablefeed.delta import names
    from tablefeed.feed.scan.delta_task import DeltaColumns, DeltaTask, ParquetFile
    from tablefeed.feed.scan.task import RowChange, read_task

    path = _file(folder, shape, is_small=is_small)
    footer = pq.read_metadata(path)
    schema = pq.read_schema(path)
    if task == "changes":
        schema = schema.append(pa.field(names.CHANGE_TYPE, pa.string()))
        schema = schema.append(pa.field(names.COMMIT_VERSION, pa.int64()))
        schema = schema.append(pa.field(names.COMMIT_TIMESTAMP, pa.timestamp("us", "UTC")))
    file = ParquetFile(
        path=path.name,
        size_bytes=path.stat().st_size,
        partition_values={},
        without=BitMap64(range(0, footer.num_rows, 3)) if task == "vector" else None,
        change=RowChange(type="insert", version=1, committed_at_us=0) if task == "changes" else None,
    )
    whole = DeltaTask(url=str(folder), storage_options={}, columns=DeltaColumns(partitions={}), files=(file,))
    return sum(batch.num_rows for batch in read_task(whole, schema))


def _write(_: str, shape: str, folder: Path, *, is_small: bool) -> int:
    from tablefeed.feed.snapshot.open_log import open_log
    from tablefeed.feed.write.sink import plan_write, write_task
    from tablefeed.log.conflicts import WriteKind

    table = folder / f"copy-{shape}"
    with pa.OSFile(str(_batches(folder, shape, is_small=is_small))) as file, pa.ipc.open_stream(file) as stream:
        plan = plan_write(open_log(str(table)), None, stream.schema, partition_by=(), kind=WriteKind.APPEND)
        adds = write_task(plan, stream, task=0, now_ms=0)
    for add in adds:
        (table / add.path).unlink()
    return len(adds)


if __name__ == "__main__":
    main()
