"""The actions of one log version as frozen values (PROTOCOL.md, "Actions").

A value holds what the log says in one version, and nothing derived from other versions. The dialects read and write the
bytes; `tablefeed.log` combines the actions of several versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NewType

from tablefeed.model.notebook import InNotebooks
from tablefeed.model.split import Split

Version = NewType("Version", int)
"""The number of one version of a table's log, from 0."""

_EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVector:
    """Where the deleted row positions of a data file are kept (PROTOCOL.md, "Deletion Vectors")."""

    storage_type: Literal["u", "i", "p"]
    path_or_inline: str
    offset: int | None
    size_bytes: int
    cardinality: int

    @property
    def unique_id(self) -> str:
        """The id that, with the path, names a logical file ("Deletion Vector Descriptor Schema", derived fields)."""
        identity = f"{self.storage_type}{self.path_or_inline}"
        return identity if self.offset is None else f"{identity}@{self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFile:
    """A data file that a version adds, or describes anew ("Add File and Remove File").

    `path` is percent-decoded once and is relative to the table where the log's path is. `log_path` is the text as
    logged: removes repeat it, and `excludeRegex` is searched in it. `split` is set in IndexTables only.
    """

    path: str
    log_path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int
    modified_ms: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None
    split: Split | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFile:
    """A data file that a version removes ("Add File and Remove File"). None marks what the log left out."""

    path: str
    log_path: str
    data_change: bool
    deletion_timestamp_ms: int | None = None
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size_bytes: int | None = None
    stats: str | None = None
    tags: Mapping[str, str] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CdcFile:
    """A file of row changes that a version adds ("Add CDC File")."""

    path: str
    log_path: str
    partition_values: Mapping[str, str | None]
    size_bytes: int
    tags: Mapping[str, str] | None = None


FileAction = AddFile | RemoveFile | CdcFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Txn:
    """The progress of one application, committed with its data ("Transaction Identifiers")."""

    app_id: str
    txn_version: int
    last_updated_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The table's identity, schema, partitioning and properties ("Change Metadata").

    `schema_string` is the schema as the log has it (JSON). `extra` keeps fields that are not known here.
    """

    table_id: str
    schema_string: str
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    name: str | None = None
    description: str | None = None
    format_provider: str = "parquet"
    format_options: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    created_ms: int | None = None
    extra: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What a reader and a writer must know ("Protocol Evolution"). None: the version lists no features."""

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainMetadata:
    """One domain's configuration ("Domain Metadata"); `removed` is its tombstone."""

    domain: str
    configuration: str
    removed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo(InNotebooks):
    """Provenance of a version ("Commit Provenance Information"), each field as its writer wrote it.

    `version` is the log version; `committed_at_ms` the commit's time in milliseconds since 1970 UTC.
    """

    version: Version
    committed_at_ms: int
    fields: Mapping[str, object]

    @property
    def operation(self) -> str | None:
        """The operation's name, where the writer gave one."""
        value = self.fields.get("operation")
        return value if isinstance(value, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One version's actions, `files` in log order.

    `info` is the raw commitInfo, None where the writer left it out. `committed_at_ms` is the in-commit
    timestamp where there is one, else the log file's modification time, None where nobody asked the store for it.
    """

    version: Version
    files: tuple[FileAction, ...] = ()
    txns: tuple[Txn, ...] = ()
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    domains: tuple[DomainMetadata, ...] = ()
    info: Mapping[str, object] | None = None
    committed_at_ms: int | None

    @property
    def added(self) -> tuple[AddFile, ...]:
        """The files added, in log order."""
        return tuple(f for f in self.files if isinstance(f, AddFile))

    @property
    def removed(self) -> tuple[RemoveFile, ...]:
        """The files removed, in log order."""
        return tuple(f for f in self.files if isinstance(f, RemoveFile))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a log says about a table up to some version, except its files. None: no commit has set it."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txns: Mapping[str, Txn] = field(default_factory=lambda: MappingProxyType({}))
    domains: Mapping[str, DomainMetadata] = field(default_factory=lambda: MappingProxyType({}))
    in_commit_timestamp_ms: int | None = None
