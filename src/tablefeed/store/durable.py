"""How bytes become durable and whole on a local disk. Knows paths and system calls, no store.

Paths are `str` and calls go to `os`, not to pathlib: a listing may have 100,000 files. Where an open directory `folder`
is given, a path is relative to it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import uuid
from collections.abc import Iterable
from pathlib import Path

LINKS_REFUSED = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""The errors by which os.link, for a new file and in its own directory, reports a file system without hard links."""


class Disk:
    """The system calls that can fail on a disk. Tests pass a disk that fails."""

    def write(self, fd: int, data: memoryview) -> int:
        """Writes some of `data` and gives the number of bytes written."""
        return os.write(fd, data)

    def sync(self, fd: int) -> None:
        """Returns when what was written through or to `fd` is durable."""
        os.fsync(fd)

    def file_system(self, fd: int) -> str:
        """Names the kind of file system, such as ext4 or nfs4; empty where Linux does not say."""
        device = os.fstat(fd).st_dev
        try:
            mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        except OSError:
            return ""
        number = f"{os.major(device)}:{os.minor(device)}"
        kinds = [mount.partition(" - ")[2].partition(" ")[0] for mount in mounts if mount.split(" ", 3)[2] == number]
        return kinds[-1] if kinds else ""

    def link(self, source: str, target: str, *, folder: int) -> None:
        """Makes `target` another name of `source`, both in the open `folder`; FileExistsError where it exists."""
        os.link(source, target, src_dir_fd=folder, dst_dir_fd=folder)


class Folder:
    """An open directory. Names are looked up in this directory, even if its path now leads to another one."""

    def __init__(self, fd: int, disk: Disk) -> None:
        self.fd, self._disk = fd, disk

    def close(self) -> None:
        """Closes the directory. A second call does nothing, because another file may have the number by then."""
        fd, self.fd = self.fd, _CLOSED
        if fd != _CLOSED:
            os.close(fd)

    def below(self, name: str) -> Folder:
        """Opens the directory `name` in this one, made durably where it is missing, and closes this one."""
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.fd)
                self.sync()
            return Folder(os.open(name, _DIRECTORY, dir_fd=self.fd), self._disk)
        finally:
            self.close()

    def file_system(self) -> str:
        """Names the kind of its file system; see Disk."""
        return self._disk.file_system(self.fd)

    def write_new(self, name: str, pieces: Iterable[bytes]) -> None:
        """Creates the file `name` of `pieces`, durable. If that fails, no file remains. The mode honours the umask."""
        fd = _open_new(name, folder=self.fd)
        try:
            try:
                for piece in pieces:
                    left = memoryview(piece)
                    while left:
                        left = left[self._disk.write(fd, left) :]
                self._disk.sync(fd)
            finally:
                os.close(fd)
        except BaseException:
            self.abandon(name)
            raise

    def touch(self, name: str) -> bool:
        """Sets the time of the file `name` to now; False where it is gone or the disk refuses."""
        try:
            os.utime(name, dir_fd=self.fd)
        except OSError:
            return False
        return True

    def link(self, source: str, target: str) -> bool:
        """Makes `target` another name of the file `source`; False where another file has that name."""
        try:
            self._disk.link(source, target, folder=self.fd)
        except FileExistsError:
            # A network file system may repeat a request whose answer it lost. It then reports our own link as existing.
            ours = self.identity(source)
            return ours is not None and ours == self.identity(target)
        return True

    def replace(self, source: str, target: str) -> None:
        """Renames the file `source` to `target`, replacing any file of that name."""
        os.replace(source, target, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def sync(self) -> None:
        """Makes the directory's entries durable."""
        self._disk.sync(self.fd)

    def identity(self, name: str) -> tuple[int, int] | None:
        """Gives device and inode of `name`, which no other existing file has; None where there is no such file."""
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
        """Does what the function `abandon` does, for a file in this directory."""
        abandon(name, folder=self.fd)


class Draft:
    """A durable temporary file that has no name of its own yet, for the next put of the same bytes.

    A commit that loses a version to another writer tries the next version, often with the same bytes. Making them
    durable takes longer than everything else between the look at the newest version and the put, and meanwhile the next
    version may be lost too. So the caller passes one draft to all of its puts in one directory, and calls `discard`
    after the last of them. One caller uses it at a time.
    """

    def __init__(self) -> None:
        self._directory, self._name = "", ""
        self._data: object = None

    def keep(self, directory: str, name: str, data: object) -> None:
        """Keeps the temporary file `name` with `data`, which lost its put."""
        self._directory, self._name, self._data = directory, name, data

    def taken(self, directory: str, folder: Folder, data: object) -> str | None:
        """Gives the temporary file with `data` in `directory`, opened as `folder`, to a put; None where there is none.

        `data` are bytes, or an object that equals only itself and always stands for the same bytes. The file's time is
        set to now, because the time of a commit's file says when the commit was made. The draft is empty afterwards: a
        file that differs is removed.
        """
        name, fits = self._name, (self._directory, self._data) == (directory, data)
        if not name or not fits or not folder.touch(name):
            self.discard()
            return None
        self._name = ""
        return name

    def discard(self) -> None:
        """Removes the file, if there is one."""
        if self._name:
            abandon(os.path.join(self._directory, self._name))  # noqa: PTH118 - a str, as everywhere here
            self._name = ""


def open_folder(path: str, disk: Disk) -> Folder:
    """Opens a directory; the caller closes it."""
    return Folder(os.open(path, _DIRECTORY), disk)


_DIRECTORY = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY

_CLOSED = -1

_LONGEST_NAME = 255
"""The bytes of the longest file name on the disks of Linux."""


def temporary_name(base_name: str) -> str:
    """Gives a new hidden name for the same directory, which readers of logs and data ignore."""
    end = f".{uuid.uuid4().hex}.tmp"
    begin = base_name.encode(errors="ignore")[: _LONGEST_NAME - len(end) - 1].decode(errors="ignore")
    return f".{begin}{end}"


def is_temporary(base_name: str) -> bool:
    """Says whether `base_name` is a temporary file's: from `temporary_name` or from a writer with the same pattern."""
    return base_name.startswith(".") and base_name.endswith(".tmp")


def is_own_temporary(base_name: str) -> bool:
    """Says whether `base_name` comes from `temporary_name`; Hadoop's temporary names have dashes in their UUID."""
    return _OWN_TEMPORARY.fullmatch(base_name) is not None


_OWN_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp", re.DOTALL)


def make_empty(path: str) -> None:
    """Creates an empty file, not durable; raises FileExistsError where it exists. The mode honours the umask."""
    os.close(_open_new(path))


def sync_path(path: str, disk: Disk) -> None:
    """Makes a file's bytes or a directory's entries durable."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        disk.sync(fd)
    finally:
        os.close(fd)


def abandon(path: str, *, folder: int | None = None) -> None:
    """Removes a file of ours that nothing refers to. Where the disk refuses, the file stays; no reader uses it."""
    with contextlib.suppress(OSError):
        os.unlink(path, dir_fd=folder)


def _open_new(path: str, *, folder: int | None = None) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)


def refuse_unless_file(path: str) -> None:
    """Raises OSError where `path`, a name that is taken, belongs to no file: to a directory, or to a broken link."""
    if not Path(path).is_file():
        raise FileExistsError(errno.EEXIST, "what has this name is not a file", path)
