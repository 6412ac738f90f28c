"""Micro-batches committed one by one, as DeltaV2StreamingWriteTest and DeltaV2WriteTest have it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablefeed
from scenarios.made_tables import Column, Writes, a_struct, actions, by_batch, make, rows
from support.logs import metadata, protocol, put
from tablefeed.errors import ConflictError
from tablefeed.store import LocalStore

NAMED: tuple[Column, ...] = (("id", "integer"), ("name", "string"))
PARTITIONED: tuple[Column, ...] = (("value", "integer"), ("part", "string"))


def people(**ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids.values(), pa.int32()), "name": [*ids]})


def values(**parts: int) -> pa.Table:
    return pa.table({"value": pa.array(parts.values(), pa.int32()), "part": [*parts]})


def names(table: Path) -> list[str]:
    return [row["name"] for row in sorted(rows(table), key=lambda row: row["id"])]


def version(table: Path) -> int:
    return tablefeed.open_table(table).version


def of_part(table: Path, part: str) -> list[int]:
    """The values of a partition, which the log alone finds."""
    found = tablefeed.open_table(table).to_arrow(filter=pc.field("part") == part)
    return sorted(found["value"].to_pylist())


# --- DeltaV2StreamingWriteTest ---------------------------------------------------------------------------------------


def test_each_batch_appends(tmp_path: Path) -> None:
    query = Writes(make(tmp_path, a_struct(*NAMED)))

    query(people(Alice=1, Bob=2))
    query(people(Carol=3, Dave=4))

    assert names(query.path) == ["Alice", "Bob", "Carol", "Dave"]
    assert version(query.path) == 2


def test_a_batch_comes_on_top_of_what_another_appended_meanwhile(tmp_path: Path) -> None:
    query = Writes(make(tmp_path, a_struct(*NAMED)))
    written = query.write(people(Alice=1))

    by_batch(query.path, people(Concurrent=99))
    query.commit(written)

    assert names(query.path) == ["Alice", "Concurrent"]
    assert version(query.path) == 2


def test_a_batch_stops_at_a_column_that_another_added_meanwhile(tmp_path: Path) -> None:
    query = Writes(make(tmp_path, a_struct(*NAMED)))
    written = query.write(people(Alice=1, Bob=2))
    put(LocalStore(str(query.path)), 1, [metadata(json.dumps(a_struct(*NAMED, ("extra", "string"))))])

    with pytest.raises(ConflictError) as caught:
        query.commit(written)

    assert caught.value.error_class == "DELTA_METADATA_CHANGED"
    assert (rows(query.path), version(query.path)) == ([], 1)


def test_a_batch_stops_at_a_protocol_that_asks_files_for_more_meanwhile(tmp_path: Path) -> None:
    query = Writes(make(tmp_path, a_struct(*NAMED), protocol(1, 2)))
    written = query.write(people(Alice=1, Bob=2))
    put(
        LocalStore(str(query.path)),
        1,
        [protocol(1, 7, writerFeatures=["appendOnly", "invariants", "checkConstraints"])],
    )

    with pytest.raises(ConflictError) as caught:
        query.commit(written)

    assert caught.value.error_class == "DELTA_PROTOCOL_CHANGED"
    assert (rows(query.path), version(query.path)) == ([], 1)


def test_a_batch_takes_row_tracking_that_another_turned_on_meanwhile(tmp_path: Path) -> None:
    query = Writes(make(tmp_path, a_struct(*NAMED), protocol(1, 2)))
    written = query.write(people(Alice=1, Bob=2))
    features = ["appendOnly", "invariants", "rowTracking", "domainMetadata"]
    on = {"delta.enableRowTracking": "true"}
    on |= {f"delta.rowTracking.materialized{name}ColumnName": name for name in ("RowId", "RowCommitVersion")}
    told = metadata(json.dumps(a_struct(*NAMED)), configuration=on)
    put(LocalStore(str(query.path)), 1, [protocol(1, 7, writerFeatures=features), told])

    query.commit(written)

    assert names(query.path) == ["Alice", "Bob"]
    assert [add["baseRowId"] for add in actions(query.path, 2)["add"]] == [0]


def test_a_batch_that_is_run_again_makes_no_row_and_no_version(tmp_path: Path) -> None:
    query = Writes(make(tmp_path, a_struct(*NAMED)))
    before = Writes(query.path).write(people(Carol=3, Dave=4))
    query(people(Alice=1, Bob=2))

    query.batch_id = 0
    query.commit(before)  # of an attempt that wrote files of its own
    query.batch_id = 0
    query(people(Erin=5))

    assert names(query.path) == ["Alice", "Bob"]
    assert version(query.path) == 1


def test_a_batch_that_is_given_up_makes_no_row_and_no_version(tmp_path: Path) -> None:
    query = Writes(make(tmp_path, a_struct(*NAMED)))

    query.abort(query.write(people(Alice=1, Bob=2)))
    assert (rows(query.path), version(query.path)) == ([], 0)
    query(people(Alice=1, Bob=2))

    assert (names(query.path), version(query.path)) == (["Alice", "Bob"], 1)
    assert len(actions(query.path, 1)["add"]) == 1


def test_of_a_batch_with_a_task_that_failed_the_files_of_the_others_are_gone(tmp_path: Path) -> None:
    query = Writes(make(tmp_path, a_struct(*NAMED)))
    query(people(Alice=1))
    before = {*query.path.rglob("*.parquet")}

    written = query.write(people(Bob=2), people(Carol=3))
    assert len({*query.path.rglob("*.parquet")} - before) == 2
    query.abort([written[0], None, written[1]])

    assert {*query.path.rglob("*.parquet")} == before
    assert (names(query.path), version(query.path)) == (["Alice"], 1)


def test_batches_of_a_partitioned_table_come_to_their_partitions(tmp_path: Path) -> None:
    query = Writes(make(tmp_path, a_struct(*PARTITIONED), partition_by=("part",)))

    query(values(a=10, b=20))
    query(values(a=11, c=30))

    assert sorted((row["value"], row["part"]) for row in rows(query.path)) == [
        (10, "a"),
        (11, "a"),
        (20, "b"),
        (30, "c"),
    ]
    assert sorted(path.name for path in query.path.glob("part=*")) == ["part=a", "part=b", "part=c"]
    assert of_part(query.path, "a") == [10, 11]


def test_batches_with_the_same_partition_gather_in_it(tmp_path: Path) -> None:
    query = Writes(make(tmp_path, a_struct(*PARTITIONED), partition_by=("part",)))

    query(values(a=10))
    query(values(a=11))

    assert len([*query.path.glob("part=a/*.parquet")]) == 2
    assert of_part(query.path, "a") == [10, 11]


# --- DeltaV2WriteTest ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "option",
    [
        "replaceWhere",
        "replaceOn",
        "replaceUsing",
        "partitionOverwriteMode",
        "txnAppId",
        "txnVersion",
    ],
)
def test_options_that_only_a_batch_write_has_are_warned_of_on_a_stream(
    tmp_path: Path, option: str, caplog: pytest.LogCaptureFixture
) -> None:
    query = Writes(make(tmp_path, a_struct(*NAMED)), {option: "true"})

    query(people(Alice=1))

    assert f"option={option} has no effect on a stream write" in caplog.messages
    assert names(query.path) == ["Alice"]


def test_a_stream_adds_columns_and_tells_what_the_user_says_of_its_commits(tmp_path: Path) -> None:
    query = Writes(make(tmp_path, a_struct(*NAMED)), {"mergeSchema": "true", "userMetadata": "nightly"})

    query(people(Alice=1).append_column("age", pa.array([30], pa.int32())))

    assert rows(query.path) == [{"id": 1, "name": "Alice", "age": 30}]
    assert actions(query.path, 1)["commitInfo"][0]["userMetadata"] == "nightly"


@pytest.mark.parametrize("partition_by", [("p2", "p1"), ("p1", "p2")])
def test_rows_that_come_in_any_order_make_one_file_for_each_partition(
    tmp_path: Path, partition_by: tuple[str, ...]
) -> None:
    columns: tuple[Column, ...] = (("id", "integer"), ("p1", "string"), ("p2", "integer"))
    query = Writes(make(tmp_path, a_struct(*columns), partition_by=partition_by))
    ids = range(12)

    query(
        pa.table(
            {
                "id": pa.array(ids, pa.int32()),
                "p1": ["ab"[n % 2] for n in ids],
                "p2": pa.array([n % 3 for n in ids], pa.int32()),
            }
        )
    )

    added = actions(query.path, 1)["add"]
    told = sorted((add["partitionValues"]["p1"], add["partitionValues"]["p2"]) for add in added)
    assert told == [("a", "0"), ("a", "1"), ("a", "2"), ("b", "0"), ("b", "1"), ("b", "2")]
    assert {add["path"].split("/")[0].partition("=")[0] for add in added} == {partition_by[0]}
    assert sorted(row["id"] for row in rows(query.path)) == [*ids]


def test_rows_of_a_table_without_partitions_make_one_file_a_task(tmp_path: Path) -> None:
    query = Writes(make(tmp_path, a_struct(*NAMED)))

    query(people(Alice=1, Bob=2), people(Carol=3))

    assert len(actions(query.path, 1)["add"]) == 2
