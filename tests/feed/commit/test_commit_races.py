"""Many writers at one table on the local disk, ours and delta-rs: every commit stands once. The races are real."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

import tablefeed
from support.commits import written
from support.logs import commits_of
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Surroundings
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.actions import Version
from tablefeed.model.outcome import AlreadyApplied, Committed

AROUND = Surroundings(now_ms=lambda: time.time_ns() // 1_000_000, sleep=time.sleep)


def append_rows(location: str, rows: Sequence[int]) -> None:
    """Appends each row in a commit of its own, holding on to the state as Spark's sink does."""
    log = open_log(location)
    state: Snapshot = log.load()
    for row in rows:
        _, state = commit(log, state, written(log, pa.table({"id": [row]}), known=state), AROUND)


def append_by_delta_rs(location: str, rows: Sequence[int]) -> None:
    for row in rows:
        write_deltalake(location, pa.table({"id": [row]}), mode="append")


def a_table(path: Path) -> str:
    tablefeed.append(path, pa.table({"id": pa.array([], pa.int64())}))
    return str(path)


def rows_seen_by_delta_rs(location: str) -> list[int]:
    return sorted(DeltaTable(location).to_pyarrow_table()["id"].to_pylist())


def test_appends_stand_once_while_delta_rs_appends_to_the_same_table(tmp_path: Path) -> None:
    location = a_table(tmp_path / "orders")

    with ThreadPoolExecutor(4) as pool:
        writers = (append_rows, append_rows, append_by_delta_rs, append_by_delta_rs)
        shares = [range(start, start + 10) for start in (0, 10, 20, 30)]
        for done in [pool.submit(write, location, rows) for write, rows in zip(writers, shares, strict=True)]:
            done.result(timeout=60)

    assert rows_seen_by_delta_rs(location) == list(range(40))
    assert [c.version for c in commits_of(open_log(location))] == list(range(41))


@pytest.mark.parametrize("rearrange", ["optimize", "delete", "update"])
def test_what_delta_rs_does_to_other_rows_never_excludes_an_append(tmp_path: Path, rearrange: str) -> None:
    location = a_table(tmp_path / "orders")
    append_rows(location, range(4))
    log = open_log(location)
    state = log.load()
    write = written(log, pa.table({"id": [9]}))
    theirs: dict[str, Callable[[DeltaTable], object]] = {
        "optimize": lambda table: table.optimize.compact(),
        "delete": lambda table: table.delete("id = 0"),
        "update": lambda table: table.update(updates={"id": "5"}, predicate="id = 0"),
    }

    theirs[rearrange](DeltaTable(location))
    outcome, _ = commit(log, state, write, AROUND)

    left = {"optimize": [0, 1, 2, 3], "delete": [1, 2, 3], "update": [1, 2, 3, 5]}[rearrange]
    assert outcome == Committed(version=Version(tablefeed.open_table(location).version))
    assert rows_seen_by_delta_rs(location) == [*left, 9]


def test_eight_runs_of_one_batch_leave_one_commit_and_no_file_of_the_losers(tmp_path: Path) -> None:
    location = a_table(tmp_path / "orders")

    def run(row: int) -> Committed | AlreadyApplied:
        return tablefeed.append(location, pa.table({"id": [row]}), app_id="query", txn_version=0)

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(run, range(8)))

    assert [type(o) for o in outcomes].count(Committed) == 1
    assert {o.version for o in outcomes} == {1}
    assert len(rows_seen_by_delta_rs(location)) == 1
    assert len(list((tmp_path / "orders").glob("*.parquet"))) == 1
    assert DeltaTable(location).transaction_version("query") == 0


def test_four_writers_that_make_one_table_at_the_same_time_make_one_table(tmp_path: Path) -> None:
    location = str(tmp_path / "orders")

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda row: tablefeed.append(location, pa.table({"id": [row]})), range(4)))

    assert sorted(o.version for o in outcomes) == [0, 1, 2, 3]
    assert rows_seen_by_delta_rs(location) == [0, 1, 2, 3]


def test_a_table_made_by_delta_rs_and_by_us_at_once_is_one_table(tmp_path: Path) -> None:
    location = str(tmp_path / "orders")

    def by_delta_rs() -> int:
        try:
            write_deltalake(location, pa.table({"id": [1]}), mode="append")
        except CommitFailedError:
            return 0
        return 1

    with ThreadPoolExecutor(2) as pool:
        theirs = pool.submit(by_delta_rs)
        try:
            ours = tablefeed.append(location, pa.table({"id": [0]})).version + 1
        except tablefeed.TablefeedError:
            ours = 0
        stood = theirs.result(timeout=60)

    assert len(rows_seen_by_delta_rs(location)) == stood + bool(ours) >= 1
