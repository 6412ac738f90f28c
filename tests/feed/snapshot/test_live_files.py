"""The live files of a version come once each, whatever turns out damaged while they are read."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.checkpoints import (
    classic_name,
    damage,
    in_parquet,
    of_version,
    part_name,
    put_checkpoint,
    sidecar,
    uuid_name,
)
from support.faulty_store import Fault, FaultyStore
from support.logs import (
    VECTOR,
    Action,
    a_log,
    add,
    commit_path,
    info,
    json_lines,
    live_paths,
    log_of,
    metadata,
    protocol,
    put,
    remove,
    txn,
)
from tablefeed.delta.checkpoint import parquet as checkpoint_parquet
from tablefeed.errors import CorruptLogError
from tablefeed.feed.snapshot import segment_reader
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.upkeep.delta_checkpoint import write_compaction
from tablefeed.model.actions import Version
from tablefeed.store import Entry, Store
from tablefeed.store.memory import MemoryStore

FILES = [f"f{number:02}" for number in range(30)]


def a_long_log(store: Store | None = None) -> TableLog:
    """Version 1 adds all files, 2 removes the last and adds it again, 3 adds one and removes the first."""
    return a_log(
        store,
        v0=[protocol(), metadata()],
        v1=[add(path) for path in FILES],
        v2=[remove(FILES[-1]), add(FILES[-1], size=20)],
        v3=[add("late"), remove(FILES[0])],
    )


LIVE = sorted([*FILES[1:], "late"])


def state(*files: str) -> list[Action]:
    return [protocol(), metadata(), *(add(path) for path in files)]


def put_damaged(log: TableLog, name: str, actions: list[Action], *, row_groups: int, broken: int) -> None:
    """A Parquet checkpoint in some row groups, of which one cannot be read."""
    data = in_parquet(actions, row_group_size=-(-len(actions) // row_groups))
    log.store.replace(f"_delta_log/{name}", damage(data, "add.path", row_group=broken))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_parquet, "_BATCH_ROWS", 8)


def sizes(snapshot: Snapshot) -> list[int]:
    return [batch.num_rows for batch in snapshot.live_files()]


class WholeSeconds(FaultyStore):
    """Lists times in milliseconds and gives one object's in seconds, as servers that speak S3 do."""

    def stat(self, name: str) -> Entry | None:
        entry = super().stat(name)
        return entry and replace(entry, modified_ms=entry.modified_ms // 1000 * 1000)


def test_a_checkpoint_that_breaks_off_is_the_same_file_in_a_store_that_gives_its_time_in_seconds() -> None:
    log = a_long_log(WholeSeconds(MemoryStore("orders", now_ms=lambda: 1_700_000_000_123)))
    put_damaged(log, classic_name(2), state(*FILES), row_groups=4, broken=3)

    assert live_paths(log) == LIVE


def test_what_is_handed_out_is_handed_out_before_the_damage_is_known() -> None:
    log = a_long_log()
    put_damaged(log, classic_name(2), state(*FILES), row_groups=4, broken=3)

    files = log.load().live_files()

    assert [next(files)["key"].to_pylist() for _ in range(2)] == [["late"], FILES[1:6]]
    assert sorted(path for batch in files for path in batch["key"].to_pylist()) == FILES[6:]


@pytest.mark.parametrize("broken", [1, 2, 3])
def test_a_part_or_a_sidecar_that_breaks_off_is_passed_over_for_an_earlier_checkpoint(broken: int) -> None:
    in_parts, in_sidecars = a_long_log(), a_long_log()
    thirds = [FILES[:10], FILES[10:20], FILES[20:]]
    for number, third in enumerate(thirds, 1):
        actions = [*(state() if number == 1 else []), *(add(path) for path in third)]
        data = in_parquet(actions)
        data = damage(data, "add.size") if number == broken else data
        in_parts.store.replace(f"_delta_log/{part_name(2, number, of=3)}", data)
        in_sidecars.store.replace(
            f"_delta_log/_sidecars/{number}.parquet", data if number > 1 else in_parquet([add("x")])
        )
    for log in (in_parts, in_sidecars):
        put_checkpoint(log.store, classic_name(1), state(*FILES))
        log.store.delete(commit_path(0))
        log.store.delete(commit_path(1))
    put_checkpoint(
        in_sidecars.store,
        uuid_name(2, "parquet"),
        [protocol(), metadata(), of_version(2), *(sidecar(f"{n}.parquet") for n in (2, 3, 4))],
    )

    assert live_paths(in_parts) == LIVE
    assert live_paths(in_sidecars) == LIVE  # the fourth is missing


def test_where_no_other_way_leads_to_the_version_the_damaged_file_is_the_error() -> None:
    log = a_long_log()
    put_damaged(log, classic_name(2), state(*FILES), row_groups=4, broken=3)
    log.store.delete(commit_path(0))

    files = log.load().live_files()

    with pytest.raises(CorruptLogError, match=classic_name(2)):
        list(files)


def test_another_way_that_lacks_a_file_that_was_handed_out_is_no_way() -> None:
    log = a_long_log()
    put_damaged(log, classic_name(2), state(*FILES, "only here"), row_groups=4, broken=3)
    put_damaged(log, uuid_name(2, "parquet"), [of_version(2), *state("not there", *FILES)], row_groups=4, broken=3)

    with pytest.raises(CorruptLogError, match=uuid_name(2, "parquet")):
        live_paths(log)


def test_a_checkpoint_that_was_replaced_under_its_reader_is_not_asked_what_it_gave() -> None:
    log = a_long_log()
    put_damaged(log, classic_name(2), state(*FILES), row_groups=4, broken=3)
    files = log.load().live_files()
    next(files)

    put_damaged(log, classic_name(2), state(*FILES[::-1], "more"), row_groups=4, broken=3)

    with pytest.raises(CorruptLogError, match=classic_name(2)):
        list(files)


def test_what_was_handed_out_is_known_however_it_is_cut_when_it_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_long_log()
    put_damaged(log, classic_name(2), state(*FILES), row_groups=4, broken=3)
    files = log.load().live_files()
    given = next(files)["key"].to_pylist()

    monkeypatch.setattr(checkpoint_parquet, "_BATCH_ROWS", 3)

    assert sorted(given + [path for batch in files for path in batch["key"].to_pylist()]) == LIVE


def test_a_commit_that_goes_bad_between_facts_and_files_is_an_error() -> None:
    log = a_long_log()
    snapshot = log.load()

    put(log.store, 1, [{"add": {}}])

    with pytest.raises(CorruptLogError, match=f"{1:020d}.json, line 1"):
        list(snapshot.live_files())


def test_nothing_is_read_twice_where_nothing_is_damaged() -> None:
    store = FaultyStore(a_long_log().store)
    put_checkpoint(store, classic_name(2), state(*FILES))
    snapshot = log_of(store).load()
    since = len(store.calls)

    assert sum(sizes(snapshot)) == len(LIVE)
    asked = [f"{call.operation} {call.name.removeprefix('_delta_log/')}" for call in store.calls[since:]]
    assert asked == ["read _last_checkpoint", "list _delta_log", f"read {3:020d}.json"] + 2 * [
        f"open_input {classic_name(2)}"  # the first for its sidecars: it has none
    ]


@settings(max_examples=30)
@given(
    orders=st.lists(st.permutations(FILES), min_size=1, max_size=3),
    broken=st.lists(st.integers(0, 5), min_size=3, max_size=3),
)
def test_however_checkpoints_break_off_each_live_file_comes_once(orders: list[list[str]], broken: list[int]) -> None:
    log = a_long_log()
    for number, (order, at) in enumerate(zip(orders, broken, strict=False)):
        name = uuid_name(2, "parquet", uuid=f"{number}" * 8 + "-7026-4e79-81be-64bd76c43a11")
        put_damaged(log, name, [of_version(2), *state(*order)], row_groups=6, broken=at)

    assert live_paths(log) == LIVE


def test_commits_that_were_cleaned_up_since_the_facts_were_read_are_found_in_the_checkpoint_made_of_them() -> None:
    log = a_long_log()
    files = log.load().live_files()
    put_checkpoint(log.store, classic_name(3), state(*LIVE))
    for version in range(3):
        log.store.delete(commit_path(version))

    assert sorted(path for batch in files for path in batch["key"].to_pylist()) == LIVE


# --- the tail is read once -------------------------------------------------------------------------------------------


def commits_read(store: FaultyStore) -> list[str]:
    return [call.name for call in store.calls if call.operation == "read" and call.name.endswith(".json")]


def test_facts_and_files_of_one_snapshot_cost_one_read_of_each_commit_and_one_listing() -> None:
    store = FaultyStore(a_long_log().store)

    snapshot = log_of(store).load_for_files()

    assert sorted(path for batch in snapshot.live_files() for path in batch["key"].to_pylist()) == LIVE
    assert commits_read(store) == [commit_path(version) for version in range(4)]
    assert [call.operation for call in store.calls].count("list") == 1
    assert sizes(snapshot) == sizes(snapshot) == [len(LIVE)]


def test_a_tail_that_is_too_large_to_be_kept_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_reader, "KEPT_TAIL_BYTES", 100)
    store = FaultyStore(a_long_log().store)

    snapshot = log_of(store).load_for_files()

    assert snapshot.reading is not None
    assert snapshot.reading.tail is None
    assert sum(sizes(snapshot)) == len(LIVE)
    assert len(commits_read(store)) == 8


@pytest.mark.parametrize("kept_bytes", [1 << 20, 0])
@pytest.mark.parametrize("turn_bytes", [1 << 20, 1])
def test_the_last_word_on_a_file_and_a_fact_counts_however_the_tail_is_cut(
    monkeypatch: pytest.MonkeyPatch, kept_bytes: int, turn_bytes: int
) -> None:
    monkeypatch.setattr(segment_reader, "KEPT_TAIL_BYTES", kept_bytes)
    monkeypatch.setattr(segment_reader, "_TURN_BYTES", turn_bytes)
    log = a_long_log()
    put(log.store, 4, [{"txn": {"appId": "q", "version": 1}}, add("late", size=7), remove(FILES[1])])
    put(log.store, 5, [{"txn": {"appId": "q", "version": 2}}, add(FILES[0], size=8)])

    snapshot = log.load_for_files()

    assert snapshot.facts.txns["q"].txn_version == 2
    live = [row for batch in snapshot.live_files() for row in batch.select(["key", "size_bytes"]).to_pylist()]
    changed = {FILES[0]: 8, FILES[-1]: 20, "late": 7}
    assert sorted((row["key"], row["size_bytes"]) for row in live) == sorted(
        {**dict.fromkeys([FILES[0], *FILES[2:]], 10), **changed}.items()
    )


def test_facts_are_the_same_whether_files_are_asked_for_or_not() -> None:
    log = a_long_log()
    put_checkpoint(log.store, classic_name(2), [*state(*FILES), {"txn": {"appId": "q", "version": 1}}])
    put(log.store, 4, [info(inCommitTimestamp=7), {"txn": {"appId": "r", "version": 2}}])

    assert log.load().facts == log.load_for_files().facts
    assert log.load().facts.in_commit_timestamp_ms == 7


def test_a_bad_file_action_is_an_error_where_files_are_asked_for_and_names_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = a_long_log()
    put(log.store, 4, [add("good"), {"add": {"path": "bad"}}])
    told = r"4\.json, line 2: add\.partitionValues is missing"

    with pytest.raises(CorruptLogError, match=told):
        log.load_for_files()
    monkeypatch.setattr(segment_reader, "KEPT_TAIL_BYTES", 100)
    for snapshot in (log.load(), log.load_for_files()):
        with pytest.raises(CorruptLogError, match=told):
            list(snapshot.live_files())


@pytest.mark.parametrize(
    "two",
    [
        [txn("q", 2), txn("q", 1)],
        [{"domainMetadata": {"domain": "d", "configuration": x, "removed": x == "y"}} for x in "xy"],
        [protocol(), protocol()],
        [metadata()],
    ],
)
def test_a_checkpoint_that_says_two_things_of_one_key_is_passed_over_for_the_commits(
    two: list[Action], caplog: pytest.LogCaptureFixture
) -> None:
    log = a_log(v0=[protocol(), metadata(), txn("q", 2)], v1=[add("a")])
    put_checkpoint(log.store, part_name(1, 1, of=2), [protocol(), metadata(), add("a"), *two[:1]])
    put_checkpoint(log.store, part_name(1, 2, of=2), [*two[1:], add("b")])

    for snapshot in (log.load(), log.load_for_files()):
        assert snapshot.facts.txns["q"].txn_version == 2
        assert snapshot.facts.domains == {}
        assert [path for batch in snapshot.live_files() for path in batch["key"].to_pylist()] == ["a"]
    assert f"passed over {part_name(1, 1, of=2)}, {part_name(1, 2, of=2)}" in caplog.text

    for version in (0, 1):
        log.store.delete(commit_path(version))
    with pytest.raises(CorruptLogError, match="checkpoint"):
        log.load()


def test_a_checkpoint_may_say_one_thing_of_a_key_twice() -> None:
    log = a_log(v0=[protocol(), metadata()], v1=[txn("q", 2)])
    put_checkpoint(log.store, classic_name(1), [protocol(), metadata(), txn("q", 2), {"txn": {**txn("q", 2)["txn"]}}])
    log.store.delete(commit_path(0))

    assert log.load().facts.txns["q"].txn_version == 2


# --- compactions -----------------------------------------------------------------------------------------------------

COMPACTED = f"_delta_log/{0:020d}.{2:020d}.compacted.json"


def compacted(*more: Action) -> bytes:
    adds = (add(path, data_change=False) for path in FILES)
    return json_lines(protocol(), metadata(), *adds, remove("gone"), *more)


def test_a_compaction_is_read_in_place_of_its_commits_for_facts_and_files() -> None:
    store = FaultyStore(a_long_log().store)
    store.replace(COMPACTED, compacted({"txn": {"appId": "q", "version": 3}}))
    put(store, 3, [info(inCommitTimestamp=9), add("late"), remove(FILES[0])])

    snapshot = log_of(store).load_for_files()

    assert sorted(path for batch in snapshot.live_files() for path in batch["key"].to_pylist()) == LIVE
    assert commits_read(store) == [COMPACTED, commit_path(3)]
    assert snapshot.facts.txns["q"].txn_version == 3
    assert snapshot.facts.in_commit_timestamp_ms == 9


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        compacted()[:-9],
        compacted(metadata()),
        compacted({"add": {"path": "x"}}),
        *(b"".join(compacted().splitlines(keepends=True)[n:]) for n in (1, 2)),
    ],
)
def test_a_damaged_compaction_is_passed_over_for_its_commits(content: bytes) -> None:
    log = a_long_log()
    log.store.replace(COMPACTED, content)

    assert live_paths(log) == LIVE
    snapshot = log.load_for_files()
    assert snapshot.unreadable == {COMPACTED.removeprefix("_delta_log/")}
    assert sum(sizes(snapshot)) == len(LIVE)


def put_compaction(log: TableLog, actions: list[Action]) -> str:
    """Puts what another writer made of versions 0 and 1; gives its name."""
    name = f"{0:020d}.{1:020d}.compacted.json"
    log.store.replace(f"_delta_log/{name}", json_lines(*actions))
    return name


VECTOR_2 = {**VECTOR, "offset": 50}
DOMAIN = {"domain": "d", "configuration": "{}", "removed": False}


@pytest.mark.parametrize(
    "twice",
    [
        [remove("a"), add("a")],
        [add("a"), remove("a")],
        [add("a"), add("a")],
        [add("x y"), remove("x%20y")],
        [add("a"), add("a", deletionVector=VECTOR)],
        [remove("a", deletionVector=VECTOR), add("a", deletionVector=VECTOR)],
        [{"domainMetadata": {**DOMAIN, "removed": True}}, {"domainMetadata": DOMAIN}],
        [metadata()],
        [protocol()],
    ],
)
def test_a_compaction_that_names_a_key_twice_is_left_out_with_a_warning_and_its_commits_are_read(
    twice: list[Action], caplog: pytest.LogCaptureFixture
) -> None:
    log = a_log(
        v0=[protocol(), metadata(), add("a"), add("x%20y")],
        v1=[remove("a"), remove("x%20y"), add("b")],
        v2=[add("c")],
    )
    name = put_compaction(log, [protocol(), metadata(), add("b"), *twice])

    for snapshot in (log.load(), log.load_for_files()):
        assert sorted(path for batch in snapshot.live_files() for path in batch["key"].to_pylist()) == ["b", "c"]
        assert snapshot.facts.domains == {}
    assert f"passed over {name}" in caplog.text


@pytest.mark.parametrize("twice", [[txn("q", 2), txn("q", 1)], [txn("q", 2), txn("q", 2)]])
def test_a_compaction_that_names_an_application_twice_says_nothing_of_it(twice: list[Action]) -> None:
    log = a_log(v0=[protocol(), metadata(), txn("q", 1)], v1=[txn("q", 3)], v2=[add("c")])
    put_compaction(log, [protocol(), metadata(), *twice])

    assert [log.load().facts.txns["q"].txn_version, log.load_for_files().facts.txns["q"].txn_version] == [3, 3]


def test_a_compaction_may_add_a_file_with_one_deletion_vector_and_remove_it_with_another() -> None:
    log = a_log(
        v0=[protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"]), metadata()],
        v1=[add("a")],
        v2=[remove("a"), add("a", deletionVector=VECTOR)],
        v3=[remove("a", deletionVector=VECTOR), add("a", deletionVector=VECTOR_2)],
        v4=[add("b")],
    )
    write_compaction(log.load(Version(3)), Version(0))

    snapshot = log.load_for_files()

    assert snapshot.unreadable == frozenset()
    live = [row for batch in snapshot.live_files() for row in batch.to_pylist()]
    assert [(row["log_path"], (row["deletion_vector"] or {}).get("offset")) for row in live] == [("b", None), ("a", 50)]


def test_a_compaction_that_names_a_key_twice_is_refused_by_name_where_its_commits_cannot_be_read() -> None:
    log = a_log(v0=[protocol(), metadata(), add("a")], v1=[remove("a")], v2=[add("b")])
    name = put_compaction(log, [protocol(), metadata(), remove("a"), add("a")])
    log.store.replace(commit_path(1), b"{")

    with pytest.raises(CorruptLogError, match=rf"{name}: .*several actions"):
        live_paths(log)


def test_a_compaction_that_goes_bad_between_facts_and_files_is_passed_over_too() -> None:
    log = a_long_log()
    log.store.replace(COMPACTED, compacted())
    snapshot = log.load()

    log.store.replace(COMPACTED, b"{")

    assert sum(sizes(snapshot)) == len(LIVE)


def test_a_commit_that_a_compaction_covers_need_not_be_readable() -> None:
    log = a_long_log()
    log.store.replace(COMPACTED, compacted())
    log.store.replace(commit_path(1), b"{")

    assert live_paths(log) == LIVE


# --- checksums -------------------------------------------------------------------------------------------------------


def put_checksum(log: TableLog, version: int, **values: object) -> None:
    fields = {
        "tableSizeBytes": 10 * len(LIVE) + 10,
        "numFiles": len(LIVE),
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": metadata()["metaData"],
        "protocol": protocol()["protocol"],
        **values,
    }
    log.store.replace(f"_delta_log/{version:020d}.crc", json.dumps(fields).encode())


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"numFiles": 5}, "numFiles is 5, the log has 30 live files"),
        ({"tableSizeBytes": 7}, "tableSizeBytes is 7, the log's live files have 310 bytes"),
        ({"metadata": metadata(table_id="other")["metaData"]}, "metadata is not the log's"),
    ],
)
def test_a_checksum_that_differs_from_the_log_is_told_and_changes_nothing(
    caplog: pytest.LogCaptureFixture, wrong: dict[str, object], told: str
) -> None:
    log = a_long_log()
    put_checksum(log, 3, **wrong)

    assert live_paths(log) == LIVE
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, f"checksum differs from log table=memory:orders version=3: {told}")
    ]


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", None])
def test_a_checksum_that_fits_or_is_none_or_of_another_version_says_nothing(
    caplog: pytest.LogCaptureFixture, content: bytes | None
) -> None:
    log = a_long_log()
    put_checksum(log, 2, numFiles=99)
    put_checksum(log, 3)
    if content is not None:
        log.store.replace(f"_delta_log/{3:020d}.crc", content)

    assert live_paths(log) == LIVE
    assert caplog.records == []


def test_a_checksum_that_cannot_be_read_stops_nobody() -> None:
    log = a_long_log()
    put_checksum(log, 3)
    broken = FaultyStore(log.store, faults=[Fault(operation="read", name=".crc")])

    assert live_paths(log_of(broken)) == LIVE
    assert [call.name for call in broken.calls if call.name.endswith(".crc")] == [f"_delta_log/{3:020d}.crc"]


def test_the_checksums_of_other_writers_say_what_their_logs_say(corpus: Path, caplog: pytest.LogCaptureFixture) -> None:
    checked = 0
    for table in _WITH_CHECKSUMS:
        for file in sorted((corpus / "delta" / table / "_delta_log").glob("0*.crc")):
            snapshot = open_log(str(corpus / "delta" / table)).load(Version(int(file.name[:20])))
            for _ in snapshot.live_files():
                pass
            checked += 1

    assert [record.getMessage() for record in caplog.records] == []
    assert checked > 60


_WITH_CHECKSUMS = (
    "deltars/cdf-table-with-cdc-and-dvs",
    "deltars/table_with_deletion_logs",
    "kernelrs-data-tar/v2-checkpoints-parquet-with-sidecars",
    "kernelrs-data/v1-multi-part-struct-stats-only",
    "kernelrs-data/v2-parquet-sidecars-struct-stats-only",
)


def test_files_that_are_not_read_to_their_end_are_not_checked() -> None:
    log = a_long_log()
    put_checksum(log, 3, numFiles=99)
    store = FaultyStore(log.store)

    next(log_of(store).load().live_files())

    assert not any(call.name.endswith(".crc") for call in store.calls)
