"""S3's requests, signed and sent by s3fs.

`If-None-Match: *` makes S3 refuse a put, or the end of an upload, where the object exists.
"""

from __future__ import annotations

import contextlib
from typing import Any

from fsspec.asyn import sync
from s3fs.core import S3_RETRYABLE_ERRORS

from tablefeed.store.objects import ObjectStore, Page, Parts
from tablefeed.store.ranges import part_of, range_header, total_bytes

MOST_COPIED_BYTES = 5 * 2**30
"""The largest object that S3 copies by one request; a larger one is read and sent."""

_TAKEN = ("PreconditionFailed", "412")
"""S3's codes for an object that exists; some servers send only the HTTP status."""

_CONTENDED = ("ConditionalRequestConflict", "409")
"""S3's codes for a conflict with another request for the object: nothing was written, and the put must be repeated."""


_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired")
"""S3's codes for credentials that have expired."""


class S3Store(ObjectStore):
    """Implements `ObjectStore` below the URL `s3://bucket/...`; `filesystem` is s3fs's, which repeats lost requests."""

    condition = "If-None-Match: *"
    credentials = "the storage options aws_access_key_id and aws_secret_access_key, or AWS's variables, files and roles"
    tries = 6  # for conflicts, with waits of about 1.5 s in all; s3fs repeats other requests itself

    def _page(self, prefix: str, start: str, following: Any) -> Page:
        after: dict[str, str] = {"StartAfter": prefix + _just_before(start)} if start else {}
        after = {"ContinuationToken": following} if following else after
        page = self._call("list_objects_v2", Bucket=self._bucket, Prefix=prefix, Delimiter="/", **after)
        if "IsTruncated" not in page:  # botocore takes any text, such as a proxy's page, for an empty listing
            raise OSError("the answer is not a listing of S3")
        return Page(
            objects=[(found["Key"], found["Size"], found["LastModified"]) for found in page.get("Contents", ())],
            directories=[found["Prefix"] for found in page.get("CommonPrefixes", ())],
            following=page["NextContinuationToken"] if page.get("IsTruncated") else None,
        )

    def _head(self, key: str) -> tuple[int, object]:
        found = self._call("head_object", Bucket=self._bucket, Key=key)
        return found["ContentLength"], found["LastModified"]

    def _fetch(self, name: str, start: int, end: int | None) -> bytes:
        place = {"Bucket": self._bucket, "Key": self._key(name)}
        data, content_range = self._request(_downloaded, self._fs, **place, **range_header(start, end))
        return part_of(data, content_range, start, end)

    def _first(self, key: str, count: int) -> tuple[bytes, int]:
        place = {"Bucket": self._bucket, "Key": key}
        data, content_range = self._request(_downloaded, self._fs, **place, **range_header(0, count))
        return data, total_bytes(content_range, data)

    def _put(self, key: str, data: bytes, *, once: bool) -> None:
        condition = {"IfNoneMatch": "*"} if once else {}
        self._call("put_object", Bucket=self._bucket, Key=key, Body=data, **condition)

    def _remove(self, key: str) -> None:
        # Not s3fs's rm: that lists first, and takes the name for a pattern.
        self._call("delete_object", Bucket=self._bucket, Key=key)

    def _upload(self, key: str) -> Any:
        return _Multipart(self, key)  # not s3fs's file: its requests have no deadline, and it stops at a conflict

    def _copied(self, key: str, source: ObjectStore, source_key: str, size_bytes: int) -> bool:
        if size_bytes > MOST_COPIED_BYTES:
            return False
        origin = {"Bucket": source._bucket, "Key": source_key}  # noqa: SLF001 - its own class
        self._call("copy_object", Bucket=self._bucket, Key=key, CopySource=origin)
        return True

    def _is_taken(self, error: Exception) -> bool:
        return isinstance(error, FileExistsError) or _code(error) in _TAKEN

    def _may_pass(self, error: Exception) -> bool:
        return _code(error) in _CONTENDED or isinstance(error, ConnectionResetError)

    def _is_expired(self, error: Exception) -> bool:
        return _code(error) in _EXPIRED

    def _renew(self) -> None:
        # A new session reads the credentials again from their files, variables and services.
        sync(self._fs.loop, self._fs.set_session, refresh=True, timeout=self._deadline_s)

    def _call(self, operation: str, **arguments: Any) -> Any:
        return self._request(self._fs._call_s3, operation, **arguments)  # noqa: SLF001 - call_s3 without a deadline


class _Multipart(Parts):
    """A multipart upload. S3 keeps the parts until it is completed or aborted."""

    def __init__(self, store: S3Store, key: str) -> None:
        super().__init__(lambda data: store._put(key, data, once=True))  # noqa: SLF001 - of this module
        self._store, self._call = store, store._call  # noqa: SLF001 - of this module
        self._place = {"Bucket": store._bucket, "Key": key}  # noqa: SLF001 - of this module
        self._parts: list[dict[str, object]] = []

    def begin(self) -> None:
        self._place["UploadId"] = self._call("create_multipart_upload", **self._place)["UploadId"]

    def send(self, part: bytes, *, is_last: bool) -> None:
        if "UploadId" not in self._place:
            self.begin()
        number = len(self._parts) + 1
        answer = self._call("upload_part", **self._place, PartNumber=number, Body=part)
        checksum = {name: answer[name] for name in ("ChecksumSHA256",) if name in answer}
        self._parts.append({"PartNumber": number, "ETag": answer["ETag"], **checksum})
        if is_last:
            self._complete()

    def _complete(self) -> None:
        parts = {"Parts": self._parts}
        try:
            self._call("complete_multipart_upload", **self._place, MultipartUpload=parts, IfNoneMatch="*")
        except Exception as error:
            if self._store._is_taken(error):  # noqa: SLF001 - as above
                with contextlib.suppress(Exception):
                    self.discard()
            raise

    def discard(self) -> None:
        if "UploadId" in self._place:
            self._call("abort_multipart_upload", **self._place)


async def _downloaded(filesystem: Any, **arguments: Any) -> tuple[bytes, str | None]:
    """Gives the bytes, and the header that says which part of how many they are."""
    answer = await filesystem._call_s3("get_object", **arguments)  # noqa: SLF001 - call_s3 without a deadline
    async with answer["Body"] as body:
        try:
            data = await body.read()
        except S3_RETRYABLE_ERRORS as error:
            raise ConnectionResetError("the answer broke off") from error
    return data, answer.get("ContentRange")


def _just_before(name: str) -> str:
    """Gives a key shortly before `name` in S3's order, since S3 lists only the keys after the one that it is given."""
    return name[:-1] + chr(ord(name[-1]) - 1) if name[-1] > " " else name[:-1]


def _code(error: Exception) -> str:
    """S3's code for an error; s3fs keeps botocore's error as the cause."""
    response = getattr(error.__cause__, "response", None)
    return str(response.get("Error", {}).get("Code")) if isinstance(response, dict) else ""
