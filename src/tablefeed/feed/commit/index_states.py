"""The states of an IndexTables log: which state a commit needs beside it, and how a state is put.

The manifests are put first. The state's `_manifest.avro` is put last, and only if it is absent: a state that has this
file is whole. After that the hint in `_last_checkpoint` moves, and only ever forward.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.errors import (
    LogError,
    ObjectNotFoundError,
    StoreError,
    TableError,
    TablefeedError,
    TableReplacedError,
)
from tablefeed.feed.commit import index_attempts
from tablefeed.feed.commit.own_log import all_in_log_of, check_there
from tablefeed.feed.snapshot.index_log import IndexTablesLog, doc_mappings_of
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.orphans import delete_orphans
from tablefeed.indextables import names
from tablefeed.indextables.log import last_checkpoint, protocol
from tablefeed.indextables.log.avro_state import State
from tablefeed.indextables.log.last_checkpoint import Hint
from tablefeed.indextables.log.next_state import NextState, StateShape, StateUpdate, hint_of, next_state
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import AddFile, Commit, Version
from tablefeed.store import Within
from tablefeed.store.base import put_own

logger = logging.getLogger(__name__)

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a version of the table consists of: a commit, a state or both; and the writer whose form they have."""

    has_commits: bool
    has_states: bool
    writer: Writer


def form_of(log: IndexTablesLog, state: Snapshot) -> Form:
    """Gives the form of the version after `state`: the form of `state` itself.

    A table at version 0 gets both a commit and a state: every reader of its log can read one of them.
    """
    version = state.version
    if state.head is not None and state.head.name.endswith(names.state_name(version)):
        return Form(has_commits=False, has_states=True, writer=Writer.SCALA)
    if version == 0:
        return Form(has_commits=True, has_states=True, writer=Writer.SCALA)
    begin = log.store.read(f"{names.LOG_DIR}/{names.commit_name(version)}", end=len(_GZIP))
    return Form(
        has_commits=True,
        has_states=log.keeps_states(version),
        writer=Writer.NATIVE if begin == _GZIP else Writer.SCALA,
    )


def state_commit(
    log: IndexTablesLog, state: Snapshot, entry: Commit, mappings: Mapping[str, str], *, replaces: bool
) -> NextState:
    """Gives the state alone that commits `entry`, with its doc `mappings` by hash, and puts its manifests.

    A state has no place for a txn. Where no split is added whose name would show it, the state's manifests are noted
    first (index_attempts.py). Raises ObjectNotFoundError where the state of `state` is gone, and TableReplacedError
    where a manifest of it is.
    """
    base = log.state(state.version)
    if base is None:
        raise ObjectNotFoundError(url=log.url, name=names.state_name(state.version))
    check_whole(log, base)
    update = StateUpdate(
        version=entry.version,
        created_ms=entry.committed_at_ms or 0,
        added=entry.added,
        replaces_all=replaces,
        registry=mappings,
        protocol_version=base.protocol_version,
        metadata=base.metadata,
    )
    new = _next(log, base, update, Writer.SCALA, live=lambda: log.live_in(base))
    for txn in entry.txns if not entry.added else ():
        index_attempts.note_manifests(log, txn, (name for name, _ in new.manifests))
    _put_manifests(log, new)
    return new


def follow(log: IndexTablesLog, after: Snapshot, entry: Commit, *, writer: Writer, replaces: bool) -> None:
    """Puts the state of `entry`, our commit that made the table `after`. A failure is only logged as a warning."""
    before = Version(entry.version - 1)
    try:
        base = None if replaces else log.agreed_state(before)
        update = _update(after, created_ms=entry.committed_at_ms or 0, added=entry.added, replaces=replaces)

        def live() -> Iterable[pa.RecordBatch]:
            # If this state has come since, its writer may not see commits: it is left out.
            later = frozenset({names.state_name(before)})
            return log.files_of(before, after.unreadable | later) if base is None else log.live_in(base)

        if _put_beside(log, after, _next(log, base, update, writer, live=live)):
            log.made_state(entry.version)
    except TablefeedError as error:
        logger.warning("state failed table=%s version=%d: %s", log.url, entry.version, error)


def complete(log: IndexTablesLog, state: Snapshot, *, now_ms: int) -> None:
    """Puts the state of version `state` where its writer died before it did. A failure is only logged as a warning.

    It also fails where the table cannot be written any more.
    """
    try:
        protocol.refuse_writing(state.protocol, url=log.url)
        form = form_of(log, state)
        if form.has_commits and form.has_states and state.version and log.state(state.version) is None:
            put_whole(log, state, writer=form.writer, now_ms=now_ms)
    except TablefeedError as error:
        logger.warning("state failed table=%s version=%d: %s", log.url, state.version, error)


def put_whole(log: IndexTablesLog, state: Snapshot, *, writer: Writer, now_ms: int) -> bool:
    """Puts the state of a version that has none, from all its live files; False where another writer has put one."""
    update = _update(state, created_ms=now_ms)
    files = partial(log.files_of, state.version, state.unreadable)
    return _put_beside(log, state, _next(log, None, update, writer, live=files))


def delete_made_of(log: IndexTablesLog, entry: Commit) -> None:
    """Deletes the state that another writer has put for `entry`, a commit of ours that was deleted again.

    It has a split of ours. The state of another commit stays. A failure is only logged as a warning.
    """
    ours = pa.array([add.log_path for add in entry.added], pa.string())
    try:
        state = log.state(entry.version)
        if state is not None and any(pc.any(pc.is_in(b["log_path"], ours)).as_py() for b in log.live_in(state)):
            log.store.delete(f"{names.LOG_DIR}/{names.state_name(entry.version)}")
    except TablefeedError as error:
        logger.warning("state not taken back table=%s version=%d: %s", log.url, entry.version, error)


def _update(after: Snapshot, *, created_ms: int, added: Sequence[AddFile] = (), replaces: bool = False) -> StateUpdate:
    return StateUpdate(
        version=after.version,
        created_ms=created_ms,
        added=added,
        replaces_all=replaces,
        registry=doc_mappings_of(after),
        protocol_version=after.protocol.min_writer_version,
        metadata=after.metadata,
    )


def _next(
    log: IndexTablesLog,
    base: State | None,
    update: StateUpdate,
    writer: Writer,
    *,
    live: Callable[[], Iterable[pa.RecordBatch]],
) -> NextState:
    return next_state(
        base,
        update,
        writer=writer,
        shape=StateShape(),
        live=live,
        new_id=lambda: uuid.uuid4().hex,
        sync=lambda: os.urandom(16),
        url=log.url,
    )


def _put_beside(log: IndexTablesLog, state: Snapshot, new: NextState) -> bool:
    """Puts the state of `state`, a committed version, then the hint to it; False where it has a state already."""
    with all_in_log_of(state) as within:
        _put_manifests(log, new)
        path = f"{names.LOG_DIR}/{names.state_name(state.version)}"
        # Where this raises another error, the state may be in the log all the same, and it needs its manifests.
        try:
            is_put = put_own(log.store, path, new.state_file, within=within)
        except TableReplacedError:
            if not _goes_on(log, state):
                delete_orphans(log.store, manifest_paths(new))
            raise
        if is_put:
            check_whole(log, new.state)
            point_to(log, hint_of(new.state), within)
        else:
            delete_orphans(log.store, manifest_paths(new))
    return is_put


def check_whole(log: IndexTablesLog, state: State) -> None:
    """Raises TableReplacedError where a manifest of `state` is gone.

    So it is where an older copy of the table was restored after a writer put the manifest, and before it put the state.
    The writer then deletes its state again, but another writer may continue from it first. A request for each manifest
    that is not named by a state that `log` has seen with its manifests, and that is still there: a copy that has a
    state has its manifests, too.
    """
    version, file, known = log.whole
    if file is None or log.store.stat(f"{names.LOG_DIR}/{names.state_name(version)}") != file:
        known = frozenset()
    elif version == state.version:
        return
    check_there(log.store, [f"{names.LOG_DIR}/{each.name}" for each in state.manifests if each.name not in known])
    file = log.store.stat(f"{names.LOG_DIR}/{names.state_name(state.version)}")
    log.whole = state.version, file, manifests_of(state)


def manifests_of(state: State) -> frozenset[str]:
    """Gives the names of the manifests of `state`."""
    return frozenset(each.name for each in state.manifests)


def _goes_on(log: IndexTablesLog, state: Snapshot) -> bool:
    """Whether the table has later versions: then the commit of `state` was cleaned up, and they may name its manifests.

    Manifests that no state names are deleted by a cleanup later.
    """
    try:
        newest = log.load()
    except (LogError, TableError):
        return False
    except StoreError:
        return True
    return newest.metadata.table_id == state.metadata.table_id and newest.version > state.version


def _put_manifests(log: IndexTablesLog, new: NextState) -> None:
    """Puts the manifests of a state. No reader sees them before it, so only its put checks that the log is the same."""
    for path, (_, data) in zip(manifest_paths(new), new.manifests, strict=True):
        if not put_own(log.store, path, data, within=Within(directory=names.LOG_DIR)):
            raise StoreError(f"{path} of {log.url} is there already: run the write again.", url=log.url)


def manifest_paths(new: NextState) -> Sequence[str]:
    """Gives the files, below the table's root, of the manifests that `new` does not share with the state before."""
    return [f"{names.LOG_DIR}/{name}" for name, _ in new.manifests]


def point_to(log: IndexTablesLog, hint: Hint, within: Within) -> None:
    """Moves `_last_checkpoint` forward to `hint`. A state counts as newer than a checkpoint of the same version.

    Readers can do without this hint, so a StoreError is ignored. Raises TableReplacedError as `within` does.
    """
    path = f"{names.LOG_DIR}/{names.LAST_CHECKPOINT}"
    with suppress(StoreError):
        try:
            found = last_checkpoint.parse_last_checkpoint(log.store.read(path))
        except ObjectNotFoundError:
            found = None
        if found is None or (found.version, found.is_state) < (hint.version, hint.is_state):
            log.store.replace(path, last_checkpoint.encode_last_checkpoint(hint), within=within)
            # Hadoop's checksum of the file that was replaced.
            log.store.delete(f"{names.LOG_DIR}/.{names.LAST_CHECKPOINT}.crc")
