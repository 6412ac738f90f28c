"""Translates between Spark's data source API and `tablefeed.feed`. Decisions are made in `tablefeed.feed`, not here.

Two names are for users: `LagListener` and `apply_changes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tablefeed.spark.applying import apply_changes
    from tablefeed.spark.lag_listener import LagListener

__all__ = ["LagListener", "apply_changes"]

_HOMES = {"LagListener": "lag_listener", "apply_changes": "applying"}


def __getattr__(name: str) -> Any:
    # Any: as in tablefeed. Imported when first used, because Spark's workers import this package and never need it.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"tablefeed.spark.{_HOMES[name]}"), name)
