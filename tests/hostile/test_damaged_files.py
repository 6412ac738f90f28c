"""Bytes that were right once, cut or changed: checkpoints, the hint at them, data files, deletion vectors.

Where pages have checksums and a file is cut or its pages are changed, the rows are right or the error is ours. What a
footer says nothing guards: there no more is asked than that nothing but our errors comes out, in bounds.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from urllib.parse import quote

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given
from pyroaring import BitMap64

from hostile.checkpoints import ADD, SCHEMA, checkpoint, checkpoint_path, checkpoint_rows, part_paths
from hostile.damage import Damage, damages
from hostile.judge import agrees, examples, is_answered
from hostile.junk import JUNK_VALUES, SPELLINGS, spoilt
from hostile.logs import DATA, FIRST, METADATA, Folder, Json, line
from hostile.strategies import Lines, joined, logs
from hostile.ways_in import OTHER_WAYS, ask, ask_everything, ids_of, other_ways
from tablefeed.errors import TablefeedError

pytestmark = pytest.mark.timeout(900)  # for all examples of a law together, in `make fuzz`

HINT = "_delta_log/_last_checkpoint"
FILES_WITHOUT_VECTORS = tuple(
    line({"add": {"path": quote(path), "partitionValues": {}, "size": 9, "modificationTime": 1, "dataChange": True}})
    for path in DATA
)


def in_parts(rows: Sequence[Json], count: int, *, guarded: bool) -> list[bytes]:
    return [checkpoint(rows[part::count], write_page_checksum=guarded) for part in range(count)]


@given(log=logs, data=st.data(), damage=damages, count=st.integers(1, 3), kept=st.booleans(), other=other_ways)
@examples(400)
def test_a_damaged_checkpoint_is_passed_over_or_refused_but_never_believed(
    folder: Folder, log: list[Lines], data: st.DataObject, damage: Damage, count: int, other: str, *, kept: bool
) -> None:
    commits = joined(log, b"\n")
    version = data.draw(st.integers(0, len(commits) - 1))
    guarded = data.draw(st.booleans())
    files = in_parts(checkpoint_rows(commits[: version + 1]), count, guarded=guarded)
    at = data.draw(st.integers(0, count - 1))
    files[at] = damage.of(files[at], data)
    paths = part_paths(version, count) if count > 1 else [checkpoint_path(version)]

    path = folder.log(commits, first=0 if kept else version + 1, beside=dict(zip(paths, files, strict=True)))
    answers = ask_everything(path)

    if damage.is_told(guarded=guarded):
        agrees(answers, commits)
    ask(lambda: OTHER_WAYS[other](folder.path))


CELLS = {
    "path": [pa.array(["a.parquet", None, ""]), pa.array([b"a.parquet", b"\xff"]), pa.array([1, None]), pa.nulls(1)],
    "partitionValues": [
        pa.array([[("p", "x")], None, [("p", None)], []], pa.map_(pa.string(), pa.string())),
        pa.array([[("p", "x"), ("p", "y")]], pa.map_(pa.string(), pa.string())),
        pa.array([[("p", 5)]], pa.map_(pa.string(), pa.int64())),
        pa.array([["p"], None], pa.list_(pa.string())),
        pa.array(["p=x"]),
        pa.array([{"p": "x"}]),
    ],
    "size": [
        pa.array([2**63 - 1, -(2**63), -1, 0, None]),
        pa.array([2**64 - 1, 9], pa.uint64()),
        pa.array([1e300, 0.5, float("nan")]),
        pa.array(["9", "x", "9" * 400]),
        pa.array([True]),
        pa.nulls(1),
    ],
    "dataChange": [pa.array([True, None]), pa.array([0, 2]), pa.array(["true", "maybe"]), pa.nulls(1)],
    "deletionVector": [
        pa.array([{"storageType": "u", "pathOrInlineDv": "", "sizeInBytes": 2**31 - 1, "cardinality": 2**63 - 1}]),
        pa.array([{"storageType": "p", "pathOrInlineDv": "/dev/zero", "offset": 2**31 - 1, "sizeInBytes": 2**31 - 1}]),
        pa.array([{"storageType": "x", "pathOrInlineDv": "", "sizeInBytes": -1, "cardinality": -1}]),
        pa.array([{"storageType": "i"}, {"pathOrInlineDv": "i"}, {"cardinality": None}]),
        pa.array([{"offset": 2**40}]),
        pa.array(["i^Bg9"]),
    ],
}
CELLS |= {"modificationTime": CELLS["size"], "stats": CELLS["path"]}
"""Values that a member of `add` may come with, a column of each kind of array."""


@given(log=logs, member=st.sampled_from(sorted(CELLS)), data=st.data(), other=other_ways)
@examples(400)
def test_whatever_a_cell_of_a_checkpoint_holds_nothing_but_our_errors_comes_out(
    folder: Folder, log: list[Lines], member: str, data: st.DataObject, other: str
) -> None:
    commits = joined(log, b"\n")[:1]
    facts = [row for row in checkpoint_rows(commits) if "add" not in row]
    value = data.draw(st.sampled_from([value for column in CELLS[member] for value in column]))
    add = {"path": "a.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    typed = pa.struct([*(part for part in ADD if part.name != member), pa.field(member, value.type)])
    file = checkpoint([*facts, {"add": {**add, member: value.as_py()}}], schema=SCHEMA.set(0, pa.field("add", typed)))

    ask_everything(folder.log(commits, first=1, beside={checkpoint_path(0): file}))
    ask(lambda: OTHER_WAYS[other](folder.path))


HINTED = json.dumps({"version": 0, "size": 3, "sizeInBytes": 9, "numOfAddFiles": 1, "checksum": "0" * 32}).encode()


@given(log=logs, data=st.data(), value=JUNK_VALUES, kept=st.booleans(), has_checkpoint=st.booleans())
@examples(200)
def test_whatever_the_hint_at_the_newest_checkpoint_says_the_rows_are_right(
    folder: Folder, log: list[Lines], data: st.DataObject, value: bytes, *, kept: bool, has_checkpoint: bool
) -> None:
    commits = joined(log, b"\n")
    spoiled = data.draw(spoilt(b'{"hint":' + HINTED + b"}", value))
    files = {HINT: spoiled.removeprefix(b'{"hint":').removesuffix(b"}")}
    if has_checkpoint:
        files |= {checkpoint_path(0): checkpoint(checkpoint_rows(commits[:1]))}

    answers = ask_everything(folder.log(commits, first=0 if kept or not has_checkpoint else 1, beside=files))

    assert is_answered(answers)
    agrees(answers, commits)


@given(data=st.data(), damage=damages, name=st.sampled_from(sorted(DATA)), other=other_ways)
@examples(300)
def test_a_damaged_data_file_is_refused_or_its_rows_are_right(
    folder: Folder, data: st.DataObject, damage: Damage, name: str, other: str
) -> None:
    commits = joined([[*FIRST, METADATA[0], *FILES_WITHOUT_VECTORS]], b"\n")
    path = folder.log(commits)
    whole = (path / name).read_bytes()
    try:
        (path / name).write_bytes(damage.of(whole, data))
        answers = ask_everything(path)
        if damage.is_told(guarded=True):
            agrees(answers, commits)
        ask(lambda: OTHER_WAYS[other](path))
    finally:
        (path / name).write_bytes(whole)


PAYLOAD = struct.pack("<I", 1681511377) + BitMap64([0, 2]).serialize()
BLOCKS = b"\x01" + struct.pack(">I", len(PAYLOAD)) + PAYLOAD + struct.pack(">I", zlib.crc32(PAYLOAD))
"""A file of deletion vectors: its version, then a vector that deletes the first row and the third."""
BLOCKS_PATH = "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin"
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "vBn[lx{q8@P<9BNH/isA",
    "offset": 1,
    "sizeInBytes": len(PAYLOAD),
    "cardinality": 2,
}


@given(field=st.sampled_from([None, *VECTOR]), value=st.sampled_from(SPELLINGS), damage=damages, data=st.data())
@examples(300)
def test_a_damaged_deletion_vector_never_brings_a_row_back(
    folder: Folder, field: str | None, value: bytes, damage: Damage, data: st.DataObject
) -> None:
    vector = json.dumps({**VECTOR, field: "SPOILT"} if field else VECTOR).encode().replace(b'"SPOILT"', value)
    add = FILES_WITHOUT_VECTORS[0].replace(b'"dataChange"', b'"deletionVector": ' + vector + b', "dataChange"')
    blocks = BLOCKS if field else damage.of(BLOCKS, data)

    path = folder.log(joined([[*FIRST, METADATA[2], add]], b"\n"), beside={BLOCKS_PATH: blocks})
    answers = ask_everything(path)

    for found in (answers.rows, answers.stream):
        assert isinstance(found, TablefeedError) or ids_of(found) == [1]
