"""Commits written splits to an IndexTables table with one put, in the form of its log.

In a log of commits this puts the JSON file of the next version if it is absent; in a log of states, the
`_manifest.avro` of the next state. A new table has both: the commit is put, and then its state, for readers that look
at states alone. Where that state could not be put, the state of the next commit includes its changes. A writer that
loses the race reads what was committed and tries the version after it. Splits are never written again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

from tablefeed.delta.commit_info import Provenance, commit_info
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.errors import ConflictError, TableReplacedError
from tablefeed.feed.commit import index_attempts, index_states
from tablefeed.feed.commit.entry import ENGINE, removed, txns_of
from tablefeed.feed.commit.own_log import in_log_of
from tablefeed.feed.commit.settled_put import put_settled
from tablefeed.feed.commit.transaction import FormatCommit, Put, Replay, Surroundings, Transaction
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.split_write import check_same_table
from tablefeed.feed.write.write_plan import SplitPlan
from tablefeed.indextables import names
from tablefeed.indextables.log import columns, protocol, version_file
from tablefeed.indextables.log.next_state import NextState, hint_of
from tablefeed.indextables.log.version_file import Writer
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Commit, Metadata, RemoveFile, Version
from tablefeed.store import Entry

MOST_TRIES = 10
"""How many versions are tried before the write gives up. This number and the pauses are IndexTables' own."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0


class IndexCommit(FormatCommit):
    """As `FormatCommit`, with a log of commits, of states, or of both.

    An append without files commits nothing. An overwrite without files is committed where the table has files to
    remove, or the write has a txn: were it not recorded, the same write run again later would remove newer rows.
    """

    def __init__(self, log: TableLog, plan: SplitPlan, transaction: Transaction, around: Surroundings) -> None:
        if not isinstance(log, IndexTablesLog):
            raise TypeError(f"{log.url} has no splits")
        self._log, self._plan, self._transaction, self._around = log, plan, transaction, around
        self._replaces = transaction.kind is WriteKind.OVERWRITE
        self._seen = None if plan.found is None or plan.version is None else (plan.version, plan.found.head)
        self._tried_after: Version | None = None
        self._form: index_states.Form | None = None
        self._state: NextState | None = None
        self._made_id: str | None = None

    def begin(self, state: Snapshot | None) -> Snapshot | None:
        """Makes a new table unless another writer has made it. Its version 0 has protocol and metadata, but no file."""
        if state is not None or self._plan.found is not None:
            return state
        table_id = str(uuid.uuid4())
        self._made_id = self._made_id or table_id
        metadata = Metadata(
            table_id=table_id,
            schema_string=format_schema(self._plan.schema),
            partition_columns=self._plan.partition_columns,
            format_provider=names.PROVIDER,
            created_ms=self._around.now_ms(),
        )
        first = Commit(version=Version(0), protocol=protocol.NEW_TABLE, metadata=metadata, committed_at_ms=None)
        data = version_file.encode_commit(first, writer=Writer.SCALA)
        put = Put(log=self._log, base=None, name=names.commit_name(0), data=data, commit=first)
        put_settled(put, self._around)
        return self._log.load()

    def replayed(self, state: Snapshot | None) -> Replay | None:
        """As `FormatCommit`, from the notes of earlier tries; then puts the state that a writer died before it put."""
        txn = self._transaction.txn
        if txn is None or state is None:
            return None
        named = self._plan.named
        found = index_attempts.recorded(self._log, state, txn, named=named, since=self._tried_after)
        if found is not None:
            self._log.in_doubt = None
            index_states.complete(self._log, state, now_ms=self._around.now_ms())
        return found

    def check(self, state: Snapshot | None) -> None:
        """Raises ConflictError where the table is gone or another one, SchemaMismatchError for other columns.

        Where a first write meets a table that is not the one which it began, its splits may have gone with another. So
        they may where an older copy of the table was restored. It looks for them before the put too: a writer that dies
        after the put cannot delete its commit again.
        """
        plan, url = self._plan, self._log.url
        if state is None:
            raise self._conflict("the table is gone. It was deleted while the write ran", version=-1)
        protocol.refuse_writing(state.protocol, url=url)
        if plan.found is None:
            check_same_table(plan, state)
        elif plan.found.table_id != state.metadata.table_id:
            raise self._conflict("the table was deleted and created again", version=state.version)
        is_other = plan.found is None and state.metadata.table_id != self._made_id
        now, seen = (state.version, state.head), self._seen
        is_restored = seen is not None and now[0] <= seen[0] and now != seen
        self._seen = now
        paths = self._transaction.paths if is_other or is_restored else ()
        gone = next((path for path in paths if not self._log.store.exists(path)), None)
        if gone is not None:
            how = "created again" if is_other else "restored"
            raise self._conflict(f"the table was deleted and {how}, and {gone} is gone", version=state.version)

    def changes_nothing(self, state: Snapshot) -> bool:
        """Whether there is neither a file nor, for an overwrite, a txn to record or a file to remove."""
        if self._transaction.files:
            return False
        if self._transaction.kind is WriteKind.APPEND:
            return True
        return self._transaction.txn is None and not any(batch.num_rows for batch in state.live_files())

    def prepared(self, state: Snapshot | None) -> Put:
        """As `FormatCommit`. The first time it notes that the txn is tried."""
        log, transaction, txn = self._log, self._transaction, self._transaction.txn
        state = _made(state)
        if txn is not None and self._tried_after is None:
            index_attempts.note(log, state, txn)
        self._tried_after = state.version
        if log.in_doubt is None or log.in_doubt[0] != txn:
            log.in_doubt = txn, state.version
        form = self._form = index_states.form_of(log, state)
        now_ms, new_files = self._around.now_ms(), transaction.paths if self._plan.found is None else ()
        entry = _entry(transaction, state, form, now_ms=now_ms)
        if not form.has_commits:
            new = self._state = self._next_state(log, state, entry)
            parts = index_states.manifest_paths(new)
            manifests = [f"{names.LOG_DIR}/{manifest.name}" for manifest in new.state.manifests]
            noted = [] if txn is None else [index_attempts.note_of(txn)]
            return Put(
                log=log,
                base=state,
                name=names.state_name(entry.version),
                data=new.state_file,
                commit=entry,
                parts=parts,
                new_files=new_files,
                needed=(*manifests, *transaction.paths, *noted),
            )
        self._state = None
        if form.has_states:
            log.agreed_state(state.version)
        removes = _removes(log, state, now_ms=now_ms) if self._replaces else iter(())
        data = version_file.encode_commit(entry, writer=form.writer, first=removes)
        name = names.commit_name(entry.version)
        return Put(
            log=log,
            base=state,
            name=name,
            data=data,
            commit=entry,
            new_files=new_files,
            undo=partial(index_states.delete_made_of, log, entry) if form.has_states else None,
        )

    def _next_state(self, log: IndexTablesLog, state: Snapshot, entry: Commit) -> NextState:
        try:
            mappings = mappings_of(self._transaction.files)
            return index_states.state_commit(log, state, entry, mappings, replaces=self._replaces)
        except TableReplacedError as error:
            why = (
                f"{names.state_name(state.version)} names a manifest that is gone, because an older copy of the table "
                "was restored before the state was put. Its writer deletes it again, unless that process ended"
            )
            raise self._conflict(why, version=state.version) from error

    def after(self, put: Put, head: Entry) -> Snapshot:
        """As `FormatCommit`. Puts the state of a commit, or moves the hint to a state; then deletes earlier notes."""
        log, base, txn, form = self._log, _made(put.base), self._transaction.txn, self._form
        after = log.after(base, put.commit, mappings_of(self._transaction.files), head)
        if self._state is not None:
            log.whole = put.version, head, index_states.manifests_of(self._state.state)
            with suppress(TableReplacedError):  # the commit holds, whatever the hint says
                index_states.point_to(log, hint_of(self._state.state), in_log_of(base))
        elif form is not None and form.has_states:
            index_states.follow(log, after, put.commit, writer=form.writer, replaces=self._replaces)
        if txn is not None:
            index_attempts.forget(log, txn)
        log.in_doubt = None
        return after

    def longest_pause_s(self, lost: int) -> float:
        """A pause that doubles. Raises ConflictError after `MOST_TRIES`."""
        if lost < MOST_TRIES:
            return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * (1 << (lost - 1)))
        raise ConflictError(
            f"Nothing was committed to {self._log.url}: other writers committed {lost} versions first. Run the write "
            "again.",
            url=self._log.url,
            winner=-1 if self._tried_after is None else self._tried_after + 1,
            error_class="INDEXTABLES_COMMIT_CONFLICT",
        )

    def _conflict(self, why: str, *, version: int) -> ConflictError:
        return ConflictError(
            f"Nothing was committed to {self._log.url}: {why}. Run the write again.",
            url=self._log.url,
            winner=version,
            error_class="INDEXTABLES_TABLE_REPLACED",
        )


def _made(state: Snapshot | None) -> Snapshot:
    if state is None:
        raise TypeError("the table has no version 0")  # `IndexCommit.begin` makes it
    return state


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
        txns=txns_of(transaction, now_ms),
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
            yield removed(add, deletion_timestamp_ms=now_ms)
