"""The newest version that can be read of a table whose log has a commit that is damaged, missing or may not be read."""

from __future__ import annotations

from collections.abc import Mapping

from tablefeed.errors import CorruptLogError, LogGapError, StoreError
from tablefeed.feed.api.table import Table, open_table
from tablefeed.feed.arguments import location, store_options
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import is_of_one_commit
from tablefeed.model.logfile import LogFileKind

_OF_COMMITS = (CorruptLogError, LogGapError, StoreError)


def newest_readable(url: str, *, storage_options: Mapping[str, str], problems: list[str]) -> Table:
    """Opens the newest version that can be read. Adds to `problems` why this is not the newest version of the log.

    Raises as `open_table`, also where no version before that commit can be read.
    """
    try:
        return open_table(url, storage_options=storage_options)
    except _OF_COMMITS as error:
        first, wrong = error, error
    while (version := _version_before(wrong, url, storage_options)) is not None:
        try:
            table = open_table(url, version=version, storage_options=storage_options)
        except _OF_COMMITS as error:
            wrong = error
        else:
            problems.append(f"{first.message} This shows version {version}, the newest one that can be read.")
            return table
    raise first


def _version_before(
    wrong: CorruptLogError | LogGapError | StoreError, url: str, storage_options: Mapping[str, str]
) -> int | None:
    """The version before the commit that `wrong` is about; None where there is none, or `wrong` is about no commit."""
    if isinstance(wrong, LogGapError):
        damaged = wrong.expected
    elif is_of_one_commit(wrong):
        listed = open_log(location(url), store_options(storage_options)).listing(over_holes=True)
        commits = (f for f in listed if f.kind is LogFileKind.COMMIT)
        damaged = max((f.version for f in commits if f.name in wrong.message), default=0)
    else:
        return None
    return damaged - 1 if damaged else None
