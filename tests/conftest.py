"""What every test can ask for: the corpus, and the one Spark session. Also the hypothesis profiles."""

from __future__ import annotations

import gc
import json
import os
import secrets
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from support.browser import SKIPPED_WITHOUT_CHROMIUM
from support.corpus import SKIPPED_WITHOUT_CORPUS, Tally, other_projects_tables
from support.gateway import Gateway
from support.object_stores import SKIPPED_WITHOUT_SERVERS, report, serve, serve_s3
from support.recordings import unpack_index_tables
from support.session import start_session
from support.streams import RecordedStreams, unpack_streams
from support.unity import FakeCatalog, serve_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No deadlines and no complaint about slowness: both tell of the machine, not of the code.
_PATIENT = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("dev", _PATIENT, max_examples=25)
# Hypothesis would try the same examples in every run of CI. Ours are others each time, by a seed that is printed.
_IN_CI = hypothesis.settings(_PATIENT, derandomize=False, database=None, print_blob=True)
hypothesis.settings.register_profile("ci", _IN_CI, max_examples=30)
hypothesis.settings.register_profile("fuzz", _IN_CI, max_examples=200)
# One mutant meets many tests (make mutants). The first failure is enough.
_NOT_SHRUNK = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
hypothesis.settings.register_profile("mutants", _PATIENT, max_examples=10, database=None, phases=_NOT_SHRUNK)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") == "true" else "dev")

# The client of Spark Connect uses gRPC, which by default restarts its threads in a forked child. PySpark forks to start
# a JVM and closes the files of the child. Such a thread then ends the child (SIGABRT) before it is `spark-submit`.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"

_TESTS_IN_A_SLOW_ONE = 20
"""As many tests on Spark take as long as one that is marked slow."""

_TALLY = pytest.StashKey[Tally]()
_COLLECTED = pytest.StashKey[set[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--peer-jars", type=Path, help="the folder of scripts/peer_jars.sh, for the tests marked peer")
    parser.addoption("--every-stream", action="store_true", help="every stream on Spark (make test-streams)")
    parser.addoption("--every-case", action="store_true", help="all cases of the tests marked in_turn (EVERY_CASE=1)")
    parser.addoption("--half", action="store_true", help="every second test, by the seed of the run (make test-peer)")
    parser.addoption("--cluster", action="store_true", help="also the tests marked cluster (make test-cluster)")
    parser.addoption("--every-store", action="store_true", help="also the tests marked every_store (make test-stores)")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(50_000, 10, 10)  # the usual 700 spends a fifth of the time of a simulation
    if config.option.hypothesis_seed is None:
        of_the_run = getattr(config, "workerinput", {}).get("hypothesis_seed")
        config.option.hypothesis_seed = of_the_run or str(secrets.randbits(32))
    config.stash[_TALLY] = Tally()
    config.stash[_COLLECTED] = set()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # what tests are made of stays: no collection need look through it


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [f"the examples again: --hypothesis-seed={config.option.hypothesis_seed}", report()]


def pytest_itemcollected(item: pytest.Item) -> None:
    item.config.stash[_COLLECTED].add(item.nodeid)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for marker in ("cluster", "every_store", "every_stream"):
        if not config.getoption(marker):
            config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker(marker)])
            items[:] = [item for item in items if not item.get_closest_marker(marker)]
    if not config.getoption("every_case"):
        _take_a_quarter(config, items)
    if config.getoption("half"):
        turn = int(config.option.hypothesis_seed) % 2
        config.hook.pytest_deselected(items=items[1 - turn :: 2])
        items[:] = items[turn::2]
    # What needs no JVM comes first: it fails within seconds. Of the rest the long files do, so that none of them is
    # left to one of two processes at the end.
    length_of = Counter[Path]()
    for item in items:
        length_of[item.path] += _TESTS_IN_A_SLOW_ONE if item.get_closest_marker("slow") else 1
    items.sort(key=lambda item: -length_of[item.path] if item.get_closest_marker("spark") else float("-inf"))


def _take_a_quarter(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes every fourth case of a test marked `in_turn`; the seed of the run says which quarter."""
    turn, cases, others = int(config.option.hypothesis_seed) % 4, Counter[str](), list[pytest.Item]()
    for item in items:
        if item.get_closest_marker("in_turn"):
            test = item.nodeid.partition("[")[0]
            cases[test] += 1
            if cases[test] % 4 != turn:
                others.append(item)
    config.hook.pytest_deselected(items=others)
    left_out = {item.nodeid for item in others}
    items[:] = [item for item in items if item.nodeid not in left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:  # Any: pytest-xdist's
    """Gives what `--dist loadfile` means here."""
    if config.getoption("dist") != "loadfile":
        return None
    from support.scheduling import FilesAndConnect

    return FilesAndConnect(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Gives every skip for want of one thing one place, so that `-rs` reports all of them in one line."""
    result = yield
    wanting = str(call.excinfo.value) if call.excinfo is not None else ""
    if wanting in (SKIPPED_WITHOUT_CORPUS, SKIPPED_WITHOUT_SERVERS, SKIPPED_WITHOUT_CHROMIUM):
        result.longrepr = ("tests", 0, wanting)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    tally = session.config.stash[_TALLY]
    if _is_worker(session.config):
        session.config.workeroutput["corpus"] = asdict(tally)  # type: ignore[attr-defined]  # pytest-xdist's
    elif tally.wrong > 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:  # Any: as below
    """Gives a process of this run the seed that the run names."""
    node.workerinput["hypothesis_seed"] = node.config.option.hypothesis_seed


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # Any: pytest-xdist's process, of a run in several
    """Counts what a process of this run met."""
    node.config.stash[_TALLY](**getattr(node, "workeroutput", {}).get("corpus", {}))


def pytest_unconfigure(config: pytest.Config) -> None:
    # After pytest's own closing line: this one is the last.
    if not _is_worker(config):
        print(config.stash[_TALLY].closing_line())  # noqa: T201 (the line is for whoever reads the output)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workeroutput")


@pytest.fixture(autouse=True)
def _json_with_blanks() -> Iterator[None]:
    """Undoes what a stream's reader asks of `json.dumps` in the process that plans, which here is the tests' own."""
    yield
    json.JSONEncoder.item_separator, json.JSONEncoder.key_separator = ", ", ": "


@pytest.fixture(scope="session")
def collected_here(pytestconfig: pytest.Config) -> frozenset[str]:
    """The ids of this run's tests, those included that it leaves out; none where it was asked for single ones."""
    whole = not any("::" in argument for argument in pytestconfig.args)
    return frozenset(pytestconfig.stash[_COLLECTED] if whole else ())


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of the corpus, which has other projects' tables; where it is absent the test is skipped."""
    return other_projects_tables()


@pytest.fixture(scope="session")
def index_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the IndexTables tables, unpacked once; whoever changes a table works on a copy."""
    folder = tmp_path_factory.mktemp("indextables")
    unpack_index_tables(folder)
    return folder


@pytest.fixture(scope="session")
def recorded_streams(tmp_path_factory: pytest.TempPathFactory) -> RecordedStreams:
    """The recorded streams, their tables unpacked once; whoever changes a table works on a copy."""
    return unpack_streams(tmp_path_factory.mktemp("streams"))


@pytest.fixture(scope="session")
def record_corpus(pytestconfig: pytest.Config) -> Tally:
    """Counts the verdicts on the corpus: `record_corpus(right=1)`."""
    return pytestconfig.stash[_TALLY]


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Gateway]:
    """The one server of S3; it ends with the tests."""
    with serve_s3() as gateway:
        yield gateway


@pytest.fixture
def gateway(s3_server: Gateway) -> Gateway:
    """A server of S3 that behaves well as long as a test does not say otherwise, with an empty bucket."""
    s3_server.begin()
    return s3_server


@pytest.fixture
def catalog() -> Iterator[FakeCatalog]:
    """A server of Unity Catalog's interface, without a table."""
    with serve_catalog() as served:
        yield served


@pytest.fixture(scope="session")
def versitygw() -> Iterator[Gateway]:
    """A second implementation of S3."""
    with serve("versitygw") as gateway:
        yield gateway


@pytest.fixture(scope="session")
def fake_gcs_server() -> Iterator[Gateway]:
    """A server of Google Cloud Storage."""
    with serve("fake-gcs-server") as gateway:
        yield gateway


@pytest.fixture(scope="session")
def azurite() -> Iterator[Gateway]:
    """A server of Azure Blob Storage."""
    with serve("azurite") as gateway:
        yield gateway


@pytest.fixture
def object_store(request: pytest.FixtureRequest) -> Gateway:
    """An empty bucket of the server whose fixture the test's parameter names."""
    gateway: Gateway = request.getfixturevalue(request.param)
    gateway.begin()
    return gateway


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The one session of the tests marked `spark`, with nothing but tests/support/session.py configured."""
    session = start_session("tablefeed tests", scratch=tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
