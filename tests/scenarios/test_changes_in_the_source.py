"""Commits that delete or rewrite rows, under each option that says what becomes of them.

DeltaSourceSuite's combinations of options, and DeltaSourceDeletionVectorsSuite, whose deletes keep the file and add a
deletion vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from scenarios.streams import append, commit, grown, stream
from support.logs import add, metadata, protocol
from support.recorded import VECTORS, data_file, recorded, removed, schema, vector
from tablefeed.errors import ChangeRefusedError

IGNORE_DELETES = {"ignoreDeletes": "true"}
IGNORE_CHANGES = {"ignoreChanges": "true"}
IGNORE_FILE_DELETION = {"ignoreFileDeletion": "true"}
SKIP = {"skipChangeCommits": "true"}
CHANGED = "DELTA_SOURCE_TABLE_IGNORE_CHANGES"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


# --- every combination of options ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "after_overwrite"),
    [
        (IGNORE_DELETES, None),
        (SKIP, [9, 10]),
        (IGNORE_CHANGES, [6, 7, 8, 9, 10]),
        (IGNORE_FILE_DELETION, [6, 7, 8, 9, 10]),
        (IGNORE_DELETES | IGNORE_CHANGES, [6, 7, 8, 9, 10]),
        (IGNORE_CHANGES | SKIP, [9, 10]),
        (IGNORE_DELETES | SKIP, [9, 10]),
        (IGNORE_DELETES | IGNORE_CHANGES | SKIP, [9, 10]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_read_options(table: Path, options: Mapping[str, str], after_overwrite: list[int] | None) -> None:
    """A delete of all rows is let through by each; what becomes of an overwrite hangs on them."""
    append(table, 1, 2, 3)
    query = stream(table, **options)
    live = query.start()
    live.processAllAvailable()
    DeltaTable(str(table)).delete()
    append(table, 4, 5)
    live.processAllAvailable()
    assert query.rows == [1, 2, 3, 4, 5]
    write_deltalake(str(table), pa.table({"value": [6, 7, 8]}), mode="overwrite")
    append(table, 9, 10)

    if after_overwrite is None:
        with pytest.raises(ChangeRefusedError, match="skipChangeCommits") as caught:
            live.processAllAvailable()
        assert caught.value.error_class == CHANGED
    else:
        live.processAllAvailable()
        assert query.rows == [1, 2, 3, 4, 5, *after_overwrite]


def test_delta_source_ignore_changes_error_contains_change_info_version_table_path(table: Path) -> None:
    append(table, 1, 2, 3)
    query = stream(table)
    query.run()
    write_deltalake(str(table), pa.table({"value": [1, 2, 3]}), mode="overwrite")

    with pytest.raises(ChangeRefusedError) as caught:
        query.run()

    assert (caught.value.error_class, caught.value.version) == (CHANGED, 1)
    for said in ("skipChangeCommits", "WRITE", f"Version 1 of {table}"):
        assert said in str(caught.value)


def test_delta_source_ignore_delete_error_contains_remove_file_version_table_path(table: Path) -> None:
    append(table, 1, 2, 3)
    (file,) = DeltaTable(str(table)).file_uris()
    query = stream(table)
    query.run()
    DeltaTable(str(table)).delete()

    with pytest.raises(ChangeRefusedError) as caught:
        query.run()

    assert (caught.value.error_class, caught.value.version) == ("DELTA_SOURCE_IGNORE_DELETE", 1)
    for said in ("ignoreDeletes", f"for example {Path(file).name}", f"Version 1 of {table}"):
        assert said in str(caught.value)


# --- deletion vectors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpointed", [True, False])
def test_files_may_be_deleted_before_a_streaming_query_starts_with_and_without_a_checkpoint(
    table: Path,
    checkpointed: bool,  # noqa: FBT001 (what the scenarios are named by)
) -> None:
    grown(table, *range(5))
    DeltaTable(str(table)).delete()
    grown(table, *range(5, 10))
    if checkpointed:
        DeltaTable(str(table)).create_checkpoint()
    query = stream(table)

    query.run()

    assert query.rows == list(range(5, 10))


def pairs(table: Path, size: int = 2) -> list[str]:
    """A table of five files of `size` rows, 0 and 1, 2 and 3 and so on."""
    files = [data_file(table, f"{n}.parquet", id=list(range(size * n, size * n + size))) for n in range(5)]
    commit(table, 0, VECTORS, metadata())
    for version, file in enumerate(files, 1):
        commit(table, version, add(file))
    return files


def vectors(table: Path, version: int, file: str, *positions: int, before: tuple[int, ...] = ()) -> None:
    """A DELETE that keeps its file: these rows of it are deleted from now on."""
    old: dict[str, Any] = {"deletionVector": vector(*before)} if before else {}
    commit(table, version, removed(file, **old), add(file, deletionVector=vector(*positions)))


def whole_table_delete(table: Path, version: int, files: list[str]) -> None:
    commit(table, version, *(removed(file) for file in files))


def test_deleting_files_fails_the_query_if_ignore_deletes_is_false(table: Path) -> None:
    files = pairs(table)
    query = stream(table)
    query.run()
    whole_table_delete(table, 6, files)

    with pytest.raises(ChangeRefusedError, match="ignoreDeletes") as caught:
        query.run()
    assert caught.value.error_class == "DELTA_SOURCE_IGNORE_DELETE"


@pytest.mark.parametrize("options", [IGNORE_FILE_DELETION, IGNORE_DELETES, IGNORE_CHANGES], ids=lambda v: next(iter(v)))
def test_files_may_be_deleted_after_a_streaming_query_started_when_the_option_is_true(
    table: Path, options: Mapping[str, str]
) -> None:
    files = pairs(table)
    query = stream(table, **options)
    live = query.start()
    live.processAllAvailable()
    assert query.rows == list(range(10))
    whole_table_delete(table, 6, files)
    commit(table, 7, add(data_file(table, "10.parquet", id=[10])))

    live.processAllAvailable()

    assert query.rows == list(range(11))


@pytest.mark.parametrize("options", [{}, IGNORE_DELETES], ids=lambda v: "-".join(v))
def test_updating_the_source_table_fails_the_query_unless_changes_are_ignored(
    table: Path, options: Mapping[str, str]
) -> None:
    files = pairs(table)
    query = stream(table, **options)
    query.run()
    vectors(table, 6, files[1], 1)

    with pytest.raises(ChangeRefusedError, match="skipChangeCommits") as caught:
        query.run()
    assert caught.value.error_class == CHANGED


def test_updating_the_source_table_delivers_a_files_other_rows_again_when_ignore_changes_is_true(table: Path) -> None:
    files = pairs(table)
    query = stream(table, **IGNORE_CHANGES)
    query.run()
    vectors(table, 6, files[1], 1)  # DELETE WHERE value = 3
    commit(table, 7, add(data_file(table, "10.parquet", id=[10])))

    query.run()

    assert query.rows == sorted([*range(11), 2])


@pytest.mark.parametrize(
    ("options", "again"),
    [({}, None), (IGNORE_DELETES, None), (IGNORE_CHANGES, [4, 5, 5]), (SKIP, [])],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_subsequent_dml_commands_are_processed_correctly_in_a_batch_delete_delete(
    table: Path, options: Mapping[str, str], again: list[int] | None
) -> None:
    files = pairs(table, size=3)
    query = stream(table, **options)
    query.run()
    vectors(table, 6, files[1], 0)
    vectors(table, 7, files[1], 0, 1, before=(0,))

    if again is None:
        with pytest.raises(ChangeRefusedError) as caught:
            query.run()
        assert caught.value.error_class == CHANGED
    else:
        query.run()
        assert query.rows == sorted([*range(15), *again])


@pytest.mark.parametrize(
    ("options", "again"),
    [({}, None), (IGNORE_DELETES, None), (IGNORE_CHANGES, [16]), (SKIP, [])],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_subsequent_dml_commands_are_processed_correctly_in_a_batch_insert_delete(
    table: Path, options: Mapping[str, str], again: list[int] | None
) -> None:
    pairs(table, size=3)
    query = stream(table, **options)
    query.run()
    inserted = data_file(table, "inserted.parquet", id=[15, 16])
    commit(table, 6, add(inserted))
    vectors(table, 7, inserted, 0)

    if again is None:
        with pytest.raises(ChangeRefusedError) as caught:
            query.run()
        assert caught.value.error_class == CHANGED
    else:
        query.run()
        assert query.rows == sorted([*range(17), *again])


def test_multiple_deletion_vectors_per_file_with_initial_snapshot(table: Path) -> None:
    file = data_file(table, "0.parquet", id=list(range(10)))
    commit(table, 0, VECTORS, metadata(), add(file))
    vectors(table, 1, file, 0)
    vectors(table, 2, file, 0, 1, before=(0,))
    vectors(table, 3, file, 0, 1, 2, before=(0, 1))

    assert stream(table).run() == [list(range(3, 10))]


@pytest.mark.parametrize("options", [IGNORE_FILE_DELETION, IGNORE_CHANGES], ids=lambda v: next(iter(v)))
def test_multiple_deletion_vectors_per_file(table: Path, options: Mapping[str, str]) -> None:
    file = data_file(table, "0.parquet", id=list(range(10)))
    commit(table, 0, VECTORS, metadata(), add(file))
    query = stream(table, **options)
    query.run()
    vectors(table, 1, file, 0)
    vectors(table, 2, file, 0, 1, before=(0,))

    query.run()

    assert query.rows == sorted([*range(10), *range(1, 10), *range(2, 10)])


def test_streaming_read_with_nulls_and_deletion_vectors(table: Path) -> None:
    columns = {"id": [1, 2, None], "value": [None, "b", None], "n": [None, None, None]}
    types = pa.schema({"id": pa.int32(), "value": pa.string(), "n": pa.int32()})
    write_deltalake(str(table), pa.table(columns, schema=types))
    query = stream(table)
    query.run()
    write_deltalake(
        str(table), pa.table({"id": [3, None], "value": ["c", "x"], "n": [3, 1]}, schema=types), mode="append"
    )
    query.run()

    assert query.rows == [(None, None, None), (None, "x", 1), (1, None, None), (2, "b", None), (3, "c", 3)]


def test_array_column_and_deletion_vectors_preserve_element_identity(table: Path) -> None:
    arrays = [[10 * n, 10 * n + 1] for n in range(10)]
    file = data_file(table, "0.parquet", id=list(range(10)), arr=arrays)
    array = {"type": "array", "elementType": "long", "containsNull": True}
    commit(table, 0, VECTORS, metadata(schema(("id", "long"), ("arr", array))), add(file))
    vectors(table, 1, file, 0, 2, 4, 6, 8)

    assert stream(table).run() == [[(n, [10 * n, 10 * n + 1]) for n in (1, 3, 5, 7, 9)]]


def variants(*numbers: int) -> pa.Array:
    """Variants of one byte's numbers, in the Parquet encoding of a column that is not shredded."""
    parts = pa.array([b"\x0c" + bytes([n]) for n in numbers]), pa.array([b"\x01\x00\x00"] * len(numbers))
    fields = [pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata")]
    return pa.StructArray.from_arrays(parts, fields=fields)


def test_streaming_read_with_variant_column_and_deletion_vectors_preserves_payload_identity(table: Path) -> None:
    """Each row with the payload of its own, with and without rows that are deleted."""
    features = ["deletionVectors", "variantType"]
    file = data_file(table, "0.parquet", id=list(range(10)), v=variants(*range(10)))
    columns = metadata(schema(("id", "long"), ("v", "variant")))
    commit(table, 0, protocol(3, 7, readerFeatures=features, writerFeatures=features), columns, add(file))
    whole = stream(table)
    whole.run()
    vectors(table, 1, file, 0, 2, 4, 6, 8)
    query = stream(table)
    query.run()

    def numbers(rows: list[Any]) -> list[tuple[int, int]]:
        return sorted((number, payload["value"][1]) for number, payload in rows)

    assert numbers(whole.batches[0]) == [(n, n) for n in range(10)]
    assert numbers(query.batches[0]) == [(n, n) for n in (1, 3, 5, 7, 9)]


def test_a_stream_of_changes_of_a_table_that_tracks_its_rows_has_its_own_columns(table: Path) -> None:
    tracking = {"delta.enableRowTracking": "true", "delta.rowTracking.materializedRowIdColumnName": "_row-id-1"}
    features = ["changeDataFeed", "rowTracking", "domainMetadata"]
    columns = recorded(schema(("id", "long"), ("who", "string")), configuration=tracking)
    file = add(data_file(table, "0.parquet", id=[1, 2], who=["Alice", "Bob"]), baseRowId=0, defaultRowCommitVersion=1)
    commit(table, 0, protocol(1, 7, writerFeatures=features), columns)
    commit(table, 1, file)
    query = stream(table, readChangeFeed="true", startingVersion="0", columns="id,who")

    query.run()

    assert query.rows == [(1, "Alice"), (2, "Bob")]
