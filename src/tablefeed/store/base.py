"""The contract of a store of bytes; tests/store checks it.

local.py implements it for a disk, and objects.py for object stores, with the requests of s3.py, gcs.py and azure.py.
remote.py only reads, by fsspec. vended.py gives a catalog's table the store of its location, and
feed/snapshot/catalog_log.py hides from its log what the catalog has not ratified.

A name is '/'-separated and relative to the store's root, and is taken literally: nothing is percent-decoded. Where a
method says so, a name may instead be an absolute path or a URL, as in the logs of shallow clones. A store raises only
errors of `tablefeed.errors`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from tablefeed.errors import ObjectNotFoundError, StoreError
from tablefeed.store.address import split_absolute
from tablefeed.store.durable import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One stored object. `modified_ms` is in milliseconds since 1970 UTC.

    `name` is the base name in a listing of a directory, and the requested name where one object was requested.
    """

    name: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Where an object may be put: only below a directory that exists, and only while `check` passes.

    The store never makes `directory` itself, but makes directories below it. `check` is called right before the object
    appears and again right after. Where `check` raises, that error is raised, and the object is not there, or is
    deleted again. On a disk the object can only ever appear in the directory that was there before the first check, so
    never in a new directory with the same path.

    `appeared` is called with the name of the object between the two, and must not raise. Where another object had the
    name already, that object is never deleted, and neither `appeared` nor the second check is called.

    `draft` is for puts of the same bytes under one name after the other, until one is free: see `durable.Draft`. A
    store without temporary files does not use it.
    """

    directory: str
    check: Callable[[], None] = lambda: None
    appeared: Callable[[str], None] = lambda _name: None
    draft: Draft | None = None


class Pieces(Protocol):
    """The bytes of an object that is too large for memory: some at a time, and the same at each iteration."""

    @property
    def size_bytes(self) -> int:
        """The number of bytes of all pieces."""
        ...

    def __iter__(self) -> Iterator[bytes]:
        """Yields the pieces in their order."""
        ...


Content = bytes | Pieces
"""What an object consists of."""


class Store(Protocol):
    """Bytes by name below a root. Safe to use from several threads; not meant to be sent to another process."""

    @property
    def url(self) -> str:
        """Names the root in errors, without credentials."""
        ...

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        """Yields the files directly in `directory` whose base name is at or after `start`, sorted by name.

        The names are read when the iteration begins, sizes and times while it runs; a file deleted in between is left
        out. Sub-directories and temporary files of puts are not yielded. A directory that does not exist yields
        nothing; "" is the root.
        """
        ...

    def directories(self, directory: str) -> Iterator[str]:
        """Yields the base names of the directories directly in `directory`, sorted; "" is the root.

        A link to a directory is left out: its files are elsewhere. A directory that does not exist yields nothing. A
        store without real directories yields those that the names of its objects imply.
        """
        ...

    def exists(self, name: str) -> bool:
        """Says whether an object `name` exists. A directory is not an object."""
        ...

    def is_file_at_root(self) -> bool:
        """Says whether the root itself is a file, so that nothing can be below it."""
        ...

    def read(self, name: str, *, start: int = 0, end: int | None = None) -> bytes:
        """Gives the bytes from `start` up to, not including, `end`; None is the object's end.

        Of a range that reaches beyond the object's end, the existing bytes are given. `name` may be absolute. Raises
        ObjectNotFoundError where there is no object.
        """
        ...

    def stat(self, name: str) -> Entry | None:
        """Gives the object's entry, or None where there is no object. `name` may be absolute."""
        ...

    def open_input(self, name: str) -> BinaryIO:
        """Opens the object as a seekable file that pyarrow reads; the caller closes it. `name` may be absolute.

        Raises ObjectNotFoundError where there is no object.
        """
        ...

    def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:
        """Creates the object and gives True, or gives False, and changes nothing, where it exists already.

        Of `Pieces` only some are in memory at once, except on an object store that cannot end an upload exclusively.
        Of several writers of one name exactly one gets True. No reader sees a part of `data`, and after True it is
        durable. Raises ObjectNotFoundError where the directory of `within` is gone, NotExclusiveError, with nothing
        written, where the store cannot promise a single winner, and StoreError where the put failed or its outcome is
        unknown.
        """
        ...

    def create(self, name: str, *, within: Within | None = None) -> AbstractContextManager[BinaryIO]:
        """Gives a new file for large writes. The name must not exist yet. Of `within` only `directory` is used.

        An object that exists stays as it is: StoreError is raised at once, or at the latest when the block ends.

        When the block ends, the file and the directories that lead to it are durable; where the block raises, no file
        remains. An OSError within the block is treated as the file's and raised as StoreError. Until the block ends,
        readers may see a part of the file, so nobody else may know its name.
        """
        ...

    def publish(self, name: str, *, within: Within | None = None) -> AbstractContextManager[BinaryIO]:
        """Gives a new file for large writes that appears as `name` when the block ends: whole and durable.

        Until then no reader sees it, and where the block raises or the process dies, none ever will. Use it for a name
        whose writers all write the same bytes: an object that exists by then stays as it is, and that is no error. An
        OSError within the block is treated as the file's and raised as StoreError.
        """
        ...

    def copy(self, names: Sequence[str], source: Store) -> None:
        """Makes objects `names` here, each with the bytes that `source` has under that name: whole and durable.

        Use it, as `publish`, for names whose writers all write the same bytes: an object that exists by then may stay
        or be replaced. Raises ObjectNotFoundError where `source` lacks one, and StoreError; some may be copied then.
        """
        ...

    def replace(self, name: str, data: bytes, *, within: Within | None = None) -> None:
        """Creates the object or replaces its content; readers see all old or all new bytes. The last writer wins."""
        ...

    def delete(self, name: str) -> None:
        """Removes the object. One that is not there is no error."""
        ...

    def sweep(self, directory: str, *, before_ms: int) -> int:
        """Removes files that interrupted puts left in or below `directory`; gives their number.

        Only files of this library's own puts that were modified before `before_ms` are removed. No link is followed. A
        file that cannot be removed stays; listings leave it out. So does one in a folder that may not be listed.
        """
        ...

    def wait(self, directory: str, *, timeout_s: float) -> bool:
        """Waits until something in `directory` may have changed since the previous call; False after `timeout_s`.

        The first call gives True at once where the store can see changes: changes before it are unknown. A store that
        cannot see changes sleeps and gives False. Only one consumer may wait per store and directory.
        """
        ...

    def close(self) -> None:
        """Ends the store's background work. Further calls start it again."""
        ...


class Elsewhere:
    """Finds the store of an object that a log names by URL, outside of the log's own store.

    Each store is opened once, by `open_root`, and closed by `close`. Without `open_root` none is found.
    """

    def __init__(self, open_root: Callable[[str], Store] | None) -> None:
        self._open_root = open_root
        self._stores: dict[str, Store] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> tuple[Store, str] | None:
        """Gives the store of an absolute URL and the name in it; None where `name` is no URL."""
        parts = split_absolute(name)
        if parts is None or self._open_root is None:
            return None
        root, below = parts
        with self._lock:
            if root not in self._stores:
                self._stores[root] = self._open_root(root)
            return self._stores[root], below

    def close(self) -> None:
        """Closes the stores that were opened."""
        with self._lock:
            stores = list(self._stores.values())
            self._stores.clear()
        for store in stores:
            store.close()


_CHUNK_BYTES = 1 << 20


def streamed(target: Store, names: Sequence[str], source: Store, *, at_once: int) -> None:
    """Does `Store.copy` by reading and writing, `at_once` objects at a time."""

    def stream(name: str) -> None:
        found, size_bytes = source.stat(name), 0
        if found is None:
            raise ObjectNotFoundError(url=source.url, name=name)
        with source.open_input(name) as data, target.publish(name) as copied:
            while chunk := data.read(_CHUNK_BYTES):
                copied.write(chunk)
                size_bytes += len(chunk)
            if size_bytes != found.size_bytes:
                raise StoreError(f"Only {size_bytes} bytes of {name} at {source.url} were read.", url=source.url)

    with ThreadPoolExecutor(at_once) as pool:
        for _ in pool.map(stream, names):
            pass


def own_name(name: str, *, url: str) -> str:
    """Gives `name` back where it lies below the root; raises StoreError where it does not."""
    if not name or name.startswith("/") or name.endswith("/") or ":/" in name or ".." in name.split("/"):
        raise StoreError(f"{name!r} is not a file below {url}, so it is neither written nor deleted.", url=url)
    return name


def check_after(name: str, within: Within | None, undo: Callable[[], None]) -> None:
    """Does what `within` asks for after an object appeared as `name`; where the check raises, calls `undo`."""
    try:
        if within is not None:
            within.appeared(name)
            within.check()
    except BaseException:
        undo()
        raise


def put_own(store: Store, path: str, data: bytes, *, within: Within | None) -> bool:
    """Puts a file with bytes that nobody else writes; False where another file has the name.

    The store gives False for a put of ours, too: one that it sent twice because the first answer was lost. Then the
    file is read back, and what `within` asks for is done.
    """
    if store.put_if_absent(path, data, within=within):
        return True
    if not holds(store, path, data):
        return False
    check_after(path, within, lambda: store.delete(path))
    return True


def holds(store: Store, path: str, data: Content) -> bool:
    """Reads the file `path`; says whether it is `data`. Raises StoreError if only its beginning is read."""
    if not isinstance(data, bytes):
        return _holds_pieces(store, path, data)
    try:
        found = store.read(path)
    except ObjectNotFoundError:
        return False
    if found and found != data and data.startswith(found):
        raise _cut_off(store, path)
    return found == data


def _holds_pieces(store: Store, path: str, data: Pieces) -> bool:
    """Does what `holds` does, reading a piece at a time up to the first one that differs."""
    entry = store.stat(path)
    if entry is None or entry.size_bytes != data.size_bytes:
        return False
    start = 0
    for piece in data:
        try:
            found = store.read(path, start=start, end=start + len(piece))
        except ObjectNotFoundError:
            return False
        if len(found) < len(piece):
            raise _cut_off(store, path)
        if found != piece:
            return False
        start += len(piece)
    return True


def _cut_off(store: Store, path: str) -> StoreError:
    return StoreError(f"Only the beginning of {path} at {store.url} was read.", url=store.url)


def failed(operation: str, name: str, error: Exception, *, url: str, remedy: str = "") -> StoreError:
    """Gives the StoreError for a foreign `error`, to be raised from it. `remedy` says what to do, if that is known."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    text = reason.partition("\n")[0].rstrip(".")  # Azure's errors continue with the whole answer
    return StoreError(f"Could not {operation} {name or 'the root'} at {url}: {text}. {remedy}".rstrip(), url=url)
