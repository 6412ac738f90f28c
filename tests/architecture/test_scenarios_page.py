"""That docs/reference/scenarios holds each scenario of Delta-Spark's suites to a test that is there, or to a reason.

A page has a row a scenario: its name, and either our tests by their node ids, `<br>` between two, or
`[differs](../../how-to/migrating.md#anchor)`. An id is one that pytest collects, or without brackets a test
with all of its parameters. An anchor is that of an item of a list, `<a id="..."></a>`, or of a heading, and what it
leads to gives a reason.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from support import pages

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference" / "scenarios"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
MIGRATING = pages.page("migrating.md")
REASONS = ("JVM-only API (`", "Databricks-only", "Impossible in Spark's Python API (`", "Ours is ")
"""A JVM-only API is named, and what is impossible comes with the command or the test that shows it."""

NODE = re.compile(r"`((tests/[\w/]+\.py)::test_\w+(?:\[[^`]*\])?)`")
DIFFERS = re.compile(r"\[differs\]\(\.\./\.\./how-to/migrating\.md#([\w-]+)\)")
BETWEEN_CELLS = re.compile(r"(?<!\\)\|")


class Row(NamedTuple):
    scenario: str
    shown_by: str

    @property
    def differs(self) -> bool:
        return DIFFERS.fullmatch(self.shown_by) is not None


def rows_of(page: Path) -> list[Row]:
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert lines[:2] == ["| scenario | test |", "|---|---|"], page.name
    cells = [[cell.strip() for cell in BETWEEN_CELLS.split(line.strip("|"))] for line in lines[2:]]
    assert [row for row in cells if len(row) != 2] == [], page.name
    return [Row(scenario, shown_by) for scenario, shown_by in cells]


@pytest.fixture(scope="module")
def collected(collected_here: frozenset[str]) -> frozenset[str]:
    """Every node id that pytest collects from the files that the pages name, and each test without its parameters."""
    named = {file for page in PAGES for _, file in NODE.findall(page.read_text(encoding="utf-8"))}
    files = {file for file in named if (ROOT / file).is_file()} - {node.partition("::")[0] for node in collected_here}
    nodes = {*collected_here, *(collected_apart(sorted(files)) if files else ())}
    return frozenset([*nodes, *(without_parameters(node) for node in nodes)])


def collected_apart(files: list[str]) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider"]
    command += ["--every-stream", "--every-store", *files]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return [line for line in run.stdout.splitlines() if "::" in line]


def without_parameters(node: str) -> str:
    return node.partition("[")[0]


def what_stands_at(anchor: str) -> str:
    """The item of a list, or the section, that an anchor of migrating.md leads to; empty where there is none."""
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
    assert [row for row in rows if not row.differs and not all(map(NODE.fullmatch, row.shown_by.split("<br>")))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_is_one_that_pytest_collects(page: Path, collected: frozenset[str]) -> None:
    nodes = [node for node, _ in NODE.findall(page.read_text(encoding="utf-8"))]

    assert [node for node in nodes if node not in collected] == []


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
