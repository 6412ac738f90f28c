"""A Spark Connect server of the tests' own, and sessions that are its clients: a driver in another process."""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from support.session import CONF, home_without_archives

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 120

STARTED = re.compile(r"Spark Connect server started at: \S*:(\d+)")


@contextmanager
def connect_server(scratch: Path) -> Iterator[str]:
    """Runs a server of the installed PySpark until the block ends; gives its address, `sc://127.0.0.1:PORT`.

    Its files and its log go to `scratch`. Its workers run this Python and this tablefeed.
    """
    import tablefeed

    home = home_without_archives(scratch)
    log = scratch / "server.log"
    conf = {
        **CONF,
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",  # a free one, which the server tells
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    environment = {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(tablefeed.__file__).parents[1]),  # a relative one would be another from `scratch`
    }
    with subprocess.Popen(
        command, cwd=scratch, env={**os.environ, **environment}, text=True, stderr=subprocess.PIPE
    ) as server:
        assert server.stderr is not None
        port: queue.Queue[str | None] = queue.Queue()
        keeper = threading.Thread(target=_keep, args=(server.stderr, log, port), daemon=True)
        keeper.start()
        try:
            found = _told(port)
            if found is None:
                raise RuntimeError(f"the server did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")
            yield f"sc://127.0.0.1:{found}"
        finally:
            _end(server)
            keeper.join(PATIENCE_S)


def connect(url: str) -> SparkSession:
    """A new session on the server, sharing nothing with others but their tables.

    Made by the class that `SparkSession.builder.remote(url)` leads to: that call refuses where a process has a
    session of its own already, as the tests' has.
    """
    from pyspark.sql.connect.session import SparkSession as ClientSession

    # PySpark's own builder casts it so: the two classes have one interface and no ancestor in common.
    return cast("SparkSession", ClientSession.builder.remote(url).create())


def _keep(lines: IO[str], log: Path, port: queue.Queue[str | None]) -> None:
    """Writes down what the server says to its end, for it stops where nobody reads; tells its port, or that it died."""
    with log.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(line)
            if found := STARTED.search(line):
                port.put(found[1])
    port.put(None)


def _told(port: queue.Queue[str | None]) -> str | None:
    try:
        return port.get(timeout=PATIENCE_S)
    except queue.Empty:
        return None


def _end(server: subprocess.Popen[str]) -> None:
    server.terminate()
    try:
        server.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        server.kill()
