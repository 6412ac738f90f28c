"""Classic checkpoints, whole or one part of several, in Parquet (PROTOCOL.md, "Checkpoint Schema").

A row is one action: a column for each kind, null in all columns but its own. Facts become values, files stay columns.
Writers differ in which columns and members they write, in their order and in their physical types: so all is found by
name, and what is absent is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tablefeed.delta import fields, names
from tablefeed.delta.columns import DELETION_VECTOR, FILE_COLUMNS, STRING_MAP, file_keys
from tablefeed.delta.fields import BadActionError
from tablefeed.errors import CorruptLogError, UnsupportedFeatureError
from tablefeed.model.actions import Facts


def read_facts(source: BinaryIO, *, url: str, log_file: str) -> Facts:
    """What a checkpoint, or one part of it, says besides files. The columns of the files are not read.

    `source` is an open, seekable file, which the caller closes. `in_commit_timestamp_ms` is None: no checkpoint has
    commitInfo. Raises CorruptLogError, naming `log_file`, where the file is no Parquet, an action is not what the
    protocol says, or there are two metaData or two protocols.
    """
    with _blamed_on(log_file, url=url):
        parquet = _open(source)
        actions = {kind: list(_actions(parquet, kind)) for kind in _FACTS}
        for kind in (names.PROTOCOL, names.METADATA):
            if len(actions[kind]) > 1:
                raise BadActionError("comes a second time", kind)
        txns = map(fields.read_txn, actions[names.TXN])
        domains = map(fields.read_domain, actions[names.DOMAIN_METADATA])
        return Facts(
            protocol=next(map(fields.read_protocol, actions[names.PROTOCOL]), None),
            metadata=next(map(fields.read_metadata, actions[names.METADATA]), None),
            txns={txn.app_id: txn for txn in txns},
            domains={domain.domain: domain for domain in domains if not domain.removed},
        )


def read_files(source: BinaryIO, *, with_stats: bool, url: str, log_file: str) -> Iterator[pa.RecordBatch]:
    """The adds of a checkpoint, or of one part of it, as batches of `columns.FILE_COLUMNS`, in the file's order.

    Read as the iterator goes, a bounded number of rows at a time; `source` must stay open. `stats` is null without
    `with_stats`, and where the writer kept statistics as a struct only (`stats_parsed`, which is not read). Raises
    CorruptLogError as `read_facts` does, also where a required field is null, and UnsupportedFeatureError for a
    checkpoint that keeps its files in sidecars (v2Checkpoint).
    """
    with _blamed_on(log_file, url=url):
        parquet = _open(source)
        _refuse_sidecars(parquet, url=url, log_file=log_file)
        members = _members(parquet, names.ADD)
        wanted = [wire for name, wire in _WIRE.items() if wire in members and (with_stats or name != "stats")]
        if not members:
            return
        if _WIRE["log_path"] not in members:
            raise BadActionError("is missing", names.ADD, _WIRE["log_path"])
        for batch in _batches(parquet, [f"{names.ADD}.{wire}" for wire in wanted]):
            files = _to_files(batch.column(names.ADD), frozenset(wanted))
            if files.num_rows > 0:
                yield files


_FACTS = (names.PROTOCOL, names.METADATA, names.TXN, names.DOMAIN_METADATA)
_WIRE: Mapping[str, str] = {name: fields.FILE_FIELDS[name] for name in FILE_COLUMNS.names if name in fields.FILE_FIELDS}
_REQUIRED = ("partition_values", "size_bytes", "modified_ms", "data_change")
_VECTOR_WIRE: Mapping[str, str] = {
    "storage_type": "storageType",
    "path_or_inline": "pathOrInlineDv",
    "offset": "offset",
    "size_bytes": "sizeInBytes",
    "cardinality": "cardinality",
}
_BATCH_ROWS = 64 << 10  # bounds the memory; larger ones are not faster
_MOST_IN_A_LIST = 100_000  # columns or row groups: Arrow takes memory for as many as a footer claims


@contextmanager
def _blamed_on(log_file: str, *, url: str) -> Iterator[None]:
    try:
        yield
    except BadActionError as bad:
        raise CorruptLogError(str(bad), url=url, log_file=log_file) from bad
    except (pa.ArrowException, OSError, ValueError) as error:  # pyarrow tells broken Parquet by any of these
        raise CorruptLogError(f"it cannot be read as Parquet: {error}", url=url, log_file=log_file) from error


def _open(source: BinaryIO) -> pq.ParquetFile:
    # Where the writer gave its pages checksums, damage in the middle of one is an error and no other value.
    return pq.ParquetFile(source, page_checksum_verification=True, thrift_container_size_limit=_MOST_IN_A_LIST)


def _batches(parquet: pq.ParquetFile, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """All rows of the file. Arrow ends a column whose pages are damaged as if it were at its end: that is told here."""
    found = 0
    for batch in parquet.iter_batches(_BATCH_ROWS, columns=columns):
        yield batch
        found += batch.num_rows
    if found != parquet.metadata.num_rows:
        raise ValueError(f"it has {found} rows, but its footer speaks of {parquet.metadata.num_rows}")


def _members(parquet: pq.ParquetFile, column: str) -> frozenset[str]:
    """The members of a column of actions; none where there is no such column."""
    schema = parquet.schema_arrow
    if column not in schema.names:
        return frozenset()
    kind = schema.field(column).type
    if not pa.types.is_struct(kind):
        raise BadActionError(f"is {kind}, not a struct", column)
    return frozenset(member.name for member in kind)


def _refuse_sidecars(parquet: pq.ParquetFile, *, url: str, log_file: str) -> None:
    # "V2 Spec": where there are sidecars, the files of the table are in them and not here.
    if any(True for _ in _actions(parquet, names.SIDECAR)):
        raise UnsupportedFeatureError(
            f"The checkpoint {log_file} of {url} keeps its files in sidecars, which this version of tablefeed does not "
            "read. Upgrade tablefeed, or let the table's writer make a classic checkpoint.",
            url=url,
            features=("v2Checkpoint",),
        )


def _actions(parquet: pq.ParquetFile, kind: str) -> Iterator[dict[str, Any]]:
    """The actions of `kind` as if parsed from JSON; null is absent."""
    if not _members(parquet, kind):
        return
    for batch in _batches(parquet, [kind]):
        column = batch.column(kind)
        for row in pc.indices_nonzero(column.is_valid()).to_pylist():
            action = _plain(column[row].as_py(), column.type)
            # Where a writer has no null structs, an action of another kind is one with nothing in it.
            if action:
                yield action


def _plain(value: Any, kind: pa.DataType) -> Any:  # Any: what JSON can hold
    if value is None:
        return None
    if pa.types.is_map(kind):
        return dict(value)
    if pa.types.is_struct(kind):
        members = {member.name: _plain(value[member.name], member.type) for member in kind}
        return {name: member for name, member in members.items() if member is not None}
    return value


def _to_files(adds: pa.StructArray, wanted: frozenset[str]) -> pa.RecordBatch:
    columns: dict[str, pa.Array] = {}
    for name, wire in _WIRE.items():
        kind = FILE_COLUMNS.field(name).type
        found = pc.struct_field(adds, wire) if wire in wanted else pa.nulls(len(adds), kind)
        try:
            columns[name] = _retyped(found, kind)
        except BadActionError as bad:
            raise BadActionError(bad.reason, names.ADD, wire, *bad.path) from None
        except (pa.ArrowException, ValueError) as error:
            raise BadActionError(f"cannot be {kind}: {error}", names.ADD, wire) from error
    if columns["log_path"].null_count > 0:  # rows of other actions
        rows = columns["log_path"].is_valid()
        columns = {name: column.filter(rows) for name, column in columns.items()}
    for name in _REQUIRED:
        if columns[name].null_count > 0:
            raise BadActionError("is missing", names.ADD, _WIRE[name])
    columns["is_add"] = columns["log_path"].is_valid()
    columns["key"] = file_keys(columns["log_path"], columns["deletion_vector"])
    files = pa.RecordBatch.from_arrays([columns[name] for name in FILE_COLUMNS.names], schema=FILE_COLUMNS)
    files.validate(full=True)  # Arrow takes any bytes for text until they are asked for
    return files


def _retyped(found: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values of `found` as `kind`. Raises what Arrow raises where they do not fit."""
    if kind == DELETION_VECTOR and pa.types.is_struct(found.type):
        return _vectors(found)
    if kind == STRING_MAP and _is_list_of_pairs(found.type):
        keys, values = (_retyped(member, pa.string()) for member in found.values.flatten())
        return pa.MapArray.from_arrays(found.offsets, keys, values, mask=found.is_null())
    return found if found.type == kind else found.cast(kind)


def _vectors(found: pa.StructArray) -> pa.StructArray:
    present = frozenset(member.name for member in found.type)
    members = [
        _retyped(pc.struct_field(found, wire), DELETION_VECTOR.field(name).type)
        if wire in present
        else pa.nulls(len(found), DELETION_VECTOR.field(name).type)
        for name, wire in _VECTOR_WIRE.items()
    ]
    kinds, places = members[0], members[1]
    # A writer without null structs says "none" by a vector with nothing in it.
    none = pc.and_(kinds.is_null(), places.is_null())
    if not pc.all(pc.or_(none, pc.is_in(kinds, value_set=pa.array(fields.STORAGE_TYPES)))).as_py():
        raise BadActionError("is of a kind that is not known", _VECTOR_WIRE["storage_type"])
    for (name, wire), member in zip(_VECTOR_WIRE.items(), members, strict=True):
        if name != "offset" and pc.any(pc.and_not(member.is_null(), none)).as_py():
            raise BadActionError("is missing", wire)
    return pa.StructArray.from_arrays(members, fields=list(DELETION_VECTOR), mask=none)


def _is_list_of_pairs(kind: pa.DataType) -> bool:
    """How a map comes whose writer did not say that it is one (Parquet, "Backward-compatibility rules" of MAP)."""
    return bool(pa.types.is_list(kind) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2)
