"""Row changes without Spark: `tablefeed.delete`, `update`, `merge`, `apply_changes`, `apply_changes_from_snapshot`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from tablefeed.errors import ConflictingOptionsError, naming
from tablefeed.feed.api.append import reader_of, texts, txn_of
from tablefeed.feed.arguments import column_names, location, shown_filter, store_options, text, zone
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.rows.apply import applied_part, joined
from tablefeed.feed.rows.asking import Asking, asking
from tablefeed.feed.rows.attempts import changeable, run
from tablefeed.feed.rows.incoming import fitted
from tablefeed.feed.rows.merge import merging
from tablefeed.feed.rows.merge_clauses import Delete, Insert, Merging, Update, clauses
from tablefeed.feed.rows.snapshot_events import AT, in_order, is_applied, refuse_own_columns, with_deletes
from tablefeed.feed.rows.update import deletion, updating
from tablefeed.feed.snapshot.known_state import newest_state, remember
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.upkeep.after_commit import now_ms, surroundings
from tablefeed.feed.upkeep.auto_compact import compact_if_wanted
from tablefeed.feed.upkeep.background import waited_for
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.model.actions import Txn
from tablefeed.model.outcome import AlreadyApplied, Committed

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from tablefeed.data.predicate import RowFilter


@waited_for()
def delete(
    url: str | os.PathLike[str],
    where: str | pc.Expression,
    *,
    app_id: str | None = None,
    txn_version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Committed | AlreadyApplied:
    """Deletes the rows of the table at `url` for which `where` is true, in one version.

    `where` is a predicate in Spark's SQL, or a pyarrow expression. If no row is deleted, nothing is committed unless
    there is a txn to record, and the outcome has the table's newest version. `app_id` and `txn_version`: see `append`.
    A table with `delta.enableDeletionVectors` gets deletion vectors; in other tables the files are rewritten. If
    another writer commits in between, the rows are found again.

    Raises TableError, ConflictError, CommitUnknownError, OptionError.
    """
    txn = txn_of(app_id, txn_version)
    log, state = newest_state(location(url), store_options(storage_options))
    return change(
        log,
        state,
        lambda target: deletion(target, filter_of(where, target), shown=shown_filter(where), txn=txn, now_ms=now_ms),
        txn=txn,
    )


@waited_for()
def update(
    url: str | os.PathLike[str],
    set: Mapping[str, str],  # noqa: A002 - SQL's word
    where: str | pc.Expression | None = None,
    *,
    time_zone: str | None = None,
    app_id: str | None = None,
    txn_version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Committed | AlreadyApplied:
    """Sets columns in the rows of the table at `url` for which `where` is true (None: in all rows), in one version.

    `set` maps columns to expressions in Spark's SQL over the row's old values, such as {"price": "price * 2"}. The new
    rows must obey the table's rules. `time_zone` is the zone in which these expressions and rules are evaluated; SQL
    that depends on a zone is refused without it, such as a date that is generated from a timestamp. All else is as for
    `delete`. Raises InvalidRowsError and SchemaMismatchError too.
    """
    txn, in_zone = txn_of(app_id, txn_version), zone(time_zone)
    new = texts(set, argument="set")
    log, state = newest_state(location(url), store_options(storage_options))

    def prepared(target: TargetRows) -> Transaction | None:
        target = target.in_zone(in_zone)
        rows = None if where is None else filter_of(where, target)
        return updating(target, new, rows, shown=None if where is None else shown_filter(where), txn=txn, now_ms=now_ms)

    return change(log, state, prepared, txn=txn)


@waited_for()
def merge(
    url: str | os.PathLike[str],
    rows: Any,
    *,
    on: str | Sequence[str],
    matched: Sequence[Update | Delete] = (),
    not_matched: Sequence[Insert] = (),
    not_matched_by_source: Sequence[Update | Delete] = (),
    time_zone: str | None = None,
    app_id: str | None = None,
    txn_version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Committed | AlreadyApplied:
    """Merges `rows` into the table at `url` in one version, as MERGE INTO does.

    `rows` is Arrow data as in `append`, and is in memory as a whole. `on` are columns that both have, or SQL such as
    "target.id = source.id AND target.day = source.day", which compares at least one column of both for equality.

    - The clauses in `matched` are for rows of the table that a row of `rows` matches.
    - The clauses in `not_matched` are for rows of `rows` that match no row of the table.
    - The clauses in `not_matched_by_source` are for rows of the table that no row of `rows` matches. With them the
      whole table is read.

    In each list the first clause whose condition is true decides. If several rows match one row of the table, the merge
    is refused, as by Spark. All else is as for `update`.
    """
    txn, in_zone = txn_of(app_id, txn_version), zone(time_zone)
    log, state = newest_state(location(url), store_options(storage_options))
    asked = Merging(
        rows=reader_of(rows, log.url).read_all(),
        on=text(on, argument="on") if isinstance(on, str) else column_names(on, argument="on"),
        matched=tuple(clauses(matched, "matched", (Update, Delete))),
        not_matched=tuple(clauses(not_matched, "not_matched", (Insert,))),
        not_matched_by_source=tuple(clauses(not_matched_by_source, "not_matched_by_source", (Update, Delete))),
    )

    def prepared(target: TargetRows) -> Transaction | None:
        return merging(target.in_zone(in_zone), asked, txn=txn, now_ms=now_ms())

    return change(log, state, prepared, txn=txn)


@waited_for()
def apply_changes(
    url: str | os.PathLike[str],
    changes: Any,
    *,
    keys: str | Sequence[str],
    sequence_by: str | Sequence[str] | None = None,
    source: Literal["tablefeed", "changes", "debezium"] | None = None,
    apply_as_deletes: str | None = None,
    apply_as_truncates: str | None = None,
    column_list: Sequence[str] | None = None,
    except_column_list: Sequence[str] | None = None,
    ignore_null_updates: bool = False,
    ignore_null_updates_column_list: Sequence[str] | None = None,
    ignore_null_updates_except_column_list: Sequence[str] | None = None,
    stored_as_scd_type: Literal[1, 2] = 1,
    track_history_column_list: Sequence[str] | None = None,
    track_history_except_column_list: Sequence[str] | None = None,
    ties: Literal["fail", "last"] = "fail",
    merge_schema: bool = False,
    tombstone_gc_threshold_in_seconds: int | None = None,
    time_zone: str | None = None,
    app_id: str | None = None,
    txn_version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Committed | AlreadyApplied:
    """Applies change events to the table at `url` in one version: a row for each key, or its history.

    `changes` is Arrow data as in `append`, with one event in each row, and is in memory as a whole. An event takes
    effect only if its sequence is greater than that of the row or the delete that its key has so far. So the same
    events result in the same table, in any order and in any batches.

    - `sequence_by` is a column, or several columns that are compared one after the other.
    - `apply_as_deletes` is SQL: an event for which it is true deletes its key.
    - `apply_as_truncates` is SQL: an event for which it is true deletes all older rows (SCD type 1 only).
    - `column_list` or `except_column_list` chooses the columns of `changes` that the table gets.
    - `ignore_null_updates`: a null leaves the value as it was. Its two lists choose the columns for which this holds.
    - `stored_as_scd_type` 2: the table keeps each version of a row, from __START_AT up to __END_AT. The
      `track_history` lists choose the columns whose change begins a new version.
    - `ties`: two upserts of a key with equal sequences and different values are refused; with "last" the last of the
      batch counts.
    - `merge_schema`: the commit adds columns that the table lacks.
    - `tombstone_gc_threshold_in_seconds`: how long a delete is remembered at least; None: forever.
    - `time_zone`: the zone for casts between timestamps and dates, texts or timestamps without zone, and for SQL and
      rules of the table that depend on one. Without it these are refused.
    - `source` is the system that the changes come from. It sets the arguments that are left out, so that only `keys`
      must be given: "tablefeed" for a change feed as `tablefeed.changes` and `readChangeFeed` give it, "changes" for
      that of Spark's `changes()`, "debezium" for Debezium's events, in columns or as JSON text in a column `value`.

    The state of earlier events is in files that a metadata domain of the log names, so the table needs the feature
    `domainMetadata`. See docs/how-to/apply-changes.md. `app_id`, `txn_version`: see `append`. Raises TableError,
    ConflictError, CommitUnknownError, OptionError.
    """
    asked, txn = asking(locals()), txn_of(app_id, txn_version)
    log, state = newest_state(location(url), store_options(storage_options))
    return _applied(log, state, changes, asked, txn)


@waited_for()
def apply_changes_from_snapshot(
    url: str | os.PathLike[str],
    snapshots: tuple[Any, Any] | Callable[[Any], tuple[Any, Any] | None],
    *,
    keys: str | Sequence[str],
    column_list: Sequence[str] | None = None,
    except_column_list: Sequence[str] | None = None,
    stored_as_scd_type: Literal[1, 2] = 1,
    track_history_column_list: Sequence[str] | None = None,
    track_history_except_column_list: Sequence[str] | None = None,
    time_zone: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Committed:
    """Makes the table at `url` equal to snapshots of its source, one after the other, each in one commit.

    `snapshots` is a pair: Arrow data as in `apply_changes`, and its version, which is a number, a text, a date or a
    time. Or it is a function that returns such a pair. The function is called with the newest version that was applied
    (None if there is none), again and again, until it returns None.

    A row that is equal stays, a row that differs is replaced, and a row whose key the snapshot lacks is deleted. With
    `stored_as_scd_type` 2, __START_AT and __END_AT are versions of snapshots. The commit records the version: the same
    snapshot again changes nothing, and an older one is refused (`AUTOCDC_SNAPSHOT_OUT_OF_ORDER`). All else is as for
    `apply_changes`.
    """
    asked = asking({"sequence_by": AT, **locals()})
    place, storage = location(url), store_options(storage_options)

    def apply(rows: Any, at: pa.Scalar) -> Committed | AlreadyApplied:
        log, state = newest_state(place, storage)
        return _applied(log, state, rows, replace(asked, snapshot_at=at), None)

    with naming(place):
        return in_order(snapshots, lambda: changeable(newest_state(place, storage)[1]), apply)


def _applied(
    log: TableLog, state: Snapshot | None, changes: Any, asked: Asking, txn: Txn | None
) -> Committed | AlreadyApplied:
    """Applies changes, or a snapshot unless it is applied already."""
    events = reader_of(changes, log.url).read_all()
    if asked.snapshot_at is not None:
        refuse_own_columns(events.schema)

    def prepared(target: TargetRows) -> Transaction | None:
        if is_applied(target.snapshot, asked.snapshot_at):
            return None
        target, batch = fitted(target, events, asked)
        part = applied_part(target, with_deletes(target, batch), task=0, now_ms=now_ms())
        return joined(target, [part], batch.how, txn=txn, now_ms=now_ms())

    return change(log, state, prepared, txn=txn)


def change(
    log: TableLog, state: Snapshot | None, prepare: Callable[[TargetRows], Transaction | None], *, txn: Txn | None
) -> Committed | AlreadyApplied:
    """Commits a change as `run`. Merges small files in the background if the table's properties ask for it."""
    outcome, after, made = run(log, state, prepare, txn=txn, around=surroundings())
    remember(log, after)
    if isinstance(outcome, Committed) and made is not None:
        added = (*made.files, *(() if made.rewriting is None else made.rewriting.added))
        if added:
            compact_if_wanted(after, len(added))
    return outcome


def filter_of(where: object, target: TargetRows) -> RowFilter:
    """Gives the filter that a user passed as `where`. Raises IllegalOptionError."""
    if isinstance(where, str):
        from tablefeed.feed.scan.where import row_filter

        return row_filter(where, target.snapshot.schema)
    from tablefeed.feed.scan.arrow_filter import checked_filter

    rows = checked_filter(where, target.schema, table=target.snapshot.schema, url=target.snapshot.log.url)
    if rows is None:
        raise ConflictingOptionsError(options=("where",), remedy="Give a predicate; 'true' deletes all rows.")
    return rows
