"""Where a stream begins, how far a batch goes, what is in it, and that a restart delivers the same."""

from __future__ import annotations

import itertools
import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from support.logs import Action, a_log, a_source, add, at, batches, delivered, info, metadata, protocol, put, remove
from tablefeed.errors import LogError, OffsetError, VersionNotFoundError
from tablefeed.feed.changes.java_regex import java_regex
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.log.plan import Limits
from tablefeed.model.offset import Offset

NO_LIMITS = Limits()


def three_versions() -> TableLog:
    return a_log(
        v0=[protocol(), metadata(), add("a", modified=3), add("b", modified=1)],
        v1=[add("c", modified=2)],
        v2=[add("d", modified=4), add("e", modified=4), add("f", modified=4)],
    )


# --- where it begins -------------------------------------------------------------------------------------------------


def test_a_stream_begins_with_the_whole_table_and_goes_on_with_what_is_added() -> None:
    log = three_versions()
    source = a_source(log)
    start = source.initial()

    first = source.latest(start, NO_LIMITS)
    put(log.store, 3, [add("g")])
    second = source.latest(first, NO_LIMITS)

    assert source.initial() == start == at(2, in_snapshot=True)
    assert (first, second) == (at(3), at(4))
    assert delivered(source, start, first) == ["a", "b", "c", "d", "e", "f"]
    assert delivered(source, first, second) == ["g"]


def test_a_file_that_a_commit_adds_twice_has_two_numbers_and_is_read_once() -> None:
    source = a_source(a_log(v0=[protocol(), metadata()], v1=[add("a"), add("a"), add("b")]), starting_version=1)

    assert batches(source, at(1), Limits(files=1)) == [(at(1, 1), ["a"]), (at(1, 2), []), (at(2), ["b"])]
    assert delivered(source, at(1), at(2)) == ["a", "b"]


def test_the_snapshot_is_what_is_live_whether_or_not_its_commit_changed_data() -> None:
    log = a_log(
        v0=[protocol(), metadata(), add("a"), add("b")],
        v1=[remove("a"), remove("b", data_change=False), add("packed", data_change=False)],
    )
    source = a_source(log)

    assert delivered(source, source.initial(), at(2)) == ["packed"]


def test_a_stream_can_begin_at_a_version() -> None:
    source = a_source(three_versions(), starting_version=1)

    assert source.initial() == at(1)
    assert delivered(source, at(1), source.latest(at(1), NO_LIMITS)) == ["c", "d", "e", "f"]


def test_a_stream_can_begin_with_what_comes_next() -> None:
    log = three_versions()
    source = a_source(log, starting_version="latest")
    start = source.initial()
    nothing = source.latest(start, NO_LIMITS)
    put(log.store, 3, [add("g")])

    assert (start, nothing) == (at(3), at(3))
    assert delivered(source, start, source.latest(start, NO_LIMITS)) == ["g"]


@pytest.mark.parametrize("version", [3, 99])
def test_a_version_that_is_not_there_yet_is_no_beginning(version: int) -> None:
    with pytest.raises(VersionNotFoundError, match="memory:orders does not exist: its log holds versions 0 to 2"):
        a_source(three_versions(), starting_version=version).initial()


def test_a_version_whose_commit_is_gone_is_no_beginning() -> None:
    log = three_versions()
    source = a_source(log, starting_version=0)
    log.store.delete("_delta_log/00000000000000000000.json")
    log.store.replace("_delta_log/00000000000000000001.checkpoint.parquet", b"")

    with pytest.raises(LogError):
        source.initial()


def test_an_empty_table_is_an_empty_snapshot_and_its_first_row_comes_next() -> None:
    log = a_log(v0=[protocol(), metadata()])
    source = a_source(log)
    start = source.initial()

    end = source.latest(start, NO_LIMITS)

    assert end == at(1)
    assert delivered(source, start, end) == []


# --- how far a batch goes --------------------------------------------------------------------------------------------


def test_files_of_the_snapshot_that_the_filter_excludes_by_statistics_are_not_read() -> None:
    def stats(low: int, high: int) -> str:
        return json.dumps(
            {"numRecords": 2, "minValues": {"id": low}, "maxValues": {"id": high}, "nullCount": {"id": 0}}
        )

    log = a_log(v0=[protocol(), metadata(), add("a", stats=stats(1, 5)), add("b", stats=stats(1, 6))])
    write_checkpoint(log.load())  # from which statistics are read only if they are asked for
    source = a_source(log, where="id > 5")

    assert delivered(source, at(0, in_snapshot=True), at(1)) == ["b"]


def test_batches_of_two_files_cut_the_snapshot_and_the_commits_where_they_are_full() -> None:
    log = three_versions()
    source = a_source(log)
    start = source.initial()
    put(log.store, 3, [add("g"), add("h"), add("i")])

    found = batches(source, start, Limits(files=2))

    assert found == [
        (at(2, 2, in_snapshot=True), ["b", "c"]),
        (at(2, 4, in_snapshot=True), ["a", "d"]),
        (at(3), ["e", "f"]),
        (at(3, 2), ["g", "h"]),
        (at(4), ["i"]),
    ]


def test_a_commit_beyond_the_limit_is_not_judged_yet() -> None:
    log = a_log(v0=[protocol(), metadata(), add("old")], v1=[add("a")], v2=[add("b")], v3=[remove("a"), add("c")])
    source = a_source(log, starting_version=1)

    assert source.latest(at(1), Limits(files=1)) == at(2)


def counted_rows(path: str, rows: int | None, *, modified: int = 0) -> Action:
    return (
        add(path, modified=modified) if rows is None else add(path, modified=modified, stats=f'{{"numRecords":{rows}}}')
    )


def test_batches_of_ten_rows_count_the_statistics_of_the_snapshot_and_of_the_commits() -> None:
    snapshot = [counted_rows("a", 4, modified=2), counted_rows("b", 5, modified=1), counted_rows("c", 90, modified=3)]
    log = a_log(
        v0=[protocol(), metadata(), *snapshot, counted_rows("d", None, modified=4), counted_rows("e", 1, modified=5)]
    )
    limits = Limits(rows=10)
    source = a_source(log, limits=limits)
    start = source.initial()
    put(log.store, 1, [counted_rows("f", 10), counted_rows("g", None), counted_rows("h", 1)])

    assert batches(source, start, limits) == [
        (at(0, 3, in_snapshot=True), ["a", "b", "c"]),
        (at(0, 4, in_snapshot=True), ["d"]),
        (at(1, 1), ["e", "f"]),
        (at(1, 2), ["g"]),
        (at(2), ["h"]),
    ]


def test_rows_that_are_limited_do_not_change_what_a_logged_batch_delivers() -> None:
    log = three_versions()
    end = at(2, 4, in_snapshot=True)

    limited = delivered(a_source(log, limits=Limits(rows=1)), at(2, 2, in_snapshot=True), end)

    assert limited == delivered(a_source(log), at(2, 2, in_snapshot=True), end) == ["a", "d"]


def test_available_now_ends_where_the_table_ended_when_the_query_began() -> None:
    log = three_versions()
    source = a_source(log)
    start = source.initial()
    source.bound_now()
    first = source.latest(start, Limits(files=4))
    put(log.store, 3, [add("late")])

    rest = batches(source, first, Limits(files=4))

    assert first == at(2, 4, in_snapshot=True)
    assert rest == [(at(3), ["e", "f"])]


@given(
    sizes=st.lists(st.lists(st.integers(1, 20), max_size=4), max_size=5),
    files=st.none() | st.integers(1, 4),
    size_bytes=st.none() | st.integers(1, 30),
    snapshot_at=st.integers(0, 5),
)
def test_whatever_the_limits_the_batches_together_are_every_file_once(
    sizes: list[list[int]], files: int | None, size_bytes: int | None, snapshot_at: int
) -> None:
    log = a_log(v0=[protocol(), metadata()])
    names = []
    source = a_source(log)
    for version, commit in enumerate(sizes, 1):
        if version == snapshot_at:
            source = a_source(log)
        source.initial()
        named = [f"{version}-{i}" for i in range(len(commit))]
        put(log.store, version, [add(name, size=size) for name, size in zip(named, commit, strict=True)] or [info()])
        names += named

    found = batches(source, source.initial(), Limits(files=files, size_bytes=size_bytes))

    starts = [source.initial(), *(end for end, _ in found)]
    again = [delivered(a_source(log), start, end) for start, (end, _) in zip(starts, found, strict=False)]
    assert again == [batch for _, batch in found], "after a restart"
    assert sorted(name for _, batch in found for name in batch) == sorted(names)
    assert all(a.position < b.position for (a, _), (b, _) in itertools.pairwise(found))


# --- files left out by their path -------------------------------------------------------------------------------------


def test_files_left_out_by_their_path_count_towards_the_limits_and_keep_their_place() -> None:
    log = three_versions()
    b_and_e = java_regex("[be]", option="excludeRegex")
    source = a_source(log, exclude=b_and_e)
    start = source.initial()
    put(log.store, 3, [add("g"), add("e2"), add("i")])

    found = batches(source, start, Limits(files=2))

    assert found == [
        (at(2, 2, in_snapshot=True), ["c"]),
        (at(2, 4, in_snapshot=True), ["a", "d"]),
        (at(3), ["f"]),
        (at(3, 2), ["g"]),
        (at(4), ["i"]),
    ]
    for end, files in found:
        assert delivered(a_source(log, exclude=b_and_e), start, end) == files
        start = end


def test_the_path_that_is_searched_is_the_logs_own_text() -> None:
    log = a_log(v0=[protocol(), metadata(), add("p=a%20b/x"), add("p=c/x")])

    def left(pattern: str) -> list[str]:
        return delivered(a_source(log, exclude=java_regex(pattern, option="excludeRegex")), at(0), at(1))

    assert left("a%20b") == ["p=c/x"]
    assert left("a b") == ["p=a b/x", "p=c/x"]


def test_a_batch_whose_files_are_all_left_out_is_a_batch_without_rows() -> None:
    source = a_source(three_versions(), exclude=java_regex("", option="excludeRegex"))

    assert source.latest(source.initial(), NO_LIMITS) == at(3)
    assert source.tasks(source.initial(), at(3)) == []


# --- after a restart -------------------------------------------------------------------------------------------------


def test_a_restart_in_the_middle_of_the_snapshot_goes_on_there_though_the_table_moved_on() -> None:
    log = three_versions()
    half_way = at(2, 2, in_snapshot=True)
    put(log.store, 3, [add("g"), remove("a", data_change=False)])
    restarted = a_source(log)

    end = restarted.latest(half_way, NO_LIMITS)

    assert end == at(4)
    assert delivered(restarted, half_way, end) == ["a", "d", "e", "f", "g"]


@pytest.mark.parametrize(
    ("end", "files"),
    [
        (at(2, 2, in_snapshot=True), ["b", "c"]),
        (at(3), ["a", "b", "c", "d", "e", "f"]),
        (at(3, 1), ["a", "b", "c", "d", "e", "f", "g"]),
    ],
    ids=["within the snapshot", "behind the snapshot", "within a commit behind it"],
)
def test_a_first_batch_that_was_logged_and_not_done_is_the_same_after_a_restart_that_begins_later(
    end: Offset, files: list[str]
) -> None:
    log = three_versions()
    put(log.store, 3, [add("g"), add("h")])
    put(log.store, 4, [add("i")])
    restarted = a_source(log)

    assert restarted.initial() == at(4, in_snapshot=True)
    assert delivered(restarted, restarted.initial(), end) == files


@pytest.mark.parametrize("start", [0, 2, 3, "latest"])
def test_a_first_batch_of_the_snapshot_that_was_not_done_keeps_its_rows_where_a_start_is_set_since(
    start: int | str,
) -> None:
    log = three_versions()
    source = a_source(log)
    end = source.latest(source.initial(), Limits(files=2))
    files = delivered(source, source.initial(), end)
    put(log.store, 3, [add("g")])

    restarted = a_source(log, starting_version=start)

    assert delivered(restarted, restarted.initial(), end) == files
    rest = [file for _, files in batches(restarted, end, NO_LIMITS) for file in files]
    assert sorted(files + rest) == ["a", "b", "c", "d", "e", "f", "g"]


@pytest.mark.parametrize("change_feed", [False, True], ids=["appends", "changes"])
@pytest.mark.parametrize(
    ("options", "files"),
    [
        pytest.param({}, ["a", "b", "c", "d", "e", "f"], id="the whole table"),
        pytest.param({"starting_version": "latest"}, [], id="latest"),
        pytest.param({"starting_version": 1}, ["c", "d", "e", "f", "g"], id="a version"),
    ],
)
def test_a_first_batch_that_is_run_again_has_the_same_rows_though_the_table_grew_before_it_was_planned_and_after(
    options: dict[str, Any],  # SourceOptions' own
    files: list[str],
    change_feed: bool,  # noqa: FBT001 (a parameter)
) -> None:
    log = a_log(
        v0=[protocol(), metadata(configuration={"delta.enableChangeDataFeed": "true"}), add("a"), add("b")],
        v1=[add("c"), add("d"), add("e")],
        v2=[add("f", modified=1)],
    )
    source = a_source(log, change_feed=change_feed, **options)
    start = source.initial()
    put(log.store, 3, [add("g")])
    end = source.latest(start, NO_LIMITS)
    assert delivered(source, start, end) == files
    put(log.store, 4, [metadata(configuration={"delta.enableChangeDataFeed": "false"}), add("h")])
    put(log.store, 5, [metadata(configuration={"delta.enableChangeDataFeed": "true"})])
    put(log.store, 6, [metadata(configuration={"delta.enableChangeDataFeed": "false"})])

    restarted = a_source(log, change_feed=change_feed, **options)
    again = restarted.initial()

    assert delivered(restarted, again, end) == files
    assert restarted.latest(end, NO_LIMITS) == source.latest(end, NO_LIMITS) == at(7)


def test_available_now_from_latest_delivers_what_came_before_its_first_batch_was_planned() -> None:
    log = three_versions()
    source = a_source(log, starting_version="latest")
    source.bound_now()
    start = source.initial()
    put(log.store, 3, [add("g")])

    assert source.latest(start, NO_LIMITS) == at(3)
    put(log.store, 4, [add("h")])
    assert batches(source, at(3), NO_LIMITS) == [(at(4), ["g"])]


def test_a_snapshot_that_cannot_be_read_any_more_says_so_and_what_to_do() -> None:
    log = three_versions()
    source = a_source(log)
    source.initial()
    log.store.delete("_delta_log/00000000000000000000.json")

    with pytest.raises(LogError) as caught:
        delivered(source, at(1, 1, in_snapshot=True), at(2))

    assert caught.value.error_class == "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE"
    assert "memory:orders" in str(caught.value)
    assert "new checkpoint" in str(caught.value)


def test_a_batch_whose_logged_offsets_go_back_is_refused_and_a_first_one_before_its_start_too() -> None:
    source = a_source(three_versions(), starting_version=2)

    for start, said in ((source.initial(), "did not begin at version 2"), (at(3), "contradict each other")):
        with pytest.raises(OffsetError, match=said):
            source.tasks(start, at(1))


def test_equal_offsets_are_no_batch() -> None:
    assert a_source(three_versions()).tasks(at(1), at(1)) == []
