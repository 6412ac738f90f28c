"""docs/reference/protocol-delta.md has the rules of the gate, and a module and a test for what is done."""

from __future__ import annotations

import re

from support.pages import page
from tablefeed.delta.features import FEATURES, Rule

PAGE = page("protocol-delta.md")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]


def test_what_the_page_says_to_be_done_is_shown_by_a_test() -> None:
    sections = [row for row in ROWS if len(row) == 4 and row[1].startswith(("handled", "refused", "ignored", "read"))]

    assert len(sections) > 40
    assert [section for section, _, module, tests in sections if not (module and tests)] == []


def test_the_features_have_the_rules_of_the_gate() -> None:
    words = {Rule.HANDLED: "handled", Rule.WHILE_INACTIVE: "while inactive", Rule.REFUSED: "refused"}
    read, written = {**words, Rule.READ_BY_NAME: "by name"}, {**words, Rule.READ_BY_NAME: "refused"}

    rows = {row[0]: row[1:] for row in ROWS if len(row) == 3 and row[0].startswith("`")}

    assert rows == {
        f"`{feature.name}`": [read[feature.rule] if feature.for_readers else "free", written[feature.rule]]
        for feature in FEATURES.values()
    }


def test_each_feature_that_is_not_handled_has_its_reason() -> None:
    section = page("proof-inputs.md").partition("## What is refused, and why")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]

    named = {name for row in rows for name in re.findall(r"`(\w[\w-]*)`", row)}

    not_handled = {feature.name for feature in FEATURES.values() if feature.rule is not Rule.HANDLED}
    assert named == not_handled | {"variantShredding"}
