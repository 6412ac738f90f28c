"""Which log files are old enough to delete, and which are kept (PROTOCOL.md, "Metadata Cleanup").

Kept are the newest commit that is as old as the cutoff, the newest whole checkpoint at or before that commit, and all
commits from that checkpoint on. So every version from the checkpoint on stays readable. Delta-Spark may delete up to
one checkpoint more, and then can no longer read the table as it was at the cutoff.

A name does not show whether a checkpoint can be read. The caller reads `Cleanup.base` before it deletes, and calls
`expired` again with the files that it could not read.
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
    """The files to delete, oldest first. No version from `kept` on needs any of them.

    A commit comes before the checkpoint of its version: so where a cleanup breaks off, no commit is left without the
    checkpoint that hides it from readers that do not know its features ("Checkpoint Protection").

    `cutoff` is the newest commit that is as old as the cutoff. `base` must be readable before anything is deleted: it
    is the checkpoint of `kept`, and the commits after it that a compaction among `files` covers.
    """

    base: LogSegment
    cutoff: LogFile
    files: tuple[LogFile, ...]

    @property
    def kept(self) -> Version:
        """The first version that stays readable: that of the checkpoint."""
        return self.base.checkpoint[0].version


def expired(
    listing: Iterable[LogFile],
    *,
    cutoff_ms: int,
    unreadable: frozenset[str] = frozenset(),
    held: Version | None = None,
) -> Cleanup | None:
    """What to delete if commits up to `cutoff_ms` are old; None where there is nothing.

    The order of `listing` does not matter. A commit is as old as its file, and not old where an earlier commit is not.
    `unreadable` names checkpoint files that cannot be read. Commits after version `held` count as young.
    """
    files = {file.name: file for file in listing}.values()
    commits = sorted((f for f in files if f.kind is LogFileKind.COMMIT), key=lambda f: f.version)
    free = commits if held is None else [commit for commit in commits if commit.version <= held]
    old = list(takewhile(lambda commit: commit.modified_ms <= cutoff_ms, free))
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
    going = tuple(sorted(unneeded, key=lambda f: (f.version, f.kind is not LogFileKind.COMMIT, f.name)))
    if not going:
        return None
    reach = max((f.last_version for f in going if f.last_version is not None), default=at)
    after = tuple(commit for commit in commits if at < commit.version <= reach)
    base = LogSegment(version=after[-1].version if after else at, checkpoint=checkpoint, commits=after)
    return Cleanup(base=base, cutoff=cutoff, files=going)


def _is_readable_from(checkpoint: int, commits: Iterable[LogFile]) -> bool:
    """Whether every commit from that of `checkpoint` on is there."""
    later = [commit.version for commit in commits if commit.version >= checkpoint]
    return later == list(range(checkpoint, checkpoint + len(later)))
