"""Variants that a write brings: kept as variants, whole and at every depth, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablefeed
from support.logs import protocol, said
from tablefeed.errors import InvalidRowsError, SchemaMismatchError, UnsupportedFeatureError

PARTS = [
    pa.field("value", pa.binary(), nullable=False),
    pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"}),
]
VARIANT = pa.struct(PARTS)
"""As PySpark has a variant in Arrow; a struct that is none has the same members without the mark."""
UNMARKED = pa.struct([field.remove_metadata() for field in PARTS])


def number(n: int) -> dict[str, bytes]:
    return {"value": b"\x0c" + bytes([n]), "metadata": b"\x01\x00\x00"}


def types(table: Path) -> dict[str, Any]:
    return {f["name"]: f["type"] for f in json.loads(tablefeed.open_table(table).metadata.schema_string)["fields"]}


NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("v", VARIANT),
        ("s", pa.struct([("v", VARIANT), ("n", pa.int64())])),
        ("l", pa.list_(VARIANT)),
        ("m", pa.map_(pa.string(), VARIANT)),
    ]
)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "v": number(1), "s": {"v": number(2), "n": 3}, "l": [number(4), None], "m": [("k", number(5))]},
    {"id": 2, "v": None, "s": {"v": None, "n": 3}, "l": [], "m": [("k", None)]},
    {"id": 3, "v": None, "s": None, "l": None, "m": None},
]


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_variants_are_written_as_such_and_read_back_as_they_were(tmp_path: Path, mapping: str) -> None:
    rows = pa.Table.from_pylist(ROWS, NESTED)
    tablefeed.append(tmp_path / "a", rows, properties={"delta.columnMapping.mode": mapping})

    there = tablefeed.open_table(tmp_path / "a").to_arrow()
    tablefeed.append(tmp_path / "b", there, properties={"delta.columnMapping.mode": mapping})

    assert types(tmp_path / "a")["v"] == "variant"
    assert there.to_pylist() == ROWS
    assert types(tmp_path / "b") == types(tmp_path / "a") if mapping == "none" else types(tmp_path / "b")["v"]
    assert tablefeed.open_table(tmp_path / "b").to_arrow().to_pylist() == ROWS


def test_files_hold_the_two_parts_of_a_variant_and_statistics_its_nulls_alone(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.Table.from_pylist(ROWS, NESTED))

    (file,) = tmp_path.glob("*.parquet")
    group = pq.ParquetFile(file).schema_arrow.field("v").type
    assert [(field.name, field.type) for field in group] == [("metadata", pa.binary()), ("value", pa.binary())]
    stats = json.loads(said(tmp_path, 0, "add")[0]["stats"])
    assert stats["nullCount"] == {"id": 0, "v": 2, "s": {"v": 2, "n": 1}, "l": 1, "m": 1}
    assert (stats["minValues"], stats["maxValues"]) == ({"id": 1, "s": {"n": 3}}, {"id": 3, "s": {"n": 3}})


def test_a_table_that_is_made_for_variants_has_their_feature(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"v": pa.array([number(1)], VARIANT)}))

    features = {"readerFeatures": ["variantType"], "writerFeatures": ["appendOnly", "invariants", "variantType"]}
    assert said(tmp_path, 0, "protocol") == [protocol(3, 7, **features)["protocol"]]


@pytest.mark.parametrize("how", [{"merge_schema": True}, {"mode": "overwrite", "overwrite_schema": True}], ids=str)
def test_a_table_that_gets_its_first_variant_gets_the_feature_in_the_same_commit(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    tablefeed.append(tmp_path, pa.table({"id": [2], "v": pa.array([number(2)], VARIANT)}), **how)
    tablefeed.append(tmp_path, pa.table({"id": [3], "v": pa.array([number(3)], VARIANT)}))

    assert said(tmp_path, 1, "protocol")[0]["readerFeatures"] == ["variantType"]
    assert said(tmp_path, 2, "protocol") == []
    assert tablefeed.open_table(tmp_path).protocol.min_writer_version == 7
    rows = tablefeed.open_table(tmp_path).to_arrow().sort_by("id").to_pylist()
    assert rows[-2:] == [{"id": 2, "v": number(2)}, {"id": 3, "v": number(3)}]


def test_a_struct_with_the_members_of_a_variant_is_a_struct(tmp_path: Path) -> None:
    for order in (UNMARKED, pa.struct([UNMARKED.field("metadata"), UNMARKED.field("value")])):
        tablefeed.append(tmp_path / str(order), pa.table({"s": pa.array([number(1)], order)}))
        assert types(tmp_path / str(order))["s"]["type"] == "struct"


@pytest.mark.parametrize(
    ("there", "rows"),
    [(VARIANT, UNMARKED), (UNMARKED, VARIANT), (VARIANT, pa.string()), (pa.string(), VARIANT)],
    ids=["a struct", "of a struct", "a text", "of a text"],
)
def test_a_variant_is_stored_in_columns_of_variants_alone_and_nothing_else_in_them(
    tmp_path: Path, there: pa.DataType, rows: pa.DataType
) -> None:
    tablefeed.append(tmp_path, pa.table({"v": pa.array([None], there)}))

    with pytest.raises(SchemaMismatchError, match=r"DELTA_FAILED_TO_MERGE_FIELDS.*Column 'v' of"):
        tablefeed.append(tmp_path, pa.table({"v": pa.array([None], rows)}), merge_schema=True)

    assert tablefeed.open_table(tmp_path).version == 0


def test_no_table_is_partitioned_or_clustered_by_a_variant(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "v": pa.array([number(1)], VARIANT)})
    with pytest.raises(SchemaMismatchError, match="DELTA_INVALID_PARTITION_COLUMN_TYPE"):
        tablefeed.append(tmp_path / "t", rows, partition_by="v")
    with pytest.raises(tablefeed.errors.OptionError, match="v"):
        tablefeed.append(tmp_path / "t", rows, cluster_by="v")
    assert not (tmp_path / "t").exists()


def test_no_indextables_table_takes_a_variant(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "v": pa.array([[number(1)]], pa.list_(VARIANT))})
    with pytest.raises(UnsupportedFeatureError, match="column v is or has a variant"):
        tablefeed.append(tmp_path / "t", rows, table_format="indextables")
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("typed", [None, pa.int8()], ids=str)
def test_a_variant_of_the_rows_that_has_no_value_is_refused(tmp_path: Path, typed: pa.DataType | None) -> None:
    parts = [PARTS[0].with_nullable(True), PARTS[1], *([] if typed is None else [pa.field("typed_value", typed)])]  # noqa: FBT003  # Arrow's words
    rows = pa.table({"v": pa.array([number(1), {"metadata": b"\x01\x00\x00"}, None], pa.struct(parts))})

    with pytest.raises(InvalidRowsError, match=r"NOT NULL constraint violated for column: v\.value"):
        tablefeed.append(tmp_path, rows)

    tablefeed.append(tmp_path, rows.take([0, 2]))
    assert tablefeed.open_table(tmp_path).to_arrow()["v"].to_pylist() == [number(1), None]


@pytest.mark.parametrize("mark", ["geometry", "geography"])
def test_a_place_is_refused_by_name(tmp_path: Path, mark: str) -> None:
    wkb = pa.field("wkb", pa.binary(), nullable=False, metadata={mark: "true", "srid": "4326"})
    place = pa.struct([pa.field("srid", pa.int32(), nullable=False), wkb])

    named = f"DELTA_UNSUPPORTED_DATA_TYPES.*Column p.element of the rows .* is a {mark}, "
    with pytest.raises(SchemaMismatchError, match=named):
        tablefeed.append(tmp_path / "t", pa.table({"p": pa.array([[]], pa.list_(place))}))


def test_what_rewrites_rows_keeps_their_variants(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist(ROWS, NESTED)
    for row in range(3):
        tablefeed.append(tmp_path, rows.slice(row, 1), properties={"delta.enableChangeDataFeed": "true"})

    tablefeed.optimize(tmp_path)
    tablefeed.append(tmp_path, rows.slice(1, 1), mode="overwrite", replace_where="id = 2")

    now = tablefeed.open_table(tmp_path)
    assert now.to_arrow().sort_by("id").to_pylist() == ROWS
    changed = tablefeed.changes(tmp_path, start_version=now.version).read_all().to_pylist()
    assert {(row["id"], row["_change_type"]) for row in changed} == {(2, "delete"), (2, "insert")}
    assert [row["m"] for row in changed] == [[("k", None)]] * 2


FED = {"delta.enableChangeDataFeed": "true"}
NOTHING: dict[str, Any] = {"v": None, "s": None, "l": None, "m": None}


def test_rows_without_the_columns_of_variants_get_nulls(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.Table.from_pylist(ROWS[:1], NESTED), properties=FED)

    tablefeed.append(tmp_path, pa.table({"id": [4]}))
    lacks_a_member = pa.table({"id": [5], "s": pa.array([{"n": 7}], pa.struct([("n", pa.int64())]))})
    tablefeed.append(tmp_path, lacks_a_member)
    new = tablefeed.Insert(values={"id": "source.id"})
    tablefeed.merge(tmp_path, pa.table({"id": [6]}), on=["id"], not_matched=[tablefeed.Insert()])
    tablefeed.merge(tmp_path, pa.table({"id": [7]}), on=["id"], matched=[tablefeed.Delete()], not_matched=[new])

    assert tablefeed.open_table(tmp_path).to_arrow().sort_by("id").to_pylist() == [
        ROWS[0],
        {"id": 4, **NOTHING},
        {"id": 5, **NOTHING, "s": {"v": None, "n": 7}},
        {"id": 6, **NOTHING},
        {"id": 7, **NOTHING},
    ]


@pytest.mark.parametrize("properties", [FED, {**FED, "delta.enableDeletionVectors": "true"}], ids=["copies", "vectors"])
def test_rows_of_files_from_before_their_variants_are_copied_and_recorded(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1, 2, 3]}), properties=properties)
    tablefeed.append(tmp_path, pa.Table.from_pylist([{**ROWS[0], "id": 4}], NESTED), merge_schema=True)

    tablefeed.delete(tmp_path, "id = 1")
    tablefeed.update(tmp_path, {"id": "20"}, "id = 2")
    tablefeed.optimize(tmp_path)

    rows = tablefeed.open_table(tmp_path).to_arrow().sort_by("id").to_pylist()
    assert rows == [{"id": 3, **NOTHING}, {**ROWS[0], "id": 4}, {"id": 20, **NOTHING}]
    feed = tablefeed.changes(tmp_path, start_version=2).read_all().to_pylist()
    changed = [(row["_change_type"], row["id"], row["v"]) for row in feed]
    assert sorted(changed) == [("delete", 1, None), ("update_postimage", 20, None), ("update_preimage", 2, None)]
