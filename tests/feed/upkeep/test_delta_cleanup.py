"""Which files of a log go by whose properties; that what stays is readable is the model's and the peer's to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.checkpoints import damage
from support.clocks import StoreClock
from support.faulty_store import Fault, FaultyStore
from support.logs import a_log, add, commit_path, info, live_paths, log_of, metadata, protocol, put, remove
from tablefeed.delta.intervals import DAY_MS
from tablefeed.errors import LogError, StoreError, TableReplacedError
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint, write_classic_twin, write_compaction
from tablefeed.feed.upkeep.delta_cleanup import clean_up
from tablefeed.model.actions import Version
from tablefeed.store import open_store
from tablefeed.store.memory import MemoryStore

V2 = {"readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint", "checkpointProtection"]}
THREE_DAYS = {"delta.logRetentionDuration": "3 days"}
V2_TABLE: Mapping[str, Any] = {"configuration": {**THREE_DAYS, "delta.checkpointPolicy": "v2"}, "features": V2}
CLASSIC_TABLE: Mapping[str, Any] = {"configuration": THREE_DAYS}


def an_old_log(
    configuration: Mapping[str, str], *, days: int = 9, features: Mapping[str, list[str]] | None = None
) -> DeltaLog:
    """A commit each day at noon, from day 0 on; checkpoints of versions 2, 4, 6 and so on."""
    clock = StoreClock()
    store = MemoryStore("t", now_ms=clock.now_ms)
    first = [protocol(3, 7, **features) if features else protocol(), metadata(configuration=configuration)]
    log = log_of(store)
    for day in range(days):
        clock.ms = day * DAY_MS + DAY_MS // 2
        put(store, day, [info(inCommitTimestamp=clock.ms), *(first if day == 0 else []), add(f"f{day}")])
        store.put_if_absent(f"_delta_log/{day:020d}.crc", b"{}")
        if day and day % 2 == 0:
            write_checkpoint(log.load(), part_actions=2 if features else None)
    return log


def versions(log: DeltaLog) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for log_file in log.listing():
        found.setdefault(log_file.kind.name, []).append(log_file.version)
    return found


def sidecars(log: DeltaLog) -> list[str]:
    return [entry.name for entry in log.store.list("_delta_log/_sidecars")]


ON_DAY_8 = 8 * DAY_MS + 1


@pytest.mark.parametrize("more", [{}, {"delta.requireCheckpointProtectionBeforeVersion": "4"}], ids=["", "protected"])
def test_what_is_older_than_the_retention_goes_up_to_a_checkpoint_and_all_that_stays_can_be_read(
    more: Mapping[str, str],
) -> None:
    log = an_old_log({**THREE_DAYS, **more})  # versions before 4 may only go all at once, which they do

    # Midnight of day 5, three days before day 8: the commit of day 4 is the newest that is as old.
    assert clean_up(log.load(), now_ms=ON_DAY_8).log_files == 9

    assert versions(log) == {"COMMIT": [4, 5, 6, 7, 8], "CHECKSUM": [4, 5, 6, 7, 8], "CHECKPOINT": [4, 6, 8]}
    assert_all_is_read(log, first=4, last=8)


def test_a_table_keeps_its_log_for_thirty_days_unless_it_says_otherwise() -> None:
    log = an_old_log({})

    assert clean_up(log.load(), now_ms=33 * DAY_MS - 1).log_files == 0
    assert clean_up(log.load(), now_ms=33 * DAY_MS).log_files == 4


@pytest.mark.parametrize(
    "properties",
    [
        {**THREE_DAYS, "delta.enableExpiredLogCleanup": "false"},
        {"delta.logRetentionDuration": "30 days"},
        {"delta.logRetentionDuration": "1 month"},
        {**THREE_DAYS, "delta.requireCheckpointProtectionBeforeVersion": "5"},
    ],
    ids=str,
)
def test_a_table_whose_newest_version_forbids_it_keeps_all(properties: Mapping[str, str]) -> None:
    log = an_old_log(THREE_DAYS)
    before = log.load()
    put(log.store, 9, [metadata(configuration=properties)])

    assert clean_up(before, now_ms=ON_DAY_8).log_files == 0
    assert versions(log)["COMMIT"] == list(range(10))


def test_a_commit_whose_own_timestamp_is_young_is_young_whatever_its_file_says() -> None:
    log = an_old_log({**THREE_DAYS, "delta.enableInCommitTimestamps": "true"})
    assert clean_up(log.load(), now_ms=ON_DAY_8).log_files == 9

    log = an_old_log({**THREE_DAYS, "delta.enableInCommitTimestamps": "true"})
    entry = log.store.read(commit_path(4)).replace(f"{4 * DAY_MS + DAY_MS // 2}".encode(), f"{7 * DAY_MS}".encode())
    clock = StoreClock()
    clock.ms = 4 * DAY_MS + DAY_MS // 2
    copied = MemoryStore("t", now_ms=clock.now_ms)
    for listed in log.store.list("_delta_log"):
        clock.ms = listed.modified_ms
        data = entry if listed.name.endswith("04.json") else log.store.read(f"_delta_log/{listed.name}")
        copied.replace(f"_delta_log/{listed.name}", data)
    assert clean_up(log_of(copied).load(), now_ms=ON_DAY_8).log_files == 0


def test_sidecars_that_no_checkpoint_names_go_when_they_are_a_day_old() -> None:
    log = an_old_log(**V2_TABLE)
    before = sidecars(log)
    log.store.replace("_delta_log/_sidecars/left-by-a-kill.parquet", b"x")  # at noon of day 8

    assert clean_up(log.load(), now_ms=8 * DAY_MS + DAY_MS // 2).log_files == 9

    assert sidecars(log) == [*(name for name in before if int(name[:20]) >= 4), "left-by-a-kill.parquet"]
    assert sum(batch.num_rows for batch in log.load().live_files()) == 9


def test_before_the_log_of_a_table_with_v2_checkpoints_is_cut_the_one_it_begins_with_gets_a_classic_name_too() -> None:
    log = an_old_log(**V2_TABLE)
    by_uuid = [log.segment(Version(version)).checkpoint[0].name for version in (4, 6, 8)]

    clean_up(log.load(), now_ms=ON_DAY_8)

    assert versions(log)["CHECKPOINT"] == [4]
    for name in by_uuid:
        log.store.delete(f"_delta_log/{name}")
    assert log.segment().checkpoint[0].name == f"{4:020d}.checkpoint.parquet"
    assert live_paths(log) == [f"f{n}" for n in range(9)]


# --- what stays is read first ----------------------------------------------------------------------------------------


def checkpoint_of(log: DeltaLog, version: int) -> str:
    return f"_delta_log/{log.segment(Version(version)).checkpoint[0].name}"


def sidecar_of(log: DeltaLog, version: int) -> str:
    listed = log.store.list("_delta_log/_sidecars", start=f"{version:020d}")
    return f"_delta_log/_sidecars/{next(listed).name}"


def cut_in_half(log: DeltaLog, name: str) -> None:
    data = log.store.read(name)
    log.store.replace(name, data[: len(data) // 2])


SPOILS: Mapping[str, tuple[Mapping[str, Any], Callable[[DeltaLog], None]]] = {
    "cut in half": (CLASSIC_TABLE, lambda log: cut_in_half(log, checkpoint_of(log, 4))),
    "empty": (CLASSIC_TABLE, lambda log: log.store.replace(checkpoint_of(log, 4), b"")),
    "pages of a column": (CLASSIC_TABLE, lambda log: spoil_column(log, checkpoint_of(log, 4), "add.size")),
    "of one that is not ours": (CLASSIC_TABLE, lambda log: spoil_column(log, checkpoint_of(log, 4), OTHERS)),
    "top level": (V2_TABLE, lambda log: log.store.replace(checkpoint_of(log, 4), b"{")),
    "no sidecar": (V2_TABLE, lambda log: log.store.delete(sidecar_of(log, 4))),
    "half a sidecar": (V2_TABLE, lambda log: cut_in_half(log, sidecar_of(log, 4))),
    "pages of a sidecar": (V2_TABLE, lambda log: spoil_column(log, sidecar_of(log, 4), "add.path")),
}
OTHERS = "add.clusteringProvider"


@pytest.mark.parametrize(("table", "spoil"), SPOILS.values(), ids=SPOILS)
def test_where_the_checkpoint_that_would_stay_cannot_be_read_whole_the_one_before_it_stays(
    table: Mapping[str, Any], spoil: Callable[[DeltaLog], None], caplog: pytest.LogCaptureFixture
) -> None:
    log = an_old_log(**table)
    spoiled = checkpoint_of(log, 4).rpartition("/")[2]
    spoil(log)

    assert clean_up(log.load(), now_ms=ON_DAY_8).log_files == 4  # two commits, two checksums

    assert versions(log)["COMMIT"] == [2, 3, 4, 5, 6, 7, 8]
    assert_all_is_read(log, first=2, last=8)
    assert spoiled in caplog.text


def spoil_column(log: DeltaLog, name: str, column: str) -> None:
    log.store.replace(name, damage(log.store.read(name), column))


def assert_all_is_read(log: DeltaLog, *, first: int, last: int) -> None:
    for version in range(first, last + 1):
        live = log.load(Version(version)).live_files()
        paths = {path for batch in live for path in batch["log_path"].to_pylist()}
        assert paths == {f"f{n}" for n in range(version + 1)}


def parts_of_version_4(log: DeltaLog) -> list[str]:
    write_checkpoint(log.load(Version(4)), part_actions=3)
    return [f"_delta_log/{4:020d}.checkpoint.{part:010d}.{2:010d}.parquet" for part in (1, 2)]


def in_parts(log: DeltaLog, part: int, spoil: Callable[[DeltaLog, str], None]) -> None:
    log.store.delete(checkpoint_of(log, 4))
    spoil(log, parts_of_version_4(log)[part])


def missing(log: DeltaLog, name: str) -> None:
    log.store.delete(name)


def all_that_are_old_enough(log: DeltaLog) -> None:
    for version in (2, 4):
        cut_in_half(log, f"_delta_log/{version:020d}.checkpoint.parquet")


BROKEN: Mapping[str, tuple[Callable[[DeltaLog], None], int, int]] = {
    "all": (all_that_are_old_enough, 0, 0),
    "first part": (partial(in_parts, part=0, spoil=cut_in_half), 4, 2),
    "no first part": (partial(in_parts, part=0, spoil=missing), 4, 2),
    "last part": (partial(in_parts, part=1, spoil=cut_in_half), 4, 2),
    "no last part": (partial(in_parts, part=1, spoil=missing), 4, 2),
    "one of two of a version": (lambda log: cut_in_half(log, parts_of_version_4(log)[0]), 9, 4),
    "of the newest version": (lambda log: cut_in_half(log, checkpoint_of(log, 8)), 9, 4),
}


@pytest.mark.parametrize(("spoil", "deleted", "first"), BROKEN.values(), ids=BROKEN)
def test_a_checkpoint_stands_in_for_commits_only_when_each_part_can_be_read_and_another_may_do_so(
    spoil: Callable[[DeltaLog], None], deleted: int, first: int
) -> None:
    log = an_old_log(THREE_DAYS)
    spoil(log)

    assert clean_up(log.load(), now_ms=ON_DAY_8).log_files == deleted

    assert_all_is_read(log, first=first, last=8)


def test_a_compaction_stays_while_a_commit_that_it_stands_in_for_cannot_be_read() -> None:
    log = an_old_log(THREE_DAYS, days=12)
    write_compaction(log.load(Version(10)), Version(0))
    for version in (6, 8, 10):
        log.store.delete(checkpoint_of(log, version))
    log.store.replace(commit_path(9), b"no json")
    assert_all_is_read(log, first=11, last=11)

    assert clean_up(log.load(), now_ms=ON_DAY_8).log_files == 0

    assert_all_is_read(log, first=11, last=11)


def while_the_base_is_read(log: DeltaLog, meanwhile: Callable[[], None]) -> Snapshot:
    """The newest snapshot, on a store in which `meanwhile` happens as cleanup opens checkpoint 4 for the last time."""
    last = Fault(operation="open_input", name=checkpoint_of(log, 4), at=4, when="after", hook=meanwhile)
    return log_of(FaultyStore(log.store, faults=[last])).load()


def test_commits_that_change_neither_table_nor_properties_meanwhile_do_not_stop_a_cleanup() -> None:
    log = an_old_log(THREE_DAYS)

    assert clean_up(while_the_base_is_read(log, lambda: put(log.store, 9, [add("f9")])), now_ms=ON_DAY_8).log_files == 9

    assert_all_is_read(log, first=4, last=9)


# --- a table that is another by now ----------------------------------------------------------------------------------


def made_anew(log: DeltaLog, *, last: int) -> None:
    for listed in list(log.store.list("_delta_log")):
        log.store.delete(f"_delta_log/{listed.name}")
    other = metadata(table_id="22222222-2222-2222-2222-222222222222", configuration=THREE_DAYS)
    for version in range(last + 1):
        put(log.store, version, [*([protocol(), other] if version == 0 else []), add(f"f{version}")])


def set_back(log: DeltaLog) -> None:
    for listed in list(log.store.list("_delta_log")):
        if "checkpoint" in listed.name or int(listed.name[:20]) > 7:
            log.store.delete(f"_delta_log/{listed.name}")


def raised(log: DeltaLog) -> None:
    put(log.store, 9, [metadata(configuration={"delta.logRetentionDuration": "30 days"}), add("f9")])


@pytest.mark.parametrize(
    ("meanwhile", "last"),
    [(partial(made_anew, last=3), 3), (partial(made_anew, last=12), 12), (set_back, 7), (raised, 9)],
    ids=["made anew", "made anew with more versions", "set back to a copy", "retention raised"],
)
def test_nothing_goes_of_a_table_that_is_another_once_the_checkpoint_was_read(
    meanwhile: Callable[[DeltaLog], None], last: int
) -> None:
    log = an_old_log(THREE_DAYS)

    assert clean_up(while_the_base_is_read(log, lambda: meanwhile(log)), now_ms=ON_DAY_8).log_files == 0

    assert_all_is_read(log, first=0, last=last)


def test_nothing_goes_of_a_table_that_was_made_anew_before_the_cleanup_began() -> None:
    log = an_old_log(THREE_DAYS)
    before = log.load()
    made_anew(log, last=3)

    assert clean_up(before, now_ms=10**15).log_files == 0

    assert_all_is_read(log, first=0, last=3)


@pytest.mark.parametrize("at", [1, 4])
def test_a_cleanup_does_not_delete_a_file_that_took_the_place_of_the_one_it_listed(at: int) -> None:
    log = an_old_log(THREE_DAYS)
    fault = Fault(operation="delete", at=at, hook=lambda: made_anew(log, last=4), when="after")

    with pytest.raises(LogError, match="was replaced after it was listed"):
        clean_up(log_of(FaultyStore(log.store, faults=[fault])).load(), now_ms=ON_DAY_8)

    assert_all_is_read(log, first=0, last=4)


@pytest.mark.parametrize("at", [1, 4])
def test_a_cleanup_stops_where_a_copy_without_the_checkpoint_was_restored(at: int) -> None:
    log = an_old_log(THREE_DAYS)
    store = log.store
    assert isinstance(store, MemoryStore)
    copy = {name: found for name, found in store._objects.items() if "checkpoint" not in name}

    def restored() -> None:
        store._objects = dict(copy)

    fault = Fault(operation="delete", at=at, hook=restored, when="after")

    with pytest.raises(LogError, match=r"4\.checkpoint\.parquet, which readers would need, is gone"):
        clean_up(log_of(FaultyStore(store, faults=[fault])).load(), now_ms=ON_DAY_8)

    assert_all_is_read(log, first=0, last=8)


def test_a_classic_name_is_not_given_where_a_copy_without_the_checkpoint_was_restored() -> None:
    log = an_old_log(**V2_TABLE)
    (listed,) = [f for f in log.listing() if f.kind.name == "CHECKPOINT_V2" and f.version == 4]

    def restored() -> None:
        log.store.delete(f"_delta_log/{listed.name}")

    faulty = log_of(FaultyStore(log.store, faults=[Fault(operation="publish", hook=restored)]))

    with pytest.raises(TableReplacedError, match="is gone: the table was restored from a copy"):
        write_classic_twin(faulty.load(), (listed,))

    assert versions(log).get("CHECKPOINT") is None


def test_no_sidecar_goes_where_a_checkpoint_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    log = an_old_log(**V2_TABLE)
    before = sidecars(log)
    (kept,) = [f for f in log.listing() if f.kind.name == "CHECKPOINT_V2" and f.version == 6]
    log.store.replace(f"_delta_log/{kept.name}", b"no json")

    clean_up(log.load(), now_ms=8 * DAY_MS + DAY_MS // 2)

    assert sidecars(log) == before
    assert kept.name in caplog.text


@pytest.mark.parametrize("at", range(1, 10))
def test_a_cleanup_that_breaks_off_anywhere_leaves_all_versions_that_are_kept(at: int) -> None:
    log = an_old_log(THREE_DAYS)
    faulty = log_of(FaultyStore(log.store, faults=[Fault(operation="delete", at=at)]))

    with pytest.raises(StoreError, match="on purpose"):
        clean_up(faulty.load(), now_ms=ON_DAY_8)

    assert_all_is_read(log, first=4, last=8)
    assert clean_up(log.load(), now_ms=ON_DAY_8).log_files == 10 - at
    assert versions(log)["COMMIT"] == [4, 5, 6, 7, 8]


def test_a_log_without_an_old_checkpoint_is_left_alone() -> None:
    log = a_log(v0=[protocol(), metadata(configuration=THREE_DAYS)], v1=[add("a")], v2=[remove("a")])

    assert clean_up(log.load(), now_ms=10**15).log_files == 0


HALF_A_CHECKPOINT = ".00000000000000000010.checkpoint.parquet.0123456789abcdef0123456789abcdef.tmp"


@pytest.mark.parametrize("folder", ["_delta_log", "_delta_log/_sidecars"])
def test_what_a_killed_writer_of_checkpoints_left_goes_after_a_day_also_where_no_version_is_old(
    tmp_path: Path, folder: str
) -> None:
    a_log(open_store(str(tmp_path)), v0=[protocol(), metadata()], v1=[add("a")])
    left = tmp_path / folder / HALF_A_CHECKPOINT
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"PAR1")
    snapshot = open_log(str(tmp_path)).load()
    written_ms = left.stat().st_mtime_ns // 1_000_000

    clean_up(snapshot, now_ms=written_ms + DAY_MS)
    assert left.exists()
    clean_up(snapshot, now_ms=written_ms + DAY_MS + 1)

    assert not left.exists()
    assert live_paths(open_log(str(tmp_path))) == ["a"]


def test_a_table_whose_log_is_not_to_be_cleaned_keeps_that_too(tmp_path: Path) -> None:
    kept = {"delta.enableExpiredLogCleanup": "false"}
    a_log(open_store(str(tmp_path)), v0=[protocol(), metadata(configuration=kept)])
    (tmp_path / "_delta_log" / HALF_A_CHECKPOINT).write_bytes(b"PAR1")

    clean_up(open_log(str(tmp_path)).load(), now_ms=10**15)

    assert (tmp_path / "_delta_log" / HALF_A_CHECKPOINT).exists()
