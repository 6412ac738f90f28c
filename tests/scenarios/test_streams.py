"""What streams deliver and refuse where no test of a lower room shows it (DeltaSourceSuite, DeltaCDCStreamSuite)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from scenarios.queries import Stream
from scenarios.streams import append, commit, stream
from scenarios.tables import Column, Table
from support.logs import a_log, a_source, add, at, commit_path, metadata, protocol
from support.recorded import VECTORS, data_file, recorded, removed, schema, vector
from tablefeed.errors import ChangeRefusedError, LogError

IGNORE_DELETES = {"ignoreDeletes": "true"}
IGNORE_CHANGES = {"ignoreChanges": "true"}
SKIP = {"skipChangeCommits": "true"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.mark.parametrize(
    ("options", "after_overwrite"),
    [
        (IGNORE_DELETES, None),
        (SKIP, [9, 10]),
        (IGNORE_CHANGES, [6, 7, 8, 9, 10]),
        ({"ignoreFileDeletion": "true"}, [6, 7, 8, 9, 10]),
        (IGNORE_DELETES | IGNORE_CHANGES, [6, 7, 8, 9, 10]),
        (IGNORE_CHANGES | SKIP, [9, 10]),
        (IGNORE_DELETES | SKIP, [9, 10]),
        (IGNORE_DELETES | IGNORE_CHANGES | SKIP, [9, 10]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_each_option_lets_a_delete_through_and_decides_on_an_overwrite(
    table: Path, options: Mapping[str, str], after_overwrite: list[int] | None
) -> None:
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
        assert caught.value.error_class == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    else:
        live.processAllAvailable()
        assert query.rows == [1, 2, 3, 4, 5, *after_overwrite]


@pytest.mark.parametrize("change_feed", [True, False], ids=["changes", "rows"])
@pytest.mark.parametrize("end", [at(2, 1), at(3)], ids=["within a commit", "behind a commit"])
def test_a_batch_whose_last_commit_is_gone_is_refused(
    change_feed: bool,  # noqa: FBT001 (a parameter)
    end: Any,
) -> None:
    log = a_log(v0=[protocol(1, 4), recorded(), add("a")], v1=[add("b")], v2=[add("c"), add("d"), add("e")])
    source = a_source(log, starting_version=0, change_feed=change_feed)
    log.store.delete(commit_path(2))

    with pytest.raises(LogError, match="ends at version 1, but this batch ends at version 2") as caught:
        source.tasks(source.initial(), end)
    assert caught.value.error_class == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"


@pytest.mark.parametrize("lost", [0, 1])
def test_a_table_without_a_checkpoint_that_lost_a_commit_is_refused(table: Path, lost: int) -> None:
    for value in range(4):
        append(table, value)
    (table / commit_path(lost)).unlink()
    (table / "_delta_log/_last_checkpoint").write_text('{"version":3,"size":6}', encoding="utf-8")

    with pytest.raises(LogError) as caught:
        stream(table).frame()
    assert caught.value.error_class == "DELTA_MISSING_PART_FILES"


# --- unusual columns -------------------------------------------------------------------------------------------------


def test_a_column_of_nulls_is_not_dropped(table: Path) -> None:
    commit(table, 0, protocol(), metadata(schema(("nothing", "void"), ("id", "long"))))
    commit(table, 1, add(data_file(table, "1.parquet", id=[0, 1])))
    query = stream(table)

    query.run()

    assert query.rows == [(None, 0), (None, 1)]


def variants(*numbers: int) -> pa.Array:
    """Variants of one byte's numbers, in the Parquet encoding of a column that is not shredded."""
    parts = pa.array([b"\x0c" + bytes([n]) for n in numbers]), pa.array([b"\x01\x00\x00"] * len(numbers))
    fields = [pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata")]
    return pa.StructArray.from_arrays(parts, fields=fields)


def test_arrays_and_variants_stay_with_their_rows_beside_rows_that_are_deleted(table: Path) -> None:
    features = ["deletionVectors", "variantType"]
    arrays = [[10 * n, 10 * n + 1] for n in range(10)]
    file = data_file(table, "0.parquet", id=list(range(10)), arr=arrays, v=variants(*range(10)))
    array = {"type": "array", "elementType": "long", "containsNull": True}
    columns = metadata(schema(("id", "long"), ("arr", array), ("v", "variant")))
    commit(table, 0, protocol(3, 7, readerFeatures=features, writerFeatures=features), columns, add(file))
    whole = stream(table)
    whole.run()
    commit(table, 1, removed(file), add(file, deletionVector=vector(0, 2, 4, 6, 8)))
    query = stream(table)
    query.run()

    def numbers(rows: list[Any]) -> list[tuple[int, list[int], int]]:
        return [(number, array, payload["value"][1]) for number, array, payload in rows]

    assert numbers(whole.batches[0]) == [(n, [10 * n, 10 * n + 1], n) for n in range(10)]
    assert numbers(query.batches[0]) == [(n, [10 * n, 10 * n + 1], n) for n in (1, 3, 5, 7, 9)]


# --- changes ---------------------------------------------------------------------------------------------------------


def changes(table: Table, start: int) -> Stream:
    stream = Stream.on(table.path, readChangeFeed="true", startingVersion=str(start))
    return replace(stream, feed_columns=True)


@pytest.mark.parametrize("mapping", ["", "name"])
def test_changes_of_a_table_that_tracks_its_rows_come_without_their_ids(tmp_path: Path, mapping: str) -> None:
    on = {"enableRowTracking": "true", "enableChangeDataFeed": "true"}
    table = Table(tmp_path / "table").create("id", "name", mapping=mapping, **on)
    features = ["rowTracking", "domainMetadata", "changeDataFeed", "appendOnly", "invariants"]
    mapped = ["columnMapping"] if mapping else []
    table.commit(protocol(2 if mapping else 1, 7, writerFeatures=features + mapped))
    added = table.added(("1", "Alice"), ("2", "Bob"))
    added["add"] |= {"baseRowId": 0, "defaultRowCommitVersion": 2}
    table.commit(added)

    assert changes(table, 0).run() == [("1", "Alice", "insert", 2), ("2", "Bob", "insert", 2)]


def test_rows_deleted_by_vector_have_their_partition(tmp_path: Path) -> None:
    columns = tuple(Column(name=name, kind="long") for name in ("id", "part"))
    table = Table(tmp_path / "table", columns=columns, partition_columns=("part",))
    table.configuration = {"delta.enableChangeDataFeed": "true"}
    table.commit(VECTORS, table.metadata)
    name = table.append_file((1, 7), (2, 7))
    table.append((3, 8))
    table.delete_by_vector((name, [1]))

    assert changes(table, 3).run() == [(2, 7, "delete", 3)]
