"""Whether rows of a version can be delivered in the schema that a query was analysed with, and what to do if not.

The rules are Delta-Spark's for a stream that does not track metadata. That a stream may go on without columns that are
added is ours (`ignoreAddedColumns`).
"""

from __future__ import annotations

from dataclasses import dataclass

from tablefeed.delta.column_mapping import (
    MappedSchema,
    dropped_columns,
    has_mapping_change,
    mapped_schema,
    mapping_mode,
    renamed_columns,
)
from tablefeed.errors import SchemaChangedError
from tablefeed.feed.align import describe
from tablefeed.feed.change_rules import refuse_reserved_names
from tablefeed.feed.table_log import Snapshot
from tablefeed.log.compatibility import added_columns, can_read, can_read_older
from tablefeed.model.actions import Metadata, Version
from tablefeed.model.schema import Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySchema:
    """The schema that a query reads with, and what the table was when it began.

    `has_start` says whether the user named a start: the error of a schema that changed then has a class of its own.
    With `ignore_added` the query goes on without columns that are added to the table; `change_feed` says whether its
    rows have the feed's own columns beside the table's.
    """

    schema: Struct
    begun: Snapshot
    has_start: bool
    ignore_added: bool = False
    change_feed: bool = False

    def check(self, metadata: Metadata, version: Version) -> tuple[str, ...]:
        """Gives the columns and members of `version` that are not read, dotted.

        Raises SchemaChangedError where its rows cannot be delivered with this schema, and SchemaMismatchError where a
        column that is not read has the name of one of the feed's.
        """
        url = self.begun.log.url
        theirs = mapped_schema(metadata, url=url)
        added = self._added(theirs.schema, version)
        is_older = version <= self.begun.version and not added
        self._check_mapping(theirs, version, is_older=is_older)
        if self.change_feed:
            refuse_reserved_names(added, url=url)
        fits = bool(added) or (can_read_older if is_older else can_read)(self.schema, theirs.schema)
        if fits and metadata.partition_columns == self.begun.metadata.partition_columns:
            return added
        raise SchemaChangedError(
            f"The schema of {url} at version {version} cannot be read with the schema that this query started with. "
            f"{self._remedy(theirs.schema, metadata, version)} Started with: "
            f"{_columns(self.schema, self.begun.metadata)}. At that version: {_columns(theirs.schema, metadata)}.",
            url=url,
            version=version,
            error_class="DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
            if self.has_start
            else "DELTA_SCHEMA_CHANGED_WITH_VERSION",
        )

    def _added(self, theirs: Struct, version: Version) -> tuple[str, ...]:
        """What the query goes on without. Of a version from before it began that was not dropped again until then."""
        added = (added_columns(self.schema, theirs) if self.ignore_added else None) or ()
        if added and version <= self.begun.version:
            still = added_columns(self.schema, self.begun.schema) or ()
            return added if set(added) <= set(still) else ()
        return added

    def _remedy(self, theirs: Struct, metadata: Metadata, version: Version) -> str:
        """What heals it, given that no column was renamed or dropped."""
        begun = self.begun
        if metadata.partition_columns != begun.metadata.partition_columns:
            return (
                "Its partition columns are others. Start it again from the same checkpoint with a "
                "schemaTrackingLocation, and once more whenever it stops on purpose; or begin with a new checkpoint."
            )
        if version > begun.version and can_read_older(theirs, self.schema):
            restart = "Start the query again from the same checkpoint, with a new DataFrame."
            if not self.ignore_added and added_columns(self.schema, theirs):
                restart += " With ignoreAddedColumns=true it goes on without columns that are added."
            return restart
        if version > begun.version:
            return (
                "No one schema reads what came before and what comes now: begin with a new checkpoint, with the table "
                f"as it is then or, by startingVersion={version}, with that version."
            )
        if self.schema != begun.schema and can_read_older(begun.schema, theirs):
            return "Start the query again with a new DataFrame."
        return "Begin with a new checkpoint, and with a later startingVersion or with the table as it is now."

    def _check_mapping(self, theirs: MappedSchema, version: Version, *, is_older: bool) -> None:
        url, begun = self.begun.log.url, self.begun
        ours = MappedSchema(schema=self.schema, mode=mapping_mode(begun.metadata, url=url))
        older, newer = (theirs, ours) if is_older else (ours, theirs)
        if not has_mapping_change(older=older, newer=newer):
            return
        renamed = renamed_columns(older=older.schema, newer=newer.schema)
        dropped = dropped_columns(older=older.schema, newer=newer.schema)
        changes = [f"{then} is now {now}" for then, now in renamed] + [f"{column} is gone" for column in dropped]
        words = [f"allowSourceColumn{word}" for word, found in (("Rename", renamed), ("Drop", dropped)) if found]
        which = "the version of the change" if is_older else str(version)
        allowed = f", with {' and '.join(words)} set to {which} or 'always'" if words else ""
        raise SchemaChangedError(
            f"A column of {url} was renamed or dropped: version {version} has {', '.join(theirs.schema.names)}, and "
            f"this query reads {', '.join(self.schema.names)}. To go on over that change start it again from the same "
            f"checkpoint with a schemaTrackingLocation{allowed}, and once more whenever it stops on purpose; or start "
            f"with a new checkpoint on one side of it. {'; '.join(changes) or 'Other ids in files'}.",
            url=url,
            version=version,
            error_class="DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
        )


def _columns(schema: Struct, metadata: Metadata) -> str:
    columns = ", ".join(f"{f.name} {describe(f.type)}{'' if f.nullable else ' not null'}" for f in schema)
    return (
        f"{columns}; partitioned by {', '.join(metadata.partition_columns)}" if metadata.partition_columns else columns
    )
