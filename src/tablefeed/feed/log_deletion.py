"""Whether a file of a log is still the one that was listed, and its deletion if it is."""

from __future__ import annotations

from tablefeed.errors import LogError
from tablefeed.model.logfile import LogFile
from tablefeed.store import Entry, Store


def delete_as_listed(store: Store, name: str, listed: LogFile | Entry) -> bool:
    """Deletes the log file `name` that was listed as `listed`; says whether it was there.

    Raises LogError, and deletes nothing, where another file has its name by now: somebody made the table anew.
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


def is_as_listed(found: Entry, listed: LogFile | Entry) -> bool:
    """Says whether the file `found`, which was asked for by its name, is the one that was `listed`."""
    # Some stores list a time in milliseconds and give one object's in seconds.
    return (found.size_bytes, found.modified_ms // 1000) == (listed.size_bytes, listed.modified_ms // 1000)
