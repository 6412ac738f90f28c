"""The files of a log of tracked metadata: which is the newest, who may write the next, what a damaged one is."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from support.faulty_store import Fault, FaultyStore
from support.logs import LONG_ID, a_table
from tablefeed.delta.tracked import TrackedMetadata, encode_entry
from tablefeed.errors import SchemaLogError, StoreError
from tablefeed.feed.stream.schema_log import SchemaLog, TrackedEntry, source_path
from tablefeed.feed.stream.schema_tracking import schema_log_of
from tablefeed.feed.stream.source_options import TrackingOptions
from tablefeed.model.actions import Version
from tablefeed.store import LocalStore
from tablefeed.store.memory import MemoryStore

DIRECTORY = "_schema_log_7f3c"


def tracked(version: int, *, table_id: str = "7f3c", previous: int | None = None) -> TrackedMetadata:
    return TrackedMetadata(
        table_id=table_id,
        version=Version(version),
        schema_string=LONG_ID,
        partition_columns=(),
        source_path="",
        previous=previous,
    )


def a_log(store: MemoryStore, *entries: TrackedMetadata) -> SchemaLog:
    for number, entry in enumerate(entries):
        store.replace(f"{DIRECTORY}/{number}", encode_entry(entry))
    return SchemaLog(store, DIRECTORY, table_id="7f3c")


def test_the_newest_entry_is_that_of_the_highest_number_whatever_lies_beside_it() -> None:
    store = MemoryStore("tracked")
    log = a_log(store, *(tracked(version) for version in range(11)))
    for other in (".10.crc", ".11.4d1f.tmp", "11.tmp", "_SUCCESS"):
        store.replace(f"{DIRECTORY}/{other}", b"")

    assert log.newest() == TrackedEntry(number=10, metadata=tracked(10))
    assert a_log(MemoryStore("empty")).newest() is None


def test_an_entry_is_written_once_and_the_second_writer_is_told_what_to_do() -> None:
    log = a_log(MemoryStore("tracked"), tracked(0))
    first = log.newest()

    assert log.add(tracked(3), after=first).number == 1
    with pytest.raises(SchemaLogError, match=r"DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT.*streamingSourceTrackingId"):
        log.add(tracked(4), after=first)
    assert log.newest() == TrackedEntry(number=1, metadata=tracked(3))


def test_entries_that_replace_and_that_follow_one_another_leave_each_what_it_followed() -> None:
    log = a_log(MemoryStore("tracked"), tracked(0))
    first = log.newest()
    assert first is not None
    assert log.before(first) is None

    second = log.add(tracked(1), after=first)
    third = log.replace(second, tracked(2))
    fourth = log.replace(third, tracked(3))
    fifth = log.add(tracked(4), after=fourth)
    sixth = log.replace(fifth, tracked(5))

    assert [each.metadata.previous for each in (second, third, fourth, fifth, sixth)] == [None, 0, 0, None, 3]
    assert [log.before(each) for each in (second, third, fourth, fifth, sixth)] == [first, first, first, fourth, fourth]
    assert log.newest() == sixth


def test_an_entry_whose_put_was_not_answered_is_there_for_the_next_query() -> None:
    inner = MemoryStore("tracked")
    store = FaultyStore(inner, faults=(Fault(operation="put_if_absent", at=1, when="after"),))

    with pytest.raises(StoreError):
        SchemaLog(store, DIRECTORY, table_id="7f3c").add(tracked(0), after=None)

    assert a_log(inner).newest() == TrackedEntry(number=0, metadata=tracked(0))


def test_an_entry_of_another_table_is_refused() -> None:
    log = a_log(MemoryStore("tracked"), tracked(0, table_id="another"))

    with pytest.raises(SchemaLogError, match=r"DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID.*another"):
        log.newest()


def test_an_entry_that_is_gone_is_missed_where_a_later_one_follows_it() -> None:
    store = MemoryStore("tracked")
    log = a_log(store, tracked(0), tracked(3))
    store.delete(f"{DIRECTORY}/0")
    newest = log.newest()
    assert newest is not None

    with pytest.raises(SchemaLogError, match=r"DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED.*no entry 0"):
        log.before(newest)


@pytest.mark.parametrize(("tracking_id", "suffix"), [(None, ""), ("one", "_one")])
def test_each_table_and_each_source_has_a_folder_of_its_own(
    tmp_path: Path, tracking_id: str | None, suffix: str
) -> None:
    table = a_table()
    options = TrackingOptions(location=str(tmp_path), tracking_id=tracking_id)
    log = schema_log_of(table, replace(table.load().metadata, table_id="7f3c"), options)

    log.add(tracked(0), after=None)

    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()] == [
        f"_schema_log_7f3c{suffix}/0"
    ]


@pytest.mark.parametrize("below", ["", "/tracked", "/tracked/orders"])
@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_stream_is_named_as_delta_spark_names_it_where_its_checkpoint_is_found(
    tmp_path: Path, scheme: str, below: str
) -> None:
    (tmp_path / "metadata").write_text(json.dumps({"id": "a-query"}), encoding="utf-8")

    assert source_path(f"{scheme}{tmp_path}{below}", {}) == f"file:{tmp_path}/sources/0"


@pytest.mark.parametrize("metadata", [None, "", "{}", "[]", '{"id":7}'])
def test_a_folder_without_a_querys_metadata_is_no_checkpoint(tmp_path: Path, metadata: str | None) -> None:
    if metadata is not None:
        (tmp_path / "metadata").write_text(metadata, encoding="utf-8")

    assert source_path(f"{tmp_path}/tracked", {}) == ""


def test_a_checkpoint_that_was_deleted_under_a_stream_does_not_come_back_with_a_later_entry(tmp_path: Path) -> None:
    log = SchemaLog(LocalStore(str(tmp_path)), DIRECTORY, table_id="7f3c")
    first = log.add(tracked(0), after=None)
    shutil.rmtree(tmp_path)

    with pytest.raises(StoreError):
        log.add(tracked(3), after=first)

    assert not tmp_path.exists()
