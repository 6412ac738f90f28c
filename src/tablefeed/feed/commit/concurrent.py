"""Checks the commits of other writers that came before ours: where one conflicts with it, nothing is committed.

The rules are `tablefeed.log.conflicts`'s. This module decides which changes of metadata and protocol leave our files
valid.
"""

from __future__ import annotations

from tablefeed.delta import features
from tablefeed.delta.schema.enablement import only_adds_features, only_enables, only_moves_marks
from tablefeed.delta.schema.iceberg_compat import stores_partition_columns
from tablefeed.delta.schema.identity import differ_in_marks_alone
from tablefeed.delta.schema.metadata_difference import difference
from tablefeed.delta.schema.schema_string import schema_of
from tablefeed.errors import TABLE, ConflictError
from tablefeed.feed.commit.entry import DeltaWrite
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.delta_write import clustering_of
from tablefeed.feed.write.replacement import Replacement
from tablefeed.feed.write.row_replacement import Rewriting, reader_of
from tablefeed.feed.write.row_rules import rules_in_force
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.log.conflicts import Tolerance, WriteKind, conflict_with
from tablefeed.model.actions import Commit, Version

METADATA_CHANGED = "DELTA_METADATA_CHANGED"


def check_concurrent(
    log: TableLog, write: DeltaWrite, state: Snapshot | None, checked: Version | None
) -> Version | None:
    """Checks the commits after `checked` up to `state`; gives the version up to which no commit conflicts with ours.

    None where there is still no table. Raises ConflictError where a commit conflicts, where the table is gone or was
    made anew, and where a commit is gone from the log, UnsupportedFeatureError where we cannot write the table now.
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
        return state.version
    if plan.table_id is not None and state.metadata.table_id != plan.table_id:
        raise _conflict("the table was deleted and created again; run the write again", state.version, METADATA_CHANGED)
    reads = reader_of(plan, log) or Replacement(plan.replaces, transaction.files).reads
    rewriting = write.rewriting or Rewriting()
    folded = frozenset(add.path for add in (*transaction.folded, *rewriting.removed))
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
        )
        if found is not None:
            reason = _what_changed(theirs, plan) if found.error_class == METADATA_CHANGED else found.reason
            raise _conflict(reason, found.version, found.error_class)
        if theirs.protocol is not None or theirs.metadata is not None:
            features.check_writable(state.protocol, state.metadata, removes=transaction.kind is WriteKind.OVERWRITE)
    _check_shape(plan, state)
    return state.version


def _check_made_by_another(write: DeltaWrite, state: Snapshot) -> None:
    """Raises ConflictError where another writer made a table to which our rows cannot be appended as they are."""
    plan, kind = write.plan, write.transaction.kind
    _check_shape(plan, state)
    if clustering_of(state) != plan.clustered_by:
        raise _changed("another writer created the table, clustered by other columns", state.version)
    in_force = rules_in_force(state.schema, state.metadata.configuration, state.protocol)
    if in_force != (None if plan.kept is None else plan.kept.rules):
        reason = "another writer created the table with rules that these rows were not checked against"
        raise _changed(reason, state.version)
    features.check_writable(state.protocol, state.metadata, removes=kind is WriteKind.OVERWRITE)
    if stores_partition_columns(state.protocol, state.properties) and not plan.stores_partitions:
        raise _changed("another writer created a table whose files must store partition columns", state.version)
    if kind is WriteKind.OVERWRITE:
        reason = "another writer created the table first; run the write again"
        raise _conflict(reason, state.version, "DELTA_CONCURRENT_APPEND")


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
    have begun to track rows, and their ids would have to be kept.
    """
    plan, found, transaction = write.plan, write.plan.found, write.transaction
    if found is None or plan.metadata is not None:
        return Tolerance()
    metadata, marks, enables = theirs.metadata, False, False
    if metadata is not None and (metadata.table_id, metadata.partition_columns) == (
        found.table_id,
        found.partition_columns,
    ):
        after = schema_of(metadata)
        makes_values = bool(plan.identity and transaction.files)
        marks = not makes_values and only_moves_marks(found.schema, found.configuration, theirs, after)
        enables = after == found.schema and only_enables(found.configuration, metadata)
    if transaction.kind is WriteKind.OPTIMIZE or plan.replaces.by_row is not None:
        return Tolerance(metadata=marks)
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
