"""What a stream asks of the store: one name while it is idle, each commit once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa

import tablefeed
from support.faulty_store import FaultyStore
from support.logs import (
    a_log,
    a_source,
    add,
    asked,
    at,
    commit_path,
    delivered,
    log_of,
    metadata,
    protocol,
    put,
)
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.snapshot.tail import GAP_CHECK_S
from tablefeed.feed.stream.source import StreamSource
from tablefeed.feed.stream.source_options import SourceOptions
from tablefeed.log.plan import Limits
from tablefeed.store.memory import MemoryStore


def counted() -> tuple[FaultyStore, TableLog]:
    inner = MemoryStore("orders")
    a_log(inner, v0=[protocol(), metadata(), add("a")], v1=[add("b")])
    store = FaultyStore(inner)
    return store, log_of(store)


def test_an_idle_stream_asks_the_store_for_the_next_commit_by_name_and_nothing_else() -> None:
    store, log = counted()
    source = a_source(log, clock=lambda: 1000.0)
    end = source.latest(source.initial(), Limits())
    source.delivered(end)
    source.latest(end, Limits())
    since = len(store.calls)

    for _ in range(100):
        assert source.latest(end, Limits()) == end

    assert asked(store, since) == [f"stat {commit_path(2)}"] * 100


def test_a_commit_on_the_local_disk_is_found_at_the_next_question_though_no_watch_told_of_it(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    log = open_log(str(tmp_path))
    source = StreamSource(log, read_schema=log.load().schema, options=SourceOptions(), clock=lambda: 0.0)
    end = source.latest(source.initial(), Limits())
    for _ in range(50):
        assert source.latest(end, Limits()) == end
        tablefeed.append(tmp_path, pa.table({"id": [1]}))

        newer = source.latest(end, Limits())

        assert newer.version == end.version + 1
        end = newer
    source.close()


def test_a_commit_is_read_once_for_all_that_is_asked_of_it() -> None:
    store, log = counted()
    source = a_source(log, starting_version="latest")
    start = source.initial()
    source.latest(start, Limits())
    put(log.store, 2, [add("c"), add("d")])
    since = len(store.calls)

    middle = source.latest(start, Limits(files=1))
    first = delivered(source, start, middle)
    source.delivered(middle)
    end = source.latest(middle, Limits(files=1))
    second = delivered(source, middle, end)

    assert (first, second) == (["c"], ["d"])
    assert asked(store, since).count(f"read {commit_path(2)}") == 1


def test_a_commit_read_ahead_is_read_again_if_another_has_its_version_since() -> None:
    store, log = counted()
    source = a_source(log, starting_version="latest")
    start = source.initial()
    source.latest(start, Limits())
    put(log.store, 2, [add("c")])
    put(log.store, 3, [add("d")])

    middle = source.latest(start, Limits(files=1))
    source.lag(middle, now_ms=0)
    first = delivered(source, start, middle)
    source.delivered(middle)
    log.store.delete(commit_path(3))  # as if a copy of the table up to version 2 were restored
    put(log.store, 3, [add("another")])
    end = source.latest(middle, Limits(files=1))

    assert (first, delivered(source, middle, end)) == (["c"], ["another"])
    assert asked(store, 0).count(f"read {commit_path(3)}") == 2


def test_commits_that_are_there_now_and_are_taken_in_steps_are_not_read_again() -> None:
    store, log = counted()
    source = a_source(log, starting_version=0)
    put(log.store, 2, [add("c")])
    source.bound_now()
    middle = source.latest(at(0), Limits(files=1))
    since = len(store.calls)

    assert source.latest(middle, Limits(files=1)) == at(2)
    assert asked(store, since) == [f"stat {commit_path(2)}"] * 3


def test_a_batch_of_one_commit_costs_one_read_two_looks_and_one_probe_of_what_comes_next() -> None:
    store, log = counted()
    source = a_source(log, starting_version="latest")
    start = source.initial()
    source.latest(start, Limits())
    put(log.store, 2, [add("c")])
    since = len(store.calls)

    end = source.latest(start, Limits())
    source.tasks(start, end)
    source.delivered(end)

    assert asked(store, since) == [
        f"stat {commit_path(2)}",
        f"read {commit_path(2)}",
        f"stat {commit_path(3)}",
        f"stat {commit_path(1)}",
    ]


def test_of_many_commits_only_some_files_are_looked_at_to_see_that_none_was_replaced_meanwhile() -> None:
    store, log = counted()
    source = a_source(log, starting_version="latest")
    start = source.initial()
    source.latest(start, Limits())
    for version in range(2, 1002):
        put(log.store, version, [add(f"{version}")])
    since = len(store.calls)

    end = source.latest(start, Limits())

    counts = Counter(line.split()[0] for line in asked(store, since))
    assert len(delivered(source, start, end)) == counts["read"] == 1000
    assert counts["stat"] <= 8 * (1000).bit_length()


def test_what_was_delivered_is_forgotten() -> None:
    _, log = counted()
    source = a_source(log, starting_version=0)
    end = source.latest(at(0), Limits())
    assert len(source._tail._cached) == 2

    source.delivered(end)

    assert source._tail._cached == {}


def test_the_log_is_listed_for_holes_once_in_a_minute_at_most() -> None:
    store, log = counted()
    now = [0.0]
    source = a_source(log, clock=lambda: now[0])
    end = source.latest(source.initial(), Limits())
    since = len(store.calls)

    for _ in range(int(2 * GAP_CHECK_S)):
        now[0] += 1.0
        source.latest(end, Limits())

    assert asked(store, since).count("list _delta_log") == 2
