"""Any fsspec file system as a store to read from. Writing is refused; the object stores (objects.py) can be written.

On many of them fsspec's exclusive create first checks and then writes, so two writers can both succeed.
"""
# ruff: noqa: D102 - see Store

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, BinaryIO

from tablefeed.errors import NotExclusiveError, ObjectNotFoundError, StoreError, TablefeedError
from tablefeed.store.address import shown
from tablefeed.store.base import Elsewhere, Entry, Store, failed
from tablefeed.store.options import masked, shown_cause

_ABSENT = (FileNotFoundError, NotADirectoryError)
_MODIFIED_KEYS = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")
"""The keys under which fsspec's file systems report the modification time; the first one present counts."""


class FsspecStore:
    """Implements the reading half of `tablefeed.store.base.Store` below the URL `location`.

    `filesystem` is the fsspec file system for it, opened without a cache of listings; fsspec publishes no types. Texts
    in `hidden` are masked in errors. A name that is an absolute path starts at the bucket or container, as in Hadoop.
    """

    def __init__(
        self,
        filesystem: Any,
        location: str,
        *,
        open_elsewhere: Callable[[str], Store] | None = None,
        hidden: tuple[str, ...] = (),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._fs, self._hidden, self._sleep = filesystem, hidden, sleep
        self._url = shown(location)
        self._root = _path_in(filesystem, location)
        scheme, _, rest = location.partition("://")
        self._authority_root = _path_in(filesystem, f"{scheme}://{rest.partition('/')[0]}/")
        self._elsewhere = Elsewhere(open_elsewhere)

    @property
    def url(self) -> str:
        """The URL it was opened by, without credentials."""
        return self._url

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        """Yields the objects in `directory` from `start` on; see Store.

        fsspec cannot start a listing in the middle: the whole directory is listed, and names before `start` are left
        out.
        """
        path = self._path(directory)
        found = self._listed(directory)
        files = {str(info["name"]).rpartition("/")[2]: info for info in found if self._is_file_below(info, path)}
        for base_name in sorted(name for name in files if name and name >= start):
            yield self._entry(base_name, files[base_name])

    def directories(self, directory: str) -> Iterator[str]:
        path = self._path(directory).rstrip("/")
        places = [str(info["name"]).rstrip("/") for info in self._listed(directory) if info["type"] == "directory"]
        yield from sorted({place.rpartition("/")[2] for place in places if place != path})

    def exists(self, name: str) -> bool:
        return self.stat(name) is not None

    def is_file_at_root(self) -> bool:
        with self._translated("look at", ""):
            self._fs.invalidate_cache(self._root)
            return bool(self._fs.isfile(self._root))

    def read(self, name: str, *, start: int = 0, end: int | None = None) -> bytes:
        """Gives an object's bytes by one request for its range; see Store."""
        if (other := self._elsewhere.find(name)) is not None:
            return other[0].read(other[1], start=start, end=end)
        if end is not None and end <= start:
            if not self.exists(name):
                raise ObjectNotFoundError(url=self.url, name=name)
            return b""
        try:
            with self._translated("read", name):
                return self._fetch(name, start, end)
        except ObjectNotFoundError:
            raise
        except StoreError:
            # An object store refuses a range that begins at the object's end or after it: of an empty one, any range.
            entry = self.stat(name) if start or end is not None else None
            if entry is None or start < entry.size_bytes:
                raise
            return b""

    def stat(self, name: str) -> Entry | None:
        if (other := self._elsewhere.find(name)) is not None:
            return other[0].stat(other[1])
        path = self._path(name)
        try:
            with self._translated("look at", name):
                self._fs.invalidate_cache(path)
                info = self._fs.info(path)
        except ObjectNotFoundError:
            return None
        return self._entry(name, info) if info["type"] == "file" else None

    def open_input(self, name: str) -> BinaryIO:
        """Opens an object as a file that reads ranges ahead; see Store."""
        if (other := self._elsewhere.find(name)) is not None:
            return other[0].open_input(other[1])
        with self._translated("open", name):
            file = self._open(name)
        return io.BufferedReader(_Translated(file, lambda: self._translated("read", name)))

    def _fetch(self, name: str, start: int, end: int | None) -> bytes:
        data: bytes = self._fs.cat_file(self._path(name), start=start or None, end=end)
        return data

    def _open(self, name: str) -> Any:
        return self._fs.open(self._path(name), "rb")

    def _remedy(self, error: Exception) -> str:  # noqa: ARG002 - object stores know their errors
        """Says what the user can do about `error`; empty where that is not known."""
        return ""

    def _refused(self, *_: Any, **__: Any) -> Any:  # Any: ObjectStore overrides it as each of the methods below
        """Raises NotExclusiveError: no name can be written or deleted."""
        raise NotExclusiveError(
            f"The store at {self.url} can be read but not written: two writers of one version could both succeed "
            "there, and a commit would be lost. Nothing was written. Write to a local path, S3, Google Cloud Storage "
            "or Azure Blob Storage.",
            url=self.url,
        )

    put_if_absent = create = publish = copy = replace = delete = _refused

    def sweep(self, directory: str, *, before_ms: int) -> int:  # noqa: ARG002 - a put is whole or not at all
        """Gives 0: no object is ever half done."""
        return 0

    def wait(self, directory: str, *, timeout_s: float) -> bool:  # noqa: ARG002 - it sees no directory's changes
        """Sleeps for `timeout_s` and gives False: fsspec reports no changes."""
        self._sleep(timeout_s)
        return False

    def close(self) -> None:
        """Closes the stores of absolute names; connections belong to fsspec, which shares them."""
        self._elsewhere.close()

    def _path(self, name: str) -> str:
        if name.startswith("/"):
            return self._authority_root + name
        return f"{self._root}/{name}" if name else self._root

    def _listed(self, directory: str) -> Sequence[Mapping[str, Any]]:
        """The current entries of `directory`, read past fsspec's cache; none where there is no such directory."""
        path = self._path(directory)
        try:
            with self._translated("list", directory):
                self._fs.invalidate_cache(path)
                found: Sequence[Mapping[str, Any]] = self._fs.ls(path, detail=True)
        except ObjectNotFoundError:
            return ()
        return found

    def _is_file_below(self, info: Mapping[str, Any], path: str) -> bool:
        # Listing a file yields that file, and some stores keep an object for the directory itself.
        return info["type"] == "file" and str(info["name"]).rstrip("/") != path

    def _entry(self, name: str, info: Mapping[str, Any]) -> Entry:
        modified_ms = _milliseconds(next((info[key] for key in _MODIFIED_KEYS if info.get(key)), None))
        if modified_ms is None or info.get("size") is None:
            raise StoreError(
                f"The store at {self.url} does not report the size and the modification time of {name}. A "
                "commit's time may depend on it, so no table can be read here. Use another store.",
                url=self.url,
            )
        return Entry(name=name, size_bytes=int(info["size"]), modified_ms=modified_ms)

    @contextlib.contextmanager
    def _translated(self, operation: str, name: str) -> Iterator[None]:
        try:
            yield
        except TablefeedError:
            raise
        except _ABSENT as error:
            raise ObjectNotFoundError(url=self.url, name=name) from shown_cause(error, self._hidden)
        except Exception as error:  # noqa: BLE001 - whatever a file system raises
            remedy = self._remedy(error)
            text = masked(failed(operation, name, error, url=self.url, remedy=remedy).message, self._hidden)
            raise StoreError(text, url=self.url) from shown_cause(error, self._hidden)


class InputOver(io.RawIOBase):
    """A file to read from that gives the bytes and positions of `file`, and closes it."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any, /) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class _Translated(InputOver):
    """A file of fsspec that raises our errors."""

    def __init__(self, file: Any, translated: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__(file)
        self._translated = translated

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        with self._translated():
            return super().seek(offset, whence)

    def readinto(self, buffer: Any, /) -> int:
        with self._translated():
            return super().readinto(buffer)


def _path_in(filesystem: Any, location: str) -> str:
    # fsspec has no public name for this; every file system of its has the method.
    return str(filesystem._strip_protocol(location)).rstrip("/")  # noqa: SLF001


def _milliseconds(moment: object) -> int | None:
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    if isinstance(moment, datetime):
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return round(moment * 1000) if isinstance(moment, int | float) else None
