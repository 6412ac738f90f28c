"""The thread that looks after tables while batches are written.

One thread of this process does the work, one table after another. It is a thread and not a process: Arrow does most of
the work without the interpreter's lock, no credentials are passed on, and nothing outlives this process. The thread is
no daemon: a short program that ends after its last `append` waits until the checkpoint is written.

The thread shares the interpreter's lock with the next commit. So it works in steps. While somebody waits for a commit
(`waited_for`), the next step is held back, for `PATIENCE_S` at most. So a commit that is quick competes with one step,
and not with a whole checkpoint.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - registers what ends the pools
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tablefeed.errors import TablefeedError

logger = logging.getLogger(__name__)


@contextmanager
def waited_for() -> Iterator[None]:
    """Holds back the steps of the work in the background while the block runs, because somebody waits for it."""
    with _WAY.taken():
        yield


def ask(key: tuple[str, ...], work: Callable[[], None]) -> None:
    """Does `work` in the background, in place of work with the same `key` that has not begun.

    The first part of `key` is the table's url, for messages.
    """
    _BACKGROUND.ask(key, work)


def make_way() -> None:
    """Ends a step of the work in the background: waits while somebody is waited for, `PATIENCE_S` at most."""
    _WAY.make()


def wait_until_done() -> None:
    """Waits until no work is left in the background."""
    _BACKGROUND.join()


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
            _return_memory()


def _return_memory() -> None:
    """Returns the memory that Arrow keeps after the work to the system: a batch of rows needs far less."""
    import pyarrow as pa  # the work has imported it

    pa.default_memory_pool().release_unused()


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

# When a program ends, Python waits for this thread, but first ends all pools of threads. The clients of object stores
# need those to look up hosts and to sign in. What is registered last runs first. There is no public name for it.
threading._register_atexit(wait_until_done)  # type: ignore[attr-defined]  # noqa: SLF001
