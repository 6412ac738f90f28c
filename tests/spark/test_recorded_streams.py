"""What Delta-Spark's own stream source delivered, recorded, held against ours on Spark itself.

tests/corpus runs the recorded streams under a model of Spark. Chosen here is what only Spark decides, and what
exercises its part most, by which the model is judged too. With `--every-stream` all of them run (`make test-streams`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support.streams import DECIDED_BY_SPARK, DEPARTURES, RecordedStreams, Run, recorded_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# All streams run in the fixture, on the first test's time.
pytestmark = pytest.mark.timeout(900)

AT_ONCE = 3
"""Queries that run side by side: each waits for its processes more than it works."""

OF_SPARKS_VERSION = [
    *DECIDED_BY_SPARK,
    "append/latest_grow_twice",
    "append/startingVersion_beyond_at_first",
    "append/lost_later_strict",
    "multi/snap_files3",
    "multi/snap_bytes20kb",
    "multi/once_files2",
    "multi/from3_files2",
    "multi/stopped_in_snapshot_grow",
    "multi/replan_other_limit",
    "meta_only/grow",
    "cdf/to_cdf_midway",
    "cdf_multi/cdf_snap_files1",
    "cm_cdf/stale_frame_3",
    "types/from0",
]
"""What Spark does for a stream: its schema, its triggers, batches that wait for rows, restarts, values of each type."""

CHOSEN = [
    *OF_SPARKS_VERSION,
    "parts_mid/snapshot",
    "del_plain/live_deletes",
    "cdf_dv/cdf_from0_files1",
]


@pytest.fixture(scope="module")
def runs(
    spark: SparkSession,
    recorded_streams: RecordedStreams,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[dict[str, Run]]:
    """What came of each stream that is asked for; all are run, some side by side, before the first is judged."""
    asked = [
        str(item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.path == request.path
    ]
    codegen = "spark.sql.codegen.wholeStage"
    spark.conf.set(codegen, "false")  # compiling costs more than these few rows
    yield recorded_streams.run_all(spark, asked, scratch=tmp_path_factory.mktemp("scratch"), at_once=AT_ONCE)
    spark.conf.unset(codegen)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    every = [name for name in recorded_names() if name not in DEPARTURES]
    asked = every if metafunc.config.option.every_stream else CHOSEN
    one_spark = pytest.mark.one_spark
    metafunc.parametrize(
        "name", [name if name in OF_SPARKS_VERSION else pytest.param(name, marks=one_spark) for name in asked]
    )


def test_a_stream_delivers_what_delta_sparks_delivered(
    recorded_streams: RecordedStreams, runs: dict[str, Run], name: str
) -> None:
    assert recorded_streams.differences(name, runs[name]) == []
