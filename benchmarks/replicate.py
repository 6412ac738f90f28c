"""`python -m benchmarks.replicate`: what it takes to copy a table, `shutil.copyfile` of the same files beside us.

No Spark. Each measurement runs in a process of its own, the sides alternating, after the disk has written what came
before. Ours ends when all is durable and committed; copyfile's ends in the system's cache, and a third side makes its
files durable too, one by one, as a careful script does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

import tablefeed
from benchmarks.questions import AtLeast
from benchmarks.source import Figure, Sample, as_markdown
from benchmarks.turns import facts, keep, measured
from tablefeed.feed.upkeep.background import wait_until_done

RESULTS = Path(__file__).parent / "results"
ROUNDS = 5
PACKAGES = ("tablefeed", "pyarrow")
ROW_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The files and their rows of the table with many small files, of that with few large ones, and the commits."""

    small: tuple[int, int]
    large: tuple[int, int]
    commits: int


SIZES = {
    "full": Size(small=(5_000, 1_000), large=(16, 2_000_000), commits=300),
    "quick": Size(small=(300, 1_000), large=(4, 100_000), commits=20),
}

FIGURES = (
    *(
        figure
        for key, text in (("small", "5,000 files of 32 KB"), ("large", "16 files of 64 MB"))
        for figure in (
            Figure(key=f"{key}_ours_s", text=f"{text}: a first `replicate`", unit="s"),
            Figure(key=f"{key}_copyfile_s", text=f"{text}: `shutil.copyfile`", unit="s"),
            Figure(key=f"{key}_synced_s", text=f"{text}: `shutil.copyfile` and `os.fsync`", unit="s"),
            Figure(key=f"{key}_speed", text="speed, ours over copyfile's", unit="times", goal=AtLeast(bound=0.8)),
            Figure(key=f"{key}_durable", text="speed, ours over that of copyfile and fsync", unit="times"),
        )
    ),
    Figure(key="commit_ms", text="a commit of one file, in a run over 300", unit="ms"),
    Figure(key="idle_ms", text="a call with nothing new", unit="ms"),
)


def main() -> None:
    """Makes the tables, measures alternately and writes the report; a quick run is small and not kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replicate", description=__doc__)
    parser.add_argument("--rounds", type=int, help=f"runs of each measurement ({ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="small tables, each once; nothing is written")
    parser.add_argument("--measurement", choices=MEASURES, action="append", help="only this; may be repeated")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the report goes")
    parser.add_argument("--scratch", type=Path, help="where tables are made and removed: 3 GB (the system's)")
    parser.add_argument("--one", nargs=3, metavar=("NAME", "SIZE", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        name, size, folder = given.one
        print(json.dumps(MEASURES[name](SIZES[size], Path(folder))))
        return
    rounds, size = given.rounds or (1 if given.quick else ROUNDS), "quick" if given.quick else "full"
    with TemporaryDirectory(prefix="tablefeed-bench-", dir=given.scratch) as scratch:
        _make(Path(scratch) / "small", *SIZES[size].small)
        _make(Path(scratch) / "large", *SIZES[size].large)
        samples = [_round(given.measurement or list(MEASURES), size, scratch) for _ in range(rounds)]
    page = as_markdown(samples, rounds=rounds, told=facts(PACKAGES), title="Copies of tables", figures=FIGURES)
    if not given.quick:
        keep("replicate", page, given.results, PACKAGES, samples=samples)
    print(page)


def _round(named: list[str], size: str, scratch: str) -> Sample:
    sample: dict[str, float] = {}
    for name in named:
        sample |= measured("benchmarks.replicate", name, size, scratch)
    for table in ("small", "large"):
        for key, other in (("speed", "copyfile"), ("durable", "synced")):
            if {f"{table}_ours_s", f"{table}_{other}_s"} <= {*sample}:
                sample[f"{table}_{key}"] = sample[f"{table}_{other}_s"] / sample[f"{table}_ours_s"]
    return sample


def _make(table: Path, files: int, rows: int) -> None:
    """A table of `files` files, made by one commit, whose bytes do not compress."""
    random = np.random.default_rng(1)
    columns = {f"c{number}": random.random(rows) for number in range(ROW_BYTES // 8)}
    whole = pa.table(columns)
    many = (pa.record_batch(whole.to_batches()[0].columns, schema=whole.schema) for _ in range(files))
    tablefeed.append(
        table, pa.RecordBatchReader.from_batches(whole.schema, many), max_records_per_file=rows, compression="none"
    )
    wait_until_done()


# --- the sides ------------------------------------------------------------------------------------------------------


def by_tablefeed(table: Path, target: Path) -> None:
    """A first copy: durable files and a commit."""
    tablefeed.replicate(table, target)


def by_copyfile(table: Path, target: Path) -> None:
    """The same files, which the system may still lose."""
    target.mkdir()
    for file in table.glob("*.parquet"):
        shutil.copyfile(file, target / file.name)


def by_careful_copyfile(table: Path, target: Path) -> None:
    """The same files, each made durable."""
    by_copyfile(table, target)
    for path in (*target.iterdir(), target):
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


def copied(key: str, copy: Callable[[Path, Path], None], made: str, size: Size, folder: Path) -> Sample:
    """One copy of a table."""
    table, target = folder / made, folder / "target"
    tablefeed.append(folder / "warm", pa.table({"c": [1]}))
    copy(folder / "warm", folder / "warmed")
    os.sync()
    begun = time.perf_counter()
    copy(table, target)
    seconds = time.perf_counter() - begun
    wait_until_done()
    found = sum(file.stat().st_size for file in target.glob("*.parquet"))
    if (found, len(list(target.glob("*.parquet")))) != (_bytes(table), getattr(size, made)[0]):
        raise SystemExit(f"{key}: {found} bytes are not those of the table")
    for each in ("target", "warm", "warmed"):
        shutil.rmtree(folder / each)
    return {f"{made}_{key}_s": seconds}


def commits(size: Size, folder: Path) -> Sample:
    """A run over many commits of one file each, and calls after it."""
    table, target = folder / "commits", folder / "target"
    tablefeed.append(table, pa.table({"id": [0]}))
    tablefeed.replicate(table, target)
    for number in range(size.commits):
        tablefeed.append(table, pa.table({"id": [number]}))
    wait_until_done()
    begun = time.perf_counter()
    tablefeed.replicate(table, target)
    each_s = (time.perf_counter() - begun) / size.commits
    wait_until_done()
    begun = time.perf_counter()
    for _ in range(size.commits):
        tablefeed.replicate(table, target)
    idle_s = (time.perf_counter() - begun) / size.commits
    shutil.rmtree(table)
    shutil.rmtree(target)
    return {"commit_ms": each_s * 1000, "idle_ms": idle_s * 1000}


def _bytes(table: Path) -> int:
    return sum(file.stat().st_size for file in table.glob("*.parquet"))


SIDES = {"ours": by_tablefeed, "copyfile": by_copyfile, "synced": by_careful_copyfile}
MEASURES: dict[str, Callable[[Size, Path], Sample]] = {
    **{f"{made}-{key}": partial(copied, key, copy, made) for made in ("small", "large") for key, copy in SIDES.items()},
    "commits": commits,
}


if __name__ == "__main__":
    main()
