from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from support.commit_columns import decode_commit_columns
from tablefeed.delta import columns
from tablefeed.delta.codec import decode_commit
from tablefeed.delta.columns import (
    DELETION_VECTOR,
    FILE_COLUMNS,
    decode_paths,
    file_keys,
    to_add_files,
)
from tablefeed.delta.json_texts import text_of
from tablefeed.model.actions import Commit, Version

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "sizeInBytes": 36, "cardinality": 2}


def an_add(path: object = "a", **fields: object) -> bytes:
    add = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 2, "dataChange": True, **fields}
    return orjson.dumps({"add": add}) + b"\n"


def decoded(*lines: bytes) -> tuple[list[pa.RecordBatch], Commit]:
    return decode_commit_columns(b"".join(lines), version=Version(7), log_file="7.json", modified_ms=99)


def test_the_bytes_of_some_of_many_texts_are_theirs_alone() -> None:
    assert text_of(pa.array(["ab", "c", "de"]).slice(1, 1)).to_pybytes() == b"c"


def test_columns_and_values_say_the_same_of_a_commit() -> None:
    lines = [
        b'{"commitInfo":{"inCommitTimestamp":5}}\n',
        b'{"txn":{"appId":"q","version":3}}\n',
        an_add("p=%2541/a%20b", partitionValues={"p": "%41", "q": None}, stats='{"numRecords":1}'),
        b'{"remove":{"path":"r","dataChange":false,"deletionTimestamp":1,"stats":"{}"}}\n',
        b'{"cdc":{"path":"c","partitionValues":{},"size":3,"dataChange":false}}\n',
        an_add("d", deletionVector=VECTOR, tags={"k": "v", "n": None}, baseRowId=1, defaultRowCommitVersion=2),
    ]
    ((batch,), commit) = decoded(*lines)
    value = decode_commit(b"".join(lines), version=Version(7), log_file="7.json", modified_ms=99)
    assert commit == replace(value, files=())
    assert tuple(to_add_files(batch)) == value.added
    assert batch.schema == FILE_COLUMNS
    assert batch["is_add"].to_pylist() == [True, False, True]
    assert batch["key"].to_pylist() == ["p=%41/a b", "r", "d\x00uab@1"]


def test_of_a_remove_stay_its_key_and_what_a_tombstone_needs() -> None:
    ((batch,), _) = decoded(
        b'{"remove":{"path":"r%20","dataChange":true,"size":4,"modificationTime":"x","stats":"{}"}}'
    )
    (row,) = batch.to_pylist()
    assert {name: value for name, value in row.items() if value is not None} == {
        "key": "r ",
        "is_add": False,
        "log_path": "r%20",
        "size_bytes": 4,
        "data_change": True,
    }


def test_a_file_is_the_same_file_however_its_absolute_path_is_spelled() -> None:
    paths = pa.array(["file:///t/a%20b", "file:/t/a b", "/t/a%20b", "s3://b/a%20b", "a%2520b"])
    expected = ["/t/a b", "/t/a b", "/t/a b", "s3://b/a b", "a%20b"]
    assert decode_paths(paths).to_pylist() == expected
    assert file_keys(paths, pa.nulls(5, DELETION_VECTOR)).to_pylist() == expected


def test_paths_that_need_no_decoding_are_the_column_itself() -> None:
    paths = pa.array(["p=1/a", None, "p=:/b"])
    assert decode_paths(paths) is paths


def test_a_file_is_another_file_with_another_deletion_vector() -> None:
    vectors = [
        None,
        {"storage_type": "u", "path_or_inline": "ab", "offset": 4, "size_bytes": 1, "cardinality": 1},
        {"storage_type": "i", "path_or_inline": "xy", "offset": None, "size_bytes": 1, "cardinality": 1},
    ]
    keys = file_keys(pa.array(["a%20", "a%20", "a%20"]), pa.array(vectors, DELETION_VECTOR))
    assert keys.to_pylist() == ["a ", "a \x00uab@4", "a \x00ixy"]
    assert file_keys(pa.array(["a", "b"]), pa.array(vectors, DELETION_VECTOR).slice(1)).to_pylist() == [
        "a\x00uab@4",
        "b\x00ixy",
    ]


def test_a_commit_is_cut_into_batches_by_rows_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [an_add(f"f{i}") for i in range(7)]
    monkeypatch.setattr(columns, "_BATCH_ROWS", 3)
    assert [batch.num_rows for batch in decoded(*lines)[0]] == [3, 3, 1]
    monkeypatch.setattr(columns, "_BATCH_BYTES", 2 * len(lines[0]))
    batches, _ = decoded(*lines)
    assert [batch.num_rows for batch in batches] == [2, 2, 2, 1]
    assert [add.path for batch in batches for add in to_add_files(batch)] == [f"f{i}" for i in range(7)]


def test_a_commit_without_files_has_no_batch() -> None:
    batches, commit = decoded(b'{"txn":{"appId":"q","version":3}}')
    assert batches == []
    assert len(commit.txns) == 1


def test_a_hundred_thousand_files_of_one_commit_are_found_in_the_corpus(corpus: Path) -> None:
    folder = corpus / "delta" / "kernelrs-data-tar" / "300k-add-files-100-col-partitioned" / "_delta_log"
    data = (folder / "00000000000000000002.json").read_bytes()
    batches, _ = decoded(data)
    assert len({key for batch in batches for key in batch["key"].to_pylist()}) == 100_000
    assert max(batch.num_rows for batch in batches) <= columns._BATCH_ROWS
