"""Which metadata of a table a stream can go on with: the same table, and a schema that its query can read.

A query keeps the schema that it was analysed with for its life. The rules are Delta-Spark's for a stream that does
not track schemas.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablefeed.delta.column_mapping import MappedSchema, has_mapping_change, mapped_schema, mapping_mode
from tablefeed.errors import OffsetError, SchemaChangedError
from tablefeed.feed.table_log import Snapshot
from tablefeed.log.compatibility import can_read, can_read_older
from tablefeed.model.actions import Metadata, Version
from tablefeed.model.schema import Struct


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySchema:
    """The schema that a query reads with, and what the table was when it began.

    `has_start` says whether the user named a start: the error of a schema that changed then has a class of its own.
    """

    schema: Struct
    begun: Snapshot
    has_start: bool

    def check(self, metadata: Metadata, version: Version) -> None:
        """Raises OffsetError or SchemaChangedError where rows of `version` cannot be delivered with this schema."""
        url, begun = self.begun.log.url, self.begun
        self.check_table(of_query=begun.metadata.table_id, found=metadata.table_id)
        theirs = mapped_schema(metadata, url=url)
        schema = theirs.schema
        self._check_mapping(theirs, version)
        fits = can_read_older if version <= begun.version else can_read
        if fits(self.schema, schema) and metadata.partition_columns == begun.metadata.partition_columns:
            return
        raise SchemaChangedError(
            f"The schema of {url} at version {version} cannot be read with the schema that this query "
            f"started with. Start the query again with a new DataFrame; where that does not help, begin anew with a "
            f"new checkpoint. Started with: {', '.join(self.schema.names)}. At that version: "
            f"{', '.join(schema.names)}.",
            url=url,
            version=version,
            error_class="DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"
            if self.has_start
            else "DELTA_SCHEMA_CHANGED_WITH_VERSION",
        )

    def check_table(self, *, of_query: str, found: str) -> None:
        """Raises OffsetError where the table `found` is not the one `of_query`."""
        url = self.begun.log.url
        if of_query != found:
            raise OffsetError(
                f"The checkpoint of this query is of the table with id {of_query}, but {url} is now the "
                f"table with id {found}: it was deleted and made anew, or the path is another's. Use a new checkpoint.",
                url=url,
                error_class="DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
            )

    def _check_mapping(self, theirs: MappedSchema, version: Version) -> None:
        url, begun = self.begun.log.url, self.begun
        ours = MappedSchema(schema=self.schema, mode=mapping_mode(begun.metadata, url=url))
        older, newer = (theirs, ours) if version <= begun.version else (ours, theirs)
        if has_mapping_change(older=older, newer=newer):
            raise SchemaChangedError(
                f"A column of {url} was renamed or dropped: version {version} has "
                f"{', '.join(theirs.schema.names)}, and this query reads {', '.join(self.schema.names)}. Start with a "
                "new checkpoint on one side of that change.",
                url=url,
                version=version,
                error_class="DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
            )
