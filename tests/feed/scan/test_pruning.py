"""Which files a filter asks for, told from partition values and statistics alone."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablefeed.data.predicate import columns_in
from tablefeed.delta.columns import FILE_COLUMNS
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.feed.scan.arrow_filter import predicate, read_filter
from tablefeed.feed.scan.delta_task import DeltaColumns
from tablefeed.feed.scan.pruning import Pruner
from tablefeed.feed.scan.task import PartitionColumn
from tablefeed.model import schema as model
from tablefeed.model.schema import Array, DataType, Field, Map, Primitive, Struct

x, f, ok, day, name = (pc.field(column) for column in ("x", "f", "ok", "day", "name"))


def field(column: str, kind: DataType | str, **metadata: object) -> Field:
    return Field(column, Primitive(kind) if isinstance(kind, str) else kind, nullable=True, metadata=metadata)


SCHEMA = Struct(
    (
        field("x", "long"),
        field("f", "double"),
        field("name", "string"),
        field("ok", "boolean"),
        field("d", model.Decimal(10, 2)),
        field("s", Struct((field("x", "integer"), field("list", Array(Primitive("long"), contains_null=True))))),
        field("list", Array(Primitive("long"), contains_null=True)),
        field("nothing", "void"),
        field("variant", "variant"),
        field("day", "date"),
        field("region", "string"),
    )
)
COLUMNS = DeltaColumns(
    partitions={
        "day": PartitionColumn(physical_name="day", type=Primitive("date")),
        "region": PartitionColumn(physical_name="region", type=Primitive("string")),
    }
)


def stats(low: Mapping[str, object], high: Mapping[str, object], nulls: Mapping[str, object] | None = None) -> str:
    """Statistics of a file of ten rows."""
    text = {"numRecords": 10, "minValues": low, "maxValues": high, "nullCount": nulls or {}}
    return orjson.dumps(text).decode()


def may_match(condition: pc.Expression, text: str | None = None, **values: str | None) -> bool:
    """Whether the one file may match that has these statistics and partition values."""
    (answer,) = pruner(condition).choose([values], [text])
    return answer


def pruner(condition: pc.Expression, schema: Struct = SCHEMA, columns: DeltaColumns = COLUMNS) -> Pruner:
    return Pruner(read_filter(condition, to_arrow(schema)), schema=schema, columns=columns)


FIVE_TO_NINE = stats({"x": 5, "f": 5.0, "name": "e", "d": 5.0}, {"x": 9, "f": 9.0, "name": "i", "d": 9.0}, {"x": 0})


@pytest.mark.parametrize(
    ("condition", "may"),
    [
        (x < 5, False),
        (x <= 5, True),
        (x > 9, False),
        (x >= 9, True),
        (x == 4, False),
        (x == 7, True),
        (x == 10, False),
        (x != 7, True),
        (pc.scalar(9) < x, False),
        (pc.scalar(9) <= x, True),
        (~(x >= 5), False),
        (~(x > 5), True),
        (~(x != 4), False),
        ((x < 5) | (x > 9), False),
        ((x < 5) | (x > 8), True),
        ((x > 5) & (x < 5), False),
        (~((x >= 5) & (x <= 9)), False),
        ((x > 5) & (x < 6), True),
        (x > 9.5, False),
        (x < Decimal("4.9"), False),
        (x > pa.scalar(9, pa.int8()), False),
        (x.isin([1, 2, 10]), False),
        (x.isin([1, 7]), True),
        (x.isin([]), False),
        (~x.isin([7]), True),
        (x.isin([None, 1]), False),
        (x.is_null(), False),
        (x.is_valid(), True),
        (~x.is_valid(), False),
        (x == pa.scalar(None, pa.int64()), False),
        (~(x == pa.scalar(None, pa.int64())), False),
        (name < "e", False),
        (name >= "j", False),
        (name == "f", True),
        (pc.field("d") > Decimal("9.00"), False),
        (pc.field("d") > pa.scalar(9, pa.int8()), False),
        (pc.scalar(value=False), False),
        (pc.scalar(value=True), True),
        (pc.scalar(value=True) & (x > 9), False),
        (pc.scalar(pa.scalar(None, pa.bool_())) | (x > 9), False),
    ],
    ids=str,
)
def test_bounds_rule_out_what_lies_outside_them(condition: pc.Expression, may: bool) -> None:  # noqa: FBT001
    assert may_match(condition, FIVE_TO_NINE) is may


@pytest.mark.parametrize(
    "condition",
    [
        pc.starts_with(name, "z"),
        pc.utf8_length(name) > 100,
        x + 1 > 100,
        x.isin(pa.array(["100", None], pa.string_view())),
        x.cast("string") == "100",
        x == f,
        x.cast(pa.int32()) > 100,
        pc.if_else(x > 100, x < 100, x > 100),
        pc.is_null(x > 100),
        pc.coalesce(x, 0) > 100,
        pc.field("s").is_null(),
        pc.field("list").is_null(),
        pc.field("s", "list").is_null(),
        pc.field("nothing").is_valid(),
        pc.field("variant").is_valid(),
        pc.field("unknown") > 100,
        pc.field("x", "unknown") > 100,
        pc.field(0) > 100,
        pc.field("s", "x") == 100,
    ],
    ids=str,
)
def test_what_is_not_understood_may_match_alone_and_beside_what_is(condition: pc.Expression) -> None:
    text = stats(
        {"x": 5, "name": "e"}, {"x": 9, "name": "i"}, {"x": 0, "s": 0, "list": 0, "nothing": 10, "variant": 10}
    )

    assert may_match(condition, text)
    assert may_match(~condition, text)
    assert may_match(condition | (x > 9), text)
    if "FieldPath" not in str(condition):
        assert not may_match(condition & (x > 9), text)


@pytest.mark.parametrize(
    ("condition", "may"),
    [
        (day == date(2024, 1, 1), True),
        (day != date(2024, 1, 1), False),
        (day > date(2024, 1, 1), False),
        (day.isin([date(2024, 1, 2)]), False),
        (~day.isin([date(2024, 1, 1)]), False),
        (day.is_null(), False),
        (pc.year(day) == 2024, True),
        (pc.year(day) == 2023, False),
        (pc.utf8_upper(pc.field("region")) == "EU", True),
        (pc.utf8_upper(pc.field("region")) == "eu", False),
        ((pc.field("region") == "eu") & (pc.month(day) == 2), False),
        ((day == date(2024, 1, 1)) & (x > 9), False),
        ((day == date(2024, 1, 1)) | (x > 9), True),
        ((day == date(2024, 1, 2)) | (x > 9), False),
        ((day == date(2024, 1, 2)) | pc.starts_with(name, "z"), True),
        ((day == date(2024, 1, 2)) & pc.starts_with(name, "z"), False),
    ],
    ids=str,
)
def test_a_partition_value_is_known_and_any_function_of_partition_columns_alone(
    condition: pc.Expression,
    may: bool,  # noqa: FBT001
) -> None:
    assert may_match(condition, FIVE_TO_NINE, day="2024-01-01", region="eu") is may


FLOATS = stats({"f": 5.0, "x": 5}, {"f": 9.0, "x": 9}, {"f": 0, "x": 0})
SEVEN = stats({"x": 7, "f": 7.0}, {"x": 7, "f": 7.0}, {"x": 0, "f": 0})
NO_NULL, NULLS, ALL_NULL = (stats({}, {}, {"x": nulls, "ok": nulls}) for nulls in (0, 3, 10))
MEMBER = stats({"s": {"x": 1}, "x": 5}, {"s": {"x": 2}, "x": 9})
LARGE = stats({"x": 2**53 + 1}, {"x": 2**62 + 1})


@pytest.mark.parametrize(
    ("text", "condition", "may"),
    [
        # A float may be NaN whatever its bounds.
        (FLOATS, f < 5, False),
        (FLOATS, ~(f < 5), True),
        (FLOATS, f > 9.1, False),
        (FLOATS, ~(f <= 9), True),
        (FLOATS, f == 4, False),
        (FLOATS, f != 7, True),
        (FLOATS, ~(f != 4), False),
        (FLOATS, f == math.nan, False),
        (FLOATS, f != math.nan, True),
        (FLOATS, ~(f <= math.nan), True),
        (FLOATS, f.isin([math.nan]), True),
        (FLOATS, f.isin([4.0]), False),
        (FLOATS, f.is_null(nan_is_null=True), True),
        (FLOATS, ~f.is_null(nan_is_null=True), True),
        # A number that is NaN is less than none, whatever the column.
        (FLOATS, x <= math.nan, False),
        (FLOATS, ~(x <= math.nan), True),
        # Equal bounds rule out what differs, unless NaN is among them.
        (SEVEN, x != 7, False),
        (SEVEN, ~(x == 7), False),
        (SEVEN, f != 7, True),
        # Nulls match only where they are asked for.
        *((text, x.is_null(), may) for text, may in ((NO_NULL, False), (NULLS, True), (ALL_NULL, True), (None, True))),
        *(
            (text, condition, text is not ALL_NULL)
            for text in (NO_NULL, NULLS, ALL_NULL, None)
            for condition in (x.is_valid(), x > 5, ~(x > 5), x.isin([5]))
        ),
        *((text, x.isin([5, None]), True) for text in (NO_NULL, NULLS, ALL_NULL, None)),
        (ALL_NULL, ~x.is_null() & (x != 5), False),
        # A boolean has nulls and no bounds.
        (stats({"ok": False}, {"ok": False}, {"ok": 0}), ok, True),
        (stats({"ok": False}, {"ok": False}, {"ok": 0}), ~ok, True),
        (ALL_NULL, ok, False),
        (ALL_NULL, ~ok, False),
        # A member is bounded as a column is.
        (MEMBER, pc.field("s", "x") > 2, False),
        (MEMBER, pc.field("s", "x") > 1, True),
        (MEMBER, x > 2, True),
        # Bounds that a cast of the filter does not survive rule nothing out.
        (LARGE, x < 5.5, True),
        (LARGE, x < 5, False),
    ],
    ids=str,
)
def test_statistics_of_nulls_floats_booleans_and_members_rule_out_what_is_certain(
    text: str | None,
    condition: pc.Expression,
    may: bool,  # noqa: FBT001
) -> None:
    assert may_match(condition, text) is may


@pytest.mark.parametrize("text", [None, ""])
def test_a_partition_value_that_is_null_is_null(text: str | None) -> None:
    region = pc.field("region")

    assert may_match(region.is_null(), region=text)
    assert not may_match(region == "eu", region=text)
    assert not may_match(~(region == "eu") | (x > 9), FIVE_TO_NINE, region=text)


def test_a_partition_value_that_is_not_there_or_cannot_be_read_may_be_any() -> None:
    for condition in (day == date(2024, 1, 1), pc.year(day) == 2024, (day == date(2024, 1, 1)) & (x < 9)):
        assert may_match(condition, FIVE_TO_NINE, region="eu")
        assert may_match(condition, FIVE_TO_NINE, day="yesterday")
        assert not may_match(condition & (x > 9), FIVE_TO_NINE, day="yesterday")
        assert not may_match(condition, FIVE_TO_NINE, day="2023-01-01")


def test_statistics_are_not_parsed_of_files_that_partition_values_rule_out() -> None:
    asked = pruner((day == date(2024, 1, 1)) & (x > 9))
    days = [{"day": f"2024-01-0{n}"} for n in (1, 2, 1, 3, 1)]

    answers = asked.choose(days, [FIVE_TO_NINE, None, None, "{", stats({"x": 1}, {"x": 10})])

    assert list(answers) == [False, False, True, False, True]


TEXTS = Primitive("string")


@pytest.mark.parametrize("column", ["key", "value", "item", "l"])
@pytest.mark.parametrize(
    "other", [Map(TEXTS, TEXTS, value_contains_null=True), Array(TEXTS, contains_null=True), "string"]
)
def test_nulls_counted_among_the_parts_of_lists_and_maps_are_not_those_of_columns(
    column: str, other: DataType | str
) -> None:
    # delta-rs 1.5 counts no null for the column `item` of a file where no list of pyarrow's has one, is null or empty.
    schema = Struct((field(column, "boolean"), field("other", other)))
    is_sure = other == "string"

    def answer(condition: pc.Expression, nulls: int) -> bool:
        text = stats({}, {}, {column: nulls})
        return pruner(condition, schema, DeltaColumns(partitions={})).choose([{}], [text])[0]

    assert answer(pc.field(column).is_null(), 0) is not is_sure
    assert answer(pc.field(column), 10) is not is_sure


def test_mapped_columns_are_found_by_their_physical_names() -> None:
    physical = "delta.columnMapping.physicalName"
    inner = Struct((field("x", "long", **{physical: "col-2"}),))
    schema = Struct((field("x", "long", **{physical: "col-1"}), field("s", inner, **{physical: "col-3"})))
    mapped = DeltaColumns(
        partitions={}, stored={f.name: pa.field(str(f.metadata[physical]), pa.int64()) for f in schema}
    )
    text = stats(
        {"col-1": 1, "x": 5, "col-3": {"col-2": 1}, "s": {"x": 5}}, {"col-1": 2, "x": 9, "col-3": {"col-2": 2}}
    )

    def answer(condition: pc.Expression, columns: DeltaColumns) -> bool:
        return pruner(condition, schema, columns).choose([{}], [text])[0]

    assert not answer(x > 2, mapped)
    assert answer(x < 5, mapped)
    assert not answer(pc.field("s", "x") > 2, mapped)
    assert not answer(x < 5, DeltaColumns(partitions={}))


@pytest.mark.parametrize(
    ("kind", "low", "high", "condition", "may"),
    [
        # Statistics that were written when the column was of the narrower type.
        ("double", 5, 9, pc.field("c") > 9.5, False),
        ("double", 0.1, 0.1, pc.field("c") == pa.scalar(0.1, pa.float32()).as_py(), True),
        (model.Decimal(12, 2), 5, 9, pc.field("c") > Decimal("9.01"), False),
        (model.Decimal(12, 2), 5, 9, pc.field("c") == Decimal("9.00"), True),
        ("timestamp_ntz", "2024-01-01", "2024-01-02", pc.field("c") > datetime(2024, 1, 2, 1), False),  # noqa: DTZ001
        ("long", 5, 2**31 - 1, pc.field("c") > 2**31, False),
    ],
    ids=str,
)
def test_statistics_older_than_a_wider_type_bound_it(
    kind: DataType | str,
    low: object,
    high: object,
    condition: pc.Expression,
    may: bool,  # noqa: FBT001
) -> None:
    schema = Struct((field("c", kind),))

    assert (
        pruner(condition, schema, DeltaColumns(partitions={})).choose([{}], [stats({"c": low}, {"c": high})])[0] is may
    )


def test_a_long_set_and_a_long_chain_are_judged() -> None:
    even = x.isin(list(range(10, 100_000, 2)))
    chain = functools.reduce(operator.or_, (x > n for n in range(10, 2000)))

    assert not may_match(even, FIVE_TO_NINE)
    assert may_match(even, stats({"x": 5}, {"x": 10}))
    assert may_match(even, stats({"x": 11}, {"x": 11}))  # within a stretch of the set
    assert not may_match(chain, FIVE_TO_NINE)
    assert may_match(chain, stats({"x": 5}, {"x": 11}))


def test_a_filter_of_parts_within_parts_beyond_what_python_follows_rules_nothing_out() -> None:
    nested = functools.reduce(lambda inner, n: ~((inner & (x > n)) | (x < -n)), range(1000), x > 9)

    assert may_match(nested, FIVE_TO_NINE)
    assert may_match(nested & (x > 9), FIVE_TO_NINE)


def test_statistics_are_asked_for_of_columns_in_parts_that_are_understood() -> None:
    condition = predicate(
        ((x > 5) & pc.starts_with(name, "z"))
        | ~(f.is_null() | ok)
        | (pc.scalar(5) < pc.field("s", "x"))
        | (pc.add(pc.field("d"), 1) > 5)
        | (day.isin([date(2024, 1, 1)]) & pc.if_else(pc.field("region") == "eu", day, day).is_valid())
    )

    assert condition is not None
    judged = {column.path for column in columns_in(condition, understood=True)}
    assert judged == {("x",), ("f",), ("ok",), ("s", "x"), ("day",)}


def test_files_are_judged_thousands_at_a_time_and_keep_their_order() -> None:
    batches = [a_batch(range(start, start + 4_000)) for start in range(0, 24_000, 4_000)] + [a_batch(range(0))]

    kept = list(pruner(x >= 5_000).matching(batches))

    assert [path for batch in kept for path in batch["log_path"].to_pylist()] == [str(n) for n in range(5_000, 24_000)]
    assert all(batch["stats"].null_count == batch.num_rows for batch in kept)


def a_batch(numbers: range) -> pa.RecordBatch:
    columns: dict[str, list[Any]] = {name: [None] * len(numbers) for name in FILE_COLUMNS.names}
    columns["log_path"] = [str(n) for n in numbers]
    columns["partition_values"] = [[] for _ in numbers]
    columns["stats"] = [stats({"x": n}, {"x": n}) for n in numbers]
    return pa.RecordBatch.from_pydict(columns, schema=FILE_COLUMNS)
