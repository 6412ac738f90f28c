"""Which files of a listed log give one version of the table: a checkpoint and the commits that follow it.

Listing in, `LogSegment` out. Names and kinds alone decide (PROTOCOL.md, "Checkpoints" and "Delta Log Entries"); whether
a file can be read is found out by its reader, who then asks again `without` it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tablefeed.errors import LogError, LogGapError, TableNotFoundError, VersionNotFoundError
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """The log files that `version` is read from.

    Guaranteed: `checkpoint` is empty or one whole checkpoint, its parts in order; `commits` are without a gap in
    ascending order, begin right after the checkpoint (at 0 where there is none) and end at `version`. A `compaction`
    says what the first commits say, from version 0 on and never the newest: where there is a checkpoint there is none.
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
        """What is read after the checkpoint, in order: the commits, the compaction in place of those it covers."""
        if self.compaction is None:
            return self.commits
        return (self.compaction, *self.commits[(self.compaction.last_version or 0) + 1 :])

    def replaceable(self, name: str) -> frozenset[str]:
        """The files to leave out next where `name` cannot be read; none where no other segment can do without it.

        `name` may also be of a file that the checkpoint names. A commit is left out with the checkpoint: a compaction
        from the log's begin may cover it.
        """
        if self.compaction is not None and self.compaction.name == name:
            return frozenset({name})
        return frozenset(file.name for file in self.checkpoint)


def build_segment(
    listing: Iterable[LogFile], *, version: Version | None, url: str, without: frozenset[str] = frozenset()
) -> LogSegment:
    """The segment of `version`, by default of the newest version, from its newest whole checkpoint not in `without`.

    The order of `listing` does not matter, nor that a name is in it twice. Of the checkpoints of one version the one
    with a UUID in its name goes first, the greatest name before others, then the one of the most parts, the single
    file last: as Delta-Spark orders them (CheckpointInstance). A checkpoint that lacks a part is no checkpoint.
    `without` names checkpoint files and compactions that turned out unreadable; a checkpoint still counts for which
    version is the newest, so that it never goes back. Each commit must be listed, also one that a compaction covers.

    Raises TableNotFoundError for a log without commits and checkpoints; VersionNotFoundError for a version after the
    newest or before the earliest that can be read; LogGapError where commits are missing on the way; LogError
    (DELTA_TRUNCATED_TRANSACTION_LOG) where the log's begin is gone and no checkpoint stands in for it.
    """
    log = _Log(listing)
    newest, earliest = log.newest, log.earliest
    if newest is None:
        raise TableNotFoundError(
            f"There is no Delta table at {url}: its log holds no commit and no complete checkpoint.", url=url
        )
    target = newest if version is None else version
    if target > newest or (earliest is not None and target < earliest):
        first = newest if earliest is None else earliest
        raise VersionNotFoundError(url=url, version=target, earliest=first, latest=newest)
    checkpoint = log.newest_checkpoint(target, without=without)
    versions = range(checkpoint[0].version + 1 if checkpoint else 0, target + 1)
    missing = next((v for v in versions if v not in log.commits), None)
    if missing is not None:
        raise _hole(log, versions, missing=missing, url=url)
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


def whole_checkpoint_versions(listing: Iterable[LogFile]) -> frozenset[Version]:
    """The versions of which `listing` has a whole checkpoint."""
    return frozenset(whole_checkpoints(listing))


Checkpoint = tuple[LogFile, ...]
"""The listed files of one checkpoint: one file, or its parts in order."""


class _Log:
    """What a listing holds, by version."""

    def __init__(self, listing: Iterable[LogFile]) -> None:
        # A store whose listing is not one moment's can give a name twice; the file is one.
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
    """Whether the commits up to `version` can begin with `compaction`: where nothing comes before and one after it.

    Before it: writers leave out of a compaction the removes whose retention is over, as they do in a checkpoint
    (Kernel's LogCompactionWriter), and Delta-Spark's replay the tombstones of domains. Over an earlier state, what
    they removed would come back; "Log Compaction Files" asks for a plain reconciliation, but nothing in the file
    tells. After it: only a commit has commitInfo, and with it the in-commit timestamp of its version.
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


def _hole(log: _Log, segment: range, *, missing: int, url: str) -> LogError:
    """Why the versions of `segment` cannot be had where the commit of `missing` is not there.

    The classes are Delta-Spark's: for it a log that lacks the commits right after its checkpoint is a truncated one.
    """
    version = segment[-1]
    found = min((v for v in {*log.commits, *log.checkpoints} if v > missing), default=None)
    if missing == 0:
        return LogError(
            f"The log of {url} is cut off at its begin: the commits before version {found} are gone and no readable "
            f"checkpoint stands in for them, so that version {version} cannot be rebuilt. Restore the missing log "
            "files, or read a newer version.",
            url=url,
            error_class="DELTA_TRUNCATED_TRANSACTION_LOG",
        )
    return LogGapError(
        url=url,
        expected=missing,
        found=found,
        remedy=f"Version {version} cannot be rebuilt without them. Restore the missing log files.",
        error_class="DELTA_TRUNCATED_TRANSACTION_LOG" if missing == segment[0] else None,
    )
