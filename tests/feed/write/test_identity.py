"""Identity columns of a table that is written: whose values they are, and the mark that its commits move."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import tablefeed
from support.commits import a_write, committed, raced, still, written
from support.logs import Action, a_log, actions_of, col, log_of, meta, protocol, put, said
from tablefeed.errors import ConflictError, InvalidRowsError, SchemaMismatchError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.upkeep.optimize import Folding, fold
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.log.conflicts import WriteKind
from tablefeed.store import LocalStore

X = pa.schema([("x", pa.int64())])
TOLD = protocol(1, 7, writerFeatures=["identityColumns", "checkConstraints", "generatedColumns"])
MAPPED = protocol(2, 6)


def a_table_with(
    path: Path,
    *,
    told: Action = TOLD,
    configuration: dict[str, str] | None = None,
    column: dict[str, object] | None = None,
    **identity: object,
) -> None:
    """An empty table of `id`, an identity column, and `x`."""
    whole = {"start": 1, "step": 1, "allowExplicitInsert": False, **identity}
    notes = {"id": {f"delta.identity.{key}": value for key, value in whole.items()}, "x": column or {}}
    is_mapped = "delta.columnMapping.mode" in (configuration or {})
    mapped: list[dict[str, Any]] = [{"id": n, "physicalName": f"col-{n}"} if is_mapped else {} for n in (1, 2)]
    columns = [col(name, notes=notes[name], **more) for name, more in zip(notes, mapped, strict=True)]
    a_log(LocalStore(str(path)), v0=[told, meta(*columns, configuration=configuration)])


def append(path: Path, *xs: int, **more: Any) -> None:
    tablefeed.append(path, pa.table({"x": list(xs)}, schema=X), **more)


def ids(path: Path) -> dict[int, int]:
    """The value of `id` by that of `x`."""
    return {row["x"]: row["id"] for row in tablefeed.open_table(path).to_arrow().to_pylist()}


def columns_of(path: Path, version: int) -> list[Any]:
    fields: list[Any] = json.loads(said(path, version, "metaData")[0]["schemaString"])["fields"]
    return fields


def mark(path: Path, version: int) -> int | None:
    value = columns_of(path, version)[0]["metadata"].get("delta.identity.highWaterMark")
    return value if value is None else int(value)


def of_tasks(path: Path, *tasks: list[int]) -> tuple[TableLog, Snapshot, Transaction]:
    """A write of tasks whose number none of them knows, not committed yet."""
    log = open_log(str(path))
    state = log.load()
    plan = plan_write(log, state, X, partition_by=(), kind=WriteKind.APPEND)
    files = [
        file
        for task, xs in enumerate(tasks)
        for file in write_task(plan, [pa.record_batch([xs], schema=X)], task=task, now_ms=0)
    ]
    return log, state, replace(a_write(log, state, schema=X), plan=plan, files=tuple(files))


def test_the_high_water_mark_moves_in_the_commit_of_the_rows(tmp_path: Path) -> None:
    a_table_with(tmp_path, start=10, step=5)

    append(tmp_path, 1, 2)
    append(tmp_path, 3)

    assert ids(tmp_path) == {1: 10, 2: 15, 3: 20}
    assert [mark(tmp_path, version) for version in range(3)] == [None, 15, 20]
    actions = actions_of(log_of(LocalStore(str(tmp_path))), 1)
    assert [kind for action in actions for kind in action] == ["commitInfo", "metaData", "add"]
    before, after = (said(tmp_path, version, "metaData")[0] for version in (0, 1))
    assert {**after, "schemaString": ""} == {**before, "schemaString": ""}
    assert said(tmp_path, 1, "commitInfo")[0]["tags"] == {"delta.identity.schemaUpdate": "true"}
    assert len(DeltaTable(str(tmp_path)).to_pyarrow_table()) == 3


def test_a_negative_step_goes_down_and_so_does_the_mark(tmp_path: Path) -> None:
    a_table_with(tmp_path, start=0, step=-3, highWaterMark=-6)

    append(tmp_path, 1, 2)

    assert (ids(tmp_path), mark(tmp_path, 1)) == ({1: -9, 2: -12}, -12)


def test_tasks_that_do_not_know_their_number_make_values_that_differ_and_the_mark_is_the_last_of_them(
    tmp_path: Path,
) -> None:
    a_table_with(tmp_path)

    log, state, write = of_tasks(tmp_path, [0, 1], [], [2, 3], [4, 5])
    commit(log, state, write, still())
    append(tmp_path, 6)

    values = ids(tmp_path)
    assert len(set(values.values())) == 7
    assert mark(tmp_path, 1) == max(values[x] for x in range(6))
    assert values[6] == mark(tmp_path, 2) == (mark(tmp_path, 1) or 0) + 1


def test_a_write_without_rows_moves_no_mark(tmp_path: Path) -> None:
    a_table_with(tmp_path)

    append(tmp_path)

    assert said(tmp_path, 1, "metaData") == []


NOT_TO_BE_GIVEN = "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"


def test_values_of_rows_are_refused_where_the_column_is_always_generated(tmp_path: Path) -> None:
    a_table_with(tmp_path)

    with pytest.raises(SchemaMismatchError, match=f"{NOT_TO_BE_GIVEN}.*'id'"):
        tablefeed.append(tmp_path, pa.table({"ID": [7], "x": [1]}))
    with pytest.raises(SchemaMismatchError, match=f"{NOT_TO_BE_GIVEN}.*GENERATED ALWAYS AS IDENTITY"):
        tablefeed.append(tmp_path, pa.table({"ID": [7], "y": [1]}), mode="overwrite", overwrite_schema=True)

    assert tablefeed.open_table(tmp_path).version == 0
    assert not list(tmp_path.rglob("*.parquet"))


def test_values_of_rows_are_kept_where_they_may_be_and_move_no_mark(tmp_path: Path) -> None:
    a_table_with(tmp_path, allowExplicitInsert=True, highWaterMark=4)

    tablefeed.append(tmp_path, pa.table({"ID": [100], "x": [1]}))
    append(tmp_path, 2)

    assert (ids(tmp_path), mark(tmp_path, 2)) == ({1: 100, 2: 5}, 5)
    assert said(tmp_path, 1, "metaData") == []


def test_an_overwrite_of_the_schema_leaves_the_identity_behind_where_values_may_be_given(tmp_path: Path) -> None:
    a_table_with(tmp_path, allowExplicitInsert=True, column={"comment": "gone as well"})

    tablefeed.append(tmp_path, pa.table({"id": [7], "x": [1]}), mode="overwrite", overwrite_schema=True)

    assert [(column["name"], column["metadata"]) for column in columns_of(tmp_path, 1)] == [("id", {}), ("x", {})]
    assert ids(tmp_path) == {1: 7}


def test_an_overwrite_goes_on_behind_the_mark(tmp_path: Path) -> None:
    a_table_with(tmp_path)
    append(tmp_path, 1, 2)

    append(tmp_path, 3, mode="overwrite")

    assert (ids(tmp_path), mark(tmp_path, 2)) == ({3: 3}, 3)


def test_new_columns_and_a_moved_mark_are_one_metadata(tmp_path: Path) -> None:
    a_table_with(tmp_path)

    tablefeed.append(tmp_path, pa.table({"x": [1], "new": ["a"]}), merge_schema=True)

    assert tablefeed.open_table(tmp_path).to_arrow().to_pylist() == [{"id": 1, "x": 1, "new": "a"}]
    assert mark(tmp_path, 1) == 1
    assert "tags" not in said(tmp_path, 1, "commitInfo")[0], "more than marks is new"


def test_the_column_has_its_values_in_files_of_mapped_columns(tmp_path: Path) -> None:
    names = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    a_table_with(tmp_path, told=MAPPED, configuration=names)

    append(tmp_path, 1, 2)

    assert (ids(tmp_path), mark(tmp_path, 1)) == ({1: 1, 2: 2}, 2)


def test_the_mark_is_found_however_many_columns_stand_before(tmp_path: Path) -> None:
    told = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    columns = [*(col(f"c{n}") for n in range(40)), col("id", notes=told)]
    a_log(LocalStore(str(tmp_path)), v0=[TOLD, meta(*columns)])

    tablefeed.append(tmp_path, pa.table({"c0": [5, 6]}))
    tablefeed.append(tmp_path, pa.table({"c0": [7]}))

    assert sorted(tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_rules_see_the_values_that_were_made(tmp_path: Path) -> None:
    twice: dict[str, object] = {"delta.generationExpression": "id * 2"}
    a_table_with(tmp_path, configuration={"delta.constraints.few": "id < 3"}, column=twice)
    one = pa.schema([("y", pa.int64())])

    tablefeed.append(tmp_path, pa.table({"y": [0, 0]}, schema=one), merge_schema=True)
    with pytest.raises(InvalidRowsError, match="few"):
        tablefeed.append(tmp_path, pa.table({"y": [0]}, schema=one))

    assert ids(tmp_path) == {2: 1, 4: 2}


def test_values_are_made_anew_where_a_rival_moved_the_mark(tmp_path: Path) -> None:
    a_table_with(tmp_path)
    log, state, write = of_tasks(tmp_path, [1])
    append(tmp_path, 2)

    with pytest.raises(ConflictError, match=r"METADATA_CHANGED.*values for the identity column id; run the write"):
        commit(log, state, write, still())
    assert commit(*of_tasks(tmp_path, [1]), still())[0] == committed(2)

    assert ids(tmp_path) == {2: 1, 1: 2}


# --- rivals that move the mark and do nothing else -------------------------------------------------------------------


def with_values(
    path: Path, *row_ids: int, kind: WriteKind = WriteKind.APPEND
) -> tuple[TableLog, Snapshot, Transaction]:
    """A write of rows that bring their values, not committed yet."""
    log = open_log(str(path))
    return log, log.load(), written(log, pa.table({"id": list(row_ids), "x": list(row_ids)}), kind=kind)


def moves_the_mark(path: Path, to: int, *, name_of_x: str = "x", **more: Any) -> list[Action]:
    """The metadata and the commitInfo of a commit that moves it, and says that it does nothing else."""
    (told,) = said(path, 0, "metaData")
    schema = json.loads(told["schemaString"])
    schema["fields"][0]["metadata"]["delta.identity.highWaterMark"] = to
    schema["fields"][1]["name"] = name_of_x
    told |= {"schemaString": json.dumps(schema), **more}
    return [{"commitInfo": {"tags": {"delta.identity.schemaUpdate": "true"}}}, {"metaData": told}]


def test_rows_that_bring_their_values_go_behind_a_rival_that_made_some(tmp_path: Path) -> None:
    a_table_with(tmp_path, allowExplicitInsert=True)
    log, state, write = with_values(tmp_path, 100)
    append(tmp_path, 1)

    outcome, _ = commit(log, state, write, still())

    assert outcome == committed(2)
    assert ids(tmp_path) == {1: 1, 100: 100}
    append(tmp_path, 2)
    assert ids(tmp_path)[2] == 2


def test_a_write_without_rows_goes_behind_a_rival_that_made_values(tmp_path: Path) -> None:
    a_table_with(tmp_path)
    log, state, write = of_tasks(tmp_path, [])
    append(tmp_path, 1)

    assert commit(log, state, write, still())[0] == committed(2)


def test_an_overwrite_stops_for_the_rows_of_such_a_rival_and_not_for_its_mark(tmp_path: Path) -> None:
    a_table_with(tmp_path, allowExplicitInsert=True)
    log, state, write = with_values(tmp_path, 100, kind=WriteKind.OVERWRITE)
    append(tmp_path, 1)

    with pytest.raises(ConflictError, match="DELTA_CONCURRENT_APPEND"):
        commit(log, state, write, still())

    log, state, write = with_values(tmp_path, 100, kind=WriteKind.OVERWRITE)
    put(log.store, 2, moves_the_mark(tmp_path, 50))
    assert commit(log, state, write, still())[0] == committed(3)
    assert ids(tmp_path) == {100: 100}


@pytest.mark.parametrize(
    "rival",
    [
        lambda path: moves_the_mark(path, 50)[1:],
        lambda path: moves_the_mark(path, 50, configuration={"owner": "me"}),
        lambda path: moves_the_mark(path, 50, partitionColumns=["x"]),
        lambda path: moves_the_mark(path, 50, id="another table"),
        lambda path: moves_the_mark(path, 50, name_of_x="y"),
    ],
    ids=["it does not say so", "properties too", "partitioning too", "another table", "columns too"],
)
def test_a_rival_that_does_more_than_move_the_mark_stops_every_write(
    tmp_path: Path, rival: Callable[[Path], list[Action]]
) -> None:
    a_table_with(tmp_path, allowExplicitInsert=True)
    log, state, write = with_values(tmp_path, 100)
    put(log.store, 1, rival(tmp_path))

    with pytest.raises(ConflictError, match="DELTA_METADATA_CHANGED"):
        commit(log, state, write, still())


def test_small_files_are_folded_behind_a_rival_that_made_values(tmp_path: Path) -> None:
    a_table_with(tmp_path)
    append(tmp_path, 1)
    append(tmp_path, 2)
    log = raced(tmp_path, lambda: append(tmp_path, 3))

    assert fold(log.load(), Folding(target_bytes=1 << 30), plans=1).files_removed == 2

    assert ids(tmp_path) == {1: 1, 2: 2, 3: 3}
    append(tmp_path, 4)
    assert ids(tmp_path)[4] == 4
