"""`tablefeed.delete` and `update` on the local disk, with and without deletion vectors; delta-rs reads what is left."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder

import tablefeed
from support.logs import change_actions, said
from tablefeed import AlreadyApplied, Committed
from tablefeed.errors import (
    AppendOnlyError,
    IllegalOptionError,
    InvalidRowsError,
    SchemaMismatchError,
    TableNotFoundError,
    UnsupportedExpressionError,
    UnsupportedFeatureError,
)
from tablefeed.feed.rows.attempts import changeable
from tablefeed.feed.rows.update import updating
from tablefeed.feed.snapshot.known_state import current_snapshot
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.model.actions import Version

VECTORS = {"delta.enableDeletionVectors": "true"}
FED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
EVERY = [{}, VECTORS, FED, {**VECTORS, **FED}, {**MAPPED, **FED}, {**MAPPED, **VECTORS, **FED}]
NAMES = ["plain", "vectors", "fed", "vectors-fed", "mapped-fed", "mapped-vectors-fed"]
every_table = pytest.mark.parametrize("properties", EVERY, ids=NAMES)


def a_table(path: Path, properties: Mapping[str, str] = VECTORS) -> str:
    """A table of three files: the ids 0 to 9 in two partitions, and 10 to 12 in the first of them."""
    url = str(path / "table")
    ids = list(range(10))
    first = pa.table({"id": ids, "p": [i % 2 for i in ids], "v": [f"v{i}" for i in ids]})
    tablefeed.append(url, first, partition_by=["p"], properties=properties)
    tablefeed.append(url, pa.table({"id": [10, 11, 12], "p": [0, 0, 0], "v": ["x", "x", None]}))
    return url


def rows(url: str) -> list[dict[str, Any]]:
    """All rows, as we read them and as delta-rs does."""
    found = QueryBuilder().register("t", DeltaTable(url)).execute("SELECT id, p, v FROM t").read_all()
    tables = (tablefeed.open_table(url).to_arrow(), pa.table(found))
    ours, theirs = (sorted(table.to_pylist(), key=lambda row: (row["id"], str(row))) for table in tables)
    assert ours == theirs
    return ours


def ids(url: str) -> list[int]:
    return [row["id"] for row in rows(url)]


def changes(url: str, version: int) -> list[tuple[str, int, str | None]]:
    """What a change feed says of a version: for each row what became of it, its id and its value."""
    feed = tablefeed.changes(url, start_version=version, end_version=version).read_all().to_pylist()
    return sorted((row["_change_type"], row["id"], row["v"]) for row in feed)


def unnamed_files(url: str) -> set[str]:
    """The files in the table's folder that no commit names; of deletion vectors by their number alone."""
    log = "".join(path.read_text() for path in (Path(url) / "_delta_log").glob("*.json"))
    found = {path for path in Path(url).rglob("*") if path.is_file() and "_delta_log" not in path.parts}
    return {path.name for path in found if path.name not in log and not path.name.startswith("deletion_vector")}


@every_table
def test_the_rows_of_a_predicate_go_and_no_others(tmp_path: Path, properties: Mapping[str, str]) -> None:
    url = a_table(tmp_path, properties)
    assert tablefeed.delete(url, "id < 3 OR v = 'x'") == Committed(version=Version(2))
    assert ids(url) == [3, 4, 5, 6, 7, 8, 9, 12]
    assert tablefeed.delete(url, pc.field("id") == 4) == Committed(version=Version(3))
    assert ids(url) == [3, 5, 6, 7, 8, 9, 12]
    assert not unnamed_files(url)


@every_table
def test_rows_go_also_where_a_rule_of_the_table_cannot_be_evaluated(
    tmp_path: Path, properties: Mapping[str, str]
) -> None:
    url = a_table(tmp_path, properties)
    (metadata,) = said(Path(url), 0, "metaData")
    metadata["configuration"]["delta.constraints.odd"] = "xxhash64(id) <> 0"
    (Path(url) / "_delta_log" / f"{2:020d}.json").write_text(json.dumps({"metaData": metadata}))

    with pytest.raises(UnsupportedExpressionError, match="xxhash64"):
        tablefeed.update(url, {"v": "'y'"}, "id < 3")
    tablefeed.delete(url, "id < 3 OR v = 'x'")
    assert ids(url) == [3, 4, 5, 6, 7, 8, 9, 12]


@every_table
def test_rows_get_new_values_from_their_old_ones(tmp_path: Path, properties: Mapping[str, str]) -> None:
    url = a_table(tmp_path, properties)
    tablefeed.update(url, {"v": "concat(v, '!')", "P": "p + 5"}, "id IN (1, 2, 11)")
    assert [row for row in rows(url) if row["p"] > 1] == [
        {"id": 1, "p": 6, "v": "v1!"},
        {"id": 2, "p": 5, "v": "v2!"},
        {"id": 11, "p": 5, "v": "x!"},
    ]
    assert ids(url) == list(range(13))
    assert not unnamed_files(url)


def test_a_nested_column_becomes_null(tmp_path: Path) -> None:
    url, nested = str(tmp_path), {"l": ["a"], "m": [("k", 1)], "s": {"a b": 1.5}}
    kinds = {"l": pa.list_(pa.string()), "m": pa.map_(pa.string(), pa.int32()), "s": pa.struct({"a b": pa.float64()})}
    given = pa.Table.from_pylist([{"id": 1, **nested}, {"id": 2, **nested}], pa.schema({"id": pa.int64(), **kinds}))
    tablefeed.append(url, given, properties=MAPPED)

    tablefeed.update(url, {"l": "NULL", "m": "NULL", "s": "NULL"}, "id = 1")

    found = tablefeed.open_table(url).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": 1, "l": None, "m": None, "s": None}, {"id": 2, **nested}]


@pytest.mark.parametrize(
    "properties", [FED, {**VECTORS, **FED}, {**MAPPED, **FED}], ids=["copies", "vectors", "mapped"]
)
def test_the_change_feed_has_the_rows_that_changed_and_no_others(tmp_path: Path, properties: Mapping[str, str]) -> None:
    url = a_table(tmp_path, properties)
    tablefeed.delete(url, "id IN (1, 10)")
    tablefeed.update(url, {"v": "'new'"}, "id = 11")
    assert changes(url, 2) == [("delete", 1, "v1"), ("delete", 10, "x")]
    assert changes(url, 3) == [("update_postimage", 11, "new"), ("update_preimage", 11, "x")]


def test_a_file_keeps_its_rows_and_gets_another_vector(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    tablefeed.delete(url, "id = 2")
    tablefeed.delete(url, "id = 4")
    (added,), (removed,) = said(Path(url), 3, "add"), said(Path(url), 3, "remove")
    assert added["path"] == removed["path"]
    assert (removed["deletionVector"]["cardinality"], added["deletionVector"]["cardinality"]) == (1, 2)
    stats = json.loads(added["stats"])
    assert (stats["numRecords"], stats["tightBounds"]) == (5, False)


@pytest.mark.parametrize("made_by", [tablefeed.optimize, tablefeed.checkpoint], ids=["optimize", "checkpoint"])
def test_a_change_of_a_file_changes_data_whatever_its_own_add_did(
    tmp_path: Path, made_by: Callable[[str], object]
) -> None:
    url = a_table(tmp_path, {**VECTORS, **FED})
    made_by(url)
    version = tablefeed.delete(url, "id = 10").version
    (added,), (removed,) = said(Path(url), version, "add"), said(Path(url), version, "remove")
    assert added["path"] == removed["path"]
    assert added["dataChange"] is removed["dataChange"] is True
    assert changes(url, version) == [("delete", 10, "x")]


def test_statistics_keep_every_digit_when_rows_of_their_file_are_deleted(tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    numbers = pa.array(["12345678901234567890123456789.123456789"] * 2).cast(pa.decimal128(38, 9))
    tablefeed.append(url, pa.table({"id": [1, 2], "n": numbers}), properties=VECTORS)
    tablefeed.delete(url, "id = 1")
    assert (
        '\\"n\\":12345678901234567890123456789.123456789' in (Path(url) / "_delta_log" / f"{1:020d}.json").read_text()
    )


def test_many_deleted_rows_are_in_one_file_that_the_log_names(tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    for begin in (0, 10_000):
        tablefeed.append(url, pa.table({"id": range(begin, begin + 10_000)}), properties=VECTORS)
    tablefeed.delete(url, " OR ".join(f"id = {number}" for number in range(0, 20_000, 40)))
    first, second = (add["deletionVector"] for add in said(Path(url), 2, "add"))
    assert first["storageType"] == second["storageType"] == "u"
    assert first["pathOrInlineDv"] == second["pathOrInlineDv"]
    assert first["offset"] != second["offset"]
    assert len(list(Path(url).glob("deletion_vector_*.bin"))) == 1
    assert tablefeed.open_table(url).to_arrow().num_rows == 19_500


def test_also_one_deleted_row_is_in_a_file_because_the_jars_vacuum_fails_on_vectors_in_the_log(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    tablefeed.delete(url, "id = 2")
    (added,) = said(Path(url), 2, "add")
    assert added["deletionVector"]["storageType"] == "u"


def test_a_table_whose_protocol_lacks_deletion_vectors_gets_none(tmp_path: Path) -> None:
    url = a_table(tmp_path, {})
    DeltaTable(url).alter.set_table_properties({"delta.appendOnly": "false"})
    last = Path(url) / "_delta_log" / f"{2:020d}.json"
    last.write_text(
        last.read_text().replace("delta.appendOnly", "delta.enableDeletionVectors").replace("false", "true")
    )
    tablefeed.delete(url, "id = 10")
    (added,) = said(Path(url), 3, "add")
    assert "deletionVector" not in added
    assert ids(url) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12]


def test_a_file_of_which_no_row_is_left_is_removed(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    tablefeed.delete(url, "id >= 10")
    assert (len(said(Path(url), 2, "add")), len(said(Path(url), 2, "remove"))) == (0, 1)
    tablefeed.delete(url, "TRUE")
    assert (len(said(Path(url), 3, "add")), len(said(Path(url), 3, "remove"))) == (0, 2)
    assert tablefeed.open_table(url).to_arrow().num_rows == 0


def test_a_row_for_which_the_predicate_is_null_stays(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    tablefeed.delete(url, "v <> 'x'")
    assert ids(url) == [10, 11, 12]


def test_where_no_row_is_found_nothing_is_committed(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    assert tablefeed.delete(url, "id = 99") == Committed(version=Version(1), written=False)
    assert tablefeed.update(url, {"v": "'a'"}, "id = 99") == Committed(version=Version(1), written=False)
    assert not (Path(url) / "_delta_log" / f"{2:020d}.json").exists()


@pytest.mark.parametrize("where", ["id IN (3, 99)", "id = 99"], ids=["a row", "no row"])
def test_a_change_with_a_txn_is_made_once(tmp_path: Path, where: str) -> None:
    url = a_table(tmp_path)
    assert tablefeed.delete(url, where, app_id="job", txn_version=7) == Committed(version=Version(2))
    tablefeed.append(url, pa.table({"id": [99], "p": [1], "v": ["new"]}))
    assert isinstance(tablefeed.delete(url, where, app_id="job", txn_version=7), AlreadyApplied)
    assert isinstance(tablefeed.update(url, {"v": "'no'"}, app_id="job", txn_version=6), AlreadyApplied)
    assert {"id": 99, "p": 1, "v": "new"} in rows(url)


def test_the_history_names_the_change_its_predicate_and_its_rows(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    tablefeed.delete(url, "id IN (1, 2)")
    tablefeed.update(url, {"v": "'new'"}, "id IN (3, 4, 5)")
    tablefeed.update(url, {"v": "'all'"})
    told = [commit for version in (2, 3, 4) for commit in said(Path(url), version, "commitInfo")]
    assert [(one["operation"], one["operationParameters"]) for one in told] == [
        ("DELETE", {"predicate": '["id IN (1, 2)"]'}),
        ("UPDATE", {"predicate": '["id IN (3, 4, 5)"]'}),
        ("UPDATE", {}),
    ]
    counted = [{name: n for name, n in one["operationMetrics"].items() if name.endswith("tedRows")} for one in told]
    assert counted == [{"numDeletedRows": "2"}, {"numUpdatedRows": "3"}, {"numUpdatedRows": "11"}]


def test_the_time_in_an_update_is_that_at_which_it_began(tmp_path: Path) -> None:
    url = a_table(tmp_path)
    target = TargetRows(changeable(current_snapshot(open_log(url))))
    began = [1_700_000_000_999]
    made = updating(target, {"id": "unix_timestamp()"}, None, shown=None, txn=None, now_ms=began.pop)
    assert made is not None
    found = pa.Table.from_batches(target.read(made.files, target.schema))
    assert set(found["id"].to_pylist()) == {1_700_000_000}


def test_new_values_keep_the_rules_of_the_table(tmp_path: Path) -> None:
    url = a_table(tmp_path, {"delta.constraints.small": "id < 100", **VECTORS})
    with pytest.raises(InvalidRowsError, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        tablefeed.update(url, {"id": "id + 95"}, "id IN (1, 7)")
    assert ids(url) == list(range(13))
    assert not unnamed_files(url)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"nope": "1"}, IllegalOptionError, "nope"),
        ({"v": "1", "V": "2"}, IllegalOptionError, "twice"),
        ({}, IllegalOptionError, "must name a column"),
        ({"v": "no_such_function(v)"}, IllegalOptionError, "no_such_function"),
        ({"v": 1}, IllegalOptionError, "must be a text"),
        ({"id": "1 / 0"}, InvalidRowsError, "1 / 0"),
    ],
)
def test_assignments_that_cannot_be_made_are_refused_by_name(
    tmp_path: Path, given: dict[str, str], error: type[Exception], text: str
) -> None:
    url = a_table(tmp_path)
    with pytest.raises(error, match=text):
        tablefeed.update(url, given, "id = 1")
    assert ids(url) == list(range(13))


def test_tables_that_cannot_lose_rows_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        tablefeed.delete(tmp_path / "none", "id = 1")
    url = a_table(tmp_path, {"delta.appendOnly": "true"})
    with pytest.raises(AppendOnlyError):
        tablefeed.delete(url, "id = 1")
    splits = str(tmp_path / "splits")
    tablefeed.append(splits, pa.table({"id": [1]}), table_format="indextables")
    with pytest.raises(UnsupportedFeatureError, match="IndexTables"):
        tablefeed.delete(splits, "id = 1")


def test_a_column_that_the_change_feed_has_itself_is_refused_by_name(tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    tablefeed.append(url, pa.table({"id": [1], "_change_type": ["x"]}))
    tablefeed.alter(url, set_properties=MAPPED, rename_columns={"_change_type": "kind"})
    # As another writer may turn the feed on, although files keep the column's first name.
    change_actions(url, 1, lambda action: action.get("metaData", {}).get("configuration", {}).update(FED))
    with pytest.raises(SchemaMismatchError, match="RESERVED_CDC_COLUMNS_ON_WRITE"):
        tablefeed.update(url, {"id": "2"})
    assert not unnamed_files(url)
