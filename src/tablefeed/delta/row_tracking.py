"""Assigns row ids and versions to the rows of a commit, and moves the high water mark (PROTOCOL.md, "Row Tracking").

Ids are given against the state that a commit follows: after a lost race they are given anew. Rows that are copied or
updated keep their ids in columns that only files have (`id_columns`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import orjson

from tablefeed.delta import names
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.column_mapping import physical_name
from tablefeed.delta.stats.stats_text import num_records
from tablefeed.errors import TABLE, CommitError, LogError, UnsupportedFeatureError
from tablefeed.model.actions import AddFile, DomainMetadata, Protocol, Version
from tablefeed.model.schema import Struct

NO_MARK = -1
"""The high water mark of a table that has assigned no id yet."""

LAST_ROW_ID = 2**63 - 1
"""Row ids are 64-bit integers."""


class IdColumns(NamedTuple):
    """The names, in files, of the columns with the ids and the commit versions that rows keep; both are longs.

    A null means the value that the action of the file gives the row.
    """

    row_id: str
    row_version: str


def id_columns(properties: TableProperties, schema: Struct) -> IdColumns | None:
    """Gives the columns in which copied and updated rows keep their ids; None where the table does not track rows.

    Raises UnsupportedFeatureError where the properties do not name them, or the table has a column of that name.
    """
    if not properties.tracks_rows:
        return None
    named = IdColumns(properties.row_id_column or "", properties.row_version_column or "")
    taken = {name.lower() for column in schema for name in (column.name, physical_name(column))}
    if len({"", *taken, *(name.lower() for name in named)}) < len({"", *taken}) + 2:
        raise UnsupportedFeatureError(
            f"{TABLE} keeps the ids of its rows, but its properties {names.MATERIALIZED_ROW_ID_COLUMN} and "
            f"{names.MATERIALIZED_ROW_VERSION_COLUMN} do not name two columns of their own: {[*named]}. Nothing was "
            "written. Correct them with the writer that set them.",
            features=(names.ROW_TRACKING,),
            error_class="DELTA_MATERIALIZED_ROW_TRACKING_COLUMN_NAME_MISSING",
        )
    return named


def supports_row_tracking(protocol: Protocol) -> bool:
    """Whether rows must get ids: already where the feature is listed, before it is enabled."""
    return names.ROW_TRACKING in (protocol.writer_features or ())


def with_row_ids(
    files: Sequence[AddFile], domains: Mapping[str, DomainMetadata], *, version: Version
) -> tuple[tuple[AddFile, ...], DomainMetadata | None]:
    """`files` with row ids after all earlier ones and `version` as their rows' commit, and the new mark as a domain.

    A file that has either keeps it: it stays with another deletion vector. The domain is None where the mark did not
    move. `domains` are those of the version before. Raises LogError where their mark cannot be read. Raises CommitError
    where a file has no row count, or no ids are left.
    """
    before = mark = high_water_mark(domains)
    tracked = []
    for file in files:
        first, since = file.base_row_id, file.default_row_commit_version
        if first is None:
            rows = num_records(file.stats)
            if rows is None or mark + rows > LAST_ROW_ID:
                raise no_ids(file.path, row_count=rows)
            first, mark = mark + 1, mark + rows
        since = version if since is None else since
        tracked.append(replace(file, base_row_id=first, default_row_commit_version=since))
    return tuple(tracked), None if mark == before else mark_domain(mark)


def with_column_names(
    properties: Mapping[str, str], protocol: Protocol, *, new_name: Callable[[], str]
) -> dict[str, str]:
    """The `properties` of a new table, with names of columns in which later writers may keep row ids and versions.

    `new_name` makes the end of each name, so that no other column has it.
    """
    if not supports_row_tracking(protocol):
        return dict(properties)
    drawn = {
        names.MATERIALIZED_ROW_ID_COLUMN: f"_row-id-col-{new_name()}",
        names.MATERIALIZED_ROW_VERSION_COLUMN: f"_row-commit-version-col-{new_name()}",
    }
    return {**properties, **drawn}


def check_consistent(protocol: Protocol, properties: TableProperties) -> None:
    """Raises UnsupportedFeatureError where protocol and properties disagree about whether rows have ids."""
    listed = protocol.writer_features or frozenset()
    reason = None
    if properties.tracks_rows and not supports_row_tracking(protocol):
        reason = f"it sets {names.ENABLE_ROW_TRACKING}, but its protocol does not list {names.ROW_TRACKING}"
    elif supports_row_tracking(protocol) and names.DOMAIN_METADATA not in listed:
        reason = f"its protocol lists {names.ROW_TRACKING} without {names.DOMAIN_METADATA}, which that feature requires"
    elif properties.tracks_rows and properties.suspends_row_tracking:
        reason = f"{names.ENABLE_ROW_TRACKING} and {names.ROW_TRACKING_SUSPENDED} are both on"
    if reason is not None:
        raise UnsupportedFeatureError(
            f"The table at {TABLE} does not say whether its rows have ids: {reason}. Nothing was written. Correct its "
            "properties with the writer that set them.",
            features=(names.ROW_TRACKING,),
            error_class="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION" if properties.suspends_row_tracking else None,
        )


def no_ids(path: str, *, row_count: int | None) -> CommitError:
    """The error for the rows of `path`, which get no ids: their number is not known, or too few ids are left."""
    why = "its statistics have no row count" if row_count is None else "the table has used all row ids"
    return CommitError(
        f"Nothing was committed to {TABLE}: the rows of {path} need row ids, but none can be assigned: {why}.",
        error_class="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS" if row_count is None else None,
    )


def high_water_mark(domains: Mapping[str, DomainMetadata]) -> int:
    """The greatest row id that the table with `domains` has assigned. Raises LogError where it cannot be read."""
    domain = domains.get(names.ROW_TRACKING_DOMAIN)
    if domain is None:
        return NO_MARK
    try:
        mark = orjson.loads(domain.configuration)[names.ROW_ID_HIGH_WATER_MARK]
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError):
        mark = None
    if type(mark) is not int or not NO_MARK <= mark <= LAST_ROW_ID:
        raise LogError(
            f"The log of {TABLE} does not say which row ids are in use: domain {domain.domain} has the configuration "
            f"{domain.configuration!r:.200}. Nothing was committed. Correct it with the writer that wrote it."
        )
    return mark


def mark_domain(mark: int) -> DomainMetadata:
    """The domain that says that `mark` is the greatest row id."""
    configuration = orjson.dumps({names.ROW_ID_HIGH_WATER_MARK: mark}).decode()
    return DomainMetadata(domain=names.ROW_TRACKING_DOMAIN, configuration=configuration, removed=False)
