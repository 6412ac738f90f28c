"""Which required column or member holds a null, if any (NOT NULL is the schema's `nullable=False`)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def null_in_required(rows: pa.Table) -> str | None:
    """As `RequiredColumns.first_null`, of all rows of a table."""
    required = RequiredColumns(rows.schema)
    return next(filter(None, map(required.first_null, rows.to_batches())), None)


def null_above_required(rows: pa.Table) -> str | None:
    """The dotted path of a required member of a struct that is null itself, or None. Delta-Spark writes no such row."""
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if pa.types.is_struct(field.type) and column.null_count:
            member = _required_member(field.type)
            if member is not None:
                return f"{field.name}.{member}"
    return None


def _required_member(kind: pa.DataType) -> str | None:
    for field in kind:
        if not field.nullable:
            return str(field.name)
        inner = _required_member(field.type) if pa.types.is_struct(field.type) else None
        if inner is not None:
            return f"{field.name}.{inner}"
    return None


class RequiredColumns:
    """What must not be null in batches of `schema`: looked up once, so that a batch costs what these columns cost."""

    def __init__(self, schema: pa.Schema) -> None:
        self._columns = [(index, field) for index, field in enumerate(schema) if _may_break(field)]

    def first_null(self, batch: pa.RecordBatch) -> str | None:
        """The dotted path of a required column, member or element that is null where its parent is not, or None.

        Elements, keys and values of lists and maps are called `element`, `key` and `value`, as Spark calls them.
        """
        for index, field in self._columns:
            path = _null_at(field.name, batch.column(index), nullable=field.nullable)
            if path is not None:
                return path
        return None


def _may_break(field: pa.Field) -> bool:
    return not field.nullable or any(_may_break(member) for member in _members(field.type))


def _members(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.item_field]  # Arrow cannot build a map with a null key
    if pa.types.is_list(kind):
        return [kind.value_field]
    return []


def _null_at(path: str, array: pa.Array, *, nullable: bool) -> str | None:
    if array.null_count and not nullable:
        return path
    kind = array.type
    if not any(_may_break(member) for member in _members(kind)):
        return None
    present = array.drop_null() if array.null_count else array
    if pa.types.is_struct(kind):
        parts = [(f"{path}.{f.name}", pc.struct_field(present, [i]), f) for i, f in enumerate(kind)]
    elif pa.types.is_map(kind):
        values = pc.struct_field(pc.list_flatten(present.cast(_entries(kind))), [1])
        parts = [(f"{path}.value", values, kind.item_field)]
    else:
        parts = [(f"{path}.element", pc.list_flatten(present), kind.value_field)]
    for inner, values, field in parts:
        broken = _null_at(inner, values, nullable=field.nullable)
        if broken is not None:
            return broken
    return None


def _entries(kind: pa.MapType) -> pa.DataType:
    return pa.list_(pa.struct([kind.key_field, kind.item_field]))
