"""The files of an initial snapshot: one order, in memory or on disk."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from support.commit_columns import decode_commit_columns
from support.logs import Action, add, json_lines
from tablefeed.delta.columns import FILE_COLUMNS, to_add_files
from tablefeed.errors import StoreError
from tablefeed.feed.snapshot.files import NUM_RECORDS, with_num_records
from tablefeed.feed.stream.snapshot_files import SnapshotFiles
from tablefeed.model.actions import Version

SCHEMA = FILE_COLUMNS.append(NUM_RECORDS)

in_memory_and_on_disk = pytest.mark.parametrize("run_bytes", [1 << 20, 1])


def files_of(*adds: Action) -> list[pa.RecordBatch]:
    batches, _ = decode_commit_columns(json_lines(*adds), version=Version(0), log_file="0.json", modified_ms=0)
    return [with_num_records(batch) for batch in batches]


def paths_of(batches: Iterable[pa.RecordBatch]) -> list[str]:
    return [path for batch in batches for path in batch["log_path"].to_pylist()]


@in_memory_and_on_disk
def test_files_come_by_time_then_by_the_bytes_of_the_path_as_logged(run_bytes: int) -> None:
    # "a%20b" is after "a!" as '%' is after '!'; decoded, ' ' would be before it. UTF-8 sorts by code point.
    expected = [("z", 1), ("Z", 2), ("a!", 2), ("a%20b", 2), ("aa", 2), ("ä", 2), ("\uffff", 2), ("\U0001f600", 2)]
    given = [files_of(add(path, modified=at)) for path, at in sorted(expected)]

    files = SnapshotFiles((batch for each in given for batch in each), schema=SCHEMA, run_bytes=run_bytes)

    assert paths_of(files.between(0, 8)) == [path for path, _ in expected]
    files.close()


@in_memory_and_on_disk
def test_one_path_with_two_deletion_vectors_comes_in_a_fixed_order(run_bytes: int) -> None:
    def with_vector(place: str) -> Action:
        vector = {"storageType": "i", "pathOrInlineDv": place, "sizeInBytes": 40, "cardinality": 6}
        return add("p", deletionVector=vector)

    twins = [files_of(with_vector(place)) for place in ("wi5b", "wi5a")]
    for given in (twins, twins[::-1]):
        files = SnapshotFiles((batch for each in given for batch in each), schema=SCHEMA, run_bytes=run_bytes)
        vectors = [each.deletion_vector for batch in files.between(0, 2) for each in to_add_files(batch)]
        assert [vector and vector.path_or_inline for vector in vectors] == ["wi5a", "wi5b"]
        files.close()


@in_memory_and_on_disk
def test_any_part_of_many_files_is_the_same_in_memory_and_on_disk(run_bytes: int) -> None:
    numbers = list(range(9_000))
    random.Random(7).shuffle(numbers)  # noqa: S311 - an order, no secret
    adds = [add(f"f{n:05}", modified=n // 3, size=n, stats=f'{{"numRecords":{n}}}') for n in numbers]
    given = (batch for begin in range(0, 9_000, 700) for batch in files_of(*adds[begin : begin + 700]))

    files = SnapshotFiles(given, schema=SCHEMA, run_bytes=run_bytes)

    assert files.columns["size_bytes"].to_pylist() == files.columns["num_records"].to_pylist() == list(range(9_000))
    for begin, end in ((0, 0), (0, 1), (4_090, 4_100), (8_192, 8_193), (100, 9_000), (8_999, 9_001), (9_000, 9_001)):
        assert paths_of(files.between(begin, end)) == [f"f{n:05}" for n in range(begin, min(end, 9_000))]
    assert not any("key" in batch.schema.names for batch in files.between(0, 9_000))
    chosen = pc.is_in(files.columns["size_bytes"], value_set=pa.array([3, 4_095, 4_096, 8_999]))
    assert paths_of(files.where(chosen)) == ["f00003", "f04095", "f04096", "f08999"]
    files.close()


@pytest.mark.parametrize("given", [[], [pa.RecordBatch.from_pylist([], SCHEMA)]])
def test_a_table_without_files_has_none(given: list[pa.RecordBatch]) -> None:
    files = SnapshotFiles(given, schema=SCHEMA)

    assert files.columns.num_rows == 0
    assert paths_of(files.between(0, 10)) == []


def test_a_full_disk_is_an_error_that_names_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)

    with pytest.raises(StoreError, match=r"could not be kept in /\S+: .*No space left on device.*TMPDIR"):
        SnapshotFiles(files_of(add("a"), add("b")), schema=SCHEMA, run_bytes=1)
