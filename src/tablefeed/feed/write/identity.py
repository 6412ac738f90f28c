"""The identity columns for which a write generates values, and their high-water marks after it.

A write's values follow the high-water marks that its plan read. If another commit moves a mark in between, it changes
the table's metadata, and so the write conflicts with it. The write must run again, with other values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tablefeed.delta import features
from tablefeed.delta.schema.column_mapping import MappingMode, physical_name
from tablefeed.delta.schema.identity import identity_columns, with_high_water_marks
from tablefeed.delta.stats.stats_text import long_bounds
from tablefeed.errors import SchemaMismatchError
from tablefeed.model.actions import AddFile, Protocol
from tablefeed.model.rules import IdentityColumn
from tablefeed.model.schema import Struct


def columns_to_make(
    schema: Struct, rows: Struct, protocol: Protocol, *, partition_columns: Sequence[str], url: str
) -> tuple[IdentityColumn, ...]:
    """Gives the identity columns that `rows` lack; none where the protocol does not support the feature.

    Raises SchemaMismatchError where `rows` have a column that is GENERATED ALWAYS, and UnsupportedFeatureError for a
    column whose values cannot be generated.
    """
    columns = check_brought(schema, rows, protocol, partition_columns=partition_columns, url=url)
    brought = {name.lower() for name in rows.names}
    return tuple(column for column in columns if column.name.lower() not in brought)


def check_brought(
    schema: Struct, rows: Struct, protocol: Protocol, *, partition_columns: Sequence[str], url: str
) -> tuple[IdentityColumn, ...]:
    """Gives all identity columns of a table, after the checks of `columns_to_make`; raises as that does."""
    if "identityColumns" not in features.supported_features(protocol):
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
    """Gives the names that top-level columns have in files and statistics, by their names in the table."""
    return {column.name: column.name if mapping is MappingMode.NONE else physical_name(column) for column in schema}


def marks_moved(
    schema: Struct, made: Sequence[IdentityColumn], files: Iterable[AddFile], mapping: MappingMode
) -> Struct:
    """Gives `schema` with the mark of each column in `made` at its last value, from the statistics of `files`."""
    in_files = names_in_files(schema, mapping)
    texts = [file.stats or "" for file in files]
    marks: dict[str, int] = {}
    for column in made:
        bounds = [bound for text in texts for bound in long_bounds(text, in_files[column.name])]
        marks[column.name] = max(bounds) if column.step > 0 else min(bounds)
    return with_high_water_marks(schema, marks)
