"""Spark's side of a stream, modelled on `format("tablefeed")`: analysis, offset log, batches, restarts. No JVM.

`SparkModel` takes those words of PySpark that the corpus's recorder says, so that its scenarios run on it as on Spark.
The order of calls is that of Spark's MicroBatchExecution: a batch's end is logged before it runs and its number after;
a restart runs a batch again that is logged and not known to be done, from and to where it was.

Not modelled: a user's schema, which Spark judges before us; processes other than this one; the clock of a trigger.
"""

from __future__ import annotations

import gc
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from pyspark_tablefeed import DefaultSource
from tablefeed.spark.source import StreamReader

# PySpark's names, which the recorder says, are not ours to spell: N802 throughout.


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of a micro-batch, as `foreachBatch` is given them."""

    rows: pa.Table

    def toArrow(self) -> pa.Table:  # noqa: N802
        return self.rows


Sink = Callable[[Batch, int], None]
Trigger = Literal["availableNow", "once", "processingTime"]


class SparkModel:
    """A session, as far as a stream of ours into `foreachBatch` needs one."""

    @property
    def readStream(self) -> DataStreamReader:  # noqa: N802
        return DataStreamReader()


class DataStreamReader:
    """`spark.readStream`."""

    def __init__(self) -> None:
        self._options: CaseInsensitiveDict = CaseInsensitiveDict()  # keys in lower case, as they come out of the JVM

    def format(self, name: str) -> DataStreamReader:
        assert name == DefaultSource.name()
        return self

    def options(self, **given: str) -> DataStreamReader:
        self._options.update(given)
        return self

    def load(self, path: str | None = None) -> Frame:
        if path is not None:
            self._options["path"] = path
        source = DefaultSource(self._options)
        return Frame(schema=source.schema(), plan=pickle.dumps(source))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A streaming DataFrame: its plan holds the source as it was when the table was analysed."""

    schema: StructType
    plan: bytes

    @property
    def writeStream(self) -> DataStreamWriter:  # noqa: N802
        return DataStreamWriter(self)

    def reader(self) -> StreamReader:
        """A reader of its own for whoever asks: the planner has one for the query's life, each task another."""
        reader = pickle.loads(self.plan).streamReader(self.schema)  # noqa: S301 (our own bytes)
        assert isinstance(reader, StreamReader)
        return reader


@dataclass(slots=True)
class DataStreamWriter:
    """`df.writeStream`."""

    frame: Frame
    sink: Sink | None = None
    checkpoint: Path | None = None
    when: Trigger = "processingTime"

    def foreachBatch(self, sink: Sink) -> DataStreamWriter:  # noqa: N802
        self.sink = sink
        return self

    def option(self, key: str, value: str) -> DataStreamWriter:
        assert key == "checkpointLocation"
        self.checkpoint = Path(value)
        return self

    def trigger(self, *, availableNow: bool = False, once: bool = False) -> DataStreamWriter:  # noqa: N803
        assert availableNow is not once
        self.when = "once" if once else "availableNow"
        return self

    def start(self) -> Query:
        """Runs a query that ends of itself to its end, so that what fails there fails here."""
        assert self.sink is not None
        assert self.checkpoint is not None
        query = Query(
            frame=self.frame,
            sink=self.sink,
            checkpoint=Checkpoint.at(self.checkpoint),
            when=self.when,
            planner=self.frame.reader(),
        )
        if self.when != "processingTime":
            query.run()
        return query


@dataclass(slots=True)
class Checkpoint:
    """What a query's runs tell each other. Offsets are compared as text, as Spark compares a Python source's."""

    folder: Path
    ends: list[str] = field(default_factory=list)

    @classmethod
    def at(cls, folder: Path) -> Checkpoint:
        for name in ("offsets", "commits"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        batches = [batch for batch in (folder / "offsets").iterdir() if batch.name.isdecimal()]
        batches.sort(key=lambda batch: int(batch.name))
        return cls(folder, [batch.read_text("utf-8").split("\n")[2] for batch in batches])

    @property
    def is_done(self) -> bool:
        """Whether the last batch that was begun is known to be done; true where none was begun."""
        return not self.ends or self._commit(len(self.ends) - 1).exists()

    def begin(self, end: str) -> None:
        self._put(self.folder / "offsets" / str(len(self.ends)), f"v1\n{{}}\n{end}")
        self.ends.append(end)

    def done(self) -> None:
        self._put(self._commit(len(self.ends) - 1), 'v1\n{"nextBatchWatermarkMs":0}')

    def _put(self, path: Path, text: str) -> None:
        """Puts a file whole, for the process may be killed."""
        (self.folder / "unfinished").write_text(text, "utf-8")
        (self.folder / "unfinished").replace(path)

    def _commit(self, batch_id: int) -> Path:
        return self.folder / "commits" / str(batch_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One start of a query on a checkpoint.

    With Trigger.AvailableNow it runs to its end, with Trigger.Once takes one batch of all that is there, and without a
    trigger does, at each `processAllAvailable`, what Spark would have done until then, and lives until it is stopped.
    """

    frame: Frame
    sink: Sink
    checkpoint: Checkpoint
    when: Trigger
    planner: StreamReader

    def run(self) -> None:
        try:
            self.processAllAvailable()
        finally:
            self.stop()

    def awaitTermination(self, timeout: int) -> bool:  # noqa: N802
        assert timeout > 0
        return True

    def stop(self) -> None:
        self.planner.stop()

    def processAllAvailable(self) -> None:  # noqa: N802
        planner, checkpoint = self.planner, self.checkpoint
        limit = ReadAllAvailable() if self.when == "once" else planner.getDefaultReadLimit()
        if self.when == "availableNow":
            planner.prepareForTriggerAvailableNow()
        runs_again = not checkpoint.is_done
        while runs_again or self._begin_next(planner, limit):
            self._deliver(planner)
            checkpoint.done()
            runs_again = False
            if self.when == "once":
                return

    def _begin_next(self, planner: StreamReader, limit: ReadLimit) -> bool:
        """Logs where the next batch ends; false where nothing is new. A query's first batch may be empty."""
        ends = self.checkpoint.ends
        start = ends[-1] if ends else json.dumps(planner.initialOffset())
        end = json.dumps(planner.latestOffset(json.loads(start), limit))
        if ends and end == start:
            return False
        self.checkpoint.begin(end)
        if len(ends) > 1:
            planner.commit(json.loads(start))
        return True

    def _deliver(self, planner: StreamReader) -> None:
        *before, end = self.checkpoint.ends
        # A first batch that runs again has no logged start: it is asked for anew.
        start = json.loads(before[-1]) if before else planner.initialOffset()
        tasks = pickle.dumps(planner.partitions(start, json.loads(end)))
        executor = self.frame.reader()
        rows = [batch for task in pickle.loads(tasks) for batch in executor.read(task)]  # noqa: S301 (our own bytes)
        gc.unfreeze()  # `read` settles its process as one of Spark's workers, which this is not
        table = pa.Table.from_batches(rows, to_arrow_schema(self.frame.schema, timezone="UTC"))
        self.sink(Batch(table), len(before))
