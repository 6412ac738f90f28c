"""Deletes old files of an IndexTables log on request: versions past their retention, manifests that no state names.

`tablefeed.indextables.log.retention` decides by the names which files are old. Before any file is deleted, what stays
is read: a state with its manifests, a checkpoint with its parts, the commits. Of a state its `_manifest.avro` is
deleted. The oldest file is deleted first, so a cleanup that breaks off leaves a log that begins later. Manifests are
deleted last, and none of them where a state that stays cannot be read, because the manifests that it names are unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

from tablefeed.errors import CorruptLogError, LogError, ObjectNotFoundError
from tablefeed.feed.commit.own_log import delete_as_listed
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.index_reader import IndexReader
from tablefeed.feed.upkeep.consumers import FILES_A_LOOK, Cleaned, came_meanwhile, readers
from tablefeed.feed.upkeep.leftovers import sweep
from tablefeed.indextables import names
from tablefeed.indextables.log import listing, retention
from tablefeed.indextables.log.listing import Log, Segment
from tablefeed.indextables.log.retention import Expired, Retention
from tablefeed.log.facts import fold
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.store import Store

logger = logging.getLogger(__name__)


def clean_up(log: IndexTablesLog, kept: Retention, *, now_ms: int) -> Cleaned:
    """Deletes what neither `kept` nor a consumer keeps (consumers.py). Raises LogError and StoreError.

    The table is read first, so nothing is deleted from a log that cannot be read. Versions are deleted only where the
    first version that stays was read completely from the files that are left. Where that fails, a warning names the
    file, and an older state or checkpoint is kept instead. Temporary files that our killed writers left anywhere in the
    table are deleted after a day, even if nothing else is.
    """
    snapshot = log.load()
    sweep(log, "", now_ms=now_ms)
    consumers, found = readers(log, now_ms=now_ms), _Found(log.store)
    waits_for = consumers.before(retention.expired(found.log, kept, now_ms=now_ms).first)
    if waits_for:
        logger.info("cleanup table=%s waits_for=%s", log.url, ",".join(waits_for))
    if (slowest := consumers.slowest) is not None and found.log.newest is not None:
        kept = replace(kept, versions=max(kept.versions, found.log.newest - slowest + 1))
    going, base = _readable(log, found.log, kept, now_ms=now_ms)
    if snapshot.head is None or log.head(snapshot.version) != snapshot.head:
        logger.warning("cleanup put off table=%s: it was restored or made anew meanwhile", log.url)
        return Cleaned(waits_for=waits_for)
    gone = [file.name for file in (*going.commits, *going.states)]
    deleted = 0
    for number, name in enumerate(gone):
        if not number % FILES_A_LOOK and (came := came_meanwhile(log, going.first, now_ms=now_ms, deleted=deleted)):
            return Cleaned(log_files=deleted, waits_for=came)
        deleted += found.delete(name, without=base)
    manifests = _unnamed(found, frozenset(gone), old_ms=now_ms - kept.manifests_ms)
    unnamed = sum(found.delete(name) for name in manifests)
    logger.info("cleanup table=%s log_files=%d manifests=%d", log.url, deleted, unnamed)
    return Cleaned(log_files=deleted + unnamed, waits_for=waits_for)


def _readable(log: IndexTablesLog, listed: Log, kept: Retention, *, now_ms: int) -> tuple[Expired, LogFile | None]:
    """The files of the log `listed` that may be deleted, once the rest was read; none where the rest cannot be read.

    And the state or checkpoint with which the rest begins.
    """
    reader, unreadable = IndexReader(log.store), set[str]()
    while (going := retention.expired(listed, kept, unreadable=unreadable, now_ms=now_ms)).first is not None:
        base: LogFile | None = None
        try:
            left, segment = reader.segment_of(going.left(listed), going.first, without=frozenset(unreadable))
            base = segment.base
            _check(reader, left, segment)
        except (LogError, ObjectNotFoundError) as error:
            logger.warning("cleanup keeps more table=%s: version %d cannot be read: %s", log.url, going.first, error)
            if base is None:
                return Expired(), None
            unreadable.add(base.name)
            if isinstance(error, CorruptLogError | ObjectNotFoundError):
                failed = error.log_file if isinstance(error, CorruptLogError) else error.name
                unreadable.update(_states_that_name(failed, reader, listed))
        else:
            return going, base
    return Expired(), None


def _check(reader: IndexReader, log: Log, segment: Segment) -> None:
    """Reads the whole `segment`. Raises LogError and ObjectNotFoundError where it cannot be read."""
    facts, _ = reader.base_facts(log, segment.base)
    facts = fold(facts, map(reader.commit, segment.commits))
    if facts.protocol is None or facts.metadata is None:
        raise LogError(f"Version {segment.version} of {reader.url} has no protocol or no metadata.", url=reader.url)
    for _ in reader.base_files(log, segment.base):
        pass


def _states_that_name(manifest: str, reader: IndexReader, log: Log) -> Iterator[str]:
    """The states that name `manifest`, which cannot be read, and the states that cannot be read themselves."""
    for file in log.states.values():
        try:
            shared = [each.name for each in reader.state(file).manifests]
        except (LogError, ObjectNotFoundError):
            yield file.name
        else:
            if any(manifest.endswith(name) for name in shared):
                yield file.name


class _Found:
    """The listing of the log's directories: the log files, and every manifest with its time, by names below the log."""

    def __init__(self, store: Store) -> None:
        self.store = store
        entries = [(entry.name, entry) for entry in store.list(names.LOG_DIR)]
        for directory in store.directories(names.LOG_DIR):
            if directory == names.MANIFESTS_DIR or _is_state_dir(directory):
                below = store.list(f"{names.LOG_DIR}/{directory}")
                entries += [(f"{directory}/{entry.name}", entry) for entry in below]
        self.entries = dict(entries)
        files = (names.parse_name(n, size_bytes=e.size_bytes, modified_ms=e.modified_ms) for n, e in entries)
        self.log = listing.read_listing(file for file in files if file is not None)

    def delete(self, name: str, *, without: LogFile | None = None) -> bool:
        """Deletes a file as it was listed; says whether it was there. See `delete_as_listed`."""
        needed = None if without is None else (f"{names.LOG_DIR}/{without.name}", without)
        return delete_as_listed(self.store, f"{names.LOG_DIR}/{name}", self.entries[name], without=needed)

    @property
    def states(self) -> list[LogFile]:
        """All states, also a pseudo state of version 0: some reader may use it."""
        return [*self.log.states.values(), *([self.log.zeroth] if self.log.zeroth else [])]

    @property
    def manifests(self) -> Iterator[tuple[str, int]]:
        """The manifests by name, each with the time in ms when it was written."""
        for name, entry in self.entries.items():
            base = name.rpartition("/")[2]
            if "/" in name and base.endswith(".avro") and base != names.STATE_MANIFEST and not base.startswith("."):
                yield name, entry.modified_ms


def _unnamed(found: _Found, gone: frozenset[str], *, old_ms: int) -> tuple[str, ...]:
    """The old manifests that no remaining state names; none where a remaining state cannot be read."""
    if not any(True for _ in found.manifests):
        return ()
    named = set[str]()
    # Listed again: a state that was committed meanwhile also names manifests.
    for file in _Found(found.store).states:
        if file.name in gone:
            continue
        try:
            state = IndexReader(found.store).state(file)
        except (CorruptLogError, ObjectNotFoundError) as error:
            logger.warning("manifests kept table=%s state=%s: %s", found.store.url, file.name, error)
            return ()
        named |= {manifest.name for manifest in state.manifests}
    return retention.unnamed(found.manifests, named, old_ms=old_ms)


def _is_state_dir(directory: str) -> bool:
    file = names.parse_name(f"{directory}/{names.STATE_MANIFEST}", size_bytes=0, modified_ms=0)
    return file is not None and file.kind is LogFileKind.STATE
