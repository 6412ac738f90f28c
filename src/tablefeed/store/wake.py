"""Reports when a local directory may have changed, from the operating system's events and not by listing it.

A thread takes the events from the system: on Linux at once (inotify.py), elsewhere some milliseconds later by
watchfiles. An event comes after its change, so a listing made after the report shows the change.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Protocol

_STEP_MS = 3
"""How often watchfiles checks for collected events. It reports an event after two steps at most. The checks cost well
under 1% of a core."""

_TRUST_S = 1.0
"""The longest time without a report of a change. A network mount reports no changes of other machines, and a full queue
drops events. So after this time the answer is "may have changed"; one listing per second is cheap."""


class Changes(Protocol):
    """The changes of the files of one directory."""

    def names(self) -> Iterator[list[str]]:
        """Waits for changes, and gives the names of the files; "" where some are not known. Ends with the directory."""

    def stop(self) -> None:
        """Ends `names` in another thread."""


class DirectoryWatch:
    """Watches the files of one directory, not below it. Raises OSError or RuntimeError where it cannot start.

    Hidden files are not reported: temporary files and checksums come and go beside each file.
    """

    def __init__(self, directory: str, *, changes_of: Callable[[str], Changes] | None = None) -> None:
        self.news = threading.Event()
        self.news.set()  # Changes before the watch began are unknown.
        changes = (changes_of or _changes_of)(directory)
        self._thread = threading.Thread(target=_collect, args=(changes, self.news), name="tablefeed-watch", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # too many threads; a watch that is tried again and again must not keep files open
            changes.stop()
            for _ in changes.names():  # ends at once, and closes what it has opened
                pass
            raise
        # Also runs when the interpreter exits: the thread must have left native code by then.
        self.close = weakref.finalize(self, _end, changes, self._thread)

    @property
    def is_alive(self) -> bool:
        """False when the directory went away, the watcher failed, or this process is a fork of the one watching."""
        return self._thread.is_alive()


class Wake:
    """Reports changes in directories. A directory is watched from the first `wait` for it on.

    Where a directory cannot be watched (it does not exist yet, the system's limit on watches is reached) the answer is
    always "may have changed", and `wait` sleeps for at most a second.
    """

    def __init__(
        self,
        *,
        clock_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        start: Callable[[str], DirectoryWatch] = DirectoryWatch,
    ) -> None:
        self._clock_s, self._sleep, self._start = clock_s, sleep, start
        self._watches: dict[str, DirectoryWatch] = {}
        self._answer_due_s: dict[str, float] = {}
        self._lock = threading.Lock()

    def wait(self, directory: str, *, timeout_s: float) -> bool:
        """Waits until `directory` may have changed since the previous call; False after `timeout_s`."""
        watch = self._watch(directory)
        if watch is None:
            self._sleep(min(timeout_s, _TRUST_S))
            return True
        silent_s = max(self._answer_due_s[directory] - self._clock_s(), 0.0)
        watch.news.wait(min(timeout_s, silent_s))
        return self._take(directory, watch)

    def close(self) -> None:
        """Ends all watching."""
        with self._lock:
            watches = list(self._watches.values())
            self._watches.clear()
            self._answer_due_s.clear()
        for watch in watches:
            watch.close()

    def _take(self, directory: str, watch: DirectoryWatch) -> bool:
        now_s = self._clock_s()
        if not watch.news.is_set() and now_s < self._answer_due_s[directory]:
            return False
        # Cleared before the caller lists the directory: any later change is reported again.
        watch.news.clear()
        self._answer_due_s[directory] = now_s + _TRUST_S
        return True

    def _watch(self, directory: str) -> DirectoryWatch | None:
        with self._lock:
            watch = self._watches.get(directory)
            if watch is not None and watch.is_alive:
                return watch
            self._watches.pop(directory, None)
            now_s = self._clock_s()
            # A watch that failed to start is tried again after a while, not at each of a planner's many calls.
            if watch is None and now_s < self._answer_due_s.get(directory, now_s):
                return None
            if not os.path.isdir(directory):  # noqa: PTH112 - asked every few milliseconds
                return None
            self._answer_due_s[directory] = now_s + _TRUST_S
            try:
                self._watches[directory] = self._start(directory)
            except (OSError, RuntimeError):
                return None
            return self._watches[directory]


class Watchfiles:
    """The changes of a directory by watchfiles, whose native watcher collects them in a thread of its own."""

    def __init__(self, directory: str) -> None:
        # Imported where it is needed: it brings asyncio with it.
        from watchfiles._rust_notify import RustNotify

        self._directory, self._stopped = directory, threading.Event()
        self._notify = RustNotify([directory], False, False, 0, False, False)  # noqa: FBT003 - positional in its signature

    def names(self) -> Iterator[list[str]]:
        """See `Changes`."""
        own_paths = {self._directory, os.path.realpath(self._directory)}
        try:
            while True:
                # 0 means no timeout: when a timeout ends, the native code may drop an event that has just arrived.
                events = self._notify.watch(0, _STEP_MS, 0, self._stopped)
                if isinstance(events, str):
                    return
                paths = {path for _, path in events}
                if not paths.isdisjoint(own_paths):
                    return
                yield [path.rpartition("/")[2] for path in paths]
        finally:
            self._notify.close()

    def stop(self) -> None:
        """See `Changes`."""
        self._stopped.set()


def _changes_of(directory: str) -> Changes:
    if sys.platform != "linux":
        return Watchfiles(directory)
    from tablefeed.store.inotify import Inotify

    return Inotify(directory)


def _collect(changes: Changes, news: threading.Event) -> None:
    try:
        for names in changes.names():
            if any(not name.startswith(".") for name in names):
                news.set()
    finally:
        news.set()


def _end(changes: Changes, thread: threading.Thread) -> None:
    changes.stop()
    if thread is not threading.current_thread():
        thread.join(timeout=1.0)
