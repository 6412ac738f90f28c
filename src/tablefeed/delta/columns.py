"""File actions as Arrow columns, so that a snapshot of a million files can be replayed.

One row is one add or remove of the log (PROTOCOL.md, "Add File and Remove File"). Only `to_add_files` builds a Python
object for each file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from types import NoneType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta import fields, names
from tablefeed.delta.adds import map_of, read_adds, runs
from tablefeed.delta.codec import FILE_ACTIONS, Gathered, read_lines
from tablefeed.delta.json_texts import text_of
from tablefeed.delta.paths import decode_path
from tablefeed.errors import CorruptLogError
from tablefeed.model.action_fields import BadActionError
from tablefeed.model.actions import AddFile, Commit, DeletionVector, Version

STRING_MAP: pa.DataType = pa.map_(pa.string(), pa.string())
"""`partitionValues` and `tags`."""

DELETION_VECTOR: pa.DataType = pa.struct(
    [
        ("storage_type", pa.string()),
        ("path_or_inline", pa.string()),
        ("offset", pa.int32()),
        ("size_bytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
"""The fields of `model.actions.DeletionVector` ("Deletion Vector Descriptor Schema")."""

FILE_COLUMNS: pa.Schema = pa.schema(
    [
        ("key", pa.string()),
        ("is_add", pa.bool_()),
        ("log_path", pa.string()),
        ("partition_values", STRING_MAP),
        ("size_bytes", pa.int64()),
        ("modified_ms", pa.int64()),
        ("stats", pa.string()),
        ("tags", STRING_MAP),
        ("deletion_vector", DELETION_VECTOR),
        ("base_row_id", pa.int64()),
        ("default_row_commit_version", pa.int64()),
        ("data_change", pa.bool_()),
        ("clustering_provider", pa.string()),
        ("deletion_timestamp_ms", pa.int64()),
        ("extended_file_metadata", pa.bool_()),
    ]
)
"""One row per add or remove. `key` is the file's identity (`file_keys`), `log_path` the text as logged, `stats` JSON.

For a remove, `modified_ms`, `stats` and `clustering_provider` are null, for an add the last two; and null is what its
log left out.
"""

OF_REMOVES = ("deletion_timestamp_ms", "extended_file_metadata")
"""The columns that only removes have."""


def decode_commit_into(
    rows: FileRows, data: bytes, *, version: Version, log_file: str, modified_ms: int | None
) -> Commit:
    """Adds the adds and removes of one commit file to `rows`; gives its other actions as a Commit.

    The Commit is that of `codec.decode_commit`, with empty `files`. cdc actions are ignored: no snapshot has them.
    Raises the same CorruptLogError. Small commits may share a batch of `rows`, so an error in a file action may
    be raised only later, when its batch is made.
    """
    gathered = Gathered()
    for run in runs(data):
        if run.only_adds and rows.take_adds(run.lines):
            continue
        stream = io.BytesIO(b"".join(run.lines))
        for line, action, values in read_lines(stream, log_file=log_file, first_line=run.first_line):
            if action not in FILE_ACTIONS:
                try:
                    gathered.take(action, values)
                except BadActionError as bad:
                    raise CorruptLogError(bad.of(action), log_file=log_file, line=line) from bad
            elif action != names.CDC:
                rows.take(action, values, log_file=log_file, line=line, end=run.begin + stream.tell())
    return gathered.commit((), version=version, modified_ms=modified_ms)


class FileRows:
    """Collects file actions of JSON log files, in log order, as batches of `FILE_COLUMNS`.

    `stats` is null without `with_stats`. Raises CorruptLogError, naming the file and line, for an action that the
    protocol does not allow.
    """

    def __init__(self, *, with_stats: bool = True) -> None:
        self._with_stats = with_stats
        self._rows: list[_Row] = []
        self._bytes = 0
        self._full: list[pa.RecordBatch] = []
        self._at = ("", 0)

    def take(self, action: str, values: dict[str, Any], *, log_file: str, line: int, end: int) -> None:
        """Adds the add or remove that ends at the byte `end` of its file."""
        last_file, last_end = self._at
        self._bytes += end - (last_end if last_file == log_file else 0)
        self._at = (log_file, end)
        if not self._with_stats:
            values.pop(_STATS, None)
        self._rows.append((log_file, line, action, values))
        if len(self._rows) >= _BATCH_ROWS or self._bytes >= _BATCH_BYTES:
            self._full.append(self._batch())

    def take_adds(self, lines: Sequence[bytes]) -> bool:
        """Adds `lines`, which are all adds. Returns False, and adds nothing, where they must be added one by one."""
        adds = read_adds(lines)
        if adds is None:
            return False
        self._full += [*self.rest(), _adds_batch(adds, with_stats=self._with_stats)]
        return True

    def full(self) -> list[pa.RecordBatch]:
        """The batches that are full; each is returned once."""
        full, self._full = self._full, []
        return full

    def rest(self) -> list[pa.RecordBatch]:
        """The rows that are in no full batch, as one batch; empty where there are none."""
        return [self._batch()] if self._rows else []

    def _batch(self) -> pa.RecordBatch:
        rows, self._rows, self._bytes = self._rows, [], 0
        try:
            return _to_batch(rows)
        except _BadRowsError as bad:
            log_file, line, reason = _first_fault(rows)
            raise CorruptLogError(reason, log_file=log_file, line=line) from bad


def decode_paths(log_paths: pa.Array) -> pa.Array:
    """The decoded paths of a string column (`paths.decode_path` for each); only paths that need it are decoded."""
    text = text_of(log_paths).to_pybytes()
    if b"%" not in text and b":" not in text:  # thirty times as fast as the pattern, and enough for most tables
        return log_paths
    coded = pc.match_substring_regex(log_paths, r"%|^[A-Za-z][A-Za-z0-9+.\-]*:")
    if not pc.any(coded).as_py():
        return log_paths
    decoded = pa.array([decode_path(p) for p in log_paths.filter(coded).to_pylist()], type=log_paths.type)
    return pc.replace_with_mask(log_paths, pc.fill_null(coded, fill_value=False), decoded)


def file_keys(log_paths: pa.Array, deletion_vectors: pa.Array) -> pa.Array:
    r"""The identity of each logical file: its decoded path; then "\x00" and its deletion vector's id, where it has one.

    "Action Reconciliation" and "Deletion Vectors", derived field `uniqueId`. `deletion_vectors` is of type
    `DELETION_VECTOR`, null where a file has none.
    """
    paths = decode_paths(log_paths)
    if deletion_vectors.null_count == len(deletion_vectors):
        return paths
    offset = pc.cast(pc.struct_field(deletion_vectors, "offset"), pa.string())
    at = pc.coalesce(pc.binary_join_element_wise(pa.scalar("@"), offset, ""), "")
    kind, where = (pc.struct_field(deletion_vectors, name) for name in ("storage_type", "path_or_inline"))
    return pc.coalesce(pc.binary_join_element_wise(paths, "\x00", kind, where, at, ""), paths)


def to_add_files(batch: pa.RecordBatch) -> Iterator[AddFile]:
    """A value for each add of `batch` (of `FILE_COLUMNS`), in its order; removes are passed over."""
    adds = batch.filter(batch["is_add"])
    columns = {name: adds[name].to_pylist() for name in _OF_ADDS}
    paths = decode_paths(adds["log_path"]).to_pylist()
    for row in range(adds.num_rows):
        vector, tags = columns["deletion_vector"][row], columns["tags"][row]
        yield AddFile(
            path=paths[row],
            log_path=columns["log_path"][row],
            partition_values=dict(columns["partition_values"][row]),
            size_bytes=columns["size_bytes"][row],
            modified_ms=columns["modified_ms"][row],
            data_change=columns["data_change"][row],
            stats=columns["stats"][row],
            tags=None if tags is None else {key: text for key, text in tags if text is not None},
            deletion_vector=None if vector is None else DeletionVector(**vector),
            base_row_id=columns["base_row_id"][row],
            default_row_commit_version=columns["default_row_commit_version"][row],
            clustering_provider=columns["clustering_provider"][row],
        )


_OF_ADDS = tuple(name for name in FILE_COLUMNS.names if name not in ("key", "is_add", *OF_REMOVES))
_Row = tuple[str, int, str, dict[str, Any]]  # log file, line, action, fields as parsed
_BATCH_ROWS = 4096  # few enough that parsed rows are still in the processor's cache when they become columns
_BATCH_BYTES = 16 << 20  # of JSON: the parsed form, held until the batch is made, is a few times larger


class _BadRowsError(ValueError):
    """Some row is not what the protocol says."""


def _adds_batch(adds: pa.StructArray, *, with_stats: bool) -> pa.RecordBatch:
    columns = {name: adds.field(wire) for name, wire in {**_WIRE, **_WIRE_OF_ADDS}.items()}
    columns["partition_values"] = map_of(columns["partition_values"])
    for name in ("tags", "deletion_vector", *OF_REMOVES, *(() if with_stats else ("stats",))):
        columns[name] = pa.nulls(len(adds), FILE_COLUMNS.field(name).type)
    columns["is_add"] = columns["log_path"].is_valid()
    columns["key"] = file_keys(columns["log_path"], columns["deletion_vector"])
    return pa.RecordBatch.from_arrays([columns[name] for name in FILE_COLUMNS.names], schema=FILE_COLUMNS)


def _first_fault(rows: list[_Row]) -> tuple[str, int, str]:
    """The file, the line and the fault, found by checking the rows one by one as `decode_commit` does."""
    for log_file, line, action, values in rows:
        try:
            fields.read_file(action, values)
        except BadActionError as bad:
            return log_file, line, bad.of(action)
    log_file, line, _, _ = rows[0]
    return log_file, line, "its file actions do not fit the columns of the protocol"


def _to_batch(rows: list[_Row]) -> pa.RecordBatch:
    is_add = pa.array([action == names.ADD for _, _, action, _ in rows])
    try:
        columns = {name: _column(name, [values.get(wire) for *_, values in rows]) for name, wire in _WIRE.items()}
        for kind, wires in ((names.ADD, _WIRE_OF_ADDS), (names.REMOVE, _WIRE_OF_REMOVES)):
            for name, wire in wires.items():
                columns[name] = _column(name, [values.get(wire) if is_a == kind else None for *_, is_a, values in rows])
        columns |= {"stats": pc.if_else(is_add, columns["stats"], None)}
        columns |= {"is_add": is_add, "key": file_keys(columns["log_path"], columns["deletion_vector"])}
    except (ValueError, TypeError, AttributeError, OverflowError, pa.ArrowException) as error:
        raise _BadRowsError from error
    # Of a remove, only the path and dataChange are required.
    always = any(columns[name].null_count for name in ("log_path", "data_change"))
    for_adds = (columns[name].is_null() for name in ("partition_values", "size_bytes", "modified_ms"))
    if always or any(pc.any(pc.and_(absent, is_add)).as_py() for absent in for_adds):
        raise _BadRowsError
    return pa.RecordBatch.from_arrays([columns[name] for name in FILE_COLUMNS.names], schema=FILE_COLUMNS)


_WIRE = {name: fields.FILE_FIELDS[name] for name in FILE_COLUMNS.names if name in fields.FILE_FIELDS}
_WIRE_OF_ADDS = {name: _WIRE.pop(name) for name in ("modified_ms", "clustering_provider")}
_WIRE_OF_REMOVES = {name: fields.REMOVE_FIELDS[name] for name in OF_REMOVES}
_STATS = _WIRE["stats"]
_KINDS = {field.name: field.type for field in FILE_COLUMNS}


def _column(name: str, values: list[Any]) -> pa.Array:
    """The values of one field, as strict as fields.py is. Raises what pyarrow raises, or BadActionError."""
    kind = _KINDS[name]
    if values.count(None) == len(values):
        return pa.nulls(len(values), kind)
    if kind == STRING_MAP:
        return pa.array([None if value is None else list(value.items()) for value in values], type=kind)
    if kind == DELETION_VECTOR:
        vectors = [None if value is None else asdict(fields.read_deletion_vector(value)) for value in values]
        return pa.array(vectors, type=kind)
    if kind != pa.int64():
        return pa.array(values, type=kind)
    # With a given type pyarrow would truncate floats. To infer one takes memory by the square of a value's depth.
    if not {*map(type, values)} <= {int, NoneType}:
        raise TypeError(f"{name} has values that are no integers")
    return pa.array(values, type=kind)
