"""Divides the change events of a batch among Spark's tasks: all events of a key have one task.

Keys are equal where they are in the type of the table. So the tasks, which read texts in the time zone that the user
gave, must find no two keys equal that Spark gave to two tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.feed.rows.folding import Folding
from tablefeed.feed.rows.snapshot_events import IS_GONE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def divided(rows: DataFrame, how: Folding, tasks: int) -> DataFrame:
    """Gives a partition to each task. One task has all events where no key can divide them."""
    own = own_keys(how.keys) if how.snapshot_at is not None else ()
    keys = zip(how.keys, [rows[name] for name in own] or _in_table_types(rows, how), strict=True)
    by = [key for name, key in keys if not _depends_on_zone(rows, name, how)]
    return rows.repartition(tasks, *by) if by else rows.repartition(1)


def own_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """The columns that have the `keys` of a snapshot in the types of the table, once it has deletes."""
    return tuple(f"__KEY_{number}" for number in range(len(keys)))


def with_deletes(changes: DataFrame, known: DataFrame, how: Folding) -> DataFrame:
    """Gives the rows of a snapshot with a delete of each key of the table, which has the rows `known`.

    Deletes have their keys in columns of their own. In those of the snapshot, Spark would cast both types of a key to a
    third: it may round, or read texts in the session's time zone.
    """
    own = own_keys(how.keys)
    deletes = known.selectExpr(*(f"{_quoted(name)} AS {key}" for name, key in zip(how.keys, own, strict=True)))
    events = changes.withColumns(dict(zip(own, _in_table_types(changes, how), strict=True)))
    events = events.selectExpr("*", f"false AS {IS_GONE}")
    return events.unionByName(deletes.selectExpr("*", f"true AS {IS_GONE}"), allowMissingColumns=True)


def with_their_keys(events: pa.Table, keys: Sequence[str]) -> Iterator[pa.Table]:
    """Gives the rows of a snapshot, then the deletes of `with_deletes` with their keys; other events as they are."""
    if IS_GONE not in events.column_names:
        yield events
        return
    own = own_keys(keys)
    yield events.filter(pc.invert(events[IS_GONE])).drop_columns(own)
    deletes = events.filter(events[IS_GONE])
    at = {name.lower(): number for number, name in enumerate(events.column_names)}
    for name, key in zip(keys, own, strict=True):
        number = at[name.lower()]
        deletes = deletes.set_column(number, events.column_names[number], deletes[key])
    yield deletes.drop_columns(own)


def _in_table_types(rows: DataFrame, how: Folding) -> list[Column]:
    """Gives the keys in the types of the table, in which such as '7' and '07' are equal; null for what is no value."""
    from pyspark.sql.pandas.types import from_arrow_schema

    fields = from_arrow_schema(how.schema, prefer_timestamp_ntz=True)
    return [rows[_quoted(_spelled(rows, name))].try_cast(fields[name].dataType) for name in how.keys]


def _depends_on_zone(rows: DataFrame, name: str, how: Folding) -> bool:
    """Whether a key is a text that becomes an instant: Spark reads it in the session's time zone."""
    kind, given = how.schema.field(name).type, rows.schema[_spelled(rows, name)].dataType
    return pa.types.is_timestamp(kind) and kind.tz is not None and given.typeName() in ("string", "char", "varchar")


def _spelled(rows: DataFrame, name: str) -> str:
    """A column's name, as Spark must be given it: a session may distinguish case."""
    return next(each for each in rows.columns if each.lower() == name.lower())


def _quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))
