"""Source, sink, change feed and row changes on a cluster, with tablefeed shipped in each way that users have."""

from __future__ import annotations

import pytest

from cluster.drivers import ran
from cluster.gate import Gate, Visit
from cluster.lake import APPLIES, Lake
from cluster.machines import Cluster, can_hide
from cluster.packages import Packages

FEED = {"readChangeFeed": "true", "startingVersion": "0", "maxFilesPerTrigger": "4", "minPartitions": "4"}
FEED_COLUMNS = ["id", "v", "_change_type AS kind", "_commit_version AS version"]

LIES_IN = {
    "installed": "/packages0/installed/",
    "zipped": "/tablefeed.zip/",
    "archived": "/environment/lib/",
}
"""A part of the path from which an executor imports tablefeed."""


@pytest.mark.parametrize("name", LIES_IN)
def test_rows_changes_and_events_arrive_once_however_tablefeed_gets_to_the_executors(
    cluster: Cluster, packages: Packages, lake: Lake, gate: Gate, name: str
) -> None:
    rows = lake.numbers("orders", files=6, rows=5)
    lake.ledger("ledger")
    events = lake.events("events")
    lake.changed("state")
    few = {"maxFilesPerTrigger": "3", "minPartitions": "3"}

    told = ran(
        cluster,
        packages.way(name),
        [
            lake.job("orders", "copy", reads=few),
            lake.job("ledger", "changes", reads=FEED, select=FEED_COLUMNS),
            lake.job("events", "state", reads=few, writes=APPLIES),
        ],
    )

    assert [each.get("error") for each in told] == [None, None, None]
    assert lake.rows_by_delta_rs("copy", "id", "v") == rows
    assert lake.rows("changes", "id", "v", "kind", "version") == lake.changes_by_delta_rs("ledger")
    assert lake.rows_by_delta_rs("state", "id", "v", "ts") == events
    for table, query in zip(("copy", "changes", "state"), (each["query"] for each in told), strict=True):
        batches = lake.batches(table, query)
        assert batches == list(range(len(batches))), f"{table}: each batch is one commit"
        assert len(batches) > 1
        lake.vacuum(table)
        assert lake.unnamed_files(table) == set()
    assert_apart(cluster, gate.visits, lies_in=LIES_IN[name])


def assert_apart(cluster: Cluster, visits: list[Visit], *, lies_in: str) -> None:
    """Tasks ran on several workers, in folders and homes of their own, and saw nothing of the driver's."""
    workers = {cluster.worker_of(visit.cwd).name for visit in visits}
    assert len(workers) > 1, visits
    for visit in visits:
        worker = cluster.worker_of(visit.cwd)
        assert visit.home == str(worker.folder / "home")
        assert lies_in in visit.package
        assert not (can_hide() and visit.sees_driver)
