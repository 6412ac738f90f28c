"""The Spark Connect server of the tests, and the sessions of the tests that hold on classic Spark and Connect alike.

On Connect `foreachBatch` runs in the server: what its function keeps, a test does not see.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support.connect import connect, connect_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_FOR_FEW_ROWS = {
    # Compiling a plan costs more than running it: casts and expressions are compared with compiled ones elsewhere.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Each is a task and, where a query keeps state, a state store.
    "spark.sql.shuffle.partitions": "1",
}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks every test of this folder."""
    item.add_marker("spark")


@pytest.fixture(scope="module")
def few_rows(spark: SparkSession) -> Iterator[None]:
    """Has Spark do less around the few rows of a module's queries."""
    before = {key: str(spark.conf.get(key)) for key in _FOR_FEW_ROWS}
    for key, value in _FOR_FEW_ROWS.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.fixture(scope="session")
def connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the one Connect server, a process of its own with a JVM of its own."""
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.fixture(scope="session")
def client(connect_url: str) -> Iterator[SparkSession]:
    """The one session on the Connect server: there every new one starts new Python workers, which takes seconds."""
    client = connect(connect_url)
    yield client
    client.stop()


@pytest.fixture(params=["classic", "connect"])
def session(request: pytest.FixtureRequest) -> SparkSession:
    """The session of this process's JVM, and then the client's."""
    spark: SparkSession = request.getfixturevalue("spark" if request.param == "classic" else "client")
    return spark


@pytest.fixture(params=["classic", "connect"])
def new_session(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A session in which nothing was done yet, on this process's JVM and then on the Connect server."""
    if request.param == "classic":
        spark: SparkSession = request.getfixturevalue("spark")
        yield spark.newSession()
    else:
        client = connect(request.getfixturevalue("connect_url"))
        yield client
        client.stop()
