"""What a store of bytes promises. local.py, memory.py and remote.py keep the promises, tests/store proves them.

A name is '/'-separated and relative to the store's root, and is taken literally: nothing is percent-decoded.
Where a method says so, a name may instead be an absolute path or a URL, as the logs of shallow clones have them.
Nothing but `tablefeed.errors` escapes from a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from tablefeed.errors import StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One stored object. `modified_ms` is in milliseconds since 1970 UTC.

    `name` is the base name where a directory was listed, and the name asked for where one object was.
    """

    name: str
    size_bytes: int
    modified_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Where an object may be put: only below a directory that exists, and only while `check` passes.

    `directory` must exist. The store never makes it; a directory below it is made. `check` is called right before the
    object appears and again right after. Where `check` raises, that error is raised, and the object is not there, or is
    deleted again. On a disk the object can only ever appear in the directory that was there before the first check, so
    never in one that was made anew under the same path.
    """

    directory: str
    check: Callable[[], None] = lambda: None


class Store(Protocol):
    """Bytes by name below a root. Safe to use from several threads, and not meant to cross processes."""

    @property
    def url(self) -> str:
        """Names the root in errors, without credentials."""
        ...

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        """Yields the files directly in `directory` whose base name is at or after `start`, sorted by name.

        The names are taken when the iteration begins; sizes and times are asked for as it goes, and a file that
        is gone by then is left out. No sub-directory and no temporary file of a put is yielded. A directory
        that does not exist yields nothing; "" is the root.
        """
        ...

    def directories(self, directory: str) -> Iterator[str]:
        """Yields the base names of the directories directly in `directory`, sorted; "" is the root.

        A link to a directory is none: what is below it is elsewhere. One that does not exist yields nothing. A store
        without directories of its own yields what names of objects make one.
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

        A range that reaches beyond the object gives what there is of it. `name` may be absolute.
        Raises ObjectNotFoundError where there is no object.
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

    def put_if_absent(self, name: str, data: bytes, *, within: Within | None = None) -> bool:
        """Creates the object and gives True, or gives False where it existed before and leaves that untouched.

        Of several writers of one name exactly one gets True. No reader sees a part of `data`, and after True it is
        durable. Raises ObjectNotFoundError where the directory of `within` is gone, NotExclusiveError, with nothing
        written, where the store cannot promise a single winner, and StoreError where the put failed or its outcome is
        unknown.
        """
        ...

    def create(self, name: str, *, within: Within | None = None) -> AbstractContextManager[BinaryIO]:
        """Gives a new file to write to, in bulk. It must not exist. Of `within` only the directory counts.

        When the block ends, the file and the directories that lead to it are durable; where the block raises,
        no file remains. An OSError within the block is taken for one of the file and raised as StoreError.
        Until the block ends, readers may see a part of the file: its name must not be known to anyone.
        """
        ...

    def publish(self, name: str, *, within: Within | None = None) -> AbstractContextManager[BinaryIO]:
        """Gives a new file to write to, in bulk, that appears under `name` when the block ends: whole and durable.

        Until then no reader sees it, and where the block raises or the process dies, none ever will. For a name whose
        writers all write the same: one that exists by then stays as it is, and that is no error. An OSError within
        the block is taken for one of the file and raised as StoreError.
        """
        ...

    def replace(self, name: str, data: bytes, *, within: Within | None = None) -> None:
        """Sets the object's content, whatever was there; readers see the old or the new whole. The last one wins."""
        ...

    def delete(self, name: str) -> None:
        """Removes the object. One that is not there is no error."""
        ...

    def sweep(self, directory: str, *, before_ms: int) -> int:
        """Removes what puts to `directory` left half done when they died, before `before_ms`; gives how many files.

        Of this store's own making alone. What cannot be removed stays: no listing has it.
        """
        ...

    def wait(self, directory: str, *, timeout_s: float) -> bool:
        """Waits until something in `directory` may have changed since the previous call; False after `timeout_s`.

        The first call gives True at once where the store can see changes: what happened before it is not known.
        A store that sees none sleeps and gives False. One consumer per store and directory.
        """
        ...

    def local_path(self, name: str) -> str | None:
        """Gives the plain path of `name`, or None where the store is not on this machine's disk."""
        ...

    def close(self) -> None:
        """Ends what the store keeps running. Further calls start it again."""
        ...


def own_name(name: str, *, url: str) -> str:
    """Gives `name` back where it stays below the root; raises StoreError where a write would leave the store."""
    if not name or name.startswith("/") or name.endswith("/") or ":/" in name or ".." in name.split("/"):
        raise StoreError(f"{name!r} names nothing below {url}, so it is neither written nor deleted.", url=url)
    return name


def failed(operation: str, name: str, error: Exception, *, url: str) -> StoreError:
    """Gives the StoreError for a foreign `error`, to be raised from it."""
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return StoreError(f"Could not {operation} {name or 'the root'} at {url}: {reason}.", url=url)
