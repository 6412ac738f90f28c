"""What becomes of an incoming value is what Spark's CAST makes of it: every pair of types, at the edges."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from support.cast_values import TARGETS, VALUES, column, comparable
from tablefeed.data.assignment import Assignment, Policy, is_assignable
from tablefeed.data.retype import LossyConversionError
from tablefeed.data.storing import assigned
from tablefeed.delta.schema.schema_string import parse_schema
from tablefeed.model.schema import DataType
from tablefeed.model.spark_texts import nearest_single

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONE = "America/New_York"
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""How Spark evaluates where nobody says anything: here it is its values that are asked for."""

REFUSED = "refused"

STRICTER = {
    # Not ASCII digits; hexadecimal; only today has a time alone.
    ("string", "\u0661"),
    ("string", "0x1p3"),
    ("string", "12:30:45"),
    ("string", "T12:30"),
    ("string", "T12"),
    # Exponents of ten digits and more; a zone by its short name.
    ("string", "1e00000000001"),
    ("string", "1e99999999999"),
    ("string", "2024-02-29 12:30:45 PST"),
}
"""Texts that Spark reads and that are refused here by name (model/spark_texts.py)."""

NOT_SURE = {*STRICTER, ("string", "2024-02-29 12:30:45 Nowhere/Land"), ("string", "T12x")}
"""The same, and texts of which we cannot tell that Spark does not: refused where they would be null."""


DECIMALS = [name for name in TARGETS if name.startswith("decimal")]


def same_number(source: str, spark: str, mine: str) -> bool:
    """Whether two spellings are of one float: Java before version 19 gives some a digit more than needed."""
    number = nearest_single if source == "float" else float
    digits = re.compile(r"[-+0-9.Ee]+(?=['\"]?\)?$)")
    texts = [digits.search(spelling.strip("'")) for spelling in (spark, mine)]
    return all(texts) and len({number(Decimal(text[0])) for text in texts if text}) == 1


def model(name: str) -> DataType:
    schema = '{"type":"struct","fields":[{"name":"c","type":"%s","nullable":true,"metadata":{}}]}' % name  # noqa: UP031
    return parse_schema(schema).fields[0].type


def spark_name(name: str) -> str:
    return {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}.get(name, name)


def ours(source: str, target: str, policy: Policy) -> list[str]:
    how = Assignment(policy=policy, zone=ZoneInfo(ZONE))
    values = column(source)
    return [one(values.slice(index, 1), TARGETS[target], how) for index in range(len(values))]


def one(value: pa.Array, wanted: pa.DataType, how: Assignment) -> str:
    try:
        convert = assigned(value.type, wanted, how)
        return comparable(value if convert is None else convert(value))[0]
    except (LossyConversionError, pa.ArrowInvalid):
        return REFUSED


def theirs(session: SparkSession, source: str, cast: str) -> dict[str, list[str]]:
    """By target; by `try_cast` None where a value that is not null is refused, too."""
    from pyspark.sql.pandas.types import from_arrow_schema

    rows = pa.table({"id": list(range(len(column(source)))), "c": column(source)})
    schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    targets = [t for t in TARGETS if is_assignable(model(source), model(t), Policy.ANSI)]
    casts = [f"{cast}(c AS {spark_name(t)}) AS `{t}`" for t in targets]
    frame = session.createDataFrame(rows, schema=schema).coalesce(1).selectExpr("id", *casts)
    found = frame.toArrow().sort_by("id")
    return {t: comparable(found[t].combine_chunks()) for t in targets}


@pytest.fixture
def elsewhere(delta_spark: SparkSession) -> Any:  # a session whose zone has gaps
    told = {"spark.sql.session.timeZone": ZONE, **COMPILED}
    before = {name: str(delta_spark.conf.get(name)) for name in told}
    for name, value in told.items():
        delta_spark.conf.set(name, value)
    yield delta_spark
    for name, value in before.items():
        delta_spark.conf.set(name, value)


@pytest.mark.in_turn
@pytest.mark.parametrize("source", VALUES)
def test_every_value_becomes_what_sparks_cast_makes_of_it_or_is_refused(elsewhere: SparkSession, source: str) -> None:
    hold_against(elsewhere, source, Policy.ANSI)


@pytest.mark.in_turn
@pytest.mark.parametrize("source", VALUES)
def test_by_the_policy_legacy_every_value_becomes_what_sparks_cast_makes_of_it_with_ansi_off(
    elsewhere: SparkSession, source: str
) -> None:
    elsewhere.conf.set("spark.sql.ansi.enabled", "false")
    try:
        hold_against(elsewhere, source, Policy.LEGACY)
    finally:
        elsewhere.conf.set("spark.sql.ansi.enabled", "true")


def hold_against(session: SparkSession, source: str, policy: Policy) -> None:
    """Holds the values of a type against Spark's, in each type that they may become; by ANSI null is as refused."""
    is_legacy = policy is Policy.LEGACY
    values, refusable = [*VALUES[source][1], None], NOT_SURE if is_legacy else STRICTER
    counts = Counter[str]()
    different = []
    for target, found in theirs(session, source, "cast" if is_legacy else "try_cast").items():
        for value, spark, mine in zip(values, found, ours(source, target, policy), strict=True):
            if mine == spark or (not is_legacy and mine == REFUSED and spark == "None"):
                counts["equal"] += 1
            elif mine == REFUSED and (source, value) in refusable:
                counts["refused"] += 1
            elif source in ("float", "double") and target in ("string", *DECIMALS) and same_number(source, spark, mine):
                counts["spelt"] += 1
            else:
                different.append((target, value, spark, mine))
    print(f"{source}: {dict(counts)} different={len(different)}")  # noqa: T201 - the tally
    assert different == []


def test_the_pairs_of_types_that_may_meet_are_delta_sparks(delta_spark: SparkSession) -> None:
    jvm: Any = delta_spark._jvm
    types = {name: jvm.org.apache.spark.sql.types.DataType.fromDDL(spark_name(name)) for name in TARGETS}
    literal = jvm.org.apache.spark.sql.catalyst.expressions.Literal
    coercion = jvm.org.apache.spark.sql.catalyst.analysis.TypeCoercion
    cast = jvm.org.apache.spark.sql.catalyst.expressions.Cast
    different = []
    for source, one_type in types.items():
        for target, other in types.items():
            implicit = coercion.implicitCast(getattr(literal, "default")(one_type), other)  # noqa: B009
            may = source == target or (implicit.isDefined() and implicit.get().dataType().equals(other))
            upcast = may and (source == target or cast.canUpCast(one_type, other))
            mine = [is_assignable(model(source), model(target), policy) for policy in Policy]
            if mine != [may, upcast, may]:
                different.append((source, target, [may, upcast, may], mine))
    assert different == []
