"""Takes rows that break a rule of their table out of a write, into files of another table (the option `badRecords`).

A row is bad if its values do not cast to the table's types, or if it breaks NOT NULL, a CHECK constraint, a generated
column or a length. The same code decides that fails the batch without this option. Which rows of a batch fail is read
from its error, and where that does not say it, the batch is halved until it is known.

The files are committed after those of the batch: feed/commit/bad_rows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from tablefeed.catalog.names import is_name
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.delta.schema.column_mapping import MappingMode
from tablefeed.errors import IllegalOptionError, InvalidRowsError, UnsupportedOptionError
from tablefeed.feed.snapshot.known_state import newest_state
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.feed.write.align import aligned
from tablefeed.feed.write.delta_write import added, file_layout, new_path, write_table_rows
from tablefeed.feed.write.orphans import new_files
from tablefeed.feed.write.row_rules import built_rules
from tablefeed.feed.write.sink import plan_write
from tablefeed.feed.write.write_plan import DeltaPlan, WritePlan
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Txn
from tablefeed.model.spark_texts import date_text, timestamp_text
from tablefeed.store import Within, open_store
from tablefeed.store.address import share_a_folder
from tablefeed.wording.words import json_value

if TYPE_CHECKING:
    import pyarrow as pa

OPTION = "badRecords"

_COLUMNS = ("row", "reason", "error_class", "column", "query_id", "batch_id")
"""The columns of the other table: the row as JSON as it came, why it is bad, and the batch that it came in."""

_BUFFERED_BYTES = 8 << 20
"""The most bytes of bad rows that wait for their row group, so that a task with bad rows needs hardly more memory."""


def plan_bad_rows(location: str, storage_options: Mapping[str, str], *, of: WritePlan, kind: WriteKind) -> DeltaPlan:
    """Plans the table at `location` for the bad rows of the write `of`. Raises OptionError where that cannot be."""
    if not isinstance(of, DeltaPlan):
        raise UnsupportedOptionError(option=OPTION, remedy="Only Delta tables have it; leave it out.")
    if kind is not WriteKind.APPEND:
        raise UnsupportedOptionError(
            option=OPTION, remedy="Complete mode replaces all rows with each batch. Use append mode, or leave it out."
        )
    return table_of_bad_rows(location, storage_options, other_than=of.url)


def table_of_bad_rows(location: str, storage_options: Mapping[str, str], *, other_than: str | None = None) -> DeltaPlan:
    """Plans an append of bad rows to the table at `location`, which it makes.

    Raises IllegalOptionError for a table that no such append made, and for one that shares a folder with the one at
    `other_than`.
    """
    if is_name(location):
        raise IllegalOptionError(option=OPTION, value=location, explain="must be a path or URL, not a name")
    log, state = newest_state(location, storage_options)
    if other_than is not None and share_a_folder(log.url, other_than):
        explain = "must be another table than the query writes, neither in its folder nor around it"
        raise IllegalOptionError(option=OPTION, value=log.url, explain=explain)
    if state is None or tuple(state.schema.names) == _COLUMNS:
        plan = plan_write(log, state, _schema(), partition_by=(), kind=WriteKind.APPEND).about(None)
        plain = isinstance(plan, DeltaPlan) and plan.mapping is MappingMode.NONE and plan.kept is None
        if isinstance(plan, DeltaPlan) and plain and not plan.partition_columns:
            return plan
    raise IllegalOptionError(
        option=OPTION,
        value=log.url,
        explain=f"must be no table yet, or one that this option made, with the columns {', '.join(_COLUMNS)}",
    )


def write_good_rows(
    plan: WritePlan, bad_plan: DeltaPlan, batches: Iterable[pa.RecordBatch], *, task: int, txn: Txn, now_ms: int
) -> tuple[tuple[AddFile, ...], tuple[AddFile, ...]]:
    """Writes as `sink.write_task` does, the bad rows to the table of `bad_plan`; gives the files of both tables.

    Memory holds a batch and its bad rows as text, besides what `write_task` and the two files need.
    """
    from tablefeed.data.write import FilesWriting

    if not isinstance(plan, DeltaPlan):
        raise TypeError(f"{plan.url} is no Delta table")
    store = open_store(bad_plan.location, for_store(bad_plan.storage_options))
    within = None if bad_plan.found is None else Within(directory="")
    layout = replace(file_layout(bad_plan), row_group_bytes=_BUFFERED_BYTES, buffered_bytes=_BUFFERED_BYTES)
    bad: list[AddFile] = []
    with new_files(store, new_path(bad_plan, task), within=within) as new_file:
        writing = FilesWriting(layout, new_file)

        def good_rows() -> Iterator[pa.RecordBatch]:
            for good, found in _sifted(plan, batches, task):
                for given, error in found:
                    writing.add(_described(given, error, txn))
                yield from good
            bad.extend(added(bad_plan, file, now_ms=now_ms) for file in writing.finish())

        try:
            files = write_table_rows(plan, good_rows(), task=task, now_ms=now_ms)
        except BaseException as error:
            writing.abort(error)
            raise
    return files, tuple(bad)


# --- which rows ------------------------------------------------------------------------------------------------------


def _sifted(
    plan: DeltaPlan, batches: Iterable[pa.RecordBatch], task: int
) -> Iterator[tuple[list[pa.RecordBatch], list[tuple[pa.RecordBatch, InvalidRowsError]]]]:
    """Gives the good rows of each batch, in the table's columns, and its bad rows as they came, by their error."""
    from tablefeed.data.identity_values import IdentityValues, turns

    schema = to_arrow(plan.schema)
    fill = IdentityValues(plan.identity, turns(task, task_count=None)) if plan.identity else None
    keep = _keeping(plan)
    for batch in batches:
        cast, bad = _parted(batch, lambda rows: next(aligned([rows], plan.alignment, schema, plan.rules.assignment)))
        good: list[pa.RecordBatch] = []
        for at, rows in cast:
            kept, broken = _parted(rows if fill is None else fill(rows), keep)
            good += (piece for _, piece in kept)
            bad += (([at[row] for row in found], error) for found, error in broken)
        yield good, [(batch.take(found), error) for found, error in bad]


def _keeping(plan: DeltaPlan) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Gives what fills and checks a batch by all rules of the table."""
    import pyarrow as pa

    from tablefeed.data.partition import empty_is_null
    from tablefeed.data.required import refuse_nulls

    rules = None if plan.kept is None else built_rules(plan.kept, plan.schema)

    def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
        batch = empty_is_null(batch if rules is None else rules(batch), plan.partition_columns)
        refuse_nulls(pa.Table.from_batches([batch]), error_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED")
        return batch

    return keep


def _parted(
    batch: pa.RecordBatch, step: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> tuple[list[tuple[Sequence[int], pa.RecordBatch]], list[tuple[Sequence[int], InvalidRowsError]]]:
    """Gives what `step` makes of the rows that it takes, in order, and the rows that it refuses, by their error.

    Both with the numbers of the rows in `batch`.
    """
    good: list[tuple[Sequence[int], pa.RecordBatch]] = []
    bad: list[tuple[Sequence[int], InvalidRowsError]] = []
    waiting: list[Sequence[int]] = [[*range(batch.num_rows)]]  # Arrow takes no range
    while waiting:
        at = waiting.pop()
        if not at:
            continue
        try:
            made = step(batch if len(at) == batch.num_rows else batch.take(at))
        except InvalidRowsError as error:
            if error.broken is None:
                raise
            is_bad = error.broken.rows if len(at) > 1 else (True,)
            if is_bad is None or not any(is_bad):
                waiting += (at[len(at) // 2 :], at[: len(at) // 2])
                continue
            bad.append(([row for row, broken in zip(at, is_bad, strict=True) if broken], error))
            waiting.append([row for row, broken in zip(at, is_bad, strict=True) if not broken])
        else:
            good.append((at, made))
    return good, bad


# --- what is said of them --------------------------------------------------------------------------------------------


def _described(given: pa.RecordBatch, error: InvalidRowsError, txn: Txn) -> pa.Table:
    import pyarrow as pa

    broken = error.broken
    columns = {
        "row": [orjson.dumps(row).decode() for row in _as_json(given)],
        "reason": [broken and broken.reason] * given.num_rows,
        "error_class": [error.error_class] * given.num_rows,
        "column": [broken and broken.column] * given.num_rows,
        "query_id": [txn.app_id] * given.num_rows,
        "batch_id": [txn.txn_version] * given.num_rows,
    }
    return pa.table(columns, schema=_schema())


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.int64() if name == "batch_id" else pa.string()) for name in _COLUMNS])


def _as_json(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows as JSON; see `json_value`."""
    columns = [_values(column) for column in batch.columns]
    for row in range(batch.num_rows):
        yield {name: json_value(column[row]) for name, column in zip(batch.schema.names, columns, strict=True)}


def _values(column: pa.Array) -> Sequence[Any]:
    import pyarrow as pa

    kind = column.type
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):  # bytes that are no UTF-8, or a time that Python does not have
        if pa.types.is_string(kind):
            texts = column.cast(pa.binary()).to_pylist()
            return [text and text.decode(errors="backslashreplace") for text in texts]
        return _parts(column) if pa.types.is_nested(kind) else _times(column)
    return values


def _times(column: pa.Array) -> list[str | None]:
    """Dates and timestamps as texts. Arrow has texts only of the years up to 32767."""
    import pyarrow as pa

    if pa.types.is_date(column.type):
        return [None if day is None else date_text(day) for day in column.cast(pa.int32()).to_pylist()]
    zone = "" if column.type.tz is None else "Z"
    moments = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
    return [None if moment is None else timestamp_text(moment) + zone for moment in moments]


def _parts(column: pa.Array) -> Sequence[Any]:
    """The values of a struct, a list or a map, each part by `_values`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_struct(kind):
        members = [_values(pc.struct_field(column, [i])) for i in range(kind.num_fields)]
        rows = zip(column.is_valid().to_pylist(), *members, strict=True)
        return [dict(zip(kind.names, row, strict=True)) if is_valid else None for is_valid, *row in rows]
    if pa.types.is_map(kind):
        entries = _values(column.cast(pa.list_(pa.struct([kind.key_field, kind.item_field]))))
        return [each and [tuple(entry.values()) for entry in each] for each in entries]
    elements = iter(_values(column.flatten()))
    lengths = pc.list_value_length(column).to_pylist()
    return [None if length is None else [next(elements) for _ in range(length)] for length in lengths]
