"""How far a query is behind, from an offset of its checkpoint alone: the query need not run.

Unlike `LagMeter` it reads every commit that the query has still to deliver. Options of the query are not in a
checkpoint. So the files are those that a query without `readChangeFeed` and filters would deliver.
"""

from __future__ import annotations

from dataclasses import replace

from tablefeed.errors import LogGapError, OffsetError, naming
from tablefeed.feed.snapshot.same_table import refuse_other
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.stream.lag import Lag
from tablefeed.feed.stream.stream_snapshot import ByFiles, InitialSnapshot
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset

REMEDY = "Name the table that the query reads."


def resting_lag(log: TableLog, at: Offset, *, now_ms: int) -> Lag:
    """Gives the lag of a query that is at `at`.

    Raises OffsetError where `at` is of another table or after its newest version, LogGapError where commits that the
    query has still to deliver are gone, and as the log where one cannot be read.
    """
    with naming(log.url):
        newest = log.load()
        refuse_other(log.url, expected=at.table_id, found=newest.metadata.table_id, remedy=REMEDY)
        if at.version > newest.version + 1:
            raise OffsetError(
                f"The query is at version {at.version} of {log.url}, but the newest version is {newest.version}: the "
                "last commits were removed. Restore them, or reset the query.",
                url=log.url,
            )
        lag = Lag(
            url=log.url,
            versions_behind=max(newest.version + 1 - at.version, 0),
            seconds_behind=0.0,
            files_outstanding=0,
            bytes_outstanding=0,
            snapshot_percent=None,
        )
        first = at.version
        if at.in_snapshot:
            lag = _with_snapshot(lag, newest, at, now_ms=now_ms)
            first = Version(first + 1)
        for version in range(first, newest.version + 1):
            lag = _with_commit(lag, log, at, Version(version), now_ms=now_ms)
        return lag


def _with_snapshot(lag: Lag, newest: Snapshot, at: Offset, *, now_ms: int) -> Lag:
    """`lag` with what is left of the initial snapshot. By event time the files that are left are not known."""
    head = newest.log.head(at.version)
    age_s = None if head is None else max(now_ms - head.modified_ms, 0) / 1000
    if at.event_time is not None:
        return replace(lag, seconds_behind=age_s, files_outstanding=None, bytes_outstanding=None)
    order = ByFiles(InitialSnapshot(newest, counts_rows=False), where=None)
    left = order.left(at)
    order.forget()
    delivered = left.total_bytes - left.size_bytes
    return replace(
        lag,
        seconds_behind=age_s,
        files_outstanding=left.files,
        bytes_outstanding=left.size_bytes,
        snapshot_percent=100.0 * delivered / left.total_bytes if left.total_bytes else 100.0,
    )


def _with_commit(lag: Lag, log: TableLog, at: Offset, version: Version, *, now_ms: int) -> Lag:
    commit = log.commit(version)
    if commit is None:
        found = min((f.version for f in log.listing(version) if f.version > version), default=None)
        remedy = "The query cannot go on: it has not delivered them. Restore them, or reset the query."
        raise LogGapError(url=log.url, expected=version, found=found, remedy=remedy)
    if version == at.version and not at.in_snapshot:
        at_ms = commit.committed_at_ms
        if at_ms is None and (head := log.head(version)) is not None:
            at_ms = head.modified_ms
        lag = replace(lag, seconds_behind=None if at_ms is None else max(now_ms - at_ms, 0) / 1000)
    sizes = [add.size_bytes for add in commit.added if add.data_change]
    if version == at.version and not at.in_snapshot:
        if at.file_index > len(sizes):  # a change feed counts other files
            return replace(lag, files_outstanding=None, bytes_outstanding=None)
        sizes = sizes[at.file_index :]
    if lag.files_outstanding is None or lag.bytes_outstanding is None:
        return lag
    return replace(
        lag, files_outstanding=lag.files_outstanding + len(sizes), bytes_outstanding=lag.bytes_outstanding + sum(sizes)
    )
