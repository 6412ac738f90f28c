"""Objects that a log names by URL, outside the store that holds the log (as shallow clones do)."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tablefeed.store.address import split_absolute
from tablefeed.store.base import Store


class Elsewhere:
    """Finds the store of an object named by URL. Each store is opened once, by `open_root`, and closed by `close`.

    Without `open_root` none is found.
    """

    def __init__(self, open_root: Callable[[str], Store] | None) -> None:
        self._open_root = open_root
        self._stores: dict[str, Store] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> tuple[Store, str] | None:
        """Gives the store of an absolute URL and the name in it; None where `name` is no URL."""
        parts = split_absolute(name)
        if parts is None or self._open_root is None:
            return None
        root, below = parts
        with self._lock:
            if root not in self._stores:
                self._stores[root] = self._open_root(root)
            return self._stores[root], below

    def close(self) -> None:
        """Closes the stores that were opened."""
        with self._lock:
            stores = list(self._stores.values())
            self._stores.clear()
        for store in stores:
            store.close()
