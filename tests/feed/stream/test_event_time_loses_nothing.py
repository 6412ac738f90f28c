"""A snapshot by event time delivers each row once, and no row earlier than one before, whoever wrote the statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import event, given, note
from hypothesis import strategies as st

from support.logs import Action, a_log, a_source, add, col, meta, protocol
from support.recorded import RECORDED, vector
from support.statistics_writers import WRITERS, text_of
from tablefeed.delta.partition_values import serialise
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.stream.offset_json import offset_from_json, offset_to_json
from tablefeed.feed.stream.source import StreamSource
from tablefeed.log.plan import Limits
from tablefeed.model.offset import Offset
from tablefeed.model.schema import Primitive
from tablefeed.store.memory import MemoryStore

NOON = datetime(2024, 1, 1, 12, 0, 0, 123_000)  # noqa: DTZ001 - wall clocks too
CLOSE = [NOON + timedelta(microseconds=us) for us in (-1000, -1, 0, 1, 999, 1000, 2000, 5_000_000)]
FAR = [datetime(1, 1, 1), datetime(1582, 10, 14), datetime(1969, 12, 31, 23, 59, 59, 999_999)]  # noqa: DTZ001
FAR += [datetime(9999, 12, 31), NOON + timedelta(days=30)]  # noqa: DTZ001
TIMES = st.none() | st.sampled_from(CLOSE + FAR) | st.integers(0, 100).map(lambda s: NOON + timedelta(seconds=s))

ROWS = pa.schema([("id", pa.int64())])
PHYSICAL = "col-at"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What is drawn of a table: the type of `at`, whether it partitions the table, and what is in each file."""

    kind: str
    partitioned: bool
    mapped: bool
    change_feed: bool
    files: Sequence[tuple[Sequence[datetime | None], Sequence[int], str | None, int]]
    """The times, the positions that are deleted, the statistics, and the size that the log tells."""


@st.composite
def statistics(draw: st.DrawFn, times: Sequence[datetime | None], kind: str, name: str) -> str | None:
    if draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from([None, "", "{", '{"numRecords":1}']))
    tree: dict[str, Any] = {"numRecords": len(times), "minValues": {}, "maxValues": {}, "nullCount": {}}
    present = [t.replace(tzinfo=UTC) if kind == "timestamp" else t for t in times if t is not None]
    if present:
        low, high = draw(st.sampled_from(WRITERS))(present, kind)
        for group, value in (("minValues", low), ("maxValues", high)):
            if value is not None and draw(st.integers(0, 9)):
                tree[group][name] = value
    if draw(st.integers(0, 3)):
        tree["nullCount"][name] = times.count(None)
    if draw(st.integers(0, 9)) == 0:
        tree.pop(draw(st.sampled_from(sorted(tree))))
    return text_of(tree)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    kind = draw(st.sampled_from(["timestamp", "timestamp_ntz"]))
    partitioned, mapped, change_feed = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    files = []
    for _ in range(draw(st.integers(0, 6))):
        times = draw(st.lists(TIMES, min_size=1, max_size=4))
        if partitioned:
            times = times[:1] * len(times)
        deleted = draw(st.lists(st.integers(0, len(times) - 1), unique=True, max_size=1))
        stats = draw(statistics(times, kind, PHYSICAL if mapped else "at"))
        files.append((times, deleted, stats, draw(st.integers(0, 100))))
    return Table(kind=kind, partitioned=partitioned, mapped=mapped, change_feed=change_feed, files=files)


def made(table: Table) -> tuple[TableLog, Mapping[int, datetime | None]]:
    """The table in memory, and the time of each row by its id."""
    store = MemoryStore("orders")
    zone = "UTC" if table.kind == "timestamp" else None
    name = PHYSICAL if table.mapped else "at"
    adds: list[Action] = []
    rows: dict[int, datetime | None] = {}
    for number, (times, deleted, stats, size) in enumerate(table.files):
        ids = [number * 10 + index for index in range(len(times))]
        rows |= {id_: times[i] for i, id_ in enumerate(ids) if i not in deleted}
        at = pa.array(times, pa.timestamp("us")).cast(pa.timestamp("us", zone))
        columns = {"col-id" if table.mapped else "id": pa.array(ids, pa.int64())}
        values: dict[str, str | None] = {}
        if table.partitioned:
            values[name] = serialise(at.cast(pa.int64())[0].as_py(), Primitive(table.kind))
        else:
            columns[name] = at
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns), sink)
        store.replace(f"f{number}", sink.getvalue().to_pybytes())
        more: dict[str, Any] = {"deletionVector": vector(*deleted)} if deleted else {}
        adds.append(add(f"f{number}", size=size, stats=stats, partitionValues=values, **more))
    return a_log(store, v0=[*_head(table), *adds]), rows


def _head(table: Table) -> list[Action]:
    features = ["deletionVectors", "timestampNtz", *(["columnMapping"] if table.mapped else [])]
    names: dict[str, dict[str, Any]] = {
        name: {"id": number, "physicalName": f"col-{name}"} if table.mapped else {}
        for number, name in enumerate(("id", "at"), 1)
    }
    return [
        protocol(3, 7, readerFeatures=features, writerFeatures=[*features, "changeDataFeed"]),
        meta(
            col("id", **names["id"]),
            col("at", table.kind, **names["at"]),
            partition_columns=["at"] if table.partitioned else [],
            configuration=RECORDED | ({"delta.columnMapping.mode": "name"} if table.mapped else {}),
        ),
    ]


def ids_between(source: StreamSource, start: Offset, end: Offset) -> list[int]:
    return [
        id_
        for task in source.tasks(start, end)
        for batch in read_task(task, ROWS, store=source._log.store)
        for id_ in batch["id"].to_pylist()
    ]


LIMITS = st.builds(
    Limits,
    files=st.none() | st.integers(1, 4),
    size_bytes=st.none() | st.integers(1, 200),
    rows=st.none() | st.integers(1, 8),
)


@given(tables(), st.lists(LIMITS, min_size=1, max_size=3), st.booleans())
def test_every_row_comes_once_and_none_before_one_that_is_earlier(
    table: Table,
    limits: list[Limits],
    counts_rows: bool,  # noqa: FBT001 - drawn
) -> None:
    log, rows = made(table)
    asked = Limits(rows=1) if counts_rows and not table.change_feed else Limits(files=1)

    def a_reader() -> StreamSource:
        return a_source(log, event_time_column="AT", limits=asked, change_feed=table.change_feed)

    position = a_reader().initial()
    batches: list[list[int]] = []
    while position.in_snapshot:
        source = a_reader()  # a restart before each batch, with other limits
        limit = limits[len(batches) % len(limits)]
        if asked.rows is None:
            limit = Limits(files=limit.files, size_bytes=limit.size_bytes)
        end = source.latest(position, limit)
        assert position.position < end.position
        assert offset_from_json(offset_to_json(end), url="") == end
        batches.append(ids_between(a_reader(), position, end))
        position = end
        assert len(batches) < 1000
    note(f"{batches}")
    event(f"batches: {min(len(batches), 5)}")

    assert Counter(id_ for batch in batches for id_ in batch) == Counter(rows.keys())
    times = [[rows[id_] for id_ in batch if rows[id_] is not None] for batch in batches]
    latest = datetime.min  # noqa: DTZ901 - wall clocks too
    for batch in times:
        assert all(time >= latest for time in batch if time is not None)
        latest = max([latest, *(time for time in batch if time is not None)])
    assert all(rows[id_] is not None for batch in batches[1:] for id_ in batch)
