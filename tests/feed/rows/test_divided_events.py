"""The events of a batch between the tasks that get them and the process that applies them, a few keys at a time."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from feed.rows.test_appliers_among_others import ASKED
from feed.rows.test_apply_changes import Event, a_target, apply, events, rows
from support.faulty_store import FaultyStore
from tablefeed.errors import DataFileError
from tablefeed.feed.rows.apply import Batch, Part, joined
from tablefeed.feed.rows.divided import (
    EVENTS_DIR,
    Aside,
    Sizes,
    applied,
    delete_asides,
    in_chunks,
    set_aside,
)
from tablefeed.feed.rows.events import BUCKETS, key_buckets
from tablefeed.feed.rows.folding import Ties
from tablefeed.feed.rows.incoming import batch_of
from tablefeed.feed.snapshot.delta_log import DeltaLog, DeltaSnapshot
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.store import LocalStore

NO_FILES = Sizes()
FILES = Sizes(report=0, task=1_000, group=4_000)


class Sink:
    """The table at `url`, and the steps of a batch with it; `store` sees all calls."""

    def __init__(self, url: str, sizes: Sizes = FILES, ties: Ties = Ties.FAIL) -> None:
        self.asked = replace(ASKED, ties=ties)
        self.store = FaultyStore(LocalStore(url))
        snapshot = DeltaLog(self.store, location=url, storage_options={}).load()
        assert isinstance(snapshot, DeltaSnapshot)
        self.target, self.sizes = TargetRows(snapshot), sizes
        self.how = self._batch(events()).how

    def _batch(self, given: pa.Table) -> Batch:
        snapshot = self.target.snapshot
        return batch_of(given, self.asked, snapshot.schema, snapshot.metadata.partition_columns)

    def aside(self, *given: Event, task: int = 0) -> Aside:
        chunks = in_chunks(events(*given).to_batches(max_chunksize=10), self.sizes.task)
        found = (self._batch(chunk).events for chunk in chunks)
        aside = set_aside(found, self.how, self.store, task=task, sizes=self.sizes)
        kept: Aside = pickle.loads(pickle.dumps(aside))  # noqa: S301 - our own
        return kept

    def applied(self, *asides: Aside) -> list[Part]:
        return applied(self.target, asides, self.how, now_ms=1_000, sizes=self.sizes)


def files(url: str) -> list[Path]:
    return sorted((Path(url) / EVENTS_DIR).glob("*"))


def updates(keys: Sequence[int], *, at: int = 1) -> list[Event]:
    return [(key, f"v{key}", at, "u") for key in keys]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([0.0]), pa.array([-0.0])),
        (pa.array([0.0], pa.float32()), pa.array([-0.0], pa.float32())),
        (pa.array(["a"]), pa.chunked_array([["z", "a"]]).slice(1).combine_chunks()),
        (pa.array([Decimal("1.50")], pa.decimal128(5, 2)), pa.array([Decimal("1.5")], pa.decimal128(5, 2))),
        (pa.array([b"a"]), pa.array([b"", b"a"]).slice(1)),
        (pa.array([True]), pa.array([False, True]).slice(1)),
        (pa.array([-1], pa.int8()), pa.array([5, -1], pa.int8()).slice(1)),
        (pa.array([-1], pa.date32()), pa.array([5, -1], pa.date32()).slice(1)),
        (pa.array([9], pa.timestamp("us", "UTC")), pa.array([5, 9], pa.timestamp("us", "UTC")).slice(1)),
    ],
    ids=lambda array: str(array.type),
)
def test_equal_keys_meet_in_one_bucket_in_every_process(one: pa.Array, other: pa.Array) -> None:
    alone, among = pa.table({"k": one, "l": one}), pa.table({"k": other, "l": other})
    assert key_buckets(alone) == key_buckets(among)


def test_the_buckets_of_keys_are_those_of_yesterday_and_have_about_as_many_keys_each() -> None:
    keys = pa.table({"id": range(64_000), "of": [f"name {number % 1000}" for number in range(64_000)]})
    buckets = key_buckets(keys)
    assert buckets.slice(0, 5).to_pylist() == [48, 40, 22, 6, 56]
    counts = [count["counts"] for count in buckets.value_counts().to_pylist()]
    assert (len(counts), min(counts) > 800, max(counts) < 1200) == (BUCKETS, True, True)


def test_few_events_go_with_the_report_of_their_task_and_make_no_file(tmp_path: Path) -> None:
    url = a_target(tmp_path)
    sink = Sink(url, NO_FILES)
    parts = sink.applied(sink.aside(*updates([1, 2, 3])), sink.aside(task=1))
    assert (len(parts), parts[0].inserted, files(url)) == (1, 3, [])


def test_events_are_applied_some_keys_at_a_time_whatever_task_has_them(tmp_path: Path) -> None:
    """The files of the tasks are read for one group of keys, then the table is, for these keys, and so on."""
    url, beside = a_target(tmp_path), a_target(tmp_path / "beside")
    sink = Sink(url)
    given = [updates(range(start, 400, 3)) for start in range(3)]
    asides = [sink.aside(*each, task=task) for task, each in enumerate(given)]
    assert len(files(url)) == 3
    size_bytes = sum(aside.size_bytes for aside in asides)
    before = len(sink.store.calls)

    parts = sink.applied(*asides)

    assert len(parts) == 1 + size_bytes // 4_000 > 3
    assert (sum(part.inserted for part in parts), max(part.events for part in parts) < 200) == (400, True)
    steps = [
        "events" if name.startswith(EVENTS_DIR) else "table"
        for operation, name in sink.store.calls[before:]
        if name.startswith(EVENTS_DIR) or operation == "list"
    ]
    assert steps == ["events", "events", "events", "table"] * len(parts)
    apply(beside, *[event for each in given for event in each])
    written = sink.target.read([file for part in parts for file in part.files], sink.target.schema)
    assert sorted(tuple(row.values()) for batch in written for row in batch.to_pylist()) == sorted(rows(beside))


def test_events_in_reports_and_in_files_meet_by_their_keys(tmp_path: Path) -> None:
    sink = Sink(a_target(tmp_path), Sizes(report=2_500, task=3_000, group=4_000), ties=Ties.LAST)
    in_file = sink.aside(*updates(range(300)))
    in_reports = [sink.aside(*((key, "last", 1, "u") for key in range(at, at + 50)), task=1 + at) for at in (0, 50)]
    assert [aside.path is None for aside in (in_file, *in_reports)] == [False, True, True]
    parts = sink.applied(in_file, *in_reports)
    batches = sink.target.read([file for part in parts for file in part.files], sink.target.schema)
    found = {row["id"]: row["v"] for batch in batches for row in batch.to_pylist()}
    assert len(parts) > 2
    assert found == {key: "last" if key < 100 else f"v{key}" for key in range(300)}


def test_the_last_of_equal_sequences_is_that_of_the_last_task_and_of_its_last_arrival(tmp_path: Path) -> None:
    sink = Sink(a_target(tmp_path), ties=Ties.LAST)
    late = sink.aside(*updates(range(50)), *((key, "last", 1, "u") for key in range(0, 50, 2)), task=1)
    first = sink.aside(*((key, "first", 1, "u") for key in range(50)))
    parts = sink.applied(late, first)
    batches = sink.target.read([file for part in parts for file in part.files], sink.target.schema)
    found = {row["id"]: row["v"] for batch in batches for row in batch.to_pylist()}
    assert len(parts) > 1
    assert found == {key: f"v{key}" if key % 2 else "last" for key in range(50)}


def test_a_batch_with_a_truncate_is_applied_at_once(tmp_path: Path) -> None:
    sink = Sink(a_target(tmp_path))
    parts = sink.applied(
        sink.aside(*updates(range(200))), sink.aside((None, None, 5, "t"), *updates(range(300, 400)), task=1)
    )
    assert [(part.events, part.inserted) for part in parts] == [(301, 0)]


@pytest.mark.parametrize("stay", [0, 1])
def test_parts_take_their_rows_out_of_one_file_together(tmp_path: Path, stay: int) -> None:
    url = a_target(tmp_path)
    apply(url, *updates(range(300)))
    sink = Sink(url)
    parts = sink.applied(sink.aside(*updates(range(300 - stay), at=2)))
    made = joined(sink.target, parts, sink.how, txn=None, now_ms=1_000)

    assert len({hit.file.path for part in parts for hit in part.hits}) == 1 < len(parts)
    assert made is not None
    assert made.rewriting is not None
    assert made.rewriting.deleted_rows == 300 - stay
    assert len(made.rewriting.removed) == 1
    assert len(made.rewriting.gone) == (0 if stay else 1)


def test_events_that_are_gone_or_damaged_are_never_taken_for_none(tmp_path: Path) -> None:
    sink = Sink(url := a_target(tmp_path))
    one, other = sink.aside(*updates(range(100))), sink.aside(*updates(range(100, 200)), task=1)
    assert other.path is not None
    path = Path(url) / other.path
    whole = path.read_bytes()
    for left in (whole[: len(whole) // 2], whole[:100] + b"\0" * (len(whole) - 100), None):
        path.unlink() if left is None else path.write_bytes(left)
        with pytest.raises(DataFileError, match="Run the batch again"):
            sink.applied(one, other)
        assert not list(Path(url).glob("part-*"))
    few = sink.aside(*updates([1]), task=2)
    with pytest.raises(DataFileError, match="101 of 102 events were found"):
        sink.applied(one, replace(few, row_count=2))
    assert not list(Path(url).glob("part-*"))


def test_the_files_of_a_batch_are_deleted_and_those_of_killed_tasks_are_left_to_vacuum(tmp_path: Path) -> None:
    sink = Sink(url := a_target(tmp_path))
    killed, ours = sink.aside(*updates(range(50))), sink.aside(*updates(range(50)))
    delete_asides(sink.store, [ours, sink.aside(*updates([1]), task=1)])
    assert [str(path) for path in files(url)] == [f"{url}/{killed.path}"]
    tablefeed.vacuum(url)
    assert len(files(url)) == 1
    os.utime(f"{url}/{killed.path}", (0, 0))
    tablefeed.vacuum(url)
    assert files(url) == []
