"""What every store that can be written promises to its writers."""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.faulty_store import Fault, FaultyStore
from tablefeed.errors import StoreError
from tablefeed.store import LocalStore, Store, Within
from tablefeed.store.base import holds
from tablefeed.store.objects import PART_BYTES


def test_the_first_put_of_a_name_creates_it_and_the_second_leaves_it(store: Store) -> None:
    assert store.put_if_absent("log/1.json", b"first")
    assert not store.put_if_absent("log/1.json", b"second")
    assert store.read("log/1.json") == b"first"


def test_an_empty_object_is_an_object(store: Store) -> None:
    assert store.put_if_absent("log/0.json", b"")
    assert store.read("log/0.json") == b""
    assert not store.put_if_absent("log/0.json", b"x")


def test_a_put_after_a_delete_creates_anew(store: Store) -> None:
    store.delete("f")  # what is absent is no error
    store.put_if_absent("f", b"old")
    store.delete("f")

    assert not store.exists("f")
    assert store.put_if_absent("f", b"new")


def test_a_replace_sets_the_content_whether_there_was_one_or_not(store: Store) -> None:
    store.replace("log/_last_checkpoint", b"a much longer first text")
    store.replace("log/_last_checkpoint", b"short")

    assert store.read("log/_last_checkpoint") == b"short"
    assert [entry.name for entry in store.list("log")] == ["_last_checkpoint"]


@pytest.mark.parametrize("name", ["", "/etc/x", "../x", "a/../../x", "a/", "s3://bucket/x", "file:/x"])
def test_nothing_outside_the_store_is_written_or_deleted(store: Store, name: str) -> None:
    for write in (
        lambda: store.put_if_absent(name, b"x"),
        lambda: store.replace(name, b"x"),
        lambda: store.delete(name),
        lambda: store.create(name).__enter__(),
    ):
        with pytest.raises(StoreError):
            write()


def test_a_created_file_stands_when_its_block_ends(store: Store) -> None:
    with store.create("p=1/q=ü b/f") as file:
        file.write(b"one ")
        file.write(b"two")

    assert store.read("p=1/q=ü b/f") == b"one two"


@pytest.mark.parametrize("made_by", ["create", "publish"])
def test_a_file_is_gone_or_never_seen_when_its_block_raises(store: Store, made_by: str) -> None:
    def interrupted() -> None:
        with getattr(store, made_by)("p=1/f") as file:
            file.write(b"one")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert not store.exists("p=1/f")
    assert list(store.list("p=1")) == []


@pytest.mark.parametrize("ours", [b"not so", bytes(PART_BYTES + 1)], ids=["of its size", "in parts"])
def test_a_file_that_exists_is_not_created(store: Store, ours: bytes) -> None:
    store.put_if_absent("f", b"theirs")

    with pytest.raises(StoreError, match=r"create f at .*: (it|File) exists"), store.create("f") as file:
        file.write(ours)
    assert store.read("f") == b"theirs"


def test_a_published_file_is_seen_when_its_block_has_ended_and_not_before(store: Store) -> None:
    with store.publish("log/f") as file:
        file.write(b"one ")
        assert not store.exists("log/f")
        assert list(store.list("log")) == []
        file.write(b"two")

    assert store.read("log/f") == b"one two"
    assert [entry.name for entry in store.list("log")] == ["f"]


def test_of_two_that_publish_one_name_the_first_stays_and_the_second_is_no_error(store: Store) -> None:
    with store.publish("log/f") as file:
        store.put_if_absent("log/f", b"theirs")
        file.write(b"ours")

    assert store.read("log/f") == b"theirs"


def test_a_file_in_the_place_of_a_local_directory_is_an_error_and_stays(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put_if_absent("log", b"x")

    with pytest.raises(StoreError, match="put log/1 at"):
        store.put_if_absent("log/1", b"x")
    assert store.read("log") == b"x"


def test_a_local_directory_in_the_place_of_a_file_is_an_error_and_no_lost_put(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    (tmp_path / "log" / "0.json").mkdir(parents=True)

    with pytest.raises(StoreError, match=r"put log/0.json at .* is not a file"):
        store.put_if_absent("log/0.json", b"x")


def test_a_reader_during_puts_finds_nothing_or_the_whole(store: Store) -> None:
    contents = [bytes([65 + turn]) * 3_000_000 for turn in range(4)]
    torn: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            for turn, content in enumerate(contents):
                if store.exists(f"log/{turn}") and store.read(f"log/{turn}") != content:
                    torn.append(turn)

    reader = threading.Thread(target=look)
    reader.start()
    for turn, content in enumerate(contents):
        assert store.put_if_absent(f"log/{turn}", content)
    done.set()
    reader.join()

    assert torn == []


def test_a_put_leaves_nothing_beside_its_file_and_the_mode_honours_the_umask(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    before = os.umask(0o027)
    try:
        store.put_if_absent("log/1.json", b"x")
        store.put_if_absent("log/1.json", b"y")
        with store.create("log/2.parquet") as file:
            file.write(b"z")
        store.replace("log/3", b"w")
        with store.publish("log/4") as file:
            file.write(b"v")
    finally:
        os.umask(before)

    assert {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "log").iterdir()} == {
        "1.json": 0o640,
        "2.parquet": 0o640,
        "3": 0o640,
        "4": 0o640,
    }


def test_the_temporary_file_of_a_writer_that_died_is_not_listed(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    store.put_if_absent("log/1.json", b"x")
    (tmp_path / "log" / ".2.json.0f8fad5bd9cb469fa16570867728950e.tmp").write_bytes(b"half")

    assert [entry.name for entry in store.list("log")] == ["1.json"]
    assert store.put_if_absent("log/2.json", b"whole")


def test_replacing_or_deleting_a_file_takes_hadoops_checksum_of_it_along(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(b"x")
        (tmp_path / f".{name}.crc").write_bytes(b"sum")

    store.replace("a", b"y")
    store.delete("b")

    assert sorted(p.name for p in tmp_path.iterdir()) == [".c.crc", "a", "c"]


def test_a_new_file_does_not_get_hadoops_checksum_of_one_that_was_deleted_without_it(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    for name in ("a", "b", "taken"):
        (tmp_path / f".{name}.crc").write_bytes(b"sum")
    (tmp_path / "taken").write_bytes(b"x")

    store.put_if_absent("a", b"y")
    store.put_if_absent("taken", b"y")
    with store.publish("b") as file:
        file.write(b"y")

    assert sorted(p.name for p in tmp_path.iterdir()) == [".taken.crc", "a", "b", "taken"]


@pytest.mark.parametrize("base_name", ["a" * 218, "a" * 251, "a" * 255, "a" + "é" * 127], ids=len)
def test_a_file_has_any_name_that_a_local_disk_allows(tmp_path: Path, base_name: str) -> None:
    store, name = LocalStore(str(tmp_path)), f"day=1/{base_name}"

    assert store.put_if_absent(name, b"put")
    store.replace(name, b"replaced")
    assert store.read(name) == b"replaced"
    for make in (LocalStore(str(tmp_path)).create, store.publish):
        store.delete(name)
        with make(name) as file:
            file.write(b"made")
        assert store.read(name) == b"made"
    store.delete(name)
    assert [*(tmp_path / "day=1").iterdir()] == []


def test_a_name_that_is_too_long_for_a_local_disk_is_refused_and_has_nothing_to_delete(tmp_path: Path) -> None:
    store, name = LocalStore(str(tmp_path)), "a" * 256

    with pytest.raises(StoreError, match="File name too long"):
        store.put_if_absent(name, b"x")
    store.delete(name)


def test_a_table_that_was_removed_and_made_anew_is_written_again(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path / "t"))
    store.put_if_absent("log/0", b"x")
    (tmp_path / "t" / "log" / "0").unlink()
    (tmp_path / "t" / "log").rmdir()

    assert store.put_if_absent("log/0", b"y")


class InPieces:
    """Bytes in pieces; `between` is called before the last one."""

    def __init__(self, *pieces: bytes, between: Callable[[], object] = lambda: None) -> None:
        self._pieces, self._between = pieces, between

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self._pieces))

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces[:-1]
        self._between()
        yield self._pieces[-1]


LARGE = (b"head", b"x" * PART_BYTES, b"y" * (PART_BYTES - 1), b"z" * 9, b"tail")


@pytest.mark.parametrize("pieces", [(b"one",), (b"one ", b"", b"two"), LARGE], ids=["one", "few", "in parts"])
def test_pieces_are_put_once_as_one_object(store: Store, pieces: tuple[bytes, ...]) -> None:
    assert store.put_if_absent("log/1.json", InPieces(*pieces))
    assert not store.put_if_absent("log/1.json", InPieces(*reversed(LARGE)))

    assert store.read("log/1.json") == b"".join(pieces)
    assert [entry.name for entry in store.list("log")] == ["1.json"]


@pytest.mark.parametrize("pieces", [(b"one ", b"two"), LARGE], ids=["few", "in parts"])
def test_a_name_that_another_wants_while_pieces_are_sent_goes_to_one(store: Store, pieces: tuple[bytes, ...]) -> None:
    won: list[bool] = []
    ours = InPieces(*pieces, between=lambda: won.append(store.put_if_absent("log/1.json", b"theirs")))

    won.append(store.put_if_absent("log/1.json", ours))

    # Azurite refuses a put where parts of another upload wait for their end.
    assert sorted(won) == [False, True]
    assert store.read("log/1.json") == (b"theirs" if won[0] else b"".join(pieces))


def test_pieces_that_cannot_be_read_to_their_end_leave_nothing(store: Store) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, "the temporary file cannot be read")

    with pytest.raises(StoreError, match="cannot be read"):
        store.put_if_absent("log/1.json", InPieces(*LARGE, between=fail))

    assert list(store.list("log")) == []
    assert store.put_if_absent("log/1.json", InPieces(*LARGE))


def test_pieces_are_checked_right_before_and_right_after_they_appear(store: Store) -> None:
    checks: list[bool] = []
    store.put_if_absent("log/0.json", b"")
    within = Within(directory="log", check=lambda: checks.append(store.exists("log/1.json")))

    store.put_if_absent(
        "log/1.json", InPieces(*LARGE, between=lambda: checks.append(store.exists("log/1.json"))), within=within
    )

    assert checks == [False, False, True]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (LARGE, True),
        ((b"".join(LARGE),), True),
        ((*LARGE[:-1], b"tai!"), False),
        ((*LARGE, b"!"), False),
        (LARGE[:-1], False),
        ((b"",), False),
    ],
)
def test_an_object_is_ours_if_each_byte_is(store: Store, theirs: tuple[bytes, ...], ours: bool) -> None:  # noqa: FBT001
    store.put_if_absent("log/1.json", b"".join(theirs))

    assert holds(store, "log/1.json", InPieces(*LARGE)) is ours


def test_an_object_that_is_absent_is_not_ours(store: Store) -> None:
    assert not holds(store, "log/1.json", InPieces(*LARGE))


@pytest.mark.parametrize("at", [1, 2])
def test_pieces_of_which_only_the_beginning_is_read_back_are_not_taken_for_anothers(store: Store, at: int) -> None:
    store.put_if_absent("log/1.json", b"".join(LARGE))
    cut = FaultyStore(store, faults=[Fault(operation="read", when="short", at=at)])

    with pytest.raises(StoreError, match="Only the beginning"):
        holds(cut, "log/1.json", InPieces(*LARGE))
