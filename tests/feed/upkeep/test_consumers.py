"""Consumers: what a registered reader has still to read stays, until it is read or the registration ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

import tablefeed
from support.clocks import StoreClock
from support.faulty_store import Fault, FaultyStore
from support.logs import LONG_ID, VECTOR, VECTOR_FILE, add, log_of, metadata, protocol, put, remove
from support.recorded import cdc
from tablefeed.delta import names
from tablefeed.delta.intervals import DAY_MS
from tablefeed.errors import IllegalOptionError, LogError, LogGapError, TableNotFoundError
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.upkeep import vacuum as vacuums
from tablefeed.feed.upkeep.consumers import Consumers, Reports
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint, write_compaction
from tablefeed.feed.upkeep.delta_cleanup import clean_up
from tablefeed.feed.upkeep.vacuum import Vacuumed
from tablefeed.model.actions import Version
from tablefeed.store import Store
from tablefeed.store.memory import MemoryStore

NOW_MS = 1_800_000_000_000
MONTH_AGO_MS = NOW_MS - 30 * DAY_MS
WITH_VECTORS = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"])
FILE = "_tablefeed/consumers/sums.json"


def a_table(clock: StoreClock | None = None) -> MemoryStore:
    """Versions 0 to 3, a month old: b takes the place of a, c that of b with its change file; d is there throughout."""
    clock = clock or StoreClock(MONTH_AGO_MS)
    store = MemoryStore("orders", now_ms=clock.now_ms)
    put(store, 0, [WITH_VECTORS, metadata(LONG_ID), add("a", deletionVector=VECTOR), add("d")])
    put(store, 1, [remove("a", deletionVector=VECTOR), add("b")])
    put(store, 2, [remove("b"), add("c"), cdc("_change_data/of-2")])
    put(store, 3, [add("e")])
    for name in ("a", "b", "c", "d", "e", VECTOR_FILE, "_change_data/of-2", "orphan"):
        store.replace(name, b"rows")
    clock.ms = NOW_MS
    return store


def vacuumed(store: Store, *, now_ms: int = NOW_MS) -> Vacuumed:
    return vacuums.vacuumed(log_of(store), retention_ms=None, allow_short=False, dry_run=False, now_ms=now_ms)


def gone(outcome: Vacuumed) -> list[str]:
    return sorted(outcome.paths.to_pylist())


def consumers_of(store: Store) -> Consumers:
    return Consumers(log_of(store))


# --- what vacuum keeps -----------------------------------------------------------------------------------------------

EVERYTHING = sorted(["_change_data/of-2", "a", VECTOR_FILE, "b", "orphan"])


@pytest.mark.parametrize(
    ("version", "goes", "waits_for"),
    [
        (3, EVERYTHING, ()),
        (2, EVERYTHING, ("sums",)),
        (1, ["a", VECTOR_FILE, "orphan"], ("sums",)),
        (0, ["orphan"], ("sums",)),
        (-1, ["orphan"], ("sums",)),
    ],
)
def test_vacuum_keeps_what_the_commits_name_that_a_consumer_has_not_read_and_names_the_consumer(
    version: int, goes: list[str], waits_for: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    store = a_table()
    consumers_of(store).register("sums", version=version)
    caplog.set_level("INFO")

    outcome = vacuumed(store)

    assert (gone(outcome), outcome.waits_for) == (sorted(goes), waits_for)
    assert f"waits_for={','.join(waits_for)}" in caplog.text


def test_the_slowest_consumer_decides_and_each_that_is_waited_for_is_named() -> None:
    store = a_table()
    for consumer_id, version in (("slow", 1), ("slower", 0), ("there", 3)):
        consumers_of(store).register(consumer_id, version=version)

    outcome = vacuumed(store)

    assert (gone(outcome), outcome.waits_for) == (["orphan"], ("slow", "slower"))


def test_progress_lets_go_of_what_was_read_and_a_removed_consumer_of_all() -> None:
    store = a_table()
    consumers_of(store).register("sums", version=0)
    consumers_of(store).register("copy", version=1)

    consumers_of(store).progress("sums", 1)
    assert gone(vacuumed(store)) == sorted(["a", VECTOR_FILE, "orphan"])
    consumers_of(store).remove("sums")
    consumers_of(store).remove("copy")
    assert gone(vacuumed(store)) == ["_change_data/of-2", "b"]


def test_a_consumer_that_is_silent_for_longer_than_its_expiry_holds_nothing_back() -> None:
    store = a_table()
    consumers_of(store).register("sums", version=1, expires_after=timedelta(days=2))

    assert gone(vacuumed(store, now_ms=NOW_MS + 2 * DAY_MS - 1)) == sorted(["a", VECTOR_FILE, "orphan"])
    assert gone(vacuumed(store, now_ms=NOW_MS + 2 * DAY_MS)) == ["_change_data/of-2", "b"]


def test_each_report_begins_the_time_to_expire_anew() -> None:
    clock = StoreClock(MONTH_AGO_MS)
    store = a_table(clock)
    consumers_of(store).register("sums", version=0, expires_after=timedelta(days=2))
    clock.ms += DAY_MS
    consumers_of(store).progress("sums", 0)

    assert gone(vacuumed(store, now_ms=NOW_MS + 2 * DAY_MS)) == ["orphan"]


# --- order of events -------------------------------------------------------------------------------------------------


def at_the_walk(store: MemoryStore, hook: Callable[[], object]) -> FaultyStore:
    """Something happens right after vacuum has listed the files of the table."""
    return FaultyStore(store, faults=[Fault(operation="list", at=5, when="after", hook=lambda: (hook(), None)[1])])


@pytest.mark.parametrize("step", ["register", "go back", "progress", "remove"])
def test_vacuum_keeps_for_a_consumer_of_before_and_for_one_of_during_its_listing(step: str) -> None:
    store = a_table()
    if step != "register":
        consumers_of(store).register("sums", version=3 if step == "go back" else 0)
    steps: dict[str, Callable[[], object]] = {
        "register": lambda: consumers_of(store).register("sums", version=0),
        "go back": lambda: consumers_of(store).resume("sums", 0),
        "progress": lambda: consumers_of(store).progress("sums", 3),
        "remove": lambda: consumers_of(store).remove("sums"),
    }
    raced = at_the_walk(store, steps[step])

    assert gone(vacuumed(raced)) == ["orphan"]
    assert all(store.exists(name) for name in EVERYTHING if name != "orphan")


def test_a_consumer_that_comes_while_files_are_deleted_keeps_the_rest() -> None:
    store = a_table()
    clock = StoreClock(MONTH_AGO_MS)
    old = MemoryStore("orders", now_ms=clock.now_ms)
    for entry in ("_delta_log/" + e.name for e in store.list("_delta_log")):
        old.replace(entry, store.read(entry))
    for number in range(2000):
        old.replace(f"Orphan-{number:04d}", b"rows")
    old.replace("b", b"rows")
    clock.ms = NOW_MS
    comes = Fault(operation="delete", hook=lambda: consumers_of(old).resume("sums", 1))

    outcome = vacuumed(FaultyStore(old, faults=[comes]))

    assert (outcome.file_count, old.exists("b")) == (2000, True)


def test_at_whatever_step_of_vacuum_a_consumer_comes_it_reads_or_the_file_was_gone_before_it_came() -> None:
    calls = FaultyStore(a_table())
    vacuumed(calls)
    for at in range(1, sum(call.operation in ("list", "read", "stat", "directories") for call in calls.calls) + 1):
        for operation in ("list", "read", "stat", "directories"):
            store = a_table()
            there = list[bool]()

            def come(store: MemoryStore = store, there: list[bool] = there) -> None:
                consumers_of(store).resume("sums", 1)
                there.append(store.exists("b"))

            vacuumed(FaultyStore(store, faults=[Fault(operation=operation, at=at, hook=come)]))
            assert not there or there == [store.exists("b")], (operation, at)


# --- the log ---------------------------------------------------------------------------------------------------------


def an_old_log() -> DeltaLog:
    """A commit a day from day 0 to 8 at noon, checkpoints of versions 2, 4, 6, 8; the log is kept for three days."""
    clock = StoreClock(0)
    log = log_of(MemoryStore("t", now_ms=clock.now_ms))
    for day in range(9):
        clock.ms = day * DAY_MS + DAY_MS // 2
        first = [protocol(), metadata(configuration={"delta.logRetentionDuration": "3 days"})]
        put(log.store, day, [*(first if day == 0 else []), add(f"f{day}")])
        if day and day % 2 == 0:
            write_checkpoint(log.load())
    write_compaction(log.load(), Version(1))
    return log


ON_DAY_8 = 8 * DAY_MS + 1


@pytest.mark.parametrize(
    ("version", "first", "waits_for"), [(8, 4, ()), (4, 4, ()), (3, 2, ("sums",)), (2, 2, ("sums",)), (1, 0, ("sums",))]
)
def test_cleanup_keeps_the_version_that_a_consumer_has_read_and_all_after_it_and_names_the_consumer(
    version: int, first: int, waits_for: tuple[str, ...]
) -> None:
    log = an_old_log()
    Consumers(log).register("sums", version=version)

    cleaned = clean_up(log.load(), now_ms=ON_DAY_8)

    assert cleaned.waits_for == waits_for
    assert min(file.version for file in log.listing()) == first
    assert [log.load(Version(v)).version for v in range(max(first, version), 9)] == list(range(max(first, version), 9))
    assert log.commit(Version(version + 1)) is not None or version == 8


def test_cleanup_is_put_off_where_a_consumer_comes_while_what_stays_is_read(caplog: pytest.LogCaptureFixture) -> None:
    log = an_old_log()
    come = Fault(operation="open_input", name="04.checkpoint", hook=lambda: Consumers(log).resume("sums", 1))
    raced = log_of(FaultyStore(log.store, faults=[come]))

    cleaned = clean_up(raced.load(), now_ms=ON_DAY_8)

    assert (cleaned.log_files, cleaned.waits_for) == (0, ("sums",))
    assert "put off" in caplog.text
    assert log.commit(Version(0)) is not None


def test_a_consumer_that_comes_while_log_files_are_deleted_keeps_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    clock = StoreClock(0)
    log = log_of(MemoryStore("t", now_ms=clock.now_ms))
    for version in range(300):
        put(log.store, version, [*([protocol(), metadata()] if version == 0 else []), add(f"f{version}")])
    write_checkpoint(log.load())
    clock.ms = NOW_MS
    comes = Fault(operation="delete", hook=lambda: Consumers(log).resume("sums", 150))

    cleaned = clean_up(log_of(FaultyStore(log.store, faults=[comes])).load(), now_ms=NOW_MS)

    assert (cleaned.log_files, cleaned.waits_for) == (100, ("sums",))
    assert "deleted=100: consumers came meanwhile: sums" in caplog.text
    assert min(file.version for file in log.listing()) == 100


@pytest.mark.parametrize("before", [None, Version(8)], ids=["new", "registered before"])
def test_a_registration_that_a_cleanup_did_not_see_says_that_it_came_too_late_and_changes_nothing(
    before: Version | None,
) -> None:
    log = an_old_log()
    if before is not None:
        Consumers(log).register("sums", version=before, expires_after=timedelta(days=5))

    def clean() -> None:
        clean_up(log.load(), now_ms=ON_DAY_8)

    cleans = Fault(operation="replace", name=FILE, hook=clean)
    late = Consumers(log_of(FaultyStore(log.store, faults=[cleans])))

    with pytest.raises(LogGapError, match="Register at a later version"):
        late.register("sums", version=1)

    left = [(each.version, each.expires_after.days) for each in Consumers(log).list()]
    assert left == ([] if before is None else [(before, 5)])


def test_a_checkpoint_that_is_asked_for_says_for_whom_it_kept_log_files(tmp_path: Path) -> None:
    from tablefeed.feed.snapshot.open_log import open_maintained
    from tablefeed.feed.upkeep.checkpoint import checkpointed

    for number in range(3):
        tablefeed.append(tmp_path, pa.table({"id": [number]}))
    log = open_maintained(str(tmp_path))
    tablefeed.consumers(tmp_path).register("sums", version=-1, expires_after=timedelta(days=300))
    later_ms = int(datetime.now(UTC).timestamp() * 1000) + 200 * DAY_MS

    done = checkpointed(log, clean_up=True, now_ms=later_ms)

    assert (done.log_files_deleted, done.waits_for) == (0, ("sums",))
    tablefeed.consumers(tmp_path).remove("sums")
    assert checkpointed(log, clean_up=True, now_ms=later_ms).log_files_deleted > 0


# --- a file that cannot be read --------------------------------------------------------------------------------------

DAMAGED: dict[str, bytes] = {
    "empty": b"",
    "cut": b'{"format":1,"consumerId":"sums","ver',
    "no version": b'{"format":1,"consumerId":"sums","expiresAfterDays":30.0}',
    "a version that is none": b'{"format":1,"consumerId":"sums","version":"1","expiresAfterDays":30.0}',
    "no time": b'{"format":1,"consumerId":"sums","version":1,"expiresAfterDays":0}',
    "a later format": b'{"format":2,"consumerId":"sums","version":1,"expiresAfterDays":30.0}',
    "another consumer": b'{"format":1,"consumerId":"Sums","version":1,"expiresAfterDays":30.0}',
    "a list": b"[]",
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_nothing_is_deleted_where_the_file_of_a_consumer_cannot_be_read_however_old_it_is(data: bytes) -> None:
    store = a_table()
    store.replace(FILE, data)
    late_ms = NOW_MS + 4000 * DAY_MS

    with pytest.raises(LogError, match=r"TABLEFEED_CONSUMER_UNREADABLE.*_tablefeed/consumers/sums\.json of memory"):
        vacuumed(store, now_ms=late_ms)
    with pytest.raises(LogError, match="Nothing was deleted"):
        clean_up(log_of(store).load(), now_ms=late_ms)
    assert all(store.exists(name) for name in EVERYTHING)
    with pytest.raises(LogError, match="remove it"):
        consumers_of(store).resume("sums", 1)


@pytest.mark.parametrize("way_out", ["remove", "register"])
def test_a_consumer_whose_file_cannot_be_read_is_registered_anew_or_removed(way_out: str) -> None:
    store = a_table()
    store.replace(FILE, b"")

    getattr(consumers_of(store), way_out)("sums")

    assert vacuumed(store).file_count == 5


def test_a_file_that_a_killed_put_or_another_program_left_is_no_consumer() -> None:
    store = a_table()
    for name in (".sums.json.crc", "README", ".json", "_x.json"):
        store.replace(f"_tablefeed/consumers/{name}", b"?")

    assert (consumers_of(store).list(), vacuumed(store).file_count) == ((), 5)


def test_what_an_earlier_version_wrote_is_read_and_written_alike() -> None:
    store = a_table()
    written = b'{"format":1,"consumerId":"sums","version":1,"expiresAfterDays":30.0}'
    store.replace(FILE, written)

    consumers_of(store).progress("sums", 1)

    assert store.read(FILE) == written
    (found,) = consumers_of(store).list()
    assert (found.consumer_id, found.version, found.expires_after) == ("sums", 1, timedelta(days=30))
    assert (found.reported_at_ms, found.expires_at_ms) == (NOW_MS, NOW_MS + 30 * DAY_MS)


# --- registering -----------------------------------------------------------------------------------------------------


def test_a_consumer_is_registered_at_the_newest_version_for_thirty_days_unless_it_says_otherwise() -> None:
    store = a_table()

    found = consumers_of(store).register("sums")

    assert (found.version, found.expires_after) == (3, timedelta(days=30))
    assert orjson.loads(store.read(FILE))["version"] == 3


def test_a_registration_replaces_the_one_before_and_resuming_only_goes_back() -> None:
    consumers = consumers_of(a_table())
    consumers.register("sums", version=1, expires_after=timedelta(days=5))

    consumers.resume("sums", 3)
    assert [(c.version, c.expires_after.days) for c in consumers.list()] == [(1, 5)]
    consumers.resume("sums", 0)
    assert [(c.version, c.expires_after.days) for c in consumers.list()] == [(0, 5)]
    consumers.register("sums", version=2)
    assert [(c.version, c.expires_after.days) for c in consumers.list()] == [(2, 30)]


@pytest.mark.parametrize("bad", ["", ".", "..", "_x", "a/b", "a b", "ü", "a" * 129, None, 3])
def test_an_id_that_is_no_name_of_a_file_everywhere_is_refused(bad: Any) -> None:
    consumers = consumers_of(a_table())

    for call in (consumers.register, consumers.remove, consumers.find, lambda i: consumers.progress(i, 1)):
        with pytest.raises(IllegalOptionError, match="consumer_id"):
            call(bad)


@pytest.mark.parametrize("bad", [timedelta(0), timedelta(days=-1), timedelta(days=3651), 30, None])
def test_an_expiry_that_is_none_or_never_ends_is_refused(bad: Any) -> None:
    with pytest.raises(IllegalOptionError, match="expires_after"):
        consumers_of(a_table()).register("sums", expires_after=bad)


def test_a_version_that_does_not_exist_yet_or_was_reported_already_is_refused() -> None:
    consumers = consumers_of(a_table())

    with pytest.raises(IllegalOptionError, match="newest version, 3"):
        consumers.register("sums", version=4)
    with pytest.raises(IllegalOptionError, match="is not registered"):
        consumers.progress("sums", 1)
    consumers.register("sums", version=2)
    with pytest.raises(IllegalOptionError, match="before version 2"):
        consumers.progress("sums", 1)
    with pytest.raises(IllegalOptionError, match="'4'"):
        consumers.progress("sums", 4)
    assert [c.version for c in consumers.list()] == [2]


def test_a_version_after_which_commits_left_the_log_is_refused() -> None:
    log = an_old_log()
    clean_up(log.load(), now_ms=ON_DAY_8)
    fails = FaultyStore(log.store, faults=[Fault(operation="replace")])

    with pytest.raises(LogGapError) as caught:
        Consumers(log_of(fails)).register("sums", version=2)  # nothing is written
    assert (caught.value.expected, caught.value.found) == (3, 4)
    assert Consumers(log).register("sums", version=3).version == 3


def test_a_checkpoint_does_not_stand_for_the_commit_that_a_consumer_has_to_read() -> None:
    log = an_old_log()
    log.store.delete(f"{names.LOG_DIR}/{names.commit_name(4)}")

    with pytest.raises(LogGapError) as caught:
        Consumers(log).register("sums", version=3)
    assert (caught.value.expected, caught.value.found) == (4, 5)


def test_a_table_that_does_not_exist_has_no_consumers_and_gets_none(tmp_path: Path) -> None:
    consumers = tablefeed.consumers(tmp_path / "t")

    assert consumers.list() == ()
    with pytest.raises(TableNotFoundError):
        consumers.register("sums")
    assert not (tmp_path / "t").exists()


# --- what readers report ---------------------------------------------------------------------------------------------


class Seconds:
    """A clock of seconds."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def versions(store: Store) -> dict[str, int]:
    return {each.consumer_id: each.version for each in consumers_of(store).list()}


def test_a_reader_reports_once_an_hour_though_it_finds_nothing_new() -> None:
    clock, store, seconds = StoreClock(MONTH_AGO_MS), MemoryStore(), Seconds()
    store = a_table(clock)
    reports = Reports(consumers_of(store), "sums", clock=seconds)
    reports.reads_after(Version(3))
    for clock.ms, seconds.s, reported_ms in ((NOW_MS + 5, 3599.0, NOW_MS), (NOW_MS + 9, 3600.0, NOW_MS + 9)):
        reports.reads_after(Version(3))
        (found,) = consumers_of(store).list()
        assert found.reported_at_ms == reported_ms


def test_a_reader_that_was_removed_or_overtaken_is_registered_again(caplog: pytest.LogCaptureFixture) -> None:
    store = a_table()
    reports = Reports(consumers_of(store), "sums", clock=Seconds())
    reports.reads_after(Version(0))

    consumers_of(store).remove("sums")
    reports.has_read(Version(1))
    assert versions(store) == {"sums": 1}
    consumers_of(store).progress("sums", 3)
    reports.has_read(Version(2))
    assert versions(store) == {"sums": 2}
    assert caplog.text.count("registered again") == 2


def test_a_report_that_fails_ends_no_reader_but_the_first_does(caplog: pytest.LogCaptureFixture) -> None:
    store = a_table()
    broken = FaultyStore(store, faults=[Fault(operation="replace", at=at) for at in (1, 3)])
    reports = Reports(consumers_of(broken), "sums", clock=Seconds())

    with pytest.raises(tablefeed.TablefeedError, match="on purpose"):
        reports.reads_after(Version(0))
    reports.reads_after(Version(0))
    reports.has_read(Version(1))
    assert ("not reported" in caplog.text, versions(store)) == (True, {"sums": 0})
    reports.has_read(Version(2))
    assert versions(store) == {"sums": 2}
