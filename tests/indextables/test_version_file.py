from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any

import hypothesis.strategies as st
import orjson
import pytest
from hypothesis import given

from support.index_log import IN_SCALA_LINES, LONGS, PROTOCOL, TEXT_MAPS, TEXTS, any_add
from tablefeed.errors import CorruptLogError, TablefeedError, UnsupportedFeatureError
from tablefeed.indextables.log.version_file import Writer, decode_commit, encode_commit
from tablefeed.model.actions import AddFile, Commit, Metadata, RemoveFile, Txn, Version
from tablefeed.model.split import Split

ADD = b'{"add":{"path":"s=a%20b/x.split","size":1,"modificationTime":5}}\n'


def decoded(data: bytes, *, modified_ms: int | None = 99) -> Commit:
    name = "00000000000000000007.json"
    return decode_commit(data, version=Version(7), url="mem://t", log_file=name, modified_ms=modified_ms)


def line(action: str, values: Mapping[str, Any]) -> bytes:
    return orjson.dumps({action: values}) + b"\n"


def an_add(**values: Any) -> AddFile:
    fields = {"path": "a.split", "partitionValues": {}, "size": 1, "modificationTime": 2, **values}
    return decoded(line("add", fields)).added[0]


@pytest.mark.parametrize(
    "data",
    [
        ADD,
        gzip.compress(ADD, mtime=0),
        b"\x01\x01" + gzip.compress(ADD, mtime=0),
        gzip.compress(ADD[:20], mtime=0) + gzip.compress(ADD[20:], mtime=0),
    ],
    ids=["plain", "native gzip", "marked gzip of the Scala log", "gzip in two members"],
)
def test_a_version_file_is_read_in_each_of_its_forms(data: bytes) -> None:
    assert [file.path for file in decoded(data).added] == ["s=a%20b/x.split"]


def test_another_codec_is_refused_by_its_number() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"^\[INDEXTABLES_UNSUPPORTED_CODEC\].*codec 2") as refused:
        decoded(b"\x01\x02" + b"\x28\xb5\x2f\xfd")

    assert refused.value.features == ("codec 2",)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty"),
        (b"\x01", "not JSON"),
        (b"\x01\x01", "not a valid gzip file"),
        (gzip.compress(ADD, mtime=0)[:-3], "not a valid gzip file"),
        (b"\x01\x01" + gzip.compress(ADD, mtime=0)[:30], "not a valid gzip file"),
        (gzip.compress(ADD, mtime=0)[:-8] + bytes(8), "not a valid gzip file"),
        (b"\x01\x01" + ADD, "not a valid gzip file"),
        (ADD + b'{"add":{"path"', "line 2: the line is not JSON"),
        (ADD + b"[]", "line 2: the line is not a JSON object"),
        (b"\xff\xfe", "not JSON"),
        (b'{"add":7}', "add is not a JSON object"),
        (b'{"add":{},"remove":{}}', "holds add and remove"),
        (b'{"add":{"size":1,"modificationTime":2}}', "add.path is missing"),
        (b'{"add":{"path":null,"size":1,"modificationTime":2}}', "add.path is missing"),
        (b'{"add":{"path":"a","modificationTime":2}}', "add.size is missing"),
        (b'{"add":{"path":"a","size":true,"modificationTime":2}}', "add.size is True"),
        (b'{"add":{"path":"a","size":1.5,"modificationTime":2}}', "add.size is 1.5"),
        (b'{"add":{"path":"a","size":18446744073709551616,"modificationTime":2}}', "add.size is"),
        (b'{"add":{"path":"a","size":1,"modificationTime":2,"splitTags":"x"}}', "add.splitTags is 'x'"),
        (b'{"add":{"path":"a","size":1,"modificationTime":2,"timeRangeStart":[]}}', "add.timeRangeStart is"),
        (b'{"metaData":{"id":"x"}}', "metaData.schemaString is missing"),
        (b'{"metaData":{"id":"x","schemaString":"","format":{"provider":1}}}', "metaData.format.provider is 1"),
        (b'{"protocol":{"minReaderVersion":"4","minWriterVersion":4}}', "protocol.minReaderVersion is '4'"),
    ],
)
def test_what_is_no_version_file_is_an_error_that_says_where(data: bytes, said: str) -> None:
    with pytest.raises(CorruptLogError, match=r"00000000000000000007\.json") as bad:
        decoded(data)

    assert said in bad.value.message


def test_a_commit_may_have_no_line_at_all() -> None:
    empty = gzip.compress(b"", mtime=0)

    assert len(empty) == 20
    assert decoded(empty) == Commit(version=Version(7), committed_at_ms=99)


def test_a_path_is_what_lies_on_disk_and_never_decoded() -> None:
    assert an_add(path="s=a%20b/ü%%3A.split").path == "s=a%20b/ü%%3A.split"


def test_null_is_absent_and_absent_is_the_default() -> None:
    nulls = {"dataChange": None, "partitionValues": None, "stats": None, "splitTags": None, "numRecords": None}

    assert an_add(**nulls) == an_add()
    assert an_add().data_change is True
    assert an_add().partition_values == {}
    assert an_add().split == Split()


def test_times_and_tags_are_taken_in_either_type_that_they_come_in() -> None:
    split = an_add(timeRangeStart=1704067200, timeRangeEnd="2024-01-02T00:00:00Z", splitTags=["x", "y"]).split

    assert split == Split(time_range_start="1704067200", time_range_end="2024-01-02T00:00:00Z", tags=("x", "y"))


@pytest.mark.parametrize("key", ["cdc", "domainMetadata", "whatever"])
def test_a_line_that_tells_nothing_of_the_files_is_passed_over(key: str) -> None:
    commit = decoded(line(key, {"path": "a.split", "skipCount": 3}) + ADD)

    assert len(commit.files) == 1


def test_our_own_lines_are_read_back_and_ours_tells_the_time() -> None:
    data = line("txn", {"appId": "q", "version": 3}) + line("commitInfo", {"timestamp": 42, "txnId": "u"}) + ADD

    commit = decoded(data)

    assert commit.txns == (Txn(app_id="q", txn_version=3),)
    assert commit.info == {"timestamp": 42, "txnId": "u"}
    assert commit.committed_at_ms == 42


def test_without_commit_info_the_newest_time_of_a_file_is_the_commits() -> None:
    remove = line("remove", {"path": "a", "deletionTimestamp": 6})

    assert decoded(ADD + remove).committed_at_ms == 6
    assert decoded(ADD).committed_at_ms == 5
    assert decoded(line("remove", {"path": "a"})).committed_at_ms == 99


def test_the_last_metadata_of_a_version_holds() -> None:
    metadata = [line("metaData", {"id": "t", "schemaString": "s", "configuration": {"k": value}}) for value in "ab"]

    found = decoded(b"".join(metadata)).metadata

    assert found is not None
    assert found.configuration == {"k": "b"}


def test_the_scala_log_reads_nulls_and_the_native_one_what_is_there() -> None:
    commit = Commit(version=Version(7), files=(an_add(numRecords=3),), protocol=PROTOCOL, committed_at_ms=2)

    scala, native = (encode_commit(commit, writer=writer) for writer in (Writer.SCALA, Writer.NATIVE))

    assert scala[:4] == b"\x01\x01\x1f\x8b"
    assert native[:2] == b"\x1f\x8b"
    assert gzip.decompress(scala[2:]).decode() == (
        '{"protocol":{"minReaderVersion":4,"minWriterVersion":4,"readerFeatures":null,"writerFeatures":null}}\n'
        '{"add":{"path":"a.split","partitionValues":{},"size":1,"modificationTime":2,"dataChange":true,"stats":null,'
        '"tags":null,"minValues":null,"maxValues":null,"numRecords":3,"footerStartOffset":null,"footerEndOffset":null,'
        '"hotcacheStartOffset":null,"hotcacheLength":null,"hasFooterOffsets":false,"timeRangeStart":null,'
        '"timeRangeEnd":null,"splitTags":null,"deleteOpstamp":null,"numMergeOps":null,"docMappingJson":null,'
        '"docMappingRef":null,"uncompressedSizeBytes":null,"companionSourceFiles":null,"companionDeltaVersion":null,'
        '"companionFastFieldMode":null}}\n'
    )
    assert gzip.decompress(native).decode() == (
        '{"protocol":{"minReaderVersion":4,"minWriterVersion":4}}\n'
        '{"add":{"path":"a.split","partitionValues":{},"size":1,"modificationTime":2,"dataChange":true,"numRecords":3}}\n'
    )


def test_a_partition_value_of_null_is_written_as_hives_word() -> None:
    add = an_add(partitionValues={"day": None})

    read = decoded(encode_commit(Commit(version=Version(7), files=(add,), committed_at_ms=2), writer=Writer.SCALA))

    assert read.added[0].partition_values == {"day": "__HIVE_DEFAULT_PARTITION__"}


removes = st.builds(
    lambda path, values: RemoveFile(path=path, log_path=path, data_change=False, partition_values=values),
    TEXTS,
    st.none() | TEXT_MAPS,
)
commits = st.builds(
    Commit,
    version=st.just(Version(7)),
    files=st.lists(any_add(IN_SCALA_LINES) | removes, max_size=4).map(tuple),
    txns=st.lists(st.builds(Txn, app_id=TEXTS, txn_version=LONGS), max_size=2).map(tuple),
    metadata=st.none() | st.builds(Metadata, table_id=TEXTS, schema_string=TEXTS, configuration=TEXT_MAPS),
    protocol=st.none() | st.just(PROTOCOL),
    info=st.just({"timestamp": 42}),
    committed_at_ms=st.just(42),
)


@given(commits)
def test_what_is_written_for_the_scala_log_is_read_back_as_it_was(commit: Commit) -> None:
    assert decoded(encode_commit(commit, writer=Writer.SCALA)) == commit


@given(commits)
def test_the_native_form_says_the_same_of_rows_and_paths(commit: Commit) -> None:
    read = decoded(encode_commit(commit, writer=Writer.NATIVE))

    assert [file.path for file in read.files] == [file.path for file in commit.files]
    assert [file.split and file.split.num_records for file in read.added] == [
        file.split and file.split.num_records for file in commit.added
    ]
    assert read.txns == commit.txns


@given(commits, st.data())
def test_damaged_bytes_are_read_or_refused_by_an_error_of_ours(commit: Commit, data: st.DataObject) -> None:
    written = bytearray(encode_commit(commit, writer=Writer.SCALA))
    for _ in range(data.draw(st.integers(1, 3))):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(written)))

    for damaged in (bytes(written), bytes(written[:cut]), gzip.compress(bytes(written[:cut]))):
        try:
            decoded(damaged)
        except TablefeedError:
            continue


@given(
    st.recursive(
        st.none() | st.booleans() | LONGS | TEXTS,
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["add", "remove", "metaData", "protocol", "txn", "commitInfo", "path", "size", "id"]),
                inner,
            )
        ),
    )
)
def test_any_json_is_read_or_refused_by_an_error_of_ours(value: object) -> None:
    try:
        decoded(orjson.dumps(value))
    except TablefeedError:
        return


@pytest.mark.parametrize("key", ["mergeskip", "skip"])
def test_what_a_merge_left_alone_is_told_with_all_its_fields_and_changes_nothing(key: str) -> None:
    skip = {"path": "a.split", "skipTimestamp": 7, "reason": "merge failed", "skipCount": 2, "x": []}
    commit = decoded(line(key, skip) + ADD)

    assert commit.info == {"mergeskip": [skip]}
    assert [file.path for file in commit.files] == ["s=a%20b/x.split"]
    assert decoded(encode_commit(commit, writer=Writer.SCALA)) == commit
