"""Two formats behind one protocol: what the feed calls on both, and who may ask which of the two a table has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tablefeed.feed.snapshot.table_log import TableLog, TablePlace

SRC = Path(__file__).parents[2] / "src" / "tablefeed"
SNAPSHOT = SRC / "feed" / "snapshot"

MOST_CALLS = 8
"""More calls than these on both formats, and the seam is in the wrong place."""

CALLS = sorted(name for name in vars(TableLog) if not name.startswith("_") and name not in vars(TablePlace))

WHO_ASKS = {
    "feed/api/health.py": 2,
    "feed/api/replicate.py": 1,
    "feed/commit/delta_commit.py": 1,
    "feed/commit/index_commit.py": 1,
    "feed/rows/attempts.py": 1,
    "feed/scan/table_scan.py": 1,
    "feed/snapshot/index_log.py": 1,
    "feed/snapshot/known_state.py": 1,
    "feed/snapshot/open_log.py": 1,
    "feed/upkeep/after_commit.py": 2,
    "feed/upkeep/checkpoint.py": 1,
    "feed/upkeep/index_checkpoint.py": 1,
    "feed/write/sink.py": 1,
    "feed/write/split_write.py": 2,
}
"""The modules that ask which format a log or a snapshot has, and how often: where a table is opened, where its columns
are looked for in files, where a write is planned or committed, where rows change, where a table is copied, where it is
looked after, and where it is said which other programs know it and what its log lacks."""


def test_the_feed_makes_few_calls_on_both_formats_and_makes_each_of_them() -> None:
    behind = [SNAPSHOT / name for name in ("table_log.py", "delta_log.py", "index_log.py")]
    others = "".join(path.read_text() for path in SRC.rglob("*.py") if path not in behind)

    assert len(CALLS) <= MOST_CALLS
    assert [name for name in CALLS if not re.search(rf"\blog\.{name}\(", others)] == []


def test_neither_formats_classes_inherit_from_the_others() -> None:
    def bases(module: str) -> set[str]:
        tree = ast.parse((SNAPSHOT / module).read_text())
        return {ast.unparse(base) for node in tree.body if isinstance(node, ast.ClassDef) for base in node.bases}

    assert bases("delta_log.py") == bases("index_log.py") == {"Snapshot", "TablePlace"}


def test_only_the_named_places_ask_which_format_a_table_has() -> None:
    asks = re.compile(r"has_splits|format_provider ==|isinstance\([^()]*\b(Delta|IndexTables|Index)(Log|Snapshot)\b")
    found = {path: len(asks.findall(path.read_text())) for path in SRC.rglob("*.py")}

    assert {str(path.relative_to(SRC)): count for path, count in found.items() if count} == WHO_ASKS
