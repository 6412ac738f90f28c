"""`tablefeed.differences`: which columns and rows two tables, or two versions of one, do not have in common.

Rows are compared by the columns that both have, with the same names and types. They are read twice. The first reading
sums a hash of each row into one of many bins. The second keeps only rows whose bins differ, and compares them exactly.
So memory holds the rows that differ and a few others, however many rows are equal.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from tablefeed.delta.columns import to_add_files
from tablefeed.errors import SchemaMismatchError
from tablefeed.feed.api.opening import table_at
from tablefeed.feed.arguments import column_names, filtered
from tablefeed.feed.scan.table_scan import table_scan
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.actions import AddFile
from tablefeed.model.schema import Struct, plain

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

    from tablefeed.data.predicate import RowFilter

_BINS = 4096
"""So many that one row that differs leaves few others to compare with."""

DIFFERENCE = "_difference"
"""The column that says on which side a row is: "removed" if only on the left, "added" if only on the right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What the left table has and the right does not, and the reverse.

    `schema` has a text for each column that only one of both has, or has with another type, and for the partitioning.
    `rows` are the rows that only one of both has, with the column `_difference` first; a row that one of both has more
    often is there as often as it has it more. `left_rows` and `right_rows` count the rows that were compared. Files
    that both versions of one table have are not read and not counted.
    """

    left_version: int
    right_version: int
    schema: tuple[str, ...]
    rows: pa.Table
    left_rows: int
    right_rows: int

    @property
    def is_equal(self) -> bool:
        """Whether both have the same columns, partitioning and rows."""
        return not self.schema and not self.rows.num_rows


def differences(
    left: str | os.PathLike[str],
    right: str | os.PathLike[str],
    *,
    left_version: int | None = None,
    left_timestamp: str | datetime | date | None = None,
    right_version: int | None = None,
    right_timestamp: str | datetime | date | None = None,
    columns: Sequence[str] | None = None,
    filter: pc.Expression | str | None = None,  # noqa: A002 - pyarrow's name
    storage_options: Mapping[str, str] | None = None,
    right_storage_options: Mapping[str, str] | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Differences:
    """Compares the tables at `left` and `right`, or two versions of one, by columns, partitioning and rows.

    `columns` and `filter` choose the columns and rows to compare. `right_storage_options` are by default
    `storage_options`. `on_rows` is called with the number of rows of each batch that was read. Whether a column may be
    null and the order of rows do not count. Raises as `open_table` and `Table.to_batches`, and SchemaMismatchError
    where a column has the name `DIFFERENCE`.
    """
    to = storage_options if right_storage_options is None else right_storage_options
    sides = (
        _Side.open(left, left_version, left_timestamp, storage_options),
        _Side.open(right, right_version, right_timestamp, to),
    )
    return _compared(sides[0], sides[1], columns, filter, on_rows or (lambda _count: None))


class _Side:
    """One of the two tables."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._scan = table_scan(snapshot)

    @classmethod
    def open(
        cls,
        url: str | os.PathLike[str],
        version: int | None,
        timestamp: str | datetime | date | None,
        options: Mapping[str, str] | None,
    ) -> _Side:
        log, at = table_at(url, version=version, timestamp=timestamp, storage_options=options)
        return cls(log.load_for_files(at))

    @property
    def types(self) -> Struct:
        """The columns, without what does not change values."""
        return plain(self.snapshot.schema)

    def keys(self) -> set[str]:
        """The identities of the live files."""
        return {key for batch in self.snapshot.live_files() for key in batch["key"].to_pylist()}

    def rows(self, schema: pa.Schema, row_filter: RowFilter | None, without: set[str]) -> Iterator[pa.RecordBatch]:
        """The rows of all files but those with the identities `without`."""
        asked = schema
        if row_filter is not None:
            import pyarrow as pa

            asked = pa.schema({field.name: field for field in [*row_filter.fields, *schema]}.values())
        for add in self._files(without):
            rows = read_task(self._scan.of([add]), asked, store=self.snapshot.log.store)
            if row_filter is not None:
                rows = filtered(rows, row_filter.condition, schema, url=self.snapshot.url)
            yield from rows

    def _files(self, without: set[str]) -> Iterator[AddFile]:
        import pyarrow as pa

        for batch in self.snapshot.live_files():
            keep = pa.array([key not in without for key in batch["key"].to_pylist()], pa.bool_())
            yield from to_add_files(batch.filter(keep))


def _compared(
    left: _Side, right: _Side, columns: Sequence[str] | None, condition: object, on_rows: Callable[[int], None]
) -> Differences:
    import pyarrow as pa

    from tablefeed.data.row_changes import without_carryovers
    from tablefeed.feed.arguments import selected
    from tablefeed.feed.scan.arrow_filter import checked_filter

    wanted = None if columns is None else column_names(columns, argument="columns")
    for side in (left, right):
        selected(side.snapshot.arrow_schema, wanted, url=side.snapshot.url)  # raises for a name that is not there
    schema = _common(left, right, wanted)
    if DIFFERENCE in schema.names:
        raise SchemaMismatchError(
            f"{left.snapshot.url} and {right.snapshot.url} have a column {DIFFERENCE!r}. The column of that name in "
            "the result says on which side a row is. Compare only the other columns: name them.",
            url=left.snapshot.url,
        )
    tables = [side.snapshot for side in (left, right)]
    filters = [checked_filter(condition, each.arrow_schema, table=each.schema, url=each.url) for each in tables]
    same = left.keys() & right.keys() if _shares_files(left.snapshot, right.snapshot) else set[str]()
    sides = list(zip((left, right), filters, strict=True))
    bins = [_Bins(), _Bins()]
    for found, (side, row_filter) in zip(bins, sides, strict=True):
        for batch in side.rows(schema, row_filter, same):
            found.add(batch)
            on_rows(batch.num_rows)
    differ = bins[0].differing(bins[1])
    kept = []
    for side, row_filter in sides:
        batches = side.rows(schema, row_filter, same) if differ else iter(())
        kept.append(pa.Table.from_batches(_in_bins(batches, differ, on_rows), schema))
    removed, added = without_carryovers(*kept) if len(schema) else kept
    return Differences(
        left_version=left.snapshot.version,
        right_version=right.snapshot.version,
        schema=tuple(_schema_differences(left, right, wanted)),
        rows=pa.concat_tables([_marked(removed, "removed"), _marked(added, "added")]),
        left_rows=bins[0].rows,
        right_rows=bins[1].rows,
    )


def _shares_files(left: Snapshot, right: Snapshot) -> bool:
    """Whether a file that both name has the same rows in both: they are versions of one table that read files alike."""
    return (
        left.url == right.url
        and left.log.storage_options == right.log.storage_options  # they may name two servers
        and left.metadata.table_id == right.metadata.table_id
        and left.metadata.schema_string == right.metadata.schema_string
        and left.metadata.configuration == right.metadata.configuration
        and left.metadata.partition_columns == right.metadata.partition_columns
    )


# --- the columns -----------------------------------------------------------------------------------------------------


def _common(left: _Side, right: _Side, wanted: Sequence[str] | None) -> pa.Schema:
    """The columns that are compared, nullable all of them."""
    import pyarrow as pa

    ours, theirs = ({field.name: field.type for field in side.types.fields} for side in (left, right))
    names = left.snapshot.arrow_schema.names if wanted is None else list(dict.fromkeys(wanted))
    return pa.schema(
        [left.snapshot.arrow_schema.field(name) for name in names if name in theirs and ours[name] == theirs[name]]
    )


def _schema_differences(left: _Side, right: _Side, wanted: Sequence[str] | None) -> Iterator[str]:
    ours, theirs = (
        {field.name: field.type for field in side.types.fields if wanted is None or field.name in wanted}
        for side in (left, right)
    )
    shown = [side.snapshot.arrow_schema for side in (left, right)]
    for name in ours:
        if name not in theirs:
            yield f"column {name} {shown[0].field(name).type} was removed"
        elif ours[name] != theirs[name]:
            yield f"column {name} was {shown[0].field(name).type}, is {shown[1].field(name).type}"
    for name in theirs:
        if name not in ours:
            yield f"column {name} {shown[1].field(name).type} was added"
    before, after = (side.snapshot.metadata.partition_columns for side in (left, right))
    if before != after and wanted is None:
        yield f"was partitioned by {', '.join(before) or 'nothing'}, is by {', '.join(after) or 'nothing'}"


# --- the rows --------------------------------------------------------------------------------------------------------


class _Bins:
    """The number of rows and the sum of their hashes, for each bin."""

    def __init__(self) -> None:
        self.rows = 0
        self._sums = [0] * _BINS
        self._counts = [0] * _BINS

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        for number in _hashes(batch):
            self._sums[number % _BINS] += number
            self._counts[number % _BINS] += 1

    def differing(self, other: _Bins) -> set[int]:
        """The bins in which the rows of both are not the same."""
        return {at for at in range(_BINS) if (self._sums[at], self._counts[at]) != (other._sums[at], other._counts[at])}


def _hashes(batch: pa.RecordBatch) -> Iterator[int]:
    """A number of 128 bits for each row: the same for rows that are equal to the last bit."""
    from tablefeed.feed.replication.comparison import in_python

    columns = [column.cast(in_python(column.type)).to_pylist() for column in batch.columns]
    rows = zip(*columns, strict=True) if columns else iter([()] * batch.num_rows)
    return (int.from_bytes(hashlib.blake2b(repr(row).encode(), digest_size=16).digest()) for row in rows)


def _in_bins(
    batches: Iterator[pa.RecordBatch], bins: set[int], on_rows: Callable[[int], None]
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in batches:
        on_rows(batch.num_rows)
        yield batch.filter(pa.array([number % _BINS in bins for number in _hashes(batch)], pa.bool_()))


def _marked(rows: pa.Table, word: str) -> pa.Table:
    import pyarrow as pa

    return rows.add_column(0, DIFFERENCE, pa.array([word] * rows.num_rows, pa.string()))
