from __future__ import annotations

import contextlib
import io
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from support.bounds import at_most
from support.index_log import (
    EVERYWHERE,
    METADATA,
    SYNC,
    URL,
    IndexLog,
    add,
    any_add,
    json_log,
    manifest,
    manifest_bytes,
    state_log,
    states_of,
)
from tablefeed.errors import CorruptLogError, LogError, TablefeedError, UnsupportedFeatureError
from tablefeed.indextables import names
from tablefeed.indextables.log import avro_file, avro_state, columns, state_writer
from tablefeed.indextables.log.avro_state import Manifest, State, TextBounds
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import AddFile, Version
from tablefeed.model.split import Split

fastavro = pytest.importorskip("fastavro")

STATE = State(
    version=Version(7),
    created_ms=42,
    file_count=3,
    total_bytes=30,
    manifests=(
        Manifest(name="manifests/manifest-a.avro", path="manifests/manifest-a.avro", entry_count=2),
        Manifest(
            name=f"{names.state_dir(7)}/manifest-b.avro",
            path="manifest-b.avro",
            entry_count=1,
            min_added_version=3,
            max_added_version=7,
            bounds={"day": TextBounds(low="2024-01-01", high=None)},
            tombstone_count=1,
            live_count=0,
        ),
    ),
    tombstones=pa.array(["x.split"], pa.string()),
    registry={"1VaJSuu3ytkWlBL5": "[]"},
    metadata=METADATA,
)


_EMPTY = {"formatVersion": 1, "stateVersion": 7, "createdAt": 1, "numFiles": 0, "totalBytes": 0, "manifests": []}
_SINCE_0 = {"minAddedAtVersion": 0, "maxAddedAtVersion": 0}


def decoded(data: bytes) -> State:
    return avro_state.decode_state(data, version=Version(7), url=URL, log_file="_manifest.avro")


def entries(data: bytes, count: int = 1) -> list[AddFile]:
    batches = avro_state.decode_manifest(data, entry_count=count, url=URL, log_file="manifest.avro")
    return [file for batch in batches for file in columns.to_add_files(batch)]


def a_state(**fields: Any) -> bytes:
    """A `_manifest.avro` with these fields in place of an empty state's."""
    return a_manifest([{**_EMPTY, **fields}], state_writer.STATE_MANIFEST)


def a_manifest(records: list[Mapping[str, Any]], schema: Mapping[str, Any]) -> bytes:
    return avro_file.encode_records(records, schema=schema, codec=avro_file.NULL, sync=SYNC, url=URL)


@pytest.mark.parametrize("writer", Writer)
def test_a_state_is_read_back_as_it_was_written(writer: Writer) -> None:
    data = state_writer.encode_state(STATE, writer=writer, sync=SYNC, url=URL)

    assert decoded(data) == STATE


def test_the_registry_has_the_keys_of_its_writer_and_is_read_by_the_bare_hash() -> None:
    for writer, key in ((Writer.SCALA, "1VaJSuu3ytkWlBL5"), (Writer.NATIVE, "docMappingSchema.1VaJSuu3ytkWlBL5")):
        data = state_writer.encode_state(STATE, writer=writer, sync=SYNC, url=URL)
        (records,) = avro_file.read_records(data, url=URL, log_file="_manifest.avro")

        assert list(records[0]["schemaRegistry"]) == [key]
        assert list(decoded(data).registry) == ["1VaJSuu3ytkWlBL5"]


def test_metadata_in_a_state_may_stand_under_its_action_or_alone() -> None:
    inner = '{"id":"t","schemaString":"s"}'
    found = [decoded(a_state(metadata=text)).metadata for text in (f'{{"metaData":{inner}}}', inner)]

    assert found[0] is not None
    assert found[0].table_id == "t"
    assert found[0] == found[1]
    assert decoded(a_state(metadata=None)).metadata is None


def test_a_greater_format_version_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"^\[INDEXTABLES_UNSUPPORTED_STATE_FORMAT\].*format version 2"):
        decoded(a_state(formatVersion=2))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"metadata": "{"}, "metadata is not a JSON object"),
        ({"metadata": "[]"}, "metadata is not a JSON object"),
        ({"metadata": '{"metaData":7}'}, "metadata is not a JSON object"),
        ({"metadata": '{"metaData":{"id":"t"}}'}, "metadata.schemaString is missing"),
        ({"manifests": [{"path": "../x", "numEntries": 1, **_SINCE_0}]}, "leads out"),
    ],
)
def test_a_state_that_says_what_cannot_be_is_damaged(fields: Mapping[str, Any], said: str) -> None:
    with pytest.raises(CorruptLogError, match=said):
        decoded(a_state(**fields))


def test_a_state_lacking_a_field_is_damaged() -> None:
    schema = {**state_writer.STATE_MANIFEST, "fields": state_writer.STATE_MANIFEST["fields"][:2]}
    data = a_manifest([{"formatVersion": 1, "stateVersion": 7}], schema)

    with pytest.raises(CorruptLogError, match="manifests is not a list of manifests"):
        decoded(data)


def test_a_state_of_no_record_or_two_is_damaged() -> None:
    for count in (0, 2):
        with pytest.raises(CorruptLogError, match=f"holds {count} records"):
            decoded(a_manifest([{**_EMPTY}] * count, state_writer.STATE_MANIFEST))


@pytest.mark.parametrize("codec", ["null", "zstandard", "snappy", "deflate"])
def test_each_codec_is_read(codec: str) -> None:
    assert [file.path for file in entries(_as_codec(codec), 2)] == ["a", "b"]


def _as_codec(codec: str) -> bytes:
    """A manifest of `a` and `b` in one block of this codec."""
    plain = manifest("m", [add("a"), add("b")], writer=Writer.NATIVE)[1]
    head, _, _ = plain.partition(b"avro.codec")
    begin = plain.index(SYNC) + len(SYNC)
    body = plain[begin + 2 : -len(SYNC)]  # after the count and the size, of a byte each
    assert plain[begin + 1 : begin + 2] == _long(len(body))
    packed = _packed(body, codec)
    head += b"avro.codec" + _long(len(codec)) + codec.encode() + b"\0"
    return head + SYNC + _long(2) + _long(len(packed)) + packed + SYNC


def _packed(body: bytes, codec: str) -> bytes:
    match codec:
        case "zstandard":
            return bytes(pa.compress(body, "zstd", asbytes=True))
        case "snappy":
            return bytes(pa.compress(body, "snappy", asbytes=True)) + zlib.crc32(body).to_bytes(4, "big")
        case "deflate":
            return zlib.compress(body, wbits=-15)
    return body


def _long(value: int) -> bytes:
    zigzag, encoded = value << 1, bytearray()
    while zigzag > 0x7F:
        encoded.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*encoded, zigzag])


def test_a_block_of_snappy_that_does_not_fit_its_checksum_is_damage() -> None:
    data = _as_codec("snappy")
    checksum = len(data) - 17

    with pytest.raises(CorruptLogError, match="does not match its checksum"):
        entries(data[:checksum] + bytes([data[checksum] ^ 1]) + data[checksum + 1 :], 2)


def test_a_block_that_unpacks_to_a_multiple_that_no_records_have_is_damage_and_not_unpacked() -> None:
    packed = _packed(bytes(1 << 28), "zstandard")
    data = _as_codec("zstandard")
    head = data[: data.index(SYNC) + len(SYNC)]

    with at_most(64 << 20), pytest.raises(CorruptLogError, match=r"bytes has more than [0-9]+ bytes of records"):
        entries(head + _long(2) + _long(len(packed)) + packed + SYNC, 2)


def test_no_memory_is_kept_for_a_block_that_cannot_be_unpacked() -> None:
    packed = _packed(bytes(1_000_000), "zstandard") + b"no frame"
    data = _as_codec("zstandard")
    head = data[: data.index(SYNC) + len(SYNC)]

    with at_most(32 << 20):
        for _ in range(100):
            with pytest.raises(CorruptLogError, match="cannot be decompressed"):
                entries(head + _long(2) + _long(len(packed)) + packed + SYNC, 2)


def test_a_block_that_ends_with_the_mark_of_another_file_is_damage() -> None:
    data = manifest("m", [add("a")])[1]

    with pytest.raises(CorruptLogError, match="cut off, or belongs to another file"):
        entries(data[:-1] + b"x")


@pytest.mark.parametrize("count", [0, 1, 3, -1])
def test_a_block_that_counts_its_records_wrong_is_damage(count: int) -> None:
    plain = manifest("m", [add("a"), add("b")], writer=Writer.NATIVE)[1]
    begin = plain.index(SYNC) + len(SYNC)
    told = _long(count) if count >= 0 else b"\x01"

    assert plain[begin : begin + 1] == _long(2)
    with pytest.raises(CorruptLogError, match="not a valid Avro file"):
        entries(plain[:begin] + told + plain[begin + 1 :], 2)


@pytest.mark.parametrize(
    "kind",
    [
        "null",
        {"type": "record", "name": "Empty", "fields": []},
        ["null", {"type": "array", "items": "null"}],
        {"type": "map", "values": {"type": "array", "items": "null"}},
    ],
)
def test_a_schema_of_values_without_bytes_is_damage_for_any_number_of_them_fits_a_block(kind: object) -> None:
    data = a_manifest([], {"type": "record", "name": "F", "fields": [{"name": "path", "type": kind}]})

    with pytest.raises(CorruptLogError, match="an array of values without bytes"):
        entries(data)


@pytest.mark.parametrize(
    "inner",
    [
        ["null", "F"],
        {"type": "map", "values": "F"},
        {"type": "error", "name": "E", "fields": [{"name": "e", "type": ["null", "E"]}]},
        {"type": "record", "name": "G", "fields": [{"name": "g", "type": [{"type": "array", "items": "F"}]}]},
    ],
)
def test_a_schema_of_a_record_within_itself_is_damage_for_its_values_could_nest_to_any_depth(inner: object) -> None:
    data = a_manifest([], {"type": "record", "name": "F", "fields": [{"name": "path", "type": inner}]})

    with pytest.raises(CorruptLogError, match="within itself"):
        entries(data)


def test_another_codec_is_refused_by_name() -> None:
    data = manifest("m", [add("a")], writer=Writer.NATIVE)[1].replace(b"\x08null", b"\x04xz", 1)

    with pytest.raises(UnsupportedFeatureError, match=r"^\[INDEXTABLES_UNSUPPORTED_CODEC\].*'xz'"):
        entries(data)


def test_what_fastavro_writes_is_read_and_what_we_write_it_reads() -> None:
    schema = state_writer.file_entry(Writer.SCALA)
    record = {"path": "a", "partitionValues": {}, "size": 1, "modificationTime": 2, "dataChange": False}
    record |= {"hasFooterOffsets": False, "addedAtVersion": 0, "addedAtTimestamp": 9, "numRecords": 5}
    theirs = io.BytesIO()
    fastavro.writer(theirs, schema, [record] * 3000, codec="deflate", sync_interval=1000)

    assert len(entries(theirs.getvalue(), 3000)) == 3000
    ours = manifest("m", [add(f"{n}", rows=n) for n in range(3000)], writer=Writer.NATIVE)[1]
    assert [entry["numRecords"] for entry in fastavro.reader(io.BytesIO(ours))] == list(range(3000))


def test_a_schema_of_several_records_is_damage() -> None:
    fields = [{"name": name, "type": "long"} for name in ("size", "modificationTime")]
    fields.append({"name": "path", "type": "string"})
    more = [*fields, {"name": "numRecords", "type": "long"}]
    union: Any = [{"type": "record", "name": name, "fields": each} for name, each in (("A", fields), ("B", more))]
    entry = {"path": "a", "size": 1, "modificationTime": 2}
    data = a_manifest([entry, {**entry, "path": "b", "numRecords": 5}], union)

    with pytest.raises(CorruptLogError, match="its schema is not that of a record"):
        entries(data, 2)


def test_an_entry_is_read_by_the_names_of_its_own_schema() -> None:
    kinds = {"somethingNew": ["null", "string"], "modificationTime": "long", "size": "int", "path": "string"}
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    schema = {"type": "record", "name": "FileEntry", "fields": fields}
    data = a_manifest([{"somethingNew": "x", "modificationTime": 2, "size": 1, "path": "a"}], schema)

    assert entries(data) == [replace(add("a", ms=2), size_bytes=1, split=Split())]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("string", "x", "size is 'x'"),
        ("double", 1.5, "size is 1.5"),
        ("double", 1.0, "size is 1.0"),
        ("boolean", True, "size is True"),
        (["null", "long"], None, "size is missing"),
    ],
)
def test_an_entry_of_another_type_is_damage(kind: object, value: object, said: str) -> None:
    fields = [
        {"name": "path", "type": "string"},
        {"name": "size", "type": kind},
        {"name": "modificationTime", "type": "long"},
    ]
    data = a_manifest(
        [{"path": "a", "size": value, "modificationTime": 2}], {"type": "record", "name": "F", "fields": fields}
    )

    with pytest.raises(CorruptLogError, match=said):
        entries(data)


def test_a_manifest_with_fewer_entries_than_its_state_says_is_damaged() -> None:
    with pytest.raises(CorruptLogError, match="has 1 entries, but its state says 2"):
        entries(manifest("m", [add("a")])[1], 2)


def _manifest(adds: list[AddFile], writer: Writer, registry: Mapping[str, str]) -> bytes:
    return manifest_bytes(adds, writer=writer, version=7, registry=registry)


def test_tombstones_are_dead_and_of_one_path_the_last_entry_of_the_last_manifest_counts() -> None:
    files = states_of(
        {1: {"one": [add("a"), add("b", rows=2), add("a", rows=1)], "two": [add("b", rows=3), add("c", rows=4)]}},
        tombstones={1: ("c", "never there")},
    )
    live = IndexLog({**json_log({0: ()}), **files}).snapshot(1).files

    assert {path: file.split and file.split.num_records for path, file in live.items()} == {"a": 1, "b": 3}


def test_many_entries_with_many_doc_mappings_keep_each_its_own() -> None:
    adds = [replace(add(f"{n % 5000}"), split=Split(num_records=n, doc_mapping=f"m{n % 7}")) for n in range(9_000)]
    made = manifest("one", adds, writer=Writer.NATIVE)
    state = replace(STATE, version=Version(1), file_count=5000, manifests=(made[0],))
    live = IndexLog({**json_log({0: ()}), **state_log({1: state}), made[0].name: made[1]}).snapshot(1).files

    assert len(live) == 5000
    assert live["1001"].split == Split(num_records=6_001, doc_mapping=f"m{6_001 % 7}")
    assert live["4500"].split == Split(num_records=4_500, doc_mapping=f"m{4_500 % 7}")


@pytest.mark.parametrize("count", [1, 3])
def test_a_state_with_more_or_fewer_files_than_it_says_is_refused(count: int) -> None:
    made = manifest("one", [add("a"), add("b")])
    state = replace(STATE, version=Version(1), file_count=count, manifests=(made[0],))
    log = IndexLog({**json_log({0: ()}), **state_log({1: state}), made[0].name: made[1]})

    with pytest.raises(LogError, match=rf"^\[INDEXTABLES_STATE_INCONSISTENT\].*2 live files, but says {count}"):
        log.snapshot(1)


FILES = any_add({**EVERYWHERE, "merge_count": st.none() | st.integers(-(2**31), 2**31 - 1)})


@given(st.lists(FILES, max_size=5), st.sampled_from(list(Writer)))
def test_a_manifest_is_read_back_as_it_was_written(adds: list[AddFile], writer: Writer) -> None:
    assert entries(_manifest(adds, writer, {}), len(adds)) == adds


@given(st.lists(FILES, min_size=1, max_size=4), st.sampled_from(list(Writer)), st.data())
def test_a_damaged_manifest_or_state_is_read_or_refused_by_an_error_of_ours(
    adds: list[AddFile], writer: Writer, data: st.DataObject
) -> None:
    for whole in (_manifest(adds, writer, {}), state_writer.encode_state(STATE, writer=writer, sync=SYNC, url=URL)):
        damaged = bytearray(whole)
        for _ in range(data.draw(st.integers(0, 3))):
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
        cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
        for bytes_ in (bytes(damaged), cut):
            with contextlib.suppress(TablefeedError):
                entries(bytes_, len(adds))
            with contextlib.suppress(TablefeedError):
                decoded(bytes_)
