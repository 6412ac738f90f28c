"""Opens the store of a path or URL. Only this module chooses between the kinds of store."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tablefeed.errors import StoreConfigError
from tablefeed.store import options
from tablefeed.store.address import Address, credentials, parse_address, shown
from tablefeed.store.base import Store

if TYPE_CHECKING:
    from tablefeed.store.remote import FsspecStore

_PACKAGES = {
    "s3": '"tablefeed[s3]"',
    "gs": "gcsfs",
    "abfs": "adlfs",
    "http": "aiohttp",
    "https": "aiohttp",
}
"""The package with the file system of a scheme; for other schemes fsspec's own error names it."""


def open_store(url: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Store:
    """Opens the store whose root is `url`. Nothing is read: the root need not exist.

    `url` is a path (a relative one is made absolute now; `~` is not expanded), a `file:` URL, which is percent-decoded,
    or any URL that fsspec knows; Hadoop's scheme names (such as `s3a`) are understood too. `storage_options` go to
    fsspec's file system; for S3 the names of object_store (`aws_access_key_id` and the like) are understood too. A
    local store uses them for objects that a log names by URL. Raises StoreConfigError where the URL or an option is not
    valid, or the package that the scheme needs is missing.
    """
    address = parse_address(url)
    given = MappingProxyType(dict(storage_options or {}))
    options.refuse_hadoop(given, url=shown(address.location))
    open_elsewhere = functools.partial(open_store, storage_options=given)
    if address.scheme == "file":
        from tablefeed.store.local import LocalStore

        return LocalStore(address.location, open_elsewhere=open_elsewhere)
    hidden = (*options.secrets(given), *credentials(address.location))
    return _remote_kind(address)(
        _filesystem(address, given, hidden), address.location, open_elsewhere=open_elsewhere, hidden=hidden
    )


def _remote_kind(address: Address) -> type[FsspecStore]:
    if address.scheme == "s3":
        from tablefeed.store.s3 import S3Store

        return S3Store
    from tablefeed.store.remote import FsspecStore

    return FsspecStore


def _filesystem(address: Address, given: Mapping[str, str], hidden: Iterable[str]) -> Any:  # Any: fsspec has no types
    url = shown(address.location)
    arguments = options.for_fsspec(address.scheme, given, url=url)
    # Imported here: the import is slow, and a local table does not need it.
    import fsspec

    try:
        return fsspec.url_to_fs(address.location, use_listings_cache=False, **arguments)[0]
    except ImportError as error:
        package = _PACKAGES.get(address.scheme)
        remedy = f"pip install {package}" if package else str(error)
        raise StoreConfigError(f"The store at {url} needs a package: {remedy}.", url=url) from error
    except Exception as error:
        reason = str(error)
        for secret in hidden:
            reason = reason.replace(secret, "***")
        raise StoreConfigError(
            f"The store at {url} cannot be opened: {reason}. Check the scheme and the storage options "
            f"({', '.join(sorted(given)) or 'none given'}).",
            url=url,
        ) from error
