"""A Spark Connect server on the cluster: its clients have neither its disk nor its executors."""

from __future__ import annotations

from dataclasses import replace

from cluster.drivers import connect_server
from cluster.jobs import run
from cluster.lake import APPLIES, Lake
from cluster.machines import Cluster
from cluster.packages import Way
from support.connect import connect


def test_rows_and_events_arrive_once_through_a_connect_server_on_the_cluster(
    cluster: Cluster, installed: Way, lake: Lake
) -> None:
    rows = lake.numbers("orders", files=6, rows=5)
    events = lake.events("events")
    lake.changed("state")
    few = {"maxFilesPerTrigger": "3", "minPartitions": "3"}
    # Without the gate: its function would have to be shipped to the executors.
    jobs = [
        replace(lake, gate="").job("orders", "copy", reads=few),
        replace(lake, gate="").job("events", "state", reads=few, writes=APPLIES),
    ]

    with connect_server(cluster, installed) as url:
        client = connect(url)
        told = [run(client, job) for job in jobs]
        client.stop()

    assert [each.get("error") for each in told] == [None, None]
    assert lake.rows_by_delta_rs("copy", "id", "v") == rows
    assert lake.rows_by_delta_rs("state", "id", "v", "ts") == events
