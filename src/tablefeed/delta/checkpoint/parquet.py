"""One Parquet file of a checkpoint, or a sidecar (PROTOCOL.md, "Checkpoint Schema"): actions and file columns.

A row is one action. There is a column for each kind of action, and only the column of the row's own kind is not null.
Writers differ in which columns and members they write, in their order and in their physical types. So everything is
found by name, and what is absent is null. reading.py decides which actions the file may hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tablefeed.delta import fields, names
from tablefeed.delta.columns import DELETION_VECTOR, FILE_COLUMNS, STRING_MAP, file_keys
from tablefeed.delta.stats.stats_columns import texts_of
from tablefeed.model.action_fields import BadActionError
from tablefeed.parquet_footer import check_columns, check_counts, null_count, open_parquet


class CheckpointParquet:
    """The actions in an open, seekable file. Each method reads only the columns that it needs.

    Raises BadActionError for what the protocol does not allow. For broken Parquet, pyarrow's errors pass through.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._file = open_parquet(source)
        self._schema: pa.Schema = self._file.schema_arrow  # pyarrow makes it anew whenever it is asked for
        metadata = self._file.metadata
        self._is_small = _is_small(metadata)
        # Checking every column takes as long as opening a small checkpoint, of which no chunk is asked for.
        (check_counts if self._is_small else check_columns)(metadata)
        if any(metadata.row_group(n).total_byte_size > _WHOLE_CHUNK_BYTES for n in range(metadata.num_row_groups)):
            self._file = open_parquet(source, metadata=metadata, pre_buffer=False, buffer_size=_PIECE_BYTES)

    def actions(self, kinds: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The actions of `kinds`, each with its kind, as if parsed from JSON; null is absent.

        Actions of one kind come in the file's order. The file is read once for all kinds.
        """
        present = [kind for kind in kinds if self._members(kind)]
        if not present:
            return
        for batch in self._batches(present, where=present):
            for kind in present:
                column = batch.column(kind)
                for row in pc.indices_nonzero(column.is_valid()).to_pylist():
                    action = _plain(column[row].as_py(), column.type)
                    # Some writers have no null structs: in rows of other kinds they write an empty struct.
                    if action:
                        yield kind, action

    def has_files(self) -> bool:
        """Whether there is an add."""
        if _PATH not in self._members(names.ADD):
            return False
        batches = self._batches([f"{names.ADD}.{_PATH}"], where=[names.ADD])
        return any(pc.struct_field(batch.column(names.ADD), _PATH).is_valid().true_count for batch in batches)

    def files(self, *, with_stats: bool) -> Iterator[pa.RecordBatch]:
        """The adds as batches of `columns.FILE_COLUMNS`, in the file's order, a bounded number of rows at a time."""
        members = self._members(names.ADD)
        wanted = [wire for name, wire in _WIRE.items() if wire in members and (with_stats or wire != _STATS)]
        if with_stats and _STATS_STRUCT in members and not self._has_every_text(members):
            wanted.append(_STATS_STRUCT)
        if not members:
            return
        if _PATH not in members:
            raise BadActionError("is missing", names.ADD, _PATH)
        parsed = self._stats_struct() if _STATS_STRUCT in wanted else None
        for batch in self._batches([f"{names.ADD}.{wire}" for wire in wanted], where=[names.ADD]):
            files = _to_files(batch.column(names.ADD), frozenset(wanted), parsed)
            if files.num_rows > 0:
                yield files

    def removed(self) -> Iterator[pa.RecordBatch]:
        """The removes as batches of `columns.FILE_COLUMNS`, as `files` gives the adds."""
        members = self._members(names.REMOVE)
        wanted = [wire for wire in _REMOVE_WIRE.values() if wire in members]
        if not members:
            return
        if _PATH not in members:
            raise BadActionError("is missing", names.REMOVE, _PATH)
        for batch in self._batches([f"{names.REMOVE}.{wire}" for wire in wanted], where=[names.REMOVE]):
            columns = _columns(batch.column(names.REMOVE), names.REMOVE, _REMOVE_WIRE, frozenset(wanted))
            files = _batch(columns, is_add=False)
            if files.num_rows > 0:
                yield files

    def all_columns(self) -> Iterator[pa.RecordBatch]:
        """All rows with every column of the file, also those that this reader does not use."""
        return self._batches(None)

    def _batches(self, columns: list[str] | None, *, where: Iterable[str] = ()) -> Iterator[pa.RecordBatch]:
        """The rows of all row groups that may have an action of the kinds `where`; none named: all rows.

        Arrow ends early, without an error, where pages are damaged: so the rows are counted here.
        """
        metadata = self._file.metadata
        groups = self._groups_with(where)
        found = sum(
            metadata.row_group(group).num_rows for group in {*range(metadata.num_row_groups)}.difference(groups)
        )
        # Each thread of Arrow keeps memory for itself, so they are used only where they save more than a few ms.
        use_threads = metadata.num_rows > _BATCH_ROWS
        rows = self._rows_that_fit(groups, columns)
        batches = self._file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=use_threads)
        for batch in batches if groups else ():
            yield batch
            found += batch.num_rows
        if found != metadata.num_rows:
            raise ValueError(f"it has {found} rows, but its footer says {metadata.num_rows}")

    def _rows_that_fit(self, groups: Sequence[int], columns: Sequence[str] | None) -> int:
        """How many rows take about `_BATCH_BYTES`, by the mean of all `groups` and by that of each large one.

        Statistics of many columns take kilobytes for each file: in memory also where nulls and equal numbers take next
        to nothing in the checkpoint. A text in a dictionary counts once. There is a least number, because a damaged
        footer may say any size.
        """
        metadata = self._file.metadata
        size = sum(metadata.row_group(group).total_byte_size for group in groups)
        if size <= _BATCH_BYTES and metadata.num_columns <= _FEW_COLUMNS:
            return _BATCH_ROWS  # asking every column takes a tenth of the time of a small checkpoint
        schema = self._leaves()
        paths = [f"{schema.column(i).path}." for i in range(len(schema))]
        wanted = [
            i for i, path in enumerate(paths) if columns is None or path.startswith(tuple(f"{c}." for c in columns))
        ]
        chunks = [[(group.column(i), schema.column(i)) for i in wanted] for group in map(metadata.row_group, groups)]
        sizes: list[int] = [sum(chunk.total_uncompressed_size for chunk, _ in of_group) for of_group in chunks]
        most = max(_FEWEST_ROWS, min(_BATCH_ROWS, _BATCH_BYTES // (_WIDTH * max(1, len(wanted)))))
        if sum(sizes) <= _BATCH_BYTES:
            return most
        actions = [max(starmap(_values_in, of_group)) for of_group in chunks]  # rows of other actions take no bytes
        large = [pair for pair in zip(actions, sizes, strict=True) if pair[1] > _BATCH_BYTES]
        fitting = (_BATCH_BYTES * count // size for count, size in [(sum(actions), sum(sizes)), *large])
        return max(_FEWEST_ROWS, min(most, *fitting))

    def _groups_with(self, kinds: Iterable[str]) -> list[int]:
        """The row groups of which the footer does not show that each member of `kinds` is null in all rows.

        So a reader of files does not read past tombstones, of which a busy table has far more.
        """
        if self._is_small:
            return [*range(self._file.num_row_groups)]
        metadata, schema = self._file.metadata, self._leaves()
        columns = ((i, schema.column(i)) for i in range(len(schema)))
        flat = [(i, column) for i, column in columns if column.max_repetition_level == 0]
        shown = [(i, column) for i, column in flat if column.path.partition(".")[0] in kinds]
        groups = [(n, metadata.row_group(n)) for n in range(metadata.num_row_groups)]
        return [n for n, of in groups if not shown or any(_values_in(of.column(i), column) > 0 for i, column in shown)]

    def _leaves(self) -> pq.ParquetSchema:
        """The leaves of the schema. In `ParquetFile.schema` it and the footer keep each other from being freed."""
        return pq.ParquetSchema(self._file.metadata)

    def _members(self, column: str) -> frozenset[str]:
        """The members of a column of actions; none where there is no such column."""
        count = self._schema.names.count(column)
        if not count:
            return frozenset()
        if count > 1:
            raise BadActionError("is there twice", column)
        kind = self._schema.field(column).type
        if not pa.types.is_struct(kind):
            raise BadActionError(f"is {kind}, not a struct", column)
        members = Counter(member.name for member in kind)
        if members.total() > len(members):
            raise BadActionError("is there twice", column, members.most_common(1)[0][0])
        return frozenset(members)

    def _stats_struct(self) -> pa.DataType:
        """The type of `stats_parsed`, with INT96 as timestamps in UTC: Arrow reads them as timestamps without zone."""
        columns = self._leaves()
        physical = (columns.column(i).physical_type for i in range(len(columns)))
        typed = {field.name: _with_instants(field, physical).type for field in self._schema}
        return typed[names.ADD].field(_STATS_STRUCT).type

    def _has_every_text(self, members: frozenset[str]) -> bool:
        """Whether the footer shows that each add has its statistics as text, so that the struct need not be read."""
        if _STATS not in members or self._is_small:
            return False
        nulls = {f"{names.ADD}.{_PATH}": 0, f"{names.ADD}.{_STATS}": 0}
        metadata, schema = self._file.metadata, self._leaves()
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for index, column in ((i, schema.column(i)) for i in range(len(schema))):
                if column.path in nulls:
                    known = null_count(group.column(index), column)
                    if known is None:
                        return False
                    nulls[column.path] += known
        return len(set(nulls.values())) == 1


def _is_small(metadata: pq.FileMetaData) -> bool:
    """Whether reading too many columns takes less time than asking the footer which ones are needed."""
    if metadata.num_row_groups > 1 or metadata.num_columns > _FEW_COLUMNS:
        return False
    return all(metadata.row_group(n).total_byte_size <= _SMALL_BYTES for n in range(metadata.num_row_groups))


def _values_in(chunk: pq.ColumnChunkMetaData, column: pq.ColumnSchema) -> int:
    """The number of values in a chunk of `column` that are not null, as far as its footer says."""
    values: int = chunk.num_values
    return values - (null_count(chunk, column) or 0)


_WIRE: Mapping[str, str] = {name: fields.FILE_FIELDS[name] for name in FILE_COLUMNS.names if name in fields.FILE_FIELDS}
_PATH, _STATS, _STATS_STRUCT = _WIRE["log_path"], _WIRE["stats"], "stats_parsed"
_REQUIRED = ("partition_values", "size_bytes", "modified_ms", "data_change")
_REQUIRED_OF_REMOVES = ("data_change",)
_REMOVE_WIRE: Mapping[str, str] = {
    name: fields.REMOVE_FIELDS[name] for name in FILE_COLUMNS.names if name in fields.REMOVE_FIELDS and name != "stats"
}
_VECTOR_WIRE = fields.DELETION_VECTOR_FIELDS
_FEWEST_ROWS, _BATCH_ROWS, _BATCH_BYTES = 1 << 10, 64 << 10, 16 << 20  # larger batches are not faster
_SMALL_BYTES = 64 << 10
_WIDTH, _FEW_COLUMNS = 8, 64
"""The bytes of most values in memory, and the number of leaves with which a batch of any rows is small."""
_WHOLE_CHUNK_BYTES, _PIECE_BYTES = 64 << 20, 8 << 20
"""Row groups up to this size are read by one request for each column. The columns of larger ones are read in pieces:
some writers put all files of a table into one row group."""


def _plain(value: Any, kind: pa.DataType) -> Any:  # Any: what JSON can hold
    if value is None:
        return None
    if pa.types.is_map(kind):
        return dict(value)
    if pa.types.is_struct(kind):
        members = {member.name: _plain(value[member.name], member.type) for member in kind}
        return {name: member for name, member in members.items() if member is not None}
    return value


def _with_instants(field: pa.Field, physical: Iterator[str]) -> pa.Field:
    """`field` with each INT96 as a timestamp in UTC; `physical` gives the Parquet types of its leaves, in order."""
    kind = field.type
    if not pa.types.is_nested(kind):
        return field.with_type(pa.timestamp("us", "UTC")) if next(physical) == "INT96" else field
    inner = [_with_instants(kind.field(i), physical) for i in range(kind.num_fields)]
    return field.with_type(pa.struct(inner)) if pa.types.is_struct(kind) else field


def _to_files(adds: pa.StructArray, wanted: frozenset[str], parsed: pa.DataType | None) -> pa.RecordBatch:
    """The adds as `columns.FILE_COLUMNS`; `parsed` is the type of `stats_parsed`, None where it was not read."""
    columns = _columns(adds, names.ADD, _WIRE, wanted)
    if parsed is not None and columns["stats"].null_count > 0:
        structs = pc.struct_field(adds, _STATS_STRUCT)
        columns["stats"] = pc.coalesce(columns["stats"], texts_of(_retyped(structs, parsed)))
    return _batch(columns, is_add=True)


def _columns(
    actions: pa.StructArray, kind: str, wires: Mapping[str, str], wanted: frozenset[str]
) -> dict[str, pa.Array]:
    """The members of `actions`, which are of `kind`, as columns; null where they are not `wanted`."""
    columns: dict[str, pa.Array] = {}
    for name in FILE_COLUMNS.names[2:]:
        arrow, wire = FILE_COLUMNS.field(name).type, wires.get(name, "")
        found = pc.struct_field(actions, wire) if wire in wanted else pa.nulls(len(actions), arrow)
        try:
            columns[name] = _retyped(found, arrow)
        except BadActionError as bad:
            raise BadActionError(bad.reason, kind, wire, *bad.path) from None
        except (pa.ArrowException, ValueError) as error:
            raise BadActionError(f"cannot be {arrow}: {error}", kind, wire) from error
    return columns


def _batch(columns: dict[str, pa.Array], *, is_add: bool) -> pa.RecordBatch:
    if columns["log_path"].null_count > 0:  # rows of other actions
        rows = columns["log_path"].is_valid()
        columns = {name: column.filter(rows) for name, column in columns.items()}
    for name in _REQUIRED if is_add else _REQUIRED_OF_REMOVES:
        if columns[name].null_count > 0:
            raise BadActionError("is missing", names.ADD if is_add else names.REMOVE, _WIRE[name])
    columns["is_add"] = pa.repeat(pa.scalar(is_add), len(columns["log_path"]))
    columns["key"] = file_keys(columns["log_path"], columns["deletion_vector"])
    files = pa.RecordBatch.from_arrays([columns[name] for name in FILE_COLUMNS.names], schema=FILE_COLUMNS)
    files.validate(full=True)  # Arrow checks that text is UTF-8 only when asked
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
    # A writer without null structs writes an empty struct for "no vector".
    none = pc.and_(kinds.is_null(), places.is_null())
    if not pc.all(pc.or_(none, pc.is_in(kinds, value_set=pa.array(fields.STORAGE_TYPES)))).as_py():
        raise BadActionError("is of a kind that is not known", _VECTOR_WIRE["storage_type"])
    for (name, wire), member in zip(_VECTOR_WIRE.items(), members, strict=True):
        if name != "offset" and pc.any(pc.and_not(member.is_null(), none)).as_py():
            raise BadActionError("is missing", wire)
    return pa.StructArray.from_arrays(members, fields=list(DELETION_VECTOR), mask=none)


def _is_list_of_pairs(kind: pa.DataType) -> bool:
    """Whether this is a map that its writer did not mark as one (Parquet, "Backward-compatibility rules" of MAP)."""
    return bool(pa.types.is_list(kind) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2)
