from __future__ import annotations

import datetime
from typing import cast

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tablefeed.indextables.log.avro_state import Manifest, TextBounds
from tablefeed.indextables.log.bounds import Operator, bounds_of, may_hold
from tablefeed.model.schema import Primitive

KINDS = {"day": "date", "n": "long", "s": "string", "b": "boolean", "d": "double"}
TYPES = {name: Primitive(kind) for name, kind in KINDS.items()}
HIVE = "__HIVE_DEFAULT_PARTITION__"


def a_manifest(**bounds: tuple[str | None, str | None]) -> Manifest:
    told = {column: TextBounds(low=low, high=high) for column, (low, high) in bounds.items()}
    return Manifest(name="m", path="m", entry_count=1, bounds=told or None)


def kept(manifest: Manifest, column: str, operator: Operator, value: str) -> bool:
    return may_hold((manifest.bounds or {}).get(column), operator, value, kind=TYPES.get(column))


def test_a_number_is_compared_as_a_number_and_as_text() -> None:
    one_to_twelve = a_manifest(n=("1", "12"))

    assert kept(one_to_twelve, "n", "=", "9")  # as numbers it is between
    assert kept(one_to_twelve, "n", "=", "100")  # as text it is between: 1, 100, 12
    assert not kept(one_to_twelve, "n", "=", "50")
    assert kept(one_to_twelve, "n", ">", "50")  # whoever ordered text may have had 100 between
    assert kept(a_manifest(n=("12", "9")), "n", "=", "10000000")  # nobody's order of numbers


@pytest.mark.parametrize(
    ("bounds", "fitting", "others"),
    [(("9", "12"), "<= 9, >= 12", "< 9, > 12, = 100"), (("7", "7"), "= 7, = 07, < 10", "= 8, > 7")],
)
def test_bounds_in_no_order_of_text_or_of_one_number_are_those_of_numbers(
    bounds: tuple[str, str], fitting: str, others: str
) -> None:
    for questions, is_kept in ((fitting, True), (others, False)):
        for operator, value in (question.split() for question in questions.split(", ")):
            assert kept(a_manifest(n=bounds), "n", cast("Operator", operator), value) is is_kept


def test_texts_answer_nothing() -> None:
    # 4a < 5 as texts, 5 < 10 as numbers, 10 < 4a as texts: whoever orders them so finds 4a the least and the greatest.
    assert kept(a_manifest(s=("4a", "4a")), "s", "=", "5")
    assert kept(a_manifest(s=("a%20b", "a%20b")), "s", "=", "a b")
    assert kept(a_manifest(s=("::ffff:10.0.0.9", "::ffff:10.0.0.9")), "s", "=", "10.0.0.9")
    assert kept(a_manifest(s=("a", "c")), "s", "=", "d")


@pytest.mark.parametrize("null", [("5", HIVE), (HIVE, HIVE)])
def test_where_a_partition_is_null_any_may_be_asked_for(null: tuple[str, str]) -> None:
    assert kept(a_manifest(n=null), "n", "=", "1")
    assert kept(a_manifest(day=null), "day", "=", "2024-01-01")


def test_a_double_has_more_than_one_text() -> None:
    assert kept(a_manifest(d=("1.0E7", "1.0E7")), "d", "=", "10000000.0")
    assert not kept(a_manifest(d=("1.0E7", "1.0E7")), "d", "=", "1.0")
    assert kept(a_manifest(d=("4.9E-324", "4.9E-324")), "d", "=", "5e-324")  # one number, as Java and Python spell it
    assert kept(a_manifest(d=("1.0", "2.0")), "d", "=", "3.0")
    assert not kept(a_manifest(d=("9.5", "10.5")), "d", ">", "11.0")
    assert kept(a_manifest(d=("1.0", "NaN")), "d", ">", "11.0")


@pytest.mark.parametrize(
    "manifest",
    [
        a_manifest(),
        a_manifest(n=("1", "2")),
        a_manifest(day=(None, "2024-01-01")),
        a_manifest(day=("2024-01-01", None)),
        a_manifest(day=("2024-01-01", HIVE)),
        a_manifest(day=("yesterday", "yesterday")),
        a_manifest(day=("20240101", "20240101")),
    ],
)
def test_what_cannot_be_compared_is_kept(manifest: Manifest) -> None:
    assert kept(manifest, "day", "=", "1999-01-01")


def test_a_question_that_is_no_value_of_the_column_is_no_reason_to_leave_a_manifest_out() -> None:
    assert kept(a_manifest(n=("1", "1")), "n", "=", "x")
    assert kept(a_manifest(b=("true", "true")), "b", "=", "false")
    assert kept(a_manifest(s=(HIVE, HIVE)), "s", "=", "")
    assert kept(a_manifest(s=("a", "a")), "s", "=", "")
    assert kept(a_manifest(s=("a", "a")), "unknown", "=", "b")


def test_bounds_are_written_where_every_reader_orders_alike() -> None:
    days = [{"day": "2024-01-02"}, {"day": "2024-01-10"}]

    assert bounds_of(days) == {"day": TextBounds(low="2024-01-02", high="2024-01-10")}
    assert bounds_of([{"n": "7"}] * 2) == {"n": TextBounds(low="7", high="7")}
    assert bounds_of([{"n": "2019"}, {"n": "2024"}]) == {"n": TextBounds(low="2019", high="2024")}
    assert bounds_of([{"s": None}, {"s": "a"}]) == {"s": TextBounds(low=HIVE, high="a")}
    assert bounds_of([{}]) is None
    assert bounds_of([]) is None


def test_natural_numbers_whose_orders_differ_have_bounds_that_hold_by_both() -> None:
    assert bounds_of([{"n": str(n)} for n in range(1, 13)]) == {"n": TextBounds(low="1", high="99")}
    assert bounds_of([{"n": "7"}, {"n": "10"}]) == {"n": TextBounds(low="0", high="99")}
    assert bounds_of([{"n": "7"}, {"n": None}]) == {"n": TextBounds(low="7", high=HIVE)}


@pytest.mark.parametrize("other", ["-2", "1e3", "NaN", "0x10", "2d", " 2", "+2", "1234567890123456789", "\u0663"])
def test_a_column_that_readers_order_in_ways_of_their_own_has_no_bounds(other: str) -> None:
    assert bounds_of([{"n": "-1", "s": "a"}, {"n": other, "s": "b"}]) == {"s": TextBounds(low="a", high="b")}


@given(st.sets(st.one_of(st.integers(-30, 3000).map(str), st.decimals(0, 30, places=1).map(str), st.text(max_size=3))))
def test_bounds_enclose_each_value_as_text_and_as_numbers(values: set[str]) -> None:
    bounds = (bounds_of([{"p": value} for value in values]) or {}).get("p")
    for text in (value or HIVE for value in values if bounds):
        assert bounds is not None
        assert (bounds.low or "") <= text <= (bounds.high or "")
        assert _as_java_orders(bounds.low or "", text) <= 0
        assert _as_java_orders(text, bounds.high or "") <= 0


def _as_java_orders(left: str, right: str) -> float:
    """Below zero, zero or above, as IndexTables compares partition values: as numbers, if they are."""
    if left == right:
        return 0
    try:
        return float(left.replace("_", "x")) - float(right.replace("_", "x"))
    except ValueError:
        utf16 = [text.encode("utf-16-be", "surrogatepass") for text in (left, right)]
        return (utf16[0] > utf16[1]) - (utf16[0] < utf16[1])


OPERATORS: dict[Operator, object] = {"=": "__eq__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
numbers = st.integers(-200, 200)
dates = st.dates(datetime.date(1960, 1, 1), datetime.date(2030, 1, 1))


@given(st.lists(numbers, min_size=1, max_size=5), st.sampled_from(list(OPERATORS)), numbers, st.booleans())
def test_no_manifest_with_a_fitting_number_is_left_out(
    held: list[int],
    operator: Operator,
    value: int,
    by_text: bool,  # noqa: FBT001
) -> None:
    ordered = sorted(held, key=str) if by_text else sorted(held)
    manifest = a_manifest(n=(str(ordered[0]), str(ordered[-1])))
    if any(getattr(each, str(OPERATORS[operator]))(value) for each in held):
        assert kept(manifest, "n", operator, str(value))


@given(st.lists(dates, min_size=1, max_size=5), st.sampled_from(list(OPERATORS)), dates)
def test_a_manifest_of_dates_is_kept_if_and_only_if_one_may_fit(
    held: list[datetime.date], operator: Operator, value: datetime.date
) -> None:
    low, high = min(held), max(held)
    fits = [getattr(each, str(OPERATORS[operator]))(value) for each in (low, high)]

    found = kept(a_manifest(day=(str(low), str(high))), "day", operator, str(value))

    assert found is (any(fits) or (operator == "=" and low <= value <= high))


@given(
    st.lists(st.sampled_from(["4a", "5", "10", "1d", "1e5", "a", "", "a b", HIVE]), min_size=1, max_size=4),
    st.sampled_from(["4a", "5", "10", "1d", "a", "", "a b"]),
    st.sampled_from(list(OPERATORS)),
)
def test_no_manifest_with_a_fitting_text_is_left_out(held: list[str], value: str, operator: Operator) -> None:
    texts = [text or HIVE for text in held]
    if any(getattr(each, str(OPERATORS[operator]))(value) for each in held):
        assert kept(a_manifest(s=(min(texts), max(texts))), "s", operator, value)
