"""The pages on errors name every error and every class of Delta-Spark that the sources raise, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from support.pages import page
from tablefeed import errors

ROOT = Path(__file__).parents[2]
PAGE = page("errors.md") + page("errors-tables.md")
CLASS = r"\b(?:DELTA|DIFFERENT_DELTA)_[A-Z_]+\b"
ONLY_KINDS = {"TablefeedError", "FeedError", "_LocatedError", "_AtVersionError"}
"""Never raised themselves."""


def test_every_error_class_of_delta_spark_that_is_raised_is_on_the_page_and_no_other() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))

    raised = set(re.findall(rf'"({CLASS})"', sources))

    assert set(re.findall(CLASS, PAGE)) == raised


def test_every_error_of_ours_is_in_a_row_of_the_page() -> None:
    ours = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    rows = "".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("|"))

    assert ours - ONLY_KINDS == set(re.findall(r"`(\w+Error)`", rows))
