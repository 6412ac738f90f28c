"""Which metadata holds at a version of a log, also where the log does not go back far enough to load that version."""

from __future__ import annotations

from tablefeed.errors import LogError, VersionNotFoundError
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.log.segment import earliest_reproducible
from tablefeed.model.actions import Metadata, Version


def metadata_at(version: int, newest: Snapshot) -> Metadata:
    """Gives the metadata that holds at `version`, up to that of `newest`.

    Of a version that cannot be loaded it is that of its own commit or of the next version that can be, where no
    commit in between brings another. Raises VersionNotFoundError where what holds there is not known any more: its
    `earliest` is the first version of which it is.
    """
    log = newest.log
    if version >= newest.version:
        return newest.metadata
    try:
        return log.load(Version(version)).metadata
    except LogError as error:
        lost = error
    known = earliest_reproducible(log.listing())
    last = newest.version if known is None or known < version else known
    for between in range(version, last + 1):
        commit = log.commit(Version(between))
        brought = None if commit is None else commit.metadata
        if brought is not None and between == version:
            return brought
        if commit is None or brought is not None:
            first = between + (commit is None)
            raise VersionNotFoundError(url=log.url, version=version, earliest=first, latest=newest.version) from lost
    return newest.metadata if last == newest.version else log.load(Version(last)).metadata


def metadata_before(version: int, in_force: Metadata, log: TableLog) -> Metadata | None:
    """Gives the metadata under which the files stand that the commit of `version`, which brings `in_force`, removes.

    None where the log does not tell it any more.
    """
    if version == 0:
        return in_force
    try:
        return log.load(Version(version - 1)).metadata
    except LogError:
        return None
