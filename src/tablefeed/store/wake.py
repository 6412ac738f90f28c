"""Reports when a local directory may have changed, from the operating system's events and not by listing it.

watchfiles' native watcher collects the events in its own thread. A second thread, started here, takes them from it:
only a wait without a timeout loses no event. An event comes after its change, so a listing made after the report shows
the change.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

_STEP_MS = 3
"""How often the watcher checks for collected events. It reports an event after two steps at most. The checks cost well
under 1% of a core."""

_TRUST_S = 1.0
"""The longest time without a report of a change. A network mount reports no changes of other machines, and a full queue
drops events. So after this time the answer is "may have changed"; one listing per second is cheap."""


class DirectoryWatch:
    """Watches the files of one directory, not below it. Raises OSError or RuntimeError where it cannot start.

    Hidden files are not reported: temporary files and checksums come and go beside each file.
    """

    def __init__(self, directory: str) -> None:
        # Imported where it is needed: it brings asyncio with it.
        from watchfiles._rust_notify import RustNotify

        self.news = threading.Event()
        self.news.set()  # Changes before the watch began are unknown.
        stop = threading.Event()
        notify = RustNotify([directory], False, False, 0, False, False)  # noqa: FBT003 - positional in its signature
        work = (notify, directory, self.news, stop)
        self._thread = threading.Thread(target=_collect, args=work, name="tablefeed-watch", daemon=True)
        self._thread.start()
        # Also runs when the interpreter exits: the thread must have left native code by then.
        self.close = weakref.finalize(self, _end, stop, self._thread)

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


def _collect(notify: RustNotify, directory: str, news: threading.Event, stop: threading.Event) -> None:
    own_paths = {directory, os.path.realpath(directory)}
    try:
        while True:
            # 0 means no timeout: when a timeout ends, the native code may drop an event that has just arrived.
            events = notify.watch(0, _STEP_MS, 0, stop)
            if isinstance(events, str):
                return
            paths = {path for _, path in events}
            if not paths.isdisjoint(own_paths):
                return
            if any(not path.rpartition("/")[2].startswith(".") for path in paths):
                news.set()
    finally:
        news.set()
        notify.close()


def _end(stop: threading.Event, thread: threading.Thread) -> None:
    stop.set()
    if thread is not threading.current_thread():
        thread.join(timeout=1.0)
