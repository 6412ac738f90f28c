"""Which files of an IndexTables log are old enough to be removed, and which the kept versions still need.

Listing in, names out. Times and counts are those of IndexTables' PURGE. Unlike PURGE, this keeps the base of every kept
version. Commit 0 is always kept: it has the table's metadata where states have none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import takewhile

from tablefeed.indextables.log.listing import Log
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What is kept: as many of the newest `versions`, and all that is younger than the time of its kind.

    `manifests_ms` is of manifests that no state names: a running writer puts them before the state that does. PURGE
    gives it an hour; a writer that was suspended for longer would commit a state without its manifests.
    """

    versions: int = 2
    states_ms: int = 168 * _HOUR_MS
    log_ms: int = 30 * 24 * _HOUR_MS
    manifests_ms: int = 24 * _HOUR_MS

    def __post_init__(self) -> None:
        if self.versions < 1:
            raise ValueError("versions must be at least 1: the newest version is always kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """The files to remove, oldest first: `commits`, with JSON checkpoints and parts before the kept base, and `states`.

    `first` is the first kept version that may have needed a removed file; None where nothing is removed. If it can be
    read from what is `left`, so can every later version that could be read before.
    """

    commits: tuple[LogFile, ...] = ()
    states: tuple[LogFile, ...] = ()
    first: Version | None = None

    def left(self, log: Log) -> Log:
        """The `log` without what goes."""
        gone = {file.name for file in (*self.commits, *self.states)}
        return replace(
            log,
            commits={version: file for version, file in log.commits.items() if file.name not in gone},
            states={version: file for version, file in log.states.items() if file.name not in gone},
            checkpoints={version: file for version, file in log.checkpoints.items() if file.name not in gone},
            parts=tuple(file for file in log.parts if file.name not in gone),
        )


def expired(log: Log, retention: Retention, *, unreadable: Collection[str] = (), now_ms: int) -> Expired:
    """The files of `log` to remove; `unreadable` names checkpoints and states that no version can be read from.

    Guaranteed: of the versions that could be read, the newest `versions` still can, and each whose commit is kept.
    """
    if log.newest is None:
        return Expired()
    newest_old = Version(log.newest - retention.versions)
    listed = (*log.states.values(), *log.checkpoints.values())
    bases = [file.version for file in listed if file.name not in unreadable]
    cut = _commits_cut(log, bases, Version(newest_old + 1), old_ms=now_ms - retention.log_ms)
    by_commits = (*log.commits.values(), *log.checkpoints.values(), *log.parts)
    commits = _sorted(file for file in by_commits if 0 < file.version < cut)
    kept = [version for version in log.commits if version == 0 or version >= cut]
    floor = _base_needed(kept, bases)
    old_ms = now_ms - retention.states_ms
    states = takewhile(
        lambda file: file.version <= newest_old and file.version < floor and file.modified_ms <= old_ms,
        _sorted(log.states.values()),
    )
    going = (*commits, *(old_states := tuple(states)))
    last_gone = max((file.version for file in going), default=None)
    stays = {*kept, *map(Version, range(newest_old + 1, log.newest + 1))}
    first = None if last_gone is None else min(version for version in stays if version >= last_gone)
    return Expired(commits=commits, states=old_states, first=first)


def unnamed(manifests: Iterable[tuple[str, int]], named: Collection[str], *, old_ms: int) -> tuple[str, ...]:
    """Of manifests, each a name and when it was written, those that no state names and that are as old as `old_ms`."""
    return tuple(sorted(name for name, modified_ms in manifests if name not in named and modified_ms <= old_ms))


def _commits_cut(log: Log, bases: Iterable[Version], last: Version, *, old_ms: int) -> Version:
    """The version before which commits go: a base, after old ones alone, and the newest such up to `last`."""
    by_commits = (*log.commits.values(), *log.checkpoints.values(), *log.parts)
    first_young = min((file.version for file in by_commits if file.modified_ms > old_ms), default=last)
    return max((base for base in bases if base <= min(last, first_young)), default=Version(0))


def _base_needed(commits: Collection[Version], bases: Iterable[Version]) -> float:
    """The base that the oldest of these commits is read from; infinite where they need none."""
    ordered = sorted(commits)
    after = [version for place, version in enumerate(ordered) if version != place]
    if not after:
        return float("inf")
    return max((base for base in bases if base <= after[0]), default=0)


def _sorted(files: Iterable[LogFile]) -> tuple[LogFile, ...]:
    return tuple(sorted(files, key=lambda file: (file.version, file.name)))
