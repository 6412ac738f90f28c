"""The session in which the Delta JAR and tablefeed stand side by side, on the Spark that the JAR is made for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.session import jar_conf, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks every test of this folder."""
    item.add_marker("peer")


@pytest.fixture(scope="session")
def delta_spark(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one session of the tests marked `peer`: format `delta` is the JAR's, format `tablefeed` is ours."""
    folder: Path | None = pytestconfig.getoption("--peer-jars")
    if folder is None:
        pytest.fail("tests marked peer need --peer-jars=FOLDER; make test-peer fetches and names it")
    conf = {
        **jar_conf(folder),
        "spark.sql.shuffle.partitions": "1",
        # VACUUM lists a table with 10,000: minutes.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        # Each statement of the JAR's is a few queries of a few rows: planned once, and not compiled.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    session = start_session("tablefeed beside the JAR", scratch=tmp_path_factory.mktemp("peer"), conf=conf)
    yield session
    session.stop()
