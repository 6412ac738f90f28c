"""What OpenLineage is told of queries: each event by the client's own file transport. No JVM."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.naming.dataset import ABFSS, GCS, S3, LocalFileSystem
from openlineage.client.transport.file import FileConfig, FileTransport

import tablefeed
from scenarios.sinks import Sink
from spark_words.test_metrics_listener import KAFKA, QUERY, RUN, lag, progress, started, terminated, told
from tablefeed.spark import OpenLineageListener
from tablefeed.spark.watching.openlineage_listener import dataset_name

SPEC = os.environ.get("TABLEFEED_OPENLINEAGE_SPEC")


def a_client(log: Path) -> OpenLineageClient:
    return OpenLineageClient(transport=FileTransport(FileConfig(log_file_path=str(log), append=True)))


def events(log: Path) -> list[dict[str, Any]]:  # Any: JSON
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def a_run(tmp_path: Path) -> list[dict[str, Any]]:
    """The events of a query that copies a table in two batches, and is stopped."""
    nested = pa.struct([("tags", pa.list_(pa.string())), ("prices", pa.map_(pa.string(), pa.decimal128(9, 2)))])
    source, copy, log = str(tmp_path / "orders"), tmp_path / "copy", tmp_path / "events.json"
    tablefeed.create(source, pa.schema([("id", pa.int64()), ("more", nested)]))
    sink, listener = (
        Sink(copy, {}, query_id=QUERY),
        OpenLineageListener(sinks={"copy": str(copy)}, client=a_client(log)),
    )
    listener.onQueryStarted(started())
    for batch, ids in enumerate([[1, 2], [3]]):
        sink.write(pa.table({"id": ids}))
        listener.onQueryProgress(progress(told(lag(table=source)), KAFKA, batch=batch))
    listener.onQueryTerminated(terminated())
    return events(log)


def test_a_run_of_a_query_is_a_start_an_event_for_each_batch_and_a_complete(tmp_path: Path) -> None:
    told_of = a_run(tmp_path)

    assert [event["eventType"] for event in told_of] == ["START", "RUNNING", "RUNNING", "COMPLETE"]
    assert {event["run"]["runId"] for event in told_of} == {RUN}
    assert {(event["job"]["namespace"], event["job"]["name"]) for event in told_of} == {("default", "copy")}
    assert told_of[0]["eventTime"] == "2026-11-21T10:00:00.000Z"
    assert told_of[0]["job"]["facets"]["jobType"]["processingType"] == "STREAMING"


def test_an_event_of_a_batch_has_its_tables_with_schema_version_and_statistics(tmp_path: Path) -> None:
    _, first, second, _ = a_run(tmp_path)

    [read], [written] = second["inputs"], second["outputs"]
    assert (read["namespace"], read["name"]) == ("file", str(tmp_path / "orders"))
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 1
    assert simple(read["facets"]["schema"]["fields"]) == [
        ("id", "long", []),
        (
            "more",
            "struct",
            [
                ("tags", "array", [("_element", "string", [])]),
                ("prices", "map", [("key", "string", []), ("value", "decimal(9,2)", [])]),
            ],
        ),
    ]
    assert (written["namespace"], written["name"]) == ("file", str(tmp_path / "copy"))
    assert [event["outputs"][0]["facets"]["version"]["datasetVersion"] for event in (first, second)] == ["0", "1"]
    assert written["facets"]["storage"]["storageLayer"] == "delta"
    statistics = [event["outputs"][0]["outputFacets"]["outputStatistics"] for event in (first, second)]
    assert [(each["rowCount"], each["fileCount"]) for each in statistics] == [(2, 1), (1, 1)]
    sizes = [file.size_bytes for commit in commits(tmp_path / "copy", 2) for file in commit.added]
    assert [each["size"] for each in statistics] == sizes


def commits(table: Path, count: int) -> list[Any]:
    found = tablefeed.follow(table, after=-1)
    return [next(found) for _ in range(count)]


def simple(fields: list[dict[str, Any]]) -> list[tuple[str, str, Any]]:
    return [(field["name"], field["type"], simple(field.get("fields", []))) for field in fields]


def test_a_failure_has_the_plain_message_also_in_the_first_batch_and_a_query_of_others_has_no_event(
    tmp_path: Path,
) -> None:
    log = tmp_path / "events.json"
    listener = OpenLineageListener(client=a_client(log), namespace="etl")
    error = "Traceback\ntablefeed.errors.ConflictError: [DELTA_CONCURRENT_TRANSACTION] Another run won."
    for text, batch in (("[DIVIDE_BY_ZERO] Division by zero.", KAFKA), (None, KAFKA)):
        listener.onQueryStarted(started())
        listener.onQueryProgress(progress(batch))
        listener.onQueryTerminated(terminated(error=text))
    assert not log.exists()

    listener.onQueryStarted(started())
    listener.onQueryTerminated(terminated(error=error))

    start, fail = events(log)
    assert (start["eventType"], fail["eventType"], fail["job"]["namespace"]) == ("START", "FAIL", "etl")
    message = fail["run"]["facets"]["errorMessage"]
    assert (message["message"], "stackTrace" in message) == (
        "[DELTA_CONCURRENT_TRANSACTION] Another run won.",
        False,
    )


def test_a_query_in_sinks_that_fails_in_its_first_batch_has_events_also_without_an_error_of_ours(
    tmp_path: Path,
) -> None:
    log = tmp_path / "events.json"
    listener = OpenLineageListener(client=a_client(log), sinks={"copy": "/lake/copy"})

    listener.onQueryStarted(started())
    listener.onQueryTerminated(terminated(error="[DIVIDE_BY_ZERO] Division by zero."))

    start, fail = events(log)
    assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
    assert fail["run"]["facets"]["errorMessage"]["message"] == "[DIVIDE_BY_ZERO] Division by zero."


def test_an_event_that_cannot_be_sent_is_a_warning_and_so_is_a_schema_that_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "t" / "_delta_log" / f"{0:020d}.json").write_text("{")
    log = tmp_path / "events.json"
    listener = OpenLineageListener(client=a_client(log))
    listener.onQueryProgress(progress(told(lag(table=str(tmp_path / "t")))))
    assert [event["eventType"] for event in events(log)] == ["START", "RUNNING"]
    assert "schema" not in events(log)[1]["inputs"][0]["facets"]

    with caplog.at_level(logging.WARNING, logger="tablefeed"):
        gone = OpenLineageListener(client=a_client(tmp_path / "no folder" / "events.json"))
        gone.onQueryProgress(progress(told(lag(table=str(tmp_path / "t")))))

    assert [text.partition("=")[0] for text in caplog.messages][-2:] == [
        "schema not read table",
        "query",
    ]


@pytest.mark.parametrize(
    ("url", "theirs"),
    [
        ("/lake/orders", LocalFileSystem(path="/lake/orders")),
        ("/lake/a?b#c", LocalFileSystem(path="/lake/a?b#c")),
        ("s3://lake/sales/orders", S3(bucket_name="lake", object_key="sales/orders")),
        ("s3a://lake/orders", S3(bucket_name="lake", object_key="orders")),
        ("gs://lake/orders", GCS(bucket_name="lake", object_key="orders")),
        ("gs://lake/[a/b#c", GCS(bucket_name="lake", object_key="[a/b#c")),
        (
            "abfss://lake@account.dfs.core.windows.net/orders",
            ABFSS(container="lake", service="account", path="orders"),
        ),
    ],
)
def test_datasets_have_the_names_that_openlineage_gives_to_tables_of_each_store(url: str, theirs: Any) -> None:
    assert dataset_name(url) == (theirs.get_namespace(), theirs.get_name())


@pytest.mark.skipif(SPEC is None, reason="TABLEFEED_OPENLINEAGE_SPEC names no folder: OpenLineage's `spec`")
def test_every_event_and_facet_is_valid_by_openlineages_json_schemas(tmp_path: Path) -> None:
    from jsonschema import Draft202012Validator, FormatChecker
    from referencing import Registry, Resource

    folder = Path(SPEC or "")
    schemas = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (folder, folder / "facets")
        for path in path.glob("*.json")
    ]
    registry: Any = Registry().with_resources((each["$id"], Resource.from_contents(each)) for each in schemas)
    by_name = {each["$id"].rpartition("/")[2]: each for each in schemas}

    told_of = a_run(tmp_path)
    listener = OpenLineageListener(client=a_client(tmp_path / "failed.json"))
    listener.onQueryStarted(started())
    listener.onQueryTerminated(terminated(error="tablefeed.errors.LogError: The log is cut off."))
    told_of += events(tmp_path / "failed.json")

    def check(value: Any, schema: Any) -> None:
        Draft202012Validator(schema, registry=registry, format_checker=FormatChecker()).validate(value)

    for event in told_of:
        check(event, by_name["OpenLineage.json"])
        places = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
        kinds = ("facets", "inputFacets", "outputFacets")
        for name, facet in [each for place in places for kind in kinds for each in place.get(kind, {}).items()]:
            check({name: facet}, by_name[facet["_schemaURL"].partition("#")[0].rpartition("/")[2]])
    assert len(told_of) == 6


_WITHOUT = """
import sys
sys.modules["openlineage"] = None  # as if it were not installed
from tablefeed.spark import OpenLineageListener
"""


def test_without_the_client_the_error_names_the_extra() -> None:
    done = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=False)

    assert 'pip install "tablefeed[openlineage]"' in done.stderr.splitlines()[-1]
