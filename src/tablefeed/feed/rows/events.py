"""Checks change events before they are folded, and gives their keys and sequences as numbers."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.row_changes import row_classes
from tablefeed.errors import (
    TABLE,
    EqualSequencesError,
    InvalidEventsError,
    InvalidRowsError,
    SchemaMismatchError,
    TableError,
)
from tablefeed.feed.rows.columns import LONG, chained, first, flags, flat, how_many, is_true, member
from tablefeed.feed.rows.folding import ABSENT, END_AT, INVALID, KIND, SEQUENCE, START_AT, Folding, Kind, Known


def check_batch(events: pa.Table, known: Known, how: Folding) -> None:
    """Raises InvalidEventsError for events without a key or a place in the order, SchemaMismatchError for types."""
    for found, wanted in ((events, how.event_schema), (known.rows, how.row_schema), (known.state, how.state_schema)):
        _refuse_types(found.schema, wanted)
    if first(pc.invert(pc.is_in(events[KIND], value_set=pa.array([str(kind) for kind in Kind])))) is not None:
        raise _refused("an event is no upsert, no delete and no truncate.")
    for leaf in _leaves(events[SEQUENCE]):
        if (at := first(_is_missing(leaf))) is not None:
            key = _key_text(events, at, how)
            raise _refused(
                f"{how_many(_is_missing(leaf))} events have null or NaN as their sequence or in it, the first for key "
                f"{key}. Such an event has no place in the order. Filter these events, or give each a sequence.",
                key=key,
                error_class=f"{INVALID}.NULL_SEQUENCE",
            )
    truncates = pc.equal(events[KIND], Kind.TRUNCATE)
    for name in how.keys:
        missing = pc.and_not(_is_missing(events[name]), truncates)
        if (at := first(missing)) is not None:
            if how.snapshot_at is not None and events[KIND][at].as_py() == Kind.DELETE:  # a row of the table
                raise InvalidRowsError(
                    f"{TABLE} cannot take this snapshot: it has {how_many(missing)} rows with null or NaN in the key "
                    f"column {name}, which no row of a snapshot can replace. Delete these rows, or name other keys.",
                    url=TABLE,
                )
            sequence = _text(events[SEQUENCE][at])
            raise _refused(
                f"{how_many(missing)} events have null or NaN in the key column {name}, the first at sequence "
                f"{sequence}. A row is found by its key, and an empty text in a partition column is null. Filter these "
                "events, or name other keys.",
                sequence=sequence,
                error_class=f"{INVALID}.NULL_KEY",
            )
    if how.scd_type == 2 and (at := first(truncates)) is not None:
        sequence = _text(events[SEQUENCE][at])
        raise _refused(
            f"the event at sequence {sequence} truncates the table, which keeps the history of its rows (SCD type 2). "
            "Leave apply_as_truncates out, or filter these events.",
            sequence=sequence,
        )


def equal_sequences(events: pa.Table, at: int, column: str, how: Folding) -> EqualSequencesError:
    """The error for the event at index `at`, whose `column` differs in another upsert of its key and sequence."""
    key, sequence = _key_text(events, at, how), _text(events[SEQUENCE][at])
    return EqualSequencesError(
        f"{TABLE} cannot take these changes: two upserts of key {key} at sequence {sequence} differ in the column "
        f"{column}, so neither is newer. Make sequence_by finer, such as a struct of two columns, or set "
        'ties="last", which takes the last of a batch.',
        url=TABLE,
        key=key,
        sequence=sequence,
    )


def contradicting_rows(rows: pa.Table, at: int, how: Folding) -> TableError:
    """The error for the known row at index `at`, which contradicts another row of its key or itself."""
    one = "one row" if how.scd_type == 1 else f"one row at a time, from {START_AT} until before {END_AT}"
    return InvalidRowsError(
        f"{TABLE} cannot take changes of key {_key_text(rows, at, how)}: it should have {one}, and has rows that "
        "contradict each other. Correct these rows, or name other keys.",
        url=TABLE,
    )


def key_numbers(tables: Sequence[pa.Table], keys: Sequence[str]) -> list[pa.Array]:
    """Gives for each row of each table the number of its key: from 0, in the order in which keys occur first."""
    columns = {name: _without_minus_zero(chained([table[name] for table in tables])) for name in keys}
    return _cut(row_classes(pa.table(columns)), [table.num_rows for table in tables])


BUCKETS = 64
"""Into how many buckets `key_buckets` divides keys."""

_GOLDEN = pa.scalar(0x9E3779B97F4A7C15, pa.uint64())
_BITS = pa.scalar(64 - BUCKETS.bit_length() + 1, pa.uint64())


def key_buckets(keys: pa.Table) -> pa.Array:
    """Gives for each row the bucket of its key, below `BUCKETS`, in every process the same.

    Keys to which `key_numbers` gives one number have one bucket.
    """
    hashed = pa.repeat(pa.scalar(0, pa.uint64()), keys.num_rows)
    for column in keys.columns:
        # Products and sums wrap around at 64 bits.
        hashed = pc.multiply(pc.add(hashed, pc.fill_null(_hashed(column), 0)), _GOLDEN)
    return pc.shift_right(hashed, _BITS).cast(pa.int32())


def _hashed(column: pa.ChunkedArray) -> pa.Array:
    values = flat(_without_minus_zero(column))
    kind = values.type
    if pa.types.is_primitive(kind) and kind.bit_width in (32, 64):
        return values.view(f"uint{kind.bit_width}").cast(pa.uint64())
    if pa.types.is_primitive(kind):
        return values.cast(LONG).view(pa.uint64())
    texts = values.cast(pa.string() if pa.types.is_decimal(kind) else kind).cast(pa.binary()).to_pylist()
    return pa.array((zlib.crc32(text or b"") for text in texts), pa.uint64())


@dataclass(frozen=True, slots=True)
class Order:
    """The sequences of several columns, one column after the other, and for each column the rank of each sequence.

    Equal sequences have equal ranks, and a greater sequence has a greater rank. No rank is above `greatest`. A null has
    rank 0.
    """

    values: pa.Array
    ranks: tuple[pa.Array, ...]
    greatest: int

    @staticmethod
    def of(columns: Sequence[pa.ChunkedArray]) -> Order:
        """The order of all sequences of `columns`, which have one type."""
        values = flat(chained(columns))
        near = _distances(values)
        ranks = _ranks(values) if near is None else near
        return Order(values, tuple(_cut(ranks, [len(column) for column in columns])), pc.max(ranks).as_py() or 0)


def sets(events: pa.Table, column: str, how: Folding) -> pa.Array:
    """Says of each event whether it sets a sparse `column`: its field is not absent, and not a null to be ignored."""
    counts = pc.is_valid(events[column]) if column in how.ignore_nulls else flags(events.num_rows, value=True)
    if column in how.absent:
        counts = pc.and_not(counts, is_true(member(events[ABSENT], column)))
    return flat(counts)


def _refused(
    why: str, *, key: str | None = None, sequence: str | None = None, error_class: str | None = None
) -> InvalidEventsError:
    text = f"{TABLE} cannot take these changes: {why}"
    return InvalidEventsError(text, url=TABLE, key=key, sequence=sequence, error_class=error_class)


def _refuse_types(found: pa.Schema, wanted: pa.Schema) -> None:
    for field in wanted:
        have = found.field(field.name).type if field.name in found.names else None
        if have != field.type:
            raise SchemaMismatchError(
                f"{TABLE} cannot take these changes: the column {field.name} must be {field.type}, and "
                f"{'is missing' if have is None else f'is {have}'}. Cast it before the changes are applied.",
                url=TABLE,
            )


def _key_text(table: pa.Table, at: int, how: Folding) -> str:
    return ", ".join(f"{name}={_text(table[name][at])}" for name in how.keys)


def _text(value: pa.Scalar) -> str:
    # By Arrow: Python has no time after the year 9999, and no text that is not UTF-8.
    kind = value.type
    if not value.is_valid:
        return "null"
    if pa.types.is_struct(kind):
        return "{" + ", ".join(f"{field.name}: {_text(value[i])}" for i, field in enumerate(kind)) + "}"
    is_bytes = any(is_a(kind) for is_a in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary))
    shown = value if is_bytes else value.cast(pa.string())
    return bytes(shown.as_buffer()).decode(errors="backslashreplace")


def _is_missing(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # NaN counts as missing: for some databases it equals nothing, for others it is newer than everything.
    return pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))


def _leaves(column: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    if not pa.types.is_struct(column.type):
        return [column]
    return [leaf for i in range(column.type.num_fields) for leaf in _leaves(pc.struct_field(column, [i]))]


def _without_minus_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # As in a join of Spark, -0.0 is the key 0.0.
    return pc.add(column, pa.scalar(0, column.type)) if pa.types.is_floating(column.type) else column


def _ranks(values: pa.Array) -> pa.Array:
    if pa.types.is_struct(values.type):
        ranks = pa.repeat(pa.scalar(0, LONG), len(values))
        for i in range(values.type.num_fields):
            own = _ranks(flat(pc.struct_field(values, [i])))
            ranks = _ranks(pc.add(pc.multiply(ranks, 1 + (pc.max(own).as_py() or 0)), own))
    else:
        ranks = pc.rank(values, tiebreaker="dense").cast(LONG)
    return pc.if_else(pc.is_valid(values), ranks, 0)


def _distances(values: pa.Array) -> pa.Array | None:
    # Sorting is the slowest step. Integers of a small range need none: the distance from the least one is the rank.
    if values.type != LONG and not pa.types.is_timestamp(values.type):
        return None
    numbers = values.view(LONG)
    least, greatest = (bound.as_py() or 0 for bound in pc.min_max(numbers).values())
    near = (greatest - least + 2) * (len(numbers) + 1) < 1 << 61
    return pc.fill_null(pc.add(pc.subtract(numbers, least), 1), 0) if near else None


def _cut(values: pa.Array, lengths: Sequence[int]) -> list[pa.Array]:
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    return [values.slice(start, length) for start, length in zip(starts, lengths, strict=True)]
