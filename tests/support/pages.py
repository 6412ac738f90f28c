"""A page of docs, and its blocks of code."""

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
