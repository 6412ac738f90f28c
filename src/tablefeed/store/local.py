"""A store on the local disk: puts are exclusive by hard link and durable by fsync; changes come as system events.

A put writes a hidden temporary file beside the name, makes it durable and links it to the name. On every POSIX file
system the link fails where the name exists, and readers see only the whole file. Hadoop keeps a checksum of a file in
`.NAME.crc`, and its readers trust it. So each change of a file here removes its checksum.

Paths are `str` and calls go to `os`, not to pathlib: a listing may have 100,000 files.
"""
# ruff: noqa: D102, PTH103, PTH108, PTH112, PTH113, PTH116, PTH118, PTH119, PTH120, PTH123, PTH206, PTH208

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from tablefeed.errors import NotExclusiveError, ObjectNotFoundError
from tablefeed.store import durable
from tablefeed.store.base import Content, Elsewhere, Entry, Store, Within, check_after, failed, own_name, streamed
from tablefeed.store.local_names import checked_names
from tablefeed.store.wake import Wake

_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError)
"""Raised where there is no file; a directory is not a file. ValueError: the name has a NUL, which no file name can."""

_NO_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
"""The errors by which os.unlink reports that no file has the name. No file has one that is too long."""

COPIES_AT_ONCE = 8
"""Files of another store that are copied at the same time."""


class LocalStore:
    """Implements `tablefeed.store.base.Store` below the absolute path `root`.

    Where the file system has no hard links, making a file raises NotExclusiveError and leaves no file. `open_elsewhere`
    opens the stores of names that are URLs; without it those names are not found.
    """

    def __init__(
        self,
        root: str,
        *,
        open_elsewhere: Callable[[str], Store] | None = None,
        disk: durable.Disk | None = None,
        wake: Wake | None = None,
    ) -> None:
        self._root = os.path.normpath(root)
        self._elsewhere = Elsewhere(open_elsewhere)
        self._disk = disk or durable.Disk()
        self._wake = wake or Wake()
        self._settled: set[str] = set()
        self._top = self._root
        self._has_links = self._is_known_disk = False

    @property
    def url(self) -> str:
        """The root's absolute path."""
        return self._root

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        """Yields the files in `directory` from `start` on; see Store. Costs one stat for each entry yielded."""
        path = self._path(directory)
        try:
            names = sorted(n for n in os.listdir(path) if n >= start and not durable.is_temporary(n))
        except _ABSENT:
            return
        except OSError as error:
            raise failed("list", directory, error, url=self.url) from error
        for name in checked_names(names, url=self.url):
            entry = self._entry(os.path.join(path, name), name)
            if entry is not None:
                yield entry

    def directories(self, directory: str) -> Iterator[str]:
        try:
            with os.scandir(self._path(directory)) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except _ABSENT:
            return
        except OSError as error:
            raise failed("list", directory, error, url=self.url) from error
        yield from checked_names(names, url=self.url)

    def exists(self, name: str) -> bool:
        return self.stat(name) is not None

    def is_file_at_root(self) -> bool:
        return os.path.isfile(self._root)

    def read(self, name: str, *, start: int = 0, end: int | None = None) -> bytes:
        if (other := self._elsewhere.find(name)) is not None:
            return other[0].read(other[1], start=start, end=end)
        size_bytes = self._regular(name).size_bytes
        try:
            with open(self._path(name), "rb") as file:
                if start:
                    file.seek(start)
                # `read(n)` allocates n bytes, so never ask for more than the file has.
                return file.read() if end is None else file.read(max(min(end, size_bytes) - start, 0))
        except _ABSENT as error:
            raise ObjectNotFoundError(url=self.url, name=name) from error
        except OSError as error:
            raise failed("read", name, error, url=self.url) from error

    def stat(self, name: str) -> Entry | None:
        if (other := self._elsewhere.find(name)) is not None:
            return other[0].stat(other[1])
        return self._entry(self._path(name), name)

    def open_input(self, name: str) -> BinaryIO:
        """Opens a file as a native pyarrow handle; see Store.

        The file is read, not memory-mapped: if it is truncated meanwhile, the reader gets an error and not a signal.
        """
        if (other := self._elsewhere.find(name)) is not None:
            return other[0].open_input(other[1])
        import pyarrow as pa

        self._regular(name)
        try:
            handle: BinaryIO = pa.OSFile(self._path(name), "rb")
        except _ABSENT as error:
            raise ObjectNotFoundError(url=self.url, name=name) from error
        except OSError as error:
            raise failed("open", name, error, url=self.url) from error
        return handle

    def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:
        path = self._own_path(name)
        directory, base_name = os.path.split(path)
        draft = None if within is None else within.draft
        with self._opened("put", name, within) as folder:
            if os.path.lexists(path):
                durable.refuse_unless_file(path)  # a caller that lost its put looks for the winner's file
                return False
            temporary = None if draft is None else draft.taken(directory, folder, data)
            if temporary is None:
                temporary = durable.temporary_name(base_name)
                folder.write_new(temporary, (data,) if isinstance(data, bytes) else data)
            try:
                created = self._linked(folder, temporary, name, within)
            except BaseException:
                folder.abandon(temporary)
                raise
            if created or draft is None:
                folder.abandon(temporary)
            else:
                draft.keep(directory, temporary, data)
            return created

    @contextlib.contextmanager
    def create(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:
        import pyarrow as pa

        path = self._own_path(name)
        directory = os.path.dirname(path)
        with self._opened("create", name, within) as folder:
            durable.make_empty(path)
            self._refuse_without_links(path, folder)
        try:
            with pa.OSFile(path, "wb") as handle:
                yield handle
            durable.sync_path(path, self._disk)
            durable.sync_path(directory, self._disk)
        except BaseException as error:
            durable.abandon(path)
            if isinstance(error, OSError):
                raise failed("write", name, error, url=self.url) from error
            raise

    @contextlib.contextmanager
    def publish(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:
        import pyarrow as pa

        path = self._own_path(name)
        directory, base_name = os.path.split(path)
        hidden_name = durable.temporary_name(base_name)
        temporary = os.path.join(directory, hidden_name)
        with self._opened("publish", name, within) as folder:
            try:
                durable.make_empty(temporary)
                with pa.OSFile(temporary, "wb") as handle:
                    yield handle
                durable.sync_path(temporary, self._disk)
                if not self._linked(folder, hidden_name, name, within):
                    durable.refuse_unless_file(path)
            finally:
                durable.abandon(temporary)

    def copy(self, names: Sequence[str], source: Store) -> None:
        """Copies files within this machine's disks without reading them here; see Store."""
        if not isinstance(source, LocalStore):
            streamed(self, names, source, at_once=COPIES_AT_ONCE)
            return
        from tablefeed.store.local_copies import copy_files

        paths = [(source._regular_path(name), self._own_path(name)) for name in names]  # noqa: SLF001 - its own class
        try:
            for directory in sorted({os.path.dirname(path) for _, path in paths}):
                self._settle(directory)
            left = copy_files(paths, self._disk)
        except OSError as error:
            raise failed("copy", str(error.filename or "files"), error, url=self.url) from error
        streamed(self, [names[index] for index in left], source, at_once=COPIES_AT_ONCE)

    def replace(self, name: str, data: bytes, *, within: Within | None = None) -> None:
        """Sets a file's content by renaming onto it; see Store."""
        base_name = os.path.basename(self._own_path(name))
        temporary = durable.temporary_name(base_name)
        with self._opened("replace", name, within) as folder:
            folder.write_new(temporary, (data,))
            ours = folder.identity(temporary)
            try:
                if within is not None:
                    within.check()
                # The checksum goes first: Hadoop reads a file without a checksum, but not one with a wrong checksum.
                folder.abandon(_checksum_name(base_name))
                folder.replace(temporary, base_name)
            except BaseException:
                folder.abandon(temporary)
                raise
            folder.sync()
            check_after(name, within, lambda: folder.remove(base_name, ours))

    def delete(self, name: str) -> None:
        """Removes a file and Hadoop's checksum of it; see Store."""
        path = self._own_path(name)
        directory, base_name = os.path.split(path)
        for doomed in (os.path.join(directory, _checksum_name(base_name)), path):
            try:
                os.unlink(doomed)
            except OSError as error:
                if error.errno not in _NO_FILE:
                    raise failed("delete", name, error, url=self.url) from error

    def sweep(self, directory: str, *, before_ms: int) -> int:
        top = self._path(directory)
        swept, waiting = 0, [top]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(folder) as found:
                    entries = list(found)
            except _ABSENT:
                continue
            except PermissionError as error:
                if folder == top:
                    raise failed("list", directory, error, url=self.url) from error
                continue
            except OSError as error:
                raise failed("list", directory, error, url=self.url) from error
            waiting += (entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
            swept += sum(_is_swept(entry, before_ms) for entry in entries if durable.is_own_temporary(entry.name))
        return swept

    def wait(self, directory: str, *, timeout_s: float) -> bool:
        return self._wake.wait(self._path(directory), timeout_s=timeout_s)

    def close(self) -> None:
        self._wake.close()
        self._elsewhere.close()

    def _path(self, name: str) -> str:
        # os.path.join gives an absolute name back as it is.
        return os.path.join(self._root, *checked_names((name,), url=self.url)) if name else self._root

    def _own_path(self, name: str) -> str:
        return self._path(own_name(name, url=self.url))

    def _regular_path(self, name: str) -> str:
        self._regular(name)
        return self._own_path(name)

    def _regular(self, name: str) -> Entry:
        """The entry of a regular file. A log may name a pipe or a device, and opening one can block forever."""
        entry = self._entry(self._path(name), name)
        if entry is None:
            raise ObjectNotFoundError(url=self.url, name=name)
        return entry

    def _entry(self, path: str, name: str) -> Entry | None:
        try:
            found = os.stat(path)
        except _ABSENT:
            return None
        except OSError as error:
            raise failed("look at", name, error, url=self.url) from error
        if not stat.S_ISREG(found.st_mode):
            return None
        return Entry(name=name, size_bytes=found.st_size, modified_ms=found.st_mtime_ns // 1_000_000)

    @contextlib.contextmanager
    def _opened(self, operation: str, name: str, within: Within | None) -> Iterator[durable.Folder]:
        """Opens the directory of `name`. Makes missing directories: all, or with `within` only those below its own."""
        folder: durable.Folder | None = None
        try:
            directory = os.path.dirname(self._own_path(name))
            if within is None:
                self._settle(directory)
                folder = durable.open_folder(directory, self._disk)
            else:
                above = self._path(within.directory)
                folder = durable.open_folder(above, self._disk)
                for part in os.path.relpath(directory, above).split(os.sep):
                    folder = folder if part == os.curdir else folder.below(part)
            yield folder
        except OSError as error:
            if within is not None and not os.path.isdir(self._path(within.directory)):
                hint = " Nothing was written there. It was deleted, or it is on the disk of another machine."
                raise ObjectNotFoundError(url=self.url, name=within.directory or "folder", hint=hint) from error
            raise failed(operation, name, error, url=self.url) from error
        finally:
            if folder is not None:
                folder.close()

    def _linked(self, folder: durable.Folder, temporary: str, name: str, within: Within | None) -> bool:
        """Links `temporary` to `name`, durably, while `within` holds; False where another file has the name."""
        if within is not None:
            within.check()
        ours, base_name = folder.identity(temporary), os.path.basename(name)
        # A checksum may be left of a file that was deleted without it, as by `rm _delta_log/*`.
        folder.abandon(_checksum_name(base_name))
        created = self._link(folder, temporary, base_name)
        if created:
            folder.sync()
            check_after(name, within, lambda: folder.remove(base_name, ours))
        return created

    def _link(self, folder: durable.Folder, temporary: str, base_name: str) -> bool:
        if not self._is_known_disk and folder.file_system().startswith("nfs"):
            raise NotExclusiveError(
                f"{self.url} is on NFS, where commits are not tested. Nothing was written. Put the table on a local "
                "disk or an object store.",
                url=self.url,
            )
        self._is_known_disk = True
        try:
            return folder.link(temporary, base_name)
        except OSError as error:
            if error.errno in durable.LINKS_REFUSED:
                raise NotExclusiveError(
                    f"The file system of {self.url} has no hard links ({error.strerror}), so two writers of one "
                    "version could both succeed. Nothing was written. Put the table on a file system with hard links "
                    "(ext4, xfs, btrfs, zfs, apfs).",
                    url=self.url,
                ) from error
            raise

    def _refuse_without_links(self, path: str, folder: durable.Folder) -> None:
        """Without hard links, removes the empty file at `path` and raises: no commit that names it could be made."""
        if self._has_links:
            return
        base_name = os.path.basename(path)
        linked = durable.temporary_name(base_name)
        try:
            self._link(folder, base_name, linked)
        except BaseException:
            durable.abandon(path)
            raise
        folder.abandon(linked)
        self._has_links = True

    def _settle(self, directory: str) -> None:
        """Makes `directory`.

        The entries of all directories that lead to it, from the root or the first that was there, are made durable,
        whoever made them. Where a sync fails, the next call syncs up to the same directory, though all exist by then.
        """
        if directory in self._settled and os.path.isdir(directory):
            return
        there = below = directory
        while not os.path.isdir(there):
            there = os.path.dirname(there)
        top = self._top = min(there, self._top, key=len)
        os.makedirs(directory, exist_ok=True)
        while below != top:
            below = os.path.dirname(below)
            durable.sync_path(below, self._disk)
        self._top = self._root
        self._settled.add(directory)


def _is_swept(entry: os.DirEntry[str], before_ms: int) -> bool:
    """Removes a file last modified before `before_ms`; False where it is younger or cannot be removed."""
    try:
        found = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode) or found.st_mtime_ns // 1_000_000 >= before_ms:
            return False
        os.unlink(entry.path)
    except OSError:
        return False
    return True


def _checksum_name(base_name: str) -> str:
    return f".{base_name}.crc"
