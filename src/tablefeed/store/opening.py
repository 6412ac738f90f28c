"""Opens the store of a path or URL. Only this module chooses between the kinds of store."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tablefeed.catalog import names
from tablefeed.errors import StoreConfigError
from tablefeed.store import options
from tablefeed.store.address import Address, credentials, parse_address, shown
from tablefeed.store.base import Store

if TYPE_CHECKING:
    from tablefeed.store.remote import FsspecStore

_PACKAGES = {
    "s3": '"tablefeed[s3]"',
    "gs": '"tablefeed[gcs]"',
    "abfs": '"tablefeed[azure]"',
    "http": "aiohttp",
    "https": "aiohttp",
}
"""The package with the file system of a scheme; for other schemes fsspec's own error names it."""


def open_store(url: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Store:
    """Opens the store whose root is `url`. Nothing is read: the root need not exist.

    `url` is a path (a relative one is made absolute now; `~` is refused), a `file:` URL, which is percent-decoded, a
    `mem:` URL, or any URL that fsspec knows; Hadoop's scheme names (such as `s3a`) are understood too.
    `storage_options` go to fsspec's file system; for S3 the names of object_store (`aws_access_key_id` and the like)
    are understood too. A local store uses them for objects that a log names by URL. The name of a table in a catalog
    (vended.py) is looked up there now. Raises StoreConfigError if the URL or an option is not valid, or a package that
    the scheme needs is missing.
    """
    if names.is_name(url):
        from tablefeed.store.vended import open_named

        return open_named(str(url), storage_options or {}, open_store)
    address = parse_address(url)
    if address.scheme in _REFUSED:
        raise StoreConfigError(
            f"HDFS is not supported, and {shown(address.location)} was neither read nor written: tablefeed is not "
            "tested with HDFS. Copy the table to a local disk, S3, Google Cloud Storage or Azure Blob Storage.",
            url=shown(address.location),
        )
    if address.scheme == "s3" and address.location.partition("://")[2].partition("/")[0].endswith(_DIRECTORY_BUCKETS):
        raise StoreConfigError(
            f"Directory buckets of S3 Express are not supported, and {shown(address.location)} was neither read nor "
            "written: their listings are in no order, and their conditional writes are not tested. Copy the table to "
            "a general purpose bucket.",
            url=shown(address.location),
        )
    given = MappingProxyType(names.without_own_options(storage_options or {}))
    options.refuse_hadoop(given, url=shown(address.location))
    open_elsewhere = functools.partial(open_store, storage_options=given)
    if address.scheme == "file":
        from tablefeed.store.local import LocalStore

        return LocalStore(address.location, open_elsewhere=open_elsewhere)
    if address.scheme == "mem":
        from tablefeed.store.memory import at

        return at(address.location)
    hidden = (*options.secrets(given), *credentials(address.location))
    filesystem = _filesystem(address, given, hidden)
    return _remote_kind(address.scheme)(filesystem, address.location, open_elsewhere=open_elsewhere, hidden=hidden)


_REFUSED = ("hdfs", "webhdfs", "swebhdfs", "viewfs", "arrow_hdfs")

_DIRECTORY_BUCKETS = ("--x-s3", "--xa-s3")
"""How the names of S3's directory buckets end, and those of their access points."""

_KINDS = {
    "s3": ("tablefeed.store.s3", "S3Store"),
    "gs": ("tablefeed.store.gcs", "GcsStore"),
    "abfs": ("tablefeed.store.azure", "AzureStore"),
}
"""The stores that can be written, by scheme; any other is read through fsspec."""


def _remote_kind(scheme: str) -> type[FsspecStore]:
    module, name = _KINDS.get(scheme, ("tablefeed.store.remote", "FsspecStore"))
    kind: type[FsspecStore] = getattr(importlib.import_module(module), name)
    return kind


def _refuse_incomplete(address: Address, arguments: Mapping[str, object], *, url: str) -> None:
    """Raises StoreConfigError where a cloud's client would answer in words of its own."""
    bucket, token = address.location.partition("://")[2].partition("/")[0], arguments.get("token")
    if address.scheme in _KINDS and not bucket:
        text = (
            f"The URL {url} names no bucket or container. Write it after the scheme: {address.scheme}://BUCKET/FOLDER."
        )
        raise StoreConfigError(text, url=url)
    is_known = any(arguments.get(name) or os.environ.get(f"AZURE_STORAGE_{name.upper()}") for name in _ACCOUNT)
    if address.scheme == "abfs" and "@" not in bucket and not is_known:
        raise StoreConfigError(
            f"The URL {url} names no storage account. Write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER, or "
            "set the storage option account_name.",
            url=url,
        )
    if address.scheme == "gs" and isinstance(token, str) and token.endswith(".json") and not Path(token).is_file():
        # gcsfs would take it for an access token, and send it to Google.
        raise StoreConfigError(
            f"The credentials for {url} are the file {token}, which is not on this machine. Correct its path, or leave "
            "it out to use the default credentials of Google.",
            url=url,
        )


_ACCOUNT = ("account_name", "connection_string")
"""The options of adlfs that name a storage account."""


def _filesystem(address: Address, given: Mapping[str, str], hidden: tuple[str, ...]) -> Any:  # Any: fsspec has no types
    url = shown(address.location)
    arguments = options.for_fsspec(address.scheme, given, url=url)
    _refuse_incomplete(address, arguments, url=url)
    # Imported here: the import is slow, and a local table does not need it.
    import fsspec

    try:
        if address.scheme == "gs":
            # The class that fsspec finds also asks another service (gRPC) for the kind of each bucket.
            from gcsfs.core import GCSFileSystem

            return GCSFileSystem(use_listings_cache=False, **arguments)
        return fsspec.url_to_fs(address.location, use_listings_cache=False, **arguments)[0]
    except ImportError as error:
        package = _PACKAGES.get(address.scheme)
        remedy = f"pip install {package}" if package else str(error)
        raise StoreConfigError(f"The store at {url} needs a package: {remedy}.", url=url) from error
    except Exception as error:  # noqa: BLE001 - whatever a file system raises
        reason = options.masked(str(error), hidden)
        raise StoreConfigError(
            f"The store at {url} cannot be opened: {reason}. Check the scheme and the storage options "
            f"({', '.join(sorted(given)) or 'none given'}).",
            url=url,
        ) from options.shown_cause(error, hidden)
