"""Drivers of the cluster: each is a process that spark-submit starts, in a folder that no worker sees."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.jobs import TOLD
from cluster.machines import Cluster
from cluster.packages import Way
from support.connect import STARTED as CONNECT_STARTED
from support.processes import kill_session
from support.session import CONF

PATIENCE_S = 280

_SHORT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
OF_A_CLUSTER = {
    **CONF,
    "spark.driver.memory": "768m",
    "spark.driver.extraJavaOptions": _SHORT,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.cores": "1",
    "spark.executor.memory": "600m",  # of the worker's 1 GiB; the rest is for Python
    "spark.executor.extraJavaOptions": _SHORT,
    # All four executors are there before the first task runs.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
}

Job = Mapping[str, Any]  # Any: JSON


@dataclass(kw_only=True)
class Driver:
    """A running driver."""

    process: subprocess.Popen[bytes]
    log: Path

    def told(self) -> list[dict[str, Any]]:
        """Waits for the driver's end; gives what came of each of its jobs."""
        try:
            code = self.process.wait(PATIENCE_S)
        finally:
            self.kill()
        text = self.log.read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines() if line.startswith(TOLD)]
        assert code == 0, text[-6000:]
        assert lines, text[-6000:]
        told: list[dict[str, Any]] = json.loads(lines[-1].removeprefix(TOLD))
        return told

    def wait(self, sign: re.Pattern[str]) -> re.Match[str]:
        """Waits until its log has `sign`."""
        until_s = time.monotonic() + PATIENCE_S
        while (found := sign.search(self.log.read_text(encoding="utf-8", errors="replace"))) is None:
            assert self.process.poll() is None, self.log.read_text(encoding="utf-8", errors="replace")[-3000:]
            assert time.monotonic() < until_s, "the driver did not start"
            time.sleep(0.1)  # another program's start
        return found

    def kill(self) -> None:
        """Ends all its processes."""
        kill_session(self.process.pid)
        self.process.wait()


def started(cluster: Cluster, way: Way, jobs: Sequence[Job], conf: Mapping[str, str] | None = None) -> Driver:
    """Starts a driver of the jobs in a new folder of its own."""
    program = [str(Path(__file__).with_name("jobs.py")), json.dumps({"registers": way.registers, "jobs": jobs})]
    return _submitted(cluster, way, program, conf or {})


@contextmanager
def connect_server(cluster: Cluster, way: Way) -> Iterator[str]:
    """Runs a Spark Connect server as a driver of the cluster until the block ends; gives its address."""
    conf = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": "0"}
    driver = _submitted(cluster, way, ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"], conf)
    try:
        yield f"sc://127.0.0.1:{driver.wait(CONNECT_STARTED)[1]}"
    finally:
        driver.kill()


def _submitted(cluster: Cluster, way: Way, program: Sequence[str], conf: Mapping[str, str]) -> Driver:
    folder = cluster.hidden / f"driver-{uuid.uuid4()}"
    for name in ("home", "conf", "local"):
        (folder / name).mkdir(parents=True)
    for name, target in way.links.items():
        (folder / name).symlink_to(target)
    cores = {"spark.cores.max": str(len(cluster.workers))}
    settings = {**OF_A_CLUSTER, **cores, "spark.local.dir": str(folder / "local"), **conf}
    command = [str(cluster.home / "bin" / "spark-submit"), "--master", cluster.url, *way.arguments]
    command += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    command += program
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "LANG") if name in os.environ}
    environment = {
        **kept,
        "HOME": str(folder / "home"),
        "SPARK_HOME": str(cluster.home),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": way.python,
        **way.environment,
    }
    log = folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=file, stderr=file, start_new_session=True
        )
    return Driver(process=process, log=log)


def ran(cluster: Cluster, way: Way, jobs: Sequence[Job], conf: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Runs a driver to its end; gives what came of each of its jobs."""
    return started(cluster, way, jobs, conf).told()
