"""Applies change events to a table in one commit, which changes the rows and the state that is kept between batches.

The events of a batch are in memory, and so are the rows and the state of their keys. This module finds these rows and
this state, fold.py decides what changes, and this module writes it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.predicate import RowFilter
from tablefeed.delta.commit_info import TableChange
from tablefeed.errors import TABLE, SchemaMismatchError
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.rows import state as states
from tablefeed.feed.rows.columns import in_one_array, others
from tablefeed.feed.rows.events import key_numbers
from tablefeed.feed.rows.fold import fold
from tablefeed.feed.rows.folding import KIND, SEQUENCE, Folded, Folding, Kind, Known
from tablefeed.feed.rows.keyed import FoundRows, check_texts, find, key_ranges
from tablefeed.feed.rows.state import StateFile
from tablefeed.feed.write.change_data import with_change, write_changes
from tablefeed.feed.write.delta_plan import plan_delta_write
from tablefeed.feed.write.delta_write import write_delta_task
from tablefeed.feed.write.orphans import deleted_on_error
from tablefeed.feed.write.row_rules import filled_columns
from tablefeed.feed.write.taking_out import counts, taken_out
from tablefeed.feed.write.target_rows import Hit, TargetRows
from tablefeed.feed.write.write_plan import DeltaPlan, Planned
from tablefeed.log.changes import ChangeType
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, CdcFile, Txn
from tablefeed.model.schema import Struct

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The events of one batch, or of some of its keys, in the order of their arrival, and how they are folded."""

    events: pa.Table
    how: Folding

    @property
    def keys(self) -> pa.Table | None:
        """The keys of the events; None if a truncate removes rows of any key."""
        truncates = pc.any(pc.equal(self.events[KIND], Kind.TRUNCATE)).as_py()
        return None if truncates else self.events.select(self.how.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The outcome of applying the events of some keys: the files that were written, and the rows to remove. Picklable.

    `within` is true for the rows that were looked at; None: for all. `decided_by` are the paths of files with rows that
    decided about others, whether they are removed or not. `state` is the file with the new state of these keys; None:
    their state did not change.
    """

    within: RowFilter | None
    files: tuple[AddFile, ...] = ()
    changes: tuple[CdcFile, ...] = ()
    hits: tuple[Hit, ...] = ()
    decided_by: frozenset[str] = frozenset()
    state: StateFile | None = None
    truncated_at: pa.Scalar | None = None
    events: int = 0
    late: int = 0
    duplicates: int = 0
    unguarded: int = 0
    updated: int = 0
    inserted: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that were written."""
        state = () if self.state is None else (self.state.path,)
        return (*(file.path for file in self.files), *(file.path for file in self.changes), *state)


@in_one_array()
def applied_part(target: TargetRows, batch: Batch, *, task: int, now_ms: int) -> Part:
    """Applies the events of some keys: writes files of new rows, of changes, and of the new state.

    Nothing is committed. If this raises, the files are deleted. Raises as `fold`, `find` and `write_delta_task`.
    """
    snapshot, how, events = target.snapshot, batch.how, _padded(batch.events, target, batch.how)
    store = snapshot.log.store
    state = states.state_for(snapshot, how)
    keys = batch.keys
    # A row of any other key would be deleted too: a snapshot does not have it.
    within = None if keys is None or how.snapshot_at is not None else key_ranges(keys, target.schema)
    found = _found(target, batch, within)
    known = Known(
        rows=pa.table(_padded(found.rows, target, how).select(how.row_schema.names).columns, schema=how.row_schema),
        state=states.remembered(state, store, keys, how),
        truncated_at=state.truncated_at,
        forgotten_at=state.forgotten_at,
        now_ms=now_ms,
    )
    folded = fold(events, known, how)
    changed, forgotten = _state_of_changed_keys(known.state, folded, how)
    updates, inserts = _updates(target, folded, found, how), _inserts(target, folded, how)
    updates = found.with_ids(updates, folded.replaces.drop_null())
    with deleted_on_error(store) as written:
        updated = _written(target, updates, task=task, now_ms=now_ms)
        written += (file.path for file in updated)
        inserted = _written(target, inserts, task=task, now_ms=now_ms)
        written += (file.path for file in inserted)
        changes: tuple[CdcFile, ...] = ()
        if snapshot.properties.records_changes:
            rows = _changes(target, folded, found, updated=updated, inserted=inserted)
            changes = write_changes(_plan(target, now_ms), rows, store=store)
            written += (file.path for file in changes)
        state_file = states.increment(store, changed, forgotten, how) if how.snapshot_at is None else None
    # A row may make an event late. Where all versions are kept, its start may be the end of the one before it.
    decides = how.snapshot_at is None
    return Part(
        within=within,
        files=(*updated, *inserted),
        changes=changes,
        hits=tuple(found.hits(folded.removed)),
        decided_by=frozenset(hit.file.path for hit in found.places) if decides else frozenset(),
        state=state_file,
        truncated_at=folded.truncated_at,
        events=events.num_rows,
        late=folded.counts.late,
        duplicates=folded.counts.duplicates,
        unguarded=folded.counts.unguarded,
        updated=updates.num_rows,
        inserted=inserts.num_rows,
    )


def joined(
    target: TargetRows, parts: Sequence[Part], how: Folding, *, txn: Txn | None, now_ms: int
) -> Transaction | None:
    """Gives the transaction of all `parts` of a batch; None where it changes nothing, and there is no `txn` to record.

    No key is in two parts. If this raises, the files of `parts` are deleted.
    """
    snapshot = target.snapshot
    state, plan = states.state_for(snapshot, how), _plan(target, now_ms)
    inserted, updated = (sum(getattr(part, name) for part in parts) for name in ("inserted", "updated"))
    with deleted_on_error(snapshot.log.store) as written:
        written += (path for part in parts for path in part.paths)
        hits = _together(hit for part in parts for hit in part.hits)
        files = tuple(file for part in parts for file in part.files)
        # All parts have the same: that of the state, or a newer one of a batch that is one part because of it.
        truncated_at = parts[0].truncated_at if parts else state.truncated_at
        after = states.grown(
            state,
            [part.state for part in parts if part.state is not None],
            snapshot.log.store,
            truncated_at=truncated_at,
            how=how,
            now_ms=now_ms,
        )
        if how.snapshot_at is not None:
            after = replace(after, snapshot_at=how.snapshot_at.cast(how.sequence))
        fresh = tuple(file.path for file in after.files if file not in state.files)
        written += fresh
        if not files and not hits and after == state and txn is None:
            return None
        after = replace(after, how=states.with_columns(how, target.schema.names))
        # Change files, if any, are there already.
        rewriting = taken_out(plan, target, hits, now_ms=now_ms, changes=None, updates=updated > 0)
        rewriting = replace(rewriting, changes=tuple(file for part in parts for file in part.changes))
    if unguarded := sum(part.unguarded for part in parts):
        logger.warning(
            "table=%s rows=%d: these rows come from events that are not newer than a forgotten delete, so some of them "
            "may be deleted rows that are back. Raise tombstone_gc_threshold_in_seconds.",
            snapshot.log.url,
            unguarded,
        )
    metrics = {
        "numSourceRows": sum(part.events for part in parts),
        "numTargetRowsInserted": inserted,
        "numTargetRowsUpdated": updated,
        "numTargetRowsDeleted": rewriting.deleted_rows - updated,
        "numTargetRowsCopied": rewriting.copied_rows,
        "numOutputRows": inserted + updated + rewriting.copied_rows,
        "numLateEvents": sum(part.late for part in parts),
        "numDuplicateEvents": sum(part.duplicates for part in parts),
        "numRowsAfterForgottenDeletes": unguarded,
        **as_merge(counts(rewriting), len(files)),
    }
    parameters = {"predicate": json.dumps([f"target.{name} = source.{name}" for name in how.keys])}
    return Transaction(
        plan=plan,
        files=files,
        kind=WriteKind.CHANGE,
        operation=TableChange(name="MERGE", parameters=parameters, metrics=metrics),
        txn=txn,
        rewriting=rewriting,
        reads=lambda file: any(target.may_match(file, part.within) for part in parts),
        decided_by=frozenset(path for part in parts for path in part.decided_by) if how.snapshot_at is None else None,
        domains=() if after == state else (states.as_domain(after),),
        # Also if this batch does not change the state: what the state lacks decides too.
        read_domains=frozenset({states.DOMAIN}),
        beside=fresh,
    )


def check(target: TargetRows, how: Folding) -> None:
    """Raises UnsupportedFeatureError, SchemaMismatchError and AppendOnlyError where changes cannot be applied so."""
    snapshot = target.snapshot
    target.check_rows_may_go()
    states.check_supported(snapshot)
    check_texts((field for field in snapshot.schema if field.name in how.keys), "keys")
    if target.identity:
        raise SchemaMismatchError(
            f"{TABLE} has identity columns ({', '.join(target.identity)}), for which changes give no "
            "values. Nothing was committed. Apply changes to a table without them.",
            error_class="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
        )
    _check_drift(states.read_state(snapshot), how, snapshot.schema.names)


def _found(target: TargetRows, batch: Batch, within: RowFilter | None) -> FoundRows:
    """Gives the rows of the keys of a batch, with only those columns that decide what the events change."""
    how, keys = batch.how, batch.keys
    keeps_values = how.sparse or how.leaves_columns or target.id_columns or target.snapshot.properties.records_changes
    if keys is None or how.sequence_column is None or keeps_values or pa.types.is_nested(how.sequence):
        return find(target, keys, within)
    found = find(target, keys, within, columns=[how.sequence_column])
    # An event with the sequence of its row repeats the row or contradicts it. The other columns show which.
    names = [*how.keys, SEQUENCE]
    events = batch.events.select(names)
    rows = found.rows.select([*how.keys, how.sequence_column]).rename_columns(names).cast(events.schema)
    ours, theirs = key_numbers([rows, events], names)
    return find(target, keys, within) if pc.any(pc.is_in(ours, value_set=theirs)).as_py() else found


def _padded(rows: pa.Table, target: TargetRows, how: Folding) -> pa.Table:
    """Gives `rows` with the texts of CHAR columns padded with blanks, as Spark reads them.

    So texts that Spark takes for equal are equal. The sequence column is not padded: the events' sequences are not
    either.
    """
    rules = target.rules
    limits = () if rules is None else rules.limits
    for name, width in ((each.path[0], each.length) for each in limits if each.kind == "char" and not each.path[1:]):
        if name in rows.column_names and name != how.sequence_column:
            at = rows.schema.get_field_index(name)
            rows = rows.set_column(at, rows.schema.field(at), pc.utf8_rpad(rows.column(at), width))
    return rows


def _plan(target: TargetRows, now_ms: int, names: Sequence[str] | None = None) -> DeltaPlan:
    """The plan of rows that have the columns `names`; None: all."""
    snapshot = target.snapshot
    brought = Struct(tuple(field for field in snapshot.schema if names is None or field.name in names))
    plan = plan_delta_write(
        snapshot.log, snapshot, brought, kind=WriteKind.CHANGE, rules=target.write_rules, now_ms=now_ms
    )
    before = target.before
    if before is snapshot:
        return plan
    protocol = None if snapshot.protocol == before.protocol else snapshot.protocol
    return replace(plan, found=Planned.of(before), metadata=snapshot.metadata, protocol=protocol)


def _together(hits: Iterable[Hit]) -> list[Hit]:
    """Gives one hit for each file."""
    found: dict[str, Hit] = {}
    for hit in hits:
        other = found.get(hit.file.path)
        if other is not None:
            gone = hit.positions | other.positions
            hit = replace(hit, positions=gone, rows_left=hit.rows_left + len(hit.positions) - len(gone))
        found[hit.file.path] = hit
    return list(found.values())


def _check_drift(state: states.State, how: Folding, columns: Sequence[str]) -> None:
    changed = states.drift(state, how, columns) if state.how else {}
    if changed:
        said = "; ".join(f"{name} was {was!r} and is {now!r}" for name, (was, now) in changed.items())
        raise SchemaMismatchError(
            f"Earlier changes were applied to {TABLE} with other arguments: {said}. The state that is kept of them "
            "does not fit the new arguments. Nothing was committed. Use the earlier arguments, or another table.",
            error_class="AUTOCDC_STATE_DRIFT",
        )


def _state_of_changed_keys(known: pa.Table, folded: Folded, how: Folding) -> tuple[pa.Table, pa.Table]:
    """Gives the whole new state of the keys whose state has changed, and these keys."""
    removed = known.take(folded.state_removed).select(how.keys)
    keys = pa.concat_tables([removed, folded.state.select(how.keys)])
    stays = known.take(others(known.num_rows, folded.state_removed))
    stays = stays.filter(states.has(stays, keys, how)) if stays.num_rows else stays
    return pa.concat_tables([stays, folded.state]), keys


def _updates(target: TargetRows, folded: Folded, found: FoundRows, how: Folding) -> pa.Table:
    """Gives the rows that replace others. Columns that events do not fill keep their values, or are generated again."""
    generated = target.generated.difference(how.row_schema.names)
    is_update = pc.is_valid(folded.replaces)
    before, after = found.rows.take(folded.replaces.filter(is_update)), folded.inserts.filter(is_update)
    fields = [field for field in target.schema if field.name not in generated]
    filled = how.row_schema.names
    columns = [(after if f.name in filled else before)[f.name] for f in fields]
    return pa.table(columns, schema=pa.schema(fields))


def _inserts(target: TargetRows, folded: Folded, how: Folding) -> pa.Table:
    """Gives the rows that replace none. Columns that events do not fill are null, or their rule fills them."""
    rows = folded.inserts.filter(pc.is_null(folded.replaces))
    filled = how.row_schema.names
    by_rules = filled_columns(target.rules).difference(filled)
    fields = [field for field in target.schema if field.name not in by_rules]
    columns = [rows[f.name] if f.name in filled else pa.nulls(rows.num_rows, f.type) for f in fields]
    return pa.table(columns, schema=pa.schema(fields))


def _written(target: TargetRows, rows: pa.Table, *, task: int, now_ms: int) -> tuple[AddFile, ...]:
    if not rows.num_rows:
        return ()
    carried = tuple(name for name in target.id_column if name in rows.column_names)
    plan = replace(_plan(target, now_ms, rows.column_names), carried=carried)
    return write_delta_task(plan, rows.to_batches(), task=task, now_ms=now_ms, store=target.snapshot.log.store)


def _changes(
    target: TargetRows, folded: Folded, found: FoundRows, *, updated: Sequence[AddFile], inserted: Sequence[AddFile]
) -> Iterator[pa.RecordBatch]:
    before = folded.replaces.drop_null()
    gone = folded.removed.filter(pc.invert(pc.is_in(folded.removed, value_set=before)))
    yield from with_change(found.rows.take(gone).to_batches(), ChangeType.DELETE)
    yield from with_change(found.rows.take(before).to_batches(), ChangeType.UPDATE_PREIMAGE)
    yield from with_change(target.read(updated, target.schema), ChangeType.UPDATE_POSTIMAGE)
    yield from with_change(target.read(inserted, target.schema), ChangeType.INSERT)


def as_merge(counted: dict[str, int], added_files: int) -> dict[str, int]:
    """Gives the `counts` of a rewriting under the names that MERGE has, with the files of new rows."""
    return {
        "numTargetFilesAdded": counted["numAddedFiles"] + added_files,
        "numTargetFilesRemoved": counted["numRemovedFiles"],
        "numTargetChangeFilesAdded": counted["numAddedChangeFiles"],
        "numTargetDeletionVectorsAdded": counted["numDeletionVectorsAdded"],
        "numTargetDeletionVectorsUpdated": counted["numDeletionVectorsUpdated"],
        "numTargetDeletionVectorsRemoved": counted["numDeletionVectorsRemoved"],
    }
