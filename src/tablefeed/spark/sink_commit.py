"""Commits what the tasks of a write reported, or deletes their files: translates to `tablefeed.feed.commit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tablefeed.feed.commit.loop import changes_nothing, commit
from tablefeed.feed.commit.transaction import Operation, Transaction, batch_write, micro_batch
from tablefeed.feed.snapshot.known_state import last_known, newest_state, remember
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.upkeep.after_commit import UpkeepOptions, look_after, now_ms, surroundings
from tablefeed.feed.upkeep.auto_compact import compact_if_wanted
from tablefeed.feed.upkeep.background import waited_for
from tablefeed.feed.write.gathering import gathered
from tablefeed.feed.write.orphans import delete_after_abort, delete_orphans
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.outcome import AlreadyApplied
from tablefeed.spark import foreign_settings
from tablefeed.spark.parsed_options import ParsedOptions
from tablefeed.spark.worker import settle
from tablefeed.spark.written import Written

if TYPE_CHECKING:
    from pyspark.sql.datasource import WriterCommitMessage

    from tablefeed.feed.snapshot.table_log import Snapshot


def commit_batch(
    written: Sequence[Written], options: ParsedOptions, kind: WriteKind, *, query_id: str, batch_id: int
) -> None:
    """Commits a micro-batch, unless the table has it or recordEmptyBatches=false leaves it out."""
    transaction = _transaction(written, options, kind, micro_batch(kind, query_id, batch_id))
    if not options["recordEmptyBatches"] and changes_nothing(transaction, lambda: _now(transaction)):
        return
    after = _commit(transaction, options)
    every = options["compactEvery"]
    # After an overwrite there is nothing to fold, and a fold would conflict with the next batch.
    folds = kind is WriteKind.APPEND and every is not None and (batch_id + 1) % every == 0
    if folds:
        from tablefeed.feed.upkeep.optimize import fold_behind

        fold_behind(after, _upkeep(options))
    elif kind is WriteKind.APPEND:
        compact_if_wanted(after, len(transaction.files), _upkeep(options))


def commit_write(written: Sequence[Written], options: ParsedOptions, kind: WriteKind) -> None:
    """Commits a batch write."""
    plan = written[0].plan
    transaction = _transaction(written, options, kind, batch_write(kind, plan.partition_columns, plan.rules))
    after = _commit(transaction, options)
    compact_if_wanted(after, len(transaction.files), _upkeep(options))


def abort(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Deletes the tasks' files if no commit was tried, or if the log has this write without them; else nothing."""
    for message in messages:
        if not isinstance(message, Written) or not message.files:
            continue
        plan, files = message.plan, message.files
        log = open_log(plan.location, plan.storage_options, table_format=plan.table_format)
        if None in messages:  # a task failed, so that Spark never asked for a commit
            delete_orphans(log.store, (file.path for file in files))
        elif message.txn is not None:
            delete_after_abort(log, files, message.txn, plan.next_version)


def _transaction(
    written: Sequence[Written], options: ParsedOptions, kind: WriteKind, operation: Operation
) -> Transaction:
    return Transaction(
        plan=written[0].plan,
        files=tuple(file for message in written for file in message.files),
        kind=kind,
        operation=operation,
        txn=written[0].txn,
        user_metadata=options["userMetadata"],
        on_collision=options["txnVersionCollision"],
    )


def _upkeep(options: ParsedOptions) -> UpkeepOptions:
    prefix = f"{foreign_settings.PREFIX}checkpoint."
    interval = options[f"{prefix}interval"] if options[f"{prefix}enabled"] else 0
    return UpkeepOptions(
        part_actions=options["checkpointPartSize"],
        compact_every=options["logCompactionEvery"],
        index_interval=interval or None,
        index_part_actions=options[f"{prefix}actionsPerPart"] if options[f"{prefix}multiPart.enabled"] else None,
    )


def _now(transaction: Transaction) -> Snapshot | None:
    plan = transaction.plan
    return newest_state(plan.location, dict(plan.storage_options), table_format=plan.table_format)[1]


@waited_for()
def _commit(transaction: Transaction, options: ParsedOptions) -> Snapshot:
    plan = transaction.plan
    upkeep = _upkeep(options)
    log, known = last_known(plan.location, dict(plan.storage_options), table_format=plan.table_format)
    with gathered(plan, transaction.files, now_ms=now_ms()) as files:
        outcome, after = commit(log, known, replace(transaction, files=files), surroundings(upkeep))
    if isinstance(outcome, AlreadyApplied):
        look_after(after, upkeep)  # the process that committed it may have died before it wrote the checkpoint
    remember(log, after)
    settle()
    return after
