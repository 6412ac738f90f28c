"""The table features of PROTOCOL.md, what this version does with each, and the check that refuses the others by name.

One table (`FEATURES`) holds all of them: "Valid Feature Names in Table Features", the RFCs that released versions of
Delta-Spark write, and their previews. An unknown name is refused, because its meaning cannot be known here. A feature
is supported where the protocol lists it or, for the oldest, where the protocol version implies it. It is active where
the metadata uses it too ("Supported Features", "Active Features").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

import orjson

from tablefeed.delta import names, row_tracking
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.redirect import redirection
from tablefeed.delta.schema.type_changes import unknown_type_change
from tablefeed.errors import TABLE, AppendOnlyError, LogError, UnsupportedFeatureError
from tablefeed.model.actions import Metadata, Protocol
from tablefeed.model.schema import Primitive, Struct, fields_of, walk
from tablefeed.model.shown import shown


class Rule(StrEnum):
    """What this version does with a table that has a feature."""

    HANDLED = "handled"
    WHILE_INACTIVE = "handled while inactive"
    READ_BY_NAME = "read where the table's name was looked up in its catalog, not written"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """What a table's metadata uses: its properties, the keys of its columns' metadata, the type names of its schema."""

    properties: TableProperties
    column_keys: frozenset[str]
    types: frozenset[str]


@dataclass(frozen=True, slots=True)
class Feature:
    """A table feature. Writers must handle it, and `for_readers` too where it says so.

    `is_active`: whether a table's metadata makes it active where it is supported; None: the feature is only listed.
    `implied_from` is the first writer version that implies it (up to 6); None: it must be listed.
    """

    name: str
    is_active: Callable[[Uses], bool] | None = None
    _: KW_ONLY
    rule: Rule = Rule.HANDLED
    for_readers: bool = False
    implied_from: int | None = None


def check_readable(protocol: Protocol, metadata: Metadata, *, knows_ratified: bool = False) -> None:
    """Raises UnsupportedFeatureError, naming the features, unless every file of the table can be read correctly.

    `knows_ratified`: whether the log that is read has the commits that the table's catalog has ratified, and no other.
    """
    if metadata.format_provider != "parquet":
        raise UnsupportedFeatureError(
            f"The table at {TABLE} keeps its data as {metadata.format_provider!r}; tablefeed reads and writes parquet.",
            features=(f"format {metadata.format_provider}",),
        )
    if protocol.min_reader_version > _READER_VERSION or (
        protocol.min_reader_version == _READER_VERSION and protocol.reader_features is None
    ):
        raise _version_error(protocol)
    uses = _uses(metadata)
    # An active feature counts even where the protocol does not list it: rows would be wrong.
    in_use = frozenset(feature.name for feature in _active(uses))
    readers = [
        feature
        for feature in _NOT_HANDLED
        if feature.for_readers and not (knows_ratified and feature.rule is Rule.READ_BY_NAME)
    ]
    refused = _refused(protocol.reader_features or frozenset(), in_use, readers)
    if refused:
        raise _feature_error(refused, "read", "DELTA_UNSUPPORTED_FEATURES_FOR_READ", uses)
    _refuse_unsupported_mapping(protocol, uses)
    if not _WIDENING.isdisjoint(protocol.reader_features or ()) and names.TYPE_CHANGES in uses.column_keys:
        _refuse_unknown_type_change(metadata)


def check_managed(protocol: Protocol) -> None:
    """Raises LogError unless `protocol` says, as the table's catalog does, that the catalog manages the commits."""
    if _CATALOG_MANAGED not in (protocol.reader_features or ()):
        raise LogError(
            f"The catalog says that it manages the commits of {TABLE}, but the table's protocol does not list "
            f"{_CATALOG_MANAGED}. Versions that the catalog does not know would be missing. Nothing was read; ask who "
            "runs the catalog."
        )


def check_writable(protocol: Protocol, metadata: Metadata, *, removes: bool) -> None:
    """Raises unless rows can be appended, and with `removes` whole files removed, without breaking the table.

    Raises UnsupportedFeatureError, naming the features; a table that cannot be read is not written either, as the
    protocol demands. Raises AppendOnlyError for `removes` with `delta.appendOnly`. Rules for rows are not checked here.
    """
    # A feature that is only read by name is refused below: it is never written.
    check_readable(protocol, metadata, knows_ratified=True)
    if protocol.min_writer_version > _WRITER_VERSION or (
        protocol.min_writer_version == _WRITER_VERSION and protocol.writer_features is None
    ):
        raise _version_error(protocol)
    uses = _uses(metadata)
    listed = _listed(protocol)
    in_use = frozenset(
        feature.name for feature in _active(uses) if feature.name in listed or _is_implied(feature, protocol)
    )
    refused = _refused(listed, in_use, _NOT_HANDLED)
    if refused:
        raise _feature_error(refused, "written", "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE", uses)
    row_tracking.check_consistent(protocol, uses.properties)
    if removes and uses.properties.appends_only:
        raise AppendOnlyError(
            f"The table at {TABLE} is append-only: its rows must not be removed. "
            f"Append instead, or set its property {names.APPEND_ONLY} to false.",
        )


def required_protocol(schema: Struct, properties: Mapping[str, str]) -> Protocol:
    """The lowest protocol for a new table with `schema` and `properties`. `check_writable` says if we can write it.

    It starts from reader version 1 and writer version 2, or `delta.minReaderVersion` and `delta.minWriterVersion`,
    and has the features that these imply. The schema's types, the properties and `delta.feature.NAME` add features.
    Where some versions imply exactly these features, they are not listed, as in Delta-Spark.
    """
    uses = Uses(properties=TableProperties(properties), column_keys=_column_keys(schema), types=_type_words(schema))
    wanted = {feature.name for feature in _active(uses)} | _of_required_columns(schema)
    wanted |= {name.removeprefix(names.FEATURE_PREFIX) for name in properties if name.startswith(names.FEATURE_PREFIX)}
    reader = int(properties.get(names.MIN_READER_VERSION, 1))
    writer = int(properties.get(names.MIN_WRITER_VERSION, 2))
    wanted = wanted.union(*(_REQUIRES.get(name, ()) for name in wanted))
    return _as_low_as_can_be(frozenset(wanted) | implied_features(reader, writer))


def protocol_for(schema: Struct, protocol: Protocol) -> Protocol:
    """The protocol of a table with `protocol` after its schema becomes `schema`: unchanged, or with variants added.

    As in Delta-Spark, variantType is the only feature for a type that is added to an existing table. Any other would
    stop the table's readers and writers: raises UnsupportedFeatureError where such a feature is missing.
    """
    uses = Uses(properties=TableProperties({}), column_keys=frozenset(), types=_type_words(schema))
    listed = _with_meanings((protocol.writer_features or frozenset()) & (protocol.reader_features or frozenset()))
    missing = sorted(feature.name for feature in _active(uses) if feature.name not in listed)
    if missing == [_VARIANT]:
        return _as_low_as_can_be(supported_features(protocol) | {_VARIANT})
    if missing:
        raise UnsupportedFeatureError(
            f"The new columns need features that {TABLE} does not have: {', '.join(missing)}. Nothing was written. Add "
            f"them to the table first (tablefeed.alter with enable_features={missing}, or ALTER TABLE ... SET "
            f"TBLPROPERTIES ('{names.FEATURE_PREFIX}{missing[0]}' = 'supported')), or cast the columns.",
            features=tuple(missing),
            error_class="DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
        )
    return protocol


def raised_protocol(protocol: Protocol, metadata: Metadata, *, schema: Struct, asked: Iterable[str] = ()) -> Protocol:
    """The protocol of an existing table after it is altered: with what `metadata` makes active, and what is `asked`.

    As in Delta-Spark, a feature that the new metadata uses is added by itself, except the two in `_BY_HAND`: raises
    UnsupportedFeatureError where one of these is missing.
    """
    has, uses = supported_features(protocol), _uses(metadata)
    active = {feature.name for feature in _active(uses)} | _of_required_columns(schema)
    wanted = {name for name in active if name in has or name not in _with_meanings(has)} | {*asked}
    by_hand = sorted((wanted - {*asked} - has) & _BY_HAND.keys())
    if by_hand:
        raise UnsupportedFeatureError(
            f"The change needs a feature that {TABLE} does not have: {', '.join(by_hand)}. Nothing was written. Name "
            f"it in enable_features of the same call: [{', '.join(map(repr, by_hand))}]. Readers and writers that do "
            "not know the feature can then no longer use the table.",
            features=tuple(by_hand),
            error_class=_BY_HAND[by_hand[0]],
        )
    wanted = wanted.union(*(_REQUIRES.get(name, ()) for name in wanted))
    return protocol if wanted <= has else _as_low_as_can_be(has | wanted)


def merged_protocol(protocol: Protocol, earlier: Protocol) -> Protocol:
    """The protocol of a table that gets the metadata and files of an earlier version back: it has all features."""
    both = supported_features(protocol) | supported_features(earlier)
    return protocol if both == supported_features(protocol) else _as_low_as_can_be(both)


def supported_features(protocol: Protocol) -> frozenset[str]:
    """The features that `protocol` lists or, by its versions, implies ("Supported Features")."""
    return _listed(protocol) | implied_features(protocol.min_reader_version, protocol.min_writer_version)


def is_type_widening_enabled(protocol: Protocol, properties: TableProperties) -> bool:
    """Whether a write may widen a column's type: the property is on, and the protocol has the feature."""
    return properties.widens_types and not _WIDENING.isdisjoint(protocol.writer_features or ())


def may_write_vectors(protocol: Protocol, properties: TableProperties) -> bool:
    """Whether a write may mark rows as deleted: the property is on, and readers must know what vectors are."""
    return properties.allows_vectors and "deletionVectors" in (protocol.reader_features or ())


# --- what makes a feature active -----------------------------------------------------------------------------------


def _property(name: str) -> Callable[[Uses], bool]:
    return lambda uses: uses.properties.texts.get(name, "").lower() == "true"


def _has_property(name: str) -> Callable[[Uses], bool]:
    return lambda uses: name in uses.properties.texts


def _column_key(prefix: str) -> Callable[[Uses], bool]:
    return lambda uses: any(key.startswith(prefix) for key in uses.column_keys)


def _type(*words: str) -> Callable[[Uses], bool]:
    return lambda uses: any(word.partition("(")[0] in words for word in uses.types)


def _mapped(uses: Uses) -> bool:
    return uses.properties.mapping_word.lower() != "none"


def _widened(uses: Uses) -> bool:
    return uses.properties.widens_types or _column_key(names.TYPE_CHANGES)(uses)


# --- the table -----------------------------------------------------------------------------------------------------

_VARIANT, _CATALOG_MANAGED = "variantType", "catalogManaged"
_EARLIER_NTZ = "timestampWithoutTimezone"  # old tables list it; delta-kernel-rs reads it as timestampNtz too


def _both(
    name: str,
    is_active: Callable[[Uses], bool] | None = None,
    *,
    implied_from: int | None = None,
    rule: Rule = Rule.HANDLED,
) -> Feature:
    return Feature(name, is_active, for_readers=True, implied_from=implied_from, rule=rule)


def _refused_features(*names: str, for_readers: bool) -> Iterator[Feature]:
    return (Feature(name, rule=Rule.REFUSED, for_readers=for_readers) for name in names)


FEATURES: Mapping[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature("appendOnly", _property(names.APPEND_ONLY), implied_from=2),
        # Rows are held against the rules of the table, which feed/write/row_rules.py finds.
        Feature("invariants", _column_key(names.COLUMN_INVARIANTS), implied_from=2),
        Feature("checkConstraints", lambda uses: bool(uses.properties.constraints), implied_from=3),
        # Appends and removes of whole files are changes without a cdc file ("Reader Requirements for AddCDCFile"); of
        # files that are written anew, feed/write/taking_out.py writes cdc files.
        Feature("changeDataFeed", _property(names.ENABLE_CHANGE_DATA_FEED), implied_from=4),
        Feature("generatedColumns", _column_key(names.GENERATION_EXPRESSION), implied_from=4),
        _both("columnMapping", _mapped, implied_from=5),
        Feature("identityColumns", _column_key(names.IDENTITY_PREFIX), implied_from=6),
        Feature("allowColumnDefaults", _column_key(names.CURRENT_DEFAULT)),
        # feed/write/taking_out.py writes vectors, and the remove of a file repeats the file's vector.
        _both("deletionVectors", _property(names.ENABLE_DELETION_VECTORS)),
        # Every writer must assign row ids as soon as the feature is listed (row_tracking.py).
        Feature(names.ROW_TRACKING, _property(names.ENABLE_ROW_TRACKING)),
        _both("timestampNtz", _type("timestamp_ntz")),
        _both(_EARLIER_NTZ),
        # Other domains are not changed: we write only that of row tracking, and that of clustering for a new table.
        Feature("domainMetadata"),
        # Written where the policy asks for them (feed/upkeep/delta_checkpoint.py).
        _both("v2Checkpoint", lambda uses: uses.properties.wants_v2_checkpoints),
        # iceberg_compat.py checks what they require of schema and files.
        Feature("icebergCompatV1", _property(names.ENABLE_ICEBERG_COMPAT_PREFIX + "V1")),
        Feature("icebergCompatV2", _property(names.ENABLE_ICEBERG_COMPAT_PREFIX + "V2")),
        Feature("icebergCompatV3", _property(names.ENABLE_ICEBERG_COMPAT_PREFIX + "V3"), rule=Rule.WHILE_INACTIVE),
        # Our files are not clustered, but have statistics of the clustering columns (clustering.py).
        Feature(names.CLUSTERING),
        # feed/upkeep/vacuum.py asks what a writer must know, of any table.
        _both("vacuumProtocolCheck"),
        # feed/upkeep/delta_cleanup.py deletes nothing that is protected. Checkpoints are of the newest version.
        Feature("checkpointProtection"),
        Feature("inCommitTimestamp", _property(names.ENABLE_IN_COMMIT_TIMESTAMPS)),
        # A column's metadata has its earlier types. A write that widens the column adds one (feed/write/evolution.py).
        _both("typeWidening", _widened),
        _both("typeWidening-preview"),
        _both(_VARIANT, _type("variant")),
        _both(f"{_VARIANT}-preview"),
        # data/shredding.py reads them. We write none: the feature allows shredding, but does not require it.
        _both("variantShredding", _property(names.ENABLE_VARIANT_SHREDDING)),
        _both("variantShredding-preview"),
        # Only Delta-Spark's code describes them. Without the property the table is like any other.
        Feature(
            "redirectReaderWriter-preview",
            _has_property(names.REDIRECT_READER_WRITER),
            rule=Rule.WHILE_INACTIVE,
            for_readers=True,
        ),
        Feature("redirectWriterOnly-preview", _has_property(names.REDIRECT_WRITER_ONLY), rule=Rule.WHILE_INACTIVE),
        Feature("geospatial", _type("geometry", "geography"), rule=Rule.REFUSED, for_readers=True),
        Feature(names.MATERIALIZE_PARTITION_COLUMNS, _property(names.ENABLE_MATERIALIZE_PARTITION_COLUMNS)),
        # Only the catalog knows the newest commits: feed/snapshot/catalog_log.py asks it.
        _both(_CATALOG_MANAGED, rule=Rule.READ_BY_NAME),
        *_refused_features(
            "catalogManaged-preview",
            "catalogOwned-preview",
            "geospatial-dev",
            "timestampNanos",
            "adaptiveMetadata-preview",
            for_readers=True,
        ),
        *_refused_features(
            "coordinatedCommits-preview",
            "icebergWriterCompatV1",
            "icebergWriterCompatV3",
            "inCommitTimestamp-preview",  # its properties have other names; only Delta-Spark 3.2 knows them
            "collations",
            "collations-preview",
            for_readers=False,
        ),
    )
}
"""Every feature that is known here. To handle one more, change its rule: nothing else decides."""

# Each load of a table asks for these, so the others are not asked again.
_WITH_A_SIGN = tuple((feature, feature.is_active) for feature in FEATURES.values() if feature.is_active is not None)
_NOT_HANDLED = tuple(feature for feature in FEATURES.values() if feature.rule is not Rule.HANDLED)


def _active(uses: Uses) -> tuple[Feature, ...]:
    return _active_with(tuple(uses.properties.texts.items()), uses.column_keys, uses.types)


@lru_cache(maxsize=16)  # each load of a table asks, and what it uses seldom changes
def _active_with(
    properties: tuple[tuple[str, str], ...], column_keys: frozenset[str], types: frozenset[str]
) -> tuple[Feature, ...]:
    uses = Uses(properties=TableProperties(dict(properties)), column_keys=column_keys, types=types)
    return tuple(feature for feature, is_active in _WITH_A_SIGN if is_active(uses))


def _of_required_columns(schema: Struct) -> set[str]:
    # In Delta-Spark NOT NULL is an invariant.
    return set() if all(field.nullable for field in fields_of(schema)) else {"invariants"}


def _as_low_as_can_be(listed: frozenset[str]) -> Protocol:
    known = [FEATURES[name] for name in listed if name in FEATURES]
    readers = frozenset(feature.name for feature in known if feature.for_readers)
    reader = max([1, *(_MAPPING_READER if name == "columnMapping" else _READER_VERSION for name in readers)])
    writers = [feature.implied_from or _WRITER_VERSION for feature in known]
    writer = max([1, *writers, *(_WRITER_VERSION for name in listed if name not in FEATURES)])
    if implied_features(reader, writer) == listed:
        return Protocol(min_reader_version=reader, min_writer_version=writer)
    return Protocol(
        min_reader_version=reader,
        min_writer_version=_WRITER_VERSION,
        reader_features=readers if reader == _READER_VERSION else None,
        writer_features=listed,
    )


def _with_meanings(listed: frozenset[str]) -> frozenset[str]:
    """`listed`, and the features of which it has the preview, as in Delta-Spark, or an earlier name."""
    meant = {name.removesuffix("-preview") for name in listed}
    return listed | meant | ({"timestampNtz"} if _EARLIER_NTZ in listed else set())


def _listed(protocol: Protocol) -> frozenset[str]:
    return (protocol.writer_features or frozenset()) | (protocol.reader_features or frozenset())


def implied_features(reader: int, writer: int) -> frozenset[str]:
    """The features that a protocol of these versions has without a list."""
    if writer >= _WRITER_VERSION:
        return frozenset()
    return frozenset(
        feature.name
        for feature in FEATURES.values()
        if feature.implied_from is not None
        and feature.implied_from <= writer
        and (not feature.for_readers or reader >= _MAPPING_READER)
    )


_REQUIRES: Mapping[str, tuple[str, ...]] = {
    names.ROW_TRACKING: ("domainMetadata",),
    names.CLUSTERING: ("domainMetadata",),
    "icebergCompatV1": ("columnMapping",),
    "icebergCompatV2": ("columnMapping",),
    "variantShredding": (_VARIANT,),
}
"""The features that must be listed with a feature; the protocol says so in the section of the feature."""


_BY_HAND = {
    "timestampNtz": "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
    "allowColumnDefaults": "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
}
"""The features that a change never adds to an existing table by itself, with Delta-Spark's error classes."""

_WIDENING = frozenset({"typeWidening", "typeWidening-preview"})
_MAPPING_READER = 2  # the reader version that implies column mapping, and nothing else
_READER_VERSION = 3
_WRITER_VERSION = 7


# --- the gate ------------------------------------------------------------------------------------------------------


def _is_implied(feature: Feature, protocol: Protocol) -> bool:
    """Whether `protocol` supports `feature` without listing it. True for any feature that no version implies.

    Metadata that uses such a feature without listing it is not valid, but Delta-Spark follows the metadata (for
    in-commit timestamps, for example).
    """
    return feature.implied_from is None or feature.implied_from <= protocol.min_writer_version < _WRITER_VERSION


def _refused(listed: frozenset[str], in_use: frozenset[str], features: Iterable[Feature]) -> dict[str, str]:
    """The unknown names in `listed` and the refused of `features`, each with the reason, sorted by name."""
    reasons = {name: "unknown" for name in listed if name not in FEATURES}
    for feature in features:
        if feature.rule is Rule.REFUSED and feature.name in listed:
            reasons[feature.name] = "not handled yet"
        elif feature.rule is Rule.READ_BY_NAME and feature.name in listed:
            reasons[feature.name] = (
                "read only by the table's name in its catalog, uc://catalog.schema.table, and only if the table's "
                "properties there list the feature"
            )
        elif feature.rule is Rule.WHILE_INACTIVE and feature.name in in_use:
            reasons[feature.name] = "in use, and handled only while it is not in use"
    return dict(sorted(reasons.items()))


def _refuse_unsupported_mapping(protocol: Protocol, uses: Uses) -> None:
    """Refuses a column mapping that the protocol does not list: PROTOCOL.md says to ignore it, Delta-Spark uses it."""
    supported = protocol.min_reader_version == _MAPPING_READER or "columnMapping" in (protocol.reader_features or ())
    if _mapped(uses) and not supported:
        raise UnsupportedFeatureError(
            f"The table at {TABLE} sets {names.COLUMN_MAPPING_MODE}, but its protocol does not support columnMapping: "
            "different readers would read different columns. Nothing was read. Add the feature to the table, or remove "
            "the property.",
            features=("columnMapping",),
            error_class="DELTA_UNSUPPORTED_FEATURES_FOR_READ",
        )


def _refuse_unknown_type_change(metadata: Metadata) -> None:
    unknown = unknown_type_change(_parts(orjson.loads(metadata.schema_string)))
    if unknown is not None:
        raise UnsupportedFeatureError(
            f"The table at {TABLE} records a change of a column's type that this version of tablefeed does not know: "
            f"{unknown}. Nothing was read. Upgrade tablefeed, or drop the feature typeWidening from the table with the "
            "writer that made the change.",
            features=("typeWidening",),
            error_class="DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
        )


def _feature_error(refused: Mapping[str, str], verb: str, error_class: str, uses: Uses) -> UnsupportedFeatureError:
    named = ", ".join(f"{name} ({reason})" for name, reason in refused.items())
    other = redirection(uses.properties)
    moved = f" It is redirected to {other}: open that table instead." if other else ""
    return UnsupportedFeatureError(
        f"The table at {TABLE} has features that this version of tablefeed does not handle: {named}. "
        f"Nothing was {verb}.{moved} Upgrade tablefeed to a version that handles them, or drop them from the table.",
        features=tuple(refused),
        error_class=error_class,
    )


def _version_error(protocol: Protocol) -> UnsupportedFeatureError:
    needed = f"reader version {protocol.min_reader_version} and writer version {protocol.min_writer_version}"
    return UnsupportedFeatureError(
        f"The table at {TABLE} needs {needed}; this version of tablefeed knows reader versions up to {_READER_VERSION} "
        f"and writer versions up to {_WRITER_VERSION}, of which the last needs a list of features. Upgrade tablefeed.",
        features=(needed,),
        error_class="DELTA_INVALID_PROTOCOL_VERSION",
    )


# --- what metadata uses --------------------------------------------------------------------------------------------


def _uses(metadata: Metadata) -> Uses:
    """What the logged metadata uses. The schema is not checked here: schema_string.py checks its types."""
    try:
        column_keys, types = _words(metadata.schema_string)
        return Uses(properties=TableProperties.of(metadata), column_keys=column_keys, types=types)
    except (orjson.JSONDecodeError, TypeError, RecursionError) as error:
        raise LogError(f"The schema in the log of {TABLE} cannot be read: {error}.") from error


@lru_cache(maxsize=16)  # each load of a table asks, and its schema seldom changes
def _words(schema_string: str) -> tuple[frozenset[str], frozenset[str]]:
    """The keys of the columns' metadata, and the type names."""
    parts = list(_parts(orjson.loads(schema_string)))
    return (
        frozenset(key for part in parts for key in _column_metadata(part)),
        frozenset(word for part in parts for word in part.values() if isinstance(word, str)),
    )


# "Schema Serialization Format": where a type or a field has others inside.
_INNER = ("fields", "type", "elementType", "keyType", "valueType")


def _parts(part: Any) -> Iterator[dict[str, Any]]:  # Any: parsed JSON
    """Every struct, field, array and map of a schema."""
    if isinstance(part, list):
        for field in part:
            yield from _parts(field)
    elif isinstance(part, dict):
        yield part
        for name in _INNER:
            yield from _parts(part.get(name))


def _column_metadata(part: Mapping[str, Any]) -> Mapping[str, object]:
    metadata = part.get("metadata") or {}
    if isinstance(metadata, dict):
        return metadata
    raise TypeError(f"a column's metadata is {shown(metadata)}")


def _type_words(schema: Struct) -> frozenset[str]:
    return frozenset(part.type.name for part in walk(schema) if isinstance(part.type, Primitive))


def _column_keys(schema: Struct) -> frozenset[str]:
    return frozenset(key for field in schema for key in field.metadata)
