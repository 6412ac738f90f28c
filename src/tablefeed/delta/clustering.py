"""The columns by which a table is clustered, of which every file must have statistics (PROTOCOL.md, "Clustered Table").

A writer of rows need cluster none: files without a `clusteringProvider` are for a clustering implementation to take.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from tablefeed.delta import names
from tablefeed.delta.column_mapping import physical_name
from tablefeed.errors import LogError, SchemaMismatchError
from tablefeed.model.actions import DomainMetadata, Protocol
from tablefeed.model.schema import Primitive, Struct
from tablefeed.model.statistics import LeafPath


def clustering_columns(protocol: Protocol, domains: Mapping[str, DomainMetadata], *, url: str) -> tuple[LeafPath, ...]:
    """The clustering columns as files call them, each as the path to a leaf; none where the table is not clustered.

    The protocol's example has a column as a text, Delta-Spark writes each as the list of its parts: both are read.
    Raises LogError where the domain says neither.
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
        f"The log of {url} does not say by which columns the table is clustered: domain {domain.domain} has "
        f"{domain.configuration!r:.200}. Nothing was written; let the writer that put it there correct it.",
        url=url,
    )


def check_clustered(
    columns: tuple[LeafPath, ...], schema: Struct, partition_columns: tuple[str, ...], *, url: str
) -> None:
    """Raises SchemaMismatchError where a table of `schema` cannot be clustered by `columns`, as it is after a write."""
    missing = next((path for path in columns if not _is_leaf(path, schema)), None)
    if missing is not None:
        reason = f"{'.'.join(missing)!r}, by which it is clustered, would be no column of values"
    elif columns and partition_columns:
        reason = "it is clustered, and cannot be partitioned too"
    else:
        return
    raise SchemaMismatchError(
        f"Nothing was written to {url}: {reason}. Keep its columns, or change its clustering first "
        "(ALTER TABLE ... CLUSTER BY).",
        url=url,
    )


def _is_leaf(path: LeafPath, schema: Struct) -> bool:
    field = next((field for field in schema if physical_name(field) == path[0]), None)
    if field is None:
        return False
    if isinstance(field.type, Struct):
        return len(path) > 1 and _is_leaf(path[1:], field.type)
    return len(path) == 1 and field.type != Primitive("void")
