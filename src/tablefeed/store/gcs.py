"""Google Cloud Storage's requests (JSON API), signed and sent by gcsfs.

`ifGenerationMatch=0` makes the server refuse an upload where the object exists.
"""

from __future__ import annotations

import contextlib
import inspect
import json
from typing import Any

from gcsfs.core import GCSFileSystem, UnclosableBytesIO
from gcsfs.retry import HttpError, is_retriable

from tablefeed.store.objects import ObjectStore, Page, Parts
from tablefeed.store.ranges import part_of, range_header, total_bytes

_send = inspect.unwrap(GCSFileSystem._request)  # noqa: SLF001 - without its repetitions, which wait for seconds and log
_FIELDS = "items(name,size,updated),prefixes,nextPageToken"
_OBJECT = "b/{}/o/{}"
_ONCE = {"ifGenerationMatch": "0"}


class GcsStore(ObjectStore):
    """Implements `ObjectStore` below the URL `gs://bucket/...`; `filesystem` is the core class of gcsfs."""

    condition = "ifGenerationMatch=0"
    credentials = "the storage option token, GOOGLE_APPLICATION_CREDENTIALS, or the service account of the machine"
    tries = 10  # with waits of about 25 s in all

    def _page(self, prefix: str, start: str, following: Any) -> Page:
        start_offset = prefix + start if start else None
        asked = {"prefix": prefix, "delimiter": "/", "startOffset": start_offset, "pageToken": following}
        page = json.loads(self._call("GET", "b/{}/o", self._bucket, fields=_FIELDS, **asked)[1])
        return Page(
            objects=[(found["name"], int(found["size"]), found["updated"]) for found in page.get("items", ())],
            directories=page.get("prefixes", ()),
            following=page.get("nextPageToken"),
        )

    def _head(self, key: str) -> tuple[int, object]:
        found = json.loads(self._call("GET", _OBJECT, self._bucket, key)[1])
        return int(found["size"]), found["updated"]

    def _fetch(self, name: str, start: int, end: int | None) -> bytes:
        span = range_header(start, end)
        headers, data = self._call("GET", _OBJECT, self._bucket, self._key(name), alt="media", headers=span)
        return part_of(data, headers.get("Content-Range"), start, end)

    def _first(self, key: str, count: int) -> tuple[bytes, int]:
        headers, data = self._call("GET", _OBJECT, self._bucket, key, alt="media", headers=range_header(0, count))
        return data, total_bytes(headers.get("Content-Range"), data)

    def _put(self, key: str, data: bytes, *, once: bool) -> None:
        asked = {"uploadType": "media", "name": key, **(_ONCE if once else {})}
        self._call("POST", *self._uploads, data=data, headers={"Content-Type": "application/octet-stream"}, **asked)

    def _remove(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._call("DELETE", _OBJECT, self._bucket, key)

    def _upload(self, key: str) -> Any:
        return _Resumable(self, key)

    def _copied(self, key: str, source: ObjectStore, source_key: str, size_bytes: int) -> bool:  # noqa: ARG002 - any
        place = f"{_OBJECT}/rewriteTo/{_OBJECT}", source._bucket, source_key, self._bucket, key  # noqa: SLF001
        answer, copied = dict[str, Any](), -1
        while not answer.get("done"):
            answer = json.loads(self._call("POST", *place, json={}, rewriteToken=answer.get("rewriteToken"))[1])
            before, copied = copied, int(answer.get("totalBytesRewritten", 0))
            if copied <= before and not answer.get("done"):
                raise OSError(f"the server copies nothing more after {copied} bytes")
        return True

    def _may_pass(self, error: Exception) -> bool:
        return bool(is_retriable(error))

    def _is_expired(self, error: Exception) -> bool:
        return isinstance(error, HttpError) and str(error.code) == "401"

    def _renew(self) -> None:
        credentials = self._fs.credentials.credentials
        has_next = getattr(credentials, "refresh_token", True) or getattr(credentials, "refresh_handler", None)
        if credentials is not None and has_next:
            credentials.token = None  # gcsfs then requests another one

    @property
    def _uploads(self) -> tuple[str, str]:
        return self._fs._location + "/upload/storage/v1/b/{}/o", self._bucket  # noqa: SLF001 - has no public name

    def _call(self, method: str, *place: str, data: bytes = b"", **arguments: Any) -> tuple[Any, bytes]:
        body = UnclosableBytesIO(data) if data else None  # gcsfs begins at its start each time
        _, headers, _, answer = self._request(_send, self._fs, method, *place, data=body, **arguments)
        return headers, answer


class _Resumable(Parts):
    """A resumable upload. Google may store only the beginning of a part; its answer says how much."""

    def __init__(self, store: GcsStore, key: str) -> None:
        super().__init__(lambda data: store._put(key, data, once=True))  # noqa: SLF001 - of this module
        self._call, self._uploads, self._key = store._call, store._uploads, key  # noqa: SLF001 - of this module
        self._session = ""

    def begin(self) -> None:
        asked: dict[str, Any] = {"uploadType": "resumable", "name": self._key, **_ONCE}
        headers, _ = self._call("POST", *self._uploads, json={}, **asked)
        self._session = headers["Location"]

    def send(self, part: bytes, *, is_last: bool) -> None:
        if not self._session:
            self.begin()
        start, end = self._sent_bytes, self._sent_bytes + len(part)
        while start < end:
            span = {"Content-Range": f"bytes {start}-{end - 1}/{end if is_last else '*'}"}
            headers, answer = self._call("PUT", self._session, headers=span, data=part[start - end :])
            kept = int(headers["Range"].rpartition("-")[2]) + 1 if "Range" in headers else end if answer else start
            if kept <= start:
                raise OSError(f"the server stored nothing of the part that begins at byte {start}")
            start = kept

    def discard(self) -> None:
        if self._session:
            self._call("DELETE", self._session)
