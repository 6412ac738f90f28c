"""The recorded streams of Delta-Spark (tests/corpus/recordings), run on a Spark of one's choice and compared.

A stream is one query, started once for each stage on one checkpoint. Between stages its table changes: commits are
hidden or lost. What came of a stage must be what Delta-Spark's own source did in it: rows, batches, last offset, or the
error class.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.digest import as_text, table_digest
from support.recordings import recorded_streams, unpack_stream_tables

Scenario = Mapping[str, Any]  # Any: the recorder's JSON, described beside it

DECIDED_BY_SPARK = [
    "append/user_schema_equal",
    "append/user_schema_not_null",
    "append/user_schema_reordered",
    "cdf/cdf_user_schema",
]
"""Streams with a user's `.schema(...)`, which only Spark can parse and hand to a source: they run on Spark alone."""

LOSSLESS = {
    "append/latest_grow": "append/startingVersion[3]",
    "append/latest_grow_twice": "append/startingVersion[3]",
    "cdf/cdf_latest": "cdf/cdf_from3",
}
"""Streams from `latest` that begin idle. Delta-Spark logs no offset then, so a restart begins anew and loses the
commits in between. A source that delivers them is right too: its rows are those of the other stream here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Where we do other than Delta-Spark, and mean to; docs/how-to/migrating-reading.md lists each for users.

    `stages`: the rows of each batch, or the class of the error that ends the stage. In all they are `rows_of` another
    recorded stream.
    """

    stages: tuple[tuple[int, ...] | str, ...]
    rows_of: str


DEPARTURES = {
    # An end ends a stream; Delta-Spark's has none.
    "append/endingTimestamp[2024-01-01 02:00:00]": Departure(stages=((20,),), rows_of="append/lost_files_lossy"),
    # failOnDataLoss=false does what it says, though the snapshot that Delta-Spark begins again with is gone.
    "ckpt3/clean_history_lossy": Departure(stages=((20,), (90,)), rows_of="ckpt3/from0"),
    # A restart asks only for what it still has to read: not for the last, already committed batch once more.
    "del_plain/fail_then_skip": Departure(
        stages=((30,), "DELTA_SOURCE_TABLE_IGNORE_CHANGES", (5,), ()), rows_of="del_plain/fail_then_skip"
    ),
}

_ENDS_WITHIN_S = 120
_STOP_REQUESTED = "the recorded stop"
_DELTA_CLASS = re.compile(r"\b(?:DELTA_|DIFFERENT_DELTA_)[A-Z0-9_]+")
_LOG_FILE = re.compile(r"\.?(\d{20})\.(?:(\d{20})\.)?")
_COMMIT = re.compile(r"\.?\d{20}\.(json|crc)(\.crc)?")

Digest = tuple[int, str]
"""The number of rows of a batch, and their digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What ended a stage: the exception's name, Delta's error class where the text has one, and the text."""

    name: str
    error_class: str | None
    text: str = ""

    @property
    def is_the_recorded_stop(self) -> bool:
        return self.error_class == "(stopped)"


@dataclass(slots=True, kw_only=True)
class Stage:
    """What came of one start of a query. Batches without rows are left out."""

    batches: list[Digest] = field(default_factory=list)
    failure: Failure | None = None
    schema: str | None = None
    last_offset: Any = None  # Any: JSON, with the table's name for its id


Run = list[Stage]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStreams:
    """The recorded tables in `folder`, and each scenario by its id."""

    folder: Path
    scenarios: Mapping[str, Scenario]
    table_names: Mapping[str, str]

    def recorded(self, name: str) -> Run:
        """What Delta-Spark did."""
        return [_recorded(stage) for stage in self.scenarios[name]["expect"]]

    def run(self, spark: Any, name: str, *, scratch: Path) -> Run:  # Any: a session, or the model of one
        """Runs a scenario on `spark`."""
        scenario = self.scenarios[name]
        folder = Path(tempfile.mkdtemp(dir=scratch))
        checkpoint = folder / "checkpoint"
        table = None if scenario["table"] == "-nopath" else _Table.of(scenario, self.folder, folder)
        found = []
        for asked in scenario["stages"]:
            options = {**scenario["opts"], **asked.get("opts", {})}
            query = _Query(
                spark=spark,
                scenario=scenario,
                options={key: value.replace("{ckpt}", str(checkpoint)) for key, value in options.items()},
                checkpoint=checkpoint,
                stop_after=asked.get("stop_after"),
            )
            stage = query.run(table, asked)
            stage.last_offset = self._last_offset(checkpoint)
            found.append(stage)
        shutil.rmtree(folder)
        return found

    def run_all(self, spark: Any, names: Iterable[str], *, scratch: Path, at_once: int) -> dict[str, Run]:
        """Runs scenarios on the session `spark`, `at_once` of them side by side."""
        asked = list(names)
        with ThreadPoolExecutor(at_once) as threads:
            runs = threads.map(lambda name: self.run(spark, name, scratch=scratch), asked)
            return dict(zip(asked, runs, strict=True))

    def differences(self, name: str, run: Run) -> list[str]:
        """Gives a line for each thing in which a run is not what was recorded."""
        lossless = LOSSLESS.get(name)
        if lossless and not any(stage.failure for stage in run) and rows(run) == rows(self.recorded(lossless)):
            return []
        pairs = zip(self.recorded(name), run, strict=True)
        return [f"stage {number}: {line}" for number, pair in enumerate(pairs) for line in _differences(*pair)]

    def _last_offset(self, checkpoint: Path) -> Any:  # Any: JSON
        batches = [batch for batch in (checkpoint / "offsets").glob("*") if batch.name.isdecimal()]
        batches.sort(key=lambda batch: int(batch.name))
        logged = [line for batch in batches for line in batch.read_text("utf-8").split("\n")[2:]]
        return _offset(logged[-1], self.table_names) if logged else None


def unpack_streams(into: Path) -> RecordedStreams:
    """Unpacks the recorded tables into the folder `into`."""
    unpack_stream_tables(into)
    recorded = recorded_streams()
    return RecordedStreams(
        folder=into,
        scenarios={scenario["id"]: scenario for scenario in recorded["scenarios"]},
        table_names={facts["id"]: name for name, facts in recorded["tables"].items()},
    )


def recorded_names() -> list[str]:
    """The ids of all scenarios, for a test of each."""
    return [scenario["id"] for scenario in recorded_streams()["scenarios"]]


def rows(run: Run) -> Digest:
    """The number of rows of a run and their digest, whatever their order and batches."""
    batches = [batch for stage in run for batch in stage.batches]
    return sum(count for count, _ in batches), as_text(sum(int(digest, 16) for _, digest in batches))


def _recorded(stage: Mapping[str, Any]) -> Stage:
    error = stage["err"]
    return Stage(
        batches=[(count, digest) for count, digest in stage["batches"] if count],
        failure=error and Failure(name=error["java"], error_class=error["condition"], text=error["text"]),
        schema=stage["schema"],
        last_offset=stage["offsets"][-1] if stage["offsets"] else None,
    )


def _offset(line: str, table_names: Mapping[str, str]) -> Any:  # Any: JSON
    try:
        offset = json.loads(line)
    except ValueError:
        return line
    if isinstance(offset, dict) and offset.get("reservoirId") in table_names:
        offset["reservoirId"] = f"table {table_names[offset['reservoirId']]}"
    return offset


def _differences(recorded: Stage, found: Stage) -> Iterator[str]:
    if found.failure and not recorded.failure:
        yield f"failed: {found.failure.text}"
    elif recorded.failure and not found.failure:
        yield f"did not fail with {recorded.failure.error_class or recorded.failure.name}"
    elif recorded.failure and found.failure and not _is_the_same(recorded.failure, found.failure):
        yield f"failed not with {recorded.failure.error_class}: {found.failure.text}"
    if found.batches != recorded.batches:
        yield f"batches of {_counts(found)} rows, not {_counts(recorded)}, or of other values"
    if found.schema and recorded.schema and found.schema != recorded.schema:
        yield f"schema {found.schema}, not {recorded.schema}"
    if not recorded.failure and recorded.last_offset not in (None, found.last_offset):
        yield f"last offset {found.last_offset}, not {recorded.last_offset}"


def _is_the_same(recorded: Failure, found: Failure) -> bool:
    """Whether one fails as recorded; where the recording has no class of Delta's, any error of a source will do."""
    if recorded.is_the_recorded_stop or found.is_the_recorded_stop:
        return recorded.error_class == found.error_class
    wanted = recorded.error_class or ""
    return found.name != "hang" and (not _DELTA_CLASS.match(wanted) or wanted.partition(".")[0] in found.text)


def _counts(stage: Stage) -> list[int]:
    return [count for count, _ in stage.batches]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """One start of a scenario's query."""

    spark: Any  # a session, or the model of one
    scenario: Scenario
    options: Mapping[str, str]
    checkpoint: Path
    stop_after: int | None

    def run(self, table: _Table | None, asked: Mapping[str, Any]) -> Stage:
        """Runs the query to its end on the table as the stage `asked` for has it."""
        stage = Stage()
        delivered: dict[int, Digest] = {}
        try:
            self._run(table, asked, stage, delivered)
        except Exception as error:  # noqa: BLE001 (how it fails is compared)
            stage.failure = _failure(error)
        stage.batches = [delivered[number] for number in sorted(delivered) if delivered[number][0]]
        return stage

    def _run(self, table: _Table | None, asked: Mapping[str, Any], stage: Stage, delivered: dict[int, Digest]) -> None:
        if table:
            table.show(asked, upto=asked.get("load_at", asked.get("upto")))
        reader = self.spark.readStream.format("tablefeed").options(**self.options)
        if self.scenario.get("schema"):
            reader = reader.schema(self.scenario["schema"])
        frame = reader.load(table.path + self.scenario.get("suffix", "")) if table else reader.load()
        stage.schema = frame.schema.simpleString()
        if table:
            table.show(asked, upto=asked.get("upto"))
        writer = frame.writeStream.foreachBatch(self._keeping(delivered))
        writer = writer.option("checkpointLocation", str(self.checkpoint)).trigger(**{self.scenario["trigger"]: True})
        query = writer.start()
        if not query.awaitTermination(_ENDS_WITHIN_S):
            query.stop()
            stage.failure = Failure(name="hang", error_class=None)

    def _keeping(self, delivered: dict[int, Digest]) -> Callable[[Any, int], None]:  # Any: a DataFrame
        def keep(frame: Any, number: int) -> None:
            digest = table_digest(frame.toArrow())
            full = sum(count > 0 for count, _ in delivered.values())
            if self.stop_after is not None and digest[0] and full >= self.stop_after:
                raise InterruptedError(_STOP_REQUESTED)
            delivered[number] = digest

        return keep


def _failure(error: Exception) -> Failure:
    text = "\n".join(_messages(error))
    named = _DELTA_CLASS.search(text)
    error_class = "(stopped)" if _STOP_REQUESTED in text else named and named[0]
    return Failure(name=type(error).__name__, error_class=error_class, text=text)


def _messages(error: Exception) -> Iterator[str]:
    """An exception's message, and those of its causes in the JVM."""
    yield f"{type(error).__name__}: {error}"
    cause = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    while cause is not None:
        yield str(cause.getMessage())
        cause = cause.getCause()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """The table of one run: the recorded one, or a copy by links where a stage changes it."""

    recorded: Path
    shown: Path

    @classmethod
    def of(cls, scenario: Scenario, tables: Path, folder: Path) -> _Table:
        recorded = tables / scenario["table"]
        if not any(stage.keys() & {"upto", "load_at", "drop", "rmdata"} for stage in scenario["stages"]):
            return cls(recorded=recorded, shown=recorded)
        shutil.copytree(recorded, folder / "table", copy_function=os.link)
        return cls(recorded=recorded, shown=folder / "table")

    @property
    def path(self) -> str:
        return str(self.shown)

    def show(self, asked: Mapping[str, Any], *, upto: int | None) -> None:
        """Gives the copy the log that the table had at version `upto`, without the files that the stage lost."""
        if self.shown == self.recorded:
            return
        for file in self.shown.glob("*.parquet") if asked.get("rmdata") else ():
            file.unlink()
        theirs, ours = self.recorded / "_delta_log", self.shown / "_delta_log"
        wanted = set(_log_files(theirs, upto=upto, lost=asked.get("drop", ())))
        for file in ours.iterdir():
            if file.is_file() and file.name not in wanted:
                file.unlink()
        for name in wanted:
            if not (ours / name).exists():
                os.link(theirs / name, ours / name)


def _log_files(log: Path, *, upto: int | None, lost: Collection[int]) -> Iterator[str]:
    for file in log.iterdir():
        if "_last_checkpoint" in file.name:
            version = json.loads((log / "_last_checkpoint").read_bytes())["version"]
        elif found := _LOG_FILE.match(file.name):
            version = int(found[2] or found[1])
            if version in lost and _COMMIT.fullmatch(file.name):
                continue
        else:
            continue
        if file.is_file() and (upto is None or version <= upto):
            yield file.name
