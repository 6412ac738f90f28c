"""That docs/exactly-once.md argues with tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_test_that_the_page_names_is_there() -> None:
    page = (ROOT / "docs" / "exactly-once.md").read_text()
    sources = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))

    named = set(re.findall(r"`(test_\w+)", page)) | {Path(p).stem for p in re.findall(r"`tests/(\S+\.py)`", page)}
    there = set(re.findall(r"def (test_\w+)", sources)) | {path.stem for path in (ROOT / "tests").rglob("*.py")}

    assert len(named) > 30
    assert named - there == set()
