"""The event time column by which a stream's initial snapshot is ordered, and which times each file may contain.

Partition values and statistics decide which files may have rows between two moments, as for a filter (pruning.py).
Which of their rows are delivered is decided by the rows' own values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tablefeed.errors import IllegalOptionError, OffsetError
from tablefeed.model.offset import Offset
from tablefeed.model.schema import Field, Primitive, Struct

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.predicate import RowFilter
    from tablefeed.feed.scan.task import LoggedColumns

OPTION, COLUMN_OPTION = "withEventTimeOrder", "eventTimeColumn"

_TYPES = (Primitive("timestamp"), Primitive("timestamp_ntz"))


def event_time_field(name: str, schema: Struct) -> Field:
    """Gives the column `name`, preferring the exact letter case. Raises IllegalOptionError unless it has timestamps."""
    alike = [field for field in schema if field.name.lower() == name.lower()]
    found = [field for field in alike if field.name == name] or alike
    if len(found) != 1:
        raise IllegalOptionError(
            option=COLUMN_OPTION, value=name, explain=f"must be a column of the table: {', '.join(schema.names)}"
        )
    if found[0].type not in _TYPES:
        raise IllegalOptionError(
            option=COLUMN_OPTION, value=name, explain="must be a column of type timestamp or timestamp_ntz"
        )
    return found[0]


def check_order(offset: Offset, column: str | None, *, url: str) -> None:
    """Raises OffsetError where `offset` is within a snapshot in another order than by `column` (None: by files).

    The offsets at the begin of a snapshot and after it are the same in both orders.
    """
    by = None if offset.event_time is None else offset.event_time.column
    if not offset.in_snapshot or by == column or (by is None and offset.file_index == 0):
        return
    there = "of file modification" if by is None else f"of the times in {by}"
    remedy = f"{OPTION}=false" if by is None else f"{OPTION}=true and {COLUMN_OPTION}={by}"
    raise OffsetError(
        f"This query is within the initial snapshot of {url} at version {offset.version}. The batches already "
        f"delivered were chosen in the order {there}, so the rest cannot be read in another order. Set {remedy} until "
        "the snapshot is done, or start with a new checkpoint.",
        url=url,
    )


class EventTimes:
    """The times in the column `field` of a table with `schema`; `columns` says how the log names its columns."""

    def __init__(self, field: Field, *, schema: Struct, columns: LoggedColumns) -> None:
        from tablefeed.delta.schema.arrow_schema import to_arrow
        from tablefeed.feed.scan.pruning import leaf_at

        self.column = field.name
        self._field = to_arrow(Struct((field,))).field(0)
        leaf = leaf_at((field.name,), schema, columns)
        if leaf is None:
            raise TypeError(f"{field.name} has no bounds")
        self._leaf, self._is_partition = leaf, field.name in columns.partitions

    def marked(self, files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Gives `files` (`tablefeed.delta.columns.FILE_COLUMNS`) with the columns of `mark_fields` appended."""
        from tablefeed.feed.scan.pruning import judged_windows

        for batch in judged_windows(files):
            for field, values in zip(mark_fields(), self._marks(batch), strict=True):
                batch = batch.append_column(field, values)
            yield batch

    def rows(self, begin_us: int | None, end_us: int | None, also: RowFilter | None) -> RowFilter | None:
        """Gives the filter for rows from `begin_us` to before `end_us` that also pass `also`; None: no filter.

        None for a bound means no bound. Rows without a time pass where `begin_us` is None.
        """
        import pyarrow as pa

        from tablefeed.data.predicate import And, Column, Comparison, IsNull, Or, Predicate, filter_by

        if begin_us is None and end_us is None:
            return also
        time = Column((self.column,))
        parts: list[Predicate] = [] if also is None else [also.predicate]
        if end_us is not None:
            before = Comparison("less", time, pa.scalar(end_us, self._field.type))
            parts.append(Or((before, IsNull(time))) if begin_us is None else before)
        if begin_us is not None:
            parts.append(Comparison("greater_equal", time, pa.scalar(begin_us, self._field.type)))
        named = [] if also is None else [field for field in also.fields if field.name != self.column]
        return filter_by(And(tuple(parts)), pa.schema([*named, self._field]))

    def _marks(self, files: pa.RecordBatch) -> list[pa.Array]:
        import pyarrow as pa
        import pyarrow.compute as pc

        from tablefeed.delta.stats.column_bounds import read_bounds
        from tablefeed.feed.scan.pruning import partition_values_of

        if self._is_partition:
            known = partition_values_of(files["partition_values"], self._leaf)
            at = known.values.cast(pa.int64())
            dated = at.is_valid()
            return [at, at, pc.invert(dated), pc.or_(dated, pc.invert(known.is_known))]
        [bounds] = read_bounds(files["stats"], [self._leaf])
        ends = [end.cast(pa.int64()) for end in (bounds.low, bounds.high)]
        return [*ends, bounds.may_be_null, bounds.may_have_value]


def mark_fields() -> list[pa.Field]:
    """Gives the columns that `EventTimes.marked` appends: what the log says about the times in a file.

    A lower and an upper bound of them, in microseconds since 1970 as in offsets, null where unknown; whether a row may
    have no time; whether a row may have a time.
    """
    import pyarrow as pa

    return [
        pa.field("event_low", pa.int64()),
        pa.field("event_high", pa.int64()),
        pa.field("event_may_be_null", pa.bool_()),
        pa.field("event_may_have_value", pa.bool_()),
    ]


def may_have_rows(files: pa.RecordBatch, begin_us: int | None, end_us: int | None) -> pa.BooleanArray:
    """Says for each of `files`, which are marked, whether a row may pass `EventTimes.rows` with the same bounds."""
    import pyarrow.compute as pc

    may = files["event_may_have_value"]
    if end_us is not None:
        may = pc.and_(may, pc.fill_null(pc.less(files["event_low"], end_us), fill_value=True))
    if begin_us is not None:
        return pc.and_(may, pc.fill_null(pc.greater_equal(files["event_high"], begin_us), fill_value=True))
    return pc.or_(may, files["event_may_be_null"])
