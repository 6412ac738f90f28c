"""Every IndexTables table of another writer: its rows, its versions and its feed, whichever generation wrote its log.

Their rows and versions are in tests/corpus/recordings (README.md, `*.expected_final.jsonl`) and, of the corpus, here.
"""

from __future__ import annotations

import base64
import json
import math
import shutil
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablefeed
from support.micro_batches import Batch, SparkModel
from support.recordings import index_table

FLAVOURS = ("it053_events_avro", "it053_events_json", "it053_events_json_nockpt", "itnative_events")
EVENTS = {
    (1, "insert"): 5,
    (2, "insert"): 5,
    (3, "insert"): 4,
    (5, "insert"): 3,
    (6, "delete"): 5,
    (7, "delete"): 12,
    (7, "insert"): 4,
    (8, "insert"): 2,
}
"""Rows by version and change: 4 merges splits, 6 drops a partition, 7 overwrites the table."""

FEEDS: dict[str, dict[tuple[int, str], int]] = {
    **dict.fromkeys(FLAVOURS, EVENTS),
    "it053_json_skip": {(5, "insert"): 3, (6, "insert"): 3},
    "it053_tomb_avro": {**{(v, "insert"): 2 for v in (*range(1, 13), 14)}, (13, "delete"): 2},
    "it053_types_row": {(1, "insert"): 3},
    "upstream_v0.5.4/01_single_write": {(1, "insert"): 3},
    "upstream_v0.5.4/03_with_removes": {
        **{(v, "insert"): 5 for v in (1, 2, 3)},
        (4, "delete"): 15,
        (4, "insert"): 1,
    },
    "upstream_v0.5.4/05_many_transactions": {(v, "insert"): 3 for v in range(1, 16)},
    "upstream_v0.5.4/07_two_writes_no_checkpoint": {(1, "insert"): 3, (2, "insert"): 3},
    "upstream_v0.5.4/09_partitioned_multi_append": {(v, "insert"): 2 for v in range(1, 6)},
    "upstream_v0.5.4/11_mixed_operations": {
        (1, "insert"): 1,
        (2, "insert"): 1,
        (3, "delete"): 2,
        (3, "insert"): 1,
        (4, "insert"): 1,
    },
    "upstream_v0.5.4/13_after_purge": {(v, "insert"): 3 for v in range(1, 6)},
    "upstream_v0.5.4/15_drop_then_purge": {**{(v, "insert"): 3 for v in (1, 2, 3)}, (4, "delete"): 3},
    "upstream_v0.5.4/17_truncated_log": {(v, "insert"): 5 for v in range(1, 9)},
}


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def as_the_jvm_says(value: Any) -> Any:
    """A value as the expected rows have it: Spark's JSON, in UTC and milliseconds, maps as objects."""
    match value:
        case float() if math.isnan(value) or math.isinf(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case [(str(), _), *_]:
            return dict(value)
    return value


@pytest.mark.parametrize("name", [name for name in FEEDS if name.startswith("it053")])
def test_the_newest_rows_are_those_that_the_jvm_reads(index_tables: Path, name: str) -> None:
    lines = (index_tables / f"{name}.expected_final.jsonl").read_text().splitlines()
    expected = [json.loads(line) for line in lines]
    table = tablefeed.open_table(index_tables / name).to_arrow()
    known = [column for column in table.column_names if column != "st"]  # which the JVM itself cannot show

    found = [
        {k: as_the_jvm_says(v) for k, v in row.items() if v is not None} for row in table.select(known).to_pylist()
    ]
    for row in (*found, *expected):
        row.update({"mp": {}} if row.get("mp") == [] else {})
    assert sorted(found, key=json.dumps) == sorted(
        expected, key=lambda row: json.dumps({k: row[k] for k in known if k in row})
    )


@pytest.mark.parametrize("name", FEEDS)
def test_the_change_feed_tells_what_each_version_did(index_tables: Path, name: str) -> None:
    first = 5 if name == "it053_json_skip" else None
    feed = tablefeed.changes(index_table(index_tables, name), start_version=first).read_all()

    told = zip(feed["_commit_version"].to_pylist(), feed["_change_type"].to_pylist(), strict=True)
    assert dict(Counter(told)) == FEEDS[name]


@pytest.mark.parametrize("name", [name for name in FEEDS if name != "it053_json_skip"])  # whose begin is truncated away
def test_a_table_is_its_inserts_without_its_deletes_and_counts_them(index_tables: Path, name: str) -> None:
    table = tablefeed.open_table(index_table(index_tables, name))
    feed = tablefeed.changes(index_table(index_tables, name)).read_all()
    columns = table.schema.names
    inserted, deleted = (
        Counter(rows_of(feed.filter(pc.field("_change_type") == kind).select(columns))) for kind in ("insert", "delete")
    )

    assert Counter(rows_of(table.to_arrow())) == inserted - deleted
    assert sum(sum(batch["num_records"].to_pylist()) for batch in table.files()) == table.to_arrow().num_rows


@pytest.mark.parametrize("version", range(1, 9))
def test_all_flavours_of_the_log_have_the_same_rows_at_each_version(index_tables: Path, version: int) -> None:
    read = {name: rows_of(tablefeed.open_table(index_tables / name, version=version).to_arrow()) for name in FLAVOURS}

    assert len(read["it053_events_json"]) == [5, 10, 14, 14, 17, 12, 4, 6][version - 1]
    assert all(rows == read["it053_events_json"] for rows in read.values())


@pytest.mark.parametrize("name", FLAVOURS)
def test_commit_times_come_of_the_files_or_the_state_and_are_in_order(index_tables: Path, name: str) -> None:
    told = list(tablefeed.open_table(index_tables / name).history())
    times = [each.committed_at_ms for each in told]

    assert [each.version for each in told] == list(range(8, -1, -1))
    # Of its first split it says an earlier time than of itself: the writer of 0 came after that of its file.
    assert times[:-1] == sorted(times[:-1], reverse=True)
    of_changes = tablefeed.changes(index_tables / name, start_version=8).read_all()["_commit_timestamp"][0].as_py()
    assert of_changes == datetime.fromtimestamp(times[0] / 1000, UTC)
    at_five = datetime.fromtimestamp(times[3] / 1000, UTC)
    assert tablefeed.open_table(index_tables / name, timestamp=at_five).version == 5


@pytest.mark.parametrize("name", FLAVOURS)
def test_follow_gives_each_commit(index_tables: Path, name: str) -> None:
    commits = tablefeed.follow(index_tables / name, after=0)

    found = [next(commits) for _ in range(8)]
    assert [commit.version for commit in found] == list(range(1, 9))
    assert [any(add.data_change for add in commit.added) or not commit.added for commit in found] == [True] * 3 + [
        False
    ] + [True] * 4


@pytest.mark.parametrize("name", FLAVOURS)
@pytest.mark.parametrize(
    "condition",
    [
        pc.field("id") > 4,
        pc.field("id") == 10,
        pc.field("name") < "user_2",
        pc.field("score") >= 13.5,
        pc.field("day") == "2024-02-01",
        pc.field("flag"),
    ],
    ids=str,
)
def test_a_filter_gives_the_same_rows_as_reading_all(index_tables: Path, name: str, condition: pc.Expression) -> None:
    table = tablefeed.open_table(index_tables / name, version=5)

    assert rows_of(table.to_arrow(filter=condition)) == rows_of(table.to_arrow().filter(condition))


@pytest.mark.parametrize("name", FLAVOURS)
@pytest.mark.parametrize("feed", ["rows", "changes"])
def test_a_stream_delivers_each_version_once_over_restarts(
    index_tables: Path, tmp_path: Path, name: str, feed: str
) -> None:
    options = {"startingVersion": "0", "maxFilesPerTrigger": "1"}
    options |= {"readChangeFeed": "true"} if feed == "changes" else {"skipChangeCommits": "true"}
    batches: dict[int, pa.Table] = {}

    def keep(batch: Batch, number: int) -> None:
        is_new = number not in batches
        batches[number] = batch.rows
        if is_new and number % 2:
            raise InterruptedError

    def run() -> bool:
        frame = SparkModel().readStream.format("tablefeed").options(**options).load(str(index_tables / name))
        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
        try:
            writer.trigger(availableNow=True).start()
        except InterruptedError:
            return False
        return True

    runs = 1
    while not run():
        runs += 1
    assert runs > 2
    rows = pa.concat_tables(batches.values())
    if feed == "changes":
        told = zip(rows["_commit_version"].to_pylist(), rows["_change_type"].to_pylist(), strict=True)
        assert dict(Counter(told)) == EVENTS
    else:
        wanted = tablefeed.appends(index_tables / name, skip_change_commits=True).read_all()
        assert rows_of(rows) == rows_of(wanted)
        assert rows.num_rows == 5 + 5 + 4 + 3 + 2


@pytest.mark.parametrize("name", FLAVOURS)
def test_a_stream_begins_with_the_table_and_goes_on_with_its_changes(
    index_tables: Path, tmp_path: Path, name: str
) -> None:
    rows: list[pa.Table] = []
    frame = SparkModel().readStream.format("tablefeed").options(where="id >= 200").load(str(index_tables / name))
    writer = frame.writeStream.foreachBatch(lambda batch, _: rows.append(batch.rows))
    writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()

    assert rows_of(pa.concat_tables(rows)) == rows_of(tablefeed.open_table(index_tables / name).to_arrow())


@pytest.mark.parametrize("name", FEEDS)
def test_every_table_takes_its_own_rows_once_more(index_tables: Path, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "table"
    shutil.copytree(index_table(index_tables, name), copy)
    rows = tablefeed.open_table(copy).to_arrow()

    version = tablefeed.append(copy, rows).version

    assert rows_of(tablefeed.open_table(copy).to_arrow()) == sorted(2 * rows_of(rows))
    feed = tablefeed.changes(copy, start_version=version).read_all()
    assert rows_of(feed.select(rows.column_names)) == rows_of(rows)


def test_an_indextables_table_is_not_optimized_or_vacuumed(index_tables: Path, tmp_path: Path) -> None:
    copy = tmp_path / "table"
    shutil.copytree(index_tables / FLAVOURS[0], copy)
    before = sorted(copy.rglob("*"))

    for refused in (lambda: tablefeed.optimize(copy), lambda: tablefeed.vacuum(copy, dry_run=True)):
        with pytest.raises(tablefeed.TablefeedError, match="INDEXTABLES_MAINTENANCE_UNSUPPORTED"):
            refused()
    assert sorted(copy.rglob("*")) == before


def test_a_split_that_was_purged_is_named(index_tables: Path, tmp_path: Path) -> None:
    copy = tmp_path / "table"
    shutil.copytree(index_tables / FLAVOURS[0], copy)
    for split in copy.rglob("*.split"):
        split.unlink()

    with pytest.raises(tablefeed.TablefeedError, match=r"The split day=.* is gone, but the log still names it"):
        tablefeed.open_table(copy).to_arrow()


def test_what_was_truncated_away_is_refused_by_its_version(index_tables: Path) -> None:
    with pytest.raises(tablefeed.TablefeedError) as caught:
        tablefeed.changes(index_tables / "it053_json_skip", start_version=1).read_all()
    assert "1" in str(caught.value)
    assert tablefeed.changes(index_tables / "it053_json_skip").read_all().num_rows == 6
