"""Scalars made from bytes are those that pyarrow makes."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from tablefeed.data.scalars import scalar_of

EDGES = {
    pa.int8(): (-128, 0, 127),
    pa.int16(): (-(2**15), 2**15 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.date32(): (-719162, 0, 20_000),
    pa.timestamp("us", "UTC"): (-62_135_596_800_000_000, 0, 1),
    pa.timestamp("us"): (-1, 0, 253_402_300_799_999_999),
    pa.string(): ("", "a", "ä\x00𐍈"),
    pa.bool_(): (True, False),
    pa.float64(): (0.5, -math.inf),
    pa.float32(): (0.5,),
    pa.decimal128(5, 2): (Decimal("123.45"), Decimal("-0.01")),
    pa.binary(): (b"", b"\x00\xff"),
}


@pytest.mark.parametrize("kind", EDGES, ids=str)
def test_a_scalar_is_what_pyarrow_makes_of_the_value(kind: pa.DataType) -> None:
    for value in (*EDGES[kind], None):
        made, expected = scalar_of(value, kind), pa.scalar(value, kind)
        assert (made.type, made.is_valid, made) == (expected.type, expected.is_valid, expected)


def test_an_integer_that_is_too_large_for_its_type_is_refused_as_by_pyarrow() -> None:
    for kind in (pa.int8(), pa.int32(), pa.int64(), pa.date32()):
        with pytest.raises((pa.ArrowInvalid, OverflowError)):
            scalar_of(2**63, kind)
