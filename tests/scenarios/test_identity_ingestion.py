"""The values that appends, overwrites and streams give to identity columns, as IdentityColumnIngestionSuite has it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from scenarios.made_tables import BOTH, Row, Write, Writes, a_struct, actions, is_untouched, make, rows
from support.logs import protocol
from tablefeed.errors import SchemaMismatchError

either = pytest.mark.parametrize("write", BOTH.values(), ids=BOTH)
MAPPINGS = ("none", "name", "id")


def a_table(
    path: Path,
    *,
    start: int = 1,
    step: int = 1,
    mapping: str = "none",
    by_default: bool = False,
) -> Path:
    """An empty table of an identity column, `id`, and of `value`."""
    told: dict[str, Any] = {"start": start, "step": step, "allowExplicitInsert": by_default}
    notes: list[dict[str, Any]] = [{f"delta.identity.{name}": value for name, value in told.items()}, {}]
    if mapping == "none":
        schema = a_struct(("id", "long", notes[0]), ("value", "integer", notes[1]))
        return make(path, schema, protocol(1, 7, writerFeatures=["identityColumns"]))
    for number, note in enumerate(notes, 1):
        note |= {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    schema = a_struct(("id", "long", notes[0]), ("value", "integer", notes[1]))
    properties = {"delta.columnMapping.mode": mapping, "delta.columnMapping.maxColumnId": "2"}
    features = {"readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping", "identityColumns"]}
    return make(path, schema, protocol(3, 7, **features), properties=properties)


def numbers(start: int, end: int) -> pa.Table:
    return pa.table({"value": pa.array(range(start, end), pa.int32())})


def mark_of(table: Path) -> int | None:
    column = json.loads(tablefeed.open_table(table).metadata.schema_string)["fields"][0]
    found = column["metadata"].get("delta.identity.highWaterMark")
    return None if found is None else int(found)


def by_append(query: Writes, given: pa.Table) -> None:
    tablefeed.append(query.path, given)


def by_overwrite(query: Writes, given: pa.Table) -> None:
    tablefeed.append(query.path, given, mode="overwrite")


def by_micro_batch(query: Writes, given: pa.Table) -> None:
    """Of two tasks, neither of which knows of how many it is one."""
    query(given.slice(0, len(given) // 2), given.slice(len(given) // 2))


INGESTED: dict[str, tuple[Callable[[Writes, pa.Table], None], list[tuple[int, int, int, int]]]] = {
    "append v1": (by_append, [(1, 1, 4, 250), (1, -3, 10, 23)]),
    "append v2": (by_append, [(100, 100, 3, 300), (2**31, -1000, 10, 23)]),
    "insert into values": (by_append, [(100, -100, 4, 201), (2**31, 1000, 10, 37)]),
    "insert into select": (by_append, [(23, 102, 3, 77), (2**31 - 1 - 12345, 99, 8, 25)]),
    "insert overwrite values": (by_overwrite, [(-10, 3, 5, 30), (-(2**31) - 1000, -18, 2, 100)]),
    "insert overwrite select": (by_overwrite, [(-15, 20, 4, 35), (200, 50, 3, 7)]),
    "streaming": (by_micro_batch, [(-2000, 19, 5, 20), (10, 10, 4, 17)]),
}


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize(("how", "cases"), INGESTED.values(), ids=INGESTED)
def test_every_row_has_a_value_of_its_own_behind_those_that_were_made_before(
    tmp_path: Path, how: Callable[[Writes, pa.Table], None], cases: list[tuple[int, int, int, int]], mapping: str
) -> None:
    for case, (start, step, batches, size) in enumerate(cases):
        query = Writes(a_table(tmp_path / str(case), start=start, step=step, mapping=mapping))
        last = -1  # how often `step` was added to `start`
        for first in range(1, batches * size, size):
            how(query, numbers(first, first + size))

            now = {row["value"]: row["id"] for row in rows(query.path)}
            made = [divmod(now[value] - start, step) for value in range(first, first + size)]
            assert {rest for _, rest in made} == {0}
            assert len({count for count, _ in made}) == size
            assert min(made)[0] > last
            last = max(made)[0]
            assert mark_of(query.path) == start + last * step
            assert len(now) == (size if how is by_overwrite else first + size - 1)


@either
def test_values_of_rows_are_refused_where_the_column_is_always_generated(tmp_path: Path, write: Write) -> None:
    table = a_table(tmp_path)

    with pytest.raises(SchemaMismatchError) as caught:
        write(table, pa.table({"id": [1], "value": pa.array([1], pa.int32())}))

    assert caught.value.error_class == "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED"
    assert is_untouched(table)


@either
def test_values_of_rows_move_no_mark_that_made_ones_moved(tmp_path: Path, write: Write) -> None:
    table = a_table(tmp_path, by_default=True)
    write(table, numbers(1, 2))
    made = mark_of(table)
    assert made is not None

    write(table, pa.table({"id": [1], "value": pa.array([1], pa.int32())}))

    assert mark_of(table) == made
    assert "metaData" in actions(table, 1)
    assert "metaData" not in actions(table, 2)
    assert sorted(row["value"] for row in rows(table)) == [1, 1]


@pytest.mark.parametrize("sign", [1, -1], ids=["up", "down"])
@either
def test_rows_of_another_table_with_a_mark_bring_their_values_and_move_none(
    tmp_path: Path, write: Write, sign: int
) -> None:
    source = a_table(tmp_path / "source", start=0, step=53 * sign)
    tablefeed.append(source, numbers(0, 10))
    assert mark_of(source) == 9 * 53 * sign
    target = a_table(tmp_path / "target", start=100_000 * sign, step=53 * sign, by_default=True)
    theirs = tablefeed.open_table(source).to_arrow()

    for _ in range(3):
        write(target, theirs)
        assert mark_of(target) is None
    write(target, numbers(100, 101))

    brought: list[Row] = [{"id": 53 * sign * n, "value": n} for n in range(10)] * 3
    found = [row for row in rows(target) if row["value"] != 100]
    assert sorted(found, key=str) == sorted(brought, key=str)
    assert (mark_of(target) or 0) * sign >= 100_000
