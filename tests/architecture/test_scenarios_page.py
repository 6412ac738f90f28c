"""That docs/scenarios holds each scenario of Delta-Spark's suites to a test that is there, or to a reason that is told.

A page has a row a scenario: its name, and either our tests by their node ids or `[differs](../migrating.md#anchor)`. An
anchor is that of an item of a list, `<a id="..."></a>`, or of a heading, and what it leads to gives a reason.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from support.corpus import corpus_folder
from support.streams import recorded_names

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "scenarios"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
MIGRATING = (ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
REASONS = ("JVM-only API (`", "Databricks-only", "Impossible in Spark's Python API (`", "Ours is ")
"""A JVM-only API is named, and what is impossible comes with the command or the test that shows it."""

NODE = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)(?:\[([^`]+)\])?`")
DIFFERS = re.compile(r"\[differs\]\(\.\./migrating\.md#([\w-]+)\)")
BETWEEN_CELLS = re.compile(r"(?<!\\)\|")


class Row(NamedTuple):
    scenario: str
    shown_by: str

    @property
    def differs(self) -> bool:
        return DIFFERS.search(self.shown_by) is not None


def rows_of(page: Path) -> list[Row]:
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert lines[:2] == ["| scenario | test |", "|---|---|"], page.name
    cells = [[cell.strip() for cell in BETWEEN_CELLS.split(line.strip("|"))] for line in lines[2:]]
    assert [row for row in cells if len(row) != 2] == [], page.name
    return [Row(scenario, shown_by) for scenario, shown_by in cells]


@cache
def functions_of(file: str) -> dict[str, bool]:
    """The test functions of a file, each with whether it has parameters."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {each.name: any("parametrize" in ast.unparse(mark) for mark in each.decorator_list) for each in functions}


def what_stands_at(anchor: str) -> str:
    """The item of a list, or the section, that an anchor of docs/migrating.md leads to; empty where there is none."""
    item = re.search(rf'^- <a id="{anchor}"></a>(.*?)(?=^- |^#|^$)', MIGRATING + "\n", re.MULTILINE | re.DOTALL)
    if item is not None:
        return " ".join(item[1].split())
    for heading, section in re.findall(r"^#+ (.*)\n((?:(?!#).*\n?)*)", MIGRATING, re.MULTILINE):
        if re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") == anchor:
            return " ".join(section.split())
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_scenario_has_tests_or_differs_and_stands_once(page: Path) -> None:
    rows = rows_of(page)
    names = [row.scenario for row in rows]

    assert [name for name in names if names.count(name) > 1 or not name] == []
    assert [row.scenario for row in rows if row.differs is (NODE.search(row.shown_by) is not None)] == []
    assert [row.shown_by for row in rows if DIFFERS.sub("", NODE.sub("", row.shown_by)).strip(" ,<br>")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    nodes = NODE.findall(page.read_text(encoding="utf-8"))

    assert [file for file, _, _ in nodes if not (ROOT / file).is_file()] == []
    assert [f"{file}::{test}" for file, test, _ in nodes if test not in functions_of(file)] == []
    assert [f"{test}[{name}]" for file, test, name in nodes if name and not functions_of(file)[test]] == []


@pytest.mark.skipif(corpus_folder() is None, reason="the corpus is absent")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_recorded_stream_that_a_page_names_was_recorded(page: Path) -> None:
    nodes = NODE.findall(page.read_text(encoding="utf-8"))
    named = {name for file, _, name in nodes if file.endswith("/test_recorded_streams.py") and name}

    assert sorted(named - set(recorded_names())) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_whatever_differs_has_its_reason_in_the_migration_guide(page: Path) -> None:
    anchors = set(DIFFERS.findall(page.read_text(encoding="utf-8")))

    assert sorted(anchor for anchor in anchors if not what_stands_at(anchor)) == []
    assert [each for each in sorted(anchors) if not any(reason in what_stands_at(each) for reason in REASONS)] == []


def test_the_front_page_counts_the_scenarios_of_every_page() -> None:
    counted = re.findall(r"^\| \[([\w-]+\.md)\]\(\1\) \| (\d+) \| (\d+) \|$", (FOLDER / "README.md").read_text(), re.M)

    expected = [
        (page.name, str(sum(not row.differs for row in rows)), str(sum(row.differs for row in rows)))
        for page in PAGES
        for rows in [rows_of(page)]
    ]
    assert sorted(counted) == expected
