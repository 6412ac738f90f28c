"""Old files of an IndexTables log, deleted for who asks: versions that nobody wants, manifests that no state names.

Which are old, `tablefeed.indextables.retention` says. A state goes by its `_manifest.avro`, oldest first, so that a
cleanup that breaks off leaves a log that begins later. Manifests go last, and none of them where a state that is there
cannot be read: what it names is then not known.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from tablefeed.errors import CorruptLogError, ObjectNotFoundError
from tablefeed.feed.index_log import IndexTablesLog
from tablefeed.indextables import avro_state, checkpoint, listing, names, retention
from tablefeed.indextables.retention import Retention
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.store import Entry, Store

logger = logging.getLogger(__name__)


def clean_up(log: IndexTablesLog, kept: Retention, *, now_ms: int) -> int:
    """Deletes what `kept` does not keep; gives how many files went. Raises LogError and StoreError.

    The table is read first: of a log that cannot be read nothing is deleted.
    """
    log.load()
    store, found = log.store, _Found(log.store)
    unreadable = [file.name for file in found.log.checkpoints.values() if not _is_whole(store, found.log, file)]
    going = retention.expired(found.log, kept, unreadable=unreadable, now_ms=now_ms)
    gone = [file.name for file in (*going.commits, *going.states)]
    for name in gone:
        _delete(store, name)
    manifests = _unnamed(found, frozenset(gone), old_ms=now_ms - kept.manifests_ms, url=log.url)
    for name in manifests:
        _delete(store, name)
    logger.info("cleanup table=%s log_files=%d manifests=%d", log.url, len(gone), len(manifests))
    return len(gone) + len(manifests)


class _Found:
    """What the log's directories hold: the log, and every manifest with its time, by names below the log."""

    def __init__(self, store: Store) -> None:
        self.store = store
        entries = [(entry.name, entry) for entry in store.list(names.LOG_DIR)]
        for directory in store.directories(names.LOG_DIR):
            if directory == names.MANIFESTS_DIR or _is_state_dir(directory):
                entries += _below(store, directory)
        self._entries = entries
        files = (names.parse_name(n, size_bytes=e.size_bytes, modified_ms=e.modified_ms) for n, e in entries)
        self.log = listing.read_listing(file for file in files if file is not None)

    @property
    def states(self) -> list[LogFile]:
        """All of them, the pseudo state of version 0 too: whatever it is, somebody may go by it."""
        return [*self.log.states.values(), *([self.log.zeroth] if self.log.zeroth else [])]

    @property
    def manifests(self) -> Iterator[tuple[str, int]]:
        """The manifests by name, with when they were written."""
        for name, entry in self._entries:
            base = name.rpartition("/")[2]
            if "/" in name and base.endswith(".avro") and base != names.STATE_MANIFEST and not base.startswith("."):
                yield name, entry.modified_ms


def _unnamed(found: _Found, gone: frozenset[str], *, old_ms: int, url: str) -> tuple[str, ...]:
    """The old manifests that no state that is left names; none where one cannot be read."""
    if not any(True for _ in found.manifests):
        return ()
    named = set[str]()
    # Listed again: a state that was committed meanwhile names manifests too.
    for file in _Found(found.store).states:
        if file.name in gone:
            continue
        try:
            data = found.store.read(f"{names.LOG_DIR}/{file.name}")
            state = avro_state.decode_state(data, version=file.version, url=url, log_file=file.name)
        except (CorruptLogError, ObjectNotFoundError) as error:
            logger.warning("manifests kept table=%s state=%s: %s", url, file.name, error)
            return ()
        named |= {manifest.name for manifest in state.manifests}
    return retention.unnamed(found.manifests, named, old_ms=old_ms)


def _is_whole(store: Store, log: listing.Log, file: LogFile) -> bool:
    """Whether versions can be read from a JSON checkpoint."""
    try:
        data = store.read(f"{names.LOG_DIR}/{file.name}")
        parts = checkpoint.part_list(data, version=file.version, url=store.url, log_file=file.name)
        if parts is None:
            checkpoint.decode_checkpoint([(file.name, data)], url=store.url)
            return True
    except (CorruptLogError, ObjectNotFoundError):
        return False
    return parts.names_among(part.name for part in log.parts) is not None


def _delete(store: Store, name: str) -> None:
    """Deletes a log file, and Hadoop's checksum of it, which local tables have."""
    path = f"{names.LOG_DIR}/{name}"
    store.delete(path)
    if store.local_path(path) is not None:
        folder, _, base = path.rpartition("/")
        store.delete(f"{folder}/.{base}.crc")


def _below(store: Store, directory: str) -> list[tuple[str, Entry]]:
    return [(f"{directory}/{entry.name}", entry) for entry in store.list(f"{names.LOG_DIR}/{directory}")]


def _is_state_dir(directory: str) -> bool:
    file = names.parse_name(f"{directory}/{names.STATE_MANIFEST}", size_bytes=0, modified_ms=0)
    return file is not None and file.kind is LogFileKind.STATE
