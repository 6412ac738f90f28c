"""A commit to a Delta table: one JSON file, put as the next version.

A new table's version 0 has its files already. The commits of other writers since the write was planned are checked:
where one conflicts with ours, nothing is committed. The rules are `tablefeed.log.conflicts`'s; here it is decided which
changes of metadata and protocol leave our files valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tablefeed.delta import features, names
from tablefeed.delta.schema.enablement import only_adds_features, only_enables, only_moves_marks
from tablefeed.delta.schema.iceberg_compat import stores_partition_columns
from tablefeed.delta.schema.identity import differ_in_marks_alone
from tablefeed.delta.schema.metadata_difference import difference
from tablefeed.delta.schema.schema_string import schema_of
from tablefeed.errors import TABLE, ConflictError, TableError
from tablefeed.feed.commit.entry import DeltaWrite, commit_entry, removal_of
from tablefeed.feed.commit.transaction import FormatCommit, Put, Replay, Surroundings, Transaction
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.delta_plan import clustering_of
from tablefeed.feed.write.kept_lines import KeptLines, content_of
from tablefeed.feed.write.orphans import first_recording
from tablefeed.feed.write.replaced_files import ReplacedFiles
from tablefeed.feed.write.rewriting import Rewriting
from tablefeed.feed.write.row_rules import rules_in_force
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.log.conflicts import Tolerance, WriteKind, conflict_with
from tablefeed.log.facts import fold
from tablefeed.model.actions import AddFile, Commit, Facts, FileAction, Txn, Version
from tablefeed.store import Draft, Entry

RACES_BEFORE_JITTER = 2
"""Lost puts without a wait: one or two losses are chance, more mean that many writers compete."""

LONGEST_JITTER_S = 0.02
"""The longest wait after the first loss that is followed by one. Each further loss makes it shorter, so a writer that
has lost often goes before one that has just come. If it grew, a writer that lost by chance would wait for seconds."""

SHORTEST_JITTER_S = 0.002

SAME_TIME_MS = 1_000
"""Attempts within this time say the same time, so that they have the same bytes, which are made durable once."""

METADATA_CHANGED = "DELTA_METADATA_CHANGED"


def recorded_version(state: Snapshot | None, txn: Txn | None) -> int | None:
    """Gives the version that `state` records of the application of `txn`; None where it is below that of `txn`."""
    recorded = state.facts.txns.get(txn.app_id) if state is not None and txn is not None else None
    return None if recorded is None or txn is None or recorded.txn_version < txn.txn_version else recorded.txn_version


class DeltaCommit(FormatCommit):
    """As `FormatCommit`. As in Delta-Spark, a commit without files is one too.

    It never gives up: each lost put means that another writer's commit succeeded.
    """

    def __init__(self, log: TableLog, plan: DeltaPlan, transaction: Transaction, around: Surroundings) -> None:
        if not isinstance(log, DeltaLog):
            raise TypeError(f"{log.url} is no Delta table")
        self._log, self._around = log, around
        self._write = DeltaWrite(plan=plan, transaction=transaction, rewriting=transaction.rewriting)
        self._checked = plan.version
        self._head = None if plan.found is None else plan.found.head
        self._time_ms: int | None = None
        self._draft = Draft()

    @property
    def own_paths(self) -> tuple[str, ...]:
        """The files of the `Rewriting` of a replaceWhere."""
        rewriting = self._write.rewriting
        return () if rewriting is None or rewriting is self._write.transaction.rewriting else rewriting.paths

    def replayed(self, state: Snapshot | None) -> Replay | None:
        """As `FormatCommit`; the commit is looked for only where there are files that it may name."""
        txn = self._write.transaction.txn
        recorded = recorded_version(state, txn)
        if txn is None or recorded is None:
            return None
        paths = (*self._write.transaction.paths, *self.own_paths)
        commit = first_recording(self._log, txn, self._write.plan.next_version) if paths else None
        return Replay(txn_version=recorded, commit=commit)

    def check(self, state: Snapshot | None) -> None:
        """Raises as `_check_concurrent`, for the commits that were not checked before."""
        self._checked = _check_concurrent(self._log, self._write, state, self._checked, self._head)
        self._head = None if state is None else state.head

    def prepared(self, state: Snapshot | None) -> Put:
        """As `FormatCommit`. Raises as `rewritten`, `removal_of` and `commit_entry`."""
        log, plan, files = self._log, self._write.plan, self._write.transaction.files
        if self._write.rewriting is None and state is not None and plan.replaces.by_row is not None:
            from tablefeed.feed.write.taking_out import rewritten

            # Once: a later commit that touches the rewritten files conflicts with ours.
            rewriting = rewritten(state, plan, files, now_ms=self._around.now_ms())
            self._write = replace(self._write, rewriting=rewriting)
        now_ms = self._time_of_attempt(state)
        restored = self._write.transaction.restored
        lines = KeptLines() if restored is None else restored.lines
        replaced, rows = removal_of(self._write, state, now_ms, lines)
        entry = commit_entry(self._write, state, replaced=replaced, replaced_rows=rows, now_ms=now_ms)
        return Put(
            log=log,
            base=state,
            name=names.commit_name(entry.version),
            data=content_of(entry, lines),
            commit=entry,
            also_removed=replaced,
            draft=self._draft,
            new_files=self._write.transaction.paths if state is None else (),
        )

    def after(self, put: Put, head: Entry) -> Snapshot:
        """As `FormatCommit`. The commit is not read back: a store that fails now must not hide that it holds."""
        base = put.base
        facts = fold(Facts() if base is None else base.facts, [put.commit])
        unreadable = frozenset[str]() if base is None else base.unreadable
        return self._log.snapshot(put.version, facts, unreadable=unreadable, head=head)

    def longest_pause_s(self, lost: int) -> float:
        """No pause after the first lost puts, then one that becomes shorter with each."""
        waits = lost - RACES_BEFORE_JITTER
        return max(LONGEST_JITTER_S / waits, SHORTEST_JITTER_S) if waits > 0 else 0.0

    def close(self) -> None:
        """As `FormatCommit`."""
        self._draft.discard()

    def _time_of_attempt(self, state: Snapshot | None) -> int:
        """Now; or the time of an earlier attempt, unless commits of the table must have times in their order."""
        now_ms, earlier_ms = self._around.now_ms(), self._time_ms
        keeps_times = state is not None and state.properties.keeps_commit_times
        if earlier_ms is None or keeps_times or not 0 <= now_ms - earlier_ms < SAME_TIME_MS:
            self._time_ms = earlier_ms = now_ms
        return earlier_ms


# --- the commits of other writers that came before ours ------------------------------------------------------------


def _check_concurrent(
    log: TableLog, write: DeltaWrite, state: Snapshot | None, checked: Version | None, head: Entry | None
) -> Version | None:
    """Checks the commits after `checked` up to `state`; gives the version up to which no commit conflicts with ours.

    None: there is still no table. `head` is the file of the commit `checked`; None: not known. Raises ConflictError if
    a commit conflicts, if the table is gone or was created again or restored, or if a commit is missing from the log;
    UnsupportedFeatureError if we can no longer write the table.
    """
    plan, transaction = write.plan, write.transaction
    if state is None:
        if plan.table_id is None:
            return None
        raise ConflictError(
            f"Nothing was committed to {TABLE}: the table is gone. It was deleted while the write ran. Run the write "
            "again to create it.",
            url=TABLE,
            winner=-1,
            error_class=METADATA_CHANGED,
        )
    if plan.table_id is None and checked is None:
        _check_made_by_another(write, state)
        _check_files_are_there(log, write, state)
        return state.version
    if plan.table_id is not None and state.metadata.table_id != plan.table_id:
        raise _conflict("the table was deleted and created again; run the write again", state.version, METADATA_CHANGED)
    if checked is not None:
        _check_not_restored(log, checked, head, state)
    reads = transaction.reads or _reads_of(plan, state, transaction.files)
    rewriting = write.rewriting or Rewriting()
    decided_by = transaction.decided_by
    folded = frozenset(decided_by or ()).union(add.path for add in (*transaction.folded, *rewriting.removed))
    for version in range((checked if checked is not None else -1) + 1, state.version + 1):
        theirs = log.commit(Version(version))
        if theirs is None:
            gone = "that version is gone from the log, so it cannot be checked; run the write again"
            raise _conflict(gone, version, "DELTA_CONCURRENT_TRANSACTION")
        found = conflict_with(
            theirs,
            kind=transaction.kind,
            txn=transaction.txn,
            tolerance=_tolerance(theirs, write),
            reads=reads,
            folded=folded,
            any_row=decided_by is None,
            domains=transaction.read_domains,
        )
        if found is not None:
            reason = _what_changed(theirs, plan) if found.error_class == METADATA_CHANGED else found.reason
            raise _conflict(reason, found.version, found.error_class)
        if theirs.protocol is not None or theirs.metadata is not None:
            features.check_writable(state.protocol, state.metadata, removes=transaction.kind.removes)
    _check_shape(plan, state)
    return state.version


def _check_not_restored(log: TableLog, checked: Version, head: Entry | None, state: Snapshot) -> None:
    """Raises ConflictError if `checked`, whose file was `head`, is another commit now, or later than the newest.

    Then an older copy of the table was restored: it has the same id, but not what our write has read. If the file is
    missing and later versions exist, a log cleanup has deleted it.
    """
    now = state.head if state.version == checked else log.head(checked)
    if state.version < checked or (None not in (now, head) and now != head):
        reason = "this write has read it, and an older copy of the table was restored since; run the write again"
        raise _conflict(reason, checked, "DELTA_CONCURRENT_DELETE_READ")


def _reads_of(plan: DeltaPlan, state: Snapshot, written: Iterable[AddFile]) -> Callable[[FileAction], bool]:
    """A function that says whether a file of another commit may have rows that this write replaces."""
    rows = plan.replaces.by_row
    if rows is None:
        return ReplacedFiles(plan.replaces, written).reads
    from tablefeed.feed.write.taking_out import target_of

    target = target_of(plan, state)
    return lambda file: target.may_match(file, rows)


def _check_made_by_another(write: DeltaWrite, state: Snapshot) -> None:
    """Raises ConflictError where another writer made a table to which our rows cannot be appended as they are."""
    plan, kind = write.plan, write.transaction.kind
    if kind is WriteKind.DEFINE:
        raise already_exists()
    _check_shape(plan, state)
    if clustering_of(state) != plan.clustered_by:
        raise _changed("another writer created the table, clustered by other columns", state.version)
    in_force = rules_in_force(state.schema, state.metadata.configuration, state.protocol)
    if in_force != (None if plan.kept is None else plan.kept.rules):
        reason = "another writer created the table with rules that these rows were not checked against"
        raise _changed(reason, state.version)
    features.check_writable(state.protocol, state.metadata, removes=kind.removes)
    if stores_partition_columns(state.protocol, state.properties) and not plan.stores_partitions:
        raise _changed("another writer created a table whose files must store partition columns", state.version)
    if kind is WriteKind.OVERWRITE:
        reason = "another writer created the table first; run the write again"
        raise _conflict(reason, state.version, "DELTA_CONCURRENT_APPEND")


def _check_files_are_there(log: TableLog, write: DeltaWrite, state: Snapshot) -> None:
    """Raises ConflictError if a file of ours is missing: a write that found no table has no table id to compare.

    Other writers may have created the table, deleted its folder with our files, and created the table again.
    """
    gone = next((path for path in write.transaction.paths if not log.store.exists(path)), None)
    if gone is not None:
        reason = f"the table was deleted and created again, and {gone} is gone; run the write again"
        raise _conflict(reason, state.version, METADATA_CHANGED)


def already_exists() -> TableError:
    """The error for a table that is to be made where there is one."""
    return TableError(
        f"There is a table at {TABLE} already. Nothing was written. Change it with `tablefeed.alter`, or make the new "
        "one at another path.",
        error_class="DELTA_TABLE_ALREADY_EXISTS",
    )


def _check_shape(plan: DeltaPlan, state: Snapshot) -> None:
    expected = plan if plan.found is None else plan.found
    same_partitions = state.metadata.partition_columns == expected.partition_columns
    # High-water marks that moved were checked with the commits that moved them.
    if not (same_partitions and differ_in_marks_alone(state.schema, expected.schema)):
        raise _changed("the schema or partitioning changed", state.version)
    if not set(clustering_of(state)) <= set(plan.clustered_by):
        raise _changed("the table is clustered by columns for which our files have no statistics", state.version)


def _tolerance(theirs: Commit, write: DeltaWrite) -> Tolerance:
    """Says whether the changes of protocol and metadata in `theirs` leave our write valid.

    Never where our write makes the table or changes its metadata. Marks of identity columns may move where we make no
    values. Features may be added and turned on, but not where we rewrite rows of the table: the other writer may
    have begun to track rows, and their ids would have to be kept, or to record changes. There both may only be
    repeated, as a RESTORE of Delta-Spark or delta-rs does.
    """
    plan, found, transaction = write.plan, write.plan.found, write.transaction
    if found is None or plan.metadata is not None:
        return Tolerance()
    metadata, marks, enables, repeats = theirs.metadata, False, False, False
    if metadata is not None and (metadata.table_id, metadata.partition_columns) == (
        found.table_id,
        found.partition_columns,
    ):
        after = schema_of(metadata)
        makes_values = bool(plan.identity and transaction.files)
        marks = not makes_values and only_moves_marks(found.schema, found.configuration, theirs, after)
        enables = after == found.schema and only_enables(found.configuration, metadata)
        repeats = after == found.schema and dict(metadata.configuration) == dict(found.configuration)
    if transaction.kind in (WriteKind.OPTIMIZE, WriteKind.CHANGE) or plan.replaces.by_row is not None:
        return Tolerance(protocol=theirs.protocol == found.protocol, metadata=marks or repeats)
    protocol = theirs.protocol is not None and only_adds_features(found.protocol, theirs.protocol)
    return Tolerance(protocol=protocol, metadata=marks or enables)


def _what_changed(theirs: Commit, plan: DeltaPlan) -> str:
    if theirs.metadata is None or plan.found is None:
        return "its metadata changed; run the write again"
    found = plan.found
    said = difference(
        theirs.metadata,
        schema=found.schema,
        partition_columns=found.partition_columns,
        configuration=found.configuration,
    )
    return f"{said}; run the write again (restart the query)"


def _changed(reason: str, version: int) -> ConflictError:
    return _conflict(f"{reason}; run the write again (restart the query)", version, METADATA_CHANGED)


def _conflict(reason: str, version: int, error_class: str) -> ConflictError:
    return ConflictError(
        f"Nothing was committed to {TABLE}: version {version} conflicts with this write: {reason}.",
        url=TABLE,
        winner=version,
        error_class=error_class,
    )
