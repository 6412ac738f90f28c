"""`tablefeed.optimize`: the same rows in fewer files, once; readers of changes see nothing, and rivals come first."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

import tablefeed
from support.commits import raced
from support.logs import said
from support.maintained import Rows, delete_rows, ids, in_order, live, rows_of
from tablefeed.errors import ConflictError, IllegalOptionError
from tablefeed.feed.scan.delta_task import delta_columns
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.upkeep import optimize as module
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.feed.upkeep.optimize import Folding, fold, fold_behind
from tablefeed.model.outcome import Optimized
from tablefeed.model.progress import Progress

NOTHING = Optimized(version=None)


def rows_by_delta_rs(table: Path) -> Rows:
    return in_order(DeltaTable(str(table)).to_pyarrow_table().to_pylist())


def size_of_a_file(table: Path) -> int:
    return int(next(tablefeed.open_table(table).files())["size_bytes"][0].as_py())


def five_files(table: Path, **more: Any) -> list[int]:
    for n in range(5):
        tablefeed.append(table, pa.table({"id": [n]}), **more)
    return list(range(5))


# --- what becomes of the files ---------------------------------------------------------------------------------------


def test_the_caller_is_told_how_many_files_are_merged_and_may_end_the_work(tmp_path: Path) -> None:
    for n in range(4):
        tablefeed.append(tmp_path, pa.table({"id": [n], "p": [n % 2]}), partition_by="p")
    heard: list[str] = []

    def stop(progress: Progress) -> None:
        heard.append(str(progress))
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tablefeed.optimize(tmp_path, on_progress=stop)
    left = sorted(tmp_path.rglob("*.parquet"))
    tablefeed.optimize(tmp_path, on_progress=lambda progress: heard.append(str(progress)))

    assert len(left) == 4  # what was merged is not left behind
    assert heard[:2] == ["files merged: 0 of 4", "files merged: 2 of 4"]
    assert heard[2:] == ["files merged: 0 of 4", "files merged: 2 of 4", "files merged: 4 of 4"]


def test_small_files_of_a_partition_become_one_once_and_every_row_stays(tmp_path: Path) -> None:
    for n in range(3):
        rows = pa.table({"id": [n, -n], "p": ["a", None]})
        tablefeed.append(tmp_path, rows, partition_by="p", properties={"delta.appendOnly": "true"})
    before = rows_of(tmp_path)

    outcome = tablefeed.optimize(tmp_path)

    assert (outcome.version, outcome.files_removed, outcome.files_added) == (3, 6, 2)
    assert [path.partition("/")[0] for path in live(tmp_path)] == ["p=__HIVE_DEFAULT_PARTITION__", "p=a"]
    assert rows_of(tmp_path) == before
    assert rows_by_delta_rs(tmp_path) == before
    assert tablefeed.optimize(tmp_path) == NOTHING
    assert tablefeed.open_table(tmp_path).version == 3


def test_the_commit_says_that_no_data_changed_and_what_was_done_as_the_jar_does(tmp_path: Path) -> None:
    five_files(tmp_path)

    tablefeed.optimize(tmp_path)

    (added,), removed, (info,) = (said(tmp_path, 5, action) for action in ("add", "remove", "commitInfo"))
    assert [each["dataChange"] for each in (added, *removed)] == [False] * 6
    assert all({"deletionTimestamp", "partitionValues", "size", "extendedFileMetadata"} <= {*each} for each in removed)
    assert json.loads(added["stats"])["numRecords"] == 5
    assert info["operation"] == "OPTIMIZE"
    assert info["operationParameters"] == {"predicate": "[]", "zOrderBy": "[]", "clusterBy": "[]", "auto": "false"}
    assert (info["isBlindAppend"], info["isolationLevel"], info["readVersion"]) == (False, "SnapshotIsolation", 4)
    metrics = info["operationMetrics"]
    assert (metrics["numRemovedFiles"], metrics["numAddedFiles"]) == ("5", "1")
    assert metrics["minFileSize"] == metrics["maxFileSize"] == metrics["numAddedBytes"] == str(added["size"])


def test_a_file_as_large_as_the_tables_or_the_callers_target_is_left_and_others_are_packed_up_to_it(
    tmp_path: Path,
) -> None:
    five_files(tmp_path, properties={"delta.targetFileSize": "10"})
    size = size_of_a_file(tmp_path)

    assert tablefeed.optimize(tmp_path) == tablefeed.optimize(tmp_path, target_size_bytes=size) == NOTHING
    outcome = tablefeed.optimize(tmp_path, target_size_bytes=2 * size)

    assert (outcome.files_removed, outcome.files_added) == (4, 2)
    assert len(live(tmp_path)) == 3


def test_every_kind_of_value_is_the_same_afterwards(tmp_path: Path) -> None:
    values: dict[str, tuple[pa.DataType, list[Any]]] = {
        "f": (pa.float64(), [math.inf, -0.0]),
        "s": (pa.string(), ["ß\x00", ""]),
        "b": (pa.binary(), [b"\xff", b""]),
        "n": (pa.decimal128(38, 18), [Decimal("12345678901234567890.123456789012345678"), Decimal("-1")]),
        "d": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
        "t": (pa.timestamp("us", tz="UTC"), [datetime(1582, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 0, 0, 0, 1, UTC)]),
        "l": (pa.list_(pa.struct([("x", pa.int32())])), [[{"x": 1}, None], []]),
        "m": (pa.map_(pa.string(), pa.int64()), [[("k", None)], []]),
        "p": (pa.timestamp("us", tz="UTC"), [datetime(2024, 1, 1, 0, 0, 0, 1, UTC)] * 2),
        "q": (pa.string(), ["a b/%=ü"] * 2),
    }
    both = pa.table({name: pa.array([*each, None], kind) for name, (kind, each) in values.items()})
    for n in (0, 0, 1, 1, 2, 2):
        tablefeed.append(tmp_path, both.slice(n, 1), partition_by=["p", "q"])
    before = rows_of(tmp_path)

    outcome = tablefeed.optimize(tmp_path)

    assert (outcome.files_removed, outcome.files_added) == (6, 2)
    assert rows_of(tmp_path) == before
    assert rows_by_delta_rs(tmp_path) == in_order(before)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_keep_their_names_in_files(tmp_path: Path, mode: str) -> None:
    for n in range(3):
        rows = pa.table({"a b": [n], "p": ["x"]})
        tablefeed.append(tmp_path, rows, partition_by="p", properties={"delta.columnMapping.mode": mode})
    before = rows_of(tmp_path)

    assert tablefeed.optimize(tmp_path, where="p = 'x'").files_added == 1

    assert rows_of(tmp_path) == before
    (added,) = said(tmp_path, 3, "add")
    assert all(name.startswith("col-") for name in added["partitionValues"])


def test_the_oldest_rows_come_first_in_the_file(tmp_path: Path) -> None:
    for n in (7, 1, 5):
        tablefeed.append(tmp_path, pa.table({"id": [n] * (10 - n)}))

    tablefeed.optimize(tmp_path)

    assert tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist() == [7] * 3 + [1] * 9 + [5] * 5


def test_a_large_table_is_folded_by_several_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    five_files(tmp_path)
    tablefeed.append(tmp_path, pa.table({"id": [5]}))
    size = size_of_a_file(tmp_path)
    monkeypatch.setattr(module, "FILES_OF_A_COMMIT", 4)

    outcome = tablefeed.optimize(tmp_path, target_size_bytes=2 * size)

    assert (outcome.version, outcome.files_removed, outcome.files_added) == (7, 6, 3)
    assert ids(tmp_path) == [0, 1, 2, 3, 4, 5]


# --- which files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["p = 'a'", pc.field("p") == "a", pc.starts_with(pc.field("p"), "a")], ids=str)
def test_a_predicate_over_partitions_chooses_which_are_folded(tmp_path: Path, where: Any) -> None:
    for n in range(2):
        tablefeed.append(tmp_path, pa.table({"id": [n, n], "p": ["a", "b"]}), partition_by="p")

    assert tablefeed.optimize(tmp_path, where=where).files_removed == 2
    assert [path.partition("/")[0] for path in live(tmp_path)] == ["p=a", "p=b", "p=b"]


def test_a_predicate_that_names_no_column_speaks_of_partitions_alone(tmp_path: Path) -> None:
    five_files(tmp_path)

    assert tablefeed.optimize(tmp_path, where=pc.scalar(value=False)).files_removed == 0
    assert tablefeed.optimize(tmp_path, where=pc.scalar(value=True)).files_removed == 5


@pytest.mark.parametrize(
    "where", ["id = 1", "p = 'a' AND id = 1", pc.field("id") == 1, pc.field(1), "no = 1", 5], ids=str
)
def test_a_predicate_over_anything_else_is_refused(tmp_path: Path, where: Any) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1], "p": ["a"]}), partition_by="p")

    with pytest.raises(IllegalOptionError):
        tablefeed.optimize(tmp_path, where=where)


# --- deletion vectors ------------------------------------------------------------------------------------------------


def a_table_with_vectors(table: Path) -> list[str]:
    for n in range(3):
        rows = pa.table({"id": [10 * n, 10 * n + 1, 10 * n + 2]})
        tablefeed.append(table, rows, properties={"delta.enableDeletionVectors": "true"})
    return live(table)


def test_rows_that_a_deletion_vector_deletes_are_left_behind_and_so_is_the_vector(tmp_path: Path) -> None:
    paths = a_table_with_vectors(tmp_path)
    delete_rows(tmp_path, paths[0], 0, 2)
    delete_rows(tmp_path, paths[1], 0, 1, 2)
    before = ids(tmp_path)

    outcome = tablefeed.optimize(tmp_path)

    assert (outcome.files_removed, outcome.files_added, outcome.deletion_vectors_removed) == (3, 1, 2)
    assert ids(tmp_path) == before
    assert len(before) == 4
    assert sorted("deletionVector" in each for each in said(tmp_path, 5, "remove")) == [False, True, True]
    assert said(tmp_path, 5, "commitInfo")[0]["operationMetrics"]["numDeletionVectorRowsRemoved"] == "5"


def test_a_file_of_any_size_with_many_deleted_rows_is_folded(tmp_path: Path) -> None:
    paths = a_table_with_vectors(tmp_path)
    delete_rows(tmp_path, paths[0], 1)
    delete_rows(tmp_path, paths[1], 1)
    size = size_of_a_file(tmp_path)

    snapshot = open_log(str(tmp_path)).load()
    columns = delta_columns(snapshot.schema, snapshot.metadata)
    chosen = module._candidates(snapshot, Folding(target_bytes=size), columns)

    assert sorted(chosen["log_path"].to_pylist()) == paths[:2]


def test_a_large_file_is_rewritten_alone_where_more_of_its_rows_are_deleted_than_the_ratio(tmp_path: Path) -> None:
    vectors = {"delta.enableDeletionVectors": "true", "delta.targetFileSize": "10"}
    tablefeed.append(tmp_path, pa.table({"id": range(100), "p": ["a"] * 100}), partition_by="p", properties=vectors)
    tablefeed.append(tmp_path, pa.table({"id": range(100, 200), "p": ["b"] * 100}))
    few, many = live(tmp_path)
    delete_rows(tmp_path, few, *range(5))
    delete_rows(tmp_path, many, *range(6))
    before = ids(tmp_path)

    outcome = tablefeed.optimize(tmp_path)

    assert (outcome.files_removed, outcome.files_added, outcome.deletion_vectors_removed) == (1, 1, 1)
    assert [each["path"] for each in said(tmp_path, 4, "remove")] == [many]
    assert json.loads(said(tmp_path, 4, "add")[0]["stats"])["numRecords"] == 94
    assert tablefeed.optimize(tmp_path) == NOTHING
    assert tablefeed.optimize(tmp_path, max_deleted_rows_ratio=0).deletion_vectors_removed == 1
    assert tablefeed.optimize(tmp_path, max_deleted_rows_ratio=0) == NOTHING
    assert ids(tmp_path) == before


def test_in_the_background_a_file_is_rewritten_alone_once_most_of_its_rows_are_deleted(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": range(10)}), properties={"delta.enableDeletionVectors": "true"})
    (path,) = live(tmp_path)
    half = delete_rows(tmp_path, path, *range(5))
    behind = Folding(target_bytes=10, auto=True, least_files=50)

    assert fold(open_log(str(tmp_path)).load(), behind) == NOTHING
    delete_rows(tmp_path, path, *range(6), before=half)
    outcome = fold(open_log(str(tmp_path)).load(), behind)

    assert (outcome.files_removed, outcome.files_added) == (1, 1)
    assert ids(tmp_path) == [6, 7, 8, 9]


@pytest.mark.parametrize("ratio", [-0.1, 1.1, math.nan, "0", None, True], ids=str)
def test_a_share_of_deleted_rows_that_is_none_is_refused(tmp_path: Path, ratio: Any) -> None:
    five_files(tmp_path)

    with pytest.raises(IllegalOptionError, match="max_deleted_rows_ratio"):
        tablefeed.optimize(tmp_path, max_deleted_rows_ratio=ratio)


def test_files_all_of_whose_rows_are_deleted_leave_no_file(tmp_path: Path) -> None:
    paths = a_table_with_vectors(tmp_path)
    for path in paths:
        delete_rows(tmp_path, path, 0, 1, 2)

    outcome = tablefeed.optimize(tmp_path)

    assert (outcome.files_removed, outcome.files_added, ids(tmp_path)) == (3, 0, [])


# --- readers of changes ----------------------------------------------------------------------------------------------


def test_neither_appends_nor_changes_see_any_of_it(tmp_path: Path) -> None:
    five_files(tmp_path, properties={"delta.enableChangeDataFeed": "true"})
    tablefeed.optimize(tmp_path)
    tablefeed.append(tmp_path, pa.table({"id": [5]}))

    assert tablefeed.appends(tmp_path, start_version=5).read_all()["id"].to_pylist() == [5]
    changes = tablefeed.changes(tmp_path, start_version=0).read_all()
    assert changes["id"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert set(changes["_change_type"].to_pylist()) == {"insert"}


# --- rivals ----------------------------------------------------------------------------------------------------------


def data_files(table: Path) -> set[str]:
    return {str(path.relative_to(table)) for path in table.rglob("*.parquet")}


ALL = Folding(target_bytes=1 << 30)


def test_a_rivals_append_passes(tmp_path: Path) -> None:
    five_files(tmp_path)
    log = raced(tmp_path, lambda: tablefeed.append(tmp_path, pa.table({"id": [9]})))

    outcome = fold(log.load(), ALL, plans=1)

    assert (outcome.version, outcome.files_removed) == (6, 5)
    assert ids(tmp_path) == [0, 1, 2, 3, 4, 9]


RIVALS: dict[str, Callable[[Path], object]] = {
    "an overwrite": lambda table: tablefeed.append(table, pa.table({"id": [9]}), mode="overwrite"),
    "a delete": lambda table: DeltaTable(str(table)).delete("id = 0"),
    "an optimize": lambda table: DeltaTable(str(table)).optimize.compact(),
    "an optimize of ours": tablefeed.optimize,
}


@pytest.mark.parametrize("rival", RIVALS.values(), ids=RIVALS)
def test_a_rival_that_removed_a_folded_file_wins_and_leaves_no_file_of_ours(
    tmp_path: Path, rival: Callable[[Path], object]
) -> None:
    five_files(tmp_path)
    log = raced(tmp_path, lambda: rival(tmp_path))

    with pytest.raises(ConflictError, match="DELTA_CONCURRENT_DELETE_READ"):
        fold(log.load(), ALL, plans=1)

    versions = range(tablefeed.open_table(tmp_path).version + 1)
    named = {add["path"] for version in versions for add in said(tmp_path, version, "add")}
    assert {name for name in data_files(tmp_path) if not name.startswith("_delta_log")} == named


@pytest.mark.parametrize("rival", RIVALS.values(), ids=RIVALS)
def test_what_lost_is_planned_anew_on_what_the_rival_left(tmp_path: Path, rival: Callable[[Path], object]) -> None:
    five_files(tmp_path)
    left: list[list[int]] = []

    def goes_first() -> None:
        rival(tmp_path)
        left.append(ids(tmp_path))

    fold(raced(tmp_path, goes_first).load(), ALL)

    assert ids(tmp_path) == left[0]


def test_a_rivals_deletion_vector_on_a_folded_file_is_not_lost(tmp_path: Path) -> None:
    paths = a_table_with_vectors(tmp_path)
    log = raced(tmp_path, lambda: delete_rows(tmp_path, paths[1], 0, 1))

    outcome = fold(log.load(), ALL)

    assert (outcome.version, outcome.deletion_vectors_removed) == (4, 1)
    assert len(ids(tmp_path)) == 7


def test_what_was_folded_before_a_rival_won_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    five_files(tmp_path)
    size = size_of_a_file(tmp_path)
    monkeypatch.setattr(module, "FILES_OF_A_COMMIT", 2)
    log = raced(tmp_path, lambda: None, lambda: tablefeed.append(tmp_path, pa.table({"id": [9]}), mode="overwrite"))

    outcome = fold(log.load(), Folding(target_bytes=2 * size))

    assert (outcome.version, outcome.files_removed, outcome.files_added) == (5, 2, 1)
    assert ids(tmp_path) == [9]


def test_where_rivals_keep_winning_the_last_conflict_is_raised(tmp_path: Path) -> None:
    five_files(tmp_path)

    def rewrite() -> None:
        tablefeed.append(tmp_path, pa.table({"id": [0]}), mode="overwrite")
        tablefeed.append(tmp_path, pa.table({"id": [1]}))

    with pytest.raises(ConflictError):
        fold(raced(tmp_path, rewrite, rewrite, rewrite).load(), ALL)
    assert ids(tmp_path) == [0, 1]


def test_a_rewrite_that_fails_on_its_way_leaves_no_file(tmp_path: Path) -> None:
    five_files(tmp_path)
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    paths = live(tmp_path)
    (tmp_path / paths[-1]).write_bytes(b"no parquet")
    there = data_files(tmp_path)
    size = max(each for batch in tablefeed.open_table(tmp_path).files() for each in batch["size_bytes"].to_pylist())

    with pytest.raises(tablefeed.TablefeedError):
        tablefeed.optimize(tmp_path, target_size_bytes=2 * size)

    assert data_files(tmp_path) == there


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.sampled_from(["append", "delete", "overwrite", "optimize", "raced"]), min_size=3, max_size=8), st.data()
)
def test_no_order_of_writers_loses_or_doubles_a_row(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], data: st.DataObject
) -> None:
    table = tmp_path_factory.mktemp("table") / "t"
    rows: set[int] = set()
    number = 0

    def write(step: str) -> None:
        nonlocal number
        number += 2
        new = {number, number + 1}
        if step == "append":
            tablefeed.append(table, pa.table({"id": sorted(new)}))
            rows.update(new)
        elif step == "overwrite":
            tablefeed.append(table, pa.table({"id": sorted(new)}), mode="overwrite")
            rows.clear()
            rows.update(new)
        elif step == "delete":
            DeltaTable(str(table)).delete("id % 3 = 0")
            rows.difference_update({each for each in rows if each % 3 == 0})
        else:
            tablefeed.optimize(table)

    write("append")
    for step in steps:
        if step == "raced":
            rivals = data.draw(st.lists(st.sampled_from(["append", "delete", "overwrite", "optimize"]), max_size=2))
            fold(raced(table, *(lambda rival=rival: write(rival) for rival in rivals)).load(), ALL)
        else:
            write(step)
        assert ids(table) == sorted(rows)


# --- behind a query's back -------------------------------------------------------------------------------------------


def test_what_is_folded_again_and_again_is_written_anew_as_often_as_it_doubles(tmp_path: Path) -> None:
    written = 0
    for n in range(32):
        tablefeed.append(tmp_path, pa.table({"id": list(range(n * 10_000, (n + 1) * 10_000))}))
        done = fold(open_log(str(tmp_path)).load(), replace(ALL, auto=True))
        written += done.bytes_added
    size = sum(each for batch in tablefeed.open_table(tmp_path).files() for each in batch["size_bytes"].to_pylist())

    assert len(live(tmp_path)) <= 6
    assert written < 6 * size, "each time anew would be 16 times its size"
    assert tablefeed.open_table(tmp_path).to_arrow().num_rows == 320_000


def test_folding_behind_a_query_says_so_in_the_log_and_loses_to_any_rival_in_silence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    five_files(tmp_path)
    fold_behind(raced(tmp_path, lambda: tablefeed.optimize(tmp_path)).load())
    wait_until_done()
    assert [info["operationParameters"]["auto"] for info in said(tmp_path, 5, "commitInfo")] == ["false"]

    tablefeed.append(tmp_path, pa.table({"id": [5]}))
    fold_behind(open_log(str(tmp_path)).load())
    wait_until_done()

    assert [info["operationParameters"]["auto"] for info in said(tmp_path, 7, "commitInfo")] == ["true"]
    assert ids(tmp_path) == [0, 1, 2, 3, 4, 5]
    assert [record.levelname for record in caplog.records if record.levelname == "WARNING"] == []


def test_a_fold_that_fails_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    five_files(tmp_path)
    (tmp_path / live(tmp_path)[0]).unlink()

    fold_behind(open_log(str(tmp_path)).load())
    wait_until_done()

    assert ["optimize failed" in record.getMessage() for record in caplog.records] == [True]
    assert tablefeed.open_table(tmp_path).version == 4
