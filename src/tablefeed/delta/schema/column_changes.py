"""The columns of a table, added, dropped, renamed, widened and described anew: schema in, schema out.

The rules and error classes are those of Delta-Spark's ALTER TABLE (alterDeltaTableCommands.scala). Whether a rule of
the table needs a column is not known here (feed/write/alteration.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from tablefeed.delta import names
from tablefeed.delta.schema.schema_faults import dotted
from tablefeed.errors import TABLE, SchemaMismatchError
from tablefeed.model.schema import (
    KEY,
    Array,
    DataType,
    Field,
    Map,
    Part,
    Path,
    Struct,
    all_nullable,
    describe,
    fields_at,
    rebuilt,
    walk,
    widens,
)

_T = TypeVar("_T")


def without_columns(schema: Struct, paths: Iterable[Path]) -> Struct:
    """Gives `schema` without the columns at `paths`. Raises SchemaMismatchError, also where a struct would be empty."""
    for given in paths:
        path = column_at(schema, given)[0]
        left = [column for each, column in fields_at(schema) if each[:-1] == path[:-1] and each != path]
        if not left:
            reason = f"{path[-1]!r} is the only column or member there"
            raise _refused(reason, "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA")
        schema = _with_type(schema, path[:-1], Struct(tuple(left)))
    return schema


def with_columns(schema: Struct, added: Mapping[Path, Field]) -> Struct:
    """Gives `schema` with the new columns last, each in its struct, nullable at every depth.

    Raises SchemaMismatchError where there is no such struct, where a name is taken, and for a column that is NOT NULL.
    """
    for path, column in added.items():
        if Struct((column,)) != all_nullable(Struct((column,))):
            raise _refused(f"the new column {dotted(path)} is NOT NULL, but existing rows have no value there", None)
        parent = part_at(schema, path[:-1])
        if not isinstance(parent.type, Struct):
            reason = f"{dotted(parent.path)} is no struct, so it cannot get the member {path[-1]!r}"
            raise _refused(reason, "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT")
        schema = _with_type(schema, parent.path, Struct((*parent.type, column)))
    check_no_doubles(schema)
    return schema


def with_wider_types(schema: Struct, widened: Mapping[Path, DataType]) -> Struct:
    """Gives `schema` with the types at the paths, which may end in an element, key or value, as `widened` gives them.

    Raises SchemaMismatchError for a type that is not wider ("Type Widening").
    """
    for path, kind in widened.items():
        part = part_at(schema, path)
        if part.type != kind and not widens(part.type, kind):
            raise _refused(
                f"column {dotted(part.path)} is {describe(part.type)}, which cannot be widened to {describe(kind)}",
                "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
            )
        schema = _with_type(schema, part.path, kind)
    return schema


def described_anew(
    schema: Struct,
    *,
    nullable: Mapping[Path, bool],
    defaults: Mapping[Path, str | None],
    comments: Mapping[Path, str | None],
    renamed: Mapping[Path, str],
) -> Struct:
    """Gives `schema` with the nullability, defaults, comments and names that are given for its columns.

    Raises SchemaMismatchError for a column that is not there, or a name that would be there twice.
    """

    def exact(given: Mapping[Path, _T]) -> dict[Path, _T]:
        return {column_at(schema, path)[0]: value for path, value in given.items()}

    names_at, nullable_at = exact(renamed), exact(nullable)
    texts_at = {names.CURRENT_DEFAULT: exact(defaults), names.COMMENT: exact(comments)}

    def changed(path: Path, column: Field) -> Field:
        texts = {key: value for key, value in column.metadata.items() if path not in texts_at.get(key, {})}
        texts |= {key: given[path] for key, given in texts_at.items() if given.get(path) is not None}
        name, is_nullable = names_at.get(path, column.name), nullable_at.get(path, column.nullable)
        return Field(name, column.type, is_nullable, texts)

    after = rebuilt(schema, changed)
    check_no_doubles(after)
    return after


def folded(path: Iterable[str]) -> Path:
    """Gives `path` in lower case: columns are found in any case."""
    return tuple(name.lower() for name in path)


def part_at(schema: Struct, path: Path) -> Part:
    """Gives what is at `path`, in any case, with its exact path. Raises SchemaMismatchError where nothing is."""
    found = next((part for part in walk(schema) if folded(part.path) == folded(path)), None)
    if found is None:
        reason = f"there is no column {dotted(path)}; it has {', '.join(schema.names)}"
        raise _refused(reason, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA")
    return found


def column_at(schema: Struct, path: Path) -> tuple[Path, Field]:
    """Gives the column or struct member at `path`; raises as `part_at`, also for an element, key or value."""
    part = part_at(schema, path)
    if part.field is None:
        raise _refused(f"{dotted(path)} is an element, a key or a value, and no column", None)
    return part.path, part.field


def check_no_doubles(schema: Struct) -> None:
    """Raises SchemaMismatchError where two columns, or two members of one struct, have names that differ in case."""
    seen: set[Path] = set()
    for path, _ in fields_at(schema):
        if folded(path) in seen:
            raise _refused(f"it would have two columns {dotted(path)}", "DELTA_DUPLICATE_COLUMNS_FOUND")
        seen.add(folded(path))


def check_not_null_enforced(schema: Struct) -> None:
    """Raises SchemaMismatchError for NOT NULL inside a list or map, where Delta-Spark never checks it."""
    for part in walk(schema):
        inside = walk(part.type) if isinstance(part.type, Array | Map) else ()
        inner = Struct(tuple(Field("", each.type, nullable=True) for each in inside if len(each.path) == 1))
        if inner != all_nullable(inner):
            raise _refused(
                f"{dotted(part.path)} has a NOT NULL member inside a list or map, which other writers do not check",
                "DELTA_NESTED_NOT_NULL_CONSTRAINT",
            )


def with_own_names(schema: Struct) -> Struct:
    """Gives `schema` with each column's name as its physical name: its files have these names already.

    Raises SchemaMismatchError where columns have mapping metadata already, which would be another table's.
    """
    if any(key in column.metadata for _, column in fields_at(schema) for key in (names.COLUMN_ID, names.PHYSICAL_NAME)):
        raise _refused(
            "its columns have ids or physical names of an earlier column mapping, so it cannot be turned on again",
            "DELTA_ENABLING_COLUMN_MAPPING_DISALLOWED_WHEN_COLUMN_MAPPING_METADATA_ALREADY_EXISTS",
        )
    return rebuilt(
        schema, lambda _, column: replace(column, metadata={**column.metadata, names.PHYSICAL_NAME: column.name})
    )


def _with_type(schema: Struct, path: Path, kind: DataType) -> Struct:
    changed = _changed(schema, path, kind)
    if not isinstance(changed, Struct):
        raise TypeError(f"a schema became {changed!r:.60}")
    return changed


def _changed(kind: DataType, path: Path, new: DataType) -> DataType:
    match kind:
        case _ if not path:
            return new
        case Struct(fields):
            to, rest = path[0], path[1:]
            return Struct(tuple(replace(f, type=_changed(f.type, rest, new)) if f.name == to else f for f in fields))
        case Array(element):
            return replace(kind, element=_changed(element, path[1:], new))
        case Map(key) if path[0] == KEY:
            return replace(kind, key=_changed(key, path[1:], new))
        case Map(_, value):
            return replace(kind, value=_changed(value, path[1:], new))
        case _:
            return kind


def _refused(reason: str, error_class: str | None) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"Nothing was changed at {TABLE}: {reason}. Correct the call.",
        error_class=error_class,
    )
