"""Translates between Spark's data source API and `tablefeed.feed`. Decisions are made in `tablefeed.feed`, not here.

For users are the names in `__all__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tablefeed.spark.changes.applying import apply_changes, apply_changes_from_snapshot
    from tablefeed.spark.explaining import explain
    from tablefeed.spark.replicating import replicate
    from tablefeed.spark.table_history import history
    from tablefeed.spark.watching.metrics_listener import MetricsListener
    from tablefeed.spark.watching.openlineage_listener import OpenLineageListener

__all__ = [
    "MetricsListener",
    "OpenLineageListener",
    "apply_changes",
    "apply_changes_from_snapshot",
    "explain",
    "history",
    "replicate",
]

_HOMES = {
    "MetricsListener": "watching.metrics_listener",
    "OpenLineageListener": "watching.openlineage_listener",
    "apply_changes": "changes.applying",
    "apply_changes_from_snapshot": "changes.applying",
    "explain": "explaining",
    "history": "table_history",
    "replicate": "replicating",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


if not TYPE_CHECKING:  # as in tablefeed

    def __getattr__(name: str) -> Any:
        # Imported when first used, because Spark's workers import this package and never need it.
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module(f"tablefeed.spark.{_HOMES[name]}"), name)
