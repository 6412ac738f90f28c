"""What a page shows of a streaming query, from its checkpoint: how far it is behind, and how long its batches took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from statistics import median

from tablefeed.errors import TablefeedError
from tablefeed.feed.api.query_checkpoint import BatchTime, QueryBatch, QueryCheckpoint
from tablefeed.report.figures import MOST_ROWS, Mark, Plot, column_plot, data_table, folded, round_number
from tablefeed.report.part import Part, Section, name_of
from tablefeed.wording.words import moment, seconds, several, size

_Tile = tuple[str, str, str]


def query_part(query: QueryCheckpoint, tables: Sequence[str], storage_options: Mapping[str, str]) -> Part:
    """Gives the part about the query. Its lag is measured beside `tables`, those that it reads."""
    times = query.times()[-MOST_ROWS:]
    lag_tiles, lag = _lag(query, tables, storage_options)
    return Part(
        kind="Streaming query",
        name=name_of(query.url),
        where=query.url,
        tiles=(*_tiles(query, times), *lag_tiles),
        sections=(lag, _batches(query, times)),
    )


def _tiles(query: QueryCheckpoint, times: Sequence[BatchTime]) -> list[_Tile]:
    newest, took = times[-1], [each.seconds for each in times if each.seconds is not None]
    done = [each.done_at_ms for each in times if each.done_at_ms is not None]
    return [
        ("query", _query_id(query)[:8], ""),
        ("newest batch", f"{newest.batch_id:,}", "done" if newest.done_at_ms is not None else "not done"),
        ("time of a batch", seconds(median(took)) if took else "not known", "the median"),
        ("last batch done", *(moment(max(done))[:16].split(" ", 1) if done else ("none", ""))),
    ]


def _query_id(query: QueryCheckpoint) -> str:
    try:
        return query.query_id
    except TablefeedError:
        return "not known"


def _lag(
    query: QueryCheckpoint, tables: Sequence[str], storage_options: Mapping[str, str]
) -> tuple[list[_Tile], Section]:
    heading = "How far it is behind"
    try:
        found = query.lag(tables, storage_options)
    except TablefeedError as error:
        return [("versions behind", "not known", "")], Section(heading=heading, says=error.message, wide=True)
    rows = [
        [
            str(source),
            each.url,
            f"{each.versions_behind:,}",
            "not known" if each.seconds_behind is None else seconds(each.seconds_behind),
            "not known" if each.files_outstanding is None else f"{each.files_outstanding:,}",
            "not known" if each.bytes_outstanding is None else size(each.bytes_outstanding),
            "" if each.snapshot_percent is None else f"{each.snapshot_percent:.1f} %",
        ]
        for source, each in found.items()
    ]
    headings = ("source", "table", "versions behind", "behind", "files to deliver", "bytes to deliver", "snapshot")
    versions = max((each.versions_behind for each in found.values()), default=0)
    ages = [each.seconds_behind for each in found.values()]
    age = None if None in ages else max((a for a in ages if a is not None), default=0.0)
    says = (
        "Everything that the tables have is delivered."
        if not versions
        else f"Not delivered: {several(versions, 'version')}; the oldest was committed "
        f"{'at a time that is not known' if age is None else f'{seconds(age)} ago'}."
    )
    table = data_table("how far each source is behind", headings, rows, texts=2)
    tile = ("versions behind", f"{versions:,}", "" if age is None or not versions else seconds(age))
    return [tile], Section(heading=heading, says=says, content=table, wide=True)


def _batches(query: QueryCheckpoint, times: Sequence[BatchTime]) -> Section:
    took = [each.seconds for each in times if each.seconds is not None]
    slowest = f" The slowest took {seconds(max(took))}." if took else ""
    says = f"From the plan of each batch to its end, by the times of the files in the checkpoint.{slowest}"
    plot = Plot(
        name="batches",
        title="Batch times",
        says=f"A column for each batch. {says}",
        series=("seconds",),
        marks=[
            Mark(
                label=str(each.batch_id),
                values=(each.seconds or 0.0,),
                tip=f"batch {each.batch_id:,}, planned {moment(each.planned_at_ms)[:19]}: {_took(each)}",
            )
            for each in times
        ],
        shown=lambda value: seconds(value) if value else "0",
    )
    labels = [f"batch {n:,}" for n in dict.fromkeys((times[0].batch_id, times[-1].batch_id))]
    ends = {each.batch_id: each for each in _planned(query, len(times))}
    rows = [
        [f"{each.batch_id}", _end(ends.get(each.batch_id)), moment(each.planned_at_ms)[:19], _took(each)]
        for each in reversed(times)
    ]
    drawn = column_plot(plot, top=round_number, labels=labels)
    table = data_table("batch times, the newest first", ("batch", "after it", "planned", "took"), rows, texts=2)
    return Section(heading="Batch times", says=says, content=[drawn, folded("Table: batch times", table)], wide=True)


def _planned(query: QueryCheckpoint, count: int) -> list[QueryBatch]:
    """The newest batches, up to one that cannot be read."""
    found: list[QueryBatch] = []
    with suppress(TablefeedError):
        found.extend(islice(query.batches(), count))
    return found


def _end(batch: QueryBatch | None) -> str:
    if batch is None:
        return "not known"
    return "; ".join(end.position or "not a table" for end in batch.ends)


def _took(each: BatchTime) -> str:
    return "not done" if each.seconds is None else seconds(each.seconds)
