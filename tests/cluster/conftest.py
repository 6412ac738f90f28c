"""The cluster, what is shipped to it, and the tables on the store between its machines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.gate import Gate, a_gate
from cluster.lake import Lake
from cluster.machines import Cluster, standalone_cluster
from cluster.packages import Packages, Way
from support.gateway import Gateway

WORKERS = 4


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks every test of this folder."""
    item.add_marker("cluster")
    item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """tablefeed in each form in which it is shipped."""
    return Packages(folder=tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="session")
def installed(packages: Packages) -> Way:
    """The wheel is installed on all machines."""
    return packages.installed


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The one cluster, which ends with the tests."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster"), workers=WORKERS) as cluster:
        yield cluster


@pytest.fixture
def cluster(standalone: Cluster) -> Cluster:
    """The cluster with all its workers, also after a test that killed one."""
    standalone.start_workers(WORKERS - len(standalone.workers))
    return standalone


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate that is open."""
    with a_gate() as gate:
        yield gate


@pytest.fixture
def lake(cluster: Cluster, gateway: Gateway, gate: Gate) -> Lake:
    """An empty bucket; checkpoints are on the driver's disk, and the tasks of queries pass the gate."""
    checkpoints = cluster.hidden / "checkpoints"
    checkpoints.mkdir(exist_ok=True)
    return Lake(store=gateway, checkpoints=checkpoints, gate=gate.url)
