"""`tablefeed.restore`: the table of an earlier version in one commit. delta-rs reads what was restored."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import tablefeed
from support.commits import committed
from support.logs import (
    VECTOR,
    VECTOR_FILE,
    Action,
    a_log,
    add,
    col,
    commit_path,
    info,
    meta,
    metadata,
    protocol,
    put,
    remove,
    said,
)
from tablefeed import errors
from tablefeed.feed.api.table_changes import restore_table
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.model.actions import Version
from tablefeed.store import Content, Within
from tablefeed.store.memory import MemoryStore

V1, V2, V3 = pa.table({"id": [1]}), pa.table({"id": [2]}), pa.table({"id": [3], "new": ["x"]})
ONE = json.dumps({"numRecords": 1})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Version 0 has the row 1, version 1 also the row 2, version 3 only the row 3, with another column."""
    tablefeed.append(tmp_path, V1)
    tablefeed.append(tmp_path, V2)
    tablefeed.alter(tmp_path, add_columns=[pa.field("new", pa.string())], set_properties={"mine": "x"})
    tablefeed.append(tmp_path, V3, mode="overwrite")
    return tmp_path


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows, which delta-rs and we read alike."""
    rows = tablefeed.open_table(path).to_arrow().to_pylist()
    assert sorted(map(str, DeltaTable(str(path)).to_pyarrow_table().to_pylist())) == sorted(map(str, rows))
    return sorted(rows, key=str)


def files(log: DeltaLog | Path, version: int, kind: str) -> list[str]:
    return sorted(action["path"] for action in said(log, version, kind))


def a_restored(log: DeltaLog, version: int) -> object:
    return restore_table(log.load_for_files(), log.load_for_files(Version(version)), {"version": version})


# --- what a restore makes of a table ---------------------------------------------------------------------------------


def test_a_table_gets_the_files_the_schema_and_the_properties_of_the_version(table: Path) -> None:
    assert tablefeed.restore(table, version=1) == committed(4)

    assert rows_of(table) == [{"id": 1}, {"id": 2}]
    assert tablefeed.open_table(table).metadata == tablefeed.open_table(table, version=1).metadata
    assert len(files(table, 4, "add")) == 2
    assert files(table, 4, "remove") == files(table, 3, "add")
    assert all(action["dataChange"] for kind in ("add", "remove") for action in said(table, 4, kind))
    assert tablefeed.append(table, V2) == committed(5)
    assert tablefeed.restore(table, version=3) == committed(6)
    assert rows_of(table) == [{"id": 3, "new": "x"}]


def test_files_of_both_versions_are_neither_added_nor_removed(table: Path) -> None:
    tablefeed.restore(table, version=1)

    tablefeed.restore(table, version=0)

    assert (files(table, 5, "add"), files(table, 5, "remove")) == ([], files(table, 1, "add"))
    assert rows_of(table) == [{"id": 1}]


def test_the_commit_says_what_delta_sparks_says(table: Path) -> None:
    size = {version: sum(a["size"] for a in said(table, version, "add")) for version in (0, 1, 3)}

    tablefeed.restore(table, version=1)

    (found,) = said(table, 4, "commitInfo")
    assert (found["operation"], found["isBlindAppend"]) == ("RESTORE", False)
    assert found["operationParameters"] == {"version": 1, "timestamp": None}
    assert found["operationMetrics"] == {
        "tableSizeAfterRestore": str(size[0] + size[1]),
        "numOfFilesAfterRestore": "2",
        "numRemovedFiles": "1",
        "numRestoredFiles": "2",
        "removedFilesSize": str(size[3]),
        "restoredFilesSize": str(size[0] + size[1]),
    }


def test_a_time_names_the_newest_version_up_to_it(table: Path) -> None:
    for version in range(4):
        at_s = 1_700_000_000 + 60 * version
        os.utime(table / "_delta_log" / f"{version:020d}.json", (at_s, at_s))

    tablefeed.restore(table, timestamp="2023-11-14 22:14:30")  # 1,700,000,070: version 1, and not yet version 2

    assert rows_of(table) == [{"id": 1}, {"id": 2}]
    (found,) = said(table, 4, "commitInfo")
    assert found["operationParameters"] == {"version": None, "timestamp": "2023-11-14 22:14:30"}


DV = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"])
STATS = json.dumps({"numRecords": 9})


def with_vectors() -> DeltaLog:
    """A log in which a file gets a deletion vector in version 1."""
    log = a_log(
        v0=[DV, metadata(), add("a", stats=STATS)],
        v1=[remove("a"), add("a", stats=STATS, deletionVector=VECTOR)],
    )
    log.store.replace("a", b"rows")
    log.store.replace(VECTOR_FILE, b"vector")
    return log


def test_deletion_vectors_are_as_they_were_and_a_file_with_another_one_is_another_file() -> None:
    log = with_vectors()

    a_restored(log, 0)
    a_restored(log, 1)

    assert [(a["path"], a.get("deletionVector")) for a in said(log, 2, "add")] == [("a", None)]
    assert [(a["path"], a["deletionVector"]) for a in said(log, 2, "remove")] == [("a", VECTOR)]
    assert [a["deletionVector"] for a in said(log, 3, "add")] == [VECTOR]
    assert [a.get("deletionVector") for a in said(log, 3, "remove")] == [None]


TRACKED = ["rowTracking", "domainMetadata"]


def mark(high: int) -> Action:
    domain = {
        "domain": "delta.rowTracking",
        "configuration": json.dumps({"rowIdHighWaterMark": high}),
        "removed": False,
    }
    return {"domainMetadata": domain}


def test_row_ids_are_as_they_were_and_their_mark_never_falls() -> None:
    log = a_log(
        v0=[protocol(1, 7, writerFeatures=TRACKED), metadata(), mark(0), add("a", baseRowId=0, stats=ONE)],
        v1=[remove("a"), add("b", baseRowId=1, stats=ONE), mark(1)],
    )
    log.store.replace("a", b"rows")

    a_restored(log, 0)

    assert [a["baseRowId"] for a in said(log, 2, "add")] == [0]
    assert said(log, 2, "domainMetadata") == []
    assert json.loads(log.load().facts.domains["delta.rowTracking"].configuration) == {"rowIdHighWaterMark": 1}


def test_files_from_before_row_tracking_get_ids_behind_the_mark() -> None:
    log = a_log(
        v0=[protocol(), metadata(), add("a", stats=ONE), add("b", stats='{"numRecords":3}'), add("c", stats=ONE)],
        v1=[
            remove("a"),
            remove("b"),
            protocol(1, 7, writerFeatures=TRACKED),
            add("d", baseRowId=5, stats=ONE),
            mark(5),
        ],
    )
    for name in "ab":
        log.store.replace(name, b"rows")

    a_restored(log, 0)

    given = {a["path"]: (a["baseRowId"], a["defaultRowCommitVersion"]) for a in said(log, 2, "add")}
    assert given in ({"a": (6, 2), "b": (7, 2)}, {"b": (6, 2), "a": (9, 2)})
    assert [json.loads(d["configuration"]) for d in said(log, 2, "domainMetadata")] == [{"rowIdHighWaterMark": 9}]


def named(column: str) -> Action:
    return metadata(configuration={"delta.rowTracking.materializedRowIdColumnName": column})


WITHOUT = protocol(1, 7, writerFeatures=["domainMetadata"])
ROW_TRACKING_NOW = {
    "dropped": (metadata(), [WITHOUT, metadata()]),
    "dropped with its columns": (named("a"), [WITHOUT, metadata()]),
    "turned on again": (named("a"), [protocol(1, 7, writerFeatures=TRACKED), named("b"), mark(0)]),
}


@pytest.mark.parametrize(("before", "now"), ROW_TRACKING_NOW.values(), ids=ROW_TRACKING_NOW)
def test_a_version_from_before_row_tracking_was_dropped_is_refused(before: Action, now: list[Action]) -> None:
    a, b = (add(name, baseRowId=number, stats=ONE) for number, name in enumerate("ab"))
    forgotten = {"domainMetadata": {**mark(1)["domainMetadata"], "removed": True}}
    log = a_log(
        v0=[protocol(1, 7, writerFeatures=TRACKED), before, mark(1), a, b],
        v1=[remove("a"), WITHOUT, forgotten, add("b", stats=ONE, data_change=False)],
        v2=now,
    )
    log.store.replace("a", b"rows")

    with pytest.raises(errors.UnsupportedFeatureError, match="row tracking was dropped since"):
        a_restored(log, 0)


@pytest.mark.parametrize(("stats", "high"), [(None, 5), (ONE, 2**63 - 1)], ids=["no row count", "no ids left"])
def test_files_whose_rows_cannot_get_ids_do_not_come_back(stats: str | None, high: int) -> None:
    counted: dict[str, Any] = {} if stats is None else {"stats": stats}
    log = a_log(
        v0=[protocol(), metadata(), add("a", **counted)],
        v1=[remove("a"), protocol(1, 7, writerFeatures=TRACKED), mark(high)],
    )
    log.store.replace("a", b"rows")

    with pytest.raises(errors.CommitError, match="the rows of a need row ids"):
        a_restored(log, 0)


def test_the_protocol_keeps_its_features_and_gets_those_of_the_version() -> None:
    log = a_log(
        v0=[protocol(1, 7, writerFeatures=["appendOnly", "invariants"]), metadata()],
        v1=[protocol(1, 7, writerFeatures=["appendOnly", "invariants", "changeDataFeed"])],
        v2=[protocol(1, 7, writerFeatures=["appendOnly", "invariants", "checkConstraints"])],
    )

    a_restored(log, 0)
    assert said(log, 3, "protocol") == []
    a_restored(log, 1)

    (raised,) = said(log, 4, "protocol")
    assert set(raised["writerFeatures"]) == {"appendOnly", "invariants", "changeDataFeed", "checkConstraints"}


def identity(high: int, name: str = "id", step: int = 1, **mapping: Any) -> Action:
    notes = {"start": 1, "step": step, "allowExplicitInsert": True, "highWaterMark": high}
    described = col(name, notes={f"delta.identity.{key}": value for key, value in notes.items()}, **mapping)
    return meta(described, configuration=MAPPED if mapping else None)


MAPPED = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
IDENTITY_BEFORE_AND_NOW = {
    "as it was": (identity(10), identity(20), 20),
    "renamed": (identity(10, id=1, physicalName="c"), identity(20, "key", id=1, physicalName="c"), 20),
    "in other steps": (identity(11, step=5), identity(20), 21),
    "in other steps, downwards": (identity(-9, step=-5), identity(-20, step=-1), -24),
    "not as far": (identity(20), identity(10), 20),
}


@pytest.mark.parametrize(("before", "now", "after"), IDENTITY_BEFORE_AND_NOW.values(), ids=IDENTITY_BEFORE_AND_NOW)
def test_the_mark_of_an_identity_column_never_falls(before: Action, now: Action, after: int) -> None:
    log = a_log(v0=[protocol(2, 6), before], v1=[now])

    a_restored(log, 0)

    (column,) = json.loads(said(log, 2, "metaData")[0]["schemaString"])["fields"]
    assert (column["name"], column["metadata"]["delta.identity.highWaterMark"]) == ("id", after)


def test_ids_of_columns_are_never_given_again(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, V1, properties={"delta.columnMapping.mode": "name"})
    tablefeed.alter(tmp_path, add_columns=[pa.field("b", pa.string())])

    tablefeed.restore(tmp_path, version=0)

    assert tablefeed.open_table(tmp_path).metadata.configuration["delta.columnMapping.maxColumnId"] == "2"


def test_commit_times_that_a_restore_turns_on_begin_with_it(tmp_path: Path) -> None:
    times = {"delta.enableInCommitTimestamps": "true"}
    tablefeed.append(tmp_path, V1)
    tablefeed.alter(tmp_path, set_properties=times)
    tablefeed.alter(tmp_path, unset_properties=list(times))

    tablefeed.restore(tmp_path, version=1)

    configuration = tablefeed.open_table(tmp_path).metadata.configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "3"
    assert "inCommitTimestamp" in said(tmp_path, 3, "commitInfo")[0]
    assert tablefeed.append(tmp_path, V2) == committed(4)


def test_commit_times_that_are_on_count_from_the_commit_that_turned_them_on_last(tmp_path: Path) -> None:
    times = {"delta.enableInCommitTimestamps": "true"}
    tablefeed.append(tmp_path, V1)
    tablefeed.alter(tmp_path, set_properties=times)
    tablefeed.alter(tmp_path, unset_properties=list(times))
    tablefeed.alter(tmp_path, set_properties=times)

    tablefeed.restore(tmp_path, version=1)

    configuration = tablefeed.open_table(tmp_path).metadata.configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "3"


def test_the_columns_for_row_ids_keep_their_names(tmp_path: Path) -> None:
    tablefeed.create(tmp_path, V1.schema)
    tablefeed.alter(tmp_path, enable_features=["rowTracking"])
    names = dict(tablefeed.open_table(tmp_path).metadata.configuration)

    tablefeed.restore(tmp_path, version=0)

    assert len(names) == 2
    assert tablefeed.open_table(tmp_path).metadata.configuration == names


def test_files_without_row_ids_come_back_where_row_tracking_is_suspended(tmp_path: Path) -> None:
    suspended = {"delta.feature.rowTracking": "supported", "delta.rowTrackingSuspended": "true"}
    tablefeed.append(tmp_path, V1, properties=suspended)
    tablefeed.append(tmp_path, V2, mode="overwrite")

    tablefeed.restore(tmp_path, version=0)

    assert rows_of(tmp_path) == [{"id": 1}]
    assert "baseRowId" not in said(tmp_path, 2, "add")[0]


def test_checkpoints_that_are_protected_stay_protected(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, V1)
    protected = {"delta.requireCheckpointProtectionBeforeVersion": "1"}
    tablefeed.alter(tmp_path, set_properties=protected, enable_features=["checkpointProtection"])

    tablefeed.restore(tmp_path, version=0)

    assert tablefeed.open_table(tmp_path).metadata.configuration == protected


def test_the_clustering_is_that_of_the_version() -> None:
    clustered = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["id"]]}', "removed": False}
    writers = ["clustering", "domainMetadata", "appendOnly", "invariants"]
    other = {**clustered, "configuration": '{"clusteringColumns":[]}'}
    log = a_log(
        v0=[protocol(1, 7, writerFeatures=writers), metadata(), {"domainMetadata": clustered}],
        v1=[{"domainMetadata": other}],
    )

    a_restored(log, 0)

    (domain,) = said(log, 2, "domainMetadata")
    assert json.loads(domain["configuration"])["clusteringColumns"] == [["id"]]


def test_the_checksums_after_a_restore_count_its_files(table: Path) -> None:
    tablefeed.restore(table, version=1)
    tablefeed.append(table, V2)
    wait_until_done()

    found: Mapping[str, Any] = json.loads((table / "_delta_log" / f"{5:020d}.crc").read_text())
    assert found["numFiles"] == 3
    assert not (table / "_delta_log" / f"{4:020d}.crc").exists()


# --- what is refused -------------------------------------------------------------------------------------------------


def test_a_file_or_a_vector_that_is_gone_is_refused_only_where_it_is_needed() -> None:
    log = with_vectors()
    a_restored(log, 0)
    log.store.delete(VECTOR_FILE)

    with pytest.raises(errors.DataFileError, match=r"deletion_vector_.* is gone"):
        a_restored(log, 1)
    put(log.store, 3, [remove("a")])
    log.store.delete("a")
    with pytest.raises(errors.DataFileError, match=r"DELTA_FILE_NOT_FOUND.* a, which the earlier version needs"):
        a_restored(log, 0)

    assert log.load().version == 3


@pytest.mark.parametrize("theirs", [add("b"), info()], ids=["an append", "nothing"])
def test_any_commit_of_another_writer_meanwhile_conflicts(theirs: Action) -> None:
    log = a_log(v0=[protocol(), metadata(), add("a")], v1=[remove("a")])
    log.store.replace("a", b"rows")
    newest, earlier = log.load_for_files(), log.load_for_files(Version(0))
    put(log.store, 2, [theirs])

    with pytest.raises(errors.ConflictError, match="DELTA_CONCURRENT_WRITE"):
        restore_table(newest, earlier, {"version": 0})

    assert log.load().version == 2


def test_a_restore_whose_put_is_refused_once_though_its_version_is_free_has_all_files() -> None:
    class Refusing(MemoryStore):
        """Refuses the first put of version 2, as if another writer's were not listed yet and were then given up."""

        refused = False

        def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:
            if name == commit_path(2) and not self.refused:
                self.refused = True
                return False
            return super().put_if_absent(name, data, within=within)

    log = a_log(Refusing("orders"), v0=[protocol(), metadata(), add("a")], v1=[remove("a"), add("b")])
    log.store.replace("a", b"rows")

    a_restored(log, 0)

    assert (files(log, 2, "add"), files(log, 2, "remove")) == (["a"], ["b"])


def changed(table: Path, value: str, at: int) -> None:
    rows = pa.table({"id": [1], "v": [value], "at": [at]})
    tablefeed.apply_changes(table, rows, keys="id", sequence_by="at", except_column_list=["at"], ties="last")


def test_changes_that_came_after_the_version_are_applied_again(tmp_path: Path) -> None:
    empty = pa.schema([("id", pa.int64()), ("v", pa.string())]).empty_table()
    tablefeed.append(tmp_path, empty, properties={"delta.feature.domainMetadata": "supported"})
    changed(tmp_path, "a", 1)
    changed(tmp_path, "wrong", 5)

    tablefeed.restore(tmp_path, version=1)
    changed(tmp_path, "right", 5)
    assert rows_of(tmp_path) == [{"id": 1, "v": "right"}]

    tablefeed.restore(tmp_path, version=0)
    changed(tmp_path, "b", 1)
    assert rows_of(tmp_path) == [{"id": 1, "v": "b"}]

    tablefeed.restore(tmp_path, version=0)
    tablefeed.restore(tmp_path, version=1)
    changed(tmp_path, "not newer", 1)
    assert rows_of(tmp_path) == [{"id": 1, "v": "a"}]


def test_a_snapshot_that_came_after_the_version_is_applied_again(tmp_path: Path) -> None:
    empty = pa.schema([("id", pa.int64()), ("v", pa.string())]).empty_table()
    tablefeed.append(tmp_path, empty, properties={"delta.feature.domainMetadata": "supported"})
    for value, version in (("a", 1), ("wrong", 2)):
        rows = pa.table({"id": [1], "v": [value]})
        tablefeed.apply_changes_from_snapshot(tmp_path, (rows, version), keys="id")

    tablefeed.restore(tmp_path, version=1)
    tablefeed.apply_changes_from_snapshot(tmp_path, (pa.table({"id": [1], "v": ["right"]}), 2), keys="id")

    assert rows_of(tmp_path) == [{"id": 1, "v": "right"}]


def test_a_version_whose_state_of_applied_changes_is_gone_is_refused(tmp_path: Path) -> None:
    empty = pa.schema([("id", pa.int64()), ("v", pa.string())]).empty_table()
    tablefeed.append(tmp_path, empty, properties={"delta.feature.domainMetadata": "supported"})
    changed(tmp_path, "a", 1)
    (state,) = (tmp_path / "_tablefeed" / "apply_changes").iterdir()
    changed(tmp_path, "b", 5)
    state.unlink()

    with pytest.raises(errors.DataFileError, match="has the state of earlier changes, and it is gone"):
        tablefeed.restore(tmp_path, version=1)

    assert tablefeed.open_table(tmp_path).version == 2


def test_rows_are_not_removed_from_an_append_only_table(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, V1, properties={"delta.appendOnly": "true"})
    tablefeed.append(tmp_path, V2)

    with pytest.raises(errors.AppendOnlyError):
        tablefeed.restore(tmp_path, version=0)


def test_a_version_before_a_change_of_column_mapping_is_refused(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, V1)
    tablefeed.alter(tmp_path, set_properties={"delta.columnMapping.mode": "name"})

    with pytest.raises(errors.UnsupportedFeatureError, match="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"):
        tablefeed.restore(tmp_path, version=0)


BAD: Mapping[str, tuple[dict[str, Any], type[errors.TablefeedError], str]] = {
    "nothing": ({}, errors.IllegalOptionError, "must be given"),
    "both": ({"version": 1, "timestamp": "2020-01-01"}, errors.ConflictingOptionsError, "Give one"),
    "the newest": ({"version": 3}, errors.IllegalOptionError, "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
    "not there yet": ({"version": 9}, errors.IllegalOptionError, "before the newest one, which is 3"),
    "below 0": ({"version": -1}, errors.LogError, "DELTA_VERSION_NOT_FOUND"),
    "no number": ({"version": "1"}, errors.IllegalOptionError, "must be a whole number"),
    "too early": ({"timestamp": "1999-01-01"}, errors.TableError, "1999"),
}


@pytest.mark.parametrize(("arguments", "error", "match"), BAD.values(), ids=BAD)
def test_what_names_no_earlier_version_is_refused(
    table: Path, arguments: dict[str, Any], error: type[errors.TablefeedError], match: str
) -> None:
    with pytest.raises(error, match=match):
        tablefeed.restore(table, **arguments)

    assert tablefeed.open_table(table).version == 3


def test_an_index_tables_table_is_refused_by_name(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, V1, table_format="indextables")
    tablefeed.append(tmp_path, V2)

    with pytest.raises(errors.UnsupportedFeatureError, match="INDEXTABLES_MAINTENANCE"):
        tablefeed.restore(tmp_path, version=0)
