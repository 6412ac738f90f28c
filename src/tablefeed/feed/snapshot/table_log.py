"""What the feed reads of a table, in either format: `TableLog` is a log, `Snapshot` the table as of one version.

delta_log.py and index_log.py implement both. `open_log.open_log` looks up which format a table has; nobody else asks.
What only one format has is a member of its own classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Protocol

from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.schema_string import schema_of
from tablefeed.errors import LogError, ObjectNotFoundError, TablefeedError, naming
from tablefeed.model import actions
from tablefeed.model.actions import Commit, Facts, Metadata, Version
from tablefeed.model.cached import cached_property
from tablefeed.model.logfile import LogFile
from tablefeed.model.schema import Struct
from tablefeed.store import Entry, Store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.predicate import Predicate


MADE_MEANWHILE = 64
"""How many versions before the newest one of a listing may be made while it runs: far more than a disk has time for."""


class TablePlace(Protocol):
    """Where an opened log is.

    `location` and `storage_options` are what the store was opened with, so that tasks can open it elsewhere. `url` is
    for people and holds no credentials. `directory` is the folder of the log's files.
    """

    directory: ClassVar[str]
    store: Store
    url: str
    location: str
    storage_options: Mapping[str, str]

    def __init__(self, store: Store, *, location: str, storage_options: Mapping[str, str]) -> None:
        self.store = store
        self.url = store.url
        self.location = location
        self.storage_options = storage_options


class TableLog(TablePlace, Protocol):
    """The log at a store's root. Raises LogError, TableError and StoreError with the table's url."""

    def listing(self, start: int = 0, *, over_holes: bool = False) -> list[LogFile]:
        """Gives the log files of versions from `start` on, the commits in order. `over_holes`: see `commit`."""

    def load(self, version: Version | None = None) -> Snapshot:
        """Gives the table as of `version`, the newest by default.

        Instead of a log file that cannot be read, others that give the same version are read. The error is raised only
        where there are none. Raises TableNotFoundError, VersionNotFoundError, LogGapError, UnsupportedFeatureError.
        """

    def load_for_files(self, version: Version | None = None) -> Snapshot:
        """Gives the table as `load` does, for a caller that reads the files next."""

    def advance(self, snapshot: Snapshot) -> Snapshot:
        """Gives the newest state, which may be `snapshot`. Reads no more of the log than what came after that.

        If the file of the commit of `snapshot` has changed, another table is there now, which is loaded afresh.
        """

    def commit(self, version: Version, *, over_holes: bool = False) -> Commit | None:
        """Gives the commit of `version`, None where there is no such log file.

        `committed_at_ms` is None where the commit does not say when it was made. `over_holes` only matters where the
        commit must be computed: it is then the difference from the newest earlier version that still exists, even
        across a gap.
        """

    def head(self, version: Version) -> Entry | None:
        """Gives the file of the commit of `version` as the store lists it, None where there is none."""

    def check_readable(self, protocol: actions.Protocol, metadata: Metadata) -> None:
        """Raises UnsupportedFeatureError, with the feature's name, where a table with these cannot be read."""

    def records_changes(self, metadata: Metadata) -> bool:
        """Says whether versions with `metadata` record their changes, so that a change feed can be read."""


TimeOf = Callable[[LogFile], int]
"""Gives when one of some known commits was made, in milliseconds since 1970 UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTimes:
    """From which version on commits have a time of their own, and how these times are read.

    `since_ms` is the time of the version `since`. Version 0 and -inf: all commits have one. `read` takes commits in
    ascending order and gives their times, which grow strictly.
    """

    since: int
    since_ms: float
    read: Callable[[Sequence[LogFile]], TimeOf]


@dataclass(frozen=True, kw_only=True)
class Snapshot(ABC):
    """A table as of one version: its facts are loaded, its files are read when asked for.

    Guaranteed: the table has a protocol that this version of tablefeed can read, and metadata.
    """

    log: TableLog
    version: Version
    facts: Facts
    protocol: actions.Protocol
    metadata: Metadata
    head: Entry | None
    """The newest commit's file as the store lists it. It shows when a new table is created at the same place.
    None where the file is gone (a checkpoint has the version) or the store did not say."""
    unreadable: frozenset[str] = frozenset()
    """The names of the log files, not commits, that could not be read when the facts were loaded."""

    @property
    def url(self) -> str:
        """Where the table is, for people: without credentials."""
        return self.log.url

    @cached_property
    def schema(self) -> Struct:
        """The table's schema, partition columns included, in its order."""
        with naming(self.url):
            return schema_of(self.metadata)

    @cached_property
    def properties(self) -> TableProperties:
        """The table's properties as values."""
        return TableProperties.of(self.metadata)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The table's schema as an Arrow schema."""
        from tablefeed.delta.schema.arrow_schema import to_arrow

        return to_arrow(self.schema)

    @abstractmethod
    def live_files(self, *, with_stats: bool = False, asked: Predicate | None = None) -> Iterator[pa.RecordBatch]:
        """Gives the live files in columns (`tablefeed.delta.columns.FILE_COLUMNS`), in no stated order.

        Files without a row for which `asked` is true may be left out where that saves reads of the log; the caller
        still filters the rest. Each file is given once. A log file that cannot be read is left out as in
        `TableLog.load`. Raises CorruptLogError and ObjectNotFoundError where no other log files give the version.
        """

    def loaded_files(self) -> Iterator[pa.RecordBatch] | None:
        """Gives the live files with statistics if they are all in memory; None where the log must be read for them."""
        return None

    @abstractmethod
    def metadata_behind_hole(self, version: Version) -> Metadata | None:
        """Gives the metadata at `version`, before which commits are lost; as of the newest version if it is not known.

        `version` may be after this snapshot. None where no state at `version` or later can be loaded. Raises LogError
        where a commit after the hole cannot be read.
        """

    @abstractmethod
    def own_times(self) -> OwnTimes | None:
        """Gives how commits say when they were made; None where they do not, so that the times of their files count.

        Raises TableError where the table's properties about these times contradict each other.
        """


def required_facts(facts: Facts, version: Version, *, url: str, error_class: str) -> tuple[actions.Protocol, Metadata]:
    """Gives the protocol and the metadata in `facts`, those of `version`. Raises LogError where one is missing."""
    if facts.protocol is None or facts.metadata is None:
        missing = "protocol" if facts.protocol is None else "metadata"
        raise LogError(
            f"The log of {url} holds no {missing} action up to version {version}: it is damaged. Restore the missing "
            "log files.",
            url=url,
            error_class=error_class,
        )
    return facts.protocol, facts.metadata


def required_commit(log: TableLog, log_file: LogFile) -> Commit:
    """Gives the commit in a listed `log_file`, with the file's time where the commit has none of its own.

    Raises ObjectNotFoundError where the file is gone by now.
    """
    commit = log.commit(log_file.version)
    if commit is None:
        raise ObjectNotFoundError(url=log.url, name=f"{log.directory}/{log_file.name}")
    return commit if commit.committed_at_ms is not None else replace(commit, committed_at_ms=log_file.modified_ms)


def is_of_one_commit(error: TablefeedError) -> bool:
    """Whether a commit is damaged, gone or may not be read. Other errors of a store concern every commit."""
    return isinstance(error, LogError | ObjectNotFoundError) or isinstance(error.__cause__, PermissionError)
