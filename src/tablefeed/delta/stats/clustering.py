"""The clustering columns of a table. Every file must have statistics for them (PROTOCOL.md, "Clustered Table").

Rows are not clustered when they are written: a clustering implementation later rewrites the files that have no
`clusteringProvider`. The limits for a new table are Delta-Spark's (ClusteredTableUtils.scala).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from tablefeed.delta import names
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.column_mapping import physical_name
from tablefeed.delta.stats.indexed_columns import has_bounds, indexed_columns
from tablefeed.errors import TABLE, ConflictingOptionsError, IllegalOptionError, LogError, SchemaMismatchError
from tablefeed.model.actions import DomainMetadata, Protocol
from tablefeed.model.schema import Field, Primitive, Struct, fields_along, leaves
from tablefeed.model.statistics import LeafPath

OPTION = "clusterBy"

MOST_COLUMNS = 4
"""Delta-Spark's limit: with more columns, none of them is clustered well."""


def clustering_columns(protocol: Protocol, domains: Mapping[str, DomainMetadata]) -> tuple[LeafPath, ...]:
    """The clustering columns by physical name, each as the path to a leaf; none where the table is not clustered.

    The protocol's example writes a column as one string, Delta-Spark as a list of name parts: both are read.
    Raises LogError where the domain holds neither.
    """
    domain = domains.get(names.CLUSTERING_DOMAIN)
    if domain is None or names.CLUSTERING not in (protocol.writer_features or ()):
        return ()
    try:
        columns = orjson.loads(domain.configuration)[names.CLUSTERING_COLUMNS]
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError):
        columns = None
    if isinstance(columns, list):
        paths = [(column,) if isinstance(column, str) else column for column in columns]
        if all(isinstance(p, list | tuple) and p and all(isinstance(part, str) for part in p) for p in paths):
            return tuple(tuple(path) for path in paths)
    raise LogError(
        f"The log of {TABLE} does not say by which columns the table is clustered: domain {domain.domain} has the "
        f"configuration {domain.configuration!r:.200}. Nothing was written. Correct it with the writer that wrote it."
    )


def check_clustered(columns: tuple[LeafPath, ...], schema: Struct, partition_columns: tuple[str, ...]) -> None:
    """Raises SchemaMismatchError where `schema`, the schema after a write, cannot be clustered by `columns`."""
    missing = next((path for path in columns if not _is_leaf(path, schema)), None)
    if missing is not None:
        reason = f"its clustering column {'.'.join(missing)!r} would no longer be a column with values"
    elif columns and partition_columns:
        reason = "a clustered table cannot be partitioned too"
    else:
        return
    raise SchemaMismatchError(
        f"Nothing was written to {TABLE}: {reason}. Keep its columns, or change its clustering first "
        "(ALTER TABLE ... CLUSTER BY).",
    )


def new_clustering(
    columns: Sequence[LeafPath], schema: Struct, partition_columns: Sequence[str], properties: TableProperties
) -> tuple[LeafPath, ...]:
    """Returns the physical names of `columns`, which name columns of `schema` in any case, for a new table.

    Raises ConflictingOptionsError where the table is to be partitioned as well. Raises IllegalOptionError for too many
    columns, and for a column that is named twice, does not exist, has a type without bounds, or gets no statistics
    with `properties`.
    """
    if not columns:
        return ()
    if partition_columns:
        raise ConflictingOptionsError(
            options=(OPTION, "partitionBy"),
            remedy="A table is clustered or partitioned: leave one of them out.",
            error_class="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
        )
    if len(columns) > MOST_COLUMNS:
        raise _refused(columns, f"names more than {MOST_COLUMNS} columns", "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS")
    found = [_fields(column, schema, columns) for column in columns]
    physical = tuple(tuple(physical_name(field) for field in fields) for fields in found)
    if len({*physical}) < len(physical):
        raise _refused(columns, "names a column twice", "DELTA_DUPLICATE_COLUMNS_FOUND")
    unbounded = [fields for fields in found if not has_bounds(fields[-1].type)]
    if unbounded:
        reason = f"names {_shown(unbounded[0])!r}, whose type has no bounds in statistics"
        raise _refused(columns, reason, "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED")
    known = dict(leaves(indexed_columns(schema, properties, partition_columns=())))
    missing = [fields for fields in found if tuple(field.name for field in fields) not in known]
    if missing:
        reason = (
            f"names {_shown(missing[0])!r}, for which the table would have no statistics; move the column up, or set "
            f"{names.INDEXED_COLUMNS}"
        )
        raise _refused(columns, reason, "DELTA_CLUSTERING_COLUMN_MISSING_STATS")
    return physical


def check_same_clustering(columns: Sequence[LeafPath], actual: tuple[LeafPath, ...], schema: Struct) -> None:
    """Raises SchemaMismatchError where `columns` are given and are not those (`actual`) that cluster the table."""
    if not columns:
        return
    wanted = tuple(tuple(physical_name(field) for field in _fields(column, schema, columns)) for column in columns)
    if wanted != actual:
        found = _listed(_logical(actual, schema)) or "no column"
        raise SchemaMismatchError(
            f"{TABLE} is clustered by {found}, not by {_listed(columns)}. Leave {OPTION} out: an existing table keeps "
            "its clustering.",
            error_class="DELTA_CLUSTERING_COLUMNS_MISMATCH",
        )


def clustering_domain(columns: Sequence[LeafPath]) -> DomainMetadata:
    """Returns the domain that records in the log that a table is clustered by `columns` (physical names)."""
    configuration = {names.CLUSTERING_COLUMNS: [list(path) for path in columns], "domainName": names.CLUSTERING_DOMAIN}
    return DomainMetadata(
        domain=names.CLUSTERING_DOMAIN, configuration=orjson.dumps(configuration).decode(), removed=False
    )


def _fields(column: LeafPath, schema: Struct, columns: Sequence[LeafPath]) -> list[Field]:
    """The fields on the path to `column`, outermost first. Raises IllegalOptionError where there is no such column."""
    found = fields_along(schema, column, is_named=lambda field, name: field.name.lower() == name.lower())
    if len(found) < len(column):
        reason = f"names {'.'.join(column)!r}, which is no column of the table"
        raise _refused(columns, reason, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA")
    return found


def _physical(column: LeafPath, schema: Struct) -> list[Field]:
    """The fields on the path to `column`, given by physical names, down to the first that `schema` does not have."""
    return fields_along(schema, column, is_named=lambda field, name: physical_name(field) == name)


def _logical(columns: Sequence[LeafPath], schema: Struct) -> list[LeafPath]:
    """The logical names of `columns`; a part that `schema` does not have keeps its physical name."""
    known = [tuple(field.name for field in _physical(column, schema)) for column in columns]
    return [(*found, *column[len(found) :]) for found, column in zip(known, columns, strict=True)]


def _refused(columns: Sequence[LeafPath], reason: str, error_class: str) -> IllegalOptionError:
    return IllegalOptionError(option=OPTION, value=_listed(columns), explain=reason, error_class=error_class)


def _shown(fields: Sequence[Field]) -> str:
    return ".".join(field.name for field in fields)


def _listed(columns: Sequence[LeafPath]) -> str:
    return ", ".join(".".join(path) for path in columns)


def _is_leaf(path: LeafPath, schema: Struct) -> bool:
    found = _physical(path, schema)
    return len(found) == len(path) and not (isinstance(found[-1].type, Struct) or found[-1].type == Primitive("void"))
