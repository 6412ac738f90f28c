"""`where` gives the rows that DuckDB gives, and no file of them is pruned."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import given, note, target
from hypothesis import strategies as st

from support.actions import add
from support.files_with_statistics import LEAVES, MEMBERS, SCHEMA, VALUES, a_file, columns, with_physical_names
from tablefeed.errors import IllegalOptionError
from tablefeed.feed.scan.pruning import Pruner
from tablefeed.feed.scan.where import row_filter
from tablefeed.feed.write.replaced_files import ReplacedFiles
from tablefeed.feed.write.replacement import Replaces


@dataclass(frozen=True, slots=True)
class Where:
    """One predicate in Spark's SQL and in DuckDB's, and the columns that it names."""

    spark: str
    duckdb: str
    columns: frozenset[str]


def joined(join: str, *parts: Where) -> Where:
    spark, duckdb = (f" {join} ".join(f"({getattr(part, of)})" for part in parts) for of in ("spark", "duckdb"))
    return Where(spark, duckdb, frozenset().union(*(part.columns for part in parts)))


def negated(part: Where) -> Where:
    return replace(part, spark=f"NOT ({part.spark})", duckdb=f"NOT ({part.duckdb})")


def literals(name: str, value: Any) -> tuple[str, str]:
    """A value of the column `name` in the SQL of Spark and of DuckDB."""
    match value:
        case bool():
            return str(value), str(value)
        case str():
            return f"'{value}'", f"'{value}'"
        case datetime():
            text = value.replace(tzinfo=None).isoformat(" ")
            spark = f"TIMESTAMP_NTZ'{text}'" if value.tzinfo is None else f"TIMESTAMP'{text}Z'"
            return spark, f"TIMESTAMP'{text}'"
        case date():
            return f"DATE'{value}'", f"DATE'{value}'"
        case float():
            return repr(value), f"'{value!r}'::DOUBLE"
        case _:
            text = f"{value:f}" if isinstance(value, Decimal) else str(value)
            scale = len(text.partition(".")[2])
            return text, f"'{text}'::DOUBLE" if name == "double" else f"'{text}'::DECIMAL(38,{scale})"


EQUALITIES, ORDERS = ("=", "<>", "<=>"), ("<", "<=", ">", ">=")


@st.composite
def a_question(draw: st.DrawFn, prefix: str, name: str) -> Where:
    spark, duckdb = (f"s.`{name}`", f's."{name}"') if prefix == "s." else (f"`{prefix}{name}`", f'"{prefix}{name}"')
    columns = frozenset({"s" if prefix == "s." else prefix + name})
    if name == "binary" or draw(st.integers(0, 5)) == 0:
        test = draw(st.sampled_from(["IS NULL", "IS NOT NULL"]))
        return Where(f"{spark} {test}", f"{duckdb} {test}", columns)
    finite = [v for v in VALUES[name] if not isinstance(v, float) or math.isfinite(v)]
    if name in ("long", "short", "double"):
        finite += [Decimal("5.5"), Decimal("-0.5"), 70_000]
    if name == "small":
        finite += [1, Decimal("1.505"), Decimal("-99999999.995"), 10**20]
    one, other = (literals(name, draw(st.sampled_from(finite))) for _ in range(2))
    match draw(st.integers(0, 4)):
        case 0:
            return Where(f"{spark} IN ({one[0]}, {other[0]})", f"{duckdb} IN ({one[1]}, {other[1]})", columns)
        case 1 if name != "boolean":
            among = (f"BETWEEN {low} AND {high}" for low, high in zip(one, other, strict=True))
            return Where(f"{spark} {next(among)}", f"{duckdb} {next(among)}", columns)
        case 2 if name == "boolean":
            return Where(spark, duckdb, columns)
        case _:
            comparison = draw(
                st.sampled_from(["=", "<>", "<=>", *([] if name == "boolean" else ["<", "<=", ">", ">="])])
            )
            same = "IS NOT DISTINCT FROM" if comparison == "<=>" else comparison
            return Where(f"{spark} {comparison} {one[0]}", f"{duckdb} {same} {one[1]}", columns)


@st.composite
def predicates(draw: st.DrawFn) -> list[Where]:
    """Predicates on one kind of columns: in the files, in structs and in partitions, or in partitions alone."""
    name = draw(st.sampled_from([*LEAVES, "double", "float", "string"]))
    prefixes = draw(st.sampled_from([["p_"], ["", "p_", *(["s."] if name in MEMBERS.names else [])]]))
    one = st.recursive(
        st.sampled_from(prefixes).flatmap(lambda prefix: a_question(prefix, name)),
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["AND", "OR"]), inner, inner).map(lambda drawn: joined(*drawn)),
            inner.map(negated),
        ),
        max_leaves=4,
    )
    return draw(st.lists(one, min_size=2, max_size=8))


ORACLE = duckdb.connect(config={"threads": "1"})


def passes_by_duckdb(rows: pa.Table, where: Where) -> list[bool]:
    # DuckDB orders NaN as Spark does. It gets floats as doubles, to which Spark compares, and instants without a zone.
    wide = {pa.float32(): pa.float64(), pa.timestamp("us", "UTC"): pa.timestamp("us")}
    schema = pa.schema([field.with_type(wide.get(field.type, field.type)) for field in rows.schema])
    ORACLE.register("t", rows.cast(schema))
    return [passes for (passes,) in ORACLE.sql("FROM t").project(f"coalesce({where.duckdb}, false)").fetchall()]


@given(st.data(), st.booleans(), predicates())
def test_where_gives_the_rows_that_duckdb_gives_prunes_none_of_them_and_replaces_whole_partitions(
    data: st.DataObject,
    mapped: bool,  # noqa: FBT001
    wheres: list[Where],
) -> None:
    files = data.draw(st.lists(a_file(mapped=mapped), min_size=1, max_size=3))
    schema, of_files = with_physical_names(SCHEMA) if mapped else SCHEMA, columns(mapped=mapped)
    pruned = 0
    for where in wheres:
        try:
            rows = row_filter(where.spark, schema)
        except IllegalOptionError:  # Spark would round a number, or decide by the session's settings
            continue
        pruner = Pruner(rows, schema=schema, columns=of_files)
        chosen = pruner.choose([file.partition for file in files], [file.stats for file in files])
        pruned += sum(not may for may in chosen)
        replaced = ReplacedFiles(Replaces(scope=rows, text=where.spark, partitions=of_files.partitions), [])
        for file, may in zip(files, chosen, strict=True):
            note(f"{where}\n{file}")
            passes = passes_by_duckdb(file.rows, where)
            numbered = file.rows.append_column("row", pa.array(range(len(passes))))
            assert numbered.filter(rows.condition)["row"].to_pylist() == [
                row for row, held in enumerate(passes) if held
            ]
            assert may or not any(passes)
            if where.columns <= of_files.partitions.keys():
                assert may is replaced.reads(add("f", partition_values=file.partition)) is all(passes)
    target(float(pruned))
