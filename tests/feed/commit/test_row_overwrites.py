"""An overwrite of the rows of a predicate on any column: what goes, what stays, and what the table tells of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

import tablefeed
from feed.upkeep.test_optimize import data_files
from support.commits import already_applied, committed, raced, still, written
from support.faulty_store import Fault, FaultyStore
from support.logs import Action, add, col, log_of, meta, metadata, protocol, put, remove, said
from support.maintained import delete_rows, ids, live, rows_of
from tablefeed.errors import ConflictError, InvalidRowsError, SchemaMismatchError, StoreError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.store.local import LocalStore

FED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("p", pa.string())])
Row = dict[str, Any]


def table_of(rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def numbered(*row_ids: int | None) -> pa.Table:
    return pa.table({"id": pa.array(row_ids, pa.int64())})


def overwrite(table: Path, data: pa.Table, where: str) -> None:
    tablefeed.append(table, data, mode="overwrite", replace_where=where)


def changed(table: Path, version: int) -> list[tuple[str, int]]:
    """The changes of `version`, as we read them and as another reader does."""
    ours = tablefeed.changes(table, start_version=version, end_version=version).read_all().to_pylist()
    theirs = pa.table(DeltaTable(str(table)).load_cdf(starting_version=version, ending_version=version)).to_pylist()
    found = [sorted((row["_change_type"], row["id"]) for row in feed) for feed in (ours, theirs)]
    assert found[0] == found[1]
    return found[0]


# --- which rows ----------------------------------------------------------------------------------------------------


def test_rows_of_the_predicate_make_way_and_all_others_stay_in_one_commit(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, numbered(1, 2, 3, None))
    tablefeed.append(tmp_path, numbered(4, 5))

    overwrite(tmp_path, numbered(30, 31), "id = 3 OR id = 4 OR id > 20")

    for rows in (tablefeed.open_table(tmp_path).to_arrow(), DeltaTable(str(tmp_path)).to_pyarrow_table()):
        assert sorted(rows["id"].to_pylist(), key=str) == [1, 2, 30, 31, 5, None]
    assert tablefeed.open_table(tmp_path).version == 2


def test_a_file_without_such_a_row_stays_and_one_with_nothing_else_goes_whole(tmp_path: Path) -> None:
    for row_ids in ((1, 2), (3, 4), (5, 6)):
        tablefeed.append(tmp_path, numbered(*row_ids))
    none, some, every = (said(tmp_path, version, "add")[0]["path"] for version in range(3))

    overwrite(tmp_path, numbered(), "id > 3")

    assert not (tmp_path / "_change_data").exists(), "nobody asks for it"
    (kept,) = said(tmp_path, 3, "add")
    assert sorted(each["path"] for each in said(tmp_path, 3, "remove")) == sorted([some, every])
    assert live(tmp_path) == sorted([none, kept["path"]])
    assert pq.read_table(tmp_path / kept["path"])["id"].to_pylist() == [3]


def test_files_that_cannot_have_such_a_row_are_not_opened(tmp_path: Path) -> None:
    for row_ids in ((1, 2), (3, 4)):
        tablefeed.append(tmp_path, numbered(*row_ids))
    (tmp_path / said(tmp_path, 0, "add")[0]["path"]).unlink()

    overwrite(tmp_path, numbered(), "id = 3")

    assert len(live(tmp_path)) == 2


@pytest.mark.parametrize("strange", [[3, 1], [None], [3, None]])
def test_new_rows_of_which_the_predicate_is_false_or_null_are_refused_and_leave_no_file(
    tmp_path: Path, strange: list[int | None]
) -> None:
    tablefeed.append(tmp_path, numbered(1, 2, 3))
    files = data_files(tmp_path)

    mismatch = r"DELTA_REPLACE_WHERE_MISMATCH.* replaceWhere says, 'id > 2'.*\n - id : (1|null)\n"
    with pytest.raises(InvalidRowsError, match=mismatch):
        overwrite(tmp_path, numbered(*strange), "id > 2")

    assert (ids(tmp_path), data_files(tmp_path)) == ([1, 2, 3], files)


def test_new_rows_are_held_against_it_with_the_values_that_the_table_gives_them(tmp_path: Path) -> None:
    x = col("x", notes={"delta.generationExpression": "id * 10"})
    put(LocalStore(str(tmp_path)), 0, [protocol(1, 4), meta(col("id"), x)])
    tablefeed.append(tmp_path, numbered(1, 2, 3))

    overwrite(tmp_path, numbered(4), "x >= 20")
    with pytest.raises(InvalidRowsError, match=" - x : 10"):
        overwrite(tmp_path, numbered(1), "x >= 20")

    assert rows_of(tmp_path) == [{"id": 1, "x": 10}, {"id": 4, "x": 40}]


def test_rows_that_stay_are_not_held_against_rules_that_came_after_them(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, numbered(-1, 2, 3))
    DeltaTable(str(tmp_path)).alter.set_table_properties({"delta.appendOnly": "false"})
    table = open_log(str(tmp_path)).load().metadata
    rule = {**table.configuration, "delta.constraints.positive": "id > 0"}
    put(LocalStore(str(tmp_path)), 2, [protocol(1, 3), metadata(table.schema_string, configuration=rule)])

    overwrite(tmp_path, numbered(5), "id > 2")

    assert ids(tmp_path) == [-1, 2, 5]


def test_an_empty_text_in_a_partition_column_is_null_to_the_predicate(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, table_of([{"id": 1, "p": "a"}]), partition_by="p")

    with pytest.raises(InvalidRowsError, match=" - p : null"):
        overwrite(tmp_path, table_of([{"id": 2, "p": ""}]), "id = 2 AND p <> 'b'")


def test_columns_that_the_write_adds_are_null_in_the_rows_that_were_there(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, numbered(1, 2))
    new = pa.table({"id": [7], "new": ["n"]})

    tablefeed.append(tmp_path, new, mode="overwrite", replace_where="id > 1", merge_schema=True)

    assert rows_of(tmp_path) == [{"id": 1, "new": None}, {"id": 7, "new": "n"}]


def test_a_table_that_is_made_takes_the_rows_of_the_predicate_only(tmp_path: Path) -> None:
    with pytest.raises(InvalidRowsError):
        overwrite(tmp_path, numbered(1), "id > 2")
    overwrite(tmp_path, numbered(3), "id > 2")

    assert ids(tmp_path) == [3]


# --- against a model -----------------------------------------------------------------------------------------------

IDS = st.none() | st.integers(0, 4)
XS = st.none() | st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf])
ROWS = st.lists(st.fixed_dictionaries({"id": IDS, "x": XS, "p": st.sampled_from(["a", "b", None])}), max_size=6)


Answer = bool | None


def above(value: Any, bound: float) -> Answer:
    """Spark's order, by which NaN is above all numbers."""
    return None if value is None else math.isnan(value) or value > bound


def both(one: Answer, other: Answer) -> Answer:
    return False if one is False or other is False else None if one is None or other is None else True


def negated(one: Answer) -> Answer:
    return None if one is None else not one


PREDICATES: Mapping[str, Callable[[Row], Answer]] = {
    "id >= 2": lambda r: None if r["id"] is None else r["id"] >= 2,
    "NOT (id = 1)": lambda r: None if r["id"] is None else r["id"] != 1,
    "id IS NULL": lambda r: r["id"] is None,
    "id <=> 3 OR x IS NULL": lambda r: r["id"] == 3 or r["x"] is None,
    "x > 1.5": lambda r: above(r["x"], 1.5),
    "NOT (x > 1.5)": lambda r: negated(above(r["x"], 1.5)),
    "x = 0.0": lambda r: None if r["x"] is None else r["x"] == 0.0,
    "p = 'a' AND id < 3": lambda r: both(
        None if r["p"] is None else r["p"] == "a", None if r["id"] is None else r["id"] < 3
    ),
    "p = 'b' AND NOT (x > 0.5)": lambda r: both(None if r["p"] is None else r["p"] == "b", negated(above(r["x"], 0.5))),
}


def as_texts(rows: Sequence[Row]) -> list[str]:
    """The rows in an order, in which NaN is NaN and 0.0 is not -0.0."""
    return sorted(str(sorted(row.items())) for row in rows)


@settings(max_examples=60, deadline=None)
@given(
    files=st.lists(ROWS.filter(bool), min_size=1, max_size=3),
    deleted=st.sets(st.integers(0, 5), min_size=0, max_size=2),
    new=ROWS,
    predicate=st.sampled_from(sorted(PREDICATES)),
    partitioned=st.booleans(),
    mapped=st.booleans(),
)
def test_what_is_left_and_what_the_feed_tells_is_what_a_model_says(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[Row]],
    deleted: set[int],
    new: list[Row],
    predicate: str,
    partitioned: bool,  # noqa: FBT001
    mapped: bool,  # noqa: FBT001
) -> None:
    table = tmp_path_factory.mktemp("model")
    held = PREDICATES[predicate]
    properties = {**FED, "delta.enableDeletionVectors": "true"}
    properties |= {"delta.columnMapping.mode": "name"} if mapped else {}
    for rows in files:
        tablefeed.append(table, table_of(rows), partition_by=("p",) if partitioned else (), properties=properties)
    first = [row for rows in files for row in rows]
    if not partitioned and deleted and (gone := {n for n in deleted if n < len(files[0])}):
        delete_rows(table, said(table, 0, "add")[0]["path"], *sorted(gone))
        first = [row for n, row in enumerate(files[0]) if n not in gone] + [row for rows in files[1:] for row in rows]
    new = [row for row in new if held(row) is True]

    tablefeed.append(table, table_of(new), mode="overwrite", replace_where=predicate)

    version = tablefeed.open_table(table).version
    stay = [row for row in first if held(row) is not True]
    went = [{**row, "_change_type": "delete"} for row in first if held(row) is True]
    came = [{**row, "_change_type": "insert"} for row in new]
    feed = tablefeed.changes(table, start_version=version).read_all().drop(["_commit_version", "_commit_timestamp"])
    assert as_texts(tablefeed.open_table(table).to_arrow().to_pylist()) == as_texts([*stay, *new])
    assert as_texts(feed.to_pylist()) == as_texts([*went, *came])


# --- deletion vectors ------------------------------------------------------------------------------------------------


def test_rows_that_are_deleted_already_stay_deleted_and_are_not_deleted_again(tmp_path: Path) -> None:
    properties = {**FED, "delta.enableDeletionVectors": "true"}
    tablefeed.append(tmp_path, numbered(1, 2, 3, 4), properties=properties)
    after = delete_rows(tmp_path, said(tmp_path, 0, "add")[0]["path"], 0, 3)

    overwrite(tmp_path, numbered(9), "id > 2")

    assert ids(tmp_path) == [2, 9]
    (removed,) = said(tmp_path, 2, "remove")
    assert removed["deletionVector"] == after["deletionVector"]
    told = tablefeed.changes(tmp_path, start_version=2).read_all().to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in told) == [("delete", 3), ("insert", 9)]


def test_a_table_with_deletion_vectors_gets_vectors_and_no_copies(tmp_path: Path) -> None:
    properties = {**FED, "delta.enableDeletionVectors": "true"}
    for row_ids in ((1, 2), (3, 4), (5, 6)):
        tablefeed.append(tmp_path, numbered(*row_ids), properties=properties)
    none, some, every = (said(tmp_path, version, "add")[0] for version in range(3))

    overwrite(tmp_path, numbered(7), "id > 3")

    new, marked = said(tmp_path, 3, "add")
    assert (marked["path"], marked["deletionVector"]["cardinality"]) == (some["path"], 1)
    assert sorted(each["path"] for each in said(tmp_path, 3, "remove")) == sorted([some["path"], every["path"]])
    assert live(tmp_path) == sorted([none["path"], some["path"], new["path"]])
    assert ids(tmp_path) == [1, 2, 3, 7]
    assert not (tmp_path / "_change_data").exists(), "adds, removes and vectors imply the changes"
    told = tablefeed.changes(tmp_path, start_version=3).read_all().to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in told) == [
        ("delete", 4),
        ("delete", 5),
        ("delete", 6),
        ("insert", 7),
    ]
    assert said(tmp_path, 3, "commitInfo")[0]["operationMetrics"] == {
        "numFiles": "1",
        "numOutputRows": "1",
        "numOutputBytes": str(new["size"]),
        "numRemovedFiles": "1",
        "numRemovedBytes": str(every["size"]),
        "numAddedChangeFiles": "0",
        "numDeletedRows": "3",
        "numCopiedRows": "0",
    }


# --- the change feed -------------------------------------------------------------------------------------------------


def test_where_a_file_is_written_anew_the_feed_has_the_rows_that_went_and_came_and_no_others(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, numbered(1, 2, 3), properties=FED)
    tablefeed.append(tmp_path, numbered(4, 5))

    overwrite(tmp_path, numbered(8, 9), "id > 2")

    assert changed(tmp_path, 2) == [("delete", 3), ("delete", 4), ("delete", 5), ("insert", 8), ("insert", 9)]
    (told,) = said(tmp_path, 2, "cdc")
    assert told["path"].startswith("_change_data/cdc-")
    assert told["dataChange"] is False
    assert said(tmp_path, 2, "commitInfo")[0]["operationMetrics"] == {
        "numFiles": "2",
        "numOutputRows": "4",
        "numOutputBytes": str(sum(each["size"] for each in said(tmp_path, 2, "add"))),
        "numRemovedFiles": "2",
        "numRemovedBytes": str(sum(each["size"] for each in said(tmp_path, 2, "remove"))),
        "numAddedChangeFiles": "1",
        "numDeletedRows": "3",
        "numCopiedRows": "2",
    }


def test_where_whole_files_go_the_adds_and_removes_tell_it(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, numbered(1, 2), properties=FED)
    tablefeed.append(tmp_path, numbered(4, 5))

    overwrite(tmp_path, numbered(8), "id > 2")

    assert said(tmp_path, 2, "cdc") == []
    assert changed(tmp_path, 2) == [("delete", 4), ("delete", 5), ("insert", 8)]


def test_changes_are_parted_as_the_table_is(tmp_path: Path) -> None:
    rows: list[Row] = [{"id": 1, "p": "a b"}, {"id": 2, "p": "a b"}, {"id": 3, "p": None}]
    tablefeed.append(tmp_path, table_of(rows), partition_by="p", properties=FED)

    overwrite(tmp_path, table_of([{"id": 9, "p": None}]), "id > 1")

    folders = {each["path"].rpartition("/")[0]: each["partitionValues"] for each in said(tmp_path, 1, "cdc")}
    assert folders == {"_change_data/p=a%20b": {"p": "a b"}, "_change_data/p=__HIVE_DEFAULT_PARTITION__": {"p": None}}
    assert changed(tmp_path, 1) == [("delete", 2), ("delete", 3), ("insert", 9)]


def test_the_older_name_of_the_property_asks_for_changes_too(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, numbered(1, 2, 3), properties=FED)
    first = tmp_path / "_delta_log" / f"{0:020d}.json"
    first.write_text(first.read_text().replace("delta.enableChangeDataFeed", "delta.enableChangeDataCapture"))
    first.with_suffix(".crc").unlink()

    overwrite(tmp_path, numbered(8), "id > 2")

    told = tablefeed.changes(tmp_path, start_version=1).read_all().to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in told) == [("delete", 3), ("insert", 8)]


# --- tables that refuse it -------------------------------------------------------------------------------------------


def test_a_table_whose_changes_would_have_a_column_twice_refuses_it(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1, 2], "_change_type": ["mine", "mine"]}))
    table = open_log(str(tmp_path)).load().metadata
    put(LocalStore(str(tmp_path)), 1, [protocol(1, 4), metadata(table.schema_string, configuration=FED)])

    with pytest.raises(SchemaMismatchError, match="RESERVED_CDC_COLUMNS_ON_WRITE"):
        overwrite(tmp_path, pa.table({"id": [2], "_change_type": ["mine"]}), "id > 1")


# --- rivals, crashes -------------------------------------------------------------------------------------------------


def a_transaction(log: TableLog, data: pa.Table, where: str, txn: tuple[str, int] | None = None) -> Transaction:
    return written(log, data, kind=WriteKind.OVERWRITE, rules=WriteRules(replace_where=where), txn=txn)


def two_files(path: Path) -> tuple[str, str]:
    """1, 2 and 3 in one file, 7 and 8 in another."""
    write_deltalake(str(path), numbered(1, 2, 3))
    write_deltalake(str(path), numbered(7, 8), mode="append")
    return said(path, 0, "add")[0]["path"], said(path, 1, "add")[0]["path"]


BOUNDS = '{"numRecords":1,"minValues":{"id":%d},"maxValues":{"id":%d},"nullCount":{"id":0}}'


def theirs(low: int, high: int) -> Action:
    return add("theirs.parquet", stats=BOUNDS % (low, high))


def gone(path: str, low: int, high: int) -> Action:
    return remove(path, partitionValues={}, stats=BOUNDS % (low, high))


@pytest.mark.parametrize("when", ["before our commit", "while we put"])
@pytest.mark.parametrize(
    ("rival", "error_class"),
    [
        (lambda _one, _other: [theirs(3, 5)], "DELTA_CONCURRENT_APPEND"),
        (lambda _one, _other: [add("theirs.parquet")], "DELTA_CONCURRENT_APPEND"),
        (lambda one, _other: [remove(one)], "DELTA_CONCURRENT_DELETE_READ"),
        (lambda one, _other: [remove(one), add("packed", data_change=False)], "DELTA_CONCURRENT_APPEND"),
        (lambda one, _other: [gone(one, 1, 3)], "DELTA_CONCURRENT_DELETE_READ"),
    ],
)
def test_it_stops_for_a_rival_in_rows_that_may_be_of_the_predicate_and_leaves_nothing_it_wrote(
    tmp_path: Path, rival: Callable[[str, str], list[Action]], error_class: str, when: str
) -> None:
    one, other = two_files(tmp_path)

    def lands() -> None:
        put(LocalStore(str(tmp_path)), 2, rival(one, other))

    log = raced(tmp_path, *[lands] * (when == "while we put"))
    snapshot, ours = log.load(), a_transaction(log, numbered(4), "id > 2 AND id < 6")
    if when == "before our commit":
        lands()

    with pytest.raises(ConflictError) as caught:
        commit(log, snapshot, ours, still())

    assert (caught.value.error_class, caught.value.winner) == (error_class, 2)
    assert data_files(tmp_path) == {one, other}
    assert not (tmp_path / "_delta_log/00000000000000000003.json").exists()


def test_it_stops_for_a_rival_that_removed_a_file_it_has_written_anew_whatever_that_says_of_it(tmp_path: Path) -> None:
    one, other = two_files(tmp_path)
    log = raced(tmp_path, lambda: put(LocalStore(str(tmp_path)), 2, [gone(one, 7, 8)]))
    ours = a_transaction(log, numbered(4), "id > 2 AND id < 6")

    with pytest.raises(ConflictError, match="DELTA_CONCURRENT_DELETE_READ"):
        commit(log, log.load(), ours, still())

    assert data_files(tmp_path) == {one, other}


@pytest.mark.parametrize("rival", [lambda _one, _other: [theirs(6, 9)], lambda _one, other: [gone(other, 7, 8)]])
def test_it_goes_behind_a_rival_in_rows_that_are_not_of_the_predicate_and_writes_nothing_twice(
    tmp_path: Path, rival: Callable[[str, str], list[Action]]
) -> None:
    one, other = two_files(tmp_path)
    log = raced(tmp_path, lambda: put(LocalStore(str(tmp_path)), 2, rival(one, other)))
    ours = a_transaction(log, numbered(4), "id > 2 AND id < 6")

    outcome, _ = commit(log, log.load(), ours, still())

    assert outcome == committed(3)
    assert [each["path"] for each in said(tmp_path, 3, "remove")] == [one]
    assert len(data_files(tmp_path)) == 4


def test_a_rival_that_begins_to_track_rows_stops_it(tmp_path: Path) -> None:
    two_files(tmp_path)
    table = open_log(str(tmp_path)).load().metadata
    tracked = protocol(1, 7, writerFeatures=["appendOnly", "invariants", "rowTracking", "domainMetadata"])
    rival = [tracked, metadata(table.schema_string, table_id=table.table_id, configuration=TRACKED)]
    log = raced(tmp_path, lambda: put(LocalStore(str(tmp_path)), 2, rival))
    ours = a_transaction(log, numbered(4), "id > 2 AND id < 6")

    with pytest.raises(ConflictError, match="DELTA_PROTOCOL_CHANGED"):
        commit(log, log.load(), ours, still())

    assert len(data_files(tmp_path)) == 2


def test_a_write_that_the_table_records_rewrites_nothing(tmp_path: Path) -> None:
    two_files(tmp_path)
    log, again = open_log(str(tmp_path)), ("app", 1)
    first = a_transaction(log, numbered(4), "id > 2 AND id < 6", again)
    second = a_transaction(log, numbered(4), "id > 2 AND id < 6", again)

    commit(log, log.load(), first, still())
    files = data_files(tmp_path) - {second.files[0].path}
    outcome, _ = commit(log, log.load(), second, still())

    assert outcome == already_applied(2, recorded=1)
    assert (ids(tmp_path), data_files(tmp_path)) == ([1, 2, 4, 7, 8], files)


@pytest.mark.parametrize("new", [(4,), ()], ids=["with new rows", "without new rows"])
def test_a_run_that_loses_its_put_to_its_twin_leaves_none_of_its_files(tmp_path: Path, new: tuple[int, ...]) -> None:
    two_files(tmp_path)
    again = ("app", 1)
    plain = open_log(str(tmp_path))
    twin, ours = (a_transaction(plain, numbered(*new), "id > 2 AND id < 6", again) for _ in range(2))
    log = raced(tmp_path, lambda: commit(plain, plain.load(), twin, still()))

    outcome, _ = commit(log, log.load(), ours, still())

    assert outcome == already_applied(2, recorded=1)
    assert ids(tmp_path) == sorted([1, 2, *new, 7, 8])
    assert data_files(tmp_path) == {add["path"] for version in range(3) for add in said(tmp_path, version, "add")}


@pytest.mark.parametrize(
    "fails",
    [
        Fault(operation="open_input", at=2, name="part-"),  # first to see which rows are meant, then to copy the others
        Fault(operation="create", name="_change_data"),
    ],
    ids=["part-", "_change_data"],
)
def test_what_was_written_before_a_file_could_not_be_is_gone_again(tmp_path: Path, fails: Fault) -> None:
    tablefeed.append(tmp_path, numbered(1, 2, 3), properties=FED)
    ours = a_transaction(open_log(str(tmp_path)), numbered(4), "id > 2")
    files = data_files(tmp_path)
    log = log_of(FaultyStore(LocalStore(str(tmp_path)), faults=[fails]))

    with pytest.raises(StoreError):
        commit(log, log.load(), ours, still())

    assert (ids(tmp_path), data_files(tmp_path)) == ([1, 2, 3], files)
