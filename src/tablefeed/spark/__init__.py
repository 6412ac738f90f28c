"""Translates between Spark's data source API and `tablefeed.feed`. Decisions are made in `tablefeed.feed`, not here.

One name is for users: `LagListener`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tablefeed.spark.lag_listener import LagListener

__all__ = ["LagListener"]


def __getattr__(name: str) -> Any:
    # Any: as in tablefeed. Imported when first used, because Spark's workers import this package and never need it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tablefeed.spark.lag_listener import LagListener

    return LagListener
