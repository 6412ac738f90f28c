"""That the pages on exactly-once argue with tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import pages

ROOT = Path(__file__).parents[2]
PAGES = (
    "exactly-once.md",
    "exactly-once-indextables.md",
    "concurrent-writers.md",
    "tables-that-go-away.md",
    "background-work.md",
    "bad-rows.md",
)


@pytest.mark.parametrize("name", PAGES)
def test_every_test_that_the_page_names_is_there(name: str) -> None:
    page = pages.page(name)
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))

    named = set(re.findall(r"`(test_\w+)", page)) | {Path(p).stem for p in re.findall(r"`tests/(\S+\.py)`", page)}
    there = set(re.findall(r"def (test_\w+)", sources)) | {path.stem for path in (ROOT / "tests").rglob("*.py")}

    assert len(named) >= 3
    assert named - there == set()
