"""Azure Blob Storage's requests, signed and sent by the client of adlfs. A listing of Azure cannot begin at a name.

`If-None-Match: *` makes the server refuse a put, or the end of an upload, where the blob exists. Requests are repeated
here, not by the client: its waits begin at 15 seconds.
"""

from __future__ import annotations

import contextlib
import functools
import io
import uuid
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    IncompleteReadError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.storage.blob import BlobBlock
from azure.storage.blob.aio import BlobPrefix

from tablefeed.errors import StoreConfigError
from tablefeed.store.objects import PART_BYTES, ObjectStore, Page, Parts
from tablefeed.store.ranges import total_bytes

_ONCE = {"match_condition": MatchConditions.IfMissing}
_TAKEN = ("BlobAlreadyExists", "ConditionNotMet")
_PASSING = (408, 429, 500, 502, 503, 504)
_PUBLIC = ".blob.core.windows.net"
_LOST = (ServiceRequestError, ServiceResponseError, IncompleteReadError)

MOST_PUT_BYTES = 2**20
"""The largest blob that is put by one request. Azure's client passes its bytes to aiohttp, which warns of more bytes.
The client would also split a very large blob into blocks whose ids two writers share."""


class AzureStore(ObjectStore):
    """Implements `ObjectStore` below the URL `abfs://container@account...`; `filesystem` is adlfs's."""

    condition = "If-None-Match: *"
    credentials = (
        "the storage options account_key, sas_token, or tenant_id with client_id and client_secret; or the identity of "
        "the machine or of `az login`"
    )
    tries = 10  # with waits of about 25 s in all

    def __init__(self, filesystem: Any, location: str, **options: Any) -> None:  # Any: as FsspecStore
        super().__init__(filesystem, location, **options)
        _refuse_another_account(filesystem.service_client, location, url=self.url)

    def _page(self, prefix: str, start: str, following: Any) -> Page:  # noqa: ARG002 - Azure knows no start
        container = self._fs.service_client.get_container_client(self._bucket)
        page: Page = self._call(functools.partial(_next_page, container, prefix, following))
        return page

    def _head(self, key: str) -> tuple[int, object]:
        found = self._call(self._blob(key).get_blob_properties)
        if _is_directory(found):
            raise FileNotFoundError(key)
        return found.size, found.last_modified

    def _fetch(self, name: str, start: int, end: int | None) -> bytes:
        return self._downloaded(self._key(name), start, None if end is None else end - start)[0]

    def _first(self, key: str, count: int) -> tuple[bytes, int]:
        data, content_range = self._downloaded(key, 0, count)
        return data, total_bytes(content_range, data)

    def _put(self, key: str, data: bytes, *, once: bool) -> None:
        if len(data) <= MOST_PUT_BYTES:
            self._call(self._blob(key).upload_blob, data, overwrite=not once)
        else:
            _Blocks(self, key, once=once).put(data)

    def _remove(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._call(self._blob(key).delete_blob)

    def _upload(self, key: str) -> Any:
        return _Blocks(self, key, once=True)

    def _is_taken(self, error: Exception) -> bool:
        return getattr(error, "error_code", None) in _TAKEN

    def _may_pass(self, error: Exception) -> bool:
        return isinstance(error, _LOST) or (isinstance(error, HttpResponseError) and error.status_code in _PASSING)

    def _is_expired(self, error: Exception) -> bool:
        # Azure's client discards its token after this answer.
        return isinstance(error, HttpResponseError) and error.status_code == 401

    def _downloaded(self, key: str, start: int, length: int | None) -> tuple[bytes, str | None]:
        found: tuple[bytes, str | None] = self._call(functools.partial(_downloaded, self._blob(key)), start, length)
        return found

    def _blob(self, key: str) -> Any:
        return self._fs.service_client.get_blob_client(self._bucket, key)

    def _call(self, operation: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return self._request(operation, *arguments, **options, retry_total=0)
        except ResourceNotFoundError as error:
            raise FileNotFoundError(str(error)) from error


class _Blocks(Parts):
    """An upload in blocks. Their ids are random, so the blocks of another writer are never used for ours."""

    def __init__(self, store: AzureStore, key: str, *, once: bool) -> None:
        super().__init__(lambda data: store._put(key, data, once=once))  # noqa: SLF001 - of this module
        self._store, self._key, self._condition = store, key, _ONCE if once else {}
        self._blocks: list[BlobBlock] = []

    def put(self, data: bytes) -> None:
        """Sends all of `data` in blocks, and creates the blob."""
        for start in range(0, len(data), PART_BYTES):
            self.send(data[start : start + PART_BYTES], is_last=start + PART_BYTES >= len(data))

    def send(self, part: bytes, *, is_last: bool) -> None:
        blob = self._store._blob(self._key)  # noqa: SLF001 - of this module
        self._blocks.append(BlobBlock(uuid.uuid4().hex))
        self._store._call(functools.partial(_staged, blob), self._blocks[-1].id, part)  # noqa: SLF001 - as above
        if is_last:
            self._store._call(blob.commit_block_list, self._blocks, **self._condition)  # noqa: SLF001 - as above


def _refuse_another_account(client: Any, location: str, *, url: str) -> None:
    """Raises StoreConfigError where `location` names an account, and the options lead to another one.

    A connection string, also the one in AZURE_STORAGE_CONNECTION_STRING, leads to its own account whatever the URL.
    """
    _, at, host = location.partition("://")[2].partition("/")[0].rpartition("@")
    named, reached = host.lower().partition(":")[0].replace(".dfs.", ".blob.", 1), client.primary_hostname.lower()
    account = named.partition(".")[0]
    is_known = client.account_name in (account, None)
    if at and named != reached and not (is_known and ("." not in named or not reached.endswith(_PUBLIC))):
        raise StoreConfigError(
            f"The URL {url} names the storage account {host}, but the storage options or environment variables lead to "
            f"{reached}. Nothing was read or written. Give the options of that account; where its host does not end "
            "with core.windows.net, also 'account_host', the host of its blobs.",
            url=url,
        )


def _is_directory(blob: Any) -> bool:
    """Whether an empty blob only marks a directory, as Hadoop's clients and hierarchical namespaces make them."""
    marks = {name.lower(): value for name, value in (blob.metadata or {}).items()}
    return blob.size == 0 and str(marks.get("hdi_isfolder")).lower() == "true"


async def _next_page(container: Any, prefix: str, following: Any, **options: Any) -> Page:
    by_page = container.walk_blobs(prefix, include=["metadata"], delimiter="/", **options).by_page(following)
    found = [item async for item in await anext(by_page)]
    blobs = [item for item in found if not isinstance(item, BlobPrefix) and not _is_directory(item)]
    return Page(
        objects=[(blob.name, blob.size, blob.last_modified) for blob in blobs],
        directories=[item.name for item in found if isinstance(item, BlobPrefix)],
        following=by_page.continuation_token,
    )


async def _staged(blob: Any, block_id: str, part: bytes, **options: Any) -> None:
    await blob.stage_block(block_id, io.BytesIO(part), len(part), **options)


async def _downloaded(blob: Any, start: int, length: int | None, **options: Any) -> tuple[bytes, str | None]:
    """Gives the bytes, and the header that says which part of how many they are."""
    answer = await blob.download_blob(offset=start if length else start or None, length=length, **options)
    return await answer.readall(), answer.properties.content_range
