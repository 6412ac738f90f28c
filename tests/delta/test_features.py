from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import orjson
import pytest

from tablefeed.delta.features import (
    FEATURES,
    Feature,
    Rule,
    check_readable,
    check_writable,
    protocol_for,
    raised_protocol,
    required_protocol,
    supported_features,
)
from tablefeed.errors import TABLE, AppendOnlyError, LogError, UnsupportedFeatureError
from tablefeed.model.actions import Metadata, Protocol
from tablefeed.model.schema import Array, Field, Primitive, Struct


def legacy(reader: int, writer: int) -> Protocol:
    return Protocol(min_reader_version=reader, min_writer_version=writer)


NOT_WRITTEN = (Rule.REFUSED, Rule.READ_BY_NAME)


def listing(*features: str) -> Protocol:
    """Reader 3 and writer 7 with `features`, those of readers in both lists, as the protocol asks."""
    readers = frozenset(name for name in features if name not in FEATURES or FEATURES[name].for_readers)
    return Protocol(
        min_reader_version=3, min_writer_version=7, reader_features=readers, writer_features=frozenset(features)
    )


def for_writers(*features: str) -> Protocol:
    """Writer 7 with `features`, none of them in the list of readers."""
    return Protocol(min_reader_version=1, min_writer_version=7, writer_features=frozenset(features))


def a_table(
    *, properties: Mapping[str, str] | None = None, kind: object = "long", column: Mapping[str, object] | None = None
) -> Metadata:
    field = {"name": "x", "type": kind, "nullable": True, "metadata": dict(column or {})}
    schema = orjson.dumps({"type": "struct", "fields": [field]}).decode()
    return Metadata(table_id="t", schema_string=schema, configuration=dict(properties or {}))


def widened(older: object, newer: object, **more: object) -> Metadata:
    return a_table(column={"delta.typeChanges": [{"fromType": older, "toType": newer, **more}]})


INNER = {"name": "inner", "metadata": {"delta.typeChanges": [{"fromType": "interval", "toType": "long"}]}}


def refused(protocol: Protocol, metadata: Metadata) -> tuple[tuple[str, ...], str | None]:
    """What writing is refused for, and the error class."""
    with pytest.raises(UnsupportedFeatureError) as caught:
        check_writable(protocol, metadata, removes=False)
    assert TABLE in str(caught.value)
    return caught.value.features, caught.value.error_class


@pytest.mark.parametrize("protocol", [legacy(1, 1), legacy(1, 2), legacy(1, 4), legacy(2, 5), legacy(2, 6)])
def test_an_old_table_that_uses_no_feature_is_read_and_written(protocol: Protocol) -> None:
    check_writable(protocol, a_table(), removes=True)


@pytest.mark.parametrize("feature", [feature for feature in FEATURES.values() if feature.rule not in NOT_WRITTEN])
def test_a_feature_that_is_listed_and_not_in_use_asks_nothing(feature: Feature) -> None:
    also = ("domainMetadata",) if feature.name == "rowTracking" else ()
    check_writable(listing(feature.name, *also), a_table(), removes=True)


def test_a_table_of_a_catalog_is_read_where_its_ratified_commits_are_known_and_never_written() -> None:
    protocol = listing("catalogManaged", "inCommitTimestamp")

    check_readable(protocol, a_table(), knows_ratified=True)
    assert refused(protocol, a_table()) == (("catalogManaged",), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE")


@pytest.mark.parametrize("feature", ["catalogManaged", "geospatial", "somethingNew"])
def test_a_reader_feature_that_is_unknown_or_not_handled_refuses_reading_by_name(feature: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=feature) as caught:
        check_readable(listing("timestampNtz", feature), a_table())
    assert caught.value.features == (feature,)
    assert str(caught.value).startswith("[DELTA_UNSUPPORTED_FEATURES_FOR_READ] ")
    assert "Upgrade tablefeed" in str(caught.value)


@pytest.mark.parametrize("feature", ["collations", "inCommitTimestamp-preview", "somethingNew"])
def test_a_writer_feature_that_is_unknown_or_not_handled_refuses_writing_alone(feature: str) -> None:
    check_readable(for_writers(feature), a_table())
    assert refused(for_writers(feature), a_table()) == ((feature,), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE")


MOVED = (
    '{"type":"PathBasedRedirect","state":"REDIRECT-READY",'
    '"spec":"{\\"sourcePath\\":\\"s3://b/old\\",\\"destPath\\":\\"s3://b/new\\"}","noRedirectRules":[]}'
)


def test_a_table_that_is_redirected_is_refused_and_the_error_names_the_other_table() -> None:
    protocol = listing("redirectReaderWriter-preview")
    table = a_table(properties={"delta.redirectReaderWriter-preview": MOVED})
    with pytest.raises(UnsupportedFeatureError, match=r"It is redirected to s3://b/new \(REDIRECT-READY\)") as caught:
        check_readable(protocol, table)
    assert caught.value.features == ("redirectReaderWriter-preview",)

    for_writers_only = a_table(properties={"delta.redirectWriterOnly-preview": MOVED})
    check_readable(for_writers("redirectWriterOnly-preview"), for_writers_only)
    with pytest.raises(UnsupportedFeatureError, match=r"It is redirected to s3://b/new"):
        check_writable(for_writers("redirectWriterOnly-preview"), for_writers_only, removes=False)


def test_the_place_of_a_redirected_table_is_named_without_credentials() -> None:
    for place, shown in (
        ("s3://key:secret@b/new", "s3://b/new"),
        ("abfss://c@a.net/new?sig=secret", "abfss://c@a.net/new"),
    ):
        table = a_table(properties={"delta.redirectReaderWriter-preview": MOVED.replace("s3://b/new", place)})
        with pytest.raises(UnsupportedFeatureError) as caught:
            check_readable(listing("redirectReaderWriter-preview"), table)
        assert f"redirected to {shown} (" in str(caught.value)


@pytest.mark.parametrize("value", ["", "7", "no json", '{"spec":"no json"}', '{"spec":{"destPath":7}}'])
def test_a_table_whose_redirection_names_no_place_is_refused_all_the_same(value: str) -> None:
    table = a_table(properties={"delta.redirectReaderWriter-preview": value})
    with pytest.raises(UnsupportedFeatureError, match=r"redirectReaderWriter-preview \(in use"):
        check_readable(listing("redirectReaderWriter-preview"), table)


def test_all_that_is_refused_is_named_at_once() -> None:
    table = a_table(properties={"delta.enableIcebergCompatV3": "true"})
    assert refused(for_writers("z", "collations"), table)[0] == ("collations", "icebergCompatV3", "z")


def test_a_writer_feature_in_use_refuses_writing_and_lets_reading_be() -> None:
    protocol, table = listing("icebergCompatV3"), a_table(properties={"delta.enableIcebergCompatV3": "true"})

    check_readable(protocol, table)
    assert refused(protocol, table) == (("icebergCompatV3",), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE")


NOT_NULL = a_table().schema_string.replace('"nullable":true', '"nullable":false')


@pytest.mark.parametrize(
    ("protocol", "table"),
    [
        (legacy(2, 5), a_table(properties={"delta.columnMapping.mode": "name"})),
        (legacy(2, 5), a_table(properties={"delta.columnMapping.mode": "none"})),
        (listing("columnMapping"), a_table(properties={"delta.columnMapping.mode": "id"})),
        (listing("typeWidening"), widened("integer", "long")),
        (listing("typeWidening-preview"), widened("integer", "long", tableVersion=3, fieldPath="element")),
        (listing("typeWidening"), a_table(properties={"delta.enableTypeWidening": "true"})),
        (legacy(1, 4), a_table(properties={"delta.enableChangeDataFeed": "true"})),
        (legacy(1, 2), Metadata(table_id="t", schema_string=NOT_NULL)),  # no invariant
        (listing("invariants"), a_table(column={"delta.invariants": "x > 3"})),
        (listing("checkConstraints"), a_table(properties={"delta.constraints.positive": "x > 0"})),
        (listing("generatedColumns"), a_table(column={"delta.generationExpression": "y + 1"})),
        (listing("allowColumnDefaults"), a_table(column={"CURRENT_DEFAULT": "1"})),
        (listing("identityColumns"), a_table(column={"delta.identity.start": 1})),
    ],
)
def test_tables_of_features_in_use_that_are_handled_are_read_and_written(protocol: Protocol, table: Metadata) -> None:
    check_writable(protocol, table, removes=True)


@pytest.mark.parametrize(
    "table",
    [
        widened("integer", "long"),
        widened("tinyint", "DECIMAL(12, 2)"),
        widened("decimal(5,2)", "decimal(5,2)"),
        widened("decimal", "decimal(10,0)"),
        widened("date", "timestamp_ntz"),
        widened("varchar(3)", "string"),
        a_table(column={"delta.typeChanges": []}),
    ],
)
def test_a_change_of_type_that_the_protocol_knows_is_read(table: Metadata) -> None:
    check_readable(listing("typeWidening"), table)


@pytest.mark.parametrize("feature", ["typeWidening", "typeWidening-preview"])
@pytest.mark.parametrize(
    "table",
    [
        widened("integer", "quaternion"),
        widened("int8", "integer"),
        widened("long", "integer"),
        widened("integer", "string"),
        widened("decimal(40,0)", "decimal(41,0)"),
        widened("struct<a:int>", "struct<a:bigint>"),
        widened(3, "long"),
        a_table(column={"delta.typeChanges": [{}]}),
        a_table(column={"delta.typeChanges": ["integer"]}),
        a_table(column={"delta.typeChanges": {"fromType": "integer", "toType": "long"}}),
        a_table(kind={"type": "array", "containsNull": True, "elementType": {"type": "struct", "fields": [INNER]}}),
    ],
)
def test_a_change_of_type_that_is_not_known_refuses_the_table_by_the_columns_name(
    feature: str, table: Metadata
) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"does not know: (x|inner) by ") as caught:
        check_readable(listing(feature), table)
    assert caught.value.features == ("typeWidening",)
    assert caught.value.error_class == "DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA"


def test_changes_of_types_count_only_where_the_protocol_supports_type_widening() -> None:
    check_readable(listing("deletionVectors"), widened("integer", "quaternion"))


def test_a_type_that_needs_a_feature_is_no_new_column_of_a_table_without_it() -> None:
    schema = Struct((Field("clock", Array(Primitive("timestamp_ntz"), contains_null=True), nullable=True),))

    assert protocol_for(schema, listing("timestampNtz")) == listing("timestampNtz")
    with pytest.raises(UnsupportedFeatureError, match="SET TBLPROPERTIES") as caught:
        protocol_for(schema, legacy(1, 2))
    assert caught.value.features == ("timestampNtz",)
    assert caught.value.error_class == "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"


def test_the_feature_of_variants_is_added_to_a_table_that_is_to_have_one_and_no_other() -> None:
    variants = Struct((Field("v", Array(Primitive("variant"), contains_null=True), nullable=True),))
    clocks = Struct((*variants, Field("clock", Primitive("timestamp_ntz"), nullable=True)))

    assert protocol_for(variants, legacy(1, 2)) == listing("variantType", "appendOnly", "invariants")
    assert protocol_for(variants, listing("deletionVectors")) == listing("deletionVectors", "variantType")
    for there in (listing("variantType"), listing("variantType-preview")):
        assert protocol_for(variants, there) is there
    with pytest.raises(UnsupportedFeatureError) as caught:
        protocol_for(clocks, legacy(1, 2))
    assert caught.value.features == ("timestampNtz", "variantType")


def test_the_earlier_name_of_a_feature_stands_for_it() -> None:
    """delta-rs, through delta-kernel-rs, reads and writes such tables too."""
    listed = listing("timestampWithoutTimezone")
    schema = columns(Primitive("timestamp_ntz"))
    check_writable(listed, a_table(kind="timestamp_ntz"), removes=True)
    assert protocol_for(schema, listed) == listed
    assert raised_protocol(listed, a_table(kind="timestamp_ntz"), schema=schema) == listed


def test_a_column_mapping_that_the_protocol_does_not_support_is_refused() -> None:
    table = a_table(properties={"delta.columnMapping.mode": "name"})

    for protocol in (legacy(1, 2), listing("deletionVectors")):
        with pytest.raises(UnsupportedFeatureError, match="different readers would read different columns") as caught:
            check_readable(protocol, table)
        assert caught.value.features == ("columnMapping",)


def test_what_the_writer_version_does_not_support_is_not_in_use() -> None:
    old = [legacy(1, writer) for writer in range(3, 7)]

    assert ["generatedColumns" in supported_features(protocol) for protocol in old] == [False, True, True, True]
    assert ["identityColumns" in supported_features(protocol) for protocol in old] == [False, False, False, True]
    assert "identityColumns" not in supported_features(listing("generatedColumns"))
    assert "identityColumns" in supported_features(listing("identityColumns"))


def test_an_append_only_table_takes_rows_and_gives_none_back() -> None:
    table = a_table(properties={"delta.appendOnly": "True"})
    check_writable(legacy(1, 2), table, removes=False)
    with pytest.raises(AppendOnlyError, match=f"DELTA_CANNOT_MODIFY_APPEND_ONLY.*{TABLE}"):
        check_writable(legacy(1, 2), table, removes=True)


@pytest.mark.parametrize("protocol", [legacy(4, 7), legacy(3, 7)])
def test_a_reader_version_beyond_ours_or_without_its_list_is_refused(protocol: Protocol) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"DELTA_INVALID_PROTOCOL_VERSION.*Upgrade tablefeed"):
        check_readable(protocol, a_table())


@pytest.mark.parametrize("protocol", [legacy(1, 8), legacy(1, 7)])
def test_a_writer_version_beyond_ours_or_without_its_list_is_read_only(protocol: Protocol) -> None:
    check_readable(protocol, a_table())
    assert refused(protocol, a_table())[1] == "DELTA_INVALID_PROTOCOL_VERSION"


def test_a_table_of_another_file_format_is_refused_by_its_name() -> None:
    table = Metadata(table_id="t", schema_string="{}", format_provider="orc")
    with pytest.raises(UnsupportedFeatureError, match="'orc'"):
        check_readable(legacy(1, 2), table)


def _metadata_of(text: str) -> str:
    return f'{{"type":"struct","fields":[{{"metadata":{text}}}]}}'


@pytest.mark.parametrize("schema", ["", "{", _metadata_of("3"), _metadata_of("[3]"), _metadata_of('"abc"')])
def test_a_schema_that_is_no_schema_is_an_error_of_the_log(schema: str) -> None:
    with pytest.raises(LogError, match=TABLE):
        check_readable(legacy(1, 2), Metadata(table_id="t", schema_string=schema))


def columns(*kinds: Primitive | Array) -> Struct:
    return Struct(tuple(Field(name=f"c{i}", type=kind, nullable=True) for i, kind in enumerate(kinds)))


def test_a_new_table_lists_what_its_properties_ask_for_and_the_gate_judges_it() -> None:
    properties = {"delta.enableRowTracking": "true", "delta.feature.somethingNew": "supported"}
    tracked = required_protocol(columns(Primitive("long")), properties)
    assert tracked.writer_features is not None
    assert set(tracked.writer_features) == {"rowTracking", "domainMetadata", "somethingNew", "appendOnly", "invariants"}
    assert refused(tracked, a_table(properties=properties))[0] == ("somethingNew",)


LONG, CLOCKS = Primitive("long"), Array(element=Primitive("timestamp_ntz"), contains_null=True)
OLD = ("appendOnly", "invariants")
MAPPED = {"columnMapping.mode": "name"}


@pytest.mark.parametrize(
    ("kind", "properties", "expected"),
    [
        (LONG, {"appendOnly": "true"}, legacy(1, 2)),
        (CLOCKS, {}, listing("timestampNtz", *OLD)),
        (LONG, {"enableChangeDataFeed": "true"}, for_writers("changeDataFeed", *OLD)),
        (LONG, MAPPED, replace(for_writers("columnMapping", *OLD), min_reader_version=2)),
        (LONG, MAPPED | {"enableDeletionVectors": "true"}, listing("columnMapping", "deletionVectors", *OLD)),
        (LONG, {"enableTypeWidening": "true"}, listing("typeWidening", *OLD)),
        (LONG, {"minWriterVersion": "3"}, legacy(1, 3)),
        (LONG, {"minWriterVersion": "4", "enableChangeDataFeed": "true"}, legacy(1, 4)),
        (LONG, {"minReaderVersion": "2", "minWriterVersion": "5"}, legacy(2, 5)),
        (LONG, {"minWriterVersion": "5"}, legacy(1, 4)),
        (LONG, {"minReaderVersion": "1", "minWriterVersion": "7"}, legacy(1, 1)),
        (LONG, {"minReaderVersion": "3", "minWriterVersion": "7", "appendOnly": "true"}, for_writers("appendOnly")),
        (LONG, {"feature.checkConstraints": "supported"}, legacy(1, 3)),
    ],
)
def test_a_new_tables_protocol_is_numbers_where_they_imply_just_its_features_and_else_a_list(
    kind: Primitive | Array, properties: dict[str, str], expected: Protocol
) -> None:
    asked = {f"delta.{name}": value for name, value in properties.items()}
    assert required_protocol(columns(kind), asked) == expected


@pytest.mark.parametrize(
    ("listed", "properties"),
    [
        ((), {"delta.enableRowTracking": "true"}),
        (("rowTracking",), {}),
        (("rowTracking", "domainMetadata"), {"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true"}),
    ],
)
def test_a_table_that_does_not_say_whether_its_rows_have_ids_is_not_written(
    listed: tuple[str, ...], properties: dict[str, str]
) -> None:
    assert refused(listing(*listed), a_table(properties=properties))[0] == ("rowTracking",)
