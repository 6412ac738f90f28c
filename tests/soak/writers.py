"""A program: one writer of a soak, or its upkeep, until the file FOLDER/stop appears.

    python -m soak.writers ours|delta-rs|jar|upkeep FOLDER SEED [JARS]
    python -m soak.writers read FOLDER SEED JARS        the JAR reads all tables, to FOLDER/TABLE.arrow

On a local disk the JAR replaces commits that others make after it looked (docs/explanation/exactly-once.md). So it
holds a table alone while it commits, and all others share the table.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

import tablefeed
from soak.steps import (
    COPY,
    DELTA_RS,
    HOW,
    JAR,
    LEDGER,
    MIRROR,
    OURS,
    SENDERS,
    TABLES,
    TARGET,
    Change,
    app_id,
    change,
    events,
)
from tablefeed.errors import ConflictError
from tablefeed.feed.upkeep.background import wait_until_done

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DAYS_S = 3 * 86_400


class Writer(Protocol):
    """An implementation that takes steps. Each method makes one commit with a txn."""

    def append(self, table: str, rows: pa.Table, app: str, step: int) -> None: ...
    def change(self, table: str, what: Change, app: str) -> None: ...


class ByTablefeed:
    """tablefeed. What is sent to the target is applied there, beside the query that applies changes to it."""

    def append(self, table: str, rows: pa.Table, app: str, step: int) -> None:
        if Path(table).name == TARGET:
            tablefeed.apply_changes(table, rows, **HOW[TARGET], app_id=app, txn_version=step)
        else:
            tablefeed.append(table, rows, app_id=app, txn_version=step)

    def change(self, table: str, what: Change, app: str) -> None:
        if what.kind == "delete":
            tablefeed.delete(table, what.where, app_id=app, txn_version=what.step)
        elif what.kind == "update":
            new = {"value": f"'{what.value}'", "step": str(what.step)}
            tablefeed.update(table, new, what.where, app_id=app, txn_version=what.step)
        else:
            new = {name: f"source.{name}" for name in ("value", "step")}
            tablefeed.merge(
                table,
                what.rows,
                on=["key"],
                matched=[tablefeed.Update(set=new)],
                not_matched=[tablefeed.Insert(values={"key": "source.key", **new})],
                app_id=app,
                txn_version=what.step,
            )


class ByDeltaRs:
    """delta-rs, which gives up when it loses a race, and is asked again."""

    def append(self, table: str, rows: pa.Table, app: str, step: int) -> None:
        _until_it_wins(
            lambda: write_deltalake(table, rows, mode="append", commit_properties=_txn(app, step)), table, app, step
        )

    def change(self, table: str, what: Change, app: str) -> None:
        txn = _txn(app, what.step)

        def act() -> None:
            now = DeltaTable(table)
            if what.kind == "delete":
                now.delete(what.where, commit_properties=txn)
            elif what.kind == "update":
                new = {"value": f"'{what.value}'", "step": str(what.step)}
                now.update(new, predicate=what.where, commit_properties=txn)
            else:
                merge = now.merge(what.rows, "t.key = s.key", source_alias="s", target_alias="t", commit_properties=txn)
                merge.when_matched_update_all().when_not_matched_insert_all().execute()

        _until_it_wins(act, table, app, what.step)


def _txn(app: str, step: int) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(app, step)])


def _until_it_wins(act: Callable[[], object], table: str, app: str, step: int) -> None:
    while done(table, app) < step:
        try:
            act()
        except (CommitFailedError, FileNotFoundError):  # the latter: it was slow, and the log was cleaned up meanwhile
            time.sleep(random.random() / 10)
        else:
            return


class ByTheJar:
    """Delta-Spark on a JVM of its own."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self.session = _jar_session(folder, jars)

    def append(self, table: str, rows: pa.Table, app: str, step: int) -> None:
        writer = self.session.createDataFrame(rows).write.format("delta").mode("append")
        writer.option("txnAppId", app).option("txnVersion", step).save(table)

    def change(self, table: str, what: Change, app: str) -> None:
        self.session.conf.set("spark.databricks.delta.write.txnAppId", app)
        self.session.conf.set("spark.databricks.delta.write.txnVersion", str(what.step))
        if what.kind == "delete":
            statement = "DELETE FROM delta.`{t}` WHERE {where}"
        elif what.kind == "update":
            statement = "UPDATE delta.`{t}` SET value = '{value}', step = {step} WHERE {where}"
        else:
            self.session.createDataFrame(what.rows).createOrReplaceTempView("rows")
            statement = (
                "MERGE INTO delta.`{t}` t USING rows s ON t.key = s.key "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
        self.session.sql(statement.format(t=table, where=what.where, value=what.value, step=what.step))
        for name in ("txnAppId", "txnVersion"):
            self.session.conf.unset(f"spark.databricks.delta.write.{name}")

    def fold(self, table: str) -> None:
        self.session.sql(f"OPTIMIZE delta.`{table}`")


def _jar_session(folder: Path, jars: Path) -> SparkSession:
    from support.session import jar_conf, start_session

    return start_session("a writer of a soak", scratch=folder / "jar", conf=jar_conf(jars))


def done(table: str | Path, app: str) -> int:
    """The newest step of an application; -1: none."""
    found = tablefeed.open_table(table).txn_version(app)
    return -1 if found is None else found


@contextmanager
def shared(folder: Path, table: str, how: int = fcntl.LOCK_SH) -> Iterator[None]:
    """Shares a table with others, or with LOCK_EX has it alone. Who waits for that is not overtaken by who shares."""
    with (folder / f"{table}.gate").open("w") as gate, (folder / f"{table}.lock").open("w") as lock:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(lock, how)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


def write(name: str, writer: Writer, folder: Path, seed: int) -> None:
    """Takes steps at tables in random order."""
    own = fcntl.LOCK_EX if name == JAR else fcntl.LOCK_SH
    tables = [table for table, sender in SENDERS if sender == name] + [LEDGER]
    following: dict[str, int] = {}
    chance = random.Random()
    while not (folder / "stop").exists():
        name_of, path, app = (table := chance.choice(tables)), str(folder / table), app_id(name, table)
        with shared(folder, name_of, own):
            step = following[table] if table in following else done(path, app) + 1
            if table == LEDGER:
                writer.change(path, change(seed, name, step), app)
            else:
                writer.append(path, events(seed, table, name, step), app, step)
            following[table] = step + 1
            wait_until_done()
        if isinstance(writer, ByTheJar):
            _fold_where_no_query_is(writer, folder, chance.choice((COPY, TARGET, MIRROR)))
        time.sleep(chance.random())


def _fold_where_no_query_is(writer: ByTheJar, folder: Path, table: str) -> None:
    with (folder / f"{table}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        writer.fold(str(folder / table))


def upkeep(folder: Path, retention_s: float) -> None:
    """Folds, vacuums, makes checkpoints, and cleans the log, whose files it makes old once they are unneeded."""
    chance = random.Random()
    while not (folder / "stop").exists():
        table = chance.choice([*TABLES])
        path = folder / table
        with shared(folder, table):
            act = chance.choice((_fold, _fold_by_delta_rs, tablefeed.vacuum, _clean))
            try:
                if act is _clean:
                    age_log(path, older_than_s=retention_s)
                act(path)
            except (ConflictError, CommitFailedError) as lost:
                print(f"{table}: {lost}", flush=True)
            wait_until_done()
        time.sleep(2 * chance.random())


def _fold(table: Path) -> None:
    tablefeed.optimize(table)


def _fold_by_delta_rs(table: Path) -> None:
    if "domainMetadata" not in (DeltaTable(table).protocol().writer_features or ()):
        with contextlib.suppress(FileNotFoundError):  # it was slow, and the log was cleaned up meanwhile
            DeltaTable(table).optimize.compact()


def _clean(table: Path) -> None:
    tablefeed.checkpoint(table, clean_up=True)


def age_log(table: Path, *, older_than_s: float, young_versions: int = 20) -> None:
    """Sets the times of old log files back by three days, for the tables keep their logs for one day.

    The newest versions stay young, and so do those that a query has still to read: the cleanups of the JAR and delta-rs
    do not know consumers.
    """
    newest = tablefeed.open_table(table).version
    needed = min((each.version for each in tablefeed.consumers(table).list()), default=newest)
    needed = min(needed, newest - young_versions)
    for path in (table / "_delta_log").glob("[0-9.]*"):
        version = path.name.lstrip(".")[:20]
        if version.isdigit() and int(version) >= needed:
            continue
        with contextlib.suppress(FileNotFoundError):  # another program's file on its way to its name
            modified_s = path.stat().st_mtime
            if time.time() - _DAYS_S / 2 < modified_s < time.time() - older_than_s:
                os.utime(path, (modified_s - _DAYS_S, modified_s - _DAYS_S))


def read(folder: Path, jars: Path) -> None:
    """Reads each table by the JAR."""
    session = _jar_session(folder, jars)
    for table in TABLES:
        rows = session.read.format("delta").load(str(folder / table)).toArrow()
        with pa.ipc.new_file(folder / f"{table}.arrow", rows.schema) as out:
            out.write_table(rows)


def main(name: str, folder: Path, seed: int, jars: Path) -> None:
    if name == "read":
        read(folder, jars)
    elif name == "upkeep":
        upkeep(folder, float((folder / "retention").read_text()))
    else:
        writers: dict[str, Callable[[], Writer]] = {
            OURS: ByTablefeed,
            DELTA_RS: ByDeltaRs,
            JAR: lambda: ByTheJar(folder, jars),
        }
        write(name, writers[name](), folder, seed)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), Path((sys.argv[4:] or ["."])[0]))
