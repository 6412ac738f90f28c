"""Which columns have statistics: by the table's properties, and by what it is clustered by whatever those say."""

from __future__ import annotations

import pytest

from tablefeed.delta.properties import TableProperties, column_names
from tablefeed.delta.stats.indexed_columns import check_indexed, statistics_shape
from tablefeed.delta.stats.stats_text import StatisticsShape
from tablefeed.errors import SchemaMismatchError
from tablefeed.model.actions import Protocol
from tablefeed.model.schema import Array, DataType, Decimal, Field, Primitive, Struct
from tablefeed.model.statistics import LeafPath

INTS = Array(Primitive("integer"), contains_null=True)
PLAIN = Protocol(min_reader_version=1, min_writer_version=2)


def a_field(name: str, kind: DataType) -> Field:
    return Field(name, kind, nullable=True, metadata={"delta.columnMapping.physicalName": f"col-{name}"})


def of(**kinds: DataType | str) -> Struct:
    return Struct(tuple(a_field(n, Primitive(k) if isinstance(k, str) else k) for n, k in kinds.items()))


TABLE = of(
    id="long",
    flag="boolean",
    St=of(x="integer", deep=of(ys=INTS, d=Decimal(4, 2))),
    nothing="void",
    p="date",
    s="string",
)


def shape(
    properties: dict[str, str], *, also: tuple[LeafPath, ...] = (), protocol: Protocol = PLAIN, schema: Struct = TABLE
) -> StatisticsShape:
    return statistics_shape(schema, TableProperties(properties), protocol, partition_columns=("p",), also=also)


def leaves(*, also: tuple[LeafPath, ...] = (), **properties: str) -> list[str]:
    found = shape({f"delta.{name}": value for name, value in properties.items()}, also=also)
    return [".".join(path) for path in found.leaves]


EVERY = ["id", "flag", "St.x", "St.deep.ys", "St.deep.d", "nothing", "s"]


def test_the_first_32_leaves_have_statistics_without_the_partition_columns() -> None:
    assert leaves() == EVERY
    wide = of(**{f"c{number}": "long" for number in range(40)})
    assert shape({}, schema=wide).leaves == tuple((f"c{number}",) for number in range(32))


def test_those_with_an_order_have_bounds() -> None:
    assert shape({}).bounded == (("id",), ("St", "x"), ("St", "deep", "d"), ("s",))


@pytest.mark.parametrize(
    ("text", "expected"), [("3", EVERY[:3]), ("+3", EVERY[:3]), ("0", []), ("-1", EVERY), ("many", EVERY)]
)
def test_the_table_says_how_many_leaves_have_statistics(text: str, expected: list[str]) -> None:
    assert leaves(dataSkippingNumIndexedCols=text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("S, ID", ["id", "s"]),
        ("st", ["St.x", "St.deep.ys", "St.deep.d"]),
        ("st.deep", ["St.deep.ys", "St.deep.d"]),
        ("`st` . `deep`.`d` ,id", ["id", "St.deep.d"]),
        ("st, st.x", ["St.x"]),
        ("st.x.y, gone, p", []),
        ("", []),
    ],
)
def test_the_columns_that_the_table_names_have_statistics_and_their_number_is_of_no_account(
    text: str, expected: list[str]
) -> None:
    assert leaves(dataSkippingStatsColumns=text, dataSkippingNumIndexedCols="1") == expected


def test_clustering_columns_have_statistics_whatever_the_properties_say() -> None:
    assert leaves(dataSkippingNumIndexedCols="1", also=(("s",), ("St", "x"))) == ["id", "St.x", "s"]
    assert leaves(dataSkippingStatsColumns="id", also=(("s",),)) == ["id", "s"]


def test_the_leaves_of_a_mapped_table_are_named_logically_and_told_physically() -> None:
    mapped = {"delta.columnMapping.mode": "name", "delta.dataSkippingStatsColumns": "st.deep.d"}
    assert shape(mapped, also=(("col-s",),)).leaves == (("col-St", "col-deep", "col-d"), ("col-s",))


def test_bounds_are_told_to_be_tight_where_the_table_supports_deletion_vectors() -> None:
    vectors = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=frozenset({"deletionVectors"}),
        writer_features=frozenset({"deletionVectors"}),
    )
    assert shape({}, protocol=vectors).tells_tightness
    assert not shape({"delta.enableDeletionVectors": "true"}).tells_tightness


def test_texts_are_kept_to_the_length_that_the_table_says() -> None:
    lengths = [shape({"delta.dataSkippingStringPrefixLength": text}).prefix_length for text in ("7", "0", "x")]
    assert [*lengths, shape({}).prefix_length] == [7, 0, 32, 32]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", []),
        (" a , b.c ", [["a"], ["b", "c"]]),
        ("`a.b`,`c,d`.`e``f`", [["a.b"], ["c,d", "e`f"]]),
        ("ü_1", [["ü_1"]]),
        *((text, None) for text in (",", "a,", "a,,b", ".a", "a.", "a b", "a-b", "`a", "`a`b", "``")),
    ],
)
def test_a_list_of_columns_is_read_as_spark_reads_it(text: str, parts: list[list[str]] | None) -> None:
    assert column_names(text) == parts


@pytest.mark.parametrize(
    ("text", "error_class"),
    [
        ("P", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN"),
        ("flag", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"),
        ("nothing", "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE"),
        ("st.y", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("id.x", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("id, id", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
        ("st.deep, st.deep.d", "DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS"),
    ],
)
def test_what_can_have_no_statistics_is_refused_by_name(text: str, error_class: str) -> None:
    with pytest.raises(SchemaMismatchError) as refused:
        check_indexed(TableProperties({"delta.dataSkippingStatsColumns": text}), TABLE, ("p",))
    assert refused.value.error_class == error_class


@pytest.mark.parametrize("text", ["", "id, s", "id, ID", "st", "st.deep.ys"])
def test_columns_in_any_case_are_taken_and_members_of_a_struct_need_no_order(text: str) -> None:
    check_indexed(TableProperties({"delta.dataSkippingStatsColumns": text}), TABLE, ("p",))
