"""The Arrow schema of a table's files: physical names, and field ids where needed (PROTOCOL.md, "Column Mapping")."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.delta.schema.column_mapping import MappingMode, check_ids, check_names, field_ids, physical_schema
from tablefeed.model.schema import Path, Struct

FIELD_ID = b"PARQUET:field_id"
"""The key of an Arrow field's metadata under which pyarrow keeps Parquet's field id."""


def stored_schema(schema: Struct, mode: MappingMode) -> pa.Schema | None:
    """Returns the Arrow schema by which `schema` is read from files, in the same shape; None where nothing is mapped.

    Names are physical at every depth; in mode `id` every field also has its id under `FIELD_ID`. Raises LogError
    where a field has no id in that mode, a physical name is not a string, or two columns share a name or an id.
    """
    if mode is MappingMode.NONE:
        return None
    check_names(schema)
    if mode is MappingMode.ID:
        check_ids(schema)
    stored = to_arrow(physical_schema(schema))
    if mode is MappingMode.NAME:
        return stored
    ids = dict(field_ids(physical_schema(schema)))
    return pa.schema([_with_ids(field, (), ids) for field in stored])


def files_schema(schema: Struct, mode: MappingMode) -> pa.Schema | None:
    """Returns the Arrow schema with which files of a mapped table are written; None where columns are not mapped.

    Names are physical, and every field has its id, in both modes ("Writer Requirements for Column Mapping"). Raises
    LogError as `stored_schema` does.
    """
    return None if mode is MappingMode.NONE else stored_schema(schema, MappingMode.ID)


def _with_ids(field: pa.Field, above: Path, ids: Mapping[Path, object]) -> pa.Field:
    path, kind = (*above, field.name), field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_with_ids(member, path, ids) for member in kind])
    elif pa.types.is_list(kind):
        kind = pa.list_(_with_ids(kind.value_field, path, ids))
    elif pa.types.is_map(kind):
        kind = pa.map_(_with_ids(kind.key_field, path, ids), _with_ids(kind.item_field, path, ids))
    typed = field.with_type(kind)
    return typed.with_metadata({FIELD_ID: str(ids[path]).encode()}) if path in ids else typed
