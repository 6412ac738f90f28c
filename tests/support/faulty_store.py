"""A store that wraps another and fails on demand: the fake for tests of commits and feeds.

    store = FaultyStore(MemoryStore(), faults=[Fault(operation="put_if_absent", at=3, when="after")])

The third put happens and its answer is lost. `calls` holds every call in order, for tests that count requests.
"""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Concatenate, Literal, NamedTuple, ParamSpec, TypeVar, cast

from tablefeed.errors import StoreError
from tablefeed.store import Content, Entry, Store, Within

P = ParamSpec("P")
R = TypeVar("R")

Operation = Literal[
    "list",
    "directories",
    "exists",
    "is_file_at_root",
    "read",
    "stat",
    "open_input",
    "put_if_absent",
    "create",
    "publish",
    "copy",
    "replace",
    "delete",
    "sweep",
    "wait",
]


class StoreCall(NamedTuple):
    """One call of a store's method; `name` is the object or directory, "" where there is none."""

    operation: Operation
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens at the `at`-th call (from 1) of `operation` (None: of any) whose name contains `name`.

    before: StoreError, and nothing was done. after: it was done, then StoreError: the answer is lost. again: a put was
    done, its answer was lost, and it is sent again. short: a read gives the first half of its bytes, a listing all but
    its last entry. Where there is a `hook`, it is called before or
    after the operation in place of the error: it may wait, run another writer, or raise any error.
    """

    operation: Operation | None
    at: int = 1
    when: Literal["before", "after", "again", "short"] = "before"
    name: str = ""
    hook: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        if self.at < 1:
            raise ValueError(f"calls are counted from 1: {self}")
        if self.when == "short" and self.operation not in ("read", "open_input", "list"):
            raise ValueError(f"only read, open_input and list can be short: {self}")
        if self.when == "again" and self.operation != "put_if_absent":
            raise ValueError(f"only put_if_absent can be sent again: {self}")


def _forwarded(method: Callable[Concatenate[Store, P], R]) -> Callable[Concatenate[FaultyStore, P], R]:
    """A method of FaultyStore that does, with faults, what the inner store's of the same name does."""
    operation = cast("Operation", method.__name__)

    def call(self: FaultyStore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._call(operation, str(next(iter((*args, *kwargs.values())), ""))):
            result: R = getattr(self._inner, operation)(*args, **kwargs)
        return result

    return call


class FaultyStore:
    """`inner` with `faults`. `calls` grows by one at each call, before the call does anything."""

    def __init__(self, inner: Store, *, faults: Sequence[Fault] = ()) -> None:
        self._inner, self._faults = inner, tuple(faults)
        self._counts = [0] * len(self._faults)
        self._lock = threading.Lock()
        self.calls: list[StoreCall] = []

    @property
    def url(self) -> str:
        return self._inner.url

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        """Yields the inner store's entries; the call counts when the iteration begins."""
        with self._call("list", directory) as short:
            entries = list(self._inner.list(directory, start=start))
        yield from entries[:-1] if short else entries

    def directories(self, directory: str) -> Iterator[str]:
        """Yields the inner store's directories; the call counts when the iteration begins."""
        with self._call("directories", directory):
            found = list(self._inner.directories(directory))
        yield from found

    def read(self, name: str, *, start: int = 0, end: int | None = None) -> bytes:
        with self._call("read", name) as short:
            data = self._inner.read(name, start=start, end=end)
        return data[: len(data) // 2] if short else data

    def open_input(self, name: str) -> BinaryIO:
        with self._call("open_input", name) as short:
            handle = self._inner.open_input(name)
        if not short:
            return handle
        with handle:
            data = handle.read()
        return io.BytesIO(data[: len(data) // 2])

    @contextlib.contextmanager
    def create(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:
        """See Store. An "after" fault is raised when the block has ended and the file exists."""
        with self._call("create", name), self._inner.create(name, within=within) as handle:
            yield handle

    @contextlib.contextmanager
    def publish(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:
        """See Store. An "after" fault is raised when the block has ended and the file exists."""
        with self._call("publish", name), self._inner.publish(name, within=within) as handle:
            yield handle

    def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:
        with self._call("put_if_absent", name) as again:
            if again:
                self._inner.put_if_absent(name, data)
            return self._inner.put_if_absent(name, data, within=within)

    exists = _forwarded(Store.exists)
    is_file_at_root = _forwarded(Store.is_file_at_root)
    stat = _forwarded(Store.stat)
    copy = _forwarded(Store.copy)
    replace = _forwarded(Store.replace)
    delete = _forwarded(Store.delete)
    sweep = _forwarded(Store.sweep)
    wait = _forwarded(Store.wait)

    def close(self) -> None:
        """Closes the inner store."""
        self._inner.close()

    def _call(self, operation: Operation, name: str) -> contextlib.AbstractContextManager[bool]:
        """Runs one call with its faults; gives whether it is cut short or sent again."""
        return self._with_faults(operation, name)

    @contextlib.contextmanager
    def _with_faults(self, operation: Operation, name: str) -> Iterator[bool]:
        due = self._due(operation, name)
        for fault in (f for f in due if f.when == "before"):
            self._strike(fault, name)
        yield any(f.when in ("short", "again") for f in due)
        for fault in (f for f in due if f.when == "after"):
            self._strike(fault, name)

    def _due(self, operation: Operation, name: str) -> Sequence[Fault]:
        due = []
        with self._lock:
            self.calls.append(StoreCall(operation, name))
            for index, fault in enumerate(self._faults):
                if fault.operation in (operation, None) and fault.name in name:
                    self._counts[index] += 1
                    if self._counts[index] == fault.at:
                        due.append(fault)
        return due

    def _strike(self, fault: Fault, name: str) -> None:
        if fault.hook is not None:
            fault.hook()
            return
        fate = "was not done" if fault.when == "before" else "was done, but its answer was lost"
        raise StoreError(
            f"A fault on purpose: {fault.operation or 'a call'} of {name} at {self.url} {fate}.", url=self.url
        )
