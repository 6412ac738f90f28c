"""That docs/protocol-indextables.md names modules and tests that exist, for every section."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "protocol-indextables.md").read_text(encoding="utf-8")


def test_every_module_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`(\w+/\w+\.py)`", PAGE))

    assert len(named) > 15
    assert [module for module in sorted(named) if not (ROOT / "src" / "tablefeed" / module).is_file()] == []


def test_every_test_that_the_page_names_is_there() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", PAGE))

    assert len(named) > 30
    assert named - set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE)) == set()


def test_every_section_has_a_module_and_a_test() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")
    ]
    sections = [row for row in rows if row[0] != "section" and not row[0].startswith("---")]

    assert len(sections) == 24
    assert [row[0] for row in sections if len(row) != 5 or ".py`" not in row[3] or "`test_" not in row[4]] == []
