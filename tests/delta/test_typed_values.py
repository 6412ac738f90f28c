from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pytest

from tablefeed.delta.checkpoint import typed_values
from tablefeed.delta.checkpoint.typed_values import (
    parsed_partition_values,
    parsed_stats,
    partition_schema,
    stats_schema,
)
from tablefeed.delta.properties import TableProperties
from tablefeed.model.schema import Array, DataType, Decimal, Field, Primitive, Struct


def a_field(name: str, kind: DataType, physical: str | None = None) -> Field:
    return Field(name, kind, nullable=True, metadata={"delta.columnMapping.physicalName": physical} if physical else {})


def of(**kinds: DataType | str) -> Struct:
    return Struct(tuple(a_field(n, Primitive(k) if isinstance(k, str) else k) for n, k in kinds.items()))


def leaves(schema: Struct, **properties: str) -> dict[str, list[str]]:
    """The dotted names of the leaves of each group of statistics."""
    named = {f"delta.{name}": value for name, value in properties.items()}
    found = stats_schema(schema, TableProperties(named), partition_columns=("p",), has_vectors=False)
    return {group.name: _leaves(group.type) for group in found}


def _leaves(kind: DataType, path: str = "") -> list[str]:
    if not isinstance(kind, Struct):
        return [path[1:]]
    return [leaf for field in kind for leaf in _leaves(field.type, f"{path}.{field.name}")]


TABLE = of(
    id="long",
    flag="boolean",
    st=of(x="integer", ys=Array(Primitive("integer"), contains_null=True)),
    blob="binary",
    p="date",
    s="string",
)


def test_each_column_counts_its_nulls_and_those_with_an_order_have_bounds_but_no_partition_column() -> None:
    bounded, counted = ["id", "st.x", "s"], ["id", "flag", "st.x", "st.ys", "blob", "s"]

    assert leaves(TABLE) == {"numRecords": [""], "minValues": bounded, "maxValues": bounded, "nullCount": counted}


def test_the_columns_that_the_table_asks_for_have_statistics_and_no_others() -> None:
    assert leaves(TABLE, dataSkippingNumIndexedCols="3")["nullCount"] == ["id", "flag", "st.x"]
    assert leaves(TABLE, dataSkippingNumIndexedCols="0") == {"numRecords": [""]}
    dotted = Struct((*of(**{"a.b": "long"}), *of(a=of(b="long"))))
    assert leaves(dotted, dataSkippingStatsColumns="`a.b`")["nullCount"] == ["a.b"]


def test_columns_go_by_the_names_that_files_have() -> None:
    inner = Struct((a_field("x", Primitive("long"), "col-2"),))
    schema = Struct((a_field("st", inner, "col-1"), a_field("p", Primitive("date"), "col-3")))

    assert leaves(schema)["minValues"] == ["col-1.col-2"]
    assert partition_schema(schema, ("p",)).names == ("col-3",)


def test_a_table_with_deletion_vectors_says_how_tight_its_bounds_are() -> None:
    found = stats_schema(of(id="long"), TableProperties({}), partition_columns=(), has_vectors=True)

    assert found.fields[-1] == Field("tightBounds", Primitive("boolean"), nullable=True)


SCHEMA = of(
    minValues=of(
        n="long",
        small="byte",
        d="double",
        f="float",
        dec=Decimal(10, 2),
        s="string",
        dt="date",
        ts="timestamp",
        tn="timestamp_ntz",
    )
)
MIDNIGHT = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
VALUES: dict[str, tuple[str, Any]] = {
    "n": ("9223372036854775807", 2**63 - 1),
    "small": ("-128", -128),
    "d": ("0.1", 0.1),
    "f": ("0.5", 0.5),
    "dec": ("12345678.90", Number("12345678.90")),
    "s": ('"a b"', "a b"),
    "dt": ('"2024-01-01"', datetime.date(2024, 1, 1)),
    "ts": ('"2024-01-01T00:00:00.000Z"', MIDNIGHT),
    "tn": ('"2024-01-01T00:00:00.000"', MIDNIGHT.replace(tzinfo=None)),
}


def parsed(*texts: str | None) -> list[Any]:
    return parsed_stats(pa.array(texts, pa.string()), SCHEMA).to_pylist()  # type: ignore[no-any-return]


def with_minimum(name: str, json_text: str) -> str:
    return f'{{"minValues":{{"{name}":{json_text}}}}}'


@pytest.mark.parametrize("slowly", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_a_bound_is_of_its_columns_type(*, name: str, slowly: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if slowly:
        monkeypatch.setattr(typed_values, "_parsed_quickly", lambda *_: None)
    text, value = VALUES[name]

    (found, none) = parsed(with_minimum(name, text), None)

    assert none is None
    assert found["minValues"] == {**dict.fromkeys(VALUES), name: value}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("d", '"Infinity"', math.inf),
        ("f", '"-Infinity"', -math.inf),
        ("s", r'"a\"\u00e9"', 'a"é'),
        ("ts", '"2024-01-01T01:00:00.000+01:00"', MIDNIGHT),
        ("tn", '"2024-01-01"', MIDNIGHT.replace(tzinfo=None)),
    ],
)
def test_what_writers_spell_in_other_ways_is_read_too(name: str, text: str, value: Any) -> None:
    assert parsed(with_minimum(name, text))[0]["minValues"][name] == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n", "9223372036854775808"),
        ("n", "1.5"),
        ("n", '"1"'),
        ("small", "128"),
        ("dec", "1.255"),
        ("dec", "123456789.00"),
        ("d", '"much"'),
        ("dt", '"2024-13-01"'),
        ("s", "1"),
        pytest.param("s", r'"\ud800"', id="half a surrogate pair"),
        pytest.param("ts", '"2024-01-01T00:00:00.000"', id="a time of no zone"),
        pytest.param("ts", '"1883-01-01T00:00:00.000-07:52"', id="an offset that may have had seconds"),
    ],
)
def test_what_is_no_value_of_the_type_or_would_be_rounded_is_no_bound(name: str, text: str) -> None:
    assert parsed(with_minimum(name, text))[0]["minValues"][name] is None


def test_one_odd_text_changes_nothing_for_the_others() -> None:
    good = json.dumps({"minValues": {"n": 1}})

    found = parsed(good, "no json", '{"minValues":3}', "[]", None, good)

    numbers = [each and each["minValues"] and each["minValues"]["n"] for each in found]
    assert numbers == [1, None, None, None, None, 1]
    assert [each is None for each in found] == [False, True, False, True, True, False]


def test_partition_values_are_of_their_columns_types_and_null_where_they_are_none() -> None:
    values = pa.array(
        [[("p", "2024-01-01"), ("n", "7")], [("p", None), ("n", "x")], [("n", "")]], pa.map_(pa.string(), pa.string())
    )

    found = parsed_partition_values(values, of(p="date", n="integer")).to_pylist()

    assert found == [{"p": datetime.date(2024, 1, 1), "n": 7}, {"p": None, "n": None}, {"p": None, "n": None}]
