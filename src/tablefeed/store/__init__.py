"""Where bytes live: list, read, put-if-absent, wake. Knows no action and no version.

The kinds of store are imported when first used: a process of Spark opens stores of one kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tablefeed.store.base import Content, Entry, Pieces, Store, Within
from tablefeed.store.durable import Draft
from tablefeed.store.opening import open_store

if TYPE_CHECKING:
    from tablefeed.store.local import LocalStore
    from tablefeed.store.remote import FsspecStore

__all__ = [
    "Content",
    "Draft",
    "Entry",
    "FsspecStore",
    "LocalStore",
    "Pieces",
    "Store",
    "Within",
    "open_store",
]

_HOMES = {"FsspecStore": "tablefeed.store.remote", "LocalStore": "tablefeed.store.local"}


def __getattr__(name: str) -> Any:
    # Any: as in tablefeed.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
