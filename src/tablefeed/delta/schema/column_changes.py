"""The columns of a table, added, dropped, renamed, widened and described anew: schema in, schema out.

The rules and error classes are those of Delta-Spark's ALTER TABLE (alterDeltaTableCommands.scala). Whether a rule of
the table needs a column is not known here (feed/write/alteration.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from tablefeed.delta import names
from tablefeed.delta.schema.schema_faults import dotted
from tablefeed.errors import TABLE, SchemaMismatchError
from tablefeed.model.schema import (
    ELEMENT,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChanges:
    """What is to become of the columns of a table. Paths have the names before the change, in any case.

    `added` has a new column for each path; the last name is its own. A default or comment of None is taken away.
    """

    dropped: tuple[Path, ...] = ()
    added: Mapping[Path, Field] = field(default_factory=dict)
    widened: Mapping[Path, DataType] = field(default_factory=dict)
    nullable: Mapping[Path, bool] = field(default_factory=dict)
    defaults: Mapping[Path, str | None] = field(default_factory=dict)
    comments: Mapping[Path, str | None] = field(default_factory=dict)
    renamed: Mapping[Path, str] = field(default_factory=dict)


def without_columns(schema: Struct, paths: Iterable[Path]) -> Struct:
    """Gives `schema` without the columns at `paths`. Raises SchemaMismatchError, also where a struct would be empty."""
    for path in paths:
        *parent, name = column_at(schema, path)[0]
        schema = _at(schema, tuple(parent), partial(_without, name))
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
        schema = _at(schema, parent.path, partial(_with, column))
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
        schema = _at(schema, part.path, partial(_instead, kind))
    return schema


def described_anew(schema: Struct, changes: ColumnChanges) -> Struct:
    """Gives `schema` with the nullability, defaults, comments and names that `changes` gives its columns.

    Raises SchemaMismatchError for a column that is not there, or a name that would be there twice.
    """
    names_at, nullable, defaults, comments = (
        {column_at(schema, path)[0]: value for path, value in each.items()}
        for each in (changes.renamed, changes.nullable, changes.defaults, changes.comments)
    )

    def changed(path: Path, column: Field) -> Field:
        texts = dict(column.metadata)
        for key, given in ((names.CURRENT_DEFAULT, defaults), (names.COMMENT, comments)):
            if path in given:
                texts.pop(key, None)
                texts |= {} if given[path] is None else {key: given[path]}
        name, is_nullable = names_at.get(path, column.name), nullable.get(path, column.nullable)
        return Field(str(name), column.type, bool(is_nullable), texts)

    after = rebuilt(schema, changed)
    check_no_doubles(after)
    return after


def part_at(schema: Struct, path: Path) -> Part:
    """Gives what is at `path`, in any case, with its exact path. Raises SchemaMismatchError where nothing is."""
    wanted = tuple(name.lower() for name in path)
    found = next((part for part in walk(schema) if tuple(name.lower() for name in part.path) == wanted), None)
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
        folded = tuple(name.lower() for name in path)
        if folded in seen:
            raise _refused(f"it would have two columns {dotted(path)}", "DELTA_DUPLICATE_COLUMNS_FOUND")
        seen.add(folded)


def check_not_null_enforced(schema: Struct) -> None:
    """Raises SchemaMismatchError for NOT NULL inside a list or map, where Delta-Spark never checks it."""
    for part in walk(schema):
        inner = _inner(part.type)
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


def _inner(kind: DataType) -> Struct:
    """What a list or map has inside, as columns; nothing for other types."""
    inner: tuple[DataType, ...] = ()
    match kind:
        case Array(element):
            inner = (element,)
        case Map(key, value):
            inner = (key, value)
    return Struct(tuple(Field("", each, nullable=True) for each in inner))


def _at(kind: DataType, path: Path, change: Callable[[DataType], DataType]) -> Struct:
    changed = _changed(kind, path, change)
    if not isinstance(changed, Struct):
        raise TypeError(f"a schema became {changed!r:.60}")
    return changed


def _changed(kind: DataType, path: Path, change: Callable[[DataType], DataType]) -> DataType:
    if not path:
        return change(kind)
    name, rest = path[0], path[1:]
    match kind:
        case Struct(fields):
            return Struct(
                tuple(replace(f, type=_changed(f.type, rest, change)) if f.name == name else f for f in fields)
            )
        case Array(element) if name == ELEMENT:
            return replace(kind, element=_changed(element, rest, change))
        case Map(key, value):
            if name == KEY:
                return replace(kind, key=_changed(key, rest, change))
            return replace(kind, value=_changed(value, rest, change))
        case _:
            return kind


def _members(kind: DataType) -> tuple[Field, ...]:
    return kind.fields if isinstance(kind, Struct) else ()


def _with(column: Field, kind: DataType) -> DataType:
    return Struct((*_members(kind), column))


def _instead(wider: DataType, _: DataType) -> DataType:
    return wider


def _without(name: str, kind: DataType) -> DataType:
    left = Struct(tuple(member for member in _members(kind) if member.name != name))
    if not left.fields:
        raise _refused(f"{name!r} is the only column or member there", "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA")
    return left


def _refused(reason: str, error_class: str | None) -> SchemaMismatchError:
    return SchemaMismatchError(
        f"Nothing was changed at {TABLE}: {reason}. Correct the call.",
        error_class=error_class,
    )
