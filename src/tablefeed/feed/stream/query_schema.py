"""Whether rows of a version can be delivered in the schema that a query was analysed with, and what to do if not.

The rules are Delta-Spark's for a stream that does not track metadata. One is ours: with `ignoreAddedColumns` a stream
goes on without the columns that are added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tablefeed.delta.schema.column_mapping import (
    MappedSchema,
    MappingMode,
    has_mapping_change,
    mapped_schema,
    mapping_mode,
)
from tablefeed.errors import SchemaChangedError
from tablefeed.feed.changes.change_rules import refuse_reserved_names
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.stream.schema_unblock import FROM_WHOLE_TABLE, needed_words
from tablefeed.log.compatibility import added_columns, can_read, can_read_older
from tablefeed.model.actions import Metadata, Version
from tablefeed.model.schema import Struct, all_nullable, describe


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySchema:
    """The schema that a query reads with, which the table had at `analysed_at`. `begun` is the table when it began.

    `has_start` says whether the user named a start: the error for a changed schema has another class then. With
    `ignore_added` the query goes on without columns that are added to the table. `change_feed` says whether rows have
    the change feed's columns beside the table's.
    """

    schema: Struct
    analysed_at: Version
    begun: Snapshot
    has_start: bool
    ignore_added: bool = False
    change_feed: bool = False

    def check(self, metadata: Metadata, version: Version) -> tuple[str, ...]:
        """Gives the dotted paths of the columns and struct members of `version` that the query does not read.

        `metadata` is that of `version`. Raises SchemaChangedError where its rows cannot be delivered with this schema,
        and SchemaMismatchError where a column that is not read has the name of a column of the change feed.
        """
        url = self.begun.log.url
        theirs = mapped_schema(metadata)
        added = self._added(theirs.schema, version)
        is_older = version <= self.analysed_at and not added
        self._check_mapping(theirs, metadata, version, is_older=is_older)
        if self.change_feed:
            refuse_reserved_names(added, url=url)
        fits = bool(added) or (can_read_older if is_older else can_read)(self.schema, theirs.schema)
        if fits and metadata.partition_columns == self.begun.metadata.partition_columns:
            return added
        raise SchemaChangedError(
            f"The schema of {url} at version {version} cannot be read with the schema that this query started with. "
            f"{self._remedy(theirs, metadata, version)} Started with: "
            f"{_columns(self.schema, self.begun.metadata)}. At that version: {_columns(theirs.schema, metadata)}.",
            url=url,
            version=version,
            error_class="DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
            if self.has_start
            else "DELTA_SCHEMA_CHANGED_WITH_VERSION",
        )

    def is_stricter(self, metadata: Metadata) -> bool:
        """Says whether nullability is the only reason to refuse rows written under the older `metadata`."""
        theirs = mapped_schema(metadata)
        same_partitions = metadata.partition_columns == self.begun.metadata.partition_columns
        if not same_partitions or has_mapping_change(older=theirs, newer=self._ours):
            return False
        return can_read_older(all_nullable(self.schema), theirs.schema)

    def _added(self, theirs: Struct, version: Version) -> tuple[str, ...]:
        """The columns that the query goes on without; none for a `version` up to `begun` where `begun` lacks one."""
        added = (added_columns(self.schema, theirs) if self.ignore_added else None) or ()
        if added and version <= self.begun.version:
            still = added_columns(self.schema, self.begun.schema) or ()
            return added if set(added) <= set(still) else ()
        return added

    def _remedy(self, theirs: MappedSchema, metadata: Metadata, version: Version) -> str:
        """What the user can do where rows of `version` cannot be delivered."""
        is_newer = version > self.analysed_at
        newest = theirs if version > self.begun.version else replace(self._ours, schema=self.begun.schema)
        read = self._ours if is_newer else theirs
        if (
            newest.schema != self.schema
            and metadata.partition_columns == self.begun.metadata.partition_columns
            and can_read_older(newest.schema, read.schema)
            and not has_mapping_change(older=read, newer=newest)
        ):
            restart = "Start the query again from the same checkpoint, with a new DataFrame."
            if not self.ignore_added and added_columns(self.schema, newest.schema):
                restart += " With ignoreAddedColumns=true it continues without added columns."
            return restart
        return _go_on(self.schema, theirs.schema, version) if is_newer else _go_on(theirs.schema, self.schema, None)

    @property
    def _ours(self) -> MappedSchema:
        return MappedSchema(schema=self.schema, mode=mapping_mode(self.begun.properties))

    def _check_mapping(self, theirs: MappedSchema, metadata: Metadata, version: Version, *, is_older: bool) -> None:
        url = self.begun.log.url
        older, newer = (theirs, self._ours) if is_older else (self._ours, theirs)
        # As in Delta-Spark, another partitioning has this class only where columns are mapped.
        repartitioned = metadata.partition_columns != self.begun.metadata.partition_columns
        if not has_mapping_change(older=older, newer=newer) and (newer.mode is MappingMode.NONE or not repartitioned):
            return
        raise SchemaChangedError(
            f"A column of {url} was renamed or dropped, or its id in files changed"
            f"{', or the table got other partition columns' if repartitioned else ''}. "
            f"{self._remedy(theirs, metadata, version)} Version {version} has {', '.join(theirs.schema.names)}, and "
            f"this query reads {', '.join(self.schema.names)}.",
            url=url,
            version=version,
            error_class="DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
        )


def _go_on(older: Struct, newer: Struct, version: Version | None) -> str:
    """How a stream goes on over a change where a restart is not enough. `version` made it; None: an unknown one did."""
    begin = "start with a new checkpoint, from the whole table or with " + (
        "a later startingVersion" if version is None else f"startingVersion={version}"
    )
    needed = needed_words(older, newer)
    if needed is None:
        said = f"No single schema can read the rows before and after that change: {begin}."
        return said if version is None else f"{said} {FROM_WHOLE_TABLE}"
    which = "the version of that change" if version is None else str(version)
    words = f" and {' and '.join(needed)} set to {which} or to 'always'" if needed else ""
    columns = "; ".join(f"{option} for {', '.join(found)}" for option, found in needed.items())
    return (
        f"To continue past that change, restart the query from the same checkpoint with a "
        f"schemaTrackingLocation{words}, and restart it each time it stops on purpose. Or {begin}."
        f"{f' Needed are {columns}.' if columns else ''}"
    )


def _columns(schema: Struct, metadata: Metadata) -> str:
    columns = ", ".join(f"{f.name} {describe(f.type)}{'' if f.nullable else ' not null'}" for f in schema)
    return (
        f"{columns}; partitioned by {', '.join(metadata.partition_columns)}" if metadata.partition_columns else columns
    )
