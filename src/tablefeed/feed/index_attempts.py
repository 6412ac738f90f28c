"""Which write of an application an IndexTables table has: once it was tried, whatever became of its files since.

A log of states records no txn, and neither the live files nor a state that was compacted still show a batch whose
splits were merged: only the version that it made does. So whoever is about to commit a write first notes, beside the
log, at which version of the table that was first tried. The write is then in one of the versions after that one, or in
none. A write without a note was never tried. Notes of writes before one that stands are deleted.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import orjson

from tablefeed.errors import CommitUnknownError, LogError, StoreError
from tablefeed.feed.table_log import Snapshot, TableLog
from tablefeed.indextables import names
from tablefeed.indextables.split_name import application_key, newest_of
from tablefeed.model.actions import Commit, Txn, Version
from tablefeed.store import Within

logger = logging.getLogger(__name__)

NOTES_DIR = f"{names.LOG_DIR}/_tablefeed"
"""No name below it is like that of a log file: some readers look at nothing but the last part of a path."""

_PREFIX = "txn-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A version of the table that holds a write of the application, and which of its writes that is."""

    commit: Commit
    txn_version: int


def recorded(log: TableLog, state: Snapshot, txn: Txn, *, since: Version | None = None) -> Recorded | None:
    """Gives the version that holds `txn` or a later write of its application, up to `state`; None where none does.

    Every version since the first try is read, or since `since` where those before were read already. Raises
    CommitUnknownError where one of them is gone: what it held cannot be told.
    """
    first = _first_tried(log, txn) if since is None else since
    if first is None:
        return None
    for version in range(state.version, first, -1):
        found = _record(_commit(log, Version(version), txn), txn)
        if found is not None:
            return found
    return None


def note(log: TableLog, state: Snapshot, txn: Txn) -> None:
    """Notes that `txn` is tried from now on, after the version of `state`; what was noted first stays."""
    data = orjson.dumps({"appId": txn.app_id, "after": state.version})
    log.store.put_if_absent(_note(txn, txn.txn_version), data, within=Within(directory=names.LOG_DIR))


def forget(log: TableLog, txn: Txn) -> None:
    """Deletes the notes of writes before `txn`, which stands. What cannot be deleted costs a little time later."""
    try:
        for older in _noted(log, txn):
            if older < txn.txn_version:
                log.store.delete(_note(txn, older))
    except StoreError as error:
        logger.warning("notes table=%s app_id=%s: %s", log.url, txn.app_id, error)


def _first_tried(log: TableLog, txn: Txn) -> Version | None:
    """The version after which `txn`, or a later write of its application, was first tried; None: none was."""
    found = [_after(log, txn, version) for version in _noted(log, txn) if version >= txn.txn_version]
    return min(found, default=None)


def _noted(log: TableLog, txn: Txn) -> list[int]:
    listed = (entry.name for entry in log.store.list(f"{NOTES_DIR}/{application_key(txn.app_id)}"))
    return [int(name.removeprefix(_PREFIX)) for name in listed if name.removeprefix(_PREFIX).isdecimal()]


def _note(txn: Txn, txn_version: int) -> str:
    return f"{NOTES_DIR}/{application_key(txn.app_id)}/{_PREFIX}{txn_version:020d}"


def _after(log: TableLog, txn: Txn, txn_version: int) -> Version:
    name = _note(txn, txn_version)
    try:
        after = orjson.loads(log.store.read(name))["after"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise LogError(
            f"{name} of {log.url} is damaged: it is to say after which version of the table the write {txn_version} of "
            f"{txn.app_id} was tried. Look whether its rows are in the table; then delete that file.",
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
        "the table holds it cannot be told any more: what that version changed was purged from the log. Nothing was "
        "written. Look whether its rows are in the table; if they are, go on with the next write, else with another "
        "application id (a stream: a new checkpoint).",
        url=log.url,
        version=version,
    )


def _record(commit: Commit, txn: Txn) -> Recorded | None:
    told = [each.txn_version for each in commit.txns if each.app_id == txn.app_id]
    named = newest_of(txn.app_id, (add.path for add in commit.added))
    newest = max((*told, *(() if named is None else (named,))), default=None)
    return None if newest is None or newest < txn.txn_version else Recorded(commit=commit, txn_version=newest)
