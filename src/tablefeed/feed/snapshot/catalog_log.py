"""The log of a table that a catalog names, as the store that `DeltaLog` reads.

The name is looked up again while the log is in use, because a table can be dropped and created again under its name. If
the catalog manages the commits, the log has only what the catalog has ratified ("Reading Catalog-managed Tables"): an
unpublished commit is read from its staged file, and versions after the newest ratified one are hidden, published or
not. Such a table is only read.
"""
# ruff: noqa: D102 - see Store

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import BinaryIO, TypeVar

from tablefeed.catalog import names as catalog_names
from tablefeed.catalog.unity import CatalogTable, Ratified, UnityCatalog, replaced
from tablefeed.delta import names
from tablefeed.errors import (
    LogError,
    ObjectNotFoundError,
    StoreConfigError,
    UnsupportedFeatureError,
)
from tablefeed.log.segment import whole_checkpoints
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.store import Entry, Store, open_store
from tablefeed.store.vended import SHARED, VendedStore

_Result = TypeVar("_Result")

ASKED_EVERY_S = 1.0
"""How old the catalog's answer may be. Readers look at their log every few milliseconds, and share the catalog."""

_STAGED_NAME = re.compile(r"([0-9]{20})\.[0-9a-fA-F-]{36}\.json")


def open_catalog_log(
    location: str, storage_options: Mapping[str, str], *, clock_s: Callable[[], float] = time.monotonic
) -> tuple[CatalogLogStore, dict[str, str]]:
    """Opens the log of the table that `location` names, and gives the options with which tasks open its store.

    Raises TableReplacedError if `storage_options` are such options of another table.
    """
    given = catalog_names.own_options(storage_options)
    server = catalog_names.server(given, os.environ, url=location)
    catalog = UnityCatalog(server)
    table = catalog.table(catalog_names.full_name(location))
    expected = given.get(catalog_names.TABLE_ID, table.table_id)
    if expected != table.table_id:
        raise replaced(table.name, f"the id {expected}", f"the id {table.table_id}")
    others = catalog_names.without_own_options(storage_options)
    pinned = {
        catalog_names.URI: server.uri,
        catalog_names.TABLE_ID: table.table_id,
        catalog_names.LOCATION: table.location,
        **({catalog_names.TOKEN: server.token} if server.token else {}),
    }
    return CatalogLogStore(catalog, table, others, clock_s=clock_s), {**others, **pinned}


class CatalogLogStore(VendedStore):
    """The table's store, whose log has only what the catalog has ratified. `table` must be just looked up.

    Every request raises TableReplacedError or TableNotFoundError if the name no longer means this table.
    """

    def __init__(
        self, catalog: UnityCatalog, table: CatalogTable, given: Mapping[str, str], *, clock_s: Callable[[], float]
    ) -> None:
        super().__init__(catalog, table, given, open_store, shared=SHARED)
        self._clock_s = clock_s
        self._asking = threading.RLock()
        self._asked_at_s = None if table.is_managed else clock_s()
        self._ratified = Ratified(latest=0, staged={})

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        if not self.table.is_managed or directory.rstrip("/") != names.LOG_DIR:
            yield from super().list(directory, start=start)
            return
        found = self._log_files_from(start)
        if found is None:
            self._ask()  # a commit was published and cleaned up since the catalog was asked
            found = self._log_files_from(start)
        if found is None:
            raise LogError(
                f"The catalog says that {self.table.name} is at version {self._ratified.latest}. A commit up to that "
                "is neither where the catalog says nor in the log. Rows would be missing. Nothing was read. Ask the "
                "administrator of the catalog.",
                url=self.table.location,
            )
        yield from (found[name] for name in sorted(found))

    def exists(self, name: str) -> bool:
        return self.stat(name) is not None

    def read(self, name: str, *, start: int = 0, end: int | None = None) -> bytes:
        return self._placed(name, lambda store, place: store.read(place, start=start, end=end))

    def stat(self, name: str) -> Entry | None:
        try:
            entry = self._placed(name, lambda store, place: _required(store, place))
        except ObjectNotFoundError:
            return None
        return replace(entry, name=name)

    def open_input(self, name: str) -> BinaryIO:
        if self._log_file(name) is None:
            return super().open_input(name)
        return self._placed(name, lambda store, place: store.open_input(place))

    def wait(self, directory: str, *, timeout_s: float) -> bool:
        if not self.table.is_managed:
            return super().wait(directory, timeout_s=timeout_s)
        time.sleep(timeout_s)  # a watch of the log's folder does not notice ratified commits
        return False

    def _opened_store(self, *, to_write: bool) -> tuple[Store, int | None]:
        self._look_up()
        if to_write and self.table.is_managed:
            raise UnsupportedFeatureError(
                f"The catalog manages the commits of {self.table.name} (catalogManaged). tablefeed reads such a table "
                "but does not write it. Nothing was written. Write it with the Delta JAR.",
                url=self.table.name,
                features=("catalogManaged",),
                error_class="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
            )
        return super()._opened_store(to_write=to_write)

    def _log_files_from(self, start: str) -> dict[str, Entry] | None:
        """Gives the log files from the name `start` on; None if a commit that the catalog named is missing."""
        # The catalog is asked before the log is listed: a commit that is published meanwhile is in one of the two.
        store = self._to_read()
        ratified = self._ratified
        listed = store.list(names.LOG_DIR, start=start)
        found = {entry.name: entry for entry in listed if self._place(f"{names.LOG_DIR}/{entry.name}") is not None}
        for version in ratified.staged:
            name = names.commit_name(version)
            if name < start:
                continue
            entry = store.stat(self._place(f"{names.LOG_DIR}/{name}") or name)
            if entry is None:
                return None
            found[name] = replace(entry, name=name)
        parsed = (names.parse_name(name, size_bytes=0, modified_ms=0) for name in found)
        log_files = [log_file for log_file in parsed if log_file is not None]
        has_latest = names.commit_name(ratified.latest) in found or ratified.latest in whole_checkpoints(log_files)
        is_empty = ratified.latest == 0 and not log_files  # registered, but version 0 is not written yet
        return found if has_latest or is_empty or names.commit_name(ratified.latest) < start else None

    def _look_up(self) -> None:
        """Asks the catalog if its last answer is too old."""
        with self._asking:
            if self._asked_at_s is None or self._clock_s() - self._asked_at_s >= ASKED_EVERY_S:
                self._ask()

    def _ask(self) -> None:
        with self._asking:  # one thread at a time: an answer never takes the place of a newer one
            self._ask_alone()

    def _ask_alone(self) -> None:
        now = self.catalog.table(self.table.name)
        if now.table_id != self.table.table_id:
            raise replaced(self.table.name, f"the id {self.table.table_id}", f"the id {now.table_id}")
        if self.table.is_managed != now.is_managed or self.table.location != now.location:
            raise StoreConfigError(
                f"While {self.table.name} was open, it was moved, or its catalog began or stopped managing its "
                "commits. Open it again.",
                url=self.table.name,
            )
        if self.table.is_managed:
            self._ratified = self.catalog.ratified(self.table)
        self._asked_at_s = self._clock_s()

    def _placed(self, name: str, use: Callable[[Store, str], _Result]) -> _Result:
        """Returns what `use` returns for the object that is read for `name`."""
        store = self._to_read()
        place = self._place(name)
        if place is not None:
            try:
                return use(store, place)
            except ObjectNotFoundError:
                if place == name:
                    raise
            self._ask()  # published and cleaned up since the catalog was asked
            place = self._place(name)
        if place is None:
            raise ObjectNotFoundError(url=store.url, name=name)
        return use(store, place)

    def _place(self, name: str) -> str | None:
        """Gives the name of the object that is read for `name`; None: it is hidden from readers."""
        log_file = self._log_file(name)
        if log_file is None:
            return name
        ratified = self._ratified
        if (log_file.last_version or log_file.version) > ratified.latest:
            return None
        staged = ratified.staged.get(log_file.version) if log_file.kind is LogFileKind.COMMIT else None
        if staged is None:
            return name
        found = _STAGED_NAME.fullmatch(staged)
        if found is None or int(found[1]) != log_file.version:
            raise LogError(
                f"The catalog gives {staged!r} as the file of version {log_file.version} of {self.table.name}. No "
                "staged commit of that version has such a name. Nothing was read. Ask the administrator of the "
                "catalog.",
                url=self.table.location,
            )
        return f"{names.LOG_DIR}/{names.STAGED_COMMITS_DIR}/{staged}"

    def _log_file(self, name: str) -> LogFile | None:
        """The log file of a managed table that `name` names; None for other files, and for other tables."""
        directory, _, base_name = name.rpartition("/")
        if not self.table.is_managed or directory != names.LOG_DIR:
            return None
        return names.parse_name(base_name, size_bytes=0, modified_ms=0)


def _required(store: Store, name: str) -> Entry:
    entry = store.stat(name)
    if entry is None:
        raise ObjectNotFoundError(url=store.url, name=name)
    return entry
