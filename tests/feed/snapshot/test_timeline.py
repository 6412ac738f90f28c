"""Which version a time means: by in-commit timestamps, by the times of files, by neither where it cannot be told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.checkpoints import classic_name, put_checkpoint
from support.faulty_store import FaultyStore
from support.logs import Action, a_log, add, commit_path, info, log_of, metadata, protocol, put
from tablefeed.errors import LogError, TableError
from tablefeed.feed.api.table import Table
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.snapshot.timeline import Timeline, version_at
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFileKind
from tablefeed.store import Entry
from tablefeed.store.memory import MemoryStore

ICT = protocol(1, 7, writerFeatures=["inCommitTimestamp"])


def turned_on(**more: str) -> Action:
    return metadata(configuration={"delta.enableInCommitTimestamps": "true", **more})


def since(version: object, at_ms: object) -> Action:
    return turned_on(
        **{
            "delta.inCommitTimestampEnablementVersion": str(version),
            "delta.inCommitTimestampEnablementTimestamp": str(at_ms),
        }
    )


def a_timed_log(*commits: tuple[int, list[Action]]) -> TableLog:
    """Commits from version 0 on, each with the time of its file."""
    times = iter([at_ms for at_ms, _ in commits])
    store = MemoryStore("orders", now_ms=lambda: next(times))
    for version, (_, actions) in enumerate(commits):
        put(store, version, actions)
    store._now_ms = lambda: 0
    return log_of(store)


def ict(at_ms: int, *actions: Action) -> list[Action]:
    return [info(inCommitTimestamp=at_ms), *actions]


def turned_on_midway() -> TableLog:
    """Files of 1000 to 1300 for versions 0 to 3, in-commit timestamps of 2000 to 2200 for 4 to 6, their files later."""
    return a_timed_log(
        (1000, [protocol(), metadata()]),
        (1100, [add("a")]),
        (1100, [add("b")]),
        (1050, [add("c")]),
        (5000, ict(2000, ICT, since(4, 2000))),
        (1, ict(2100, add("d"))),
        (9000, ict(2200, add("e"))),
    )


def test_a_time_is_of_the_versions_before_in_commit_timestamps_or_of_those_since() -> None:
    log = turned_on_midway()
    times = (1000, 1099, 1100, 1101, 1102, 1999, 2000, 2099, 2100, 2199, 2200)

    assert [version_at(log, at_ms) for at_ms in times] == [0, 0, 1, 2, 3, 3, 4, 4, 5, 5, 6]


def test_the_first_at_or_after_a_time_may_be_the_one_that_turned_in_commit_timestamps_on() -> None:
    log = turned_on_midway()
    timeline = Timeline(log.load(), [f for f in log.listing() if f.kind is LogFileKind.COMMIT])
    times = (0, 1000, 1001, 1102, 1103, 2000, 2001, 2200)

    assert [timeline.first_at_or_after(at_ms) for at_ms in times] == [0, 0, 1, 3, 4, 4, 5, 6]
    with pytest.raises(TableError, match="after the newest commit"):
        timeline.first_at_or_after(2201)


def test_a_late_file_before_the_first_in_commit_timestamp_moves_nothing_after_it() -> None:
    log = a_timed_log(
        (1000, [protocol(), metadata()]),
        (8000, [add("a")]),  # its clock was wrong
        (9000, ict(2000, ICT, since(2, 2000))),
        (9000, ict(2001)),
    )

    assert [version_at(log, at_ms) for at_ms in (1999, 2000, 2001)] == [0, 2, 3]
    assert [c.committed_at_ms for c in Table(log.load()).history()] == [2001, 2000, 8000, 1000]


@pytest.mark.parametrize(
    ("at_ms", "error_class"),
    [(999, "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"), (2201, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT")],
)
def test_a_time_outside_the_history_has_no_answer(at_ms: int, error_class: str) -> None:
    with pytest.raises(TableError, match="memory:orders") as caught:
        version_at(turned_on_midway(), at_ms)
    assert caught.value.error_class == error_class


def test_in_commit_timestamps_from_the_first_version_on_need_no_property_that_says_so() -> None:
    log = a_timed_log(*[(9000 - v, ict(100 * v, *([ICT, turned_on()] if v == 0 else []))) for v in range(4)])

    assert [version_at(log, at_ms) for at_ms in (0, 99, 100, 299, 300)] == [0, 0, 1, 2, 3]


def test_where_they_were_turned_off_again_the_times_of_files_count() -> None:
    log = a_timed_log(
        (1000, ict(50, ICT, turned_on())),
        (2000, ict(60, metadata())),
    )

    assert [version_at(log, at_ms) for at_ms in (1000, 1999, 2000)] == [0, 0, 1]


def test_after_the_early_log_was_cleaned_up_a_time_before_the_first_readable_version_has_no_answer() -> None:
    log = turned_on_midway()
    put_checkpoint(log.store, classic_name(2), [protocol(), metadata(), add("a"), add("b")])
    log.store.delete(commit_path(0))

    # Versions 1 has a commit, but nothing that it could be read from. Version 2 has no time of an earlier one to top.
    assert [version_at(log, at_ms) for at_ms in (1100, 1101, 2000)] == [2, 3, 4]
    with pytest.raises(TableError, match=r"earliest that can still be read is of 1970-01-01 00:00:01\.100"):
        version_at(log, 1099)


class _Behind(MemoryStore):
    """A disk whose listing lacks version 1, because versions 1 and 2 were made while the folder was read."""

    def list(self, directory: str, *, start: str = "") -> Iterator[Entry]:
        return (entry for entry in super().list(directory, start=start) if entry.name != "00000000000000000001.json")


def test_a_commit_that_the_listing_missed_keeps_its_place_in_time() -> None:
    begin = ict(10, ICT, turned_on())
    log = a_log(_Behind("orders"), v0=begin, v1=ict(20, add("a")), v2=ict(30, add("b")))

    assert [version_at(log, at_ms) for at_ms in (10, 20, 25, 30)] == [0, 1, 1, 2]


def test_a_version_whose_commit_is_gone_has_no_time() -> None:
    log = turned_on_midway()
    put_checkpoint(log.store, classic_name(4), [ICT, since(4, 2000), add("a")])
    for version in range(5):
        log.store.delete(commit_path(version))

    assert version_at(log, 2100) == 5
    with pytest.raises(TableError, match=r"00:00:02\.100"):
        version_at(log, 2000)
    for version in (5, 6):
        log.store.delete(commit_path(version))
    with pytest.raises(TableError, match=r"DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION.*none that can be read"):
        version_at(log, 2000)
    assert log.load().version == 4


@pytest.mark.parametrize(
    ("actions", "error_class"),
    [([add("x")], "DELTA_MISSING_COMMIT_INFO"), ([info(operation="WRITE")], "DELTA_MISSING_COMMIT_TIMESTAMP")],
)
def test_a_commit_without_the_in_commit_timestamp_that_it_should_have_answers_no_time(
    actions: list[Action], error_class: str
) -> None:
    log = a_timed_log(
        (1000, [protocol(), metadata()]), (2000, ict(1500, ICT, since(1, 1500))), (3000, actions), (4000, ict(1700))
    )

    with pytest.raises(LogError, match=rf"{2:020d}\.json of memory:orders has no in-commit timestamp") as caught:
        version_at(log, 1600)
    assert caught.value.error_class == error_class
    assert [c.committed_at_ms for c in Table(log.load()).history()] == [1700, 3000, 1500, 1000]


@pytest.mark.parametrize(
    "properties",
    [
        {"delta.inCommitTimestampEnablementVersion": "1"},
        {"delta.inCommitTimestampEnablementTimestamp": "1"},
        {"delta.inCommitTimestampEnablementVersion": "x", "delta.inCommitTimestampEnablementTimestamp": "1"},
        {"delta.inCommitTimestampEnablementVersion": "1", "delta.inCommitTimestampEnablementTimestamp": "-1"},
        {"delta.inCommitTimestampEnablementVersion": "²", "delta.inCommitTimestampEnablementTimestamp": "1"},
    ],
)
def test_properties_that_contradict_each_other_are_our_error(properties: dict[str, str]) -> None:
    log = a_timed_log((1000, ict(5, ICT, turned_on(**properties))))

    with pytest.raises(TableError, match="Set both, or neither"):
        version_at(log, 1000)


def test_a_version_to_come_as_the_one_that_turned_them_on_is_an_error_that_names_the_newest_commit() -> None:
    log = a_timed_log((1000, [ICT, since(7, 500)]))

    with pytest.raises(LogError, match=f"{0:020d}.json"):
        version_at(log, 1000)


def test_of_many_commits_with_in_commit_timestamps_few_are_read() -> None:
    log = a_timed_log(*[(v, ict(10 * v, *([ICT, turned_on()] if v == 0 else []))) for v in range(1000)])
    put_checkpoint(log.store, classic_name(999), [ICT, turned_on()])
    store = FaultyStore(log.store)

    assert version_at(log_of(store), 5005) == Version(500)
    read = [call.name for call in store.calls if call.operation == "read" and call.name.endswith(".json")]
    assert len(read) <= 12


def test_history_reads_no_more_commits_than_it_gives() -> None:
    log = a_timed_log(*[(v, ict(10 * v, *([ICT, turned_on()] if v == 0 else []))) for v in range(50)])
    put_checkpoint(log.store, classic_name(49), [ICT, turned_on()])
    store = FaultyStore(log.store)
    table = Table(log_of(store).load())

    def reads() -> Iterator[str]:
        return (call.name for call in store.calls if call.operation == "read" and call.name.endswith(".json"))

    assert [c.committed_at_ms for c in table.history(limit=2)] == [490, 480]
    assert len(list(reads())) == 2


def test_a_time_of_a_table_that_another_writer_keeps_by_files_is_unmoved_by_what_is_in_the_commits() -> None:
    log = a_log(v0=[protocol(), metadata(), info(inCommitTimestamp=5)])
    at_ms = log.listing()[0].modified_ms

    assert version_at(log, at_ms) == 0
