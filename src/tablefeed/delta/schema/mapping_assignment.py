"""Assigns ids and physical names to columns that have none (PROTOCOL.md, "Column Mapping", "Writer Requirements").

Existing ids and names are kept; a new id is always greater than all before. The caller generates the new names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tablefeed.delta import names
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.column_changes import folded
from tablefeed.delta.schema.column_mapping import MappingMode, mapping_mode, nested_id_keys
from tablefeed.errors import TABLE, LogError
from tablefeed.model.schema import Field, Path, Struct, fields_at, fields_of, plain, rebuilt

_KEYS = (names.COLUMN_ID, names.PHYSICAL_NAME, names.NESTED_IDS)


def with_mapping(
    schema: Struct, properties: TableProperties, *, new_name: Callable[[], str]
) -> tuple[Struct, TableProperties]:
    """Returns `schema` with an id and a physical name for every column, and the table's properties after that.

    Where there is no mapping mode both are unchanged. Raises LogError where the recorded largest id is no number.
    """
    if mapping_mode(properties) is MappingMode.NONE:
        return schema, properties
    ids = _Ids(max(_recorded(properties), *_used(schema), 0), new_name)
    mapped = rebuilt(schema, ids.mapped)
    if 2 in properties.iceberg_versions:
        mapped = rebuilt(mapped, ids.nested)
    return mapped, TableProperties({**properties.texts, names.MAX_COLUMN_ID: str(ids.last)})


def like_before(schema: Struct, before: Struct) -> Struct:
    """Returns `schema`, which replaces `before`; a column with the same name and type in `before` keeps its mapping.

    Delta-Spark does the same when it overwrites a schema. So such a column is read from old and new files alike.
    """
    known = {folded(path): field for path, field in fields_at(before)}
    return rebuilt(schema, lambda path, field: _like(field, known.get(folded(path))))


class _Ids:
    """Assigns the next id and a new name to each column without one, parents before their members."""

    def __init__(self, last: int, new_name: Callable[[], str]) -> None:
        self.last = last
        self._new_name = new_name

    def mapped(self, _: Path, field: Field) -> Field:
        metadata = dict(field.metadata)
        if names.COLUMN_ID not in metadata:
            self.last += 1
            metadata[names.COLUMN_ID] = self.last
        if names.PHYSICAL_NAME not in metadata:
            metadata[names.PHYSICAL_NAME] = self._new_name()
        return replace(field, metadata=metadata)

    def nested(self, _: Path, field: Field) -> Field:
        """Assigns ids to the elements, keys and values of `field` too, as Iceberg needs them."""
        known = field.metadata.get(names.NESTED_IDS)
        ids: dict[str, object] = dict(known) if isinstance(known, Mapping) else {}
        for key in nested_id_keys(field):
            if key not in ids:
                self.last += 1
                ids[key] = self.last
        return replace(field, metadata={**field.metadata, names.NESTED_IDS: ids})


def _recorded(properties: TableProperties) -> int:
    text = properties.largest_column_id
    if not (text.isascii() and text.isdigit()):
        raise LogError(
            f"The property {names.MAX_COLUMN_ID} of {TABLE} is {text!r}, which is not a number. So a new column could "
            "get the id of another column. Restore the table's metadata."
        )
    return int(text)


def _used(schema: Struct) -> Iterator[int]:
    for field in fields_of(schema):
        nested = field.metadata.get(names.NESTED_IDS)
        ids = [field.metadata.get(names.COLUMN_ID), *(nested.values() if isinstance(nested, Mapping) else ())]
        yield from (number for number in ids if isinstance(number, int))


def _like(field: Field, before: Field | None) -> Field:
    if before is None or _types(field) != _types(before):
        return field
    mapping = {key: before.metadata[key] for key in _KEYS if key in before.metadata}
    return replace(field, metadata={**field.metadata, **mapping})


def _types(field: Field) -> Struct:
    """The type of `field` without nullability and column metadata."""
    return plain(Struct((replace(field, name=""),)))
