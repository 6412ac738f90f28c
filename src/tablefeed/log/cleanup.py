"""Which log files are old enough to go, and what is kept for its versions (PROTOCOL.md, "Metadata Cleanup").

Listing in, names out. What is kept: the newest commit that is as old as the cutoff and all after it, the newest whole
checkpoint at or before that commit with its own commit, and so every version from that checkpoint on. Delta-Spark goes
up to one checkpoint further, and then no longer has the table as it was at the cutoff.

Names do not say whether a checkpoint can be read. Whoever deletes reads `Cleanup.base` first, and asks again without
what turned out to be unreadable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from tablefeed.log.segment import LogSegment, whole_checkpoints
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup:
    """What goes: `files` are before `kept`, the first version that can still be read; oldest first.

    `cutoff` is the newest commit that is as old as the cutoff. `base` is what has to be readable before anything is
    deleted: the checkpoint of `kept`, and the commits after it for which a compaction among `files` could stand in.
    """

    base: LogSegment
    cutoff: LogFile
    files: tuple[LogFile, ...]

    @property
    def kept(self) -> Version:
        """The first version that stays, which is that of the checkpoint."""
        return self.base.checkpoint[0].version


def expired(listing: Iterable[LogFile], *, cutoff_ms: int, unreadable: frozenset[str] = frozenset()) -> Cleanup | None:
    """What goes where commits up to `cutoff_ms` are old; None where nothing does.

    The order of `listing` does not matter. Commits are as old as their files, and none is older than one before it.
    `unreadable` names checkpoint files that nothing can be read from.
    """
    files = {file.name: file for file in listing}.values()
    commits = sorted((f for f in files if f.kind is LogFileKind.COMMIT), key=lambda f: f.version)
    old = list(takewhile(lambda commit: commit.modified_ms <= cutoff_ms, commits))
    if not old:
        return None
    cutoff = old[-1]
    by_version = whole_checkpoints(files)
    usable = (
        checkpoint
        for version in sorted((v for v in by_version if v <= cutoff.version), reverse=True)
        for checkpoint in by_version[version]
        if unreadable.isdisjoint(file.name for file in checkpoint)
    )
    checkpoint = next(usable, None)
    if checkpoint is None or not _is_readable_from(at := checkpoint[0].version, commits):
        return None
    # A compaction that begins at the checkpoint's version is not needed: readers begin with the checkpoint.
    unneeded = (f for f in files if f.version < at or (f.kind is LogFileKind.COMPACTION and f.version <= at))
    going = tuple(sorted(unneeded, key=lambda f: (f.version, f.name)))
    if not going:
        return None
    reach = max((f.last_version for f in going if f.last_version is not None), default=at)
    after = tuple(commit for commit in commits if at < commit.version <= reach)
    base = LogSegment(version=after[-1].version if after else at, checkpoint=checkpoint, commits=after)
    return Cleanup(base=base, cutoff=cutoff, files=going)


def _is_readable_from(checkpoint: int, commits: Iterable[LogFile]) -> bool:
    """Whether every commit from that of `checkpoint` on is there."""
    later = [commit.version for commit in commits if commit.version >= checkpoint]
    return later == list(range(checkpoint, checkpoint + len(later))) and len(later) > 0
