"""The commits after a version, found by name, each read and decoded once.

While they are read, somebody may restore an older copy of the table, and others may commit to it. The versions up to
some are then those of the old log, and the later ones are not. So the file of a later commit is found before any is
read: the mark. If its file is the same afterwards, no commit up to it was replaced meanwhile. Many commits have one
mark, so it costs few requests.

Keeps the small state of a long-lived reader: commits that are decoded but not yet delivered, and when the log was last
listed to look for a gap. It has no rules about what a commit means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tablefeed.errors import LogError, LogGapError
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


class ReplacedWhileReadError(LogError):
    """Commits may have been replaced while they were read. None of them is kept: read them again."""


class Tail:
    """The log of one table from any version on, for one reader. `clock` gives seconds and never goes back."""

    def __init__(self, log: TableLog, *, clock: Callable[[], float], fail_on_data_loss: bool) -> None:
        self._log = log
        self._clock = clock
        self._fail_on_data_loss = fail_on_data_loss
        self._cached: dict[Version, Commit] = {}
        self._cached_actions = 0
        self._newest_kept: tuple[Version, Entry | None] | None = None
        self._mark: tuple[Version, Entry] | None = None
        self._absent: Version | None = None
        """The first version that was found to be missing since the last call of `commits` began."""
        self._unsettled: Version | None = None
        """The first version that was read since `settle`."""
        self._missed: Version | None = None
        self._listed_before: LogFile | None = None
        self._behind_hole: dict[Version, Version] = {}
        self._gap_checked_at = float("-inf")

    def commits(self, start: Version, *, through: Version | None = None) -> Iterator[Commit]:
        """Gives the commits from `start` to the newest, or to `through`, in order and without a gap.

        Ends early at a missing version unless a listing shows later ones. Then it raises LogGapError, or, without
        `fail_on_data_loss`, continues after the gap. A reader without `through` waits for that version, so it lists the
        log at most once in GAP_CHECK_S seconds. Call `settle` before the commits are used. Raises as `settle`.
        """
        version: Version | None = start
        self._absent, read = None, 0
        while version is not None and (through is None or version <= through):
            is_kept = version in self._cached
            commit = self.commit(version, ahead=max(read, 1) if through is None else through - version + 1)
            if commit is None:
                version = self._next_behind_hole(version, is_waiting=through is None)
                continue
            read += not is_kept
            yield commit
            version = Version(version + 1)

    def commit(self, version: Version, *, ahead: int = 1) -> Commit | None:
        """Gives the commit of `version`, None where it does not exist now.

        If it is not kept, its file or one of the next `ahead` is found before it is read, unless one was found before.
        Call `settle` before it is used. Raises as `settle`.

        A watch on the log would save the request, but it reports a commit some milliseconds late. A query that must
        process all that is available (processAllAvailable) could then end without that commit.
        """
        cached = self._cached.get(version)
        if cached is not None:
            return cached
        is_marked = self._mark is not None and version <= self._mark[0]
        commit = None
        if is_marked or self._is_marked_from(version, ahead):
            commit = self._log.commit(version, over_holes=not self._fail_on_data_loss)
        if commit is None:
            self._missed = version
        else:
            self._unsettled = version if self._unsettled is None else min(version, self._unsettled)
            self._keep(commit)
        return commit

    def settle(self) -> bool:
        """Checks that the commits read since the last call are of one log; says whether there are any.

        At most one request. Raises ReplacedWhileReadError, and keeps none of them, if the file of the mark has changed.
        """
        first, self._unsettled = self._unsettled, None
        # The file of the last commit was found before it was read: who asks for the file later sees a change.
        if first is not None and self._mark is not None and first < self._mark[0]:
            self._check_mark(*self._mark)
        return first is not None

    def file_of(self, version: Version) -> Entry | None:
        """Gives the file of `version`, whose commit was read, None where it is gone. Call `settle` afterwards."""
        return self._mark[1] if self._mark is not None and self._mark[0] == version else self._log.head(version)

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

        Call it right after reading, and `settle` after it. `forget_replaced` later compares the file with the one that
        the log has then.
        """
        newest = max(self._cached, default=after)
        if newest > after and (self._newest_kept is None or self._newest_kept[0] != newest):
            self._newest_kept = newest, self.file_of(newest)

    def forget_replaced(self, after: Version) -> None:
        """Drops the kept commits after `after`, unless the log still has the file of the newest; at most one request.

        If an older copy of the log was restored after they were read, other commits may have their versions now. That
        file is the mark of the commits that stay.
        """
        self._mark = self._unsettled = None
        newest = max(self._cached, default=after)
        if newest <= after:
            return
        file = self._log.head(newest)
        if file is None or self._newest_kept != (newest, file):
            self._forget(after)
        else:
            self._mark, self._unsettled = (newest, file), Version(after + 1)

    def _forget(self, after: Version) -> None:
        self._newest_kept = self._mark = self._unsettled = None
        for version in [version for version in self._cached if version > after]:
            self._drop(version)

    def _is_marked_from(self, version: Version, ahead: int) -> bool:
        """Finds the file of a commit from `version` on, of the next `ahead`; says whether it is there."""
        if self._absent is not None and version < self._absent:
            ahead = min(ahead, self._absent - version)
        while (file := self._log.head(Version(version + ahead - 1))) is None:
            if ahead == 1:
                return False
            self._absent = Version(version + ahead - 1)
            ahead //= 2
        if self._mark is not None:  # both are in the log now: so they are of one log
            self._check_mark(*self._mark)
        self._mark = Version(version + ahead - 1), file
        return True

    def _check_mark(self, version: Version, found: Entry) -> None:
        """Raises ReplacedWhileReadError if the file of `version` is not `found`; one that is gone may be cleaned up."""
        file = self._log.head(version)
        if file == found or (file is None and self._log.load().version > version):
            return
        self._forget(Version(-1))
        raise ReplacedWhileReadError(
            f"The commits of {self._log.url} up to version {version} were read, and then the file of that commit was "
            "gone or another one, several times: the table is restored from copies. None of them was delivered. Start "
            "the query again.",
            url=self._log.url,
            error_class="DELTA_STREAMING_TRAILING_COMMIT_MISSING",
        )

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
