"""A value as notebooks show it: its fields in words, and nothing of it is markup."""

from __future__ import annotations

from support.html_page import Page
from tablefeed.model.actions import CommitInfo, Version
from tablefeed.model.outcome import Optimized


def test_an_outcome_is_a_table_of_its_fields() -> None:
    page = Page(Optimized(version=Version(1234), files_removed=3, bytes_removed=4096)._repr_html_())

    assert page.tables["Optimized"][:4] == [
        ["version", "1,234"],
        ["files removed", "3"],
        ["files added", "0"],
        ["bytes removed", "4.0 KiB"],
    ]


def test_what_a_writer_wrote_is_text() -> None:
    info = CommitInfo(version=Version(0), committed_at_ms=0, fields={"userName": "<script>alert(1)</script>\u202e"})

    page = Page(info._repr_html_())

    assert page.named("script") == []
    assert page.tables["CommitInfo"][1:] == [
        ["committed at", "1970-01-01 00:00:00.000Z"],
        ["fields", "userName: <script>alert(1)</script>\\u202e"],
    ]
