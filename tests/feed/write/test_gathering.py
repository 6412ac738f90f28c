"""The small files that tasks wrote, made into larger ones before their commit: the same rows, told of alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import tablefeed
from feed.write.test_sink import a_batch, data_files
from support.commits import still
from support.logs import a_log, col, meta, protocol
from support.maintained import in_order, rows_of
from tablefeed.delta.file_layout import FileShape
from tablefeed.errors import ConflictError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.snapshot.known_state import current_snapshot
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.write import gathering
from tablefeed.feed.write.gathering import gathered
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.feed.write.write_rules import WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile
from tablefeed.store import LocalStore

ROWS = pa.schema([("id", pa.int64()), ("day", pa.string())])
ON = WriteRules(gathers_files=True)


def a_task(*ids: int, day: str | None = "mon") -> pa.Table:
    return pa.table({"id": list(ids), "day": [day] * len(ids)}, schema=ROWS)


def planned(path: Path, *partition_by: str, rules: WriteRules = ON, schema: pa.Schema = ROWS) -> DeltaPlan:
    log = open_log(str(path))
    known = current_snapshot(log)
    plan = plan_write(log, known, schema, partition_by=partition_by, kind=WriteKind.APPEND, rules=rules)
    assert isinstance(plan, DeltaPlan)
    return plan


def written(plan: DeltaPlan, tasks: Sequence[pa.Table]) -> tuple[AddFile, ...]:
    return tuple(
        add for number, rows in enumerate(tasks) for add in write_task(plan, rows.to_batches(), task=number, now_ms=7)
    )


def commit_gathered(plan: DeltaPlan, files: Sequence[AddFile], number: int = 0) -> tuple[AddFile, ...]:
    """Commits as the sink does; gives the files that the commit names."""
    log = open_log(plan.location)
    with gathered(plan, files, now_ms=7) as larger:
        commit(log, current_snapshot(log), a_batch(plan, larger, number), still())
    return larger


def test_the_files_of_each_partition_become_one_and_the_small_ones_are_gone(tmp_path: Path) -> None:
    plan = planned(tmp_path, "day")
    small = written(plan, [pa.concat_tables([a_task(n), a_task(10 + n, day=None)]) for n in range(5)])

    larger = commit_gathered(plan, small)

    assert (len(small), len(larger)) == (10, 2)
    assert data_files(tmp_path) == sorted(add.path for add in larger)
    parts = [(range(5), "mon"), (range(10, 15), None)]
    assert rows_of(tmp_path) == in_order([{"id": n, "day": day} for numbers, day in parts for n in numbers])
    assert DeltaTable(str(tmp_path)).to_pyarrow_table().num_rows == 10


def test_a_larger_file_has_its_rows_in_the_order_of_tasks_and_the_statistics_of_all(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    [larger] = commit_gathered(plan, written(plan, [a_task(5, 3), a_task(9), a_task(1, 4)]))

    assert pq.read_table(tmp_path / larger.path)["id"].to_pylist() == [5, 3, 9, 1, 4]
    assert json.loads(larger.stats or "") == {
        "numRecords": 5,
        "minValues": {"id": 1, "day": "mon"},
        "maxValues": {"id": 9, "day": "mon"},
        "nullCount": {"id": 0, "day": 0},
    }
    assert (larger.data_change, larger.modified_ms) == (True, 7)


def test_files_that_are_not_small_and_those_without_another_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path, "day")
    small = written(plan, [a_task(1), a_task(2), a_task(3, day="tue")])
    larger = commit_gathered(plan, small)
    assert [add.partition_values["day"] for add in larger] == ["tue", "mon"]
    assert larger[0] is small[2]

    monkeypatch.setattr(gathering, "GATHERED_BYTES", 4 * small[0].size_bytes)
    again = planned(tmp_path)
    as_they_are = written(again, [a_task(4), a_task(5)])
    assert commit_gathered(again, as_they_are, 1) == as_they_are


def test_a_larger_file_is_about_as_large_as_the_table_asks_for(tmp_path: Path) -> None:
    one = written(planned(tmp_path / "one"), [a_task(0)])[0].size_bytes
    asked = replace(planned(tmp_path), shape=FileShape(is_gathered=True, target_bytes=5 * one))

    larger = commit_gathered(asked, written(asked, [a_task(n) for n in range(12)]))

    assert [json.loads(add.stats or "")["numRecords"] for add in larger] == [5, 5, 2]


@pytest.mark.parametrize(
    ("option", "table", "files"),
    [(None, "true", 1), (None, "false", 3), (None, None, 3), (True, "false", 1), (False, "true", 3)],
)
def test_the_write_decides_and_where_it_does_not_the_table(
    tmp_path: Path,
    option: bool | None,  # noqa: FBT001 - a case's value
    table: str | None,
    files: int,
) -> None:
    properties = {} if table is None else {"delta.autoOptimize.optimizeWrite": table}
    tablefeed.append(tmp_path, a_task(0), properties=properties)
    plan = planned(tmp_path, rules=WriteRules(gathers_files=option))

    assert len(commit_gathered(plan, written(plan, [a_task(1), a_task(2), a_task(3)]))) == files
    assert [row["id"] for row in rows_of(tmp_path)] == [0, 1, 2, 3]


def test_small_files_are_gone_whatever_became_of_the_commit(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, a_task(0))
    before = data_files(tmp_path)
    plan = planned(tmp_path)
    small = written(plan, [a_task(1), a_task(2)])

    with pytest.raises(ZeroDivisionError), gathered(plan, small, now_ms=7) as larger:
        raise ZeroDivisionError

    assert set(data_files(tmp_path)) - {add.path for add in larger} == set(before)


def test_where_a_file_cannot_be_gathered_the_larger_ones_are_gone(tmp_path: Path) -> None:
    plan = planned(tmp_path, "day")
    small = written(plan, [a_task(1), a_task(2), a_task(3, day="tue"), a_task(4, day="tue")])
    (tmp_path / small[3].path).unlink()

    with pytest.raises(tablefeed.TablefeedError, match="is gone"), gathered(plan, small, now_ms=7):
        pytest.fail("nothing is to be committed")
    assert data_files(tmp_path) == sorted(add.path for add in small[:3])


def test_a_rival_that_excludes_the_write_leaves_no_small_file(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, a_task(0))
    plan = planned(tmp_path)
    small = written(plan, [a_task(1), a_task(2)])
    more = a_task(3).append_column("more", pa.array([1]))
    tablefeed.append(tmp_path, more, merge_schema=True)

    with pytest.raises(ConflictError):
        commit_gathered(plan, small)
    assert not {add.path for add in small} & set(data_files(tmp_path))


def test_values_that_the_write_made_stay_and_identity_columns_move_their_mark(tmp_path: Path) -> None:
    identity = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    columns = (col("id", notes=identity), col("x"), col("twice", notes={"delta.generationExpression": "x * 2"}))
    told = protocol(1, 7, writerFeatures=["identityColumns", "generatedColumns"])
    a_log(LocalStore(str(tmp_path)), v0=[told, meta(*columns)])
    schema = pa.schema([("x", pa.int64())])
    plan = planned(tmp_path, schema=schema)
    small = written(plan, [pa.table({"x": [n]}, schema=schema) for n in (10, 20)])
    by_tasks = [row for add in small for row in pq.read_table(tmp_path / add.path).to_pylist()]
    made = {row["x"]: row for row in by_tasks}

    [larger] = commit_gathered(plan, small)

    assert {row["x"]: row for row in rows_of(tmp_path)} == made
    assert [made[x]["twice"] for x in (10, 20)] == [20, 40]
    held = json.loads(tablefeed.open_table(tmp_path).metadata.schema_string)["fields"][0]["metadata"]
    assert held["delta.identity.highWaterMark"] == max(row["id"] for row in made.values())
    assert json.loads(larger.stats or "")["maxValues"]["id"] == held["delta.identity.highWaterMark"]


def test_mapped_columns_and_partitions_keep_their_names_in_files(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, a_task(0), partition_by="day", properties={"delta.columnMapping.mode": "name"})
    plan = planned(tmp_path)

    commit_gathered(plan, written(plan, [a_task(1), a_task(2), a_task(3, day=None)]))

    days = ["mon", "mon", "mon", None]
    assert rows_of(tmp_path) == [{"id": n, "day": day} for n, day in enumerate(days)]
