"""Opens the files that a log names: below the table's root, or elsewhere if the caller allows it.

Others write the log, so it must not make a reader open files outside the table without permission. An absolute path of
the table's own scheme is allowed unless the user forbids it, because shallow clones use such paths. Any other path out
of the table needs permission. Permission is one storage option, so it travels with a task to where the task is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

from tablefeed.delta.paths import ALLOW_ABSOLUTE_PATHS, refuse_escape
from tablefeed.errors import IllegalOptionError
from tablefeed.store import Store


class TableFiles:
    """Data files and deletion vectors of the table in `store`, by decoded path. Only for reading.

    Raises LogError, before anything is opened, for a path out of the table that is not allowed.
    """

    def __init__(self, store: Store, *, storage_options: Mapping[str, str]) -> None:
        self._store = store
        self._allowed = allows_outside(storage_options)

    @property
    def url(self) -> str:
        """The url of the table's root, for people."""
        return self._store.url

    def open_input(self, path: str) -> BinaryIO:
        """Opens a file to read; ObjectNotFoundError where it is gone."""
        self._check(path)
        return self._store.open_input(path)

    def read(self, path: str, *, start: int, end: int) -> bytes:
        """Gives the bytes of a file from `start` to before `end`; ObjectNotFoundError where the file is gone."""
        self._check(path)
        return self._store.read(path, start=start, end=end)

    def _check(self, path: str) -> None:
        if not self._allowed:
            refuse_escape(path, root_url=self._store.url, clones=self._allowed is None)


def allows_outside(storage_options: Mapping[str, str]) -> bool | None:
    """Says whether files outside the table may be opened; None: the option is not set.

    Raises IllegalOptionError where the option is neither true nor false.
    """
    for name, value in storage_options.items():
        if name.lower() == ALLOW_ABSOLUTE_PATHS:
            text = str(value).lower()
            if text not in ("true", "false"):
                raise IllegalOptionError(option=name, value=str(value), explain="must be 'true' or 'false'")
            return text == "true"
    return None


def for_store(storage_options: Mapping[str, str]) -> dict[str, str]:
    """Gives the options that go to the store itself. Raises as `allows_outside`."""
    allows_outside(storage_options)
    return {name: value for name, value in storage_options.items() if name.lower() != ALLOW_ABSOLUTE_PATHS}
