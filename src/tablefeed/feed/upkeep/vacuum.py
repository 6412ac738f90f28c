"""`tablefeed.vacuum`: deletes files that a table no longer needs (PROTOCOL.md, "VACUUM Protocol Check").

A file is deleted only if all of this is true:

- it is older than the retention;
- it is no live file, and no live file has its deletion vector there;
- it was not removed within the retention;
- no consumer still has to read a commit that names it (consumers.py);
- no commit that was made meanwhile names it.

Only their age protects files that no commit names yet: the files of a running writer are no older than the writer.
Names that begin with `_` or `.` are skipped, as by Delta-Spark. Exceptions are change files, indexes, partitions, and
tablefeed's own files, which metadata domains name. Names to keep are stored as hashes. If two names have the same hash,
one file too many is kept.
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta import features, names
from tablefeed.delta.columns import decode_paths
from tablefeed.delta.deletion_vectors import BadVectorError, stored_at
from tablefeed.delta.paths import below_root
from tablefeed.delta.schema.column_mapping import physical_name
from tablefeed.errors import ConflictError, IllegalOptionError, LogError, StoreError, naming_its_table
from tablefeed.feed.arguments import location, store_options, switch
from tablefeed.feed.progress_lines import logged
from tablefeed.feed.rows.state import read_state
from tablefeed.feed.snapshot.delta_log import DeltaLog, DeltaSnapshot
from tablefeed.feed.snapshot.open_log import open_maintained
from tablefeed.feed.snapshot.segment_reader import Reading, SegmentReader
from tablefeed.feed.snapshot.table_log import Snapshot, required_commit
from tablefeed.feed.upkeep.consumers import FOLDER, OWN_FOLDER, Readers, readers
from tablefeed.feed.upkeep.leftovers import sweep
from tablefeed.indextables import names as index_names
from tablefeed.log.segment import LogSegment, earliest_reproducible
from tablefeed.model.actions import CdcFile, Commit, DeletionVector, DomainMetadata, Version
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.model.progress import OnProgress, Progress, unreported
from tablefeed.store import Store

logger = logging.getLogger(__name__)

HOUR_MS = 3_600_000

_FILES_A_LOOK = 1000
"""How many files are deleted between two looks at the log. A commit can bring a file back (RESTORE), and a look costs
as much as a few deletions."""

_FILES_A_REPORT = 100
"""How many files are deleted between two reports of the progress: some seconds on a slow store."""

_OWN_HIDDEN = ("_delta_index", "_change_data")
"""Folders of the table that look hidden. Delta-Spark deletes from folders whose names begin like these."""

_LOGS = frozenset({names.LOG_DIR, index_names.LOG_DIR})
"""A folder with one of these is a table of its own."""

_OWN_PATH = re.compile(rf"{OWN_FOLDER}/[\w./-]+")
"""How a metadata domain names one of tablefeed's own files."""


_SHOWN = 20
"""The paths that a notebook shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuumed:
    """The files that were deleted, or with `dry_run` would be: names below the table as Arrow strings; total size.

    `waits_for` has the ids of the consumers that still have to read a commit older than the retention.
    """

    paths: pa.ChunkedArray
    size_bytes: int
    dry_run: bool
    waits_for: tuple[str, ...] = ()

    @property
    def file_count(self) -> int:
        """The number of files."""
        return len(self.paths)

    def _repr_html_(self) -> str:
        from tablefeed.wording.elements import fact_sheet
        from tablefeed.wording.words import size

        more = [f"and {self.file_count - _SHOWN:,} more"] if self.file_count > _SHOWN else []
        facts = [
            ("files", [f"{self.file_count:,}, {size(self.size_bytes)}"]),
            ("waits for", self.waits_for or ["none"]),
            ("paths", [*self.paths.slice(0, _SHOWN).to_pylist(), *more] or ["none"]),
        ]
        return fact_sheet("Vacuumed: would be deleted" if self.dry_run else "Vacuumed: deleted", facts)


def vacuum(
    url: str | os.PathLike[str],
    *,
    retention_hours: float | None = None,
    dry_run: bool = False,
    storage_options: Mapping[str, str] | None = None,
    allow_short_retention: bool = False,
    on_progress: OnProgress | None = None,
) -> Vacuumed:
    """Deletes the files below `url` that the table does not need and that are older than `retention_hours`.

    None means the table's `delta.deletedFileRetentionDuration`, by default 168 hours. A shorter retention is refused
    without `allow_short_retention`: it can delete files that readers of older versions or long-running writers need.
    Afterwards, versions older than the retention may not be readable, except those that a consumer still has to read.
    Files below the table's folder that do not belong to the table are deleted too. Temporary files of our killed
    writers are deleted when they are a day old, and not counted. Tables in sub-folders and empty folders stay, and so
    do folders that this process may not list, which a warning names. With `dry_run` nothing is deleted. Nothing is
    written to the log. `on_progress` is called as files are listed, and as they are deleted; an error that it raises
    ends the work. Raises IllegalOptionError, UnsupportedFeatureError, LogError, StoreError, and ConflictError if the
    table was replaced, or its protocol or retention changed, meanwhile.
    """
    log = open_maintained(location(url), store_options(storage_options))
    return vacuumed(
        log,
        retention_ms=_retention_ms(retention_hours),
        allow_short=switch(allow_short_retention, argument="allow_short_retention"),
        dry_run=switch(dry_run, argument="dry_run"),
        now_ms=time.time_ns() // 1_000_000,
        on_progress=logged(on_progress, url=log.url),
    )


@naming_its_table
def vacuumed(
    log: DeltaLog,
    *,
    retention_ms: int | None,
    allow_short: bool,
    dry_run: bool,
    now_ms: int,
    on_progress: OnProgress = unreported,
) -> Vacuumed:
    """Does `vacuum` on an open log at a given time."""
    consumers = readers(log, now_ms=now_ms)
    snapshot = log.load()
    # A program that cannot write the table does not know which files it needs.
    features.check_writable(snapshot.protocol, snapshot.metadata, removes=False)
    own_ms = snapshot.properties.deleted_files_ms
    if retention_ms is None:
        retention_ms = own_ms
    elif retention_ms < own_ms and not allow_short:
        raise _too_short(retention_ms, own_ms, log.url)
    cutoff_ms = now_ms - retention_ms
    commits = [log_file for log_file in log.listing() if log_file.kind is LogFileKind.COMMIT]
    kept = _kept(snapshot, commits, cutoff_ms=cutoff_ms, beyond_tombstones=retention_ms > own_ms)
    unread = _keep_unread(kept, commits, consumers, log=log, before=Version(snapshot.version + 1))
    waits_for = consumers.before(max((f.version for f in commits if f.modified_ms < cutoff_ms), default=None))
    found = _candidates(snapshot, kept, cutoff_ms=cutoff_ms, on_progress=on_progress)
    newest: Snapshot = snapshot
    gone = [found.slice(0, 0)]
    for at in range(0, found.num_rows, _FILES_A_LOOK):
        newest = _keep_what_came_since(newest, kept)
        unread = _keep_unread(kept, commits, readers(log, now_ms=now_ms), log=log, before=unread)
        some = found.slice(at, _FILES_A_LOOK)
        some = some.filter(pa.array([not kept.has(name) for name in some["path"].to_pylist()], pa.bool_()))
        for number, name in enumerate(() if dry_run else some["path"].to_pylist(), start=at + 1):
            log.store.delete(name)
            if number % _FILES_A_REPORT == 0 or number == found.num_rows:
                on_progress(Progress(step="files deleted", done=number, total=found.num_rows))
        gone.append(some)
    if not dry_run:
        sweep(log, "", now_ms=now_ms)
    found = pa.concat_tables(gone)
    size_bytes = pc.sum(found["size_bytes"]).as_py() or 0
    outcome = Vacuumed(paths=found["path"], size_bytes=size_bytes, dry_run=dry_run, waits_for=waits_for)
    logger.info(
        "vacuum table=%s version=%d files=%d bytes=%d dry_run=%s waits_for=%s",
        log.url,
        snapshot.version,
        outcome.file_count,
        outcome.size_bytes,
        dry_run,
        ",".join(waits_for),
    )
    return outcome


# --- what is asked -------------------------------------------------------------------------------------------------


def _retention_ms(hours: object) -> int | None:
    if hours is None:
        return None
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not math.isfinite(hours) or hours > 1e12:
        raise IllegalOptionError(option="retention_hours", value=str(hours), explain="must be a number of hours")
    if hours < 0:
        raise IllegalOptionError(
            option="retention_hours",
            value=str(hours),
            explain="must not be below zero",
            error_class="DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
        )
    return math.ceil(hours * HOUR_MS)


def _too_short(retention_ms: int, own_ms: int, url: str) -> IllegalOptionError:
    return IllegalOptionError(
        option="retention_hours",
        value=f"{retention_ms / HOUR_MS:g}",
        explain=f"is less than the {own_ms / HOUR_MS:g} hours for which {url} keeps removed files: queries over older "
        "versions, streams that lag, and writers that have run for longer would lose files. If there are none of "
        "these, set allow_short_retention=True",
        error_class="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
    )


# --- what is kept --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Kept:
    """Names below the root `url` that must stay.

    A path may differ from the name that the store lists: it may be absolute, or have dots. Such a path keeps every file
    with the same base name, in any folder, because one place can have several addresses.
    """

    url: str
    _names: set[int] = field(default_factory=set)
    _base_names: set[int] = field(default_factory=set)

    def path(self, path: str) -> None:
        """Keeps the file at the decoded `path`."""
        below = below_root(path, root_url=self.url)
        if below is not None:
            self._names.add(_known(below))
        if below != path:
            self._base_names.add(_known(_base_name(path)))

    def vector(self, vector: DeletionVector, *, of_file: str) -> None:
        """Keeps the file that `vector` is in. Raises LogError where the vector does not say which file that is."""
        try:
            stored = stored_at(vector)
        except BadVectorError as bad:
            raise LogError(
                f"The deletion vector of {of_file} in the log of {self.url} {bad}, so it is not known which file "
                "it is in. Nothing was deleted. Repair the log first.",
                url=self.url,
                error_class="DELTA_DELETION_VECTOR_INVALID",
            ) from bad
        if stored is not None:
            self.path(stored.path)

    def commit(self, commit: Commit) -> None:
        """Keeps all files that a commit names, in a domain too, and those of their deletion vectors."""
        self.domains(commit.domains)
        for action in commit.files:
            self.path(action.path)
            if not isinstance(action, CdcFile) and action.deletion_vector is not None:
                self.vector(action.deletion_vector, of_file=action.path)

    def domains(self, domains: Iterable[DomainMetadata]) -> None:
        """Keeps tablefeed's own files that `domains` name."""
        for domain in domains:
            for path in _OWN_PATH.findall(domain.configuration):
                self.path(path)

    def rows(self, rows: pa.RecordBatch) -> None:
        """Keeps the files of `rows` (`tablefeed.delta.columns.FILE_COLUMNS`) and their vectors'."""
        paths = decode_paths(rows["log_path"]).to_pylist()
        for path in paths:
            self.path(path)
        if rows["deletion_vector"].null_count < rows.num_rows:
            for path, vector in zip(paths, rows["deletion_vector"].to_pylist(), strict=True):
                if vector is not None:
                    self.vector(DeletionVector(**vector), of_file=path)

    def has(self, name: str) -> bool:
        """Says whether the file `name` below the root must stay."""
        return _known(name) in self._names or _known(_base_name(name)) in self._base_names


def _known(name: str) -> int:
    # A disk may list a name with other code points than those it was created with (HFS+).
    return hash(name if name.isascii() else unicodedata.normalize("NFC", name))


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]


def _kept(snapshot: DeltaSnapshot, commits: Sequence[LogFile], *, cutoff_ms: int, beyond_tombstones: bool) -> Kept:
    log, kept = snapshot.log, Kept(snapshot.log.url)
    for batch in snapshot.live_files():
        kept.rows(batch)

    def keep_removed(segment: LogSegment) -> None:
        reader, reading = SegmentReader(log.store), Reading(segment=segment)
        turns = reader.files(reading, with_stats=False)[1]  # of the tail; the checkpoint's adds are live or removed
        for batch in chain(reader.removed(reading), chain.from_iterable(turns)):
            # A tombstone without a time is expired, as in Delta-Spark. Several tombstones of one file do no harm.
            young = pc.fill_null(pc.greater_equal(batch["deletion_timestamp_ms"], cutoff_ms), fill_value=False)
            kept.rows(batch.filter(pc.and_(pc.invert(batch["is_add"]), young)))

    snapshot.segments().read(keep_removed)
    # A snapshot has no change files, and no tombstones older than the table keeps them.
    has_own = any(_own_folders(log.store))
    if beyond_tombstones or has_own or any(name.startswith(_OWN_HIDDEN) for name in log.store.directories("")):
        for log_file in commits:
            if log_file.modified_ms >= cutoff_ms:
                kept.commit(required_commit(log, log_file))
    if has_own:
        read_state(snapshot)  # raises where the domain does not say which files are its own
        kept.domains(snapshot.facts.domains.values())
        _keep_domains_at(max((f.version for f in commits if f.modified_ms < cutoff_ms), default=Version(0)), kept, log)
    return kept


def _keep_domains_at(version: Version, kept: Kept, log: DeltaLog) -> None:
    """Keeps the files that domains name at `version`, or at the first version after it that can be read.

    A domain holds until another commit sets it: versions from there on may have one that a commit before it set.
    """
    at = max(version, earliest_reproducible(log.listing()) or version)
    kept.domains(log.load(at).facts.domains.values())


def _keep_unread(
    kept: Kept, commits: Sequence[LogFile], consumers: Readers, *, log: DeltaLog, before: Version
) -> Version:
    """Keeps the files of commits before version `before` that a consumer still has to read.

    Gives the first version from which all commits are kept. The files that are live at the version which a consumer has
    read are kept too: they are live now, or a later commit removes them. No commit removes what a domain named.
    """
    slowest = consumers.slowest
    first = before if slowest is None else min(before, Version(slowest + 1))
    for log_file in commits:
        if first <= log_file.version < before:
            kept.commit(required_commit(log, log_file))
    if 0 < first < before and any(_own_folders(log.store)):
        _keep_domains_at(Version(first - 1), kept, log)
    return first


def _keep_what_came_since(snapshot: Snapshot, kept: Kept) -> Snapshot:
    """Keeps the files that commits after `snapshot` name; gives the newest snapshot.

    Raises ConflictError where the log does not continue `snapshot`, or where the protocol or the retention changed.
    """
    log, version = snapshot.log, snapshot.version
    newest = log.advance(snapshot)
    if log.head(version) != snapshot.head or newest.metadata.table_id != snapshot.metadata.table_id:
        raise _changed("was restored, or deleted and created again,", snapshot)
    retention = newest.properties.deleted_files_ms, snapshot.properties.deleted_files_ms
    if newest.protocol != snapshot.protocol or retention[0] != retention[1]:
        raise _changed("got another protocol or retention", snapshot)
    while (commit := log.commit(Version(version + 1))) is not None:
        kept.commit(commit)
        version = commit.version
    return newest


def _changed(what: str, snapshot: Snapshot) -> ConflictError:
    return ConflictError(
        f"The vacuum of {snapshot.log.url} stopped: the table {what} meanwhile. Nothing more was deleted. "
        "Run it again.",
        url=snapshot.log.url,
        winner=snapshot.version,
        error_class="DELTA_METADATA_CHANGED",
    )


# --- what is there -------------------------------------------------------------------------------------------------

_FOUND = pa.schema([("path", pa.string()), ("size_bytes", pa.int64())])
_FOUND_ROWS = 10_000


def _candidates(snapshot: Snapshot, kept: Kept, *, cutoff_ms: int, on_progress: OnProgress) -> pa.Table:
    """Gives the files older than the cutoff that `kept` does not have."""
    store, partitions = snapshot.log.store, tuple(f"{name}=" for name in _partition_names(snapshot))
    found = (
        {"path": name, "size_bytes": size_bytes}
        for name, size_bytes, modified_ms in _listed(_walk(store, partitions, [*_own_folders(store), ""]), on_progress)
        if modified_ms < cutoff_ms and not kept.has(name) and _is_text(name)
    )
    parts = iter(lambda: list(islice(found, _FOUND_ROWS)), [])
    return pa.Table.from_batches([pa.RecordBatch.from_pylist(rows, _FOUND) for rows in parts], _FOUND)


_Listed = tuple[str, int, int]


def _listed(files: Iterable[_Listed], on_progress: OnProgress) -> Iterator[_Listed]:
    done = 0
    for done, each in enumerate(files, start=1):
        if done % _FILES_A_LOOK == 0:
            on_progress(Progress(step="files listed", done=done))
        yield each
    on_progress(Progress(step="files listed", done=done))


def _partition_names(snapshot: Snapshot) -> Iterator[str]:
    for column in snapshot.schema:
        if column.name in snapshot.metadata.partition_columns:
            yield from (column.name, physical_name(column))


def _own_folders(store: Store) -> list[str]:
    """The folders of tablefeed's own files in which vacuum deletes files that no metadata domain names."""
    found = (f"{OWN_FOLDER}/{name}" for name in store.directories(OWN_FOLDER))
    return [folder for folder in found if folder != FOLDER]


def _walk(store: Store, partitions: tuple[str, ...], folders: list[str]) -> Iterator[_Listed]:
    """Gives name, size and time of each file below `folders` that may be the table's; no link is followed."""
    waiting = [*folders]
    while waiting:
        folder = waiting.pop()
        try:
            inner = list(store.directories(folder))
        except StoreError as error:
            if not folder or not isinstance(error.__cause__, PermissionError):
                raise
            logger.warning("vacuum left a folder alone that it may not list table=%s folder=%s", store.url, folder)
            continue
        if folder and not _LOGS.isdisjoint(inner):
            logger.warning("vacuum left a table of its own alone table=%s folder=%s", store.url, folder)
            continue
        place = f"{folder}/" if folder else ""
        for entry in store.list(folder):
            if not _is_hidden(entry.name, partitions):
                yield place + entry.name, entry.size_bytes, entry.modified_ms
        waiting += (place + name for name in reversed(inner) if not _is_hidden(name, partitions))


def _is_hidden(name: str, partitions: tuple[str, ...]) -> bool:
    # "metadata" is Iceberg's folder in a table of both formats. No writer of Delta makes one.
    return name == "metadata" or (name.startswith((".", "_")) and not name.startswith((*_OWN_HIDDEN, *partitions)))


def _is_text(name: str) -> bool:
    # A local name can be bytes that are no text. No log can name such a file, and the result cannot either.
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
