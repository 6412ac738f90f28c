"""How far a query is behind that does not run, from its offset; and the files that Spark keeps of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from tablefeed.errors import OffsetError, TablefeedError
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.stream.resting_lag import resting_lag
from tablefeed.feed.stream.spark_checkpoint import SparkCheckpoint
from tablefeed.model.actions import Version
from tablefeed.model.offset import EventTime, Offset
from tablefeed.store import open_store
from tablefeed.store.memory import MemoryStore


def a_table(path: Path, versions: int) -> TableLog:
    for number in range(versions):
        tablefeed.append(path, pa.table({"id": [number]}))
    return open_log(str(path), {})


def age_ms(log: TableLog, version: int) -> int:
    head = log.head(Version(version))
    assert head is not None
    return head.modified_ms


def test_a_query_in_its_snapshot_is_as_old_as_the_commit_of_the_snapshot(tmp_path: Path) -> None:
    log = a_table(tmp_path / "t", 2)
    at = Offset(table_id=log.load().metadata.table_id, version=Version(1), file_index=0, in_snapshot=True)

    assert resting_lag(log, at, now_ms=age_ms(log, 1) + 60_000).seconds_behind == 60.0


def test_what_a_snapshot_by_event_time_has_left_is_not_known_also_with_later_commits(tmp_path: Path) -> None:
    log = a_table(tmp_path / "t", 3)
    found = resting_lag(
        log,
        Offset(
            table_id=log.load().metadata.table_id,
            version=Version(1),
            in_snapshot=True,
            event_time=EventTime(column="id", before_us=5),
        ),
        now_ms=0,
    )

    assert (found.versions_behind, found.files_outstanding, found.bytes_outstanding) == (2, None, None)


def test_an_offset_of_another_table_is_refused(tmp_path: Path) -> None:
    log, other = a_table(tmp_path / "t", 1), a_table(tmp_path / "other", 1)
    at = Offset(table_id=other.load().metadata.table_id, version=Version(0), file_index=0)

    with pytest.raises(TablefeedError, match="Name the table that the query reads"):
        resting_lag(log, at, now_ms=0)


@pytest.mark.parametrize(("text", "found"), [("v2\n{}\n-\n", "'v2'"), ("", "nothing")])
def test_a_file_of_offsets_of_another_version_is_refused_by_its_first_line(
    text: str, found: str, tmp_path: Path
) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(text)

    with pytest.raises(OffsetError, match=rf"begins with {found}, but only version 'v1'"):
        SparkCheckpoint(open_store(tmp_path)).batch(0)


@pytest.mark.parametrize("text", ["v1", "v1\n"])
def test_a_file_of_offsets_that_is_cut_off_says_so(text: str) -> None:
    store = MemoryStore("checkpoint")
    store.replace("offsets/0", text.encode())

    with pytest.raises(OffsetError, match=r"offsets/0 .* is cut off after its first line"):
        SparkCheckpoint(store).batch(0)


def test_a_line_of_offsets_ends_where_java_ends_it() -> None:
    store = MemoryStore("checkpoint")
    topic = '{"a\u2028b\u0085c\x0cd":{"0":5}}'
    store.replace("offsets/0", f"v1\r\n{{}}\n{topic}\n-\n".encode())

    batch = SparkCheckpoint(store).batch(0)

    assert (batch.about, batch.ends) == ("{}", (topic, None))
    assert batch.to_text() == f"v1\n{{}}\n{topic}\n-"
