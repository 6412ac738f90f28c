"""What it costs to open an IndexTables table and to look at its log: the states that matter, however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

from support.faulty_store import FaultyStore
from support.index_log import add, json_log, log_in, remove, states_of
from support.logs import live_paths
from tablefeed.errors import LogError, LogGapError, TableNotFoundError, VersionNotFoundError
from tablefeed.feed.snapshot.timeline import Timeline
from tablefeed.indextables import names
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import FileAction, Version

pytest.importorskip("fastavro")


@cache
def state_only(count: int) -> dict[str, bytes]:
    """A table of `count` states, each with one file more."""
    manifests = {f"{version:08x}": [add(f"v{version}")] for version in range(1, count + 1)}
    shown = list(manifests.items())
    return {**json_log({0: ()}), **states_of({version: dict(shown[:version]) for version in range(1, count + 1)})}


@cache
def native(count: int) -> dict[str, bytes]:
    """The same as commits with a state beside each, the newest file alone live."""
    commits: dict[int, list[FileAction]] = {v: [add(f"v{v}")] for v in range(1, count + 1)}
    for version in range(2, count + 1):
        commits[version].append(remove(f"v{version - 1}"))
    states = {version: {f"{version:016x}": [add(f"v{version}")]} for version in range(1, count + 1)}
    return {**json_log({0: (), **commits}, writer=Writer.NATIVE), **states_of(states)}


def phantom(version: int) -> dict[str, bytes]:
    """The directory of a state whose writer died before the state was made."""
    return {f"{names.state_dir(version)}/manifest-1234abcd.avro": b"Obj\x01"}


def calls(store: FaultyStore) -> Counter[str]:
    return Counter(call.operation for call in store.calls)


@pytest.mark.parametrize("make", [state_only, native])
def test_opening_a_table_costs_what_its_newest_state_costs(make: Callable[[int], dict[str, bytes]]) -> None:
    few, many = log_in(make(3)), log_in(make(40))

    assert many[0].load().version == 40
    assert few[0].load().version == 3
    assert calls(many[1]) == calls(few[1])
    assert calls(many[1])["stat"] <= 3  # the newest state, and how the newest version looks to whoever comes again


def test_of_forty_states_the_newest_is_asked_about_and_no_other() -> None:
    log, store = log_in(state_only(40))
    log.load()

    asked = {call.name for call in store.calls if call.operation in ("stat", "read") and "state-v" in call.name}
    assert asked == {f"{names.LOG_DIR}/{names.state_name(40)}"}


def test_two_searches_for_a_time_read_each_commit_once() -> None:
    log, store = log_in(native(3))
    timeline = Timeline(log.load(), [file for file in log.listing() if file.kind == "commit"])
    first = timeline.first_at_or_after(0)
    calls_before = len(store.calls)

    assert timeline.first_at_or_after(0) == first
    assert len(store.calls) == calls_before


def test_an_older_version_asks_about_its_own_state() -> None:
    log, store = log_in(state_only(40))

    assert len(live_paths(log, 7)) == 7
    asked = {call.name for call in store.calls if call.operation == "stat" and "state-v" in call.name}
    assert asked == {f"{names.LOG_DIR}/{names.state_name(7)}"}


def test_a_listing_from_a_version_on_asks_about_the_states_from_there() -> None:
    log, store = log_in(state_only(40))

    assert [file.version for file in log.listing(39) if file.kind == "commit"] == [39, 40]
    assert calls(store) == {"list": 1, "directories": 1, "stat": 3}


def test_what_is_listed_of_a_state_has_its_size_and_time() -> None:
    log, _ = log_in(state_only(3))

    assert all(file.size_bytes > 0 and file.modified_ms > 0 for file in log.listing(1))


def test_directories_that_dead_writers_left_are_no_states_wherever_they_are() -> None:
    log, _ = log_in({**state_only(4), **phantom(5), **phantom(6), **phantom(0)})

    assert log.load().version == 4
    assert live_paths(log) == ["v1", "v2", "v3", "v4"]
    assert [file.version for file in log.listing(3) if file.kind == "commit"] == [3, 4]
    with pytest.raises(VersionNotFoundError, match="holds versions 0 to 4"):
        log.load(Version(5))


def test_a_directory_without_a_state_between_states_is_a_hole() -> None:
    files = {name: data for name, data in state_only(5).items() if name != names.state_name(3)}
    log, _ = log_in({**files, **phantom(3)})

    assert live_paths(log) == ["v1", "v2", "v3", "v4", "v5"]
    with pytest.raises(LogGapError, match="version 3 is missing"):
        log.load(Version(3))
    assert [file.version for file in log.listing() if file.kind == "commit"] == [5]


def test_the_metadata_is_not_looked_for_in_a_directory_without_a_state() -> None:
    files = {name: data for name, data in state_only(3).items() if name != names.commit_name(0)}
    log, _ = log_in({**files, **phantom(2), **phantom(0)})

    with pytest.raises(LogError, match="no metadata"):
        log.load()


def test_a_log_of_directories_without_states_is_no_table() -> None:
    log, _ = log_in({**phantom(1), **phantom(2)})

    with pytest.raises(TableNotFoundError):
        log.load()
