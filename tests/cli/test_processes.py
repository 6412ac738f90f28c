"""The command line as a process: help is quick, a closed pipe is quiet, and nothing heavy is imported for nothing."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from support.command_line import run, started
from tablefeed.cli.commands import COMMANDS, overview
from tablefeed.cli.main import main

_HEAVY = ("pyarrow", "pyspark", "fsspec", "rich", "typer", "orjson")


def test_help_imports_nothing_heavy() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "tablefeed", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert done.stdout == overview()
    assert not imported & set(_HEAVY)


def test_the_help_of_typer_is_the_same() -> None:
    done = run("--help")

    assert (done.code, done.out) == (0, overview())


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help_with_an_example_and_needs_no_table_for_it(name: str) -> None:
    done = run(name, "--help")

    assert done.code == 0
    assert f"Example: tablefeed {name}" in " ".join(done.out.split())


def test_the_help_of_a_command_does_not_import_pyarrow_or_spark() -> None:
    program = (
        "import sys, tablefeed.cli.main as m\nsys.argv[1:] = ['cat', '--help']\n"
        "try:\n    m.main()\nexcept SystemExit:\n    pass\n"
        "print([n for n in ('pyarrow', 'pyspark', 'fsspec') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("shape", ["jsonl", "csv", "table", "arrow", "parquet"])
def test_a_pipe_that_closes_early_is_quiet(shape: str, tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": range(300_000), "text": [f"{i:040d}" for i in range(300_000)]}))
    with started("cat", tmp_path, "--format", shape) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()

        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.parametrize("arguments", [["cat", "--format", "arrow"], ["cat", "--json"], ["log"], ["inspect"]])
def test_a_full_disk_behind_stdout_is_an_error_of_one_line(arguments: list[str], orders: Path) -> None:
    with Path("/dev/full").open("wb") as full, started(*arguments, orders, stdout=full) as process:
        assert process.stderr is not None
        assert process.stderr.read() == b"Error: The output cannot be written: No space left on device.\n"
        assert process.wait() == 3


@pytest.mark.parametrize("answer", ["--help", "--version"])
def test_help_and_version_obey_a_full_disk_and_a_closed_pipe_as_commands_do(answer: str) -> None:
    with Path("/dev/full").open("wb") as full, started(answer, stdout=full) as process:
        assert process.stderr is not None
        assert process.stderr.read() == b"Error: The output cannot be written: No space left on device.\n"
        assert process.wait() == 3
    unread, end = os.pipe()
    os.close(unread)
    with os.fdopen(end, "wb") as closed, started(answer, stdout=closed) as process:
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.parametrize("arguments", [["log"], ["log", "--json"], ["inspect"], ["inspect", "--json"]])
def test_output_is_utf_8_in_every_locale(arguments: list[str], tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"é☃": [1]}), user_metadata="é☃")
    with started(*arguments, tmp_path, env={"PYTHONIOENCODING": "latin-1"}) as process:
        out, err = process.communicate()

    assert "é☃" in out.decode()
    assert (process.returncode, err) == (0, b"")


@pytest.mark.parametrize("closed", ["0<&-", "2>&-", "0<&- 2>&-"])
def test_a_command_works_without_the_streams_that_it_does_not_need(closed: str, orders: Path) -> None:
    shell = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "tablefeed"]

    done = subprocess.run([*shell, "cat", str(orders)], stdout=subprocess.PIPE, check=True)

    assert len(done.stdout.splitlines()) == 4


def test_a_closed_stdin_is_empty_and_a_closed_stdout_is_nowhere(orders: Path) -> None:
    shell = ["/bin/sh", "-c", 'exec "$@" 0<&- 1>&-', "sh", sys.executable, "-m", "tablefeed"]

    done = subprocess.run([*shell, "append", str(orders), "-", "--format", "csv"], stderr=subprocess.PIPE, check=False)

    assert (done.returncode, b"stdin cannot be read: Empty CSV file" in done.stderr) == (2, True)
    assert subprocess.run([*shell, "log", str(orders)], check=True).returncode == 0


def test_an_output_that_is_a_pipe_stays_one(orders: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.csv")
    program = [sys.executable, "-c", "import sys; print(open(sys.argv[1]).read(), end='')"]
    with subprocess.Popen([*program, tmp_path / "rows.csv"], stdout=subprocess.PIPE) as reader:
        assert run("cat", orders, "-o", tmp_path / "rows.csv").code == 0
        assert reader.stdout is not None
        assert len(reader.stdout.read().splitlines()) == 5

    assert (tmp_path / "rows.csv").is_fifo()


def test_the_version_is_that_of_the_package() -> None:
    process = started("--version")

    assert process.communicate()[0].decode().startswith("tablefeed ")
    assert process.returncode == 0


def test_a_shell_gets_the_names_of_commands_to_complete() -> None:
    process = started(env={"_TABLEFEED_COMPLETE": "complete_bash", "COMP_WORDS": "tablefeed ch", "COMP_CWORD": "1"})

    assert b"changes" in process.communicate()[0].split()


def test_the_installed_command_is_this_one() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert EntryPoint("tablefeed", project["scripts"]["tablefeed"], "console_scripts").load() is main
    assert any("cli" in extra for extra in project["optional-dependencies"]["all"])


def test_long_work_shows_its_progress_on_a_terminal_and_leaves_none_of_it_in_the_output(orders: Path) -> None:
    ours, theirs = pty.openpty()
    terminal = {"TERM": "xterm"}
    try:
        command = [sys.executable, "-m", "tablefeed", "cat", str(orders)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=theirs, check=True, env={**os.environ, **terminal}
        )
        os.set_blocking(ours, False)
        shown = os.read(ours, 100_000)
    finally:
        os.close(ours)
        os.close(theirs)

    assert b" rows" in shown
    assert len(done.stdout.splitlines()) == 4
    assert all(line.startswith(b"{") for line in done.stdout.splitlines())


def test_without_typer_the_command_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(name='typer')")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    process = started("inspect", "t", env={"PYTHONPATH": path})
    _, err = process.communicate()

    assert process.returncode == 3
    assert err.decode().splitlines() == [
        'The command line needs typer and rich. Install them: pip install "tablefeed[cli]"'
    ]


def test_colours_are_for_terminals_without_no_color(orders: Path) -> None:
    def seen(**environment: str) -> bytes:
        ours, theirs = pty.openpty()
        try:
            command = [sys.executable, "-m", "tablefeed", "log", str(orders), "--oneline", "-n", "1"]
            kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
            subprocess.run(command, stdout=theirs, check=True, env={**kept, **environment})
            return os.read(ours, 100_000)
        finally:
            os.close(ours)
            os.close(theirs)

    assert b"\x1b[33m3\x1b[0m 20" in seen()
    assert b"\x1b" not in seen(NO_COLOR="1")
    assert "\x1b" not in run("log", orders, "--oneline").out
