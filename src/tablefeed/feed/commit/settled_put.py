"""The put that makes a commit: repeated until it is known whose file is there, then checked against the version before.

A put succeeds where its name is free. The name of a version is free where that version was never made, and also where
it was made and deleted again: by a cleanup of the log while this writer was held up, or together with the whole table.
Both usually show in the file of the version before: cleanup deletes the older of two versions first, and a table that
was made anew has another file there. So after a put the writer looks at that one file. Where that file has
changed, or is so old that a cleanup may have deleted later versions before it, the log is listed.

Before a first version there is no other. So the writer reads its commit again: if the table was made anew since the
put, another one is there. The version 0 of an IndexTables table has no files. So a writer that found no table looks
whether its data files are still there: if somebody emptied the folder while they were written, or until the put, some
are gone.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile

from tablefeed.delta.names import LAST_CHECKPOINT  # IndexTables calls its own the same
from tablefeed.errors import (
    CommitUnknownError,
    ConflictError,
    LogError,
    NotExclusiveError,
    ObjectNotFoundError,
    StoreConfigError,
    TableError,
    TablefeedError,
    UnsupportedFeatureError,
)
from tablefeed.feed.commit.transaction import Put, Surroundings
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.indextables.names import STATE_MANIFEST
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFileKind
from tablefeed.store import Entry
from tablefeed.store.local import LocalStore

logger = logging.getLogger(__name__)

LOST_ANSWER_RETRIES = 5
"""How often a put is tried on a store that fails. After that its outcome is reported as unknown."""


_NOT_SENT = (StoreConfigError, UnsupportedFeatureError)
"""What a store raises before it sends a put: its catalog gives no credentials to write, or manages the commits."""

_CHECKPOINTS = (LogFileKind.CHECKPOINT, LogFileKind.CHECKPOINT_PART, LogFileKind.CHECKPOINT_V2)

OLD_MS = 86_400_000
"""Where the version before is younger than this, no cleanup can have deleted the version that comes after it."""

LISTINGS_AT_ONCE = 16
"""How many folders are listed at once to look for the files of a first version."""

SKEW_MS = 60_000
"""Two times of files, or of a file and this machine, that are no further apart do not show which came first."""


def put_settled(put: Put, around: Surroundings) -> Entry | None:
    """Puts a commit and gives its file; None where another commit has the version, or ours is not in the log.

    Ours is not there where the log itself is gone, or where it did not follow its base and was deleted again.

    Raises CommitUnknownError where the outcome cannot be known, ConflictError where a first write was deleted again
    because data files of it are gone, NotExclusiveError where the store cannot promise a single winner,
    StoreConfigError and UnsupportedFeatureError where the store did not send the put, and the error of a local disk
    that refused it.
    """
    log, failure, may_be_there = put.log, None, False
    for attempt in range(LOST_ANSWER_RETRIES):
        try:
            if failure is not None and put.is_ours():
                return _succeeded(put, around)
            try:
                created = log.store.put_if_absent(put.path, put.data, within=put.within)
            except ObjectNotFoundError:
                return None  # the log is gone
            may_be_there = True
            # The name may be taken by another commit, or by a put of ours that was sent twice or arrived late.
            return _succeeded(put, around) if created or put.is_ours() else None
        except (CommitUnknownError, ConflictError, NotExclusiveError):
            raise
        except TablefeedError as error:
            if isinstance(error, _NOT_SENT) and not may_be_there:
                raise
            failure, may_be_there = error, True
            logger.warning("unsettled table=%s version=%d attempt=%d: %s", log.url, put.version, attempt, error)
            around.sleep(around.uniform() * 0.1 * 2**attempt)
    if failure is not None and isinstance(log.store, LocalStore) and not _may_be_there(put):
        raise failure
    raise CommitUnknownError(
        f"The store failed while version {put.version} of {log.url} was put, so it is not known whether the commit "
        f"succeeded. Run the same batch again: what was committed is not written twice. The store said: {failure}",
        url=log.url,
        version=put.version,
    ) from failure


def _may_be_there(put: Put) -> bool:
    """Whether the commit may be in the log of a local disk, where no put arrives late."""
    try:
        return put.is_ours()
    except TablefeedError:
        return True


def _succeeded(put: Put, around: Surroundings) -> Entry | None:
    """Gives the file of a commit that was put; None where it does not follow its base. It is then deleted again."""
    log, base, now_ms = put.log, put.base, around.now_ms()
    # Looked at before the base: where the base has not changed afterwards, this file belongs to the same table.
    ours = log.head(put.version)
    if base is None and ours is not None and not put.is_ours():
        return None  # the table was made anew since the put
    if base is None:
        is_next, is_old = not log.store.exists(f"{log.directory}/{LAST_CHECKPOINT}"), False
    else:
        is_next = base.head is not None and log.head(base.version) == base.head
        is_old = base.head is not None and max(now_ms, ours.modified_ms if ours else 0) - base.head.modified_ms > OLD_MS
    if (ours is None or not is_next or is_old) and not _is_next_in_listing(put, around, is_next=is_next):
        return None
    # A copy with the same newest commit may have been restored meanwhile.
    gone = next((part for part in put.parts if not log.store.exists(part)), None)
    if gone is not None:
        _take_back_alone(put, gone)
        return None
    if put.new_files:
        _check_files_are_there(put)
    return ours or log.head(put.version)


def _is_next_in_listing(put: Put, around: Surroundings, *, is_next: bool) -> bool:
    """Lists the log to decide whether a commit follows its base, and deletes the commit if it does not.

    `is_next`: the file of the base has not changed. The outcome is unknown where our version is gone. Else the first
    line that fits decides:

        files of later versions     the base                   outcome
        one is older than ours      any                        taken back: others made our version and cleaned it up
        any other                   has not changed            follows
        one may be older            any                        unknown
        none                        gone, or there was none    follows
        all are younger             gone, or there was none    follows; unknown if our file is older than the put
        none                        of another table           taken back; unknown if later versions came meanwhile
        all are younger             of another table           unknown

    Times within SKEW_MS of each other do not show which came first. Nor does the time of a file that got its name long
    after it was written. Unknown: nothing is deleted, and CommitUnknownError is raised.
    """
    base, now_ms = put.base, around.now_ms()
    times = _times(put)
    for attempt in range(LOST_ANSWER_RETRIES):
        if put.version in times or not put.is_ours():
            break
        around.sleep(around.uniform() * 0.1 * 2**attempt)
        times = _times(put)  # the listing came too late for our file
    if put.version not in times:
        raise _unknown(put, "its file is gone again, or the listing lacks it")
    ours_ms, later = times.pop(put.version), times.values()
    if later and min(later) < ours_ms - SKEW_MS:
        _take_back(put, "it was cleaned up")
        return False
    if is_next:
        return True
    if later and min(later) < ours_ms:
        raise _unknown(put, "the file of a later version is older")
    if base is None or _is_of(put, base):
        if later and now_ms - ours_ms > SKEW_MS:
            raise _unknown(put, "its file is older than the put, and the version before is gone")
        return True
    if not later and _is_taken_back(put, "the table was deleted, made anew or restored"):
        return False
    raise _unknown(put, "it is in the log of another table, and others have continued from it")


def _check_files_are_there(put: Put) -> None:
    """Raises ConflictError, once the commit is deleted again, if a data file of a first write is gone.

    Costs a listing for each folder that has such files. Raises CommitUnknownError, and deletes nothing, where later
    versions follow the commit.
    """
    store, expected = put.log.store, defaultdict[str, set[str]](set)
    for path in put.new_files:
        folder, _, name = path.rpartition("/")
        expected[folder].add(name)

    def absent(folder: str) -> list[str]:
        names = expected[folder]
        last = max(names)
        listed = takewhile(lambda entry: entry.name <= last, store.list(folder, start=min(names)))
        return sorted(names.difference(entry.name for entry in listed))

    with ThreadPoolExecutor(LISTINGS_AT_ONCE) as pool:
        each = map(absent, expected) if len(expected) == 1 else pool.map(absent, expected)
        gone = [f"{folder}/{name}".lstrip("/") for folder, names in zip(expected, each, strict=True) for name in names]
    if not gone:
        return
    _take_back_alone(put, gone[0])
    raise ConflictError(
        f"Nothing was committed to {put.log.url}: its folder was emptied while the table was made, and {len(gone)} of "
        f"{len(put.new_files)} new files are gone, such as {gone[0]}. Run the write again (restart the query).",
        url=put.log.url,
        winner=-1,
        error_class="DELTA_METADATA_CHANGED",
    )


def _take_back_alone(put: Put, gone: str) -> None:
    """Deletes a commit whose file `gone` is gone; raises CommitUnknownError where others have continued from it."""
    if len(_times(put)) > 1 or not _is_taken_back(put, f"{gone} is gone"):
        raise _unknown(put, f"its file {gone} is gone, and others have continued from it")


def _is_taken_back(put: Put, why: str) -> bool:
    """Deletes the commit, and gives True; False where it is in the log again.

    So it is where later versions came meanwhile, or somebody put a checkpoint of its version.
    """
    _take_back(put, why)
    times = _times(put)
    if put.version in times or not (times or _is_in_checkpoint(put)):
        return True
    # Their log must have no hole.
    return not (put.log.store.put_if_absent(put.path, put.data, within=put.within) or put.is_ours())


def _is_in_checkpoint(put: Put) -> bool:
    """Whether the log has a checkpoint of the version of `put`; a state goes with its commit."""
    files = put.log.listing(put.version, over_holes=True)
    others = (file for file in files if file.kind in _CHECKPOINTS and file.version == put.version)
    return any(not file.name.endswith(STATE_MANIFEST) for file in others)


def _times(put: Put) -> dict[Version, int]:
    """The file times in ms of the commits that are in the log, from the version of `put` on."""
    files = put.log.listing(put.version, over_holes=True)
    return {file.version: file.modified_ms for file in files if file.kind is LogFileKind.COMMIT}


def _is_of(put: Put, base: Snapshot) -> bool:
    """Whether the log still belongs to the table of `base`, whose commit was cleaned up and not replaced.

    A state repeats the metadata of `base`, so ours says nothing about the log. The commit of version 0 does, and so do
    the files that ours names: a cleanup of the log keeps them, and whoever deletes the table does not. A cleanup
    deletes the oldest first, but for version 0: older states than `base` are of a copy.
    """
    log = put.log
    if log.head(base.version) is not None and base.head is not None:
        return False
    try:
        first = log.commit(Version(0)) if put.name.endswith(STATE_MANIFEST) else None
        if first is not None and first.metadata is not None and first.metadata.table_id != base.metadata.table_id:
            return False
        is_same = log.load().metadata.table_id == base.metadata.table_id
        if put.name.endswith(STATE_MANIFEST):
            commits = (file.version for file in log.listing(over_holes=True) if file.kind is LogFileKind.COMMIT)
            is_same = is_same and not any(0 < version < base.version for version in commits)
        return is_same and all(log.store.exists(path) for path in put.needed)
    except (LogError, TableError):
        return False


def _take_back(put: Put, why: str) -> None:
    logger.warning("taken back table=%s version=%d: %s", put.log.url, put.version, why)
    if put.is_ours():
        put.log.store.delete(put.path)
        if put.undo is not None:
            put.undo()


def _unknown(put: Put, why: str) -> CommitUnknownError:
    return CommitUnknownError(
        f"Version {put.version} of {put.log.url} was put while its log was replaced or cleaned up: {why}. So it is not "
        "known whether the commit succeeded. Run the same batch again: with txnAppId it is not written twice. Without "
        "it, look for its rows first.",
        url=put.log.url,
        version=put.version,
    )
