"""The lines of a commit that remove or add files, made from columns: the same text as `codec.encode_commit` writes."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta import fields, names
from tablefeed.delta.json_texts import object_texts, string_texts, text_of, texts_of_map


def remove_lines(files: pa.RecordBatch, deletion_timestamp_ms: int) -> pa.Buffer:
    """Gives the lines that remove the live `files` (`columns.FILE_COLUMNS`), one for each, in their order."""
    now = {"deletion_timestamp_ms": str(deletion_timestamp_ms), "extended_file_metadata": "true"}
    wire = {attribute: name for attribute, name in fields.REMOVE_FIELDS.items() if attribute != "stats"}
    return _lines(names.REMOVE, files, wire, now)


def add_lines(files: pa.RecordBatch) -> pa.Buffer:
    """Gives the lines that add `files` (`columns.FILE_COLUMNS`) with a change of data, in their order.

    Deletion vectors, row ids, statistics and tags stay as they are.
    """
    return _lines(names.ADD, files, fields.FILE_FIELDS, {})


def _lines(action: str, files: pa.RecordBatch, wire: Mapping[str, str], given: Mapping[str, str]) -> pa.Buffer:
    """The lines that `fields.write_action` writes for `files`, with the texts in `given` in place of their columns."""
    said = {"data_change": "true", **given}
    members = {name: said.get(column) or _texts(files, column) for column, name in wire.items()}
    objects = object_texts(members, files.num_rows)
    return text_of(pc.binary_join_element_wise(f'{{"{action}":', objects, "}\n", ""))


def _texts(files: pa.RecordBatch, column: str) -> pa.StringArray | None:
    values = files[column]
    if pa.types.is_struct(values.type):
        return _vector_texts(values) if values.null_count < len(values) else None
    if pa.types.is_map(values.type):
        return texts_of_map(values, null_values=column == "partition_values")
    return _plain(values)


def _plain(values: pa.Array) -> pa.StringArray:
    return string_texts(values) if pa.types.is_string(values.type) else values.cast(pa.string())


def _vector_texts(vectors: pa.StructArray) -> pa.StringArray:
    wire = fields.DELETION_VECTOR_FIELDS.items()
    members = {name: _plain(pc.struct_field(vectors, attribute)) for attribute, name in wire}
    return pc.if_else(vectors.is_valid(), object_texts(members, len(vectors)), pa.scalar(None, pa.string()))
