"""The removes and adds of files, written from columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.commit_columns import decode_commit_columns
from support.logs import Action, add, json_lines
from tablefeed.delta.codec import decode_commit, encode_commit
from tablefeed.delta.columns import to_add_files
from tablefeed.delta.removes import Addition, Removal
from tablefeed.model.actions import Commit, RemoveFile, Version

NOW_MS = 1_700_000_000_000
VECTOR = {"storageType": "u", "pathOrInlineDv": 'ab^-"\\', "offset": 4, "sizeInBytes": 40, "cardinality": 6}


def an_add(path: str, **more: Any) -> Action:
    return add(path, modified=7, **more)


def files_of(*adds: Action) -> pa.RecordBatch:
    batches, _ = decode_commit_columns(json_lines(*adds), version=Version(0), log_file="0.json", modified_ms=0)
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def as_values(files: pa.RecordBatch) -> bytes:
    """What a commit of the same removes as values says."""
    removes = tuple(
        RemoveFile(
            path=add.path,
            log_path=add.log_path,
            data_change=True,
            deletion_timestamp_ms=NOW_MS,
            extended_file_metadata=True,
            partition_values=add.partition_values,
            size_bytes=add.size_bytes,
            tags=add.tags,
            deletion_vector=add.deletion_vector,
            base_row_id=add.base_row_id,
            default_row_commit_version=add.default_row_commit_version,
        )
        for add in to_add_files(files)
    )
    return encode_commit(Commit(version=Version(1), files=removes, committed_at_ms=None))


def as_lines(*batches: pa.RecordBatch) -> bytes:
    lines: list[memoryview] = []
    removal = Removal(lines.append, deletion_timestamp_ms=NOW_MS)
    for batch in batches:
        removal.take(batch)
    return encode_commit(Commit(version=Version(1), committed_at_ms=None), lines)


ADDS: list[list[Action]] = [
    [an_add("a")],
    [
        an_add("p=1/a", partitionValues={"p": "1", "q": None}),
        an_add("p=2/b", partitionValues={"p": "", "q": 'a"b'}),
    ],
    [an_add("a", tags={"OWNER": "me"}), an_add("b"), an_add("c", tags={}), an_add("d", tags={"x": "\u2028\x7f"})],
    [an_add("a", deletionVector=VECTOR), an_add("b"), an_add("b", deletionVector={**VECTOR, "offset": None})],
    [an_add("a", baseRowId=0, defaultRowCommitVersion=2**62), an_add("b", baseRowId=5)],
    [an_add('with%20space/ü\\"\x01'), an_add("s3://elsewhere/a?b#c")],
]


@pytest.mark.parametrize("adds", ADDS)
def test_the_lines_are_those_of_the_same_removes_as_values(adds: list[Action]) -> None:
    files = files_of(*adds)

    assert as_lines(files) == as_values(files)


@pytest.mark.parametrize("adds", [*ADDS, [an_add("a", stats='{"numRecords":1,"x":"\\""}', clusteringProvider="me")]])
def test_the_lines_of_adds_are_those_of_the_same_adds_as_values(adds: list[Action]) -> None:
    files, lines = files_of(*adds), list[memoryview]()

    Addition(lines.append).take(files)

    written = encode_commit(Commit(version=Version(1), committed_at_ms=None), lines)
    assert written == encode_commit(Commit(version=Version(1), files=tuple(to_add_files(files)), committed_at_ms=None))


_TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)


@given(
    st.lists(
        st.builds(
            an_add,
            _TEXTS.filter(bool),
            partitionValues=st.dictionaries(_TEXTS, st.none() | _TEXTS, max_size=3),
            tags=st.none() | st.dictionaries(_TEXTS, _TEXTS | st.none(), max_size=3),
            deletionVector=st.none() | _TEXTS.map(lambda text: {**VECTOR, "pathOrInlineDv": text}),
        ),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 11),
)
def test_whatever_the_names_and_values_are_and_wherever_a_batch_begins(adds: Sequence[Any], begin: int) -> None:
    files = files_of(*adds).slice(min(begin, len(adds) - 1))

    assert as_lines(files) == as_values(files)


def test_removes_are_given_many_at_a_time_and_counted() -> None:
    lines: list[memoryview] = []
    removal = Removal(lines.append, deletion_timestamp_ms=NOW_MS)
    many = files_of(*(an_add(f"f{n}", size=n) for n in range(20_000)))
    removal.take(many)
    removal.take(files_of(an_add("x", deletionVector=VECTOR)))

    assert [bytes(each).count(b"\n") for each in lines] == [8192, 8192, 3616, 1]
    assert (removal.counts.file_count, removal.counts.size_bytes) == (20_001, sum(range(20_000)) + 10)
    assert (removal.counts.vector_count, removal.counts.deleted_rows) == (1, 6)
    data = b"".join(map(bytes, lines))
    read = decode_commit(data, version=Version(1), log_file="1.json", modified_ms=None)
    assert len(read.removed) == 20_001
