"""A store in this process's memory, with exclusive and atomic puts: for tests, ours and those of users (`mem://`)."""

from __future__ import annotations

import contextlib
import io
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from tablefeed.errors import ObjectNotFoundError, StoreConfigError, StoreError
from tablefeed.store.base import Content, Entry, Store, Within, check_after, failed, own_name, streamed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    data: bytes
    modified_ms: int


_OF_WORKERS = "PYTHON_WORKER_FACTORY_"
"""How the environment variables begin that Spark sets for its Python workers."""

_STORES: dict[str, MemoryStore] = {}


def at(url: str) -> MemoryStore:
    """Gives the store at `url`, the same one for the same text. It lives as long as the process.

    Raises StoreConfigError in a worker process of Spark, where what is written would be lost.
    """
    if any(name.startswith(_OF_WORKERS) for name in os.environ):
        raise StoreConfigError(
            f"{url} is in the memory of one process, and Spark has several. Use a path, or the URL of a store.", url=url
        )
    return _STORES.setdefault(url.rstrip("/"), MemoryStore(url.rstrip("/")))


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
        """`memory:` and the store's name; the URL by which `at` gives the store."""
        return self._name if "://" in self._name else f"memory:{self._name}"

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        """See Store."""
        below = self._below(directory)
        for base_name in sorted(name for name in below if "/" not in name and name >= start):
            found = self._objects.get(below[base_name])
            if found is not None:
                yield Entry(name=base_name, size_bytes=len(found.data), modified_ms=found.modified_ms)

    def directories(self, directory: str) -> Iterator[str]:
        """See Store."""
        yield from sorted({name.partition("/")[0] for name in self._below(directory) if "/" in name})

    def exists(self, name: str) -> bool:
        """See Store."""
        return name in self._objects

    def is_file_at_root(self) -> bool:
        """See Store."""
        return False

    def read(self, name: str, *, start: int = 0, end: int | None = None) -> bytes:
        """See Store."""
        found = self._objects.get(name)
        if found is None:
            raise ObjectNotFoundError(url=self.url, name=name)
        return found.data[start:end]

    def stat(self, name: str) -> Entry | None:
        """See Store."""
        found = self._objects.get(name)
        return Entry(name=name, size_bytes=len(found.data), modified_ms=found.modified_ms) if found else None

    def open_input(self, name: str) -> BinaryIO:
        """Opens an object as it is now, as a native pyarrow handle; see Store."""
        import pyarrow as pa

        handle: BinaryIO = pa.BufferReader(self.read(name))
        return handle

    def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:
        """See Store."""
        try:
            whole = data if isinstance(data, bytes) else b"".join(data)
        except OSError as error:
            raise failed("put", name, error, url=self.url) from error
        return own_name(name, url=self.url) not in self._objects and self._put(name, whole, within, once=True)

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

    def copy(self, names: Sequence[str], source: Store) -> None:
        """Copies one after the other, so that a test knows which comes first."""
        streamed(self, names, source, at_once=1)

    def replace(self, name: str, data: bytes, *, within: Within | None = None) -> None:
        """See Store."""
        self._put(own_name(name, url=self.url), data, within, once=False)

    def delete(self, name: str) -> None:
        """See Store."""
        name = own_name(name, url=self.url)
        with self._condition:
            if self._objects.pop(name, None) is not None:
                self._notify(name)

    def sweep(self, directory: str, *, before_ms: int) -> int:  # noqa: ARG002 - a put is whole or not at all
        """Gives 0: nothing is ever half done."""
        return 0

    def wait(self, directory: str, *, timeout_s: float) -> bool:
        """See Store."""
        directory = directory.rstrip("/")
        with self._condition:
            seen = self._condition.wait_for(lambda: self._news.get(directory, True), timeout_s)
            self._news[directory] = False
        return seen

    def close(self) -> None:
        """Does nothing: nothing runs."""

    def _below(self, directory: str) -> dict[str, str]:
        """The names of all objects below `directory`, by what follows it in them."""
        prefix = f"{directory.rstrip('/')}/" if directory else ""
        with self._condition:
            return {name[len(prefix) :]: name for name in self._objects if name.startswith(prefix)}

    def _put(self, name: str, data: bytes, within: Within | None, *, once: bool) -> bool:
        """Sets the object, `once` only where there is none, and says whether it did."""
        if within is not None:
            within.check()
        ours = _Object(data=bytes(data), modified_ms=self._now_ms())
        with self._condition:
            if once and name in self._objects:
                return False
            self._objects[name] = ours
            self._notify(name)
        check_after(name, within, lambda: self._remove(name, ours))
        return True

    def _remove(self, name: str, ours: _Object) -> None:
        with self._condition:
            if self._objects.get(name) is ours:
                self.delete(name)

    def _notify(self, name: str) -> None:
        self._news[name.rpartition("/")[0]] = True
        self._condition.notify_all()

    def _exists_already(self, name: str) -> StoreError:
        return StoreError(f"Could not create {name} at {self.url}: it exists.", url=self.url)
