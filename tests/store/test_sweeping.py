"""A put that was killed leaves a hidden file; a sweep removes it when it is old, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.faulty_store import FaultyStore
from tablefeed.store import LocalStore, Store

DAY_S = 86_400
NOW_S = 1_700_000_000
OLD_MS = (NOW_S - DAY_S) * 1000


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def aged(path: Path, *, seconds: int) -> None:
    os.utime(path, (NOW_S - seconds, NOW_S - seconds))


def test_what_puts_left_that_died_a_day_ago_is_removed(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    dying = [store.publish(f"{version:020d}.checkpoint.parquet") for version in range(3)]
    for put, seconds in zip(dying, (DAY_S + 1, DAY_S - 1, 40 * DAY_S), strict=True):
        before = names_in(tmp_path)
        put.__enter__().write(b"half")
        (left,) = set(names_in(tmp_path)) - set(before)
        aged(tmp_path / left, seconds=seconds)
    by_age = sorted(tmp_path.iterdir(), key=lambda path: path.stat().st_mtime)

    assert store.sweep("", before_ms=OLD_MS) == 2
    assert list(tmp_path.iterdir()) == by_age[2:]


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000001.json",
        ".00000000000000000001.json.crc",
        ".00000000000000000001.json.8f14e45f-ceea-467f-ab77-1d6b2a9f9a3c.tmp",  # Hadoop's
        ".0123456789abcdef0123456789abcdef.tmp",
        "x.0123456789abcdef0123456789abcdef.tmp",
        ".x.0123456789ABCDEF0123456789ABCDEF.tmp",
        ".x.0123456789abcdef0123456789abcdef.tmp.crc",
        "_last_checkpoint",
    ],
)
def test_a_file_that_is_not_ours_to_remove_stays_however_old_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    aged(tmp_path / name, seconds=400 * DAY_S)

    assert LocalStore(str(tmp_path)).sweep("", before_ms=OLD_MS) == 0
    assert names_in(tmp_path) == [name]


def test_a_directory_or_a_link_by_such_a_name_stays(tmp_path: Path) -> None:
    (tmp_path / ".x.0123456789abcdef0123456789abcdef.tmp").mkdir()
    (tmp_path / ".y.0123456789abcdef0123456789abcdef.tmp").symlink_to("elsewhere")

    assert LocalStore(str(tmp_path)).sweep("", before_ms=2**60) == 0
    assert len(names_in(tmp_path)) == 2


def test_directories_below_are_swept_too_and_links_to_others_are_not(tmp_path: Path) -> None:
    table, other = tmp_path / "table", tmp_path / "other"
    for folder in (table, table / "p=1" / ".hidden", other):
        folder.mkdir(parents=True)
        (folder / ".x.0123456789abcdef0123456789abcdef.tmp").touch()
    (table / "link").symlink_to(other)

    assert LocalStore(str(table)).sweep("", before_ms=2**60) == 2
    assert [path.name for path in other.iterdir()] == [".x.0123456789abcdef0123456789abcdef.tmp"]


def test_a_file_that_was_published_under_its_name_stays_when_its_second_name_goes(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"whole")
    os.link(tmp_path / "log", tmp_path / ".log.0123456789abcdef0123456789abcdef.tmp")
    aged(tmp_path / "log", seconds=2 * DAY_S)

    assert LocalStore(str(tmp_path)).sweep("", before_ms=OLD_MS) == 1
    assert (tmp_path / "log").read_bytes() == b"whole"


def test_a_sweep_of_any_store_leaves_its_objects_and_of_no_directory_is_none(store: Store) -> None:
    store.put_if_absent("log/.x.0123456789abcdef0123456789abcdef", b"x")

    assert FaultyStore(store).sweep("log", before_ms=2**60) == 0
    assert store.sweep("none", before_ms=2**60) == 0
    assert store.exists("log/.x.0123456789abcdef0123456789abcdef")
