"""`tablefeed.follow`: each commit of a table, soon after it is made.

The next version is looked for by name, less often while none comes. On local disk this is done when the system reports
a change, and at least once a second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime

from tablefeed.errors import IllegalOptionError, LogGapError, TableError, TablefeedError
from tablefeed.feed.arguments import location, store_options, whole_number
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.same_table import SameTable
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.snapshot.timeline import Timeline, parse_timestamp
from tablefeed.feed.upkeep.consumers import Consumers, Reports
from tablefeed.model.actions import Commit, Version
from tablefeed.model.logfile import LogFile, LogFileKind

SLOWEST_POLL_FACTOR = 8
"""The longest pause between two looks, in poll intervals: enough to be cheap, few enough to be prompt."""

LONGEST_POLL_S = 86_400
"""A day. Every system accepts a timeout of that length; some refuse one without end."""

LOOKS_BEFORE_LISTING = 8
"""After this many looks for a missing version, the log is listed. The listing shows later versions and the last commit.
So it finds a hole or another table at the path. Both are rare, and a listing costs more than a look."""

REMEDY = "Call `follow` again to follow what is there now: after=-1 gives all of it."


def follow(
    url: str | os.PathLike[str],
    *,
    after: int | None = None,
    poll_interval_s: float = 1.0,
    consumer_id: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Iterator[Commit]:
    """Gives the commits after version `after` (None: the newest now, -1: all), then each new one; never ends.

    `poll_interval_s` is the pause between two looks where the store reports no change. It grows to 8 times that while
    nothing comes; on local disk a pause is at most 1 second.

    With `consumer_id` the reader is a consumer of the table: what it has still to read is kept
    (docs/how-to/consumers.md). It has read a commit when it asks for the next. Where `after` is None and the consumer
    is registered, it goes on after the version that it has read.

    Raises TableNotFoundError, also where the table is deleted later, OffsetError where another is made at the same path
    or was made since the consumer read, IllegalOptionError, LogGapError, LogError, StoreError.
    """
    number = isinstance(poll_interval_s, int | float)
    if not number or not 0 < poll_interval_s <= LONGEST_POLL_S:
        explain = f"must be a number of seconds above 0, at most {LONGEST_POLL_S}"
        raise IllegalOptionError(option="poll_interval_s", value=str(poll_interval_s), explain=explain)
    if after is not None:
        after = whole_number(after, argument="after", least=-1)
    log = open_log(location(url), store_options(storage_options))
    begun = log.load()
    if after is None and consumer_id is not None:
        after = Consumers(log).read_to(consumer_id, newest=begun.version)
    if after is not None and after > begun.version:
        raise IllegalOptionError(
            option="after", value=str(after), explain=f"must be at most the newest version, {begun.version}"
        )
    version = Version((begun.version if after is None else after) + 1)
    reports = None if consumer_id is None else Reports(Consumers(log), consumer_id, clock=time.monotonic)
    if reports is not None:
        reports.reads_after(Version(version - 1))
    return _commits(begun, version, poll_interval_s, reports)


def version_before(
    url: str | os.PathLike[str], timestamp: str | datetime | date, *, storage_options: Mapping[str, str] | None = None
) -> Version:
    """Gives the version after which `follow` begins with the first commit at or after `timestamp`.

    It is the newest version where there is no such commit yet: the next commit is then the first. Raises as
    `open_table` does.
    """
    log = open_log(location(url), store_options(storage_options))
    at_ms = parse_timestamp(timestamp, argument="timestamp")
    newest = log.load()
    commits = [f for f in log.listing() if f.kind is LogFileKind.COMMIT and f.version <= newest.version]
    try:
        return Version(Timeline(newest, commits).first_at_or_after(at_ms) - 1)
    except TableError as error:
        if error.error_class != "DELTA_TIMESTAMP_GREATER_THAN_COMMIT":
            raise
        return newest.version


def _commits(
    begun: Snapshot, version: Version, poll_interval_s: float, reports: Reports | None = None
) -> Iterator[Commit]:
    log, same_table = begun.log, SameTable(begun, remedy=REMEDY)
    try:
        same_table.note_content()
        _refuse_hole(log, version, _listed(log, version))
        quiet = absent = 0
        woken = False
        while True:
            commit = _commit(log, version, same_table)
            if commit is not None:
                yield commit
                if reports is not None:
                    reports.has_read(version)
                version, quiet, absent = Version(version + 1), 0, 0
                continue
            absent += 1
            if reports is not None:
                reports.reads_after(Version(version - 1))
            listing_due = absent % LOOKS_BEFORE_LISTING == 0
            listed = _listed(log, version) if listing_due else {}
            if woken or (listing_due and not same_table.is_in(listed.get(Version(version - 1)))):
                same_table.compare()
            _refuse_hole(log, version, listed)
            pause = poll_interval_s * min(2**quiet, SLOWEST_POLL_FACTOR)
            woken = log.store.wait(log.directory, timeout_s=pause)
            quiet = 0 if woken else quiet + 1
    finally:
        log.store.close()


def _commit(log: TableLog, version: Version, same_table: SameTable) -> Commit | None:
    """The commit of `version`, None where it does not exist yet. Raises as `SameTable` for another table's commit."""
    try:
        found = log.head(version)  # before the commit is read: later it may be another commit's
        commit = None if found is None else log.commit(version)
    except TablefeedError:
        same_table.compare()  # the cause may be another table at this path: its error says more
        raise
    if commit is not None:
        same_table.compare_after_reading(version, commit, found=found, brought=commit.metadata)
    if commit is None or commit.committed_at_ms is not None:
        return commit
    file = same_table.file_of(version) or log.head(version)
    return commit if file is None else replace(commit, committed_at_ms=file.modified_ms)


def _listed(log: TableLog, version: Version) -> dict[Version, LogFile]:
    """The commits from the one before `version` on, by one request."""
    return {f.version: f for f in log.listing(max(version - 1, 0)) if f.kind is LogFileKind.COMMIT}


def _refuse_hole(log: TableLog, version: Version, listed: Iterable[Version]) -> None:
    found = min((each for each in listed if each >= version), default=version)
    if found > version:
        raise LogGapError(
            url=log.url,
            expected=version,
            found=found,
            remedy=f"They were removed. Begin with version {found} (in Python after={found - 1}), "
            "or with a new snapshot.",
        )
