"""docs/reference/command-line.md: each command is there, and each of its examples works."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from cli.tables import a_checkpoint
from support.command_line import run
from support.pages import page
from tablefeed.cli.commands import COMMANDS
from tablefeed.feed.stream.spark_checkpoint import offset_text
from tablefeed.model.actions import Version
from tablefeed.model.offset import Offset

_PAGE = page("command-line.md")
_EXAMPLES = [
    line
    for block in re.findall(r"^```\n(.*?)^```", _PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.startswith("tablefeed ")
]


@pytest.mark.parametrize("example", _EXAMPLES)
def test_each_example_of_the_page_works(
    example: str, orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    end = Offset(table_id=tablefeed.open_table(orders).table_id, version=Version(2))
    a_checkpoint(tmp_path / "_checkpoints" / "copy", offset_text(end))
    tablefeed.append(tmp_path / "copy", tablefeed.open_table(orders).to_arrow(), partition_by=["day"])
    (tmp_path / "new.csv").write_text("id,name,day\n6,n6,2026-01-01\n")
    (tmp_path / "query.log").write_text("tablefeed.errors.TableError: It is wrong.\n")
    (tmp_path / "events.jsonl").write_text('{"id": 1, "name": "new", "ts": 2}\n')
    state = pa.schema([("id", pa.int64()), ("name", pa.string()), ("ts", pa.int64())])
    tablefeed.create(tmp_path / "state", state, properties={"delta.feature.domainMetadata": "supported"})
    arguments = [word.replace("/lake/", f"{tmp_path}/") for word in shlex.split(example)]

    done = run(*arguments[1:])

    assert done.code in (0, 1), done.err


def test_each_command_is_on_the_page() -> None:
    assert [name for name in COMMANDS if not any(e.startswith(f"tablefeed {name} ") for e in _EXAMPLES)] == []


def test_each_exit_code_is_on_the_page() -> None:
    from tablefeed.cli import exits

    codes = {exits.DONE, exits.DIFFERENT, 2, exits.ERROR, exits.INTERRUPTED, exits.BROKEN_PIPE, exits.DEFECT}

    assert {int(code) for code in re.findall(r"^\| (\d+) \|", _PAGE, re.MULTILINE)} == codes
