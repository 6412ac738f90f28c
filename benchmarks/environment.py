"""Where the numbers come from: versions and the machine, without its name or its paths."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

PACKAGES = ("tablefeed", "pyspark", "pyarrow", "deltalake")


def versions(jars: Path) -> dict[str, str]:
    """Gives the version of all that takes part. Spark's is PySpark's: they come in one package."""
    found = {name: version(name) for name in PACKAGES}
    jar = next((m for path in sorted(jars.glob("delta-spark_*.jar")) if (m := _JAR.fullmatch(path.name))), None)
    return {
        **found,
        "Spark": found["pyspark"],
        "Delta JAR": jar[1] if jar else "unknown",
        "Java": _java(),
        "Python": platform.python_version(),
    }


def machine() -> dict[str, str | int]:
    """Gives the machine's size and kind."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count() or 1,
        "memory_gib": round(pages / 2**30),
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
        "architecture": platform.machine(),
    }


_JAR = re.compile(r"delta-spark_(?:.*-)(\d[\d.]*)\.jar")


def version(package: str) -> str:
    """Gives the installed version of a package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def peak_mb() -> float:
    """Gives the peak of this process alone: that of getrusage begins with the peak of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]) / 1024


def resident_mb() -> float:
    """Gives the memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def peaks_mb() -> tuple[float, float, float]:
    """Gives the peaks of this process, of those that it started, and of all below them, each a sum.

    Processes reach their peaks at different times, and share pages: the sums are at least what was in use at once.
    """
    found: dict[int, tuple[int, float]] = {}
    for file in Path("/proc").glob("[0-9]*/status"):
        try:
            status = dict(line.split(":", 1) for line in file.read_text().splitlines())
        except OSError:
            continue  # it ended just now
        found[int(file.parent.name)] = int(status["PPid"]), int(status.get("VmHWM", "0 kB").split()[0]) / 1024
    own = os.getpid()

    def below(pid: int) -> float:
        return sum(mb + below(child) for child, (parent, mb) in found.items() if parent == pid)

    started = sum(mb for parent, mb in found.values() if parent == own)
    return found[own][1], started, below(own) - started


def in_a_process(module: str, *arguments: str) -> None:
    """Runs a module in a process of its own, whose memory is none of ours."""
    subprocess.run([sys.executable, "-m", module, *arguments], check=True)


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    quoted = re.search(r'"([^"]+)"', told)
    return quoted[1] if quoted else "unknown"
