"""Rows of a table that tracks them keep their ids, and those that are only copied their versions, in every change.

The ids are read here from the files and the log alone, as PROTOCOL.md says ("Reader Requirements for Row Tracking").
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

import tablefeed
from support.logs import change_actions, said
from tablefeed.delta.columns import to_add_files
from tablefeed.errors import LogError, SchemaMismatchError, UnsupportedFeatureError
from tablefeed.feed.scan.vectors import deleted_positions
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_files import TableFiles

TRACKED = {"delta.enableRowTracking": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
FED = {"delta.enableChangeDataFeed": "true"}
KINDS: Mapping[str, Mapping[str, str]] = {
    "copied": TRACKED,
    "vectors": {**TRACKED, **VECTORS},
    "copied, fed, mapped by name": {**TRACKED, **FED, "delta.columnMapping.mode": "name"},
    "vectors, fed, mapped by id": {**TRACKED, **VECTORS, **FED, "delta.columnMapping.mode": "id"},
}
every_kind = pytest.mark.parametrize("properties", KINDS.values(), ids=KINDS)
Ids = dict[int, tuple[int, int]]


def a_table(path: Path, properties: Mapping[str, str] = TRACKED) -> str:
    """The rows 0 to 4 in the partitions a and b, of version 0, and the rows 5 to 7 in a, of version 1."""
    url = str(path / "table")
    rows = pa.table({"id": [0, 1, 2, 3, 4], "p": ["a", "a", "a", "b", "b"], "v": [0] * 5})
    tablefeed.append(url, rows, partition_by=["p"], properties=properties)
    tablefeed.append(url, pa.table({"id": [5, 6, 7], "p": ["a"] * 3, "v": [0] * 3}))
    return url


BEFORE: Ids = {0: (0, 0), 1: (1, 0), 2: (2, 0), 3: (3, 0), 4: (4, 0), 5: (5, 1), 6: (6, 1), 7: (7, 1)}


def given_ids(url: str) -> Ids:
    """For each row, by its column `id`, its row id and row commit version."""
    snapshot = open_log(url).load()
    row_id, row_version = (
        snapshot.metadata.configuration[f"delta.rowTracking.materialized{what}ColumnName"]
        for what in ("RowId", "RowCommitVersion")
    )
    mapped = {field.name: field.metadata.get("delta.columnMapping.physicalName") for field in snapshot.schema}
    key = str(mapped["id"] or "id")
    files = TableFiles(snapshot.log.store, storage_options={})
    found: Ids = {}
    for add in (add for batch in snapshot.live_files(with_stats=True) for add in to_add_files(batch)):
        first, version = add.base_row_id, add.default_row_commit_version
        assert first is not None
        assert version is not None
        assert not {row_id, row_version}.intersection(json.loads(add.stats or "{}")["nullCount"])
        gone = deleted_positions(files, add.deletion_vector, of_file="") if add.deletion_vector else ()
        for place, row in enumerate(pq.read_table(Path(url) / add.path, partitioning=None).to_pylist()):
            if place not in gone:
                assert row[key] not in found
                found[row[key]] = (_or(row.get(row_id), first + place), _or(row.get(row_version), version))
    assert len({row for row, _ in found.values()}) == len(found)
    return found


def _or(kept: int | None, otherwise: int) -> int:
    return otherwise if kept is None else kept


def rows(url: str) -> dict[int, int]:
    """The column `v` by `id`, as we and delta-rs read it; neither sees another column."""
    theirs = QueryBuilder().register("t", DeltaTable(url)).execute("SELECT * FROM t").read_all()
    ours = tablefeed.open_table(url).to_arrow()
    assert sorted(ours.column_names) == sorted(pa.table(theirs).column_names) == ["id", "p", "v"]
    found = [{row["id"]: row["v"] for row in table.to_pylist()} for table in (ours, pa.table(theirs))]
    assert found[0] == found[1]
    return found[0]


def without(*gone: int) -> Ids:
    return {row: ids for row, ids in BEFORE.items() if row not in gone}


@every_kind
def test_rows_beside_deleted_ones_keep_ids_and_versions(tmp_path: Path, properties: Mapping[str, str]) -> None:
    url = a_table(tmp_path, properties)
    assert given_ids(url) == BEFORE

    tablefeed.delete(url, "id IN (0, 5, 7)")
    tablefeed.delete(url, "id = 6")

    assert given_ids(url) == without(0, 5, 6, 7)
    assert sorted(rows(url)) == [1, 2, 3, 4]
    assert said(Path(url), 2, "commitInfo")[0]["tags"] == {"delta.rowTracking.preserved": "true"}


@every_kind
def test_updated_rows_keep_their_ids_and_get_the_version_of_their_last_update(
    tmp_path: Path, properties: Mapping[str, str]
) -> None:
    url = a_table(tmp_path, properties)

    tablefeed.update(url, {"v": "1"}, "id IN (1, 4, 6)")
    tablefeed.update(url, {"v": "2"}, "id = 6")
    tablefeed.delete(url, "id = 4")

    assert given_ids(url) == without(4) | {1: (1, 2), 6: (6, 3)}
    assert rows(url) == {0: 0, 1: 1, 2: 0, 3: 0, 5: 0, 6: 2, 7: 0}


@every_kind
def test_a_merge_keeps_the_ids_of_what_it_updates_and_gives_new_rows_ids_behind_all_others(
    tmp_path: Path, properties: Mapping[str, str]
) -> None:
    url = a_table(tmp_path, properties)
    source = pa.table({"id": [2, 5, 20, 3], "p": ["a", "a", "b", "b"], "v": [2, 5, 20, -1]})

    tablefeed.merge(
        url,
        source,
        on=["id"],
        matched=[tablefeed.Delete(where="source.v < 0"), tablefeed.Update()],
        not_matched=[tablefeed.Insert()],
        not_matched_by_source=[tablefeed.Update(set={"v": "9"}, where="target.id = 7")],
    )

    found = given_ids(url)
    row, version = found.pop(20)
    assert found == without(3) | {2: (2, 2), 5: (5, 2), 7: (7, 2)}
    assert (row > 7, version) == (True, 2)
    assert rows(url) == {0: 0, 1: 0, 2: 2, 4: 0, 5: 5, 6: 0, 7: 9, 20: 20}


@every_kind
def test_changes_that_are_applied_keep_the_ids_of_the_rows_of_their_keys(
    tmp_path: Path, properties: Mapping[str, str]
) -> None:
    url = a_table(tmp_path, properties)
    how: dict[str, Any] = {"keys": ["id"], "sequence_by": "v", "apply_as_deletes": "p = 'gone'"}

    events = pa.table({"id": [1, 3, 30, 6], "p": ["a", "gone", "b", "b"], "v": [10, 11, 12, 13]})
    tablefeed.apply_changes(url, events, **how)
    tablefeed.apply_changes(url, pa.table({"id": [6, 1], "p": ["a", "a"], "v": [20, 5]}), **how)

    found = given_ids(url)
    row, version = found.pop(30)
    assert found == without(3) | {1: (1, 2), 6: (6, 3)}
    assert (row > 7, version) == (True, 2)
    assert rows(url) == {0: 0, 1: 10, 2: 0, 4: 0, 5: 0, 6: 20, 7: 0, 30: 12}


@every_kind
def test_rows_that_an_overwrite_leaves_keep_ids_and_versions(tmp_path: Path, properties: Mapping[str, str]) -> None:
    url = a_table(tmp_path, properties)

    new = pa.table({"id": [6], "p": ["a"], "v": [1]})
    tablefeed.append(url, new, mode="overwrite", replace_where="id = 6 OR id = 1")

    found = given_ids(url)
    row, version = found.pop(6)
    assert (row > 7, version) == (True, 2)
    assert found == without(1, 6)


@every_kind
def test_files_are_folded_with_the_ids_and_versions_of_their_rows(
    tmp_path: Path, properties: Mapping[str, str]
) -> None:
    url = a_table(tmp_path, properties)
    tablefeed.update(url, {"v": "1"}, "id IN (0, 4)")
    tablefeed.append(url, pa.table({"id": [8], "p": ["b"], "v": [0]}))
    before, as_read = given_ids(url), rows(url)

    outcome = tablefeed.optimize(url)

    assert (outcome.version, outcome.files_added) == (4, 2)
    assert given_ids(url) == before
    assert rows(url) == as_read
    tablefeed.update(url, {"v": "2"}, "id = 3")
    assert given_ids(url) == before | {3: (3, 5)}


def test_a_file_that_is_rewritten_without_its_deleted_rows_keeps_the_ids_of_the_others(tmp_path: Path) -> None:
    url = a_table(tmp_path, {**TRACKED, **VECTORS, "delta.targetFileSize": "10"})
    tablefeed.delete(url, "id IN (0, 6)")

    assert tablefeed.optimize(url).deletion_vectors_removed == 2

    assert given_ids(url) == without(0, 6)


def test_a_table_that_does_not_promise_ids_yet_is_folded_without_them(tmp_path: Path) -> None:
    for n in range(2):
        tablefeed.append(tmp_path, pa.table({"id": [n]}), properties={"delta.feature.rowTracking": "supported"})

    tablefeed.optimize(tmp_path)

    (added,), (info,) = said(tmp_path, 2, "add"), said(tmp_path, 2, "commitInfo")
    assert pq.read_table(tmp_path / added["path"]).column_names == ["id"]
    assert (added["baseRowId"], added["defaultRowCommitVersion"], info.get("tags", {})) == (2, 2, {})


def test_a_file_without_ids_gets_them_when_rows_of_it_are_marked_where_rows_must_have_ids(tmp_path: Path) -> None:
    """A backfill of ids passes over a file that another commit added meanwhile, so nobody else gives them."""
    tablefeed.append(tmp_path, pa.table({"id": [1, 2, 3]}), properties=VECTORS)
    tablefeed.alter(tmp_path, enable_features=["rowTracking"])

    tablefeed.delete(tmp_path, "id = 2")
    tablefeed.append(tmp_path, pa.table({"id": [4]}))
    tablefeed.delete(tmp_path, "id = 3")

    given = [[(a["baseRowId"], a["defaultRowCommitVersion"]) for a in said(tmp_path, v, "add")] for v in (2, 3, 4)]
    assert given == [[(0, 2)], [(3, 3)], [(0, 2)]]
    assert [said(tmp_path, v, "domainMetadata")[0]["configuration"] for v in (2, 3)] == [
        '{"rowIdHighWaterMark":2}',
        '{"rowIdHighWaterMark":3}',
    ]


def test_files_of_changes_have_no_ids(tmp_path: Path) -> None:
    url = a_table(tmp_path, {**TRACKED, **FED})

    tablefeed.update(url, {"v": "1"}, "id = 1")

    (change,) = said(Path(url), 2, "cdc")
    assert pq.read_table(Path(url) / change["path"], partitioning=None).column_names == ["id", "v", "_change_type"]
    feed = tablefeed.changes(url, start_version=2).read_all().to_pylist()
    assert [(row["_change_type"], row["id"], row["v"]) for row in feed] == [
        ("update_preimage", 1, 0),
        ("update_postimage", 1, 1),
    ]


def test_updates_are_found_by_their_ids_where_the_table_recorded_none(tmp_path: Path) -> None:
    url = a_table(tmp_path)

    tablefeed.update(url, {"v": "1"}, "id = 1")

    feed = tablefeed.changes(url, start_version=2, deduplication_mode="dropCarryovers", compute_updates=True).read_all()
    assert [(row["_change_type"], row["id"], row["v"]) for row in feed.to_pylist()] == [
        ("update_preimage", 1, 0),
        ("update_postimage", 1, 1),
    ]


@pytest.mark.parametrize("spelled", [str.lower, str.upper], ids=["as it is", "in another case"])
def test_no_column_of_the_table_gets_the_name_of_that_with_the_ids_which_would_be_read_as_its_values(
    tmp_path: Path, spelled: Callable[[str], str]
) -> None:
    url = a_table(tmp_path)
    tablefeed.update(url, {"v": "1"}, "id = 1")
    configuration = open_log(url).load().metadata.configuration
    name = spelled(configuration["delta.rowTracking.materializedRowIdColumnName"])

    with pytest.raises(SchemaMismatchError, match="DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED"):
        tablefeed.append(url, pa.table({"id": [8], "p": ["a"], "v": [0], name: [9]}), merge_schema=True)
    with pytest.raises(SchemaMismatchError, match="DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED"):
        tablefeed.alter(url, add_columns=[pa.field(name, pa.int64())])


def with_log(url: str, version: int, change: Callable[[dict[str, Any]], None]) -> str:
    """Gives a copy of the table, in which each action of a commit is changed."""
    url = shutil.copytree(url, f"{url}-changed")
    change_actions(url, version, change)
    for crc in Path(url, "_delta_log").glob("*.crc"):
        crc.unlink()
    return url


def test_rows_of_a_file_whose_ids_the_log_does_not_say_are_not_copied(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    url = with_log(url, 1, lambda line: line.get("add", {}).pop("baseRowId", None))
    files = {*Path(url).rglob("*.parquet")}

    with pytest.raises(LogError, match="does not say which ids the rows"):
        tablefeed.delete(url, "id = 6")

    assert {*Path(url).rglob("*.parquet")} == files


@pytest.mark.parametrize("named", [None, "v", "V"], ids=str)
def test_rows_are_not_copied_where_no_column_is_named_for_their_ids_alone(tmp_path: Path, named: str | None) -> None:
    url = a_table(tmp_path)
    name = "delta.rowTracking.materializedRowIdColumnName"

    def rename(line: dict[str, Any]) -> None:
        if "metaData" in line:
            line["metaData"]["configuration"] |= {name: named}
            if named is None:
                del line["metaData"]["configuration"][name]

    url = with_log(url, 0, rename)

    with pytest.raises(UnsupportedFeatureError, match="DELTA_MATERIALIZED_ROW_TRACKING_COLUMN_NAME_MISSING"):
        tablefeed.delete(url, "id = 6")
