"""Paths of a local disk on a cluster whose machines do not share it: refused, and never a table without its rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tablefeed
from cluster.drivers import ran
from cluster.lake import APPLIES, CHANGED, Lake
from cluster.machines import Cluster, can_hide
from cluster.packages import Way

pytestmark = [
    pytest.mark.skipif(
        not can_hide(), reason="a worker cannot be kept from the driver's disk without mount namespaces"
    ),
]


def test_a_local_path_is_refused_where_the_executors_have_another_disk(
    cluster: Cluster, installed: Way, lake: Lake
) -> None:
    """Of a new table, the executors' files are missing where it is committed; of an old one, they find no folder."""
    lake.numbers("orders", files=4, rows=5)
    lake.events("events")
    local = cluster.hidden / "tables"
    for table in ("old", "there"):
        tablefeed.append(local / table, pa.table({"id": [-1], "v": ["old"]}))
    tablefeed.append(local / "state", pa.table({"id": [-1], "v": ["old"], "ts": [0]}), properties=CHANGED)
    reads = {"maxFilesPerTrigger": "4", "minPartitions": "4"}
    job = lake.job("orders", "new", reads=reads)

    told = ran(
        cluster,
        installed,
        [
            {**job, "target": str(local / "new"), "checkpoint": str(local / "c-new")},
            {**job, "target": str(local / "old"), "checkpoint": str(local / "c-old")},
            {**job, "target": "relative", "checkpoint": str(local / "c-relative")},
            {**job, "source": str(local / "there"), "checkpoint": str(local / "c-there")},
            {"do": "read", "source": str(local / "there"), "storage": job["storage"]},
            {**lake.job("events", "state", writes=APPLIES), "target": str(local / "state")},
        ],
    )

    new, old, relative, there, read, state = (each.get("error", "") for each in told)
    assert "A task wrote them to the disk of another machine" in new
    assert "A task wrote them to the disk of another machine" in relative
    assert f"There is no folder at {local / 'old'}" in old
    assert "it is on the disk of another machine" in old
    for error in (there, read):
        assert "it is on the disk of another machine" in error
    assert not (local / "new").exists(), "no commit"
    assert tablefeed.open_table(local / "old").version == 0
    assert (state, tablefeed.open_table(local / "state").version) == ("", 1), (
        "few events travel with the tasks' reports"
    )
