"""Many files as Arrow columns: the entries of a manifest, the lines of a checkpoint, the files of a commit.

One row is one add or remove. `tablefeed.log` replays by `key`, `is_add`, `modified_ms`, `log_path` and `stats`. The key
is the path alone. Only `to_add_files` makes a Python value of each file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from types import NoneType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.indextables.log import fields
from tablefeed.model import action_fields
from tablefeed.model.actions import AddFile, Commit
from tablefeed.model.split import Split

STRING_MAP: pa.DataType = pa.map_(pa.string(), pa.string())
_STRINGS: pa.DataType = pa.list_(pa.string())
_DICTIONARY: pa.DataType = pa.dictionary(pa.int32(), pa.string())

FILE_COLUMNS: pa.Schema = pa.schema(
    [
        ("key", pa.string()),
        ("is_add", pa.bool_()),
        ("log_path", pa.string()),
        ("partition_values", STRING_MAP),
        ("size_bytes", pa.int64()),
        ("modified_ms", pa.int64()),
        ("data_change", pa.bool_()),
        ("stats", pa.string()),
        ("tags", STRING_MAP),
        ("deletion_timestamp_ms", pa.int64()),
        ("extended_file_metadata", pa.bool_()),
        ("num_records", pa.int64()),
        ("min_values", STRING_MAP),
        ("max_values", STRING_MAP),
        ("footer_start", pa.int64()),
        ("footer_end", pa.int64()),
        ("uncompressed_size_bytes", pa.int64()),
        ("doc_mapping", _DICTIONARY),
        ("doc_mapping_ref", pa.string()),
        ("split_tags", _STRINGS),
        ("merge_count", pa.int32()),
        ("delete_opstamp", pa.int64()),
        ("time_range_start", pa.string()),
        ("time_range_end", pa.string()),
        ("hotcache_start", pa.int64()),
        ("hotcache_size_bytes", pa.int64()),
        ("companion_source_files", _STRINGS),
        ("companion_delta_version", pa.int64()),
        ("companion_fast_field_mode", pa.string()),
        ("added_version", pa.int64()),
        ("added_ms", pa.int64()),
    ]
)
"""One row per add or remove. Null: the log left it out, or the row is a remove and only adds have it.

`doc_mapping` is a dictionary, because the native log repeats it in every entry. Only states have `added_version` and
`added_ms`, which later states repeat; in the Scala log every version is 0.
"""


def of_entries(entries: Sequence[action_fields.JsonObject]) -> pa.RecordBatch:
    """The entries of a manifest, as parsed. Raises BadActionError."""
    # all records of one schema have the same names
    return _batch(entries, [True] * len(entries), present=entries[0].keys() if entries else ())


def of_lines(lines: Sequence[tuple[bool, action_fields.JsonObject]]) -> pa.RecordBatch:
    """The adds (true) and removes (false) of a JSON file, as parsed and in order. Raises BadActionError."""
    return _batch([values for _, values in lines], [is_add for is_add, _ in lines])


def of_commit(commit: Commit) -> pa.RecordBatch:
    """The adds and removes of `commit`, in its order, as `tablefeed.log.replay.live_files` takes them."""
    rows = [fields.write_file(file, native=False)[1] for file in commit.files]
    return _batch(rows, [isinstance(file, AddFile) for file in commit.files])


def of_adds(adds: Sequence[AddFile]) -> pa.RecordBatch:
    """`adds` in their order. A partition value of null becomes Hive's word for it."""
    return _batch([fields.write_add(add, native=False) for add in adds], [True] * len(adds))


def to_entries(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The adds of `batch`, each with every field of an add and of a manifest's entry, by its name on disk.

    A field that the log left out is None. Null partition values become Hive's word for it: the maps have no null.
    """
    files = batch.filter(batch["is_add"])
    values = {name: _values(files[name]) for name in _OF_ENTRIES}
    values["partition_values"] = [fields.partition_words(each) for each in values["partition_values"]]
    for row in zip(*values.values(), strict=True):
        entry = dict(zip(_OF_ENTRIES.values(), row, strict=True))
        entry["hasFooterOffsets"] = entry["footerStartOffset"] is not None and entry["footerEndOffset"] is not None
        yield entry


def partitions_of(rows: pa.Table) -> list[dict[str, str | None]]:
    """The partition values of each of `rows`, which are adds."""
    return [values for chunk in rows["partition_values"].chunks for values in _values(chunk)]


def to_add_files(batch: pa.RecordBatch) -> Iterator[AddFile]:
    """The adds of `batch`, one value each, in its order."""
    for row in batch.filter(batch["is_add"]).to_pylist(maps_as_pydicts="strict"):
        lists = {name: None if row[name] is None else tuple(row[name]) for name in _LISTS}
        split = {attribute: row[name] for attribute, name in _OF_SPLIT.items()}
        split |= {attribute: lists[name] for attribute, name in _OF_SPLIT.items() if name in lists}
        yield AddFile(path=row["log_path"], split=Split(**split), **{name: row[name] for name in _OF_ADDS})


def last_of_each_key(rows: pa.Table) -> pa.Table:
    """The last row of each key, in the order of the rows."""
    if pc.count_distinct(rows["key"]).as_py() == rows.num_rows:
        return rows
    numbered = pa.table({"key": rows["key"], "row": pa.array(range(rows.num_rows), pa.int64())})
    last = numbered.group_by("key", use_threads=False).aggregate([("row", "max")])["row_max"]
    return rows.take(last.take(pc.sort_indices(last)))


def without_keys(batch: pa.RecordBatch, keys: pa.ChunkedArray) -> pa.RecordBatch:
    """The rows of `batch` whose key is none of `keys`."""
    return batch.filter(pc.invert(pc.is_in(batch["key"], value_set=keys))) if len(keys) else batch


def with_keys(batch: pa.RecordBatch, keys: pa.ChunkedArray) -> pa.RecordBatch:
    """The rows of `batch` whose key is one of `keys`."""
    return batch.filter(pc.is_in(batch["key"], value_set=keys))


def keys_of(batches: Iterable[pa.RecordBatch]) -> pa.ChunkedArray:
    """The keys of `batches`."""
    return pa.chunked_array([batch["key"] for batch in batches], pa.string())


_LISTS = ("split_tags", "companion_source_files")
_OF_SPLIT = {field.attribute: "split_tags" if field.attribute == "tags" else field.attribute for field in fields.SPLIT}
_OF_ADDS = tuple(field.attribute for field in fields.ADD)
_WIRE = {
    **{field.attribute: field.wire for field in (*fields.REMOVE, *fields.ADD)},
    **{_OF_SPLIT[field.attribute]: field.wire for field in fields.SPLIT},
    "added_version": fields.ADDED_VERSION,
    "added_ms": fields.ADDED_MS,
}
_OF_ENTRIES = {name: _WIRE[name] for name in (*_OF_ADDS, *_OF_SPLIT.values(), "added_version", "added_ms")}
_TEXT_OR_NUMBER = ("time_range_start", "time_range_end")


def _batch(
    rows: Sequence[action_fields.JsonObject], is_add: Sequence[bool], *, present: Collection[str] | None = None
) -> pa.RecordBatch:
    """The columns of `rows`; `present` are all names that occur in them, None where that is not known."""
    wires = {name: wire for name, wire in _WIRE.items() if present is None or wire in present}
    try:
        columns = {name: _column(name, [row.get(wire) for row in rows]) for name, wire in wires.items()}
    except (ValueError, TypeError, AttributeError, OverflowError, pa.ArrowException) as error:
        _refuse_bad(rows, is_add)
        raise action_fields.BadActionError(str(error)) from error
    columns |= {name: pa.nulls(len(rows), FILE_COLUMNS.field(name).type) for name in _WIRE if name not in wires}
    adds = pa.array(is_add, pa.bool_())
    if _is_absent(columns["partition_values"], adds):
        values = [row.get(_WIRE["partition_values"]) for row in rows]
        filled: list[Any] = [{} if value is None and add else value for value, add in zip(values, is_add, strict=True)]
        columns["partition_values"] = _column("partition_values", filled)
    for name in ("log_path", "size_bytes", "modified_ms"):
        needed = adds if name != "log_path" else pa.repeat(pa.scalar(value=True), len(rows))
        if _is_absent(columns[name], needed):
            _refuse_bad(rows, is_add)
            raise action_fields.BadActionError("is missing", _WIRE[name])
    columns["data_change"] = pc.fill_null(columns["data_change"], fill_value=True)
    columns |= {"is_add": adds, "key": columns["log_path"]}
    return pa.RecordBatch.from_arrays([columns[name] for name in FILE_COLUMNS.names], schema=FILE_COLUMNS)


def _is_absent(values: pa.Array, needed: pa.BooleanArray) -> bool:
    """Whether one of the `values` that are `needed` is null."""
    return bool(values.null_count and pc.any(pc.and_(values.is_null(), needed)).as_py())


def _refuse_bad(rows: Sequence[action_fields.JsonObject], is_add: Sequence[bool]) -> None:
    """Raises BadActionError for the first malformed row, found by reading the rows one by one as fields.py does."""
    for row, add in zip(rows, is_add, strict=True):
        (fields.read_add if add else fields.read_remove)(row)


def _column(name: str, values: list[Any]) -> pa.Array:
    """The values of one field, checked as strictly as in fields.py. Raises what pyarrow raises."""
    kind = FILE_COLUMNS.field(name).type
    if values.count(None) == len(values):
        return pa.nulls(len(values), kind)
    if kind == STRING_MAP:
        return _maps_of(name, values)
    if kind == _DICTIONARY:
        return pa.array(values, type=pa.string()).dictionary_encode().cast(kind)
    if name in _TEXT_OR_NUMBER:
        values = [str(value) if type(value) is int else value for value in values]
    if not pa.types.is_integer(kind):
        return pa.array(values, type=kind)
    # With a given type pyarrow would truncate floats. To infer one takes memory by the square of a value's depth.
    if not {*map(type, values)} <= {int, NoneType}:
        raise TypeError(f"{name} has values that are no integers")
    return pa.array(values, type=kind)


def _maps_of(name: str, values: list[Any]) -> pa.MapArray:
    # pyarrow would also accept lists of pairs as maps, and takes twice as long
    offsets: list[int | None] = []
    keys: list[Any] = []
    items: list[Any] = []
    for value in values:
        offsets.append(None if value is None else len(keys))
        if value is not None:
            # a null in a map of texts means the same as an absent key; in partition values it is the value
            kept = value if name == "partition_values" or None not in value.values() else _without_nulls(value)
            keys += kept.keys()
            items += kept.values()
    offsets.append(len(keys))
    return pa.MapArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(keys, pa.string()), pa.array(items, pa.string())
    )


def _without_nulls(value: Any) -> dict[str, Any]:
    return {key: text for key, text in value.items() if text is not None}


def _values(column: pa.Array) -> list[Any]:
    """The Python values of a column, maps as dicts. pyarrow's own conversion takes several times as long."""
    if column.null_count == len(column):
        return [None] * len(column)
    if pa.types.is_map(column.type):
        return _dicts(column)
    if pa.types.is_dictionary(column.type):
        words = column.dictionary.to_pylist()
        return [None if index is None else words[index] for index in column.indices.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def _dicts(column: pa.MapArray) -> list[dict[str, Any] | None]:
    ends = column.offsets.to_pylist()
    first, count = ends[0], ends[-1] - ends[0]
    keys, items = (child.slice(first, count).to_pylist() for child in (column.keys, column.items))
    spans = zip(column.is_valid().to_pylist(), ends, ends[1:], strict=False)
    return [
        dict(zip(keys[start - first : end - first], items[start - first : end - first], strict=True)) if there else None
        for there, start, end in spans
    ]
