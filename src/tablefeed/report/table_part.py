"""What a page shows of a table: its size, its health, its newest commits, its files and partitions, its writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.feed.api.damage import newest_readable
from tablefeed.feed.api.health import Finding, diagnose
from tablefeed.feed.api.numbers import LiveFiles, commits_of, live_files_of
from tablefeed.feed.api.table import Table
from tablefeed.report.figures import (
    MOST_BARS,
    MOST_ROWS,
    Mark,
    Plot,
    bar_plot,
    column_plot,
    folded,
    round_count,
    shortened,
    with_table,
)
from tablefeed.report.history_sections import Row, history_sections, rows_of, writer_sections
from tablefeed.report.part import Part, Section, name_of
from tablefeed.wording.elements import Markup, element
from tablefeed.wording.words import moment, several, size

_KINDS = {"parquet": "Delta table", "indextables": "IndexTables table"}


def table_part(url: str, *, commits: int, storage_options: Mapping[str, str], ids: str = "") -> Part:
    """Gives the part about the table at `url`, with the newest `commits` of its log. Raises as `newest_readable`.

    `ids` begins the names of its plots, which must differ on one page.
    """
    problems = list[str]()
    table = newest_readable(url, storage_options=storage_options, problems=problems)
    history = commits_of(table, commits, problems=problems)
    files = live_files_of(table, by=table.partition_columns)
    damage = [Finding(topic="log", status="problem", text=problem) for problem in problems]
    found = [each for each in diagnose(url, storage_options=storage_options) if each.text not in " ".join(problems)]
    findings = [*damage, *found, _small_files(files)]
    return Part(
        kind=_KINDS.get(table.metadata.format_provider, "Table"),
        name=table.metadata.name or name_of(table.url),
        where=table.url,
        tiles=_tiles(table, history, files),
        sections=(
            _health(findings),
            *history_sections(history, ids),
            _sizes(files, ids),
            _partitions(files, ids),
            *writer_sections(history, ids),
        ),
        problems=tuple(problems),
    )


def _tiles(table: Table, history: pa.Table, files: LiveFiles) -> tuple[tuple[str, str, str], ...]:
    totals = files.totals
    rows = "not known" if totals["rows"] is None else f"{totals['rows']:,}"
    average = f"{size(totals['size_bytes'] // totals['files'])} on average" if totals["files"] else ""
    newest = rows_of(history.slice(0, 1))
    last = newest[0] if newest else None
    return (
        ("version", f"{table.version:,}", f"id {table.table_id[:8]}"),
        ("rows", rows, "" if totals["rows"] is not None else _why_unknown(totals)),
        ("size", size(totals["size_bytes"]), ""),
        ("files", f"{totals['files']:,}", average),
        ("last commit", *_day_and_time(last)),
    )


def _day_and_time(commit: Row | None) -> tuple[str, str]:
    if commit is None:
        return "none", ""
    day, _, time = moment(commit["committed_at_ms"])[:16].partition(" ")
    return day, f"{time}, {shortened(commit['operation'])}"


def _why_unknown(totals: Row) -> str:
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


# --- files -----------------------------------------------------------------------------------------------------------


def _sizes(files: LiveFiles, ids: str) -> Section:
    totals, heading = files.totals, "File sizes"
    if not totals["files"]:
        return Section(heading=heading, says="The table has no files.")
    found = {each["size_class"]: each for each in rows_of(files.by_size())}
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
    rows = rows_of(found.slice(0, MOST_ROWS))
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
            for each in rows[:MOST_BARS]
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


def _partition(row: Row, by: Sequence[str]) -> str:
    values = (row[str(index)] for index in range(len(by)))
    return "/".join(f"{name}={'null' if value is None else value}" for name, value in zip(by, values, strict=True))
