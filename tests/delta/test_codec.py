from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import hypothesis.strategies as st
import orjson
import pytest
from hypothesis import given

from support.actions import add
from tablefeed.delta.codec import decode_commit, decode_facts, encode_commit
from tablefeed.delta.commit_info import Provenance, StreamingUpdate, Write, commit_info
from tablefeed.delta.paths import decode_path
from tablefeed.errors import TABLE, CorruptLogError
from tablefeed.model.actions import (
    AddFile,
    CdcFile,
    Commit,
    DeletionVector,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Txn,
    Version,
)

ADD = b'{"add":{"path":"a%20b","partitionValues":{"p":null},"size":1,"modificationTime":2,"dataChange":true}}\n'
METADATA = (
    b'{"metaData":{"id":"t","format":{"provider":"parquet"},"schemaString":"s","partitionColumns":[],'
    b'"configuration":{}}}\n'
)
PROTOCOL = b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'


def decoded(*lines: bytes) -> Commit:
    name = "00000000000000000007.json"
    return decode_commit(b"".join(lines), version=Version(7), log_file=name, modified_ms=99)


def an_add_with(**fields: object) -> bytes:
    add = {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 2, "dataChange": True, **fields}
    return orjson.dumps({"add": add}) + b"\n"


def test_an_add_has_its_path_decoded_and_as_logged() -> None:
    written = replace(add("a b", partition_values={"p": None}, size_bytes=1, modified_ms=2), log_path="a%20b")

    assert decoded(ADD) == Commit(version=Version(7), files=(written,), committed_at_ms=99)


def test_files_keep_the_order_of_the_log_whatever_their_kind() -> None:
    remove = b'{"remove":{"path":"r","dataChange":false}}\n'
    cdc = b'{"cdc":{"path":"_change_data/c","partitionValues":{},"size":3,"dataChange":false}}\n'
    files = decoded(remove, ADD, cdc, remove).files
    assert [type(file) for file in files] == [RemoveFile, AddFile, CdcFile, RemoveFile]


def test_null_is_absent_and_what_the_protocol_does_not_name_is_passed_over() -> None:
    line = an_add_with(stats=None, tags=None, deletionVector=None, stats_parsed={"x": 1}, baseRowId=None)
    unknown = b'{"somethingNew":{"path":"x"}}\n{"add":null,"txn":{"appId":"q","version":3},"other":1}\n'
    commit = decoded(b"\n", line, unknown, b"  \n")
    assert commit.files == (add("a", size_bytes=1, modified_ms=2),)
    assert commit.txns == (Txn(app_id="q", txn_version=3),)


def test_unknown_fields_of_the_metadata_are_kept_for_its_next_writer() -> None:
    line = METADATA.replace(b'"id":"t"', b'"id":"t","collation":{"x":[1]},"empty":null')
    metadata = decoded(line).metadata
    assert metadata is not None
    assert metadata.extra == {"collation": {"x": [1]}, "empty": None}


def test_numbers_in_commit_info_are_kept_whatever_their_size() -> None:
    commit = decoded(b'{"commitInfo":{"x":%d,"y":[-%d]}}\n' % (2**70 + 1, 2**80 + 1))
    assert commit.info == {"x": 2**70 + 1, "y": [-(2**80) - 1]}


def test_metadata_without_a_schema_has_no_columns() -> None:
    metadata = decoded(METADATA.replace(b'"schemaString":"s",', b"")).metadata
    assert metadata is not None
    assert metadata.schema_string == '{"type":"struct","fields":[]}'


def test_the_last_line_needs_no_line_end() -> None:
    assert len(decoded(ADD, ADD.rstrip()).files) == 2


def test_the_commit_is_as_old_as_its_in_commit_timestamp_or_else_as_its_file() -> None:
    assert decoded(b'{"commitInfo":{"inCommitTimestamp":5,"timestamp":4}}').committed_at_ms == 5
    assert decoded(b'{"commitInfo":{"timestamp":4}}').committed_at_ms == 99


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ([b""], None, "empty"),
        ([b"\n \n"], None, "empty"),
        ([ADD, ADD[:40]], 2, "cut off"),
        ([b"{]\n", ADD], 1, "not JSON"),
        ([ADD, b"\xff\n"], 2, "not UTF-8"),
        ([b"\xef\xbb\xbf", ADD], 1, "byte order mark"),
        ([b"\xff\xfe{\x00"], 1, "byte order mark"),
        ([ADD, b"\n", b"[]\n"], 3, "not a JSON object"),
        ([b'{"add":[]}'], 1, "add is not a JSON object"),
        ([b'{"add":{},"remove":{}}'], 1, "add and remove"),
        ([METADATA, ADD, METADATA], 3, "metaData comes a second time"),
        ([PROTOCOL, PROTOCOL], 2, "protocol comes a second time"),
        ([an_add_with(size=2**63)], 1, "add.size is 9223372036854775808, not a 64-bit"),
        ([an_add_with().replace(b'"size":1', b'"size":36893488147419103232')], 1, "add.size"),
        ([an_add_with(size=1.0)], 1, "add.size"),
        ([an_add_with(size=True)], 1, "add.size"),
        ([an_add_with(size="1")], 1, "add.size is '1', not a 64-bit"),
        ([an_add_with(dataChange=1)], 1, "add.dataChange"),
        ([an_add_with(path=None)], 1, "add.path is missing"),
        ([an_add_with(partitionValues={"p": 1})], 1, "add.partitionValues"),
        ([an_add_with(partitionValues=None)], 1, "add.partitionValues is missing"),
        ([an_add_with(stats={})], 1, "add.stats"),
        ([an_add_with(deletionVector={"storageType": "u"})], 1, "add.deletionVector.pathOrInlineDv is missing"),
        ([an_add_with(deletionVector={"storageType": "x"})], 1, "add.deletionVector.storageType"),
        ([b'{"remove":{"path":"r"}}'], 1, "remove.dataChange is missing"),
        ([b'{"txn":{"appId":"q","version":"1"}}'], 1, "txn.version"),
        ([b'{"protocol":{"minReaderVersion":1}}'], 1, "protocol.minWriterVersion is missing"),
        ([b'{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":"x"}}'], 1, "readerFeatures"),
        ([METADATA.replace(b'"provider":"parquet"', b"")], 1, "metaData.format.provider is missing"),
        ([METADATA.replace(b'"id":"t"', b'"id":"t","x":' + b"[" * 300 + b"]" * 300)], 1, "nested too deep to be kept"),
        ([b'{"commitInfo":{"inCommitTimestamp":"now"}}'], 1, "commitInfo.inCommitTimestamp"),
    ],
)
def test_what_the_protocol_forbids_is_refused_with_the_file_and_the_line(
    lines: list[bytes], line: int | None, reason: str
) -> None:
    with pytest.raises(CorruptLogError) as caught:
        decoded(*lines)
    assert (caught.value.url, caught.value.log_file, caught.value.line) == (TABLE, "00000000000000000007.json", line)
    assert reason in str(caught.value)


TXN = b'{"txn":{"appId":"q","version":7}}'


@pytest.mark.parametrize(
    "behind", [b" garbage", b"}", b"," + TXN, b" 5 " + TXN, TXN, b" " + TXN, b',"txn":{"appId":"q","version":7}}']
)
@pytest.mark.parametrize("file", [an_add_with().strip(), b'{"remove":{"path":"a","dataChange":true}}'])
def test_a_line_with_anything_behind_its_object_is_refused_and_no_action_there_is_lost(
    file: bytes, behind: bytes
) -> None:
    line = file[:-1] + behind if behind.startswith(b',"') else file + behind

    with pytest.raises(CorruptLogError, match="line 2"):
        decoded(PROTOCOL + line)
    if b"txn" in behind:
        with pytest.raises(CorruptLogError, match="line 2"):
            decode_facts(PROTOCOL + line, version=Version(0), log_file="f", modified_ms=1)


# --- the law -------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LONG = st.integers(-(2**63), 2**63 - 1)
INT = st.integers(-(2**31), 2**31 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | LONG | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner)
)
STRINGS = st.dictionaries(TEXT, TEXT, max_size=3)
PARTITION = st.dictionaries(TEXT, st.none() | TEXT, max_size=3)
VECTORS = st.builds(
    DeletionVector,
    storage_type=st.sampled_from(["u", "i", "p"]),
    path_or_inline=TEXT,
    offset=st.none() | INT,
    size_bytes=INT,
    cardinality=LONG,
)
TRACKED = {
    "tags": st.none() | STRINGS,
    "deletion_vector": st.none() | VECTORS,
    "base_row_id": st.none() | LONG,
    "default_row_commit_version": st.none() | LONG,
    "stats": st.none() | TEXT,
}


def adds(log_path: str) -> st.SearchStrategy[AddFile]:
    return st.builds(
        AddFile,
        path=st.just(decode_path(log_path)),
        log_path=st.just(log_path),
        partition_values=PARTITION,
        size_bytes=LONG,
        modified_ms=LONG,
        data_change=st.booleans(),
        clustering_provider=st.none() | TEXT,
        **TRACKED,
    )


def removes(log_path: str) -> st.SearchStrategy[RemoveFile]:
    return st.builds(
        RemoveFile,
        path=st.just(decode_path(log_path)),
        log_path=st.just(log_path),
        data_change=st.booleans(),
        deletion_timestamp_ms=st.none() | LONG,
        extended_file_metadata=st.none() | st.booleans(),
        partition_values=st.none() | PARTITION,
        size_bytes=st.none() | LONG,
        **TRACKED,
    )


def cdcs(log_path: str) -> st.SearchStrategy[CdcFile]:
    path = decode_path(log_path)
    shared = {"partition_values": PARTITION, "size_bytes": LONG, "tags": TRACKED["tags"]}
    return st.builds(CdcFile, path=st.just(path), log_path=st.just(log_path), **shared)


FEATURES = st.none() | st.frozensets(TEXT, max_size=3)
KNOWN = {"id", "name", "description", "format", "schemaString", "partitionColumns", "configuration", "createdTime"}
COMMITS = st.builds(
    Commit,
    version=st.just(Version(7)),
    files=st.lists(TEXT.flatmap(lambda path: adds(path) | removes(path) | cdcs(path)), max_size=3).map(tuple),
    txns=st.lists(
        st.builds(Txn, app_id=TEXT, txn_version=LONG, last_updated_ms=st.none() | LONG), min_size=1, max_size=2
    ).map(tuple),
    metadata=st.none()
    | st.builds(
        Metadata,
        table_id=TEXT,
        schema_string=TEXT,
        partition_columns=st.lists(TEXT).map(tuple),
        configuration=STRINGS,
        name=st.none() | TEXT,
        description=st.none() | TEXT,
        format_provider=TEXT,
        format_options=STRINGS,
        created_ms=st.none() | LONG,
        extra=st.dictionaries(TEXT.filter(lambda name: name not in KNOWN), JSON, max_size=2),
    ),
    protocol=st.none()
    | st.builds(
        Protocol, min_reader_version=INT, min_writer_version=INT, reader_features=FEATURES, writer_features=FEATURES
    ),
    domains=st.lists(st.builds(DomainMetadata, domain=TEXT, configuration=TEXT, removed=st.booleans()), max_size=2).map(
        tuple
    ),
    info=st.none() | st.dictionaries(TEXT.filter(lambda name: name != "inCommitTimestamp"), JSON, max_size=3),
    committed_at_ms=st.just(99),
)


@given(COMMITS)
def test_what_is_encoded_is_decoded_to_the_same_actions(commit: Commit) -> None:
    assert decoded(encode_commit(commit)) == commit


# --- as Delta-Spark writes -----------------------------------------------------------------------------------------

# Version 0 and 2 of a table that the Delta JAR 4.4.0 wrote on Spark 4.2.0, with its ids and engine shortened: made by
# a stream, overwritten by df.write with txnAppId, txnVersion and userMetadata.
STREAMED = (
    rb"""{"commitInfo":{"timestamp":1795255293397,"operation":"STREAMING UPDATE","operationParameters":{"outputMode":"Append","queryId":"f541","epochId":"0"},"isolationLevel":"Serializable","isBlindAppend":true,"operationMetrics":{"numRemovedFiles":"0","numAddedFiles":"1","numOutputRows":"3","numOutputBytes":"492"},"engineInfo":"e","txnId":"b1a8"}}
{"metaData":{"id":"2d4b","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":[],"configuration":{},"createdTime":1795255292522}}
{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
{"txn":{"appId":"f541","version":0,"lastUpdated":1795255293349}}
{"add":{"path":"part-00000-8c8d.c000.snappy.parquet","partitionValues":{},"size":492,"modificationTime":1795255293314,"dataChange":true,"stats":"{\"numRecords\":3,\"minValues\":{\"id\":0},\"maxValues\":{\"id\":2},\"nullCount\":{\"id\":0}}"}}
""",  # noqa: E501 - the lines as they were written
    rb"""{"commitInfo":{"timestamp":1795255327542,"operation":"WRITE","operationParameters":{"mode":"Overwrite","partitionBy":"[]"},"readVersion":1,"isolationLevel":"Serializable","isBlindAppend":false,"operationMetrics":{"numFiles":"1","numRemovedFiles":"2","numRemovedBytes":"980","numOutputRows":"2","numOutputBytes":"488"},"userMetadata":"hi","engineInfo":"e","txnId":"ee64"}}
{"txn":{"appId":"x","version":4,"lastUpdated":1795255327540}}
{"add":{"path":"part-00000-2894.c000.snappy.parquet","partitionValues":{},"size":488,"modificationTime":1795255326602,"dataChange":true,"stats":"{\"numRecords\":2,\"minValues\":{\"id\":0},\"maxValues\":{\"id\":1},\"nullCount\":{\"id\":0}}"}}
{"remove":{"path":"part-00000-8c8d.c000.snappy.parquet","deletionTimestamp":1795255327534,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{},"size":492}}
""",
)


@pytest.mark.parametrize("data", STREAMED)
def test_a_commit_of_delta_spark_is_encoded_to_its_own_bytes(data: bytes) -> None:
    assert encode_commit(decoded(data)) == data


def test_a_micro_batch_says_of_itself_what_delta_sparks_says() -> None:
    info = commit_info(
        StreamingUpdate(output_mode="Append", query_id="f541", epoch_id=0),
        Provenance(timestamp_ms=1795255293397, txn_id="b1a8", engine="e"),
        is_blind_append=True,
        metrics={"numRemovedFiles": 0, "numAddedFiles": 1, "numOutputRows": 3, "numOutputBytes": 492},
    )
    assert orjson.dumps({"commitInfo": info}) == STREAMED[0].splitlines()[0]


def test_a_batch_write_says_of_itself_what_delta_sparks_says() -> None:
    info = commit_info(
        Write(mode="Overwrite"),
        Provenance(timestamp_ms=1795255327542, txn_id="ee64", engine="e", read_version=Version(1), user_metadata="hi"),
        is_blind_append=False,
        metrics={
            "numFiles": 1,
            "numRemovedFiles": 2,
            "numRemovedBytes": 980,
            "numOutputRows": 2,
            "numOutputBytes": 488,
        },
    )
    assert orjson.dumps({"commitInfo": info}) == STREAMED[1].splitlines()[0]


def test_partition_columns_stand_in_the_commit_info_as_json_text() -> None:
    _, parameters = Write(mode="Append", partition_by=("a", 'ü"')).operation
    assert parameters == {"mode": "Append", "partitionBy": '["a","ü\\""]'}


def test_the_codec_does_not_import_pyarrow() -> None:
    program = "import sys, tablefeed.delta.codec, tablefeed.delta.commit_info; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_every_commit_of_the_corpus_is_read(corpus: Path) -> None:
    tables = orjson.loads((corpus / "delta" / "expected.json").read_bytes())["tables"]
    readable = [name for name, facts in tables.items() if "must_refuse" not in facts]
    commits = 0
    for name in readable:
        if name.startswith("deltars-errlogs/"):
            continue
        facts = tables[name]["info"].get("per_commit") or {}
        for log_file in sorted((corpus / "delta" / name / "_delta_log").glob("?" * 20 + ".json")):
            if log_file.stat().st_size > 10_000_000:
                continue  # test_columns.py's: as values they take seconds
            version = int(log_file.stem)
            commit = decode_commit(
                log_file.read_bytes(), version=Version(version), log_file=log_file.name, modified_ms=0
            )
            expected = facts.get(str(version), {})
            assert len(commit.added) == expected.get("add", 0), log_file
            assert len(commit.removed) == expected.get("remove", 0), log_file
            assert (commit.metadata is not None) == bool(expected.get("meta", 0)), log_file
            commits += 1
    assert commits > 500
