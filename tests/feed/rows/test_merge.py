"""`tablefeed.merge` on the local disk: clauses in their order, what matches, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from mmap import MAP_PRIVATE, mmap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablefeed
from feed.rows.test_apply_changes import a_target_with
from feed.rows.test_delete_and_update import FED, VECTORS, a_table, changes, every_table, rows, unnamed_files
from support.logs import change_actions, said
from tablefeed import Committed, Delete, Insert, Update
from tablefeed.errors import AppendOnlyError, IllegalOptionError, InvalidRowsError, SchemaMismatchError
from tablefeed.model.actions import Version

APPLIED = {"delta.feature.domainMetadata": "supported"}
UPSERT: dict[str, Any] = {"matched": [Update()], "not_matched": [Insert()]}


def source(*given: tuple[int | None, int, str | None]) -> pa.Table:
    ids, places, values = zip(*given, strict=True)
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "p": pa.array(places, pa.int64()), "v": pa.array(values, pa.string())}
    )


def values(url: str) -> dict[int, str | None]:
    found = rows(url)
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["v"] for row in found}


@every_table
@pytest.mark.parametrize("on", ["id", "target.id = source.id", "source.ID = target.id AND source.v IS NOT NULL"])
def test_rows_that_match_are_updated_and_others_are_inserted(
    tmp_path: Path, properties: Mapping[str, str], on: str
) -> None:
    url = a_table(tmp_path, properties)
    before = values(url)
    given = source((1, 1, "new"), (11, 0, "new"), (20, 7, "new"))
    tablefeed.merge(url, given, on=on if " " in on else [on], **UPSERT)
    assert values(url) == {**before, 1: "new", 11: "new", 20: "new"}
    assert not unnamed_files(url)


def test_the_first_clause_whose_condition_is_true_decides(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    tablefeed.merge(
        url,
        source((1, 0, "d"), (2, 0, "u"), (3, 0, "n"), (30, 0, "d"), (31, 0, "i")),
        on=["id"],
        matched=[
            Delete(where="source.v = 'd'"),
            Update(set={"v": "concat(target.v, source.v)"}, where="source.v = 'u'"),
        ],
        not_matched=[Insert(values={"id": "source.id", "p": "9"}, where="source.v <> 'd'")],
    )
    assert {key: value for key, value in values(url).items() if key in (1, 2, 3, 30, 31)} == {
        2: "v2u",
        3: "v3",
        31: None,
    }


def test_rows_of_the_table_that_the_source_does_not_have_go_or_change(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    tablefeed.merge(
        url,
        source((1, 0, "a"), (12, 0, "a")),
        on=["id"],
        not_matched_by_source=[Delete(where="target.id < 10"), Update(set={"v": "'gone'"})],
    )
    assert values(url) == {1: "v1", 10: "gone", 11: "gone", 12: None}


def test_minus_zero_is_the_key_zero(tmp_path: Path) -> None:
    url = str(tmp_path)
    tablefeed.append(url, pa.table({"k": [-0.0, 1.0], "v": ["a", "b"]}))
    tablefeed.merge(url, pa.table({"k": [0.0], "v": ["new"]}), on=["k"], **UPSERT)
    assert sorted(tablefeed.open_table(url).to_arrow()["v"].to_pylist()) == ["b", "new"]


def test_a_null_matches_nothing(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    tablefeed.merge(url, source((None, 0, "a")), on=["id"], matched=[Delete()])
    assert len(values(url)) == 13


def test_several_rows_for_one_row_of_the_table_are_refused_unless_it_is_deleted(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    twice = source((1, 0, "a"), (1, 0, "b"))
    for clauses in (
        UPSERT,
        {"matched": [Update(where="source.v = 'a'")]},
        {"matched": [Delete(where="source.v = 'x'")]},
    ):
        with pytest.raises(InvalidRowsError, match="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"):
            tablefeed.merge(url, twice, on=["id"], **clauses)
    tablefeed.merge(url, twice, on="target.id = source.id AND source.v = 'a'", matched=[Update()])
    assert values(url)[1] == "a"
    tablefeed.merge(url, twice, on=["id"], matched=[Delete()])
    assert 1 not in values(url)


@pytest.mark.parametrize("properties", [FED, {**VECTORS, **FED}], ids=["copies", "vectors"])
def test_the_change_feed_has_updates_inserts_and_deletes(tmp_path: Path, properties: Mapping[str, str]) -> None:
    url = a_table(tmp_path, properties)
    tablefeed.merge(
        url,
        source((1, 1, "new"), (2, 0, "d"), (20, 0, "new")),
        on=["id"],
        matched=[Delete(where="source.v = 'd'"), Update()],
        not_matched=[Insert()],
    )
    assert changes(url, 2) == [
        ("delete", 2, "v2"),
        ("insert", 20, "new"),
        ("update_postimage", 1, "new"),
        ("update_preimage", 1, "v1"),
    ]


def test_the_history_counts_what_became_of_rows(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    tablefeed.merge(
        url,
        source((1, 1, "new"), (2, 0, "d"), (4, 0, "d"), (20, 0, "new"), (30, 0, "none")),
        on=["id"],
        matched=[Delete(where="source.v = 'd'"), Update()],
        not_matched=[Insert(where="source.v = 'new'")],
    )
    (told,) = said(Path(url), 2, "commitInfo")
    assert told["operation"] == "MERGE"
    assert {name: count for name, count in told["operationMetrics"].items() if "Rows" in name} == {
        "numSourceRows": "5",
        "numTargetRowsInserted": "1",
        "numTargetRowsUpdated": "1",
        "numTargetRowsDeleted": "2",
        "numTargetRowsCopied": "0",
        "numOutputRows": "2",
    }


@pytest.mark.parametrize(
    "clauses", [{"matched": [Update(set={"x": "1"})]}, {"not_matched": [Insert(values={"id": "source.id"})]}]
)
def test_a_merge_gives_no_value_of_an_identity_column(tmp_path: Path, clauses: dict[str, Any]) -> None:
    marks = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    url = a_target_with(tmp_path, "identityColumns", {"name": "x", "metadata": marks})
    tablefeed.append(url, pa.table({"id": [1], "v": ["a"], "ts": [1]}))
    given = pa.table({"id": [1, 2], "v": ["b", "c"]})
    with pytest.raises(SchemaMismatchError, match=r"has identity columns \(x\), for which a merge gives no values"):
        tablefeed.merge(url, given, on=["id"], **clauses)
    tablefeed.merge(url, given, on=["id"], matched=[Update()])
    assert [(row["v"], row["x"]) for row in tablefeed.open_table(url).to_arrow().to_pylist()] == [("b", 1)]


def test_a_merge_that_changes_nothing_is_not_committed(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    outcome = tablefeed.merge(url, source((99, 0, "a")), on=["id"], matched=[Update()])
    assert outcome == Committed(version=Version(1), written=False)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"on": ["nope"]}, IllegalOptionError, "nope"),
        ({"on": "target.id > source.id"}, IllegalOptionError, "must compare"),
        ({"on": "id"}, IllegalOptionError, r"as a list, such as \['id'\]"),
        ({"on": "target.source.id = source.target.id"}, IllegalOptionError, "must compare"),
        ({"on": "target.id = source.id AND nope(1)"}, IllegalOptionError, "nope"),
        ({"matched": [Update(set={"x": "1"})]}, IllegalOptionError, "x"),
        ({"matched": (), "not_matched": ()}, IllegalOptionError, "MERGE_WITHOUT_WHEN"),
        ({"matched": [Delete(), Update()]}, IllegalOptionError, "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"),
        ({"matched": [Insert()]}, IllegalOptionError, "tablefeed.Update or tablefeed.Delete"),
        ({"matched": [Delete(where="source.nope = 1")]}, IllegalOptionError, "nope"),
        ({"not_matched": [Insert(values={"v": "target.v"})]}, IllegalOptionError, "target"),
        ({"not_matched": [Insert(where="1 / 0 = source.id")]}, InvalidRowsError, "1 / 0"),
    ],
)
def test_what_cannot_be_merged_is_refused_by_name(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    url = a_table(tmp_path)
    before = values(url)
    with pytest.raises(error, match=text):
        tablefeed.merge(url, source((1, 0, "a"), (50, 0, "b")), **{"on": ["id"], **UPSERT, **arguments})
    assert values(url) == before
    assert not unnamed_files(url)


def test_columns_that_the_table_lacks_are_refused_by_name(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    with pytest.raises(SchemaMismatchError, match="extra"):
        tablefeed.merge(url, source((1, 0, "a")).append_column("extra", [[1]]), on=["id"], **UPSERT)


def test_a_null_key_matches_no_row_and_hides_none(tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    many = list(range(100))
    tablefeed.append(url, pa.table({"id": [*many, None], "n": [0] * 101}), properties=VECTORS)
    tablefeed.append(url, pa.table({"id": [1000], "n": [0]}))
    given = pa.table({"id": [*many, 1000, None], "n": [1] * 102})
    tablefeed.merge(url, given, on=["id"], matched=[Update()], not_matched=[Insert()])
    found = tablefeed.open_table(url).to_arrow()
    nulls = found.filter(pc.is_null(found["id"]))["n"].to_pylist()
    assert (sorted(nulls), found.num_rows, pc.sum(found["n"]).as_py()) == ([0, 1], 103, 102)


@pytest.mark.parametrize(
    ("kind", "stored", "given"),
    [
        (pa.decimal128(10, 1), "1.3", pa.array(["1.25"]).cast(pa.decimal128(10, 2))),
        (pa.float32(), "0.1", pa.array([0.1])),
        (pa.date32(), "2024-01-01", pa.array(["2024-01-01 12:00:00"]).cast(pa.timestamp("us"))),
        (pa.int32(), "1", pa.array(["1.25"]).cast(pa.decimal128(10, 2))),
        (pa.int16(), "4464", pa.array([70_000])),
        (pa.int32(), "-1", pa.array(["4294967295"]).cast(pa.decimal128(10, 0))),
        (pa.decimal128(3, 1), "1.0", pa.array([1000])),
        (pa.float32(), "inf", pa.array([1e300])),
    ],
    ids=["decimals", "floats", "dates", "integers", "short", "int", "digits", "infinity"],
)
def test_a_key_that_the_type_of_the_table_does_not_hold_matches_no_row(
    tmp_path: Path, kind: pa.DataType, stored: str, given: pa.Array
) -> None:
    url = str(tmp_path / "table")
    tablefeed.append(url, pa.table({"id": pa.array([stored]).cast(kind), "v": ["old"]}))
    tablefeed.merge(url, pa.table({"id": given, "v": ["new"]}), on=["id"], matched=[Update(set={"v": "source.v"})])
    assert tablefeed.open_table(url).to_arrow()["v"].to_pylist() == ["old"]


def test_keys_of_other_types_match_where_they_are_equal(tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    stored = {"id": pa.array([1, 2], pa.int32()), "f": pa.array([0.5, float("nan")], pa.float32()), "v": ["a", "b"]}
    tablefeed.append(url, pa.table(stored))
    given = pa.table({"id": pa.array([1, 2], pa.int64()), "f": [0.5, float("nan")]})
    tablefeed.merge(url, given, on=["id", "f"], matched=[Update(set={"v": "'new'"})])
    assert tablefeed.open_table(url).to_arrow()["v"].to_pylist() == ["new", "new"]


@pytest.mark.parametrize(
    ("stored", "given"), [([1], [1.0]), (["1"], [1]), ([{"a": 1}], [{"a": 1}]), ([[1]], [[1]])], ids=str
)
def test_keys_that_cannot_be_compared_are_refused_by_name(tmp_path: Path, stored: list[Any], given: list[Any]) -> None:
    url = str(tmp_path / "table")
    tablefeed.append(url, pa.table({"id": stored}))
    with pytest.raises(IllegalOptionError, match="cast the source's column"):
        tablefeed.merge(url, pa.table({"id": given}), on=["id"], matched=[Delete()])


def test_a_merge_that_only_inserts_takes_several_rows_that_match_one(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    tablefeed.merge(url, source((1, 1, "a"), (1, 1, "b"), (20, 0, "new")), on=["id"], not_matched=[Insert()])
    assert (values(url)[1], values(url)[20]) == ("v1", "new")


def test_a_name_with_a_backtick_is_a_name(tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    tablefeed.append(url, pa.table({"id": [1], "a`b": ["old"]}))
    tablefeed.merge(url, pa.table({"id": [1], "a`b": ["new"]}), on=["id"], matched=[Update()])
    assert tablefeed.open_table(url).to_arrow()["a`b"].to_pylist() == ["new"]


def test_a_column_of_variants_is_copied_and_no_expression_names_it(tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    parts = [pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
    five = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}
    tablefeed.append(
        url,
        pa.table({"id": [1], "s": pa.array([five], pa.struct(parts))}),
        properties={"delta.feature.variantType": "supported"},
    )
    schema = json.loads(said(Path(url), 0, "metaData")[0]["schemaString"])
    schema["fields"][1]["type"] = "variant"
    variant = {"schemaString": json.dumps(schema)}
    change_actions(url, 0, lambda action: action.get("metaData", {}).update(variant))
    given = pa.table({"id": [1]})
    tablefeed.merge(url, given, on=["id"], matched=[Update(set={"id": "target.id + 30"})])
    assert tablefeed.open_table(url).to_arrow().to_pylist() == [{"id": 31, "s": five}]
    with pytest.raises(IllegalOptionError, match=r"target\.s"):
        tablefeed.merge(url, pa.table({"id": [31]}), on=["id"], matched=[Delete(where="target.s IS NULL")])


APPEND_ONLY = {"delta.appendOnly": "true"}


@pytest.mark.parametrize(
    "clauses",
    [{"not_matched": [Insert()]}, {"matched": [Update(where="target.id > 100")], "not_matched": [Insert()]}],
    ids=["only inserts", "updates no row"],
)
def test_a_merge_that_takes_no_row_is_committed_to_an_append_only_table(
    tmp_path: Path, clauses: dict[str, Any]
) -> None:
    """As in Delta-Spark, whose commit refuses removed files and no operation by its name."""
    url = a_table(tmp_path, APPEND_ONLY)
    tablefeed.merge(url, source((1, 1, "no"), (20, 0, "new")), on=["id"], **clauses)
    assert (values(url)[1], values(url)[20]) == ("v1", "new")


@every_table
def test_a_merge_that_takes_a_row_of_an_append_only_table_is_refused_and_leaves_no_file(
    tmp_path: Path, properties: Mapping[str, str]
) -> None:
    url = a_table(tmp_path, {**properties, **APPEND_ONLY})
    for matched in (Update(), Delete()):
        with pytest.raises(AppendOnlyError):
            tablefeed.merge(
                url, source((1, 1, "no"), (20, 0, "new")), on=["id"], matched=[matched], not_matched=[Insert()]
            )
    assert 20 not in values(url)
    assert not unnamed_files(url)


def by_id(url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tablefeed.open_table(url).to_arrow().sort_by("id").to_pylist()
    return found


PLACE = pa.struct([pa.field("city", pa.string(), nullable=False, metadata={"comment": "where"}), ("zip", pa.int32())])


@pytest.mark.parametrize("properties", [{}, {"delta.columnMapping.mode": "name"}])
def test_a_nested_column_takes_values_whose_members_have_the_same_types_and_names(
    tmp_path: Path, properties: Mapping[str, str]
) -> None:
    """The table's members are mapped, commented or NOT NULL, and those of the source are not."""
    url = str(tmp_path / "t")
    tablefeed.create(url, pa.schema([("id", pa.int64()), ("place", PLACE)]), properties=properties)
    given: list[dict[str, Any]] = [
        {"id": 1, "place": {"city": "Ulm", "zip": 89073}},
        {"id": 2, "place": {"city": "Bonn", "zip": None}},
    ]
    plain = pa.struct([("city", pa.string()), ("zip", pa.int32())])
    tablefeed.merge(
        url, pa.table({"id": [1, 2], "place": pa.array([g["place"] for g in given], plain)}), on=["id"], **UPSERT
    )
    tablefeed.update(url, {"place": "place", "id": "id + 10"})
    assert by_id(url) == [{**row, "id": row["id"] + 10} for row in given]
    nobody = pa.table({"id": [11], "place": pa.array([{"city": None, "zip": 1}], plain)})
    with pytest.raises(InvalidRowsError, match=r"place\.city"):
        tablefeed.merge(url, nobody, on=["id"], **UPSERT)


def test_a_source_may_have_lists_in_each_of_arrows_forms(tmp_path: Path) -> None:
    lists = [[1], [2], [3, 4]]
    for number, kind in enumerate((pa.list_, pa.large_list, pa.list_view, pa.large_list_view)):
        url = str(tmp_path / f"t{number}")
        tablefeed.append(url, pa.table({"id": [1], "v": [[0]]}))
        source = pa.table({"id": [1, 2, 3], "v": pa.array(lists, kind(pa.int64()))})
        tablefeed.merge(url, source, on=["id"], **UPSERT)
        assert [row["v"] for row in by_id(url)] == lists


def test_a_source_may_have_a_dictionary_of_views(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    tablefeed.append(url, pa.table({"id": [1], "v": ["a"]}))
    views = pa.DictionaryArray.from_arrays([1, 0], pa.array(["b", None], pa.string_view()))
    tablefeed.merge(url, pa.table({"id": [1, 2], "v": views}), on=["id"], **UPSERT)
    assert by_id(url) == [{"id": 1, "v": None}, {"id": 2, "v": "b"}]


def texts(count: int, size: int) -> pa.Array:
    """Texts of so many NUL characters, which take no memory until they are copied."""
    ends, zeros = pa.array(range(0, (count + 1) * size, size), pa.int64()), mmap(-1, count * size, MAP_PRIVATE)
    return pa.LargeStringArray.from_buffers(count, ends.buffers()[1], pa.py_buffer(zeros))


def test_more_texts_than_arrow_has_in_a_column_are_refused_and_a_slice_of_them_is_not(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    tablefeed.create(url, pa.schema({"id": pa.int64(), "v": pa.string()}), properties=APPLIED)
    whole = pa.table({"id": range(2_060), "v": texts(2_060, 1 << 20)})
    parts = whole.slice(0, 1_030), pa.table({"id": range(1_030, 2_060), "v": texts(1_030, 1 << 20)})
    many = pa.concat_tables([part.cast(pa.schema({"id": pa.int64(), "v": pa.string()})) for part in parts])
    with pytest.raises(InvalidRowsError, match=f"rows for {url}, or its .* 2 GiB of texts .* fewer rows at a time"):
        tablefeed.merge(url, many, on=["id"], **UPSERT)
    with pytest.raises(InvalidRowsError, match="2 GiB of texts"):
        tablefeed.apply_changes(url, many, keys="id", sequence_by="id")
    assert not unnamed_files(url)
    tablefeed.merge(url, whole.slice(2_058), on=["id"], **UPSERT)
    assert by_id(url) == [{"id": number, "v": "\0" * (1 << 20)} for number in (2_058, 2_059)]


def test_a_text_that_is_not_utf8_is_refused_where_sql_needs_its_characters(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    tablefeed.append(url, pa.table({"id": [1], "v": broken}))
    for sql in ("upper({})", "trim({})"):
        with pytest.raises(InvalidRowsError, match="to merge"):
            tablefeed.merge(url, pa.table({"id": [1]}), on=["id"], matched=[Update(set={"v": sql.format("target.v")})])
        with pytest.raises(InvalidRowsError, match="to update"):
            tablefeed.update(url, {"v": sql.format("v")})
    tablefeed.delete(url, "id = 1")
    assert by_id(url) == []


@pytest.mark.parametrize(
    ("kind", "bits"), [(pa.date32(), 31), (pa.timestamp("us", "UTC"), 63)], ids=["date", "timestamp"]
)
def test_the_first_and_last_days_and_moments_stay_as_they_are_in_a_merge(
    tmp_path: Path, kind: pa.DataType, bits: int
) -> None:
    """For DuckDB, which evaluates the SQL, they are infinite or do not exist."""
    storage = pa.int32() if bits == 31 else pa.int64()
    numbers = [-(2**bits), -(2**bits) + 1, 2**bits - 2, 2**bits - 1]
    times = pa.array(numbers, storage).cast(kind)
    count = pa.array(range(5), pa.int32())
    given = pa.table(
        {
            "id": [1, 2, 3, 4],
            "at": times,
            "member": pa.StructArray.from_arrays([times], ["at"]),
            "list": pa.ListArray.from_arrays(count, times),
            "map": pa.MapArray.from_arrays(count, pa.array(["a"] * 4), times),
        }
    )
    url = str(tmp_path / "t")
    tablefeed.append(url, given.slice(0, 2))
    tablefeed.merge(url, given, on=["id"], **UPSERT)
    copied = {name: f"target.{name}" for name in given.column_names if name != "id"}
    tablefeed.merge(url, given.select(["id"]), on=["id"], matched=[Update(set={"id": "target.id + 10", **copied})])
    found = tablefeed.open_table(url).to_arrow().sort_by("id").combine_chunks()
    assert found["id"].to_pylist() == [11, 12, 13, 14]
    parts = [found["at"], pc.struct_field(found["member"], "at"), pc.list_flatten(found["list"])]
    for part in (*parts, *(chunk.items for chunk in found["map"].chunks)):
        assert part.cast(storage).to_pylist() == numbers
