"""Describes what a commit changed in a table's metadata, for the error of a write that conflicts with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tablefeed.delta.schema.identity import differ_in_marks_alone
from tablefeed.delta.schema.schema_string import schema_of
from tablefeed.model.actions import Metadata
from tablefeed.model.schema import Struct


def difference(
    after: Metadata, *, schema: Struct, partition_columns: Sequence[str], configuration: Mapping[str, str]
) -> str:
    """The differences between the metadata with the given parts and `after`; of properties, only the names."""
    had, has = ({field.name: field for field in each} for each in (schema, schema_of(after)))
    both = had.keys() & has.keys()
    changed = {name for name in both if had[name] != has[name]}
    marks = {name for name in changed if differ_in_marks_alone(Struct((had[name],)), Struct((has[name],)))}
    properties = {
        name
        for name in configuration.keys() | after.configuration.keys()
        if configuration.get(name) != after.configuration.get(name)
    }
    differences = [
        (f"it made values for the identity column {_listed(marks)}", marks),
        (f"its schema has the new column {_listed(has.keys() - had.keys())}", has.keys() - had.keys()),
        (f"its schema has lost the column {_listed(had.keys() - has.keys())}", had.keys() - has.keys()),
        (f"its schema changed the column {_listed(changed - marks)}", changed - marks),
        (
            f"its partitioning is by ({', '.join(after.partition_columns)})",
            after.partition_columns != partition_columns,
        ),
        (f"its properties changed: {_listed(properties)}", properties),
    ]
    return " and ".join(text for text, holds in differences if holds) or "its metadata was written again"


def _listed(columns: set[str]) -> str:
    return ", ".join(sorted(columns))
