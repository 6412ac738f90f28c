"""An overwrite of some partitions: by a predicate, or by what is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import tablefeed
from support.commits import a_write, committed, still
from support.logs import Action, a_log, add, col, live_paths, meta, protocol, put, remove, said
from tablefeed import errors
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.write.write_rules import Scope, WriteRules
from tablefeed.log.conflicts import WriteKind

TEXT = pa.string()
ID_P = pa.schema([("id", pa.int64()), ("p", pa.int64())])
PARTED = meta(col("id"), col("p"), partition_columns=["p"])
P_IS_1 = WriteRules(replace_where="p = 1")
DYNAMIC = WriteRules(scope=Scope.PARTITIONS)


def rows(ids: Sequence[int], partitions: Sequence[object], kind: pa.DataType = TEXT) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array(partitions, kind)})


def a_partitioned_table(folder: Path, kind: pa.DataType = TEXT, values: Sequence[object] = ("a", "b", None)) -> str:
    """A row in each of the partitions, numbered from 1, by another writer."""
    table = str(folder / "t")
    write_deltalake(table, rows(range(1, len(values) + 1), values, kind), partition_by=["p"])
    return table


def overwrite(table: str, data: pa.Table, **how: Any) -> None:
    tablefeed.append(table, data, mode="overwrite", **how)


def ids(table: str) -> list[int]:
    ours = sorted(tablefeed.open_table(table).to_arrow()["id"].to_pylist())
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == ours
    return ours


# --- a predicate ---------------------------------------------------------------------------------------------------


IN_DYNAMIC_MODE = {"partition_overwrite_mode": "dynamic"}


def where(predicate: str) -> dict[str, str]:
    return {"replace_where": predicate}


@pytest.mark.parametrize(
    ("how", "data", "left"),
    [
        (where("p = 'a'"), rows([10], ["a"]), [2, 3, 10]),
        (where("p IN ('a', 'b')"), rows([10], ["b"]), [3, 10]),
        (where("p IS NULL"), rows([10], [None]), [1, 2, 10]),
        (where("p <> 'a'"), rows([10], ["z"]), [1, 3, 10]),
        (where("p = 'new'"), rows([10], ["new"]), [1, 2, 3, 10]),
        (where("P = 'a'"), rows([], []), [2, 3]),
        (where("p = 'a' OR p IS NULL"), rows([10, 11], [None, "a"]), [2, 10, 11]),
        (IN_DYNAMIC_MODE, rows([10], ["a"]), [2, 3, 10]),
        (IN_DYNAMIC_MODE, rows([10, 11], ["a", "b"]), [3, 10, 11]),
        (IN_DYNAMIC_MODE, rows([10], [None]), [1, 2, 10]),
        (IN_DYNAMIC_MODE, rows([10], [""]), [1, 2, 10]),
        (IN_DYNAMIC_MODE, rows([10], ["new"]), [1, 2, 3, 10]),
        (IN_DYNAMIC_MODE, rows([], []), [1, 2, 3]),
    ],
)
def test_the_rows_of_a_predicate_or_of_the_partitions_that_are_written_make_way_and_all_others_stay(
    tmp_path: Path, how: dict[str, str], data: pa.Table, left: list[int]
) -> None:
    table = a_partitioned_table(tmp_path)

    overwrite(table, data, **how)

    assert ids(table) == left
    assert tablefeed.open_table(table).version == 1
    deleted = said(Path(table), 1, "commitInfo")[0]["operationMetrics"].get("numDeletedRows")
    assert deleted == (str(3 + data.num_rows - len(left)) if "replace_where" in how else None)


@pytest.mark.parametrize("strange", [["b"], ["a", "b"], ["a", None], [""]])
def test_rows_of_which_the_predicate_is_not_true_are_refused_and_leave_no_file(
    tmp_path: Path, strange: list[str | None]
) -> None:
    table = a_partitioned_table(tmp_path)
    files = sorted(tmp_path.rglob("*.parquet"))

    mismatch = "DELTA_REPLACE_WHERE_MISMATCH.* replaceWhere says, \"p = 'a'\""
    with pytest.raises(errors.InvalidRowsError, match=mismatch):
        overwrite(table, rows([10] * len(strange), strange), replace_where="p = 'a'")

    assert (ids(table), sorted(tmp_path.rglob("*.parquet"))) == ([1, 2, 3], files)


UTC_US, DAYS = pa.timestamp("us", "UTC"), [datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC)]


@pytest.mark.parametrize(
    ("kind", "values", "predicate", "left"),
    [
        (pa.int32(), [1, 2, 10], "p > 1", [1]),
        (pa.date32(), [date(2024, 1, 31), date(2024, 2, 1)], "p >= DATE'2024-02-01'", [1]),
        (UTC_US, DAYS, "p < TIMESTAMP'2024-01-01 12:00:00Z'", [2]),
        (pa.decimal128(5, 2), [Decimal("1.50"), Decimal("2.00")], "p = 1.5", [2]),
        (pa.float64(), [1.5, float("nan"), -0.0], "p = 0.0", [1, 2]),
        (pa.bool_(), [True, False], "p", [2]),
        (pa.string(), ["10", "9"], "p > '5'", [1]),
    ],
)
def test_a_predicate_compares_values_and_not_texts(
    tmp_path: Path, kind: pa.DataType, values: list[object], predicate: str, left: list[int]
) -> None:
    table = a_partitioned_table(tmp_path, kind, values)

    overwrite(table, rows([], [], kind), replace_where=predicate)

    assert ids(table) == left


@pytest.mark.parametrize("predicate", ["upper(p) = 'A'", "p = ", "q = 1", "true", ""])
def test_a_predicate_that_is_not_understood_is_refused_under_its_own_name(tmp_path: Path, predicate: str) -> None:
    table = a_partitioned_table(tmp_path)

    with pytest.raises(errors.IllegalOptionError) as caught:
        overwrite(table, rows([10], ["a"]), replace_where=predicate)

    assert caught.value.option == "replaceWhere"
    assert ids(table) == [1, 2, 3]


# --- the partitions that are written -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values", "written", "left"),
    [
        (pa.float64(), [float("nan"), 1.0, -0.0], [float("nan"), 0.0], [2, 10, 11]),
        (UTC_US, DAYS, DAYS[:1], [2, 10]),
        (pa.date32(), [date(2024, 1, 31), None], [date(2024, 1, 31)], [2, 10]),
        (pa.bool_(), [True, False, None], [False], [1, 3, 10]),
    ],
)
def test_a_partition_is_the_same_by_its_value_however_its_writer_spelt_it(
    tmp_path: Path, kind: pa.DataType, values: list[object], written: list[object], left: list[int]
) -> None:
    table = a_partitioned_table(tmp_path, kind, values)

    overwrite(table, rows(range(10, 10 + len(written)), written, kind), partition_overwrite_mode="dynamic")

    assert ids(table) == left


def test_a_table_without_partitions_is_replaced_as_a_whole_in_dynamic_mode_too(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    write_deltalake(table, rows([1], ["a"]))

    overwrite(table, rows([10], ["b"]), partition_overwrite_mode="dynamic")

    assert ids(table) == [10]


def test_partitions_of_a_table_with_column_mapping_are_told_by_their_physical_names(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    mapped = {"delta.columnMapping.mode": "name"}
    tablefeed.append(table, rows([1, 2, 3], ["a", "b", "c"]), partition_by="p", properties=mapped)

    overwrite(table, rows([10], ["a"]), partition_overwrite_mode="dynamic")
    overwrite(table, rows([11], ["b"]), replace_where="p = 'b'")

    assert sorted(tablefeed.open_table(table).to_arrow()["id"].to_pylist()) == [3, 10, 11]


def test_the_first_write_makes_the_table_in_either_mode(tmp_path: Path) -> None:
    for name, how in {"where": {"replace_where": "p = 'a'"}, "mode": {"partition_overwrite_mode": "dynamic"}}.items():
        table = str(tmp_path / name)
        overwrite(table, rows([1], ["a"]), partition_by="p", **how)
        assert ids(table) == [1]


# --- what a write cannot be ----------------------------------------------------------------------------------------


REPARTITIONED = {"overwrite_schema": True, "partition_by": "p"}


@pytest.mark.parametrize(
    ("how", "error_class"),
    [
        ({"mode": "append", **where("p = 'a'")}, r"^Options 'mode' and 'replaceWhere'"),
        (where("p = 'a'") | IN_DYNAMIC_MODE, "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE"),
        (REPARTITIONED | IN_DYNAMIC_MODE, "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE"),
        (REPARTITIONED | where("p = 'a'"), r"^Options 'replaceWhere' and 'overwriteSchema'"),
    ],
)
def test_what_cannot_be_combined_is_refused(tmp_path: Path, how: dict[str, Any], error_class: str) -> None:
    table = a_partitioned_table(tmp_path)

    with pytest.raises(errors.ConflictingOptionsError, match=error_class):
        tablefeed.append(table, rows([10], ["a"]), **{"mode": "overwrite", **how})

    assert ids(table) == [1, 2, 3]


def test_another_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.OptionError, match="'static' or 'dynamic'"):
        overwrite(a_partitioned_table(tmp_path), rows([10], ["a"]), partition_overwrite_mode="some")


# --- among rivals, and in the log -----------------------------------------------------------------------------------


def in_partition(path: str, value: str | None, **more: Any) -> Action:
    return add(path, partitionValues={"p": value}, **more)


def removed_from(path: str, value: str | None) -> Action:
    return remove(path, partitionValues={"p": value}, extendedFileMetadata=True, size=10)


def partitions() -> TableLog:
    return a_log(
        v0=[protocol(), PARTED, in_partition("one", "1"), in_partition("two", "2"), in_partition("none", None)]
    )


def of_partition_1(log: TableLog, rules: WriteRules) -> Transaction:
    ours = a_write(log, log.load(), "ours", kind=WriteKind.OVERWRITE, schema=ID_P, rules=rules)
    return replace(ours, files=tuple(replace(file, partition_values={"p": "1"}) for file in ours.files))


BOTH = pytest.mark.parametrize("rules", [P_IS_1, DYNAMIC], ids=["predicate", "dynamic"])


@BOTH
@pytest.mark.parametrize(
    ("winner", "error_class"),
    [
        ([in_partition("theirs", "1")], "DELTA_CONCURRENT_APPEND"),
        ([in_partition("theirs", "01")], "DELTA_CONCURRENT_APPEND"),
        ([removed_from("one", "1")], "DELTA_CONCURRENT_DELETE_READ"),
        ([remove("one")], "DELTA_CONCURRENT_DELETE_READ"),
        ([removed_from("one", "1"), in_partition("packed", "1", data_change=False)], "DELTA_CONCURRENT_APPEND"),
    ],
)
def test_a_partial_overwrite_stops_for_a_winner_in_what_it_replaces(
    rules: WriteRules, winner: list[Action], error_class: str
) -> None:
    log = partitions()
    ours = of_partition_1(log, rules)
    snapshot = log.load()
    put(log.store, 1, winner)

    with pytest.raises(errors.ConflictError, match=error_class):
        commit(log, snapshot, ours, still())

    assert "ours" not in live_paths(log)


@BOTH
@pytest.mark.parametrize(
    ("winner", "left"),
    [
        ([in_partition("theirs", "2")], ["none", "ours", "theirs", "two"]),
        ([in_partition("theirs", None)], ["none", "ours", "theirs", "two"]),
        ([removed_from("two", "2")], ["none", "ours"]),
        ([removed_from("two", "2"), in_partition("packed", "2", data_change=False)], ["none", "ours", "packed"]),
    ],
)
def test_a_partial_overwrite_goes_behind_a_winner_elsewhere_and_leaves_its_files(
    rules: WriteRules, winner: list[Action], left: list[str]
) -> None:
    log = partitions()
    ours = of_partition_1(log, rules)
    snapshot = log.load()
    put(log.store, 1, winner)

    outcome, _ = commit(log, snapshot, ours, still())

    assert outcome == committed(2)
    assert live_paths(log) == left


@pytest.mark.parametrize(
    ("how", "parameters"),
    [(where("p = 1"), {"predicate": "p = 1"}), (IN_DYNAMIC_MODE, {"isDynamicPartitionOverwrite": True})],
)
def test_the_log_says_which_rows_were_replaced_as_delta_spark_does(
    tmp_path: Path, how: dict[str, str], parameters: dict[str, object]
) -> None:
    table = a_partitioned_table(tmp_path, pa.int64(), [1, 2])

    overwrite(table, rows([10], [1], pa.int64()), **how)

    [about] = tablefeed.open_table(table).history(1)
    assert about.operation == "WRITE"
    assert about.fields["operationParameters"] == {"mode": "Overwrite", "partitionBy": '["p"]', **parameters}
    assert about.fields["isBlindAppend"] is False


def test_removes_say_of_which_partition_they_are() -> None:
    log = partitions()

    commit(log, log.load(), of_partition_1(log, DYNAMIC), still())

    assert [(each["path"], each["partitionValues"]) for each in said(log, 1, "remove")] == [("one", {"p": "1"})]


@pytest.mark.parametrize("values", [{"p": "one"}, {}])
@BOTH
def test_a_file_whose_partition_cannot_be_told_stops_the_write(rules: WriteRules, values: dict[str, str]) -> None:
    log = a_log(v0=[protocol(), PARTED, add("odd", partitionValues=values)])

    with pytest.raises(errors.LogError, match="partition column 'p'"):
        commit(log, log.load(), of_partition_1(log, rules), still())

    assert live_paths(log) == ["odd"]


@pytest.mark.parametrize(
    ("how", "changed"),
    [
        ({}, [("delete", 1), ("delete", 2), ("delete", 3), ("insert", 10)]),
        ({"replace_where": "p = 'a'"}, [("delete", 1), ("insert", 10)]),
        ({"partition_overwrite_mode": "dynamic"}, [("delete", 1), ("insert", 10)]),
    ],
)
def test_a_change_feed_has_the_rows_that_made_way_and_those_that_came(
    tmp_path: Path, how: dict[str, Any], changed: list[tuple[str, int]]
) -> None:
    table = str(tmp_path / "t")
    fed = {"delta.enableChangeDataFeed": "true"}
    tablefeed.append(table, rows([1, 2, 3], ["a", "b", None]), partition_by="p", properties=fed)

    overwrite(table, rows([10], ["a"]), **how)

    ours = tablefeed.changes(table, start_version=1).read_all()
    theirs = pa.table(DeltaTable(table).load_cdf(starting_version=1))
    for feed in (ours, theirs):
        assert sorted((row["_change_type"], row["id"]) for row in feed.to_pylist()) == changed
