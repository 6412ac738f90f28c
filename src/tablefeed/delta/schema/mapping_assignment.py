"""Assigns ids and physical names to columns that have none (PROTOCOL.md, "Column Mapping", "Writer Requirements").

Existing ids and names are kept; a new id is always greater than all before. The caller generates the new names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tablefeed.delta import names
from tablefeed.delta.schema.column_mapping import MappingMode, mapping_mode, nested_id_keys
from tablefeed.errors import LogError
from tablefeed.model.actions import Metadata
from tablefeed.model.schema import Array, DataType, Field, Map, Struct

_KEYS = (names.COLUMN_ID, names.PHYSICAL_NAME, names.NESTED_IDS)


def with_mapping(
    schema: Struct, metadata: Metadata, *, new_name: Callable[[], str], url: str
) -> tuple[Struct, Mapping[str, str]]:
    """Returns `schema` with an id and a physical name for every column, and the table's properties after that.

    Where `metadata` has no mapping mode both are unchanged. Raises LogError where the recorded largest id is no number.
    """
    if mapping_mode(metadata, url=url) is MappingMode.NONE:
        return schema, metadata.configuration
    ids = _Ids(max(_recorded(metadata, url=url), *_used(schema), 0), new_name)
    mapped = ids.struct(schema)
    if metadata.configuration.get(f"{names.ENABLE_ICEBERG_COMPAT_PREFIX}V2", "").lower() == "true":
        mapped = ids.nested_in(mapped)
    return mapped, {**metadata.configuration, names.MAX_COLUMN_ID: str(ids.last)}


def like_before(schema: Struct, before: Struct) -> Struct:
    """Returns `schema`, which replaces `before`; a column with the same name and type in `before` keeps its mapping.

    Delta-Spark does the same when it overwrites a schema. So such a column is read from old and new files alike.
    """
    known = {field.name.lower(): field for field in before}
    return Struct(tuple(_like(field, known.get(field.name.lower())) for field in schema))


class _Ids:
    """Assigns the next id and a new name to each column without one, parents before their members."""

    def __init__(self, last: int, new_name: Callable[[], str]) -> None:
        self.last = last
        self._new_name = new_name

    def struct(self, struct: Struct) -> Struct:
        return Struct(tuple(self._field(field) for field in struct))

    def _field(self, field: Field) -> Field:
        metadata = dict(field.metadata)
        if names.COLUMN_ID not in metadata:
            self.last += 1
            metadata[names.COLUMN_ID] = self.last
        if names.PHYSICAL_NAME not in metadata:
            metadata[names.PHYSICAL_NAME] = self._new_name()
        return Field(field.name, self._inside(field.type), field.nullable, metadata)

    def _inside(self, kind: DataType) -> DataType:
        return _with_structs(kind, self.struct)

    def nested_in(self, struct: Struct) -> Struct:
        """Assigns ids to the elements, keys and values in `struct` too, as Iceberg needs them."""
        return Struct(tuple(self._nested(field) for field in struct))

    def _nested(self, field: Field) -> Field:
        known = field.metadata.get(names.NESTED_IDS)
        ids: dict[str, object] = dict(known) if isinstance(known, Mapping) else {}
        for key in nested_id_keys(field):
            if key not in ids:
                self.last += 1
                ids[key] = self.last
        metadata = {**field.metadata, names.NESTED_IDS: ids}
        return Field(field.name, _with_structs(field.type, self.nested_in), field.nullable, metadata)


def _with_structs(kind: DataType, change: Callable[[Struct], Struct]) -> DataType:
    """`kind` with each outermost struct in it changed."""
    match kind:
        case Struct():
            return change(kind)
        case Array(element, contains_null):
            return Array(_with_structs(element, change), contains_null)
        case Map(key, value, contains_null):
            return Map(_with_structs(key, change), _with_structs(value, change), contains_null)
        case _:
            return kind


def _recorded(metadata: Metadata, *, url: str) -> int:
    text = metadata.configuration.get(names.MAX_COLUMN_ID, "0")
    if not (text.isascii() and text.isdigit()):
        raise LogError(
            f"The property {names.MAX_COLUMN_ID} of {url} is {text!r}, which is not a number. So a new column could "
            "get the id of another column. Restore the table's metadata.",
            url=url,
        )
    return int(text)


def _used(kind: DataType) -> Iterator[int]:
    match kind:
        case Struct():
            for field in kind:
                number = field.metadata.get(names.COLUMN_ID)
                if isinstance(number, int):
                    yield number
                nested = field.metadata.get(names.NESTED_IDS)
                yield from (n for n in nested.values() if isinstance(n, int)) if isinstance(nested, Mapping) else ()
                yield from _used(field.type)
        case Array(element):
            yield from _used(element)
        case Map(key, value):
            yield from _used(key)
            yield from _used(value)


def _like(field: Field, before: Field | None) -> Field:
    if before is None:
        return field
    kind = _like_inside(field.type, before.type)
    if not _same_type(kind, before.type):
        return Field(field.name, kind, field.nullable, field.metadata)
    mapping = {key: before.metadata[key] for key in _KEYS if key in before.metadata}
    return Field(field.name, kind, field.nullable, {**field.metadata, **mapping})


def _like_inside(kind: DataType, before: DataType) -> DataType:
    match kind, before:
        case Struct(), Struct():
            return like_before(kind, before)
        case Array(element, contains_null), Array(other):
            return Array(_like_inside(element, other), contains_null)
        case Map(key, value, contains_null), Map(other_key, other_value):
            return Map(_like_inside(key, other_key), _like_inside(value, other_value), contains_null)
        case _:
            return kind


def _same_type(kind: DataType, before: DataType) -> bool:
    """Whether types are equal, ignoring nullability and column metadata."""
    match kind, before:
        case Struct(), Struct():
            both = zip(kind, before, strict=False)
            return len(kind.fields) == len(before.fields) and all(
                one.name == other.name and _same_type(one.type, other.type) for one, other in both
            )
        case Array(element), Array(other):
            return _same_type(element, other)
        case Map(key, value), Map(other_key, other_value):
            return _same_type(key, other_key) and _same_type(value, other_value)
        case _:
            return kind == before
