"""Builds the commit of a write to a Delta table: all of its actions, for the version after a given state."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tablefeed._version import __version__
from tablefeed.delta import names, row_tracking
from tablefeed.delta.checkpoint.checksum_writer import FileCounts
from tablefeed.delta.commit_info import (
    Optimize,
    Provenance,
    StreamingUpdate,
    TableChange,
    Write,
    commit_info,
    in_commit_timestamp,
    optimize_metrics,
)
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.removes import Removal
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.delta.stats.clustering import clustering_domain
from tablefeed.delta.stats.stats_text import num_records
from tablefeed.errors import TABLE, CommitError, LogError
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.delta_plan import new_protocol_and_metadata
from tablefeed.feed.write.kept_lines import KeptLines
from tablefeed.feed.write.replaced_files import ReplacedFiles
from tablefeed.feed.write.rewriting import Rewriting
from tablefeed.feed.write.row_rules import marks_moved
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Commit, Metadata, RemoveFile, Txn, Version

ENGINE = f"tablefeed/{__version__}"
"""commitInfo's engineInfo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaWrite:
    """A transaction on a Delta table, its plan, and what its commit has rewritten; None: nothing yet.

    `txn_id` is commitInfo's, the same at each attempt.
    """

    transaction: Transaction
    plan: DeltaPlan
    rewriting: Rewriting | None = None
    txn_id: str = field(default_factory=lambda: str(uuid.uuid4()))


def commit_entry(
    write: DeltaWrite,
    state: Snapshot | None,
    *,
    replaced: FileCounts,
    replaced_rows: int | None,
    now_ms: int,
) -> Commit:
    """Gives the commit to put after `state`, without the removes of `removal_of`, whose counts are `replaced`.

    Raises CommitError where `state` has the last possible version or row ids cannot be assigned, LogError where the log
    lacks the last row id in use or the in-commit timestamp of `state`, and as `new_protocol_and_metadata`.
    """
    transaction, plan, rewriting = write.transaction, write.plan, write.rewriting or Rewriting()
    gone = (*transaction.folded, *rewriting.removed)
    data_change = transaction.kind is not WriteKind.OPTIMIZE
    folded = tuple(removed(add, deletion_timestamp_ms=now_ms, data_change=data_change) for add in gone)
    protocol, metadata = plan.protocol, plan.metadata
    if state is None:
        protocol, metadata = table = new_protocol_and_metadata(plan, created_ms=now_ms)
    else:
        table = protocol or state.protocol, metadata or state.metadata
    properties = TableProperties.of(table[1])
    version = next_version(state)
    commit_time_ms = next_commit_time(state, now_ms) if properties.keeps_commit_times else None
    if state is not None and metadata is not None and not state.properties.keeps_commit_times:
        metadata = with_commit_times(metadata, version, commit_time_ms)
    added, domain = (*transaction.files, *rewriting.added, *rewriting.marked), None
    if row_tracking.supports_row_tracking(table[0]) and not properties.suspends_row_tracking:
        before = {} if state is None else state.facts.domains
        added, domain = row_tracking.with_row_ids(added, before, version=version)
    marks = _marks_moved(write, state)
    # Rows that stay keep their files, or were planned to keep their ids: a rival that begins to track rows meanwhile
    # conflicts with a write that copies some.
    tags = {names.ROW_TRACKING_PRESERVED: "true"} if properties.tracks_rows else {}
    if marks is not None and metadata is None:
        # This tag tells other writers of Delta-Spark that the metadata only moves marks of identity columns.
        tags[names.IDENTITY_ONLY_TAG] = "true"
    info = commit_info(
        transaction.operation,
        Provenance(
            timestamp_ms=now_ms,
            txn_id=write.txn_id,
            engine=ENGINE,
            # The version that was read. The commit may follow a later one.
            read_version=plan.version,
            user_metadata=transaction.user_metadata,
            in_commit_timestamp_ms=commit_time_ms,
            tags=tags,
            bad_records=transaction.bad_records,
        ),
        is_blind_append=transaction.kind in (WriteKind.APPEND, WriteKind.DEFINE),
        metrics=_metrics(write, folded, replaced, replaced_rows),
    )
    return Commit(
        version=version,
        files=(*added, *folded, *rewriting.changes),
        txns=txns_of(transaction, now_ms),
        metadata=metadata if marks is None else marks,
        protocol=protocol,
        domains=(
            *(() if domain is None else (domain,)),
            *((clustering_domain(plan.clustered_by),) if state is None and plan.clustered_by else ()),
            *transaction.domains,
        ),
        info=info,
        committed_at_ms=None,
    )


def next_version(state: Snapshot | None) -> Version:
    """Gives the version after `state`. Raises CommitError where there is none."""
    if state is not None and state.version >= names.LAST_VERSION:
        raise CommitError(
            f"Nothing was committed to {TABLE}: it is at version {state.version}, the highest possible one. "
            "So its log is damaged. Remove the files of versions that were never committed.",
        )
    return Version(0 if state is None else state.version + 1)


def _marks_moved(write: DeltaWrite, state: Snapshot | None) -> Metadata | None:
    """The table's metadata with the high-water marks of its identity columns moved; None where no value was made."""
    plan, files = write.plan, write.transaction.files
    if state is None or not plan.identity or not files:
        return None
    before = state.schema if plan.metadata is None else plan.schema
    schema = marks_moved(before, plan.identity, files, plan.mapping)
    return replace(plan.metadata or state.metadata, schema_string=format_schema(schema))


def removal_of(
    write: DeltaWrite, state: Snapshot | None, now_ms: int, lines: KeptLines
) -> tuple[FileCounts, int | None]:
    """Keeps `lines` that remove the live files that an overwrite replaces; gives the counts of files and of their rows.

    Rows are counted for a replaceWhere alone, deleted ones too, and are else 0; None where a file has no row count.
    Where there is a `Rewriting`, its commit names the removed files, and there are none here.
    """
    removal = Removal(lines.keep, deletion_timestamp_ms=now_ms)
    rows: int | None = 0
    transaction = write.transaction
    if state is None or transaction.kind is not WriteKind.OVERWRITE or write.rewriting is not None:
        return removal.counts, rows
    counts_rows = isinstance(transaction.operation, Write) and transaction.operation.predicate is not None
    replaced = ReplacedFiles(write.plan.replaces, transaction.files)
    for batch in replaced.of(state.live_files(with_stats=counts_rows)):
        if counts_rows and rows is not None:
            from tablefeed.delta.stats.stats_columns import record_counts

            counted = record_counts(batch["stats"])
            rows = None if counted.null_count else rows + (counted.sum().as_py() or 0)
        removal.take(batch)
    return removal.counts, rows


def removed(add: AddFile, *, deletion_timestamp_ms: int, data_change: bool = True) -> RemoveFile:
    """Gives the action that removes the live file of `add`."""
    return RemoveFile(
        path=add.path,
        log_path=add.log_path,
        data_change=data_change,
        deletion_timestamp_ms=deletion_timestamp_ms,
        extended_file_metadata=True,
        partition_values=add.partition_values,
        size_bytes=add.size_bytes,
        tags=add.tags,
        deletion_vector=add.deletion_vector,
        base_row_id=add.base_row_id,
        default_row_commit_version=add.default_row_commit_version,
    )


def txns_of(transaction: Transaction, now_ms: int) -> tuple[Txn, ...]:
    """Gives the txn to record, if any."""
    return () if transaction.txn is None else (replace(transaction.txn, last_updated_ms=now_ms),)


def next_commit_time(state: Snapshot | None, now_ms: int) -> int:
    """Gives the in-commit timestamp of a commit after `state`, made at `now_ms`.

    Raises as `own_time_ms`, and LogError where the time of `state` is the last possible one.
    """
    if state is None:
        return now_ms
    if state.properties.keeps_commit_times:
        previous_ms: int | None = own_time_ms(state)
    else:
        previous_ms = None if state.head is None else state.head.modified_ms
    if previous_ms is not None and previous_ms >= names.LAST_TIME_MS:
        raise LogError(
            f"Version {state.version} of {TABLE} has the in-commit timestamp {previous_ms}, the highest possible one. "
            "The next commit needs a greater one, so nothing was committed. Another writer broke the log: turn "
            f"{names.ENABLE_IN_COMMIT_TIMESTAMPS} off and on again.",
        )
    return in_commit_timestamp(now_ms=now_ms, previous_ms=previous_ms)


def with_commit_times(metadata: Metadata, version: Version, commit_time_ms: int | None) -> Metadata:
    """Gives `metadata` of a table whose commits had no time of their own; from `version` on they have, if given."""
    if commit_time_ms is None:
        return metadata
    since = {
        names.IN_COMMIT_TIMESTAMPS_SINCE_VERSION: str(version),
        names.IN_COMMIT_TIMESTAMPS_SINCE_TIME: str(commit_time_ms),
    }
    return replace(metadata, configuration={**metadata.configuration, **since})


def own_time_ms(state: Snapshot) -> int:
    """Gives the in-commit timestamp of `state`. Raises LogError where it has none."""
    known, info = state.facts.in_commit_timestamp_ms, None
    if known is None:
        # A snapshot that was read from the checkpoint of its own version has read no commit.
        commit = state.log.commit(state.version)
        info = None if commit is None else commit.info
        found = None if info is None else info.get(names.IN_COMMIT_TIMESTAMP)
        known = found if type(found) is int else None
    if known is None:
        raise LogError(
            f"Version {state.version} of {TABLE} has no in-commit timestamp, which every commit of the table "
            f"must have ({names.ENABLE_IN_COMMIT_TIMESTAMPS}). Nothing was committed: another writer broke the log; "
            "turn the property off and on again.",
            error_class="DELTA_MISSING_COMMIT_INFO" if info is None else "DELTA_MISSING_COMMIT_TIMESTAMP",
        )
    return known


# --- operationMetrics, under Delta-Spark's names -------------------------------------------------------------------


def _metrics(
    write: DeltaWrite, folded: Sequence[RemoveFile], replaced: FileCounts, replaced_rows: int | None
) -> dict[str, int]:
    """Counts what a write adds and what it removes: the files `folded` or `replaced`, or those of its rewriting.

    Removed rows are counted for a replaceWhere alone, as Delta-Spark does. `replaced_rows` is None where a file has no
    row count.
    """
    operation, files, rewriting = write.transaction.operation, write.transaction.files, write.rewriting or Rewriting()
    if isinstance(operation, Optimize):
        return optimize_metrics(files, folded)
    if isinstance(operation, TableChange):
        return dict(operation.metrics)
    added = (*files, *rewriting.added)
    written = {
        "numOutputRows": sum(num_records(file.stats) or 0 for file in added),
        "numOutputBytes": sum(file.size_bytes for file in added),
    }
    gone = rewriting.gone
    removed = {"numRemovedFiles": replaced.file_count + len(gone)}
    if isinstance(operation, StreamingUpdate):
        return {**removed, "numAddedFiles": len(added), **written}
    if operation.mode == "Append":
        return {"numFiles": len(added), **written}
    removed["numRemovedBytes"] = replaced.size_bytes + sum(file.size_bytes for file in gone)
    if operation.predicate is not None:
        removed["numAddedChangeFiles"] = len(rewriting.changes)
        if replaced_rows is not None:
            # Of files that are removed whole no row is copied.
            removed["numDeletedRows"] = replaced_rows - (replaced.deleted_rows or 0) + rewriting.deleted_rows
            removed["numCopiedRows"] = rewriting.copied_rows
    return {"numFiles": len(added), **removed, **written}
