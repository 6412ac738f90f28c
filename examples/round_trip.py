"""Delta to IndexTables and back to Delta, killed half-way: three tables end with the same rows, none twice.

delta-rs commits orders to a Delta table. One process runs two queries: the first tails that table into an IndexTables
table, the second tails the IndexTables table into another Delta table. Half-way the process and its JVM are killed with
SIGKILL, and it is started again on its checkpoints. At the end delta-rs reads both Delta tables, and tablefeed the
IndexTables table between them: they are equal, row for row.

    python examples/round_trip.py [COMMITS]

Needs Java 17, pyspark, deltalake and tablefeed with its extra `indextables`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

COMMITS, ROWS_A_COMMIT = 24, 500

RESTARTS = 3
"""How often a query that failed is started again."""

PATIENCE_S = 240
"""Longer than it takes on two slow cores; after it, something is wrong."""


def run_queries(folder: str) -> None:
    """Both queries, as a user would write them, started again where one fails. Ends when the process does."""
    from pyspark.errors import StreamingQueryException
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()

    def copy(source: str, target: str, table_format: str) -> StreamingQuery:
        rows = spark.readStream.format("tablefeed").option("maxFilesPerTrigger", "2").load(f"{folder}/{source}")
        written = rows.writeStream.format("tablefeed").option("tableFormat", table_format)
        return written.option("checkpointLocation", f"{folder}/checkpoint-{target}").start(f"{folder}/{target}")

    starts = [lambda: copy("orders", "index", "indextables"), lambda: copy("index", "copy", "delta")]
    queries = [starts[0]()]
    while not (Path(folder) / "index" / "_transaction_log" / f"{1:020d}.json").exists():
        time.sleep(0.2)  # a table is there after its first commit
    queries.append(starts[1]())
    for _ in range(RESTARTS):
        try:
            spark.streams.awaitAnyTermination()
        except StreamingQueryException as error:
            # Rarely "Task not serializable", where both queries start at once (migrating.md of docs).
            print(f"started again after: {error}", file=sys.stderr)
        spark.streams.resetTerminated()
        queries = [query if query.isActive else start() for query, start in zip(queries, starts, strict=True)]
    spark.streams.awaitAnyTermination()


def orders(number: int) -> pa.Table:
    """The orders of one commit: a type of each kind that both formats know, nulls and texts beyond ASCII among them."""
    ids = range(number * ROWS_A_COMMIT, (number + 1) * ROWS_A_COMMIT)
    began = datetime(2024, 1, 1, tzinfo=UTC)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "customer": pa.array([None if i % 7 == 0 else f"Müller & Söhne {i % 90}" for i in ids]),
            "amount": pa.array([i / 8 - 100 for i in ids]),
            "paid": pa.array([i % 3 == 0 for i in ids]),
            "day": pa.array([(began + timedelta(days=i % 400)).date() for i in ids]),
            "at": pa.array([began + timedelta(seconds=i, microseconds=i) for i in ids], pa.timestamp("us", "UTC")),
            "place": pa.array([{"city": f"city {i % 5}", "number": i % 50} for i in ids]),
        }
    )


def rows_in(folder: Path, name: str) -> int:
    """Counts the rows of a table, from its log alone."""
    import pyarrow.compute as pc

    import tablefeed
    from tablefeed.errors import TableNotFoundError

    try:
        return sum(pc.sum(files["num_records"]).as_py() or 0 for files in tablefeed.open_table(folder / name).files())
    except TableNotFoundError:
        return 0


def prove_equal(folder: Path) -> int:
    """Gives how many rows the three tables share. Raises SystemExit where they differ."""
    from deltalake import DeltaTable

    import tablefeed

    source, copy = (DeltaTable(str(folder / name)).to_pyarrow_table() for name in ("orders", "copy"))
    index = tablefeed.open_table(folder / "index").to_arrow()
    expected = source.sort_by("id").to_pylist()
    for name, rows in (("index", index), ("copy", copy)):
        if rows.sort_by("id").select(source.column_names).to_pylist() != expected:
            raise SystemExit(f"NOT PROVEN: orders has {source.num_rows} rows, {name} {rows.num_rows}, and they differ")
    return source.num_rows


class Queries:
    """The process of both queries."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it on its checkpoints."""
        command = [sys.executable, __file__, "queries", str(self._folder)]
        with (self._folder / "queries.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        """Kills it and its JVM as a power cut would."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def check(self) -> None:
        """Raises SystemExit where it ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise SystemExit(f"the queries ended by themselves:\n{self.said}")

    @property
    def said(self) -> str:
        """Its last words."""
        return (self._folder / "queries.log").read_text()[-3000:]


def main(commits: int) -> None:
    """Runs it in a temporary folder, and says at the end what was proven."""
    from deltalake import write_deltalake

    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="tablefeed-round-trip-"))
    queries = Queries(folder)
    try:
        for number in range(commits // 2):
            write_deltalake(folder / "orders", orders(number), mode="append")
        queries.start()
        wanted, killed = commits * ROWS_A_COMMIT, False
        while (copied := rows_in(folder, "copy")) < wanted:
            time.sleep(0.25)
            queries.check()
            if not killed and copied >= wanted // 4:
                queries.kill()
                killed = True
                print(f"Killed: {rows_in(folder, 'index'):,} rows in the index, {copied:,} in the copy. Started again.")
                for number in range(commits // 2, commits):
                    write_deltalake(folder / "orders", orders(number), mode="append")
                queries.start()
            if time.monotonic() - began > PATIENCE_S:
                raise SystemExit(f"no end in {PATIENCE_S} s:\n{queries.said}")
        queries.kill()
        rows = prove_equal(folder)
        print(
            f"Proven: {rows:,} rows in all three tables, Delta, IndexTables and Delta, equal and none twice, after a "
            f"SIGKILL half-way ({time.monotonic() - began:.0f} s)."
        )
    finally:
        queries.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["queries"]:
        run_queries(sys.argv[2])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else COMMITS)
