"""S3 as a store that can also be written: puts are exclusive by a condition, and durable when S3 answers.

`If-None-Match: *` makes S3 refuse a put where the object exists. Some S3-compatible servers ignore the header. On such
a server two writers of one version would both succeed, so writing to it is refused. Each process tests this before its
first write to a bucket, with an object of its own.
"""
# ruff: noqa: D102 - see Store

from __future__ import annotations

import contextlib
import random
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, BinaryIO
from weakref import WeakKeyDictionary

from tablefeed.errors import NotExclusiveError, ObjectNotFoundError, StoreError
from tablefeed.store.base import Entry, Store, Within, check_after, own_name, streamed
from tablefeed.store.remote import FsspecStore

PART_BYTES = 8 * 2**20
"""The size of one part of an upload, which is kept in memory. S3 takes 10,000 parts, so files of up to 80 GB."""

MOST_COPIED_BYTES = 5 * 2**30
"""The largest object that S3 copies by one request; a larger one is read and sent."""

COPIES_AT_ONCE = 16
"""Objects that are copied at the same time."""

_TAKEN = ("PreconditionFailed", "412")
"""S3's codes for an object that exists; some servers send only the HTTP status."""

_CONTENDED = ("ConditionalRequestConflict", "409")
"""S3's codes for a conflict with another request for the object: nothing was written, and S3 asks to put again."""

PUTS = 6
"""The most attempts of one put under such conflicts, with waits of about 1.5 s in all; then the put fails."""

_exclusive: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""The buckets that passed the test in this process, by s3fs file system; each set of options has one of these."""


class S3Store(FsspecStore):
    """Implements `tablefeed.store.base.Store` below the URL `s3://bucket/...`; `filesystem` is s3fs's.

    s3fs sends requests again that S3 throttles or loses. If the answer to a successful put was lost, the repeated put
    gives False, as if another writer had won. Read the object to see whose it is.
    """

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        """Yields the objects in `directory` from `start` on, requesting no others; see Store."""
        prefix = f"{self._key(directory)}/".removeprefix("/")
        place = {"Bucket": self._bucket, "Prefix": prefix, "Delimiter": "/"}
        after: dict[str, str] = {"StartAfter": prefix + _just_before(start)} if start else {}
        while True:
            with self._translated("list", directory):
                page = self._fs.call_s3("list_objects_v2", **place, **after)
            for found in page.get("Contents", ()):
                base_name = found["Key"].removeprefix(prefix)
                if base_name and base_name >= start:
                    yield self._entry(base_name, {"size": found["Size"], "LastModified": found["LastModified"]})
            if not page.get("IsTruncated"):
                return
            after = {"ContinuationToken": page["NextContinuationToken"]}

    def stat(self, name: str) -> Entry | None:
        """Gives an object's entry by one request; see Store."""
        if (other := self._elsewhere.find(name)) is not None:
            return other[0].stat(other[1])
        try:
            with self._translated("look at", name):
                found = self._fs.call_s3("head_object", Bucket=self._bucket, Key=self._key(name))
        except ObjectNotFoundError:
            return None
        return self._entry(name, {"size": found["ContentLength"], "LastModified": found["LastModified"]})

    def put_if_absent(self, name: str, data: bytes, *, within: Within | None = None) -> bool:
        """Creates an object whole and only once; see Store. S3 has no directories: of `within` only `check` is used."""
        own_name(name, url=self.url)
        self._refuse_unless_exclusive()
        if within is not None:
            within.check()
        created = self._put_if_absent(name, data)
        if created:
            check_after(name, within, lambda: self.delete(name))
        return created

    @contextlib.contextmanager
    def create(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:  # noqa: ARG002 - none is made
        """Gives a buffered upload in parts, which becomes an object when the block ends; see Store."""
        own_name(name, url=self.url)
        self._refuse_unless_exclusive()
        if self.exists(name):
            raise StoreError(f"Could not create {name} at {self.url}: it exists.", url=self.url)
        with self._uploaded(name) as upload:
            yield upload.file

    @contextlib.contextmanager
    def publish(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:
        """Gives such an upload for an object that others may write with the same bytes; see Store."""
        own_name(name, url=self.url)
        self._refuse_unless_exclusive()
        with self._uploaded(name, may_exist=True) as upload:
            yield upload.file
            if within is not None:
                within.check()
        if upload.created:
            check_after(name, within, lambda: self.delete(name))

    def copy(self, names: Sequence[str], source: Store) -> None:
        """Lets S3 copy objects that are read with the same credentials, and sends the others; see Store."""
        for name in names:
            own_name(name, url=self.url)
        self._refuse_unless_exclusive()
        if not isinstance(source, S3Store) or source._fs is not self._fs:  # noqa: SLF001 - its own class
            streamed(self, names, source, at_once=COPIES_AT_ONCE)
            return

        def copied(name: str) -> str | None:
            found = source.stat(name)
            if found is None:
                raise ObjectNotFoundError(url=source.url, name=name)
            if found.size_bytes > MOST_COPIED_BYTES:
                return name
            origin = {"Bucket": source._bucket, "Key": source._key(name)}  # noqa: SLF001 - its own class
            with self._translated("copy", name):
                self._fs.call_s3("copy_object", Bucket=self._bucket, Key=self._key(name), CopySource=origin)
            return None

        with ThreadPoolExecutor(COPIES_AT_ONCE) as pool:
            large = [name for name in pool.map(copied, names) if name is not None]
        streamed(self, large, source, at_once=COPIES_AT_ONCE)

    def replace(self, name: str, data: bytes, *, within: Within | None = None) -> None:
        """Sets an object's content, which S3 does atomically; see Store."""
        own_name(name, url=self.url)
        if within is not None:
            within.check()
        with self._translated("replace", name):
            self._fs.pipe_file(self._path(name), data)
        check_after(name, within, lambda: self.delete(name))

    def delete(self, name: str) -> None:
        own_name(name, url=self.url)
        with self._translated("delete", name):
            # Not s3fs's rm: that lists first, and takes the name for a pattern.
            self._fs.call_s3("delete_object", Bucket=self._bucket, Key=self._key(name))

    @property
    def _bucket(self) -> str:
        return self._root.partition("/")[0]

    def _key(self, name: str) -> str:
        return self._path(name).partition("/")[2]

    @contextlib.contextmanager
    def _uploaded(self, name: str, *, may_exist: bool = False) -> Iterator[_Upload]:
        with self._translated("create", name):
            file = self._fs.open(self._path(name), "xb", block_size=PART_BYTES)
        upload = _Upload(file)
        try:
            yield upload
            with self._translated("write", name):
                try:
                    file.close()
                except OSError as error:
                    if not (may_exist and _is_taken(error)):
                        raise
                    upload.created = False
        except BaseException as error:
            with contextlib.suppress(Exception):
                file.discard()
            if isinstance(error, OSError):
                with self._translated("write", name):
                    raise
            raise
        finally:
            file.closed = True  # otherwise garbage collection would send the failed upload

    def _put_if_absent(self, name: str, data: bytes) -> bool:
        key = {"Bucket": self._bucket, "Key": self._key(name)}
        for attempt in range(PUTS):
            with self._translated("put", name):
                try:
                    self._fs.call_s3("put_object", **key, Body=data, IfNoneMatch="*")
                except OSError as error:
                    if _is_taken(error):
                        return False
                    if _code(error) not in _CONTENDED or attempt == PUTS - 1:
                        raise
                else:
                    return True
            self._sleep(random.uniform(0, 0.05 * 2**attempt))  # noqa: S311 - no secret
        raise AssertionError("the last attempt returns or raises")

    def _refuse_unless_exclusive(self) -> None:
        proven = _exclusive.setdefault(self._fs, set())
        if self._bucket in proven:
            return
        probe = f"_tablefeed_exclusive_{uuid.uuid4()}"  # hidden from Spark's listings and from VACUUM
        try:
            self._put_if_absent(probe, b"1")
            if self._put_if_absent(probe, b"2"):
                raise NotExclusiveError(
                    f"The server of {self.url} ignores 'If-None-Match: *', so two writers of one version could "
                    "both succeed. Nothing was written. Use a server that supports it, such as Amazon S3, or write to "
                    "a local path.",
                    url=self.url,
                )
        finally:
            with contextlib.suppress(StoreError):
                self.delete(probe)
        proven.add(self._bucket)


@dataclass(slots=True)
class _Upload:
    file: Any  # s3fs's, which has no types
    created: bool = True  # False where the name was taken


def _just_before(name: str) -> str:
    """Gives a key shortly before `name` in S3's order, since S3 lists only the keys after the one that it is given."""
    return name[:-1] + chr(ord(name[-1]) - 1) if name[-1] > " " else name[:-1]


def _is_taken(error: OSError) -> bool:
    """Whether S3 refused a conditional put since the object exists."""
    return isinstance(error, FileExistsError) or _code(error) in _TAKEN


def _code(error: OSError) -> str:
    """S3's code for an error; s3fs keeps botocore's error as the cause."""
    response = getattr(error.__cause__, "response", None)
    return str(response.get("Error", {}).get("Code")) if isinstance(response, dict) else ""
