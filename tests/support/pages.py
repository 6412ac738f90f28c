"""What a page of docs has: blocks of code, modules as `room/module.py`, tests by their names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^ *```(\w*)(?: title=\"([^\"]*)\")?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of code; `language` and `title` are empty where it has none."""

    language: str
    title: str
    text: str


def page(name: str) -> str:
    """The text of the page `name` of docs, in whatever folder it is."""
    [path] = (ROOT / "docs").rglob(name)
    return path.read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    """The blocks of code of a page, in their order."""
    return [Block(*found) for found in _BLOCK.findall(text)]


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
