"""Applies change events of real flights to a table, exactly once, although the query is killed half-way.

From the flights that left New York in 2013 come the events that an airport would have sent: a flight is scheduled,
departs, lands, or is cancelled, which deletes its row; a diverted flight is corrected a day later. Some events come
hours too late, some twice. delta-rs commits them to a Delta table in the order in which they come. A query applies them
to another table with `tablefeed.spark.apply_changes`, one commit a micro-batch. Half-way its driver and JVM are killed
with SIGKILL, and it is started again on its checkpoint. At the end delta-rs reads the table: it is equal, row for row,
to the newest event of each flight.

Run it with `make demo`, or `python examples/changing_flights.py` where Java 17, tablefeed[spark,where], deltalake and
rich are installed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from rich.console import Console

COMMITS, FILES_A_BATCH = 24, 2
"""In how many commits the events come, each of one file, and how many of these a micro-batch has."""

PATIENCE_S = 150
"""If no batch is applied for so long, something is wrong."""

KEYS = ["time_hour", "carrier", "flight", "origin"]

CACHE = Path(__file__).resolve().parent.parent / ".cache"


def apply_events(source: str, target: str, checkpoint: str) -> None:
    """Runs the query, as a user would write it, until all events are applied."""
    from pyspark.sql import SparkSession

    import tablefeed.spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    query = tablefeed.spark.apply_changes(
        spark.readStream.format("tablefeed").option("maxFilesPerTrigger", FILES_A_BATCH).load(source),
        target,
        keys=KEYS,
        sequence_by="at",
        apply_as_deletes="op = 'cancelled'",
        except_column_list=["op"],
        checkpoint_location=checkpoint,
        trigger={"availableNow": True},
    )
    query.awaitTermination()


# --- the events ------------------------------------------------------------------------------------------------------

_OUT, _IN = ("dep_time", "dep_delay"), ("arr_time", "arr_delay", "air_time")


def events_of(flights: pa.Table) -> pa.Table:
    """Gives the events of all flights in the order in which they come, each with all that is known by then."""
    planned = pc.add(flights["time_hour"], _minutes(flights["minute"]))
    has_left, has_landed = pc.is_valid(flights["dep_time"]), pc.is_valid(flights["arr_delay"])
    took_off = pc.add(planned, _minutes(flights["dep_delay"]))
    all_flights = pc.is_valid(planned)
    never_left, is_diverted = pc.invert(has_left), pc.and_not(has_left, has_landed)
    moments: list[tuple[str, pa.ChunkedArray, pa.ChunkedArray, tuple[str, ...]]] = [
        ("scheduled", pc.subtract(planned, _minutes(30 * 24 * 60)), all_flights, ()),
        ("delayed", pc.subtract(planned, _minutes(60)), never_left, ()),
        ("cancelled", planned, never_left, ()),
        ("departed", took_off, has_left, _OUT),
        ("landed", pc.add(took_off, _minutes(pc.add(flights["air_time"], 30))), has_landed, (*_OUT, *_IN)),
        ("diverted", pc.add(planned, _minutes(24 * 60)), is_diverted, (*_OUT, *_IN)),
    ]
    events = []
    for number, (op, at, those, known) in enumerate(moments):
        found = flights.select([*KEYS, "dest", "tailnum"])
        for name in (*_OUT, *_IN):
            values = flights[name] if name in known else pa.nulls(len(at), flights.schema.field(name).type)
            found = found.append_column(name, values)
        found = found.append_column("at", at).append_column("op", pa.repeat(pa.scalar(op), len(at)))
        events.append(found.append_column("comes", _comes(flights, at, number)).filter(those))
        # What is sent at least once is sometimes sent twice.
        again = events[-1].filter(pc.equal(pc.bit_wise_and(events[-1]["flight"], 31), number))
        events.append(again.set_column(again.num_columns - 1, "comes", pc.add(again["comes"], _minutes(12 * 60))))
    return pa.concat_tables(events).sort_by("comes").drop_columns(["comes"])


def _comes(flights: pa.Table, at: pa.ChunkedArray, number: int) -> pa.ChunkedArray:
    """Gives when events come: one of twelve is late, by up to seven hours."""
    chance = pc.add(pc.multiply(flights["flight"], 7), pc.add(flights["distance"], flights["day"]))
    chance = pc.bit_wise_and(pc.add(chance, 17 * number), 127)
    return pc.add(at, _minutes(pc.if_else(pc.less(chance, 11), pc.multiply(chance, 42), 0)))


def _minutes(count: pa.ChunkedArray | int) -> pa.ChunkedArray | pa.Scalar:
    is_one = isinstance(count, int)
    micros = pc.multiply(pc.cast(pa.scalar(count) if is_one else count, pa.int64()), 60_000_000)
    return micros.cast(pa.duration("us"))


def newest_of(events: pa.Table) -> pa.Table:
    """Gives the expected rows, by a plain loop: the newest event of each flight, unless that is its cancellation."""
    newest: dict[tuple[object, ...], tuple[int, int]] = {}
    keys = zip(*(events[name].to_pylist() for name in KEYS[1:]), strict=True)
    hours, ats = (events[name].cast(pa.int64()).to_pylist() for name in ("time_hour", "at"))
    for index, (hour, key, at) in enumerate(zip(hours, keys, ats, strict=True)):
        newest[hour, *key] = max(newest.get((hour, *key), (at, index)), (at, index))
    rows = events.take([index for _, index in newest.values()])
    return rows.filter(pc.not_equal(rows["op"], "cancelled")).drop_columns(["op"])


# --- the run ---------------------------------------------------------------------------------------------------------


def batches_in(target: str) -> int:
    """How many micro-batches are committed; the commit before them made the table."""
    import tablefeed

    return tablefeed.open_table(target).version


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Starts the query in a process of its own, on its checkpoint."""
    arguments = [str(folder / name) for name in ("events", "flights", "checkpoint")]
    with (folder / "query.log").open("ab") as log:
        command = [sys.executable, __file__, "apply", *arguments]
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def prove_equal(target: str, expected: pa.Table) -> int:
    """Reads the table with delta-rs; gives its rows. Raises SystemExit where they are not the expected ones."""
    from deltalake import DeltaTable, QueryBuilder

    order = [(name, "ascending") for name in KEYS]
    rows = pa.table(QueryBuilder().register("flights", DeltaTable(target)).execute("SELECT * FROM flights"))
    found = rows.select(expected.column_names).cast(expected.schema).sort_by(order)
    if not found.equals(expected.sort_by(order)):
        counts = f"{found.num_rows} rows, {expected.num_rows} are expected"
        raise SystemExit(f"NOT PROVEN: {target} has {counts}, and they differ")
    return found.num_rows


def apply_all(folder: Path, batches: int, console: Console) -> None:
    """Applies all events, killed half-way. Raises SystemExit where the query fails or takes too long."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    target, done, applied_s = str(folder / "flights"), 0, time.monotonic()
    query, killed = start(folder), False
    try:
        with Progress(*columns, console=console) as bars:
            bar = bars.add_task("batches applied by tablefeed", total=batches)
            while query.poll() is None and time.monotonic() < applied_s + PATIENCE_S:
                time.sleep(0.25)
                before, done = done, batches_in(target)
                if done != before:
                    applied_s = time.monotonic()
                bars.update(bar, completed=done)
                if not killed and done >= batches // 2:
                    os.killpg(query.pid, signal.SIGKILL)
                    bars.console.print(f"Half-way, the query is killed (exit code {query.wait()}) and started again.")
                    query, killed = start(folder), True
            bars.update(bar, completed=batches_in(target))
        if query.poll() != 0 or batches_in(target) != batches:
            said = (folder / "query.log").read_text()[-3000:]
            raise SystemExit(f"{batches_in(target)} of {batches} batches are applied. The query's log ends:\n{said}")
    finally:
        if query.poll() is None:
            os.killpg(query.pid, signal.SIGKILL)
            query.wait()


def main() -> None:
    """Runs the example in a temporary folder, and prints the result."""
    from deltalake import write_deltalake
    from rich.console import Console

    import tablefeed
    from flights import load_flights

    console = Console()
    began = time.monotonic()
    console.print("The same flights as change events ...", end=" ")
    events = events_of(load_flights(CACHE))
    console.print(f"{events.num_rows:,} events: a flight is scheduled, departs, lands, or is cancelled.")
    console.print("Some events come hours late, some come twice. A query applies them in micro-batches ...")
    folder = Path(tempfile.mkdtemp(prefix="tablefeed-demo-"))
    target, of_commit = str(folder / "flights"), -(-events.num_rows // COMMITS)
    try:
        for number in range(COMMITS):
            write_deltalake(folder / "events", events.slice(number * of_commit, of_commit), mode="append")
        properties = {"delta.feature.domainMetadata": "supported", "delta.enableDeletionVectors": "true"}
        tablefeed.create(target, events.drop_columns(["op"]).schema, properties=properties)
        batches = -(-COMMITS // FILES_A_BATCH)
        apply_all(folder, batches, console)
        rows = prove_equal(target, newest_of(events))
        console.print(
            f"Proven: delta-rs reads {rows:,} flights. Each is equal to its newest event, and none is there twice, "
            f"after {batches} batches and a SIGKILL half-way ({time.monotonic() - began:.0f} s)."
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["apply"]:
        apply_events(*sys.argv[2:5])
    else:
        main()
