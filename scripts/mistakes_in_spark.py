"""Makes mistakes in Spark and prints how deep tablefeed's message lies in Spark's text.

`PYTHONPATH=src scripts/java.sh .venv/bin/python scripts/mistakes_in_spark.py > docs/reference/mistakes-in-spark.md`
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import tablefeed
from tablefeed.spark import explain
from tablefeed.wording.words import cut

ROWS = pa.table({"id": [1, 2], "day": ["a", "b"]})

INTRODUCTION = """# Mistakes in Spark

<!-- Made by `scripts/mistakes_in_spark.py`, which makes each mistake and has the command: change it, not this page. -->

Spark {version} puts its own text, and often a Python traceback, before the error of a Python data source. A source
cannot change that: Spark's planner and its tasks send an error as text, and Spark writes the first line. So tablefeed's
message lies some lines deep. Its own frames and causes are left out, to keep it as far up as a source can
(`TABLEFEED_LOG_LEVEL=DEBUG` logs them: [monitoring.md](../how-to/monitoring.md#in-the-log)).

- `tablefeed.spark.explain(error)` gives the message alone, and `tablefeed explain FILE` finds it in a log.
- `spark.sql.execution.pyspark.udf.hideTraceback.enabled=true` leaves out the traceback. The message is then further up.
- `MetricsListener` writes the message alone to the log when a query fails.

*Lines above* counts the lines of the error's text before the message, first as Spark is, then without the traceback.

"""


class Mistakes:
    """The mistakes, each by its name: a call that fails."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.number = spark, folder, 0

    def table(self, rows: pa.Table = ROWS, **options: Any) -> str:
        """Makes a table with one commit and gives its path."""
        self.number += 1
        url = str(self.folder / f"t{self.number}")
        tablefeed.append(url, rows, **options)
        return url

    def load(self, url: str, **options: object) -> DataFrame:
        """Reads a table."""
        return self.spark.read.format("tablefeed").options(**options).load(url)  # type: ignore[arg-type]

    def save(self, row: str, url: str, **options: object) -> None:
        """Appends the row of these expressions to a table."""
        self.spark.sql(f"SELECT {row}").write.format("tablefeed").mode("append").options(**options).save(url)  # type: ignore[arg-type]

    def stream(
        self, url: str, *, to: str | None = None, sink: dict[str, object] | None = None, **options: object
    ) -> None:
        """Runs a stream from `url` to its end."""
        self.number += 1
        rows = self.spark.readStream.format("tablefeed").options(**options).load(url)  # type: ignore[arg-type]
        writer = rows.writeStream.format("tablefeed" if to else "noop").options(**(sink or {}))  # type: ignore[arg-type]
        writer = writer.option("checkpointLocation", str(self.folder / f"c{self.number}")).trigger(availableNow=True)
        (writer.start(to) if to else writer.start()).awaitTermination()

    def without_files(self) -> str:
        """Makes a table whose data files are gone."""
        url = self.table()
        for file in Path(url).glob("*.parquet"):
            file.unlink()
        return url

    def with_damaged_files(self) -> str:
        """Makes a table with damaged data files."""
        url = self.table()
        for file in Path(url).glob("*.parquet"):
            file.write_bytes(b"PAR1 damaged PAR1")
        return url

    def changed(self, change: Callable[[str], object], **options: Any) -> str:
        """Makes a table and changes it."""
        url = self.table(**options)
        change(url)
        return url

    def damaged_log(self) -> str:
        """Makes a table whose log is cut off."""
        url = self.table()
        (log,) = Path(url, "_delta_log").glob("*.json")
        log.write_text(log.read_text()[:-20])
        return url

    def newer_protocol(self) -> str:
        """Makes a table with a protocol that is not known yet."""
        url = self.table()
        (log,) = Path(url, "_delta_log").glob("*.json")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        for line in lines:
            if "protocol" in line:
                line["protocol"] = {"minReaderVersion": 9, "minWriterVersion": 9}
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return url

    def all(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Gives each mistake with its name."""
        good, none = self.table(), str(self.folder / "none")
        checked = self.table()
        tablefeed.alter(checked, add_constraints={"small": "id < 3"})
        feed = {"readChangeFeed": "true", "startingVersion": 0}
        batch, stream = "batch read: ", "stream: "
        yield batch + "no table at the path", lambda: self.load(none)
        yield batch + "no path", lambda: self.spark.read.format("tablefeed").load()
        yield batch + "two paths", lambda: self.spark.read.format("tablefeed").load([good, good])  # type: ignore[arg-type]
        yield batch + "a misspelt option", lambda: self.load(good, versionAsOff=1)
        yield batch + "a version that is not there", lambda: self.load(good, versionAsOf=9)
        yield batch + "a time that is none", lambda: self.load(good, timestampAsOf="soon")
        yield batch + "a version and a time", lambda: self.load(good, versionAsOf=0, timestampAsOf="2026-01-01")
        yield batch + "a column that is not there", lambda: self.load(good, columns="nope")
        yield batch + "a predicate that is none", lambda: self.load(good, where="id >")
        yield batch + "an option of Hadoop", lambda: self.load(good, **{"fs.s3a.access.key": "x"})
        yield batch + "hdfs://", lambda: self.load("hdfs://namenode/t")
        yield batch + "dbfs:/", lambda: self.load("dbfs:/mnt/t")
        yield batch + "~/", lambda: self.load("~/t")
        yield batch + "a damaged log", lambda: self.load(self.damaged_log())
        yield batch + "a protocol that is too new", lambda: self.load(self.newer_protocol())
        yield (
            batch + "a schema of the user",
            lambda: self.spark.read.format("tablefeed").schema("id long").load(good).collect(),
        )
        yield batch + "changes without a start", lambda: self.load(good, readChangeFeed="true").collect()
        yield batch + "changes that were not recorded", lambda: self.load(good, **feed).collect()
        yield batch + "a data file that is gone", lambda: self.load(self.without_files()).collect()
        yield batch + "a damaged data file", lambda: self.load(self.with_damaged_files()).collect()
        yield stream + "no table at the path", lambda: self.stream(none)
        yield stream + "a misspelt option", lambda: self.stream(good, maxFilesPerTriger=1)
        yield stream + "a limit of 0", lambda: self.stream(good, maxFilesPerTrigger=0)
        yield stream + "startingVersion=Latest", lambda: self.stream(good, startingVersion="Latest")
        yield stream + "a start after the newest version", lambda: self.stream(good, startingVersion=9)
        yield (
            stream + "a version and a time to start",
            lambda: self.stream(good, startingVersion=0, startingTimestamp="2026-01-01"),
        )
        yield stream + "versionAsOf", lambda: self.stream(good, versionAsOf=0)
        yield stream + "changes that were not recorded", lambda: self.stream(good, **feed)
        yield (
            stream + "a commit that deleted rows",
            lambda: self.stream(self.changed(lambda url: tablefeed.delete(url, "true")), startingVersion=0),
        )
        yield (
            stream + "a commit that rewrote rows",
            lambda: self.stream(
                self.changed(lambda url: tablefeed.update(url, {"day": "'z'"}, "id = 1")), startingVersion=0
            ),
        )
        yield stream + "a data file that is gone", lambda: self.stream(self.without_files())
        yield stream + "a damaged data file", lambda: self.stream(self.with_damaged_files())
        yield (
            stream + "toTable",
            lambda: (
                self.spark.readStream.format("tablefeed")
                .load(good)
                .writeStream.format("tablefeed")
                .option("checkpointLocation", str(self.folder / "ct"))
                .trigger(availableNow=True)
                .toTable("k7")
                .awaitTermination()
            ),
        )
        yield (
            stream + "a sink without a path",
            lambda: (
                self.spark.readStream.format("tablefeed")
                .load(good)
                .writeStream.format("tablefeed")
                .option("checkpointLocation", str(self.folder / "cs"))
                .trigger(availableNow=True)
                .start()
                .awaitTermination()
            ),
        )
        yield stream + "a misspelt option of the sink", lambda: self.stream(good, to=none, sink={"partitionedBy": "id"})
        yield (
            stream + "rows that break a constraint",
            lambda: self.stream(self.table(pa.table({"id": [7], "day": ["x"]})), to=checked),
        )
        yield "write: a misspelt option", lambda: self.save("3L AS id", good, partitionedBy="id")
        yield "write: a column that the table lacks", lambda: self.save("3L AS id, 1 AS more", good)
        yield "write: a text that is no number", lambda: self.save("'x' AS id", good)
        yield "write: a row that breaks a constraint", lambda: self.save("3L AS id", checked)
        yield "write: txnAppId without txnVersion", lambda: self.save("3L AS id", good, txnAppId="etl")
        yield "write: a path of no table that can be made", lambda: self.save("3L AS id", "hdfs://namenode/t")


def measured(mistake: Callable[[], object]) -> tuple[list[str], str, int | None]:
    """Gives the first lines of the error's text, the plain message, and how many lines are above it."""
    try:
        mistake()
    except Exception as error:  # noqa: BLE001 - any error is what is measured
        lines, plain = str(error).splitlines(), explain(error)
        depth = next((n for n, line in enumerate(lines) if plain[:60] in line), None)
        return [f"{type(error).__name__}: {lines[0]}", *lines[1:3]], plain, depth
    return ["no error"], "", None


def anywhere(text: str, folder: Path) -> str:
    """Gives `text` without what differs from run to run and from machine to machine."""
    text = text.replace(str(folder), "/lake").replace(str(Path.home()), "/home/me")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "ID", text)
    return re.sub(r'"/\S*/((?:pyspark_)?tablefeed/|pyspark/)(\S+"), line \d+', r'"\1\2, line N', text)


def code(line: str) -> str:
    """Gives a line of a text of Spark for a cell of a table."""
    return f"`{cut(line.strip(), 110)}`".replace("|", "\\|")


def words(text: str) -> str:
    """Gives a message for a cell of a table."""
    return re.sub(r"([*_`\[\]|])", r"\\\1", cut(text, 400)).replace("<", "&lt;")


def main() -> None:
    """Makes each mistake twice and prints the page."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        settings = {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": f"{folder}/warehouse"}
        spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        found: list[dict[str, tuple[list[str], str, int | None]]] = []
        for hidden in ("false", "true"):
            spark.conf.set("spark.sql.execution.pyspark.udf.hideTraceback.enabled", hidden)
            (folder / hidden).mkdir()
            found.append({name: measured(mistake) for name, mistake in Mistakes(spark, folder / hidden).all()})
        sys.stdout.write(INTRODUCTION.format(version=spark.version))
        for kind in ("batch read", "stream", "write"):
            deep = [n for name, (_, _, n) in found[0].items() if name.startswith(kind) and n is not None]
            less = [n for name, (_, _, n) in found[1].items() if name.startswith(kind) and n is not None]
            sys.stdout.write(
                f"- {kind}: {min(deep)} to {max(deep)} lines; without the traceback {min(less)} to {max(less)}\n"
            )
        sys.stdout.write("\n| mistake | lines above | the first three lines | `explain` |\n| --- | --- | --- | --- |\n")
        for name, (first, plain, depth) in found[0].items():
            shown = "<br>".join(code(anywhere(line, folder / "false")) for line in first)
            above = f"{depth}, {found[1][name][2]}".replace("None", "not there")
            sys.stdout.write(f"| {name} | {above} | {shown} | {words(anywhere(plain, folder / 'false'))} |\n")
        spark.stop()


if __name__ == "__main__":
    main()
