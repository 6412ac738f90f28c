"""Drivers of the cluster: each is a process that spark-submit starts, in a folder that no worker sees."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.jobs import TOLD
from cluster.machines import Cluster
from cluster.packages import Way
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

    def kill(self) -> None:
        """Ends all its processes."""
        kill_session(self.process.pid)
        self.process.wait()


def started(cluster: Cluster, way: Way, jobs: Sequence[Job], conf: Mapping[str, str] | None = None) -> Driver:
    """Starts a driver in a new folder of its own."""
    folder = cluster.hidden / f"driver-{uuid.uuid4()}"
    for name in ("home", "conf", "local"):
        (folder / name).mkdir(parents=True)
    for name, target in way.links.items():
        (folder / name).symlink_to(target)
    cores = {"spark.cores.max": str(len(cluster.workers))}
    settings = {**OF_A_CLUSTER, **cores, "spark.local.dir": str(folder / "local"), **(conf or {})}
    command = [str(cluster.home / "bin" / "spark-submit"), "--master", cluster.url, *way.arguments]
    command += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    command += [str(Path(__file__).with_name("jobs.py")), json.dumps({"registers": way.registers, "jobs": jobs})]
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "LANG") if name in os.environ}
    environment = {
        **kept,
        "HOME": str(folder / "home"),
        "SPARK_HOME": str(cluster.home),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": way.python,
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
