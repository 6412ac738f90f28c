"""The changes that Delta-Spark's own stream of changes delivered, recorded: the same rows, with the same times.

A stream from a version on, read to its end, delivers what a bounded read from that version delivers. What the two
refuse differently is not chosen: a stream knows other classes for a bound, and notices later that a feed was off.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from support.digest import table_digest
from support.streams import RecordedStreams, Scenario
from support.streams import rows as rows_of
from tablefeed.errors import TablefeedError

ROWS = [
    "cdf/cdf_from1",
    "cdf/cdf_ts",
    "cdf_dv/cdf_from0_files1",
    "cdf_multi/cdf_from0",
    "cdf_multi/cdf_from6",
    "cdf_late/cdf_from4",
    "cdf_addcol/cdf_from0",
    "cdf_ict/cdf_from0",
    "cdf_ict/cdf_from4",
]
REFUSED = ["append/cdf_not_enabled_from0", "cdf_late/cdf_from0", "clone/cdf_from0", "cleaned/cdf_from0"]


def bounds(scenario: Scenario) -> dict[str, Any]:
    options = scenario["opts"]
    if "startingVersion" in options:
        return {"start_version": int(options["startingVersion"])}
    return {"start_timestamp": options["startingTimestamp"]}


@pytest.mark.parametrize("name", ROWS)
def test_the_rows_are_those_of_delta_sparks_stream(recorded_streams: RecordedStreams, name: str) -> None:
    scenario = recorded_streams.scenarios[name]

    found = tablefeed.changes(recorded_streams.folder / scenario["table"], **bounds(scenario)).read_all()

    assert table_digest(found) == rows_of(recorded_streams.recorded(name))


@pytest.mark.parametrize("name", REFUSED)
def test_what_delta_sparks_stream_refuses_is_refused_by_the_same_class(
    recorded_streams: RecordedStreams, name: str
) -> None:
    scenario = recorded_streams.scenarios[name]
    (stage,) = recorded_streams.recorded(name)

    with pytest.raises(TablefeedError) as caught:
        tablefeed.changes(recorded_streams.folder / scenario["table"], **bounds(scenario)).read_all()
    assert stage.failure
    assert caught.value.error_class == stage.failure.error_class


@pytest.mark.parametrize("table", ["cdf", "cdf_dv", "cdf_multi", "cdf_addcol", "cdf_ict", "cdf_parts"])
def test_what_commits_put_in_and_took_out_comes_to_what_they_recorded(
    recorded_streams: RecordedStreams, table: str
) -> None:
    folder = recorded_streams.folder

    recorded = rows(tablefeed.changes(folder / table))
    told = rows(tablefeed.changes(folder / table, deduplication_mode="dropCarryovers"))

    as_two = {"update_preimage": "delete", "update_postimage": "insert"}
    assert sum(recorded.values()) > 20
    assert told == Counter(
        tuple(as_two.get(value, value) if isinstance(value, str) else value for value in row)
        for row in recorded.elements()
    )


def test_an_update_of_delta_spark_is_told_by_the_ids_of_its_rows(recorded_streams: RecordedStreams) -> None:
    folder = recorded_streams.folder

    found = tablefeed.changes(
        folder / "rowtrack", start_version=3, end_version=3, deduplication_mode="dropCarryovers", compute_updates=True
    )

    told = found.read_all().select(["_change_type", "id", "s"]).to_pylist()
    assert told == [
        {"_change_type": "update_preimage", "id": 3, "s": "r3"},
        {"_change_type": "update_postimage", "id": 3, "s": "u"},
    ]


def rows(reader: pa.RecordBatchReader) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in reader.read_all().to_pylist())
