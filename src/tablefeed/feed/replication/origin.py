"""Finds the commit of the source from which the newest commit of a target was copied.

The commitInfo of each copied commit names that commit, beside the txn that makes the copy exactly once. So a restart
continues where the last run ended. It also notices if the source or the target was replaced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import orjson

from tablefeed.delta import codec, names
from tablefeed.errors import ConflictError, LogError, ObjectNotFoundError, TableReplacedError, naming
from tablefeed.feed.replication.actions import is_copied
from tablefeed.feed.snapshot.delta_log import DeltaSnapshot
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.model.actions import CdcFile, Commit, Version

_T = TypeVar("_T")

AGAIN = "Call again with resync=True to copy the newest version as one commit."


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The `version` of the source, whose commit has the `digest`; None where that commit was gone."""

    table_id: str
    version: Version
    digest: str | None

    def as_info(self) -> dict[str, object]:
        """Gives what commitInfo says."""
        return {"tableId": self.table_id, "version": self.version, "commit": self.digest}


def read_commit(log: TableLog, version: Version) -> tuple[Commit, str] | None:
    """Gives a commit of the source and the digest of its bytes; None where it is not there."""
    name = names.commit_name(version)
    try:
        data = log.store.read(f"{names.LOG_DIR}/{name}")
    except ObjectNotFoundError:
        return None
    with naming(log.url):
        commit = codec.decode_commit(data, version=version, log_file=name, modified_ms=None)
    return commit, hashlib.sha256(data).hexdigest()


def digest_of_commit(log: TableLog, version: Version) -> str | None:
    """Gives the digest of a commit's file, after the name of the file if it is a state; None if the file is gone."""
    head = log.head(version)
    if head is None:
        return None
    try:
        digest = hashlib.sha256(log.store.read(head.name)).hexdigest()
    except ObjectNotFoundError:
        return None
    return digest if head.name.endswith(names.commit_name(version)) else f"{head.name}:{digest}"


def origin_of(target: DeltaSnapshot, app_id: str, *, by_rows: bool = False) -> Origin:
    """Gives the origin of the newest copied commit. Commits without actions, such as those of VACUUM, may follow it.

    With `by_rows`, commits that change no row may follow it, and may be between it and the version it was made from.
    Raises ConflictError if any other commit follows it, or if there is none.
    """
    found: tuple[Origin, int] | None = None
    for version in range(target.version, -1, -1):
        commit = target.log.commit(Version(version))
        if commit is None:
            break
        copied = _origin(commit, app_id, by_rows=by_rows) if found is None else None
        if copied is None and _changes_table(commit, by_rows=by_rows):
            break
        found = found or copied
        if found is not None and version <= found[1] + 1:
            return found[0]
    was_copy = app_id in target.facts.txns
    remedy = AGAIN if was_copy else "Give a path without a table, or the app_id of the earlier calls."
    raise ConflictError(
        f"Nothing was copied to {target.url}: its newest version, {target.version}, is no copy "
        f"{'by rows' if by_rows else 'of files'} that {app_id} made, so it is not known to equal a version of the "
        f"source. {remedy}",
        url=target.url,
        winner=target.version,
        error_class="TABLEFEED_REPLICA_CHANGED" if was_copy else "TABLEFEED_NO_REPLICA",
    )


def _changes_table(commit: Commit, *, by_rows: bool) -> bool:
    if by_rows:
        changed = any(not isinstance(file, CdcFile) and file.data_change for file in commit.files)
    else:
        changed = bool(commit.files) or any(map(is_copied, commit.domains))
    return changed or commit.metadata is not None or commit.protocol is not None


def _origin(commit: Commit, app_id: str, *, by_rows: bool) -> tuple[Origin, int] | None:
    """Gives the origin that a commit names, and the version of the target from which it was made."""
    info = commit.info or {}
    try:
        found = (orjson.loads(str(info.get("userMetadata"))) if by_rows else info)[names.COPIED_FROM]
    except (ValueError, LookupError, TypeError):
        return None
    recorded = next((txn.txn_version for txn in commit.txns if txn.app_id == app_id), None)
    if recorded is None or not isinstance(found, Mapping) or found.get("version") != recorded:
        return None
    digest, after = found.get("commit"), found.get("after", commit.version - 1)
    origin = Origin(
        table_id=str(found.get("tableId")),
        version=Version(recorded),
        digest=digest if isinstance(digest, str) else None,
    )
    return (origin, after) if isinstance(after, int) else None


def check_same_source(newest: Snapshot, origin: Origin) -> None:
    """Raises TableReplacedError if the source at `newest` does not continue from `origin`."""
    same = newest.version >= origin.version
    if same and origin.digest is not None:
        found = digest_of_commit(newest.log, origin.version)
        # The digest may be of a commit whose file was deleted since, while its state is still there.
        same = found in (None, origin.digest) or (found or "").rpartition(":")[0] != origin.digest.rpartition(":")[0]
    if same and newest.metadata.table_id != origin.table_id:  # some writers give a new id where they replace a table
        later = (read_commit(newest.log, Version(v)) for v in range(origin.version + 1, newest.version + 1))
        ids = {found[0].metadata.table_id for found in later if found is not None and found[0].metadata is not None}
        same = newest.metadata.table_id in ids
    if not same:
        raise _replaced(newest, origin.version, or_else=", or the target is a copy of another table")


def check_unchanged(newest: Snapshot) -> None:
    """Raises TableReplacedError if the commit of `newest` is gone or another since then. Call it after each reading."""
    if newest.head is not None and newest.log.head(newest.version) != newest.head:
        raise _replaced(newest, newest.version)


def _replaced(newest: Snapshot, version: Version, *, or_else: str = "") -> TableReplacedError:
    return TableReplacedError(
        f"{newest.url} is not the table whose version {version} was read for a copy: it was deleted and created again, "
        f"or restored from a backup{or_else}. Nothing was copied. Check both paths. {AGAIN}",
        url=newest.url,
        error_class="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
    )


def required(found: _T | None, version: Version, log: TableLog) -> _T:
    """Gives `found`. Raises LogError if the source's log lost the commit of `version`."""
    if found is None:
        raise LogError(
            f"Version {version} of {log.url} was not copied yet, and its commit is gone from the log. Nothing was "
            f"copied. {AGAIN} To keep the log for longer, raise {names.LOG_RETENTION}.",
            url=log.url,
            error_class="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
        )
    return found
