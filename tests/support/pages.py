"""What a page of docs says there is, and is not: modules as `room/module.py`, tests by their names."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def page(name: str) -> str:
    """The text of the page `name` of docs, in whatever folder it is."""
    [path] = (ROOT / "docs").rglob(name)
    return path.read_text(encoding="utf-8")


def names_of_no_module(text: str, *, of: int) -> list[str]:
    """The modules that a page of more than `of` names and that are no files."""
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", text))
    assert len(named) > of
    return [module for module in sorted(named) if not (ROOT / "src" / "tablefeed" / module).is_file()]


def names_of_no_test(text: str, *, of: int) -> set[str]:
    """The tests that a page of more than `of` names and that no file of tests has."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", text))
    assert len(named) > of
    return named - set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
