"""A standalone cluster of the installed Spark on this machine: a master, and workers that share no disk with a driver.

Each worker has its own folder and its own HOME. Where the system has mount namespaces, a worker and its executors see
an empty folder of their own in the place of the driver's. A process here ends with the tests, also if these are killed.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from support.object_stores import free_port
from support.processes import kill_session
from support.session import home_without_archives

PATIENCE_S = 120
MEMORY = "1g"
_SHORT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that lives for some minutes beside eight others."""

_REGISTERED = re.compile("Successfully registered with master")
_STARTED = re.compile("I have been elected leader")

_UNTIL_PARENT_ENDS = '"$@" & read _; kill -9 0'
_WITHOUT = 'hidden=$1; shift; mount -t tmpfs hidden "$hidden" || exit 1; '


@cache
def can_hide() -> bool:
    """Whether a process here may have mounts of its own."""
    probe = [*_NAMESPACE, "mount", "-t", "tmpfs", "probe", "/mnt"]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


_NAMESPACE = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--mount"]


def _spark_home(scratch: Path) -> Path:
    """Makes a SPARK_HOME of the installed Spark that brings PySpark, for machines on which only tablefeed is installed.

    Where a download of Spark has archives of Python modules, this one has folders of the same modules, compiled.
    """
    import pyspark

    home = home_without_archives(scratch)
    for archive in (home / "python" / "lib").iterdir():
        package = archive.name.removesuffix(".zip").partition("-")[0]
        (archive / package).symlink_to(Path(pyspark.__file__).parents[1] / package)
    return home


@dataclass(kw_only=True)
class Machine:
    """A master or a worker: its folder, and the process that leads the session of all its processes."""

    name: str
    folder: Path
    leader: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        """What it wrote so far."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def wait(self, sign: re.Pattern[str]) -> None:
        """Waits until its log has `sign`."""
        until_s = time.monotonic() + PATIENCE_S
        while not sign.search(self.log):
            if self.leader.poll() is not None or time.monotonic() > until_s:
                raise AssertionError(f"{self.name} did not start:\n{self.log[-3000:]}")
            time.sleep(0.05)  # another program's start

    def kill(self) -> None:
        """Ends it with its executors and their Python processes, at once, as a machine that loses its power."""
        kill_session(self.leader.pid)
        self.leader.wait()
        if self.leader.stdin is not None:
            self.leader.stdin.close()


@dataclass(kw_only=True)
class Cluster:
    """A master and its workers. `hidden` is the folder that no worker sees, `home` the SPARK_HOME of all machines.

    `pinned`: a worker's processes share one core of this machine; workers take its cores in turn.
    """

    folder: Path
    home: Path
    hidden: Path
    url: str
    pinned: bool = False
    workers: dict[str, Machine] = field(default_factory=dict)

    def start_workers(self, count: int) -> None:
        """Starts more workers, each of one core and 1 GiB, and waits until the master knows them."""
        started = [self._started_worker() for _ in range(count)]
        for machine in started:
            self.workers[machine.name] = machine
        for machine in started:
            machine.wait(_REGISTERED)

    def _started_worker(self) -> Machine:
        number = len(list(self.folder.glob("worker-*")))
        name, work = f"worker-{number}", self.folder / f"worker-{number}" / "work"
        # Each is a host of its own: Spark runs no second attempt of a task on the host of the first.
        host = f"127.0.0.{2 + number}"
        arguments = ["--cores", "1", "--memory", MEMORY, "--work-dir", str(work), "--webui-port", "0", self.url]
        cores = sorted(os.sched_getaffinity(0))
        before = ["taskset", "--cpu-list", str(cores[number % len(cores)])] if self.pinned else []
        return _started(
            self.folder / name,
            "worker.Worker",
            arguments,
            home=self.home,
            host=host,
            hidden=self.hidden,
            before=before,
        )

    def worker_of(self, path: str) -> Machine:
        """The worker in whose folder `path` is."""
        [name] = [name for name in self.workers if f"/{name}/" in path]
        return self.workers[name]

    def kill(self, machine: Machine) -> None:
        """Kills a worker as a whole."""
        del self.workers[machine.name]
        machine.kill()


@contextmanager
def standalone_cluster(folder: Path, *, workers: int, pinned: bool = False) -> Iterator[Cluster]:
    """Runs a master and `workers` workers until the block ends."""
    hidden = folder / "driver"
    hidden.mkdir()
    home = _spark_home(folder)
    port = free_port()
    arguments = ["--port", str(port), "--webui-port", "0"]
    master = _started(folder / "master", "master.Master", arguments, home=home, host="127.0.0.1", hidden=None)
    cluster = Cluster(folder=folder, home=home, hidden=hidden, url=f"spark://127.0.0.1:{port}", pinned=pinned)
    try:
        master.wait(_STARTED)
        cluster.start_workers(workers)
        yield cluster
    finally:
        for machine in (*cluster.workers.values(), master):
            machine.kill()


def _started(
    folder: Path,
    kind: str,
    arguments: Sequence[str],
    *,
    home: Path,
    host: str,
    hidden: Path | None,
    before: Sequence[str] = (),
) -> Machine:
    for name in ("home", "local", "conf"):
        (folder / name).mkdir(parents=True)
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
    command += ["--host", host, *arguments]
    if hidden is not None and can_hide():
        command = [*_NAMESPACE, "/bin/sh", "-c", _WITHOUT + _UNTIL_PARENT_ENDS, "sh", str(hidden), *command]
    else:
        command = ["/bin/sh", "-c", _UNTIL_PARENT_ENDS, "sh", *command]
    with (folder / "log").open("wb") as log:
        leader = subprocess.Popen(
            [*before, *command],
            cwd=folder,
            env=_environment(folder, home, host),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return Machine(name=folder.name, folder=folder, leader=leader)


def _environment(folder: Path, home: Path, host: str) -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "LANG") if name in os.environ}
    return {
        **kept,
        "HOME": str(folder / "home"),
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": "192m",
        "SPARK_DAEMON_JAVA_OPTS": f"{_SHORT} -Dspark.master.rest.enabled=false",
    }
