"""A run of the tests names its seed, and ends by saying how it met the corpus; one wrong table fails it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]


def _run(test: str, *, corpus: Path, folder: Path, processes: int = 0) -> tuple[int, str]:
    code, lines = _lines_of_a_run(test, corpus=corpus, folder=folder, processes=processes)
    return code, lines[-1]


def _lines_of_a_run(test: str, *, corpus: Path, folder: Path, processes: int = 0) -> tuple[int, list[str]]:
    (folder / "test_it.py").write_text(test)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-rs",
        "-p",
        "conftest",
        "--rootdir",
        str(folder),
        "-c",
        os.devnull,
    ]
    command += ["-n", str(processes)]
    environment = {**os.environ, "PYTHONPATH": str(_TESTS), "TABLEFEED_CORPUS": str(corpus)}
    done = subprocess.run(
        [*command, str(folder)], capture_output=True, text=True, check=False, env=environment, cwd=folder
    )
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("verdicts", "processes", "ended"),
    [
        ("record_corpus(right=2); record_corpus(refused=1)", 0, (0, "corpus: 2 right, 1 refused, 0 wrong")),
        ("record_corpus(right=2); record_corpus(wrong=1)", 0, (1, "corpus: 2 right, 0 refused, 1 wrong")),
        ("record_corpus(right=2); record_corpus(wrong=1)", 2, (1, "corpus: 2 right, 0 refused, 1 wrong")),
    ],
)
def test_a_run_ends_with_the_tally_and_fails_with_a_wrong_table(
    verdicts: str, processes: int, ended: tuple[int, str], tmp_path: Path
) -> None:
    test = f"def test_it(corpus, record_corpus):\n    {verdicts}\n"

    assert _run(test, corpus=tmp_path, folder=tmp_path, processes=processes) == ended


def test_without_a_corpus_its_tests_are_skipped_and_the_run_says_so_in_one_line(tmp_path: Path) -> None:
    test = "def test_one(corpus):\n    raise AssertionError\n\ndef test_two(corpus):\n    raise AssertionError\n"

    code, lines = _lines_of_a_run(test, corpus=tmp_path / "nowhere", folder=tmp_path)

    assert [line for line in lines if line.startswith("SKIPPED")] == [
        "SKIPPED [2] tests:0: it needs other projects' tables: set TABLEFEED_CORPUS to the corpus"
    ]
    assert (code, lines[-1]) == (0, "corpus: absent")


def test_every_process_of_a_run_tries_the_examples_of_the_seed_that_the_run_names(tmp_path: Path) -> None:
    test = "def test_it(pytestconfig, n):\n    assert not pytestconfig.option.hypothesis_seed\n"
    cases = "import pytest\n\n\n@pytest.mark.parametrize('n', range(4))\n"

    _, lines = _lines_of_a_run(cases + test, corpus=tmp_path, folder=tmp_path, processes=2)

    (named,) = [line.partition("--hypothesis-seed=")[2] for line in lines if "--hypothesis-seed=" in line]
    seeds = [line.split("'")[1] for line in lines if line.startswith("E ") and "assert not '" in line]
    assert seeds == [named] * 4
