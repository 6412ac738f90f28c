"""Identity columns of a write: which of them it makes values for, and how far it moved their high-water marks.

The mark that a plan found is the one that its commit follows: whoever moved it between changed the table's metadata,
which stops the commit, and the write that is run again makes other values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tablefeed.delta import features
from tablefeed.delta.schema.column_mapping import MappingMode, physical_name
from tablefeed.delta.schema.identity import identity_columns, with_high_water_marks
from tablefeed.delta.schema.schema_string import format_schema, parse_schema
from tablefeed.delta.stats.stats_text import long_bounds
from tablefeed.errors import SchemaMismatchError
from tablefeed.model.actions import AddFile, Metadata, Protocol
from tablefeed.model.rules import IdentityColumn
from tablefeed.model.schema import Struct


def columns_to_make(
    schema: Struct, rows: Struct, protocol: Protocol, *, partition_columns: Sequence[str], url: str
) -> tuple[IdentityColumn, ...]:
    """Gives the identity columns that `rows` do not bring.

    Raises SchemaMismatchError for one that they bring and must not; UnsupportedFeatureError for one that cannot be
    made. Where the protocol does not support the feature there is none.
    """
    columns = check_brought(schema, rows, protocol, partition_columns=partition_columns, url=url)
    brought = {name.lower() for name in rows.names}
    return tuple(column for column in columns if column.name.lower() not in brought)


def check_brought(
    schema: Struct, rows: Struct, protocol: Protocol, *, partition_columns: Sequence[str], url: str
) -> tuple[IdentityColumn, ...]:
    """Gives the identity columns of a table, none of which `rows` bring and must not; raises as `columns_to_make`."""
    if not features.is_supported("identityColumns", protocol):
        return ()
    brought = {name.lower() for name in rows.names}
    columns = identity_columns(schema, partition_columns=partition_columns, url=url)
    for column in columns:
        if column.name.lower() in brought and not column.takes_given:
            raise SchemaMismatchError(
                f"The rows have a column {column.name!r}, which {url} makes itself (GENERATED ALWAYS AS IDENTITY). "
                "Drop it from the rows.",
                url=url,
                error_class="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
            )
    return columns


def names_in_files(schema: Struct, mapping: MappingMode) -> dict[str, str]:
    """Gives the names that columns at the top have in files and their statistics, by their names in the table."""
    return {column.name: column.name if mapping is MappingMode.NONE else physical_name(column) for column in schema}


def marks_moved(
    metadata: Metadata, made: Sequence[IdentityColumn], files: Iterable[AddFile], mapping: MappingMode, *, url: str
) -> Metadata:
    """Gives `metadata` with the marks of the columns in `made` at the last values that `files` have of them."""
    schema = parse_schema(metadata.schema_string, url=url)
    in_files = names_in_files(schema, mapping)
    texts = [file.stats or "" for file in files]
    marks: dict[str, int] = {}
    for column in made:
        bounds = [bound for text in texts for bound in long_bounds(text, in_files[column.name])]
        marks[column.name] = max(bounds) if column.step > 0 else min(bounds)
    return replace(metadata, schema_string=format_schema(with_high_water_marks(schema, marks)))
