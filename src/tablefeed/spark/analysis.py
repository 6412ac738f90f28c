"""What Spark learns about a table when a DataFrame is created: its version and schema, fixed for the DataFrame."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablefeed.errors import IllegalOptionError, SchemaMismatchError, TableNotFoundError
from tablefeed.feed.api.table import open_table
from tablefeed.feed.changes.change_rules import refuse_reserved_names
from tablefeed.feed.stream.schema_analysis import tracked_schema
from tablefeed.feed.timestamp_text import in_zone
from tablefeed.spark.char import CHAR_TYPE
from tablefeed.spark.options import (
    parse_at_load,
    refuse_time_travel,
    table_path,
    tracking_options,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

CHANGE_COLUMNS = {"_change_type": "string", "_commit_version": "long", "_commit_timestamp": "timestamp"}
"""The columns that a change feed adds ("Change Data Files"), in Spark's types."""

_KEPT_FIELD_METADATA = ("comment", CHAR_TYPE)
"""The keys of a column's metadata that Spark gets; the others are the table's own book-keeping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The version of a table that a DataFrame is created for, and its schema as the log has it.

    `change_feed`: whether row changes are read; their rows have the change feed's columns after the table's. `columns`
    are the DataFrame's columns in order; None: all. `tracked`: whether the schema comes from the schema tracking log
    instead of the table.
    """

    version: int
    schema_string: str
    change_feed: bool = False
    columns: tuple[str, ...] | None = None
    tracked: bool = False


def analyse(options: Mapping[str, str]) -> Analysis:
    """Reads the table's schema: of versionAsOf or timestampAsOf where one is given, else of the newest version.

    With schemaTrackingLocation it is the tracked schema instead, once the tracking log has one.
    """
    path = table_path(options, call="load")
    parsed = parse_at_load(options)
    timestamp = parsed["timestampAsOf"]
    if timestamp is not None and parsed["timeZone"] is not None:
        timestamp = in_zone(timestamp, parsed["timeZone"])
    try:
        table = open_table(path, version=parsed["versionAsOf"], timestamp=timestamp, storage_options=parsed.storage)
    except TableNotFoundError as error:
        refuse_time_travel({}, path)
        # Delta-Spark's stream says this of a path without a table; a text that names both serves both.
        raise TableNotFoundError(error.message, url=error.url, error_class="DELTA_SCHEMA_NOT_SET") from error
    if not table.schema.names:
        raise SchemaMismatchError(
            f"The table {table!r} has no columns yet. Give it a schema before it is read.",
            url=path,
            error_class="DELTA_SCHEMA_NOT_SET",
        )
    tracking = tracking_options(parsed)
    tracked = None if tracking is None else tracked_schema(path, storage_options=parsed.storage, tracking=tracking)
    schema_string = table.metadata.schema_string if tracked is None else tracked
    names = tuple(field["name"] for field in json.loads(schema_string)["fields"])
    change_feed = parsed["readChangeFeed"] or parsed["readChangeData"]
    if change_feed:
        refuse_reserved_names(names, url=path)
    if parsed["where"] is not None:
        from tablefeed.feed.scan.where import check_where

        check_where(parsed["where"], schema_string, url=path)
    names = (*names, *(CHANGE_COLUMNS if change_feed else ()))
    return Analysis(
        version=table.version,
        schema_string=schema_string,
        change_feed=change_feed,
        columns=None if parsed["columns"] is None else _chosen(parsed["columns"], names),
        tracked=tracked is not None,
    )


def spark_schema(analysis: Analysis) -> StructType:
    """Gives the DataFrame's schema in Spark's types. The schema text in a log is Spark's own JSON."""
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(analysis.schema_string, object_hook=_without_bookkeeping))
    if analysis.change_feed:
        for name, kind in CHANGE_COLUMNS.items():
            schema = schema.add(name, kind)
    return schema if analysis.columns is None else StructType([schema[name] for name in analysis.columns])


def _chosen(wanted: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The columns `wanted`, spelled as in the table: Spark matches column names in any case."""
    known = {name.lower(): name for name in names}
    chosen = tuple(name if name in names else known.get(name.lower(), "") for name in wanted)
    for name, found in zip(wanted, chosen, strict=True):
        if not found:
            raise IllegalOptionError(option="columns", value=name, explain=f"must be one of {', '.join(names)}")
        if chosen.count(found) > 1:
            raise IllegalOptionError(option="columns", value=name, explain="must be in the list only once")
    return chosen


def _without_bookkeeping(node: dict[str, object]) -> dict[str, object]:
    if isinstance(metadata := node.get("metadata"), dict):
        return node | {"metadata": {key: value for key, value in metadata.items() if key in _KEPT_FIELD_METADATA}}
    return node
