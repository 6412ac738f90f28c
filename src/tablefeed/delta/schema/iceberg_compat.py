"""Checks that a write keeps a table convertible to Iceberg (PROTOCOL.md, "Iceberg Compatibility V1", "V2").

Nothing is converted here. Version 3, which is not part of the protocol, is refused where it is in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tablefeed.delta import names
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.column_mapping import nested_id_keys
from tablefeed.errors import TABLE, UnsupportedFeatureError
from tablefeed.model.actions import Protocol
from tablefeed.model.schema import Array, Field, Map, Primitive, Struct, describe, fields_of, walk

VERSIONS = (1, 2)
"""The versions that are handled."""

_ICEBERG_WIDENS = frozenset(
    {("byte", "short"), ("byte", "integer"), ("short", "integer")}
    | {(narrow, "long") for narrow in ("byte", "short", "integer")}
    | {("float", "double")}
)
"""Type changes that Iceberg allows; its smallest integer has 32 bits. Decimals may gain digits before the point."""


def compat_version(properties: TableProperties) -> int | None:
    """The greatest version that the properties turn on; None where none is on."""
    return max((n for n in VERSIONS if n in properties.iceberg_versions), default=None)


def stores_partition_columns(protocol: Protocol | None, properties: TableProperties) -> bool:
    """Whether files must hold the partition columns too, after the others; `protocol` is None for a new table."""
    listed = protocol is not None and names.MATERIALIZE_PARTITION_COLUMNS in (protocol.writer_features or ())
    supported = f"{names.FEATURE_PREFIX}{names.MATERIALIZE_PARTITION_COLUMNS}" in properties.texts
    return listed or supported or properties.stores_partition_columns or compat_version(properties) is not None


def file_tags(properties: TableProperties) -> dict[str, str] | None:
    """The tags of a new file: the version in V2, None otherwise."""
    return {names.ICEBERG_COMPAT_TAG: "2"} if compat_version(properties) == 2 else None


def check_compatible(
    properties: TableProperties,
    schema: Struct,
    partition_columns: tuple[str, ...],
    *,
    before: tuple[str, ...],
) -> None:
    """Raises UnsupportedFeatureError where a write would make a table inconvertible that must stay convertible.

    `before` are the partition columns before the write.
    """
    version = compat_version(properties)
    reason = (
        None if version is None else next(_violations(version, properties, schema, partition_columns, before), None)
    )
    if reason is not None:
        raise UnsupportedFeatureError(
            f"{TABLE} must stay convertible to Iceberg (icebergCompatV{version}), but {reason}. Nothing was written. "
            f"Change that first, or set {names.ENABLE_ICEBERG_COMPAT_PREFIX}V{version} to false.",
            features=(f"icebergCompatV{version}",),
            error_class="DELTA_ICEBERG_COMPAT_VIOLATION",
        )


def _violations(
    version: int,
    properties: TableProperties,
    schema: Struct,
    partition_columns: tuple[str, ...],
    before: tuple[str, ...],
) -> Iterator[str]:
    if len(properties.iceberg_versions) > 1:
        yield f"only one of the versions {', '.join(f'V{n}' for n in properties.iceberg_versions)} may be enabled"
    if properties.mapping_word.lower() not in ("name", "id"):
        yield f"its columns are not mapped: {names.COLUMN_MAPPING_MODE} must be name or id"
    if properties.allows_vectors:
        yield f"it allows deletion vectors: {names.ENABLE_DELETION_VECTORS} must be false"
    if before and before != partition_columns:
        yield f"a table that is partitioned by ({', '.join(before)}) must keep that partitioning"
    for field in fields_of(schema):
        if reason := _unconvertible(version, field):
            yield reason


def _unconvertible(version: int, field: Field) -> str | None:
    for _, kind, _ in walk(field.type, into=Array | Map):
        if version == 1 and isinstance(kind, Array | Map):
            return f"its column {field.name!r} is a list or a map"
        if kind in (Primitive("void"), Primitive("variant")):
            return f"its column {field.name!r} has the type {describe(kind)}"
    ids = field.metadata.get(names.NESTED_IDS, {})
    if version == 2 and not (isinstance(ids, Mapping) and set(nested_id_keys(field)) <= set(ids)):
        return f"the lists and maps of its column {field.name!r} have no ids ({names.NESTED_IDS})"
    changes = field.metadata.get(names.TYPE_CHANGES, [])
    for change in [one for one in changes if isinstance(one, Mapping)] if isinstance(changes, list) else []:
        then, now = str(change.get("fromType")), str(change.get("toType"))
        if not _iceberg_widens(then, now):
            return f"its column {field.name!r} was widened from {then} to {now}, which Iceberg does not know"
    return None


def _iceberg_widens(then: str, now: str) -> bool:
    if (then, now) in _ICEBERG_WIDENS:
        return True
    if then.startswith("decimal(") and now.startswith("decimal("):
        return then.rstrip(")").rpartition(",")[2].strip() == now.rstrip(")").rpartition(",")[2].strip()
    return False
