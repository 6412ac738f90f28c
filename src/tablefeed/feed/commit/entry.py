"""Builds the commit of a write to a Delta table: all of its actions, for the version after a given state."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from tablefeed._version import VERSION
from tablefeed.delta import names
from tablefeed.delta.checkpoint.checksum_writer import FileCounts
from tablefeed.delta.commit_info import Provenance, Write, commit_info
from tablefeed.delta.removes import Removal
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.delta.stats.clustering import clustering_domain
from tablefeed.delta.stats.stats_columns import record_counts
from tablefeed.errors import CommitError
from tablefeed.feed.commit.commit_features import featured
from tablefeed.feed.commit.metrics import metrics
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.delta_write import new_protocol_and_metadata
from tablefeed.feed.write.identity import marks_moved
from tablefeed.feed.write.replacement import Replacement
from tablefeed.feed.write.row_replacement import Rewriting
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Commit, DomainMetadata, Metadata, RemoveFile, Txn, Version

ENGINE = f"tablefeed/{VERSION}"
"""commitInfo's engineInfo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaWrite:
    """A transaction on a Delta table, its plan, and what its commit has rewritten; None: nothing yet."""

    transaction: Transaction
    plan: DeltaPlan
    rewriting: Rewriting | None = None


def commit_entry(
    write: DeltaWrite,
    state: Snapshot | None,
    *,
    replaced: FileCounts,
    replaced_rows: int | None,
    now_ms: int,
) -> Commit:
    """Gives the commit to put after `state`, without the removes of `removal_of`, whose counts are `replaced`.

    Raises CommitError where `state` has the last possible version, and as `new_protocol_and_metadata` and `featured`.
    """
    if state is not None and state.version >= names.LAST_VERSION:
        raise CommitError(
            f"Nothing was committed to {state.log.url}: it is at version {state.version}, the last that there can be. "
            "Its log is damaged: remove the files of versions that were never committed.",
            url=state.log.url,
        )
    transaction, plan, rewriting = write.transaction, write.plan, write.rewriting or Rewriting()
    gone = (*transaction.folded, *rewriting.removed)
    data_change = transaction.kind is not WriteKind.OPTIMIZE
    folded = tuple(removed(add, deletion_timestamp_ms=now_ms, data_change=data_change) for add in gone)
    protocol, metadata = plan.protocol, plan.metadata
    if state is None:
        protocol, metadata = table = new_protocol_and_metadata(plan, created_ms=now_ms)
    else:
        table = protocol or state.protocol, metadata or state.metadata
    added = (*transaction.files, *rewriting.added)
    asked = featured(added, state, table, now_ms=now_ms, url=plan.url)
    marks = _marks_moved(write, state)
    # This tag tells other writers of Delta-Spark that the metadata only moves marks of identity columns.
    moved = {names.IDENTITY_ONLY_TAG: "true"} if marks is not None and metadata is None else {}
    info = commit_info(
        transaction.operation,
        Provenance(
            timestamp_ms=now_ms,
            txn_id=str(uuid.uuid4()),
            engine=ENGINE,
            # The version that was read. The commit may follow a later one.
            read_version=plan.version,
            user_metadata=transaction.user_metadata,
            in_commit_timestamp_ms=asked.in_commit_timestamp_ms,
            tags={**asked.tags, **moved},
        ),
        is_blind_append=transaction.kind is WriteKind.APPEND,
        metrics=metrics(
            transaction.operation,
            transaction.files,
            folded,
            replaced=replaced,
            replaced_rows=replaced_rows,
            rewriting=write.rewriting,
        ),
    )
    return Commit(
        version=Version(0 if state is None else state.version + 1),
        files=(*asked.files, *folded, *rewriting.changes),
        txns=txns_of(transaction, now_ms),
        metadata=metadata if marks is None else marks,
        protocol=protocol,
        domains=(*asked.domains, *_new_domains(plan, state)),
        info=info,
        committed_at_ms=None,
    )


def _new_domains(plan: DeltaPlan, state: Snapshot | None) -> tuple[DomainMetadata, ...]:
    return (clustering_domain(plan.clustered_by),) if state is None and plan.clustered_by else ()


def _marks_moved(write: DeltaWrite, state: Snapshot | None) -> Metadata | None:
    """The table's metadata with the high-water marks of its identity columns moved; None where no value was made."""
    plan, files = write.plan, write.transaction.files
    if state is None or not plan.identity or not files:
        return None
    before = state.schema if plan.metadata is None else plan.schema
    schema = marks_moved(before, plan.identity, files, plan.mapping)
    return replace(plan.metadata or state.metadata, schema_string=format_schema(schema))


def removal_of(write: DeltaWrite, state: Snapshot | None, now_ms: int) -> tuple[Removal, int | None]:
    """Gives the removes of the live files that an overwrite replaces, in columns, and how many rows these files have.

    Rows are counted for a replaceWhere alone, deleted ones too, and are else 0; None where a file has no row count.
    Where there is a `Rewriting`, its commit names the removed files, and there are none here.
    """
    removal = Removal(deletion_timestamp_ms=now_ms)
    rows: int | None = 0
    transaction = write.transaction
    if state is None or transaction.kind is not WriteKind.OVERWRITE or write.rewriting is not None:
        return removal, rows
    counts_rows = isinstance(transaction.operation, Write) and transaction.operation.predicate is not None
    replacement = Replacement(write.plan.replaces, transaction.files, url=state.log.url)
    for batch in replacement.of(state.live_files(with_stats=counts_rows)):
        if counts_rows and rows is not None:
            counted = record_counts(batch["stats"])
            rows = None if counted.null_count else rows + (counted.sum().as_py() or 0)
        removal.take(batch)
    return removal, rows


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
