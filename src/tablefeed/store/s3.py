"""S3 as a store that is written too: exclusive by conditional put, durable when it answers.

`If-None-Match: *` makes S3 refuse a put where the object exists. Servers that speak S3 do not all know the header, and
those that do not pass over it: two writers of one version would both win. So each process tries it out before its
first write to a bucket, on an object of its own.
"""

from __future__ import annotations

import contextlib
import random
import uuid
from collections.abc import Iterator
from typing import Any, BinaryIO
from weakref import WeakKeyDictionary

from tablefeed.errors import NotExclusiveError, ObjectNotFoundError, StoreError
from tablefeed.store.base import Entry, Within, own_name
from tablefeed.store.remote import FsspecStore

PART_BYTES = 8 * 2**20
"""What a file that is being written keeps in memory: S3 takes 10,000 parts, so files of up to 80 GB."""

_TAKEN = ("PreconditionFailed", "412")
"""S3's codes for an object that exists; some servers give the status alone."""

_CONTENDED = ("ConditionalRequestConflict", "409")
"""S3's codes where another request for the object came between: nothing was decided, and it asks to put again."""

PUTS = 6
"""How often one is put while others come between, with waits of 1.5 s at most in all; then the caller decides."""

_exclusive: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""The buckets that kept the promise in this process, by s3fs's file system, which is one for each set of options."""


class S3Store(FsspecStore):
    """Keeps `tablefeed.store.base.Store`'s promises below the URL `s3://bucket/...`; `filesystem` is s3fs's.

    Requests that S3 throttles or loses are sent again by s3fs. A put that is sent again after its answer was lost
    gives False, like one that a rival won: read back whose object stands.
    """

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        """Yields the objects in `directory` from `start` on, asking for no others; see Store."""
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
        if (other := self._find_elsewhere(name)) is not None:
            return other[0].stat(other[1])
        try:
            with self._translated("look at", name):
                found = self._fs.call_s3("head_object", Bucket=self._bucket, Key=self._key(name))
        except ObjectNotFoundError:
            return None
        return self._entry(name, {"size": found["ContentLength"], "LastModified": found["LastModified"]})

    def put_if_absent(self, name: str, data: bytes, *, within: Within | None = None) -> bool:
        """Creates an object whole and only once; see Store. S3 has no directories: of `within` the check counts."""
        own_name(name, url=self.url)
        self._refuse_unless_exclusive()
        if within is not None:
            within.check()
        created = self._put_if_absent(name, data)
        if created:
            self._check_after(name, within)
        return created

    @contextlib.contextmanager
    def create(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:  # noqa: ARG002 - none is made
        """Gives a buffered upload in parts, which becomes an object when the block ends; see Store."""
        own_name(name, url=self.url)
        self._refuse_unless_exclusive()
        if self.exists(name):
            raise StoreError(f"Could not create {name} at {self.url}: it exists.", url=self.url)
        with self._uploaded(name) as upload:
            yield upload

    @contextlib.contextmanager
    def publish(self, name: str, *, within: Within | None = None) -> Iterator[BinaryIO]:
        """Gives the same for an object that others may make alike; see Store."""
        own_name(name, url=self.url)
        self._refuse_unless_exclusive()
        with self._uploaded(name, may_exist=True) as upload:
            yield upload
            if within is not None:
                within.check()
        self._check_after(name, within)

    def replace(self, name: str, data: bytes, *, within: Within | None = None) -> None:
        """Sets an object's content, which S3 does whole; see Store."""
        own_name(name, url=self.url)
        if within is not None:
            within.check()
        with self._translated("replace", name):
            self._fs.pipe_file(self._path(name), data)
        self._check_after(name, within)

    def delete(self, name: str) -> None:
        """Removes an object; see Store."""
        own_name(name, url=self.url)
        with self._translated("delete", name):
            # Not s3fs's rm: that lists first, and takes the name for a pattern.
            self._fs.call_s3("delete_object", Bucket=self._bucket, Key=self._key(name))

    def _check_after(self, name: str, within: Within | None) -> None:
        try:
            if within is not None:
                within.check()
        except BaseException:
            self.delete(name)
            raise

    @property
    def _bucket(self) -> str:
        return self._root.partition("/")[0]

    def _key(self, name: str) -> str:
        return self._path(name).partition("/")[2]

    @contextlib.contextmanager
    def _uploaded(self, name: str, *, may_exist: bool = False) -> Iterator[BinaryIO]:
        with self._translated("create", name):
            upload = self._fs.open(self._path(name), "xb", block_size=PART_BYTES)
        try:
            yield upload
            with self._translated("write", name):
                try:
                    upload.close()
                except OSError as error:
                    if not (may_exist and _is_taken(error)):
                        raise
        except BaseException as error:
            with contextlib.suppress(Exception):
                upload.discard()
            if isinstance(error, OSError):
                with self._translated("write", name):
                    raise
            raise
        finally:
            upload.closed = True  # else what failed is sent after all when it is collected

    def _put_if_absent(self, name: str, data: bytes) -> bool:
        key = {"Bucket": self._bucket, "Key": self._key(name)}
        for attempt in range(PUTS):
            with self._translated("put", name):
                try:
                    self._fs.call_s3("put_object", **key, Body=data, IfNoneMatch="*")
                except OSError as error:
                    if _is_taken(error):
                        return False
                    if not _is_contended(error) or attempt == PUTS - 1:
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
                    f"The server of {self.url} passes over 'If-None-Match: *', so it cannot promise that of two "
                    "writers of one version only one wins. Nothing was written. Use a server that honours it, such as "
                    "Amazon S3, or write to a path of a local disk.",
                    url=self.url,
                )
        finally:
            with contextlib.suppress(StoreError):
                self.delete(probe)
        proven.add(self._bucket)


def _just_before(name: str) -> str:
    """Gives a text that S3 sorts before `name` and after most that come before it: it starts after what it is given."""
    return name[:-1] + chr(ord(name[-1]) - 1) if name[-1] > " " else name[:-1]


def _is_taken(error: BaseException | None) -> bool:
    """Whether S3 refused a conditional put since the object exists; s3fs keeps botocore's error as the cause."""
    if isinstance(error, FileExistsError):
        return True
    return _code(error) in _TAKEN


def _is_contended(error: BaseException) -> bool:
    return _code(error) in _CONTENDED


def _code(error: BaseException | None) -> str:
    response = getattr(error.__cause__, "response", None) if error is not None else None
    return str(response.get("Error", {}).get("Code")) if isinstance(response, dict) else ""
