"""How bytes become durable and whole on a local disk. Knows paths and system calls, no store.

Paths are text and calls go to `os` throughout: a listing looks at 100,000 files.
"""
# ruff: noqa: PTH102, PTH108, PTH112, PTH120

from __future__ import annotations

import contextlib
import errno
import os
import re
import uuid

LINKS_REFUSED = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What os.link says, beside a new file in its own directory, where a file system has no hard links."""


class Disk:
    """The system calls that a disk may refuse. Tests put a disk in its place that does."""

    def write(self, fd: int, data: memoryview) -> int:
        """Writes some of `data` and says how much."""
        return os.write(fd, data)

    def sync(self, fd: int) -> None:
        """Returns when what was written through or to `fd` is durable."""
        os.fsync(fd)

    def link(self, source: str, target: str, *, folder: int) -> None:
        """Makes `target` another name of `source`, both in the open `folder`; FileExistsError where it exists."""
        os.link(source, target, src_dir_fd=folder, dst_dir_fd=folder)


class Folder:
    """An open directory. Names in it are of this directory, wherever its path leads by now."""

    def __init__(self, fd: int, disk: Disk) -> None:
        self.fd, self._disk = fd, disk

    def close(self) -> None:
        """Ends its use."""
        os.close(self.fd)

    def below(self, name: str) -> Folder:
        """Gives the directory `name` in this one, made durably where it is missing, in place of this one."""
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.fd)
                self.sync()
            return Folder(os.open(name, _DIRECTORY, dir_fd=self.fd), self._disk)
        finally:
            self.close()

    def write_new(self, name: str, data: bytes) -> None:
        """Creates the file `name` with `data`, durable. Where that fails nothing remains."""
        write_new(name, data, self._disk, folder=self.fd)

    def link(self, source: str, target: str) -> bool:
        """Makes `target` another name of the file `source`; False where another file has it."""
        try:
            self._disk.link(source, target, folder=self.fd)
        except FileExistsError:
            # A network file system that repeats a request whose answer it lost reports our own link so.
            return self.identity(source) == self.identity(target)
        return True

    def replace(self, source: str, target: str) -> None:
        """Gives the file `source` the name `target`, whatever had it."""
        os.replace(source, target, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def sync(self) -> None:
        """Makes its entries durable."""
        self._disk.sync(self.fd)

    def identity(self, name: str) -> tuple[int, int] | None:
        """Tells the file `name` apart from every other there is; None where there is none."""
        try:
            found = os.stat(name, dir_fd=self.fd)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def remove(self, name: str, identity: tuple[int, int] | None) -> None:
        """Removes the file `name` if it is still the one with `identity`."""
        if identity is not None and self.identity(name) == identity:
            self.abandon(name)

    def abandon(self, name: str) -> None:
        """As `abandon`, of a file in this directory."""
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self.fd)


def open_folder(path: str, disk: Disk) -> Folder:
    """Opens a directory, to be closed."""
    return Folder(os.open(path, _DIRECTORY), disk)


_DIRECTORY = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY


def temporary_name(base_name: str) -> str:
    """Gives a name in the same directory that no reader of logs or data takes for its own."""
    return f".{base_name}.{uuid.uuid4().hex}.tmp"


def is_temporary(base_name: str) -> bool:
    """Says whether `base_name` is one of `temporary_name`'s, or of another writer's that makes them alike."""
    return base_name.startswith(".") and base_name.endswith(".tmp")


def is_own_temporary(base_name: str) -> bool:
    """Says whether `base_name` is one of `temporary_name`'s; Hadoop's have dashes in their UUID."""
    return _OWN_TEMPORARY.fullmatch(base_name) is not None


_OWN_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp", re.DOTALL)


def make_empty(path: str) -> None:
    """Creates an empty file, not durable; raises FileExistsError where it exists. The mode honours the umask."""
    os.close(_open_new(path))


def write_new(path: str, data: bytes, disk: Disk, *, folder: int | None = None) -> None:
    """Creates `path` with `data`, durable. Where that fails nothing remains. The mode honours the umask.

    `path` begins at the open directory `folder`, if there is one.
    """
    fd = _open_new(path, folder=folder)
    try:
        try:
            left = memoryview(data)
            while left:
                left = left[disk.write(fd, left) :]
            disk.sync(fd)
        finally:
            os.close(fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path, dir_fd=folder)
        raise


def sync_path(path: str, disk: Disk) -> None:
    """Makes a file's bytes or a directory's entries durable."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        disk.sync(fd)
    finally:
        os.close(fd)


def make_directories(directory: str, disk: Disk) -> None:
    """Makes `directory` and its missing parents; the entries of those made are durable."""
    missing = []
    while not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for made in reversed(missing):
        # Another writer may make it at the same time; that a file has the name shows at the next step.
        with contextlib.suppress(FileExistsError):
            os.mkdir(made)
        sync_path(os.path.dirname(made), disk)


def remove_if_there(path: str) -> None:
    """Removes a file that may not exist."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(path)


def abandon(path: str) -> None:
    """Removes a file of ours that nobody refers to. Where the disk refuses, it stays: it is hidden or unreferenced."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def _open_new(path: str, *, folder: int | None = None) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
