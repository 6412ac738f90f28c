"""Turns the changes of well-known sources into plain events, and sets the arguments that fit them.

Only arguments that the user left out are set: the order, which events delete or truncate, and which columns are not
columns of the row. The columns of a change feed are Delta-Spark's, and those of Spark's `changes()` (Changelog.java).
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta import names
from tablefeed.errors import TABLE, InvalidEventsError, SchemaMismatchError, UnsupportedOptionError
from tablefeed.feed.rows.asking import Asking, Source
from tablefeed.feed.rows.debezium import unwrapped as unwrapped_debezium
from tablefeed.feed.rows.snapshot_events import as_events
from tablefeed.log.changes import ChangeType
from tablefeed.model.schema import Struct

_FEED = (names.CHANGE_TYPE, names.COMMIT_VERSION, names.COMMIT_TIMESTAMP)
_OLD = (ChangeType.DELETE, ChangeType.UPDATE_PREIMAGE)


def unwrapped(changes: pa.Table, asked: Asking, target: Struct) -> tuple[pa.Table, Asking]:
    """Gives plain events, and the arguments that fit them, without a `source`.

    `target` are the columns of the table. Raises InvalidEventsError for what is no event of the source,
    SchemaMismatchError for changes without its columns, UnsupportedOptionError for what cannot be asked of it.
    """
    twice = [name for name in changes.column_names if changes.column_names.count(name) > 1]
    if twice:
        raise SchemaMismatchError(
            f"The changes for {TABLE} have two columns {twice[0]}. Nothing was committed. Rename one.",
            error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
        )
    if asked.snapshot_at is not None:
        return as_events(changes, asked)
    if asked.source is None:
        return changes, asked
    if asked.source is Source.DEBEZIUM:
        return unwrapped_debezium(changes, asked, target)
    return changes, _of_feed(changes, asked, target)


def _of_feed(changes: pa.Table, asked: Asking, target: Struct) -> Asking:
    missing = [name for name in _FEED[:2] if name not in changes.column_names]
    if missing:
        raise SchemaMismatchError(
            f"The changes for {TABLE} have no column {missing[0]}, which a change feed has (source={asked.source}). "
            "Nothing was committed. Read them with readChangeFeed, tablefeed.changes() or spark.read.changes().",
        )
    sparse = asked.ignore_null_updates_column_list or asked.ignore_null_updates_except_column_list
    if asked.ignore_null_updates or sparse is not None:
        remedy = "A change feed has whole rows, in which a null is a value: leave it out, or leave source out."
        raise UnsupportedOptionError(option="ignore_null_updates", remedy=remedy)
    version = changes.schema.field(names.COMMIT_VERSION).type
    if not asked.sequence_by and not pa.types.is_integer(version):
        raise SchemaMismatchError(
            f"The column {names.COMMIT_VERSION} of the changes for {TABLE} is {version}, not an integer, so its order "
            "may not be that of the commits. Nothing was committed. Cast it to bigint, or set sequence_by.",
        )
    kinds = pa.array([str(kind) for kind in ChangeType])
    try:
        given = changes[names.CHANGE_TYPE].cast(pa.string())
    except pa.ArrowException as error:
        text = f"The column {names.CHANGE_TYPE} of the changes for {TABLE} is not text: {error}."
        raise SchemaMismatchError(text) from error
    other = given.filter(pc.invert(pc.is_in(given, value_set=kinds)))
    if len(other):
        raise InvalidEventsError(
            f"{TABLE} cannot take these changes: {names.CHANGE_TYPE} is {other[0].as_py()!r} in "
            f"{len(other)} of them, which no change feed has. Filter them.",
        )
    columns, order = {field.name.lower() for field in target.fields} - {*_FEED}, asked.sequence_by
    if order and {*map(str.lower, order)} <= columns and asked.apply_as_deletes is None:
        old = given.filter(pc.is_in(given, value_set=pa.array([str(kind) for kind in _OLD])))
        if len(old):
            raise InvalidEventsError(
                f"{TABLE} cannot take these changes: a row of {old[0].as_py()} has in sequence_by ({', '.join(order)}) "
                "the values of the old row, so it is not newer than this row. Leave sequence_by out, or add "
                f"{names.COMMIT_VERSION} to it.",
            )
    # An update may change the key, so the old image is a delete. If the key is the same, the new image wins over it.
    before = f"{names.CHANGE_TYPE} = '{ChangeType.UPDATE_PREIMAGE}'"
    deletes = asked.apply_as_deletes or f"{names.CHANGE_TYPE} = '{ChangeType.DELETE}'"
    excepted = asked.except_column_list
    if asked.column_list is None:
        excepted = (*(excepted or ()), *(name for name in _FEED if name in changes.column_names))
    return replace(
        asked,
        source=None,
        sequence_by=asked.sequence_by or (names.COMMIT_VERSION,),
        apply_as_deletes=f"({deletes}) OR {before}",
        except_column_list=excepted,
    )
