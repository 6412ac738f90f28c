"""What happens behind a commit's back: a checkpoint when it is due, by whoever comes next, and never to its harm."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from support.commits import a_write, commit_files, still
from support.faulty_store import Fault, FaultyStore
from support.logs import Action, a_log, add, live_paths, log_of, metadata, protocol, put, remove
from tablefeed.delta.checkpoint.last_checkpoint import Hint
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.snapshot.sorted_files import SortedFiles
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.upkeep import after_commit as upkeep
from tablefeed.feed.upkeep import background
from tablefeed.feed.upkeep.after_commit import UpkeepOptions, after_commit, is_due, is_worthwhile, look_after
from tablefeed.feed.upkeep.background import wait_until_done, waited_for
from tablefeed.log.segment import LogSegment
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.store import Entry, Store
from tablefeed.store.memory import MemoryStore


@pytest.fixture(autouse=True)
def a_process_that_knows_no_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    wait_until_done()
    for kept in ("_asked", "_cleaned"):
        monkeypatch.setattr(upkeep, kept, OrderedDict())
    yield
    wait_until_done()


def fourteen_commits() -> TableLog:
    log = a_log(v0=[protocol(), metadata()])
    for version in range(1, 14):
        put(log.store, version, [add(f"f{version}")])
    return log


def append(log: TableLog, path: str) -> None:
    commit_files(log, path, around=replace(still(), on_committed=after_commit))


def versions(log: TableLog, kind: LogFileKind) -> list[int]:
    return [log_file.version for log_file in log.listing() if log_file.kind is kind]


def checkpoints(log: TableLog) -> list[int]:
    return [*versions(log, LogFileKind.CHECKPOINT), *versions(log, LogFileKind.CHECKPOINT_V2)]


@pytest.mark.parametrize(
    ("newest", "due", "not_due"),
    [
        (None, [10, 23], [9]),
        (10, [20, 23], [10, 11, 19]),
        (15, [20], []),
        (20, [], [23]),
        (30, [], [23]),
        (31, [], [30]),
    ],
)
def test_a_checkpoint_is_due_at_each_multiple_of_the_interval_and_when_the_newest_lies_one_back(
    newest: int | None, due: list[int], not_due: list[int]
) -> None:
    assert [version for version in (*due, *not_due) if is_due(version, newest, 10)] == due


def a_segment(commits: int, commit_bytes: int) -> LogSegment:
    """`commits` of so many bytes after a checkpoint of 100,000 bytes in two parts."""
    parts = [
        LogFile(version=Version(7), kind=LogFileKind.CHECKPOINT, name=f"part {n}", size_bytes=50_000, modified_ms=0)
        for n in range(2)
    ]
    after = [
        LogFile(version=Version(8 + n), kind=LogFileKind.COMMIT, name="", size_bytes=commit_bytes, modified_ms=0)
        for n in range(commits)
    ]
    return LogSegment(version=after[-1].version, checkpoint=tuple(parts), commits=tuple(after))


@pytest.mark.parametrize(
    ("commits", "commit_bytes", "pays"), [(10, 625, True), (10, 624, False), (99, 1, False), (100, 1, True)]
)
def test_a_checkpoint_pays_when_a_sixteenth_of_its_bytes_or_a_hundred_commits_came_after_it(
    commits: int, commit_bytes: int, *, pays: bool
) -> None:
    assert is_worthwhile(a_segment(commits, commit_bytes), None) is pays


@pytest.mark.parametrize(
    ("version", "size_bytes", "commit_bytes", "pays"),
    [
        (7, 1_000_000, 6_250, True),
        (7, 1_000_000, 6_249, False),
        (7, None, 625, True),
        (7, 10, 624, False),
        (6, 1_000_000, 625, True),
        (8, 1_000_000, 625, True),
    ],
)
def test_the_bytes_of_sidecars_count_where_the_hint_is_of_the_same_checkpoint(
    version: int, size_bytes: int | None, commit_bytes: int, *, pays: bool
) -> None:
    hint = Hint(version=Version(version), size_bytes=size_bytes)

    assert is_worthwhile(a_segment(10, commit_bytes), hint) is pays


def test_no_hint_puts_a_checkpoint_off_beyond_a_hundred_commits() -> None:
    assert is_worthwhile(a_segment(100, 1), Hint(version=Version(7), size_bytes=2**63 - 1))


V2 = {"delta.checkpointPolicy": "v2"}
OF_V2 = protocol(3, 7, readerFeatures=["v2Checkpoint"], writerFeatures=["v2Checkpoint"])


@pytest.mark.parametrize(
    ("setting", "first", "expected"),
    [
        ({}, protocol(), [10, 30]),
        ({"delta.checkpointInterval": "10"}, protocol(), [10, 20, 30, 40]),
        (V2, OF_V2, [10, 30]),
        ({**V2, "delta.checkpointInterval": "10"}, OF_V2, [10, 20, 30, 40]),
    ],
)
def test_a_large_table_gets_a_checkpoint_when_it_pays_unless_the_table_sets_an_interval(
    setting: dict[str, str], first: Action, expected: list[int]
) -> None:
    large, path = 25, "{:040d} of version {}".format
    log = a_log(v0=[first, metadata(configuration=setting), *(add(path(n, 0)) for n in range(3_000))])
    for version in range(1, 41):
        put(log.store, version, [add(path(n, version)) for n in range(3_000 if version == large else 1)])
        if version % 10 == 0:
            look_after(log.load())
            wait_until_done()

    assert checkpoints(log) == expected


@pytest.mark.parametrize(("interval", "expected"), [({}, [10, 20]), ({"delta.checkpointInterval": "9"}, [9, 18])])
def test_25_commits_leave_the_checkpoints_that_the_table_asks_for_and_a_checksum_each(
    interval: dict[str, str], expected: list[int]
) -> None:
    log = a_log(v0=[protocol(), metadata(configuration=interval)])
    for n in range(24):
        append(log, f"f{n}")
        wait_until_done()

    assert checkpoints(log) == expected
    assert versions(log, LogFileKind.CHECKSUM) == list(range(1, 25))
    assert log.segment().checkpoint[0].version == expected[-1]


def test_checksums_of_a_young_table_of_another_writer_begin_behind_our_first_commit() -> None:
    log = a_log(v0=[protocol(), metadata(), add("a", size=7)], v1=[add("b", size=8)], v2=[remove("a")])

    append(log, "ours")
    wait_until_done()
    append(log, "more")

    checksums = versions(log, LogFileKind.CHECKSUM)
    assert checksums == [3, 4]
    told = [json.loads(log.store.read(f"_delta_log/{version:020d}.crc")) for version in checksums]
    assert [(each["numFiles"], each["tableSizeBytes"]) for each in told] == [(2, 18), (3, 28)]


def test_a_long_log_of_another_writer_is_not_read_for_a_checksum() -> None:
    store = FaultyStore(fourteen_commits().store)
    log = log_of(store)
    seen, before = log.load(), len(store.calls)
    around = replace(still(), on_committed=partial(after_commit, options=UpkeepOptions(checkpoint=False)))
    commit(log, seen, a_write(log, seen, "ours"), around)
    wait_until_done()

    assert versions(log, LogFileKind.CHECKSUM) == []
    assert not [c for c in store.calls[before:] if c.operation == "read" and c.name.endswith("0.json")]


@pytest.mark.parametrize(
    ("comes", "checkpoint"), [(lambda log: append(log, "next"), 14), (lambda log: look_after(log.load()), 13)]
)
def test_the_first_commit_or_replay_of_another_process_makes_up_for_a_checkpoint_that_was_never_finished(
    comes: Callable[[TableLog], None], checkpoint: int
) -> None:
    log = fourteen_commits()

    comes(log)
    wait_until_done()

    assert checkpoints(log) == [checkpoint]


def test_where_another_writer_made_the_checkpoint_none_is_made() -> None:
    log = fourteen_commits()
    seen = log.load()
    log.store.replace(f"_delta_log/{15:020d}.checkpoint.parquet", b"theirs")

    look_after(seen)
    wait_until_done()

    assert checkpoints(log) == [15]


def test_a_commit_does_not_wait_for_the_checkpoint_that_it_asks_for() -> None:
    written, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        written.set()
        assert go_on.wait(60)

    inner = MemoryStore("slow")
    log = log_of(FaultyStore(inner, faults=[Fault(operation="publish", hook=hold)]))
    for n in range(11):
        append(log, f"f{n}")
    assert written.wait(60)
    for n in range(11, 25):
        append(log, f"f{n}")
    assert checkpoints(log) == []
    assert log.load().version == 24

    go_on.set()
    wait_until_done()

    assert checkpoints(log) == [10, 20]


def test_what_fails_is_a_warning_and_the_commits_stand(caplog: pytest.LogCaptureFixture) -> None:
    faults = [Fault(operation="publish"), Fault(operation="put_if_absent", name="03.crc")]
    log = log_of(FaultyStore(MemoryStore("frail"), faults=faults))
    for n in range(21):
        append(log, f"f{n}")
        wait_until_done()

    assert len(live_paths(log)) == 21
    assert checkpoints(log) == [20]
    assert "checksum failed table=memory:frail version=3: A fault on purpose" in caplog.text
    assert "upkeep failed table=memory:frail: A fault on purpose" in caplog.text


def test_what_fails_is_not_tried_again_with_each_commit() -> None:
    store = FaultyStore(MemoryStore("full"), faults=[Fault(operation="publish", at=at) for at in range(1, 10)])
    log = log_of(store)
    for n in range(25):
        append(log, f"f{n}")
        wait_until_done()

    assert len([call for call in store.calls if call.operation == "publish"]) == 2


def test_an_error_that_is_not_ours_is_a_warning_too(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    monkeypatch.setattr("tablefeed.feed.upkeep.delta_checkpoint.SortedFiles", partial(SortedFiles, run_bytes=1))
    log = a_log()
    for n in range(12):
        append(log, f"f{n}")
    wait_until_done()

    assert checkpoints(log) == []
    assert "No space left on device" in caplog.text


def test_a_table_made_anew_gets_no_checkpoint_of_the_one_before() -> None:
    log = fourteen_commits()
    before = log.load()
    put(log.store, 13, [add("another, and longer")])

    look_after(before)
    wait_until_done()

    assert checkpoints(log) == []


def test_the_log_is_cleaned_up_after_a_checkpoint_once_a_day() -> None:
    long_ago = MemoryStore("old", now_ms=lambda: 0)
    log = a_log(long_ago, v0=[protocol(), metadata(configuration={"delta.checkpointInterval": "2"})])
    for n in range(7):
        append(log, f"f{n}")
        wait_until_done()

    # At version 2 all before it went; what has become old since waits for another day.
    assert versions(log, LogFileKind.COMMIT) == [2, 3, 4, 5, 6, 7]
    upkeep._cleaned.clear()
    append(log, "another day")
    wait_until_done()
    assert versions(log, LogFileKind.COMMIT) == [8]
    assert len(live_paths(log)) == 8


def test_a_compaction_is_written_where_it_is_asked_for() -> None:
    log = a_log()
    options = UpkeepOptions(compact_every=5)
    for n in range(11):
        commit_files(log, f"f{n}", around=replace(still(), on_committed=partial(after_commit, options=options)))
        wait_until_done()

    found = [log_file for log_file in log.listing() if log_file.kind is LogFileKind.COMPACTION]
    assert [(log_file.version, log_file.last_version) for log_file in found] == [(0, 4), (5, 9)]
    for version in checkpoints(log):
        log.store.delete(f"_delta_log/{version:020d}.checkpoint.parquet")
    assert log.segment().compaction == found[0]
    assert live_paths(log) == sorted(f"f{n}" for n in range(11))


def test_a_program_that_ends_after_its_last_append_has_written_its_checkpoint(tmp_path: Path) -> None:
    appends = "for n in range(25): tablefeed.append(sys.argv[1], pa.table({'id': [n]}))"
    program = f"import sys, pyarrow as pa, tablefeed\n{appends}"

    subprocess.run([sys.executable, "-c", program, str(tmp_path / "table")], check=True, timeout=120)

    log = tmp_path / "table" / "_delta_log"
    assert sorted(log.glob("*.checkpoint.parquet"))[-1].name >= f"{20:020d}.checkpoint.parquet"
    assert len(list(log.glob("*.crc"))) == 25
    assert not [path for path in log.iterdir() if path.name.endswith(".tmp")]
    tablefeed.append(tmp_path / "table", pa.table({"id": [25]}))
    assert tablefeed.open_table(tmp_path / "table").to_arrow().num_rows == 26


# --- who goes first -------------------------------------------------------------------------------------------------


class SeenFromBehind(FaultyStore):
    """Knows what the background has looked at: the newest commit, before all else."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.looked_at: list[str] = []

    def stat(self, name: str) -> Entry | None:
        if threading.current_thread().name == "tablefeed-upkeep":
            self.looked_at.append(name)
        return super().stat(name)


def test_no_step_in_the_background_begins_while_somebody_waits_for_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PATIENCE_S", 60.0)
    store = SeenFromBehind(fourteen_commits().store)
    log = log_of(store)

    with waited_for():
        look_after(log.load())
        for n in range(20):
            append(log, f"meanwhile{n}")
        assert store.looked_at == []
    wait_until_done()

    assert store.looked_at != []
    assert checkpoints(log) == [30]  # what waited is done once, for the newest version that asked


def test_a_write_that_takes_long_keeps_no_checkpoint_from_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PATIENCE_S", 0.0)
    log = fourteen_commits()

    with waited_for():
        look_after(log.load())
        wait_until_done()
        assert checkpoints(log) == [13]


FORKING = """
import os, signal, sys, threading
import pyarrow as pa
import tablefeed
from tablefeed.feed.upkeep import background

for n in range(9):
    tablefeed.append(sys.argv[1], pa.table({"id": [n]}))
held = threading.Event()

def hold():
    with background._WAY.taken(), background._BACKGROUND._lock, background._WAY._lock:
        held.set()
        threading.Event().wait()

background.wait_until_done()
background._BACKGROUND._waiting[("the parent's",)] = lambda: os._exit(7)
threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(50)
    for n in range(3):
        tablefeed.append(sys.argv[1], pa.table({"id": [9 + n]}))
    background.wait_until_done()
    os._exit(0 if background._WAY._free.is_set() else 8)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_process_that_is_forked_while_the_thread_holds_its_locks_does_its_own_work_and_not_its_parents(
    tmp_path: Path,
) -> None:
    run = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING, str(tmp_path / "table")]

    subprocess.run(run, check=True, timeout=60)

    assert list((tmp_path / "table" / "_delta_log").glob("*.checkpoint.parquet"))


class SharedWithAThread(OrderedDict[tuple[str, str], int]):
    """Another thread keeps a table of its own right after each that is kept here."""

    def __setitem__(self, key: tuple[str, str], number: int) -> None:
        super().__setitem__(key, number)
        if key[0] != "another":
            upkeep.keep(self, ("another", f"{key[1]} {number}"), 0)


def test_two_threads_that_keep_their_tables_at_once_do_not_fail() -> None:
    kept = SharedWithAThread()
    for number in range(upkeep.KEPT_TABLES // 2):
        upkeep.keep(kept, ("ours", str(number)), number)
    kept.move_to_end(("ours", "0"), last=False)

    upkeep.keep(kept, ("ours", "0"), 7)

    assert (len(kept), kept["ours", "0"]) == (upkeep.KEPT_TABLES, 7)
