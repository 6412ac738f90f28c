"""`tablefeed.apply_changes` on the local disk: the scenarios of change pipelines that need no Spark."""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import tablefeed
from support.logs import change_actions
from tablefeed import AlreadyApplied, Committed
from tablefeed.errors import (
    DataFileError,
    EqualSequencesError,
    IllegalOptionError,
    InvalidRowsError,
    LogError,
    SchemaMismatchError,
    TablefeedError,
    UnsupportedFeatureError,
)
from tablefeed.feed.rows.state import STATE_DIR
from tablefeed.model.actions import Version

NEEDED = {"delta.feature.domainMetadata": "supported"}
VECTORS = {"delta.enableDeletionVectors": "true"}
FED = {"delta.enableChangeDataFeed": "true"}
INTERVAL = {"__START_AT": pa.int64(), "__END_AT": pa.int64()}

Event = tuple[int | None, str | None, int | None, str]
"""A key, a value, a sequence, and what is done: u, d, t."""


def a_target(path: Path, *, scd_type: int = 1, properties: dict[str, str] = VECTORS) -> str:
    """An empty table with the columns id, v and ts, or with intervals in place of ts."""
    url = str(path / "target")
    columns = {"id": pa.int64(), "v": pa.string(), **({"ts": pa.int64()} if scd_type == 1 else INTERVAL)}
    empty = pa.schema(list(columns.items())).empty_table()
    tablefeed.append(url, empty, properties={**NEEDED, **properties})
    return url


def events(*given: Event) -> pa.Table:
    columns = list(zip(*given, strict=True)) or [()] * 4
    kinds = [pa.int64(), pa.string(), pa.int64(), pa.string()]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.table(arrays, names=["id", "v", "ts", "op"])


def apply(
    url: str,
    *given: Event,
    scd_type: int = 1,
    changes: pa.Table | None = None,
    **more: Any,  # arguments
) -> Committed | AlreadyApplied:
    history = {"stored_as_scd_type": 2, "except_column_list": ["op", "ts"]}
    one_row = {"apply_as_truncates": "op = 't'", "except_column_list": ["op"]}
    always = {"keys": "id", "sequence_by": "ts", "apply_as_deletes": "op = 'd'"}
    arguments: dict[str, Any] = {**always, **(history if scd_type == 2 else one_row), **more}
    return tablefeed.apply_changes(url, events(*given) if changes is None else changes, **arguments)


def rows(url: str) -> list[tuple[Any, ...]]:
    found = tablefeed.open_table(url).to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=lambda row: str(row))


def state_files(url: str) -> set[str]:
    return {path.name for path in (Path(url) / STATE_DIR).glob("*")}


# --- one row for each key -------------------------------------------------------------------------------------------


def test_01_an_event_that_comes_twice_changes_nothing_the_second_time(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (1, "a", 1, "u"), (1, "a", 1, "u"))
    assert apply(url, (1, "a", 1, "u")) == Committed(version=Version(1), written=False)
    assert rows(url) == [(1, "a", 1)]


def test_01_also_where_a_delete_of_its_key_was_remembered_before(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (1, None, 5, "d"))
    apply(url, (1, "a", 6, "u"))
    assert apply(url, (1, "a", 6, "u")) == Committed(version=Version(2), written=False)


def test_02_a_batch_that_is_committed_is_not_applied_again(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (1, "a", 1, "u"), app_id="q", txn_version=0)
    tablefeed.delete(url, "id = 1")
    again = apply(url, (1, "a", 1, "u"), app_id="q", txn_version=0)
    assert again == AlreadyApplied(version=Version(2), recorded_txn_version=0)
    assert rows(url) == []


def test_04_05_what_is_older_than_the_row_or_its_delete_is_ignored_in_later_batches(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (1, "new", 5, "u"), (2, None, 5, "d"))
    apply(url, (1, "old", 3, "u"), (2, "old", 3, "u"))
    assert rows(url) == [(1, "new", 5)]
    apply(url, (2, "newer", 6, "u"))
    assert rows(url) == [(1, "new", 5), (2, "newer", 6)]


def test_07_two_values_at_one_sequence_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    with pytest.raises(TablefeedError, match="id=1 at sequence 1"):
        apply(url, (1, "a", 1, "u"), (1, "b", 1, "u"), (2, None, 1, "d"))
    assert (rows(url), state_files(url)) == ([], set())
    apply(url, (1, "a", 1, "u"), (1, "b", 1, "u"), ties="last")
    assert rows(url) == [(1, "b", 1)]


@pytest.mark.parametrize(
    ("event", "text"),
    [((None, "a", 1, "u"), "NULL_KEY"), ((1, "a", None, "u"), "NULL_SEQUENCE")],
    ids=["key", "sequence"],
)
def test_10_an_event_without_key_or_sequence_is_refused(tmp_path: Path, event: Event, text: str) -> None:
    url = a_target(tmp_path)
    with pytest.raises(TablefeedError, match=text):
        apply(url, (2, "b", 1, "u"), event)
    assert rows(url) == []


@pytest.mark.parametrize("properties", [VECTORS, {}], ids=["vectors", "copies"])
def test_14_15_a_row_is_found_in_whatever_partition_it_is(tmp_path: Path, properties: dict[str, str]) -> None:
    url = str(tmp_path / "target")
    target = pa.table({"id": [1, 2, 3], "v": ["x", "y", "z"], "ts": [1, 1, 1]})
    tablefeed.append(url, target, partition_by=["v"], properties={**NEEDED, **properties})
    apply(url, (1, None, 2, "d"), (2, "z", 2, "u"))
    assert rows(url) == [(2, "z", 2), (3, "z", 1)]


def test_17_a_truncate_takes_what_is_older_and_is_remembered(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (1, "a", 5, "u"), (2, "b", 9, "u"))
    apply(url, (0, None, 7, "t"))
    apply(url, (3, "late", 6, "u"))
    assert rows(url) == [(2, "b", 9)]


def test_18_19_nulls_are_ignored_where_asked_also_between_batches(tmp_path: Path) -> None:
    url = str(tmp_path / "target")
    columns = {"id": pa.int64(), "a": pa.string(), "b": pa.string()}
    tablefeed.append(url, pa.schema(list(columns.items())).empty_table(), properties=NEEDED)

    def sparse(*given: tuple[int, str | None, str | None, int]) -> None:
        names = ["id", "a", "b", "ts"]
        kinds = [*columns.values(), pa.int64()]
        arrays = [pa.array(values, kind) for values, kind in zip(zip(*given, strict=True), kinds, strict=True)]
        changes = pa.table(arrays, names=names)
        options: dict[str, Any] = {"except_column_list": ["ts"], "ignore_null_updates": True}
        tablefeed.apply_changes(url, changes, keys="id", sequence_by="ts", **options)

    sparse((1, "a", None, 3), (1, None, "b", 4))
    sparse((1, "older", "older", 2), (1, None, None, 9))
    assert rows(url) == [(1, "a", "b")]


@pytest.mark.parametrize(("ignored", "left"), [(False, None), (True, "a")])
def test_a_column_that_is_all_null_needs_no_type(tmp_path: Path, ignored: bool, left: str | None) -> None:  # noqa: FBT001
    url = a_target(tmp_path)
    for given in (events((1, "a", 1, "u")), pa.Table.from_pylist([{"id": 1, "v": None, "ts": 2, "op": "u"}])):
        apply(url, changes=given, ignore_null_updates=ignored)
    assert rows(url) == [(1, left, 2)]


@pytest.mark.parametrize(
    "changed",
    [{"sequence_by": "id"}, {"ignore_null_updates": True}, {"keys": ["id", "v"]}],
    ids=["sequence", "nulls", "keys"],
)
def test_25_changes_that_are_applied_in_another_way_than_before_are_refused(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    url = a_target(tmp_path)
    apply(url, (1, None, 5, "d"))
    arguments = {"keys": "id", "sequence_by": "ts", "except_column_list": ["op"], **changed}
    with pytest.raises(SchemaMismatchError, match="AUTOCDC_STATE_DRIFT"):
        tablefeed.apply_changes(url, events((1, "a", 9, "u")), **arguments)
    assert rows(url) == []


def test_25_the_way_is_known_from_the_first_batch_on_also_where_nothing_is_remembered(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (1, "a", 5, "u"))
    with pytest.raises(SchemaMismatchError, match="AUTOCDC_STATE_DRIFT"):
        apply(url, (1, "b", 9, "u"), keys=["id", "v"])
    assert rows(url) == [(1, "a", 5)]


def test_25_a_key_that_has_another_type_than_before_is_refused(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (1, None, 5, "d"))
    other = pa.schema({"id": pa.string(), "v": pa.string(), "ts": pa.int64()}).empty_table()
    tablefeed.append(url, other, mode="overwrite", overwrite_schema=True)
    changes = events((1, "late", 4, "u"))
    changes = changes.set_column(0, "id", changes["id"].cast(pa.string()))
    with pytest.raises(SchemaMismatchError, match=r"keyTypes was \['int64'\] and is \['string'\]"):
        apply(url, changes=changes)


def test_25_a_sequence_of_fewer_digits_than_before_is_refused(tmp_path: Path) -> None:
    url = a_target(tmp_path)

    def apply_with(kind: pa.DataType) -> None:
        changes = events((1, "a", 1, "u")).append_column("at", pa.array([Decimal(1)], kind))
        apply(url, changes=changes, sequence_by="at", except_column_list=["op", "at", "ts"])

    apply_with(pa.decimal128(10, 2))
    with pytest.raises(
        SchemaMismatchError, match=r"sequenceType was 'decimal128\(10, 2\)' and is 'decimal128\(9, 2\)'"
    ):
        apply_with(pa.decimal128(9, 2))


def value_of(number: int, kind: pa.DataType) -> Any:  # Any: pyarrow has no types
    if pa.types.is_temporal(kind):
        return pa.scalar(number, pa.date32()).cast(kind).as_py()
    return Decimal(number) if pa.types.is_decimal(kind) else number


@pytest.mark.parametrize("scd_type", [1, 2])
@pytest.mark.parametrize(
    ("older", "wider"),
    [
        (pa.int32(), pa.int64()),
        (pa.int8(), pa.decimal128(12, 1)),
        (pa.decimal128(5, 1), pa.decimal128(9, 3)),
        (pa.float32(), pa.float64()),
        (pa.date32(), pa.timestamp("us")),
    ],
    ids=str,
)
def test_25_what_is_remembered_still_counts_after_keys_and_sequence_are_widened(
    tmp_path: Path, older: pa.DataType, wider: pa.DataType, scd_type: int
) -> None:
    url = str(tmp_path / "target")
    at = ["__START_AT", "__END_AT"] if scd_type == 2 else ["ts"]
    columns = {"id": older, "v": pa.string(), **dict.fromkeys(at, older)}
    features = {"delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "supported"}
    tablefeed.append(url, pa.schema(list(columns.items())).empty_table(), properties={**NEEDED, **features})

    def apply_as(kind: pa.DataType, *given: tuple[int, str | None, int, str]) -> None:
        keys, values, sequences, operations = zip(*given, strict=True)
        ids, times = (pa.array([value_of(each, kind) for each in found], kind) for found in (keys, sequences))
        changes = pa.table({"id": ids, "v": pa.array(values, pa.string()), "ts": times, "op": operations})
        apply(url, changes=changes, scd_type=scd_type)

    apply_as(older, (1, "a", 5, "u"), (2, None, 5, "d"), *([(0, None, 3, "t")] if scd_type == 1 else []))
    for key in range(10, 14):
        apply_as(older, (key, None, 5, "d"))
    tablefeed.alter(url, widen_columns=dict.fromkeys(["id", *at], wider))
    for key in range(20, 26):  # more files than are kept, so that older ones are merged with newer ones
        apply_as(wider, (key, None, 5, "d"))
    late = [(key, "late", 4, "u") for key in (1, 2, 10, 13, 20)]
    apply_as(wider, *late, *([(30, "cut", 2, "u")] if scd_type == 1 else []), (2, "new", 6, "u"))

    found = tablefeed.open_table(url).to_arrow()
    current = found.filter(found["__END_AT"].is_null()) if scd_type == 2 else found
    assert sorted(current["v"].to_pylist()) == ["a", "new"]
    assert found.schema.field("id").type == wider


def test_33_files_that_cannot_have_the_keys_are_not_opened(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    for number in range(4):
        ids = range(10 * number, 10 * number + 10)
        tablefeed.append(url, pa.table({"id": ids, "v": ["a"] * 10, "ts": [1] * 10}))
    others = [add["path"] for add in adds(url) if json.loads(add["stats"])["minValues"]["id"] != 20]
    for path in others:
        (Path(url) / path).unlink()
    apply(url, (20, "b", 2, "u"), (29, None, 2, "d"))
    (Path(url) / others[0]).parent.mkdir(exist_ok=True)
    assert (
        json.loads((Path(url) / "_delta_log" / f"{5:020d}.json").read_text().splitlines()[0])["commitInfo"][
            "operationMetrics"
        ]["numTargetRowsUpdated"]
        == "1"
    )


def test_33_of_rows_only_keys_and_sequences_are_read_where_no_event_has_the_sequence_of_its_row(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (1, "a", 5, "u"), (2, "b", 5, "u"), (3, "c", 5, "u"))
    (add,) = adds(url)
    values = pq.ParquetFile(Path(url) / add["path"]).metadata.row_group(0).column(1)
    begin, size = values.dictionary_page_offset, values.total_compressed_size
    with (Path(url) / add["path"]).open("r+b") as file:
        file.seek(begin)
        file.write(bytes(size))  # values that are read raise an error
    apply(url, (1, "new", 6, "u"), (2, None, 6, "d"), (3, "old", 4, "u"), (4, "d", 5, "u"))
    with pytest.raises(DataFileError):
        apply(url, (3, "other", 5, "u"))
    apply(url, (3, "new", 6, "u"))
    assert rows(url) == [(1, "new", 6), (3, "new", 6), (4, "d", 5)]


def test_33_an_event_with_the_sequence_of_its_row_is_compared_in_every_column(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (1, "a", 5, "u"), (2, "b", 5, "u"))
    apply(url, (1, "a", 5, "u"), (2, "new", 6, "u"))
    with pytest.raises(EqualSequencesError):
        apply(url, (1, "other", 5, "u"), (2, "newer", 7, "u"))
    assert rows(url) == [(1, "a", 5), (2, "new", 6)]


@pytest.mark.parametrize(
    "kind",
    [pa.int64(), pa.date32(), pa.timestamp("us", "UTC"), pa.decimal128(22, 2)],
    ids=["long", "date", "at", "cents"],
)
def test_33_new_keys_far_from_the_others_open_no_file_between_them(tmp_path: Path, kind: pa.DataType) -> None:
    def of(*ids: range) -> pa.Array:
        whole = {kind: pa.int64(), pa.date32(): pa.int32()}[kind]
        numbers = pa.array([number for each in ids for number in each], whole)
        return (numbers.cast(pa.timestamp("s", "UTC")) if pa.types.is_timestamp(kind) else numbers).cast(kind)

    url = str(tmp_path / "target")
    for number in range(4):
        given = of(range(100 * number, 100 * number + 100))
        tablefeed.append(url, pa.table({"id": given, "ts": [1] * 100}), properties={**NEEDED, **VECTORS})
    read = adds(url)[2]["path"]
    for add in adds(url):
        if add["path"] != read:
            (Path(url) / add["path"]).unlink()
    changes = pa.table({"id": of(range(200, 300), range(100_000, 100_030)), "ts": [2] * 130})
    done = tablefeed.apply_changes(url, changes, keys="id", sequence_by="ts")
    assert done == Committed(version=Version(4))


def adds(url: str) -> list[dict[str, Any]]:
    log = sorted((Path(url) / "_delta_log").glob("*.json"))
    return [json.loads(line)["add"] for path in log for line in path.read_text().splitlines() if '"add"' in line[:8]]


def test_34_the_change_feed_has_an_update_as_an_update_and_what_stays_not_at_all(tmp_path: Path) -> None:
    url = a_target(tmp_path, properties={**VECTORS, **FED})
    apply(url, (1, "a", 1, "u"), (2, "b", 1, "u"), (3, "c", 1, "u"))
    apply(url, (1, "A", 2, "u"), (2, None, 2, "d"), (3, "c", 1, "u"), (4, "d", 1, "u"))
    feed = pa.table(DeltaTable(url).load_cdf(starting_version=2)).to_pylist()
    assert sorted((row["_change_type"], row["id"], row["v"]) for row in feed) == [
        ("delete", 2, "b"),
        ("insert", 4, "d"),
        ("update_postimage", 1, "A"),
        ("update_preimage", 1, "a"),
    ]


# --- the history of each key ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=lambda order: "".join(map(str, order)))
def test_21_22_24_a_history_does_not_depend_on_the_order_of_its_batches(tmp_path: Path, order: tuple[int, ...]) -> None:
    url = a_target(tmp_path, scd_type=2)
    given: list[Event] = [(1, "a", 10, "u"), (1, "a", 11, "u"), (1, None, 12, "d"), (1, "b", 20, "u")]
    for number in order:
        apply(url, given[number], scd_type=2)
    assert rows(url) == [(1, "a", 10, 12), (1, "b", 20, None)]


# --- what is remembered ---------------------------------------------------------------------------------------------


def test_many_batches_of_deletes_leave_few_files_of_state(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    for number in range(40):
        apply(url, (number, None, 5, "d"))
    named = json.dumps((Path(url) / "_delta_log" / f"{40:020d}.json").read_text())
    assert sum(name in named for name in state_files(url)) <= 9
    apply(url, *((number, "late", 4, "u") for number in range(40)))
    assert rows(url) == []


def test_the_state_survives_a_checkpoint_and_the_vacuum_of_others(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    apply(url, (1, None, 5, "d"))
    tablefeed.checkpoint(url)
    DeltaTable(url).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    tablefeed.vacuum(url)
    (Path(url) / "_delta_log" / f"{1:020d}.json").unlink()
    apply(url, (1, "late", 4, "u"))
    assert rows(url) == []


@pytest.mark.parametrize("seed", range(12))
def test_random_histories_end_in_the_same_table_in_any_order_and_any_batches(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    scd_type = 1 + seed % 2
    url = a_target(tmp_path, scd_type=scd_type, properties={**(VECTORS if seed % 3 else {}), **FED})
    sequences = chance.sample(range(100), 25)
    operations = "uuud" if scd_type == 2 else "uuuuddt"
    given: list[Event] = [
        (chance.randrange(5), chance.choice(["a", "b", None]), at, chance.choice(operations)) for at in sequences
    ]
    left = list(given)
    while left:
        batch, left = left[: (size := chance.randint(1, 8))], left[size:]
        apply(url, *batch, *chance.sample(given[: len(given) - len(left)], 1), scd_type=scd_type)
    found = Counter(map(str, rows(url)))
    assert found == Counter(str(row) for key in range(5) for row in folded(key, given, scd_type))
    replayed: Counter[str] = Counter()
    for row in tablefeed.changes(url, start_version=0).read_all().to_pylist():
        sign = 1 if row["_change_type"] in ("insert", "update_postimage") else -1
        replayed[str(tuple(value for name, value in row.items() if not name.startswith(("_change", "_commit"))))] += (
            sign
        )
    assert +replayed == found


def folded(key: int, given: list[Event], scd_type: int) -> list[tuple[Any, ...]]:
    """What the events of a key make of it, one after the other."""
    done: list[tuple[Any, ...]] = []
    now: tuple[Any, ...] | None = None
    for event_key, value, at, operation in sorted(given, key=lambda event: event[2] or 0):
        if event_key != key and operation != "t":
            continue
        if scd_type == 1:
            now = (key, value, at) if operation == "u" else None
        elif not (operation == "u" and now is not None and now[1] == value):
            done += [] if now is None else [(*now, at)]
            now = (key, value, at) if operation == "u" else None
    last = [] if now is None else [now if scd_type == 1 else (*now, None)]
    return [*done, *last]


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"keys": "nope"}, IllegalOptionError, "nope"),
        ({"keys": ["id", "ID"]}, IllegalOptionError, "twice"),
        ({"sequence_by": "nope"}, IllegalOptionError, "nope"),
        ({"apply_as_deletes": "op"}, IllegalOptionError, "true or false"),
        ({"apply_as_deletes": "nope = 1"}, IllegalOptionError, "nope"),
        ({"except_column_list": []}, SchemaMismatchError, "op"),
        ({"stored_as_scd_type": 2}, SchemaMismatchError, "__START_AT"),
        ({"stored_as_scd_type": 3}, IllegalOptionError, "must be 1 or 2"),
        ({"ties": "first"}, IllegalOptionError, "ties"),
        ({"column_list": ["id"]}, TablefeedError, "column_list"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    url = a_target(tmp_path)
    given = {"keys": "id", "sequence_by": "ts", "except_column_list": ["op"], **arguments}
    with pytest.raises(error, match=text):
        tablefeed.apply_changes(url, events((1, "a", 1, "u")), **given)
    assert (rows(url), state_files(url)) == ([], set())


def test_a_table_whose_log_cannot_name_the_state_is_refused_by_name(tmp_path: Path) -> None:
    url = str(tmp_path / "target")
    tablefeed.append(url, pa.table({"id": [1], "v": ["a"], "ts": [1]}))
    with pytest.raises(UnsupportedFeatureError, match="domainMetadata"):
        apply(url, (1, "b", 2, "u"))


def change_a_key(path: Path) -> None:
    """Changes a bit of the largest key, which is the last value of the first page."""
    column, data = pq.ParquetFile(path).metadata.row_group(0).column(0), bytearray(path.read_bytes())
    data[column.data_page_offset - 1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        change_a_key,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"x"),
        lambda path: pq.write_table(pa.table({"id": [1]}), path),
        lambda path: pq.write_table(pq.read_table(path).slice(1), path),
    ],
    ids=["gone", "a key", "empty", "no Parquet", "other columns", "fewer rows"],
)
def test_what_cannot_be_remembered_is_an_error_and_never_nothing(tmp_path: Path, damage: Any) -> None:
    url = a_target(tmp_path)
    apply(url, (1, None, 5, "d"), (2, None, 5, "d"))
    (name,) = state_files(url)
    damage(Path(url) / STATE_DIR / name)
    with pytest.raises(DataFileError, match=f"{name} of .*target has the state of earlier changes"):
        apply(url, (1, "late", 4, "u"))
    assert rows(url) == []


def a_damaged_sequence(value: int | str, damage: Callable[[bytearray], None]) -> str:
    """A sequence as the state keeps it, an Arrow file, of which `damage` changes some bytes."""
    batch, sink = pa.record_batch({"at": [value]}), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write(batch)
    data = bytearray(sink.getvalue().to_pybytes())
    damage(data)
    return json.dumps({"how": {}, "files": [], "truncatedAt": base64.b64encode(data).decode()})


def change_the_batch(data: bytearray) -> None:
    message = data.rindex(b"\xff\xff\xff\xff", 0, data.rindex(b"\xff\xff\xff\xff"))
    data[message + 8 : message + 24] = b"\xee" * 16


def change_the_text(data: bytearray) -> None:
    at = data.rindex(b"text")
    data[at] = 0xFF


@pytest.mark.parametrize(
    "configuration",
    [
        '{"how":"","files":[],"truncatedAt":null}',
        '{"how":{},"files":[{"path":1,"rows":1}]}',
        "[]",
        pytest.param(a_damaged_sequence(5, change_the_batch), id="a batch whose bytes are damaged"),
        pytest.param(a_damaged_sequence("text", change_the_text), id="a text that is no UTF-8"),
    ],
)
def test_a_domain_that_another_writer_set_is_refused(tmp_path: Path, configuration: str) -> None:
    url = a_target(tmp_path)
    domain = {"domain": "tablefeed.applyChanges", "configuration": configuration, "removed": False}
    (Path(url) / "_delta_log" / f"{1:020d}.json").write_text(json.dumps({"domainMetadata": domain}))
    with pytest.raises(LogError, match="does not say where the order"):
        apply(url, (1, "late", 4, "u"))


@pytest.mark.parametrize(
    ("kind", "older", "newer"), [(pa.float32(), 2.0**24, 2.0**24 + 1), (pa.int64(), 1.25, 1.75)], ids=str
)
def test_a_sequence_that_the_table_holds_less_exactly_is_remembered_beside_it(
    tmp_path: Path, kind: pa.DataType, older: float, newer: float
) -> None:
    """A float has no 16777217: it would be the same sequence as 16777216."""
    url = str(tmp_path / "target")
    empty = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", kind)]).empty_table()
    tablefeed.append(url, empty, properties=NEEDED)
    for value, at in (("a", older), ("b", newer), ("late", older)):
        changes = pa.table({"id": [1], "v": [value], "ts": [at]})
        tablefeed.apply_changes(url, changes, keys="id", sequence_by="ts", ties="last")
    assert [row[1] for row in rows(url)] == ["b"]


def test_25_a_history_with_other_columns_that_begin_no_version_is_refused(tmp_path: Path) -> None:
    url = str(tmp_path / "target")
    columns = {"id": pa.int64(), "v": pa.string(), "w": pa.string(), **INTERVAL}
    tablefeed.append(url, pa.schema(list(columns.items())).empty_table(), properties=NEEDED)
    changes = pa.table({"id": [1, 1], "v": ["a", "a"], "w": ["x", "y"], "ts": [1, 2]})
    arguments: dict[str, Any] = {"keys": "id", "sequence_by": "ts", "stored_as_scd_type": 2}
    arguments |= {"track_history_column_list": ["V"]}
    tablefeed.apply_changes(url, changes, except_column_list=["ts", "w"], **arguments)
    with pytest.raises(SchemaMismatchError, match="untrackedColumns was"):
        tablefeed.apply_changes(url, changes, except_column_list=["ts"], **arguments)


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int32(), pa.float64(), pa.string()], ids=str)
def test_a_history_whose_interval_cannot_hold_the_sequence_is_refused(tmp_path: Path, kind: pa.DataType) -> None:
    url = str(tmp_path / "target")
    columns = {"id": pa.int64(), "v": pa.string(), "__START_AT": kind, "__END_AT": kind}
    tablefeed.append(url, pa.schema(list(columns.items())).empty_table(), properties=NEEDED)
    with pytest.raises(SchemaMismatchError, match="sequence_by, which is long: __START_AT is"):
        apply(url, (1, "a", 1, "u"), scd_type=2)
    assert rows(url) == []


def test_times_that_lose_digits_are_refused_by_name(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    changes = events((1, "a", 1, "u")).append_column("at", pa.array([1], pa.timestamp("ns")))
    arguments: dict[str, Any] = {"keys": "id", "except_column_list": ["op", "at"]}
    with pytest.raises(SchemaMismatchError, match=r"sequence of the changes for .*target is timestamp\[ns\]"):
        tablefeed.apply_changes(url, changes, sequence_by="at", **arguments)
    with pytest.raises(SchemaMismatchError, match=r"column at of the changes for .*target is timestamp\[ns\]"):
        tablefeed.apply_changes(url, changes, sequence_by="ts", apply_as_deletes="op = 'd'", **arguments)


# --- columns with rules ---------------------------------------------------------------------------------------------


def a_target_with(path: Path, feature: str, *columns: dict[str, Any], properties: dict[str, str] = VECTORS) -> str:
    """An empty table with the columns id, v and ts, in which `columns` take the place of those of their names."""
    url = a_target(path, properties=properties)

    def change(action: dict[str, Any]) -> None:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            fields = {field["name"]: field for field in schema["fields"]}
            fields |= {
                column["name"]: {"type": "long", "nullable": True, "metadata": {}, **column} for column in columns
            }
            action["metaData"]["schemaString"] = json.dumps({**schema, "fields": list(fields.values())})
        if "protocol" in action:
            action["protocol"]["writerFeatures"].append(feature)

    change_actions(url, 0, change)
    return url


@pytest.mark.parametrize("properties", [VECTORS, {**VECTORS, **FED}], ids=["plain", "fed"])
@pytest.mark.parametrize(
    ("feature", "rule", "before", "after"),
    [
        ("generatedColumns", {"delta.generationExpression": "ts * 10"}, 10, 20),
        ("allowColumnDefaults", {"CURRENT_DEFAULT": "7"}, 7, 7),
    ],
    ids=["generated", "default"],
)
def test_a_rule_fills_the_column_that_events_do_not_fill(
    tmp_path: Path, feature: str, rule: dict[str, str], before: int, after: int, properties: dict[str, str]
) -> None:
    url = a_target_with(tmp_path, feature, {"name": "x", "metadata": rule}, properties=properties)
    apply(url, (1, "a", 1, "u"))
    assert rows(url) == [(1, "a", 1, before)]
    apply(url, (1, "b", 2, "u"), (2, "c", 2, "u"))
    assert rows(url) == [(1, "b", 2, after), (2, "c", 2, after)]
    if properties.keys() >= FED.keys():
        feed = tablefeed.changes(url, start_version=2).read_all().to_pylist()
        expected = [("insert", after), ("update_postimage", after), ("update_preimage", before)]
        assert sorted((row["_change_type"], row["x"]) for row in feed) == expected


def test_what_neither_events_nor_rules_fill_is_null_in_a_new_row_and_stays_in_an_old_one(tmp_path: Path) -> None:
    url = str(tmp_path / "target")
    target = pa.table({"id": [1], "v": ["a"], "ts": [1], "p": ["x"]})
    tablefeed.append(url, target, partition_by=["p"], properties={**NEEDED, **VECTORS})
    apply(url, (1, "b", 2, "u"), (2, "c", 2, "u"))
    assert rows(url) == [(1, "b", 2, "x"), (2, "c", 2, None)]


@pytest.mark.parametrize("sequence", ["in the table", "beside it"])
@pytest.mark.parametrize("batches", [[[0], [1]], [[0, 1]], [[1, 0]]], ids=str)
def test_what_events_do_not_fill_ends_with_the_row_that_a_delete_ends(
    tmp_path: Path, batches: list[list[int]], sequence: str
) -> None:
    url, sequenced = str(tmp_path / "target"), sequence == "in the table"
    target = pa.table({"id": [1, 2], "v": ["a", "b"], "p": ["x", "y"]})
    target = target.append_column("ts", pa.array([1, 1])) if sequenced else target
    tablefeed.append(url, target, properties={**NEEDED, **VECTORS, **FED})
    more: dict[str, Any] = {} if sequenced else {"except_column_list": ["op", "ts"]}
    given: list[list[Event]] = [[(1, None, 5, "d"), (2, None, 0, "d")], [(1, "a", 6, "u"), (2, "B", 6, "u")]]
    if not sequenced:
        apply(url, (2, "b", 1, "u"), **more)
    for batch in batches:
        apply(url, *(event for number in batch for event in given[number]), **more)
    found = tablefeed.open_table(url).to_arrow().to_pylist()
    assert sorted((row["id"], row["v"], row["p"]) for row in found) == [(1, "a", None), (2, "B", "y")]


def test_a_table_with_an_identity_column_is_refused(tmp_path: Path) -> None:
    marks = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    url = a_target_with(tmp_path, "identityColumns", {"name": "x", "metadata": marks})
    with pytest.raises(SchemaMismatchError, match=r"target has identity columns \(x\)"):
        apply(url, (1, "a", 1, "u"))
    assert rows(url) == []


def test_14_a_delete_with_its_key_alone_is_applied_where_other_columns_take_no_null(tmp_path: Path) -> None:
    url = a_target_with(tmp_path, "invariants", {"name": "v", "type": "string", "nullable": False})
    apply(url, (1, "a", 1, "u"), (2, "b", 1, "u"))
    apply(url, (1, None, 2, "d"))
    with pytest.raises(TablefeedError, match="NOT_NULL_CONSTRAINT_VIOLATED"):
        apply(url, (3, None, 2, "u"))
    assert rows(url) == [(2, "b", 1)]


# --- times that Python has no object for ------------------------------------------------------------------------------

FAR = [-99_999_999_999_999_999, 253_402_300_800_000_000, 253_402_300_800_000_001]
"""Microseconds: in the year -1199, and the first two of the year 10000."""


@pytest.mark.parametrize("of_two_columns", [False, True], ids=["a time", "a struct"])
def test_sequences_and_keys_beyond_the_years_of_python_are_applied_and_named(
    tmp_path: Path, *, of_two_columns: bool
) -> None:
    url = str(tmp_path / "target")
    time = pa.timestamp("us", "UTC")
    tablefeed.append(url, pa.schema([("id", time), ("v", pa.string())]).empty_table(), properties=NEEDED)

    def far(*given: tuple[int, str | None, int, str]) -> Committed | AlreadyApplied:
        ids, values, at, operations = zip(*given, strict=True)
        kinds = [time, pa.string(), time, pa.int64(), pa.string()]
        arrays = [pa.array(each, kind) for each, kind in zip((ids, values, at, at, operations), kinds, strict=True)]
        return tablefeed.apply_changes(
            url,
            pa.table(arrays, names=["id", "v", "ts", "line", "op"]),
            keys="id",
            sequence_by=["ts", "line"] if of_two_columns else "ts",
            apply_as_deletes="op = 'd'",
            apply_as_truncates="op = 't'",
            except_column_list=["ts", "line", "op"],
        )

    far((FAR[0], "a", FAR[0], "u"), (FAR[1], "b", FAR[2], "u"), (FAR[2], "c", FAR[0], "u"))
    far((0, None, FAR[1], "t"), (FAR[0], None, FAR[2], "d"))
    far((FAR[0], "late", FAR[1], "u"))
    with pytest.raises(TablefeedError, match=r"key id=10000-01-01 00:00:00.000000Z at sequence .*10000-01-01 00:00"):
        far((FAR[1], "one", FAR[2], "u"), (FAR[1], "other", FAR[2], "u"))

    left = tablefeed.open_table(url).to_arrow()
    assert (left["id"].cast(pa.int64()).to_pylist(), left["v"].to_pylist()) == ([FAR[1]], ["b"])


def test_an_empty_text_in_a_partition_column_is_null_and_so_is_no_key(tmp_path: Path) -> None:
    """Each event of such a key would insert a row, because no later one finds it."""
    url = str(tmp_path / "target")
    target = pa.schema([("id", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
    tablefeed.append(url, target.empty_table(), partition_by=["id"], properties=NEEDED)
    with pytest.raises(TablefeedError, match=r"NULL_KEY.*key column id.* an empty text in a partition column is null"):
        tablefeed.apply_changes(url, pa.table({"id": [""], "v": ["a"], "ts": [1]}), keys="id", sequence_by="ts")
    assert rows(url) == []


def test_an_event_with_an_empty_text_in_a_partition_column_is_applied_once(tmp_path: Path) -> None:
    url = str(tmp_path / "target")
    target = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64())])
    tablefeed.append(url, target.empty_table(), partition_by=["v"], properties=NEEDED)
    for _ in range(2):
        apply(url, (1, "", 1, "u"))
    assert rows(url) == [(1, None, 1)]


@pytest.mark.parametrize(
    ("kept", "given", "exact", "rounded"),
    [
        (pa.int64(), pa.float64(), 1.0, 1.7),
        (pa.float64(), pa.int64(), 1, 2**53 + 1),
        (pa.decimal128(10, 2), pa.decimal128(10, 3), Decimal("1.000"), Decimal("1.004")),
        (pa.date32(), pa.timestamp("us"), datetime(2024, 1, 1), datetime(2024, 1, 1, 12)),  # noqa: DTZ001 - no zone
        (pa.float32(), pa.float64(), 0.5, 0.1),
        (pa.decimal128(10, 2), pa.string(), "01.000", "1.004"),
        (pa.date32(), pa.large_string(), "2024-1-1 00:00:00", "2024-01-01T12:00:00"),
        (pa.int64(), pa.dictionary(pa.int8(), pa.float64()), 1.0, 1.7),
        (pa.decimal128(38, 0), pa.string(), "9" * 38, "1.5"),
        (pa.timestamp("us"), pa.string(), "2024-01-01 00:00:00.1234560", "2024-01-01 00:00:00.1234567"),
        (pa.timestamp("us"), pa.string(), "2024-01-01 00:00:00Z", "2024-01-01 00:00:00+02:00"),
        (pa.timestamp("us", "UTC"), pa.string(), "2024-03-31 04:30:00+03:00", "2024-03-31 02:30"),
        (pa.timestamp("us", "UTC"), pa.large_string(), "2024-10-27 02:30", "2024-10-27 02:30:00.0000001"),
    ],
    ids=str,
)
def test_a_key_that_the_table_would_round_is_refused(
    tmp_path: Path, kept: pa.DataType, given: pa.DataType, exact: object, rounded: object
) -> None:
    """It would change the row of another key."""
    url = str(tmp_path / "target")
    columns = {"id": kept, "v": pa.string(), "ts": pa.int64()}
    tablefeed.append(url, pa.schema(list(columns.items())).empty_table(), properties=NEEDED)

    def keyed(*ids: object) -> pa.Table:
        return pa.table({"id": pa.array(ids, given), "v": ["a"] * len(ids), "ts": [1] * len(ids)})

    arguments: dict[str, Any] = {"keys": "id", "sequence_by": "ts", "time_zone": "Europe/Berlin"}
    tablefeed.apply_changes(url, keyed(exact), **arguments)
    with pytest.raises(SchemaMismatchError, match=r"key column id of .* cannot hold the key .* it would become"):
        tablefeed.apply_changes(url, keyed(exact, rounded), **arguments)

    assert tablefeed.open_table(url).version == 1


def test_texts_of_a_char_column_that_spark_takes_for_equal_are_one_value(tmp_path: Path) -> None:
    """Spark reads 'a' in a CHAR(3) column as 'a  ', and such rows may be copied to this table."""
    made, history = a_target(tmp_path), a_target(tmp_path / "history", scd_type=2)
    for url in (made, history):
        commit = Path(url) / "_delta_log" / "00000000000000000000.json"
        plain = r"\"name\":\"v\",\"type\":\"string\",\"nullable\":true,\"metadata\":{}"
        declared = plain.replace("{}", r"{\"__CHAR_VARCHAR_TYPE_STRING\":\"char(3)\"}")
        text = commit.read_text(encoding="utf-8")
        Path(url, "copy", "_delta_log").mkdir(parents=True)
        Path(url, "copy", "_delta_log", commit.name).write_text(text.replace(plain, declared), encoding="utf-8")
    made, history = f"{made}/copy", f"{history}/copy"
    tablefeed.append(made, events((1, "a  ", 1, "u")).drop_columns(["op"]))

    assert apply(made, (1, "a", 1, "u"), app_id="q", txn_version=0) == Committed(version=Version(2))
    apply(made, (1, "b", 2, "u"))
    for ts, value in ((1, "a"), (2, "a "), (3, "b"), (4, "b  ")):
        apply(history, (1, value, ts, "u"), scd_type=2)

    assert rows(made) == [(1, "b  ", 2)]
    assert rows(history) == [(1, "a  ", 1, 3), (1, "b  ", 3, None)]


@pytest.mark.parametrize("option", ["keys", "sequence_by"])
def test_a_key_or_a_sequence_with_a_collation_is_refused(tmp_path: Path, option: str) -> None:
    """Spark may take 'a' for 'A', and either of them for less than 'B'. Changes of a DataFrame have this mark."""
    collated = pa.field("c", pa.string(), metadata={"__COLLATIONS": "string collate UTF8_LCASE"})
    given = events((1, "a", 1, "u")).drop_columns(["op"]).append_column(collated, [["x"]])
    arguments: dict[str, Any] = {"keys": "id", "sequence_by": "ts", option: "c"}
    with pytest.raises(IllegalOptionError, match=f"'c' for option '{option}': it has a collation"):
        tablefeed.apply_changes(a_target(tmp_path), given, **arguments)


def test_a_key_that_is_no_utf_8_is_named(tmp_path: Path) -> None:
    url = str(tmp_path / "target")
    tablefeed.append(url, pa.table({"id": ["a"], "v": ["a"]}), properties=NEEDED)
    broken = pa.array([b"\xff", b"\xff"]).view(pa.string())
    changes = pa.table({"id": broken, "v": ["a", "b"], "ts": [1, 1]})
    with pytest.raises(TablefeedError, match=r"key id=\\xff at sequence 1 differ"):
        tablefeed.apply_changes(url, changes, keys="id", sequence_by="ts", except_column_list=["ts"])


# --- columns that come later ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_26_columns_that_the_table_lacks_are_added_with_the_batch_where_asked(tmp_path: Path, mapping: str) -> None:
    mapped = {} if mapping == "none" else {"delta.columnMapping.mode": mapping}
    url = a_target(tmp_path, properties={**VECTORS, **FED, **mapped})
    apply(url, (1, "a", 1, "u"), (2, "b", 1, "u"))
    changes = events((1, "A", 2, "u"), (3, "c", 2, "u")).append_column("New", pa.array(["x", "y"]))
    arguments: dict[str, Any] = {"keys": "id", "sequence_by": "ts", "except_column_list": ["op"]}
    with pytest.raises(SchemaMismatchError, match=r"lacks: New\..*merge_schema=True"):
        tablefeed.apply_changes(url, changes, **arguments)
    tablefeed.apply_changes(url, changes, **arguments, merge_schema=True)
    assert (rows(url), tablefeed.open_table(url).version) == (
        [(1, "A", 2, "x"), (2, "b", 1, None), (3, "c", 2, "y")],
        2,
    )
    again = changes.rename_columns(["ID", "V", "Ts", "op", "nEW"])
    tablefeed.apply_changes(url, again, **{**arguments, "keys": "Id"}, merge_schema=True)
    assert tablefeed.open_table(url).schema.names == ["id", "v", "ts", "New"]
    assert DeltaTable(url).version() == 2


def test_26_a_column_that_is_added_is_left_alone_by_nulls_as_the_others_are(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    arguments: dict[str, Any] = {"keys": "id", "sequence_by": "ts", "except_column_list": ["op"], "merge_schema": True}
    arguments |= {"ignore_null_updates": True}
    tablefeed.apply_changes(url, events((1, "a", 5, "u"), (2, "b", 5, "u")), **arguments)
    changes = events((1, None, 7, "u"), (2, None, 3, "u")).append_column("w", pa.array(["x", "y"]))
    tablefeed.apply_changes(url, changes, **arguments)
    tablefeed.apply_changes(url, changes.set_column(2, "ts", pa.array([6, 2])), **arguments)
    assert rows(url) == [(1, "a", 7, "x"), (2, "b", 5, "y")]
    with pytest.raises(SchemaMismatchError, match="AUTOCDC_STATE_DRIFT"):
        tablefeed.apply_changes(url, changes, **{**arguments, "ignore_null_updates": False})


@pytest.mark.parametrize("scd_type", [1, 2])
def test_26_a_column_that_is_dropped_is_forgotten_and_one_that_is_renamed_is_refused(
    tmp_path: Path, scd_type: int
) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    url = a_target(tmp_path, scd_type=scd_type, properties=mapped)
    tablefeed.alter(url, add_columns=[pa.field("w", pa.string()), pa.field("x", pa.string())])
    arguments: dict[str, Any] = {"keys": "id", "sequence_by": "ts", "stored_as_scd_type": scd_type}
    arguments |= {"ignore_null_updates": True, "except_column_list": ["op", *(["ts"] if scd_type == 2 else [])]}
    changes = events((1, "a", 5, "u"), (1, None, 7, "u"))
    wide = changes.append_column("w", pa.array(["w", None])).append_column("x", pa.array([None, "x"]))
    tablefeed.apply_changes(url, wide, **arguments)
    tablefeed.alter(url, drop_columns=["w"])
    late = wide.drop_columns(["w"]).slice(0, 1).set_column(2, "ts", pa.array([6]))
    tablefeed.apply_changes(url, late, **arguments)
    newest = [row for row in tablefeed.open_table(url).to_arrow().to_pylist() if row.get("__END_AT") is None]
    assert [(row["v"], row["x"]) for row in newest] == [("a", "x")]
    tablefeed.alter(url, rename_columns={"x": "y"})
    with pytest.raises(SchemaMismatchError, match="AUTOCDC_STATE_DRIFT"):
        tablefeed.apply_changes(url, late.rename_columns(["id", "v", "ts", "op", "y"]), **arguments)


def test_26_a_column_that_is_added_to_a_history_may_be_the_first_whose_nulls_are_ignored(tmp_path: Path) -> None:
    url = a_target(tmp_path, scd_type=2)
    more: dict[str, Any] = {
        "stored_as_scd_type": 2,
        "track_history_column_list": [],
        "except_column_list": ["op", "ts"],
    }
    more |= {"keys": "id", "sequence_by": "ts", "merge_schema": True}
    tablefeed.apply_changes(url, events((1, "a", 1, "u"), (1, "b", 3, "u")), **more)
    changes = events((1, "c", 5, "u"), (1, "d", 7, "u")).append_column("w", pa.array(["x", None]))
    tablefeed.apply_changes(url, changes, **more, ignore_null_updates_column_list=["w"])
    assert rows(url) == [(1, "d", 1, None, "x")]


def test_26_two_columns_of_the_changes_that_differ_in_case_alone_are_refused(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    changes = events((1, "a", 1, "u")).append_column("V", pa.array(["b"]))
    with pytest.raises(SchemaMismatchError, match="two columns v and V"):
        tablefeed.apply_changes(url, changes, keys="id", sequence_by="ts", except_column_list=["op"], merge_schema=True)
    assert rows(url) == []


@pytest.mark.parametrize("place", [None, {"city": None}])
def test_a_null_in_a_member_that_is_not_null_is_refused_by_its_name_if_the_event_sets_it(
    tmp_path: Path, place: object
) -> None:
    url, of_city = str(tmp_path / "target"), pa.field("city", pa.string(), nullable=False)
    schema = pa.schema([("id", pa.int64()), ("place", pa.struct([of_city])), ("ts", pa.int64())])
    tablefeed.create(url, schema, properties=NEEDED)

    def applied(given: object, ts: int, op: str) -> None:
        places = pa.array([given], pa.struct([("city", pa.string())]))
        changes = pa.table({"id": [1], "place": places, "ts": [ts], "op": [op]})
        deletes: dict[str, Any] = {"apply_as_deletes": "op = 'd'", "except_column_list": ["op"]}
        tablefeed.apply_changes(url, changes, keys="id", sequence_by="ts", **deletes)

    for _ in ("for a new row", "for an update"):
        with pytest.raises(InvalidRowsError, match=r"place\.city"):
            applied(place, 5, "u")
        applied({"city": "Ulm"}, 1, "u")
    assert rows(url) == [(1, {"city": "Ulm"}, 1)]
    applied(place, 6, "d")
    assert not rows(url)
