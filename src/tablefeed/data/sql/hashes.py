"""HASH: Spark's Murmur3 over the values of a row, one after the other, from the seed 42 on."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pyarrow as pa

from tablefeed.data.sql import kinds
from tablefeed.data.sql.calls import Call
from tablefeed.data.sql.terms import PythonFunction, Term, first
from tablefeed.model.murmur import SEED, murmur3
from tablefeed.model.schema import DataType


def hashed(c: Call) -> Term:
    """HASH of any number of values; a null leaves the hash of the values before it unchanged."""
    sql = f"{SEED}::INTEGER"
    for term in c.arguments:
        known = _ENCODED.get(term.type)
        if known is None:
            raise c.refuse(f"it is not evaluated here for {kinds.spelt(term.type)}")
        kind, encoded = known
        takes = kinds.duck(kind)
        name = f"spark hash of {takes}"
        function = PythonFunction(name=name, takes=(takes, "INTEGER"), gives="INTEGER", function=_over(encoded))
        sql = c.scope.bind(f"{c.scope.python(function)}({term.sql}::{takes}, {sql})")
    return Term(type=kinds.INT, sql=sql, fails=first(*(term.fails for term in c.arguments)))


def _over(encoded: Callable[..., bytes]) -> Callable[..., pa.Array]:
    def over(values: pa.ChunkedArray, seeds: pa.ChunkedArray) -> pa.Array:
        pairs = zip(values.to_pylist(), seeds.to_pylist(), strict=True)
        return pa.array([seed if v is None else murmur3(encoded(v), seed) for v, seed in pairs], pa.int32())

    return over


_ENCODED: dict[DataType, tuple[DataType, Callable[..., bytes]]] = {
    **dict.fromkeys(
        (kinds.BOOLEAN, kinds.BYTE, kinds.SHORT, kinds.INT, kinds.DATE), (kinds.INT, struct.Struct("<i").pack)
    ),
    **dict.fromkeys((kinds.LONG, kinds.TIMESTAMP, kinds.NTZ), (kinds.LONG, struct.Struct("<q").pack)),
    kinds.STRING: (kinds.STRING, str.encode),
    kinds.BINARY: (kinds.BINARY, bytes),
}
"""How a value is turned into bytes: as in Spark, numbers of up to 32 bits are one word, and longer ones two."""
