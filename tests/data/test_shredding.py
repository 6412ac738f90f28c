"""A variant in parts is read as the value that was shredded, or refused (Parquet, "Variant Shredding")."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import VariantVal

from tablefeed.data.read import FileColumns, ReadPlan, read_batches
from tablefeed.data.shredding import MalformedVariantError, assembled
from tablefeed.errors import DataFileError

EMPTY = b"\x01\x00\x00"
A_B = b"\x01\x02\x00\x01\x02ab"  # the keys a, with id 0, and b, with id 1
B_A = b"\x01\x02\x00\x01\x02ba"

VARIANT = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
        pa.field("value", pa.binary(), nullable=False),
    ]
)


def parts(typed: pa.DataType | None) -> pa.StructType:
    return pa.struct([("value", pa.binary()), *([] if typed is None else [("typed_value", typed)])])


def variants(typed: pa.DataType | None, *rows: dict[str, Any] | None, metadata: bytes = EMPTY) -> list[bytes | None]:
    """The values of variants whose typed part has that type."""
    kind = pa.struct([("metadata", pa.binary()), *parts(typed)])
    column = pa.array([None if row is None else {"metadata": metadata, **row} for row in rows], kind)
    whole = assembled(column)
    whole.validate(full=True)
    assert whole.field(0).drop_null().to_pylist() == [metadata] * (len(rows) - column.null_count)
    return [None if row is None else row["value"] for row in whole.to_pylist()]


def test_a_value_is_in_one_of_the_parts_and_one_that_is_in_none_is_the_variant_null() -> None:
    assert variants(
        pa.int64(), {"typed_value": 34}, {"value": b"\x00"}, {"value": b"\x0dn/a"}, {"typed_value": 100}, {}, None
    ) == [
        b"\x18\x22\0\0\0\0\0\0\0",
        b"\x00",
        b"\x0dn/a",
        b"\x18\x64\0\0\0\0\0\0\0",
        b"\x00",
        None,
    ]


@pytest.mark.parametrize(
    ("kind", "value", "encoded"),
    [
        (pa.bool_(), True, b"\x04"),
        (pa.bool_(), False, b"\x08"),
        (pa.int8(), -2, b"\x0c\xfe"),
        (pa.int16(), -2, b"\x10\xfe\xff"),
        (pa.int32(), 7, b"\x14\x07\0\0\0"),
        (pa.int64(), -1, b"\x18" + b"\xff" * 8),
        (pa.float64(), 1.0, b"\x1c\0\0\0\0\0\0\xf0\x3f"),
        (pa.decimal128(9, 2), Decimal("-1.50"), b"\x20\x02\x6a\xff\xff\xff"),
        (pa.decimal32(9, 2), Decimal("-1.50"), b"\x20\x02\x6a\xff\xff\xff"),
        (pa.decimal64(9, 2), Decimal("-1.50"), b"\x20\x02\x6a\xff\xff\xff"),
        (pa.decimal256(9, 2), Decimal("-1.50"), b"\x20\x02\x6a\xff\xff\xff"),
        (pa.decimal128(18, 0), Decimal(10), b"\x24\x00\x0a\0\0\0\0\0\0\0"),
        (pa.decimal128(38, 38), Decimal(0), b"\x28\x26" + bytes(16)),
        (pa.date32(), date(1969, 12, 31), b"\x2c\xff\xff\xff\xff"),
        (pa.timestamp("us", "UTC"), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), b"\x30\x40\x42\x0f\0\0\0\0\0"),
        (pa.timestamp("us", "Europe/Berlin"), datetime(1970, 1, 1, tzinfo=UTC), b"\x30" + bytes(8)),
        (pa.timestamp("us"), datetime(1970, 1, 1), b"\x34" + bytes(8)),  # noqa: DTZ001 (it has no zone)
        (pa.float32(), 1.0, b"\x38\0\0\x80\x3f"),
        (pa.binary(), b"\x07", b"\x3c\x01\0\0\0\x07"),
        (pa.string(), "", b"\x01"),
        (pa.string(), "é" * 31 + "x", b"\xfd" + "é".encode() * 31 + b"x"),
        (pa.string(), "é" * 32, b"\x40\x40\0\0\0" + "é".encode() * 32),
        (pa.large_string(), "x", b"\x05x"),
        (pa.time64("us"), time(0, 0, 0, 2), b"\x44\x02\0\0\0\0\0\0\0"),
        (pa.timestamp("ns", "UTC"), 3, b"\x48\x03\0\0\0\0\0\0\0"),
        (pa.timestamp("ns"), 3, b"\x4c\x03\0\0\0\0\0\0\0"),
        (pa.binary(16), UUID(int=1).bytes, b"\x50" + bytes(15) + b"\x01"),
    ],
    ids=str,
)
def test_every_primitive_type_has_the_bytes_of_the_encoding(kind: pa.DataType, value: object, encoded: bytes) -> None:
    assert variants(kind, {"typed_value": value}, {"value": b"\x00"}, None) == [encoded, b"\x00", None]


def test_elements_of_an_array_may_each_be_in_another_part() -> None:
    tags = pa.list_(parts(pa.string()))
    assert variants(
        tags,
        {"typed_value": [{"typed_value": "comedy"}, {"typed_value": "drama"}]},
        None,
        {"typed_value": [{"typed_value": "horror"}, {"value": b"\x00"}, {}]},
        {"value": b"\x00"},
        {"typed_value": []},
    ) == [
        b"\x03\x02\x00\x07\x0d" + b"\x19comedy\x15drama",
        None,
        b"\x03\x03\x00\x07\x08\x09" + b"\x19horror" + b"\x00\x00",
        b"\x00",
        b"\x03\x00\x00",
    ]


OBJECT = pa.struct([("b", parts(pa.int8())), ("a", parts(pa.string()))])


@pytest.mark.parametrize(("metadata", "a", "b"), [(A_B, b"\x00", b"\x01"), (B_A, b"\x01", b"\x00")])
def test_an_object_has_the_fields_that_are_not_missing_in_the_order_of_their_names(
    metadata: bytes, a: bytes, b: bytes
) -> None:
    nothing: dict[str, bytes | None] = {"value": None, "typed_value": None}
    assert variants(
        OBJECT,
        {"typed_value": {"a": {"typed_value": "x"}, "b": {"typed_value": 5}}},
        {"typed_value": {"a": {"value": b"\x00"}, "b": nothing}},
        {"typed_value": {"a": nothing, "b": nothing}},
        {"value": b"\x09no"},
        {"value": b"\x00"},
        None,
        metadata=metadata,
    ) == [
        b"\x02\x02" + a + b + b"\x00\x02\x04" + b"\x05x" + b"\x0c\x05",
        b"\x02\x01" + a + b"\x00\x01" + b"\x00",
        b"\x02\x00\x00",
        b"\x09no",
        b"\x00",
        None,
    ]


def test_fields_that_are_not_shredded_are_joined_to_those_that_are() -> None:
    only_b = pa.struct([("b", parts(pa.int8()))])
    stored_backwards = b"\x02\x02\x00\x02" + b"\x01\x00\x03" + b"\x00" + b"\x0c\x07"
    a_b_c = b"\x01\x03\x00\x01\x02\x03abc"
    assert variants(
        only_b,
        {"value": stored_backwards, "typed_value": {"b": {"typed_value": 5}}},
        {"typed_value": {"b": {"typed_value": 6}}},
        {"value": b"\x02\x00\x00", "typed_value": {"b": {}}},
        metadata=a_b_c,
    ) == [
        b"\x02\x03\x00\x01\x02" + b"\x00\x02\x04\x05" + b"\x0c\x07" + b"\x0c\x05" + b"\x00",
        b"\x02\x01\x01\x00\x02" + b"\x0c\x06",
        b"\x02\x00\x00",
    ]


@pytest.mark.parametrize("count", [255, 256, 70_000])
def test_counts_and_offsets_have_as_many_bytes_as_they_need(count: int) -> None:
    (array,) = variants(pa.list_(parts(pa.int8())), {"typed_value": [{"typed_value": i % 100} for i in range(count)]})
    assert VariantVal(array or b"", EMPTY).toPython() == [i % 100 for i in range(count)]

    names = [f"k{i:05}" for i in range(min(count, 300))]
    ends = b"".join((i * 6).to_bytes(2, "little") for i in range(len(names) + 1))
    metadata = b"\x41" + len(names).to_bytes(2, "little") + ends + "".join(names).encode()
    fields = pa.struct([(name, parts(pa.string())) for name in names])
    texts = {name: name * (count // 100) for name in names}
    shredded = {"typed_value": {name: {"typed_value": text} for name, text in texts.items()}}
    (value,) = variants(fields, shredded, metadata=metadata)
    assert VariantVal(value or b"", metadata).toPython() == texts


A_AND_MORE = b"\x02\x02\x00\x01" + b"\x00\x01\x02" + b"\x00\x00"


@pytest.mark.parametrize(
    ("typed", "row", "why"),
    [
        (pa.int8(), {"value": b"\x00", "typed_value": 1}, "a value that is no object is in both"),
        (pa.list_(parts(None)), {"value": b"\x00", "typed_value": []}, "a value that is no object is in both"),
        (OBJECT, {"value": b"\x00", "typed_value": {"a": {}, "b": {}}}, "value is no object"),
        (OBJECT, {"value": b"", "typed_value": {"a": {}, "b": {}}}, "value is no object"),
        (OBJECT, {"value": A_AND_MORE, "typed_value": {"a": {}, "b": {}}}, "a field twice"),
        (OBJECT, {"value": A_AND_MORE[:-1], "typed_value": {"a": {}, "b": {}}}, "an object in value is cut off"),
        (OBJECT, {"value": b"\x02\xff", "typed_value": {"a": {}, "b": {}}}, "an object in value is cut off"),
        (OBJECT, {"value": b"\x02\x01\x07\x00\x01\x00", "typed_value": {"a": {}, "b": {}}}, "an id .* lacks"),
        (OBJECT, {"typed_value": {"a": {}, "b": None}}, "its field b is null"),
        (pa.struct([("c", parts(pa.int8()))]), {"typed_value": {"c": {"typed_value": 1}}}, "lacks the key c"),
        (pa.struct([("a", pa.int8())]), {"typed_value": {"a": 1}}, "its field a is no group"),
        (pa.struct([("a", pa.struct([("x", pa.int8())]))]), {"typed_value": {"a": {"x": 1}}}, "has the columns x"),
        (pa.list_(pa.int8()), {"typed_value": [1]}, "an element is no group"),
        (pa.list_(pa.struct([("metadata", pa.binary())])), {"typed_value": [{}]}, "has the columns metadata"),
        (pa.uint32(), {"typed_value": 1}, "values of type uint32, which no variant has"),
        (pa.decimal256(39, 2), {"typed_value": Decimal(1)}, r"values of type decimal256\(39, 2\)"),
        (pa.binary(4), {"typed_value": b"abcd"}, "values of type fixed_size_binary"),
        (pa.timestamp("ms"), {"typed_value": 1}, "values of type timestamp"),
        (pa.int8(), {"metadata": None, "typed_value": 1}, "a value has no metadata"),
        (OBJECT, {"metadata": b"\x02\x00\x00", "value": b"\x00"}, "its metadata is damaged, or of a version"),
        (OBJECT, {"metadata": b"\x01\x05\x00", "value": b"\x00"}, "its metadata is damaged"),
        (OBJECT, {"metadata": b"\x01\x01\x00\x09a", "value": b"\x00"}, "its metadata is damaged"),
    ],
)
def test_parts_that_contradict_each_other_or_the_specification_are_refused(
    typed: pa.DataType, row: dict[str, Any], why: str
) -> None:
    with pytest.raises(MalformedVariantError, match=why):
        variants(typed, row, metadata=A_B)


def test_the_parts_of_a_slice_are_those_of_its_rows() -> None:
    kind = pa.struct([("metadata", pa.binary()), *parts(pa.list_(parts(OBJECT)))])
    rows = [
        None
        if i % 4 == 3
        else {"metadata": A_B, "typed_value": [{"typed_value": {"a": {"typed_value": "x" * i}, "b": {}}}] * i}
        for i in range(9)
    ]
    whole = assembled(pa.array(rows, kind))
    assert assembled(pa.array(rows, kind).slice(3, 4)).to_pylist() == whole.slice(3, 4).to_pylist()
    assert assembled(pa.array([], kind)).to_pylist() == []


# --- by another mind: DuckDB shreds, and PySpark says what the bytes mean ---------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "ä", "a" * 70])
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=3) | st.just("long " * 20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
SHREDDINGS = [
    "",
    "VARCHAR",
    "STRUCT(a BIGINT, b VARCHAR)",
    "STRUCT(a STRUCT(a INTEGER, c VARCHAR[]), b BIGINT[])[]",
    "BIGINT[]",
]


def read(file: Path, column: str = "v") -> list[dict[str, bytes] | None]:
    plan = ReadPlan(schema=pa.schema([(column, VARIANT)]), batch_rows=7)
    return [row[column] for batch in read_batches(file, plan, FileColumns(path=file.name)) for row in batch.to_pylist()]


def test_a_time_of_an_old_type_that_lost_its_zone_is_refused_in_a_variant_and_read_beside_it(tmp_path: Path) -> None:
    wall = datetime(2020, 1, 1)  # noqa: DTZ001 (it has no zone)
    shredded = pa.StructArray.from_arrays([pa.array([EMPTY]), pa.array([wall])], names=["metadata", "typed_value"])
    plain = pa.array([{"metadata": EMPTY, "value": b"\x00"}], VARIANT)
    for name, column in (("shredded", shredded), ("plain", plain)):
        rows = pa.table({"v": column, "typed_value": pa.array([wall])})
        pq.write_table(rows, tmp_path / name, use_deprecated_int96_timestamps=True)

    assert read(tmp_path / "plain") == [{"metadata": EMPTY, "value": b"\x00"}]
    with pytest.raises(DataFileError, match=r"variant in column v .*: it has values of type INT96, which no variant"):
        read(tmp_path / "shredded")


def test_a_file_that_has_a_part_of_a_variant_twice_is_refused(tmp_path: Path) -> None:
    names = ["metadata", "value", "value"]
    twice = pa.StructArray.from_arrays([pa.array([text]) for text in (EMPTY, b"\x00", b"\x04")], names=names)
    pq.write_table(pa.table({"v": twice}), tmp_path / "part-0.parquet")
    with pytest.raises(DataFileError, match="it has the columns metadata, value, value"):
        read(tmp_path / "part-0.parquet")


@given(documents=st.lists(DOCUMENTS, min_size=1, max_size=20), shredding=st.sampled_from(SHREDDINGS))
def test_what_duckdb_shreds_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, documents: list[Any], shredding: str
) -> None:
    file = tmp_path_factory.mktemp("shredded") / "part-0.parquet"
    texts = pa.table({"n": range(len(documents)), "text": [json.dumps(document) for document in documents]})
    options = f", SHREDDING {{v: '{shredding}'}}" if shredding else ""
    with duckdb.connect() as duck:
        duck.register("texts", texts)
        rows = "SELECT text::JSON::VARIANT AS v FROM texts ORDER BY n"
        duck.execute(f"COPY ({rows}) TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE 2048{options})")
    # DuckDB has no variant null: one at the top becomes NULL.
    assert [
        None if row is None else VariantVal(row["value"], row["metadata"]).toPython() for row in read(file)
    ] == documents


# --- by the cases of apache/parquet-testing, of which the corpus may have a copy -------------------------------------


def test_the_cases_of_parquet_testing_are_read_byte_for_byte_or_refused(corpus: Path) -> None:
    folder = corpus / "parquet" / "shredded_variant"
    if not folder.is_dir():
        pytest.skip("the corpus has no parquet/shredded_variant of apache/parquet-testing")
    wrong = {}
    for case in json.loads((folder / "cases.json").read_text()):
        if "parquet_file" not in case:
            continue
        names = case.get("variant_files") or [case.get("variant_file")]
        # A file that breaks the specification may be read or refused, they say; we refuse it.
        may_fail = "error_message" in case or "INVALID" in case["parquet_file"]
        wanted = "refused" if may_fail else [name and (folder / name).read_bytes() for name in names]
        try:
            found: object = [
                row and row["metadata"] + row["value"] for row in read(folder / case["parquet_file"], "var")
            ]
        except DataFileError:
            found = "refused"
        if found != wanted:
            wrong[case["case_number"]] = (found, wanted)
    assert not wrong
