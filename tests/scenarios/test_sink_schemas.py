"""A stream whose columns are not the table's (SchemaEnforcementSuite's streams, CaseSensitivitySuite)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from scenarios.sinks import rows_of, save, stream_into, told_by, types_of
from tablefeed.errors import SchemaMismatchError


def longs(*names: str, values: tuple[int, ...] = (1,)) -> pa.Table:
    return pa.table([pa.array(values, pa.int64())] * len(names), names=list(names))


@pytest.mark.parametrize("options", [{}, {"mergeSchema": "false"}], ids=["by-default", "false"])
def test_a_new_column_is_refused_unless_it_is_asked_for(table: Path, options: dict[str, str]) -> None:
    save(table, longs("id"))

    with pytest.raises(SchemaMismatchError, match="option mergeSchema=true") as caught:
        stream_into(table, **options).write(longs("value1234"))

    assert caught.value.error_class == "DELTA_METADATA_MISMATCH"
    assert (types_of(table), rows_of(table)) == ({"id": "int64"}, [1])


def test_a_new_column_is_added_with_the_option(table: Path) -> None:
    save(table, longs("id"))

    stream_into(table, mergeSchema="true").write(longs("value1234", values=(7,)))

    assert types_of(table) == {"id": "int64", "value1234": "int64"}
    assert rows_of(table) == [(None, 7), (1, None)]


VOID_MEMBER = pa.StructArray.from_arrays([pa.nulls(1)], names=["a"])


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("void", [pa.nulls(1), VOID_MEMBER], ids=["column", "member"])
def test_columns_and_members_without_a_type_are_refused(table: Path, void: pa.Array, *, exists: bool) -> None:
    if exists:
        save(table, pa.table({"key": ["abc"]}))

    with pytest.raises(SchemaMismatchError) as caught:
        stream_into(table, mergeSchema="true").write(pa.table({"key": ["abc"], "id": void}))

    assert caught.value.error_class == "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE"
    assert table.exists() == exists


def counted(*counts: tuple[int, int], **more: str) -> pa.Table:
    columns = {"part": [part for part, _ in counts], "count": [count for _, count in counts]}
    return pa.table(columns | {name: [text] * len(counts) for name, text in more.items()})


def test_complete_mode_with_a_new_schema_is_refused_by_default(table: Path) -> None:
    query = stream_into(table)
    query.write(counted((1, 1)), complete=True)

    with pytest.raises(SchemaMismatchError) as caught:
        query.write(counted((1, 1), (2, 1), test="abc"), complete=True)

    assert caught.value.error_class == "DELTA_METADATA_MISMATCH"
    assert (types_of(table), rows_of(table)) == ({"part": "int64", "count": "int64"}, [(1, 1)])


@pytest.mark.parametrize("option", ["overwriteSchema", "mergeSchema"])
def test_complete_mode_changes_the_schema_with_an_option_and_says_so_once(table: Path, option: str) -> None:
    query = stream_into(table, **{option: "true"})
    query.write(counted((1, 1)), complete=True)
    assert types_of(table) == {"part": "int64", "count": "int64"}

    query.write(counted((1, 1), (2, 1), test="abc"), complete=True)
    query.write(counted((0, 1), (1, 1), (2, 1), test="abc"), complete=True)

    assert types_of(table) == {"part": "int64", "count": "int64", "test": "string"}
    assert rows_of(table) == [(0, 1, "abc"), (1, 1, "abc"), (2, 1, "abc")]
    commits = [commit.read_text() for commit in sorted((table / "_delta_log").glob("*.json"))]
    assert ['"metaData"' in commit for commit in commits] == [True, True, False]


# --- case ------------------------------------------------------------------------------------------------------------


def write_by_foo(table: Path, rows: pa.Table, *, is_stream: bool) -> None:
    if is_stream:
        stream_into(table, partitionBy="foo").write(rows)
    else:
        save(table, rows, partitionBy="foo")


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "batch"])
def test_a_partition_column_has_the_spelling_of_the_rows_column(table: Path, *, is_stream: bool) -> None:
    write_by_foo(table, pa.table({"Foo": [1], "Bar": [0]}), is_stream=is_stream)

    opened = tablefeed.open_table(table)
    assert rows_of(table) == [(1, 0)]
    assert opened.partition_columns == ("Foo",)
    assert [dict(values) for batch in opened.files() for values in batch["partition_values"].to_pylist()] == [
        {"Foo": "1"}
    ]


@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "batch"])
def test_two_columns_that_differ_in_case_only_make_no_table(table: Path, *, is_stream: bool) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        write_by_foo(table, longs("Foo", "foo"), is_stream=is_stream)

    assert caught.value.error_class == "DELTA_DUPLICATE_COLUMNS_FOUND"
    assert not table.exists()


def test_columns_meet_in_any_case_and_keep_the_spelling_of_the_table(table: Path) -> None:
    query = stream_into(table)
    query.write(longs("Foo", "Bar", values=(0,)))
    query.write(pa.table({"foo": [1], "Bar": [2]}))

    assert rows_of(table) == [(0, 0), (1, 2)]
    assert list(types_of(table)) == ["Foo", "Bar"]


def test_batch_writes_meet_columns_in_any_case_and_order(table: Path) -> None:
    save(table, pa.table({"foo": [0], "bar": [0]}))
    save(table, pa.table({"Foo": [1], "bar": [0]}))
    save(table, pa.table({"bAr": [0], "Foo": [2]}))

    assert rows_of(table) == [(0, 0), (1, 0), (2, 0)]
    assert list(types_of(table)) == ["foo", "bar"]


def test_replace_where_names_columns_in_any_case(table: Path) -> None:
    save(table, pa.table({"Key": [1, 2], "val": ["a", "b"]}), partitionBy="key")

    save(table, pa.table({"Key": [2], "val": ["c"]}), mode="overwrite", replaceWhere="key = 2")

    assert rows_of(table) == [(1, "a"), (2, "c")]
    assert told_by(table)["operationParameters"]["predicate"] == "key = 2"
