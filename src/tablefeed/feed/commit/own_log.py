"""Puts checkpoints, checksums and the like into the log of the table that they describe, or nowhere.

The table may be deleted, made again or restored while such a file is written. The same path then leads to another log.
The file of the newest commit that the writer knows shows it: its name, size or time has changed, or it is gone. The
store compares that file right before the new file appears and right after, and never makes the log's folder
(`store.Within`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tablefeed.errors import ObjectNotFoundError, TableReplacedError
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.store import Within


def in_log_of(snapshot: Snapshot) -> Within:
    """Gives the place for a file that describes the table seen as `snapshot`; its check raises TableReplacedError."""
    return Within(directory=snapshot.log.directory, check=lambda: check_same(snapshot))


def check_same(snapshot: Snapshot) -> None:
    """Raises TableReplacedError where the commit file of `snapshot` has changed or is gone; one request."""
    if snapshot.head is None or snapshot.log.head(snapshot.version) != snapshot.head:
        raise TableReplacedError(
            f"The commit file of version {snapshot.version} of {snapshot.log.url} has changed or is gone: the table "
            "was deleted, made again or restored, or its log was cleaned up. Nothing was left in its log. The next "
            "write to the table tries again.",
            url=snapshot.log.url,
        )


@contextmanager
def taken_back(snapshot: Snapshot, published: list[str]) -> Iterator[None]:
    """Deletes the objects in `published` again where the block raises because the table was replaced or deleted."""
    try:
        yield
    except (TableReplacedError, ObjectNotFoundError):
        for name in published:
            snapshot.log.store.delete(name)
        raise
