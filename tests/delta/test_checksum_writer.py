from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
import pyarrow as pa
import pytest

from support import actions
from support.commit_columns import decode_commit_columns
from tablefeed.delta.checkpoint.checksum import parse_checksum
from tablefeed.delta.checkpoint.checksum_writer import (
    SIZE_BINS,
    FileCounts,
    counts_after,
    encode_checksum,
    no_files,
    read_counts,
)
from tablefeed.delta.checkpoint.tally import Tally
from tablefeed.model.actions import (
    AddFile,
    DeletionVector,
    DomainMetadata,
    Facts,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
    Version,
)

METADATA = Metadata(table_id="t", schema_string='{"type":"struct","fields":[]}', created_ms=5)
FACTS = Facts(protocol=Protocol(min_reader_version=1, min_writer_version=2), metadata=METADATA)
WITH_VECTORS = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"deletionVectors"}),
    writer_features=frozenset({"deletionVectors"}),
)


def add(path: str, size: int, *, deleted: int | None = None) -> AddFile:
    return actions.add(path, size_bytes=size, deletion_vector=vector(deleted))


def remove(path: str, size: int | None, *, deleted: int | None = None) -> RemoveFile:
    return actions.remove(path, size_bytes=size, deletion_vector=vector(deleted))


def vector(deleted: int | None) -> DeletionVector | None:
    if deleted is None:
        return None
    return DeletionVector(storage_type="i", path_or_inline="ab", offset=None, size_bytes=2, cardinality=deleted)


a_commit = partial(actions.commit, 1)


def after(before: FileCounts, *files: AddFile | RemoveFile) -> FileCounts:
    counts = counts_after(before, a_commit(*files))
    assert counts is not None
    return counts


def encoded(counts: FileCounts, facts: Facts = FACTS, *, schema_changed: bool = False) -> dict[str, Any]:
    data = encode_checksum(counts, facts, txn_id="id", schema_changed=schema_changed)
    assert data is not None
    assert data.endswith(b"}\n")
    values: dict[str, Any] = json.loads(data)
    return values


def of(**properties: str) -> Facts:
    return replace(FACTS, metadata=replace(METADATA, configuration={f"delta.{k}": v for k, v in properties.items()}))


def test_a_checksum_has_the_fields_of_the_protocol() -> None:
    facts = replace(
        FACTS,
        txns={"q": Txn(app_id="q", txn_version=3, last_updated_ms=9)},
        domains={"d": DomainMetadata(domain="d", configuration="{}", removed=False)},
    )

    values = encoded(after(no_files(), add("a", 10), add("b", 9000)), facts)

    histogram = values.pop("fileSizeHistogram")
    assert histogram["sortedBinBoundaries"][:3] == [0, 8192, 16384]
    assert (histogram["fileCounts"][:3], histogram["totalBytes"][:3]) == ([1, 1, 0], [10, 9000, 0])
    assert {len(bins) for bins in histogram.values()} == {95}
    assert [file["path"] for file in values["allFiles"]] == ["a", "b"]
    assert values.pop("allFiles")[0] == {
        "path": "a",
        "partitionValues": {},
        "size": 10,
        "modificationTime": 1,
        "dataChange": False,
    }
    assert values == {
        "txnId": "id",
        "tableSizeBytes": 9010,
        "numFiles": 2,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [{"appId": "q", "version": 3, "lastUpdated": 9}],
        "domainMetadata": [{"domain": "d", "configuration": "{}", "removed": False}],
        "metadata": {
            "id": "t",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": '{"type":"struct","fields":[]}',
            "partitionColumns": [],
            "configuration": {},
            "createdTime": 5,
        },
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
    }


def test_what_is_written_is_read_back_by_both_readers() -> None:
    counts = after(no_files(), add("a", 10), add("b", 20, deleted=3))
    facts = replace(FACTS, protocol=WITH_VECTORS)
    data = encode_checksum(counts, facts, txn_id=None, schema_changed=False)
    assert data is not None

    files = tuple(replace(file, data_change=False) for file in counts.files or ())
    assert read_counts(data, table_id="t") == replace(counts, files=files)
    checksum = parse_checksum(data)
    assert checksum is not None
    assert (checksum.file_count, checksum.size_bytes) == (2, 30)
    assert (checksum.metadata, checksum.protocol) == (METADATA, WITH_VECTORS)


def test_what_a_commit_adds_and_removes_is_counted_on() -> None:
    before = after(no_files(), add("a", 10), add("b", 20, deleted=3), add("c", 9000))

    counts = after(before, remove("b", 20, deleted=3), remove("a", 10), add("a", 10, deleted=15))

    assert (counts.file_count, counts.size_bytes) == (2, 9010)
    assert (counts.vector_count, counts.deleted_rows) == (1, 15)
    assert counts.deleted_histogram == (1, 0, 1, 0, 0, 0, 0, 0, 0, 0)
    assert counts.histogram is not None
    assert (counts.histogram[0][:2], counts.histogram[1][:2]) == ((1, 1), (10, 9000))
    assert [(file.path, file.size_bytes) for file in counts.files or ()] == [("c", 9000), ("a", 10)]


def test_a_remove_that_does_not_say_its_size_ends_the_counting() -> None:
    assert counts_after(after(no_files(), add("a", 10)), a_commit(remove("a", None))) is None


def test_counts_that_fall_below_zero_were_not_the_tables() -> None:
    assert counts_after(no_files(), a_commit(remove("a", 10))) is None
    wrong_bins = replace(after(no_files(), add("a", 10)), file_count=5, size_bytes=50_000)
    assert counts_after(wrong_bins, a_commit(remove("b", 9000))) is None


def test_files_are_listed_up_to_fifty_and_not_again_when_they_become_fewer() -> None:
    fifty = after(no_files(), *(add(f"{n}", 1) for n in range(50)))
    more = after(fifty, add("one more", 1))

    assert len(encoded(fifty)["allFiles"]) == 50
    assert "allFiles" not in encoded(more)
    assert "allFiles" not in encoded(after(more, *(remove(f"{n}", 1) for n in range(49))))


def test_an_empty_table_lists_no_files_whatever_was_known_before() -> None:
    unknown = replace(after(no_files(), add("a", 1)), files=None)

    assert encoded(after(unknown, remove("a", 1)))["allFiles"] == []


def test_files_that_are_not_those_counted_are_not_listed() -> None:
    other = replace(after(no_files(), add("a", 1)), files=(add("b", 1),))

    assert after(other, add("c", 1), remove("a", 1)).files is None


@pytest.mark.parametrize(
    "facts",
    [
        of(dataSkippingNumIndexedCols="33"),
        of(**{"checkpoint.writeStatsAsJson": "false", "checkpoint.writeStatsAsStruct": "false"}),
    ],
)
def test_files_are_not_listed_where_the_jar_lists_none(facts: Facts) -> None:
    assert "allFiles" not in encoded(after(no_files(), add("a", 1)), facts)
    assert "allFiles" not in encoded(no_files(), schema_changed=True)


def test_txns_are_listed_up_to_a_hundred_and_not_at_all_where_they_expire() -> None:
    def listed(count: int, facts: Facts = FACTS) -> int | None:
        txns = {f"{n}": Txn(app_id=f"{n}", txn_version=1) for n in range(count)}
        found = encoded(no_files(), replace(facts, txns=txns)).get("setTransactions")
        return None if found is None else len(found)

    assert (listed(100), listed(101), listed(1, of(setTransactionRetentionDuration="1 day"))) == (100, None, None)


def test_domains_are_listed_up_to_ten() -> None:
    def with_domains(count: int) -> dict[str, Any]:
        domains = {f"{n}": DomainMetadata(domain=f"{n}", configuration="", removed=False) for n in range(count)}
        return encoded(no_files(), replace(FACTS, domains=domains))

    assert len(with_domains(10)["domainMetadata"]) == 10
    assert "domainMetadata" not in with_domains(11)


def test_deletion_vectors_are_counted_where_the_table_has_the_feature_and_it_was_counted_from_the_begin() -> None:
    counts = after(no_files(), add("a", 1, deleted=2))
    names = {"numDeletedRecordsOpt", "numDeletionVectorsOpt", "deletedRecordCountsHistogramOpt"}

    assert names.isdisjoint(encoded(counts))
    values = encoded(counts, replace(FACTS, protocol=WITH_VECTORS))
    assert (values["numDeletedRecordsOpt"], values["numDeletionVectorsOpt"]) == (2, 1)
    # A checksum of a time without the feature tells nothing of vectors, and so none after it does.
    data = encode_checksum(counts, FACTS, txn_id=None, schema_changed=False)
    assert data is not None
    later = read_counts(data, table_id="t")
    assert later is not None
    assert names.isdisjoint(encoded(after(later, add("b", 1)), replace(FACTS, protocol=WITH_VECTORS)))


def test_in_commit_timestamps_are_told_where_they_are_on_and_without_one_there_is_no_checksum() -> None:
    on = of(enableInCommitTimestamps="true")

    assert encoded(no_files(), replace(on, in_commit_timestamp_ms=7))["inCommitTimestampOpt"] == 7
    assert encode_checksum(no_files(), on, txn_id=None, schema_changed=False) is None
    assert "inCommitTimestampOpt" not in encoded(no_files(), replace(FACTS, in_commit_timestamp_ms=7))


def test_a_histogram_of_other_bins_is_not_counted_on() -> None:
    values = encoded(after(no_files(), add("a", 1)))
    values["fileSizeHistogram"] = {"sortedBinBoundaries": [0], "fileCounts": [1], "totalBytes": [1]}

    counts = read_counts(orjson.dumps(values), table_id="t")

    assert counts is not None
    assert counts.histogram is None
    assert "fileSizeHistogram" not in encoded(after(counts, add("b", 1)))


@pytest.mark.parametrize(
    "change",
    [
        {"numFiles": -1},
        {"numFiles": 1.0},
        {"numMetadata": 2},
        {"metadata": None},
        {"metadata": {"id": "another"}},
        {"tableSizeBytes": None},
        {"allFiles": [{"path": "a"}]},
        {"fileSizeHistogram": {"sortedBinBoundaries": list(SIZE_BINS), "fileCounts": [1], "totalBytes": [1]}},
        {"deletedRecordCountsHistogramOpt": {"deletedRecordCounts": [1]}},
        {"deletedRecordCountsHistogramOpt": {}},
    ],
    ids=str,
)
def test_nothing_follows_from_a_checksum_that_is_not_as_it_should_be(change: dict[str, Any]) -> None:
    values = encoded(after(no_files(), add("a", 1))) | change

    assert read_counts(orjson.dumps(values), table_id="t") is None


@pytest.mark.parametrize("data", [b"", b"[]", b"3", b"{", b'{"metadata":[]}'])
def test_what_is_no_checksum_tells_nothing(data: bytes) -> None:
    assert read_counts(data, table_id="t") is None


def test_files_counted_in_columns_are_counted_as_from_commits() -> None:
    files = [add(f"{n}", size, deleted=n if n % 2 else None) for n, size in enumerate((0, 8191, 8192, 10**9, 10**12))]
    line = '{{"add":{{"path":"{}","partitionValues":{{}},"size":{},"modificationTime":1,"dataChange":true{}}}}}\n'
    spelt = ',"deletionVector":{{"storageType":"i","pathOrInlineDv":"ab","sizeInBytes":2,"cardinality":{}}}'
    vectors = [spelt.format(f.deletion_vector.cardinality) if f.deletion_vector else "" for f in files]
    text = "".join(line.format(f.path, f.size_bytes, vector) for f, vector in zip(files, vectors, strict=True))
    (batch,), _ = decode_commit_columns(text.encode(), version=Version(1), log_file="1.json", modified_ms=1)
    tally = Tally()

    tally.take(batch.slice(0, 2))
    tally.take(batch.slice(2))

    assert isinstance(batch, pa.RecordBatch)
    assert tally.result() == after(no_files(), *files)
