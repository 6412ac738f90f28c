"""What the features of a table put into a commit of ours besides its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablefeed
from support.commits import a_file, a_write, commit_behind, commit_files, raced, still
from support.logs import (
    ID,
    NOW_MS,
    Action,
    a_log,
    a_table,
    actions_of,
    add,
    col,
    info,
    live_paths,
    log_of,
    meta,
    metadata,
    protocol,
    put,
    said,
)
from tablefeed.delta.schema.arrow_schema import from_arrow
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.errors import CommitError, ConflictError, LogError, SchemaMismatchError, UnsupportedFeatureError
from tablefeed.feed.commit.entry import next_version
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction, batch_write
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.upkeep.after_commit import after_commit
from tablefeed.feed.write.sink import plan_write
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import Version
from tablefeed.store import LocalStore, Store, open_store

TRACKED = ("rowTracking", "domainMetadata")
ENABLED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}
TIMED = {"delta.enableInCommitTimestamps": "true"}
SINCE = {"delta.inCommitTimestampEnablementVersion": "1", "delta.inCommitTimestampEnablementTimestamp": "5"}
WIDER = pa.schema([*ID, ("new", pa.string())])


def mark(value: object, *, domain: str = "delta.rowTracking") -> Action:
    return {"domainMetadata": {"domain": domain, "configuration": json.dumps(value), "removed": False}}


def listing(*features: str) -> Action:
    """A protocol with these writer features."""
    return protocol(1, 7, writerFeatures=features)


def a_tracked_table(*actions: Action, properties: Mapping[str, str] = ENABLED) -> TableLog:
    return a_log(v0=[listing(*TRACKED), metadata(configuration=properties), *actions])


def a_timed_table(*, at_ms: int) -> TableLog:
    made = info(inCommitTimestamp=at_ms, operation="CREATE TABLE")
    return a_log(v0=[made, listing("inCommitTimestamp"), metadata(configuration=TIMED)])


def write(log: TableLog, *rows: int, kind: WriteKind = WriteKind.APPEND) -> Transaction:
    files = tuple(a_file(f"f{number}", rows=count) for number, count in enumerate(rows))
    plan = plan_write(log, log.load(), ID, partition_by=(), kind=kind)
    return Transaction(plan=plan, files=files, kind=kind, operation=batch_write(kind, ()))


def ids(log: TableLog, version: int) -> list[tuple[Any, Any]]:
    return [(add.get("baseRowId"), add.get("defaultRowCommitVersion")) for add in said(log, version, "add")]


def marks(log: TableLog, version: int) -> list[str]:
    return [domain["configuration"] for domain in said(log, version, "domainMetadata")]


def times(log: TableLog, *versions: int) -> list[int]:
    return [actions_of(log, version)[0]["commitInfo"]["inCommitTimestamp"] for version in versions]


# --- row tracking --------------------------------------------------------------------------------------------------


SIX = mark({"rowIdHighWaterMark": 6})


@pytest.mark.parametrize(
    ("before", "properties", "rows", "given", "moved"),
    [
        ([SIX], ENABLED, (3, 2), [(7, 1), (10, 1)], [11]),
        ([], ENABLED, (3,), [(0, 1)], [2]),
        ([SIX], ENABLED, (), [], []),
        ([], {}, (3,), [(0, 1)], [2]),
        ([SIX], {"delta.rowTrackingSuspended": "true"}, (3,), [(None, None)], []),
    ],
    ids=["behind the mark", "the first row", "no rows", "listed and not enabled", "suspended"],
)
def test_rows_get_ids_behind_the_mark_and_the_mark_moves_with_them(
    before: list[Action], properties: Mapping[str, str], rows: tuple[int, ...], given: list[object], moved: list[int]
) -> None:
    log = a_tracked_table(*before, properties=properties)

    commit(log, log.load(), write(log, *rows), still())

    assert ids(log, 1) == given
    assert marks(log, 1) == [f'{{"rowIdHighWaterMark":{each}}}' for each in moved]
    promised = {"delta.rowTracking.preserved": "true"} if properties is ENABLED else None
    assert actions_of(log, 1)[0]["commitInfo"].get("tags") == promised


@pytest.mark.parametrize("when", ["before our commit", "while we put"])
def test_ids_and_version_are_given_anew_after_a_lost_race(when: str) -> None:
    rival = [add("theirs", stats='{"numRecords":4}', baseRowId=0), mark({"rowIdHighWaterMark": 3})]
    inner = a_tracked_table().store
    log = raced(inner, *[lambda: put(inner, 1, rival)] * (when == "while we put"))
    ours, before = write(log, 3), log.load()
    if when == "before our commit":
        put(inner, 1, rival)

    commit(log, before, ours, still())

    assert (ids(log, 2), marks(log, 2)) == ([(4, 2)], ['{"rowIdHighWaterMark":6}'])


def test_an_overwrite_removes_files_with_their_ids_and_gives_none_twice() -> None:
    there = add("there", stats='{"numRecords":7}', baseRowId=0, defaultRowCommitVersion=0)
    log = a_tracked_table(there, mark({"rowIdHighWaterMark": 6}))

    commit(log, log.load(), write(log, 3, kind=WriteKind.OVERWRITE), still())

    (removed,) = said(log, 1, "remove")
    assert (removed["baseRowId"], removed["defaultRowCommitVersion"]) == (0, 0)
    assert ids(log, 1) == [(7, 1)]


@pytest.mark.parametrize("value", [{}, {"rowIdHighWaterMark": "6"}, {"rowIdHighWaterMark": -2}, [], 3, None])
def test_a_mark_that_is_none_ends_the_commit(value: object) -> None:
    log = a_tracked_table(mark(value))

    with pytest.raises(LogError, match="which row ids are in use"):
        commit(log, log.load(), write(log, 3), still())


def test_a_file_that_does_not_say_its_rows_is_not_committed() -> None:
    log = a_tracked_table()

    with pytest.raises(CommitError, match="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"):
        commit(log, log.load(), write(log, -1), still())


def test_ids_beyond_a_long_are_not_given() -> None:
    log = a_tracked_table(mark({"rowIdHighWaterMark": 2**63 - 2}))

    with pytest.raises(CommitError, match="the table has used all row ids"):
        commit(log, log.load(), write(log, 2), still())
    commit(log, log.load(), write(log, 1), still())
    assert ids(log, 1) == [(2**63 - 1, 1)]


def test_no_version_follows_the_highest_possible_one() -> None:
    last = replace(a_log(v0=[protocol(), metadata()]).load(), version=Version(2**63 - 1))

    with pytest.raises(CommitError, match="the highest possible one"):
        next_version(last)


def test_other_domains_stay() -> None:
    log = a_tracked_table(mark({"mine": 1}, domain="mine"))

    _, after = commit(log, log.load(), write(log, 3), still())

    assert {name: d.configuration for name, d in after.facts.domains.items()} == {
        "mine": '{"mine": 1}',
        "delta.rowTracking": '{"rowIdHighWaterMark":2}',
    }


def test_a_new_table_that_tracks_rows_names_the_columns_for_moved_ids_and_gives_the_first() -> None:
    log = a_log()

    commit_files(log, "a", rules=WriteRules(properties={"delta.enableRowTracking": "true"}))

    made = {name: value for action in actions_of(log, 0) for name, value in action.items()}
    assert made["protocol"]["writerFeatures"] == ["appendOnly", "domainMetadata", "invariants", "rowTracking"]
    properties = made["metaData"]["configuration"]
    assert properties["delta.enableRowTracking"] == "true"
    assert properties["delta.rowTracking.materializedRowIdColumnName"].startswith("_row-id-col-")
    version_column = properties["delta.rowTracking.materializedRowCommitVersionColumnName"]
    assert version_column.startswith("_row-commit-version-col-")
    assert (ids(log, 0), marks(log, 0)) == ([(0, 0)], ['{"rowIdHighWaterMark":0}'])


def test_no_column_gets_the_name_of_the_one_that_keeps_row_ids() -> None:
    log = a_tracked_table()
    rows = pa.schema([*ID, ("_row-id-col-1", pa.int64())])

    with pytest.raises(SchemaMismatchError, match="stores the ids of its rows"):
        a_write(log, log.load(), "a", schema=rows, rules=WriteRules(merges_schema=True))


# --- in-commit timestamps ------------------------------------------------------------------------------------------


def test_a_commits_own_time_comes_first_and_is_the_clocks() -> None:
    log = a_timed_table(at_ms=NOW_MS - 5)

    commit(log, log.load(), write(log, 1), still())

    first = actions_of(log, 1)[0]["commitInfo"]
    assert (next(iter(first)), first["inCommitTimestamp"], first["timestamp"]) == ("inCommitTimestamp", NOW_MS, NOW_MS)


def test_the_time_of_a_commit_is_after_that_of_the_one_before_whatever_the_clock_says() -> None:
    log = a_timed_table(at_ms=NOW_MS + 5)

    commit(log, log.load(), write(log, 1), still())
    commit(log, log.load(), write(log, 1), still())

    assert times(log, 1, 2) == [NOW_MS + 6, NOW_MS + 7]


def test_a_commit_that_lost_the_race_is_later_than_the_winner() -> None:
    log = a_timed_table(at_ms=NOW_MS - 5)

    commit_behind(log, [info(inCommitTimestamp=NOW_MS + 100), add("theirs")])

    assert times(log, 2) == [NOW_MS + 101]


@pytest.mark.parametrize(
    ("theirs", "error_class"),
    [
        ([info(operation="WRITE"), add("theirs")], "DELTA_MISSING_COMMIT_TIMESTAMP"),
        ([add("theirs")], "DELTA_MISSING_COMMIT_INFO"),
    ],
    ids=["no time", "no info"],
)
def test_a_commit_behind_one_without_a_time_is_none(theirs: list[Action], error_class: str) -> None:
    log = a_timed_table(at_ms=NOW_MS)
    put(log.store, 1, theirs)

    with pytest.raises(LogError, match=error_class):
        commit(log, log.load(), write(log, 1), still())

    assert log.load().version == 1


def test_no_commit_follows_one_with_the_last_possible_time_until_times_begin_anew(tmp_path: Path) -> None:
    made = info(inCommitTimestamp=2**63 - 1, operation="CREATE TABLE")
    log = a_log(LocalStore(str(tmp_path)), v0=[made, listing("inCommitTimestamp"), metadata(configuration=TIMED)])

    with pytest.raises(LogError, match="the highest possible one"):
        tablefeed.append(tmp_path, pa.table({"id": [1]}))
    assert log.load().version == 0

    for switch in ("false", "true"):
        tablefeed.alter(tmp_path, set_properties={"delta.enableInCommitTimestamps": switch})
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    assert tablefeed.open_table(tmp_path).to_arrow().to_pydict() == {"id": [1]}


def test_a_new_table_keeps_times_from_its_first_version_where_its_properties_say_so() -> None:
    log = a_log()

    commit_files(log, rules=WriteRules(properties=TIMED))

    made = {name: value for action in actions_of(log, 0) for name, value in action.items()}
    assert times(log, 0) == [NOW_MS]
    assert made["protocol"]["writerFeatures"] == ["appendOnly", "inCommitTimestamp", "invariants"]
    assert made["metaData"]["configuration"] == TIMED, "only what was enabled later says since when"


def test_since_when_times_are_kept_stays_said_where_the_schema_changes() -> None:
    properties = {**TIMED, **SINCE}
    log = a_log(v0=[info(inCommitTimestamp=5), listing("inCommitTimestamp"), metadata(configuration=properties)])

    commit_files(log, "a", schema=WIDER, rules=WriteRules(merges_schema=True))

    (changed,) = said(log, 1, "metaData")
    assert changed["configuration"] == properties


def test_the_checksum_tells_the_time_and_the_domains() -> None:
    listed = listing("inCommitTimestamp", *TRACKED)
    log = a_log(v0=[info(inCommitTimestamp=5), listed, metadata(configuration={**TIMED, **ENABLED})])
    empty = {"tableSizeBytes": 0, "numFiles": 0, "numMetadata": 1, "numProtocol": 1}
    of_v0 = {**empty, "metadata": metadata()["metaData"], "protocol": listed["protocol"]}
    log.store.replace("_delta_log/00000000000000000000.crc", json.dumps(of_v0).encode())

    _, after = commit(log, log.load(), write(log, 3), still())
    entry = log.commit(after.version)
    assert entry is not None
    after_commit(after, entry)

    checksum = json.loads(log.store.read("_delta_log/00000000000000000001.crc"))
    assert checksum["inCommitTimestampOpt"] == NOW_MS
    assert [domain["configuration"] for domain in checksum["domainMetadata"]] == ['{"rowIdHighWaterMark":2}']


# --- clustering ----------------------------------------------------------------------------------------------------


def clustering(*columns: object) -> Action:
    return mark({"clusteringColumns": list(columns), "domainName": "delta.clustering"}, domain="delta.clustering")


def wide_schema(count: int) -> pa.Schema:
    return pa.schema([(f"c{number}", pa.int64()) for number in range(count)])


def a_clustered_table(schema: pa.Schema, *columns: object, store: Store | None = None) -> TableLog:
    listed = listing("clustering", "domainMetadata")
    return a_log(store, v0=[listed, metadata(format_schema(from_arrow(schema))), clustering(*columns)])


@pytest.mark.parametrize("column", ["c39", ["c39"]], ids=["as the protocol has it", "as Delta-Spark has it"])
def test_files_of_a_clustered_table_have_statistics_of_its_clustering_columns(tmp_path: Path, column: object) -> None:
    log = a_clustered_table(wide_schema(40), column, store=open_store(str(tmp_path)))

    tablefeed.append(tmp_path, pa.table({name: [1, 2] for name in wide_schema(40).names}))

    stats = json.loads(said(log, 1, "add")[0]["stats"])
    assert (stats["minValues"]["c39"], stats["maxValues"]["c39"], stats["nullCount"]["c39"]) == (1, 2, 0)
    assert (len(stats["minValues"]), "c31" in stats["minValues"], "c32" in stats["minValues"]) == (33, True, False)


def test_files_without_statistics_of_a_column_that_became_a_clustering_one_are_not_committed() -> None:
    log = a_clustered_table(wide_schema(3), "c0")

    with pytest.raises(ConflictError, match="clustered by columns"):
        commit_behind(log, [clustering("c1")], schema=wide_schema(3))


def test_a_table_that_is_clustered_no_more_takes_what_was_written_before() -> None:
    log = a_clustered_table(wide_schema(3), "c0")

    commit_behind(log, [clustering()], schema=wide_schema(3))

    assert live_paths(log) == ["ours"]


def test_an_overwrite_does_not_take_the_clustering_column_away_nor_partition_the_table() -> None:
    log = a_clustered_table(wide_schema(2), "c0")
    overwrite: Any = {"kind": WriteKind.OVERWRITE, "rules": WriteRules(overwrites_schema=True)}

    with pytest.raises(SchemaMismatchError, match="its clustering column"):
        plan_write(log, log.load(), ID, partition_by=(), **overwrite)
    with pytest.raises(SchemaMismatchError, match="cannot be partitioned"):
        plan_write(log, log.load(), wide_schema(2), partition_by=("c1",), **overwrite)


@pytest.mark.parametrize("column", [3, [], [3], None])
def test_a_clustering_that_names_no_columns_ends_the_write(column: object) -> None:
    log = a_clustered_table(wide_schema(2), column)

    with pytest.raises(LogError, match="by which columns"):
        plan_write(log, log.load(), wide_schema(2), partition_by=(), kind=WriteKind.APPEND)


# --- tables for Iceberg --------------------------------------------------------------------------------------------

NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("tags", pa.list_(pa.list_(pa.string()))),
        ("marks", pa.map_(pa.string(), pa.list_(pa.struct([("x", pa.list_(pa.int32()))])))),
        ("p", pa.string()),
    ]
)
FOR_ICEBERG = {"delta.enableIcebergCompatV2": "true"}
MAPPED = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}
BY_NAME = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}


def one_row(schema: pa.Schema) -> pa.Table:
    values = {"id": [1], "tags": [[["a"]]], "marks": [[("k", [{"x": [7]}])]], "p": ["here"]}
    return pa.table({name: values[name] for name in schema.names}, schema)


def schema_of(log: TableLog, version: int) -> list[Any]:
    fields: list[Any] = json.loads(said(log, version, "metaData")[0]["schemaString"])["fields"]
    return fields


def parquet_ids(field: pa.Field) -> Any:
    """The id of a field and of all in it."""
    number = int((field.metadata or {}).get(b"PARQUET:field_id", b"-1"))
    kind = field.type
    if pa.types.is_map(kind):
        return (number, parquet_ids(kind.key_field), parquet_ids(kind.item_field))
    inner = [kind.value_field] if pa.types.is_list(kind) else list(kind) if pa.types.is_struct(kind) else []
    return (number, *map(parquet_ids, inner)) if inner else number


def test_files_of_a_table_for_iceberg_hold_partition_columns_and_the_ids_of_lists_and_maps(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, one_row(NESTED), properties=FOR_ICEBERG, partition_by="p")
    tablefeed.append(tmp_path, one_row(NESTED))

    log = log_of(open_store(str(tmp_path)))
    tags, marks = schema_of(log, 0)[1:3]
    tags_name, marks_name = (f["metadata"]["delta.columnMapping.physicalName"] for f in (tags, marks))
    of_tags, of_marks = (field["metadata"]["delta.columnMapping.nested.ids"] for field in (tags, marks))
    assert of_tags == {f"{tags_name}.element": 6, f"{tags_name}.element.element": 7}
    assert of_marks == {f"{marks_name}.key": 8, f"{marks_name}.value": 9, f"{marks_name}.value.element": 10}
    configuration = log.load().metadata.configuration
    assert configuration["delta.columnMapping.mode"] == "name"
    assert configuration["delta.columnMapping.maxColumnId"] == "11"
    for version in (0, 1):
        (added,) = said(log, version, "add")
        assert added["tags"] == {"ICEBERG_COMPAT_VERSION": "2"}
        assert len(json.loads(added["stats"])["nullCount"]) == 3  # none of the partition column
        stored = pq.read_schema(tmp_path / added["path"])
        assert [parquet_ids(field) for field in stored] == [1, (2, (6, 7)), (3, 8, (9, (10, (4, 11)))), 5]
        assert pq.read_table(tmp_path / added["path"])[stored.names[-1]].to_pylist() == ["here"]
    assert tablefeed.open_table(tmp_path).to_arrow() == pa.concat_tables([one_row(NESTED)] * 2)


def test_partition_columns_that_files_hold_are_read_from_the_log_all_the_same(tmp_path: Path) -> None:
    properties = {"delta.feature.materializePartitionColumns": "supported"}
    rows = pa.table({"p": ["a", "", None], "id": [1, 2, 3]})
    tablefeed.append(tmp_path, rows, properties=properties, partition_by="p")
    tablefeed.append(tmp_path, rows)

    files = [add["path"] for version in (0, 1) for add in said(tmp_path, version, "add")]
    assert {tuple(pq.ParquetFile(tmp_path / path).schema_arrow.names) for path in files} == {("id", "p")}
    found = tablefeed.open_table(tmp_path).to_arrow().sort_by("id").select(["id", "p"]).to_pylist()
    assert [tuple(row.values()) for row in found] == [*[(1, "a")] * 2, *[(2, None)] * 2, *[(3, None)] * 2]


def test_a_new_column_of_a_table_for_iceberg_gets_ids_behind_all_others(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, one_row(NESTED), properties=FOR_ICEBERG, partition_by="p")
    more = one_row(NESTED).append_column("more", pa.array([[1]]))

    tablefeed.append(tmp_path, more, merge_schema=True)

    log = log_of(open_store(str(tmp_path)))
    before, after = schema_of(log, 0), schema_of(log, 1)
    assert after[:4] == before
    assert after[4]["metadata"]["delta.columnMapping.id"] == 12
    assert [*after[4]["metadata"]["delta.columnMapping.nested.ids"].values()] == [13]


@pytest.mark.parametrize(
    ("rows", "properties", "what"),
    [
        (pa.table({"id": [[1]]}), {"delta.enableIcebergCompatV1": "true"}, "'id' is a list or a map"),
        (pa.table({"id": [1]}), {**FOR_ICEBERG, "delta.columnMapping.mode": "none"}, "not mapped"),
        (pa.table({"id": [1]}), {**FOR_ICEBERG, "delta.enableDeletionVectors": "true"}, "deletion vectors"),
        (pa.table({"id": [1]}), {**FOR_ICEBERG, "delta.enableIcebergCompatV1": "true"}, "only one of the versions"),
    ],
)
def test_what_iceberg_does_not_know_is_not_written(
    tmp_path: Path, rows: pa.Table, properties: dict[str, str], what: str
) -> None:
    with pytest.raises(UnsupportedFeatureError, match=what) as caught:
        tablefeed.append(tmp_path, rows, properties=properties)

    assert str(caught.value).startswith("[DELTA_ICEBERG_COMPAT_VIOLATION] ")
    assert list(tmp_path.iterdir()) == []


def test_a_table_for_iceberg_keeps_its_partitioning(tmp_path: Path) -> None:
    rows = pa.table({"p": ["a"], "q": ["b"], "id": [1]})
    tablefeed.append(tmp_path, rows, properties=FOR_ICEBERG, partition_by="p")

    with pytest.raises(UnsupportedFeatureError, match="must keep that partitioning"):
        tablefeed.append(tmp_path, rows, mode="overwrite", overwrite_schema=True, partition_by="q")


@pytest.mark.parametrize(("then", "now", "known"), [("integer", "long", True), ("integer", "double", False)])
def test_a_table_for_iceberg_has_no_column_that_was_widened_as_iceberg_cannot(
    then: str, now: str, *, known: bool
) -> None:
    field = col("id", now, id=1, physicalName="id")
    field["metadata"] = {**MAPPED, "delta.typeChanges": [{"fromType": then, "toType": now}]}
    both = ["columnMapping", "typeWidening"]
    listed = protocol(3, 7, readerFeatures=both, writerFeatures=[*both, "icebergCompatV2"])
    log = a_log(v0=[listed, meta(field, configuration={**FOR_ICEBERG, **BY_NAME})])
    rows = pa.schema([("id", pa.int64() if now == "long" else pa.float64())])

    with nullcontext() if known else pytest.raises(UnsupportedFeatureError, match="which Iceberg does not know"):
        plan_write(log, log.load(), rows, partition_by=(), kind=WriteKind.APPEND)


def test_files_without_partition_columns_are_not_added_to_a_rivals_table_that_wants_them() -> None:
    log = a_log()
    ours = a_write(log, None, "ours")
    put(log.store, 0, [listing("materializePartitionColumns"), metadata()])

    with pytest.raises(ConflictError, match="files must store partition columns"):
        commit(log, None, ours, still())


# --- what a rival turns on meanwhile -------------------------------------------------------------------------------

LISTED = listing("appendOnly", "invariants", *TRACKED)


def test_row_tracking_that_a_rival_turned_on_meanwhile_is_honoured() -> None:
    log = a_table()
    there = [add("there", stats='{"numRecords":5}', baseRowId=0), mark({"rowIdHighWaterMark": 4})]

    commit_behind(log, [LISTED], there, [metadata(configuration=ENABLED)])

    assert (ids(log, 4), marks(log, 4)) == ([(5, 4)], ['{"rowIdHighWaterMark":5}'])


def test_in_commit_timestamps_that_a_rival_turned_on_meanwhile_are_honoured() -> None:
    log = a_log(v0=[protocol(), metadata(configuration={"owner": "me"})])
    listed = listing("appendOnly", "invariants", "inCommitTimestamp")
    changed = metadata(configuration={"owner": "me", **TIMED, **SINCE})

    commit_behind(log, [info(inCommitTimestamp=NOW_MS + 5), listed, changed])

    assert times(log, 2) == [NOW_MS + 6]


def mapped_schema(mode: str = "name") -> Action:
    """The metadata after a rival gave the columns ids and, as physical names, the names that they have."""
    return meta(col("id", id=1, physicalName="id"), configuration=BY_NAME | {"delta.columnMapping.mode": mode})


ABLE_TO_MAP = protocol(2, 7, writerFeatures=["appendOnly", "invariants", "columnMapping"])


@pytest.mark.parametrize("kind", [WriteKind.APPEND, WriteKind.OVERWRITE])
@pytest.mark.parametrize(
    ("before", "rivals", "error_class"),
    [
        (protocol(), [[protocol(2, 5), mapped_schema()]], "DELTA_PROTOCOL_CHANGED"),
        (protocol(), [[ABLE_TO_MAP, mapped_schema()]], "DELTA_PROTOCOL_CHANGED"),
        (protocol(2, 5), [[mapped_schema()]], "DELTA_METADATA_CHANGED"),
        (ABLE_TO_MAP, [[mapped_schema()]], "DELTA_METADATA_CHANGED"),
        (ABLE_TO_MAP, [[add("between")], [mapped_schema()]], "DELTA_METADATA_CHANGED"),
        (ABLE_TO_MAP, [[metadata(configuration={"delta.columnMapping.mode": "name"})]], "DELTA_METADATA_CHANGED"),
        (ABLE_TO_MAP, [[mapped_schema("id")]], "DELTA_METADATA_CHANGED"),
    ],
    ids=["versions", "features", "listed by versions", "listed", "after another", "without ids", "by id"],
)
def test_a_rival_that_began_to_map_columns_stops_us_whose_files_have_no_ids(
    kind: WriteKind, before: Action, rivals: list[list[Action]], error_class: str
) -> None:
    log = a_log(v0=[before, metadata()])

    expected = "DELTA_CONCURRENT_APPEND" if kind is WriteKind.OVERWRITE and len(rivals) > 1 else error_class
    with pytest.raises(ConflictError, match=expected):
        commit_behind(log, *rivals, kind=kind)

    assert "ours" not in live_paths(log)


def test_features_that_a_rival_only_listed_and_that_ask_for_nothing_pass() -> None:
    log = a_log(v0=[listing("invariants"), metadata()])

    commit_behind(log, [listing("invariants", "appendOnly", "changeDataFeed")])

    assert live_paths(log) == ["ours"]


@pytest.mark.parametrize(
    "rival",
    [
        [listing(*TRACKED)],  # without what there was
        [listing("appendOnly", "invariants", "checkConstraints")],
        [metadata(configuration={"owner": "you"})],
        [metadata()],  # without the property that there was
        [metadata(configuration={"owner": "me", "delta.enableDeletionVectors": "false"})],
        [metadata(configuration={"owner": "me", "delta.checkpointInterval": "5"})],
        [meta(col("x"), configuration={"owner": "me"})],
    ],
    ids=["features less", "constraints", "owner", "property less", "vectors off", "another property", "schema"],
)
def test_any_other_change_of_protocol_or_metadata_excludes_the_write(rival: list[Action]) -> None:
    log = a_log(v0=[protocol(), metadata(configuration={"owner": "me"})])

    with pytest.raises(ConflictError, match=r"DELTA_(PROTOCOL|METADATA)_CHANGED"):
        commit_behind(log, rival)


def test_a_write_that_changes_the_metadata_itself_loses_to_any_other_that_does() -> None:
    log = a_log(v0=[LISTED, metadata()])

    with pytest.raises(ConflictError, match="DELTA_METADATA_CHANGED"):
        commit_behind(log, [metadata(configuration=ENABLED)], schema=WIDER, rules=WriteRules(merges_schema=True))


def test_what_a_rival_turned_on_in_contradiction_ends_the_write() -> None:
    with pytest.raises(UnsupportedFeatureError, match="whether its rows have ids"):
        commit_behind(a_table(), [metadata(configuration=ENABLED)])  # and no feature in the protocol
