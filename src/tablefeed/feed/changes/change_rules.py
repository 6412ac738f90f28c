"""When the changes of a range of versions can be read: all are recorded, and one schema can read them all.

The rules are Delta-Spark's for batch reads (CDCReader, `checkBatchCdfReadSchemaIncompatibility`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tablefeed.delta import names
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.column_mapping import (
    MappedSchema,
    MappingMode,
    has_mapping_change,
    has_renewed_column,
    mapped_schema,
    mapping_mode,
    physical_schema,
)
from tablefeed.delta.schema.schema_string import schema_of
from tablefeed.errors import ChangeDataError, SchemaChangedError, SchemaMismatchError, TableError
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.log.compatibility import can_read, has_other_type
from tablefeed.model.actions import Metadata, Version


def refuse_reserved_names(columns: Iterable[str], *, url: str) -> None:
    """Raises SchemaMismatchError where `columns` has the name of a column of the change feed, in any letter case."""
    reserved = (names.CHANGE_TYPE, names.COMMIT_VERSION, names.COMMIT_TIMESTAMP)
    taken = [name for name in columns if name.lower() in reserved]
    if taken:
        raise SchemaMismatchError(
            f"{url} has a column {taken[0]!r}, a name that its change feed needs. Rename the column.",
            url=url,
            error_class="DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesRecorded:
    """The rule that every version of `log` in the range `versions` records its changes."""

    versions: range
    log: TableLog

    def check(self, metadata: Metadata, version: int) -> None:
        """Raises ChangeDataError (DELTA_MISSING_CHANGE_DATA) unless `metadata`, that of `version`, enables the feed."""
        if self.log.records_changes(metadata):
            return
        url = self.log.url
        raise ChangeDataError(
            f"The changes of versions {self.versions[0]} to {self.versions[-1]} of {url} cannot be read: version "
            f"{version} did not record them. Read a range in which the property {names.ENABLE_CHANGE_DATA_FEED} is "
            "true, or let tablefeed.changes compute them from the files with deduplication_mode=dropCarryovers. To "
            "record changes from now on, set the property: alter(url, set_properties={...}) in tablefeed, or ALTER "
            "TABLE ... SET TBLPROPERTIES in Spark.",
            url=url,
            version=version,
            error_class="DELTA_MISSING_CHANGE_DATA",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsTracked:
    """The rule that every version in the range `versions` tracks rows; `row_id_column` is where files store row ids."""

    versions: range
    url: str
    row_id_column: str

    def check(self, metadata: Metadata, version: int) -> None:
        """Raises ChangeDataError (DELTA_CHANGELOG_ROW_TRACKING_DISABLED_IN_RANGE) unless `metadata` tracks rows so."""
        if _row_id_column(TableProperties.of(metadata)) == self.row_id_column:
            return
        raise ChangeDataError(
            f"The updates in versions {self.versions[0]} to {self.versions[-1]} of {self.url} cannot be computed: "
            f"version {version} did not track rows as the last one does. Read a range in which "
            f"{names.ENABLE_ROW_TRACKING} is true, or leave compute_updates out.",
            url=self.url,
            version=version,
            error_class="DELTA_CHANGELOG_ROW_TRACKING_DISABLED_IN_RANGE",
        )


def rows_tracked(read: Snapshot, versions: range) -> RowsTracked:
    """Gives the rule that `versions` track rows with the row id column of `read` ("Row Tracking").

    Raises TableError (DELTA_CHANGELOG_REQUIRES_ROW_TRACKING) where the table as of `read` does not track rows.
    """
    row_id_column = _row_id_column(read.properties)
    if row_id_column is None:
        raise TableError(
            f"{read.log.url} does not track its rows, so updates cannot be computed. Leave compute_updates out, or "
            f"turn row tracking on ({names.ENABLE_ROW_TRACKING}).",
            url=read.log.url,
            error_class="DELTA_CHANGELOG_REQUIRES_ROW_TRACKING",
        )
    return RowsTracked(versions=versions, url=read.log.url, row_id_column=row_id_column)


def _row_id_column(properties: TableProperties) -> str | None:
    return properties.row_id_column if properties.tracks_rows else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSchema:
    """The rule that rows of every version in the range `versions` can be read with the schema of `read`.

    `is_of_end` says whether `read` depends on the end of the range, so that an earlier end gives an earlier schema.
    `start_class` is the error class where the schema at the start does not fit, `change_class` where a later one does
    not. Both are Delta-Spark's.
    """

    versions: range
    read: Snapshot
    is_of_end: bool = False
    start_class: str = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"
    change_class: str = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"

    def reads(self, metadata: Metadata) -> bool:
        """Says whether rows that were written under `metadata` can be read.

        `read` must have each of their columns with the same name and type. Where columns are mapped, no column may have
        been renamed, dropped or replaced by a new one of the same name, and the partition columns must be the same.
        """
        newer = MappedSchema(schema=self.read.schema, mode=mapping_mode(self.read.properties))
        older = mapped_schema(metadata)
        if not can_read(newer.schema, older.schema) or has_mapping_change(older=older, newer=newer):
            return False
        if newer.mode is MappingMode.NONE:
            return True
        same_mode = older.mode in (MappingMode.NONE, newer.mode)
        return same_mode and metadata.partition_columns == self.read.metadata.partition_columns

    def start_refusal(self, changed: Version | None) -> SchemaChangedError:
        """Gives the error for a range whose first version cannot be read, although every later one can.

        `changed` is the first version in the range, after its start, that changed the metadata.
        """
        after = f"Start after the schema changed. {_COMPUTE}"
        remedy = after if changed is None or not self.is_of_end else self._apart(changed)
        return self._refusal(self.versions[0], self.start_class, remedy)

    def check_removed(self, before: Metadata | None, version: int) -> None:
        """Raises SchemaChangedError where rows that `version` removes, written under `before`, cannot be read.

        They cannot where a column got a type that is not wider. Where columns are mapped, they cannot either where a
        new column has the name of an old one, whose values would be read as null, or where `before` is None.
        """
        is_mapped_now, read = is_mapped(self.read.metadata), self.read.schema
        if before is None:
            cannot = is_mapped_now
        else:
            older = schema_of(before)
            cannot = is_mapped_now and has_renewed_column(older=older, newer=read)
            cannot = cannot or has_other_type(physical_schema(read), physical_schema(older))
        if cannot:
            remedy = f"Read the rows of version {version} as a whole, and start at version {version + 1}."
            what = f"The older rows that version {version} removes cannot be read with it"
            raise self._refusal(version, self.start_class, remedy, what=what)

    def check(self, metadata: Metadata, version: int) -> None:
        """Raises SchemaChangedError where rows written under `metadata`, which `version` commits, cannot be read."""
        if not self.reads(metadata):
            after = f"Start after the schema changed again. {_COMPUTE}"
            raise self._refusal(version, self.change_class, self._apart(version) if self.is_of_end else after)

    def _apart(self, version: int) -> str:
        return f"Read versions {self.versions[0]} to {version - 1} and those from {version} on separately."

    def _refusal(self, version: int, error_class: str, remedy: str, *, what: str | None = None) -> SchemaChangedError:
        url, what = self.read.log.url, what or f"The schema of version {version} cannot be read with it"
        return SchemaChangedError(
            f"The changes of versions {self.versions[0]} to {self.versions[-1]} of {url} are read with the schema of "
            f"version {self.read.version} ({', '.join(self.read.schema.names)}). {what}. {remedy}",
            url=url,
            version=version,
            error_class=error_class,
        )


_COMPUTE = (
    "For the changes before that, call tablefeed.changes with an earlier end_version and "
    "deduplication_mode='dropCarryovers': they are computed from the files, in the schema of end_version."
)


def is_mapped(metadata: Metadata) -> bool:
    """Says whether the table's columns have other names in files ("Column Mapping")."""
    return mapping_mode(TableProperties.of(metadata)) is not MappingMode.NONE
