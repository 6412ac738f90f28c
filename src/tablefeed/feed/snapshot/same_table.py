"""Checks that the table at a path is still the one that a reader began with.

A table that is deleted and created again counts its versions from 0 again, so version numbers alone do not show it.
The file of a commit that was read shows it: its size or its time has changed, or it is gone. Only then is the table
loaded and its id compared. The id as of that commit counts, because a later commit of the same log may change the id.

A copied log has other times and the same commits. A log that was restored from an older copy may have got another
commit of the same size. So where only the time has changed, the content is compared with what was read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tablefeed.errors import LogError, ObjectNotFoundError, OffsetError, VersionNotFoundError
from tablefeed.feed.snapshot.in_force import metadata_at
from tablefeed.feed.snapshot.segment_reader import is_as_listed
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.actions import Commit, Metadata, Version
from tablefeed.model.logfile import LogFile
from tablefeed.store import Entry

logger = logging.getLogger(__name__)

FIRST_BYTES = 65_536
"""So much of a log file is compared. It has ids that no other file has: of the commit, or of its data files."""


class SameTable:
    """Compares the table at `begun.log` with `begun`, the state with which a reader began.

    `remedy` is the last sentence of an error: what the user of the reader can do now. Raises OffsetError where another
    table is there, TableNotFoundError where no table is there any more, and LogError
    (DELTA_STREAMING_TRAILING_COMMIT_MISSING) where commits that were read are gone or were replaced. With
    `data_may_be_lost` the last case is logged as a warning instead.
    """

    def __init__(self, begun: Snapshot, *, remedy: str, data_may_be_lost: bool = False) -> None:
        self._begun, self._remedy, self._data_may_be_lost = begun, remedy, data_may_be_lost
        self._seen: tuple[Version, Entry | None] = (begun.version, begun.head)
        self._table_id = begun.metadata.table_id
        self._read: tuple[object, Callable[[Version], object]] = None, self._first_bytes
        """What is known of the content of the version in `_seen`, None: nothing; and how it is read again."""

    @property
    def read_to(self) -> Version:
        """The newest version that was read."""
        return self._seen[0]

    def note_content(self) -> None:
        """Reads what `compare` compares where only the time has changed: one request, once for a long-lived reader."""
        self._read = self._first_bytes(self._seen[0]), self._first_bytes

    def compare_after_restart(self, read_to: Version) -> None:
        """Compares once after a restart: an earlier run read up to `read_to`, and only that version is known of it."""
        if read_to > self._seen[0]:
            self._seen, self._read = (read_to, None), (None, self._first_bytes)
            self.compare()
            self.note_content()

    def compare_after_reading(
        self,
        read_to: Version,
        commit: Commit | None,
        *,
        found: Entry | None,
        brought: Metadata | None = None,
    ) -> None:
        """Compares after the commits up to `read_to` were read and before they are used; costs one request.

        `commit` is that of `read_to`, None: it was too large to keep. `found` is its file: as it was before it was
        read, or while the reader knew that no commit was replaced; None: it was gone. `brought` is the metadata in
        those commits, for a reader that continues when a commit changes the table's id.
        """
        if read_to <= self._seen[0]:
            self.compare()
            return
        # The new commit's file was found before. If the commit before it is unchanged, both belong to the same table.
        self.compare()
        self._seen = (read_to, found)
        self._read = None if commit is None else _ids_of(commit), self._ids
        if brought is not None:
            self._table_id = brought.table_id

    def is_in(self, listed: LogFile | None) -> bool:
        """Whether `listed`, a file of a new listing, is the one that `compare` would ask for, unchanged."""
        version, seen = self._seen
        if listed is None or seen is None or listed.version != version:
            return False
        return listed.name == seen.name.rpartition("/")[2] and is_as_listed(seen, listed)

    def file_of(self, version: Version) -> Entry | None:
        """Gives the file of `version` if it is the newest that was compared and was there; the store is not asked."""
        return self._seen[1] if version == self._seen[0] else None

    def compare(self) -> None:
        """Compares now; costs one request where nothing changed."""
        version, seen = self._seen
        log = self._begun.log
        head = log.head(version)
        if head == seen and head is not None:
            return
        now = log.load()
        found = now.metadata.table_id
        if found != self._table_id:
            found = _table_id_at(version, now)
        refuse_other(log.url, expected=self._table_id, found=found, remedy=self._remedy)
        if now.version < version or self._is_replaced(seen, head):
            self._lost(version, newest=now.version)
        self._seen = (version, head)

    def _is_replaced(self, seen: Entry | None, head: Entry | None) -> bool:
        """Whether the file holds another commit than was read; a missing one may be cleaned up.

        `seen` is None where the file was gone when its commit had been read, or is not known.
        """
        if head is None or (seen is not None and seen.name != head.name):
            return False
        before, read_again = self._read
        if before is not None:
            return read_again(self._seen[0]) != before
        return seen is not None and seen.size_bytes != head.size_bytes

    def _first_bytes(self, version: Version) -> object:
        log = self._begun.log
        head = self._seen[1] or log.head(version)
        try:
            return None if head is None else log.store.read(head.name, end=FIRST_BYTES)
        except ObjectNotFoundError:
            return None

    def _ids(self, version: Version) -> object:
        commit = self._begun.log.commit(version)
        return None if commit is None else _ids_of(commit)

    def _lost(self, version: Version, *, newest: Version) -> None:
        url = self._begun.log.url
        if self._data_may_be_lost:
            text = "url=%s newest=%d version=%d was read and is gone or replaced: no commit up to that is delivered"
            logger.warning(text, url, newest, version)
            return
        raise LogError(
            f"The log of {url} was read up to version {version}, whose commit is gone or was replaced; the log is at "
            f"version {newest} now. Restore the commits that were read, or else: {self._remedy}",
            url=url,
            error_class="DELTA_STREAMING_TRAILING_COMMIT_MISSING",
        )


def _ids_of(commit: Commit) -> object:
    """What no other commit has: ids that its writer made up, in commitInfo and in the names of new files."""
    return commit.info, commit.txns, len(commit.files), commit.files[0].path if commit.files else None


def _table_id_at(version: Version, newest: Snapshot) -> str:
    """The table's id as of `version`; as of `newest` where the log does not say."""
    try:
        return metadata_at(version, newest).table_id
    except VersionNotFoundError:
        return newest.metadata.table_id


def refuse_other(url: str, *, expected: str, found: str, remedy: str, at: int | None = None) -> None:
    """Raises OffsetError where the table at `url` has the id `found`, and its reader began with the id `expected`.

    `at` is the version that has the id `found`; None: the newest. `remedy` says what the user of the reader can do.
    """
    if found != expected:
        raise OffsetError(
            f"{url} is {'now' if at is None else f'at version {at}'} the table with id {found}, but this reader began "
            f"with the table with id {expected}: the table was deleted and created again, or the path is of another "
            f"table. {remedy}",
            url=url,
            error_class="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
        )
