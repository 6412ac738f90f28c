"""docs/reference/protocol-indextables.md names a module and a test for every section."""

from __future__ import annotations

from support.pages import page

PAGE = page("protocol-indextables.md")


def test_every_section_has_a_module_and_a_test() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")
    ]
    sections = [row for row in rows if row[0] != "section" and not row[0].startswith("---")]

    assert len(sections) == 31
    assert [row[0] for row in sections if len(row) != 5 or ".py`" not in row[3] or "`test_" not in row[4]] == []
