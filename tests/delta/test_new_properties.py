"""Which properties a new table may be given, and how they are spelt then."""

from __future__ import annotations

import pytest

from tablefeed.delta.new_properties import checked_properties, is_kept
from tablefeed.errors import IllegalOptionError


def test_names_are_matched_in_any_case_and_kept_as_delta_spark_spells_them() -> None:
    given = {
        "delta.enablechangedatafeed": "TRUE",
        "DELTA.appendOnly": "false",
        "delta.targetfilesize": "64mb",
        "delta.feature.rowtracking": "supported",
        "owner": "me",
    }

    assert checked_properties(given) == {
        "delta.enableChangeDataFeed": "TRUE",
        "delta.appendOnly": "false",
        "delta.targetFileSize": "64mb",
        "delta.feature.rowTracking": "supported",
        "owner": "me",
    }


def test_a_name_that_is_no_property_is_refused_with_the_nearest_that_is() -> None:
    with pytest.raises(IllegalOptionError, match=r"did you mean 'delta\.enableChangeDataFeed'") as caught:
        checked_properties({"delta.enableChangeDatafeeds": "true"})

    assert str(caught.value).startswith("[DELTA_UNKNOWN_CONFIGURATION] ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.enableRowTracking", "yes"),
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "ten"),
        ("delta.targetFileSize", "large"),
        ("delta.logRetentionDuration", "1 month"),
        ("delta.columnMapping.mode", "names"),
        ("delta.checkpointPolicy", "v3"),
        ("delta.isolationLevel", "WriteSerializable"),
        ("delta.minWriterVersion", "8"),
        ("delta.universalFormat.enabledFormats", "iceberg"),
        ("delta.feature.rowTracking", "true"),
        ("delta.feature.clustering", "supported"),
    ],
)
def test_a_value_that_the_property_cannot_have_is_refused(name: str, value: str) -> None:
    with pytest.raises(IllegalOptionError, match=r"must be|cannot be set"):
        checked_properties({name: value})


@pytest.mark.parametrize(
    "name",
    [
        "delta.columnMapping.maxColumnId",
        "delta.inCommitTimestampEnablementVersion",
        "delta.rowTracking.materializedRowIdColumnName",
    ],
)
def test_what_writers_count_or_draw_cannot_be_given(name: str) -> None:
    with pytest.raises(IllegalOptionError, match="DELTA_CANNOT_MODIFY_TABLE_PROPERTY"):
        checked_properties({name: "7"})


def test_what_the_protocol_says_is_no_property_of_the_table_that_is_made() -> None:
    names = ["delta.minReaderVersion", "delta.minWriterVersion", "delta.feature.rowTracking", "delta.appendOnly"]

    assert [name for name in names if is_kept(name)] == ["delta.appendOnly"]
