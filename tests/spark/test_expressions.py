"""Expressions that rules of a table are made of have Spark's own values, row by row, or are refused by name."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from support.expressions import EXPRESSIONS, SCHEMA, rows
from tablefeed.data.sql import Asked, NotExactError, Program, RowFailedError, compile_expressions
from tablefeed.data.sql.kinds import spelt
from tablefeed.delta.schema.schema_string import format_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_REFUSED = 0.15
_AT_ONCE = 60
_MOST_FAILED = 2
"""Failing rows of one expression that Spark is asked about: each is a query of its own."""

_REFUSED_ROWS = {
    "CAST(f64 AS BIGINT)": "the first number above a bigint, which Spark makes the largest one",
    "DATE_ADD(d, i32)": "days beyond the last, where Spark begins again with the first",
    **dict.fromkeys(("ceil(f64)", "floor(f64)", "ceil(f32)"), "beyond a bigint, where not every Spark raises"),
}
"""Where rows of an expression are refused that Spark has values of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ours:
    text: str
    program: Program
    values: dict[int, object]
    failed: tuple[int, ...]


@pytest.fixture
def edges(spark: SparkSession, request: pytest.FixtureRequest) -> SparkSession:
    """A session in the time zone that is asked for, with the rows as a view."""
    from pyspark.sql.types import StructType

    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", request.param)
    session.conf.set("spark.sql.ansi.enabled", "true")
    schema = StructType.fromJson(json.loads(format_schema(SCHEMA)))
    session.createDataFrame(pa.Table.from_batches([rows()]), schema).createOrReplaceTempView("edges")
    return session


@pytest.mark.one_spark
@pytest.mark.slow
@pytest.mark.parametrize("edges", ["UTC"], indirect=True)
def test_every_expression_has_sparks_values_or_is_refused(
    edges: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, refused = _evaluated(EXPRESSIONS, "UTC")

    different = [*_differing_values(edges, ours), *_rows_that_spark_takes(edges, ours)]

    odd, share = len({text for text, _ in different}), len(refused) / len(EXPRESSIONS)
    with capsys.disabled():
        said = f"{len(ours) - odd} equal, {len(refused)} refused ({share:.1%}), {odd} different"
        print(f"\nexpressions: {said}")  # noqa: T201  # a number that is promised
    assert different == []
    assert share < _MOST_REFUSED
    assert len(ours) >= 200


@pytest.mark.parametrize("edges", ["Europe/Berlin", "America/St_Johns"], indirect=True)
def test_every_expression_that_hangs_on_the_time_zone_has_sparks_values_in_zones_that_set_clocks(
    edges: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    zone = str(edges.conf.get("spark.sql.session.timeZone"))
    ours, _ = _evaluated([text for text in EXPRESSIONS if _hangs_on_the_zone(text)], zone)

    different = list(_differing_values(edges, ours))

    with capsys.disabled():
        print(f"\nexpressions in {zone}: {len(ours)}, {len({text for text, _ in different})} different")  # noqa: T201
    assert different == []
    assert len(ours) >= 50


def _hangs_on_the_zone(text: str) -> bool:
    try:
        compile_expressions([Asked(text=text)], SCHEMA, time_zone=None)
    except NotExactError as error:
        return "timeZone" in error.reason
    return False


def _evaluated(texts: Sequence[str], zone: str) -> tuple[list[_Ours], dict[str, str]]:
    ours, refused = [], {}
    for text in texts:
        try:
            program = compile_expressions([Asked(text=text)], SCHEMA, time_zone=zone)
            ours.append(_without_failing_rows(text, program))
        except NotExactError as error:
            refused[text] = error.reason
    return ours, refused


def _without_failing_rows(text: str, program: Program) -> _Ours:
    batch = rows()
    left, failed = list(range(batch.num_rows)), []
    while True:
        try:
            values = _plain(program.evaluate(batch.take(pa.array(left, pa.int64())))[0])
        except RowFailedError as error:
            failed.append(left.pop(error.row))
        else:
            return _Ours(text=text, program=program, values=dict(zip(left, values, strict=True)), failed=tuple(failed))


def _differing_values(session: SparkSession, ours: Sequence[_Ours]) -> Iterator[tuple[str, str]]:
    for start in range(0, len(ours), _AT_ONCE):
        yield from _differing(session, ours[start : start + _AT_ONCE])


def _differing(session: SparkSession, ours: Sequence[_Ours]) -> Iterator[tuple[str, str]]:
    from pyspark.errors import PySparkException

    columns = []
    for index, one in enumerate(ours):
        asked = f"id IN ({', '.join(map(str, one.values)) or -1})"
        sql = one.text if not one.failed else f"CASE WHEN {asked} THEN {one.text} END"
        columns.append(f"{sql} AS v{index}")
    try:
        found = session.sql(f"SELECT {', '.join(columns)} FROM edges ORDER BY id")  # noqa: S608  # ours
        kinds = [field.dataType.simpleString() for field in found.schema]
        table = found.toArrow()
    except PySparkException as error:
        if len(ours) == 1:
            yield ours[0].text, f"Spark raises and ours does not: {str(error)[:200]}"
            return
        half = len(ours) // 2
        yield from _differing(session, ours[:half])
        yield from _differing(session, ours[half:])
        return
    for index, one in enumerate(ours):
        theirs = _plain(table.column(index).combine_chunks())
        kind = spelt(one.program.expressions[0].type)
        if kinds[index] != kind:
            yield one.text, f"Spark's type is {kinds[index]}, ours {kind}"
        odd = [(row, theirs[row], value) for row, value in one.values.items() if theirs[row] != value]
        if odd:
            yield one.text, f"(row, Spark's, ours): {odd[:4]}"


def _rows_that_spark_takes(session: SparkSession, ours: Sequence[_Ours]) -> Iterator[tuple[str, str]]:
    # A query for one row each: compiling it costs more.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    for one in ours:
        if one.text in _REFUSED_ROWS:
            continue
        taken = [row for row in one.failed[:_MOST_FAILED] if _is_taken(session, one.text, row)]
        if taken:
            yield one.text, f"Spark has values of rows {taken}, which ours refuses"


def _is_taken(session: SparkSession, text: str, row: int) -> bool:
    from pyspark.errors import PySparkException

    raised = PySparkException("whatever it is: to convert it takes ten times as long as the query")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyspark.errors.exceptions.captured.convert_exception", lambda _: raised)
        try:
            session.sql(f"SELECT {text} AS v FROM edges WHERE id = {row}").toArrow()  # noqa: S608  # ours
        except PySparkException:
            return False
    return True


def _plain(array: pa.Array) -> list[object]:
    """Values that are equal exactly where all their bits are, but for NaNs."""
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        # Python has no year 10000.
        return list(array.cast(pa.int32() if pa.types.is_date(kind) else pa.int64()).to_pylist())
    if pa.types.is_floating(kind):
        code = "<d" if kind.bit_width == 64 else "<f"
        return [None if v is None else "nan" if v != v else struct.pack(code, v) for v in array.to_pylist()]
    return list(array.to_pylist())
