"""Folds change events into rows: the entry for both SCD types, and SCD type 1, which keeps one row for each key.

The law: the same events, in any order and in any batches, result in the same rows and the same state.

The rule of SCD type 1: D is the greatest sequence of the deletes of a key and of all truncates. Upserts at or after D
count. If none counts, there is no row. Otherwise the row is that of the greatest upsert. A column that upserts may
leave as it is has the value of the greatest upsert that counts and sets it. These are all maxima, so the law holds.

Rows are handled as columns. A sequence is compared by its rank among all sequences of the batch and of what is known; a
code is a rank and a position in one number, so that the greatest code of a key says which event or row decides.
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
    nulls,
    only,
    struct_of,
    where,
)
from tablefeed.feed.rows.events import Order, check_batch, contradicting_rows, equal_sequences, key_numbers, sets
from tablefeed.feed.rows.folding import (
    DELETED_AT,
    KIND,
    SEQUENCE,
    SET_AT,
    Counts,
    Folded,
    Folding,
    Kind,
    Known,
    Ties,
)
from tablefeed.feed.rows.history import fold_history


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
    return fold_history(events, known, how) if how.scd_type == 2 else _fold_rows(events, known, how)


def _fold_rows(events: pa.Table, known: Known, how: Folding) -> Folded:
    truncating = pc.equal(events[KIND], Kind.TRUNCATE)
    truncates = events.filter(truncating)
    acts = events.filter(pc.invert(truncating)) if truncates.num_rows else events
    board = _decide(acts, truncates[SEQUENCE], known, how)
    if how.ties == Ties.FAIL:
        _refuse_ties(board)
    inserts, replaces, removed = _rows(board)
    state, state_removed = _state(board)
    return Folded(
        inserts=inserts,
        replaces=replaces,
        removed=removed,
        state=state,
        state_removed=state_removed,
        truncated_at=_truncated_at(board),
        counts=_counts(board),
    )


@dataclass(frozen=True, slots=True)
class _Newest:
    """For each key the newest of its items of one sort: its rank, and its position; null where there is none."""

    rank: pa.Array
    at: pa.Array

    @staticmethod
    def of(codes: pa.ChunkedArray, size: int) -> _Newest:
        rank = flat(pc.divide(codes, size))
        return _Newest(rank, flat(pc.subtract(codes, pc.multiply(rank, size))))

    def only(self, mask: pa.Array) -> _Newest:
        """Without those where `mask` is false or null."""
        return _Newest(only(self.rank, mask), only(self.at, mask))

    def since(self, barrier: pa.Array) -> _Newest:
        """Only those at or after the barrier of their key."""
        return self.only(pc.greater_equal(self.rank, barrier))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Board:
    """What decides each key, at the index of its number. Positions are those in `order`, which has events first."""

    acts: pa.Table
    known: Known
    how: Folding
    order: Order
    numbers: pa.Array
    """Of each event."""
    is_upsert: pa.Array
    """Of each event."""
    upsert: _Newest
    """The newest upsert that counts, an event or the row."""
    delete: _Newest
    sets: dict[str, _Newest]
    """For each sparse column the newest upsert that counts and sets it."""
    barrier: pa.Array
    """The rank of D; 0 where nothing was deleted."""
    row: pa.Array
    """The index of the known row."""
    state: pa.Array
    """The index of the row of the state."""
    item: pa.Array
    """Where the key occurs first in events, rows and state, one after the other."""
    ranks: dict[str, pa.Array]
    """By the names of `_sequences`."""
    truncated: int
    """The rank of the newest truncate; 0 where there is none."""

    @property
    def by_event(self) -> pa.Array:
        """Whether an event decides the row."""
        return self.is_event(self.upsert)

    @property
    def shown(self) -> pa.Array:
        """Whether there is a row. A known one that somebody else deleted meanwhile stays deleted."""
        return pc.or_(self.by_event, pc.and_(pc.is_valid(self.upsert.at), pc.is_valid(self.row)))

    @property
    def is_anew(self) -> pa.Array:
        """Whether the known row, if any, is older than a delete that is older than what decides."""
        ranks = self.ranks
        known = pc.max_element_wise(ranks["rows"].take(self.row), ranks["state"].take(self.state), 0)
        return is_true(pc.and_(pc.less(known, self.barrier), pc.less(self.barrier, self.upsert.rank)))

    def is_event(self, newest: _Newest) -> pa.Array:
        return is_true(pc.less(newest.at, self.acts.num_rows))

    def parts(self, column: str) -> list[pa.ChunkedArray]:
        by_event = SEQUENCE if column == self.how.sequence_column else column
        return [self.acts[by_event], self.known.rows[column]]

    def source(self, newest: _Newest) -> pa.Array:
        """The index in `parts` of what decides."""
        return pc.if_else(self.is_event(newest), newest.at, pc.add(self.row, self.acts.num_rows))

    def place(self, column: str) -> pa.Array:
        """The index in `parts` of the value that the column of each key's row has."""
        if column not in self.sets:
            return self.source(self.upsert)
        newest = self.sets[column]
        # No event set a value that another writer left there: it is older than every event.
        untouched = only(pc.add(self.row, self.acts.num_rows), pc.equal(self.barrier, 0))
        return pc.if_else(pc.is_valid(newest.at), self.source(newest), untouched)


def _decide(acts: pa.Table, truncates: pa.ChunkedArray, known: Known, how: Folding) -> _Board:
    numbers = key_numbers([acts, known.rows, known.state], how.keys)
    columns = _sequences(acts, truncates, known, how)
    order = Order.of(list(columns.values()))
    ranks = dict(zip(columns, order.ranks, strict=True))
    codes = dict(zip(columns, _codes(order), strict=True))
    is_upsert = flat(pc.equal(acts[KIND], Kind.UPSERT))
    nothing = [nulls(len(each)) for each in numbers]
    items = {
        "number": numbers,
        "item": [counting(sum(len(each) for each in numbers))],
        "upsert": [only(codes["events"], is_upsert), codes["rows"], _set(codes["state"], ranks["state"])],
        "delete": [only(codes["events"], pc.invert(is_upsert)), nothing[1], _set(codes["deletes"], ranks["deletes"])],
        "row": [nothing[0], counting(known.rows.num_rows), nothing[2]],
        "state": [nothing[0], nothing[1], counting(known.state.num_rows)],
    }
    for name in how.sparse:
        by_event = only(codes["events"], pc.and_(is_upsert, sets(acts, name, how)))
        items[f"set {name}"] = [by_event, nothing[1], _set(codes[f"set {name}"], ranks[f"set {name}"])]
    newest = _newest(items, known, how)
    delete = _Newest.of(newest["delete"], order.size)
    truncate_ranks = pa.concat_arrays([ranks["truncates"], ranks["truncated"]])
    truncated = pc.max(truncate_ranks).as_py() or 0
    barrier = pc.max_element_wise(pc.fill_null(delete.rank, 0), truncated)
    return _Board(
        acts=acts,
        known=known,
        how=how,
        order=order,
        numbers=numbers[0],
        is_upsert=is_upsert,
        upsert=_Newest.of(newest["upsert"], order.size).since(barrier),
        delete=delete,
        sets={name: _Newest.of(newest[f"set {name}"], order.size).since(barrier) for name in how.sparse},
        barrier=barrier,
        row=newest["row"],
        state=newest["state"],
        item=newest["item"],
        ranks=ranks,
        truncated=truncated,
    )


def _sequences(acts: pa.Table, truncates: pa.ChunkedArray, known: Known, how: Folding) -> dict[str, pa.ChunkedArray]:
    """All sequences. Those of events come first: at one sequence, the known has the greater code and wins."""
    rows, state = known.rows, known.state
    in_rows = how.sequence_column
    return {
        "events": acts[SEQUENCE],
        "rows": nulls(rows.num_rows, how.sequence) if in_rows is None else rows[in_rows],
        "state": state[SEQUENCE] if in_rows is None else nulls(state.num_rows, how.sequence),
        "deletes": state[DELETED_AT],
        **{f"set {name}": member(state[SET_AT], name) for name in how.sparse},
        "truncates": truncates,
        "truncated": pa.chunked_array([[] if known.truncated_at is None else [known.truncated_at]], how.sequence),
    }


def _codes(order: Order) -> list[pa.Array]:
    """Gives rank * size + position for each sequence: the greater code is the newer, then the later."""
    codes, start = [], 0
    for ranks in order.ranks:
        codes.append(pc.add(pc.multiply(ranks, order.size), pc.add(counting(len(ranks)), start)))
        start += len(ranks)
    return codes


def _set(codes: pa.Array, ranks: pa.Array) -> pa.Array:
    # In the state a null means that there was no such event. In a row it is the oldest sequence.
    return only(codes, pc.greater(ranks, 0))


def _newest(items: dict[str, list[pa.Array]], known: Known, how: Folding) -> dict[str, pa.Array]:
    """The greatest of each column for each key, at the index of its number; for `item` the least."""
    table = pa.table({name: pa.chunked_array([flat(each) for each in parts], LONG) for name, parts in items.items()})
    wanted = [(name, "min" if name == "item" else "max") for name in items if name != "number"]
    # Without threads the groups come in the order in which they occur first, as the numbers do.
    found = table.group_by("number", use_threads=False).aggregate([*wanted, ("row", "count")])
    if (several := first(pc.greater(found["row_count"], 1))) is not None:
        raise contradicting_rows(known.rows, found["row_max"][several].as_py(), how)
    return {name: flat(found[f"{name}_{what}"]) for name, what in wanted}


def _refuse_ties(board: _Board) -> None:
    """Raises EqualSequencesError where an event differs from the one that decides at the same sequence."""
    plain = [name for name in board.how.values if name not in board.sets]
    for newest, columns, counts in (
        (board.upsert, plain, board.is_upsert),
        *((newest, [name], sets(board.acts, name, board.how)) for name, newest in board.sets.items()),
    ):
        rank, at = newest.rank.take(board.numbers), newest.at.take(board.numbers)
        ranks = board.order.ranks[0]
        rivals = pc.and_(pc.equal(ranks, rank), pc.not_equal(counting(len(at)), at))
        events = where(pc.and_(pc.and_(board.is_upsert, counts), is_true(rivals)))
        decides = board.source(newest).take(board.numbers.take(events))
        # A known row that is gone has no values to compare.
        events, decides = events.filter(pc.is_valid(decides)), decides.filter(pc.is_valid(decides))
        for column in columns:
            same = alike(len(events), [(board.parts(column), events, decides)])
            if (at := first(pc.invert(same))) is not None:
                raise equal_sequences(board.acts, events[at].as_py(), column, board.how)


def _rows(board: _Board) -> tuple[pa.Table, pa.Array, pa.Array]:
    """Gives the rows to insert, the known rows that these replace, and all known rows to remove."""
    names, shown = board.how.schema.names, board.shown
    may_differ = shown if board.sets else pc.and_(shown, board.by_event)
    keys = where(may_differ)
    places = {name: board.place(name).take(keys) for name in names}
    row = board.row.take(keys)
    is_update = pc.is_valid(row)
    # The column of the sequence differs most often: compared first, it leaves little to the others.
    ordered = sorted(names, key=lambda name: name != board.how.sequence_column)
    known_at = pc.add(row.filter(is_update), board.acts.num_rows)
    same = alike(len(known_at), ((board.parts(name), places[name].filter(is_update), known_at) for name in ordered))
    written = pc.replace_with_mask(flags(len(keys), value=True), is_update, pc.invert(same))
    is_anew = board.is_anew.take(keys) if board.how.leaves_columns else flags(len(keys), value=False)
    written = pc.or_(written, is_anew)
    inserts = pa.table(
        {name: gather(board.parts(name), places[name].filter(written)) for name in names}, schema=board.how.schema
    )
    replaced = row.filter(written)
    replaces = only(replaced, pc.invert(is_anew).filter(written))
    gone = board.row.filter(pc.and_(pc.is_valid(board.row), pc.invert(shown)))
    removed = pa.concat_arrays([gone, replaced.drop_null()])
    return inserts, replaces, removed.take(pc.array_sort_indices(removed))


def _state(board: _Board) -> tuple[pa.Table, pa.Array]:
    """Gives the rows of the state that are new or changed, and the known rows of the state to remove."""
    remembered = _remembered(board)
    before = {name: board.ranks[name].take(board.state) for name in remembered}
    anything = flags(len(board.state), value=False)
    changed = anything
    for name, newest in remembered.items():
        anything = pc.or_(anything, pc.is_valid(newest.rank))
        changed = pc.or_(changed, pc.not_equal(pc.fill_null(newest.rank, 0), pc.fill_null(before[name], 0)))
    had = pc.is_valid(board.state)
    written = where(pc.and_(anything, changed))
    gone = board.state.filter(pc.and_(had, pc.or_(changed, pc.invert(anything))))
    sources = [board.acts, board.known.rows, board.known.state]
    columns = {name: gather([each[name] for each in sources], board.item.take(written)) for name in board.how.keys}
    values = pa.chunked_array([board.order.values])
    sequences = {name: values.take(newest.at.take(written)) for name, newest in remembered.items()}
    if board.how.sequence_column is None:
        columns[SEQUENCE] = sequences["state"]
    columns[DELETED_AT] = sequences["deletes"]
    if board.sets:
        columns[SET_AT] = struct_of({name: sequences[f"set {name}"] for name in board.sets})
    return pa.table(columns, schema=board.how.state_schema), gone.take(pc.array_sort_indices(gone))


def _remembered(board: _Board) -> dict[str, _Newest]:
    """What the state of each key has, by the names of `_sequences`."""
    kept = pc.greater(board.delete.rank, board.truncated)
    if not board.sets:
        # Beside a row, what is older than D is older than the row.
        kept = pc.and_(kept, pc.is_null(board.upsert.at))
    found = {"deletes": board.delete.only(kept)}
    if board.how.sequence_column is None:
        found["state"] = board.upsert.only(pc.greater(board.upsert.rank, 0))
    return {**found, **{f"set {name}": newest for name, newest in board.sets.items()}}


def _truncated_at(board: _Board) -> pa.Scalar | None:
    ranks = pa.concat_arrays([board.ranks["truncates"], board.ranks["truncated"]])
    # These sequences are the last in the order.
    start = board.order.size - len(ranks)
    return board.order.values[start + pc.index(ranks, board.truncated).as_py()] if board.truncated else None


def _counts(board: _Board) -> Counts:
    """Compares each event with what was known of its key, and not with newer events of its batch."""
    size, ranks = board.order.size + 1, board.ranks
    codes = pc.add(
        pc.multiply(pc.add(pc.multiply(board.numbers, size), ranks["events"]), 2), board.is_upsert.cast(LONG)
    )
    different = pc.unique(codes)
    is_upsert = pc.equal(pc.bit_wise_and(different, 1), 1)
    place = pc.shift_right(different, 1)
    number = pc.divide(place, size)
    rank = pc.subtract(place, pc.multiply(number, size))
    truncated = pc.max(ranks["truncated"]).as_py() or 0
    row = pc.max_element_wise(ranks["rows"].take(board.row), ranks["state"].take(board.state), 0).take(number)
    deleted = pc.max_element_wise(ranks["deletes"].take(board.state), truncated).take(number)
    repeated = pc.equal(rank, pc.if_else(is_upsert, row, deleted))
    # Where upserts leave columns as they are, a delete that is older than the row counts against older upserts.
    meets = pc.if_else(is_upsert, row, pc.add(row, 1)) if not board.sets else pc.if_else(is_upsert, row, 0)
    late = pc.or_(pc.less(rank, meets), pc.less(rank, deleted))
    for newest in board.sets.values():
        decided = pc.and_(board.is_event(newest).take(number), pc.equal(newest.rank.take(number), rank))
        decided = is_true(pc.and_(decided, is_upsert))
        repeated, late = pc.and_not(repeated, decided), pc.and_not(late, decided)
    truncates = pc.unique(ranks["truncates"])
    twice = len(codes) - len(different) + len(ranks["truncates"]) - len(truncates)
    duplicates = twice + how_many(repeated) + how_many(pc.equal(truncates, truncated))
    too_late = how_many(pc.and_not(late, repeated)) + how_many(pc.less(truncates, truncated))
    every = len(codes) + len(ranks["truncates"])
    return Counts(applied=every - too_late - duplicates, late=too_late, duplicates=duplicates)
