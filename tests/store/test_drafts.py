"""A put that lost its name to another writer, and the next one of the same bytes."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablefeed.errors import LogError
from tablefeed.store import Draft, LocalStore, Within
from tablefeed.store.durable import Disk


class Overtaken(Disk):
    """Another writer takes each name in `lost` right before the link. Notes how often something became durable."""

    def __init__(self, *lost: str) -> None:
        self.lost, self.syncs = lost, 0

    def sync(self, fd: int) -> None:
        self.syncs += 1
        super().sync(fd)

    def link(self, source: str, target: str, *, folder: int) -> None:
        if target in self.lost:
            Path(f"/proc/self/fd/{folder}", target).write_bytes(b"theirs")
        super().link(source, target, folder=folder)


def a_log(root: Path, *lost: str) -> tuple[LocalStore, Overtaken]:
    (root / "log").mkdir()
    disk = Overtaken(*lost)
    return LocalStore(str(root), disk=disk), disk


def files(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((root / "log").iterdir())}


def test_bytes_that_lose_names_are_made_durable_once_and_their_last_name_too(tmp_path: Path) -> None:
    store, disk = a_log(tmp_path, "1", "2")
    within = Within(directory="log", draft=Draft())

    won = [store.put_if_absent(f"log/{name}", b"ours", within=within) for name in "123"]

    assert (won, disk.syncs) == ([False, False, True], 2)
    assert files(tmp_path) == {"1": b"theirs", "2": b"theirs", "3": b"ours"}


def test_pieces_that_lose_a_name_are_written_once_and_other_pieces_are_written_anew(tmp_path: Path) -> None:
    class Pieces:
        size_bytes = 4

        def __iter__(self) -> Iterator[bytes]:
            yield from (b"ou", b"rs")

    store, disk = a_log(tmp_path, "1", "2")
    within, ours = Within(directory="log", draft=Draft()), Pieces()

    lost = [store.put_if_absent(f"log/{name}", ours, within=within) for name in "12"]
    syncs = disk.syncs
    won = store.put_if_absent("log/3", Pieces(), within=within)

    assert (lost, syncs, won, disk.syncs) == ([False, False], 1, True, 3)
    assert files(tmp_path) == {"1": b"theirs", "2": b"theirs", "3": b"ours"}


def test_a_file_that_gets_its_name_late_has_the_time_at_which_it_got_it(tmp_path: Path) -> None:
    store, _ = a_log(tmp_path, "1")
    within = Within(directory="log", draft=Draft())
    store.put_if_absent("log/1", b"ours", within=within)
    (kept,) = (tmp_path / "log").glob(".*.tmp")
    os.utime(kept, (0, 0))

    store.put_if_absent("log/2", b"ours", within=within)

    assert (tmp_path / "log" / "2").stat().st_mtime > time.time() - 3600


def test_other_bytes_take_the_place_of_those_that_lost(tmp_path: Path) -> None:
    store, disk = a_log(tmp_path, "1", "2")
    within, ours = Within(directory="log", draft=Draft()), {"1": b"a", "2": b"b", "3": b"c"}

    won = [store.put_if_absent(f"log/{name}", data, within=within) for name, data in ours.items()]

    assert (won, disk.syncs) == ([False, False, True], 4)
    assert files(tmp_path) == {"1": b"theirs", "2": b"theirs", "3": b"c"}


def test_nothing_remains_of_bytes_that_are_not_put_again(tmp_path: Path) -> None:
    store, _ = a_log(tmp_path, "1")
    draft = Draft()
    store.put_if_absent("log/1", b"ours", within=Within(directory="log", draft=draft))

    draft.discard()
    draft.discard()

    assert files(tmp_path) == {"1": b"theirs"}


def test_bytes_that_are_in_a_deleted_folder_are_written_to_the_new_one(tmp_path: Path) -> None:
    store, _ = a_log(tmp_path, "1")
    within = Within(directory="log", draft=Draft())
    store.put_if_absent("log/1", b"ours", within=within)
    shutil.rmtree(tmp_path / "log")
    (tmp_path / "log").mkdir()

    assert store.put_if_absent("log/2", b"ours", within=within)
    assert files(tmp_path) == {"2": b"ours"}


def test_a_put_that_fails_keeps_nothing(tmp_path: Path) -> None:
    store, _ = a_log(tmp_path, "1")
    draft = Draft()
    store.put_if_absent("log/1", b"ours", within=Within(directory="log", draft=draft))

    def refuse() -> None:
        raise LogError("another table", url=store.url)

    with pytest.raises(LogError):
        store.put_if_absent("log/2", b"ours", within=Within(directory="log", draft=draft, check=refuse))

    assert files(tmp_path) == {"1": b"theirs"}
