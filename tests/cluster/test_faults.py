"""Queries on a cluster whose workers die, whose tasks run twice, and whose executors come and go."""

from __future__ import annotations

import pytest

from cluster.drivers import PATIENCE_S, ran, started
from cluster.gate import Gate, Visit
from cluster.lake import APPLIES, Lake
from cluster.machines import Cluster
from cluster.packages import Way

EIGHT = {"maxFilesPerTrigger": "8", "minPartitions": "8"}

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "100ms",
}

DYNAMIC_ALLOCATION = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.timeout": "2s",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "4",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.scheduler.minRegisteredResourcesRatio": "0.0",
}

JOBS = ("copy", "changes", "state")


def some_tables(lake: Lake) -> dict[str, list[tuple[object, ...]]]:
    """Makes the sources of all jobs; gives the rows that each target must have."""
    rows = lake.numbers("orders", files=16, rows=5)
    lake.ledger("ledger")
    events = lake.events("events")
    lake.changed("state")
    return {"copy": rows, "changes": lake.changes_by_delta_rs("ledger"), "state": events}


def job_of(lake: Lake, name: str, **more: object) -> dict[str, object]:
    """The job that fills the target of that name, with several tasks in a batch."""
    match name:
        case "copy":
            return dict(lake.job("orders", name, reads=EIGHT, **more))
        case "changes":
            feed = {"readChangeFeed": "true", "startingVersion": "0", "minPartitions": "8"}
            columns = ["id", "v", "_change_type AS kind", "_commit_version AS version"]
            return dict(lake.job("ledger", name, reads=feed, select=columns, **more))
        case _:
            return dict(lake.job("events", name, reads=EIGHT, writes=APPLIES, **more))


COLUMNS = {"copy": ("id", "v"), "changes": ("id", "v", "kind", "version"), "state": ("id", "v", "ts")}


def assert_once(lake: Lake, name: str, query: str, rows: list[tuple[object, ...]]) -> None:
    """The target has the rows once, each batch in one commit, and no file that vacuum leaves there."""
    assert lake.rows_by_delta_rs(name, *COLUMNS[name]) == rows
    assert lake.rows(name, *COLUMNS[name]) == rows
    batches = lake.batches(name, query)
    assert batches == list(range(len(batches)))
    lake.vacuum(name)
    assert lake.unnamed_files(name) == set()
    assert lake.rows_by_delta_rs(name, *COLUMNS[name]) == rows


@pytest.mark.parametrize("name", JOBS)
def test_the_rows_of_a_worker_that_dies_in_mid_batch_arrive_once(
    cluster: Cluster, installed: Way, lake: Lake, gate: Gate, name: str
) -> None:
    expected = some_tables(lake)[name]
    # Each worker finishes one task. The next task of the first of them is killed where it waits.
    gate.opens = lambda visit, visits: [each.cwd for each in visits].index(visit.cwd) != 0 or visit == visits[0]
    driver = started(cluster, installed, [job_of(lake, name)])
    try:
        gate.wait_for(lambda visits: sum(each.cwd == visits[0].cwd for each in visits) > 1 if visits else False)
        victim = cluster.worker_of(gate.visits[0].cwd)
        cluster.kill(victim)
        gate.release()
        [told] = driver.told()
    finally:
        driver.kill()

    assert told.get("error") is None
    assert_once(lake, name, told["query"], expected)


@pytest.mark.parametrize("name", JOBS)
def test_the_rows_of_a_task_that_runs_twice_arrive_once(
    cluster: Cluster, installed: Way, lake: Lake, gate: Gate, name: str
) -> None:
    expected = some_tables(lake)[name]

    def opens(visit: Visit, visits: list[Visit]) -> bool:
        """The last task is slow in its first batch, until there is a second attempt: then both end at the same time."""
        slow = max(each.task for each in visits if each.batch == visit.batch)
        if visit.batch != 0 or visit.task != slow or len(visits) < 4:
            return True
        return len({each.attempt for each in visits if (each.batch, each.task) == (0, slow)}) > 1

    gate.opens = opens
    [told] = ran(cluster, installed, [job_of(lake, name)], SPECULATION)

    assert told.get("error") is None
    assert {visit.attempt for visit in gate.visits} > {0}, "a task ran twice"
    assert_once(lake, name, told["query"], expected)


def test_rows_arrive_once_while_executors_come_and_go(cluster: Cluster, installed: Way, lake: Lake, gate: Gate) -> None:
    expected = some_tables(lake)
    # A batch goes on when a second executor has come for it.
    gate.opens = lambda visit, visits: len({each.cwd for each in visits if each.batch == visit.batch}) > 1
    idle = {"do": "wait_for_executors", "most": 1}
    jobs = [job_of(lake, "copy", shuffled=8), idle, job_of(lake, "changes", shuffled=8), idle]

    told = ran(cluster, installed, jobs, DYNAMIC_ALLOCATION)

    assert [each.get("error") for each in told] == [None] * 4
    assert [told[1]["executors"], told[3]["executors"]] == [1, 1], "idle executors ended"
    assert len({visit.cwd for visit in gate.visits}) > 2, "others came for the second query"
    for name, job in (("copy", told[0]), ("changes", told[2])):
        assert_once(lake, name, job["query"], expected[name])


def test_the_rows_of_a_driver_that_dies_arrive_once(cluster: Cluster, installed: Way, lake: Lake, gate: Gate) -> None:
    """One dies in mid-batch, and its tasks go on; the next one when its commit is on the store, before it knows."""
    expected = some_tables(lake)["copy"]
    job = job_of(lake, "copy")
    gate.opens = lambda visit, visits: visit == visits[0]
    first = started(cluster, installed, [job])
    try:
        gate.wait_for(lambda visits: len(visits) > 2)
    finally:
        first.kill()
    gate.release()
    second = started(cluster, installed, [job])

    def dies_at(request: str) -> bool:
        if not (request.startswith("PUT") and "/copy/_delta_log/00000000000000000001.json" in request):
            return False
        second.kill()
        return True

    lake.store.loses = dies_at
    try:
        second.process.wait(PATIENCE_S)
    finally:
        second.kill()
    lake.store.loses = lambda _: False
    [told] = ran(cluster, installed, [job])

    assert told.get("error") is None
    assert len(lake.batches("copy", told["query"])) > 1
    assert_once(lake, "copy", told["query"], expected)
