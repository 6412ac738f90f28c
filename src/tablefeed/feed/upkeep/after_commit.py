"""What a log needs after a commit: its checksum at once; checkpoint, cleanup and compaction in the background.

A batch must not wait for a checkpoint, so one thread of this process does that work, one table after another. It is a
thread and not a process: Arrow does most of the work without the interpreter's lock, no credentials are passed on, and
nothing outlives this process. The thread is no daemon: a short program that ends after its last `append` waits until
the checkpoint is written. Where Spark kills the worker before that, no half of a checkpoint is visible. The next commit
of any process then finds that a checkpoint is due, because the newest one is a whole interval back.

The thread shares the interpreter's lock with the next commit. So it works in steps. While somebody waits for a commit
(`waited_for`), the next step is held back, for `PATIENCE_S` at most. So a commit that is quick competes with one step,
and not with a whole checkpoint.

The commit is in the log before this begins. So nothing here raises a TablefeedError: a failure is logged as a warning,
and the work is tried again after a later commit.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

from tablefeed.delta.checkpoint.checksum_writer import FileCounts
from tablefeed.errors import TablefeedError
from tablefeed.feed.commit.transaction import Surroundings
from tablefeed.feed.snapshot.delta_log import DeltaSnapshot
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.upkeep.checksums import begin_checksums, put_checksum
from tablefeed.model.actions import Commit, Version

logger = logging.getLogger(__name__)

KEPT_TABLES = 64
"""For how many tables this process remembers which version it has looked after; others are looked at again."""


SHORT_LOG = 10
"""Below this version the log is read as a whole to make one checksum: by the usual interval it has no checkpoint yet.
In a longer log checksums begin with the next checkpoint, which counts the files anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepOptions:
    """What is done and how. `part_actions`, `top_level`: see `delta_checkpoint.CheckpointShape`.

    `compact_every`: each time so many versions are complete, counted from version 0, their commits are also written as
    one log compaction file. None or 1: never, because few readers use such a file, and no reader needs it.

    `index_interval` and `index_part_actions` apply to the JSON checkpoints of IndexTables tables. The first is the
    number of versions between two checkpoints (None: none is written), the second the most actions in one file (None:
    no limit). The defaults are IndexTables'.
    """

    checkpoint: bool = True
    clean_up: bool = True
    part_actions: int | None = None
    top_level: Literal["json", "parquet"] = "json"
    compact_every: int | None = None
    index_interval: int | None = 10
    index_part_actions: int | None = 100_000


USUAL = UpkeepOptions()
"""What is done by default."""


def now_ms() -> int:
    """Gives the time in ms since 1970 UTC."""
    return time.time_ns() // 1_000_000


def surroundings(upkeep: UpkeepOptions = USUAL) -> Surroundings:
    """Gives what `loop.commit` needs: this machine's clock, and what is due after the commit."""
    return Surroundings(now_ms=now_ms, sleep=time.sleep, on_committed=partial(after_commit, options=upkeep))


def after_commit(
    snapshot: Snapshot,
    commit: Commit,
    also_removed: FileCounts | None = None,
    *,
    options: UpkeepOptions = USUAL,
) -> None:
    """Does what is due after our `commit`, which made `snapshot`; returns as soon as its checksum is put.

    `also_removed`: see `transaction.Surroundings.on_committed`. Until it returns, one checksum is read and one is put,
    however long the log is. The rest is done in the background.
    """
    if isinstance(snapshot, DeltaSnapshot):  # IndexTables has no checksums
        _unless_it_fails("checksum", snapshot, lambda: _put_checksum(snapshot, commit, also_removed))
    look_after(snapshot, options)


def _put_checksum(snapshot: DeltaSnapshot, commit: Commit, also_removed: FileCounts | None) -> None:
    if not put_checksum(snapshot, commit, also_removed) and snapshot.version < SHORT_LOG:
        behind(snapshot, "checksum", lambda: begin_checksums(snapshot))


def look_after(snapshot: Snapshot, options: UpkeepOptions = USUAL) -> None:
    """Writes the checkpoint and the compaction that are due for the table seen as `snapshot`, in the background."""
    key, also = table_key(snapshot), False
    interval: int | None
    if isinstance(snapshot, DeltaSnapshot):
        interval, work = snapshot.properties.checkpoint_interval, partial(_look_after_delta, snapshot, options)
        also = _ends_compaction(snapshot.version, options)
    else:
        interval, work = options.index_interval, partial(_look_after_index, snapshot, options)
    due = options.checkpoint and interval is not None and is_due(snapshot.version, _asked.get(key), interval)
    if due:
        keep(_asked, key, snapshot.version)
    if due or also:
        _BACKGROUND.ask(key, lambda: _unless_replaced(snapshot, work))


@contextmanager
def waited_for() -> Iterator[None]:
    """Holds back the steps of the work in the background while the block runs, because somebody waits for it."""
    with _WAY.taken():
        yield


def behind(snapshot: Snapshot, what: str, work: Callable[[], object]) -> None:
    """Does `work` on the table in the background, in place of work on it with the same `what` that has not begun.

    A failure is only logged as a warning.
    """
    _BACKGROUND.ask((*table_key(snapshot), what), lambda: _unless_it_fails(what, snapshot, work))


def wait_until_done() -> None:
    """Waits until no work is left in the background."""
    _BACKGROUND.join()


# --- what is due ---------------------------------------------------------------------------------------------------

_asked: OrderedDict[tuple[str, str], int] = OrderedDict()
"""The newest version of each table that this process looked after, so that a failure is not repeated at each commit."""

_cleaned: OrderedDict[tuple[str, str], int] = OrderedDict()
"""The cutoff in ms up to which this process has cleaned up the log of each table. It moves once a day."""


def is_due(version: int, newest_checkpoint: int | None, interval: int) -> bool:
    """Whether a checkpoint of `version` is due where the newest one is `newest_checkpoint`.

    One is due at each multiple of the interval, as in Delta-Spark, and wherever the newest is an interval back: so a
    checkpoint that was never finished is replaced soon.
    """
    newest = newest_checkpoint or 0
    return version > newest and (version % interval == 0 or version - newest >= interval)


def _ends_compaction(version: int, options: UpkeepOptions) -> bool:
    return (
        options.compact_every is not None and options.compact_every > 1 and (version + 1) % options.compact_every == 0
    )


def table_key(snapshot: Snapshot) -> tuple[str, str]:
    """Gives what identifies a table in this process, also after it was made anew."""
    return snapshot.log.url, snapshot.metadata.table_id


def _unless_replaced(snapshot: Snapshot, work: Callable[[], None]) -> None:
    # Where the table was made anew, or the store does not say, the next commit asks again.
    if snapshot.head is not None and snapshot.log.head(snapshot.version) == snapshot.head:
        work()


def _look_after_index(snapshot: Snapshot, options: UpkeepOptions) -> None:
    from tablefeed.feed.upkeep.index_checkpoint import checkpoint_if_due

    if options.checkpoint and options.index_interval is not None:
        _WAY.make()
        most = options.index_part_actions
        checkpoint_if_due(snapshot, options.index_interval, part_actions=most, now_ms=now_ms())


def _look_after_delta(snapshot: DeltaSnapshot, options: UpkeepOptions) -> None:
    if options.compact_every and _ends_compaction(snapshot.version, options):
        from tablefeed.feed.upkeep.delta_checkpoint import write_compaction

        first = Version(snapshot.version + 1 - options.compact_every)
        _unless_it_fails("compaction", snapshot, lambda: write_compaction(snapshot, first))
    if options.checkpoint:
        _WAY.make()
        interval = snapshot.properties.checkpoint_interval
        if is_due(snapshot.version, _newest_checkpoint(snapshot), interval):
            _checkpoint(snapshot, options)


def _newest_checkpoint(snapshot: DeltaSnapshot) -> Version | None:
    """The newest whole checkpoint, of this version or, by another writer, of a later one."""
    checkpoint = snapshot.log.segment(without=snapshot.unreadable).checkpoint
    return max((log_file.version for log_file in checkpoint), default=None)


def _checkpoint(snapshot: DeltaSnapshot, options: UpkeepOptions) -> None:
    # Imported here: what a commit needs does not have to wait for it.
    from tablefeed.feed.upkeep.checksums import put_checksums_from
    from tablefeed.feed.upkeep.delta_checkpoint import CheckpointShape, write_checkpoint
    from tablefeed.feed.upkeep.delta_cleanup import clean_up

    shape = CheckpointShape(part_actions=options.part_actions, top_level=options.top_level)
    counts = write_checkpoint(snapshot, shape, before_step=_WAY.make)
    _WAY.make()
    _unless_it_fails("checksum", snapshot, lambda: put_checksums_from(snapshot, counts))
    cutoff_ms = snapshot.properties.log_cutoff_ms(now_ms=now_ms())
    if options.clean_up and _cleaned.get(table_key(snapshot)) != cutoff_ms:
        keep(_cleaned, table_key(snapshot), cutoff_ms)
        _unless_it_fails("cleanup", snapshot, lambda: clean_up(snapshot, now_ms=now_ms(), before_step=_WAY.make))


def keep(kept: OrderedDict[tuple[str, str], int], key: tuple[str, str], number: int) -> None:
    """Keeps `number` in `kept`, and drops the tables that were kept the longest ago."""
    kept[key] = number
    kept.move_to_end(key)
    while len(kept) > KEPT_TABLES:
        kept.popitem(last=False)


def _unless_it_fails(what: str, snapshot: Snapshot, work: Callable[[], object]) -> None:
    try:
        work()
    except TablefeedError as error:
        logger.warning("%s failed table=%s version=%d: %s", what, snapshot.log.url, snapshot.version, error)


# --- the thread ----------------------------------------------------------------------------------------------------


class _Background:
    """Work by table, one piece at a time. New work replaces the work that waits under the same key."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Starts with no work and no thread."""
        self._waiting: OrderedDict[tuple[str, ...], Callable[[], None]] = OrderedDict()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def ask(self, key: tuple[str, ...], work: Callable[[], None]) -> None:
        with self._lock:
            self._waiting[key] = work
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._run, name="tablefeed-upkeep", daemon=False)
                try:
                    thread.start()
                except RuntimeError as error:  # the interpreter is shutting down
                    logger.warning("upkeep not begun table=%s: %s", key[0], error)
                    self._waiting.clear()
                else:
                    self._thread = thread

    def join(self) -> None:
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
            _WAY.make()  # meanwhile newer work may replace the work that waits
            with self._lock:
                (url, *_), work = self._waiting.popitem(last=False)
            try:
                work()
            except Exception as error:
                logger.warning("upkeep failed table=%s: %s", url, error, exc_info=not isinstance(error, TablefeedError))


_BACKGROUND = _Background()

PATIENCE_S = 0.1
"""How long a step is held back at most: many writes, or a long one, must not prevent a checkpoint for ever."""


class _Way:
    """Lets the work that somebody waits for go first."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Starts with nobody who waits."""
        self._count, self._lock, self._free = 0, threading.Lock(), threading.Event()
        self._free.set()

    @contextmanager
    def taken(self) -> Iterator[None]:
        self._add(1)
        try:
            yield
        finally:
            self._add(-1)

    def make(self) -> None:
        self._free.wait(PATIENCE_S)

    def _add(self, one: int) -> None:
        with self._lock:
            self._count = max(self._count + one, 0)  # below zero where a block was entered before a fork
            if self._count:
                self._free.clear()
            else:
                self._free.set()


_WAY = _Way()


def _begin_anew() -> None:
    """Gives a forked child its own locks and an empty queue.

    A child has a copy of its parent's locks, but not the threads that hold them. It also has a copy of the queue, whose
    work the parent does. The objects stay the same: a block that was entered before the fork still uses them when it
    ends.
    """
    for each in (_BACKGROUND, _WAY):
        each.begin()


os.register_at_fork(after_in_child=_begin_anew)
