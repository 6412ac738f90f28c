"""That docs/protocol-delta.md tells what the code does: modules and tests that exist, the rules of the gate."""

from __future__ import annotations

import re
from pathlib import Path

from tablefeed.delta.features import FEATURES, Kind, Rule

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "protocol-delta.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]


def test_every_module_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`(\w+/\w+\.py)`", PAGE))

    assert len(named) > 15
    assert [module for module in sorted(named) if not (ROOT / "src" / "tablefeed" / module).is_file()] == []


def test_every_test_that_the_page_names_is_there() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))

    named = set(re.findall(r"`(test_\w+)`", PAGE))

    assert len(named) > 50
    assert named - set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE)) == set()


def test_what_the_page_says_to_be_done_is_shown_by_a_test() -> None:
    sections = [row for row in ROWS if len(row) == 4 and row[1].startswith(("handled", "refused", "ignored", "read"))]

    assert len(sections) > 40
    assert [section for section, _, module, tests in sections if not (module and tests)] == []


def test_the_features_have_the_rules_of_the_gate() -> None:
    words = {Rule.HANDLED: "handled", Rule.WHILE_INACTIVE: "while inactive", Rule.REFUSED: "refused"}

    rows = {row[0]: row[1:] for row in ROWS if len(row) == 3 and row[0].startswith("`")}

    assert rows == {
        f"`{feature.name}`": ["free" if feature.kind is Kind.WRITER else words[feature.read], words[feature.write]]
        for feature in FEATURES.values()
    }
