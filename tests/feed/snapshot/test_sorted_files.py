from __future__ import annotations

import random

import pyarrow as pa
import pytest

from tablefeed.feed.snapshot.sorted_files import SortedFiles

SCHEMA = pa.schema([("key", pa.string()), ("is_add", pa.bool_())])


def batch(*keys: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.string()), pa.array([True] * len(keys))], schema=SCHEMA)


def keys_of(files: SortedFiles, rows: int) -> list[list[str]]:
    return [each["key"].to_pylist() for each in files.batches(rows)]


@pytest.mark.parametrize("run_bytes", [1, 2_000, 100_000_000])
def test_rows_come_out_by_their_keys_bytes_in_batches_of_one_size_however_many_runs_they_were_in(
    run_bytes: int,
) -> None:
    keys = [f"{prefix}{n}" for n in range(9_000) for prefix in ("p=ü/", "p=z/", "")]
    expected = sorted(keys, key=str.encode)
    random.Random(7).shuffle(keys)  # noqa: S311 - an order, no secret

    with SortedFiles(SCHEMA, run_bytes=run_bytes) as files:
        for begin in range(0, len(keys), 1_000):
            files.add(batch(*keys[begin : begin + 1_000]))
        batches = keys_of(files, 4_000)
        again = keys_of(files, 27_000)

    assert [len(each) for each in batches] == [4_000] * 6 + [3_000]
    assert [key for each in batches for key in each] == expected
    assert again == [expected]
    assert (files.count, files.add_count) == (27_000, 27_000)


def test_nothing_gives_nothing() -> None:
    with SortedFiles(SCHEMA) as files:
        files.add(batch())
        assert keys_of(files, 10) == []


def test_what_is_cleared_is_gone() -> None:
    with SortedFiles(SCHEMA, run_bytes=1) as files:
        files.add(batch("b", "a"))
        files.clear()
        files.add(batch("c"))

        assert keys_of(files, 10) == [["c"]]
        assert files.count == 1
