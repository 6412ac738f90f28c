"""What the targets of logs and data files decode with: each function calls a decoder as the package calls it.

Where the package has a second way to the same answer, or a writer for what it read, the answers are compared.
"""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import orjson
import pyarrow as pa

from support.logs import TABLE_ID, commit_path, log_of
from tablefeed.data import splits
from tablefeed.data.read import ReadPlan, RowSelection
from tablefeed.data.sql.kinds import arrow_type
from tablefeed.delta import codec, columns, deletion_vectors, features, fields, partition_values, tracked
from tablefeed.delta.checkpoint import checksum, checksum_writer, compaction, last_checkpoint, reading, typed_values
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.row_tracking import with_row_ids
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.delta.schema.schema_string import format_schema, parse_schema
from tablefeed.delta.stats.clustering import clustering_columns
from tablefeed.delta.stats.column_bounds import Leaf, read_bounds
from tablefeed.delta.stats.stats_columns import record_counts
from tablefeed.delta.stats.stats_text import loose, num_records
from tablefeed.errors import CorruptLogError, LogError, TablefeedError
from tablefeed.feed.rows import state
from tablefeed.indextables.log import avro_state, json_checkpoint, schema_registry, version_file
from tablefeed.indextables.log import last_checkpoint as index_last_checkpoint
from tablefeed.indextables.split.table_indexing import indexing_of
from tablefeed.model.actions import AddFile, DomainMetadata, Protocol, Version
from tablefeed.model.logfile import LogFile, LogFileKind
from tablefeed.model.schema import Array, DataType, Decimal, Field, Primitive, Struct
from tablefeed.store.memory import MemoryStore

URL = "memory:t"
_Answer = TypeVar("_Answer")


def as_text(data: bytes) -> str:
    """Gives `data` as a text that a log can hold."""
    return data.decode(errors="replace")


# --- Delta's log ----------------------------------------------------------------------------------------------------


def commit(data: bytes) -> None:
    """A commit, by the readers of its actions, of its facts and of its files as columns; and written again."""
    where: dict[str, Any] = {"version": Version(3), "log_file": "3.json", "modified_ms": 5}
    rows = columns.FileRows()
    found = _outcome(lambda: codec.decode_commit(data, **where))
    by_columns = _outcome(lambda: (columns.decode_commit_into(rows, data, **where), [*rows.rest()]))
    if isinstance(found, CorruptLogError):
        # The other two read less of a commit, so that they may accept it.
        raise found
    assert not isinstance(by_columns, CorruptLogError), by_columns
    facts, batches = by_columns
    for of_facts in (facts, codec.decode_facts(data, **where)):
        assert replace(of_facts, info=None) == replace(found, files=(), info=None)
        with contextlib.suppress(RecursionError):  # Python cannot compare what nests as deep as orjson can read
            assert of_facts.info == found.info
    files = [file for batch in (*rows.full(), *batches) for file in columns.to_add_files(batch)]
    assert sorted(map(repr, files)) == sorted(repr(file) for file in found.files if isinstance(file, AddFile))
    kept = replace(found, info=None)
    assert codec.decode_commit(codec.encode_commit(kept) + b"{}", **where) == replace(kept, committed_at_ms=5)


def _outcome(read: Callable[[], _Answer]) -> _Answer | CorruptLogError:
    try:
        return read()
    except CorruptLogError as error:
        return error


def table(data: bytes) -> None:
    """A table with one commit: its schema, its files, and whether it can be written."""
    store = MemoryStore("t")
    store.put_if_absent(commit_path(0), data)
    snapshot = log_of(store).load()
    _each(
        lambda: snapshot.arrow_schema,
        lambda: [batch.validate(full=True) for batch in snapshot.live_files(with_stats=True)],
        lambda: features.check_writable(snapshot.protocol, snapshot.metadata, removes=True),
        lambda: [getattr(snapshot.properties, name) for name in vars(TableProperties) if not name.startswith("_")],
    )


def log_compaction(data: bytes) -> None:
    """A log compaction file, judged, and compacted again."""
    rows = columns.FileRows()
    found = columns.decode_commit_into(rows, data, version=Version(3), log_file="0.3.compacted.json", modified_ms=5)
    compaction.unreconciled_facts(found)
    compaction.unreconciled_files([*rows.full(), *rows.rest()])
    whole = codec.decode_commit(data, version=Version(3), log_file="3.json", modified_ms=5)
    compaction.compact([whole, whole])


def _checkpoint(data: bytes, name: str) -> None:
    kind = LogFileKind.CHECKPOINT_V2 if name.endswith("json") else LogFileKind.CHECKPOINT
    log_file = LogFile(name=name, version=Version(3), kind=kind, size_bytes=len(data), modified_ms=5)
    source = io.BytesIO(data)
    top = _outcome(lambda: reading.read_top_level([(log_file, source)], root_url=URL))
    for read in (reading.read_files, reading.read_sidecar_files)[: 1 if name.endswith("json") else 2]:
        for with_stats in (True, False):
            _outcome(lambda: [*read(io.BytesIO(data), with_stats=with_stats, log_file=name)])  # noqa: B023
    _outcome(lambda: [*reading.read_removed(io.BytesIO(data), log_file=name)])
    _outcome(lambda: reading.read_actions(io.BytesIO(data), log_file=log_file))
    _outcome(lambda: [*reading.read_all_columns(io.BytesIO(data), log_file=name)])
    if isinstance(top, CorruptLogError):
        raise top


def checkpoint_json(data: bytes) -> None:
    """A top-level file in JSON."""
    _checkpoint(data, "3.checkpoint.a.json")


def checkpoint_parquet(data: bytes) -> None:
    """A top-level file or a sidecar in Parquet: both have the same columns."""
    _checkpoint(data, "3.checkpoint.a.parquet")


def last_checkpoint_hint(data: bytes) -> None:
    """`_last_checkpoint`, which never raises."""
    last_checkpoint.parse_last_checkpoint.__wrapped__(data)


def version_checksum(data: bytes) -> None:
    """`VERSION.crc`, by its reader and by the writer of the next one; neither raises."""
    checksum.parse_checksum(data)
    checksum_writer.read_counts(data, table_id=TABLE_ID)


def vector_in_log(data: bytes) -> None:
    """A deletion vector's descriptor, and its bytes where the log itself has them."""
    vector = fields.read_deletion_vector(orjson.loads(data))
    if deletion_vectors.stored_at(vector) is None:
        _applied(RowSelection(without=deletion_vectors.decode_inline(vector)))


def vector_in_file(data: bytes) -> None:
    """A deletion vector's bytes from a file: the input is the cardinality in the log, then the bitmap."""
    (cardinality,), bitmap = struct.unpack("<Q", data[:8].ljust(8, b"\0")), data[8:]
    vector = fields.read_deletion_vector(
        {
            "storageType": "u",
            "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
            "offset": 1,
            "sizeInBytes": len(bitmap),
            "cardinality": cardinality & 2**63 - 1,
        }
    )
    block = struct.pack(">I", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
    _applied(RowSelection(without=deletion_vectors.decode_stored(block, vector)))


def _applied(selection: RowSelection) -> None:
    """Selects the rows of a file, and checks that the bitmap gives each row the same answer alone."""
    rows = pa.record_batch({"at": pa.array(range(1000))})
    assert selection.without is not None
    assert selection.row_count >= len(selection.without) > -1
    kept = selection.of(rows, first=0)["at"].to_pylist()
    assert kept == [at for at in range(1000) if at not in selection.without]
    selection.of(rows, first=65_000)


_KINDS: dict[str, DataType] = {
    **{
        name: Primitive(name)
        for name in ("string", "long", "integer", "short", "byte", "float", "double", "boolean", "binary")
    },
    **{name: Primitive(name) for name in ("date", "timestamp", "timestamp_ntz", "variant")},
    "decimal": Decimal(20, 3),
    "array": Array(Primitive("long"), contains_null=True),
}


def partition_value(data: bytes) -> None:
    """The name of a type, then a text of it after a blank; the value is written and read again."""
    name, _, text = as_text(data).partition(" ")
    kind = _KINDS.get(name, Primitive("timestamp"))
    value = partition_values.parse(text, kind, refuse=LogError)
    if value is not None:
        written = partition_values.serialise(value, kind)
        again = partition_values.parse(written, kind, refuse=LogError)
        assert again == value or value != value or not value
        pa.array([value], arrow_type(kind))


def schema_string(data: bytes) -> None:
    """A schema, in Arrow's types, and written again."""
    found = parse_schema(as_text(data))
    to_arrow(found)
    assert parse_schema(format_schema(found)) == found


STATISTICS = Struct(
    tuple(
        Field(name, kind, nullable=True)
        for name, kind in {
            **{
                name: kind
                for name, kind in _KINDS.items()
                if isinstance(kind, Primitive | Decimal) and name != "variant"
            },
            "s": Struct((Field("x", Primitive("long"), nullable=True),)),
        }.items()
    )
)
_LEAVES = [Leaf(path=(f.name,), type=f.type) for f in STATISTICS if isinstance(f.type, Primitive | Decimal)]
_LEAVES.append(Leaf(path=("s", "x"), type=Primitive("long")))
_BOUNDS = typed_values.stats_schema(STATISTICS, TableProperties({}), partition_columns=(), has_vectors=True)


def statistics(data: bytes) -> None:
    """A file's statistics, by all their readers; none raises."""
    text = as_text(data)
    texts = pa.array([text, None, '{"numRecords":3}'])
    count = num_records(text)
    if text.count("numRecords") == 1 and count is not None:
        assert record_counts(texts).to_pylist()[0] == count
    read_bounds(texts, _LEAVES)
    typed_values.parsed_stats(texts, _BOUNDS)
    loose(text)


def domain(data: bytes) -> None:
    """The configuration of each metadata domain that the package reads."""
    text = as_text(data)
    protocol = Protocol(
        min_reader_version=1,
        min_writer_version=7,
        writer_features=frozenset({"clustering", "domainMetadata", "rowTracking"}),
    )
    domains = {
        name: DomainMetadata(domain=name, configuration=text, removed=False)
        for name in ("delta.clustering", "delta.rowTracking", state.DOMAIN)
    }
    file = AddFile(
        path="a",
        log_path="a",
        partition_values={},
        size_bytes=1,
        modified_ms=1,
        stats='{"numRecords":1}',
        data_change=True,
    )
    _each(
        lambda: state.paths_of(domains[state.DOMAIN]),
        lambda: clustering_columns(protocol, domains),
        lambda: with_row_ids([file], domains, version=Version(3)),
    )


def _each(*reads: Callable[[], object]) -> None:
    """Calls all of `reads`, then raises what the last refused call raised."""
    refused = None
    for read in reads:
        try:
            read()
        except TablefeedError as error:
            refused = error
    if refused is not None:
        raise refused


def tracked_schema(data: bytes) -> None:
    """An entry of a stream's log of tracked metadata, written again."""
    found = tracked.decode_entry(data)
    assert tracked.decode_entry(tracked.encode_entry(found)).schema == found.schema


# --- IndexTables ----------------------------------------------------------------------------------------------------


def index_hint(data: bytes) -> None:
    """`_last_checkpoint`, which never raises; a hint is written and read again."""
    found = index_last_checkpoint.parse_last_checkpoint(data)
    if found is not None:
        assert index_last_checkpoint.parse_last_checkpoint(index_last_checkpoint.encode_last_checkpoint(found)) == found


_VERSION_FILE: dict[str, Any] = {"url": URL, "log_file": "3.json"}


def index_commit(data: bytes) -> None:
    """A version file in each of its forms."""
    version_file.decode_commit(data, version=Version(3), modified_ms=5, **_VERSION_FILE)


def index_checkpoint(data: bytes) -> None:
    """A JSON checkpoint, in one file and as a list of parts."""
    _each(
        lambda: json_checkpoint.part_list(data, version=Version(3), **_VERSION_FILE),
        lambda: json_checkpoint.decode_checkpoint([("3.checkpoint.json", data)], url=URL),
    )


def index_state(data: bytes) -> None:
    """`_manifest.avro`."""
    avro_state.decode_state(data, version=Version(3), url=URL, log_file="_manifest.avro").facts  # noqa: B018


def index_manifest(data: bytes) -> None:
    """A manifest of two entries, all its columns."""
    for batch in avro_state.decode_manifest(data, entry_count=2, url=URL, log_file="m.avro"):
        batch.validate(full=True)


SPLIT = pa.schema(
    {
        "id": pa.int64(),
        "s": pa.string(),
        "f": pa.float64(),
        "b": pa.bool_(),
        "at": pa.timestamp("us", "UTC"),
        "d": pa.date32(),
        "raw": pa.binary(),
        "deep": pa.struct({"x": pa.int64(), "l": pa.list_(pa.string())}),
    }
)


def split(data: bytes) -> None:
    """The rows of a split."""
    file = splits.SplitFile(path="a.split", size_bytes=len(data), num_records=None)
    plan = ReadPlan(schema=SPLIT, batch_rows=1000)
    for batch in splits.read_split_batches(lambda at, length: data[at : at + length], plan, file):
        batch.validate(full=True)


def doc_mapping(data: bytes) -> None:
    """A doc mapping, the hash of its canonical form, and how a writer indexes like it."""
    text = as_text(data)
    schema_registry.plain_texts.__wrapped__(text)
    schema_registry.DocMappings({"a": text}, renormalise=True).by_hash(text, None)
    indexing_of([text], SPLIT, url=URL)
