"""Which log files are old enough to go, and what is kept for its versions (PROTOCOL.md, "Metadata Cleanup").

Listing in, names out. What is kept: the newest commit that is as old as the cutoff and all after it, the newest whole
checkpoint at or before that commit with its own commit, and so every version from that checkpoint on. Delta-Spark goes
up to one checkpoint further, and then no longer has the table as it was at the cutoff.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from tablefeed.log.segment import whole_checkpoint_versions
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup:
    """What goes: `files` are before `kept`, the first version that can still be read; oldest first.

    `cutoff` is the newest commit that is as old as the cutoff.
    """

    kept: Version
    cutoff: LogFile
    files: tuple[LogFile, ...]


def expired(listing: Iterable[LogFile], *, cutoff_ms: int) -> Cleanup | None:
    """What goes where commits up to `cutoff_ms` are old; None where nothing does.

    The order of `listing` does not matter. Commits are as old as their files, and none is older than one before it.
    """
    files = {file.name: file for file in listing}.values()
    commits = sorted((f for f in files if f.kind is LogFileKind.COMMIT), key=lambda f: f.version)
    old = list(takewhile(lambda commit: commit.modified_ms <= cutoff_ms, commits))
    if not old:
        return None
    cutoff = old[-1]
    at = max((v for v in whole_checkpoint_versions(files) if v <= cutoff.version), default=None)
    if at is None or not _is_readable_from(at, commits):
        return None
    # A compaction that begins at the checkpoint says what nobody will ask for.
    unneeded = (f for f in files if f.version < at or (f.kind is LogFileKind.COMPACTION and f.version <= at))
    going = tuple(sorted(unneeded, key=lambda f: (f.version, f.name)))
    return Cleanup(kept=at, cutoff=cutoff, files=going) if going else None


def _is_readable_from(checkpoint: int, commits: Iterable[LogFile]) -> bool:
    """Whether every commit from that of `checkpoint` on is there."""
    later = [commit.version for commit in commits if commit.version >= checkpoint]
    return later == list(range(checkpoint, checkpoint + len(later))) and len(later) > 0
