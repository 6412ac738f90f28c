"""Folds change events into rows: into one row for each key (SCD type 1), or into every version of a row (SCD type 2).

The law: the same events, in any order and in any batches, result in the same rows and the same state.

The rule of SCD type 1: D is the greatest sequence of the deletes of a key and of all truncates. Upserts at or after D
count. If none counts, there is no row. Otherwise the row is that of the greatest upsert. A column that upserts may
leave as it is has the value of the greatest upsert that counts and sets it. These are all maxima, so the law holds.

The rule of SCD type 2, for one key: of its events at one sequence, an upsert wins over a delete. An upsert opens a
version, which the next event closes; a delete closes the version before it and opens none. Consecutive upserts with
equal tracked columns are one version: it begins at the first of them, and has the columns that are not tracked of the
last. The law holds because the versions of a key are built anew from all its events each time. The rows and the state
together say which events these were. A version is an upsert at its start and, unless another version begins there, a
delete at its end. All events that the versions do not show are in the state (`Folding.state_schema`).
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.feed.rows.columns import (
    LONG,
    alike,
    chained,
    first,
    flags,
    gather,
    how_many,
    is_true,
    only,
    others,
    struct_of,
    where,
)
from tablefeed.feed.rows.events import check_batch, equal_sequences
from tablefeed.feed.rows.folding import (
    DELETED_AT,
    END_AT,
    IS_DELETE,
    KIND,
    MADE_AT,
    SEQUENCE,
    SET,
    SET_AT,
    START_AT,
    Counts,
    Folded,
    Folding,
    Kind,
    Known,
    Ties,
)
from tablefeed.feed.rows.items import Items, items_of, newest, same_before, same_next, within


def fold(events: pa.Table, known: Known, how: Folding) -> Folded:
    """Applies `events`, in the order of their arrival, to what is known of their keys.

    `events` has `how.event_schema`. The values of a delete are not used; of a truncate only its sequence is used. Two
    equal upserts of one key and one sequence are one event. If they set a column differently and decide its value, that
    is a tie: `Ties.FAIL` refuses it; with `Ties.LAST` the last of the batch decides, unless an earlier batch had such
    an upsert, which then stays.

    Raises EqualSequencesError, InvalidEventsError, InvalidRowsError if the known rows of a key contradict each other,
    and SchemaMismatchError. All name the table as `errors.TABLE`.
    """
    check_batch(events, known, how)
    truncating = pc.equal(events[KIND], Kind.TRUNCATE)
    truncates = events[SEQUENCE].filter(truncating)
    acts = events.filter(pc.invert(truncating)) if len(truncates) else events
    before, forgotten = (
        pa.chunked_array([[] if mark is None else [mark]], how.sequence)
        for mark in (known.truncated_at, known.forgotten_at)
    )
    items = items_of(acts, known, how, [chained([truncates, before]), forgotten])
    truncated, truncated_at = _truncated(items)
    points = _points(items, truncated)
    if how.ties == Ties.FAIL:
        _refuse_ties(points)
    inserts, replaces, removed = _rows(points)
    state, state_removed = _state_of_history(points) if how.scd_type == 2 else _state(points)
    return Folded(
        inserts=inserts,
        replaces=replaces,
        removed=removed,
        state=state,
        state_removed=state_removed,
        truncated_at=truncated_at,
        counts=_counts(items, points, len(truncates)),
    )


def _truncated(items: Items) -> tuple[int, pa.Scalar | None]:
    """The rank and the sequence of the newest truncate; 0 and None where there is none."""
    (ranks, forgotten), order = items.order.ranks[-2:], items.order
    rank, start = pc.max(ranks).as_py() or 0, len(order.values) - len(forgotten) - len(ranks)
    return rank, order.values[start + pc.index(ranks, rank).as_py()] if rank else None


def _is_truncated(items: Items, rank: int) -> pa.Array:
    """Whether a truncate of rank `rank` removes the effect of each item; an upsert with its sequence stays."""
    return pc.less_equal(pc.add(pc.multiply(items.rank, 2), items.is_upsert.cast(LONG)), 2 * rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Points:
    """The points: with SCD type 1 each key, with type 2 each sequence of each key. At each, one item decides."""

    items: Items
    """All items whose effect no truncate removes."""
    of: pa.Array
    """The number of each item's point."""
    decides: pa.Array
    """The item that decides at the point: an upsert or a delete."""
    begins: pa.Array
    """The newest delete of the key up to the point; if there is none, the first item of the key."""
    set: dict[str, pa.Array]
    """For each column the item of the point that sets it; null if the point leaves the column as it was."""
    shown: dict[str, pa.Array]
    """For each column the item whose value the row has after the upsert."""
    is_merged: pa.Array
    """Whether the upsert continues the version before it, and so begins none."""
    is_idle: pa.Array
    """Whether the delete closes no version."""
    truncated: int
    """The rank of the newest truncate; 0 where there is none."""

    @property
    def is_upsert(self) -> pa.Array:
        return self.items.is_upsert.take(self.decides)

    @property
    def delete(self) -> pa.Array:
        """The newest delete of the key up to the point; null if there is none."""
        return only(self.begins, pc.invert(self.items.is_upsert.take(self.begins)))

    def newest(self, mask: pa.Array) -> pa.Array:
        """The newest item of the key, up to the point, at which `mask` is true; null if there is none."""
        found, number = newest(mask).take(self.decides), self.items.number
        return only(found, pc.equal(number.take(found), number.take(self.decides)))


def _points(every: Items, truncated: int) -> _Points:
    how, items = every.how, every.filter(pc.invert(_is_truncated(every, truncated))) if truncated else every
    of = items.point if how.scd_type == 2 else items.number
    same = same_next(of)
    decides = where(pc.invert(same))
    # With SCD type 2 a delete at the sequence of an upsert has no effect.
    lasts = pc.or_(items.is_upsert, same) if how.scd_type == 2 else items.is_upsert
    begins = newest(pc.invert(pc.and_(lasts, same_before(items.number)))).take(decides)
    shown, is_upsert = items.chosen(decides, begins), items.is_upsert.take(decides)
    own = items.chosen(decides, newest(pc.invert(same_before(of))).take(decides)) if how.scd_type == 2 else shown
    continues = pc.and_(same_before(items.number.take(decides)), _shifted(is_upsert, 1))
    follows = pc.and_(is_upsert, continues)
    pairs = where(follows)
    compared = []
    for name in (name for name in how.values if name not in how.untracked):
        place = items.place.take(shown[name])
        compared.append((items.parts(name), place.take(pc.subtract(pairs, 1)), place.take(pairs)))
    return _Points(
        items=items,
        of=of,
        decides=decides,
        begins=begins,
        set=own,
        shown=shown,
        is_merged=pc.replace_with_mask(flags(len(decides), value=False), follows, alike(len(pairs), compared)),
        is_idle=pc.and_not(pc.invert(is_upsert), continues),
        truncated=truncated,
    )


def _refuse_ties(points: _Points) -> None:
    """Raises EqualSequencesError if an event and the item that decides a column have one sequence but other values."""
    items = points.items
    rivals = where(pc.and_(pc.and_(items.is_event, items.is_upsert), same_next(items.code)))
    if not len(rivals):
        return
    point = pc.subtract(pc.cumulative_sum(pc.invert(same_before(points.of)).cast(LONG)), 1).take(rivals)
    for column in items.how.values:
        does = items.sets[column].take(rivals) if column in items.sets else flags(len(rivals), value=True)
        one, other, values = rivals.filter(does), points.set[column].take(point.filter(does)), items.values(column)
        # A known row that is gone has no values to compare.
        meets = pc.and_(pc.equal(items.rank.take(one), items.rank.take(other)), pc.is_valid(values.take(other)))
        one, other = one.filter(meets), other.filter(meets)
        same = alike(len(one), [(items.parts(column), values.take(one), values.take(other))])
        if (at := first(pc.invert(same))) is not None:
            raise equal_sequences(items.events, items.at[one[at].as_py()].as_py(), column, items.how)


def _rows(points: _Points) -> tuple[pa.Table, pa.Array, pa.Array]:
    """Gives the rows to insert, the known rows that these replace, and all known rows to remove."""
    items, how, count = points.items, points.items.how, len(points.decides)
    bounds = where(pc.invert(points.is_merged))
    nexts = pa.concat_arrays([bounds.slice(1), pa.array([count][: len(bounds)], LONG)])
    # A row that the state remembers and another writer has deleted stays deleted.
    opens = pc.and_(points.is_upsert, pc.is_valid(items.place.take(points.decides))).take(bounds)
    begin, after = bounds.filter(opens), nexts.filter(opens)
    start, last = points.decides.take(begin), pc.subtract(after, 1)
    places = {}
    for name in how.schema.names:
        shown = points.shown[name].take(last if name in how.untracked else begin)
        places[name] = items.values(name).take(shown)
    row, interval = items.row.take(start), {}
    if how.scd_type == 2:
        end = points.decides.take(only(after, pc.less(after, count)))
        end = only(end, pc.equal(items.number.take(end), items.number.take(start)))
        row = replaced = only(row, pc.equal(items.order.ranks[1].take(row), items.rank.take(start)))
        differs = pc.not_equal(pc.fill_null(items.rank.take(end), 0), items.order.ranks[2].take(row))
        interval = {START_AT: start, END_AT: end}
    else:
        differs = _is_anew(points).take(begin)
        replaced = only(row, pc.invert(differs))
    is_update = pc.is_valid(row)
    # The column of the sequence differs most often: compared first, it leaves little to the others.
    ordered = sorted(places, key=lambda name: name != how.sequence_column)
    known = pc.add(row.filter(is_update), items.events.num_rows)
    same = alike(len(known), ((items.parts(name), places[name].filter(is_update), known) for name in ordered))
    same = pc.and_not(same, differs.filter(is_update))
    written = pc.replace_with_mask(flags(len(row), value=True), is_update, pc.invert(same))
    columns = {name: gather(items.parts(name), place.filter(written)) for name, place in places.items()}
    columns |= {name: items.sequences(item.filter(written)) for name, item in interval.items()}
    removed = others(items.known.rows.num_rows, row.filter(pc.invert(written)))
    return pa.table(columns, schema=how.row_schema), replaced.filter(written), removed


def _is_anew(points: _Points) -> pa.Array:
    """Whether a delete is between the known row, if any, and the item that decides: then that item makes a new row."""
    items = points.items
    if not items.how.leaves_columns:
        return flags(len(points.decides), value=False)
    known = within(points.newest(pc.or_(items.of_block(1), items.of_block(2))), points.begins)
    deleted = pc.max_element_wise(items.rank.take(points.delete), points.truncated)
    return pc.and_(pc.is_null(known), pc.less(deleted, items.rank.take(points.decides)))


def _state(points: _Points) -> tuple[pa.Table, pa.Array]:
    """Gives the rows of the state that are new or changed, and the known rows of the state to remove."""
    items, how, last = points.items, points.items.how, points.decides
    # If there is a row, what is older than D is older than the row too. Then only sparse columns need D in the state.
    blocks = {3: points.delete if how.sparse else only(points.delete, pc.equal(points.delete, last))}
    if how.sequence_column is None:
        blocks[2] = only(last, items.is_upsert.take(last))
    blocks |= {number: points.set[name] for number, name in enumerate(how.sparse, 4)}
    known = items.of_state.take(points.newest(pc.is_valid(items.of_state)))
    anything = changed = flags(len(last), value=False)
    for number, item in blocks.items():
        # A row without a sequence has rank 0, and is not remembered.
        blocks[number] = only(item, pc.greater(items.rank.take(item), 0))
        rank = pc.fill_null(items.rank.take(item), 0)
        anything = pc.or_(anything, pc.greater(rank, 0))
        changed = pc.or_(changed, pc.not_equal(rank, pc.fill_null(items.order.ranks[number].take(known), 0)))
    tombstone = is_true(pc.equal(points.delete, last))
    if how.forget_after_ms is not None:
        was = pc.is_valid(items.known.state[MADE_AT].combine_chunks().take(known))
        changed = pc.or_(changed, pc.and_not(was, tombstone))
    written = where(pc.and_(anything, changed))
    sequences = {number: items.sequences(item.take(written)) for number, item in blocks.items()}
    columns = items.keys(last.take(written))
    columns |= {SEQUENCE: sequences[2]} if how.sequence_column is None else {}
    columns |= {DELETED_AT: sequences[3]}
    columns |= {SET_AT: struct_of({name: sequences[at] for at, name in enumerate(how.sparse, 4)})} if how.sparse else {}
    if how.forget_after_ms is not None:
        columns[MADE_AT] = _made(tombstone.take(written), items.known.now_ms)
    removed = others(items.known.state.num_rows, known.filter(pc.invert(changed)))
    return pa.table(columns, schema=how.state_schema), removed


def _counts(items: Items, points: _Points, truncate_count: int) -> Counts:
    """Counts the events. Each is compared with what was known of its key, not with newer events of its batch."""
    truncates = pc.unique(items.order.ranks[-2].slice(0, truncate_count))
    truncated = pc.max(items.order.ranks[-2].slice(truncate_count)).as_py() or 0
    # Of items with one code, the events come first, then what was known.
    begins, ends = where(pc.invert(same_before(items.code))), where(pc.invert(same_next(items.code)))
    code, is_event, known = items.code.take(begins), items.is_event.take(begins), pc.invert(items.is_event)
    decided = flags(len(begins), value=False)
    if items.how.scd_type == 2:
        late = same_next(items.point).take(ends)  # a delete, before an upsert of the same sequence
    else:
        late = _is_before(items, known)
        if items.sets:
            # Upserts may leave columns as they are, so a delete that is older than the row still ends older upserts.
            late = pc.if_else(items.is_upsert, late, _is_before(items, items.of_block(3)))
        late = (pc.or_(late, _is_truncated(items, truncated)) if truncated else late).take(begins)
        for name in items.sets:
            chosen = points.set[name].filter(is_true(points.items.is_event.take(points.set[name])))
            decided = pc.or_(decided, pc.is_in(code, value_set=points.items.code.take(chosen)))
    repeated = pc.and_not(pc.and_(is_event, known.take(ends)), decided)
    late = pc.and_not(pc.and_not(pc.and_(is_event, late), decided), repeated)
    every = items.events.num_rows + truncate_count
    twice = every - how_many(is_event) - len(truncates)
    duplicates = twice + how_many(repeated) + how_many(pc.equal(truncates, truncated))
    too_late = how_many(late) + how_many(pc.less(truncates, truncated))
    return Counts(
        applied=every - too_late - duplicates, late=too_late, duplicates=duplicates, unguarded=_unguarded(points)
    )


def _unguarded(points: _Points) -> int:
    """Counts the keys that `Counts.unguarded` describes."""
    items, decides = points.items, points.decides
    forgotten = pc.max(items.order.ranks[-1]).as_py()
    if forgotten is None:
        return 0
    known = points.newest(pc.invert(items.is_event))
    guarded = pc.is_valid(known)
    if items.how.scd_type == 2:
        # The end of a version does not count as a delete here: a forgotten delete is newer than it.
        guarded = pc.and_not(guarded, is_true(items.of_block(2).take(known)))
    begins = pc.and_not(pc.and_(items.is_event.take(decides), points.is_upsert), points.is_merged)
    is_old = pc.less_equal(items.rank.take(decides), forgotten)
    return how_many(pc.and_not(pc.and_(begins, is_old), guarded))


def _is_before(items: Items, mask: pa.Array) -> pa.Array:
    """Whether `mask` is true for the item or for a later item of its key."""
    return is_true(pc.equal(pc.fill_null_backward(only(items.number, mask)), items.number))


def _state_of_history(points: _Points) -> tuple[pa.Table, pa.Array]:
    """Gives the rows of the state that are new or changed, and the known rows of the state to remove."""
    items, how = points.items, points.items.how
    leaves = is_joined = flags(len(points.decides), value=False)
    for name in how.sparse:
        leaves = pc.or_(leaves, pc.and_(points.is_upsert, pc.is_null(points.set[name])))
        is_joined = pc.or_(is_joined, is_true(pc.not_equal(points.set[name], points.decides)))
    one_of_several = pc.or_(points.is_merged, _shifted(points.is_merged, -1))
    remembered = pc.or_(pc.or_(points.is_idle, one_of_several), leaves)
    known = items.of_state.take(points.decides)
    stays = pc.and_not(pc.and_(remembered, pc.is_valid(known)), is_joined)
    is_new = pc.and_not(remembered, stays)
    written, is_upsert = points.decides.filter(is_new), points.is_upsert.filter(is_new)
    set_ = {name: only(points.set[name].filter(is_new), is_upsert) for name in how.values}
    columns = items.keys(written) | {SEQUENCE: items.sequences(written), IS_DELETE: pc.invert(is_upsert)}
    columns |= {name: gather(items.parts(name), items.values(name).take(set_[name])) for name in how.untracked}
    if how.sparse:
        columns[SET] = struct_of({name: pa.chunked_array([pc.is_valid(set_[name])]) for name in how.sparse})
    if how.forget_after_ms is not None:
        columns[MADE_AT] = _made(pc.invert(is_upsert), items.known.now_ms)
    return pa.table(columns, schema=how.state_schema), others(items.known.state.num_rows, known.filter(stays))


def _made(is_tombstone: pa.Array, now_ms: int) -> pa.Array:
    return pc.if_else(is_tombstone, pa.scalar(now_ms, LONG), pa.scalar(None, LONG))


def _shifted(mask: pa.Array, by: int) -> pa.Array:
    """Gives for each index what `mask` has one index before (`by` 1) or after (`by` -1); false beyond its ends."""
    none = flags(min(len(mask), 1), value=False)
    if by > 0:
        return pa.concat_arrays([none, mask.slice(0, max(len(mask) - 1, 0))])
    return pa.concat_arrays([mask.slice(min(len(mask), 1)), none])
