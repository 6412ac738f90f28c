"""A disk that cannot keep the promises: nothing half-made remains, and the error says what to do."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
from pathlib import Path

import pytest

from tablefeed.errors import NotExclusiveError, StoreError
from tablefeed.store import LocalStore
from tablefeed.store.durable import Disk, open_folder


class NoHardLinks(Disk):
    def __init__(self, code: int) -> None:
        self.code = code

    def link(self, source: str, target: str, *, folder: int) -> None:  # noqa: ARG002 - there are none anywhere
        raise OSError(self.code, os.strerror(self.code), source, None, target)


class OnNfs(Disk):
    def file_system(self, fd: int) -> str:  # noqa: ARG002 - all of it
        return "nfs4"


class FullAfter(Disk):
    """Takes `size_bytes` more, then is full."""

    def __init__(self, size_bytes: int) -> None:
        self.left = size_bytes

    def write(self, fd: int, data: memoryview) -> int:
        if self.left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = super().write(fd, data[: self.left])
        self.left -= written
        return written


class BrokenSync(Disk):
    """Fails at the `at`-th sync."""

    def __init__(self, at: int) -> None:
        self.left = at

    def sync(self, fd: int) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(fd)


class LostLinkAnswer(Disk):
    """Links, and says the name existed: a network file system that repeats a request whose answer it lost."""

    def link(self, source: str, target: str, *, folder: int) -> None:
        super().link(source, target, folder=folder)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)


class EmptiedMeanwhile(Disk):
    """Finds the name taken. Somebody empties the folder before the answer."""

    def link(self, source: str, target: str, *, folder: int) -> None:
        os.unlink(source, dir_fd=folder)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)


class Diary(Disk):
    """Notes what becomes durable, and when a name appears."""

    def __init__(self) -> None:
        self.synced: list[int | None] = []

    def sync(self, fd: int) -> None:
        self.synced.append(os.fstat(fd).st_ino)
        super().sync(fd)

    def link(self, source: str, target: str, *, folder: int) -> None:
        super().link(source, target, folder=folder)
        self.synced.append(None)

    def notes(self, top: Path) -> list[str]:
        """The names of what was synced, `top` being "top"; "link" where a name appeared."""
        names: dict[int | None, str] = {path.stat().st_ino: path.name for path in top.rglob("*")}
        return [{**names, top.stat().st_ino: "top", None: "link"}[inode] for inode in self.synced]


def files(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK])
def test_a_disk_without_hard_links_is_refused_by_name_before_anything_remains(tmp_path: Path, code: int) -> None:
    store = LocalStore(str(tmp_path), disk=NoHardLinks(code))

    with pytest.raises(NotExclusiveError, match="hard links") as caught:
        store.put_if_absent("log/0.json", b"x")
    assert caught.value.url == str(tmp_path)
    with pytest.raises(NotExclusiveError, match="hard links"), store.create("part-0.parquet"):
        pytest.fail("no data is written where it can never be committed")
    assert files(tmp_path) == []


def test_nfs_is_refused_by_name_before_anything_remains(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), disk=OnNfs())

    with pytest.raises(NotExclusiveError, match="is on NFS"):
        store.put_if_absent("log/0.json", b"x")
    with pytest.raises(NotExclusiveError, match="is on NFS"), store.create("part-0.parquet"):
        pytest.fail("no data is written where it can never be committed")
    assert files(tmp_path) == []


def test_the_kind_of_a_file_system_is_the_one_that_linux_names() -> None:
    named = subprocess.run(["stat", "-f", "-c", "%T", "/proc"], capture_output=True, text=True, check=True)  # noqa: S607
    proc = os.open("/proc", os.O_RDONLY)

    assert Disk().file_system(proc) == named.stdout.strip()
    os.close(proc)


def test_a_full_disk_is_an_error_and_nothing_of_the_put_remains(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), disk=FullAfter(10))

    with pytest.raises(StoreError, match=r"log/0\.json at .*: No space left on device"):
        store.put_if_absent("log/0.json", b"x" * 11)
    assert files(tmp_path) == []


def test_a_disk_that_takes_little_at_a_time_gets_it_all(tmp_path: Path) -> None:
    class Sip(Disk):
        def write(self, fd: int, data: memoryview) -> int:
            return super().write(fd, data[:7])

    store = LocalStore(str(tmp_path), disk=Sip())
    store.put_if_absent("f", bytes(range(100)))

    assert store.read("f") == bytes(range(100))


def test_a_file_that_grows_beyond_what_the_system_allows_is_an_error_and_is_gone(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
    try:
        with pytest.raises(StoreError, match="File too large"), store.create("p=1/f") as file:
            file.write(b"x" * 1_000_000)
        with pytest.raises(StoreError, match="File too large"):
            store.replace("f", b"x" * 1_000_000)
        with pytest.raises(StoreError, match="File too large"):
            store.put_if_absent("f", b"x" * 1_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert files(tmp_path) == []


def test_bytes_that_did_not_become_durable_are_never_visible(tmp_path: Path) -> None:
    # The first sync is the new directory's entry, the second the temporary file.
    store = LocalStore(str(tmp_path / "log"), disk=BrokenSync(at=2))

    with pytest.raises(StoreError, match="put 0"):
        store.put_if_absent("0", b"x")
    assert files(tmp_path) == []


def test_a_put_that_stands_but_may_not_last_is_no_success(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), disk=BrokenSync(at=2))

    with pytest.raises(StoreError, match="put 0"):
        store.put_if_absent("0", b"x")


def test_a_created_file_that_did_not_become_durable_is_gone(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), disk=BrokenSync(at=1))

    with pytest.raises(StoreError, match="write f"), store.create("f") as file:
        file.write(b"x")
    assert files(tmp_path) == []


def test_a_link_that_was_made_and_reported_as_existing_is_a_win(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), disk=LostLinkAnswer())

    assert store.put_if_absent("0.json", b"x")
    assert files(tmp_path) == ["0.json"]


def test_a_put_whose_name_was_taken_by_a_file_that_is_gone_with_the_folders_files_is_no_win(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path), disk=EmptiedMeanwhile())

    assert not store.put_if_absent("0.json", b"x")
    assert files(tmp_path) == []


def test_a_directory_is_closed_once_though_opening_the_one_below_it_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    folder = open_folder(str(tmp_path), Disk())
    with pytest.raises(NotADirectoryError):
        folder.below("file")

    with (tmp_path / "other").open("wb") as other:  # has the number that the directory had
        folder.close()
        other.write(b"x")

    assert (tmp_path / "other").read_bytes() == b"x"


def test_a_put_is_durable_before_its_name_appears_and_its_name_before_the_answer(tmp_path: Path) -> None:
    disk = Diary()
    root = tmp_path / "table"
    LocalStore(str(root), disk=disk).put_if_absent("log/0.json", b"x")

    # The entries of log and table, the bytes; the link; its entry.
    assert disk.notes(tmp_path) == ["table", "top", "0.json", "link", "log"]


@pytest.mark.parametrize("at", [0, 1])
def test_new_directories_that_did_not_become_durable_do_so_when_the_put_is_tried_again(tmp_path: Path, at: int) -> None:
    class FailsOnce(Diary):
        def sync(self, fd: int) -> None:
            super().sync(fd)
            if len(self.synced) == at + 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    disk = FailsOnce()
    store = LocalStore(str(tmp_path / "table"), disk=disk)
    with pytest.raises(StoreError, match="Input/output error"):
        store.put_if_absent("log/0.json", b"x")
    store.put_if_absent("log/0.json", b"x")

    assert disk.notes(tmp_path)[at + 1 :] == ["table", "top", "0.json", "link", "log"]


def test_a_created_file_is_durable_with_the_entries_that_lead_to_it(tmp_path: Path) -> None:
    disk = Diary()
    (tmp_path / "p=1" / "q=1").mkdir(parents=True)
    store = LocalStore(str(tmp_path), disk=disk)
    with store.create("p=1/q=1/f") as file:
        file.write(b"x")

    # The link is the question whether this disk could commit at all.
    assert disk.notes(tmp_path) == ["p=1", "top", "link", "f", "q=1"]
