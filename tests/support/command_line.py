"""The command line as the tests call it: in this process, or as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from shutil import which
from typing import Any

import pytest
from typer.testing import CliRunner

from tablefeed.cli.app import app


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command left: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:  # Any: JSON
        """What was written, as lines of JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


def run(*arguments: object, env: dict[str, str] | None = None, data: bytes | None = None) -> Ran:
    """Runs a command in this process."""
    done = CliRunner().invoke(app, [str(each) for each in arguments], env=env, input=data, prog_name="tablefeed")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Ran(code=done.exit_code, out=done.stdout, err=done.stderr)


def run_without_rights(*arguments: object) -> Ran:
    """Runs a command as a process without the right of root to open every file; where that is not possible, skips."""
    as_nobody = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if as_nobody and which("setpriv") is None:
        pytest.skip("root reads every folder")
    command = [*as_nobody, sys.executable, "-m", "tablefeed", *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return Ran(code=done.returncode, out=done.stdout, err=done.stderr)


def started(*arguments: object, **how: Any) -> subprocess.Popen[bytes]:  # Any: arguments of Popen
    """Starts a command as a process of its own, with its output in a pipe."""
    command = [sys.executable, "-m", "tablefeed", *map(str, arguments)]
    environment = {**os.environ, "NO_COLOR": "1", **how.pop("env", {})}
    # a shell that starts the tests in the background ignores SIGINT, and its children would too
    return subprocess.Popen(
        command,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how},
    )


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Ends the process where a test fails before it does."""
    with process:
        try:
            yield process
        finally:
            process.kill()
