"""Copies files from place to place on this machine's disks: many at a time, whole and durable, without reading them.

The system copies the bytes; on file systems that share blocks it copies none. A copy has no name until it is durable,
so where the process dies before, nothing is left. Paths are `str` and calls go to `os`, as in local.py.
"""
# ruff: noqa: PTH120

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tablefeed.store.durable import Disk, refuse_unless_file, sync_path

FILES_AT_ONCE = 256
"""Files that are open at the same time; a process may have some 1,000."""

THREADS = 8
"""Files that are copied and made durable at the same time: a disk makes many small files durable together."""

_NOT_HERE = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.EXDEV, errno.ENOSYS})
"""How systems report that they have no nameless files, or cannot name one."""


def copy_files(paths: Sequence[tuple[str, str]], disk: Disk) -> list[int]:
    """Copies the first path of each pair to the second, unless that exists; gives the indexes of those not copied.

    None is copied where the system has no files without names. The directories must exist. Raises OSError.
    """
    if not hasattr(os, "O_TMPFILE"):
        return list(range(len(paths)))
    left: list[int] = []
    with ThreadPoolExecutor(THREADS) as pool:
        for begin in range(0, len(paths), FILES_AT_ONCE):
            some = range(begin, min(begin + FILES_AT_ONCE, len(paths)))
            named = pool.map(lambda index: _copied(*paths[index], disk), some)
            left += [index for index, is_there in zip(some, named, strict=True) if not is_there]
    for directory in sorted({os.path.dirname(path) for _, path in paths}):
        sync_path(directory, disk)
    return left


def _copied(source: str, target: str, disk: Disk) -> bool:
    """Makes one copy; False where the system cannot."""
    directory, base_name = os.path.split(target)
    with contextlib.ExitStack() as opened:
        data = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        opened.callback(os.close, data)
        size_bytes = os.fstat(data).st_size
        try:
            copy = os.open(directory, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno in _NOT_HERE:
                return False
            raise
        opened.callback(os.close, copy)
        _fill(copy, data, size_bytes)
        disk.sync(copy)
        folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        opened.callback(os.close, folder)
        try:
            os.link(f"/proc/self/fd/{copy}", base_name, dst_dir_fd=folder, follow_symlinks=True)
        except OSError as error:
            if error.errno in _NOT_HERE:
                return False
            if error.errno != errno.EEXIST:
                raise
            refuse_unless_file(target)
        return True


def _fill(copy: int, data: int, size_bytes: int) -> None:
    while size_bytes:
        try:
            done = os.copy_file_range(data, copy, size_bytes)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
            done = os.sendfile(copy, data, None, size_bytes)  # from one file system to another, on older systems
        if not done:
            raise OSError(errno.EIO, "the file became shorter while it was copied")
        size_bytes -= done
