"""The fields of a split's index as IndexTables makes them from a table's columns, and the files that list them.

A column gets the same field, with the same options, as from one of the two writers of IndexTables4Spark: dates and
timestamps have microseconds; structs, arrays and maps are objects. A type that neither writer supports is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa

from tablefeed.errors import TABLE, UnsupportedFeatureError
from tablefeed.indextables.split.indexing import Indexed, Indexing, Style

Json = dict[str, Any]  # Any: JSON that is written here, or compared for equality

_NUMBER = {"indexed": True, "fieldnorms": False, "fast": True, "stored": True}
_SETTINGS = {"docstore_compression": "lz4", "docstore_blocksize": 16384}
_UTC_US = pa.timestamp("us", "UTC")
_MOMENT = ("date", {**_NUMBER, "precision": "microseconds"})
_TYPES: Mapping[pa.DataType, tuple[str, Mapping[str, object]]] = {
    pa.int32(): ("i64", _NUMBER),
    pa.int64(): ("i64", _NUMBER),
    pa.float32(): ("f64", _NUMBER),
    pa.float64(): ("f64", _NUMBER),
    pa.bool_(): ("bool", _NUMBER),
    pa.date32(): _MOMENT,
    _UTC_US: _MOMENT,
    pa.binary(): ("bytes", {**_NUMBER, "fast": False}),
}


def _indexed(record: str, tokenizer: str, *, norms: bool) -> Mapping[str, object]:
    return {"record": record, "fieldnorms": norms, "tokenizer": tokenizer}


_STRING = {
    Style.ROWS: _indexed("basic", "raw", norms=True),
    Style.ARROW: _indexed("position", "raw", norms=False),
}
_TEXT = {
    Style.ROWS: _indexed("position", "default", norms=True),
    Style.ARROW: _indexed("position", "default", norms=False),
}
_OBJECT = {
    Style.ROWS: _indexed("position", "default", norms=True),
    Style.ARROW: _indexed("basic", "raw", norms=False),
}


def check_types(schema: pa.Schema, *, partition_by: Sequence[str] = ()) -> None:
    """Raises UnsupportedFeatureError where a column, or a value inside it, has a type that IndexTables cannot write.

    Also raises it where a table is partitioned by a column of bytes.
    """
    for field in schema:
        for path, kind in _leaves(field.name, field.type):
            if kind not in _TYPES and kind != pa.string():
                raise UnsupportedFeatureError(
                    f"{TABLE} cannot be written: column {path} is {kind}, and IndexTables has int, long, float, "
                    "double, boolean, string, date, timestamp and binary, in structs, arrays and maps. Cast the column "
                    "to one of these first.",
                    features=(str(kind),),
                )
    for name in partition_by:
        if schema.field(name).type == pa.binary():
            raise UnsupportedFeatureError(
                f"{TABLE} cannot be written: column {name} is binary, and IndexTables has no partitions of binary. "
                "Partition by another column, or cast it to a string first.",
                features=("binary",),
            )


def is_object(field: pa.Field, indexing: Indexing) -> bool:
    """Whether the column is stored as an object."""
    if field.type == pa.string():
        return indexing.of(field.name) is Indexed.JSON
    return field.type not in _TYPES


def fields(schema: pa.Schema, indexing: Indexing) -> list[Json]:
    """The fields of the index in index order, as `meta.json` lists them."""
    names = schema.names if indexing.columns is None else indexing.columns
    return [_field(schema.field(name), indexing) for name in names]


def encode_meta(fields: Sequence[Json], *, segment: tuple[str, int] | None, opstamp: int) -> bytes:
    """The `meta.json` of an index of these fields. `segment`: its id and its number of rows; None: no segment."""
    segments = [] if segment is None else [{"segment_id": segment[0], "max_doc": segment[1], "deletes": None}]
    meta = {"index_settings": _SETTINGS, "segments": segments, "schema": fields, "opstamp": opstamp}
    return orjson.dumps(meta)


def encode_managed(names: Sequence[str]) -> bytes:
    """The `.managed.json` of an index with these files."""
    return orjson.dumps(sorted(names))


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    is_a = pa.types
    if is_a.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif is_a.is_list(kind):
        yield from _leaves(f"{path}.element", kind.value_type)
    elif is_a.is_map(kind):
        yield f"{path}.key", kind.key_type
        yield from _leaves(f"{path}.value", kind.item_type)
    else:
        yield path, kind


def _field(field: pa.Field, indexing: Indexing) -> Json:
    name, options = _typed(field, indexing)
    return {"name": field.name, "type": name, "options": options}


def _typed(field: pa.Field, indexing: Indexing) -> tuple[str, Mapping[str, object]]:
    if field.type in _TYPES:
        return _TYPES[field.type]
    style = indexing.style
    by_rows = style is Style.ROWS
    if not is_object(field, indexing):
        match indexing.of(field.name):
            case Indexed.STRING:
                return "text", {"indexing": _STRING[style], "stored": True, "fast": {"with_tokenizer": "raw"}}
            case Indexed.TEXT:
                fast = False if by_rows else {"with_tokenizer": "default"}
                return "text", {"indexing": _TEXT[style], "stored": True, "fast": fast}
            case Indexed.IP:
                return "ip_addr", _NUMBER
    return "json_object", {
        "stored": True,
        "indexing": _OBJECT[style],
        "fast": True,
        "expand_dots_enabled": by_rows,
    }
