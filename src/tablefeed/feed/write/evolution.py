"""Decides a table's schema after rows of another schema are written to it, or why they do not fit.

The rules are Delta-Spark's (`SchemaMergingUtils.mergeSchemas`): names are matched case-insensitively at every depth;
the table's spelling, nullability and column metadata stay; new columns and struct members come last and are nullable.
Where columns are added, a void column gets the type of the rows.
Only types are decided here: `tablefeed.data.storing` converts the values. Pure: no log is read or written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tablefeed.data.assignment import Policy, is_assignable
from tablefeed.delta import names
from tablefeed.errors import TABLE, SchemaMismatchError
from tablefeed.model.schema import (
    Array,
    DataType,
    Field,
    Map,
    Part,
    Primitive,
    Struct,
    all_nullable,
    describe,
    fields_at,
    paired,
    rebuilt,
    walk,
    widens,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """How to merge a schema: whether it `adds` columns and `widens` types, and the policy for all other types.

    With `takes_void` rows of the type void are nulls of the table's type. `advice` is what a user can do about a column
    that is not added.
    """

    policy: Policy
    adds: bool = False
    widens: bool = False
    takes_void: bool = False
    advice: str = "Drop the column, or let the write add it: option mergeSchema=true, merge_schema=True in Python."


def merged(table: Struct, incoming: Struct, how: Merging) -> Struct:
    """Gives the schema of the table after the write, equal to `table` where nothing changes.

    Raises SchemaMismatchError, which names the column: an unknown one, or one whose type cannot be stored in the
    table's. No two names in `incoming` differ in case alone.
    """
    by_name = {field.name.lower(): field for field in incoming}
    kept = [
        field if (match := by_name.get(field.name.lower())) is None else _merged_field(field, match, how)
        for field in table
    ]
    known = {field.name.lower() for field in table}
    new = [field for field in incoming if field.name.lower() not in known]
    if new and not how.adds:
        raise SchemaMismatchError(
            f"The rows have a column {new[0].name!r} that {TABLE} does not have; it has {', '.join(table.names)}. "
            + how.advice,
            error_class="DELTA_METADATA_MISMATCH",
        )
    for field in new:
        refuse_void(field)
    return Struct((*kept, *as_new(Struct(tuple(new)))))


def as_new(columns: Struct) -> Struct:
    """Gives columns of incoming rows as a table's, nullable at every depth: no stream guarantees NOT NULL.

    Their metadata is kept at every depth, except the keys that belong to another table or to Spark.
    """
    return all_nullable(rebuilt(columns, lambda _, field: replace(field, metadata=_description(field))))


_OTHERS_OWN = ("delta.", "parquet.", "spark.", "__", names.CURRENT_DEFAULT, names.EXISTS_DEFAULT)
"""Prefixes of the keys of column metadata that are dropped: rules, mappings and marks of the table or query that the
rows come from. Delta-Spark drops column mapping and `EXISTS_DEFAULT` when it writes, most others when it reads."""


def _description(field: Field) -> Mapping[str, object]:
    kept = {key: value for key, value in field.metadata.items() if not key.startswith(_OTHERS_OWN)}
    declared = field.metadata.get(names.CHAR_VARCHAR_TYPE)
    # Spark keeps this key on a column that is derived from such a column, whatever its type.
    is_text = declared is not None and has(field.type, Primitive("string"))
    return {**kept, names.CHAR_VARCHAR_TYPE: declared} if is_text else kept


def with_type_changes(older: Struct, newer: Struct) -> Struct:
    """Gives `newer` with its type changes since `older` in the column metadata `delta.typeChanges` ("Type Widening").

    Columns are matched by exact name, at every depth; changes that were recorded before stay.
    """
    before = dict(fields_at(older))
    return rebuilt(newer, lambda path, field: _telling(before[path], field) if path in before else field)


def widened_columns(older: Struct, newer: Struct) -> list[str]:
    """Gives the dotted names of the columns, at every depth, that have a wider type in `newer`."""
    before = dict(fields_at(older))
    both = ((path, before[path], field) for path, field in fields_at(newer) if path in before)
    return [".".join(path) for path, was, now in both if _changes(was.type, now.type)]


def refuse_void(field: Field) -> None:
    """Raises SchemaMismatchError for a column of rows whose type is void or has one inside."""
    if has(field.type, Primitive("void")):
        raise SchemaMismatchError(
            f"Column {field.name!r} of the rows has the type void, which no column of {TABLE} can have. Cast it.",
            error_class="DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
        )


def has(kind: DataType, wanted: DataType) -> bool:
    """Says whether a type is `wanted` or has one inside."""
    return any(part.type == wanted for part in walk(kind))


def check_storable(schema: Struct) -> None:
    """Raises SchemaMismatchError for a struct without members, at any depth: Parquet cannot store it."""
    hollow = next((column for column in schema if has(column.type, Struct(()))), None)
    if hollow is not None:
        raise SchemaMismatchError(
            f"Column {hollow.name!r} of {TABLE} is or has a struct without members, which Parquet cannot store. "
            "Nothing was written. Drop it from the rows, or give it a member.",
        )


def check_voids(schema: Struct) -> None:
    """Raises SchemaMismatchError for a void that files cannot leave out ("Void Type").

    It is in a list or map, or its struct has only such members.
    """
    for column in schema:
        if any(_needs_void(part.type) for part in walk(column.type)):
            raise SchemaMismatchError(
                f"Column {column.name!r} of {TABLE} has the type void in a list or map, or a struct of only such "
                "members, which files cannot store. Nothing was written. Give it another type, or drop it.",
                error_class="DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
            )


def _needs_void(kind: DataType) -> bool:
    void = Primitive("void")
    if isinstance(kind, Struct):
        return all(member.type == void for member in kind)
    return isinstance(kind, Array | Map) and has(kind, void)


def check_has_columns(schema: Struct, partition_columns: Sequence[str]) -> None:
    """Raises SchemaMismatchError where a file has no column: all are partition columns or of type void."""
    if all(column.name in partition_columns or column.type == Primitive("void") for column in schema):
        raise SchemaMismatchError(
            f"{TABLE} has no column that files can store. Nothing was written. Write rows that have one, and set "
            "mergeSchema (merge_schema in Python).",
            error_class="DELTA_EMPTY_DATA",
        )


def _merged_field(field: Field, incoming: Field, how: Merging) -> Field:
    kind = _merged_type(field.type, incoming.type, how)
    if kind is None:
        refuse_void(incoming)
        what = f"Column {field.name!r} of {TABLE} is {describe(field.type)}, but the rows have "
        remedy = how.advice if field.type == Primitive("void") else "Cast it before writing."
        raise SchemaMismatchError(
            f"{what}{describe(incoming.type)}, which cannot be stored as that. {remedy}",
            error_class="CANNOT_UP_CAST_DATATYPE" if how.policy is Policy.STRICT else "DELTA_FAILED_TO_MERGE_FIELDS",
        )
    return field if kind == field.type else Field(field.name, kind, field.nullable, field.metadata)


def _merged_type(table: DataType, incoming: DataType, how: Merging) -> DataType | None:
    """The table's type after the write; None where `incoming` cannot be stored in it."""
    match table, incoming:
        case Struct(), Struct():
            return merged(table, incoming, how)
        case Array(one, contains_null), Array(other):
            element = _merged_type(one, other, how)
            return None if element is None else Array(element, contains_null)
        case Map(key, value, contains_null), Map(other_key, other_value):
            keys, values = _merged_type(key, other_key, how), _merged_type(value, other_value, how)
            return None if keys is None or values is None else Map(keys, values, contains_null)
        case Primitive("void"), _ if how.adds and not has(incoming, table):
            return as_new(Struct((Field("", incoming, nullable=True),))).fields[0].type
        case _, Primitive("void") if how.takes_void:
            return table
        case _ if how.widens and table != incoming and widens(table, incoming):
            return incoming
        case _:
            return table if is_assignable(incoming, table, how.policy) else None


def _telling(older: Field, newer: Field) -> Field:
    changes = [
        {
            "fromType": describe(was.type),
            "toType": describe(now.type),
            **({"fieldPath": ".".join(was.path)} if was.path else {}),
        }
        for was, now in _changes(older.type, newer.type)
    ]
    if not changes:
        return newer
    told = newer.metadata.get(names.TYPE_CHANGES)
    every = [*(told if isinstance(told, list) else []), *changes]
    return replace(newer, metadata={**newer.metadata, names.TYPE_CHANGES: every})


def _changes(older: DataType, newer: DataType) -> list[tuple[Part, Part]]:
    """Gives the type changes of a column, also inside arrays and maps; members of structs record their own changes.

    That a void column gets a type is none: no file has a value of it.
    """
    both = paired(older, newer, into=Array | Map)
    return [
        (was, now)
        for was, now in both
        if was.type not in (now.type, Primitive("void"))
        and not (isinstance(was.type, Struct) and isinstance(now.type, Struct))
    ]
