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
)
from tablefeed.delta.schema.schema_string import schema_of
from tablefeed.errors import ChangeDataError, SchemaChangedError, SchemaMismatchError, TableError
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.log.compatibility import can_read
from tablefeed.model.actions import Metadata


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

    `start_class` is the error class where the schema at the start does not fit, `change_class` where a later one does
    not. Both are Delta-Spark's.
    """

    versions: range
    read: Snapshot
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

    def start_refusal(self) -> SchemaChangedError:
        """Gives the error for a range whose first version cannot be read, although every later one can."""
        return self._refusal(self.versions[0], self.start_class, "Start after the schema changed.")

    def check_removed(self, before: Metadata | None, version: int) -> None:
        """Raises SchemaChangedError where rows that `version` removes, written under `before`, would lose a value.

        A value is lost (read as null) where a new column has the old one's name. Raises also where `before` is None.
        """
        if before is None or has_renewed_column(older=schema_of(before), newer=self.read.schema):
            raise self._refusal(version, self.start_class, f"It removes older rows: start at version {version + 1}.")

    def check(self, metadata: Metadata, version: int) -> None:
        """Raises SchemaChangedError where rows written under `metadata`, which `version` commits, cannot be read."""
        if not self.reads(metadata):
            remedy = f"Read versions {self.versions[0]} to {version - 1} and those from {version} on separately."
            raise self._refusal(version, self.change_class, remedy)

    def _refusal(self, version: int, error_class: str, remedy: str) -> SchemaChangedError:
        url = self.read.log.url
        return SchemaChangedError(
            f"The changes of versions {self.versions[0]} to {self.versions[-1]} of {url} are read with the schema of "
            f"version {self.read.version} ({', '.join(self.read.schema.names)}). The schema of version {version} "
            f"cannot be read with it. {remedy}",
            url=url,
            version=version,
            error_class=error_class,
        )


def is_mapped(metadata: Metadata) -> bool:
    """Says whether the table's columns have other names in files ("Column Mapping")."""
    return mapping_mode(TableProperties.of(metadata)) is not MappingMode.NONE
