"""What Delta-Spark's own source delivered, recorded: tables, options, restarts; its batches, offsets and errors.

The recordings and their judge are the corpus's (streams/scenarios.py); a stream is right where its rows, batches,
last offset and error class are those of the recording. Chosen here is what this version of tablefeed does at all.
"""

from __future__ import annotations

import gc
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.corpus import corpus_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# All streams run in the fixture, on the first test's time.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

Verdicts = dict[str, tuple[str, str]]

AT_ONCE = 3
"""Queries that run side by side: each waits for its processes more than it works."""

CHOSEN = [
    "append/startingVersion[3]",
    "append/startingVersion[+2]",
    "append/startingVersion[Latest]",
    "append/startingTimestamp_at0",
    "append/startingTimestamp_at3",
    "append/startingTimestamp_before3",
    "append/startingTimestamp_after3",
    "append/startingTimestamp_iso_zone",
    "append/timestamp_grow",
    "append/latest_grow_twice",
    "append/startingVersion_beyond_at_first",
    "append/maxBytesPerTrigger[10zz]",
    "append/path_at_v",
    "append/excludeRegex[]",
    "append/excludeRegex[\\.parquet$]",
    "append/excludeRegex[nothing-like-it]",
    "append/lost_later_strict",
    "multi/snap_files3",
    "multi/snap_bytes20kb",
    "multi/once_files2",
    "multi/from3_files2",
    "multi/stopped_in_snapshot_grow",
    "multi/replan_other_limit",
    "multi/exclude_half",
    "multi/exclude_half_snap_files2",
    "parts_typed/snapshot",
    "parts_mid/snapshot",
    "parts_mid/partition_folder",
    "parts_mid/exclude_partition",
    "parts_ntz/from0",
    "del_plain/live_deletes",
    "del_plain/live_changes",
    "del_whole/live_skip",
    "del_whole/from0_files1",
    "overwrite/from0_skip",
    "overwrite_part/from0_ignoreDeletes",
    "optimize/live_skip",
    "restore/from0_files1_skip",
    "vacuumed/from0",
    "rowtrack_late/from0_files1",
    "types/from0",
    "nested/snapshot",
    "identity/from0",
    "empty/from0",
    "addcol/stale_frame_2",
    "meta_only/grow",
    "unknown_feature/snapshot",
    "ict/snapshot",
    "ict/ts_at_first_ict",
    "ict/ts_at_last_ict",
    "ict/ts_after_last",
    "ict_late/ts_at_last_ict",
    "ict_late/ts_after_last",
    "cdf_ict/ts_mtime1",
    "ckpt3/grow",
    "ckpt_parts/snapshot",
    "cleaned/snapshot",
    "streamed/from0",
]


@pytest.fixture(scope="module")
def verdicts(spark: SparkSession, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verdicts]:
    """The verdict on each chosen stream and its reason; all are run, some side by side, before the first is judged."""
    recorder = corpus_module(corpus / "streams" / "scenarios.py")
    work = tmp_path_factory.mktemp("streams")
    for name in ("tables.tar.zst", "expected.json"):
        shutil.copy(corpus / "streams" / name, work)
    found: Verdicts = {}

    def judge(scenario: dict[str, Any], result: list[Any], _seconds: float) -> None:  # Any: the recorder's JSON
        found[scenario["id"]] = recorder.judge(scenario["expect"], result, loss_free(recorder, recorded, scenario))

    codegen = "spark.sql.codegen.wholeStage"
    spark.conf.set(codegen, "false")  # compiling costs more than these few rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # files that the recorder leaves open
        recorded = recorder.load(str(work))
        tables = recorder.unpack(str(work), str(work / "tables"), recorded["rebase"])
        ids = {facts["id"]: name for name, facts in recorded["tables"].items()}
        chosen = [scenario for scenario in recorded["scenarios"] if scenario["id"] in CHOSEN]
        recorder.run_all(spark, "tablefeed", chosen, tables, str(work / "scratch"), ids, AT_ONCE, judge)
        gc.collect()
    yield found
    spark.conf.unset(codegen)


@pytest.mark.parametrize("name", CHOSEN)
def test_a_stream_delivers_what_delta_sparks_delivered(verdicts: Verdicts, name: str) -> None:
    verdict, reason = verdicts[name]
    assert verdict == "right", reason


def loss_free(recorder: Any, recorded: Any, scenario: dict[str, Any]) -> Any:
    """The rows of a stream that loses nothing where Delta-Spark's own lost some; None where it lost none."""
    better = recorder.NO_LOSS.get(scenario["id"])
    rows = [b for s in recorded["scenarios"] if s["id"] == better for run in s["expect"] for b in run["batches"]]
    return recorder.total(rows) if better else None
