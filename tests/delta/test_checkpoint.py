"""Checkpoints of any writer give the same facts and file columns, found by name; broken ones are named."""

from __future__ import annotations

import gc
import io
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import shake_128
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from support.bounds import OutOfMemory
from support.checkpoints import TYPES, classic_name, in_parquet, part_name
from support.commit_columns import decode_commit_columns
from support.logs import VECTOR, Action, add, metadata, protocol, remove, txn
from tablefeed.delta import names
from tablefeed.delta.checkpoint import parquet as checkpoint_parquet
from tablefeed.delta.checkpoint.reading import read_files, read_removed, read_top_level
from tablefeed.delta.columns import FILE_COLUMNS, STRING_MAP
from tablefeed.errors import TABLE, CorruptLogError
from tablefeed.model.actions import DomainMetadata, Facts, Metadata, Protocol, Txn, Version
from tablefeed.model.logfile import LogFile

URL = "memory://orders"
NAME = classic_name(7)
ADD = TYPES["add"]
Rows = list[dict[str, Any]]  # Any: what JSON can hold


def an_add(path: str, **more: Any) -> Action:
    return add(path, modified=5, data_change=False, **{"stats": "{}", **more})


def a_checkpoint(rows: Sequence[Action], types: Mapping[str, pa.DataType] = TYPES, **options: object) -> io.BytesIO:
    return io.BytesIO(in_parquet(rows, types, **options))


def log_file(name: str = NAME) -> LogFile:
    found = names.parse_name(name, size_bytes=0, modified_ms=0)
    assert found is not None
    return found


def facts_in(source: BinaryIO, name: str = NAME) -> Facts:
    return read_top_level([(log_file(name), source)], root_url=URL).facts


def files_in(source: io.BytesIO, *, with_stats: bool = True) -> Rows:
    batches = list(read_files(source, with_stats=with_stats, log_file=NAME))
    assert all(batch.schema == FILE_COLUMNS for batch in batches)
    rows: Rows = pa.Table.from_batches(batches, FILE_COLUMNS).to_pylist()
    return rows


def test_what_a_checkpoint_says_besides_files_becomes_values() -> None:
    def backwards(kind: str, *more: tuple[str, pa.DataType]) -> pa.DataType:
        large = [f.with_type(pa.large_string()) if f.type == pa.string() else f for f in TYPES[kind]]
        return pa.struct([*more, *large[::-1]])

    table = metadata("{}", table_id="t", partition_columns=["d"], configuration={"delta.appendOnly": "true"})
    source = a_checkpoint(
        [
            protocol(3, 7, readerFeatures=["a"], writerFeatures=["b"]),
            {"metaData": {**table["metaData"], "owner": "us"}},
            {"txn": {"appId": "a", "version": 3, "lastUpdated": 9}},
            txn("b", 4),
            {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
            {"domainMetadata": {"domain": "gone", "configuration": "{}", "removed": True}},
        ],
        {
            "domainMetadata": backwards("domainMetadata"),
            "txn": backwards("txn", ("lastUpdated", pa.int64())),
            "metaData": backwards("metaData", ("owner", pa.string()), ("description", pa.string())),
            "protocol": backwards("protocol"),
        },
    )

    assert facts_in(source) == Facts(
        protocol=Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=frozenset({"a"}),
            writer_features=frozenset({"b"}),
        ),
        metadata=Metadata(
            table_id="t",
            schema_string="{}",
            partition_columns=("d",),
            configuration={"delta.appendOnly": "true"},
            extra={"owner": "us"},
        ),
        txns={"a": Txn(app_id="a", txn_version=3, last_updated_ms=9), "b": Txn(app_id="b", txn_version=4)},
        domains={"d": DomainMetadata(domain="d", configuration="{}", removed=False)},
    )


def in_parts(*sources: io.BytesIO) -> list[tuple[LogFile, BinaryIO]]:
    return [(log_file(part_name(7, n, of=len(sources))), source) for n, source in enumerate(sources, 1)]


def test_the_parts_of_a_checkpoint_say_together_what_it_says() -> None:
    parts = ([an_add("a"), txn("a", 3)], [protocol()], [metadata(), txn("b", 4)])

    top = read_top_level(in_parts(*map(a_checkpoint, parts)), root_url=URL)

    assert top.facts.protocol == Protocol(min_reader_version=1, min_writer_version=2)
    assert top.facts.metadata is not None
    assert {app: txn.txn_version for app, txn in top.facts.txns.items()} == {"a": 3, "b": 4}
    assert top.sidecars == ()


@pytest.mark.parametrize(("absent", "there"), [("protocol", metadata()), ("metaData", protocol())])
def test_a_checkpoint_without_protocol_or_metadata_is_damaged(absent: str, there: Action) -> None:
    with pytest.raises(CorruptLogError, match=f"{NAME}: it holds no {absent}"):
        facts_in(a_checkpoint([there, an_add("a")]))


def test_a_protocol_in_two_parts_is_refused() -> None:
    parts = [a_checkpoint([protocol(), metadata()]), a_checkpoint([protocol()])]

    with pytest.raises(CorruptLogError, match=r"0000000002\.0000000002\.parquet: protocol comes a second time"):
        read_top_level(in_parts(*parts), root_url=URL)


class Counted(io.BytesIO):
    """Bytes that know how many of them were read."""

    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        return data


def test_the_files_columns_are_not_read_for_the_facts() -> None:
    many = [an_add(f"{number:0100}") for number in range(10_000)]
    source = a_checkpoint([*many, protocol(), metadata(), txn("a", 3)], compression="none", use_dictionary=False)
    counted = Counted(source.getvalue())

    assert facts_in(counted).txns["a"].txn_version == 3
    assert counted.taken < len(source.getvalue()) / 5


@pytest.mark.parametrize("write_statistics", [True, False])
def test_row_groups_without_an_add_by_the_footer_are_not_opened_for_the_files(*, write_statistics: bool) -> None:
    """Pages of the first row group, of tombstones alone, are damaged: whoever reads them fails."""
    rows = [remove("a"), remove("b"), an_add("c"), remove("d")]
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False, "row_group_size": 2}
    whole = a_checkpoint(rows, write_statistics=write_statistics, **options)
    data, group = bytearray(whole.getvalue()), pq.read_metadata(whole).row_group(0)
    for start in (group.column(index).data_page_offset for index in range(group.num_columns)):
        data[start + 1] = 2

    if write_statistics:
        assert [file["log_path"] for file in files_in(io.BytesIO(data))] == ["c"]
    else:
        with pytest.raises(CorruptLogError, match=NAME):
            files_in(io.BytesIO(data))


def test_the_adds_of_a_checkpoint_become_columns_and_nothing_else_does() -> None:
    in_directory = an_add("d=a%2520b/x", partitionValues={"d": "a%20b", "e": None})
    source = a_checkpoint([remove("r"), in_directory, remove("r"), an_add("y", stats=None)])

    of_removes = ("deletion_timestamp_ms", "extended_file_metadata")
    optional = ("tags", "deletion_vector", "base_row_id", "default_row_commit_version", "clustering_provider")
    nothing = dict.fromkeys((*optional, *of_removes))
    same = {"is_add": True, "size_bytes": 10, "modified_ms": 5, "data_change": False, **nothing}
    first = {"log_path": "d=a%2520b/x", "key": "d=a%20b/x", "partition_values": [("d", "a%20b"), ("e", None)]}
    assert files_in(source) == [
        {**same, **first, "stats": "{}"},
        {**same, "log_path": "y", "key": "y", "partition_values": [], "stats": None},
    ]


def test_statistics_are_null_unless_they_are_asked_for() -> None:
    source = a_checkpoint([an_add("a", stats='{"numRecords":1}')])

    assert files_in(source, with_stats=True)[0]["stats"] == '{"numRecords":1}'
    assert files_in(source, with_stats=False)[0]["stats"] is None


STATS_STRUCT = pa.field("stats_parsed", pa.struct([("numRecords", pa.int64())]))


def test_statistics_that_are_kept_as_a_struct_only_come_as_the_text_that_it_says() -> None:
    kind = pa.struct([*(field for field in ADD if field.name != "stats"), STATS_STRUCT])
    adds = [an_add("a", stats_parsed={"numRecords": 1}), remove("r"), an_add("b", stats_parsed=None)]

    assert [f["stats"] for f in files_in(a_checkpoint(adds, {"add": kind}))] == ['{"numRecords":1}', None]
    assert [f["stats"] for f in files_in(a_checkpoint(adds, {"add": kind}), with_stats=False)] == [None, None]


def test_an_instant_of_96_bits_in_a_struct_of_statistics_is_that_instant_in_any_year() -> None:
    bound = pa.struct([("s", pa.struct([("t", pa.timestamp("us"))])), ("id", pa.int64())])
    kind = pa.struct([*(f for f in ADD if f.name != "stats"), ("stats_parsed", pa.struct([("maxValues", bound)]))])
    high = {"s": {"t": datetime(2500, 1, 1, 12)}, "id": 1}  # noqa: DTZ001 - Arrow writes no zone into 96 bits

    source = a_checkpoint(
        [an_add("a", stats_parsed={"maxValues": high})],
        {"add": kind},
        use_deprecated_int96_timestamps=True,
        store_schema=False,
    )

    assert [f["stats"] for f in files_in(source)] == ['{"maxValues":{"s":{"t":"2500-01-01T12:00:00.000Z"},"id":1}}']


def test_a_text_of_statistics_goes_before_their_struct() -> None:
    adds = [
        an_add("a", stats='{"numRecords":1,"tightBounds":true}', stats_parsed={"numRecords": 1}),
        an_add("b", stats=None, stats_parsed={"numRecords": 2}),
    ]

    files = files_in(a_checkpoint(adds, {"add": pa.struct([*ADD, STATS_STRUCT])}))

    assert [f["stats"] for f in files] == ['{"numRecords":1,"tightBounds":true}', '{"numRecords":2}']


@pytest.mark.parametrize("statistics_of_parquet", [True, False])
def test_the_struct_is_not_read_where_each_file_has_its_text(*, statistics_of_parquet: bool) -> None:
    bounds = pa.struct([(f"c{n}", pa.string()) for n in range(20)])
    kind = pa.struct([*ADD, ("stats_parsed", pa.struct([("maxValues", bounds)]))])
    wide = {"maxValues": {f"c{n}": f"{n:02}" * 500 for n in range(20)}}
    adds = [*(an_add(str(number), stats_parsed=wide) for number in range(20)), remove("r")]
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": statistics_of_parquet}
    source = Counted(in_parquet(adds, {"add": kind}, **plain))

    assert {f["stats"] for f in files_in(source)} == {"{}"}
    assert (source.taken < 100_000) == statistics_of_parquet


def test_many_files_come_in_batches_of_bounded_size() -> None:
    source, one = io.BytesIO(), pq.read_table(a_checkpoint([an_add("a")]))
    pq.write_table(one.take([0] * 70_000), source)

    sizes = [b.num_rows for b in read_files(source, with_stats=False, log_file=NAME)]
    assert sum(sizes) == 70_000
    assert max(sizes) <= 65_536


_VECTOR = pa.struct(
    [
        ("cardinality", pa.int64()),
        ("sizeInBytes", pa.int32()),
        ("offset", pa.int32()),
        ("pathOrInlineDv", pa.string()),
        ("storageType", pa.string()),
    ]
)


WITH_VECTOR = pa.struct([*ADD, ("deletionVector", _VECTOR)])


def test_statistics_of_many_columns_are_read_a_piece_and_a_batch_at_a_time() -> None:
    class Counted(io.BytesIO):
        largest = 0

        def read(self, size: int | None = -1) -> bytes:
            found = super().read(size)
            self.largest = max(self.largest, len(found))
            return found

    count, letters = 9_000, 8_000
    stats = pa.array([shake_128(str(n).encode()).hexdigest(letters // 2) for n in range(count)])
    known = {"path": pa.array(map(str, range(count))), "partitionValues": pa.array([[]] * count, STRING_MAP)}
    numbers = {name: pa.repeat(pa.scalar(1, pa.int64()), count) for name in ("size", "modificationTime")}
    members = {**known, **numbers, "dataChange": pa.repeat(pa.scalar(value=False), count), "stats": stats}
    adds = pa.StructArray.from_arrays([*members.values()], [*members])
    source = Counted()
    pq.write_table(pa.table({"add": adds}), source)

    batches = [(b.num_rows, b.nbytes) for b in read_files(source, with_stats=True, log_file=NAME)]

    assert sum(rows for rows, _ in batches) == count
    assert max(size_bytes for _, size_bytes in batches) < 20 << 20, "of 72 MB in all, in one row group"
    assert source.largest <= 8 << 20, "of 36 MB or more, as they are compressed"


def test_the_footer_of_a_checkpoint_is_freed_at_once_and_does_not_wait_for_the_garbage_collector() -> None:
    source = a_checkpoint([an_add("a", stats=None), protocol(), metadata()])
    gc.collect()
    before = sum(isinstance(each, pq.FileMetaData) for each in gc.get_objects())
    gc.disable()
    try:
        files_in(source)
        after = sum(isinstance(each, pq.FileMetaData) for each in gc.get_objects())
    finally:
        gc.enable()

    assert after == before


def test_a_file_is_known_by_its_path_and_its_deletion_vector() -> None:
    inline = {"storageType": "i", "pathOrInlineDv": "wi5b", "sizeInBytes": 40, "cardinality": 6}
    # What a writer without null structs makes of a file without a deletion vector.
    empty: dict[str, object] = dict.fromkeys(VECTOR)
    adds = [an_add("a", deletionVector=each) for each in ({**VECTOR, "pathOrInlineDv": "ab"}, inline, None, empty)]

    files = files_in(a_checkpoint(adds, {"add": WITH_VECTOR}))

    assert [file["key"] for file in files] == ["a\x00uab@4", "a\x00iwi5b", "a", "a"]
    vector = {"storage_type": "u", "path_or_inline": "ab", "offset": 4, "size_bytes": 40, "cardinality": 6}
    assert [files[n]["deletion_vector"] for n in (0, 3)] == [vector, None]


def test_a_vector_without_an_offset_column_has_no_offset() -> None:
    kind = pa.struct([*ADD, ("deletionVector", pa.struct([f for f in _VECTOR if f.name != "offset"]))])
    vector = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}

    files = files_in(a_checkpoint([an_add("a", deletionVector=vector)], {"add": kind}))

    assert files[0]["deletion_vector"]["offset"] is None


@pytest.mark.parametrize(
    "text", [pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int32(), pa.string())]
)
def test_columns_are_what_the_protocol_says_in_whichever_physical_type_they_come(text: pa.DataType) -> None:
    kind = pa.struct(
        [
            ("dataChange", pa.bool_()),
            ("modificationTime", pa.int32()),
            ("size", pa.int16()),
            ("partitionValues", pa.map_(pa.string(), text if text != pa.binary() else pa.string())),
            ("path", text),
        ]
    )

    file = files_in(a_checkpoint([an_add("a", partitionValues={"d": "1"})], {"add": kind}))[0]

    assert (file["log_path"], file["size_bytes"], file["modified_ms"]) == ("a", 10, 5)
    assert file["partition_values"] == [("d", "1")]


def test_a_map_that_comes_as_a_list_of_pairs_is_a_map() -> None:
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
    kind = pa.struct([f if f.name != "partitionValues" else pa.field("partitionValues", pairs) for f in ADD])
    adds = [
        an_add("a", partitionValues=[{"key": "d", "value": "1"}, {"key": "e", "value": None}]),
        an_add("b", partitionValues=[]),
        an_add("c", partitionValues=[{"key": "d", "value": "2"}]),
    ]

    files = files_in(a_checkpoint([adds[0], remove("r"), *adds[1:]], {"add": kind}))

    assert [file["partition_values"] for file in files] == [[("d", "1"), ("e", None)], [], [("d", "2")]]


@pytest.mark.parametrize("absent", ["partitionValues", "size", "modificationTime", "dataChange"])
def test_an_add_without_a_required_field_is_refused_by_the_fields_name(absent: str) -> None:
    with pytest.raises(CorruptLogError, match=rf"{NAME}: add\.{absent} is missing"):
        files_in(a_checkpoint([an_add("a"), an_add("b") | {"add": {**an_add("b")["add"], absent: None}}]))
    without = pa.struct([field for field in ADD if field.name != absent])
    with pytest.raises(CorruptLogError, match=rf"add\.{absent} is missing"):
        files_in(a_checkpoint([an_add("a")], {"add": without}))


def test_removes_without_paths_are_refused() -> None:
    data = a_checkpoint([{"remove": {"dataChange": True}}], {"remove": pa.struct([("dataChange", pa.bool_())])})

    with pytest.raises(CorruptLogError, match=rf"{NAME}: remove\.path is missing"):
        list(read_removed(data, log_file=NAME))


PATH_AS_PAIRS = pa.struct([("path", pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())])))])
SIZE_AS_TEXT = pa.struct([f if f.name != "size" else pa.field("size", pa.string()) for f in ADD])


@pytest.mark.parametrize(
    ("rows", "types", "reason"),
    [
        ([{"add": {"size": 1}}], {"add": pa.struct([("size", pa.int64())])}, "add.path is missing"),
        ([an_add("a", size="ten")], {"add": SIZE_AS_TEXT}, "add.size cannot be int64"),
        ([{"add": {"path": [{"key": "a", "value": "b"}]}}], {"add": PATH_AS_PAIRS}, "add.path cannot be string"),
        ([{"add": "a"}], {"add": pa.string()}, "add is string, not a struct"),
        ([{"txn": "b"}], {"txn": pa.string()}, "txn is string, not a struct"),
        ([{"txn": {"appId": "a"}}], {}, "txn.version is missing"),
        ([protocol(), protocol()], {}, "protocol comes a second time"),
    ],
)
def test_what_the_protocol_does_not_allow_is_refused_by_its_name(
    rows: Rows, types: dict[str, pa.DataType], reason: str
) -> None:
    source = a_checkpoint(rows, types)

    with pytest.raises(CorruptLogError, match=f"{NAME}: {reason}"):
        files_in(source) if "add" in types else facts_in(source)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"txn": ["appId"], "protocol": ["a"], "txn ": ["version"]}, "txn is there twice"),
        ({"txn": ["appId", "version", "appId"]}, "txn.appId is there twice"),
    ],
)
def test_a_column_or_member_that_is_there_twice_is_refused_by_its_name(
    columns: dict[str, list[str]], reason: str
) -> None:
    fields = [
        pa.field(name.strip(), pa.struct([(member, pa.string()) for member in of])) for name, of in columns.items()
    ]
    table = pa.Table.from_arrays([pa.nulls(1, field.type) for field in fields], schema=pa.schema(fields))
    sink = io.BytesIO()
    pq.write_table(table, sink)

    with pytest.raises(CorruptLogError, match=f"{NAME}: {reason}"):
        facts_in(io.BytesIO(sink.getvalue()))


def _broken() -> dict[str, bytes]:
    whole = in_parquet([an_add("a" * 50)] * 50, compression="none", use_dictionary=False)
    overwritten = whole[:20] + b"\xff" * (len(whole) // 3) + whole[20 + len(whole) // 3 :]
    return {
        "empty": b"",
        "no Parquet": b"{}" * 50,
        "cut off": whole[:-20],
        "only its end": whole[-300:],
        "overwritten": overwritten,
    }


@pytest.mark.parametrize("how", _broken())
def test_a_broken_file_is_named(how: str) -> None:
    data = _broken()[how]

    with pytest.raises(CorruptLogError, match=f"{TABLE} cannot be read at {NAME}") as caught:
        files_in(io.BytesIO(data))
    assert caught.value.log_file == NAME
    if how != "overwritten":  # what the facts are in may be whole
        with pytest.raises(CorruptLogError):
            facts_in(io.BytesIO(data))


def test_a_checkpoint_of_delta_rs_says_what_its_commits_say(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1, 2, 3]), "d": pa.array(["a%b", "c d", None])})
    transaction = CommitProperties(app_transactions=[Transaction("app", 5, 9)])
    write_deltalake(tmp_path, rows, partition_by=["d"], configuration={"delta.appendOnly": "false"})
    write_deltalake(tmp_path, rows, mode="append", commit_properties=transaction)
    table = DeltaTable(tmp_path)
    table.delete("id = 1")
    table.create_checkpoint()

    name = "00000000000000000002.checkpoint.parquet"
    with (tmp_path / "_delta_log" / name).open("rb") as source:
        facts = facts_in(source, name)
        batches = list(read_files(source, with_stats=True, log_file=name))
    files = pa.Table.from_batches(batches, FILE_COLUMNS)

    assert facts.metadata is not None
    assert facts.metadata.table_id == str(table.metadata().id)
    assert facts.metadata.partition_columns == ("d",)
    assert facts.metadata.configuration == {"delta.appendOnly": "false"}
    assert {app: txn.txn_version for app, txn in facts.txns.items()} == {"app": 5}
    live = pa.table(table.get_add_actions(flatten=True))
    assert sorted(files["log_path"].to_pylist()) == sorted(live["path"].to_pylist())
    assert sorted(files["size_bytes"].to_pylist()) == sorted(live["size_bytes"].to_pylist())
    logged = _adds_of_commits(tmp_path / "_delta_log")
    assert [row for row in files.select(_SAME).to_pylist() if row not in logged] == []


_SAME = ["log_path", "key", "partition_values", "size_bytes", "modified_ms"]


def _adds_of_commits(log: Path) -> Rows:
    batches = [
        batch
        for version, file in enumerate(sorted(log.glob("*.json")))
        for batch in decode_commit_columns(
            file.read_bytes(), version=Version(version), log_file=file.name, modified_ms=0
        )[0]
    ]
    rows: Rows = pa.Table.from_batches(batches, FILE_COLUMNS).select(_SAME).to_pylist()
    return rows


def test_every_classic_checkpoint_of_other_writers_is_read(corpus: Path) -> None:
    read = 0
    for file in sorted(corpus.glob("delta/**/_delta_log/*.checkpoint.parquet")):
        with file.open("rb") as source:
            top = read_top_level([(log_file(file.name), source)], root_url=URL)
            files = sum(b.num_rows for b in read_files(source, with_stats=True, log_file=file.name))
            assert (files == 0) >= bool(top.sidecars), file
            read += 1

    assert read > 20


def test_a_process_without_enough_memory_for_a_checkpoint_is_told_so() -> None:
    with pytest.raises(CorruptLogError, match=f"{NAME}: reading it takes more memory .*: malloc of size 300000000"):
        files_in(OutOfMemory(a_checkpoint([an_add("a")]).getvalue()))


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"storageType": "x"}, "storageType is of a kind that is not known"),
        ({"storageType": None}, "storageType is of a kind that is not known"),
        ({"pathOrInlineDv": None}, "pathOrInlineDv is missing"),
        ({"sizeInBytes": None}, "sizeInBytes is missing"),
        ({"cardinality": None}, "cardinality is missing"),
    ],
)
def test_half_a_deletion_vector_is_not_none_and_is_refused_by_name(fault: dict[str, object], reason: str) -> None:
    adds = [an_add("a"), an_add("b", deletionVector={**VECTOR, **fault})]

    with pytest.raises(CorruptLogError, match=rf"add\.deletionVector\.{reason}"):
        files_in(a_checkpoint(adds, {"add": WITH_VECTOR}))


def test_a_path_that_is_no_text_is_named_and_not_handed_on() -> None:
    damaged = in_parquet([an_add("part-7")], compression="none", use_dictionary=False).replace(b"part-7", b"part-\xff")

    with pytest.raises(CorruptLogError, match=rf"{NAME}.*UTF8"):
        files_in(io.BytesIO(damaged))


@pytest.mark.parametrize("place", ["page", "values"])
def test_a_checkpoint_whose_pages_are_damaged_loses_no_file_in_silence(place: str) -> None:
    adds = [an_add(f"part-{number}") for number in range(10)]
    # With a checksum as Spark's have, or damaged where none guards.
    whole = a_checkpoint(adds, compression="none", use_dictionary=False, write_page_checksum=place == "values")
    data = bytearray(whole.getvalue())
    assert b"part-7" in data
    group = pq.read_metadata(whole).row_group(0)
    if place == "page":
        for start in (group.column(index).data_page_offset for index in range(group.num_columns)):
            assert data[start : start + 2] == b"\x15\x00"
            data[start + 1] = 2  # another kind of page, which Parquet asks readers to pass over
    else:
        data[data.index(b"part-7")] = ord("P")

    with pytest.raises(CorruptLogError, match=NAME):
        files_in(io.BytesIO(data))


@pytest.mark.parametrize("row_group_size", [2000, 40])
def test_batches_have_fewer_rows_where_what_is_read_of_them_is_large(
    row_group_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_parquet, "_FEWEST_ROWS", 1)
    monkeypatch.setattr(checkpoint_parquet, "_BATCH_BYTES", 100_000)
    large = [an_add(f"large-{i}", stats=shake_128(b"%d" % i).hexdigest(1000)) for i in range(200)]
    small = [an_add(f"small-{i}") for i in range(2000 if row_group_size == 2000 else 0)]
    source = a_checkpoint([*small, *large], row_group_size=row_group_size)

    def most_rows(*, with_stats: bool) -> int:
        batches = read_files(source, with_stats=with_stats, log_file=NAME)
        return max(map(len, batches))

    assert 45 <= most_rows(with_stats=True) <= 50
    assert most_rows(with_stats=False) > 150


def test_batches_have_fewer_rows_where_the_statistics_of_many_columns_are_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checkpoint_parquet, "_FEWEST_ROWS", 1)
    monkeypatch.setattr(checkpoint_parquet, "_BATCH_BYTES", 100_000)
    bounds = pa.struct([(f"c{n}", pa.int64()) for n in range(50)])
    groups = pa.struct([(group, bounds) for group in ("minValues", "maxValues", "nullCount")])
    kind = pa.struct([*(f for f in ADD if f.name != "stats"), ("stats_parsed", groups)])
    alike = {"minValues": {f"c{n}": n for n in range(50)}, "nullCount": {f"c{n}": 0 for n in range(50)}}
    source = a_checkpoint([an_add(f"part-{i}", stats_parsed=alike) for i in range(400)], {"add": kind})
    assert len(source.getvalue()) < 100_000

    sizes = [len(batch) for batch in read_files(source, with_stats=True, log_file=NAME)]

    assert sum(sizes) == 400
    assert max(sizes) * 150 * 8 < 100_000


def test_a_footer_that_claims_more_columns_than_any_checkpoint_has_takes_no_memory_for_them() -> None:
    claimed = b"\x15\x02\x19\xfc\xa1\x8d\x06"  # a list of 100,001 schema elements
    file = b"PAR1" + claimed + len(claimed).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(CorruptLogError, match="Exceeded size limit"):
        facts_in(io.BytesIO(file))
