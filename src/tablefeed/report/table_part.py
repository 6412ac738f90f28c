"""What a page shows of a table: its size, its health, its newest commits, its files and partitions, its writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.feed.api.health import Finding, diagnose
from tablefeed.feed.api.numbers import LiveFiles, commits_of, live_files_of
from tablefeed.feed.api.table import Table, open_table
from tablefeed.report.buckets import Buckets, buckets
from tablefeed.report.figures import (
    MOST_ROWS,
    SERIES,
    Mark,
    Plot,
    bar_plot,
    column_plot,
    data_table,
    folded,
    round_count,
    shortened,
    with_table,
)
from tablefeed.report.part import Part, Section, name_of
from tablefeed.wording.elements import Markup, element
from tablefeed.wording.words import moment, several, size

_KINDS = {"parquet": "Delta table", "indextables": "IndexTables table"}
_MOST_BARS = 12
_Row = dict[str, Any]  # a row of Arrow in Python


def table_part(url: str, *, commits: int, storage_options: Mapping[str, str], ids: str = "") -> Part:
    """Gives the part about the table at `url`, with the newest `commits` of its log. Raises as `open_table`.

    `ids` begins the names of its plots, which must differ on one page.
    """
    table = open_table(url, storage_options=storage_options)
    history, files = commits_of(table, commits), live_files_of(table, by=table.partition_columns)
    findings = [*diagnose(url, storage_options=storage_options), _small_files(files)]
    return Part(
        kind=_KINDS.get(table.metadata.format_provider, "Table"),
        name=table.metadata.name or name_of(table.url),
        where=table.url,
        tiles=_tiles(table, history, files),
        sections=(
            _health(findings),
            *_over_time(history, ids),
            *_operations(history, ids),
            _sizes(files, ids),
            _partitions(files, ids),
            *_writers(history, ids),
        ),
    )


def _tiles(table: Table, history: pa.Table, files: LiveFiles) -> tuple[tuple[str, str, str], ...]:
    totals = files.totals
    rows = "not known" if totals["rows"] is None else f"{totals['rows']:,}"
    average = f"{size(totals['size_bytes'] // totals['files'])} on average" if totals["files"] else ""
    newest = _rows(history.slice(0, 1))
    last = newest[0] if newest else None
    return (
        ("version", f"{table.version:,}", f"id {table.table_id[:8]}"),
        ("rows", rows, "" if totals["rows"] is not None else _why_unknown(totals)),
        ("size", size(totals["size_bytes"]), ""),
        ("files", f"{totals['files']:,}", average),
        ("last commit", *_day_and_time(last)),
    )


def _day_and_time(commit: _Row | None) -> tuple[str, str]:
    if commit is None:
        return "none", ""
    day, _, time = moment(commit["committed_at_ms"])[:16].partition(" ")
    return day, f"{time}, {shortened(commit['operation'])}"


def _why_unknown(totals: _Row) -> str:
    if totals["rows_unknown"]:
        return f"no statistics for {several(totals['rows_unknown'], 'file')}"
    return f"deletion vectors for {several(totals['with_deletion_vector'], 'file')}"


# --- health ----------------------------------------------------------------------------------------------------------


def _small_files(files: LiveFiles) -> Finding:
    small, crowded = files.totals["small_files"], files.crowded()
    text = f"{small:,} of {several(files.totals['files'], 'file')} smaller than {size(files.small_bytes)}"
    if not crowded:
        return Finding(topic="small files", status="ok", text=text)
    text += f"; {several(crowded, 'partition')} with 50 of them or more" if files.by else ""
    return Finding(topic="small files", status="warning", text=text, remedy="Run tablefeed optimize.")


def _health(findings: Sequence[Finding]) -> Section:
    wrong = sorted((each for each in findings if each.status != "ok"), key=lambda each: each.status)
    well = [each for each in findings if each.status == "ok"]
    says = f"{len(wrong):,} of {len(findings):,} checks found something." if wrong else "No problem and no warning."
    rest = folded(f"{several(len(well), 'check')} found nothing wrong", _findings(well))
    return Section(heading="Health", says=says, content=[_findings(wrong), rest], wide=True)


def _findings(found: Sequence[Finding]) -> Markup:
    items = [
        element(
            "li",
            element("span", each.status, class_=f"badge {each.status}"),
            element(
                "div",
                element("p", element("strong", each.topic), f": {' '.join(each.text.split())}"),
                element("p", each.remedy, class_="remedy") if each.remedy else None,
            ),
        )
        for each in found
    ]
    return element("ul", items, class_="health") if items else Markup("")


# --- commits ---------------------------------------------------------------------------------------------------------


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
    for each in _rows(grouped.group_by(["span", "operation"]).aggregate([([], "count_all")])):
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
    rows = _rows(found.sort_by([("version_count", "descending"), ("operation", "ascending")]).slice(0, MOST_ROWS))
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
    shown = rows[:_MOST_BARS]
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


# --- files -----------------------------------------------------------------------------------------------------------


def _sizes(files: LiveFiles, ids: str) -> Section:
    totals, heading = files.totals, "File sizes"
    if not totals["files"]:
        return Section(heading=heading, says="The table has no files.")
    found = {each["size_class"]: each for each in _rows(files.by_size())}
    none = {"files": 0, "size_bytes": 0}
    classes = [(n, found.get(n, none)) for n in range(min(found), max(found) + 1)]
    says = f"{several(totals['files'], 'file')} of {size(totals['least_bytes'])} to {size(totals['most_bytes'])}."
    plot = Plot(
        name=f"{ids}sizes",
        title="File sizes",
        says=f"Histogram with a column for each power of two. {says}",
        series=("files",),
        marks=[
            Mark(
                label=_class(n),
                values=(float(each["files"]),),
                tip=f"{_class(n)}: {several(each['files'], 'file')}, {size(each['size_bytes'])} in all",
            )
            for n, each in classes
        ],
        shown=lambda value: f"{value:,.0f}",
    )
    ends = [_bound(classes[0][0]), _bound(classes[-1][0] + 1)]
    rows = [[_class(n), f"{each['files']:,}", size(each["size_bytes"])] for n, each in classes if each["files"]]
    drawn = column_plot(plot, top=round_count, labels=ends)
    content = with_table(drawn, "file sizes", ("size", "files", "in all"), rows)
    return Section(heading=heading, says=says, content=content)


def _class(exponent: int) -> str:
    return f"{_bound(exponent)} to {_bound(exponent + 1)}"


def _bound(exponent: int) -> str:
    return size(0 if exponent == 0 else 1 << exponent).replace(".0 ", " ")


def _partitions(files: LiveFiles, ids: str) -> Section:
    heading = "Partitions"
    if not files.by:
        return Section(heading=heading, says="The table is not partitioned.")
    found = files.by_partition()
    if not found.num_rows:
        return Section(heading=heading, says=f"By {', '.join(files.by)}. The table has no files.")
    rows = _rows(found.slice(0, MOST_ROWS))
    median = pc.quantile(found["size_bytes"], q=0.5)[0].as_py()
    skew = f"The largest has {rows[0]['size_bytes'] / median:,.1f} times the bytes of the median." if median else ""
    hidden = found.num_rows - len(rows)
    by = ", ".join(map(shortened, files.by))
    says = f"{found.num_rows:,} partitions by {by}. {skew}" if found.num_rows > 1 else f"One partition, by {by}."
    plot = Plot(
        name=f"{ids}partitions",
        title="The largest partitions",
        says=says,
        series=("bytes",),
        marks=[
            Mark(
                label=_partition(each, files.by),
                values=(float(each["size_bytes"]),),
                tip=f"{shortened(_partition(each, files.by))}: {size(each['size_bytes'])} in "
                f"{several(each['files'], 'file')}",
            )
            for each in rows[:_MOST_BARS]
        ],
        shown=lambda value: size(int(value)),
    )
    content = with_table(
        bar_plot(plot),
        f"the largest partitions; {hidden:,} others are smaller" if hidden else "partitions",
        ("partition", "size", "files", "small files", "rows"),
        [
            [
                _partition(each, files.by),
                size(each["size_bytes"]),
                f"{each['files']:,}",
                f"{each['small_files']:,}",
                "not known" if each["rows_unknown"] else f"{each['rows']:,}",
            ]
            for each in rows
        ],
    )
    return Section(heading=heading, says=says, content=content)


def _partition(row: _Row, by: Sequence[str]) -> str:
    values = (row[str(index)] for index in range(len(by)))
    return "/".join(f"{name}={'null' if value is None else value}" for name, value in zip(by, values, strict=True))


# --- writers ---------------------------------------------------------------------------------------------------------


def _writers(history: pa.Table, ids: str) -> list[Section]:
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
    rows = _rows(found.slice(0, MOST_ROWS))
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
            for each in rows[:_MOST_BARS]
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
        for row in _rows(found.slice(0, MOST_ROWS))
    ]
    says = "Queries and loaders that record which of their batches are committed."
    headings = ("appId", "commits", "last txn version", "last version")
    return [Section(heading="Transactions", says=says, content=data_table("transactions", headings, rows))]


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.0f}"


def _rows(table: pa.Table) -> list[_Row]:
    return table.to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
