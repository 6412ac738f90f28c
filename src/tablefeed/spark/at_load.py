"""Reads what Spark asks for when a DataFrame is created: the table's version and schema. No data file is looked at."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from tablefeed.errors import ConflictingOptionsError, IllegalOptionError, SchemaMismatchError, TableNotFoundError
from tablefeed.feed.api.opening import table_at
from tablefeed.feed.changes.change_rules import refuse_reserved_names
from tablefeed.feed.timestamp_text import in_zone
from tablefeed.spark.analysis import CHANGE_COLUMNS, Analysis
from tablefeed.spark.options import parse_at_load, refuse_time_travel, table_path, tracking_options
from tablefeed.spark.parsed_options import ParsedOptions
from tablefeed.spark.plain_errors import plain


@plain
def analyse(options: Mapping[str, str]) -> Analysis:
    """Reads the table's schema: of versionAsOf or timestampAsOf where one is given, else of the newest version.

    With schemaTrackingLocation it is the tracked schema instead, once the tracking log has one.
    """
    path = table_path(options, call="load")
    parsed = parse_at_load(options)
    timestamp = parsed["timestampAsOf"]
    if timestamp is not None and parsed["versionAsOf"] is not None:
        raise ConflictingOptionsError(options=("versionAsOf", "timestampAsOf"), remedy="Set one of them.")
    if timestamp is not None and parsed["timeZone"] is not None:
        timestamp = in_zone(timestamp, parsed["timeZone"])
    try:
        log, version = table_at(
            path, version=parsed["versionAsOf"], timestamp=timestamp, storage_options=parsed.storage
        )
        table = log.load(version)
    except TableNotFoundError as error:
        refuse_time_travel({}, path)
        # Delta-Spark's stream says this of a path without a table; a text that names both serves both.
        text = f"{error.message}{_of_a_partition(error.url)}"
        raise TableNotFoundError(text, url=error.url, error_class="DELTA_SCHEMA_NOT_SET") from error
    if not table.schema.names:
        raise SchemaMismatchError(
            f"The table {table.url} has no columns yet. Give it a schema before it is read.",
            url=path,
            error_class="DELTA_SCHEMA_NOT_SET",
        )
    tracked = _tracked(path, parsed)
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
        table_id=table.metadata.table_id,
        schema_string=schema_string,
        change_feed=change_feed,
        columns=None if parsed["columns"] is None else _chosen(parsed["columns"], names),
        tracked=tracked is not None,
    )


def _of_a_partition(url: str) -> str:
    """The hint for a url such as `/orders/day=2026-01-01`, which Delta-Spark takes for a filter; empty for others."""
    table, values = url.rstrip("/"), list[str]()
    while "=" in table.rpartition("/")[2]:
        table, _, value = table.rpartition("/")
        values.insert(0, value)
    if not (table and values):
        return ""
    return f" If it is a partition ({', '.join(values)}), load the table, {table}, and filter its rows."


def _tracked(path: str, parsed: ParsedOptions) -> str | None:
    tracking = tracking_options(parsed)
    if tracking is None:
        return None
    from tablefeed.feed.stream.schema_analysis import tracked_schema

    return tracked_schema(path, storage_options=parsed.storage, tracking=tracking)


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
