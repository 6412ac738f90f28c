"""Sorts what is known of each key: the events of a batch, the rows of the table, and the state. For both SCD types.

Rows are handled as columns. A sequence is compared by its rank among all sequences of the batch and of what is known.
All items are sorted by key, sequence and kind, and then compared with their neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.feed.rows.columns import LONG, counting, first, flags, flat, gather, is_true, member, nulls, only
from tablefeed.feed.rows.events import Order, contradicting_rows, key_numbers, sets
from tablefeed.feed.rows.folding import (
    DELETED_AT,
    END_AT,
    IS_DELETE,
    KIND,
    SEQUENCE,
    SET,
    SET_AT,
    START_AT,
    Folding,
    Kind,
    Known,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Upserts and deletes, sorted by key, sequence and kind, upserts last.

    Of items with one key, sequence and kind, an item that was known before the batch comes last, and so it wins.
    """

    events: pa.Table
    known: Known
    how: Folding
    order: Order
    at: pa.Array
    """The index of the item's sequence in `order`: those of the events come first, then those of each block."""
    code: pa.Array
    """One number for the key, the sequence and the kind, greater for later items."""
    number: pa.Array
    """The number of the item's key."""
    rank: pa.Array
    """The rank of the item's sequence."""
    is_upsert: pa.Array
    source: pa.Array
    """The index of the event, or of the row of the table or the state, that the item comes from; events come first."""
    row: pa.Array
    """The index of the last known row of the key that begins before the item or with it."""
    place: pa.Array
    """The index, in events and rows, of the item's values. An item of the state has those of its row, null if gone."""
    sets: dict[str, pa.Array]
    """For each sparse column whether the item sets it."""

    @property
    def is_event(self) -> pa.Array:
        """Whether the item is an event of the batch."""
        return pc.less(self.at, self.events.num_rows)

    @property
    def point(self) -> pa.Array:
        """One number for the key and the sequence."""
        return pc.shift_right(self.code, 1)

    @property
    def of_state(self) -> pa.Array:
        """The index of the row of the state that the item comes from; null for other items."""
        at = pc.subtract(self.source, self.events.num_rows + self.known.rows.num_rows)
        return only(at, pc.greater_equal(at, 0))

    def of_block(self, number: int) -> pa.Array:
        """Whether the item comes from the block `number`: 0 are the events, 1 and more those of `_blocks`."""
        start = sum(len(ranks) for ranks in self.order.ranks[:number])
        end = start + len(self.order.ranks[number])
        return pc.and_(pc.greater_equal(self.at, start), pc.less(self.at, end))

    def filter(self, mask: pa.Array) -> Items:
        """Gives the items at which `mask` is true."""
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        kept = {name: each.filter(mask) for name, each in arrays.items() if isinstance(each, pa.Array)}
        return replace(self, **kept, sets={name: each.filter(mask) for name, each in self.sets.items()})

    def parts(self, column: str) -> list[pa.ChunkedArray]:
        """The columns that hold the values of `column`; see `values`."""
        by_event = SEQUENCE if column == self.how.sequence_column else column
        parts = [self.events[by_event], self.known.rows[column]]
        return [*parts, self.known.state[column]] if column in self.how.untracked else parts

    def values(self, column: str) -> pa.Array:
        """The index in `parts` of each item's value."""
        return self.source if column in self.how.untracked else self.place

    def sequences(self, items: pa.Array) -> pa.ChunkedArray:
        """The sequences of the items with these indices."""
        return pa.chunked_array([self.order.values]).take(self.at.take(items))

    def keys(self, items: pa.Array) -> dict[str, pa.ChunkedArray]:
        """The keys of the items with these indices."""
        tables, source = (self.events, self.known.rows, self.known.state), self.source.take(items)
        return {name: gather([each[name] for each in tables], source) for name in self.how.keys}

    def chosen(self, decides: pa.Array, begins: pa.Array) -> dict[str, pa.Array]:
        """Gives for each column the items that set it at the items `decides`.

        Each item sets its own columns, except a sparse column that it leaves as it was: then the newest earlier item
        that sets the column counts, but none before `begins`.
        """
        found = dict.fromkeys(self.how.schema.names, decides)
        return found | {name: within(newest(mask).take(decides), begins) for name, mask in self.sets.items()}


def items_of(events: pa.Table, known: Known, how: Folding, marks: Sequence[pa.ChunkedArray]) -> Items:
    """Gives the items of the upserts and deletes `events` and of what is known.

    `marks` are more sequences to rank: the last columns of `Items.order`.

    Raises InvalidRowsError for known rows that contradict each other.
    """
    blocks = [(0, events[SEQUENCE], pc.equal(events[KIND], Kind.UPSERT)), *_blocks(known, how)]
    order = Order.of([*(sequences for _, sequences, _ in blocks), *marks])
    numbers = key_numbers([events, known.rows, known.state], how.keys)
    starts = (0, events.num_rows, events.num_rows + known.rows.num_rows)
    number = pa.concat_arrays([numbers[table].slice(0, len(each)) for table, each, _ in blocks])
    source = pa.concat_arrays([pc.add(counting(len(each)), starts[table]) for table, each, _ in blocks])
    is_upsert, rank = (
        pa.concat_arrays([flat(each) for _, _, each in blocks]),
        pa.concat_arrays(order.ranks[: len(blocks)]),
    )
    code = pc.add(pc.multiply(pc.add(pc.multiply(number, order.greatest + 1), rank), 2), is_upsert.cast(LONG))
    # A null sequence makes no item, except for rows: a row without a sequence is older than everything else.
    is_row = pa.concat_arrays([flags(len(each), value=i == 1) for i, (_, each, _) in enumerate(blocks)])
    counts = pc.or_(pc.greater(rank, 0), is_row)
    if how.sparse and how.scd_type == 1 and how.sequence_column is None:
        # A column that the newest upsert set needs no item of its own.
        before, setters = sum(len(each) for each in order.ranks[:4]), order.ranks[4 : len(blocks)]
        repeated = [pc.equal(each, order.ranks[2]) for each in setters]
        counts = pc.and_not(counts, pa.concat_arrays([flags(before, value=False), *repeated]))
    at = pc.array_sort_indices(only(code, counts)).cast(LONG).slice(0, pc.sum(counts).as_py() or 0)
    code = code.take(at)
    point = pc.shift_right(code, 1)
    number = pc.divide(point, order.greatest + 1)
    items = Items(
        events=events,
        known=known,
        how=how,
        order=order,
        at=at,
        code=code,
        number=number,
        rank=pc.subtract(point, pc.multiply(number, order.greatest + 1)),
        is_upsert=pc.equal(pc.bit_wise_and(code, 1), 1),
        source=source.take(at),
        row=at,
        place=at,
        sets={name: pc.and_(_sets(events, known, how, name, order), is_upsert).take(at) for name in how.sparse},
    )
    return _with_rows(items)


def _blocks(known: Known, how: Folding) -> list[tuple[int, pa.ChunkedArray, pa.Array]]:
    """Gives the blocks of what is known: the table of each (1: rows, 2: state), its sequences, and which are upserts.

    SCD type 1: the rows without their sequences; the newest upserts; the deletes; for each sparse column the upserts
    that last set it. Type 2: the starts of the versions; their ends; the events that the versions do not show.
    """
    rows, state, column = known.rows, known.state, how.sequence_column
    all_rows, all_state = flags(rows.num_rows, value=True), flags(state.num_rows, value=True)
    if how.scd_type == 2:
        ends = (1, rows[END_AT], pc.invert(all_rows))
        return [(1, rows[START_AT], all_rows), ends, (2, state[SEQUENCE], pc.invert(state[IS_DELETE]))]
    unknown = (1, nulls(rows.num_rows, how.sequence), all_rows)
    upserts = [unknown, (2, state[SEQUENCE], all_state) if column is None else (1, rows[column], all_rows)]
    if column is not None and not how.sparse:
        upserts = [upserts[1], (1, nulls(0, how.sequence), all_rows.slice(0, 0))]
    setters = [(2, member(state[SET_AT], name), all_state) for name in how.sparse]
    return [*upserts, (2, state[DELETED_AT], pc.invert(all_state)), *setters]


def _sets(events: pa.Table, known: Known, how: Folding, name: str, order: Order) -> pa.Array:
    """Says of each item of each block whether it may set a sparse column."""
    rows, state = known.rows.num_rows, known.state
    if how.scd_type == 2:
        parts = [flags(2 * rows, value=True), flat(is_true(member(state[SET], name)))]
    else:
        newest = flags(rows, value=False)
        if how.sequence_column is None:
            newest = pc.equal(order.ranks[4 + how.sparse.index(name)], order.ranks[2])
        count = state.num_rows
        parts = [flags(rows, value=True), newest, flags(count, value=False)]
        parts += [flags(count, value=each == name) for each in how.sparse]
    return pa.concat_arrays([sets(events, name, how), *parts])


def _with_rows(items: Items) -> Items:
    """Finds the known row of each item. This row has the values that the state does not repeat.

    Raises InvalidRowsError: with SCD type 1 for two rows of one key; with type 2 for a version without a start, for one
    that does not end after its start, and for two that overlap.
    """
    order, rows, is_row = items.order, items.known.rows, items.of_block(1)
    is_history = items.how.scd_type == 2
    end = order.ranks[2] if is_history else pa.repeat(pa.scalar(0, LONG), rows.num_rows)
    end = pc.if_else(pc.equal(end, 0), order.greatest + 1, end)
    of_item = pc.subtract(items.source, items.events.num_rows)

    row, start, number = (each.filter(is_row) for each in (of_item, items.rank, items.number))
    next_start = pc.subtract(start, pc.pairwise_diff(start, -1))
    wrong = is_true(pc.and_(same_next(number), pc.greater(end.take(row), next_start)))
    wrong = pc.or_(wrong, pc.less_equal(end.take(row), start))
    if (at := first(pc.or_(wrong, pc.and_(pc.equal(start, 0), is_history)))) is not None:
        raise contradicting_rows(rows, row[at].as_py(), items.how)

    last = newest(is_row)
    row = only(of_item.take(last), pc.equal(items.number.take(last), items.number))
    remembered = pc.add(row, items.events.num_rows)
    remembered = only(remembered, pc.less(items.rank, end.take(row))) if is_history else remembered
    place = pc.if_else(pc.is_valid(items.of_state), remembered, items.source)
    # The upsert at the start of a version set all columns, unless the state says which columns it set.
    in_state = pc.and_(is_row, same_next(items.code))
    sets = {name: pc.and_not(mask, in_state) for name, mask in items.sets.items()}
    found = replace(items, row=row, place=place, sets=sets)
    # If another writer deleted a version, the upserts that the state remembers of it are gone too.
    return found.filter(pc.or_(pc.is_valid(place), pc.invert(items.is_upsert))) if is_history else found


def newest(mask: pa.Array) -> pa.Array:
    """Gives for each index the greatest index up to it at which `mask` is true; null if there is none."""
    return pc.fill_null_forward(only(counting(len(mask)), mask))


def within(found: pa.Array, begins: pa.Array) -> pa.Array:
    """Gives `found`, with null for each index that is below the one in `begins`."""
    return only(found, pc.greater_equal(found, begins))


def same_next(numbers: pa.Array) -> pa.Array:
    """Whether the next number is the same."""
    return is_true(pc.equal(pc.pairwise_diff(numbers, -1), 0))


def same_before(numbers: pa.Array) -> pa.Array:
    """Whether the number before is the same."""
    return is_true(pc.equal(pc.pairwise_diff(numbers, 1), 0))
