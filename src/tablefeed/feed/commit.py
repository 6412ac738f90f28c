"""The one put that makes written files part of a table, and what is done about everyone else's.

Optimistic: the next version is put if absent; who loses looks at what won and, where nothing in it excludes us, tries
the version after it. Data files are never written again. A put whose answer was lost is settled by reading back whose
commit stands, by the random `txnId` in its commitInfo.
"""

from __future__ import annotations

import importlib.metadata
import logging
import operator
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tablefeed.delta import codec, features, names, row_tracking
from tablefeed.delta.checksum_writer import FileCounts
from tablefeed.delta.clustering import clustering_domain
from tablefeed.delta.commit_info import Provenance, Write, commit_info
from tablefeed.delta.enablement import only_adds_features, only_enables, only_moves_marks
from tablefeed.delta.iceberg_compat import stores_partition_columns
from tablefeed.delta.identity import differ_in_marks_alone
from tablefeed.delta.metadata_difference import difference
from tablefeed.delta.properties import is_kept
from tablefeed.delta.removes import Removal
from tablefeed.delta.stats_columns import record_counts
from tablefeed.errors import (
    CommitError,
    CommitUnknownError,
    ConflictError,
    NotExclusiveError,
    StoreError,
    TablefeedError,
)
from tablefeed.feed.commit_features import featured
from tablefeed.feed.identity import marks_moved
from tablefeed.feed.metrics import metrics
from tablefeed.feed.open_log import open_log
from tablefeed.feed.operations import Operation
from tablefeed.feed.replacement import Replacement
from tablefeed.feed.replays import OnCollision, check_replay
from tablefeed.feed.row_replacement import Rewriting, drop, reader_of, rewritten
from tablefeed.feed.row_rules import rules_in_force
from tablefeed.feed.sink import WritePlan, caught_up, clustering_of
from tablefeed.feed.table_log import Snapshot, TableLog
from tablefeed.log.replay import fold
from tablefeed.log.transaction import Tolerance, WriteKind, conflict_with
from tablefeed.model.actions import (
    AddFile,
    CdcFile,
    Commit,
    DomainMetadata,
    Facts,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
    Version,
)
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.model.rules import TableRules
from tablefeed.model.schema import Struct

logger = logging.getLogger(__name__)

LOST_ANSWER_RETRIES = 5
"""How often a store that fails is asked again whether our commit stands before we give up not knowing."""

RACES_BEFORE_JITTER = 2
"""Races lost before we wait: one or two losses are other writers' luck, more are a crowd."""

JITTER_DOUBLES = 6
"""How often: by then it has reached `LONGEST_JITTER_S`."""

LONGEST_JITTER_S = 0.5

METADATA_CHANGED = "DELTA_METADATA_CHANGED"

ENGINE = f"tablefeed/{importlib.metadata.version('tablefeed')}"
"""commitInfo's engineInfo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Time, chance and waiting, as arguments: `now_ms` since 1970 UTC, `sleep` in seconds, `uniform` in [0, 1).

    `stood` is told of a commit that stands, of the table's state then, and of what it removed besides the files that it
    names: live files that were never values. It must not raise.
    """

    now_ms: Callable[[], int]
    sleep: Callable[[float], None]
    uniform: Callable[[], float] = random.random
    stood: Callable[[Snapshot, Commit, FileCounts], None] = lambda _state, _commit, _also_removed: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What is to be committed: files written under `plan`, and the words that describe them.

    `operation` is commitInfo's; `txn` makes it once-only, `on_collision` is for one that meets a later version.
    `folded` are the live files whose rows an optimize has written to `files`. `rewriting` is what `commit` writes
    besides for an overwrite of the rows of a predicate; None: nothing yet.
    """

    plan: WritePlan
    files: tuple[AddFile, ...]
    kind: WriteKind
    operation: Operation
    txn: Txn | None = None
    user_metadata: str | None = None
    folded: tuple[AddFile, ...] = ()
    rewriting: Rewriting | None = None
    on_collision: OnCollision = OnCollision.WARN


def changes_nothing(transaction: Transaction, now: Callable[[], Snapshot | None]) -> bool:
    """Whether its commit would hold no more than its txn, new to the table when it was planned.

    `now` loads the table where the plan does not tell.
    """
    plan, txn = transaction.plan, transaction.txn
    is_empty = not transaction.files and transaction.kind is WriteKind.APPEND
    if not is_empty or plan.found is None or plan.metadata is not None:
        return False
    if txn is None or plan.tells_all or txn.app_id in plan.recorded:
        return txn is None or plan.recorded.get(txn.app_id, -1) < txn.txn_version
    return _replayed(now(), txn) is None


def commit(
    log: TableLog, snapshot: Snapshot | None, transaction: Transaction, around: Surroundings
) -> tuple[Committed | AlreadyApplied, Snapshot]:
    """Commits `transaction` to the table, or finds that it has been; gives the outcome and the table's state then.

    `snapshot` is the newest state that the caller knows, None where there was no table. Raises ConflictError where a
    rival's commit excludes ours, whose files are then gone again, CommitUnknownError where the store will not say,
    NotExclusiveError where it cannot promise a single winner, and CommitError for a collision that is to fail.
    """
    try:
        return _committed(log, snapshot, transaction, around)
    except ConflictError as conflict:
        _delete_excluded(log, transaction, conflict.winner)
        raise


def _committed(
    log: TableLog, snapshot: Snapshot | None, transaction: Transaction, around: Surroundings
) -> tuple[Committed | AlreadyApplied, Snapshot]:
    state = caught_up(log, snapshot)
    checked = transaction.plan.version
    races = 0
    while True:
        replayed = _replayed(state, transaction.txn)
        if replayed is not None and state is not None and transaction.txn is not None:
            _delete_replayed(log, transaction)
            check_replay(transaction.txn, replayed.recorded_txn_version, transaction.on_collision, url=log.url)
            return replayed, state
        with _dropped_unless_well(log, transaction):
            checked = _check_rivals(log, transaction, state, checked)
        transaction = _with_rewriting(log, transaction, state, around)
        now_ms = around.now_ms()
        with _dropped_unless_well(log, transaction):
            removal, rows = _removal(transaction, state, now_ms)
            entry = _entry(transaction, state, replaced=removal.counts, replaced_rows=rows, now_ms=now_ms)
        if _put(log, entry, removal, around):
            logger.info(
                "commit table=%s version=%d operation=%s files=%d",
                log.url,
                entry.version,
                transaction.operation.operation[0],
                len(transaction.files),
            )
            after = _after(log, state, entry)
            around.stood(after, entry, removal.counts)
            return Committed(version=entry.version), after
        races += 1
        if races > RACES_BEFORE_JITTER:
            around.sleep(around.uniform() * min(LONGEST_JITTER_S, 0.01 * 2 ** min(races, JITTER_DOUBLES)))
        with _dropped_unless_well(log, transaction):
            state = caught_up(log, state)


def _with_rewriting(
    log: TableLog, transaction: Transaction, state: Snapshot | None, around: Surroundings
) -> Transaction:
    """Gives `transaction` with what has to be written beside its files, once: what rivals do to it, excludes it."""
    if transaction.rewriting is not None or state is None or transaction.plan.replaces.by_row is None:
        return transaction
    rewriting = rewritten(log, state, transaction.plan, transaction.files, now_ms=around.now_ms())
    return replace(transaction, rewriting=rewriting)


@contextmanager
def _dropped_unless_well(log: TableLog, transaction: Transaction) -> Iterator[None]:
    """Deletes what was written for the commit, where it fails by what is done here; never around a put."""
    try:
        yield
    except TablefeedError:
        if transaction.rewriting is not None:
            drop(log, transaction.rewriting)
        raise


def _replayed(state: Snapshot | None, txn: Txn | None) -> AlreadyApplied | None:
    recorded = state.facts.txns.get(txn.app_id) if state is not None and txn is not None else None
    if state is None or txn is None or recorded is None or recorded.txn_version < txn.txn_version:
        return None
    logger.info(
        "replay table=%s app_id=%s txn_version=%d recorded=%d",
        state.log.url,
        txn.app_id,
        txn.txn_version,
        recorded.txn_version,
    )
    return AlreadyApplied(version=state.version, recorded_txn_version=recorded.txn_version)


def _check_rivals(
    log: TableLog, transaction: Transaction, state: Snapshot | None, checked: Version | None
) -> Version | None:
    """Refuses to go on where a commit after `checked` excludes ours; gives the version up to which none does."""
    if state is None:
        if transaction.plan.table_id is None:
            return None
        raise ConflictError(
            f"Nothing was committed to {log.url}: the table is gone, deleted while it was written to. Run the write "
            "again to make it anew.",
            url=log.url,
            winner=-1,
            error_class=METADATA_CHANGED,
        )
    plan = transaction.plan
    if plan.table_id is None and checked is None:
        _check_made_by_another(log, transaction, state)
        return state.version
    if plan.table_id is not None and state.metadata.table_id != plan.table_id:
        raise _conflict(log, "it was deleted and made anew", state.version, METADATA_CHANGED)
    reads = reader_of(plan, log) or Replacement(plan.replaces, transaction.files, url=log.url).reads
    rewriting = transaction.rewriting or Rewriting()
    folded = frozenset(add.path for add in (*transaction.folded, *rewriting.removed))
    for version in range((checked if checked is not None else -1) + 1, state.version + 1):
        winner = log.commit(Version(version))
        if winner is None:
            raise _conflict(log, "its log was cleaned up under this write", version, "DELTA_CONCURRENT_TRANSACTION")
        found = conflict_with(
            winner,
            kind=transaction.kind,
            txn=transaction.txn,
            tolerance=_tolerance(winner, transaction),
            reads=reads,
            folded=folded,
        )
        if found is not None:
            reason = _what_changed(winner, plan) if found.error_class == METADATA_CHANGED else found.reason
            raise _conflict(log, reason, found.winner, found.error_class)
        if winner.protocol is not None or winner.metadata is not None:
            features.check_writable(
                state.protocol, state.metadata, url=log.url, removes=transaction.kind is WriteKind.OVERWRITE
            )
    _check_shape(log, plan, state)
    return state.version


def _check_made_by_another(log: TableLog, transaction: Transaction, state: Snapshot) -> None:
    """Refuses to go on where another first batch made another table than we would have; else ours appends to it."""
    plan = transaction.plan
    _check_shape(log, plan, state)
    if clustering_of(state) != plan.clustered_by:
        reason = "another writer made it, clustered by other columns; run the write again"
        raise _conflict(log, reason, state.version, "DELTA_METADATA_CHANGED")
    if _rules(state, log.url) != (None if plan.kept is None else plan.kept.rules):
        reason = "another writer made it, with other rules than these rows were held against; run the write again"
        raise _conflict(log, reason, state.version, METADATA_CHANGED)
    features.check_writable(
        state.protocol, state.metadata, url=log.url, removes=transaction.kind is WriteKind.OVERWRITE
    )
    if stores_partition_columns(state.protocol, state.metadata.configuration) and not plan.stores_partitions:
        reason = "another writer made it, with partition columns in its files; run the write again"
        raise _conflict(log, reason, state.version, METADATA_CHANGED)
    if transaction.kind is WriteKind.OVERWRITE:
        raise _conflict(log, "another writer made it first", state.version, "DELTA_CONCURRENT_APPEND")


def _rules(state: Snapshot, url: str) -> TableRules | None:
    return rules_in_force(state.schema, state.metadata.configuration, state.protocol, url=url)


def _check_shape(log: TableLog, plan: WritePlan, state: Snapshot) -> None:
    # Marks that moved were judged with the commits that moved them.
    if not _has_shape(state.metadata, plan, differ_in_marks_alone):
        reason = "its schema or partitioning changed; run the write again (restart the query) on what it is now"
        raise _conflict(log, reason, state.version, METADATA_CHANGED)
    if not set(clustering_of(state)) <= set(plan.clustered_by):
        reason = "it is clustered by columns of which the files have no statistics; run the write again"
        raise _conflict(log, reason, state.version, METADATA_CHANGED)


def _tolerance(winner: Commit, transaction: Transaction) -> Tolerance:
    """Gives what of a rival's changes our write, which changes neither protocol nor metadata, can live with.

    Marks of identity columns that moved, where we make no values. Other things not where we write rows of the table
    anew: the rival may have begun to track rows, whose ids would have to be kept.
    """
    plan = transaction.plan
    found = plan.found
    if found is None or plan.metadata is not None:
        return Tolerance()
    makes_values = bool(plan.identity and transaction.files)
    marks = (
        not makes_values
        and winner.metadata is not None
        and winner.metadata.table_id == found.table_id
        and winner.metadata.partition_columns == found.partition_columns
        and only_moves_marks(found.schema_string, found.configuration, winner, url=plan.location)
    )
    if transaction.kind is WriteKind.OPTIMIZE or plan.replaces.by_row is not None:
        return Tolerance(metadata=marks)
    return Tolerance(
        protocol=winner.protocol is not None and only_adds_features(found.protocol, winner.protocol),
        metadata=marks
        or (
            winner.metadata is not None
            and winner.metadata.table_id == found.table_id
            and _has_shape(winner.metadata, plan)
            and only_enables(found.configuration, winner.metadata)
        ),
    )


def _what_changed(winner: Commit, plan: WritePlan) -> str:
    if winner.metadata is None or plan.found is None:
        return "its metadata changed; run the write again"
    found = plan.found
    said = difference(
        winner.metadata,
        schema_string=found.schema_string,
        partition_columns=found.partition_columns,
        configuration=found.configuration,
        url=plan.location,
    )
    return f"{said}; run the write again (restart the query) on what the table is now"


def _has_shape(metadata: Metadata, plan: WritePlan, alike: Callable[[Struct, Struct], bool] = operator.eq) -> bool:
    expected = plan if plan.found is None else plan.found
    if metadata.partition_columns != expected.partition_columns:
        return False
    if metadata.schema_string == expected.schema_string:
        return True
    from tablefeed.delta.schema import parse_schema

    # Writers space their JSON differently.
    theirs, ours = (parse_schema(text, url=plan.location) for text in (metadata.schema_string, expected.schema_string))
    return alike(theirs, ours)


def _conflict(log: TableLog, reason: str, winner: int, error_class: str) -> ConflictError:
    return ConflictError(
        f"Nothing was committed to {log.url}: version {winner} excludes this write: {reason}.",
        url=log.url,
        winner=winner,
        error_class=error_class,
    )


def _entry(
    transaction: Transaction,
    state: Snapshot | None,
    *,
    replaced: FileCounts,
    replaced_rows: int | None,
    now_ms: int,
) -> Commit:
    """Gives the commit to put after `state`, but for removes of the live files that it replaces, which are `replaced`.

    Raises CommitError where no version can follow that.
    """
    if state is not None and state.version >= names.LAST_VERSION:
        raise CommitError(
            f"Nothing was committed to {state.log.url}: it is at version {state.version}, the last that there can be. "
            "Its log is damaged: remove the files of versions that were never committed.",
            url=state.log.url,
        )
    folded = _folded(transaction, now_ms)
    txn = transaction.txn
    protocol, metadata = None, transaction.plan.metadata
    if state is None:
        protocol, metadata = table = new_table(transaction.plan, now_ms=now_ms)
    else:
        table = state.protocol, metadata or state.metadata
    rewriting = transaction.rewriting or Rewriting()
    added = (*transaction.files, *rewriting.added)
    asked = featured(added, state, table, now_ms=now_ms, url=transaction.plan.location)
    marks = _marks_moved(transaction, state)
    # By it Delta-Spark's other writers know that nothing else of the table is new.
    moved = {names.IDENTITY_ONLY_TAG: "true"} if marks is not None and metadata is None else {}
    info = commit_info(
        transaction.operation,
        Provenance(
            timestamp_ms=now_ms,
            txn_id=str(uuid.uuid4()),
            engine=ENGINE,
            # What was read, not what the commit comes behind.
            read_version=None if transaction.plan.found is None else transaction.plan.found.version,
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
            rewriting=transaction.rewriting,
        ),
    )
    return Commit(
        version=Version(0 if state is None else state.version + 1),
        files=(*asked.files, *folded, *rewriting.changes),
        txns=() if txn is None else (replace(txn, last_updated_ms=now_ms),),
        metadata=metadata if marks is None else marks,
        protocol=protocol,
        domains=(*asked.domains, *_new_domains(transaction.plan, state)),
        info=info,
        committed_at_ms=None,
    )


def _new_domains(plan: WritePlan, state: Snapshot | None) -> tuple[DomainMetadata, ...]:
    return (clustering_domain(plan.clustered_by),) if state is None and plan.clustered_by else ()


def _marks_moved(transaction: Transaction, state: Snapshot | None) -> Metadata | None:
    """The table's metadata with the marks of its identity columns moved; None where no value was made."""
    plan = transaction.plan
    if state is None or not plan.identity or not transaction.files:
        return None
    metadata = plan.metadata or state.metadata
    return marks_moved(metadata, plan.identity, transaction.files, plan.mapping, url=state.log.url)


def new_table(plan: WritePlan, *, now_ms: int) -> tuple[Protocol, Metadata]:
    """Gives what a table made under `plan` is. Raises UnsupportedFeatureError for properties that we cannot honour."""
    from tablefeed.delta.schema import parse_schema

    schema = parse_schema(plan.schema_string, url=plan.location)
    protocol = features.required_protocol(schema, plan.configuration)
    kept = {name: value for name, value in plan.configuration.items() if is_kept(name)}
    configuration = row_tracking.with_column_names(kept, protocol, new_name=lambda: str(uuid.uuid4()))
    metadata = Metadata(
        table_id=str(uuid.uuid4()),
        schema_string=plan.schema_string,
        partition_columns=plan.partition_columns,
        configuration=configuration,
        created_ms=now_ms,
    )
    features.check_writable(protocol, metadata, url=plan.location, removes=False)
    return protocol, metadata


def _removal(transaction: Transaction, state: Snapshot | None, now_ms: int) -> tuple[Removal, int | None]:
    """Gives the removes of the live files that an overwrite replaces, more than could be values, and their rows.

    These are counted where the commit tells how many they are; None: some file does not.
    """
    removal = Removal(deletion_timestamp_ms=now_ms)
    rows: int | None = 0
    if state is None or transaction.kind is not WriteKind.OVERWRITE or transaction.rewriting is not None:
        return removal, rows
    counts_rows = isinstance(transaction.operation, Write) and transaction.operation.predicate is not None
    replacement = Replacement(transaction.plan.replaces, transaction.files, url=state.log.url)
    for batch in replacement.of(state.live_files(with_stats=counts_rows)):
        if counts_rows and rows is not None:
            counted = record_counts(batch["stats"])
            rows = None if counted.null_count else rows + (counted.sum().as_py() or 0)
        removal.take(batch)
    return removal, rows


def _folded(transaction: Transaction, now_ms: int) -> tuple[RemoveFile, ...]:
    """Gives the removes of the files whose rows were written anew."""
    rewriting = transaction.rewriting or Rewriting()
    return tuple(
        RemoveFile(
            path=add.path,
            log_path=add.log_path,
            data_change=transaction.kind is not WriteKind.OPTIMIZE,
            deletion_timestamp_ms=now_ms,
            extended_file_metadata=True,
            partition_values=add.partition_values,
            size_bytes=add.size_bytes,
            tags=add.tags,
            deletion_vector=add.deletion_vector,
            base_row_id=add.base_row_id,
            default_row_commit_version=add.default_row_commit_version,
        )
        for add in (*transaction.folded, *rewriting.removed)
    )


def _put(log: TableLog, entry: Commit, removal: Removal, around: Surroundings) -> bool:
    """Puts `entry` as its version: True where it stands, False where another commit does."""
    path = f"{names.LOG_DIR}/{names.commit_name(entry.version)}"
    data = codec.encode_commit(entry, removal.lines())
    failure: StoreError | None = None
    for attempt in range(LOST_ANSWER_RETRIES):
        try:
            if failure is not None and _stands(log, entry):
                return True
            if log.store.put_if_absent(path, data):
                return True
            # Taken: by a rival, or by a put of ours that was sent twice or arrived late.
            return _stands(log, entry)
        except NotExclusiveError:
            raise
        except StoreError as error:
            failure = error
            logger.warning("unsettled table=%s version=%d attempt=%d: %s", log.url, entry.version, attempt, error)
            around.sleep(around.uniform() * 0.1 * 2**attempt)
    raise CommitUnknownError(
        f"The store failed while version {entry.version} of {log.url} was committed, and does not say whether it "
        "stands. Nothing is lost: run the same batch again, and what stands is not written twice.",
        url=log.url,
        version=entry.version,
    ) from failure


def _stands(log: TableLog, entry: Commit) -> bool:
    theirs = log.commit_facts(entry.version)
    ours = (entry.info or {})[names.TXN_ID]
    return theirs is not None and theirs.info is not None and theirs.info.get(names.TXN_ID) == ours


def _after(log: TableLog, state: Snapshot | None, entry: Commit) -> Snapshot:
    # Not read back: a store that fails now must not hide that the commit stands.
    if state is None:
        return log.snapshot(entry.version, fold(Facts(), [entry]))
    return log.snapshot(entry.version, fold(state.facts, [entry]), unreadable=state.unreadable)


def _delete_replayed(log: TableLog, transaction: Transaction) -> None:
    rewriting = transaction.rewriting or Rewriting()
    files = transaction.files + rewriting.written
    if transaction.txn is not None and files:
        first = 0 if transaction.plan.version is None else transaction.plan.version + 1
        _delete_losers(log, files, transaction.txn, first)


def delete_losers(plan: WritePlan, files: Sequence[AddFile], txn: Txn) -> None:
    """Deletes `files`, written under `plan`, where the log shows that `txn` was committed without them; else nothing.

    The winning commit is read, and what it names stays. Where it is not found among the versions since the write was
    planned, nothing is deleted: VACUUM will.
    """
    if files:
        log = open_log(plan.location, plan.storage_options)
        first = 0 if plan.version is None else plan.version + 1
        _delete_losers(log, files, txn, first)


def delete_uncommitted(plan: WritePlan, files: Sequence[AddFile | CdcFile]) -> None:
    """Deletes `files`, written under `plan`, of a write that no commit was ever tried of."""
    if files:
        _delete(open_log(plan.location, plan.storage_options), files)


def _delete_excluded(log: TableLog, transaction: Transaction, winner: int) -> None:
    """Deletes the files of a write that the commit of version `winner` excludes, unless a commit up to that names one.

    Whatever was put of ours was put for a version up to that, and those are all taken: it stands there or never will.
    A commit that names our files is one of this write that was tried before.
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
        # What stays is named by no commit, and there is an error to tell of.
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
        # What stays is named by no commit: it must not turn an outcome that is settled into a failure.
        logger.warning("orphans table=%s app_id=%s txn_version=%d: %s", log.url, txn.app_id, txn.txn_version, error)


def _winner(log: TableLog, txn: Txn, first: int) -> Commit | None:
    """Gives the first commit from `first` on that records `txn` or a later one of its application."""
    version = Version(first)
    while (commit := log.commit(version)) is not None:
        if any(t.app_id == txn.app_id and t.txn_version >= txn.txn_version for t in commit.txns):
            return commit
        version = Version(version + 1)
    return None
