"""What Delta-Spark's own stream source delivered, recorded, held against our reader under a model of Spark's batches.

Every recorded scenario is a test here, but for those that Spark decides before it asks us (DECIDED_BY_SPARK). That the
model does as Spark does is shown by the scenarios that tests/spark runs again on Spark itself.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.micro_batches import SparkModel
from support.streams import DECIDED_BY_SPARK, DEPARTURES, Failure, RecordedStreams, Run, Stage, recorded_names, rows
from tablefeed import errors

DELIVERED = [name for name in recorded_names() if name not in {*DECIDED_BY_SPARK, *DEPARTURES}]


@pytest.mark.parametrize("name", DELIVERED)
def test_a_stream_delivers_what_delta_sparks_delivered(
    recorded_streams: RecordedStreams, tmp_path: Path, name: str
) -> None:
    run = recorded_streams.run(SparkModel(), name, scratch=tmp_path)

    assert foreign_errors(run) == []
    assert recorded_streams.differences(name, run) == []


@pytest.mark.parametrize("name", DEPARTURES)
def test_where_we_depart_from_delta_spark_it_is_as_the_docs_say(
    recorded_streams: RecordedStreams, tmp_path: Path, name: str
) -> None:
    run = recorded_streams.run(SparkModel(), name, scratch=tmp_path)

    assert foreign_errors(run) == []
    assert tuple(outcome(stage) for stage in run) == DEPARTURES[name].stages
    assert rows(run) == rows(recorded_streams.recorded(DEPARTURES[name].rows_of))
    assert recorded_streams.differences(name, run), "it is no departure any more"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"batches": [(19, "0")]}, "batches of [19] rows"),
        ({"schema": "struct<id:int>"}, "schema struct<id:int>"),
        ({"last_offset": {}}, "last offset {}"),
        ({"failure": Failure(name="LogError", error_class=None, text="no log")}, "failed: no log"),
    ],
)
def test_whatever_is_not_as_recorded_is_said(
    recorded_streams: RecordedStreams, changed: dict[str, Any], said: str
) -> None:
    (stage,) = recorded_streams.recorded("append/startingVersion[3]")

    assert recorded_streams.differences("append/startingVersion[3]", [stage]) == []
    (line,) = recorded_streams.differences("append/startingVersion[3]", [replace(stage, **changed)])
    assert line.startswith(f"stage 0: {said}")


@pytest.mark.parametrize(
    "failure",
    [
        None,
        Failure(name="LogError", error_class="DELTA_ILLEGAL_OPTION", text="[DELTA_ILLEGAL_OPTION] of another class"),
        Failure(name="hang", error_class=None),
        Failure(name="InterruptedError", error_class="(stopped)", text="DELTA_SOURCE_TABLE_IGNORE_CHANGES"),
    ],
)
def test_a_stream_that_fails_otherwise_than_recorded_differs(
    recorded_streams: RecordedStreams, failure: Failure | None
) -> None:
    (stage,) = recorded_streams.recorded("del_dv/from0")

    assert recorded_streams.differences("del_dv/from0", [replace(stage, failure=failure)]) != []


def test_every_exception_is_of_a_stream_that_was_recorded() -> None:
    assert sorted({*DECIDED_BY_SPARK, *DEPARTURES} - set(recorded_names())) == []


def outcome(stage: Stage) -> tuple[int, ...] | str | None:
    return stage.failure.error_class if stage.failure else tuple(count for count, _ in stage.batches)


def foreign_errors(run: Run) -> list[str]:
    """What ended a stage that is neither an error of ours nor the recorder's own stop."""
    found = [stage.failure for stage in run if stage.failure and not stage.failure.is_the_recorded_stop]
    return [failure.text for failure in found if not is_ours(failure.name)]


def is_ours(name: str) -> bool:
    kind = getattr(errors, name, None)
    return isinstance(kind, type) and issubclass(kind, errors.TablefeedError)
