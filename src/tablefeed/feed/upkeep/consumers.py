"""Consumers: registered readers. Vacuum and the cleanup of the log keep what a consumer still has to read.

Each consumer has its own file below `FOLDER` in the table's folder. The file says up to which version the consumer has
read and how long its registration lasts; the time of the file is that of its last report. If a file cannot be read,
vacuum and cleanup stop and delete nothing. VACUUM of other writers skips the folder, and does not know consumers.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import orjson

from tablefeed.errors import IllegalOptionError, LogError, LogGapError, ObjectNotFoundError, OffsetError, StoreError
from tablefeed.feed.arguments import checked_id, is_id, location, store_options, whole_number
from tablefeed.feed.commit.settled_put import SKEW_MS
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFileKind
from tablefeed.model.notebook import InNotebooks
from tablefeed.store import Entry, Within

logger = logging.getLogger(__name__)

OWN_FOLDER = "_tablefeed"
"""The folder of the table in which tablefeed keeps files of its own."""

FOLDER = f"{OWN_FOLDER}/consumers"

FORMAT = 1
"""The version of the format of a consumer's file."""

EXPIRES_AFTER = timedelta(days=30)
"""As long as a log is kept by default: after that time, a reader that is no consumer could not continue either."""

_LONGEST = timedelta(days=3650)

FILES_A_LOOK = 100
"""How many log files a cleanup deletes between two looks at the consumers. A look costs as much as a few deletions."""

RENEWED_EVERY_S = 3600.0
"""The seconds after which a reader that finds nothing new reports again."""

_SUFFIX = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer(InNotebooks):
    """A registered reader that has read all versions up to `version`; -1: none yet.

    Its last report was at `reported_at_ms`, by the clock of the store. From `expires_at_ms` on, nothing is kept for it.
    """

    consumer_id: str
    version: Version
    expires_after: timedelta
    reported_at_ms: int

    @property
    def expires_at_ms(self) -> int:
        """When the registration ends unless the consumer reports before."""
        return self.reported_at_ms + self.expires_after // timedelta(milliseconds=1)


def consumers(url: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> Consumers:
    """Gives the consumers of the table at `url`, Delta or IndexTables. Nothing is read yet."""
    return Consumers(open_log(location(url), store_options(storage_options)))


class Consumers:
    """The consumers of the table of `log`. Raises LogError for a file that cannot be read, and StoreError.

    One process at a time reports for a consumer.
    """

    def __init__(self, log: TableLog) -> None:
        self._log = log

    def list(self) -> tuple[Consumer, ...]:
        """Gives all consumers, expired ones too, ordered by their ids."""
        # Hadoop's checksum files are here too.
        files = [entry for entry in self._log.store.list(FOLDER) if entry.name.endswith(_SUFFIX)]
        named = ((entry, entry.name.removesuffix(_SUFFIX)) for entry in files)
        found = (self._read(entry, name) for entry, name in named if is_id(name))
        return tuple(consumer for consumer in found if consumer is not None)

    def register(
        self, consumer_id: str, *, version: int | None = None, expires_after: timedelta = EXPIRES_AFTER
    ) -> Consumer:
        """Registers a reader that has read all versions up to `version`: -1 for none, None for the newest.

        The state of the table at `version` and all later versions are kept from now on, until the consumer reports
        progress, is removed, or has not reported for `expires_after`. Register first, then read. A consumer of the same
        id is replaced. Raises IllegalOptionError, and LogGapError if a later version was already deleted from the log;
        the consumers are then as before.
        """
        checked_id(consumer_id, argument="consumer_id")
        _check_expiry(expires_after)
        newest = self._log.load().version
        at = newest if version is None else _version(version)
        if at > newest:
            raise _not_there_yet(at, newest)
        if at < newest:
            self._check_follows(at)
        before = self._replaced(consumer_id)
        self._put(consumer_id, at, expires_after)
        try:
            if at < newest:  # a cleanup that did not see the consumer may have deleted the commits meanwhile
                self._check_follows(at)
        except LogGapError:
            if before is None:
                self.remove(consumer_id)
            else:
                self._put(consumer_id, before.version, before.expires_after)
            raise
        return self._registered(consumer_id)

    def progress(self, consumer_id: str, version: int) -> None:
        """Reports that the consumer has read all versions up to `version`, and that it still reads.

        Raises IllegalOptionError for a consumer that is not registered, and for a version that is older than the one
        reported before or does not exist yet.
        """
        known, at = self._registered(consumer_id), _version(version)
        if at < known.version:
            explain = f"is before version {known.version}, which {consumer_id!r} has reported; to go back, register it"
            raise IllegalOptionError(option="version", value=str(at), explain=explain)
        if at > known.version and self._log.head(at) is None:
            newest = max((file.version for file in self._log.listing(at)), default=None)
            if newest is None or newest < at:
                raise _not_there_yet(at, newest)
        self._put(consumer_id, at, known.expires_after)

    def resume(self, consumer_id: str, version: int) -> None:
        """Makes sure that the versions after `version` are kept for the consumer, and reports that it still reads.

        If it is not registered, it is registered with an expiry of 30 days. If it is registered at a later version, it
        is set back to `version`, and keeps its expiry.
        """
        known, at = self.find(consumer_id), _version(version)
        expires_after = EXPIRES_AFTER if known is None else known.expires_after
        self._put(consumer_id, at if known is None else min(at, known.version), expires_after)

    def remove(self, consumer_id: str) -> None:
        """Removes a consumer: nothing is kept for it any more. Does nothing if there is none with that id."""
        self._log.store.delete(_name(consumer_id))

    def find(self, consumer_id: str) -> Consumer | None:
        """Gives the consumer with that id, None where none is registered."""
        entry = self._log.store.stat(_name(consumer_id))
        return None if entry is None else self._read(entry, consumer_id)

    def read_to(self, consumer_id: str, *, newest: Version) -> Version | None:
        """Gives the version up to which a consumer has read; None where none is registered.

        Raises OffsetError if that version is after `newest`, or if its commit is younger than the report that it was
        read: then the table was made anew or restored, and commits that were never read have these versions.
        """
        known = self.find(consumer_id)
        if known is None:
            return None
        commit = None if known.version < 0 else self._log.head(known.version)
        is_younger = commit is not None and commit.modified_ms > known.reported_at_ms + SKEW_MS
        if known.version > newest or is_younger:
            raise OffsetError(
                f"The consumer {consumer_id!r} of {self._log.url} has read up to version {known.version}, "
                f"{'which was made after that' if is_younger else f'but the newest is {newest}'}: the table was made "
                "anew or restored since. Say after which version to read: after=-1 gives all that is there.",
                url=self._log.url,
                error_class="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
            )
        return known.version

    def _check_follows(self, version: Version) -> None:
        """Raises LogGapError if the commit after `version` is not in the log any more."""
        listing = self._log.listing(version + 1)
        first = min((file.version for file in listing if file.kind is LogFileKind.COMMIT), default=None)
        if first != version + 1:
            remedy = "A consumer cannot read it any more. Register at a later version, or at the newest."
            raise LogGapError(url=self._log.url, expected=version + 1, found=first, remedy=remedy)

    def _replaced(self, consumer_id: str) -> Consumer | None:
        """Gives the consumer that a new registration replaces; None also if its file cannot be read."""
        try:
            return self.find(consumer_id)
        except LogError:
            return None

    def _registered(self, consumer_id: str) -> Consumer:
        known = self.find(consumer_id)
        if known is None:
            explain = f"is not registered as a consumer of {self._log.url}, or was removed. Register it"
            raise IllegalOptionError(option="consumer_id", value=consumer_id, explain=explain)
        return known

    def _read(self, entry: Entry, consumer_id: str) -> Consumer | None:
        name = _name(consumer_id)
        try:
            return _parsed(self._log.store.read(name), entry, consumer_id)
        except ObjectNotFoundError:
            return None  # it was removed after it was listed
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise LogError(
                f"The file {name} of {self._log.url} cannot be read, so it is not known what must be kept for consumer "
                f"{consumer_id!r}. Nothing was deleted. Register the consumer again, or remove it: "
                "tablefeed.consumers(url).remove(consumer_id).",
                url=self._log.url,
                error_class="TABLEFEED_CONSUMER_UNREADABLE",
            ) from error

    def _put(self, consumer_id: str, version: Version, expires_after: timedelta) -> None:
        days = expires_after / timedelta(days=1)
        found = {"format": FORMAT, "consumerId": consumer_id, "version": version, "expiresAfterDays": days}
        # This does not create the folder of a deleted table again.
        self._log.store.replace(_name(consumer_id), orjson.dumps(found), within=Within(directory=""))


def _check_expiry(given: object) -> None:
    if not isinstance(given, timedelta):
        raise IllegalOptionError(option="expires_after", value=str(given), explain="must be a timedelta")
    if not timedelta(0) < given <= _LONGEST:
        raise IllegalOptionError(
            option="expires_after",
            value=f"{given / timedelta(days=1):g} days",
            explain=f"must be above 0 and at most {_LONGEST.days} days",
        )


def _parsed(data: bytes, entry: Entry, consumer_id: str) -> Consumer:
    """Gives what the file of `consumer_id` says. Raises LookupError, TypeError, ValueError and OverflowError."""
    found = orjson.loads(data)
    version, expires_after = Version(found["version"]), timedelta(days=found["expiresAfterDays"])
    if (found["format"], found["consumerId"]) != (FORMAT, consumer_id):
        raise ValueError("another format or another consumer")
    if type(version) is not int or version < -1 or not timedelta(0) < expires_after <= _LONGEST:
        raise ValueError("no version or no time to expire after")
    return Consumer(
        consumer_id=consumer_id, version=version, expires_after=expires_after, reported_at_ms=entry.modified_ms
    )


# --- what upkeep asks ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """How many log files a cleanup deleted, and the ids of the consumers for which it kept log files."""

    log_files: int = 0
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """The consumers of a table that are not expired at a given time."""

    consumers: tuple[Consumer, ...]

    @property
    def slowest(self) -> Version | None:
        """The version up to which all of them have read; None where there are none."""
        return min((each.version for each in self.consumers), default=None)

    def before(self, version: int | None) -> tuple[str, ...]:
        """The ids of those that have not read `version` yet; None: of none."""
        return tuple(c.consumer_id for c in self.consumers if version is not None and c.version < version)


def readers(log: TableLog, *, now_ms: int) -> Readers:
    """Gives the consumers for which files of the table are kept at `now_ms`. Raises as `Consumers`."""
    return Readers(consumers=tuple(each for each in Consumers(log).list() if each.expires_at_ms > now_ms))


def came_meanwhile(log: TableLog, kept: Version | None, *, now_ms: int, deleted: int) -> tuple[str, ...]:
    """Gives the consumers that need log files before version `kept`, which a cleanup is about to delete.

    A cleanup calls it before its first file and after every `FILES_A_LOOK`, and ends at once if there are any.
    """
    came = readers(log, now_ms=now_ms).before(kept)
    if came:
        said = "cleanup put off table=%s deleted=%d: consumers came meanwhile: %s"
        logger.warning(said, log.url, deleted, ",".join(came))
    return came


# --- what readers report -------------------------------------------------------------------------------------------


class Reports:
    """What one reader reports as the consumer `consumer_id`. `clock` gives seconds that only grow.

    If the first report fails, the reader fails. If a later report fails, a warning is logged: until the next report
    succeeds, more is kept than needed, and the registration still lasts for days.
    """

    def __init__(self, consumers: Consumers, consumer_id: str, *, clock: Callable[[], float]) -> None:
        checked_id(consumer_id, argument="consumer_id")
        self._consumers, self._id, self._clock = consumers, consumer_id, clock
        self._reported_s: float | None = None

    def reads_after(self, version: Version) -> None:
        """Call it before anything after `version` is read. Registers the consumer, and reports again once an hour."""
        if self._reported_s is None:
            self._consumers.resume(self._id, version)
            self._reported_s = self._clock()
        elif self._clock() - self._reported_s >= RENEWED_EVERY_S:
            self._report(lambda: self._consumers.resume(self._id, version))

    def has_read(self, version: Version) -> None:
        """Call it once the reader no longer needs the versions up to `version`."""
        self._report(lambda: self._progress(version))

    def _progress(self, version: Version) -> None:
        try:
            self._consumers.progress(self._id, version)
        except IllegalOptionError as error:  # it was removed, or another reader reports as the same consumer
            logger.warning("consumer=%s registered again at version=%d: %s", self._id, version, error)
            self._consumers.resume(self._id, version)

    def _report(self, report: Callable[[], None]) -> None:
        self._reported_s = self._clock()
        try:
            report()
        except (StoreError, LogError) as error:
            logger.warning("consumer=%s not reported: %s", self._id, error)


# --- names ---------------------------------------------------------------------------------------------------------


def _name(consumer_id: str) -> str:
    return f"{FOLDER}/{checked_id(consumer_id, argument='consumer_id')}{_SUFFIX}"


def _version(version: object) -> Version:
    return Version(whole_number(version, argument="version", least=-1))


def _not_there_yet(version: int, newest: int | None) -> IllegalOptionError:
    explain = "is not in the log" if newest is None else f"must be at most the newest version, {newest}"
    return IllegalOptionError(option="version", value=str(version), explain=explain)
