"""A commit with more lines than memory should hold: it is put in pieces, and says the same as one that is put whole."""

from __future__ import annotations

import errno
import os
import tracemalloc
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import tablefeed
from support.commits import a_write, commit_files, committed, faulty, raced, still
from support.faulty_store import Fault
from support.logs import a_table, commit_path, live_paths, log_of, put, said, txn
from tablefeed.errors import CommitError, ConflictError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.write import kept_lines
from tablefeed.feed.write.kept_lines import KeptLines, content_of
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import Commit, DomainMetadata, Txn, Version
from tablefeed.store import Content, LocalStore, Within
from tablefeed.store.memory import MemoryStore

OVERWRITE = WriteKind.OVERWRITE


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_lines, "HELD_BYTES", 0)


class Seen(MemoryStore):
    """Notes what is put."""

    def __init__(self) -> None:
        super().__init__("orders")
        self.contents: list[Content] = []

    def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:
        self.contents.append(data)
        return super().put_if_absent(name, data, within=within)


def overwritten() -> tuple[Seen, bytes]:
    """A table of three files is overwritten; gives its store and the bytes of the commit."""
    log = a_table(store := Seen())
    commit_files(log, "a", "b", "c")
    commit_files(log, "new", kind=OVERWRITE)
    return store, store.read(commit_path(2))


def without_ids(data: bytes) -> list[bytes]:
    return data.splitlines()[1:]


def test_a_commit_of_few_lines_is_put_as_one_object_of_bytes() -> None:
    store, _ = overwritten()

    assert [type(each) for each in store.contents[-2:]] == [bytes, bytes]


def test_a_commit_of_many_lines_is_put_in_pieces_and_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    _, whole = overwritten()
    monkeypatch.setattr(kept_lines, "HELD_BYTES", 0)
    store, pieced = overwritten()

    assert [type(each) is bytes for each in store.contents[-2:]] == [True, False]
    assert without_ids(pieced) == without_ids(whole)
    assert live_paths(log_of(store)) == ["new"]


def test_lines_come_back_in_their_order_whether_they_were_held_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_lines, "HELD_BYTES", 20)
    domain = DomainMetadata(domain="d", configuration="", removed=False)
    entry = Commit(version=Version(1), txns=(Txn(app_id="a", txn_version=1),), domains=(domain,), committed_at_ms=None)
    lines, added, on_disk = KeptLines(), [b"%d\xff\n" % n * 3 for n in range(6)], []
    for each in added:
        lines.keep(memoryview(each))
        on_disk.append(lines.on_disk)
    content = content_of(entry, lines)

    assert on_disk == [False, False, True, True, True, True]
    assert not isinstance(content, bytes)
    first, second = list(content), list(content)
    assert first == second
    assert first[1:-1] == added
    assert all(type(piece) is bytes for piece in first)
    assert first[0].startswith(b'{"txn"')
    assert first[-1].startswith(b'{"domainMetadata"')
    assert content.size_bytes == len(b"".join(first))


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("when", ["before", "after", "again"])
def test_a_large_commit_whose_answer_is_lost_is_committed_once(when: Literal["before", "after", "again"]) -> None:
    _, log = faulty(Fault(operation="put_if_absent", name=commit_path(2), when=when))
    commit_files(log, "a", "b")

    outcome, _ = commit_files(log, "new", kind=OVERWRITE)

    assert (outcome, log.load().version, live_paths(log)) == (committed(2), 2, ["new"])
    assert sorted(each["path"] for each in said(log, 2, "remove")) == ["a", "b"]


@pytest.mark.usefixtures("all_are_large")
def test_a_commit_of_the_same_size_is_another_writers_if_one_byte_differs() -> None:
    """Another writer's commit that could hardly be more like ours."""
    rivals: list[bytes] = []

    class Overtaken(MemoryStore):
        def put_if_absent(self, name: str, data: Content, *, within: Within | None = None) -> bool:
            if not isinstance(data, bytes) and not rivals:
                rivals.append(b"".join(data).replace(b'"path":"b"', b'"path":"x"'))
                super().put_if_absent(name, rivals[0], within=within)
            return super().put_if_absent(name, data, within=within)

    log = a_table(Overtaken("orders"))
    commit_files(log, "a", "b")

    with pytest.raises(ConflictError):
        commit(log, None, a_write(log, log.load(), "new", kind=OVERWRITE), still())

    assert log.load().version == 2
    assert log.store.read(commit_path(2)) == rivals[0]


@pytest.mark.usefixtures("all_are_large")
def test_a_large_commit_that_loses_its_version_has_the_files_of_the_newest_state() -> None:
    store = a_table().store
    commit_files(log_of(store), "a")
    ours = raced(store, lambda: put(store, 2, [txn("rival", 1)]))

    commit(ours, None, a_write(ours, ours.load(), "new", kind=OVERWRITE), still())

    assert (ours.load().version, live_paths(ours)) == (3, ["new"])


@pytest.mark.usefixtures("all_are_large")
def test_a_large_overwrite_restore_and_copy_are_read_by_delta_rs(tmp_path: Path) -> None:
    table, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    for n in range(3):
        tablefeed.append(table, pa.table({"id": pa.array([n], pa.int64())}))
    tablefeed.append(table, pa.table({"id": pa.array([9], pa.int64())}), mode="overwrite")
    assert DeltaTable(table).to_pyarrow_table()["id"].to_pylist() == [9]
    tablefeed.restore(table, version=2)
    tablefeed.replicate(table, copy)

    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]
    assert sorted(DeltaTable(copy).to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2]
    assert [path.name for path in (tmp_path / "t" / "_delta_log").glob(".*.tmp")] == []


@pytest.mark.usefixtures("all_are_large")
def test_where_the_temporary_file_cannot_be_written_nothing_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_table(MemoryStore("orders"))
    commit_files(log, "a")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)

    with pytest.raises(CommitError, match=r"No space left on device.*TMPDIR"):
        commit_files(log, "new", kind=OVERWRITE)
    assert live_paths(log) == ["a"]


@pytest.mark.usefixtures("all_are_large")
def test_the_temporary_file_is_closed_with_the_lines() -> None:
    opened = Path("/proc/self/fd")
    before = len([*opened.iterdir()])
    lines = KeptLines()
    lines.keep(memoryview(b"x"))
    assert len([*opened.iterdir()]) == before + 1

    del lines

    assert len([*opened.iterdir()]) == before


def test_memory_does_not_grow_with_the_lines(tmp_path: Path) -> None:
    store, line = LocalStore(str(tmp_path)), bytes(range(256)) * 4096
    entry = Commit(version=Version(1), committed_at_ms=None)
    pool = pa.default_memory_pool()
    tracemalloc.start()
    try:
        lines = KeptLines()
        for _ in range(160):
            lines.keep(memoryview(pa.py_buffer(bytes(line))))
        store.put_if_absent("log/1.json", content_of(entry, lines))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (tmp_path / "log/1.json").stat().st_size == 160 * len(line)
    assert peak_bytes + pool.bytes_allocated() < 90 << 20
