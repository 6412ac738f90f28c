"""Expressions are evaluated together, in the order of the rows, and fail where Spark's order of evaluation fails."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from tablefeed.data.sql import Asked, NotExactError, Program, RowFailedError, compile_expressions
from tablefeed.model.schema import Field, Primitive, Struct

_SCHEMA = Struct(
    (
        Field("Id", Primitive("long"), nullable=True),
        Field("s", Primitive("string"), nullable=True),
        Field("t", Primitive("timestamp"), nullable=True),
        Field("odd `name", Primitive("integer"), nullable=True),
    )
)


def _program(*texts: str, zone: str | None = None) -> Program:
    return compile_expressions([Asked(text=text) for text in texts], _SCHEMA, time_zone=zone)


def _rows(*ids: int | None) -> pa.RecordBatch:
    return pa.record_batch({"Id": pa.array(ids, pa.int64()), "s": pa.array([str(i) for i in ids])})


def test_every_row_has_its_value_in_its_place_beyond_one_vector_of_the_engine() -> None:
    ids = list(range(100_000))

    (twice,) = _program("Id * 2").evaluate(_rows(*ids))

    assert twice == pa.array([i * 2 for i in ids])


def test_expressions_of_one_program_each_have_their_own_columns() -> None:
    program = _program("id > 0", "s = '1'", "`odd ``name` = 1", "1 = 1")

    assert [e.paths for e in program.expressions] == [(("Id",),), (("s",),), (("odd `name",),), ()]


def test_an_expression_without_columns_has_a_value_for_each_row() -> None:
    assert _program("1 + 1").evaluate(_rows(7, 8)) == [pa.array([2, 2], pa.int32())]


def test_the_first_row_that_fails_is_told() -> None:
    with pytest.raises(RowFailedError, match="Id \\+ 1: a result is out of the range") as caught:
        _program("Id + 1").evaluate(_rows(1, 2**63 - 1, 2**63 - 1))

    assert (caught.value.row, caught.value.text) == (1, "Id + 1")


@pytest.mark.parametrize(
    "text",
    [
        "Id = 0 OR 1 / Id > 0",
        "Id <> 0 AND 1 / Id > 0",
        "CASE WHEN Id = 0 THEN 0 ELSE 1 DIV Id END",
        "coalesce(Id, 1 DIV (Id - Id))",
        "if(Id = 0, 1.0, 1 / Id)",
        "nullif(Id, 0) / 1",
        "NULL + 1 DIV 0",
    ],
)
def test_what_spark_does_not_look_at_does_not_fail(text: str) -> None:
    assert len(_program(text).evaluate(_rows(0, 1))[0]) == 2


@pytest.mark.parametrize(
    "text", ["1 DIV Id > 0 AND Id <> 0", "coalesce(1 DIV Id, 0)", "1 DIV Id IS NULL", "nullif(s, s) || 1 DIV Id"]
)
def test_what_spark_looks_at_first_fails_first(text: str) -> None:
    with pytest.raises(RowFailedError, match="a division by zero"):
        _program(text).evaluate(_rows(0))


def test_a_program_is_evaluated_by_any_thread() -> None:
    program, found = _program("upper(s) = s"), list[pa.Array]()

    thread = threading.Thread(target=lambda: found.extend(program.evaluate(_rows(1, 2))))
    thread.start()
    thread.join()

    assert found == [pa.array([True, True])]


@pytest.mark.parametrize(
    "text", ["year(t) = 2024", "t > '2024-01-01'", "cast(t AS DATE) = s", "t = '2024-01-01 00:00'"]
)
def test_what_hangs_on_an_unknown_time_zone_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(NotExactError, match="set the option timeZone"):
        _program(text)


@pytest.mark.parametrize("text", ["t > TIMESTAMP'2024-01-01 00:00:00Z'", "t > '2024-01-01 00:00:00+01:00'", "t = t"])
def test_what_does_not_hang_on_the_time_zone_needs_none(text: str) -> None:
    assert _program(text).expressions[0].type == Primitive("boolean")


@pytest.mark.parametrize("zone", ["UTC", "+00:00", "GMT", "Etc/UTC", "UTC+0"])
def test_zones_without_an_offset_are_alike(zone: str) -> None:
    batch = pa.record_batch({"t": pa.array([-1], pa.timestamp("us", tz="UTC"))})

    assert _program("hour(t)", zone=zone).evaluate(batch) == [pa.array([23], pa.int32())]


def test_two_columns_whose_names_differ_in_case_alone_are_told_apart_by_the_exact_one() -> None:
    twins = Struct((Field("a", Primitive("integer"), nullable=True), Field("A", Primitive("string"), nullable=True)))

    with pytest.raises(NotExactError, match="there is no b"):
        compile_expressions([Asked(text="b = 1")], twins, time_zone=None)
    assert compile_expressions([Asked(text="A")], twins, time_zone=None).expressions[0].type == Primitive("string")


def test_a_column_with_the_name_of_a_function_without_parentheses_comes_first() -> None:
    schema = Struct((Field("Current_Date", Primitive("date"), nullable=True),))
    asked = [Asked(text=text) for text in ("current_date", "current_date()", "current_timestamp")]

    program = compile_expressions(asked, schema, time_zone="UTC", now_us=0)

    assert [expression.paths for expression in program.expressions] == [(("Current_Date",),), (), ()]


def test_an_expression_that_nests_too_deep_is_refused() -> None:
    with pytest.raises(NotExactError):
        _program("Id" + " + Id" * 5000)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("md5(s) = s", "the function md5"),
        ("sha2(s, 256) = s", "the function sha2"),
        ("hex(s) = s", "the function hex"),
        ("lpad(s, 3, '0') = s", "the function lpad"),
        ("sqrt(Id) > 1", "the function sqrt"),
        ("add_months(current_date(), 1) > '2024-01-01'", "the function add_months"),
        ("from_unixtime(Id) = s", "the function from_unixtime"),
        ("unix_timestamp(s) > 0", "cast it to a timestamp"),
        ("unix_seconds(s) > 0", "string is not accepted as timestamp"),
        ("t > t - INTERVAL 1 DAY", "INTERVAL '1' DAY"),
        ("Id > rand()", "the function rand"),
        ("Id & 1 = 1", "bitwiseand"),
        ("~Id = 1", "bitwisenot"),
        ("trim(LEADING 'a' FROM s) = s", "its POSITION"),
        ("date_trunc('MILLISECOND', t) = t", "TRUNC to MILLISECOND"),
        ("s RLIKE 'a|b'", "patterns are evaluated of"),
        (f"s RLIKE '[{'a-z' * 40}é]'", "patterns are evaluated of"),  # in no time
        ("CAST(t AS INT) = 1", "CAST\\(timestamp AS int\\)"),
        ("CAST(s = 'a' AS TIMESTAMP) = t", "CAST\\(boolean AS timestamp\\)"),
        ("-CAST(Id AS DECIMAL(35,0)) < 0", "34 digits"),
        ("greatest(t, '2024-01-01') = t", "does not compare a text with timestamp"),
        ("least(Id, '1') = 1", "does not compare a text with bigint"),
        ("isnan(s = 'a')", "boolean is no number"),
        ("INT '5' = Id", "use CAST"),
        ("3.4028235E38F > Id", "above every float"),
        ("1.79769313486231571e308 > Id", "above every double"),
        ("DECIMAL 'x' = Id", "no number"),
        (". 0.1F = Id", "no number"),
        ("s NOT LIKE 0.1F ('%a%')", "datatype"),  # which sqlglot cannot write as SQL
    ],
)
def test_what_is_not_evaluated_is_refused_by_its_name_before_a_row_is_seen(text: str, named: str) -> None:
    with pytest.raises(NotExactError, match=named):
        compile_expressions([Asked(text=text)], _SCHEMA, time_zone="UTC", now_us=0)


def test_letters_are_mapped_by_unicode_in_full_and_by_no_language() -> None:
    batch = pa.record_batch({"s": ["straße", "ﬁn", "ΑΣ", "İ", "ǆ", None, ""]})

    upper, lower = _program("upper(s)", "lower(s)").evaluate(batch)

    assert upper.to_pylist() == ["STRASSE", "FIN", "ΑΣ", "İ", "Ǆ", None, ""]  # Greek
    assert lower.to_pylist() == ["straße", "ﬁn", "ας", "i\u0307", "ǆ", None, ""]  # Greek


@pytest.mark.parametrize("character", ["\u0378", "\u019b", "\u0264"])
def test_a_character_that_a_newer_unicode_maps_otherwise_refuses_its_row(character: str) -> None:
    with pytest.raises(RowFailedError, match="a character that is not evaluated here") as caught:
        _program("upper(s)").evaluate(pa.record_batch({"s": ["a", f"a{character}"]}))

    assert caught.value.row == 1


def test_the_last_in_a_class_of_a_pattern_may_be_a_minus() -> None:
    batch = pa.record_batch({"s": ["a.b-c@d.com", "a b@d.com"]})

    (found,) = _program("s RLIKE '^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+[.][a-zA-Z]{2,}$'").evaluate(batch)

    assert found.to_pylist() == [True, False]
