"""Reads of splits with a predicate, and by several tasks: the rows of a read of all, from what holds them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.split_tables import log_of, numeric_or_text, split_table
from tablefeed.feed.table import Table
from tablefeed.feed.where import row_filter
from tablefeed.store import Store

pytest.importorskip("tantivy")
pytest.importorskip("fastavro")

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("score", pa.float64()),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("p", pa.string()),
        ("n", pa.int32()),
    ]
)


def rows(*values: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([{name: value.get(name) for name in SCHEMA.names} for value in values], SCHEMA)


def read(store: Store, where: str | None) -> list[str]:
    snapshot = log_of(store).load()
    condition = None if where is None else row_filter(where, snapshot.schema).condition
    return sorted(map(repr, Table(snapshot).to_arrow(filter=condition).to_pylist()))


LITERALS = {
    "id": ["-1", "0", "9", "10", "5.5"],
    "score": ["-0.5", "0", "1e300"],
    "name": ["'a'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'", "'\U0001f600'", "''"],
    "day": ["DATE'1969-12-31'", "DATE'2024-01-09'"],
    "at": ["TIMESTAMP'1969-12-31 23:59:59.999999Z'", "TIMESTAMP'2024-01-01 00:00:00Z'"],
    "p": ["'a b'", "'a%20b'", "'9'", "''", "'__HIVE_DEFAULT_PARTITION__'"],
    "n": ["9", "10", "-1"],
}
BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
A_ROW = st.fixed_dictionaries(
    {
        "id": st.sampled_from([None, -1, 0, 9, 10, 2**62]),
        "score": st.sampled_from([None, -0.5, -0.0, 0.0, 1e300, float("nan")]),
        "name": st.sampled_from([None, "", "a", "x" * 31 + "\U0001f600", "x" * 37, "\U0001f600", "\ue000"]),
        "day": st.sampled_from([None, date(1969, 12, 31), date(2024, 1, 9), date(2024, 1, 10)]),
        "at": st.sampled_from([None, BEFORE_1970, datetime(2024, 1, 1, tzinfo=UTC)]),
        "p": st.sampled_from([None, "", "a b", "a%20b", "9", "10", "b"]),
        "n": st.sampled_from([None, -1, 9, 10]),
    }
)


@st.composite
def predicates(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(list(LITERALS)))
    match draw(st.integers(0, 5)):
        case 0:
            return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
        case 1:
            return f"{name} IN ({', '.join(draw(st.lists(st.sampled_from(LITERALS[name]), min_size=1, max_size=3)))})"
        case _:
            operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
            return f"{name} {operator} {draw(st.sampled_from(LITERALS[name]))}"


WHERE = st.recursive(
    predicates(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda one: f"NOT ({one})"),
    ),
    max_leaves=3,
)


@settings(max_examples=15)
@given(
    st.lists(st.lists(A_ROW, min_size=1, max_size=3), min_size=1, max_size=3),
    st.lists(WHERE, min_size=1, max_size=5),
    st.sampled_from([(), ("p",), ("n",), ("day", "p")]),
)
def test_rows_of_a_predicate_are_those_of_reading_all(
    appends: list[list[dict[str, Any]]], asked: list[str], partition_by: Sequence[str]
) -> None:
    bounds_of = numeric_or_text if partition_by else lambda _: None
    store = split_table(*(rows(*each) for each in appends), partition_by=partition_by, bounds_of=bounds_of)
    whole = Table(log_of(store).load()).to_arrow()

    for where in asked:
        condition = row_filter(where, log_of(store).load().schema).condition
        assert read(store, where) == sorted(map(repr, whole.filter(condition).to_pylist()))
