"""Puts checkpoints, checksums and the like into the log of the table that they describe, or nowhere; deletes alike.

The table may be deleted, made again or restored while such a file is written. The same path then leads to another log.
The file of the newest commit that the writer knows shows it: its name, size or time has changed, or it is gone. The
store compares that file right before the new file appears and right after, and never makes the log's folder
(`store.Within`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from tablefeed.errors import LogError, ObjectNotFoundError, StoreError, TableReplacedError
from tablefeed.feed.snapshot.segment_reader import is_as_listed
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.logfile import LogFile
from tablefeed.store import Entry, Store, Within

_Answer = TypeVar("_Answer")


def in_log_of(snapshot: Snapshot) -> Within:
    """Gives the place for one file that describes the table seen as `snapshot`; its check raises TableReplacedError."""
    return Within(directory=snapshot.log.directory, check=lambda: check_same(snapshot))


@contextmanager
def all_in_log_of(snapshot: Snapshot) -> Iterator[Within]:
    """Gives the place for files that belong together: all of them are put, or none remains.

    Where the block finds that the table was deleted or replaced, the files that were put are deleted. A file that
    another process put under the same name, before ours or in its place, is not.
    """
    store = snapshot.log.store
    seen, ours = dict[str, Entry](), dict[str, Entry]()

    def appeared(name: str) -> None:
        with suppress(StoreError):  # a file that could not be identified later is not deleted
            if (entry := _twice(lambda: store.stat(name))) is not None:
                seen[name] = entry

    def check() -> None:
        check_same(snapshot)
        ours.update(seen)  # the log still belonged to the table when these files were seen

    try:
        yield Within(directory=snapshot.log.directory, check=check, appeared=appeared)
    except (TableReplacedError, ObjectNotFoundError):
        for name, entry in ours.items():
            _delete(store, name, entry)
        raise


def _delete(store: Store, name: str, entry: Entry) -> None:
    """Deletes the file `name` where it is still that of `entry`."""
    if _twice(lambda: store.stat(name)) == entry:
        _twice(lambda: store.delete(name))


def _twice(ask: Callable[[], _Answer]) -> _Answer:
    """Asks the store, and again if it fails: a file that names what is gone should not stay because of one request."""
    try:
        return ask()
    except StoreError:
        return ask()


def check_same(snapshot: Snapshot) -> None:
    """Raises TableReplacedError where the commit file of `snapshot` has changed or is gone; one request."""
    if snapshot.head is None or snapshot.log.head(snapshot.version) != snapshot.head:
        raise TableReplacedError(
            f"The commit file of version {snapshot.version} of {snapshot.log.url} has changed or is gone: the table "
            "was deleted, made again or restored, or its log was cleaned up. Nothing was left in its log. The next "
            "write to the table tries again.",
            url=snapshot.log.url,
        )


def check_there(store: Store, names: Iterable[str]) -> None:
    """Raises TableReplacedError where a file is gone which the file that was put just now names; a request for each.

    `check_same` finds no change where a copy of the table was restored whose newest commit is the same file.
    """

    def is_there(name: str) -> bool:
        return _twice(lambda: store.exists(name))

    gone = next((name for name in names if not is_there(name)), None)
    if gone is not None:
        raise TableReplacedError(
            f"{gone} of {store.url} is gone: the table was restored from a copy meanwhile. Nothing was left in its "
            "log. The next write to the table tries again.",
            url=store.url,
        )


def delete_as_listed(
    store: Store, name: str, listed: LogFile | Entry, *, without: tuple[str, LogFile] | None = None
) -> bool:
    """Deletes the log file `name` that was listed as `listed`; says whether it was there.

    `without` is the file, and how it was listed, that readers use once `name` is gone. Raises LogError, and deletes
    nothing, where it is gone or either file was replaced: the table may have been made anew, or restored from a copy.
    """
    found = store.stat(name)
    if found is None:
        return False
    if not is_as_listed(found, listed):
        raise _stopped(store, f"{name} was replaced")
    if without is not None and not ((base := store.stat(without[0])) and is_as_listed(base, without[1])):
        raise _stopped(store, f"{without[0]}, which readers would need, is gone or was replaced")
    store.delete(name)
    return True


def _stopped(store: Store, why: str) -> LogError:
    return LogError(
        f"The cleanup of the log of {store.url} stopped: {why} after it was listed, so the table was restored, or this "
        "may be another table now. Nothing more was deleted.",
        url=store.url,
    )
