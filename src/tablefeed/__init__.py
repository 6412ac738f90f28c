"""tablefeed: a streaming change feed of a table's transaction log, and exactly-once commits to it.

Without Spark: `open_table`, `changes`, `appends`, `follow`, `append`, `create`, `alter`, `restore`, `optimize`,
`vacuum`, `checkpoint` and `consumers`, Arrow in and out. With Spark:
`format("tablefeed")`, found by itself once the package is installed. Everything raises subclasses of `TablefeedError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tablefeed.errors import TablefeedError

if TYPE_CHECKING:
    from tablefeed._version import __version__ as __version__
    from tablefeed.feed.api.append import append
    from tablefeed.feed.api.appends import appends
    from tablefeed.feed.api.changes import changes
    from tablefeed.feed.api.follow import follow
    from tablefeed.feed.api.replicate import replicate
    from tablefeed.feed.api.row_changes import apply_changes, apply_changes_from_snapshot, delete, merge, update
    from tablefeed.feed.api.table import Table, open_table
    from tablefeed.feed.api.table_changes import alter, create, restore
    from tablefeed.feed.rows.merge_clauses import Delete, Insert, Update
    from tablefeed.feed.upkeep.checkpoint import Checkpointed, checkpoint
    from tablefeed.feed.upkeep.consumers import Consumer, Consumers, consumers
    from tablefeed.feed.upkeep.optimize import optimize
    from tablefeed.feed.upkeep.vacuum import Vacuumed, vacuum
    from tablefeed.model.actions import Commit, CommitInfo
    from tablefeed.model.outcome import AlreadyApplied, Committed, Optimized, Replicated
    from tablefeed.model.progress import Progress
    from tablefeed.model.read_plan import ReadPlan

__all__ = [
    "AlreadyApplied",
    "Checkpointed",
    "Commit",
    "CommitInfo",
    "Committed",
    "Consumer",
    "Consumers",
    "Delete",
    "Insert",
    "Optimized",
    "Progress",
    "ReadPlan",
    "Replicated",
    "Table",
    "TablefeedError",
    "Update",
    "Vacuumed",
    "alter",
    "append",
    "appends",
    "apply_changes",
    "apply_changes_from_snapshot",
    "changes",
    "checkpoint",
    "consumers",
    "create",
    "delete",
    "follow",
    "merge",
    "open_table",
    "optimize",
    "replicate",
    "restore",
    "update",
    "vacuum",
]

_HOMES = {
    "__version__": "tablefeed._version",
    "AlreadyApplied": "tablefeed.model.outcome",
    "Delete": "tablefeed.feed.rows.merge_clauses",
    "Insert": "tablefeed.feed.rows.merge_clauses",
    "Update": "tablefeed.feed.rows.merge_clauses",
    "Checkpointed": "tablefeed.feed.upkeep.checkpoint",
    "Commit": "tablefeed.model.actions",
    "CommitInfo": "tablefeed.model.actions",
    "Committed": "tablefeed.model.outcome",
    "Consumer": "tablefeed.feed.upkeep.consumers",
    "Consumers": "tablefeed.feed.upkeep.consumers",
    "Optimized": "tablefeed.model.outcome",
    "Progress": "tablefeed.model.progress",
    "ReadPlan": "tablefeed.model.read_plan",
    "Replicated": "tablefeed.model.outcome",
    "Table": "tablefeed.feed.api.table",
    "Vacuumed": "tablefeed.feed.upkeep.vacuum",
    "alter": "tablefeed.feed.api.table_changes",
    "append": "tablefeed.feed.api.append",
    "appends": "tablefeed.feed.api.appends",
    "apply_changes": "tablefeed.feed.api.row_changes",
    "apply_changes_from_snapshot": "tablefeed.feed.api.row_changes",
    "changes": "tablefeed.feed.api.changes",
    "checkpoint": "tablefeed.feed.upkeep.checkpoint",
    "consumers": "tablefeed.feed.upkeep.consumers",
    "create": "tablefeed.feed.api.table_changes",
    "delete": "tablefeed.feed.api.row_changes",
    "follow": "tablefeed.feed.api.follow",
    "merge": "tablefeed.feed.api.row_changes",
    "open_table": "tablefeed.feed.api.table",
    "optimize": "tablefeed.feed.upkeep.optimize",
    "replicate": "tablefeed.feed.api.replicate",
    "restore": "tablefeed.feed.api.table_changes",
    "update": "tablefeed.feed.api.row_changes",
    "vacuum": "tablefeed.feed.upkeep.vacuum",
}
"""Where the public names live. They are imported when first used: Spark's workers need few of them."""


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


if not TYPE_CHECKING:  # a type checker that sees this function accepts every name; it reads the imports above

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
