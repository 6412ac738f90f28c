"""The rows of a checkpoint as Delta-Spark writes them (PROTOCOL.md, "Checkpoints", "Checkpoint Schema").

One row is one action: a column for each kind of action, of which only the row's own is not null. Columns and facts in,
Arrow and JSON out. The feed decides which rows go to which file, and in which order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tablefeed.delta import fields, names
from tablefeed.delta.checkpoint import typed_values
from tablefeed.delta.checkpoint.typed_values import nullable
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.model.actions import Facts, Metadata, Protocol
from tablefeed.model.schema import Array, DataType, Field, Map, Primitive, Struct

MOST_SCHEMA_CHARACTERS = 20_000
"""A longer schema is left out of the files that repeat it; Delta-Spark's limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """A file in `_sidecars` with file actions of a checkpoint ("Sidecar File Information")."""

    name: str
    size_bytes: int
    modified_ms: int


class CheckpointLayout:
    """The columns of one table's checkpoint, which depend on the table's schema and properties.

    `schema` has the columns of a V1 checkpoint, `files` those of a sidecar, `top_level` those of the Parquet top
    level of a V2 checkpoint.
    """

    def __init__(self, protocol: Protocol, metadata: Metadata, table: Struct) -> None:
        properties = TableProperties.of(metadata)
        has_vectors = "deletionVectors" in (protocol.writer_features or ())
        self._has_text, as_struct = properties.has_stats_as_text, properties.has_stats_as_struct
        partitions = metadata.partition_columns
        self._partitions = typed_values.partition_schema(table, partitions) if as_struct and partitions else None
        self._stats = (
            typed_values.stats_schema(table, properties, partition_columns=partitions, has_vectors=has_vectors)
            if as_struct
            else None
        )
        add = (*_ADD, *([_STATS] if self._has_text else []), *_optional("partitionValues_parsed", self._partitions))
        self._add = Struct((*add, *_optional("stats_parsed", self._stats)))
        files = (nullable(names.ADD, self._add), nullable(names.REMOVE, _REMOVE))
        facts = tuple(nullable(name, kind) for name, kind in _FACTS.items())
        self.files = Struct(files)
        self.schema = Struct((nullable(names.TXN, _TXN), *files, *facts))
        v2 = (nullable(names.CHECKPOINT_METADATA, _CHECKPOINT_METADATA), nullable(names.SIDECAR, _SIDECAR))
        self.top_level = Struct((*self.schema, *v2))

    def file_rows(self, files: pa.RecordBatch, schema: Struct) -> pa.RecordBatch:
        """The rows of `files` (`columns.FILE_COLUMNS`), which are all live or all tombstones.

        `schema` is one of this layout's.
        """
        is_add = files["is_add"][0].as_py()
        kind, struct = (names.ADD, self._adds(files)) if is_add else (names.REMOVE, _removes(files))
        arrow = to_arrow(schema)
        arrays = [struct if f.name == kind else pa.nulls(files.num_rows, f.type) for f in arrow]
        return pa.RecordBatch.from_arrays(arrays, schema=arrow)

    def action_rows(self, actions: Sequence[Mapping[str, Any]], schema: Struct) -> pa.RecordBatch:
        """The rows of `actions` as `fact_actions` gives them."""
        arrow = to_arrow(schema)
        columns = [pa.array([_plain(a.get(f.name), f.type) for a in actions], f.type) for f in arrow]
        return pa.RecordBatch.from_arrays(columns, schema=arrow)

    def _adds(self, files: pa.RecordBatch) -> pa.StructArray:
        columns = {wire: files[name] for name, wire in fields.FILE_FIELDS.items() if name in files.schema.names}
        # "dataChange" is false: an add in a checkpoint is not a change.
        columns["dataChange"] = pa.repeat(pa.scalar(value=False), files.num_rows)
        columns["deletionVector"] = _vectors(files["deletion_vector"])
        texts = files["stats"]
        if self._partitions is not None:
            columns["partitionValues_parsed"] = typed_values.parsed_partition_values(
                files["partition_values"], self._partitions
            )
        if self._stats is not None:
            columns["stats_parsed"] = typed_values.parsed_stats(texts, self._stats)
        return _struct(self._add, columns)


def fact_actions(facts: Facts) -> list[dict[str, Any]]:
    """`facts` as the log spells actions: protocol, metaData, domains by name, txns by application."""
    domains = (facts.domains[domain] for domain in sorted(facts.domains))
    txns = (facts.txns[app_id] for app_id in sorted(facts.txns))
    actions = (facts.protocol, facts.metadata, *domains, *txns)
    return [fields.write_action(action) for action in actions if action is not None]


def v2_actions(
    version: int, sidecars: Sequence[Sidecar], layout: CheckpointLayout, *, action_count: int, add_count: int
) -> list[dict[str, Any]]:
    """The actions of a V2 checkpoint besides its facts: checkpointMetadata, then one action for each sidecar.

    `action_count` is the number of actions in all sidecars together, `add_count` the number of adds among them.
    """
    tags = {
        "sidecarNumActions": str(action_count),
        "sidecarSizeInBytes": str(sum(sidecar.size_bytes for sidecar in sidecars)),
        "numOfAddFiles": str(add_count),
    }
    schema = schema_json(layout.files)
    if schema is not None:
        tags["sidecarFileSchema"] = schema
    listed = [
        {names.SIDECAR: {"path": s.name, "sizeInBytes": s.size_bytes, "modificationTime": s.modified_ms}}
        for s in sidecars
    ]
    return [{names.CHECKPOINT_METADATA: {"version": version, "tags": tags}}, *listed]


def schema_json(schema: Struct) -> str | None:
    """The text of `schema`, None where it is too long to be repeated."""
    text = format_schema(schema)
    return text if len(text) <= MOST_SCHEMA_CHARACTERS else None


def last_checkpoint_schema(schema: Struct) -> Any:
    """`schema` as `_last_checkpoint` has it: parsed JSON, or None where it is too long."""
    text = schema_json(schema)
    return None if text is None else json.loads(text)


def _optional(name: str, kind: Struct | None) -> list[Field]:
    return [nullable(name, kind)] if kind is not None and kind.fields else []


_STRING, _LONG, _INT, _BOOL = (Primitive(name) for name in ("string", "long", "integer", "boolean"))
_TEXTS = Map(_STRING, _STRING, value_contains_null=True)


def _of(**members: DataType) -> Struct:
    return Struct(tuple(nullable(name, kind) for name, kind in members.items()))


_VECTOR = _of(storageType=_STRING, pathOrInlineDv=_STRING, offset=_INT, sizeInBytes=_INT, cardinality=_LONG)
_ADD = (
    *_of(path=_STRING, partitionValues=_TEXTS, size=_LONG, modificationTime=_LONG, dataChange=_BOOL, tags=_TEXTS),
    *_of(deletionVector=_VECTOR, baseRowId=_LONG, defaultRowCommitVersion=_LONG, clusteringProvider=_STRING),
)
_STATS = nullable("stats", _STRING)
_REMOVE = Struct(
    (
        *_of(path=_STRING, deletionTimestamp=_LONG, dataChange=_BOOL, extendedFileMetadata=_BOOL),
        *_of(partitionValues=_TEXTS, size=_LONG, deletionVector=_VECTOR),
        *_of(baseRowId=_LONG, defaultRowCommitVersion=_LONG),
    )
)
_TXN = _of(appId=_STRING, version=_LONG, lastUpdated=_LONG)
_STRINGS = Array(_STRING, contains_null=True)
_FACTS: Mapping[str, Struct] = {
    names.METADATA: _of(
        id=_STRING,
        name=_STRING,
        description=_STRING,
        format=_of(provider=_STRING, options=_TEXTS),
        schemaString=_STRING,
        partitionColumns=_STRINGS,
        configuration=_TEXTS,
        createdTime=_LONG,
    ),
    names.PROTOCOL: _of(minReaderVersion=_INT, minWriterVersion=_INT, readerFeatures=_STRINGS, writerFeatures=_STRINGS),
    names.DOMAIN_METADATA: _of(domain=_STRING, configuration=_STRING, removed=_BOOL),
}
_CHECKPOINT_METADATA = _of(version=_LONG, tags=_TEXTS)
_SIDECAR = _of(path=_STRING, sizeInBytes=_LONG, modificationTime=_LONG, tags=_TEXTS)


def _removes(files: pa.RecordBatch) -> pa.StructArray:
    # No statistics and no tags: tombstones are for VACUUM.
    columns = {wire: files[name] for name, wire in fields.REMOVE_FIELDS.items() if name in files.schema.names}
    columns["dataChange"] = pa.repeat(pa.scalar(value=False), files.num_rows)
    columns["deletionVector"] = _vectors(files["deletion_vector"])
    return _struct(_REMOVE, columns)


def _struct(schema: Struct, columns: Mapping[str, pa.Array]) -> pa.StructArray:
    arrow = list(to_arrow(schema))
    return pa.StructArray.from_arrays([columns[f.name].cast(f.type) for f in arrow], fields=arrow)


def _vectors(vectors: pa.StructArray) -> pa.StructArray:
    members = [vectors.field(name) for name in fields.DELETION_VECTOR_FIELDS]
    return pa.StructArray.from_arrays(members, fields=list(to_arrow(_VECTOR)), mask=vectors.is_null())


def _plain(value: Any, kind: pa.DataType) -> Any:  # Any: JSON, and what pyarrow takes
    if value is None:
        return None
    if pa.types.is_map(kind):
        return list(value.items())
    if pa.types.is_struct(kind):
        return {member.name: _plain(value.get(member.name), member.type) for member in kind}
    return value
