from __future__ import annotations

import gzip

import orjson
import pytest

from support.actions import commit
from support.index_log import METADATA, PROTOCOL, URL, IndexLog, add, json_log, remove
from tablefeed.errors import CorruptLogError
from tablefeed.indextables import names
from tablefeed.indextables.log import json_checkpoint as checkpoint
from tablefeed.indextables.log import version_file
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import FileAction, Txn, Version

HISTORY: dict[int, list[FileAction]] = {
    0: [],
    1: [add("a")],
    2: [add("b")],
    3: [remove("a"), add("c")],
    4: [add("d")],
}


def lines(*files: FileAction, head: bool = False) -> bytes:
    """The lines of a checkpoint, compressed as the Scala log does; with a `head`, protocol and metaData first."""
    facts = {"protocol": PROTOCOL, "metadata": METADATA, "txns": (Txn(app_id="q", txn_version=3),)} if head else {}
    return version_file.encode_commit(commit(0, *files, **facts), writer=Writer.SCALA)


def a_log(**others: bytes) -> IndexLog:
    """The history without commits 0 to 2, and files named by what follows `3.checkpoint`: `a_log(json=b"...")`."""
    kept = {version: files for version, files in HISTORY.items() if version > 2}
    named = {f"{3:020d}.checkpoint.{name.replace('_', '.')}": data for name, data in others.items()}
    return IndexLog({**json_log(kept), **named})


def part_list(*parts: str | int, checkpoint_id: str | None = "1f0c") -> bytes:
    """The file that lists the parts."""
    values = {"version": 3, "checkpointId": checkpoint_id, "parts": parts, "createdTime": 1, "format": "json"}
    return b"\x01\x01" + gzip.compress(orjson.dumps(values))


def part(number: int, checkpoint_id: str = "1f0c") -> str:
    return f"{3:020d}.checkpoint.{checkpoint_id}.{number:05d}.json"


WHOLE = lines(add("b"), add("c"), head=True)


def test_a_checkpoint_stands_for_the_commits_before_it() -> None:
    found = a_log(json=WHOLE).snapshot()

    assert found.files.keys() == {"b", "c", "d"}
    assert found.facts.metadata == METADATA
    assert found.facts.txns == {"q": Txn(app_id="q", txn_version=3)}


@pytest.mark.parametrize(
    ("listed", "first", "second"),
    [
        (part_list(part(0), part(1)), "1f0c_00000_json", "1f0c_00001_json"),
        (part_list(part(1), part(2)), "1f0c_00001_json", "1f0c_00002_json"),
        (part_list(1, 2), "1f0c_00001_json", "1f0c_00002_json"),
        (part_list(1, 2, checkpoint_id=None), "part_00001_json", "part_00002_json"),
        (part_list(part(1, "part"), part(2, "part")), "part_00001_json", "part_00002_json"),
        (
            b'{"manifest":' + gzip.decompress(part_list(part(0), part(1))[2:]) + b"}",
            "1f0c_00000_json",
            "1f0c_00001_json",
        ),
    ],
    ids=["from 0", "from 1", "by number", "by number without id", "older names", "under a key"],
)
def test_a_checkpoint_in_parts_is_read_by_their_list(listed: bytes, first: str, second: str) -> None:
    log = a_log(json=listed, **{first: lines(add("b"), head=True), second: lines(add("c"))})

    assert log.snapshot().files.keys() == {"b", "c", "d"}


def test_a_checkpoint_that_lacks_a_part_gives_way_to_the_commits() -> None:
    files = {**json_log(HISTORY), names.checkpoint_name(3): part_list(part(0), part(1)), part(0): WHOLE}

    assert IndexLog(files).snapshot().files.keys() == {"b", "c", "d"}
    with pytest.raises(CorruptLogError, match="a part of it is missing"):
        a_log(json=part_list(part(0), part(1)), **{"1f0c_00000_json": WHOLE}).snapshot()


@pytest.mark.parametrize("damaged", [WHOLE[:-9], b"", b"\x01\x01", lines(add("b")), b"{}", b'{"add":{}}'])
def test_an_unreadable_checkpoint_gives_way_to_the_commits(damaged: bytes) -> None:
    files = {**json_log(HISTORY), names.checkpoint_name(3): damaged}

    assert IndexLog(files).snapshot().files.keys() == {"b", "c", "d"}
    with pytest.raises(CorruptLogError, match=names.checkpoint_name(3)):
        a_log(json=damaged).snapshot()


@pytest.mark.parametrize("parts", [["../../x"], ["x.json"], [True], [-1], [None], [{"path": "x"}]])
def test_a_part_that_is_no_part_of_the_log_is_damage(parts: list[object]) -> None:
    data = orjson.dumps({"checkpointId": "x", "parts": parts})

    with pytest.raises(CorruptLogError, match="under a name that no part can have"):
        checkpoint.part_list(data, version=Version(3), url=URL, log_file="c")


def test_what_a_checkpoint_takes_back_is_not_live_and_of_one_path_the_last_line_counts() -> None:
    data = lines(add("a"), add("b", rows=1), remove("a"), add("b", rows=2), head=True)
    (batch,) = checkpoint.decode_checkpoint([("c", data)], url=URL).files

    assert batch["key"].to_pylist() == ["b"]
    assert batch["num_records"].to_pylist() == [2]


def test_a_long_checkpoint_comes_in_batches() -> None:
    data = lines(*(add(f"{n}") for n in range(10_000)), head=True)
    found = checkpoint.decode_checkpoint([("c", data)], url=URL).files

    assert sum(batch.num_rows for batch in found) == 10_000
    assert max(batch.num_rows for batch in found) <= 4096


def test_a_line_that_is_no_add_is_damage_that_names_the_file() -> None:
    data = gzip.compress(b'{"add":{"path":"a","size":"x","modificationTime":1}}')

    with pytest.raises(CorruptLogError, match=r"c.json: size is 'x'"):
        checkpoint.decode_checkpoint([("c.json", data)], url=URL)
