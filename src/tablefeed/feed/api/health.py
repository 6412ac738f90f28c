"""`tablefeed doctor`: what can be done with a table, by whom, and what is wrong with it. Reads only.

What other programs handle was measured with the Delta JAR 4.4 and delta-rs 1.6 (deltalake); newer ones may handle more.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from tablefeed.delta import names
from tablefeed.delta.columns import to_add_files
from tablefeed.delta.features import supported_features
from tablefeed.errors import TablefeedError, TableNotFoundError
from tablefeed.feed.arguments import location, store_options
from tablefeed.feed.snapshot.delta_log import DeltaSnapshot
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog, is_of_one_commit, required_commit
from tablefeed.feed.upkeep.vacuum import vacuum
from tablefeed.feed.write.sink import plan_write
from tablefeed.log.conflicts import WriteKind
from tablefeed.log.segment import earliest_reproducible
from tablefeed.model.actions import Commit
from tablefeed.model.logfile import LogFile, LogFileKind

Status = Literal["ok", "warning", "problem"]

_NEWEST = 20
"""The commits that are looked into."""
_CHECKPOINT_AFTER = 100
"""Commits after the last checkpoint from which on each new reader pays for them. Writers make one after 10 usually."""
_WHOLE = (LogFileKind.CHECKPOINT, LogFileKind.CHECKPOINT_PART, LogFileKind.CHECKPOINT_V2, LogFileKind.STATE)
"""The files of a log from which a reader begins."""
_SKEW_MS = 5 * 60_000
# fmt: off
_JAR = frozenset(
    {
        "adaptiveMetadata-preview", "allowColumnDefaults", "appendOnly", "catalogManaged", "changeDataFeed",
        "checkConstraints", "checkpointProtection", "clustering", "columnMapping", "coordinatedCommits-preview",
        "deletionVectors", "domainMetadata", "generatedColumns", "geospatial", "geospatial-dev",
        "icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "identityColumns", "inCommitTimestamp",
        "invariants", "materializePartitionColumns", "redirectReaderWriter-preview",
        "redirectWriterOnly-preview", "rowTracking", "timestampNtz", "typeWidening", "typeWidening-preview",
        "v2Checkpoint", "vacuumProtocolCheck", "variantShredding", "variantShredding-preview", "variantType",
        "variantType-preview",
    }
)
# fmt: on
_RS_WRITES = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "deletionVectors",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "timestampWithoutTimezone",
        "v2Checkpoint",
        "variantType",
    }
)
_RS_READS_NOT = frozenset(
    {
        "vacuumProtocolCheck",
        "typeWidening",
        "variantShredding",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found about `topic`. `remedy` says what to do; None where the text does, or nothing is to do."""

    topic: str
    status: Status
    text: str
    remedy: str | None = None


def diagnose(
    url: str | os.PathLike[str],
    *,
    check_files: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> Iterator[Finding]:
    """Gives what is found about the table at `url`, one after the other. With `check_files`, asks for each data file.

    A table that cannot be read is a finding. Raises OptionError and StoreError, and TableNotFoundError where there is
    no table.
    """
    where, options = location(url), store_options(storage_options)
    log = open_log(where, options)
    listed = [f for f in log.listing(over_holes=True) if f.kind is LogFileKind.COMMIT]
    yield from _gaps(log, listed)
    try:
        snapshot = log.load_for_files()
    except TableNotFoundError:
        raise
    except TablefeedError as error:
        yield Finding(topic="read", status="problem", text=error.message)
        return
    yield Finding(
        topic="read", status="ok", text=f"tablefeed reads the table; its newest version is {snapshot.version}"
    )
    commits = list[tuple[LogFile, Commit]]()
    for each in listed[-_NEWEST:]:
        try:
            commits.append((each, required_commit(log, each)))
        except TablefeedError as error:
            if not is_of_one_commit(error):
                raise
            yield Finding(topic="log", status="problem", text=error.message)
    records_changes = log.records_changes(snapshot.metadata)
    yield _stream([commit for _, commit in commits], records_changes=records_changes)
    yield _change_feed(records_changes=records_changes)
    yield _write(log, snapshot)
    yield from _others(snapshot)
    yield _checkpoint(log, snapshot, listed)
    yield from _clocks(commits, now_ms=time.time_ns() // 1_000_000)
    yield from _unneeded(where, options)
    if check_files:
        yield _files(snapshot)


# --- what can be done ------------------------------------------------------------------------------------------------


def _stream(commits: Sequence[Commit], *, records_changes: bool) -> Finding:
    changed = [c for c in commits if any(f.data_change for f in c.removed)]
    if not changed:
        text = "tablefeed streams the table: the newest commits only add rows"
        return Finding(topic="stream", status="ok", text=text)
    told = (changed[-1].info or {}).get("operation")
    operation = told if isinstance(told, str) else "unknown operation"
    return Finding(
        topic="stream",
        status="warning",
        text=f"a stream stops where rows are removed or rewritten, as in version {changed[-1].version} ({operation})",
        remedy="Set readChangeFeed=true to get these changes, or skipChangeCommits=true to leave them out."
        if records_changes
        else "Set skipChangeCommits=true to leave them out.",
    )


def _change_feed(*, records_changes: bool) -> Finding:
    if records_changes:
        return Finding(topic="change feed", status="ok", text="commits record the changes of rows")
    return Finding(
        topic="change feed",
        status="warning",
        text="commits do not record the changes of rows, so readChangeFeed is refused",
        remedy="For later commits, set the property delta.enableChangeDataFeed=true. For earlier ones, "
        "tablefeed changes --deduplication-mode dropCarryovers computes them.",
    )


def _write(log: TableLog, snapshot: Snapshot) -> Finding:
    import pyarrow as pa

    by_itself = (names.GENERATION_EXPRESSION, names.IDENTITY_PREFIX)
    given = [f.name for f in snapshot.schema.fields if not any(key.startswith(by_itself) for key in f.metadata)]
    rows = pa.schema([snapshot.arrow_schema.field(name) for name in given])
    try:
        plan_write(log, snapshot, rows, partition_by=(), kind=WriteKind.APPEND)
    except TablefeedError as error:
        return Finding(topic="write", status="problem", text=error.message)
    on = {name for name, text in snapshot.metadata.configuration.items() if text.lower() not in ("", "false")}
    if beside := sorted(on & {names.SYMLINK_MANIFESTS, names.OTHER_FORMATS}):
        text = f"tablefeed writes to the table, but not what {' and '.join(beside)} asks for beside it"
        remedy = "Readers of that see no commit of tablefeed: let the Delta JAR make it anew, or unset the property."
        return Finding(topic="write", status="warning", text=text, remedy=remedy)
    return Finding(topic="write", status="ok", text="tablefeed writes to the table")


def _others(snapshot: Snapshot) -> Iterator[Finding]:
    if not isinstance(snapshot, DeltaSnapshot):
        for name in ("Delta JAR", "delta-rs"):
            yield Finding(topic=name, status="warning", text="it knows Delta tables only", remedy="Use tablefeed.")
        return
    features = supported_features(snapshot.protocol)
    unknown = sorted(features - _JAR)
    if unknown:
        text = f"version 4.4 does not know {', '.join(unknown)}"
        yield Finding(topic="Delta JAR", status="warning", text=text, remedy="Use tablefeed, or a newer JAR.")
    else:
        yield Finding(topic="Delta JAR", status="ok", text="version 4.4 reads, streams and writes the table")
    unread, unwritten = sorted(features & _RS_READS_NOT), sorted(features - _RS_WRITES)
    if unread:
        text = f"version 1.6 does not read tables with {', '.join(unread)}, and so does not write them"
        yield Finding(topic="delta-rs", status="warning", text=text, remedy="Use tablefeed or the JAR.")
    elif unwritten:
        text = f"version 1.6 reads the table, but does not write tables with {', '.join(unwritten)}"
        yield Finding(topic="delta-rs", status="warning", text=text, remedy="Write with tablefeed or the JAR.")
    elif "columnMapping" in features:
        text = "version 1.6 reads and writes the table, but its to_pyarrow_table gives nulls for mapped columns"
        yield Finding(topic="delta-rs", status="warning", text=text, remedy="Read with its QueryBuilder, or tablefeed.")
    else:
        yield Finding(topic="delta-rs", status="ok", text="version 1.6 reads and writes the table; it has no streams")


# --- what is wrong ---------------------------------------------------------------------------------------------------


def _gaps(log: TableLog, listed: Sequence[LogFile]) -> Iterator[Finding]:
    if isinstance(log, IndexTablesLog) and len(listed) > 1 and listed[0].version == 0:
        readable = earliest_reproducible(f for f in log.listing(over_holes=True) if f.version)
        if readable == listed[1].version:
            listed = listed[1:]  # IndexTables' TRUNCATE TIME TRAVEL keeps version 0 of those that it deletes
    found = False
    for before, after in pairwise(listed):
        if after.version > before.version + 1:
            found = True
            yield Finding(
                topic="log",
                status="problem",
                text=f"versions {before.version + 1} to {after.version - 1} are missing, though earlier ones are there",
                remedy="Restore them. Readers that have not passed them cannot go on.",
            )
    if not found and listed:
        text = f"it has every commit from version {listed[0].version} to {listed[-1].version}"
        yield Finding(topic="log", status="ok", text=text)


def _checkpoint(log: TableLog, snapshot: Snapshot, listed: Sequence[LogFile]) -> Finding:
    remedy = "Run tablefeed checkpoint."
    if snapshot.unreadable:
        text = f"{', '.join(sorted(snapshot.unreadable))} of the log cannot be read; others were read instead"
        return Finding(topic="checkpoint", status="problem", text=text, remedy=remedy)
    newest = max((f.version for f in log.listing() if f.kind in _WHOLE), default=None)
    after = sum(newest is None or f.version > newest for f in listed)
    text = f"{after} commits came after the last checkpoint" if newest is not None else "there is none yet"
    if after > _CHECKPOINT_AFTER:
        text = f"{text}; each new reader reads {after} commits"
        return Finding(topic="checkpoint", status="warning", text=text, remedy=remedy)
    return Finding(topic="checkpoint", status="ok", text=text)


def _clocks(commits: Sequence[tuple[LogFile, Commit]], *, now_ms: int) -> Iterator[Finding]:
    """The clocks of the writers, beside that of the store and ours."""
    skewed: list[str] = []
    for log_file, commit in commits:
        said = (commit.info or {}).get("timestamp")
        if not isinstance(said, int):
            continue
        if said > now_ms + _SKEW_MS:
            skewed.append(f"version {commit.version} says that it was made {(said - now_ms) // 1000} s from now")
        elif said > log_file.modified_ms + _SKEW_MS:
            ahead_s = (said - log_file.modified_ms) // 1000
            skewed.append(f"the writer of version {commit.version} was {ahead_s} s ahead of the store")
    for text in skewed[-3:]:
        remedy = "Set the clock of that writer. Reads by time use these times."
        yield Finding(topic="clocks", status="warning", text=text, remedy=remedy)
    if not skewed:
        yield Finding(topic="clocks", status="ok", text="no writer's clock was ahead")


def _unneeded(where: str, options: Mapping[str, str]) -> Iterator[Finding]:
    try:
        found = vacuum(where, dry_run=True, storage_options=options)
    except TablefeedError:
        return  # not a table that vacuum handles; `write` says why
    if not found.file_count:
        yield Finding(topic="files", status="ok", text="no file is older than the retention and not needed")
        return
    text = f"{found.file_count} files of {found.size_bytes} bytes are older than the retention and not needed"
    yield Finding(topic="files", status="warning", text=text, remedy="Run tablefeed vacuum, then with --delete.")


def _files(snapshot: Snapshot) -> Finding:
    """Whether every live file in the table's folder is there, with the size that the log has."""
    faults, count = list[str](), 0
    for batch in snapshot.live_files():
        for add in to_add_files(batch):
            if "://" in add.path or add.path.startswith("/"):
                continue  # it is outside the table
            count += 1
            entry = snapshot.log.store.stat(add.path)
            if entry is None:
                faults.append(f"{add.path} is missing")
            elif entry.size_bytes != add.size_bytes:
                faults.append(f"{add.path} has {entry.size_bytes} bytes, the log says {add.size_bytes}")
    if not faults:
        return Finding(topic="data files", status="ok", text=f"all {count} files are there, with the sizes in the log")
    more = f", and {len(faults) - 3} more" if len(faults) > 3 else ""
    return Finding(
        topic="data files",
        status="problem",
        text="; ".join(faults[:3]) + more,
        remedy="Restore the files, or restore the table to a version without them.",
    )
