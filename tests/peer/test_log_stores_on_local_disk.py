"""On a local disk a commit of the JAR's replaces one that came between its look and its last call, with every LogStore.

Each looks whether the version is there, and then renames a file onto it or creates it, which on POSIX both replace.
The calls are those of Delta's own classes, held there by `held_commit.c`; nothing else is made slower.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest

import tablefeed
from tablefeed.model.actions import Version
from tablefeed.model.outcome import Committed

LOG_STORES = ["HDFSLogStore", "LocalLogStore", "AzureLogStore", "GCSLogStore", "S3SingleDriverLogStore"]
"""Those that Delta has; the first is the default of `spark.delta.logStore.file.impl`."""
OVERWRITE = False
THEIRS = '{"commitInfo":{"timestamp":1,"operation":"WRITE","operationParameters":{}}}'


@pytest.fixture(scope="module")
def jvm(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:  # Any: py4j's
    """A JVM with Hadoop and Delta's storage module, in which commits are held."""
    from py4j.java_gateway import GatewayParameters, JavaGateway

    compiler, jars = shutil.which("cc"), pytestconfig.getoption("--peer-jars")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = tmp_path_factory.mktemp("held") / "held.so"
    source = Path(__file__).with_name("held_commit.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    classes = [
        str(Path(pyspark.__file__).parent / "jars" / "*"),
        *map(str, Path(jars).resolve().glob("delta-storage*")),
    ]
    command = [f"{os.environ['JAVA_HOME']}/bin/java", "-cp", ":".join(classes), "py4j.GatewayServer"]
    with subprocess.Popen(
        [*command, "--die-on-broken-pipe", "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "LD_PRELOAD": str(library)},
        text=True,
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
        yield gateway.jvm
        gateway.shutdown()


@pytest.mark.parametrize("log_store", LOG_STORES)
def test_every_log_store_of_the_jar_replaces_a_commit_that_came_after_it_looked(
    jvm: Any, tmp_path: Path, log_store: str
) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [0]}))
    commit = tmp_path / "_delta_log" / f"{1:020d}.json"
    os.mkfifo(tmp_path / "held")
    os.mkfifo(tmp_path / "go")
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)

    def by_the_jar() -> None:
        conf, lines = jvm.org.apache.hadoop.conf.Configuration(), jvm.java.util.ArrayList()
        lines.add(THEIRS)
        store = getattr(jvm.io.delta.storage, log_store)(conf)
        store.write(jvm.org.apache.hadoop.fs.Path(commit.as_uri()), lines.iterator(), OVERWRITE, conf)

    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(by_the_jar)
        assert select.select([held], [], [], 60)[0], "the JAR made no call that is held"
        ours = tablefeed.append(tmp_path, pa.table({"id": [1]}))
        assert '"tablefeed/' in commit.read_text()
        (tmp_path / "go").write_bytes(b"")
        theirs.result(timeout=60)

    os.close(held)
    assert ours == Committed(version=Version(1))
    assert commit.read_text().strip() == THEIRS


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__context__


@pytest.mark.parametrize("log_store", LOG_STORES)
def test_no_log_store_of_the_jar_replaces_a_commit_that_it_sees(jvm: Any, tmp_path: Path, log_store: str) -> None:
    from py4j.protocol import Py4JError

    for n in range(2):
        tablefeed.append(tmp_path, pa.table({"id": [n]}))
    commit = tmp_path / "_delta_log" / f"{1:020d}.json"
    conf, lines = jvm.org.apache.hadoop.conf.Configuration(), jvm.java.util.ArrayList()
    lines.add(THEIRS)
    store = getattr(jvm.io.delta.storage, log_store)(conf)

    with pytest.raises(Py4JError) as caught:
        store.write(jvm.org.apache.hadoop.fs.Path(commit.as_uri()), lines.iterator(), OVERWRITE, conf)

    # Where a Spark session is in this process, PySpark looks the exception up in the session's JVM, which is another
    # one, and may fail with an error of its own. The JAR's exception is then the context of that error.
    assert any("FileAlreadyExistsException" in str(error) for error in chain_of(caught.value))
    assert '"tablefeed/' in commit.read_text()
