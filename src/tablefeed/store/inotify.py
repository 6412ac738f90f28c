"""The changes of a directory's files as Linux reports them (inotify), at once. The C library is called by ctypes."""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from collections.abc import Iterator

_MODIFY, _CLOSE_WRITE, _MOVED, _CREATE, _DELETE = 0x2, 0x8, 0xC0, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _UNMOUNT, _OVERFLOW, _IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000
_ONLY_DIRECTORIES = 0x01000000

_WATCHED = _MODIFY | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLY_DIRECTORIES
_GONE = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _IGNORED
_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_READ_BYTES = 1 << 16


class Inotify:
    """Watches the files of one directory, not below it. Raises OSError where it cannot."""

    def __init__(self, directory: str) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = _checked(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), directory)
        try:
            _checked(libc.inotify_add_watch(self._fd, os.fsencode(directory), _WATCHED), directory)
            self._stop_fd = os.eventfd(0, os.EFD_CLOEXEC)
        except OSError:
            os.close(self._fd)
            raise
        self._process, self._lock, self._is_open = os.getpid(), threading.Lock(), True

    def names(self) -> Iterator[list[str]]:
        """Waits for changes, and gives the names of the files; "" where some changes are not known.

        Ends when the directory goes away, or after `stop`. Called once.
        """
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.register(self._stop_fd, select.POLLIN)
        try:
            while not any(fd == self._stop_fd for fd, _ in poll.poll()):
                names, is_gone = _parsed(os.read(self._fd, _READ_BYTES))
                yield names
                if is_gone:
                    return
        finally:
            with self._lock:
                self._is_open = False
                os.close(self._fd)
                os.close(self._stop_fd)

    def stop(self) -> None:
        """Ends `names` in another thread. A fork has a copy of this object, and must not end its parent's watch."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._is_open:  # afterwards another file may have the number
                os.eventfd_write(self._stop_fd, 1)


def _parsed(events: bytes) -> tuple[list[str], bool]:
    """The names of the changed files, and whether the directory went away."""
    names, at, is_gone = [], 0, False
    while at < len(events):
        _, mask, _, length = _HEAD.unpack_from(events, at)
        at += _HEAD.size + length
        is_gone = is_gone or bool(mask & _GONE)
        names.append("" if mask & _OVERFLOW else os.fsdecode(events[at - length : at].rstrip(b"\0")))
    return names, is_gone


def _checked(answer: int, directory: str) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), directory)
    return answer
