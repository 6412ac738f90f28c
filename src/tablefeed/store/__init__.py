"""Where bytes live: list, read, put-if-absent, wake. Knows no action and no version."""

from tablefeed.store.base import Entry, Store, Within
from tablefeed.store.local import LocalStore
from tablefeed.store.opening import open_store
from tablefeed.store.remote import FsspecStore

__all__ = [
    "Entry",
    "FsspecStore",
    "LocalStore",
    "Store",
    "Within",
    "open_store",
]
