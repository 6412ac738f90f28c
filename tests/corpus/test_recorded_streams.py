"""What Delta-Spark's own stream source delivered, recorded, held against our reader under a model of Spark's batches.

Every recorded scenario is a test here, but for those that Spark decides before it asks us (DECIDED_BY_SPARK). That the
model does as Spark does is shown by the scenarios that tests/spark runs again on Spark itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.micro_batches import SparkModel
from support.streams import DECIDED_BY_SPARK, RecordedStreams, Run, recorded_names
from tablefeed import errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """Where we do other than Delta-Spark, and mean to; docs/migrating-reading.md lists each for users.

    `stages`: the rows of each batch, or the class of the error that ends the stage. In all they are `rows_of` another
    recorded stream.
    """

    stages: tuple[tuple[int, ...] | str, ...]
    rows_of: str


DEPARTURES = {
    # An end ends a stream; Delta-Spark's has none.
    "append/endingTimestamp[2024-01-01 02:00:00]": Departure(stages=((20,),), rows_of="append/lost_files_lossy"),
    # failOnDataLoss=false does what it says, though the snapshot that Delta-Spark begins again with is gone.
    "ckpt3/clean_history_lossy": Departure(stages=((20,), (90,)), rows_of="ckpt3/from0"),
    # A restart asks only for what it still has to read: not for the last, already committed batch once more.
    "del_plain/fail_then_skip": Departure(
        stages=((30,), "DELTA_SOURCE_TABLE_IGNORE_CHANGES", (5,), ()), rows_of="del_plain/fail_then_skip"
    ),
}

DELIVERED = [name for name in recorded_names() if name not in {*DECIDED_BY_SPARK, *DEPARTURES}]


@pytest.mark.parametrize("name", DELIVERED or ["the corpus is absent"])
def test_a_stream_delivers_what_delta_sparks_delivered(
    recorded_streams: RecordedStreams, tmp_path: Path, name: str
) -> None:
    run = recorded_streams.run(SparkModel(), name, scratch=tmp_path)

    assert foreign_errors(run) == []
    verdict, reason = recorded_streams.judge(name, run)
    assert verdict == "right", reason


@pytest.mark.parametrize("name", DEPARTURES)
def test_where_we_depart_from_delta_spark_it_is_as_the_docs_say(
    recorded_streams: RecordedStreams, tmp_path: Path, name: str
) -> None:
    run = recorded_streams.run(SparkModel(), name, scratch=tmp_path)

    assert foreign_errors(run) == []
    assert tuple(outcome(stage) for stage in run) == DEPARTURES[name].stages
    assert recorded_streams.rows(run) == recorded_streams.recorded_rows(DEPARTURES[name].rows_of)
    assert recorded_streams.judge(name, run)[0] != "right", "it is no departure any more"


@pytest.mark.usefixtures("corpus")
def test_every_exception_is_of_a_stream_that_was_recorded() -> None:
    assert sorted({*DECIDED_BY_SPARK, *DEPARTURES} - set(recorded_names())) == []


def outcome(stage: dict[str, Any]) -> tuple[int, ...] | str:  # Any: the recorder's JSON
    return stage["err"]["condition"] if stage["err"] else tuple(rows for rows, _ in stage["batches"])


def foreign_errors(run: Run) -> list[str]:
    """What ended a stage that is neither an error of ours nor the recorder's own stop."""
    found = [stage["err"] for stage in run if stage["err"] and stage["err"]["condition"] != "(stopped)"]
    return [error["text"] for error in found if not is_ours(error["java"])]


def is_ours(name: str) -> bool:
    kind = getattr(errors, name, None)
    return isinstance(kind, type) and issubclass(kind, errors.TablefeedError)
