"""Finds a table's columns in its files (PROTOCOL.md, "Column Mapping").

In mode `name` a file's columns are found by physical name, in mode `id` by Parquet field id. Partition values and
statistics use physical names in both modes. Without a mode the physical name is the logical name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from tablefeed.delta import names
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.schema_string import schema_of
from tablefeed.errors import TABLE, LogError
from tablefeed.model.actions import Metadata
from tablefeed.model.schema import Array, Field, Map, Path, Struct, fields_at, fields_of, rebuilt, walk


class MappingMode(StrEnum):
    """The words of the table property `delta.columnMapping.mode`."""

    NONE = "none"
    NAME = "name"
    ID = "id"


def mapping_mode(properties: TableProperties) -> MappingMode:
    """Returns the table's mode. Raises LogError for a word that is not a mode."""
    try:
        return MappingMode(properties.mapping_word.lower())
    except ValueError as error:
        raise LogError(
            f"The property {names.COLUMN_MAPPING_MODE} of {TABLE} is {properties.mapping_word!r}, which is neither "
            "none, name nor id. Restore the table's metadata."
        ) from error


def physical_name(field: Field) -> str:
    """Returns the name of a column or member in files, statistics and partition values: physical, else logical."""
    name = field.metadata.get(names.PHYSICAL_NAME)
    return name if isinstance(name, str) else field.name


def change_type_column(schema: Struct) -> Field | None:
    """Gives the column that is named `_change_type`, in the table or in files; None: there is none."""
    both = ((field, {field.name.lower(), physical_name(field).lower()}) for field in schema)
    return next((field for field, each in both if names.CHANGE_TYPE in each), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedSchema:
    """A schema, and the table's mapping mode at that time."""

    schema: Struct
    mode: MappingMode


def mapped_schema(metadata: Metadata) -> MappedSchema:
    """Returns the schema and mode of `metadata`. Raises LogError or UnsupportedFeatureError where it is malformed."""
    return MappedSchema(schema=schema_of(metadata), mode=mapping_mode(TableProperties.of(metadata)))


def has_mapping_change(*, older: MappedSchema, newer: MappedSchema) -> bool:
    """Whether files of `older` cannot be read with `newer`, because a column was renamed or dropped between them.

    The rule is Delta-Spark's. Turning mapping on is no change: the old names become the physical names. Turning it off
    is a change. So is a new id of a column in mode `id`: old files would be read as null.
    """
    if newer.mode is MappingMode.NONE:
        return older.mode is not MappingMode.NONE
    if older.mode is newer.mode is MappingMode.ID and _renumbered(older.schema, newer.schema):
        return True
    now = {physical: logical[-1] for physical, logical in _paths(newer.schema)}
    return any(now.get(physical) != logical[-1] for physical, logical in _paths(older.schema))


def has_renewed_column(*, older: Struct, newer: Struct) -> bool:
    """Whether a column of `newer` has the logical name of a different column of `older`, whose values are not its."""
    then = {logical: physical for physical, logical in _paths(older)}
    return any(then.get(logical, physical) != physical for physical, logical in _paths(newer))


def renamed_columns(*, older: Struct, newer: Struct) -> list[tuple[str, str]]:
    """Returns the columns, at every depth, with the same physical path but a new logical name: old path, new path."""
    now = dict(_paths(newer))
    both = ((logical, now[physical]) for physical, logical in _paths(older) if physical in now)
    return [(".".join(then), ".".join(since)) for then, since in both if then[-1] != since[-1]]


def dropped_columns(*, older: Struct, newer: Struct) -> list[str]:
    """Returns the columns of `older`, at every depth, that files written under `newer` do not have any more."""
    now = {physical for physical, _ in _paths(newer)}
    return [".".join(logical) for physical, logical in _paths(older) if physical not in now]


def physical_schema(schema: Struct) -> Struct:
    """Returns `schema` with physical names, at every depth."""
    return rebuilt(schema, lambda _, field: replace(field, name=physical_name(field)))


def _renumbered(older: Struct, newer: Struct) -> bool:
    now = _numbers(newer)
    return any(now.get(physical, number) != number for physical, number in _numbers(older).items())


def _numbers(schema: Struct) -> dict[Path, object]:
    fields = zip(_paths(schema), fields_of(schema), strict=True)
    return {physical: field.metadata.get(names.COLUMN_ID) for (physical, _), field in fields}


def check_names(schema: Struct) -> None:
    """Raises LogError where a physical name is not a string, or two columns have the same one."""
    for field in fields_of(schema):
        if not isinstance(field.metadata.get(names.PHYSICAL_NAME, ""), str):
            raise _unmapped(f"the {names.PHYSICAL_NAME} of column {field.name!r} is not a string")
    seen: dict[Path, Path] = {}
    for physical, logical in _paths(schema):
        if physical in seen:
            both = f"{'.'.join(seen[physical])!r} and {'.'.join(logical)!r}"
            raise _unmapped(f"the columns {both} have the same {names.PHYSICAL_NAME}, {physical[-1]!r}")
        seen[physical] = logical


def check_ids(schema: Struct) -> None:
    """Raises LogError where a column has no id, or two have the same one."""
    seen: dict[object, str] = {}
    for field in fields_of(schema):
        number = field.metadata.get(names.COLUMN_ID)
        if not isinstance(number, int):
            raise _unmapped(f"the column {field.name!r} has no {names.COLUMN_ID}")
        if number in seen:
            raise _unmapped(
                f"the columns {seen[number]!r} and {field.name!r} have the same {names.COLUMN_ID}, {number}"
            )
        seen[number] = field.name


def _unmapped(what: str) -> LogError:
    return LogError(
        f"The column mapping of the table at {TABLE} is broken: {what}. So the column cannot be found in the files. "
        "Restore the table's metadata.",
    )


def nested_id_keys(field: Field) -> Iterator[str]:
    """Returns the keys of a column's nested ids: one for each element, key and value that is not inside a struct.

    "Writer Requirements for IcebergCompatV2": a key is a path that begins with the physical name; parents come first.
    """
    inside = (path for path, _, _ in walk(field.type, into=Array | Map) if path)
    return (".".join((physical_name(field), *path)) for path in inside)


def field_ids(physical: Struct) -> Iterator[tuple[Path, object]]:
    """The id of each column, at every depth, by its path in files, and those that lists and maps may have.

    Elements, keys and values need no id, because a list or map has one of each; only tables for Iceberg give them.
    """
    for path, field in fields_at(physical):
        yield path, field.metadata[names.COLUMN_ID]
        nested = field.metadata.get(names.NESTED_IDS)
        known = nested if isinstance(nested, Mapping) else {}
        for inner, _, _ in walk(field.type, into=Array | Map):
            number = known.get(".".join((field.name, *inner))) if inner else None
            if number is not None:
                yield (*path, *inner), number


def _paths(schema: Struct) -> Iterator[tuple[Path, Path]]:
    """Each column at every depth: its physical path and its logical path."""
    both = zip(walk(physical_schema(schema)), walk(schema), strict=True)
    return ((physical.path, logical.path) for physical, logical in both if logical.field is not None)
