"""Plays a transcript again: types its commands into a shell of a new user, and writes down what the user sees.

A transcript is text. A line that begins with `$ ` is typed, and so are lines below it that begin with `> `. One with
`# ` is a remark. The lines after a command are its output, and `[exit 3]` is its exit code where that is not 0.
Whatever differs from run to run is replaced by a name such as `<time>`.

The new user has a Python, the wheel and what it depends on. The dependencies are those of the environment that plays,
so that nothing is downloaded.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]

_CHANGING = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<id>"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?", "<time>"),
    (r"(?<=_ms\":)\d+", "<time>"),
    (r"[\d.]+ (B|KiB|MiB)\b", "<size>"),
    (r"(bytes[a-z_]*\":)\d+", r"\1<size>"),
    (r"[\d.]+(?= seconds| s\b)", "<seconds>"),
    (r"(?<=seconds_behind\":)[\d.]+", "<seconds>"),
    (r"(?<=seconds behind)( +)[\d.]+", r"\1<seconds>"),
)


def build_wheel(folder: Path) -> Path:
    """Builds the wheel of this tree into `folder`."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


class NewUser:
    """A user with a Python environment that has `wheel`, in an empty folder below `home`."""

    def __init__(self, home: Path, wheel: Path) -> None:
        self.here = home / "work"
        self.here.mkdir()
        self._python = home / "python"
        venv.create(self._python, symlinks=True)
        packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(self._python)}))
        # A path in a .pth file adds a folder, and not what .pth files in it name: the editable tablefeed stays away.
        (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(self._python / "bin/python")]
        subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
        self._environment = {
            "PATH": os.pathsep.join([str(self._python / "bin"), os.defpath]),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "AWS_EC2_METADATA_DISABLED": "true",
            "SPARK_LOCAL_IP": "127.0.0.1",
            **{name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ},
        }

    def play(self, transcript: str, changing: Sequence[tuple[str, str]] = ()) -> str:
        """Gives the transcript as it is now. `changing` has what differs in this one only, and names for it."""
        seen: list[str] = []
        for entry in re.findall(r"^# .*|^\$ .*(?:\n> .*)*", transcript, re.MULTILINE):
            seen += entry.splitlines()
            if entry.startswith("$ "):
                seen += self._type(entry[2:].replace("\n> ", "\n"), [*changing, *_CHANGING])
        return "\n".join(seen) + "\n"

    def run(self, command: str) -> tuple[str, int]:
        """Gives what a command in a shell prints, and its exit code."""
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=self.here,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        return done.stdout.decode(errors="replace"), done.returncode

    def _type(self, command: str, changing: Sequence[tuple[str, str]]) -> list[str]:
        text, code = self.run(command)
        for place, name in ((self.here, "<here>"), (self.here.parent, "<home>")):
            text = text.replace(str(place), name)
        for pattern, name in changing:
            text = re.sub(pattern, name, text)
        lines = [line.rstrip() for line in text.splitlines()]
        return lines if code == 0 else [*lines, f"[exit {code}]"]
