"""What keeps a table convertible to Iceberg (tests/feed/commit/test_commit_features.py has the writes)."""

from __future__ import annotations

import pytest

from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.iceberg_compat import check_compatible
from tablefeed.errors import UnsupportedFeatureError
from tablefeed.model.schema import Decimal, Field, Primitive, Struct

FOR_ICEBERG = TableProperties({"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"})


def test_a_list_of_type_changes_that_has_something_else_hinders_nothing() -> None:
    column = Field("id", Primitive("long"), nullable=True, metadata={"delta.typeChanges": ["integer"]})

    check_compatible(FOR_ICEBERG, Struct((column,)), (), before=())


def test_a_decimal_may_have_got_digits_before_the_point_only() -> None:
    def check(now: str) -> None:
        changes = {"delta.typeChanges": [{"fromType": "decimal(5,2)", "toType": now}]}
        column = Field("d", Decimal(9, 2), nullable=True, metadata=changes)
        check_compatible(FOR_ICEBERG, Struct((column,)), (), before=())

    check("decimal(9, 2)")
    with pytest.raises(UnsupportedFeatureError, match="which Iceberg does not know"):
        check("decimal(9,4)")
