"""What the writer makes of the messages that Spark hands it. No JVM."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import LongType, StructType

import tablefeed
from support.faulty_store import FaultyStore
from support.logs import a_log, metadata, protocol
from tablefeed.errors import CommitError, IllegalOptionError, UnknownOptionError, UnsupportedFeatureError
from tablefeed.feed.snapshot.delta_log import DeltaLog
from tablefeed.feed.snapshot.known_state import newest_state, remember
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import Txn
from tablefeed.spark.options import parse_options
from tablefeed.spark.sink import BatchWriter, StreamWriter
from tablefeed.spark.written import Written
from tablefeed.store import LocalStore

ID = pa.schema([("id", pa.int64())])


def test_a_commit_without_word_from_its_tasks_as_of_a_continuous_trigger_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "t"
    writer = StreamWriter({"path": str(table)}, StructType().add("id", LongType()), overwrite=False)

    with pytest.raises(CommitError, match=r"2 of 2 tasks did not report .* continuous trigger, use another"):
        writer.commit([None, None], 0)

    assert not table.exists()


IDS = StructType().add("id", LongType())


@pytest.mark.parametrize("writer", [StreamWriter, BatchWriter])
def test_options_named_delta_are_the_properties_of_the_table_that_the_write_makes(
    tmp_path: Path, writer: type[StreamWriter | BatchWriter]
) -> None:
    # Spark hands names on in lower case.
    options = {
        "path": str(tmp_path / "t"),
        "delta.enablechangedatafeed": "true",
        "delta.feature.rowtracking": "supported",
    }

    plan = writer(options, IDS, overwrite=False)._plan

    assert isinstance(plan, DeltaPlan)
    assert plan.configuration == {"delta.enableChangeDataFeed": "true", "delta.feature.rowTracking": "supported"}


def test_a_table_that_is_there_keeps_its_own_properties(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}), properties={"delta.appendOnly": "true"})

    plan = BatchWriter({"path": str(tmp_path), "delta.appendonly": "false"}, IDS, overwrite=False)._plan

    assert isinstance(plan, DeltaPlan)
    assert (plan.metadata, plan.configuration) == (None, {})


def test_a_property_that_no_table_has_is_refused_before_a_file_is_written(tmp_path: Path) -> None:
    def refused(**options: str) -> None:
        StreamWriter({"path": str(tmp_path / "t"), **options}, IDS, overwrite=False)

    with pytest.raises(IllegalOptionError, match="DELTA_UNKNOWN_CONFIGURATION"):
        refused(**{"delta.appendonlyy": "true"})
    with pytest.raises(UnsupportedFeatureError, match="collations"):
        refused(**{"delta.feature.collations": "supported"})
    assert not (tmp_path / "t").exists()


def test_a_read_has_no_properties() -> None:
    with pytest.raises(UnknownOptionError):
        parse_options({"delta.appendOnly": "true"}, "batch read")


def test_a_writer_that_spark_asks_to_overwrite_is_that_of_complete_mode(tmp_path: Path) -> None:
    table = tmp_path / "t"
    tablefeed.append(str(table), pa.table({"id": [1, 2]}))

    def run(batch_id: int) -> None:
        writer = StreamWriter({"path": str(table)}, StructType().add("id", LongType()), overwrite=True)
        plan = plan_write(*newest_state(str(table), {}), ID, partition_by=(), kind=WriteKind.OVERWRITE)
        files = write_task(plan, pa.table({"id": [batch_id]}).to_batches(), task=0, now_ms=0)
        writer.commit([Written(plan=plan, files=files, txn=Txn(app_id="query", txn_version=batch_id))], batch_id)

    run(10)
    run(11)
    run(11)

    now = tablefeed.open_table(str(table))
    assert (now.version, now.to_arrow().to_pylist()) == (2, [{"id": 11}])
    [about] = now.history(1)
    assert about.fields["operationParameters"] == {"outputMode": "Complete", "queryId": "query", "epochId": "11"}


def run_batch(table: Path, batch_id: int, ids: list[int], **options: str) -> None:
    """One batch as Spark runs it: planned, written, pickled, and committed by another writer."""
    writer = StreamWriter({"path": str(table), **options}, StructType().add("id", LongType()), overwrite=False)
    plan = plan_write(*newest_state(str(table), {}), ID, partition_by=(), kind=WriteKind.APPEND)
    is_replay = plan.recorded.get("query", -1) >= batch_id
    rows = [] if is_replay or not ids else pa.table({"id": ids}).to_batches()
    files = write_task(plan, rows, task=0, now_ms=0)
    writer.commit([Written(plan=plan, files=files, txn=Txn(app_id="query", txn_version=batch_id))], batch_id)


@pytest.mark.parametrize(("app_id", "is_query"), [("0a7d1c52-3d0c-4be0-9a39-6b1bd2e0c0aa", True), ("loader", False)])
def test_the_first_batch_of_a_query_warns_of_queries_whose_rows_it_may_write_again(
    app_id: str,
    is_query: bool,  # noqa: FBT001
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    tablefeed.append(tmp_path / "t", pa.table({"id": [1]}), app_id=app_id, txn_version=4)

    for batch_id in (0, 0, 1):
        run_batch(tmp_path / "t", batch_id, [1])

    warned = [message for message in caplog.messages if "has batches of other queries" in message]
    assert len(warned) == is_query
    assert all(app_id in message and "restore version 0" in message for message in warned)


def now_in(table: Path) -> tuple[int, list[int], int | None]:
    opened = tablefeed.open_table(str(table))
    return opened.version, sorted(opened.to_arrow()["id"].to_pylist()), opened.txn_version("query")


def test_the_commit_of_a_batch_looks_for_newer_versions_once(tmp_path: Path) -> None:
    run_batch(tmp_path, 0, [1])
    store = FaultyStore(LocalStore(str(tmp_path)))
    log = DeltaLog(store, location=str(tmp_path), storage_options={})
    plan = plan_write(*newest_state(str(tmp_path), {}), ID, partition_by=(), kind=WriteKind.APPEND)
    writer = StreamWriter({"path": str(tmp_path)}, IDS, overwrite=False)
    remember(log, log.load())
    before = len(store.calls)

    writer.commit([Written(plan=plan, files=(), txn=Txn(app_id="query", txn_version=1))], 1)

    commit_0, commit_1 = (f"_delta_log/{version:020}.json" for version in (0, 1))
    assert store.calls[before : before + 4] == [
        ("stat", commit_1),  # no other writer has made it
        ("stat", commit_0),  # and the table is the same
        ("put_if_absent", commit_1),
        ("stat", commit_1),
    ]


NOT_READ = map(pytest.fail, ["a row was read"])


def test_a_task_of_a_write_that_the_table_records_reads_no_row_and_writes_no_file(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}), app_id="nightly", txn_version=7)

    for txn_version in ("6", "7"):
        options = {"path": str(tmp_path), "txnAppId": "nightly", "txnVersion": txn_version}
        assert BatchWriter(options, IDS, overwrite=False).write(NOT_READ).files == ()
    with pytest.raises(RuntimeError, match="runs in a task"):  # a later version is written, which takes a task
        BatchWriter({**options, "txnVersion": "8"}, IDS, overwrite=False).write(NOT_READ)


def test_a_batch_without_rows_makes_no_version_where_that_is_asked_for(tmp_path: Path) -> None:
    table = tmp_path / "t"
    run_batch(table, 0, [], recordEmptyBatches="false")
    assert now_in(table) == (0, [], 0)

    run_batch(table, 1, [], recordEmptyBatches="false")
    assert now_in(table) == (0, [], 0)
    run_batch(table, 1, [])
    assert now_in(table) == (1, [], 1)


def test_a_batch_with_rows_after_one_that_was_not_recorded_stands_once(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for batch_id, ids in enumerate([[1], [], [], [2], [2], []]):
        run_batch(table, min(batch_id, 3), ids, recordEmptyBatches="false")

    assert now_in(table) == (1, [1, 2], 3)


def test_a_query_put_back_to_an_older_checkpoint_stops_where_that_is_asked_for(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for batch_id in range(3):
        run_batch(table, batch_id, [batch_id])

    with pytest.raises(CommitError, match="records version 2 of the application query, and this is version 1"):
        run_batch(table, 1, [1], txnVersionCollision="FAIL", recordEmptyBatches="false")
    run_batch(table, 2, [2], txnVersionCollision="fail")

    assert now_in(table) == (2, [0, 1, 2], 2)


@pytest.mark.parametrize(
    "how", [{"replaceWhere": "p = 1"}, {"replaceWhere": "id IN (1, 10)"}, {"partitionOverwriteMode": "DYNAMIC"}]
)
def test_a_partial_overwrite_crosses_to_the_tasks_and_back(tmp_path: Path, how: dict[str, str]) -> None:
    table = tmp_path / "t"
    tablefeed.append(str(table), pa.table({"id": [1, 2], "p": [1, 2]}), partition_by="p")
    schema = StructType().add("id", LongType()).add("p", LongType())
    sent = pickle.dumps(BatchWriter({"path": str(table), **how}, schema, overwrite=True))
    there: BatchWriter = pickle.loads(sent)  # noqa: S301 - our own
    plan = there._plan

    files = write_task(plan, pa.table({"id": [10], "p": [1]}).to_batches(), task=0, now_ms=0)
    message = pickle.dumps(Written(plan=plan, files=files))
    there.commit([pickle.loads(message)])  # noqa: S301 - our own

    now = tablefeed.open_table(str(table))
    assert sorted(now.to_arrow()["id"].to_pylist()) == [2, 10]


def test_a_table_that_tasks_made_files_for_is_clustered_as_the_option_says(tmp_path: Path) -> None:
    options = {"path": str(tmp_path / "t"), "clusterBy": "ID"}
    writer = StreamWriter(options, StructType().add("id", LongType()), overwrite=False)
    message = pickle.dumps(Written(plan=writer._plan, files=(), txn=Txn(app_id="query", txn_version=0)))
    writer.commit([pickle.loads(message)], 0)  # noqa: S301 - our own

    log = (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").read_text()
    assert '{\\"clusteringColumns\\":[[\\"id\\"]],\\"domainName\\":\\"delta.clustering\\"}' in log


def batch(table: Path, batch_id: int, *ids: int, overwrite: bool = False, **options: str) -> None:
    """A micro-batch of one task."""
    writer = StreamWriter({"path": str(table), **options}, StructType().add("id", LongType()), overwrite=overwrite)
    files = write_task(writer._plan, [pa.record_batch({"id": list(ids)}, schema=ID)], task=0, now_ms=0)
    writer.commit([Written(plan=writer._plan, files=files, txn=Txn(app_id="query", txn_version=batch_id))], batch_id)
    wait_until_done()


def operations(table: Path) -> list[Any]:
    return [info.operation for info in tablefeed.open_table(table).history()][::-1]


UPDATE, FOLD = "STREAMING UPDATE", "OPTIMIZE"


@pytest.mark.parametrize(
    ("batches", "options", "done"),
    [
        ([[0], [1], [2], [3]], {}, [UPDATE] * 4),
        ([[0], [1], [2], [3]], {"compactEvery": "2"}, [UPDATE, UPDATE, FOLD, UPDATE, UPDATE, FOLD]),
        (
            [[0], [1], [2], [], [4], [5]],  # a turn on a batch that is not recorded is left out
            {"compactEvery": "2", "recordEmptyBatches": "false"},
            [UPDATE, UPDATE, FOLD, UPDATE, UPDATE, UPDATE, FOLD],
        ),
    ],
    ids=["never", "every second", "every second of which one is empty"],
)
def test_after_as_many_batches_as_are_asked_for_small_files_are_folded_behind_the_commit(
    tmp_path: Path, batches: list[list[int]], options: dict[str, Any], done: list[str]
) -> None:
    for n, ids in enumerate(batches):
        batch(tmp_path, n, *ids, **options)

    assert operations(tmp_path) == done
    rows = tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist()
    assert sorted(rows) == [number for ids in batches for number in ids]


def test_complete_mode_folds_nothing_for_its_next_batch_would_lose_to_that(tmp_path: Path) -> None:
    for n in range(2):
        batch(tmp_path, n, n, 7, 8, overwrite=True, compactEvery="1", maxRecordsPerFile="1")

    assert operations(tmp_path) == ["STREAMING UPDATE"] * 2
    assert sorted(tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist()) == [1, 7, 8]


@pytest.mark.parametrize("overwrite", [False, True], ids=["append", "complete"])
def test_a_table_that_asks_for_it_is_folded_behind_a_query_but_not_in_complete_mode(
    tmp_path: Path, *, overwrite: bool
) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [-1]}), properties={"delta.autoOptimize.autoCompact": "true"})
    batch(tmp_path, 0, *range(50), overwrite=overwrite, maxRecordsPerFile="1")
    batch(tmp_path, 1, *range(50), overwrite=overwrite, maxRecordsPerFile="1")

    assert ("OPTIMIZE" in operations(tmp_path)) is not overwrite


def in_log(table: Path, ending: str) -> list[str]:
    return sorted(path.name for path in (table / "_delta_log").glob(f"*.{ending}"))


def test_commits_are_written_as_one_where_it_is_asked_for(tmp_path: Path) -> None:
    for n in range(5):
        batch(tmp_path, n, n, logCompactionEvery="2")

    assert in_log(tmp_path, "compacted.json") == [
        "00000000000000000000.00000000000000000001.compacted.json",
        "00000000000000000002.00000000000000000003.compacted.json",
    ]
    assert sorted(tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist()) == list(range(5))


def test_commits_that_fold_files_are_counted_and_written_as_one_too(tmp_path: Path) -> None:
    for n in range(2):
        batch(tmp_path, n, n, compactEvery="2", logCompactionEvery="3")

    assert operations(tmp_path)[-1] == "OPTIMIZE"
    assert in_log(tmp_path, "compacted.json") == ["00000000000000000000.00000000000000000002.compacted.json"]


def test_a_checkpoint_has_parts_of_the_size_that_is_asked_for(tmp_path: Path) -> None:
    interval = {"delta.checkpointInterval": "2"}
    tablefeed.append(tmp_path, pa.table({"id": [-1]}), properties=interval)
    for n in range(2):
        batch(tmp_path, n, 2 * n, 2 * n + 1, checkpointPartSize="3", maxRecordsPerFile="1")

    parts = in_log(tmp_path, "checkpoint.*.parquet")
    assert len(parts) > 1
    assert parts == [f"{2:020d}.checkpoint.{n + 1:010d}.{len(parts):010d}.parquet" for n in range(len(parts))]
    assert sorted(DeltaTable(str(tmp_path)).to_pyarrow_table()["id"].to_pylist()) == list(range(-1, 4))


@pytest.mark.parametrize("option", [{"logCompactionEvery": "1"}, {"checkpointPartSize": "0"}], ids=str)
def test_a_size_that_nothing_can_have_is_refused(tmp_path: Path, option: dict[str, str]) -> None:
    with pytest.raises(IllegalOptionError, match=next(iter(option))):
        StreamWriter({"path": str(tmp_path), **option}, IDS, overwrite=False)


def a_table_of_many_queries(path: Path) -> Path:
    """The first was the last to write."""
    records = [
        {"txn": {"appId": f"query-{n}", "version": 5, "lastUpdated": 1_700_000_000_000 - n}} for n in range(20_000)
    ]
    a_log(LocalStore(str(path)), v0=[protocol(), metadata(), *records])
    return path


def test_what_crosses_to_tasks_and_back_does_not_grow_with_the_queries_that_a_table_ever_had(tmp_path: Path) -> None:
    there = {"path": str(a_table_of_many_queries(tmp_path))}
    stream = StreamWriter(there, IDS, overwrite=False)
    once = BatchWriter({**there, "txnAppId": "query-19999", "txnVersion": "5"}, IDS, overwrite=False)
    back = Written(plan=stream._plan.about("query-7"), files=())

    assert len(pickle.dumps(stream)) < 50_000
    assert len(pickle.dumps(once)) < 5_000
    assert len(pickle.dumps(back)) < 5_000
    assert (stream._plan.recorded["query-0"], back.plan.recorded) == (5, {"query-7": 5})
    assert once._plan.recorded == {"query-19999": 5}


@pytest.mark.parametrize("query", ["query-0", "query-19999"])
@pytest.mark.parametrize("batch_id", [5, 6])
def test_an_empty_batch_is_known_from_a_replay_however_many_queries_there_were(
    tmp_path: Path, query: str, batch_id: int
) -> None:
    options = {"path": str(a_table_of_many_queries(tmp_path)), "recordEmptyBatches": "false"}
    writer = StreamWriter({**options, "txnVersionCollision": "fail"}, IDS, overwrite=False)

    def commit(batch_id: int) -> None:
        message = Written(plan=writer._plan.about(query), files=(), txn=Txn(app_id=query, txn_version=batch_id))
        writer.commit([message], batch_id)

    commit(batch_id)
    with pytest.raises(CommitError, match=f"records version 5 of the application {query}, and this is version 4"):
        commit(4)

    assert tablefeed.open_table(tmp_path).version == 0


@pytest.mark.parametrize("txn", [{}, {"txnAppId": "job", "txnVersion": "3"}], ids=["plain", "once"])
def test_a_task_that_failed_takes_the_files_of_the_others_with_it(tmp_path: Path, txn: dict[str, str]) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    once = BatchWriter({"path": str(tmp_path), **txn}, IDS, overwrite=False)
    stream = StreamWriter({"path": str(tmp_path)}, IDS, overwrite=False)

    def written(writer: BatchWriter | StreamWriter, **more: Any) -> Written:
        files = write_task(writer._plan, [pa.record_batch({"id": [2]}, schema=ID)], task=0, now_ms=0)
        return Written(plan=writer._plan, files=files, **more)

    once.abort([written(once), None])
    stream.abort([None, written(stream, txn=Txn(app_id="query", txn_version=3))], 3)
    assert len(list(tmp_path.glob("*.parquet"))) == 1

    stream.abort(
        [written(stream, txn=Txn(app_id="query", txn_version=3))], 3
    )  # a commit was tried, and nobody knows its fate
    assert len(list(tmp_path.glob("*.parquet"))) == 2


@pytest.mark.parametrize("kind", [BatchWriter, StreamWriter])
def test_a_write_that_is_given_up_and_stands_leaves_no_file_of_its_other_tries(
    tmp_path: Path, kind: type[BatchWriter | StreamWriter]
) -> None:
    options = {"path": str(tmp_path)} | ({"txnAppId": "job", "txnVersion": "3"} if kind is BatchWriter else {})
    one, other = (kind(options, IDS, overwrite=False) for _ in range(2))
    number: tuple[int, ...] = (3,) if kind is StreamWriter else ()

    def written(writer: BatchWriter | StreamWriter) -> Written:
        files = write_task(writer._plan, [pa.record_batch({"id": [1]}, schema=ID)], task=0, now_ms=0)
        plan = writer._plan.about("job") if kind is StreamWriter else writer._plan
        return Written(plan=plan, files=files, txn=Txn(app_id="job", txn_version=3))

    given_up, stands = written(one), written(other)
    other.commit([stands], *number)

    one.abort([given_up], *number)
    other.abort([stands], *number)

    assert [path.name for path in tmp_path.glob("*.parquet")] == [stands.files[0].path]


def test_a_codec_and_a_row_limit_are_obeyed(tmp_path: Path) -> None:
    batch(tmp_path, 0, 1, 2, 3, compression="ZSTD", maxRecordsPerFile="2")

    files = [pq.ParquetFile(path).metadata for path in tmp_path.glob("*.zstd.parquet")]
    assert sorted(file.num_rows for file in files) == [1, 2]
    assert {file.row_group(0).column(0).compression for file in files} == {"ZSTD"}


def test_the_small_files_of_tasks_are_gathered_before_the_commit_where_that_is_asked_for(tmp_path: Path) -> None:
    options = {"path": str(tmp_path), "optimizewrite": "true"}
    writer = StreamWriter(options, IDS, overwrite=False)
    tasks = [write_task(writer._plan, pa.table({"id": [n]}).to_batches(), task=n, now_ms=0) for n in range(3)]
    said = [Written(plan=writer._plan, files=files, txn=Txn(app_id="query", txn_version=0)) for files in tasks]

    StreamWriter(options, IDS, overwrite=False).commit(said, 0)

    assert now_in(tmp_path) == (0, [0, 1, 2], 0)
    assert len(list(tmp_path.glob("*.parquet"))) == 1
