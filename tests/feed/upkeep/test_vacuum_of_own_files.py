"""Vacuum of files that tablefeed keeps below `_tablefeed`: a domain names what versions need, the rest goes by age."""

from __future__ import annotations

import os
import time
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

import tablefeed
from support.clocks import StoreClock
from support.faulty_store import Fault, FaultyStore
from support.logs import LONG_ID, Action, info, log_of, metadata, protocol, put
from tablefeed.delta.intervals import DAY_MS
from tablefeed.errors import LogError
from tablefeed.feed.rows.state import DOMAIN, STATE_DIR
from tablefeed.feed.snapshot.open_log import open_maintained
from tablefeed.feed.upkeep.consumers import Consumers
from tablefeed.feed.upkeep.delta_checkpoint import write_checkpoint
from tablefeed.feed.upkeep.vacuum import Vacuumed, vacuumed
from tablefeed.store import Store
from tablefeed.store.memory import MemoryStore

NOW_MS = 1_800_000_000_000
WITH_DOMAINS = protocol(1, 7, writerFeatures=["domainMetadata"])


def state(*names: str) -> Action:
    """The action that names these files of the ordering state."""
    files = [{"path": f"{STATE_DIR}/{name}", "rows": 1} for name in names]
    found: dict[str, object] = {"how": {}, "files": files, "truncatedAt": None}
    return {"domainMetadata": {"domain": DOMAIN, "configuration": orjson.dumps(found).decode(), "removed": False}}


def a_table(store: MemoryStore, *names: str) -> None:
    put(store, 0, [WITH_DOMAINS, metadata(LONG_ID)])
    for name in names:
        store.replace(f"{STATE_DIR}/{name}", b"state")


def vacuum(store: Store) -> Vacuumed:
    return vacuumed(log_of(store), retention_ms=None, allow_short=False, dry_run=False, now_ms=NOW_MS)


def gone(outcome: Vacuumed) -> list[str]:
    return sorted(path.removeprefix(f"{STATE_DIR}/") for path in outcome.paths.to_pylist())


def test_a_file_of_the_state_goes_when_no_version_within_the_retention_names_it_and_an_orphan_by_its_age() -> None:
    clock = StoreClock(NOW_MS - 30 * DAY_MS)
    store = MemoryStore("orders", now_ms=clock.now_ms)
    a_table(store, "1", "2", "3", "4", "orphan")
    put(store, 1, [state("1")])
    put(store, 2, [state("2", "3")])  # holds at the begin of the retention
    clock.ms = NOW_MS - DAY_MS
    put(store, 3, [state("4")])
    a_table(store, "young-orphan")
    put(store, 4, [state("young")])
    store.replace(f"{STATE_DIR}/young", b"state")

    assert gone(vacuum(store)) == ["1", "orphan"]
    assert sorted(entry.name for entry in store.list(STATE_DIR)) == ["2", "3", "4", "young", "young-orphan"]


@pytest.mark.parametrize("first", [0, 2, 3])
def test_the_state_that_holds_at_the_begin_of_the_retention_may_be_known_from_a_checkpoint_alone(first: int) -> None:
    clock = StoreClock(NOW_MS - 30 * DAY_MS)
    store = MemoryStore("orders", now_ms=clock.now_ms)
    a_table(store, "1", "2", "3")
    put(store, 1, [state("1")])
    put(store, 2, [state("2")])
    clock.ms = NOW_MS - DAY_MS
    put(store, 3, [info()])
    for version in (2, 3):
        write_checkpoint(log_of(store).load(version))  # type: ignore[arg-type]  # a version
    put(store, 4, [state("3")])
    for version in range(first):
        store.delete(f"_delta_log/{version:020d}.json")

    assert gone(vacuum(store)) == ["1"]


@pytest.mark.parametrize("folder", ["_delta_log", STATE_DIR], ids=["before the listing", "while folders are listed"])
def test_the_state_at_the_version_of_a_consumer_stays_though_no_later_commit_names_it(folder: str) -> None:
    clock = StoreClock(NOW_MS - 30 * DAY_MS)
    store = MemoryStore("orders", now_ms=clock.now_ms)
    a_table(store, "1", "2", "3", "4", "orphan")
    put(store, 1, [state("1")])
    put(store, 2, [state("2")])
    put(store, 3, [info()])
    put(store, 4, [state("3")])
    put(store, 5, [state("4")])
    clock.ms = NOW_MS

    def comes() -> None:
        Consumers(log_of(store)).register("copy", version=3)

    faults = [Fault(operation="list", name=folder, when="after", hook=comes)]
    assert gone(vacuum(FaultyStore(store, faults=faults))) == ["1", "orphan"]


def test_the_state_of_a_batch_that_is_committed_while_folders_are_listed_stays() -> None:
    clock = StoreClock(NOW_MS - 30 * DAY_MS)
    store = MemoryStore("orders", now_ms=clock.now_ms)
    a_table(store, "slow", "orphan")
    commits = Fault(operation="list", name=STATE_DIR, when="after", hook=lambda: put(store, 1, [state("slow")]))

    assert gone(vacuum(FaultyStore(store, faults=[commits]))) == ["orphan"]


def test_files_of_other_kinds_go_by_age_and_those_of_consumers_never() -> None:
    clock = StoreClock(NOW_MS - 30 * DAY_MS)
    store = MemoryStore("orders", now_ms=clock.now_ms)
    a_table(store)
    for name in ("events/q/0/part-1", "consumers/README"):
        store.replace(f"_tablefeed/{name}", b"rows")
    clock.ms = NOW_MS - DAY_MS
    store.replace("_tablefeed/events/q/1/part-1", b"rows")

    assert gone(vacuum(store)) == ["_tablefeed/events/q/0/part-1"]


def test_where_the_log_does_not_say_which_files_are_of_the_state_nothing_is_deleted() -> None:
    clock = StoreClock(NOW_MS - 30 * DAY_MS)
    store = MemoryStore("orders", now_ms=clock.now_ms)
    a_table(store, "1")
    put(store, 1, [{"domainMetadata": {"domain": DOMAIN, "configuration": "?", "removed": False}}])
    store.replace("orphan", b"rows")

    with pytest.raises(LogError, match="does not say where"):
        vacuum(store)
    assert (store.exists("orphan"), store.exists(f"{STATE_DIR}/1")) == (True, True)


def test_after_a_vacuum_of_old_state_an_older_event_is_still_late(tmp_path: Path) -> None:
    empty = pa.schema([("id", pa.int64()), ("ts", pa.int64())]).empty_table()
    tablefeed.append(tmp_path, empty, properties={"delta.feature.domainMetadata": "supported"})

    def apply(op: str, *ids: int, ts: int) -> None:
        events = pa.table({"id": list(ids), "ts": [ts] * len(ids), "op": [op] * len(ids)})
        how = {"keys": "id", "sequence_by": "ts", "apply_as_deletes": "op = 'd'", "except_column_list": ["op"]}
        tablefeed.apply_changes(tmp_path, events, **how)  # type: ignore[arg-type]  # each is of its own type

    for number in range(12):
        apply("d", number, ts=10)
    written = len(list((tmp_path / STATE_DIR).glob("*")))
    for path in (tmp_path / STATE_DIR).glob("*"):
        os.utime(path, (time.time() - 30 * 86_400,) * 2)
    log, now_ms = open_maintained(str(tmp_path)), int(time.time() * 1000)

    kept = vacuumed(log, retention_ms=None, allow_short=False, dry_run=False, now_ms=now_ms)
    then = vacuumed(log, retention_ms=None, allow_short=False, dry_run=False, now_ms=now_ms + 8 * DAY_MS)

    assert (kept.file_count, then.file_count > 0) == (0, True)
    assert len(list((tmp_path / STATE_DIR).glob("*"))) == written - then.file_count
    apply("u", *range(12), ts=9)
    assert tablefeed.open_table(tmp_path).to_arrow().num_rows == 0
