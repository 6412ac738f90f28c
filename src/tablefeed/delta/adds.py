"""Reads many add lines at once into columns, so that a commit of 100,000 files is read fast.

Arrow's JSON reader is as strict as fields.py and far faster than parsing line by line. But it reads only the fields of
a given schema, reports no line number, and has no maps. So it is used where the lines look alike. Lines that it does
not accept, or may have read wrongly, are left to the caller, who reads them one by one.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson
import pyarrow as pa
import pyarrow.json

from tablefeed.delta import fields, names
from tablefeed.delta.codec import ADD_BEGIN

_MOST_LINES, _MOST_BYTES = 4096, 8 << 20  # bound the memory; larger runs are not faster
_FEWEST_LINES = 64  # fewer lines are read faster one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Consecutive whole lines of a JSON log file. The first is line `first_line` (1-based), at byte `begin`.

    `only_adds` is a guess from how each line begins.
    """

    first_line: int
    begin: int
    lines: Sequence[bytes]
    only_adds: bool


def runs(data: bytes) -> Iterator[Run]:
    """Splits a JSON log file into runs of add lines and runs of other lines, in order; at least one run.

    A run of blank lines only is left out: a file may end with a blank line.
    """
    found = False
    for run in _alike(data):
        if any(line.strip() for line in run.lines):
            found = True
            yield run
    if not found:
        yield Run(first_line=1, begin=0, lines=(), only_adds=False)


def _alike(data: bytes) -> Iterator[Run]:
    lines: list[bytes] = []
    begin, size_bytes, first, only_adds = 0, 0, 1, False

    def run() -> Run:
        return Run(first_line=first, begin=begin, lines=lines, only_adds=only_adds and len(lines) >= _FEWEST_LINES)

    for number, line in enumerate(io.BytesIO(data), 1):
        is_add = line.startswith(ADD_BEGIN)
        if lines and (len(lines) >= _MOST_LINES or size_bytes >= _MOST_BYTES or is_add != only_adds):
            yield run()
            begin, size_bytes, lines, first = begin + size_bytes, 0, [], number
        only_adds = is_add
        size_bytes += len(line)
        lines.append(line)
    if lines:
        yield run()


def read_adds(lines: Sequence[bytes]) -> pa.StructArray | None:
    """The adds of `lines` under their wire names, or None where the lines must be read one by one.

    In the result `partitionValues` is a struct of texts that are not null. Only optional fields can be null; `tags`
    and `deletionVector` always are.
    """
    schema = _schema_like(lines[0])
    if schema is None:
        return None
    data = b"".join(lines)
    try:
        table = pyarrow.json.read_json(
            pa.BufferReader(data),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
        )
        table.validate(full=True)  # that text is UTF-8
    except (pa.ArrowException, ValueError):
        return None
    if table.num_rows != len(lines) or table.num_columns != 1 or table[0].num_chunks != 1:
        return None
    adds = table[0].chunk(0)
    required = [adds, *(adds.field(name) for name in _REQUIRED), *adds.field(_PARTITION_VALUES).flatten()]
    return None if any(each.null_count for each in required) else adds


def map_of(members: pa.StructArray) -> pa.MapArray:
    """Maps from member name to text, one for each row of `members`, with keys in the order of members; none is null."""
    rows, width = len(members), members.type.num_fields
    keys = pa.array([field.name for field in members.type] * rows, pa.string())
    by_member = pa.concat_arrays(members.flatten()) if width else pa.array([], pa.string())
    values = by_member.take(pa.array([m * rows + row for row in range(rows) for m in range(width)], pa.int32()))
    offsets = pa.array(range(0, rows * width + 1, width) if width else [0] * (rows + 1), pa.int32())
    return pa.MapArray.from_arrays(offsets, keys, values)


_PARTITION_VALUES = fields.FILE_FIELDS["partition_values"]
_REQUIRED = [fields.FILE_FIELDS[name] for name in ("log_path", "size_bytes", "modified_ms", "data_change")] + [
    _PARTITION_VALUES
]
_TYPES = {
    "log_path": pa.string(),
    "size_bytes": pa.int64(),
    "modified_ms": pa.int64(),
    "data_change": pa.bool_(),
    "stats": pa.string(),
    "tags": pa.null(),
    "deletion_vector": pa.null(),
    "base_row_id": pa.int64(),
    "default_row_commit_version": pa.int64(),
    "clustering_provider": pa.string(),
}


def _schema_like(line: bytes) -> pa.Schema | None:
    """The Arrow schema that all adds must have, from the partition columns of the first; None where it is no add."""
    try:
        partition_values = orjson.loads(line)[names.ADD][_PARTITION_VALUES]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(partition_values, dict):
        return None
    members = [(fields.FILE_FIELDS[name], kind) for name, kind in _TYPES.items()]
    members.append((_PARTITION_VALUES, pa.struct([(name, pa.string()) for name in partition_values])))
    return pa.schema([(names.ADD, pa.struct(members))])
