"""`tablefeed.follow`: each commit of a table as it lands.

On local disk a watch wakes us and nothing is polled; elsewhere the next version is asked for by name, less often
while nothing comes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from tablefeed.errors import IllegalOptionError, LogGapError, TablefeedError
from tablefeed.feed.arguments import location, store_options, whole_number
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.same_table import SameTable
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.model.actions import Commit, Version
from tablefeed.model.logfile import LogFileKind

SLOWEST_POLL_FACTOR = 8
"""A quiet table is asked at most this many intervals apart: enough to be cheap, few enough to be prompt."""

LONGEST_POLL_S = 86_400
"""A day: no machine's clock refuses to wait so long, as some do to wait for ever."""

LOOKS_BEFORE_LISTING = 8
"""After so many looks for a version that is not there, the log is listed for later versions and the last commit is
compared. Both find what is rare, a hole or another table at this path, and a listing costs more than a look."""

REMEDY = "Call `follow` again to follow what is there now: after=-1 gives all of it."


def follow(
    url: str | os.PathLike[str],
    *,
    after: int | None = None,
    poll_interval_s: float = 1.0,
    storage_options: Mapping[str, str] | None = None,
) -> Iterator[Commit]:
    """Gives the commits after version `after` (None: the newest now, -1: all), then each as it lands; never ends.

    `poll_interval_s` is the shortest time between two looks at a store that cannot wake us, and on local disk the
    longest that a missed notice can cost. Raises TableNotFoundError, also where the table is deleted later, OffsetError
    where another is made in its place, LogGapError, LogError, StoreError.
    """
    number = isinstance(poll_interval_s, int | float)
    if not number or not 0 < poll_interval_s <= LONGEST_POLL_S:
        explain = f"must be a number of seconds above 0, at most {LONGEST_POLL_S}"
        raise IllegalOptionError(option="poll_interval_s", value=str(poll_interval_s), explain=explain)
    if after is not None:
        after = whole_number(after, argument="after", least=-1)
    log = open_log(location(url), store_options(storage_options))
    begun = log.load()
    if after is not None and after > begun.version:
        raise IllegalOptionError(
            option="after", value=str(after), explain=f"must be at most the newest version, {begun.version}"
        )
    return _commits(begun, Version((begun.version if after is None else after) + 1), poll_interval_s)


def _commits(begun: Snapshot, version: Version, poll_interval_s: float) -> Iterator[Commit]:
    log, same_table = begun.log, SameTable(begun, remedy=REMEDY)
    try:
        _refuse_hole(log, version)
        quiet = absent = 0
        woken = False
        while True:
            commit = _commit(log, version, same_table)
            if commit is not None:
                yield commit
                version, quiet, absent = Version(version + 1), 0, 0
                continue
            absent += 1
            listing_due = absent % LOOKS_BEFORE_LISTING == 0
            if woken or listing_due:
                same_table.look()
            if listing_due:
                _refuse_hole(log, version)
            pause = poll_interval_s * min(2**quiet, SLOWEST_POLL_FACTOR)
            woken = log.store.wait(log.directory, timeout_s=pause)
            quiet = 0 if woken else quiet + 1
    finally:
        log.store.close()


def _commit(log: TableLog, version: Version, same_table: SameTable) -> Commit | None:
    """The commit of `version`, None where it is not there yet. Raises as `SameTable` for one of another table."""
    try:
        commit = log.commit(version, timed=True)
    except TablefeedError:
        same_table.look()  # a commit of another table may well be one that this log cannot have
        raise
    if commit is not None:
        same_table.check(version, commit.metadata)
    return commit


def _refuse_hole(log: TableLog, version: Version) -> None:
    versions = [f.version for f in log.listing(version) if f.kind is LogFileKind.COMMIT]
    if versions and min(versions) > version:
        raise LogGapError(
            url=log.url,
            expected=version,
            found=min(versions),
            remedy=f"They were removed. Follow from version {min(versions) - 1} on, or from a new snapshot.",
        )
