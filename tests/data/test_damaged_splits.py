"""Whatever the bytes of a split are, they become rows or an error of ours: nothing else is raised, nothing hangs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv6Address
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.examples import examples
from support.split_bytes import LZ4, NONE, U64, ZSTD, a_field, a_store, bundle, document, marks
from tablefeed.data.read import ReadPlan
from tablefeed.data.splits import SplitFile, read_split_batches
from tablefeed.errors import DataFileError, UnsupportedFeatureError
from tablefeed.indextables.split.nested import Instant

SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("f", pa.float32()),
        ("b", pa.bool_()),
        ("s", pa.string()),
        ("y", pa.binary()),
        ("t", pa.timestamp("us", "UTC")),
        ("d", pa.date32()),
        ("n", pa.decimal128(9, 2)),
        ("ip", pa.string()),
        ("js", pa.string()),
        ("st", pa.struct([("a", pa.int32()), ("t", pa.timestamp("us", "UTC")), ("y", pa.binary())])),
        ("l", pa.list_(pa.string())),
        ("m", pa.map_(pa.int64(), pa.float64())),
        ("u", pa.int16()),
    ]
)
VALUES: list[object] = [
    1,
    1.5,
    True,
    "text",
    b"bytes",
    Instant(1_000),
    Instant(-86_400_000_000_000),
    "1.25",
    IPv6Address("::ffff:1.2.3.4"),
    {"a": [1, 2.5, "x", None, True, {}], "t": Instant(5)},
    {"a": 7, "t": 1, "y": "AP8="},
    {"_values": ["a", "b"]},
    {"1": 1.5, "-2": math.inf},
    "12",
]
DOCUMENTS = [
    document(list(enumerate(VALUES))),
    document([]),
    document(list(reversed(list(enumerate(VALUES))))),
    document([(0, None), (11, ["x"]), (13, U64(3))]),
    document([(3, "z" * 200)]),
]
Damage = Sequence[tuple[int, int]]
"""Places of bytes, and what each is changed by."""


def meta_of(row_count: int) -> bytes:
    segment = {"segment_id": "0", "max_doc": row_count, "deletes": None}
    return json.dumps({"segments": [segment], "schema": [a_field(name) for name in SCHEMA.names]}).encode()


def read_or_refused(split: bytes) -> None:
    """Reads the split; passes if it gives valid rows, or an error of ours."""
    plan = ReadPlan(schema=SCHEMA, batch_rows=1000)
    file = SplitFile(path="part-0.split", size_bytes=len(split), num_records=None)
    with suppress(DataFileError, UnsupportedFeatureError):
        for batch in read_split_batches(lambda at, n: split[at : at + n], plan, file):
            batch.validate(full=True)


def damaged(data: bytes, damage: Damage) -> bytes:
    changed = bytearray(data)
    for place, by in damage:
        if changed:
            changed[place % len(changed)] ^= by
    return bytes(changed)


DAMAGE = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 255)), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def splits(index_tables: Path) -> list[bytes]:
    tables = ("it053_types_row", "it053_events_json", "upstream_v0.5.4/09_partitioned_multi_append")
    return [path.read_bytes() for table in tables for path in sorted((index_tables / table).rglob("*.split"))]


@examples(2_000)
@given(which=st.integers(0, 1 << 10), damage=DAMAGE, cut=st.none() | st.integers(0, 1 << 20), at_the_end=st.booleans())
def test_a_real_split_with_other_bytes_is_rows_or_an_error_of_ours(
    splits: list[bytes], which: int, damage: Damage, cut: int | None, *, at_the_end: bool
) -> None:
    split = splits[which % len(splits)]
    if at_the_end:  # where lengths and places are: the middle is for the most part what no row is read from
        damage = [(len(split) - 1 - place % 2_000, by) for place, by in damage]

    read_or_refused(damaged(split, damage)[: cut % len(split) if cut is not None else None])


@examples(2_000)
@given(damage=DAMAGE, compressor=st.sampled_from([NONE, NONE, LZ4, ZSTD]), copies=st.sampled_from([1, 80]))
def test_documents_with_other_bytes_and_a_checksum_that_fits_are_rows_or_an_error_of_ours(
    damage: Damage, compressor: int, copies: int
) -> None:
    # Many, so that what is in values is read in columns; of two shapes, as each takes steps of its own.
    documents = DOCUMENTS if copies == 1 else DOCUMENTS[:2] * copies
    store = a_store([documents], compressor=compressor)
    body = store[: store.rindex(b'{"version"')]

    body = damaged(body, damage)

    read_or_refused(bundle({"0.store": body + marks(body), "meta.json": meta_of(len(documents))}))


def test_the_documents_that_are_damaged_here_are_rows_when_they_are_not() -> None:
    split = bundle({"0.store": a_store([DOCUMENTS]), "meta.json": meta_of(5)})
    plan = ReadPlan(schema=SCHEMA, batch_rows=1000)
    file = SplitFile(path="part-0.split", size_bytes=len(split), num_records=5)

    (batch,) = read_split_batches(lambda at, n: split[at : at + n], plan, file)

    whole, empty, reversed_, few, text = batch.to_pylist()
    assert whole == reversed_
    assert set(empty.values()) == {None}
    assert [name for name, value in few.items() if value is not None] == ["l", "u"]
    assert text["s"] == "z" * 200
