"""Every snippet of README and docs does what its page says: its blocks run in their order, in an empty folder.

- `python` blocks run in one namespace, whose `spark` is a session. `sql` blocks run in that session, `bash` blocks in a
  shell.
- A block with a title becomes the file of that name.
- A `text` block after another is what that one prints.
- Blocks of other languages, and those without one, are not run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tablefeed
from docs.setups import NOT_RUN, SETUPS, Setup
from support.pages import Block, blocks

ROOT = Path(__file__).parents[2]
RUN = ("python", "sql", "bash")


def blocks_of(page: str, setup: Setup) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    for old, new in setup.replaced.items():
        assert old in text, f"{page} no longer has {old!r}"
        text = text.replace(old, new)
    return blocks(text)


def in_folder(text: str, folder: Path) -> str:
    return re.sub(r"(?:s3:/)?(?<!\w)/lake(?=/)", f"{folder}/lake", text)


PAGES = [
    name
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if (name := path.relative_to(ROOT).as_posix()) not in NOT_RUN
    and any(block.language in RUN and not block.title for block in blocks_of(name, SETUPS.get(name, Setup())))
]


def shell(text: str, folder: Path) -> str:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(tablefeed.__file__).parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = ["bash", "-euo", "pipefail", "-c", text]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.spark
@pytest.mark.one_spark
@pytest.mark.parametrize("page", PAGES)
def test_the_snippets_of_a_page_do_what_it_says(
    page: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    setup = SETUPS.get(page, Setup())
    namespace = {"spark": spark, "__name__": "__main__"}
    exec(in_folder(setup.code, tmp_path), namespace)  # noqa: S102 - a setup of ours
    printed = ""
    for block in blocks_of(page, setup):
        text = in_folder(block.text, tmp_path)
        if block.title:
            Path(block.title).write_text(text)
        elif block.language == "bash":
            printed = shell(text, tmp_path)
        elif block.language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, page, "exec"), namespace)  # noqa: S102 - a page of ours
            printed = out.getvalue()
        elif block.language == "sql":
            for statement in text.strip().removesuffix(";").split(";\n"):
                spark.sql(statement).collect()
        elif block.language == "text":
            assert printed == block.text
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()
