"""Folds change events into history: SCD type 2, which keeps every version of a row with the interval in which it held.

The rule for one key: of its events at one sequence, an upsert wins over a delete. An upsert opens a version, which the
next event closes; a delete closes the version before it and opens none. Consecutive upserts with equal tracked columns
are one version: it begins at the first of them, and has the columns that are not tracked of the last.

The law, that the same events in any order and any batches end in the same rows and the same state, holds because the
versions of a key are built anew from all its events each time. The rows and the state together say which events these
were. A version is an upsert at its start and, unless another version begins there, a delete at its end. All events that
the versions do not show are in the state (`Folding.state_schema`).

Rows are handled as columns: all events of all keys are sorted by key and sequence, and compared with their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.feed.rows.columns import (
    LONG,
    alike,
    counting,
    first,
    flags,
    flat,
    gather,
    how_many,
    is_true,
    member,
    only,
    struct_of,
    where,
)
from tablefeed.feed.rows.events import Order, contradicting_rows, equal_sequences, key_numbers, sets
from tablefeed.feed.rows.folding import (
    END_AT,
    IS_DELETE,
    KIND,
    SEQUENCE,
    SET,
    START_AT,
    Counts,
    Folded,
    Folding,
    Kind,
    Known,
    Ties,
)


def fold_history(events: pa.Table, known: Known, how: Folding) -> Folded:
    """Applies checked `events` to the versions and the state of their keys; see `fold.fold`."""
    items = _items(events, known, how)
    _refuse_contradictions(items)
    if how.ties == Ties.FAIL:
        _refuse_ties(items)
    points = _points(items)
    inserts, replaces, removed = _rows(points)
    state, state_removed = _state(points)
    return Folded(
        inserts=inserts,
        replaces=replaces,
        removed=removed,
        state=state,
        state_removed=state_removed,
        truncated_at=None,
        counts=_counts(items),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Items:
    """Events of the batch and known ones, sorted by key, sequence and kind, upserts last; then by when they were known.

    `at` is where an item was before it was sorted: the events, the starts of the known rows, their ends, the state.
    The known come last: at one sequence, they win.
    """

    events: pa.Table
    known: Known
    how: Folding
    order: Order
    at: pa.Array
    number: pa.Array
    """Of its key."""
    rank: pa.Array
    is_upsert: pa.Array
    tracked: pa.Array
    """The index in `parts` of what the item has in keys and tracked columns."""
    untracked: pa.Array
    """The index in `parts` of what it has in the other columns."""

    @property
    def starts(self) -> int:
        return int(self.events.num_rows)

    @property
    def ends(self) -> int:
        return self.starts + int(self.known.rows.num_rows)

    @property
    def states(self) -> int:
        return self.ends + int(self.known.rows.num_rows)

    @property
    def is_version(self) -> pa.Array:
        return pc.and_(pc.greater_equal(self.at, self.starts), pc.less(self.at, self.ends))

    @property
    def same_point_next(self) -> pa.Array:
        """Whether the next item has the same key and sequence."""
        return _before_next(self.number, self.rank)

    @property
    def same_kind_next(self) -> pa.Array:
        """Whether the next item has the same key, sequence and kind."""
        return _before_next(self.number, self.rank, self.is_upsert.cast(LONG))

    def parts(self, column: str) -> list[pa.ChunkedArray]:
        parts = [self.events[column], self.known.rows[column]]
        return [*parts, self.known.state[column]] if column in self.how.untracked else parts

    def place(self, column: str) -> pa.Array:
        return self.untracked if column in self.how.untracked else self.tracked

    def sets(self, column: str) -> pa.Array:
        """Whether the item is an upsert that sets a sparse column."""
        rows, state = self.known.rows.num_rows, self.known.state
        by_item = [
            sets(self.events, column, self.how),
            flags(2 * rows, value=True),
            flat(is_true(member(state[SET], column))),
        ]
        # The values at the start of a version are those of one upsert, unless the state says what that upsert set.
        shows = pc.and_(self.is_version, self.same_kind_next)
        return pc.and_not(pc.and_(pa.concat_arrays(by_item).take(self.at), self.is_upsert), shows)


def _items(events: pa.Table, known: Known, how: Folding) -> _Items:
    rows, state, batch = known.rows, known.state, events.num_rows
    order = Order.of([events[SEQUENCE], rows[START_AT], rows[END_AT], state[SEQUENCE]])
    keys = key_numbers([events, rows, state], how.keys)
    numbers = pa.concat_arrays([keys[0], keys[1], keys[1], keys[2]])
    ranks = pa.concat_arrays(order.ranks)
    upserts = [pc.equal(events[KIND], Kind.UPSERT), flags(rows.num_rows, value=True)]
    upserts += [flags(rows.num_rows, value=False), pc.invert(state[IS_DELETE])]
    is_upsert = pa.concat_arrays([flat(each) for each in upserts])
    code = pc.add(pc.multiply(pc.add(pc.multiply(numbers, order.size + 1), ranks), 2), is_upsert.cast(LONG))
    at = pc.array_sort_indices(code).cast(LONG)
    at = at.filter(pc.greater(ranks.take(at), 0))  # a version that is open has no end
    number, rank, is_upsert = numbers.take(at), ranks.take(at), is_upsert.take(at)

    starts, ends = batch, batch + rows.num_rows
    states = ends + rows.num_rows
    is_version = pc.and_(pc.greater_equal(at, starts), pc.less(at, ends))
    version = _newest(is_version)
    row = pc.subtract(at.take(version), starts)
    end = order.ranks[2].take(row)
    covered = pc.and_(pc.equal(number.take(version), number), pc.or_(pc.equal(end, 0), pc.less(rank, end)))
    in_state = pc.greater_equal(at, states)
    # Who deleted a version by hand deleted the upserts that are remembered of it.
    stays = pc.or_(pc.invert(pc.and_(in_state, is_upsert)), is_true(covered))
    from_row = pc.if_else(pc.less(at, ends), at, pc.subtract(at, rows.num_rows))
    from_version = only(pc.add(row, batch), is_upsert)
    tracked = pc.if_else(in_state, from_version, from_row)
    untracked = pc.if_else(in_state, pc.subtract(at, rows.num_rows), from_row)
    arrays = (each.filter(stays) for each in (at, number, rank, is_upsert, tracked, untracked))
    names = ("at", "number", "rank", "is_upsert", "tracked", "untracked")
    return _Items(events=events, known=known, how=how, order=order, **dict(zip(names, arrays, strict=True)))


def _refuse_contradictions(items: _Items) -> None:
    """Raises InvalidRowsError for a version without a start, one that ends before it, and two that overlap."""
    starts, ends = items.order.ranks[1:3]
    row = pc.subtract(items.at.filter(items.is_version), items.starts)
    number, start, end = items.number.filter(items.is_version), starts.take(row), ends.take(row)
    next_start = pa.concat_arrays([start.slice(1), start.slice(0, 1)])
    end = pc.if_else(pc.equal(end, 0), items.order.size + 1, end)
    overlaps = pc.and_(_before_next(number), pc.greater(end, next_start))
    wrong = row.filter(pc.or_(overlaps, pc.less_equal(end, start)))
    wrong = pa.concat_arrays([wrong, where(pc.equal(starts, 0))])
    if len(wrong):
        raise contradicting_rows(items.known.rows, wrong[0].as_py(), items.how)


def _refuse_ties(items: _Items) -> None:
    """Raises EqualSequencesError where two upserts of one sequence set a column differently."""
    is_new = pc.and_(pc.less(items.at, items.starts), items.same_kind_next)
    rivals = where(pc.and_(is_new, items.is_upsert))
    lasts = where(pc.invert(items.same_point_next))
    groups = pc.subtract(pc.cumulative_sum(_first_of_point(items).cast(LONG)), 1)
    wins = lasts.take(groups.take(rivals))
    for column in items.how.values:
        one, other = rivals, wins
        if column in items.how.sparse:
            by_item = items.sets(column)
            one, other = one.filter(by_item.take(one)), _newest(by_item).take(other.filter(by_item.take(one)))
        place = items.place(column)
        same = alike(len(one), [(items.parts(column), place.take(one), place.take(other))])
        if (at := first(pc.invert(same))) is not None:
            raise equal_sequences(items.events, items.at[one[at].as_py()].as_py(), column, items.how)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Points:
    """The event that decides at each sequence of each key: one upsert or one delete."""

    items: _Items
    at: pa.Array
    """Of the item that decides; see `_Items`."""
    number: pa.Array
    is_upsert: pa.Array
    row: pa.Array
    """The index of the known row that begins here."""
    key: pa.Array
    """The index in `parts` of keys."""
    set: dict[str, pa.Array]
    """For each column the index in `parts` of what the upsert itself sets; null where it leaves it as it was."""
    value: dict[str, pa.Array]
    """For each column the index in `parts` of what the row has after this upsert."""
    is_joined: pa.Array
    """Whether items of different origin set its columns."""
    is_merged: pa.Array
    """Whether the upsert continues the version before it."""
    is_idle: pa.Array
    """Whether the delete closes nothing."""


def _points(items: _Items) -> _Points:
    decides = where(pc.invert(items.same_point_next))
    begins = _newest(_first_of_point(items)).take(decides)
    version = _within(_newest(items.is_version).take(decides), begins)
    number, is_upsert = items.number.take(decides), items.is_upsert.take(decides)
    continues = pc.and_(_same_as_before(number), _shifted(is_upsert, 1))
    follows = pc.and_(is_upsert, continues)
    set_, value = {}, {}
    is_joined = flags(len(decides), value=False)
    for column in items.how.values:
        set_[column] = value[column] = items.place(column).take(decides)
        if column in items.how.sparse:
            setter = _within(_newest(items.sets(column)).take(decides), begins)
            is_joined = pc.or_(is_joined, is_true(pc.not_equal(setter, decides)))
            set_[column] = items.place(column).take(setter)
            value[column] = set_[column].take(_newest(pc.or_(pc.is_valid(setter), pc.invert(follows))))
    pairs = where(follows)
    tracked = [name for name in items.how.values if name not in items.how.untracked]
    same = alike(
        len(pairs),
        ((items.parts(name), value[name].take(pc.subtract(pairs, 1)), value[name].take(pairs)) for name in tracked),
    )
    return _Points(
        items=items,
        at=items.at.take(decides),
        number=number,
        is_upsert=is_upsert,
        row=pc.subtract(items.at.take(version), items.starts),
        key=items.tracked.take(decides),
        set=set_,
        value=value,
        is_joined=is_joined,
        is_merged=pc.replace_with_mask(flags(len(decides), value=False), follows, same),
        is_idle=pc.and_not(pc.invert(is_upsert), continues),
    )


def _rows(points: _Points) -> tuple[pa.Table, pa.Array, pa.Array]:
    """Gives the rows to insert, the known rows that these replace, and all known rows to remove."""
    items, how, count = points.items, points.items.how, len(points.at)
    bounds = where(pc.invert(points.is_merged))
    nexts = pa.concat_arrays([bounds.slice(1), pa.array([count][: len(bounds)], LONG)])
    opens = points.is_upsert.take(bounds)
    begin, after = bounds.filter(opens), nexts.filter(opens)
    after_it = only(after, pc.less(after, count))
    closed = pc.equal(points.number.take(after_it), points.number.take(begin))
    end = points.at.take(only(after_it, closed))
    last = pc.subtract(after, 1)
    place = {name: points.key.take(begin) for name in how.keys}
    place |= {name: points.value[name].take(last if name in how.untracked else begin) for name in how.values}

    row = points.row.take(begin)
    is_update = pc.is_valid(row)
    known_at = pc.add(row.filter(is_update), items.starts)
    ranks = pa.concat_arrays(items.order.ranks)
    same_end = pc.equal(pc.fill_null(ranks.take(end), 0), items.order.ranks[2].take(row)).filter(is_update)
    same = alike(len(known_at), ((items.parts(name), place[name].filter(is_update), known_at) for name in how.values))
    stays = pc.and_(same, same_end)
    written = pc.replace_with_mask(flags(len(begin), value=True), is_update, pc.invert(stays))
    columns = {name: gather(items.parts(name), place[name].filter(written)) for name in how.schema.names}
    values = pa.chunked_array([items.order.values])
    columns[START_AT] = values.take(points.at.take(begin).filter(written))
    columns[END_AT] = values.take(end.filter(written))
    removed = _others(items.known.rows.num_rows, row.filter(is_update).filter(stays))
    return pa.table(columns, schema=how.row_schema), row.filter(written), removed


def _state(points: _Points) -> tuple[pa.Table, pa.Array]:
    """Gives the rows of the state that are new or changed, and the known rows of the state to remove."""
    items, how = points.items, points.items.how
    leaves = flags(len(points.at), value=False)
    for name in how.sparse:
        leaves = pc.or_(leaves, pc.and_(points.is_upsert, pc.is_null(points.set[name])))
    one_of_several = pc.or_(points.is_merged, _shifted(points.is_merged, -1))
    remembered = pc.or_(pc.or_(points.is_idle, one_of_several), leaves)
    was = pc.and_(remembered, pc.greater_equal(points.at, items.states))
    stays = pc.and_not(was, points.is_joined)
    written = where(pc.and_not(remembered, stays))
    is_upsert = points.is_upsert.take(written)
    place = {name: only(points.set[name].take(written), is_upsert) for name in how.values}
    columns = {name: gather(items.parts(name), points.key.take(written)) for name in how.keys}
    columns[SEQUENCE] = pa.chunked_array([items.order.values]).take(points.at.take(written))
    columns[IS_DELETE] = pa.chunked_array([pc.invert(is_upsert)])
    columns |= {name: gather(items.parts(name), place[name]) for name in how.untracked}
    if how.sparse:
        columns[SET] = struct_of({name: pa.chunked_array([pc.is_valid(place[name])]) for name in how.sparse})
    removed = _others(items.known.state.num_rows, pc.subtract(points.at.filter(stays), items.states))
    return pa.table(columns, schema=how.state_schema), removed


def _counts(items: _Items) -> Counts:
    is_event, again = pc.less(items.at, items.starts), items.same_kind_next
    duplicates = how_many(pc.and_(is_event, again))
    # What comes next at the same sequence and is of another kind is an upsert.
    late = how_many(pc.and_(is_event, pc.and_not(items.same_point_next, again)))
    return Counts(applied=items.starts - late - duplicates, late=late, duplicates=duplicates)


def _newest(mask: pa.Array) -> pa.Array:
    """Gives for each index the greatest one up to it at which `mask` is true; null if there is none."""
    newest = pc.cumulative_max(pc.if_else(mask, counting(len(mask)), -1))
    return only(newest, pc.greater_equal(newest, 0))


def _within(found: pa.Array, begins: pa.Array) -> pa.Array:
    """Only those that are not before where their point begins."""
    return only(found, pc.greater_equal(found, begins))


def _first_of_point(items: _Items) -> pa.Array:
    return pc.invert(_shifted(items.same_point_next, 1))


def _before_next(*columns: pa.Array) -> pa.Array:
    """Says of each index whether the columns have the same numbers at the next one."""
    count = len(columns[0])
    same = flags(max(count - 1, 0), value=True)
    for column in columns:
        same = pc.and_(same, pc.equal(column.slice(0, len(same)), column.slice(min(count, 1))))
    return pa.concat_arrays([same, flags(min(count, 1), value=False)])


def _same_as_before(column: pa.Array) -> pa.Array:
    return _shifted(_before_next(column), 1)


def _shifted(mask: pa.Array, by: int) -> pa.Array:
    """What `mask` says one index before (`by` 1) or after (-1); false beyond its ends."""
    none = flags(min(len(mask), 1), value=False)
    if by > 0:
        return pa.concat_arrays([none, mask.slice(0, max(len(mask) - 1, 0))])
    return pa.concat_arrays([mask.slice(min(len(mask), 1)), none])


def _others(count: int, kept: pa.Array) -> pa.Array:
    """The indices below `count` that are not in `kept`."""
    every = counting(count)
    return every.filter(pc.invert(pc.is_in(every, value_set=kept))) if count else every
