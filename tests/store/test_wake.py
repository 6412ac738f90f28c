"""A reader is told of what may have changed, misses nothing, and is not told of nothing.

Only the order of events is asserted: each wait has a timeout that is never reached where the rule holds.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from support.clocks import Clock
from tablefeed.store import LocalStore, Store, open_store
from tablefeed.store.inotify import Inotify
from tablefeed.store.memory import MemoryStore
from tablefeed.store.wake import DirectoryWatch, Wake, Watchfiles

LONG_S = 60.0
"""Never waited for."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=[Inotify, Watchfiles])
def local(tmp_path: Path, clock: Clock, request: pytest.FixtureRequest) -> Iterator[LocalStore]:
    """A local store whose silence is believed for as long as its clock stands still."""
    (tmp_path / "log").mkdir()
    start = partial(DirectoryWatch, changes_of=request.param)
    store = LocalStore(str(tmp_path), wake=Wake(clock_s=clock, sleep=clock.sleep, start=start))
    yield store
    store.close()


@pytest.fixture(params=["local", "memory"])
def waking(request: pytest.FixtureRequest, local: LocalStore) -> Store:
    return local if request.param == "local" else MemoryStore()


def test_the_first_answer_is_at_once_that_anything_may_have_changed(waking: Store) -> None:
    assert waking.wait("log", timeout_s=LONG_S)
    assert not waking.wait("log", timeout_s=0)


def test_a_put_wakes_who_waits(waking: Store) -> None:
    waking.wait("log", timeout_s=LONG_S)
    writer = threading.Thread(target=waking.put_if_absent, args=("log/1.json", b"x"))
    writer.start()

    assert waking.wait("log", timeout_s=LONG_S)
    assert waking.exists("log/1.json")
    writer.join()


def test_a_change_between_a_look_and_the_wait_is_not_lost(waking: Store) -> None:
    for turn in range(20):
        while waking.wait("log", timeout_s=0.01):
            pass
        seen = {entry.name for entry in waking.list("log")}
        waking.put_if_absent(f"log/{turn}", b"x")

        while not {entry.name for entry in waking.list("log")} - seen:
            assert waking.wait("log", timeout_s=LONG_S)
        assert f"{turn}" not in seen


def test_a_change_elsewhere_wakes_nobody(waking: Store) -> None:
    waking.put_if_absent("log/_sidecars/0", b"x")
    waking.wait("log", timeout_s=LONG_S)
    waking.put_if_absent("data", b"x")
    waking.put_if_absent("log/_sidecars/1", b"x")

    assert not waking.wait("log", timeout_s=0.05)


def test_reading_wakes_nobody(local: LocalStore) -> None:
    local.put_if_absent("log/1", b"x")
    local.wait("log", timeout_s=LONG_S)
    local.read("log/1")
    list(local.list("log"))

    assert not local.wait("log", timeout_s=0.05)


def test_another_programs_file_and_a_rename_wake(local: LocalStore, tmp_path: Path) -> None:
    while local.wait("log", timeout_s=0.05):
        pass
    (tmp_path / "log" / "1.json").write_bytes(b"x")
    assert local.wait("log", timeout_s=LONG_S)
    while local.wait("log", timeout_s=0.05):
        pass
    (tmp_path / "log" / ".2.tmp").write_bytes(b"x")
    (tmp_path / "log" / ".2.tmp").rename(tmp_path / "log" / "2.json")
    assert local.wait("log", timeout_s=LONG_S)


def test_a_directory_that_does_not_exist_yet_may_always_have_changed(local: LocalStore, clock: Clock) -> None:
    assert [local.wait("later", timeout_s=0) for _ in range(3)] == [True, True, True]
    assert local.wait("later", timeout_s=LONG_S)
    assert clock.now_s == 1.0


def test_a_directory_is_watched_once_it_exists(local: LocalStore) -> None:
    local.wait("later", timeout_s=0)
    local.put_if_absent("later/1", b"x")

    assert local.wait("later", timeout_s=0)
    assert not local.wait("later", timeout_s=0)


def test_a_directory_that_was_removed_and_made_anew_is_watched_again(local: LocalStore, tmp_path: Path) -> None:
    while local.wait("log", timeout_s=0.05):
        pass
    shutil.rmtree(tmp_path / "log")
    assert local.wait("log", timeout_s=LONG_S)
    (tmp_path / "log").mkdir()
    while local.wait("log", timeout_s=0.05):
        pass
    local.put_if_absent("log/1", b"x")

    assert local.wait("log", timeout_s=LONG_S)


def test_silence_is_believed_for_a_second_since_a_mount_may_tell_nothing(local: LocalStore, clock: Clock) -> None:
    local.wait("log", timeout_s=0)
    clock.sleep(0.99)
    assert not local.wait("log", timeout_s=0)
    clock.sleep(0.01)
    assert local.wait("log", timeout_s=0)
    assert not local.wait("log", timeout_s=0)


def test_where_no_watch_can_be_had_anything_may_have_changed(tmp_path: Path, clock: Clock) -> None:
    started: list[str] = []

    def no_watch_left(directory: str) -> DirectoryWatch:
        started.append(directory)
        raise OSError(errno.EMFILE, "too many watches")

    store = LocalStore(str(tmp_path), wake=Wake(clock_s=clock, sleep=clock.sleep, start=no_watch_left))

    assert [store.wait("", timeout_s=0) for _ in range(50)] == [True] * 50
    assert len(started) == 1
    assert store.wait("", timeout_s=0.3)
    assert clock.now_s == pytest.approx(0.3)
    clock.sleep(1)
    store.wait("", timeout_s=0)
    assert len(started) == 2


def test_a_closed_store_leaves_no_thread_and_may_be_asked_again(local: LocalStore) -> None:
    def watching() -> int:
        return sum(thread.name == "tablefeed-watch" for thread in threading.enumerate())

    before = watching()
    local.wait("log", timeout_s=0)
    assert watching() == before + 1
    local.close()
    assert watching() == before
    assert local.wait("log", timeout_s=0)


def test_a_store_that_is_dropped_leaves_no_thread(tmp_path: Path) -> None:
    def ask() -> list[threading.Thread]:
        LocalStore(str(tmp_path)).wait("", timeout_s=0)
        return [thread for thread in threading.enumerate() if thread.name == "tablefeed-watch"]

    for thread in ask():
        thread.join(LONG_S)
        assert not thread.is_alive()


def test_a_store_that_sees_no_changes_sleeps_and_says_so() -> None:
    import fsspec

    from tablefeed.store import FsspecStore

    clock = Clock()
    store = FsspecStore(fsspec.filesystem("memory"), "memory://nothing", sleep=clock.sleep)

    assert not store.wait("log", timeout_s=7.0)
    assert clock.now_s == 7.0


def test_a_fork_that_ends_its_copy_of_a_watch_leaves_its_parents(local: LocalStore) -> None:
    while local.wait("log", timeout_s=0.05):
        pass
    if (child := os.fork()) == 0:
        local.close()
        os._exit(0)
    os.waitpid(child, 0)
    local.put_if_absent("log/1", b"x")

    assert local.wait("log", timeout_s=LONG_S)
    assert not local.wait("log", timeout_s=0.05)


def test_a_directory_that_cannot_be_watched_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    for name in ("file", "absent"):
        with pytest.raises(OSError, match=name):
            Inotify(str(tmp_path / name))


def test_a_watch_that_gets_no_thread_keeps_no_file_open(tmp_path: Path) -> None:
    opened = Inotify(str(tmp_path))
    usual = threading.stack_size(1 << 46)  # more than any thread can get
    try:
        with pytest.raises(RuntimeError, match="thread"):
            DirectoryWatch(str(tmp_path), changes_of=lambda _at: opened)
    finally:
        threading.stack_size(usual)

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened._fd)


def test_a_root_that_was_given_relative_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log").mkdir()
    monkeypatch.chdir(tmp_path)
    store = open_store("log/..")
    while store.wait("log", timeout_s=0.02):
        pass
    (tmp_path / "log" / "1").write_bytes(b"x")

    assert store.wait("log", timeout_s=LONG_S)
    store.close()
