"""Commits the files of bad rows (feed/write/bad_rows.py) after the batch that they were taken out of.

The commit of the batch decides which rows are bad: it names the files of the others, and in its commitInfo those of the
bad rows. So a batch that is run again, perhaps under other rules, writes nothing anew: the files that the commit names
are committed to their own table, once, with the txn of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tablefeed.delta import paths
from tablefeed.delta.names import BAD_RECORDS
from tablefeed.errors import CommitError
from tablefeed.feed.commit.delta_commit import recorded_version
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Operation, Surroundings, Transaction
from tablefeed.feed.snapshot.known_state import newest_state, remember
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.bad_rows import table_of_bad_rows
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Commit, Txn, Version

Named = Mapping[str, Any]
"""JSON: the `url` of a table and its new `files`, as a commitInfo has them."""


def named(url: str, files: Sequence[AddFile]) -> Named | None:
    """Gives the new files of bad rows at `url` for the commitInfo of their batch; None where there are none."""
    described = [
        {"path": file.log_path, "size": file.size_bytes, "modificationTime": file.modified_ms, "stats": file.stats}
        for file in files
    ]
    return {"url": url, "files": described} if described else None


def named_in_batch(state: Snapshot, txn: Txn, location: str | None, storage_options: Mapping[str, str]) -> Named | None:
    """Gives what the commit of `txn`, which `state` records as the last of its application, names; None: nothing.

    Raises CommitError where that commit is no longer in the log, so that nothing shows whether it has bad rows, unless
    the table for them at `location` records `txn`. Without a `location` that is None.
    """
    for version in range(state.version, -1, -1):
        found = state.log.commit(Version(version))
        if found is None:
            break
        if _records(found, txn):
            given = (found.info or {}).get(BAD_RECORDS)
            return given if isinstance(given, Mapping) else None
    if location is None:
        return None
    log, bad_state = newest_state(location, storage_options)
    if recorded_version(bad_state, txn) is not None:
        return None
    raise CommitError(
        f"Batch {txn.txn_version} of query {txn.app_id} was committed to {state.url}, but its commit has left the log. "
        "So it is unknown whether the batch had bad rows (badRecords). If it had, they were not committed to "
        f"{log.url}. {_give_up(log.url, txn)}",
        url=state.url,
    )


def _give_up(url: str, txn: Txn) -> str:
    return (
        f"To go on without them, record the batch there: tablefeed.append({url!r}, rows, app_id={txn.app_id!r}, "
        f"txn_version={txn.txn_version}), with the bad rows if you still have them, or with an empty table."
    )


def _records(found: Commit, txn: Txn) -> bool:
    return any(each.app_id == txn.app_id and each.txn_version == txn.txn_version for each in found.txns)


def commit_bad_rows(
    given: Named,
    storage_options: Mapping[str, str],
    txn: Txn,
    *,
    operation: Operation,
    around: Callable[[], Surroundings],
) -> None:
    """Commits the files that `given` names, unless their table records `txn`. If this raises, it can be called again.

    Raises CommitError where a file is gone, and as `loop.commit`.
    """
    url = given["url"]
    log, state = newest_state(url, storage_options)
    if recorded_version(state, txn) is not None:
        return
    files = tuple(_adds(given["files"]))
    gone = [file.path for file in files if not log.store.exists(file.path)]
    if gone:
        raise CommitError(
            f"Batch {txn.txn_version} of query {txn.app_id} was committed, but the file {gone[0]} of its bad rows is "
            f"gone from {url}. Bring the file back, and start the query again. {_give_up(url, txn)}",
            url=url,
        )
    transaction = Transaction(
        plan=table_of_bad_rows(url, storage_options),
        files=files,
        kind=WriteKind.APPEND,
        operation=operation,
        txn=txn,
        files_stay=True,
    )
    _, after = commit(log, state, transaction, around())
    remember(log, after)


def _adds(files: Iterable[Mapping[str, Any]]) -> Iterable[AddFile]:
    for file in files:
        yield AddFile(
            path=paths.decode_path(file["path"]),
            log_path=file["path"],
            partition_values={},
            size_bytes=file["size"],
            modified_ms=file["modificationTime"],
            data_change=True,
            stats=file["stats"],
        )
