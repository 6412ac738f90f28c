"""Properties of an existing table (tests/feed/api/test_alter.py has the calls)."""

from __future__ import annotations

import pytest

from tablefeed.delta.alteration import Alteration
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.property_changes import changed_properties
from tablefeed.errors import UnsupportedFeatureError

FOR_ICEBERG = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}


def test_iceberg_compatibility_is_not_turned_on_but_may_be_on_already() -> None:
    before = TableProperties(FOR_ICEBERG)

    after, _ = changed_properties(before, Alteration(assigned={"delta.appendOnly": "true"}))

    assert after == {**FOR_ICEBERG, "delta.appendOnly": "true"}
    with pytest.raises(UnsupportedFeatureError) as caught:
        changed_properties(before, Alteration(assigned={"delta.enableIcebergCompatV1": "true"}))
    assert caught.value.features == ("icebergCompatV1",)


def test_a_property_that_only_asks_for_a_feature_is_not_kept() -> None:
    asked = {"delta.feature.deletionVectors": "supported", "delta.minReaderVersion": "1"}

    after, features = changed_properties(TableProperties({}), Alteration(assigned=asked))

    assert after == {}
    assert "deletionVectors" in features
