"""Deletes a log file if it has not changed since it was listed."""

from __future__ import annotations

from tablefeed.errors import LogError
from tablefeed.feed.snapshot.segment_reader import is_as_listed
from tablefeed.model.logfile import LogFile
from tablefeed.store import Entry, Store


def delete_as_listed(store: Store, name: str, listed: LogFile | Entry) -> bool:
    """Deletes the log file `name` that was listed as `listed`; says whether it was there.

    Raises LogError, and deletes nothing, where another file has this name now: the table may have been made anew.
    """
    found = store.stat(name)
    if found is None:
        return False
    if not is_as_listed(found, listed):
        raise LogError(
            f"The cleanup of the log of {store.url} stopped: {name} was replaced after it was listed, so this may be "
            "another table now. Nothing more was deleted.",
            url=store.url,
        )
    store.delete(name)
    return True
