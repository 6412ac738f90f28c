"""A stream and its table in their plain course (DeltaSourceSuite)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from scenarios.streams import append, commit, grown, stream
from support.logs import add, metadata, protocol
from support.recorded import data_file, schema
from tablefeed.errors import IllegalOptionError, OffsetError, UnsupportedFeatureError


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def test_basic(table: Path) -> None:
    commit(table, 0, protocol(), metadata(schema(("value", "string"))))
    query = stream(table)
    live = query.start()
    append(table, "1", "2", "3")
    live.processAllAvailable()
    assert query.rows == ["1", "2", "3"]
    live.stop()
    append(table, "4", "5", "6")
    live = query.start()
    live.processAllAvailable()
    assert query.rows == ["1", "2", "3", "4", "5", "6"]
    append(table, "7", "8", "9")
    live.processAllAvailable()

    assert query.rows == ["1", "2", "3", "4", "5", "6", "7", "8", "9"]


def test_a_streaming_source_does_not_drop_null_columns(table: Path) -> None:
    commit(table, 0, protocol(), metadata(schema(("nothing", "void"), ("id", "long"))))
    commit(table, 1, add(data_file(table, "1.parquet", id=[0, 1])))
    query = stream(table)

    query.run()

    assert query.rows == [(None, 0), (None, 1)]


def test_the_initial_snapshot_ends_at_the_base_index_of_the_next_version(table: Path) -> None:
    commit(table, 0, protocol(), metadata(schema(("value", "string"))))
    append(table, "1", "2", "3")
    query = stream(table)

    query.run()

    assert query.ends == [(2, -1, False)]


def test_a_streaming_query_fails_when_its_table_is_deleted_and_recreated_with_a_new_id(table: Path) -> None:
    append(table, "1", "2")
    query = stream(table)
    query.run()
    shutil.rmtree(table)
    commit(table, 0, protocol(), metadata(schema(("value", "string")), table_id="tableId-1234"))

    with pytest.raises(OffsetError, match="tableId-1234") as caught:
        query.run()
    assert caught.value.error_class == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def test_exclude_regex_works_and_does_not_mess_up_offsets_across_restarts(table: Path) -> None:
    append(table, "abc", "def")
    for version, name in ((1, "batch1-ignore-file1"), (2, "batch1-keep")):
        commit(table, version, add(data_file(table, name, value=[name])))
    query = stream(table, excludeRegex="ignore")
    query.run()
    assert query.rows == ["abc", "batch1-keep", "def"]
    commit(table, 3, *(add(data_file(table, name, value=[name])) for name in ("ignore-2", "keep-2")))

    assert query.run() == [["keep-2"]]
    assert query.ends == [(3, -1, False), (4, -1, False)]


def test_exclude_regex_throws_a_good_error_on_a_bad_pattern(table: Path) -> None:
    with pytest.raises(IllegalOptionError, match="excludeRegex"):
        stream(grown(table, 0), excludeRegex="[abc").run()


def test_new_data_is_consumed_though_the_data_frame_is_older_also_behind_a_checkpoint(table: Path) -> None:
    commit(table, 0, protocol(), metadata(schema(("value", "string"))))
    query = stream(table)
    older = query.frame()
    grown(table, "0", "1", "2")
    query.run(older)
    assert query.rows == ["0", "1", "2"]
    DeltaTable(str(grown(table, "3", "4"))).create_checkpoint()

    query.run(older)

    assert query.rows == ["0", "1", "2", "3", "4"]


def test_streams_verify_the_protocol_reader_version_of_each_commit(table: Path) -> None:
    query = stream(grown(table, 0))
    live = query.start()
    live.processAllAvailable()
    commit(table, 1, protocol(2**31 - 1, 7))

    with pytest.raises(UnsupportedFeatureError) as caught:
        live.processAllAvailable()
    assert caught.value.error_class == "DELTA_INVALID_PROTOCOL_VERSION"


def test_a_restart_does_not_attempt_to_read_a_version_that_does_not_exist(table: Path) -> None:
    query = stream(grown(table, 0))
    query.run()
    grown(table, 1)
    query.run()
    (query.checkpoint / "commits" / "1").unlink()  # so that the restart runs the batch up to version 2 again

    query.run()
    query.run()

    assert query.ends == [(1, -1, False), (2, -1, False)]


def test_self_union_of_a_table_delivers_its_rows_twice(table: Path) -> None:
    """Spark gives each of the two sources a reader and an offset of its own."""
    append(table, *range(10))
    one = stream(table)
    frame, other = one.frame(), stream(table)

    one.run(frame)
    other.run(frame)

    assert one.rows == other.rows == list(range(10))


def test_streaming_processes_100_sequential_single_value_commits_and_contains_all_values(table: Path) -> None:
    append(table, 0, name="id")
    query = stream(table)
    live = query.start()
    live.processAllAvailable()
    for version in range(1, 100):
        commit(table, version, add(data_file(table, f"{version}.parquet", id=pa.array([version]))))

    live.processAllAvailable()

    assert query.rows == list(range(100))


# --- the snapshot, cut short -----------------------------------------------------------------------------------------


def test_initial_snapshot_checkpoint_resume_produces_all_rows_without_duplicates(table: Path) -> None:
    query = stream(grown(table, *range(10)), maxFilesPerTrigger="2")
    query.run_until(batches=2)
    assert len(query.rows) == 4

    query.run()

    assert query.rows == list(range(10))


def test_initial_snapshot_trigger_available_now_processes_all_data_and_terminates(table: Path) -> None:
    query = stream(grown(table, *range(10)))

    query.run()

    assert query.rows == list(range(10))


def test_initial_snapshot_checkpoint_resume_after_new_commits_produces_all_rows(table: Path) -> None:
    query = stream(grown(table, *range(10)), maxFilesPerTrigger="2")
    query.run_until(batches=2)
    for first in (10, 13, 16):
        append(table, *range(first, first + 3))

    query.run()

    assert query.rows == list(range(19))
