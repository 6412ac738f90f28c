"""Commits written splits to an IndexTables table with one put, in the form of its log.

In a log of commits this puts the JSON file of the next version if it is absent; in a log of states, the
`_manifest.avro` of the next state. A new table has both: the commit is put, and then its state, for readers that look
at states alone. Where that state could not be put, the state of the next commit includes its changes. A writer that
loses the race reads what was committed and tries the version after it. Splits are never written again.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tablefeed.delta.checkpoint.checksum_writer import no_files
from tablefeed.delta.commit_info import Provenance, commit_info
from tablefeed.errors import ConflictError, TablefeedError
from tablefeed.feed.commit import index_attempts, index_states
from tablefeed.feed.commit.entry import ENGINE
from tablefeed.feed.commit.replays import check_replay
from tablefeed.feed.commit.settled_put import Put, put_settled
from tablefeed.feed.commit.transaction import Surroundings, Transaction
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.known_state import caught_up
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.split_write import check_same_table
from tablefeed.feed.write.write_plan import discard
from tablefeed.indextables import names
from tablefeed.indextables.log import columns, protocol, version_file
from tablefeed.indextables.log.version_file import Writer
from tablefeed.log.transaction import WriteKind
from tablefeed.model.actions import AddFile, Commit, Metadata, RemoveFile, Version
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.store import Entry

logger = logging.getLogger(__name__)

MOST_TRIES = 10
"""How many versions are tried before the write gives up. This number and the pauses are IndexTables' own."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0


def commit_splits(
    log: TableLog, snapshot: Snapshot | None, transaction: Transaction, around: Surroundings
) -> tuple[Committed | AlreadyApplied, Snapshot]:
    """Does what `loop.commit` does, for an IndexTables table.

    An append without files commits nothing. An overwrite without files is committed where the table has files to
    remove, or the write has a txn: were it not recorded, the same write run again later would remove newer rows.
    Raises ConflictError also where other writers took all `MOST_TRIES` versions, SchemaMismatchError where the table
    was made meanwhile with other columns.
    """
    if not isinstance(log, IndexTablesLog):
        raise TypeError(f"{log.url} has no splits")
    state = caught_up(log, snapshot) or _made(log, transaction, around)
    read_up_to: Version | None = None
    for tries in range(MOST_TRIES):
        _check_state(log, transaction, state)
        replayed = _replayed(log, transaction, state, since=read_up_to)
        if replayed is not None:
            index_states.complete(log, state, now_ms=around.now_ms())
            return replayed, state
        if not transaction.files and _changes_nothing(transaction, state):
            return Committed(version=state.version), state
        if transaction.txn is not None and read_up_to is None:
            index_attempts.note(log, state, transaction.txn)
        read_up_to = state.version
        after = _put_next(log, transaction, state, around)
        if after is not None:
            logger.info("commit table=%s version=%d files=%d", log.url, after.version, len(transaction.files))
            if transaction.txn is not None:
                index_attempts.forget(log, transaction.txn)
            return Committed(version=after.version), after
        around.sleep(around.uniform() * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**tries))
        now = caught_up(log, state)
        if now is None:
            discard(log.store, (add.path for add in transaction.files))
            raise _replaced(log, "the table is gone, deleted while it was written to", state.version)
        state = now
    discard(log.store, (add.path for add in transaction.files))
    raise ConflictError(
        f"Nothing was committed to {log.url}: other writers took {MOST_TRIES} versions before us. Run the write again.",
        url=log.url,
        winner=state.version,
        error_class="INDEXTABLES_COMMIT_CONFLICT",
    )


def _made(log: IndexTablesLog, transaction: Transaction, around: Surroundings) -> Snapshot:
    """Makes the table unless another writer has made it. Version 0 has protocol and metadata, but no file."""
    plan = transaction.plan
    metadata = Metadata(
        table_id=str(uuid.uuid4()),
        schema_string=plan.schema_string,
        partition_columns=plan.partition_columns,
        format_provider=names.PROVIDER,
        created_ms=around.now_ms(),
    )
    first = Commit(version=Version(0), protocol=protocol.NEW_TABLE, metadata=metadata, committed_at_ms=None)
    data = version_file.encode_commit(first, writer=Writer.SCALA)
    _put(log, None, names.commit_name(0), data, around)
    return log.load()


def _check_state(log: IndexTablesLog, transaction: Transaction, state: Snapshot) -> None:
    """Raises, and deletes the files of the write, where the table is no longer the one that it was planned for."""
    plan = transaction.plan
    try:
        protocol.refuse_writing(state.protocol, url=log.url)
        if plan.found is None:
            check_same_table(plan, state)
        elif plan.found.table_id != state.metadata.table_id:
            raise _replaced(log, "the table was made anew since the write was planned", state.version)
    except TablefeedError:
        discard(log.store, (add.path for add in transaction.files))
        raise


def _replaced(log: TableLog, why: str, version: Version) -> ConflictError:
    return ConflictError(
        f"Nothing was committed to {log.url}: {why}. Run the write again on the new one.",
        url=log.url,
        winner=version,
        error_class="INDEXTABLES_TABLE_REPLACED",
    )


def _replayed(
    log: IndexTablesLog, transaction: Transaction, state: Snapshot, *, since: Version | None
) -> AlreadyApplied | None:
    txn = transaction.txn
    found = None if txn is None else index_attempts.recorded(log, state, txn, since=since)
    if txn is None or found is None:
        return None
    logger.info("replay table=%s app_id=%s txn_version=%d", log.url, txn.app_id, txn.txn_version)
    if found.txn_version == txn.txn_version:  # a later write's version does not say whether ours is in an earlier one
        stands = {add.path for add in found.commit.added}
        discard(log.store, (add.path for add in transaction.files if add.path not in stands))
    check_replay(txn, found.txn_version, transaction.on_collision, url=log.url)
    return AlreadyApplied(version=state.version, recorded_txn_version=found.txn_version)


def _changes_nothing(transaction: Transaction, state: Snapshot) -> bool:
    if transaction.kind is WriteKind.APPEND:
        return True
    return transaction.txn is None and not any(batch.num_rows for batch in state.live_files())


def _put_next(log: IndexTablesLog, transaction: Transaction, state: Snapshot, around: Surroundings) -> Snapshot | None:
    """Puts the version after `state`; gives the table as of it, None where our version is not in the log."""
    form = index_states.form_of(log, state)
    if form.has_commits and form.has_states:
        try:
            log.agreed_state(state.version)
        except TablefeedError:
            discard(log.store, (add.path for add in transaction.files))
            raise
    now_ms = around.now_ms()
    entry = _entry(transaction, state, form, now_ms=now_ms)
    replaces = transaction.kind is WriteKind.OVERWRITE
    heads = list[Entry]()

    def put(name: str, data: bytes) -> bool:
        head = _put(log, state, name, data, around)
        heads.extend([head] if head else [])
        return head is not None

    if form.has_commits:
        removes = _removes(log, state, now_ms=now_ms) if replaces else iter(())
        data = version_file.encode_commit(entry, writer=form.writer, first=removes)
        stands = put(names.commit_name(entry.version), data)
    else:
        mappings = mappings_of(transaction.files)
        stands = index_states.put_state_commit(log, state, entry, put, mappings=mappings, replaces=replaces)
    if not stands:
        return None
    after = log.after(state, entry, mappings_of(transaction.files), heads[0])
    if form.has_states and form.has_commits:
        index_states.follow(log, after, entry, writer=form.writer, replaces=replaces)
    around.stood(after, entry, no_files())
    return after


def _entry(transaction: Transaction, state: Snapshot, form: index_states.Form, *, now_ms: int) -> Commit:
    """The commit without its removes: the splits, and txn and commitInfo, which IndexTables ignores."""
    files = [replace(add, modified_ms=now_ms) for add in transaction.files]
    metrics = {
        "numFiles": len(files),
        "numOutputRows": sum(add.split.num_records or 0 for add in files if add.split),
        "numOutputBytes": sum(add.size_bytes for add in files),
    }
    info = commit_info(
        transaction.operation,
        Provenance(
            timestamp_ms=now_ms,
            txn_id=str(uuid.uuid4()),
            engine=ENGINE,
            read_version=transaction.plan.version,
            user_metadata=transaction.user_metadata,
        ),
        is_blind_append=transaction.kind is WriteKind.APPEND,
        metrics=metrics,
    )
    named, metadata = _mapped(files, state.metadata, form)
    return Commit(
        version=Version(state.version + 1),
        files=tuple(named),
        txns=() if transaction.txn is None else (replace(transaction.txn, last_updated_ms=now_ms),),
        metadata=metadata,
        info=info,
        committed_at_ms=now_ms,
    )


def mappings_of(files: Iterable[AddFile]) -> dict[str, str]:
    """Gives the doc mappings of new splits, by their hashes."""
    splits = (add.split for add in files)
    return {s.doc_mapping_ref: s.doc_mapping for s in splits if s and s.doc_mapping_ref and s.doc_mapping}


def _mapped(files: list[AddFile], metadata: Metadata, form: index_states.Form) -> tuple[list[AddFile], Metadata | None]:
    """The adds with doc mappings in the form of the log's writer, and the metadata to commit with them or None.

    The native writer has mappings inline. The Scala writer has hashes in the adds, and the mappings in the metadata of
    a commit or in the registry of a state. The metadata is given only where it lacks a mapping so far.
    """
    if form.writer is Writer.NATIVE:
        return [replace(add, split=replace(add.split, doc_mapping_ref=None)) for add in files if add.split], None
    named = [replace(add, split=replace(add.split, doc_mapping=None)) for add in files if add.split]
    new = {names.DOC_MAPPING_PREFIX + key: text for key, text in mappings_of(files).items()}
    if not form.has_commits or new.keys() <= metadata.configuration.keys():
        return named, None
    return named, replace(metadata, configuration={**metadata.configuration, **new})


def _removes(log: IndexTablesLog, state: Snapshot, *, now_ms: int) -> Iterator[RemoveFile]:
    for batch in log.files_of(state.version, state.unreadable):
        for add in columns.to_add_files(batch):
            yield RemoveFile(
                path=add.path,
                log_path=add.log_path,
                data_change=True,
                deletion_timestamp_ms=now_ms,
                extended_file_metadata=True,
                partition_values=add.partition_values,
                size_bytes=add.size_bytes,
            )


def _put(log: IndexTablesLog, state: Snapshot | None, name: str, data: bytes, around: Surroundings) -> Entry | None:
    """Puts the log file of the version after `state` and gives it; else None, as `put_settled`."""
    path = f"{names.LOG_DIR}/{name}"

    def is_ours() -> bool:
        return log.store.exists(path) and log.store.read(path) == data

    return put_settled(Put(log=log, base=state, name=name, data=data, is_ours=is_ours), around)
