"""Objects copied from one store to another: whole, durable, and never half there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from support.faulty_store import FaultyStore
from support.gateway import Gateway
from tablefeed.errors import ObjectNotFoundError, StoreError
from tablefeed.store import LocalStore, Store, open_store
from tablefeed.store.durable import Disk
from tablefeed.store.local_copies import FILES_AT_ONCE
from tablefeed.store.memory import MemoryStore


def a_source(kind: str, place: Path, request: pytest.FixtureRequest) -> Store:
    if kind == "s3":
        gateway: Gateway = request.getfixturevalue("gateway")
        return open_store(f"s3://{gateway.bucket}/source", gateway.options)
    return LocalStore(str(place)) if kind == "local" else MemoryStore("source")


@pytest.mark.parametrize("kind", ["local", "memory", "s3"])
def test_objects_are_copied_under_their_names_from_any_store_to_any(
    store: Store, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = a_source(kind, tmp_path / "source", request)
    objects = {"f": b"one", "a b/ü%20/g": b"", "a b/h": bytes(range(256)) * 9000}
    for name, data in objects.items():
        source.replace(name, data)

    store.copy(list(objects), source)
    store.copy([], source)

    assert {name: store.read(name) for name in objects} == objects
    assert [entry.name for entry in store.list("a b")] == ["h"]


def test_an_object_that_the_source_lacks_is_named_and_none_is_made(store: Store, tmp_path: Path) -> None:
    source = LocalStore(str(tmp_path / "source"))

    with pytest.raises(ObjectNotFoundError, match="lost"):
        store.copy(["lost"], source)

    assert list(store.list("")) == []


def test_a_name_outside_of_the_root_is_neither_read_nor_written(store: Store, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"x")
    for name in ("../outside", str(tmp_path / "outside")):
        with pytest.raises(StoreError):
            store.copy([name], LocalStore(str(tmp_path / "source")))


def test_more_files_than_are_open_at_once_are_copied(tmp_path: Path) -> None:
    source, target = LocalStore(str(tmp_path / "source")), LocalStore(str(tmp_path / "target"))
    names = [f"{number % 7}/{number}" for number in range(2 * FILES_AT_ONCE + 3)]
    for name in names:
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_bytes(name.encode())

    target.copy(names, source)

    assert all(target.read(name) == name.encode() for name in names)
    assert not list((tmp_path / "target").rglob(".*"))


def test_a_local_file_that_exists_stays_as_it_is(tmp_path: Path) -> None:
    source, target = LocalStore(str(tmp_path / "source")), LocalStore(str(tmp_path / "target"))
    source.put_if_absent("f", b"theirs")
    target.put_if_absent("f", b"ours")

    target.copy(["f"], source)

    assert target.read("f") == b"ours"


@pytest.mark.parametrize("way", ["by the system", "by reading"])
@pytest.mark.parametrize("taken_by", ["a folder", "a broken link"])
def test_a_name_that_is_taken_by_no_file_is_an_error(tmp_path: Path, taken_by: str, way: str) -> None:
    local = LocalStore(str(tmp_path / "source"))
    local.put_if_absent("f", b"theirs")
    source = local if way == "by the system" else FaultyStore(local)
    (tmp_path / "target").mkdir()
    if taken_by == "a folder":
        (tmp_path / "target" / "f").mkdir()
    else:
        (tmp_path / "target" / "f").symlink_to(tmp_path / "nowhere")

    with pytest.raises(StoreError, match="what has this name is not a file"):
        LocalStore(str(tmp_path / "target")).copy(["f"], source)


class _FullDisk(Disk):
    def sync(self, fd: int) -> None:  # noqa: ARG002 - as Disk
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_copy_that_cannot_be_made_durable_never_gets_its_name(tmp_path: Path) -> None:
    source = LocalStore(str(tmp_path / "source"))
    source.put_if_absent("f", b"theirs")
    (tmp_path / "target").mkdir()

    with pytest.raises(StoreError, match="No space left"):
        LocalStore(str(tmp_path / "target"), disk=_FullDisk()).copy(["f"], source)

    assert list((tmp_path / "target").iterdir()) == []


def test_a_pipe_in_the_place_of_a_file_is_no_file(tmp_path: Path) -> None:
    source, target = LocalStore(str(tmp_path / "source")), LocalStore(str(tmp_path / "target"))
    (tmp_path / "source").mkdir()
    os.mkfifo(tmp_path / "source" / "pipe")

    with pytest.raises(ObjectNotFoundError):
        target.copy(["pipe"], source)


def test_s3_copies_within_s3_without_sending_the_bytes(gateway: Gateway) -> None:
    source = open_store(f"s3://{gateway.bucket}/source", gateway.options)
    target = open_store(f"s3://{gateway.bucket}/target", gateway.options)
    source.replace("f", b"x")
    target.replace("warm", b"x")
    gateway.requests.clear()

    target.copy(["f"], source)

    assert not [request for request in gateway.requests if request.startswith("GET")]
    assert target.read("f") == b"x"
