"""A schedule: what it is, its run, and how it is made shorter while it still fails. The kinds are in kinds.py."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from simulation import index_tables
from simulation.actors import ID, ROW, Appender, Asked, Changer, ChangeStream, Keeper, Operator, Stream, upkeep
from simulation.change_laws import RECORDS, check_changes, check_followed, check_row_ids
from simulation.laws import Batch, BrokenLawError, Event, How, Oracle, check_stream, holds, require
from simulation.world import FIRST_ROWS, Form, Process, Running, Strike, World, nothing_by_chance
from tablefeed.errors import CommitUnknownError, TablefeedError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction, batch_write
from tablefeed.feed.write.sink import plan_write
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.log.plan import Limits
from tablefeed.model.actions import Txn
from tablefeed.model.offset import Offset

HOUR_MS = 3_600_000
LONGEST_PAUSE_MS = 70 * HOUR_MS
"""No step is suspended for longer: what a table removes it keeps for 72 hours."""

STREAMED, CHANGED, MERGED, OVERWRITTEN = ("source", "target"), ("changed",), ("merged",), ("overwritten",)
"""The tables of a schedule: those of a stream, or one to which changes are applied, or one that is merged into, or one
that is appended to and overwritten.
"""

BATCHES = 8
"""How many batches each appender and each changer has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Who does what, with which number, and what strikes meanwhile."""

    who: str
    does: str
    number: int = 0
    strikes: tuple[Strike, ...] = ()

    def __str__(self) -> str:
        return f"{self.who}: {self.does} {self.number or ''} {', '.join(map(str, self.strikes))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The tables and actors of a schedule, and its steps."""

    seed: int
    tables: tuple[str, ...]
    folders: bool
    asked: Asked
    properties: Mapping[str, str]
    vectors: bool
    skew_ms: int
    steps: tuple[Step, ...]
    txns: int = 2
    """How many of the two appenders record transactions."""
    forms: Mapping[str, Form] = field(default_factory=dict)
    """Which tables are IndexTables tables, and of which form."""

    @property
    def records(self) -> bool:
        """Whether the changes of the rows are recorded, and tracked by their ids."""
        return RECORDS.items() <= self.properties.items()

    def __str__(self) -> str:
        shown = (f"  {number:2} {step}" for number, step in enumerate(self.steps))
        of = {name: getattr(self, name) for name in Schedule.__slots__ if name != "steps"}
        return "\n".join([f"{of}", *shown])


class Run:
    """One run of a schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.world = World(folders=schedule.folders, forms=schedule.forms)
        chance = random.Random(schedule.seed)  # noqa: S311 - no secret
        numbers = iter(range(1, 1000))
        sequences = chance.sample(range(1, 1000), 100)
        made = {
            name: [self._batch(chance, sequences, numbers) for _ in range(BATCHES)]
            for name in ("changer 1", "changer 2")
        }
        batches = {Txn(app_id=name, txn_version=at): each for name, of in made.items() for at, each in enumerate(of)}
        oracle = self.oracle = Oracle(self.world, batches)
        how = schedule.properties
        rows = [[self._rows(chance, numbers) for _ in range(BATCHES)] for _ in range(2)]
        self.appenders = [
            Appender(self.world, oracle, f"appender {at + 1}", rows[at], how, records_txns=at < schedule.txns)
            for at in range(2)
        ]
        self.changers = [Changer(self.world, oracle, name, schedule.tables[0], of, how) for name, of in made.items()]
        self.stream = self._stream()
        self.keepers = [Keeper(self.world, oracle, f"keeper {number}") for number in (1, 2)]
        self.operator = Operator(
            self.world, self.stream, {table: partial(self.create, table) for table in schedule.tables}
        )
        actors: list[Appender | Changer | Stream | Keeper] = [
            *self.appenders,
            *self.changers,
            self.stream,
            *self.keepers,
        ]
        self.actors = {each.process.name: each for each in actors}
        self.appenders[1].process.skew_ms = self.changers[1].process.skew_ms = schedule.skew_ms
        self.in_progress: list[Running] = []
        self.has_stray = False
        """Whether a writer said that its commit is in another log, where others have continued from it."""

    def _stream(self) -> Stream:
        world, oracle, table, asked = self.world, self.oracle, self.schedule.tables[0], self.schedule.asked
        if self.schedule.records:
            return ChangeStream(world, oracle, table, ID if table in OVERWRITTEN else ROW, asked)
        return Stream(world, oracle, self.schedule.properties, asked)

    def _rows(self, chance: random.Random, numbers: Iterator[int]) -> list[int]:
        """The rows of a batch. With IndexTables tables the first is alike in each schedule, so few splits are built."""
        count = chance.randint(0, 3)
        return [*islice(numbers, 3 if self.schedule.forms else count)][:count]

    def _batch(self, chance: random.Random, sequences: list[int], numbers: Iterator[int]) -> Batch:
        if self.schedule.tables == OVERWRITTEN:
            rows = [(row, "", 0, "u") for row in self._rows(chance, numbers)]
            return Batch(how=chance.choice(("append", "overwrite")), events=rows)
        keys = chance.sample(range(5), chance.randint(1, 4))
        events: list[Event] = [(key, f"v{chance.randint(0, 9)}", sequences.pop(), chance.choice("uud")) for key in keys]
        how: tuple[How, ...] = ("merge", "merge", "delete", "update")
        return Batch(how="apply" if self.schedule.tables == CHANGED else chance.choice(how), events=events)

    def run(self) -> None:
        """Runs the steps, lets what is in progress end, lets everybody finish, and checks the laws."""
        with nothing_by_chance(self.schedule.seed):
            self._run()

    def _run(self) -> None:
        if self.schedule.tables != STREAMED and not self.schedule.forms:
            self.create(self.schedule.tables[0])
        for table, form in self.schedule.forms.items():
            if form not in ("delta", "new"):
                self.create(table)
        for step in self.schedule.steps:
            self._next_turn()
            self._begin(step)
        while self.in_progress:
            self._go_on(self.in_progress[0])
        if self.has_stray:
            return  # nobody can take that commit back (docs/explanation/tables-that-go-away.md)
        self.world.land(all_of_them=True)
        for table in self.operator.touched:
            self.oracle.check_log(table)
        self._drain()
        self._check()

    def create(self, table: str) -> None:
        """Makes an empty table."""
        if self.schedule.forms.get(table, "new") not in ("delta", "new"):
            index_tables.begin(self.world, table)
            return
        process = Process(self.world, "creator")
        schema = ROW if table in (*CHANGED, *MERGED) else ID
        how = {} if table in self.schedule.forms else dict(self.schedule.properties)
        if schema is ROW:
            how["delta.feature.domainMetadata"] = "supported"
            if self.schedule.vectors:
                how["delta.enableDeletionVectors"] = "true"
        log = process.log(table)
        plan = plan_write(log, None, schema, partition_by=(), kind=WriteKind.APPEND, rules=WriteRules(properties=how))
        made = Transaction(plan=plan, files=(), kind=WriteKind.APPEND, operation=batch_write(WriteKind.APPEND, ()))
        commit(log, None, made, process.around())

    def end(self) -> None:
        """Ends what is still in progress after a failure."""
        for running in self.in_progress:
            running.process.is_dead = True
            while not running.is_done:
                with contextlib.suppress(Exception):
                    running.go_on()

    def _next_turn(self) -> None:
        self.world.tick += 1
        self.world.land()
        for running in list(self.in_progress):
            if running in self.in_progress and running.wakes_at <= self.world.tick:
                self._go_on(running)

    def _begin(self, step: Step) -> None:
        self.world.trace.append(str(step))
        if step.who == "clock":
            ms = step.number * HOUR_MS
            if all(self.world.now_ms + ms - each.begun_ms <= LONGEST_PAUSE_MS for each in self.in_progress):
                self.world.now_ms += ms
            return
        does, _, table = step.does.partition(" ")
        if step.who == "operator":
            getattr(self.operator, does)(table)
            return
        work: Callable[..., None]
        if does == "upkeep":
            busy = [each.process for each in self.in_progress]
            idle = [p for a in self.actors.values() if (p := a.process).work and p not in busy]
            if not idle:
                return
            process, work = idle[0], partial(upkeep, idle[0])
        else:
            process, work = self.actors[step.who].process, getattr(self.actors[step.who], does)
            work = partial(work, table) if table else work
        for running in [each for each in self.in_progress if each.process is process]:
            while not running.is_done:
                self._go_on(running)
        running = Running(self.world, process, work, step.strikes)
        self.in_progress.append(running)
        self._go_on(running)

    def _go_on(self, running: Running) -> None:
        try:
            running.go_on()
        except TablefeedError as error:
            self.world.trace.append(f"  {running.process.name} raised {type(error).__name__}: {error}")
            self.has_stray |= isinstance(error, CommitUnknownError) and "others have continued from it" in str(error)
        if running.is_done:
            self.in_progress.remove(running)
            if running.process.is_dead:
                self.world.trace.append(f"  {running.process.name} died")
                running.process.restart()

    def _drain(self) -> None:
        """Lets everybody finish without faults; what a table from outside touched may stay refused."""
        writers: list[Appender | Changer] = [*self.appenders, *self.changers]
        for actor in writers:
            while actor.is_in_doubt:
                try:
                    actor.append() if isinstance(actor, Appender) else actor.change()
                except TablefeedError as error:
                    # An IndexTables log that was cleaned up, and whose splits were merged, may not show a write.
                    is_purged = isinstance(error, CommitUnknownError) and "purged" in str(error)
                    if not (is_purged or self.operator.touched):
                        raise
                    break
        if self.schedule.tables != STREAMED and not self.schedule.records:
            return
        waited, self.stream.limits = False, Limits()
        for _ in range(60):
            try:
                self.stream.batch()
            except TablefeedError:
                if self.stream.process.life > 30:
                    break
            if self.stream.is_refused:
                break
            if self.stream.is_idle:
                if waited:
                    break
                waited = True
                self.world.now_ms += 2 * HOUR_MS  # it looks at times whether the table is still there

    def _check(self) -> None:
        reader = Keeper(self.world, self.oracle, "reader")
        for table in self.schedule.tables:
            self.oracle.check_once(table)
            self.oracle.check_log(table)
            if (disk := self.world.disk(table)).history:
                reader.read(table)
                if self.schedule.records:
                    is_vacuumed = any(step.does.startswith("vacuum") for step in self.schedule.steps)
                    check_changes(disk, partial(self.oracle.rows, table), is_vacuumed=is_vacuumed)
                    check_row_ids(disk)
        stream = self.stream
        if "target" in self.operator.touched or stream.first is None or (stream.may_not_know and not stream.is_refused):
            return
        if isinstance(stream, ChangeStream):
            self._check_change_stream(stream, stream.first)
        else:
            self._check_stream(stream, stream.first)

    def _check_stream(self, stream: Stream, first: Offset) -> None:
        oracle, source = self.oracle, self.world.disk("source")
        appended = oracle.appended("target").items()
        target = {version: [row for row in rows if row < FIRST_ROWS["target"]] for version, rows in appended}
        if stream.refusal is None:
            check_stream(oracle.appended("source"), target, first, whole=True)
            return
        self._may_be_refused(stream)
        pasts = [oracle.appended("source", history) for history in (source.history, *source.past)]
        if not any(holds(partial(check_stream, past, target, first, whole=False)) for past in pasts):
            raise BrokenLawError(f"the target has {target}, no prefix of {pasts} from {first}")

    def _check_change_stream(self, stream: ChangeStream, first: Offset) -> None:
        """Its batches have the changes of each version once, in the order of the commits, from where it began on."""
        table, disk = stream.reads, self.world.disk(stream.reads)
        changes = [row for _, rows in sorted(stream.batches.items()) for row in rows]
        versions = [row[-1] for row in changes]
        require(versions == sorted(versions), f"the changes {changes} are not in the order of the commits")

        def leads(history: Mapping[int, bytes], end: int) -> None:
            rows_at = partial(self.oracle.rows, table, history=history)
            begin = first.version
            before = [] if first.in_snapshot or not begin else rows_at(begin - 1)
            check_followed(changes, before, rows_at, range(begin, end))

        if stream.refusal is None:
            require(
                not stream.changed, f"batches were {stream.batches} and are {stream.changed} when they are run again"
            )
            leads(disk.history, max(disk.history) + 1)
            return
        self._may_be_refused(stream)
        end = max(versions, default=0)  # the rest of the last version may be missing
        pasts = (disk.history, *disk.past)
        require(
            any(holds(partial(leads, past, end)) for past in pasts), f"the stream has {changes}, of none of {pasts}"
        )

    def _may_be_refused(self, stream: Stream) -> None:
        if not self._is_lossy and stream.reads not in self.operator.touched:
            raise BrokenLawError(f"the stream cannot go on: {stream.refusal!r}") from stream.refusal

    @property
    def _is_lossy(self) -> bool:
        """Whether the stream may have lagged behind what the source keeps, which waits only for consumers."""
        steps = [(step.who, step.does) for step in self.schedule.steps]
        return ("clock", "jump") in steps and not self.schedule.asked.is_consumer


def failure_of(schedule: Schedule) -> Exception | None:
    """Runs a schedule; gives what it ends with."""
    run = Run(schedule)
    try:
        run.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a find
        return error
    finally:
        run.end()
    return None


def left_behind(schedule: Schedule, folder: Path) -> Iterator[tuple[Path, list[tuple[Any, ...]]]]:
    """Runs a schedule; gives the tables that it leaves, as folders, and their rows.

    Those are left out in whose logs another writer has left torn files: not all readers do without these.
    """
    run = Run(schedule)
    run.run()
    for table in schedule.tables:
        disk = run.world.disk(table)
        if disk.history and not disk.damaged:
            disk.write_to(folder / f"{schedule.seed}" / table)
            yield folder / f"{schedule.seed}" / table, run.oracle.rows(table)


def shrunk(schedule: Schedule, error: Exception) -> tuple[Schedule, Exception]:
    """Leaves out steps and strikes as long as the schedule still fails."""
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for shorter in _shorter(schedule):
            found = failure_of(shorter)
            if found is not None and type(found) is type(error):
                schedule, error, is_shorter = shorter, found, True
                break
    return schedule, error


def _shorter(schedule: Schedule) -> Iterator[Schedule]:
    steps = schedule.steps
    for number, step in reversed([*enumerate(steps)]):
        yield replace(schedule, steps=steps[:number] + steps[number + 1 :])
        for strike in step.strikes:
            less = replace(step, strikes=tuple(each for each in step.strikes if each is not strike))
            yield replace(schedule, steps=(*steps[:number], less, *steps[number + 1 :]))
    if schedule.skew_ms:
        yield replace(schedule, skew_ms=0)
