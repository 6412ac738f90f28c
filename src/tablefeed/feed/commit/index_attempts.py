"""Finds the version of an IndexTables table that holds a write of an application, whatever became of its files since.

A log of states records no txn. After the splits of a batch were merged, neither the live files nor a compacted state
show the batch: only the version that added them does. So before a write is first tried, a note is put beside the log:
at which version of the table it was tried. The write is then in one of the versions after that one, or in none. A write
without a note was never tried. When a write is committed, the notes of earlier writes are deleted.

A version that adds no split has no file name that identifies its write. Where that version is a state alone, a second
note is put before the state. It names the manifests of the state, and no other writer makes manifests of these names.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import orjson

from tablefeed.errors import CommitUnknownError, LogError, StoreError
from tablefeed.feed.commit.transaction import Replay
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.indextables import names
from tablefeed.indextables.split.split_name import application_key, newest_of
from tablefeed.model.action_fields import read_long
from tablefeed.model.actions import Commit, Txn, Version
from tablefeed.store import Within

logger = logging.getLogger(__name__)

NOTES_DIR = f"{names.LOG_DIR}/_tablefeed"
"""No file below it may be named like a log file, because some readers look only at the last part of a path."""

_NAME = re.compile(r"(?:txn-(?P<tried>[0-9]+)|made-(?P<made>[0-9]+)-(?P<manifest_id>[0-9a-f]+))", re.ASCII)


def recorded(
    log: IndexTablesLog, state: Snapshot, txn: Txn, *, named: Mapping[str, int], since: Version | None = None
) -> Replay | None:
    """Gives the newest version up to `state` that holds `txn` or a later write of its application, else None.

    Reads the versions after that of the first try, or after `since`: the caller has looked at the earlier ones. Where
    one of them is gone from the log, a live split with the name of the write shows it too. Else CommitUnknownError is
    raised. Raises LogError where a note is damaged. `named` is that of the plan. Where the note is gone, a process that
    tried the write itself still knows when.
    """
    noted = _noted(log, txn)
    first = _first_tried(log, txn, noted) if since is None else since
    if first is None:
        replay = _recorded_without_note(state, txn, named)
        if replay is not None or log.in_doubt is None or log.in_doubt[0] != txn:
            return replay
        first = log.in_doubt[1]
    made = {note.manifest_id: note.txn_version for note in noted if note.txn_version >= txn.txn_version}
    for version in range(state.version, first, -1):
        try:
            commit = _commit(log, Version(version), txn)
        except CommitUnknownError:
            live = (path for batch in state.live_files() for path in batch["log_path"].to_pylist())
            newest = newest_of(txn.app_id, live)
            if newest is None or newest < txn.txn_version:
                raise
            return Replay(txn_version=newest, commit=None)
        found = _record(commit, txn) or _recorded_without_splits(log, commit, made, txn)
        if found is not None:
            return found
    return None


def note(log: TableLog, state: Snapshot, txn: Txn) -> None:
    """Puts the note that `txn` is first tried after the version of `state`. A note of an earlier try is kept.

    A note with a later version is replaced: it is of a table that was deleted or restored while its writer was held up,
    and would hide that the write is in one of the versions of this table up to that one.
    """
    name, within = note_of(txn), Within(directory=names.LOG_DIR)
    data = orjson.dumps({"appId": txn.app_id, "after": state.version})
    if not log.store.put_if_absent(name, data, within=within) and _after(log, txn, txn.txn_version) > state.version:
        log.store.replace(name, data, within=within)


def note_of(txn: Txn) -> str:
    """Gives the name of the note that `txn` was tried."""
    return _tried(txn, txn.txn_version)


def note_manifests(log: TableLog, txn: Txn, manifests: Iterable[str]) -> None:
    """Puts the notes that a state with `manifests`, by their names in the log, is about to be put for `txn`."""
    for name in manifests:
        manifest_id = name.removesuffix(".avro").rpartition("-")[2]
        path = f"{_folder(txn)}/made-{txn.txn_version:020d}-{manifest_id}"
        log.store.put_if_absent(path, b"", within=Within(directory=names.LOG_DIR))


def forget(log: TableLog, txn: Txn) -> None:
    """Deletes the notes of writes before `txn`, which is committed. A note that stays only costs some time later."""
    try:
        for older in _noted(log, txn):
            if older.txn_version < txn.txn_version:
                log.store.delete(f"{_folder(txn)}/{older.name}")
    except StoreError as error:
        logger.warning("notes table=%s app_id=%s: %s", log.url, txn.app_id, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Note:
    """A note, read from its name: write `txn_version` was tried or, with an id, that manifest was made for it."""

    name: str
    txn_version: int
    manifest_id: str | None


def _recorded_without_note(state: Snapshot, txn: Txn, named: Mapping[str, int]) -> Replay | None:
    """Finds a write whose note is gone, by what the plan and the state have read.

    The note is gone where the table was restored from a copy, or made anew, after the note and before the commit. The
    write is still in the commits since the last state or checkpoint, or in the names of live splits.
    """
    known = state.facts.txns.get(txn.app_id)
    in_commits = -1 if known is None else known.txn_version
    newest = max(in_commits, named.get(application_key(txn.app_id), -1))
    return None if newest < txn.txn_version else Replay(txn_version=newest, commit=None)


def _noted(log: TableLog, txn: Txn) -> list[_Note]:
    found = (_NAME.fullmatch(entry.name) for entry in log.store.list(_folder(txn)))
    return [
        _Note(name=each[0], txn_version=int(each["tried"] or each["made"]), manifest_id=each["manifest_id"])
        for each in found
        if each
    ]


def _folder(txn: Txn) -> str:
    return f"{NOTES_DIR}/{application_key(txn.app_id)}"


def _tried(txn: Txn, txn_version: int) -> str:
    return f"{_folder(txn)}/txn-{txn_version:020d}"


def _first_tried(log: TableLog, txn: Txn, noted: Iterable[_Note]) -> Version | None:
    """The version after which `txn` or a later write of its application was first tried; None if none was."""
    tried = (note.txn_version for note in noted if note.manifest_id is None and note.txn_version >= txn.txn_version)
    return min((_after(log, txn, txn_version) for txn_version in tried), default=None)


def _after(log: TableLog, txn: Txn, txn_version: int) -> Version:
    name = _tried(txn, txn_version)
    try:
        after = read_long(orjson.loads(log.store.read(name))["after"])
    except (KeyError, TypeError, ValueError) as error:
        raise LogError(
            f"{name} of {log.url} is damaged, so it is not known whether write {txn_version} of {txn.app_id} was "
            "committed. Look whether its rows are in the table. Then delete that file.",
            url=log.url,
        ) from error
    return Version(after)


def _commit(log: TableLog, version: Version, txn: Txn) -> Commit:
    try:
        commit = log.commit(version)
    except LogError as error:
        raise _unknown(log, version, txn) from error
    if commit is None:
        raise _unknown(log, version, txn)
    return commit


def _unknown(log: TableLog, version: Version, txn: Txn) -> CommitUnknownError:
    return CommitUnknownError(
        f"The write {txn.txn_version} of {txn.app_id} to {log.url} was tried before, and whether version {version} of "
        "the table holds it is not known any more: the changes of that version were purged from the log. Nothing was "
        "written. Look whether its rows are in the table. If they are, continue with the next write, else with another "
        "application id (a stream: a new checkpoint).",
        url=log.url,
        version=version,
    )


def _record(commit: Commit, txn: Txn) -> Replay | None:
    recorded = [each.txn_version for each in commit.txns if each.app_id == txn.app_id]
    named = newest_of(txn.app_id, (add.path for add in commit.added))
    newest = max((*recorded, *(() if named is None else (named,))), default=None)
    return None if newest is None or newest < txn.txn_version else _replay(commit, newest, txn)


def _recorded_without_splits(
    log: IndexTablesLog, commit: Commit, made: Mapping[str | None, int], txn: Txn
) -> Replay | None:
    """Finds a write by its manifests in the state of a version. Later states may name the same manifests."""
    state = log.state(commit.version) if any(made) else None
    named = () if state is None else (manifest.name for manifest in state.manifests)
    ids = {names.shared_manifest_name(each): each for each in made if each is not None}
    found = [made[ids[name]] for name in named if name in ids]
    return _replay(commit, max(found), txn) if found else None


def _replay(commit: Commit, txn_version: int, txn: Txn) -> Replay:
    # The version of a later write does not say whether ours is in an earlier one.
    return Replay(txn_version=txn_version, commit=commit if txn_version == txn.txn_version else None)
