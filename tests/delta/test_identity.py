"""Identity columns are read from a schema, or refused where no value can be made for them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tablefeed.delta.schema.identity import identity_columns, with_high_water_marks
from tablefeed.errors import UnsupportedFeatureError
from tablefeed.model.rules import IdentityColumn
from tablefeed.model.schema import DataType, Field, Primitive, Struct

LONG = Primitive("long")


def a_schema(**told: object) -> Struct:
    return of_kind(LONG, told)


def of_kind(kind: DataType, told: Mapping[str, object]) -> Struct:
    metadata = {f"delta.identity.{key}": value for key, value in told.items()}
    return Struct((Field("x", LONG, nullable=True), Field("id", kind, nullable=True, metadata=metadata)))


def test_a_column_tells_its_start_step_and_mark_and_whether_rows_may_bring_values() -> None:
    whole = a_schema(start=10, step=-5, highWaterMark=0, allowExplicitInsert=True)
    new = a_schema(start=1, step=1, allowExplicitInsert=False)

    assert identity_columns(whole, partition_columns=()) == (
        IdentityColumn(name="id", start=10, step=-5, high_water_mark=0, takes_given=True),
    )
    assert identity_columns(new, partition_columns=()) == (
        IdentityColumn(name="id", start=1, step=1, high_water_mark=None, takes_given=False),
    )


_WHOLE: dict[str, object] = {"start": 1, "step": 2, "allowExplicitInsert": False}


def with_expression(key: str) -> Struct:
    _, field = a_schema(**_WHOLE)
    return Struct((Field("id", LONG, nullable=True, metadata={**field.metadata, key: "1"}),))


_INCONSISTENT = "DELTA_IDENTITY_COLUMN_INCONSISTENT_METADATA"
_GENERATED = "DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION"


@pytest.mark.parametrize(
    ("schema", "error_class"),
    [
        (a_schema(**{**_WHOLE, "step": 0}), "DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP"),
        (a_schema(start=1, step=1), _INCONSISTENT),
        (a_schema(allowExplicitInsert=True), _INCONSISTENT),
        (a_schema(**{**_WHOLE, "start": "1"}), _INCONSISTENT),
        (a_schema(**{**_WHOLE, "start": True}), _INCONSISTENT),
        (a_schema(**_WHOLE, highWaterMark=None), _INCONSISTENT),
        (a_schema(**_WHOLE, highWaterMark=2**63), _INCONSISTENT),
        (a_schema(**_WHOLE, highWaterMark=4), _INCONSISTENT),
        (of_kind(Primitive("integer"), _WHOLE), "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE"),
        (with_expression("delta.generationExpression"), _GENERATED),
        (with_expression("CURRENT_DEFAULT"), _GENERATED),
    ],
)
def test_one_that_no_writer_could_fill_is_refused_by_name(schema: Struct, error_class: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="'id'") as caught:
        identity_columns(schema, partition_columns=())
    assert caught.value.error_class == error_class


def test_one_that_partitions_the_table_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED"):
        identity_columns(a_schema(**_WHOLE), partition_columns=("id",))


def test_a_mark_is_moved_and_all_else_stays() -> None:
    before = a_schema(**_WHOLE, highWaterMark=3)

    assert with_high_water_marks(before, {"id": 9}) == a_schema(**_WHOLE, highWaterMark=9)
    assert with_high_water_marks(before, {}) == before
