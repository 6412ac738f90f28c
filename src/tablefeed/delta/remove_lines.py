"""The lines of a commit that remove or add files, made from columns: the same text as `codec.encode_commit` writes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta import fields, names
from tablefeed.delta.json_texts import number_texts, object_texts, string_texts, texts_of_map


def remove_lines(files: pa.RecordBatch, deletion_timestamp_ms: int) -> pa.Buffer:
    """Gives the lines that remove the live `files` (`columns.FILE_COLUMNS`), one for each, in their order."""
    vectors = files["deletion_vector"]
    wire = fields.REMOVE_FIELDS
    # The fields of `fields.write_action`, in its order; as there, null fields are left out.
    removes = object_texts(
        {
            wire["log_path"]: string_texts(files["log_path"]),
            wire["deletion_timestamp_ms"]: str(deletion_timestamp_ms),
            wire["data_change"]: "true",
            wire["extended_file_metadata"]: "true",
            wire["partition_values"]: texts_of_map(files["partition_values"]),
            wire["size_bytes"]: number_texts(files["size_bytes"]),
            wire["tags"]: texts_of_map(files["tags"], null_values=False),
            wire["deletion_vector"]: _vector_texts(vectors) if vectors.null_count < len(vectors) else None,
            wire["base_row_id"]: number_texts(files["base_row_id"]),
            wire["default_row_commit_version"]: number_texts(files["default_row_commit_version"]),
        },
        files.num_rows,
    )
    return _lines(names.REMOVE, removes)


def add_lines(files: pa.RecordBatch) -> pa.Buffer:
    """Gives the lines that add `files` (`columns.FILE_COLUMNS`) with a change of data, in their order.

    Deletion vectors, row ids, statistics and tags stay as they are.
    """
    vectors = files["deletion_vector"]
    wire = fields.FILE_FIELDS
    adds = object_texts(
        {
            wire["log_path"]: string_texts(files["log_path"]),
            wire["partition_values"]: texts_of_map(files["partition_values"]),
            wire["size_bytes"]: number_texts(files["size_bytes"]),
            wire["modified_ms"]: number_texts(files["modified_ms"]),
            wire["data_change"]: "true",
            wire["stats"]: string_texts(files["stats"]),
            wire["tags"]: texts_of_map(files["tags"], null_values=False),
            wire["deletion_vector"]: _vector_texts(vectors) if vectors.null_count < len(vectors) else None,
            wire["base_row_id"]: number_texts(files["base_row_id"]),
            wire["default_row_commit_version"]: number_texts(files["default_row_commit_version"]),
            wire["clustering_provider"]: string_texts(files["clustering_provider"]),
        },
        files.num_rows,
    )
    return _lines(names.ADD, adds)


def _lines(action: str, objects: pa.StringArray) -> pa.Buffer:
    lines = pc.binary_join_element_wise(f'{{"{action}":', objects, "}\n", "")
    _, offsets, text = lines.buffers()
    ends = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, offsets], offset=lines.offset)
    return text.slice(ends[0].as_py(), ends[-1].as_py() - ends[0].as_py())


def _vector_texts(vectors: pa.StructArray) -> pa.StringArray:
    wire = fields.DELETION_VECTOR_FIELDS

    def member(name: str) -> pa.Array:
        return pc.struct_field(vectors, name)

    texts = object_texts(
        {
            wire["storage_type"]: string_texts(member("storage_type")),
            wire["path_or_inline"]: string_texts(member("path_or_inline")),
            wire["offset"]: number_texts(member("offset")),
            wire["size_bytes"]: number_texts(member("size_bytes")),
            wire["cardinality"]: number_texts(member("cardinality")),
        },
        len(vectors),
    )
    return pc.if_else(vectors.is_valid(), texts, pa.scalar(None, pa.string()))
