"""Where files go that are put into a table's log beside its commits: into the log of that table, or nowhere.

A checkpoint or a checksum describes one table. The table may be deleted, made anew or restored while such a file is
being written, and the same path then leads to another log. The file of the newest commit that the writer knows tells
the tables apart: its name, size and time. The store looks at it right before the new file appears and right after, and
never makes the log's folder (`store.Within`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tablefeed.errors import ObjectNotFoundError, TableReplacedError
from tablefeed.feed.table_log import Snapshot
from tablefeed.store import Within


def in_log_of(snapshot: Snapshot) -> Within:
    """Gives the place for a file that describes the table seen as `snapshot`; its check raises TableReplacedError."""
    return Within(directory=snapshot.log.directory, check=lambda: check_same(snapshot))


def check_same(snapshot: Snapshot) -> None:
    """Raises TableReplacedError where the commit of `snapshot` is not there as it was; a look at one file."""
    if snapshot.head is None or snapshot.log.head(snapshot.version) != snapshot.head:
        raise TableReplacedError(
            f"The commit of version {snapshot.version} of {snapshot.log.url} is not there as it was: the table was "
            "deleted, made anew or restored, or its log was cleaned up. Nothing was written to its log; the next write "
            "sees to what is due.",
            url=snapshot.log.url,
        )


@contextmanager
def taken_back(snapshot: Snapshot, published: list[str]) -> Iterator[None]:
    """Deletes the objects in `published` again where the block finds that the table is not there any more."""
    try:
        yield
    except (TableReplacedError, ObjectNotFoundError):
        for name in published:
            snapshot.log.store.delete(name)
        raise
