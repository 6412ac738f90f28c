"""Every call of a store in the code is a window in which a process is killed, and nothing is lost or doubled.

The windows come from the code itself (call_sites.py), so a new call without a scenario fails here. Real queries of
Spark are killed in test_sigkill.py.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from faults.call_sites import (
    CHANGING,
    DISK_MODULES,
    METHODS,
    disk_sites,
    methods_as_values,
    store_sites,
    unknown_calls,
)
from faults.killed import SCENARIOS
from support.faulty_store import Operation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1_200)]

TESTS = Path(__file__).parents[1]

REPLACED = "another process must replace the table right before or after this put (test_upkeep_of_replaced_tables)"
REPLACED_UNSEEN = "the answer to this put must be lost while the table is replaced (test_index_checkpoint)"
MADE_ANEW = "another process must make the table anew while the put is on its way (test_commit_below_cleaned_log)"
UNREACHED: Mapping[str, str] = {
    "feed/api/follow.py:_commits:wait": "reads only, and waits for another process",
    "feed/api/health.py:_files:stat": "reads only, for `tablefeed doctor`",
    "feed/commit/index_attempts.py:note:replace": "another process must replace the table (test_index_commit)",
    "feed/commit/index_commit.py:IndexCommit.check:exists": "reads only, and only a table that another process made",
    "feed/commit/index_states.py:delete_made_of:delete": "another process must put the state (test_index_commit)",
    "feed/commit/own_log.py:_delete:delete": REPLACED,
    "feed/commit/own_log.py:_delete:stat": REPLACED,
    "store/base.py:put_own:delete": REPLACED_UNSEEN,
    "feed/commit/settled_put.py:_is_of:exists": "reads only, and only where the table was deleted meanwhile",
    "feed/commit/settled_put.py:_is_taken_back:put_if_absent": MADE_ANEW,
    "feed/commit/settled_put.py:_take_back:delete": MADE_ANEW,
    "feed/rows/state.py:as_restored:exists": "reads only, and only where changes were applied to the table",
    "feed/scan/delta_task.py:DeltaTask.row_groups:open_input": "reads only, and only a file that several tasks share",
    "feed/scan/split_task.py:_size:stat": "reads only, and only a split whose log does not say its size",
    "feed/snapshot/open_log.py:found_at:exists": "reads only, and only where the hint at the last checkpoint fails",
    "feed/snapshot/index_log.py:IndexTablesLog._form_of_table:read": "reads only, and only beside a damaged commit",
    "feed/snapshot/index_log.py:IndexTablesLog.agreed_state:read": "reads only, and only where a state came meanwhile",
    "feed/snapshot/index_reader.py:IndexReader.decoded_commit:stat": "reads only, and only a commit that has no time",
    "feed/snapshot/segment_reader.py:SegmentReader.is_unchanged:stat": "reads only, and only beside a lost checkpoint",
    "feed/stream/spark_checkpoint.py:SparkCheckpoint.put:read#2": "reads only, and only beside a reset that was killed",
    "feed/stream/source.py:StreamSource.wait:wait": "reads only, and only in an idle query (test_idle_queries)",
    "store/durable.py:Folder.touch:os.utime": "another process must take the version of a commit (test_drafts)",
    "store/local_copies.py:_fill:os.sendfile": "only on systems that cannot copy between two file systems",
}
"""Sites at which no scenario can be, each with the reason."""

Reports = Mapping[str, Mapping[str, Any]]  # Any: JSON


@pytest.fixture(scope="module")
def reports() -> Iterator[Reports]:
    """What became of every window: one program tries them all. In memory where that is possible: it syncs a lot."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
    folder = Path(tempfile.mkdtemp(prefix="tablefeed-windows-", dir=memory if memory.is_dir() else None))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])}
    try:
        command = [sys.executable, "-m", "faults.windows", str(folder)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        found = folder / "reports.json"
        assert found.exists(), done.stdout + done.stderr
        yield {report["scenario"]: report for report in json.loads(found.read_text())}
    finally:
        shutil.rmtree(folder)


def test_every_call_of_a_store_in_the_code_is_a_window_that_a_scenario_reaches(reports: Reports) -> None:
    reached = {site for report in reports.values() for site in report["reached"]}
    sites = {*store_sites(), *disk_sites()}

    assert sorted(sites - reached - UNREACHED.keys()) == [], "add a scenario that comes here"
    assert sorted(UNREACHED.keys() - sites) == [], "these are no sites any more"
    assert sorted(UNREACHED.keys() & reached) == [], "a scenario comes here"


def test_no_call_of_a_store_and_none_that_changes_the_disk_escapes_the_list_of_windows(reports: Reports) -> None:
    assert [site for report in reports.values() for site in report["unknown"]] == [], "the name shows no store"
    assert methods_as_values() == [], "a method that is passed on is called where no window is"
    assert unknown_calls() == [], f"of these calls in {DISK_MODULES} nobody said whether they change a disk"


def test_a_store_can_fail_on_purpose_at_each_method_that_reaches_its_disk() -> None:
    assert set(get_args(Operation)) == METHODS
    assert CHANGING < METHODS


@pytest.mark.parametrize("scenario", [scenario.name for scenario in SCENARIOS])
def test_a_process_that_is_killed_at_a_window_loses_nothing_and_the_next_one_ends_as_an_undisturbed_one(
    scenario: str, reports: Reports
) -> None:
    report = reports[scenario]
    assert report["windows"] > 0
    assert report["failures"] == [], f"{len(report['failures'])} of {report['windows']} windows"
