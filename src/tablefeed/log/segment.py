"""Which files of a listed log give one version of the table: a checkpoint and the commits that follow it.

Only names and kinds of files decide (PROTOCOL.md, "Checkpoints" and "Delta Log Entries"); a reader that cannot read a
file calls `build_segment` again with that file in `without`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tablefeed.errors import TABLE, LogError, LogGapError, TableNotFoundError, VersionNotFoundError
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """The log files that `version` is read from.

    Guaranteed: `checkpoint` is empty or one whole checkpoint, its parts in order; `commits` are without a gap in
    ascending order, begin right after the checkpoint (at 0 where there is none) and end at `version`. A `compaction`
    replaces the first commits, from version 0 on and never the newest one; a segment with a checkpoint has none.
    `checksum` is the version checksum of `version`, where one is listed.
    """

    version: Version
    checkpoint: tuple[LogFile, ...]
    commits: tuple[LogFile, ...]
    compaction: LogFile | None = None
    checksum: LogFile | None = None

    def __post_init__(self) -> None:
        bases = {file.version for file in self.checkpoint}
        begin = max(bases, default=-1) + 1
        whole = len(bases) <= 1 and [file.version for file in self.commits] == list(range(begin, self.version + 1))
        if not whole or (self.compaction and (self.checkpoint or not _begins(self.compaction, self.version))):
            raise ValueError(f"no segment of version {self.version}: {self.checkpoint} and {self.commits}")

    @property
    def tail(self) -> tuple[LogFile, ...]:
        """What is read after the checkpoint, in order: commits, with the compaction in place of those it covers."""
        if self.compaction is None:
            return self.commits
        return (self.compaction, *self.commits[(self.compaction.last_version or 0) + 1 :])

    def replaceable(self, name: str) -> frozenset[str]:
        """The files to leave out next where `name` cannot be read; none where no other segment avoids it.

        `name` may also be of a file that the checkpoint refers to. For an unreadable commit the checkpoint is left out:
        a compaction from version 0 on may then cover that commit.
        """
        if self.compaction is not None and self.compaction.name == name:
            return frozenset({name})
        return frozenset(file.name for file in self.checkpoint)


def build_segment(
    listing: Iterable[LogFile], *, version: Version | None, without: frozenset[str] = frozenset()
) -> LogSegment:
    """The segment of `version`, by default of the newest version, from its newest whole checkpoint not in `without`.

    `listing` may be in any order and have a name twice. Of the checkpoints of one version, those with a UUID in the
    name come first (the greatest name before others), then the one with the most parts, then the single file, as in
    Delta-Spark (CheckpointInstance). A checkpoint that lacks a part is ignored. `without` names checkpoint files and
    compactions that cannot be read. Such a checkpoint still counts when the newest version is determined, so that this
    version never decreases. Each commit must be listed, also one that a compaction covers.

    Raises TableNotFoundError for a log without commits and checkpoints; VersionNotFoundError for a version after the
    newest or before the earliest that can be read; LogGapError where commits are missing on the way; LogError
    (DELTA_TRUNCATED_TRANSACTION_LOG) where the log's first commits are gone and no checkpoint replaces them.
    """
    log = _Log(listing)
    newest, earliest = log.newest, log.earliest
    if newest is None:
        raise TableNotFoundError(
            f"There is no Delta table at {TABLE}: its log holds no commit and no complete checkpoint."
        )
    target = newest if version is None else version
    if target > newest or (earliest is not None and target < earliest):
        first = newest if earliest is None else earliest
        raise VersionNotFoundError(version=target, earliest=first, latest=newest)
    checkpoint = log.newest_checkpoint(target, without=without)
    versions = range(checkpoint[0].version + 1 if checkpoint else 0, target + 1)
    missing = next((v for v in versions if v not in log.commits), None)
    if missing is not None:
        raise _hole(log, versions, missing=missing)
    return LogSegment(
        version=target,
        checkpoint=checkpoint,
        commits=tuple(log.commits[Version(v)] for v in versions),
        compaction=None if checkpoint else log.compaction(target, without=without),
        checksum=log.checksums.get(target),
    )


def earliest_version(listing: Iterable[LogFile]) -> Version | None:
    """The earliest commit in `listing` from which commits run without a gap to the newest one; None without commits."""
    commits = _Log(listing).commits
    earliest = max(commits, default=None)
    while earliest is not None and earliest - 1 in commits:
        earliest = Version(earliest - 1)
    return earliest


def earliest_reproducible(listing: Iterable[LogFile]) -> Version | None:
    """The earliest version that can be read as a snapshot: 0 with its commit, else the oldest whole checkpoint's."""
    return _Log(listing).earliest


Checkpoint = tuple[LogFile, ...]
"""The listed files of one checkpoint: one file, or its parts in order."""


class _Log:
    """What a listing holds, by version."""

    def __init__(self, listing: Iterable[LogFile]) -> None:
        # A listing that is not atomic can give a name twice; it is still one file.
        files: dict[str, LogFile] = {}
        for file in listing:
            other = files.setdefault(file.name, file)
            if (other.modified_ms, other.size_bytes) < (file.modified_ms, file.size_bytes):
                files[file.name] = file
        self.commits = {file.version: file for file in files.values() if file.kind is LogFileKind.COMMIT}
        self.checksums = {file.version: file for file in files.values() if file.kind is LogFileKind.CHECKSUM}
        self.checkpoints = whole_checkpoints(files.values())
        """The preferred one of each version first."""
        self._compactions = [file for file in files.values() if file.kind is LogFileKind.COMPACTION]

    @property
    def newest(self) -> Version | None:
        return max({*self.commits, *self.checkpoints}, default=None)

    @property
    def earliest(self) -> Version | None:
        return Version(0) if 0 in self.commits else min(self.checkpoints, default=None)

    def newest_checkpoint(self, version: Version, *, without: frozenset[str]) -> Checkpoint:
        for at in sorted((v for v in self.checkpoints if v <= version), reverse=True):
            for checkpoint in self.checkpoints[at]:
                if without.isdisjoint(file.name for file in checkpoint):
                    return checkpoint
        return ()

    def compaction(self, version: Version, *, without: frozenset[str]) -> LogFile | None:
        usable = (file for file in self._compactions if file.name not in without and _begins(file, version))
        return max(usable, key=lambda file: file.last_version or 0, default=None)


def _begins(compaction: LogFile, version: Version) -> bool:
    """Whether `compaction` can replace the first commits up to `version`: it begins at 0 and ends before `version`.

    It must begin at 0: writers leave expired removes out of a compaction, as out of a checkpoint (Kernel's
    LogCompactionWriter), and Delta-Spark leaves out the tombstones of domains. On top of an earlier state, what these
    removed would come back. "Log Compaction Files" asks for a plain reconciliation, but a file does not show how it was
    made. It must end before `version`: only a commit has commitInfo, and in it the in-commit timestamp of its version.
    """
    return compaction.version == 0 and compaction.last_version is not None and compaction.last_version < version


_SINGLE, _IN_PARTS, _UUID_NAMED = range(3)


def whole_checkpoints(files: Iterable[LogFile]) -> Mapping[Version, list[Checkpoint]]:
    """The checkpoints of each version that lack no part, by their names; the preferred one of a version first."""
    found: dict[tuple[Version, int, int, str], list[LogFile]] = {}
    for file in files:
        if file.kind is LogFileKind.CHECKPOINT:
            found[file.version, _SINGLE, 1, ""] = [file]
        elif file.kind is LogFileKind.CHECKPOINT_PART:
            found.setdefault((file.version, _IN_PARTS, file.part_count or 0, ""), []).append(file)
        elif file.kind is LogFileKind.CHECKPOINT_V2:
            found[file.version, _UUID_NAMED, 1, file.name] = [file]
    whole: dict[Version, list[Checkpoint]] = {}
    for (version, _, part_count, _), parts in sorted(found.items(), key=lambda item: item[0], reverse=True):
        if len(parts) == part_count:
            whole.setdefault(version, []).append(tuple(sorted(parts, key=lambda f: f.part or 0)))
    return whole


def _hole(log: _Log, segment: range, *, missing: int) -> LogError:
    """The error for the versions `segment`, which cannot be read because the commit of `missing` does not exist.

    The classes are Delta-Spark's, which calls a log truncated where the commits right after its checkpoint are missing.
    """
    version = segment[-1]
    found = min((v for v in {*log.commits, *log.checkpoints} if v > missing), default=None)
    if missing == 0:
        return LogError(
            f"The log of {TABLE} lacks its first commits: those before version {found} are gone and no readable "
            f"checkpoint replaces them, so version {version} cannot be read. Restore the missing log "
            "files, or read a newer version.",
            error_class="DELTA_TRUNCATED_TRANSACTION_LOG",
        )
    return LogGapError(
        expected=missing,
        found=found,
        remedy=f"Version {version} cannot be read without them. Restore the missing log files.",
        error_class="DELTA_TRUNCATED_TRANSACTION_LOG" if missing == segment[0] else None,
    )
