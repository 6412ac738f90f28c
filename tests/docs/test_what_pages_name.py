"""The tests and the modules that a page names are there."""

from __future__ import annotations

import re

from support.pages import ROOT

PAGES = {
    path: path.read_text(encoding="utf-8") for path in sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
}


def named(pattern: str) -> set[tuple[str, str]]:
    """Each page with a name that it has in the words of `pattern`."""
    return {(path.name, name) for path, text in PAGES.items() for name in re.findall(pattern, text)}


def test_every_test_that_a_page_names_is_there() -> None:
    files = list((ROOT / "tests").rglob("test_*.py"))
    sources = "\n".join(path.read_text(encoding="utf-8") for path in files)
    there = {path.stem for path in files} | set(re.findall(r"^ *def (test_\w+)", sources, re.MULTILINE))

    tests = named(r"`(test_\w+)")

    assert len(tests) > 400
    assert {(page, test) for page, test in tests if test not in there} == set()


def test_every_file_of_python_that_a_page_names_is_there() -> None:
    modules = named(r"`((?:\w+/)+\w+\.py)\b")

    assert len(modules) > 100
    assert {
        (page, name)
        for page, name in modules
        if not (ROOT / name).is_file() and not (ROOT / "src" / "tablefeed" / name).is_file()
    } == set()
