"""Converts rows of one Arrow schema to another, without losing a value.

Decided once per pair of schemas, applied to many batches. Columns and struct members are matched by name (the exact
one, else the only one that differs in case) or by field id, may be missing (null) and may come in any order. A value
that the wanted type cannot hold exactly is refused, never rounded: type widening is fine, narrowing is checked value
by value.
Names, types and nullability of the result are exactly the wanted ones. No files here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa

from tablefeed.data.oldest import refuse
from tablefeed.data.retype import (
    Conversion,
    Leaf,
    LossyConversionError,
    StoredFields,
    lossless,
    member_conversion,
    nulls,
)

refuse(pa)  # here, because every reader and every writer of rows imports this module

_NO_CONSTANTS: Mapping[str, pa.Scalar] = {}


class Conformer:
    """Turns batches of schema `found` into batches of schema `wanted`. Raises LossyConversionError, also when built.

    `stored` has the shape of `wanted` with the names, or the field ids (`retype.FIELD_ID`), that `found` uses at every
    depth; None: the same names. A column in `constants` takes that value in every row, whatever `found` has under that
    name. `source_names` are the columns of `found` that are used. `leaf` converts types that are not nested; see
    `conversion`.
    """

    def __init__(
        self,
        found: pa.Schema,
        wanted: pa.Schema,
        *,
        stored: pa.Schema | None = None,
        constants: Mapping[str, pa.Scalar] = _NO_CONSTANTS,
        leaf: Leaf = lossless,
    ) -> None:
        self.wanted = wanted
        self._makers: list[Callable[[pa.RecordBatch], pa.Array]] = []
        names: list[str] = []
        there = StoredFields(found)
        for field, stored_field in zip(wanted, wanted if stored is None else stored, strict=True):
            if field.name in constants:
                self._makers.append(_filled(partial(pa.repeat, constants[field.name].cast(field.type))))
            elif (name := there.find(stored_field)) is None:
                self._makers.append(_filled(partial(nulls, kind=field.type)))
            else:
                names.append(name)
                convert = member_conversion(found.field(name).type, field, stored_field.type, leaf)
                self._makers.append(_taken(name, convert, field))
        self.source_names = tuple(names)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch's rows, in order, as the wanted schema."""
        if not self._makers:
            return no_columns(batch.num_rows)
        return pa.RecordBatch.from_arrays([make(batch) for make in self._makers], schema=self.wanted)


def no_columns(num_rows: int) -> pa.RecordBatch:
    """A batch that has rows and no columns, for when only the number of rows is wanted."""
    return pa.record_batch([pa.nulls(num_rows)], names=["row"]).select([])


def _taken(name: str, convert: Conversion | None, field: pa.Field) -> Callable[[pa.RecordBatch], pa.Array]:
    if convert is None:
        return lambda batch: batch.column(name)

    def make(batch: pa.RecordBatch) -> pa.Array:
        array = batch.column(name)
        try:
            return convert(array)
        except pa.ArrowException as error:
            raise LossyConversionError(array.type, field.type, reason=str(error)).inside(field.name) from error

    return make


def _filled(rows: Callable[[int], pa.Array]) -> Callable[[pa.RecordBatch], pa.Array]:
    # Built for the longest batch so far and then sliced: all batches but the last have the same length.
    filled = rows(0)

    def make(batch: pa.RecordBatch) -> pa.Array:
        nonlocal filled
        if len(filled) < batch.num_rows:
            filled = rows(batch.num_rows)
        return filled.slice(0, batch.num_rows)

    return make
