"""What the options of a write ask for: changes of the table's schema, casts of values, what an overwrite replaces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tablefeed.data.assignment import Assignment
from tablefeed.delta.file_layout import CODECS, Codec, named_codec
from tablefeed.errors import IllegalOptionError
from tablefeed.model.statistics import LeafPath


class Scope(StrEnum):
    """What an overwrite replaces. The values are Spark's for `partitionOverwriteMode`."""

    TABLE = "static"
    PARTITIONS = "dynamic"
    """The partitions that rows are written to."""


TYPEMAP_PREFIX = "spark.indextables.indexing.typemap."
"""A column's name follows it; the option's value is how it is indexed: `string`, `text`, `json` or `ip`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRules:
    """How rows may change their table and are made to fit it. `properties` are those of a new table.

    `replace_where` is the predicate for the rows that an overwrite replaces, None: `scope` decides.
    """

    merges_schema: bool = False
    overwrites_schema: bool = False
    """Whether an overwrite replaces the schema; an append ignores it. It comes before `merges_schema`."""
    takes_void: bool = True
    """Whether rows may have the type void for a column that the table has; their values are null."""
    assignment: Assignment = field(default_factory=Assignment)
    properties: Mapping[str, str] = field(default_factory=dict)
    scope: Scope = Scope.TABLE
    replace_where: str | None = None
    codec: Codec | None = None
    """None: the table's codec."""
    most_rows_of_a_file: int | None = None
    gathers_files: bool | None = None
    """Whether the tasks' small files are combined into larger ones before the commit; None: the table's property."""
    cluster_by: tuple[LeafPath, ...] = ()
    """The clustering columns of a new table, by their names. An existing table must be clustered by the same."""
    index_as: Mapping[str, str] = field(default_factory=dict)
    """How the columns of a new IndexTables table are indexed, by their names in any case: `string`, `text`, `json` or
    `ip`. An existing table must index them the same way."""
    delta_upkeep: Mapping[str, object] = field(default_factory=dict)
    """The options for the upkeep of a Delta table, by name, which a write to an IndexTables table must not set."""


def column_paths(value: str, option: str) -> tuple[LeafPath, ...]:
    """Gives the columns in `value` of `option`: separated by commas, members of structs after a dot.

    Between backticks, a comma or a dot is part of the name, and a backtick is written twice. Raises IllegalOptionError.
    """
    paths: list[LeafPath] = []
    path: LeafPath = ()
    if _PATHS.fullmatch(value):
        for found in _NAME.finditer(value):
            name = found["name"].strip()
            name = name[1:-1].replace("``", "`") if name.startswith("`") else name
            path = (*path, name)
            if found["end"] != ".":
                paths.append(path)
                path = ()
    if not paths or not all(all(path) for path in paths):
        explain = "must be columns with commas between them, members of structs as a.b"
        raise IllegalOptionError(option=option, value=value, explain=explain)
    return tuple(paths)


_QUOTED_OR_PLAIN = r"\s*`(?:[^`]|``)+`\s*|[^`.,]+"
_PATHS = re.compile(rf"(?:{_QUOTED_OR_PLAIN})(?:[.,](?:{_QUOTED_OR_PLAIN}))*")
_NAME = re.compile(rf"(?P<name>{_QUOTED_OR_PLAIN})(?P<end>[.,]|$)")


def codec(value: str, option: str) -> Codec:
    """Gives the codec that `option` names, in any case. Raises IllegalOptionError."""
    found = named_codec(value)
    if found is None:
        raise IllegalOptionError(option=option, value=value, explain=f"must be {CODECS}")
    return found
