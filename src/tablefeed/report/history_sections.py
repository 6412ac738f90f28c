"""What a page shows of the newest commits of a table: when they were made, what they did, and who made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.report.buckets import Buckets, buckets
from tablefeed.report.figures import (
    MOST_BARS,
    MOST_ROWS,
    SERIES,
    Mark,
    Plot,
    bar_plot,
    column_plot,
    data_table,
    round_count,
    shortened,
    with_table,
)
from tablefeed.report.part import Section
from tablefeed.wording.words import moment, several, size

Row = dict[str, Any]  # a row of Arrow in Python


def history_sections(history: pa.Table, ids: str) -> list[Section]:
    """Gives the sections about commits, in the columns of `COMMITS`. `ids` begins the names of the plots."""
    return [*_over_time(history, ids), *_operations(history, ids)]


def _over_time(history: pa.Table, ids: str) -> list[Section]:
    heading = "Commits over time"
    if not history.num_rows:
        return [Section(heading=heading, says="The log has no commits, only a checkpoint.", wide=True)]
    ends = pc.min_max(history["committed_at_ms"]).as_py()
    spans, names = buckets(ends["min"], ends["max"]), _most_frequent(history)
    others = len(names) - 1 if names[-1] == _OTHERS else None
    found = pc.index_in(history["operation"], value_set=pa.array(names[:others], pa.string()))
    index = pc.divide(pc.subtract(history["committed_at_ms"], spans.start_ms), spans.length_ms)
    counts = [[0] * len(names) for _ in range(spans.count)]
    grouped = pa.table({"span": index, "operation": pc.fill_null(found, len(names) - 1)})
    for each in rows_of(grouped.group_by(["span", "operation"]).aggregate([([], "count_all")])):
        counts[each["span"]][each["operation"]] = each["count_all"]
    first, last = (moment(ends[end])[:19] for end in ("min", "max"))
    says = f"The newest {several(history.num_rows, 'commit')} of the log, from {first} to {last}."
    plot = Plot(
        name=f"{ids}commits",
        title="Commits over time",
        says=f"Columns of commits by operation. {says}",
        series=tuple(names),
        marks=[
            Mark(label=spans.label(at), values=tuple(each), tip=_tip(spans.label(at), each, names))
            for at, each in enumerate(counts)
        ],
        shown=lambda value: f"{value:,.0f}",
    )
    rows = [[spans.label(at), *(f"{count:,}" for count in each)] for at, each in enumerate(counts) if any(each)]
    drawn = column_plot(plot, top=round_count, labels=_ends_of(spans))
    headings = [f"from (each {_length(spans)})", *map(shortened, names)]
    content = with_table(drawn, "commits over time", headings, rows)
    return [Section(heading=heading, says=says, content=content, wide=True)]


_OTHERS = "other operations"


def _most_frequent(history: pa.Table) -> list[str]:
    counts = history.group_by("operation", use_threads=False).aggregate([("operation", "count")])
    ordered = counts.sort_by([("operation_count", "descending"), ("operation", "ascending")])["operation"]
    names: list[str] = ordered.slice(0, SERIES if len(ordered) <= SERIES else SERIES - 1).to_pylist()
    return names if len(ordered) <= SERIES else [*names, _OTHERS]


def _tip(label: str, counts: Sequence[int], names: Sequence[str]) -> str:
    parts = [f"{count:,} {shortened(name)}" for count, name in zip(counts, names, strict=True) if count]
    return f"{label}: {', '.join(parts) or 'no commits'}"


def _ends_of(spans: Buckets) -> list[str]:
    middle = [spans.label(spans.count // 2)] if spans.count > 2 else []
    last = [spans.label(spans.count - 1)] if spans.count > 1 else []
    return [spans.label(0), *middle, *last]


def _length(spans: Buckets) -> str:
    seconds = spans.length_ms // 1000
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if seconds % length == 0:
            return unit if seconds == length else f"{seconds // length} {unit}s"
    return f"{seconds} seconds"


_COUNTED = ("files_added", "files_removed", "bytes_added", "bytes_removed", "rows_added")


def _operations(history: pa.Table, ids: str) -> list[Section]:
    if not history.num_rows:
        return []
    asked = [("version", "count"), *((name, "sum") for name in _COUNTED)]
    found = history.group_by("operation", use_threads=False).aggregate(asked)
    rows = rows_of(found.sort_by([("version_count", "descending"), ("operation", "ascending")]).slice(0, MOST_ROWS))
    unknown = history["rows_added"].null_count
    rest = f" Left out: {several(unknown, 'commit')} with files without statistics." if unknown else ""
    rows_says = f"Rows in the files that commits added; a rewrite counts the rows that it kept, too.{rest}"
    bytes_says = "Bytes of the files that commits added and removed."
    in_rows = [
        [
            each["operation"],
            f"{each['version_count']:,}",
            _number(each["rows_added_sum"]),
            _number(each["files_added_sum"]),
            _number(each["files_removed_sum"]),
        ]
        for each in rows
    ]
    in_bytes = [[each["operation"], *(size(int(each[f"bytes_{what}_sum"])) for what in _BOTH)] for each in rows]
    shown = rows[:MOST_BARS]
    row_plot = Plot(
        name=f"{ids}rows",
        title="Rows by operation",
        says=rows_says,
        series=("rows",),
        marks=[
            Mark(
                label=each["operation"],
                values=(each["rows_added_sum"] or 0.0,),
                tip=f"{shortened(each['operation'])}: {_number(each['rows_added_sum'])} rows in "
                f"{several(each['version_count'], 'commit')}",
            )
            for each in shown
        ],
        shown=_number,
    )
    byte_plot = Plot(
        name=f"{ids}bytes",
        title="Bytes by operation",
        says=bytes_says,
        series=("added", "removed"),
        marks=[
            Mark(
                label=each["operation"],
                values=tuple(each[f"bytes_{what}_sum"] for what in _BOTH),
                tip=f"{shortened(each['operation'])}: {size(int(each['bytes_added_sum']))} added, "
                f"{size(int(each['bytes_removed_sum']))} removed",
            )
            for each in shown
        ],
        shown=lambda value: size(int(value)),
    )
    row_headings = ("operation", "commits", "rows", "files added", "files removed")
    row_content = with_table(bar_plot(row_plot), "rows and files by operation", row_headings, in_rows)
    byte_content = with_table(bar_plot(byte_plot), "bytes by operation", ("operation", *_BOTH), in_bytes)
    return [
        Section(heading="Rows by operation", says=rows_says, content=row_content),
        Section(heading="Bytes by operation", says=bytes_says, content=byte_content),
    ]


_BOTH = ("added", "removed")


# --- writers ---------------------------------------------------------------------------------------------------------


def writer_sections(history: pa.Table, ids: str) -> list[Section]:
    """Gives the sections about writers, users and transactions."""
    if not history.num_rows:
        return []
    return [
        *_commits_by(history, "writer", heading="Writers", name=f"{ids}writers"),
        *_commits_by(history, "user", heading="Users", name=f"{ids}users"),
        *_transactions(history),
    ]


def _commits_by(history: pa.Table, column: str, *, heading: str, name: str) -> list[Section]:
    known = history.filter(pc.is_valid(history[column]))
    if not known.num_rows:
        return []
    asked = [("version", "count"), ("version", "max"), ("committed_at_ms", "max")]
    found = known.group_by(column, use_threads=False).aggregate(asked)
    found = found.sort_by([("version_count", "descending"), (column, "ascending")])
    rows = rows_of(found.slice(0, MOST_ROWS))
    unnamed = history.num_rows - known.num_rows
    rest = f" {unnamed:,} of {history.num_rows:,} commits name none." if unnamed else ""
    says = f"{several(found.num_rows, column)} made the newest {several(history.num_rows, 'commit')}.{rest}"
    plot = Plot(
        name=name,
        title=f"Commits by {column}",
        says=says,
        series=("commits",),
        marks=[
            Mark(
                label=each[column],
                values=(float(each["version_count"]),),
                tip=f"{shortened(each[column])}: {several(each['version_count'], 'commit')}, the last is version "
                f"{each['version_max']:,}",
            )
            for each in rows[:MOST_BARS]
        ],
        shown=_number,
    )
    content = with_table(
        bar_plot(plot),
        f"commits by {column}",
        (column, "commits", "last version", "last commit"),
        [
            [
                each[column],
                f"{each['version_count']:,}",
                f"{each['version_max']:,}",
                moment(each["committed_at_ms_max"])[:16],
            ]
            for each in rows
        ],
    )
    return [Section(heading=heading, says=says, content=content)]


def _transactions(history: pa.Table) -> list[Section]:
    """The queries and loaders that commit exactly once."""
    at = pc.list_parent_indices(history["txns"])
    txns = pc.list_flatten(history["txns"])
    if not len(at):
        return []
    each = pa.table({"app": pc.struct_field(txns, "app_id"), "version": history["version"].take(at)})
    each = each.append_column("txn", pc.struct_field(txns, "txn_version"))
    found = each.group_by("app", use_threads=False).aggregate(
        [("version", "count"), ("version", "max"), ("txn", "max")]
    )
    found = found.sort_by([("version_max", "descending"), ("app", "ascending")])
    rows = [
        [row["app"], f"{row['version_count']:,}", f"{row['txn_max']:,}", f"{row['version_max']:,}"]
        for row in rows_of(found.slice(0, MOST_ROWS))
    ]
    says = "Queries and loaders that record which of their batches are committed."
    headings = ("appId", "commits", "last txn version", "last version")
    return [Section(heading="Transactions", says=says, content=data_table("transactions", headings, rows))]


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.0f}"


def rows_of(table: pa.Table) -> list[Row]:
    """Gives the rows of a small table."""
    return table.to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
