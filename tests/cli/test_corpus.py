"""The commands that look at a table, on every table of the corpus: an answer or one line of an error, no defect."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.command_line import run

COMMANDS = [
    ["inspect"],
    ["inspect", "--json"],
    ["log", "--oneline", "--stat", "-n", "3"],
    ["log", "-n", "2"],
    ["cat", "-n", "3", "--json"],
    ["cat", "-n", "3", "--format", "table"],
    ["cat", "-n", "3", "--format", "csv"],
    ["changes", "-n", "2", "--json"],
    ["doctor"],
]


@pytest.mark.in_turn
@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_table_gives_an_answer_or_one_line_of_an_error(command: list[str], corpus: Path) -> None:
    logs = {"_delta_log", "_transaction_log"}
    tables = sorted(folder for folder, below, _ in os.walk(corpus) if logs & {*below})
    name, *options = command
    answered = 0

    for table in tables:
        done = run(name, table, *options)
        if done.code == 3:
            assert done.err.startswith("Error: "), table
            assert len(done.err.splitlines()) == 1, table
        else:
            finds = {"inspect": " cannot be read ", "log": " cannot be read ", "doctor": ""}.get(name, "nothing")
            assert done.code == 0 or (done.code == 1 and finds in done.out + done.err), (table, done.err)
            answered += 1

    assert answered > len(tables) // 8  # few tables record their changes
