"""Functions of Arrow columns for the folds: take by index, compare value by value, count. Knows no event."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.row_changes import row_classes
from tablefeed.errors import TABLE, InvalidRowsError

LONG = pa.int64()
NONE = pa.scalar(None, LONG)
_FALSE = pa.scalar(value=False)


def alike(count: int, columns: Iterable[tuple[Sequence[pa.ChunkedArray], pa.Array, pa.Array]]) -> pa.Array:
    """Says of each of `count` pairs of rows whether they are equal in every column, exactly as in `data.row_changes`.

    A column comes with the indices of the left and the right values, as for `gather`. It is compared only for the pairs
    that were equal so far.
    """
    same = flags(count, value=True)
    for parts, left, right in columns:
        lefts, rights = left.filter(same), right.filter(same)
        if not len(lefts):
            break
        elsewhere = pc.fill_null(pc.not_equal(lefts, rights), pa.scalar(value=True))
        compared = _same_values(gather(parts, lefts.filter(elsewhere)), gather(parts, rights.filter(elsewhere)))
        found = pc.replace_with_mask(flags(len(lefts), value=True), elsewhere, compared)
        same = pc.replace_with_mask(same, same, found)
    return same


def _same_values(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.Array:
    kind = left.type
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        numbers = row_classes(pa.table({"x": chained([left, right])}))
        return pc.equal(numbers.slice(0, len(left)), numbers.slice(len(left)))
    same = pc.equal(_bits(left), _bits(right)) if pa.types.is_floating(kind) else pc.equal(left, right)
    return flat(pc.if_else(pc.is_valid(same), same, pc.and_(pc.is_null(left), pc.is_null(right))))


def _bits(column: pa.ChunkedArray) -> pa.Array:
    # For Arrow 0.0 equals -0.0, and no NaN equals another.
    plain = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
    return flat(plain).view(pa.int32() if column.type == pa.float32() else LONG)


def gather(parts: Sequence[pa.ChunkedArray], at: pa.Array) -> pa.ChunkedArray:
    """Takes values by their index in `parts`, which are counted one after the other; a null index gives a null."""
    greatest = pc.max(at).as_py()
    return (parts[0] if greatest is None or greatest < len(parts[0]) else chained(parts)).take(at)


_TOO_LONG = re.compile("offset overflow|array capacity|array too large|cannot contain more than")


@contextmanager
def in_one_array() -> Iterator[None]:
    """Raises InvalidRowsError where a column is too long for an Arrow array, which holds up to 2 GiB of texts."""
    try:
        yield
    except pa.ArrowException as error:
        if _TOO_LONG.search(str(error)) is None:
            raise
        raise InvalidRowsError(
            f"The rows for {TABLE}, or its rows that they change, have a column of more than 2 GiB of texts or bytes, "
            "or of 2,147,483,647 elements of lists, which are too many for one change. Nothing was committed. Change "
            "fewer rows at a time.",
        ) from error


def with_types(columns: Mapping[str, pa.ChunkedArray], wanted: pa.Schema) -> dict[str, pa.ChunkedArray]:
    """Gives a column that has no type, because all in it is null, the type of the wanted column of its name."""
    kinds = {column.name.lower(): column.type for column in wanted}
    return {
        name: nulls(len(column), kinds.get(name.lower(), column.type)) if pa.types.is_null(column.type) else column
        for name, column in columns.items()
    }


def chained(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """One column after the other."""
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks], type=columns[0].type)


def flat(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def counting(count: int) -> pa.Array:
    """0, 1, 2 and so on."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, LONG), count)), 1)


def others(count: int, taken: pa.Array) -> pa.Array:
    """Of 0, 1, 2 up to `count`, those that are not in `taken`."""
    every = counting(count)
    return every.filter(pc.invert(pc.is_in(every, value_set=taken)))


def flags(count: int, *, value: bool) -> pa.Array:
    """The same bool `count` times."""
    return pa.repeat(pa.scalar(value), count)


def nulls(count: int, kind: pa.DataType = LONG) -> pa.ChunkedArray:
    """A column of nulls."""
    return pa.chunked_array([pa.nulls(count, kind)])


def only(values: pa.Array, mask: pa.Array) -> pa.Array:
    """The numbers at which `mask` is true, and null elsewhere."""
    return pc.if_else(is_true(mask), values, NONE)


def is_true(mask: pa.Array) -> pa.Array:
    """The mask with false for null."""
    return pc.fill_null(mask, _FALSE)


def where(mask: pa.Array) -> pa.Array:
    """The indices at which `mask` is true."""
    return pc.indices_nonzero(mask).cast(LONG)


def first(mask: pa.Array | pa.ChunkedArray) -> int | None:
    """The first index at which `mask` is true."""
    at: int = pc.index(mask, pa.scalar(value=True)).as_py()
    return at if at >= 0 else None


def how_many(mask: pa.Array | pa.ChunkedArray) -> int:
    """How often `mask` is true."""
    return pc.sum(mask).as_py() or 0


def member(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """The member `name` of a struct. By its index: Arrow takes a name that begins with a dot for a path."""
    return pc.struct_field(column, [column.type.get_field_index(name)])


def struct_of(columns: dict[str, pa.ChunkedArray]) -> pa.ChunkedArray:
    """One struct of several columns."""
    return pa.chunked_array([pa.StructArray.from_arrays([flat(each) for each in columns.values()], list(columns))])
