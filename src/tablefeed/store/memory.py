"""A store in this process's memory, with exclusive and atomic puts. For tests and for temporary tables."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from tablefeed.errors import ObjectNotFoundError, StoreError
from tablefeed.store.base import Entry, Within, own_name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    data: bytes
    modified_ms: int


class MemoryStore:
    """Implements `tablefeed.store.base.Store`, for several threads and for as long as the object lives.

    `now_ms` gives the modification times. Absolute names are never found.
    """

    def __init__(self, name: str = "", *, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._name, self._now_ms = name, now_ms
        self._objects: dict[str, _Object] = {}
        self._condition = threading.Condition()
        self._news: dict[str, bool] = {}

    @property
    def url(self) -> str:
        """`memory:` and the store's name."""
        return f"memory:{self._name}"

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        """Yields the objects in `directory` from `start` on; see Store."""
        prefix = f"{directory.rstrip('/')}/" if directory else ""
        with self._condition:
            below = [name[len(prefix) :] for name in self._objects if name.startswith(prefix)]
        for base_name in sorted(name for name in below if "/" not in name and name >= start):
            entry = self.stat(prefix + base_name)
            if entry is not None:
                yield Entry(name=base_name, size_bytes=entry.size_bytes, modified_ms=entry.modified_ms)

    def directories(self, directory: str) -> Iterator[str]:
        """Yields the directories that the names of objects imply; see Store."""
        prefix = f"{directory.rstrip('/')}/" if directory else ""
        with self._condition:
            below = [name[len(prefix) :] for name in self._objects if name.startswith(prefix)]
        yield from sorted({name.partition("/")[0] for name in below if "/" in name})

    def exists(self, name: str) -> bool:
        """Says whether there is an object; see Store."""
        return name in self._objects

    def is_file_at_root(self) -> bool:
        """Gives False: the root is no object."""
        return False

    def read(self, name: str, *, start: int = 0, end: int | None = None) -> bytes:
        """Gives an object's bytes; see Store."""
        found = self._objects.get(name)
        if found is None:
            raise ObjectNotFoundError(url=self.url, name=name)
        return found.data[start:end]

    def stat(self, name: str) -> Entry | None:
        """Gives an object's entry; see Store."""
        found = self._objects.get(name)
        return Entry(name=name, size_bytes=len(found.data), modified_ms=found.modified_ms) if found else None

    def open_input(self, name: str) -> BinaryIO:
        """Opens an object as it is now; see Store."""
        return io.BytesIO(self.read(name))

    def put_if_absent(self, name: str, data: bytes, *, within: Within | None = None) -> bool:
        """Creates an object only once; see Store."""
        name = own_name(name, url=self.url)
        if name in self._objects:
            return False
        with self._checked(name, within), self._condition:
            if name in self._objects:
                return False
            self._set(name, data)
        return True

    @contextlib.contextmanager
    def create(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:  # noqa: ARG002 - none is made
        """Gives a handle to a new object, which appears when the block ends; see Store."""
        buffer = io.BytesIO()
        if self.exists(own_name(name, url=self.url)):
            raise self._exists_already(name)
        yield buffer
        if not self.put_if_absent(name, buffer.getvalue()):
            raise self._exists_already(name)

    @contextlib.contextmanager
    def publish(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:
        """Gives a handle to an object that appears when the block ends; see Store."""
        own_name(name, url=self.url)
        buffer = io.BytesIO()
        yield buffer
        self.put_if_absent(name, buffer.getvalue(), within=within)

    def replace(self, name: str, data: bytes, *, within: Within | None = None) -> None:
        """Sets an object's content; see Store."""
        name = own_name(name, url=self.url)
        with self._checked(name, within), self._condition:
            self._set(name, data)

    def delete(self, name: str) -> None:
        """Removes an object; see Store."""
        name = own_name(name, url=self.url)
        with self._condition:
            if self._objects.pop(name, None) is not None:
                self._notify(name)

    def sweep(self, directory: str, *, before_ms: int) -> int:  # noqa: ARG002 - a put is whole or not at all
        """Gives 0: nothing is ever half done."""
        return 0

    def wait(self, directory: str, *, timeout_s: float) -> bool:
        """Waits for another thread's change; see Store."""
        directory = directory.rstrip("/")
        with self._condition:
            seen = self._condition.wait_for(lambda: self._news.get(directory, True), timeout_s)
            self._news[directory] = False
        return seen

    def local_path(self, name: str) -> str | None:  # noqa: ARG002 - no name has one
        """Gives None."""
        return None

    def close(self) -> None:
        """Does nothing: nothing runs."""

    @contextlib.contextmanager
    def _checked(self, name: str, within: Within | None) -> Iterator[None]:
        """Runs the check before and after the block; if the second raises, deletes what the block put as `name`."""
        if within is None:
            yield
            return
        within.check()
        before = self._objects.get(name)
        yield
        ours = self._objects.get(name)
        if ours is before:
            return
        try:
            within.appeared(name)
            within.check()
        except BaseException:
            with self._condition:
                if self._objects.get(name) is ours:
                    self.delete(name)
            raise

    def _set(self, name: str, data: bytes) -> None:
        self._objects[name] = _Object(data=bytes(data), modified_ms=self._now_ms())
        self._notify(name)

    def _notify(self, name: str) -> None:
        self._news[name.rpartition("/")[0]] = True
        self._condition.notify_all()

    def _exists_already(self, name: str) -> StoreError:
        return StoreError(f"Could not create {name} at {self.url}: it exists.", url=self.url)
