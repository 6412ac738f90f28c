"""A schema's text, the model and Arrow say the same, and what they cannot say is refused by name."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.delta.schema.arrow_schema import from_arrow, to_arrow
from tablefeed.delta.schema.schema_string import format_schema, from_spark, parse_schema
from tablefeed.errors import TABLE, LogError, SchemaMismatchError, TablefeedError, UnsupportedFeatureError
from tablefeed.model.schema import PRIMITIVES, Array, DataType, Decimal, Field, Map, Primitive, Struct


def _field(name: str, kind: object, metadata: dict[str, str] | None = None) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata or {}}


def _one_column(kind: object, metadata: dict[str, str] | None = None) -> str:
    return json.dumps({"type": "struct", "fields": [_field("c", kind, metadata)]})


def _column(name: str, kind: DataType) -> Field:
    return Field(name, kind, nullable=True)


def _decimals() -> st.SearchStrategy[DataType]:
    return st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s)))


def _structs(types: st.SearchStrategy[DataType], *, metadata: bool) -> st.SearchStrategy[Struct]:
    json_values = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8"))
    extras = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), json_values, max_size=2)
    names = st.text(st.characters(codec="utf-8"), max_size=6)
    fields = st.builds(Field, names, types, st.booleans(), extras if metadata else st.just({}))
    return st.lists(fields, max_size=4, unique_by=lambda f: f.name.lower()).map(lambda fs: Struct(tuple(fs)))


def _schemas(*, metadata: bool) -> st.SearchStrategy[Struct]:
    keys = st.sampled_from(sorted(PRIMITIVES - {"void"})).map(Primitive) | _decimals()
    leaves = keys | st.just(Primitive("void"))
    types = st.recursive(
        leaves,
        lambda inner: (
            st.builds(Array, inner, st.booleans())
            | st.builds(Map, keys | _structs(keys, metadata=metadata), inner, st.booleans())
            | _structs(inner, metadata=metadata)
        ),
        max_leaves=6,
    )
    return _structs(types, metadata=metadata)


def _with_nullable_voids(struct: Struct) -> Struct:
    def loosened(kind: DataType) -> DataType:
        match kind:
            case Array(element, contains_null):
                return Array(loosened(element), contains_null or element == Primitive("void"))
            case Map(key, value, value_contains_null):
                return Map(loosened(key), loosened(value), value_contains_null or value == Primitive("void"))
            case Struct():
                return _with_nullable_voids(kind)
            case _:
                return kind

    return Struct(tuple(Field(f.name, loosened(f.type), f.nullable or f.type == Primitive("void")) for f in struct))


@given(_schemas(metadata=True))
def test_the_text_of_a_schema_spells_that_schema(schema: Struct) -> None:
    assert parse_schema(format_schema(schema)) == schema


@given(_schemas(metadata=False))
def test_the_arrow_columns_of_a_schema_are_held_by_that_schema(schema: Struct) -> None:
    assert from_arrow(to_arrow(schema)) == _with_nullable_voids(schema)


def test_the_text_is_what_spark_writes() -> None:
    schema = Struct(
        (
            Field("id", Primitive("long"), nullable=False, metadata={"comment": "the key", "delta.identity.start": 1}),
            _column("größe", Decimal(10, 2)),
            _column("tags", Array(Primitive("string"), contains_null=False)),
            _column(
                "m", Map(Primitive("string"), Struct((_column("x", Primitive("date")),)), value_contains_null=True)
            ),
        )
    )

    assert format_schema(schema) == (
        '{"type":"struct","fields":['
        '{"name":"id","type":"long","nullable":false,"metadata":{"comment":"the key","delta.identity.start":1}},'
        '{"name":"größe","type":"decimal(10,2)","nullable":true,"metadata":{}},'
        '{"name":"tags","type":{"type":"array","elementType":"string","containsNull":false},'
        '"nullable":true,"metadata":{}},'
        '{"name":"m","type":{"type":"map","keyType":"string","valueType":{"type":"struct","fields":['
        '{"name":"x","type":"date","nullable":true,"metadata":{}}]},"valueContainsNull":true},'
        '"nullable":true,"metadata":{}}]}'
    )


def test_a_char_column_is_a_string_whose_metadata_says_char() -> None:
    text = _one_column("string", metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"})

    assert parse_schema(text) == Struct(
        (Field("c", Primitive("string"), nullable=True, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}),)
    )


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("null", Primitive("void")),
        ("timestamp_ltz", Primitive("timestamp")),
        ("decimal", Decimal(10, 0)),
        ("decimal( 4 , 2 )", Decimal(4, 2)),
    ],
)
def test_what_sparks_parser_takes_besides_what_it_writes_is_read(spelled: str, meant: DataType) -> None:
    assert parse_schema(_one_column(spelled)).fields[0].type == meant


@pytest.mark.parametrize(
    "unknown", ["interval day to second", "geometry(4326)", "string collate UNICODE_CI", "time(6)", "char(5)", "LONG"]
)
def test_an_unknown_type_is_refused_by_its_name_and_the_path_to_it(unknown: str) -> None:
    inner = {"type": "array", "elementType": unknown, "containsNull": True}
    text = _one_column({"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True})

    with pytest.raises(UnsupportedFeatureError, match=rf"Column c\.value\.element of {TABLE}") as caught:
        parse_schema(text)
    assert caught.value.features == (unknown,)
    assert caught.value.message.startswith("[DELTA_UNSUPPORTED_DATA_TYPES]")


def test_an_object_with_an_unknown_type_is_refused_by_that_name() -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        parse_schema(_one_column({"type": "tree"}))
    assert caught.value.features == ("tree",)


def test_a_type_of_a_users_own_class_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        parse_schema(_one_column({"type": "udt", "class": "org.Vector", "sqlType": "string"}))
    assert caught.value.features == ("the user-defined type org.Vector",)


def _nested(levels: int) -> str:
    arrays = '{"type":"array","containsNull":true,"elementType":' * levels + '"long"' + "}" * levels
    return _one_column("long").replace('"long"', arrays)


def test_types_may_be_nested_as_deep_as_parquet_is_read_and_no_deeper() -> None:
    deepest = parse_schema(_nested(100))
    assert from_arrow(to_arrow(deepest)) == deepest

    for levels in (101, 500, 2000):
        with pytest.raises(TablefeedError, match=TABLE):
            parse_schema(_nested(levels))
    with pytest.raises(UnsupportedFeatureError, match="nested more than 100 levels deep"):
        parse_schema(_nested(101))


def test_metadata_that_is_nested_too_deep_to_be_written_is_refused_where_it_is_written() -> None:
    deep = '{"a":' * 300 + "1" + "}" * 300
    schema = parse_schema(_one_column("long").replace('"metadata": {}', f'"metadata": {deep}'))

    assert to_arrow(schema).names == ["c"]
    with pytest.raises(LogError, match="nested too deep"):
        format_schema(schema)


_DOUBLED = {"type": "struct", "fields": [_field("Id", "long"), _field("iD", "string")]}


@pytest.mark.parametrize(
    ("text", "said"), [(json.dumps(_DOUBLED), "Id and iD"), (_one_column(_DOUBLED), "c.Id and c.iD")]
)
def test_names_that_differ_in_case_alone_are_refused_at_every_depth(text: str, said: str) -> None:
    with pytest.raises(LogError, match=re.escape(said)) as caught:
        parse_schema(text)
    assert caught.value.error_class == "DELTA_DUPLICATE_COLUMNS_FOUND"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ('"string"', "at its top: it is not a struct"),
        ('{"type":"struct"}', "at its top: it is not a struct"),
        ('{"type":"struct","fields":[7]}', "a field is 7"),
        ('{"type":"struct","fields":[{"name":"c","nullable":true}]}', "column c: type is missing"),
        ('{"type":"struct","fields":[{"name":"c","type":"long"}]}', "column c: nullable is missing"),
        ('{"type":"struct","fields":[{"name":"c","type":"long","nullable":1}]}', "nullable is 1, not a boolean"),
        ('{"type":"struct","fields":[{"name":"c","type":5,"nullable":true}]}', "its type is 5"),
        ('{"type":"struct","fields":[{"name":"c","type":"decimal(39,2)","nullable":true}]}', "out of range"),
        ('{"type":"struct","fields":[{"name":"c","type":{"type":"array"},"nullable":true}]}', "elementType is missing"),
        ('{"type":"struct","fields":[{"name":"c","type":"long","nullable":true,"metadata":[]}]}', "metadata is"),
    ],
)
def test_a_text_that_is_no_schema_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(LogError, match=said):
        parse_schema(text)


def test_arrow_has_the_types_that_the_protocol_describes() -> None:
    schema = Struct(
        (
            _column("ts", Primitive("timestamp")),
            Field("ntz", Primitive("timestamp_ntz"), nullable=False),
            _column("nothing", Primitive("void")),
            _column("list", Array(Primitive("byte"), contains_null=False)),
            _column("map", Map(Primitive("string"), Decimal(5, 1), value_contains_null=True)),
        )
    )

    assert to_arrow(schema) == pa.schema(
        [
            pa.field("ts", pa.timestamp("us", tz="UTC")),
            pa.field("ntz", pa.timestamp("us"), nullable=False),
            pa.field("nothing", pa.null()),
            pa.field("list", pa.list_(pa.field("element", pa.int8(), nullable=False))),
            pa.field(
                "map", pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", pa.decimal128(5, 1)))
            ),
        ]
    )


@pytest.mark.parametrize(
    ("arrow", "held_by"),
    [
        (pa.large_string(), Primitive("string")),
        (pa.string_view(), Primitive("string")),
        (pa.dictionary(pa.int8(), pa.large_string()), Primitive("string")),
        (pa.large_binary(), Primitive("binary")),
        (pa.binary(16), Primitive("binary")),
        (pa.date64(), Primitive("date")),
        (pa.timestamp("ns"), Primitive("timestamp_ntz")),
        (pa.timestamp("s", tz="Europe/Zurich"), Primitive("timestamp")),
        (pa.decimal32(9, 2), Decimal(9, 2)),
        (pa.decimal64(18, 0), Decimal(18, 0)),
        (pa.large_list(pa.field("item", pa.int8(), nullable=False)), Array(Primitive("byte"), contains_null=False)),
        (pa.list_(pa.float64(), 3), Array(Primitive("double"), contains_null=True)),
        (pa.list_view(pa.bool_()), Array(Primitive("boolean"), contains_null=True)),
    ],
)
def test_every_layout_of_one_type_is_held_by_that_type(arrow: pa.DataType, held_by: DataType) -> None:
    assert from_arrow(pa.schema([("c", arrow)])) == Struct((_column("c", held_by),))


class _Unhashable(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """An extension type as pyarrow's documentation writes one: without a hash."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "tablefeed.unhashable")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("arrow", "remedy"),
    [
        (pa.uint8(), "Cast it to int16"),
        (pa.uint32(), "Cast it to int64"),
        (pa.uint64(), r"Cast it to decimal128\(20, 0\)"),
        (pa.float16(), "Cast it to float32"),
        (pa.decimal256(40, 2), "Cast it to decimal128"),
        (pa.decimal128(5, -2), "Cast it to decimal128"),
        (pa.decimal128(2, 5), "Cast it to decimal128"),
        (pa.uuid(), r"Cast it to fixed_size_binary\[16\]"),
        (_Unhashable(), "Cast it to int64"),
        (pa.time64("us"), "Cast it to a type"),
        (pa.duration("s"), "Cast it to a type"),
    ],
)
def test_a_type_that_no_table_has_is_refused_with_what_to_cast_it_to(arrow: pa.DataType, remedy: str) -> None:
    schema = pa.schema([("a", pa.struct([("b", pa.list_(arrow))]))])

    with pytest.raises(SchemaMismatchError, match=rf"Column a\.b\.element of the rows for {TABLE}.*{remedy}"):
        from_arrow(schema)


def test_strings_with_a_collation_are_refused_in_the_schema_of_rows() -> None:
    def schema(collations: object) -> str:
        kind = {"type": "array", "elementType": "string", "containsNull": True}
        field = {**_field("c", kind), "metadata": {"__COLLATIONS": collations}}
        return _one_column({"type": "struct", "fields": [field]})

    with pytest.raises(SchemaMismatchError, match=r"a string with the collation ICU\.UNICODE_CI"):
        from_spark(schema({"c.element": "ICU.UNICODE_CI"}))
    assert from_spark(schema({})).names == ("c",)
    assert from_spark(schema("ICU.UNICODE_CI")).names == ("c",)


def test_only_a_struct_with_a_mark_that_is_true_is_a_variant() -> None:
    def parts(mark: str) -> pa.Schema:
        members = [pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": mark})]
        return pa.schema([("v", pa.struct(members))])

    assert from_arrow(parts("true")).fields[0].type == Primitive("variant")
    assert isinstance(from_arrow(parts("false")).fields[0].type, Struct)


def test_rows_with_names_that_differ_in_case_alone_are_refused() -> None:
    with pytest.raises(SchemaMismatchError, match=r"DELTA_DUPLICATE_COLUMNS_FOUND.*two columns id and ID"):
        from_arrow(pa.schema([("id", pa.int8()), ("ID", pa.int8())]))


def test_a_map_with_void_keys_is_refused_as_arrow_has_none() -> None:
    text = _one_column({"type": "map", "keyType": "void", "valueType": "long", "valueContainsNull": True})

    with pytest.raises(UnsupportedFeatureError, match=f"Column c of {TABLE} is of type void, as the key of a map"):
        parse_schema(text)
