"""What a reader makes of the options before Spark asks it anything. No JVM."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from tablefeed.errors import ConflictingOptionsError, IllegalOptionError
from tablefeed.feed.source import SourceOptions
from tablefeed.feed.stream_bounds import Bound
from tablefeed.spark.analysis import analyse
from tablefeed.spark.options import parse_options
from tablefeed.spark.source import source_options


def options(**given: str) -> SourceOptions:
    return source_options(parse_options(given, "stream read"))


def test_a_start_by_version_and_by_time_is_refused() -> None:
    with pytest.raises(ConflictingOptionsError, match=r"^\[DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET\]"):
        options(startingVersion="0", startingTimestamp="2024-01-01")


def test_an_end_by_version_and_by_time_is_refused() -> None:
    with pytest.raises(ConflictingOptionsError, match=r"^\[DELTA_MULTIPLE_CDC_BOUNDARY\]"):
        options(endingVersion="0", endingTimestamp="2024-01-01")


def test_bounds_reach_the_feed_as_they_were_given() -> None:
    version = options(startingVersion="1", startingBoundInclusive="false", endingVersion="3")
    time = options(startingTimestamp="2024-01-01", endingTimestamp="2024-01-02", endingBoundInclusive="false")

    assert (version.start, version.end) == (Bound(version=1, inclusive=False), Bound(version=3))
    assert (time.start, time.end) == (Bound(timestamp="2024-01-01"), Bound(timestamp="2024-01-02", inclusive=False))


def test_a_time_zone_is_that_of_a_start_and_of_a_version_that_is_read(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    tablefeed.append(tmp_path, pa.table({"id": [2]}))
    for version, at_s in enumerate((1_704_063_600, 1_704_067_200)):  # midnight in Berlin, and in Greenwich
        os.utime(tmp_path / "_delta_log" / f"{version:020d}.json", (at_s, at_s))
    midnight = {"path": str(tmp_path), "timestampAsOf": "2024-01-01"}

    assert analyse(midnight).version == 1
    assert analyse({**midnight, "timezone": "Europe/Berlin"}).version == 0
    assert str(options(startingTimestamp="2024-01-01", timeZone="Europe/Berlin").time_zone) == "Europe/Berlin"
    with pytest.raises(IllegalOptionError, match="time zone"):
        analyse({**midnight, "timezone": "Berlin"})
