"""The put that makes a commit: asked again until it is known whose file stands, and held against the version before.

A put succeeds where its name is free. A name is free where the version was never made, and also where it was made and
deleted again: by a cleanup of the log while this writer was held up for longer than the retention, or with the whole
table. Both show in the file of the version before. Cleanup deletes the older of two versions first, and a table that
was made anew has another file there. So a commit is one where that file is as it was after the put; a look at one file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tablefeed.delta.names import LAST_CHECKPOINT  # IndexTables calls its own the same
from tablefeed.errors import (
    CommitUnknownError,
    LogError,
    NotExclusiveError,
    ObjectNotFoundError,
    StoreError,
    TableError,
)
from tablefeed.feed.commit.transaction import Surroundings
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFileKind
from tablefeed.store import Entry, Within

logger = logging.getLogger(__name__)

LOST_ANSWER_RETRIES = 5
"""How often a store that fails is asked again whether our commit stands before we give up not knowing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """The commit `data` of the version after `base`, or of version 0, as the log file `name`.

    `stands` reads back whether it is ours that is there.
    """

    log: TableLog
    base: Snapshot | None
    name: str
    data: bytes
    stands: Callable[[], bool]

    @property
    def version(self) -> Version:
        """The version that it makes."""
        return Version(0 if self.base is None else self.base.version + 1)

    @property
    def path(self) -> str:
        """Its file, below the table."""
        return f"{self.log.directory}/{self.name}"


def put_settled(put: Put, around: Surroundings) -> Entry | None:
    """Puts a commit: gives its file where it is the successor of its base; None where it is not, and is not there.

    Raises CommitUnknownError where the store will not say, and NotExclusiveError where it cannot promise a single
    winner.
    """
    log, failure = put.log, None
    # Only the first version makes a log: one that was deleted does not come back with a later one.
    within = None if put.base is None else Within(directory=log.directory)
    for attempt in range(LOST_ANSWER_RETRIES):
        try:
            if failure is not None and put.stands():
                return _succeeded(put)
            # Where the name is taken: by a rival, or by a put of ours that was sent twice or arrived late.
            if log.store.put_if_absent(put.path, put.data, within=within) or put.stands():
                return _succeeded(put)
        except NotExclusiveError:
            raise
        except ObjectNotFoundError:
            return None  # the log is gone
        except StoreError as error:
            failure = error
            logger.warning("unsettled table=%s version=%d attempt=%d: %s", log.url, put.version, attempt, error)
            around.sleep(around.uniform() * 0.1 * 2**attempt)
        else:
            return None
    raise CommitUnknownError(
        f"The store failed while version {put.version} of {log.url} was committed, and does not say whether it stands. "
        "Nothing is lost: run the same batch again, and what stands is not written twice.",
        url=log.url,
        version=put.version,
    ) from failure


def _succeeded(put: Put) -> Entry | None:
    """Gives the file of a commit that was put, None where it turns out to be no successor, and is gone again."""
    log, base = put.log, put.base
    # Asked for before the look at the base: if that is as it was afterwards, this file is of the same table.
    ours = log.head(put.version)
    if base is None:
        is_next = not log.store.exists(f"{log.directory}/{LAST_CHECKPOINT}")
    else:
        is_next = base.head is not None and log.head(base.version) == base.head
    if ours is not None and is_next:
        return ours
    return log.head(put.version) if _is_next_in_listing(put) else None


def _is_next_in_listing(put: Put) -> bool:
    """Whether a commit is its base's successor though the base is not there as it was; takes it back where it is not.

    Versions are made in order. So where a file of a later version is older than ours, ours took the name of one that
    was cleaned up; where all are younger, the base was cleaned up after ours was put.
    """
    log, base = put.log, put.base
    listed = log.listing(put.version, over_holes=True)
    ours = [file.modified_ms for file in listed if file.version == put.version and file.kind is LogFileKind.COMMIT]
    later = [file.modified_ms for file in listed if file.version > put.version]
    if not ours:
        raise _unknown(put, "its file is gone again")
    if any(modified_ms < ours[0] for modified_ms in later):
        _take_back(put, "it was cleaned up")
        return False
    if base is None or _is_of(log, base):
        return True
    if later:
        raise _unknown(put, f"version {put.version} came into another table, and others went on from it")
    _take_back(put, "the table was deleted, made anew or restored")
    return False


def _is_of(log: TableLog, base: Snapshot) -> bool:
    """Whether the log is still that of `base`, whose commit a cleanup may have deleted, and nobody have replaced."""
    if log.head(base.version) is not None and base.head is not None:
        return False
    try:
        return log.load().metadata.table_id == base.metadata.table_id
    except (LogError, TableError):
        return False


def _take_back(put: Put, why: str) -> None:
    logger.warning("taken back table=%s version=%d: %s", put.log.url, put.version, why)
    if put.stands():
        put.log.store.delete(put.path)


def _unknown(put: Put, why: str) -> CommitUnknownError:
    return CommitUnknownError(
        f"Version {put.version} of {put.log.url} was committed while its log was replaced or cleaned up: {why}. So it "
        "is not known whether the commit holds. Run the same batch again: it is not written twice. A write without "
        "txnAppId is: look for its rows first.",
        url=put.log.url,
        version=put.version,
    )
