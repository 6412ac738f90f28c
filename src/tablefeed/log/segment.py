"""Which files of a listed log give one version of the table: a checkpoint and the commits that follow it.

Listing in, `LogSegment` out. Names and kinds alone decide (PROTOCOL.md, "Checkpoints" and "Delta Log Entries"); whether
a file can be read is found out by its reader, who then asks again `without` it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tablefeed.errors import LogError, LogGapError, TableNotFoundError, UnsupportedFeatureError, VersionNotFoundError
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """The log files that `version` is read from.

    Guaranteed: `checkpoint` is empty or one whole checkpoint, its parts in order; `commits` are without a gap in
    ascending order, begin right after the checkpoint (at 0 where there is none) and end at `version`.
    """

    version: Version
    checkpoint: tuple[LogFile, ...]
    commits: tuple[LogFile, ...]

    def __post_init__(self) -> None:
        bases = {file.version for file in self.checkpoint}
        begin = max(bases, default=-1) + 1
        if len(bases) > 1 or [commit.version for commit in self.commits] != list(range(begin, self.version + 1)):
            raise ValueError(f"no segment of version {self.version}: {self.checkpoint} and {self.commits}")


def build_segment(
    listing: Iterable[LogFile], *, version: Version | None, url: str, without: frozenset[str] = frozenset()
) -> LogSegment:
    """The segment of `version`, by default of the newest version, from its newest whole checkpoint not in `without`.

    The order of `listing` does not matter, nor that a name is in it twice. A single-file checkpoint goes before one in
    parts, and fewer parts before more; a checkpoint that lacks a part is no checkpoint. `without` names checkpoint
    files that turned out unreadable; they still count for which version is the newest, so that it never goes back.

    Raises TableNotFoundError for a log without commits and checkpoints; VersionNotFoundError for a version after the
    newest or before the earliest that can be read; LogGapError where commits are missing on the way; LogError
    (DELTA_TRUNCATED_TRANSACTION_LOG) where the log's begin is gone and no checkpoint stands in for it;
    UnsupportedFeatureError where only a checkpoint with a UUID in its name (v2Checkpoint) does.
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
    return LogSegment(version=target, checkpoint=checkpoint, commits=tuple(log.commits[Version(v)] for v in versions))


def latest_version(listing: Iterable[LogFile]) -> Version | None:
    """The newest version that a commit or whole checkpoint in `listing` tells of; None where none does."""
    return _Log(listing).newest


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


_Checkpoint = tuple[LogFile, ...]


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
        self.checkpoints = _whole_checkpoints(files.values())
        """The preferred one of each version first."""
        self.unread = {file.version for file in files.values() if file.kind is LogFileKind.CHECKPOINT_V2}
        """Versions with a checkpoint that is not read."""

    @property
    def newest(self) -> Version | None:
        return max({*self.commits, *self.checkpoints, *self.unread}, default=None)

    @property
    def earliest(self) -> Version | None:
        return Version(0) if 0 in self.commits else min(self.checkpoints, default=None)

    def newest_checkpoint(self, version: Version, *, without: frozenset[str]) -> _Checkpoint:
        for at in sorted((v for v in self.checkpoints if v <= version), reverse=True):
            for checkpoint in self.checkpoints[at]:
                if without.isdisjoint(file.name for file in checkpoint):
                    return checkpoint
        return ()


def _whole_checkpoints(files: Iterable[LogFile]) -> Mapping[Version, list[_Checkpoint]]:
    parts: dict[tuple[Version, int], list[LogFile]] = {}
    for file in files:
        if file.kind is LogFileKind.CHECKPOINT:
            parts[file.version, 0] = [file]
        elif file.kind is LogFileKind.CHECKPOINT_PART:
            parts.setdefault((file.version, file.part_count or 0), []).append(file)
    whole: dict[Version, list[_Checkpoint]] = {}
    for (version, part_count), found in sorted(parts.items(), key=lambda item: item[0]):
        if len(found) == max(part_count, 1):
            whole.setdefault(version, []).append(tuple(sorted(found, key=lambda f: f.part or 0)))
    return whole


def _hole(log: _Log, segment: range, *, missing: int, url: str) -> LogError | UnsupportedFeatureError:
    """Why the versions of `segment` cannot be had where the commit of `missing` is not there.

    The classes are Delta-Spark's: for it a log that lacks the commits right after its checkpoint is a truncated one.
    """
    version = segment[-1]
    if any(missing <= v <= version for v in log.unread):
        return UnsupportedFeatureError(
            f"Version {version} of {url} can only be read from a V2 checkpoint, which this version of tablefeed does "
            "not read. Upgrade tablefeed, or let the table's writer make a classic checkpoint.",
            url=url,
            features=("v2Checkpoint",),
            error_class="DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        )
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
