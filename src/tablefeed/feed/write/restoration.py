"""Decides the metadata, protocol and domains of a table that is restored to an earlier version. Nothing is read here.

As by Delta-Spark's RESTORE (RestoreTableCommand.scala): schema and properties are the earlier ones, and nothing that
writers count up ever falls: features of the protocol, ids of columns, marks of identity columns and of row ids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tablefeed.delta import features, names
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.column_mapping import mapping_mode
from tablefeed.delta.schema.identity import identity_columns, with_high_water_marks
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.delta.stats.clustering import clustering_domain
from tablefeed.errors import TABLE, UnsupportedFeatureError
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.delta_plan import clustering_of
from tablefeed.model.actions import DomainMetadata, Metadata, Protocol

_KEPT = (
    names.MATERIALIZED_ROW_ID_COLUMN,
    names.MATERIALIZED_ROW_VERSION_COLUMN,
    names.IN_COMMIT_TIMESTAMPS_SINCE_VERSION,
    names.IN_COMMIT_TIMESTAMPS_SINCE_TIME,
)
"""Properties that describe the log and its files so far; an earlier value would be wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredTable:
    """The table after a restore, besides its files. `domains` are those that change."""

    metadata: Metadata
    protocol: Protocol
    domains: tuple[DomainMetadata, ...]


def restored_table(newest: Snapshot, earlier: Snapshot) -> RestoredTable:
    """Gives the table `newest` after it is restored to `earlier`.

    Raises AppendOnlyError where rows must not be removed, UnsupportedFeatureError for a table that cannot be written
    before or after, and where column mapping was turned on, off or changed in between.
    """
    features.check_writable(newest.protocol, newest.metadata, removes=True)
    if mapping_mode(newest.properties) is not mapping_mode(earlier.properties):
        raise UnsupportedFeatureError(
            f"{TABLE} cannot be restored to version {earlier.version}: its column mapping was changed since. Nothing "
            "was written. Restore to a version after that change.",
            features=("columnMapping",),
            error_class="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        )
    now, then = newest.metadata.configuration, earlier.metadata.configuration
    texts = {name: text for name, text in then.items() if name not in _KEPT}
    texts |= {name: now[name] for name in _KEPT if name in now}
    if names.MAX_COLUMN_ID in now:
        largest = (TableProperties(each).largest_column_id for each in (now, then))
        texts[names.MAX_COLUMN_ID] = max(largest, key=lambda text: int(text) if text.isdigit() else 0)
    metadata = replace(earlier.metadata, schema_string=_schema_string(newest, earlier), configuration=texts)
    protocol = features.merged_protocol(newest.protocol, earlier.protocol)
    features.check_writable(protocol, metadata, removes=False)
    clustered = clustering_of(earlier)
    domains = () if clustered == clustering_of(newest) else (clustering_domain(clustered),)
    return RestoredTable(metadata=metadata, protocol=protocol, domains=domains)


def _schema_string(newest: Snapshot, earlier: Snapshot) -> str:
    """The earlier schema, with the mark of each identity column where it is now, if that is further."""
    now = {column.name: column for column in identity_columns(newest.schema, partition_columns=())}
    marks: dict[str, int] = {}
    for column in identity_columns(earlier.schema, partition_columns=()):
        known = now.get(column.name)
        if known is not None and known.high_water_mark is not None and known.step * column.step > 0:
            before = column.high_water_mark
            further = before is None or (known.high_water_mark - before) * column.step > 0
            marks |= {column.name: known.high_water_mark} if further else {}
    if not marks:
        return earlier.metadata.schema_string
    return format_schema(with_high_water_marks(earlier.schema, marks))
