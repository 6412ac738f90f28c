"""Reads and writes one entry of a stream's log of tracked metadata, in Delta-Spark's format.

The format is no part of the protocol: a line with its version, then JSON (Delta-Spark's PersistedMetadata). The module
`tablefeed.feed.stream.schema_log` knows where the entries are, and `schema_tracking` what a stream does with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from tablefeed.delta import names
from tablefeed.delta.fields import read_fact, write_action
from tablefeed.delta.schema.schema_string import format_schema, parse_schema
from tablefeed.errors import TABLE, LogError, SchemaLogError, UnsupportedFeatureError
from tablefeed.model.action_fields import BadActionError
from tablefeed.model.actions import Metadata, Protocol, Version
from tablefeed.model.cached import cached_property
from tablefeed.model.schema import Struct

FORMAT = b"v1"
"""The first line of an entry."""

SCHEMA, PARTITION_SCHEMA = "dataSchemaJson", "partitionSchemaJson"
CONFIGURATION, PROTOCOL, PREVIOUS = "tableConfigurations", "protocolJson", "previousMetadataSeqNum"


@dataclass(frozen=True, kw_only=True)
class TrackedMetadata:
    """The metadata with which a stream reads a table: that of the table's `version`.

    `source_path` names the stream in its checkpoint. Entries of old versions of Delta-Spark have no configuration and
    no protocol. `previous` is the number of the entry that this one follows; None where that is the entry before it.
    """

    table_id: str
    version: Version
    schema_string: str
    partition_columns: tuple[str, ...]
    source_path: str
    configuration: Mapping[str, str] | None = None
    protocol: Protocol | None = None
    previous: int | None = None

    @classmethod
    def of(
        cls, version: Version, metadata: Metadata, protocol: Protocol, *, table_id: str, source_path: str
    ) -> TrackedMetadata:
        """Returns the entry for the metadata and protocol of `version`.

        `table_id` is the id of the table now. It is another one than in `metadata` if the table was replaced since.
        """
        return cls(
            table_id=table_id,
            version=version,
            schema_string=metadata.schema_string,
            partition_columns=metadata.partition_columns,
            source_path=source_path,
            configuration=metadata.configuration,
            protocol=protocol,
        )

    @cached_property
    def schema(self) -> Struct:
        """The schema that the stream reads with."""
        return parse_schema(self.schema_string)

    def over(self, metadata: Metadata) -> Metadata:
        """Returns `metadata` of the same table with this entry's schema, partition columns and configuration."""
        return replace(
            metadata,
            schema_string=self.schema_string,
            partition_columns=self.partition_columns,
            configuration=metadata.configuration if self.configuration is None else self.configuration,
        )


def encode_entry(entry: TrackedMetadata) -> bytes:
    """Returns the bytes of an entry: fields in Delta-Spark's order, those without a value left out."""
    named = {field.name: field for field in entry.schema}
    partitioning = Struct(tuple(named[name] for name in entry.partition_columns if name in named))
    protocol = None if entry.protocol is None else orjson.dumps(write_action(entry.protocol)).decode()
    values = {
        "tableId": entry.table_id,
        "deltaCommitVersion": entry.version,
        SCHEMA: entry.schema_string,
        PARTITION_SCHEMA: format_schema(partitioning),
        "sourceMetadataPath": entry.source_path,
        CONFIGURATION: None if entry.configuration is None else dict(entry.configuration),
        PROTOCOL: protocol,
        PREVIOUS: entry.previous,
    }
    present = {name: value for name, value in values.items() if value is not None}
    return FORMAT + b"\n" + orjson.dumps(present)


def decode_entry(data: bytes) -> TrackedMetadata:
    """Returns the entry in `data`. In errors its file takes the place of the table.

    Raises SchemaLogError: DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED for bytes that are not an entry,
    DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED for an entry whose schema cannot be parsed.
    """
    first, _, rest = data.partition(b"\n")
    if first.rstrip(b"\r") != FORMAT:
        raise _damaged(f"its first line is {first[:20]!r} and not {FORMAT!r}")
    try:
        return _entry(orjson.loads(rest.split(b"\n", 1)[0]))
    except (orjson.JSONDecodeError, BadActionError, _BadEntryError) as error:
        raise _damaged(str(error)) from error


class _BadEntryError(ValueError):
    """A field is not what it should be. Never leaves this module."""


def _entry(values: Any) -> TrackedMetadata:  # Any: JSON that is judged here
    match values:
        case {
            "tableId": str(table_id),
            "deltaCommitVersion": int(version),
            "dataSchemaJson": str(schema_string),
            "partitionSchemaJson": str(partition_string),
            "sourceMetadataPath": str(source_path),
        } if version >= 0 and not isinstance(version, bool):
            pass
        case _:
            raise _BadEntryError("a field is missing or of another type")
    configuration = values.get(CONFIGURATION)
    if configuration is not None and not (
        isinstance(configuration, dict) and all(isinstance(value, str) for value in configuration.values())
    ):
        raise _BadEntryError(f"{CONFIGURATION} is not a map of strings")
    previous = values.get(PREVIOUS)
    if previous is not None and (isinstance(previous, bool) or not isinstance(previous, int)):
        raise _BadEntryError(f"{PREVIOUS} is not a number")
    schema, partitioning = _schema(schema_string), _schema(partition_string)
    if not set(partitioning.names) <= set(schema.names):
        raise _BadEntryError(f"{PARTITION_SCHEMA} has a column that is not in {SCHEMA}")
    return TrackedMetadata(
        table_id=table_id,
        version=Version(version),
        schema_string=schema_string,
        partition_columns=partitioning.names,
        source_path=source_path,
        configuration=configuration,
        protocol=_protocol(values.get(PROTOCOL)),
        previous=previous,
    )


def _schema(text: str) -> Struct:
    try:
        return parse_schema(text)
    except UnsupportedFeatureError:
        raise  # a valid schema, with a type that is not handled here
    except LogError as error:
        raise SchemaLogError(
            f"A schema in the log of tracked metadata cannot be parsed: {error} Restore the file {TABLE}, or give the "
            "stream a new schemaTrackingLocation.",
            error_class="DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED",
        ) from error


def _protocol(text: Any) -> Protocol | None:  # Any: JSON that is judged here
    if text is None:
        return None
    if not isinstance(text, str):
        raise _BadEntryError(f"{PROTOCOL} is not a string")
    action = orjson.loads(text)
    found = action.get(names.PROTOCOL) if isinstance(action, dict) else None
    if not isinstance(found, dict):
        raise _BadEntryError(f"{PROTOCOL} holds no protocol")
    return read_fact(Protocol, found)


def _damaged(why: str) -> SchemaLogError:
    return SchemaLogError(
        f"The file {TABLE} of the log of tracked metadata cannot be read: {why}. Restore it from a copy, or give the "
        "stream a new schemaTrackingLocation.",
        error_class="DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
    )
