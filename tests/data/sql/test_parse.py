"""A text becomes a tree only where Spark's grammar would make the same one of it."""

from __future__ import annotations

import pytest

from tablefeed.data.sql import NotExactError
from tablefeed.data.sql.parse import parse


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 AND b = 2 AND c = 3 OR d",
        "NOT a = 1 AND b",
        "a + b * c - d / e % f",
        "-a + b",
        "a BETWEEN 1 AND 2 AND b",
        "a + 1 IN (1, 2) OR b IS NOT NULL",
        "a || 'x' || b",
        "a = b = c",
        "NOT a IN (1)",
        "a LIKE 'x%' AND b NOT LIKE 'y'",
        "(a OR b) AND NOT (c OR d)",
        "a > 1 IS TRUE",
        "a <=> b = c",
        "a > b <=> c",
        "a <=> (b > c)",
        "a <=> b IS NULL",
        "a IS NOT DISTINCT FROM b AND c",
    ],
)
def test_operators_that_bind_as_in_spark_need_no_parentheses(text: str) -> None:
    assert parse(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "a || b + 1",  # Spark: (a || b) + 1
        "a = b < c",  # Spark: (a = b) < c
        "a < b = c <> d > e",
        "a <=> b > c",  # Spark: (a <=> b) > c
        "a <=> b IN (c)",
        "a <=> b LIKE 'x'",
        "a <=> b BETWEEN c AND d",
        "a IS NOT DISTINCT FROM b <=> c",  # Spark: a IS NOT DISTINCT FROM (b <=> c)
    ],
)
def test_operators_that_sqlglot_binds_otherwise_are_refused_until_there_are_parentheses(text: str) -> None:
    with pytest.raises(NotExactError, match="put parentheses around them"):
        parse(text)


@pytest.mark.parametrize("text", ["a::int", "CAST(a AS VARCHAR(3)) = 'x'", "a = 'x' COLLATE UTF8_LCASE"])
def test_words_whose_meaning_sqlglot_drops_are_refused(text: str) -> None:
    with pytest.raises(NotExactError, match="write it differently"):
        parse(text)


def test_a_backslash_is_refused_which_spark_reads_by_a_setting() -> None:
    with pytest.raises(NotExactError, match="backslash"):
        parse("s RLIKE '\\\\d'")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "a AND +",
        "a = ",
        "a; b",
        "SELECT 1",
        "a,",
        "'open",
        "a = b AS c",
        "a BETWEEN b = c AND d",
        "(" * 400 + "a" + ")" * 400,
    ],
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(NotExactError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a in ( )", "IN has an empty list"),
        ("a IN (1, )", "ends with a comma"),
        ("greatest(a, b,) > 1", "ends with a comma"),
        ("a NOT NULL", "IS NOT NULL"),
        ("a IS NOT DISTINCT FROM b AND c NOTNULL", "IS NOT NULL"),
        ("CAST(a AS text) = '1'", "no type TEXT"),
        ("TRUE = CAST(a AS bool)", "no type BOOL"),
        ("CAST(a AS DOUBLE PRECISION) > 1", "no type DOUBLE PRECISION"),
    ],
)
def test_what_only_sqlglot_reads_is_refused(text: str, why: str) -> None:
    with pytest.raises(NotExactError, match=why):
        parse(text)
    assert parse("a IN (',', ')') OR f() > 1 OR NOT NULL OR CAST(a AS DECIMAL(3, 1)) IS NOT NULL") is not None


@pytest.mark.parametrize(
    "text", ["a.as = 1", "a.distinct IS NULL", "struct(a AS b)", "CAST(a AS INTERVAL DAY) IS NULL"]
)
def test_what_spark_reads_is_not_taken_for_what_only_sqlglot_reads(text: str) -> None:
    assert parse(text) is not None


def test_a_function_keeps_the_name_that_was_written() -> None:
    assert parse("nvl(DATE_ADD(d, 1), d)").sql("spark") == "NVL(DATE_ADD(d, 1), d)"
