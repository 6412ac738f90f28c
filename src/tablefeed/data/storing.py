"""Which casts store arrays of incoming types as a table's types, and for which pairs no cast is needed.

assignment.py decides which pairs of types are allowed. casts.py converts the values, or lenient_casts.py where the
policy is Spark's `legacy`.
"""

from __future__ import annotations

import pyarrow as pa

from tablefeed.data import casts, lenient_casts
from tablefeed.data.assignment import Assignment, Policy
from tablefeed.data.retype import Conversion, conversion, lossless


def assigned(found: pa.DataType, wanted: pa.DataType, how: Assignment) -> Conversion | None:
    """Gives the conversion that stores arrays of type `found` as `wanted`; None: they are stored as they are.

    Raises LossyConversionError where no cast exists. The conversion raises CastError for a value that `wanted` cannot
    hold. Whether the policy allows the pair is not checked here.
    """
    cast = lenient_casts.lenient_cast if how.policy is Policy.LEGACY else casts.cast

    def leaf(found: pa.DataType, wanted: pa.DataType) -> Conversion:
        if _logical(found) == _logical(wanted):  # two Arrow forms of one table type: no value changes
            return lossless(found, wanted)
        return cast(found, wanted, how.zone)

    return conversion(found, wanted, leaf=leaf)


def _logical(kind: pa.DataType) -> object:
    """The table's name for all Arrow forms of one type."""
    if casts.is_text(kind):
        return "string"
    if casts.is_bytes(kind):
        return "binary"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return kind
