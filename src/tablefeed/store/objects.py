"""Object stores that can also be written: puts are exclusive by a condition, and durable when the server answers.

The server refuses a put with the condition where the object exists. Some servers that imitate a cloud ignore the
condition. On such a server two writers of one version would both succeed, so writing to it is refused. Each process
tests this before its first write to a bucket, with an object of its own.

s3.py, gcs.py and azure.py send the requests of one cloud each; what the answers mean is decided here.
"""
# ruff: noqa: D102 - see Store

from __future__ import annotations

import contextlib
import functools
import random
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar
from weakref import WeakKeyDictionary

from fsspec.asyn import sync
from fsspec.exceptions import FSTimeoutError

from tablefeed.errors import NotExclusiveError, ObjectNotFoundError, StoreError
from tablefeed.store.base import Content, Entry, Pieces, Store, Within, check_after, failed, own_name, streamed
from tablefeed.store.ranges import Ranges
from tablefeed.store.remote import FsspecStore

PART_BYTES = 8 * 2**20
"""The size of one part of an upload, which is kept in memory. S3 takes 10,000 parts, so files of up to 80 GB."""

RENEWALS = 3
"""How often one request is sent again with renewed credentials, after the server refused them as expired."""

COPIES_AT_ONCE = 16
"""Objects that are copied at the same time."""

DEADLINE_S = 300.0
"""The longest time for one request with its repetitions, which is also enough for a large object on a slow network."""

FIRST_BYTES = 2**20
"""What opening an object reads of it: sent about as fast as the answer to a request without a body. Most files of
micro-batches are not larger, so one request reads them whole."""

_READING = ("look at", "read", "open", "copy")

_UNSIGNED = (
    *("NoCredentialsError", "PartialCredentialsError"),  # botocore
    *("DefaultCredentialsError", "RefreshError"),  # google.auth
    "ClientAuthenticationError",  # azure.core
)
"""The clients' errors for credentials that are absent or refused."""

_UNREACHED = (
    *("EndpointConnectionError", "ConnectTimeoutError"),  # botocore
    *("ClientConnectorError", "ClientConnectorDNSError"),  # aiohttp
    "ServiceRequestError",  # azure.core
)
"""The clients' errors for a server that cannot be reached."""

_exclusive: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""The buckets that passed the test in this process, by file system. Each set of options has its own file system."""

_ends_once: WeakKeyDictionary[Any, dict[str, bool]] = WeakKeyDictionary()
"""As `_exclusive`: whether an upload in parts passed the test, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One answer to a listing: objects as (key, size, time), and the keys of directories.

    `following` asks for the next page; None after the last.
    """

    objects: Sequence[tuple[str, int, object]]
    directories: Sequence[str]
    following: Any  # what the cloud gives for it


class ObjectStore(FsspecStore):
    """Implements `tablefeed.store.base.Store` below the URL of a bucket; `filesystem` is fsspec's for the cloud.

    A request that the server throttles, whose answer is lost or whose credentials have expired is sent again. After
    `DEADLINE_S` at the latest it fails with an error that names the object. If the answer to a successful put was lost,
    the repeated put gives False, as if another writer had won. Read the object to see whose it is.
    """

    condition: ClassVar[str]
    """The condition of a put that creates, as an error names it."""

    credentials: ClassVar[str]
    """Where a user gives credentials, as an error names it."""

    tries: ClassVar[int]
    """The most times that one request is sent here; the cloud's own client may repeat it besides."""

    _deadline_s = DEADLINE_S

    @abstractmethod
    def _page(self, prefix: str, start: str, following: Any) -> Page:
        """Lists what is directly below `prefix`. The listing may begin before the base name `start`, not after it."""

    @abstractmethod
    def _head(self, key: str) -> tuple[int, object]:
        """Gives an object's size and time; raises FileNotFoundError where there is none."""

    @abstractmethod
    def _first(self, key: str, count: int) -> tuple[bytes, int]:
        """Gives the first `count` bytes of an object and its size, by one request that may fail for an empty object."""

    @abstractmethod
    def _put(self, key: str, data: bytes, *, once: bool) -> None:
        """Sets an object. With `once`, an existing object is an error for which `_is_taken` is true."""

    @abstractmethod
    def _remove(self, key: str) -> None:
        """Deletes an object; a missing one is no error."""

    @abstractmethod
    def _upload(self, key: str) -> Any:
        """Opens an upload in parts: a file with `write`, `discard`, and a `close` that creates as `_put(once)`."""

    def _is_taken(self, error: Exception) -> bool:
        """Whether a put with the condition was refused since the object exists."""
        return isinstance(error, FileExistsError)

    def _may_pass(self, error: Exception) -> bool:  # noqa: ARG002 - others know such errors
        """Whether the same request may succeed a moment later."""
        return False

    def _is_expired(self, error: Exception) -> bool:  # noqa: ARG002 - others know such errors
        """Whether the server refused the credentials, and may accept newer ones."""
        return False

    def _renew(self) -> None:
        """Makes the client get its credentials again from their source."""

    def _remedy(self, error: Exception) -> str:
        status = str(getattr(error, "status_code", getattr(error, "code", "")))
        if isinstance(error, PermissionError) or type(error).__name__ in _UNSIGNED or status in ("401", "403"):
            return f"Give credentials that allow it: {self.credentials}."
        if type(error).__name__ in _UNREACHED:
            return "Check the network, and the server that the URL, the storage options or the environment name."
        return ""

    def _open(self, name: str) -> Any:
        try:
            first, size_bytes = self._first(self._key(name), FIRST_BYTES)
        except FileNotFoundError:
            raise
        except Exception:
            first, (size_bytes, _) = b"", self._head(self._key(name))
            if size_bytes:
                raise
        fetch = functools.partial(self._fetch, name)
        return Ranges(fetch, filesystem=self._fs, path=self._path(name), first=first, size_bytes=size_bytes)

    def _copied(self, key: str, source: ObjectStore, source_key: str, size_bytes: int) -> bool:  # noqa: ARG002
        """Lets the server copy an object of the same credentials; False where it cannot."""
        return False

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        """Yields the objects in `directory` from `start` on, requesting no others where the cloud can; see Store."""
        for prefix, page in self._pages(directory, start):
            for key, size_bytes, modified in page.objects:
                base_name = key.removeprefix(prefix)
                if base_name and base_name >= start:
                    yield self._entry(base_name, {"size": size_bytes, "LastModified": modified})

    def directories(self, directory: str) -> Iterator[str]:
        for prefix, page in self._pages(directory):
            for key in page.directories:
                if base_name := key.removeprefix(prefix).rstrip("/"):
                    yield base_name

    def stat(self, name: str) -> Entry | None:
        """Gives an object's entry by one request; see Store."""
        if (other := self._elsewhere.find(name)) is not None:
            return other[0].stat(other[1])
        try:
            with self._translated("look at", name):
                size_bytes, modified = self._head(self._key(name))
        except ObjectNotFoundError:
            return None
        return self._entry(name, {"size": size_bytes, "LastModified": modified})

    def is_file_at_root(self) -> bool:
        return bool(self._key("")) and self.stat("") is not None

    def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:
        """Creates an object whole and only once; see Store. There are no directories: of `within` only `check` is used.

        The name is free or taken when the server says so, however often the request was sent. `Pieces` are uploaded in
        parts if the server refuses the end of an upload of an object that exists, and are else put as a whole.
        """
        own_name(name, url=self.url)
        self._refuse_unless_exclusive()
        if isinstance(data, bytes) or not self._ends_uploads_once():
            with self._translated("put", name):
                whole = data if isinstance(data, bytes) else b"".join(data)
            if within is not None:
                within.check()
            created = self._put_if_absent(name, whole)
        else:
            created = self._put_pieces(name, data, within)
        if created:
            check_after(name, within, lambda: self.delete(name))
        return created

    @contextlib.contextmanager
    def create(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:  # noqa: ARG002 - none is made
        """Gives a buffered upload in parts, which becomes an object when the block ends; see Store."""
        own_name(name, url=self.url)
        self._refuse_unless_exclusive()
        with self._uploaded(name) as upload:
            yield upload

    @contextlib.contextmanager
    def publish(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:
        """Gives a buffered upload for an object that others may create with the same bytes; see Store."""
        own_name(name, url=self.url)
        self._refuse_unless_exclusive()
        with self._uploaded(name, may_exist=True) as upload:
            yield upload
            if within is not None:
                within.check()
        if upload.created:
            check_after(name, within, lambda: self.delete(name))

    def copy(self, names: Sequence[str], source: Store) -> None:
        """Lets the server copy objects that are read with the same credentials, and sends the others; see Store."""
        for name in names:
            own_name(name, url=self.url)
        self._refuse_unless_exclusive()
        if not isinstance(source, ObjectStore) or source._fs is not self._fs:  # noqa: SLF001 - its own class
            streamed(self, names, source, at_once=COPIES_AT_ONCE)
            return

        def left(name: str) -> str | None:
            found = source.stat(name)
            if found is None:
                raise ObjectNotFoundError(url=source.url, name=name)
            with self._translated("copy", name):
                done = self._copied(self._key(name), source, source._key(name), found.size_bytes)  # noqa: SLF001
            return None if done else name

        with ThreadPoolExecutor(COPIES_AT_ONCE) as pool:
            to_send = [name for name in pool.map(left, names) if name is not None]
        streamed(self, to_send, source, at_once=COPIES_AT_ONCE)

    def replace(self, name: str, data: bytes, *, within: Within | None = None) -> None:
        """Sets an object's content, which the server does atomically; see Store."""
        own_name(name, url=self.url)
        if within is not None:
            within.check()
        with self._translated("replace", name):
            self._put(self._key(name), data, once=False)
        check_after(name, within, lambda: self.delete(name))

    def delete(self, name: str) -> None:
        own_name(name, url=self.url)
        with self._translated("delete", name):
            self._remove(self._key(name))

    def __reduce__(self) -> Any:
        raise TypeError("A store is opened where it is used: a pickle of it would hold its credentials.")

    @property
    def _bucket(self) -> str:
        return self._root.partition("/")[0]

    def _key(self, name: str) -> str:
        return self._path(name).partition("/")[2]

    def _pages(self, directory: str, start: str = "") -> Iterator[tuple[str, Page]]:
        prefix, following = f"{self._key(directory)}/".removeprefix("/"), None
        asked: set[Any] = {None}
        while True:
            with self._translated("list", directory):
                page = self._page(prefix, start, following)
                following = page.following or None
                if following is not None and following in asked:
                    raise OSError("the server gives a page of the listing again, and would never end")
            yield prefix, page
            if following is None:
                return
            asked.add(following)

    def _request(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # Any: the clients have no types
        """Awaits `call`, which sends one request, and repeats it while `_may_pass`; all within the deadline."""
        end_s = time.monotonic() + self._deadline_s
        renewals = RENEWALS
        for attempt in range(self.tries):
            try:
                return sync(self._fs.loop, call, *args, timeout=max(end_s - time.monotonic(), 0.1), **kwargs)
            except FSTimeoutError as error:
                text = f"no answer within {self._deadline_s:g} s, so whether it was done is unknown"
                raise TimeoutError(text) from error
            except Exception as error:
                pause_s = random.uniform(0, 0.05 * 2**attempt)  # noqa: S311 - no secret
                expired = self._is_expired(error)
                renewals -= expired
                last = attempt == self.tries - 1 or time.monotonic() + pause_s > end_s or renewals < 0
                if expired and last:
                    raise PermissionError(f"the server refuses the credentials, also renewed ones: {error}") from error
                if last or not (expired or self._may_pass(error)):
                    raise
            self._sleep(pause_s)
            if expired:
                self._renew()
        raise AssertionError("the last attempt returns or raises")

    @contextlib.contextmanager
    def _translated(self, operation: str, name: str) -> Iterator[None]:
        """Raises our errors. Where no object is read, "not found" means that the bucket is missing."""
        try:
            with super()._translated(operation, name):
                yield
        except ObjectNotFoundError as error:
            if operation in _READING or error.name != name:
                raise
            gone = FileNotFoundError(f"there is no bucket or container {self._bucket}")
            raise failed(operation, name, gone, url=self.url, remedy="Create it, or correct the URL.") from error

    @contextlib.contextmanager
    def _uploaded(self, name: str, *, may_exist: bool = False) -> Iterator[Any]:  # Any: an _Upload, used as a file
        with self._translated("create", name):
            file = self._upload(self._key(name))
        if not may_exist:
            file.before_parts = functools.partial(self._refuse_existing, name)
        upload = _Upload(file, lambda: self._translated("write", name))
        try:
            yield upload
            with self._translated("write", name):
                try:
                    file.close()
                except Exception as error:
                    taken = self._is_taken(error)
                    if not (taken or isinstance(error, FileNotFoundError)):
                        raise
                    upload.created = False
                    # The upload has ended, or the name is taken. It may be our own file, whose answer was lost.
                    if not (taken and may_exist) and not self._has(name, file):
                        if taken:
                            raise self._exists_already(name) from error
                        raise
        except BaseException as error:
            with contextlib.suppress(Exception):
                file.discard()
            if isinstance(error, OSError):
                with self._translated("write", name):
                    raise
            raise
        finally:
            file.closed = True  # otherwise garbage collection would send the failed upload

    def _refuse_existing(self, name: str) -> None:
        if self.exists(name):
            raise self._exists_already(name)

    def _exists_already(self, name: str) -> StoreError:
        return StoreError(f"Could not create {name} at {self.url}: it exists.", url=self.url)

    def _has(self, name: str, file: Parts) -> bool:
        """Whether the object is what was written to `file`. Of parts, only the size is compared.

        Before parts are sent it is checked that the name is free, and nobody else knows the name.
        """
        if file.whole is not None:
            return bool(self._fetch(name, 0, None) == file.whole)
        return self._head(self._key(name))[0] == file.tell()

    def _put_if_absent(self, name: str, data: bytes) -> bool:
        with self._translated("put", name):
            try:
                self._put(self._key(name), data, once=True)
            except Exception as error:
                if not self._is_taken(error):
                    raise
                return False
            return True

    def _put_pieces(self, name: str, data: Pieces, within: Within | None) -> bool:
        if self.exists(name):
            return False
        with self._uploaded(name, may_exist=True) as upload:
            for piece in data:
                upload.write(piece)
            if within is not None:
                within.check()
        return bool(upload.created)

    def _ends_uploads_once(self) -> bool:
        """Whether the server refuses the end of an upload if the object was put after the upload had begun.

        Some servers heed the condition of a put alone. Each process tests this before its first put of `Pieces`.
        """
        known = _ends_once.setdefault(self._fs, {})
        if self._bucket not in known:
            probe = f"_tablefeed_exclusive_{uuid.uuid4()}"
            with self._translated("put", probe):
                upload = self._upload(self._key(probe))
                try:
                    upload.begin()
                    self._put(self._key(probe), b"1", once=True)
                    known[self._bucket] = self._is_refused(upload)
                finally:
                    for undo in (upload.discard, functools.partial(self._remove, self._key(probe))):
                        with contextlib.suppress(Exception):
                            undo()
        return known[self._bucket]

    def _is_refused(self, upload: Parts) -> bool:
        try:
            upload.send(b"2", is_last=True)
        except Exception as error:
            if not self._is_taken(error):
                raise
            return True
        return False

    def _refuse_unless_exclusive(self) -> None:
        proven = _exclusive.setdefault(self._fs, set())
        if self._bucket in proven:
            return
        probe = f"_tablefeed_exclusive_{uuid.uuid4()}"  # hidden from Spark's listings and from VACUUM
        try:
            self._put_if_absent(probe, b"1")
            if self._put_if_absent(probe, b"2"):
                raise NotExclusiveError(
                    f"The server of {self.url} ignores '{self.condition}', so two writers of one version could both "
                    "succeed. Nothing was written. Use a server that supports it, such as the cloud's own, or write "
                    "to a local path.",
                    url=self.url,
                )
        finally:
            with contextlib.suppress(StoreError):
                self.delete(probe)
        proven.add(self._bucket)


@dataclass(slots=True)
class _Upload:
    """An upload in parts as a file that raises our errors: a part is sent while it is written."""

    _file: Any  # of the cloud
    _translated: Callable[[], AbstractContextManager[None]]
    created: bool = True  # False where the name was taken

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def write(self, data: bytes) -> int:
        with self._translated():
            return int(self._file.write(data))

    def tell(self) -> int:
        return int(self._file.tell())

    def flush(self) -> None:
        """Does nothing, as `close`: the object appears whole when the block ends."""

    def close(self) -> None:
        """See `flush`."""


class Parts:
    """An upload in parts. What fits into one part is an ordinary put; either way the object is created only once."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put
        self._buffer = bytearray()
        self._sent_bytes = 0
        self.closed = False
        self.before_parts: Callable[[], None] = lambda: None
        """Called before the first part is sent; its errors end the upload."""

    @property
    def whole(self) -> bytes | None:
        """All bytes, where they were put by one request; None where they were sent in parts."""
        return None if self._sent_bytes else bytes(self._buffer)

    def begin(self) -> None:
        """Begins an upload in parts, where the cloud wants that; `send` does so otherwise."""

    @abstractmethod
    def send(self, part: bytes, *, is_last: bool) -> None:
        """Sends the next part; the last one creates the object."""

    def discard(self) -> None:
        """Lets the server forget the parts."""

    def write(self, data: bytes) -> int:
        """Takes bytes, and sends each part that is full and not the last."""
        self._buffer += data
        while len(self._buffer) > PART_BYTES:
            if not self._sent_bytes:
                self.before_parts()
            self.send(bytes(self._buffer[:PART_BYTES]), is_last=False)
            self._sent_bytes += PART_BYTES
            del self._buffer[:PART_BYTES]
        return len(data)

    def tell(self) -> int:
        return self._sent_bytes + len(self._buffer)

    def close(self) -> None:
        """Creates the object."""
        if self.closed:
            return
        self.closed = True
        if self._sent_bytes:
            self.send(bytes(self._buffer), is_last=True)
        else:
            self._put(bytes(self._buffer))
