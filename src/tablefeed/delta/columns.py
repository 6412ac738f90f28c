"""The Arrow columns in which file actions travel in bulk: what a snapshot of a million files is replayed from.

One row is one add or remove of the log (PROTOCOL.md, "Add File and Remove File"). No value per file is built here
until `to_add_files` is asked for one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta.paths import decode_path
from tablefeed.model.actions import AddFile, DeletionVector

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
    ]
)
"""One row per add or remove. `key` is the file's identity (`file_keys`), `log_path` the text as logged, `stats` JSON.

For a remove, `modified_ms` and `stats` are null, and null is what its log left out.
"""


def decode_paths(log_paths: pa.Array) -> pa.Array:
    """The decoded paths of a string column (`paths.decode_path` for each); only texts that need it are touched."""
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
    columns = {name: adds[name].to_pylist() for name in FILE_COLUMNS.names if name not in ("key", "is_add")}
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
            tags=None if tags is None else dict(tags),
            deletion_vector=None if vector is None else DeletionVector(**vector),
            base_row_id=columns["base_row_id"][row],
            default_row_commit_version=columns["default_row_commit_version"][row],
        )
