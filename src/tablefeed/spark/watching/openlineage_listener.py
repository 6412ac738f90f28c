"""Emits OpenLineage events that say which tables queries read and write, batch by batch (docs/how-to/openlineage.md).

One run of a query is one run of OpenLineage: START, a RUNNING event for each batch, and COMPLETE or FAIL at the end.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark import __version__ as pyspark_version
from pyspark.sql.streaming.listener import StreamingQueryListener

from tablefeed.errors import TablefeedError, UnsupportedOptionError
from tablefeed.feed.api.batch_commits import BatchCommit
from tablefeed.feed.arguments import store_options
from tablefeed.feed.snapshot.known_state import newest_state
from tablefeed.model.actions import Version
from tablefeed.model.schema import Array, DataType, Map, Struct, type_name
from tablefeed.spark.explaining import explain
from tablefeed.spark.watching.batch_report import BatchReport, BatchReports, SourceBatch, query_label
from tablefeed.wording.spark_errors import messages_in

try:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
    from openlineage.client.facet_v2 import (
        DatasetFacet,
        JobFacet,
        RunFacet,
        dataset_version_dataset,
        error_message_run,
        input_statistics_input_dataset,
        job_type_job,
        output_statistics_output_dataset,
        processing_engine_run,
        schema_dataset,
        storage_dataset,
    )
except ModuleNotFoundError as missing:
    raise UnsupportedOptionError(
        option="OpenLineageListener", remedy='A package is missing: pip install "tablefeed[openlineage]".'
    ) from missing

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

logger = logging.getLogger(__name__)

PRODUCER = "urn:tablefeed:listener"
"""What OpenLineage calls the producer of metadata: a URI."""

DEFAULT_NAMESPACE = "default"
"""OpenLineage's own default for the namespace of jobs, where OPENLINEAGE_NAMESPACE is not set."""


class OpenLineageListener(StreamingQueryListener):
    """Emits OpenLineage run events for each query that reads or writes tables of tablefeed.

    Use: `spark.streams.addListener(OpenLineageListener(sinks={"copy": "s3://lake/orders_copy"}))`. The job is the
    query, by its name or else its id, in `namespace` (None: OPENLINEAGE_NAMESPACE). `sinks` and `storage_options` are
    those of `MetricsListener`. A dataset has facets of its schema, version and storage; an input has the rows that the
    batch read, an output the rows, bytes and files that it added.

    `client` sends the events; None: the client that OpenLineage's own configuration describes (openlineage.yml,
    OPENLINEAGE_URL). An event that cannot be sent is a warning in the log, and the query goes on. Raises
    IllegalOptionError for a path or option that makes no sense.
    """

    def __init__(
        self,
        *,
        sinks: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        namespace: str | None = None,
        client: OpenLineageClient | None = None,
    ) -> None:
        self._reports = BatchReports(sinks, storage_options)
        self._storage_options = store_options(storage_options)
        self._namespace = namespace or os.environ.get("OPENLINEAGE_NAMESPACE") or DEFAULT_NAMESPACE
        self._client = client or OpenLineageClient()
        self._waiting: dict[str, tuple[str, str]] = {}
        """The query and the time of START, of runs that have not said yet which tables they read."""
        self._named: set[str] = set()
        """The runs of queries in `sinks`."""
        self._queries: dict[str, str] = {}
        self._schemas: dict[tuple[str, str], Struct | None] = {}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Keeps the start: only the first batch says whether the query reads a table of tablefeed."""
        self._waiting[str(event.runId)] = (query_label(event.name, event.id), event.timestamp)
        if self._reports.commits(event) is not None:
            self._named.add(str(event.runId))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Emits START where it was not yet, and what the batch read and wrote."""
        report = self._reports.of(event.progress)
        if report is None:
            return
        self._begin(report.run_id, report.query, event.progress.timestamp)
        outputs = [] if report.sink is None else [_output(report.sink)]
        inputs = [self._input(report, source) for source in report.sources]
        self._emit(RunState.RUNNING, report.run_id, report.query, event.progress.timestamp, inputs, outputs)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing was read or written."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Emits COMPLETE, or FAIL with the plain message of the error."""
        run_id, now, error = str(event.runId), datetime.now(UTC).isoformat(), event.exception
        is_ours = run_id in self._named or next(messages_in(error or ""), None) is not None
        self._named.discard(run_id)
        if run_id in self._waiting and error is not None and is_ours:
            self._begin(run_id, *self._waiting[run_id])  # it failed in its first batch
        self._waiting.pop(run_id, None)
        query = self._queries.pop(run_id, None)
        for key in [key for key in self._schemas if key[0] == run_id]:
            del self._schemas[key]
        if query is None:
            return
        if error is None:
            self._emit(RunState.COMPLETE, run_id, query, now)
        else:
            message = error_message_run.ErrorMessageRunFacet(
                message=explain(error), programmingLanguage="PYTHON", producer=PRODUCER
            )
            self._emit(RunState.FAIL, run_id, query, now, facets={"errorMessage": message})

    def _begin(self, run_id: str, query: str, now: str) -> None:
        if run_id in self._queries:
            return
        query, started_at = self._waiting.pop(run_id, (query, now))
        self._queries[run_id] = query
        self._emit(RunState.START, run_id, query, started_at)

    def _input(self, report: BatchReport, source: SourceBatch) -> InputDataset:
        url = source.lag.url
        if (report.run_id, url) not in self._schemas:  # a stream keeps its schema as long as it runs
            self._schemas[report.run_id, url] = self._schema(url)
        rows = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rowCount=source.rows, producer=PRODUCER)
        namespace, name = dataset_name(url)
        return InputDataset(
            namespace=namespace,
            name=name,
            facets=_facets(self._schemas[report.run_id, url], source.version),
            inputFacets={"inputStatistics": rows},
        )

    def _schema(self, url: str) -> Struct | None:
        try:
            _, state = newest_state(url, self._storage_options)
        except TablefeedError as error:
            logger.warning("schema not read table=%s: %s", url, error)
            return None
        return None if state is None else state.schema

    def _emit(
        self,
        state: RunState,
        run_id: str,
        query: str,
        now: str,
        inputs: Sequence[InputDataset] = (),
        outputs: Sequence[OutputDataset] = (),
        facets: Mapping[str, RunFacet] | None = None,
    ) -> None:
        engine = processing_engine_run.ProcessingEngineRunFacet(
            version=pyspark_version, name="spark", producer=PRODUCER
        )
        kind = job_type_job.JobTypeJobFacet(
            processingType="STREAMING", integration="SPARK", jobType="QUERY", producer=PRODUCER
        )
        job_facets: dict[str, JobFacet] = {"jobType": kind}
        event = RunEvent(
            eventType=state,
            eventTime=now,
            run=Run(runId=run_id, facets={"processing_engine": engine, **(facets or {})}),
            job=Job(namespace=self._namespace, name=query, facets=job_facets),
            producer=PRODUCER,
            inputs=list(inputs),
            outputs=list(outputs),
        )
        try:
            self._client.emit(event)
        except Exception as error:  # noqa: BLE001 - each transport raises its own errors, and a query goes on without
            logger.warning("query=%s event=%s not sent: %s: %s", query, state.value, type(error).__name__, error)


def dataset_name(url: str) -> tuple[str, str]:
    """Gives namespace and name of the dataset of a table, as OpenLineage's naming rules have them for its store."""
    scheme, is_url, rest = url.partition("://")
    if not is_url:
        return "file", url
    authority, _, path = rest.partition("/")
    return f"{'s3' if scheme == 's3a' else scheme}://{authority}", path.strip("/") or "/"


def _output(sink: BatchCommit) -> OutputDataset:
    written = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=sum(rows for change, rows in sink.rows.items() if change != "delete"),
        size=sink.bytes_added,
        fileCount=sink.files_added,
        producer=PRODUCER,
    )
    layer = storage_dataset.StorageDatasetFacet(storageLayer="delta", fileFormat="parquet", producer=PRODUCER)
    namespace, name = dataset_name(sink.url)
    return OutputDataset(
        namespace=namespace,
        name=name,
        facets={**_facets(sink.schema, sink.version), "storage": layer},
        outputFacets={"outputStatistics": written},
    )


def _facets(schema: Struct | None, version: Version | None) -> dict[str, DatasetFacet]:
    facets: dict[str, DatasetFacet] = {}
    if schema is not None:
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=_fields(schema), producer=PRODUCER)
    if version is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=str(version), producer=PRODUCER
        )
    return facets


def _fields(kind: DataType) -> list[schema_dataset.SchemaDatasetFacetFields]:
    """The parts of a type, by the names that OpenLineage gives to elements, keys and values."""
    match kind:
        case Struct():
            parts = [(field.name, field.type) for field in kind]
        case Array():
            parts = [("_element", kind.element)]
        case Map():
            parts = [("key", kind.key), ("value", kind.value)]
        case _:
            return []
    return [
        schema_dataset.SchemaDatasetFacetFields(name=name, type=type_name(part), fields=_fields(part))
        for name, part in parts
    ]
