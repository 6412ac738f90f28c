"""How arrays of incoming types are stored as a table's: by which casts, and what is none.

Which types may meet is assignment.py's to say, what becomes of values casts.py's, or lenient_casts.py's where the
policy is Spark's `legacy`.
"""

from __future__ import annotations

import pyarrow as pa

from tablefeed.data import casts, lenient_casts
from tablefeed.data.assignment import Assignment, Policy
from tablefeed.data.retype import Conversion, conversion, lossless


def assigned(found: pa.DataType, wanted: pa.DataType, how: Assignment) -> Conversion | None:
    """How arrays of incoming type `found` are stored as `wanted`; None: as they are.

    Raises LossyConversionError where the two have nothing in common, the conversion CastError for a value that
    `wanted` does not hold. Which pairs the policy forbids is not looked at here.
    """
    cast = lenient_casts.cast if how.policy is Policy.LEGACY else casts.cast

    def leaf(found: pa.DataType, wanted: pa.DataType) -> Conversion:
        if _logical(found) == _logical(wanted):  # two forms of one type of a table's: no value changes
            return lossless(found, wanted)
        return cast(found, wanted, how.zone)

    return conversion(found, wanted, leaf=leaf)


def _logical(kind: pa.DataType) -> object:
    """What a table calls all forms of one type."""
    if casts.is_text(kind):
        return "string"
    if casts.is_bytes(kind):
        return "binary"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return kind
