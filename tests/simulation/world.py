"""The world of a schedule: one clock, the tables' disks in memory, and processes that may pause, fail and die.

Every call of a store is a place where the plan of the running step may strike. Nothing here is left to chance.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Literal
from urllib.parse import unquote

import orjson

from simulation.plain_index import LOG_DIR, actions, change_of_state, live_in_state, plain_lines, replayed
from support.faulty_store import FaultyStore, Operation
from tablefeed.errors import ObjectNotFoundError, StoreError
from tablefeed.feed.commit.transaction import Surroundings
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.known_state import caught_up
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.upkeep import after_commit
from tablefeed.feed.upkeep.after_commit import UpkeepOptions, surroundings
from tablefeed.model.actions import Txn
from tablefeed.store import Content, Entry, Within
from tablefeed.store.memory import MemoryStore

BEGIN_MS = 1_700_000_000_000

FIRST_ROWS = {"source": 900, "target": 950, "overwritten": 970}
"""The rows from here on are those with which other writers begin a table."""

COMMIT = re.compile(r"_(?:delta|transaction)_log/(\d{20})\.json$")
STATE = re.compile(r"_transaction_log/state-v(\d{20})/_manifest\.avro$")

Form = Literal["delta", "new", "commits", "checkpoints", "states", "native"]
"""The format of a table. Of an IndexTables table: what was there before our first commit. That is nothing, commits,
commits and a JSON checkpoint, states, or a commit and a state of each version by the native writer.
"""

FaultKind = Literal["fail", "lose", "down", "late", "repeat", "short", "die", "die after"]
Calls = Literal["any", "ask", "effect", "log"]
"""Which calls are counted: all, those that only ask, those that change something, or those that list or change the log.
"""

EFFECTS = frozenset({"put_if_absent", "create", "publish", "replace", "delete"})

LISTINGS = ("list", "directories")

OUTAGE = 15
"""So many calls fail in a row where a store is down: more than the tries of one put."""


class Death(BaseException):
    """The process is gone: nothing that it would do after this happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """What happens at the `at`-th call, from 1, of those in `calls`.

    fail: nothing is done. lose: it is done, and its answer is an error. down: the same, and `OUTAGE` calls after it
    fail too. late: the put of a commit is done some steps later, and its answer is an error. repeat: a put is sent
    twice, and the second answer counts. short: a listing of the log lacks its newest file. die: the process ends before
    the call. die after: it ends after the call, and of a new data file half is there. A number: so many other steps run
    before the call.
    """

    kind: FaultKind | int
    calls: Calls
    at: int

    def __str__(self) -> str:
        what = f"pause for {self.kind}" if isinstance(self.kind, int) else self.kind
        return f"{what} at {self.calls} {self.at}"


class Disk(MemoryStore):
    """The objects of one table, and the bytes of each commit that the table ever had, also of those cleaned up.

    `folders`: a put within a folder fails where the folder is gone, as on a local disk.
    """

    def __init__(self, name: str, now_ms: Callable[[], int], *, folders: bool, form: Form = "delta") -> None:
        super().__init__(name, now_ms=now_ms)
        self.folders, self.form = folders, form
        self.log_dir = "_delta_log" if form == "delta" else LOG_DIR
        self.history: dict[int, bytes] = {}
        self.damaged: set[str] = set()
        self.txn: Txn | None = None
        """The transaction of the write that puts something now. A state does not say it."""
        self.past: list[dict[int, bytes]] = []
        """The commits that it had each time when it was deleted, made anew or restored."""

    def names(self, directory: str | None = None) -> list[str]:
        """The names of the objects in the log, or in another directory."""
        return sorted(
            name for name in self._objects if name.startswith(self.log_dir if directory is None else directory)
        )

    def version_of(self, name: str) -> int | None:
        """The version whose commit has this name; a state without a JSON commit is the commit of its version."""
        if found := COMMIT.match(name):
            return int(found[1])
        found = STATE.match(name)
        return int(found[1]) if found and f"{LOG_DIR}/{found[1]}.json" not in self._objects else None

    def live(self) -> set[str]:
        """The live files of an IndexTables table, by its commits."""
        live: set[str] = set()
        for _, data in sorted(self.history.items()):
            live = replayed(actions(data), live)
        return live

    def delete(self, name: str) -> None:
        version, is_there = self.version_of(name), name in self._objects
        super().delete(name)
        has_state = f"{LOG_DIR}/state-v{version or 0:020d}/_manifest.avro" in self._objects
        if version is not None and is_there and version == max(self.history, default=None) and not has_state:
            del self.history[version]  # its writer takes it back: a cleanup keeps the newest

    def without_stray(self, name: str) -> None:
        """Deletes a commit or state, put just now, that does not follow the one before it or names files that are gone.

        Somebody has to: the table was deleted, made anew or restored, and its writer cannot take the file back, because
        it ends or loses the store (docs/explanation/tables-that-go-away.md).
        """
        version = self.version_of(name)
        if STATE.match(name) and name in self._objects:
            try:
                live_in_state(self, name)
            except ObjectNotFoundError:
                self.delete(name)
        if version is None or version not in self.history:
            return
        added = (action["add"]["path"] for action in actions(self.history[version]) if "add" in action)
        if (version and version - 1 not in self.history) or not all(unquote(path) in self._objects for path in added):
            self.delete(name)

    def copy_of(self) -> Disk:
        copy = Disk(self._name, self._now_ms, folders=self.folders, form=self.form)
        copy._objects, copy.history, copy.damaged = dict(self._objects), dict(self.history), set(self.damaged)
        return copy

    def stamp(self) -> None:
        """Gives each object the time of now."""
        self._objects = {name: replace(of, modified_ms=self._now_ms()) for name, of in self._objects.items()}

    def become(self, other: Disk | None) -> None:
        """Is `other` from now on, with the times of its files; empty for None.

        Data files that `other` lacks stay: writers that still run may have written them.
        """
        self.past.append(self.history)
        data = {} if other is None else {n: o for n, o in self._objects.items() if not n.startswith(f"{self.log_dir}/")}
        other = other or Disk(self._name, self._now_ms, folders=self.folders)
        self._objects, self.history, self.damaged = data | other._objects, dict(other.history), set(other.damaged)

    def write_to(self, folder: Path) -> None:
        """Writes the objects as files."""
        for name, found in self._objects.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(found.data)

    def cut(self, name: str) -> None:
        """Leaves half of an object, as a torn write does."""
        found = self._objects[name]
        self._objects[name] = replace(found, data=found.data[: len(found.data) // 2])
        self.damaged.add(name)

    @contextlib.contextmanager
    def writing(self, txn: Txn | None) -> Iterator[None]:
        """What is put in the block is for `txn`."""
        self.txn = txn
        try:
            yield
        finally:
            self.txn = None

    @contextlib.contextmanager
    def create(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:
        self._check_folder(name, within)
        with super().create(name) as handle:
            yield handle

    def _check_folder(self, name: str, within: Within | None) -> None:
        if within is not None and self.folders and not self._below(within.directory):
            raise ObjectNotFoundError(url=self.url, name=name)

    def _put(self, name: str, data: bytes, within: Within | None, *, once: bool) -> bool:
        self._check_folder(name, within)
        version = self.version_of(name)
        is_new = version is not None and version not in self.history and name not in self._objects
        is_put = super()._put(name, data, within, once=once)
        if is_put and is_new and version is not None:
            self.history[version] = self._change_of_state(name) if STATE.match(name) else plain_lines(bytes(data))
        return is_put

    def _change_of_state(self, name: str) -> bytes:
        said = [] if self.txn is None else [{"txn": {"appId": self.txn.app_id, "version": self.txn.txn_version}}]
        try:
            changed = change_of_state(self, name, self.live()).splitlines()
            return b"\n".join([*changed, *map(orjson.dumps, said)])
        except ObjectNotFoundError:
            return b""  # the log was emptied before, with its manifests: the writer has to take the state back


@contextlib.contextmanager
def nothing_by_chance(seed: int) -> Iterator[None]:
    """Makes each uuid in the block from `seed`: the names of files, and so the order in which they are listed.

    So are the random bytes between the blocks of a state. What this Python process has kept about tables is forgotten:
    the ids of tables come again in the next run.
    """
    for kept in (after_commit._asked, after_commit._cleaned):
        kept.clear()
    chance, made, drawn = random.Random(seed), uuid.uuid4, os.urandom  # noqa: S311 - no secret
    uuid.uuid4 = lambda: uuid.UUID(int=chance.getrandbits(128), version=4)
    os.urandom = chance.randbytes
    try:
        yield
    finally:
        uuid.uuid4, os.urandom = made, drawn


class World:
    """The clock and the disks, and the step that runs now."""

    def __init__(self, *, folders: bool, forms: Mapping[str, Form]) -> None:
        self.now_ms = BEGIN_MS
        self.folders, self.forms = folders, forms
        self.disks: dict[str, Disk] = {}
        self.rows: dict[str, list[int]] = {}
        """The rows of each data file that an append wrote, by its path."""
        self.txns: dict[str, Txn | None] = {}
        """The transaction that each split was written for, by its path."""
        self.first_rows = {table: itertools.count(first) for table, first in FIRST_ROWS.items()}
        self.running: Running | None = None
        self.tick = 0
        self.late: list[tuple[int, Disk, str, bytes, Txn | None]] = []
        """Puts of commits: when they arrive, and where; and for which transaction."""
        self.trace: list[str] = []

    def disk(self, name: str) -> Disk:
        if name not in self.disks:
            form = self.forms.get(name, "delta")
            self.disks[name] = Disk(name, lambda: self.now_ms, folders=self.folders, form=form)
        return self.disks[name]

    def delay(self, disk: Disk, name: str, data: Content, txn: Txn | None) -> None:
        """Lets the put of a commit arrive later.

        It never arrives where the table was replaced since the step began: nobody would take that commit back.
        """
        if self.running is not None and self.running.replaced.get(disk._name, 0) == len(disk.past):
            self.late.append((self.tick + 2, disk, name, data if isinstance(data, bytes) else b"".join(data), txn))

    def land(self, *, all_of_them: bool = False) -> None:
        """Lets the puts arrive that are due."""
        due = [each for each in self.late if all_of_them or each[0] <= self.tick]
        self.late = [each for each in self.late if each not in due]
        for _, disk, name, data, txn in due:
            if disk.names():
                with disk.writing(txn):
                    disk.put_if_absent(name, data)


class Process:
    """A process: what it remembers is lost when it dies; `restart` gives it a new life."""

    def __init__(self, world: World, name: str, skew_ms: int = 0) -> None:
        self.world, self.name, self.skew_ms, self.life = world, name, skew_ms, 0
        self.restart()

    def restart(self) -> None:
        self.life += 1
        self.is_dead = False
        self.puts: list[tuple[Disk, str]] = []
        """The commits and states that this step has put."""
        self.txn: Txn | None = None
        """The transaction that it writes, where a table's rows are overwritten."""
        self.logs: dict[str, DeltaLog | IndexTablesLog] = {}
        self.known: dict[str, Snapshot | None] = {}
        self.memory: dict[str, Any] = {}  # Any: what an actor keeps
        self.work: dict[tuple[str, ...], Callable[[], None]] = {}
        """What is to be done behind its commits."""

    def now_ms(self) -> int:
        return self.world.now_ms + self.skew_ms

    def around(self) -> Surroundings:
        """What commits need. The work behind them waits for a step of its own."""
        upkeep = UpkeepOptions(ask=self.work.__setitem__, now_ms=self.now_ms, index_interval=2)
        return replace(surroundings(upkeep), sleep=self._sleep, uniform=lambda: 0.5)

    def log(self, table: str) -> DeltaLog | IndexTablesLog:
        if table not in self.logs:
            store = ProcessStore(self, self.world.disk(table))
            made = DeltaLog if store.disk.form == "delta" else IndexTablesLog
            self.logs[table] = made(store, location=store.url, storage_options={})
        return self.logs[table]

    def state(self, table: str) -> Snapshot | None:
        self.known[table] = caught_up(self.log(table), self.known.get(table))
        return self.known[table]

    def _sleep(self, seconds: float) -> None:
        self.world.now_ms += int(seconds * 1000)


class ProcessStore(FaultyStore):
    """The store of one disk as one life of a process has it."""

    def __init__(self, process: Process, disk: Disk) -> None:
        super().__init__(disk)
        self._process, self.disk, self._life = process, disk, process.life
        self._struck: FaultKind | None = None

    @property
    def url(self) -> str:
        """Another one in each life, so that nothing that is kept by it outlives the process."""
        return f"memory:{self.disk._name}@{self._process.name}{self._process.life}"

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        with self._call("list", directory) as is_short:
            entries = [*self.disk.list(directory, start=start)]
            if is_short and entries:
                entries.remove(max(entries, key=lambda entry: (entry.modified_ms, entry.name)))
        yield from entries

    def directories(self, directory: str) -> Iterator[str]:
        with self._call("directories", directory) as is_short:
            found = [*self.disk.directories(directory)]
            if is_short and found:
                found.remove(max(found))
        yield from found

    def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:
        with self._call("put_if_absent", name):
            if self._struck == "late" and self.disk.version_of(name) is not None:
                self._process.world.delay(self.disk, name, data, self._process.txn)
                raise StoreError(f"No answer to the put of {name}.", url=self.url)
            with self.disk.writing(self._process.txn):
                is_put = self.disk.put_if_absent(name, data, within=within)
            if is_put and (COMMIT.match(name) or STATE.match(name)):
                self._process.puts.append((self.disk, name))
            return is_put and self._struck != "repeat"

    @contextlib.contextmanager
    def create(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:
        with self._call("create", name):
            is_torn = self._struck == "die after"
            with self.disk.create(name, within=within) as handle:
                yield handle
            if is_torn:
                self.disk.cut(name)

    def _call(self, operation: Operation, name: str) -> _Call:
        process, running = self._process, self._process.world.running
        kind = None if running is None or process.is_dead else running.at_call(operation, name)
        if process.is_dead or self._life != process.life:
            raise Death
        process.world.now_ms += 1
        if kind in ("die", "fail"):
            self._hit(kind, name)
        self._struck = kind
        return _Call(self, kind, operation, name)

    def _hit(self, kind: FaultKind, name: str) -> None:
        if kind in ("die", "die after", "down"):
            for disk, put in self._process.puts:
                disk.without_stray(put)
        if kind.startswith("die"):
            self._process.is_dead = True
            raise Death
        raise StoreError(f"A fault on purpose at {name}: {kind}.", url=self.url)


@dataclass(frozen=True, slots=True)
class _Call(contextlib.AbstractContextManager[bool, None]):
    """A call in progress, at whose end `kind` strikes; gives whether a listing of the log lacks its newest file."""

    store: ProcessStore
    kind: FaultKind | None
    operation: Operation
    name: str

    def __enter__(self) -> bool:
        return self.kind == "short" and self.operation in LISTINGS and self.name == self.store.disk.log_dir

    def __exit__(self, raised: object, *_: object) -> None:
        if raised is None and self.kind in ("lose", "down", "die after"):
            self.store._hit(self.kind, self.name)


class Running:
    """A step in progress. One that pauses runs in a thread of its own, which runs only while `go_on` waits for it."""

    def __init__(self, world: World, process: Process, work: Callable[[], None], strikes: tuple[Strike, ...]) -> None:
        self.world, self.process, self.begun_ms = world, process, world.now_ms
        self.replaced = {name: len(disk.past) for name, disk in world.disks.items()}
        """How often each table had been replaced when the step began."""
        process.puts.clear()
        self.wakes_at = 0
        self.is_done = False
        self._work, self._strikes = work, strikes
        self._counts: dict[Calls, int] = {"any": 0, "ask": 0, "effect": 0, "log": 0}
        self._down = 0
        self._error: BaseException | None = None
        self._thread: _Thread | None = None

    def go_on(self) -> None:
        """Runs until the step pauses or ends; raises what it raises, except its death."""
        self.world.running = self
        if self._thread is not None:
            self._thread.go_on()
        elif any(isinstance(strike.kind, int) for strike in self._strikes):
            self._thread = _Thread.free()
            self._thread.run(self._run)
        else:
            self._run()
        self.world.running = None
        if self._error is not None:
            raise self._error

    def at_call(self, operation: str, name: str) -> FaultKind | None:
        """Gives what happens at this call, after others have run if the step pauses here."""
        is_effect = operation in EFFECTS
        kinds: list[Calls] = ["any", "effect" if is_effect else "ask"]
        if name.startswith(("_delta_log", LOG_DIR)) and (is_effect or operation in LISTINGS):
            kinds.append("log")
        for kind in kinds:
            self._counts[kind] += 1
        self.world.trace.append(f"  {self.process.name}{self.process.life} {operation} {name}")
        if self._down:
            self._down -= 1
            return "fail"
        due = [each.kind for each in self._strikes if each.calls in kinds and each.at == self._counts[each.calls]]
        for turns in due:
            if isinstance(turns, int) and self._thread is not None:
                self.wakes_at = self.world.tick + turns
                self._thread.pause()
        self._down = OUTAGE if "down" in due else 0
        return next((kind for kind in due if isinstance(kind, str)), None)

    def _run(self) -> None:
        try:
            self._work()
        except Death:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again in `go_on`
            self._error = error
        self.is_done = True


class _Thread:
    """A thread that runs steps that may pause, one after the other.

    It is used again because a new thread makes everything again that tablefeed keeps for each thread, such as DuckDB.
    """

    _free: ClassVar[list[_Thread]] = []

    def __init__(self) -> None:
        self._work: Callable[[], None] | None = None
        self._go, self._back = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._back.acquire()
        threading.Thread(target=self._serve, daemon=True).start()

    @classmethod
    def free(cls) -> _Thread:
        """Gives a thread that runs nothing now."""
        return cls._free.pop() if cls._free else cls()

    def run(self, work: Callable[[], None]) -> None:
        """Runs `work`, which must not raise, until it pauses or ends."""
        self._work = work
        self.go_on()

    def go_on(self) -> None:
        """Runs the rest of the work until it pauses again or ends."""
        self._go.release()
        self._back.acquire()

    def pause(self) -> None:
        """Called by the work: waits until `go_on` is called."""
        self._back.release()
        self._go.acquire()

    def _serve(self) -> None:
        while True:
            self._go.acquire()
            if self._work is not None:
                self._work()
            self._work = None
            self._free.append(self)
            self._back.release()
