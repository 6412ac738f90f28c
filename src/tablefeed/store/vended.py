"""The store of a table that a catalog names, opened with temporary credentials from the catalog.

Credentials to read, and others to write, are requested when they are first needed, and again when half of their
lifetime has passed. A file that is being read continues with the new ones. A file is written with one set of
credentials, so its upload has at least half of their lifetime.
"""
# ruff: noqa: D102 - see Store

from __future__ import annotations

import io
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO

from tablefeed.catalog import names
from tablefeed.catalog.unity import CatalogTable, Credentials, UnityCatalog
from tablefeed.errors import StoreConfigError, StoreError
from tablefeed.store.address import parse_address, shown
from tablefeed.store.base import Content, Entry, Store, Within
from tablefeed.store.remote import InputOver

KEPT_STORES = 16
"""The most stores of a process that are kept for the next opening of their table."""

Shared = dict[tuple[object, ...], tuple[Store, int | None]]
SHARED: Shared = {}
"""The stores with credentials that this process uses, the most recently used last. Each batch opens its table again,
and would otherwise have its own credentials and connections."""

Opened = Callable[[str, Mapping[str, Any]], Store]  # Any: a file system takes objects of its own as options

_S3 = {
    "access_key_id": "aws_access_key_id",
    "secret_access_key": "aws_secret_access_key",
    "session_token": "aws_session_token",
}
_OF_THEIR_OWN = {"skip_instance_cache": True}
"""fsspec would keep the connections of all credentials for as long as the process lives."""


def open_named(url: str, storage_options: Mapping[str, str], open_store: Opened) -> VendedStore:
    """Opens the store of the table that `url` names, `uc://catalog.schema.table`.

    If `storage_options` have the table that the name meant when it was looked up, the store of that table is opened.
    """
    given = names.own_options(storage_options)
    server = names.server(given, os.environ, url=url)
    catalog, name = UnityCatalog(server), names.full_name(url)
    if given.keys() >= {names.TABLE_ID, names.LOCATION}:
        location = given[names.LOCATION]
        table = CatalogTable(name=name, table_id=given[names.TABLE_ID], location=location, is_managed=False)
    else:
        table = catalog.table(name)
    return VendedStore(catalog, table, names.without_own_options(storage_options), open_store, shared=SHARED)


def file_system_options(location: str, values: Mapping[str, str], *, name: str) -> dict[str, Any]:
    """Gives the storage options for the credentials `values` of the table `name` at `location`.

    Raises StoreConfigError if the table is not on this machine and `values` has no credentials for its store.
    """
    scheme = parse_address(location).scheme
    if scheme == "file":
        return {}
    if scheme == "s3" and {"access_key_id", "secret_access_key"} <= values.keys():
        return {**_OF_THEIR_OWN, **{option: values[key] for key, option in _S3.items() if key in values}}
    if scheme == "abfs" and "sas_token" in values:
        return {**_OF_THEIR_OWN, "sas_token": values["sas_token"]}
    if scheme == "gs" and "oauth_token" in values:
        return {**_OF_THEIR_OWN, "token": _google_credentials(values["oauth_token"], name)}
    raise StoreConfigError(
        f"The catalog gave no credentials for {name} that open a store of {scheme}://. Nothing was read or written. "
        "Set up credentials for the table's location in the catalog.",
        url=name,
    )


class VendedStore:
    """Implements `tablefeed.store.base.Store` for `table` of `catalog`, whose files `open_store` opens.

    `given` are the user's storage options; credentials from the catalog replace those among them. `shared` keeps stores
    for the next opening with the same server, table and options. `clock_ms` gives milliseconds since 1970.
    """

    def __init__(
        self,
        catalog: UnityCatalog,
        table: CatalogTable,
        given: Mapping[str, Any],
        open_store: Opened,
        *,
        shared: Shared | None = None,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.catalog, self.table = catalog, table
        self._given, self._open_store, self._clock_ms = dict(given), open_store, clock_ms
        self._lock = threading.Lock()
        self._shared = {} if shared is None else shared
        self._opened: dict[bool, tuple[Store, int | None]] = {}

    @property
    def url(self) -> str:
        """The location of the table's files. Asks no catalog: errors name it, and the catalog may not answer."""
        address = parse_address(self.table.location)
        return os.path.normpath(address.location) if address.scheme == "file" else shown(address.location)

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        return self._to_read().list(directory, start=start)

    def directories(self, directory: str) -> Iterator[str]:
        return self._to_read().directories(directory)

    def exists(self, name: str) -> bool:
        return self._to_read().exists(name)

    def is_file_at_root(self) -> bool:
        return self._to_read().is_file_at_root()

    def read(self, name: str, *, start: int = 0, end: int | None = None) -> bytes:
        return self._to_read().read(name, start=start, end=end)

    def stat(self, name: str) -> Entry | None:
        return self._to_read().stat(name)

    def open_input(self, name: str) -> BinaryIO:
        store, renewal_ms = self._opened_store(to_write=False)
        if renewal_ms is None:
            return store.open_input(name)
        return io.BufferedReader(_Renewed(name, self._to_read))

    def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:
        return self._to_write().put_if_absent(name, data, within=within)

    def create(self, name: str, *, within: Within | None = None) -> AbstractContextManager[BinaryIO]:
        return self._to_write().create(name, within=within)

    def publish(self, name: str, *, within: Within | None = None) -> AbstractContextManager[BinaryIO]:
        return self._to_write().publish(name, within=within)

    def copy(self, names: Sequence[str], source: Store) -> None:
        self._to_write().copy(names, source)

    def replace(self, name: str, data: bytes, *, within: Within | None = None) -> None:
        self._to_write().replace(name, data, within=within)

    def delete(self, name: str) -> None:
        self._to_write().delete(name)

    def sweep(self, directory: str, *, before_ms: int) -> int:
        return self._to_write().sweep(directory, before_ms=before_ms)

    def wait(self, directory: str, *, timeout_s: float) -> bool:
        return self._to_read().wait(directory, timeout_s=timeout_s)

    def close(self) -> None:
        with self._lock:
            stores = [store for store, _ in self._opened.values()]
            self._opened.clear()
        for store in stores:
            store.close()

    def _to_read(self) -> Store:
        return self._opened_store(to_write=False)[0]

    def _to_write(self) -> Store:
        return self._opened_store(to_write=True)[0]

    def _opened_store(self, *, to_write: bool) -> tuple[Store, int | None]:
        """The store with credentials that have at least half of their time left, and when they are renewed."""
        with self._lock:
            known = self._opened.get(to_write)
            if known is not None and (known[1] is None or self._clock_ms() < known[1]):
                return known
            # A store that is replaced is not closed: another thread may be reading from it.
            self._opened[to_write] = known = self._shared_or_new(to_write=to_write)
            return known

    def _shared_or_new(self, *, to_write: bool) -> tuple[Store, int | None]:
        table = self.table
        options = tuple(sorted(self._given.items()))
        # The process: a forked child must not use its parent's connections.
        key = os.getpid(), self.catalog.server, table.table_id, table.location, options, to_write
        found = self._shared.pop(key, None)
        if found is None or (found[1] is not None and self._clock_ms() >= found[1]):
            credentials = self.catalog.credentials(table, to_write=to_write)
            vended = file_system_options(table.location, credentials.values, name=table.name)
            store = self._open_store(table.location, {**self._given, **vended})
            found = store, _renewal_ms(credentials, self._clock_ms())
            if not vended:
                return found  # a local store is not shared: it has one watch of a folder
        self._shared[key] = found
        for longest_unused in list(self._shared)[:-KEPT_STORES]:
            self._shared.pop(longest_unused, None)
        return found


class _Renewed(InputOver):
    """A file of the store that `current` gives; it is opened again when that store has changed."""

    def __init__(self, name: str, current: Callable[[], Store]) -> None:
        self._name, self._current = name, current
        self._store = current()
        super().__init__(self._store.open_input(name))
        self._size_bytes = self.seek(0, io.SEEK_END)
        self.seek(0)

    def readinto(self, buffer: Any, /) -> int:
        store = self._current()
        if store is not self._store:
            self._reopen(store)
        return super().readinto(buffer)

    def _reopen(self, store: Store) -> None:
        position, file = self._file.tell(), store.open_input(self._name)
        if file.seek(0, io.SEEK_END) != self._size_bytes:
            file.close()
            raise StoreError(
                f"{self._name} at {store.url} was replaced while it was read. Read it again.", url=store.url
            )
        file.seek(position)
        self._file.close()
        self._store, self._file = store, file


def _renewal_ms(credentials: Credentials, now_ms: int) -> int | None:
    if credentials.expires_at_ms is None:
        return None
    # At least a second: if the clocks differ, each request would otherwise need new credentials.
    return now_ms + max((credentials.expires_at_ms - now_ms) // 2, 1000)


def _google_credentials(token: str, name: str) -> object:
    import importlib

    try:
        module = importlib.import_module("google.oauth2.credentials")
    except ImportError as error:
        text = f'The files of {name} need a package: pip install "tablefeed[gcs]".'
        raise StoreConfigError(text, url=name) from error
    return module.Credentials(token)
