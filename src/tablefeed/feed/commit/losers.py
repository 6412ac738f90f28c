"""Deletes the files of writes that lost a conflict or came twice, where the log proves that no commit names them.

All other files stay, for VACUUM to delete.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tablefeed.errors import StoreError, TablefeedError
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.write.row_replacement import Rewriting
from tablefeed.feed.write.write_plan import WritePlan
from tablefeed.model.actions import AddFile, CdcFile, Commit, Txn, Version

logger = logging.getLogger(__name__)


def delete_replayed(log: TableLog, transaction: Transaction) -> None:
    """Deletes the files of a transaction that was committed already, as `delete_losers`; nothing without a txn."""
    rewriting = transaction.rewriting or Rewriting()
    files = transaction.files + rewriting.written
    if transaction.txn is not None and files:
        first = 0 if transaction.plan.version is None else transaction.plan.version + 1
        _delete_losers(log, files, transaction.txn, first)


def delete_losers(plan: WritePlan, files: Sequence[AddFile], txn: Txn) -> None:
    """Deletes `files`, written under `plan`, where the log shows that `txn` was committed without them; else nothing.

    Reads the first commit since the write was planned that records `txn` or a later version of its application. Files
    that this commit names stay. Where there is no such commit, nothing is deleted: VACUUM will do it.
    """
    if files:
        log = open_log(plan.location, plan.storage_options, table_format=plan.table_format)
        first = 0 if plan.version is None else plan.version + 1
        _delete_losers(log, files, txn, first)


def delete_uncommitted(plan: WritePlan, files: Sequence[AddFile | CdcFile]) -> None:
    """Deletes `files`, written under `plan`, of a write for which no commit was ever tried."""
    if files:
        _delete(open_log(plan.location, plan.storage_options, table_format=plan.table_format), files)


def delete_excluded(log: TableLog, transaction: Transaction, winner: int) -> None:
    """Deletes the files of a write that conflicts with the commit of version `winner`; none if a commit names one.

    We only ever tried versions up to `winner`, and each of them now exists. So our commit is one of them, or it never
    happened. A commit that names our files is an earlier try of this write. Where one of these versions cannot be read,
    nothing is deleted.
    """
    ours = {file.path for file in transaction.files}
    first = 0 if transaction.plan.version is None else transaction.plan.version + 1
    try:
        for version in range(first, winner + 1) if ours else ():
            commit = log.commit(Version(version))
            if commit is None or not ours.isdisjoint(file.path for file in commit.files):
                return
    except TablefeedError as error:
        logger.warning("orphans table=%s: %s", log.url, error)
    else:
        _delete(log, transaction.files)


def _delete(log: TableLog, files: Sequence[AddFile | CdcFile]) -> None:
    try:
        for file in files:
            log.store.delete(file.path)
    except StoreError as error:
        # No commit names the files that stay, and the caller has another error to report.
        logger.warning("orphans table=%s: %s", log.url, error)


def _delete_losers(log: TableLog, files: Sequence[AddFile | CdcFile], txn: Txn, first: int) -> None:
    try:
        winner = _winner(log, txn, first)
        if winner is not None:
            committed = {f.path for f in winner.files}
            for file in files:
                if file.path not in committed:
                    log.store.delete(file.path)
    except StoreError as error:
        # No commit names the files that stay: they must not turn a known outcome into a failure.
        logger.warning("orphans table=%s app_id=%s txn_version=%d: %s", log.url, txn.app_id, txn.txn_version, error)


def _winner(log: TableLog, txn: Txn, first: int) -> Commit | None:
    """Gives the first commit from `first` on that records `txn` or a later one of its application."""
    version = Version(first)
    while (commit := log.commit(version)) is not None:
        if any(t.app_id == txn.app_id and t.txn_version >= txn.txn_version for t in commit.txns):
            return commit
        version = Version(version + 1)
    return None
