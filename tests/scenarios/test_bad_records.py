"""Rows that break a rule go to a table of their own (`badRecords`), once with their batch; the others to theirs."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import LongType, StructType

import tablefeed
from scenarios.sinks import Sink, rows_of, stream_into
from tablefeed.errors import CommitError, InvalidRowsError, TablefeedError
from tablefeed.feed.commit import bad_rows
from tablefeed.spark import sink_commit
from tablefeed.spark.sink import BatchWriter


def people(root: Path, **more: Any) -> Sink:
    """A query into a table with every rule, whose bad rows go beside it."""
    schema = pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            ("age", pa.int32()),
            ("born", pa.date32()),
            ("member", pa.struct([pa.field("since", pa.int64(), nullable=False)])),
        ]
    )
    tablefeed.create(root / "t", schema, constraints={"young": "age < 100"}, **more)
    return stream_into(root / "t", badRecords=str(root / "bad"), timeZone="UTC")


def rows(*given: tuple[Any, Any, Any, Any]) -> pa.Table:
    kinds = {"id": pa.int64(), "age": pa.int64(), "born": pa.string(), "member": pa.struct([("since", pa.int64())])}
    columns = zip(*given, strict=True)
    return pa.table({name: pa.array(column, kind) for (name, kind), column in zip(kinds.items(), columns, strict=True)})


ANY = {"since": 3}
GOOD, YOUNG = (1, 5, "2020-02-29", ANY), (2, 6, None, ANY)


def bad(root: Path) -> list[dict[str, Any]]:
    found = tablefeed.open_table(root / "bad").to_arrow().to_pylist()
    return sorted(found, key=lambda row: (row["batch_id"], json.loads(row["row"])["id"] or 0))


def test_each_rule_sends_its_rows_to_the_other_table_and_the_others_are_committed(tmp_path: Path) -> None:
    sink = people(tmp_path)

    sink.write(
        rows(GOOD, (None, 5, None, ANY), (4, 100, None, ANY), (5, 1 << 40, None, ANY), (6, 120, "2020-13-01", ANY)),
        rows((7, 5, "tomorrow", ANY), (8, 5, None, {"since": None}), YOUNG, (9, None, None, ANY), (10, 5, None, None)),
    )
    sink.write(rows(YOUNG))

    assert [row[:2] for row in rows_of(tmp_path / "t")] == [(1, 5), (2, 6), (2, 6)]
    found = bad(tmp_path)
    check = "CHECK constraint young (age < 100) violated"
    assert [(json.loads(row["row"])["id"], row["column"], row["reason"]) for row in found] == [
        (None, "id", "NOT NULL constraint violated"),
        (4, "age", check),
        (5, "age", "a value cannot be stored as int32"),
        (6, "born", "a value cannot be stored as date32[day]"),
        (7, "born", "a value cannot be stored as date32[day]"),
        (8, "member.since", "NOT NULL constraint violated"),
        (9, "age", check),  # a condition that is null is broken
        (10, "member.since", "NOT NULL constraint violated"),  # as Delta-Spark has it
    ]
    assert json.loads(found[3]["row"]) == {"id": 6, "age": 120, "born": "2020-13-01", "member": ANY}
    assert {(row["query_id"], row["batch_id"]) for row in found} == {("query", 0)}
    assert [row["error_class"] for row in found[:3]] == [
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        "CAST_OVERFLOW_IN_TABLE_INSERT",
    ]
    assert DeltaTable(str(tmp_path / "bad")).to_pyarrow_table().num_rows == 8
    assert tablefeed.open_table(tmp_path / "bad").version == 0  # a batch without bad rows makes no version


def test_without_the_option_such_a_row_fails_the_batch(tmp_path: Path) -> None:
    sink = people(tmp_path)
    del sink.options["badRecords"]

    with pytest.raises(InvalidRowsError):
        sink.write(rows(GOOD, (4, 100, None, ANY)))


def test_a_batch_of_bad_rows_alone_is_committed_though_empty_batches_are_not(tmp_path: Path) -> None:
    sink = people(tmp_path)

    sink.write(rows((4, 100, None, ANY)), recordEmptyBatches="false")
    sink.run(0, rows((4, 100, None, ANY)), recordEmptyBatches="false")

    assert (rows_of(tmp_path / "t"), len(bad(tmp_path))) == ([], 1)


def test_bad_rows_are_found_where_the_first_error_does_not_say_which_they_are(tmp_path: Path) -> None:
    people(tmp_path).write(rows(GOOD, (8, 5, None, {"since": None}), YOUNG))
    assert ([row[0] for row in rows_of(tmp_path / "t")], len(bad(tmp_path))) == ([1, 2], 1)


def test_values_are_told_as_json_that_loses_nothing(tmp_path: Path) -> None:
    moment = datetime(2020, 1, 1, 12, 0, 0, 1, UTC)
    values = {"id": 1, "d": Decimal("1.50"), "f": float("nan"), "b": b"\xff", "t": moment, "l": [{"x": Decimal(1)}]}
    given = pa.Table.from_pylist([values])
    tablefeed.create(tmp_path / "t", given.schema, constraints={"never": "id > 1"})

    stream_into(tmp_path / "t", badRecords=str(tmp_path / "bad")).write(given)

    assert json.loads(bad(tmp_path)[0]["row"]) == {
        "id": 1,
        "d": "1.50",
        "f": "NaN",
        "b": "/w==",
        "t": "2020-01-01T12:00:00.000001+00:00",
        "l": [{"x": "1"}],
    }


def test_nested_values_that_python_does_not_have_are_texts_too(tmp_path: Path) -> None:
    far = pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"a\xff"]).buffers())
    last = pa.array([2**63 - 1]).cast(pa.timestamp("us", "UTC"))
    place = pa.StructArray.from_arrays([far, last, broken], ["since", "until", "name"])
    one = pa.array([0, 1], pa.int32())
    given = pa.table(
        {
            "id": pa.array([1], pa.int64()),
            "places": pa.ListArray.from_arrays(one, place),
            "names": pa.MapArray.from_arrays(one, pa.array(["a"]), broken),
        }
    )
    tablefeed.create(tmp_path / "t", given.schema, constraints={"never": "id > 1"})

    stream_into(tmp_path / "t", badRecords=str(tmp_path / "bad")).write(given)

    assert json.loads(bad(tmp_path)[0]["row"]) == {
        "id": 1,
        "places": [{"since": "+5881580-07-11", "until": "+294247-01-10 04:00:54.775807Z", "name": "a\\xff"}],
        "names": [["a", "a\\xff"]],
    }


def test_a_text_that_is_not_utf8_is_bad_and_no_other_row_with_it(tmp_path: Path) -> None:
    """For such a text the engine of the rule ends with a fatal error, which must not count for what comes later."""
    texts = pa.array([b"a", b"\xff", b"b", b"c"])
    given = pa.table({"id": [1, 2, 3, 4], "v": pa.Array.from_buffers(pa.string(), 4, texts.buffers())})
    tablefeed.create(tmp_path / "t", given.schema, constraints={"named": "trim(v) <> ''"})

    stream_into(tmp_path / "t", badRecords=str(tmp_path / "bad")).write(given)

    assert [json.loads(row["row"]) for row in bad(tmp_path)] == [{"id": 2, "v": "\\xff"}]
    assert tablefeed.open_table(tmp_path / "t").to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "v": "a"},
        {"id": 3, "v": "b"},
        {"id": 4, "v": "c"},
    ]


# --- once, with the batch --------------------------------------------------------------------------------------------


def interrupted(sink: Sink, monkeypatch: pytest.MonkeyPatch, *given: pa.Table, batch_id: int = 0) -> None:
    """A batch whose process dies between the two commits."""
    with monkeypatch.context() as patched:
        patched.setattr(bad_rows, "commit_bad_rows", lambda *_args, **_more: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            sink.run(batch_id, *given)


@pytest.mark.parametrize("meanwhile", ["nothing", "the rule goes", "a stricter rule comes", "the option goes"])
def test_a_batch_that_dies_between_the_two_commits_is_finished_as_it_was_decided_whatever_holds_now(
    meanwhile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = people(tmp_path)
    given = rows(GOOD, (4, 100, None, ANY), YOUNG)

    interrupted(sink, monkeypatch, given)
    assert not (tmp_path / "bad" / "_delta_log").exists()
    another = rows((50, 1, None, ANY))
    tablefeed.append(tmp_path / "t", another, time_zone="UTC", app_id="another query", txn_version=0)
    match meanwhile:
        case "the rule goes":
            tablefeed.alter(tmp_path / "t", drop_constraints=["young"])
        case "a stricter rule comes":
            tablefeed.delete(tmp_path / "t", "age > 5")
            tablefeed.alter(tmp_path / "t", add_constraints={"child": "age < 6"})
        case "the option goes":
            del sink.options["badRecords"]
    before = rows_of(tmp_path / "t")
    sink.run(0, given)
    sink.run(0, given)

    assert rows_of(tmp_path / "t") == before
    assert [json.loads(row["row"])["id"] for row in bad(tmp_path)] == [4]
    assert tablefeed.open_table(tmp_path / "bad").txn_version("query") == 0


def test_files_of_bad_rows_that_are_gone_before_their_commit_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = people(tmp_path)
    interrupted(sink, monkeypatch, rows((4, 100, None, ANY)))
    for path in (tmp_path / "bad").glob("*.parquet"):
        path.unlink()

    with pytest.raises(CommitError, match=r"Batch 0 of query query was committed, but the file part-.* is gone"):
        sink.run(0, rows((4, 100, None, ANY)))


def evolving(root: Path) -> Sink:
    """A query that has made a partitioned table, may add columns to it, and has had one batch."""
    sink = stream_into(root / "t", badRecords=str(root / "bad"), partitionBy="day", mergeSchema="true")
    sink.write(pa.table({"id": [1], "day": ["a"]}))
    tablefeed.alter(root / "t", add_constraints={"small": "id < 10"})
    return sink


NEW_COLUMN = pa.table({"id": [2, 11, 12], "day": ["b", "b", None], "note": ["x", "y", "z"]})


def test_a_batch_that_adds_a_column_to_a_partitioned_table_and_dies_between_the_commits_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = evolving(tmp_path)

    interrupted(sink, monkeypatch, NEW_COLUMN.slice(0, 2), NEW_COLUMN.slice(2), batch_id=1)
    for _ in range(2):
        sink.run(1, NEW_COLUMN.slice(0, 2), NEW_COLUMN.slice(2))

    assert rows_of(tmp_path / "t") == [(1, "a", None), (2, "b", "x")]
    assert [json.loads(row["row"]) for row in bad(tmp_path)] == NEW_COLUMN.slice(1).to_pylist()


@pytest.mark.parametrize("moment", ["before the batch", "after its commit"])
def test_a_table_of_bad_rows_that_cannot_be_reached_fails_the_batch_and_it_is_finished_later(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, in_the_way = evolving(tmp_path), tmp_path / "bad" / "_delta_log"
    if moment == "before the batch":
        in_the_way = tmp_path / "bad"
        in_the_way.write_text("")
    else:
        commit = sink_commit._commit

        def then_gone(*given: Any) -> Any:
            done = commit(*given)
            in_the_way.write_text("")
            return done

        monkeypatch.setattr(sink_commit, "_commit", then_gone)

    with pytest.raises(TablefeedError):
        sink.run(1, NEW_COLUMN)
    assert len(rows_of(tmp_path / "t")) == (1 if moment == "before the batch" else 2)
    monkeypatch.undo()
    in_the_way.unlink()
    sink.run(1, NEW_COLUMN)

    assert [row[0] for row in rows_of(tmp_path / "t")] == [1, 2]
    assert [json.loads(row["row"])["id"] for row in bad(tmp_path)] == [11, 12]


def test_a_batch_whose_commit_left_the_log_is_not_taken_for_one_without_bad_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = evolving(tmp_path)
    sink.write(NEW_COLUMN)  # so that there is a table of bad rows
    interrupted(sink, monkeypatch, NEW_COLUMN, batch_id=2)
    tablefeed.checkpoint(tmp_path / "t")
    for commit in (tmp_path / "t" / "_delta_log").glob("*.json"):
        commit.unlink()

    with pytest.raises(CommitError, match="its commit has left the log") as caught:
        sink.run(2, NEW_COLUMN)
    assert f"tablefeed.append('{tmp_path / 'bad'}', rows, app_id='query', txn_version=2)" in str(caught.value)
    none = tablefeed.open_table(tmp_path / "bad").schema.empty_table()
    tablefeed.append(tmp_path / "bad", none, app_id="query", txn_version=2)
    sink.run(2, NEW_COLUMN)

    assert [row["batch_id"] for row in bad(tmp_path)] == [1, 1]


# --- what is refused -------------------------------------------------------------------------------------------------

IDS = StructType().add("id", LongType())


@pytest.mark.parametrize(
    ("options", "mode", "told"),
    [
        ({}, "complete", "Complete mode replaces all rows"),
        ({"badRecords": "t"}, "append", "must be another table"),
        ({"badRecords": "t/bad"}, "append", "neither in its folder nor around it"),
        ({"badRecords": "."}, "append", "neither in its folder nor around it"),
        ({"badRecords": "other"}, "append", "must be no table yet, or one that this option made"),
        ({"keys": "id", "sequenceBy": "id"}, "append", "'badRecords'"),
        ({"tableFormat": "indextables", "path": "new"}, "append", "Only Delta tables have it"),
    ],
)
def test_what_cannot_take_bad_rows_out_is_refused_by_name(
    options: dict[str, str], mode: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark_tablefeed import DefaultSource

    monkeypatch.chdir(tmp_path)
    tablefeed.append("t", pa.table({"id": [1]}))
    tablefeed.append("other", pa.table({"id": [1]}))

    with pytest.raises(TablefeedError, match=told):
        DefaultSource({"path": "t", "badRecords": "bad", **options}).streamWriter(IDS, overwrite=mode == "complete")
    with pytest.raises(TablefeedError, match="Only a stream that writes rows in append mode has it"):
        BatchWriter({"path": "t", "badRecords": "bad"}, IDS, overwrite=False)


def test_a_thousand_bad_rows_of_a_rule_are_found_at_once() -> None:
    """Not one by one: a batch of a stream has 10,000 rows, and each look at the rules takes milliseconds."""
    from tablefeed.feed.write.bad_rows import _parted

    looks: list[int] = []

    def step(batch: pa.RecordBatch) -> pa.RecordBatch:
        from tablefeed.data.required import refuse_nulls

        looks.append(batch.num_rows)
        refuse_nulls(pa.Table.from_batches([batch]))
        return batch

    required = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    batch = pa.RecordBatch.from_arrays([pa.array([None, 1] * 1_000, pa.int64())], schema=required)
    good, found = _parted(batch, step)

    assert looks == [2_000, 1_000]
    assert [list(at) for at, _ in found] == [list(range(0, 2_000, 2))]
    assert [list(at) for at, _ in good] == [list(range(1, 2_000, 2))]
