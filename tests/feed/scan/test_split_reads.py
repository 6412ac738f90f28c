"""Reads of splits with a predicate, and by several tasks: the rows of a read of all, from what holds them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.faulty_store import FaultyStore
from support.split_tables import log_of, numeric_or_text, split_table
from tablefeed.delta.columns import to_add_files
from tablefeed.errors import DataFileError, LogError, ObjectNotFoundError
from tablefeed.feed.api.table import Table
from tablefeed.feed.scan.snapshot_tasks import snapshot_tasks
from tablefeed.feed.scan.split_task import SplitColumns
from tablefeed.feed.scan.spread import spread
from tablefeed.feed.scan.table_scan import table_scan
from tablefeed.feed.scan.task import ScanTask, read_task
from tablefeed.feed.scan.where import row_filter
from tablefeed.store import LocalStore, Store
from tablefeed.store.memory import MemoryStore

pytest.importorskip("tantivy")
pytest.importorskip("fastavro")

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("score", pa.float64()),
        ("name", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("p", pa.string()),
        ("n", pa.int32()),
    ]
)


def rows(*values: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([{name: value.get(name) for name in SCHEMA.names} for value in values], SCHEMA)


def read(store: Store, where: str | None) -> list[str]:
    snapshot = log_of(store).load()
    condition = None if where is None else row_filter(where, snapshot.schema).condition
    return sorted(map(repr, Table(snapshot).to_arrow(filter=condition).to_pylist()))


LITERALS = {
    "id": ["-1", "0", "9", "10", "5.5"],
    "score": ["-0.5", "0", "1e300"],
    "name": ["'a'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'", "'\U0001f600'", "''"],
    "day": ["DATE'1969-12-31'", "DATE'2024-01-09'"],
    "at": ["TIMESTAMP'1969-12-31 23:59:59.999999Z'", "TIMESTAMP'2024-01-01 00:00:00Z'"],
    "p": ["'a b'", "'a%20b'", "'9'", "''", "'__HIVE_DEFAULT_PARTITION__'"],
    "n": ["9", "10", "-1"],
}
BEFORE_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
A_ROW = st.fixed_dictionaries(
    {
        "id": st.sampled_from([None, -1, 0, 9, 10, 2**62]),
        "score": st.sampled_from([None, -0.5, -0.0, 0.0, 1e300, float("nan")]),
        "name": st.sampled_from([None, "", "a", "x" * 31 + "\U0001f600", "x" * 37, "\U0001f600", "\ue000"]),
        "day": st.sampled_from([None, date(1969, 12, 31), date(2024, 1, 9), date(2024, 1, 10)]),
        "at": st.sampled_from([None, BEFORE_1970, datetime(2024, 1, 1, tzinfo=UTC)]),
        "p": st.sampled_from([None, "", "a b", "a%20b", "9", "10", "b"]),
        "n": st.sampled_from([None, -1, 9, 10]),
    }
)


@st.composite
def predicates(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(list(LITERALS)))
    match draw(st.integers(0, 5)):
        case 0:
            return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
        case 1:
            return f"{name} IN ({', '.join(draw(st.lists(st.sampled_from(LITERALS[name]), min_size=1, max_size=3)))})"
        case _:
            operator = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
            return f"{name} {operator} {draw(st.sampled_from(LITERALS[name]))}"


WHERE = st.recursive(
    predicates(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda one: f"NOT ({one})"),
    ),
    max_leaves=3,
)


@settings(max_examples=15)
@given(
    st.lists(st.lists(A_ROW, min_size=1, max_size=3), min_size=1, max_size=3),
    st.lists(WHERE, min_size=1, max_size=5),
    st.sampled_from([(), ("p",), ("n",), ("day", "p")]),
)
def test_rows_of_a_predicate_are_those_of_reading_all(
    appends: list[list[dict[str, Any]]], asked: list[str], partition_by: Sequence[str]
) -> None:
    bounds_of = numeric_or_text if partition_by else lambda _: None
    store = split_table(*(rows(*each) for each in appends), partition_by=partition_by, bounds_of=bounds_of)
    whole = Table(log_of(store).load()).to_arrow()

    for where in asked:
        condition = row_filter(where, log_of(store).load().schema).condition
        assert read(store, where) == sorted(map(repr, whole.filter(condition).to_pylist()))


DAYS = [date(2024, 1, 9), date(2024, 1, 10), date(2024, 1, 11)]


def manifests_read(where: str, *appends: pa.Table, partition_by: Sequence[str]) -> list[int]:
    """The numbers of the appends whose manifests a read with `where` reads; its rows are those of reading all."""
    memory = split_table(*appends, partition_by=partition_by, bounds_of=numeric_or_text)
    snapshot = log_of(memory).load()
    condition = row_filter(where, snapshot.schema).condition
    store = FaultyStore(memory)
    found = read(store, where)
    assert found == sorted(map(repr, Table(snapshot).to_arrow().filter(condition).to_pylist()))
    names = {call.name for call in store.calls if call.operation == "read" and "/manifest-" in call.name}
    return sorted(int(name.rpartition("-")[2].removesuffix(".avro"), 16) for name in names)


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("day = DATE'2024-01-10'", [2]),
        ("day > DATE'2024-01-10'", [3]),
        ("DATE'2024-01-10' > day", [1]),
        ("day IN (DATE'2024-01-09', DATE'2024-01-11')", [1, 3]),
        ("day = DATE'2024-01-09' OR day = DATE'2024-01-10'", [1, 2]),
        ("day BETWEEN DATE'2024-01-10' AND DATE'2024-01-11' AND id > 0", [2, 3]),
        ("day < DATE'2024-01-01'", []),
        ("day = DATE'2024-01-10' OR id = 1", [1, 2, 3]),
        ("NOT day = DATE'2024-01-10'", [1, 2, 3]),
        ("day IS NULL", [1, 2, 3]),
    ],
)
def test_a_manifest_without_the_days_that_are_asked_for_is_not_read(where: str, wanted: list[int]) -> None:
    appends = [rows({"id": number, "day": day}) for number, day in enumerate(DAYS)]

    assert manifests_read(where, *appends, partition_by=["day"]) == wanted


TEXTS = [{"p": p} for p in ("a b", "", "a%20b", None)]


NUMBERS = [{"n": n, "id": n} for n in (9, 10, 100)]


@pytest.mark.parametrize(
    ("by", "appends", "where", "wanted"),
    [
        ("n", NUMBERS, "n = 10", [2]),
        ("n", NUMBERS, "n > 9", [2, 3]),
        ("n", NUMBERS, "n < 10", [1]),
        ("n", NUMBERS, "id = 9", [1, 2, 3]),
        ("n", NUMBERS, "id = 9 AND n = 10", [2]),
        *(
            ("p", TEXTS, where, [1, 2, 3, 4])
            for where in ("p = 'a b'", "p = ''", "p IS NULL", "p = 'a%20b'", "p < 'b'")
        ),
    ],
)
def test_manifests_are_ruled_out_by_numbers_and_days_of_the_partition_alone(
    by: str, appends: list[dict[str, Any]], where: str, wanted: list[int]
) -> None:
    assert manifests_read(where, *map(rows, appends), partition_by=[by]) == wanted


def test_a_manifest_with_a_null_partition_is_read_for_any_day() -> None:
    appends = [rows({"day": DAYS[0]}, {"day": None}), rows({"day": DAYS[1]})]

    assert manifests_read("day = DATE'2024-01-10'", *appends, partition_by=["day"]) == [1, 2]


def test_a_filter_of_parts_within_parts_rules_no_manifest_out() -> None:
    memory = split_table(rows({"n": 1}), rows({"n": 2}), partition_by=["n"], bounds_of=numeric_or_text)
    deep = pc.field("n") == 1
    for _ in range(5_000):
        deep = (pc.field("n") == 1) | deep

    found = Table(log_of(memory).load()).to_arrow(filter=deep)
    assert found["n"].to_pylist() == [1]


def names_in(store: Store, folder: str = "") -> Iterator[str]:
    yield from (f"{folder}{entry.name}" for entry in store.list(folder))
    for name in store.directories(folder):
        yield from names_in(store, f"{folder}{name}/")


def test_tasks_are_planned_from_the_manifests_that_a_predicate_needs_alone(tmp_path: Path) -> None:
    appends = [rows({"id": number, "day": day}) for number, day in enumerate(DAYS)]
    memory = split_table(*appends, partition_by=["day"], bounds_of=numeric_or_text)
    for name in names_in(memory):
        LocalStore(str(tmp_path)).put_if_absent(name, memory.read(name))
    for manifest in tmp_path.rglob("manifest-00000001.avro"):
        manifest.unlink()

    tasks = snapshot_tasks(str(tmp_path), version=3, storage_options={}, where="day = DATE'2024-01-10'")

    assert [n for task in tasks for n in ids(task, memory)] == [1]
    with pytest.raises(ObjectNotFoundError, match="manifest-00000001"):
        snapshot_tasks(str(tmp_path), version=3, storage_options={})


@pytest.mark.parametrize("in_log", [1, 3])
def test_a_split_with_another_number_of_rows_than_the_log_says_is_refused(in_log: int) -> None:
    memory = split_table(rows({"id": 1}, {"id": 2}))
    snapshot = log_of(memory).load()
    (add,) = (add for batch in snapshot.live_files(with_stats=True) for add in to_add_files(batch))

    def read_as(stats: str | None) -> list[int]:
        return ids(table_scan(snapshot).of([replace(add, stats=stats)]), memory)

    assert read_as('{"numRecords":2}') == read_as(None) == [1, 2]
    with pytest.raises(DataFileError, match=f"{in_log}"):
        read_as(f'{{"numRecords":{in_log}}}')


def read_changed(memory: MemoryStore, **changed: object) -> list[int]:
    """The ids of the one split, read as its add would say it with these fields."""
    snapshot = log_of(memory).load()
    (add,) = (add for batch in snapshot.live_files(with_stats=True) for add in to_add_files(batch))
    return ids(table_scan(snapshot).of([replace(add, **changed)]), memory)  # type: ignore[arg-type]


def test_a_split_whose_size_the_log_does_not_say_is_read_and_refused_where_it_is_gone() -> None:
    memory = split_table(rows({"id": 1}, {"id": 2}))

    assert read_changed(memory, size_bytes=0) == [1, 2]
    with pytest.raises(DataFileError, match=r"gone\.split"):
        read_changed(memory, size_bytes=0, path="gone.split")


@pytest.mark.parametrize("path", ["../secret.split", "x/../../secret.split", "/secret.split"])
def test_a_split_outside_the_table_is_not_opened(path: str) -> None:
    with pytest.raises(LogError, match="outside the table; it was not opened"):
        read_changed(split_table(rows({"id": 1})), path=path)


def test_a_partition_value_of_another_type_is_refused_with_its_split() -> None:
    plain = split_table(rows({"id": 1}).select(["id"]))
    task = table_scan(log_of(plain).load())
    (add,) = (add for batch in log_of(plain).load().live_files() for add in to_add_files(batch))
    task = replace(task, columns=SplitColumns(partitioned_by=frozenset({"day"})))
    day = pa.schema([SCHEMA.field("day")])

    (found,) = read_task(task.of([replace(add, partition_values={"day": "2024-01-09"})]), day, store=plain)
    assert found["day"].to_pylist() == [DAYS[0]]
    with pytest.raises(DataFileError, match="the partition value 'x' of day is not of type date32"):
        list(read_task(task.of([replace(add, partition_values={"day": "x"})]), day, store=plain))


# --- tasks that share a split ----------------------------------------------------------------------------------------


def shared_by(memory: MemoryStore, least_tasks: int) -> list[list[int]]:
    """The ids that each task reads."""
    snapshot = log_of(memory).load()
    whole = table_scan(snapshot).of(add for batch in snapshot.live_files() for add in to_add_files(batch))
    tasks = spread(whole, least_tasks=least_tasks, store=memory)
    return [ids(pickle.loads(pickle.dumps(task)), memory) for task in tasks]  # noqa: S301 - bytes of its own


def ids(task: ScanTask, memory: MemoryStore) -> list[int]:
    return [n for b in read_task(task, pa.schema([SCHEMA.field("id")]), store=memory) for n in b["id"].to_pylist()]


def a_large_split(count: int) -> MemoryStore:
    return split_table(pa.table({"id": range(count), "name": [f"{n:0200}" for n in range(count)]}))


@pytest.mark.parametrize("least_tasks", [1, 2, 3, 7, 16])
def test_a_split_is_shared_among_as_many_tasks_as_are_asked_for(least_tasks: int) -> None:
    found = shared_by(a_large_split(2_000), least_tasks)

    assert len(found) == least_tasks
    assert [n for ids in sorted(found) for n in ids] == list(range(2_000))
    assert max(map(len, found)) <= 2_000 // least_tasks + 2 * 80  # a block of 16 KiB has some 70 of these rows


def test_a_split_is_shared_among_no_more_tasks_than_it_has_blocks() -> None:
    found = shared_by(a_large_split(200), 100)

    assert 2 <= len(found) <= 4
    assert sorted(n for ids in found for n in ids) == list(range(200))
    assert all(found)


def test_large_splits_are_shared_and_small_ones_lie_together() -> None:
    small = [pa.table({"id": [n], "name": ["a"]}) for n in range(2_000, 2_003)]
    large = pa.table({"id": range(2_000), "name": [f"{n:0200}" for n in range(2_000)]})

    found = shared_by(split_table(large, *small), 4)
    assert len(found) == 4
    assert sorted(n for ids in found for n in ids) == list(range(2_003))


def test_a_split_that_is_damaged_is_one_task_which_says_so() -> None:
    memory = a_large_split(2_000)
    path = "part-00001-00000.split"
    memory.replace(path, b"x" * len(memory.read(path)))

    with pytest.raises(DataFileError, match="has a footer"):
        shared_by(memory, 4)


@pytest.mark.parametrize("cuts", [(), (1,), (100, 101, 5_000), tuple(range(0, 60_000, 777))])
def test_shares_that_follow_each_other_have_each_row_once(cuts: Sequence[int]) -> None:
    memory = a_large_split(1_000)
    snapshot = log_of(memory).load()
    whole = table_scan(snapshot).of(add for batch in snapshot.live_files() for add in to_add_files(batch))
    (file,) = whole.files
    edges = [None, *(cut for cut in cuts if cut < file.size_bytes), None]

    shares = [replace(whole, files=(replace(file, share=share),)) for share in pairwise(edges)]
    assert [n for task in shares for n in ids(task, memory)] == list(range(1_000))
