"""Which metadata holds at a version, even where the log no longer reaches back far enough to load that version."""

from __future__ import annotations

from tablefeed.errors import LogError, VersionNotFoundError
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.log.segment import earliest_reproducible
from tablefeed.model.actions import Metadata, Version


def metadata_at(version: int, newest: Snapshot) -> Metadata:
    """Gives the metadata that holds at `version`; after the version of `newest`, the metadata of `newest`.

    If the version cannot be loaded, its own commit is used where that has metadata. Otherwise the next version that can
    be loaded is used, provided that no commit up to it changes the metadata. Raises VersionNotFoundError where neither
    is possible: its `earliest` is the first version from which the metadata is known.
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
    """Gives the metadata of the version before `version`, which applies to the files that the commit removes.

    For version 0 that is `in_force`, its own metadata. None where the version before cannot be loaded.
    """
    if version == 0:
        return in_force
    try:
        return log.load(Version(version - 1)).metadata
    except LogError:
        return None
