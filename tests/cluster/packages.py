"""tablefeed as users ship it to a cluster: a wheel, a zip for --py-files, and an archive of a virtual environment.

The environments of the first two have the packages of the tests' own, as machines have on which everything but
tablefeed is installed. The archive has only what `pip install tablefeed[s3,where]` installs, and pandas.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a driver is started: the Python of all machines, what spark-submit is given, and links in its folder."""

    python: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    registers: bool = False
    links: Mapping[str, Path] = field(default_factory=dict)


@dataclass(kw_only=True)
class Packages:
    """Makes each form once, below `folder`."""

    folder: Path

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    @cached_property
    def wheel(self) -> Path:
        """The wheel of this source tree."""
        _pip("wheel", "--no-deps", "--wheel-dir", str(self.folder), str(ROOT))
        [wheel] = self.folder.glob("tablefeed-*.whl")
        return wheel

    @cached_property
    def installed(self) -> Way:
        """The wheel is installed on all machines."""
        python = _environment(self.folder / "installed", with_our_packages=True)
        _pip("--python", str(python), "install", "--no-deps", "--no-index", str(self.wheel))
        return Way(python=str(python))

    @cached_property
    def zipped(self) -> Way:
        """Spark sends the wheel, which is a zip, to machines that have all that tablefeed needs."""
        python = _environment(self.folder / "plain", with_our_packages=True)
        absent = subprocess.run([python, "-c", "import tablefeed"], env={}, capture_output=True, check=False)
        assert b"No module named 'tablefeed'" in absent.stderr
        archive = shutil.copy(self.wheel, self.folder / "tablefeed.zip")
        # Spark gives the processes on the driver that plan a stream its files, but no path to them.
        path = {"PYTHONPATH": str(archive)}
        return Way(python=str(python), arguments=["--py-files", str(archive)], environment=path, registers=True)

    @cached_property
    def archived(self) -> Way:
        """Spark sends an environment with tablefeed to machines that have only Python."""
        home = self.folder / "environment"
        python = _environment(home, with_our_packages=False)
        # The gate of the tests is a function of mapInArrow, which Spark runs only where pandas is.
        _pip("--python", str(python), "install", f"tablefeed[s3,where] @ {self.wheel.as_uri()}", "pandas>=2.2")
        archive = self.folder / "environment.tar.gz"
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            tar.add(home, arcname=".")
        # The processes on the driver that plan are started with the same relative path.
        return Way(
            python="./environment/bin/python",
            arguments=["--archives", f"{archive}#environment"],
            links={"environment": home},
        )

    def way(self, name: str) -> Way:
        """The way of that name."""
        found: Way = getattr(self, name)
        return found


def _environment(home: Path, *, with_our_packages: bool) -> Path:
    """Makes a virtual environment; gives its Python."""
    venv.create(home, symlinks=True, with_pip=False)
    if with_our_packages:
        [packages] = home.glob("lib/python*/site-packages")
        # A folder that a .pth file adds is searched, but the .pth files in it, such as our own, are not read.
        (packages / "ours.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin" / "python"


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
