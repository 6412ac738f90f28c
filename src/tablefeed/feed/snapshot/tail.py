"""The commits after a version, found by name, each read and decoded once.

Keeps the small state of a long-lived reader: commits that are decoded but not yet delivered, and when the log was last
listed to look for a gap. It has no rules about what a commit means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tablefeed.errors import LogGapError
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.model.actions import Commit, Version
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.store import Entry

CACHED_ACTIONS = 200_000
"""At most so many decoded file actions are kept: about 130 MB at 640 bytes each. Others are decoded again when read."""

GAP_CHECK_S = 60.0
"""How often a waiting reader lists the log for versions beyond the one it waits for. Commits are made in order, so a
gap at the end exists only if somebody removed log files. The listing also shows whether the last commit that was read
has been replaced (`Tail.take_listed`), so this costs one request."""


class Tail:
    """The log of one table from any version on, for one reader. `clock` gives seconds and never goes back."""

    def __init__(self, log: TableLog, *, clock: Callable[[], float], fail_on_data_loss: bool) -> None:
        self._log = log
        self._clock = clock
        self._fail_on_data_loss = fail_on_data_loss
        self._cached: dict[Version, Commit] = {}
        self._cached_actions = 0
        self._newest_kept: tuple[Version, Entry | None] | None = None
        self._found: tuple[Version, Entry] | None = None
        self._missed: Version | None = None
        self._listed_before: LogFile | None = None
        self.reads = 0
        """How many commits were read from the store."""
        self._behind_hole: dict[Version, Version] = {}
        self._gap_checked_at = float("-inf")

    def commits(self, start: Version, *, through: Version | None = None) -> Iterator[Commit]:
        """Gives the commits from `start` to the newest, or to `through`, in order and without a gap.

        Ends early at a missing version unless a listing shows later ones. Then it raises LogGapError, or, without
        `fail_on_data_loss`, continues after the gap. A reader without `through` waits for that version, so it lists the
        log at most once in GAP_CHECK_S seconds. It asks for the file of the first version that is not kept before it
        reads it: see `file_found`.
        """
        version: Version | None = start
        reads = self.reads
        while version is not None and (through is None or version <= through):
            commit = self.commit(version, finds_first=through is None and self.reads == reads)
            if commit is None:
                version = self._next_behind_hole(version, is_waiting=through is None)
                continue
            yield commit
            version = Version(version + 1)

    def commit(self, version: Version, *, finds_first: bool = False) -> Commit | None:
        """Gives the commit of `version`, None where it does not exist now; one request, by name, if it is not kept.

        With `finds_first` its file is asked for before it is read: two requests where it exists.

        A watch on the log would save the request, but it reports a commit some milliseconds late. A query that must
        process all that is available (processAllAvailable) could then end without that commit.
        """
        cached = self._cached.get(version)
        if cached is not None:
            return cached
        file = self._log.head(version) if finds_first else None
        is_there = file is not None or not finds_first
        commit = self._log.commit(version, over_holes=not self._fail_on_data_loss) if is_there else None
        if commit is None:
            self._missed = version
        else:
            self.reads += 1
            self._keep(commit)
            self._found = None if file is None else (version, file)
        return commit

    def file_found(self, version: Version) -> Entry | None:
        """Gives the file of `version` as it was before its commit was read; None where it is not known."""
        return self._found[1] if self._found is not None and self._found[0] == version else None

    def kept(self, version: Version) -> Commit | None:
        """Gives the commit of `version` if it is kept, else None; the store is not asked."""
        return self._cached.get(version)

    @property
    def has_room(self) -> bool:
        """Whether commits may be read ahead: half of `CACHED_ACTIONS` is reserved for the commits needed now."""
        return self._cached_actions < CACHED_ACTIONS // 2

    def take_missed(self) -> Version | None:
        """Gives the last version that was asked for and did not exist; None where none was since the last call."""
        missed, self._missed = self._missed, None
        return missed

    def take_listed(self) -> LogFile | None:
        """Gives the commit before the missing version that the log was last listed for, as the listing has it.

        None where there was no listing since the last call, or no such commit in it.
        """
        listed, self._listed_before = self._listed_before, None
        return listed

    def forget_before(self, version: Version) -> None:
        """Drops the decoded commits below `version`: they have been delivered."""
        for old in [v for v in self._cached if v < version]:
            self._drop(old)

    def note_ahead(self, after: Version) -> None:
        """Notes the file of the newest commit, if one after `after` is kept; one request where that commit is new.

        Call it right after reading. `forget_replaced` later compares the file with the one that the log has then.
        """
        newest = max(self._cached, default=after)
        if newest > after and (self._newest_kept is None or self._newest_kept[0] != newest):
            self._newest_kept = newest, self.file_found(newest) or self._log.head(newest)

    def forget_replaced(self, after: Version) -> None:
        """Drops the kept commits after `after`, unless the log still has the file of the newest; at most one request.

        If an older copy of the log was restored after they were read, other commits may have their versions now.
        """
        newest = max(self._cached, default=after)
        if newest <= after:
            return
        file = self._log.head(newest)
        if file is None or self._newest_kept != (newest, file):
            self._newest_kept = None
            for version in [version for version in self._cached if version > after]:
                self._drop(version)

    def _drop(self, version: Version) -> None:
        self._cached_actions -= len(self._cached.pop(version).files)

    def _keep(self, commit: Commit) -> None:
        if self._cached_actions + len(commit.files) <= CACHED_ACTIONS:
            self._cached[commit.version] = commit
            self._cached_actions += len(commit.files)

    def _next_behind_hole(self, version: Version, *, is_waiting: bool) -> Version | None:
        now = self._clock()
        if version in self._behind_hole:
            return self._behind_hole[version]
        if is_waiting and now - self._gap_checked_at < GAP_CHECK_S:
            return None
        before = max(version - 1, 0)
        listed = self._log.listing(before, over_holes=not self._fail_on_data_loss)
        commits = [f for f in listed if f.kind is LogFileKind.COMMIT]
        self._listed_before = next((f for f in commits if f.version == version - 1), None)
        later = [f.version for f in commits if f.version > version]
        if not later:
            self._gap_checked_at = now
            return None
        if self._log.commit(version) is not None:
            return version  # it was committed in the meantime
        if not self._fail_on_data_loss:
            self._behind_hole[version] = min(later)
            return min(later)
        raise LogGapError(
            url=self._log.url,
            expected=version,
            found=min(later),
            remedy="They were removed before this reader came to them. Restart from a new checkpoint, or set "
            "failOnDataLoss=false to go on without them.",
            error_class="DELTA_MISSING_FILES_UNEXPECTED_VERSION",
        )
