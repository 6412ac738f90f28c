"""HASH: Spark's Murmur3 over the values of a row, one after the other, from the seed 42 on."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pyarrow as pa

from tablefeed.data.sql.calls import Call
from tablefeed.data.sql.terms import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    INT,
    LONG,
    NTZ,
    SHORT,
    STRING,
    TIMESTAMP,
    PythonFunction,
    Term,
    first,
    spelt,
)
from tablefeed.model.murmur import SEED, murmur3
from tablefeed.model.schema import DataType


def hashed(c: Call) -> Term:
    """HASH of any number of values; a null leaves the hash of the values before it unchanged."""
    sql, stage = f"{SEED}::INTEGER", 0
    for term in c.arguments:
        function = _FUNCTIONS.get(term.type)
        if function is None:
            raise c.refuse(f"it is not evaluated here for {spelt(term.type)}")
        name = c.scope.python(function)
        sql, stage = c.scope.bind(f"{name}({term.sql}::{function.takes[0]}, {sql})", max(stage, term.stage))
    return Term(type=INT, sql=sql, fails=first(*(term.fails for term in c.arguments)), stage=stage)


def _over(encoded: Callable[..., bytes]) -> Callable[..., pa.Array]:
    def over(values: pa.ChunkedArray, seeds: pa.ChunkedArray) -> pa.Array:
        pairs = zip(values.to_pylist(), seeds.to_pylist(), strict=True)
        return pa.array([seed if v is None else murmur3(encoded(v), seed) for v, seed in pairs], pa.int32())

    return over


def _function(name: str, takes: str, encoded: Callable[..., bytes]) -> PythonFunction:
    return PythonFunction(name=f"spark_hash_{name}", takes=(takes, "INTEGER"), gives="INTEGER", function=_over(encoded))


_WORD = _function("word", "INTEGER", struct.Struct("<i").pack)
_TWO_WORDS = _function("words", "BIGINT", struct.Struct("<q").pack)
_FUNCTIONS: dict[DataType, PythonFunction] = {
    **dict.fromkeys((BOOLEAN, BYTE, SHORT, INT, DATE), _WORD),
    **dict.fromkeys((LONG, TIMESTAMP, NTZ), _TWO_WORDS),
    STRING: _function("text", "VARCHAR", str.encode),
    BINARY: _function("bytes", "BLOB", bytes),
}
"""How a value is turned into bytes: as in Spark, numbers of up to 32 bits are one word, and longer ones two."""
