"""Commits what the tasks of a write reported, or deletes their files: translates to `tablefeed.feed.commit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tablefeed.feed.commit.collisions import warn_of_other_queries
from tablefeed.feed.commit.loop import changes_nothing, commit
from tablefeed.feed.commit.transaction import Operation, Transaction, batch_write, micro_batch
from tablefeed.feed.snapshot.known_state import last_known, newest_state, remember
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.upkeep.after_commit import UpkeepOptions, look_after, now_ms, surroundings
from tablefeed.feed.upkeep.auto_compact import compact_if_wanted
from tablefeed.feed.upkeep.background import waited_for
from tablefeed.feed.write.gathering import gathered
from tablefeed.feed.write.orphans import delete_after_abort, delete_orphans
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.spark import foreign_settings
from tablefeed.spark.parsed_options import ParsedOptions
from tablefeed.spark.worker import settle
from tablefeed.spark.written import Written

if TYPE_CHECKING:
    from pyspark.sql.datasource import WriterCommitMessage

    from tablefeed.feed.commit.bad_rows import Named
    from tablefeed.feed.snapshot.table_log import Snapshot


def commit_batch(
    written: Sequence[Written], options: ParsedOptions, kind: WriteKind, *, query_id: str, batch_id: int
) -> None:
    """Commits a micro-batch, unless the table has it or recordEmptyBatches=false leaves it out."""
    transaction = _transaction(written, options, kind, micro_batch(kind, query_id, batch_id))
    is_empty = not options["recordEmptyBatches"] and transaction.bad_records is None
    if is_empty and changes_nothing(transaction, lambda: _now(transaction)):
        return
    outcome, after = _commit(transaction, options)
    if batch_id == 0 and kind is WriteKind.APPEND and isinstance(outcome, Committed):
        warn_of_other_queries(query_id, after.facts.txns, outcome.version, url=after.log.url)
    _commit_bad_rows(transaction, outcome, after, options)
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
    _, after = _commit(transaction, options)
    compact_if_wanted(after, len(transaction.files), _upkeep(options))


def abort(messages: Sequence[WriterCommitMessage | None]) -> None:
    """Deletes the tasks' files if no commit was tried, or if the log has this write without them; else nothing."""
    for message in messages:
        if not isinstance(message, Written) or not (message.files or message.bad_files):
            continue
        plan, files, bad_plan = message.plan, message.files, message.bad_plan
        log = open_log(plan.location, plan.storage_options, table_format=plan.table_format)
        if None in messages:  # a task failed, so that Spark never asked for a commit
            delete_orphans(log.store, (file.path for file in files))
            if bad_plan is not None:
                store = open_log(bad_plan.location, bad_plan.storage_options).store
                delete_orphans(store, (file.path for file in message.bad_files))
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
        bad_records=_named_bad_rows(written),
    )


def _named_bad_rows(written: Sequence[Written]) -> Named | None:
    if written[0].bad_plan is None:
        return None
    from tablefeed.feed.commit.bad_rows import named

    return named(written[0].bad_plan.url, [file for message in written for file in message.bad_files])


def _commit_bad_rows(
    transaction: Transaction, outcome: Committed | AlreadyApplied, after: Snapshot, options: ParsedOptions
) -> None:
    """Commits the files of bad rows that the batch's commit names, whichever process made it and whatever it is now."""
    txn, given = transaction.txn, transaction.bad_records
    if txn is None or not isinstance(transaction.plan, DeltaPlan):
        return
    if isinstance(outcome, AlreadyApplied) and outcome.recorded_txn_version == txn.txn_version:
        from tablefeed.feed.commit.bad_rows import named_in_batch

        given = named_in_batch(after, txn, options["badRecords"], dict(options.storage))
    elif isinstance(outcome, AlreadyApplied):
        return  # a later batch: this one was finished before
    if given is not None:
        from tablefeed.feed.commit.bad_rows import commit_bad_rows

        around = partial(surroundings, _upkeep(options))
        commit_bad_rows(given, dict(options.storage), txn, operation=transaction.operation, around=around)


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
def _commit(transaction: Transaction, options: ParsedOptions) -> tuple[Committed | AlreadyApplied, Snapshot]:
    plan = transaction.plan
    upkeep = _upkeep(options)
    log, known = last_known(plan.location, dict(plan.storage_options), table_format=plan.table_format)
    with gathered(plan, transaction.files, now_ms=now_ms()) as files:
        outcome, after = commit(log, known, replace(transaction, files=files), surroundings(upkeep))
    if isinstance(outcome, AlreadyApplied):
        look_after(after, upkeep)  # the process that committed it may have died before it wrote the checkpoint
    remember(log, after)
    settle()
    return outcome, after
