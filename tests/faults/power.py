"""A disk that loses its power: what was not made durable is gone, and what was deleted may be back.

This is the worst that POSIX allows. The bytes of a file are those of its last fsync, and none without one. The entries
of a directory are those of its last fsync, whatever was created, renamed or deleted there since.
"""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_DIRECTORY = -1
"""Stands for a directory, where a file would have its number."""


class Disk:
    """What is durable below `root`: at first all that is there. Files in the folders `kept` are always durable."""

    def __init__(self, root: Path, *, kept: Sequence[str] = ()) -> None:
        self._root, self._kept = root, kept
        self._numbers = itertools.count()
        self._files: dict[int, int] = {}  # by inode: a number that no other file ever had
        self._content: dict[int, _Content] = {}
        self._entries: dict[str, dict[str, int]] = {}
        self._lock = threading.Lock()
        for folder, _, names in os.walk(root):
            self._entries[folder] = self._listed(folder)
            for name in names:
                path = Path(folder, name)
                self._content[self._number(path.stat().st_ino)] = _Content.of(path)

    def created(self, fd: int) -> None:
        """Notes that `fd` is a new file: its inode may be that of a deleted one."""
        with self._lock:
            self._files[os.fstat(fd).st_ino] = next(self._numbers)

    def synced(self, fd: int) -> None:
        """Notes that the file or directory `fd` is durable as it is now."""
        path, found = Path(f"/proc/self/fd/{fd}"), os.fstat(fd)
        with self._lock:
            if stat.S_ISDIR(found.st_mode):
                folder = str(path.readlink())
                self._entries[folder] = self._listed(folder)
            else:
                self._content[self._number(found.st_ino)] = _Content.of(path)

    def lose_power(self) -> None:
        """Leaves below the root only what is durable."""
        with self._lock:
            kept = [path for folder in self._kept for path in (self._root / folder).rglob("*") if path.is_file()]
            contents = [(path, _Content.of(path)) for path in kept]
            for path in self._root.iterdir():
                shutil.rmtree(path)
            self._restore(str(self._root))
            for path, content in contents:
                path.parent.mkdir(parents=True, exist_ok=True)
                content.write(path)

    def _restore(self, folder: str) -> None:
        for name, number in self._entries.get(folder, {}).items():
            path = Path(folder, name)
            if number == _DIRECTORY:
                path.mkdir()
                self._restore(str(path))
            else:
                self._content.get(number, _NOTHING).write(path)

    def _listed(self, folder: str) -> dict[str, int]:
        with os.scandir(folder) as found:
            return {each.name: _DIRECTORY if each.is_dir() else self._number(each.inode()) for each in found}

    def _number(self, inode: int) -> int:
        if inode not in self._files:
            self._files[inode] = next(self._numbers)
        return self._files[inode]


class _Content(NamedTuple):
    """The bytes of a file, and its time in ns; None: now."""

    data: bytes
    modified_ns: int | None

    @classmethod
    def of(cls, path: Path) -> _Content:
        return cls(path.read_bytes(), path.stat().st_mtime_ns)

    def write(self, path: Path) -> None:
        path.write_bytes(self.data)
        if self.modified_ns is not None:
            os.utime(path, ns=(self.modified_ns, self.modified_ns))


_NOTHING = _Content(b"", None)
