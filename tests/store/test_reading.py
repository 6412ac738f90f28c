"""What every store promises to its readers."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.errors import ObjectNotFoundError
from tablefeed.store import LocalStore, Store, open_store
from tablefeed.store.memory import MemoryStore

AWKWARD = ["a%20b", "a b", "über/ß", "p=a%25b %3A/x", "#1?", "'quoted'", "emoji 🦆"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """A store, and what puts an object into it as another program would."""

    store: Store
    seed: Callable[[str, bytes], None]


@pytest.fixture(params=["local", "memory", "fsspec"])
def readable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Readable]:
    """An empty store that can be read."""
    match request.param:
        case "local":

            def seed(name: str, data: bytes) -> None:
                path = tmp_path / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)

            made = Readable(store=open_store(tmp_path), seed=seed)
        case "memory":
            memory = MemoryStore()
            made = Readable(store=memory, seed=memory.replace)
        case _:
            root, files = f"/{uuid.uuid4().hex}", fsspec.filesystem("memory")
            made = Readable(
                store=open_store(f"memory:/{root}"), seed=lambda name, data: files.pipe_file(f"{root}/{name}", data)
            )
    yield made
    made.store.close()


def names(readable: Readable, directory: str, start: str = "") -> list[str]:
    return [entry.name for entry in readable.store.list(directory, start=start)]


def test_a_listing_holds_base_names_in_order(readable: Readable) -> None:
    for name in ("log/2", "log/10", "log/1"):
        readable.seed(name, b"x")

    assert names(readable, "log") == ["1", "10", "2"]


def test_a_listing_begins_at_the_name_given_whether_that_exists_or_not(readable: Readable) -> None:
    for name in ("log/01.json", "log/02.json", "log/04.json"):
        readable.seed(name, b"x")

    assert names(readable, "log", "02.json") == ["02.json", "04.json"]
    assert names(readable, "log", "03") == ["04.json"]
    assert names(readable, "log", "05") == []


def test_a_listing_holds_no_sub_directory_and_nothing_below_one(readable: Readable) -> None:
    readable.seed("log/1", b"x")
    readable.seed("log/_sidecars/2", b"x")
    readable.seed("logs/3", b"x")
    readable.seed("a", b"x")

    assert names(readable, "log") == ["1"]
    assert names(readable, "log/_sidecars") == ["2"]
    assert names(readable, "") == ["a"]
    assert names(readable, "none/at/all") == []


def test_the_directories_in_a_directory_are_yielded_by_their_base_names(readable: Readable) -> None:
    for name in ("a", "p=b/1", "p=a b/q=%3A/2", "p=a b/3", "_delta_log/4"):
        readable.seed(name, b"x")

    assert list(readable.store.directories("")) == ["_delta_log", "p=a b", "p=b"]
    assert list(readable.store.directories("p=a b")) == ["q=%3A"]
    assert list(readable.store.directories("p=b")) == []
    assert list(readable.store.directories("none")) == []


def test_a_link_to_a_directory_is_none(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "table" / "own").mkdir(parents=True)
    (tmp_path / "table" / "link").symlink_to(tmp_path / "elsewhere")

    assert list(LocalStore(str(tmp_path / "table")).directories("")) == ["own"]


def test_a_listing_sees_a_file_that_came_after_the_last_listing(readable: Readable) -> None:
    readable.seed("log/1", b"x")
    before = names(readable, "log")
    readable.seed("log/2", b"x")

    assert (before, names(readable, "log")) == (["1"], ["1", "2"])


def test_an_entry_tells_size_and_time(readable: Readable) -> None:
    readable.seed("log/1", b"12345")
    (listed,) = readable.store.list("log")
    asked = readable.store.stat("log/1")

    assert asked is not None
    assert (listed.name, asked.name) == ("1", "log/1")
    assert (listed.size_bytes, listed.modified_ms) == (asked.size_bytes, asked.modified_ms)
    assert listed.size_bytes == 5
    assert 1_600_000_000_000 < listed.modified_ms < 10_000_000_000_000


def test_what_is_absent_is_none_false_or_an_error_that_names_it(readable: Readable) -> None:
    store = readable.store

    assert store.stat("log/1") is None
    assert not store.exists("log/1")
    for read in (store.read, store.open_input):
        with pytest.raises(ObjectNotFoundError, match="log/1") as caught:
            read("log/1")
        assert (caught.value.name, caught.value.url) == ("log/1", store.url)


def test_a_directory_is_no_object(readable: Readable) -> None:
    readable.seed("log/1", b"x")

    assert not readable.store.exists("log")
    for read in (readable.store.read, readable.store.open_input):
        with pytest.raises(ObjectNotFoundError):
            read("log")


def test_a_file_in_the_place_of_a_directory_holds_nothing(readable: Readable) -> None:
    readable.seed("log", b"x")

    assert names(readable, "log") == []
    assert not readable.store.exists("log/1")


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, None, b"0123456789"),
        (3, None, b"3456789"),
        (0, 4, b"0123"),
        (3, 6, b"345"),
        (8, 50, b"89"),
        (10, None, b""),
        (50, 60, b""),
        (4, 4, b""),
        (0, 0, b""),
    ],
)
def test_a_range_is_half_open_and_ends_with_the_object(
    readable: Readable, start: int, end: int | None, expected: bytes
) -> None:
    readable.seed("f", b"0123456789")

    assert readable.store.read("f", start=start, end=end) == expected


@given(data=st.binary(max_size=40), start=st.integers(0, 50), length=st.integers(0, 50))
def test_a_range_is_a_slice(data: bytes, start: int, length: int) -> None:
    store = MemoryStore()
    store.put_if_absent("f", data)

    assert store.read("f", start=start, end=start + length) == data[start : start + length]


@pytest.mark.parametrize("name", AWKWARD)
def test_names_are_taken_literally(readable: Readable, name: str) -> None:
    readable.seed(f"t/{name}", name.encode())
    directory, _, base_name = f"t/{name}".rpartition("/")

    assert readable.store.read(f"t/{name}") == name.encode()
    assert names(readable, directory) == [base_name]


def test_an_input_is_a_parquet_file_to_pyarrow(readable: Readable) -> None:
    table = pa.table({"a": list(range(10_000))})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    readable.seed("p=1/f.parquet", sink.getvalue().to_pybytes())

    with readable.store.open_input("p=1/f.parquet") as file:
        assert pq.ParquetFile(file).read().equals(table)


def test_an_input_seeks_and_tells(readable: Readable) -> None:
    readable.seed("f", b"0123456789")

    with readable.store.open_input("f") as file:
        assert (file.read(2), file.seek(7), file.tell(), file.read()) == (b"01", 7, 7, b"789")
    assert file.closed


def test_a_local_name_may_be_an_absolute_path_or_a_file_url_and_is_not_decoded(tmp_path: Path) -> None:
    outside = tmp_path / "shared" / "a%20b c"
    outside.parent.mkdir()
    outside.write_bytes(b"abc")
    store = open_store(tmp_path / "clone")
    for name in (str(outside), f"file:{outside}", f"file://{outside}"):
        entry = store.stat(name)
        assert entry is not None
        assert entry.size_bytes == 3
        assert store.read(name, start=1) == b"bc"
        with store.open_input(name) as file:
            assert file.read() == b"abc"


def test_a_remote_name_may_be_an_absolute_path_or_a_url_of_another_file_system(tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"local")
    fsspec.filesystem("memory").pipe_file("/absolute-names/there", b"remote")
    clone = open_store("memory:///clone/of/it")

    assert clone.read("/absolute-names/there") == b"remote"
    assert clone.read("memory:///absolute-names/there") == b"remote"
    assert clone.read(f"file:{tmp_path}/here") == b"local"
    assert open_store(tmp_path).read("memory://absolute-names/there") == b"remote"


def test_a_name_with_a_nul_is_no_file(readable: Readable) -> None:
    with pytest.raises(ObjectNotFoundError):
        readable.store.read("a\0b")
    with pytest.raises(ObjectNotFoundError):
        readable.store.open_input("a\0b")
    assert readable.store.stat("a\0b") is None
    assert names(readable, "a\0b") == []


def test_a_pipe_or_a_device_is_no_file_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    store = open_store(tmp_path)

    for name in ("pipe", "/dev/zero", f"file://{tmp_path}/pipe"):
        with pytest.raises(ObjectNotFoundError):
            store.read(name)
        with pytest.raises(ObjectNotFoundError):
            store.open_input(name)
        assert store.stat(name) is None


def test_a_range_takes_memory_for_what_is_there_however_much_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")

    tracemalloc.start()
    assert open_store(tmp_path).read("f", start=8, end=2**40) == b"89"
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 2**20


def test_a_root_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")

    assert LocalStore(str(tmp_path / "f")).is_file_at_root()
    assert not LocalStore(str(tmp_path)).is_file_at_root()
    assert not LocalStore(str(tmp_path / "none")).is_file_at_root()


def test_a_local_table_is_read_without_fsspec_and_without_watchfiles(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    program = (
        "import sys; from tablefeed.store import open_store; store = open_store(sys.argv[1]);"
        "assert store.read('f') == b'x'; assert [e.name for e in store.list('')] == ['f'];"
        "print({'fsspec', 'watchfiles', 'pyarrow', 'asyncio'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "set()"
