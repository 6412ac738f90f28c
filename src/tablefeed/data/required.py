"""Which required column or member holds a null, if any (NOT NULL is the schema's `nullable=False`)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.retype import inner_fields, is_variant
from tablefeed.errors import TABLE, BrokenRule, InvalidRowsError


def refuse_nulls(rows: pa.Table, *, error_class: str | None = None) -> None:
    """Raises InvalidRowsError for what `RequiredColumns` finds, and for a null struct with a required member.

    Delta-Spark refuses to write such a struct, at any depth, because it reads the member as null. Variants are exempt.
    """
    for field, column in zip(rows.schema, rows.columns, strict=True):
        for chunk in column.chunks if _may_break(field) else ():
            path = _null_at(field.name, chunk, nullable=field.nullable, in_null=True)
            if path is not None:
                raise InvalidRowsError(
                    f"NOT NULL constraint violated for column: {path}. {TABLE} takes no null there, and nothing of "
                    "this write was committed: filter these rows out, or fill the column.",
                    error_class=error_class,
                    broken=BrokenRule(
                        reason="NOT NULL constraint violated",
                        column=path,
                        rows=column.is_null().to_pylist() if path == field.name else None,
                    ),
                )


class RequiredColumns:
    """What must not be null in batches of `schema`. Found once, so that checking a batch reads only these columns."""

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
    return not field.nullable or any(_may_break(member) for member in inner_fields(field.type))


def _has_members(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and not is_variant(kind)


def _null_at(path: str, array: pa.Array, *, nullable: bool, in_null: bool = False) -> str | None:
    if array.null_count and not nullable:
        return path
    kind = array.type
    if in_null and array.null_count and _has_members(kind) and (member := _required_member(kind)):
        return f"{path}.{member}"
    if not any(_may_break(member) for member in inner_fields(kind)):
        return None
    present = array.drop_null() if array.null_count else array
    if pa.types.is_struct(kind):
        parts = [pc.struct_field(present, [i]) for i in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        parts = [_entries(present, present.keys), _entries(present, present.items)]
    else:
        parts = [pc.list_flatten(present)]
    for field, values in zip(inner_fields(kind), parts, strict=True):
        broken = _null_at(f"{path}.{field.name}", values, nullable=field.nullable, in_null=in_null)
        if broken is not None:
            return broken
    return None


def _entries(maps: pa.MapArray, side: pa.Array) -> pa.Array:
    """The keys or the values, `side`, of maps of which none is null."""
    first, last = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    return side.slice(first, last - first)


def _required_member(kind: pa.DataType) -> str | None:
    for field in kind:
        inner = _required_member(field.type) if _has_members(field.type) else None
        if not field.nullable or inner is not None:
            return str(field.name) if not field.nullable else f"{field.name}.{inner}"
    return None
