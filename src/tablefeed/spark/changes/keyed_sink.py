"""The writers of a sink with the option `keys`: tasks divide change events by key, and the commit applies them.

Spark gives the rows of a sink to tasks in any order, and offers no way to send all events of a key to one task. So the
process that commits collects them, a few keys at a time (`feed.rows.divided`). Imported only for such a write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from tablefeed.errors import TABLE, ConflictError, UnsupportedOptionError, naming
from tablefeed.feed.api.row_changes import change
from tablefeed.feed.rows.apply import joined
from tablefeed.feed.rows.asking import Asking, asking
from tablefeed.feed.rows.attempts import changeable
from tablefeed.feed.rows.divided import Aside, Sizes, applied, delete_asides, in_chunks, set_aside
from tablefeed.feed.rows.folding import Folding
from tablefeed.feed.rows.incoming import batch_of, fitted
from tablefeed.feed.snapshot.known_state import newest_state
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.upkeep.after_commit import now_ms
from tablefeed.feed.upkeep.background import waited_for
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.model.actions import Txn
from tablefeed.model.schema import Struct
from tablefeed.spark.char import changes_schema
from tablefeed.spark.options import arguments_of, check_txn_pair, named_as_options, parse_options, table_path
from tablefeed.spark.release import RELEASE, Release
from tablefeed.spark.sink import batch_txn, reported, task_number
from tablefeed.spark.worker import Begins, BeginsInTask

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from tablefeed.feed.commit.transaction import Transaction
    from tablefeed.spark.parsed_options import ParsedOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsSetAside(WriterCommitMessage):
    """The events of one task, how they are to be folded, and the transaction to record, if any.

    `release` is first, so that another version of tablefeed refuses the report.
    """

    release: Release = field(default=RELEASE, init=False, repr=False)
    aside: Aside
    how: Folding
    txn: Txn | None


class _Writer(Begins):
    """Sets the events of tasks aside, and applies them in one commit."""

    def __init__(self, options: ParsedOptions, path: str, schema: StructType, *, overwrite: bool) -> None:
        self._options = options
        self._changes = _planned(path, schema, options, overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> EventsSetAside:
        """Sets the events of one task aside."""
        return self._changes.set_aside(iterator, self._txn(), task=task_number())

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int | None = None) -> None:  # noqa: N803
        """Applies the events of all tasks, unless the batch of a stream is empty and not to be recorded."""
        found = reported(messages, EventsSetAside, self._changes.location)
        rows = sum(message.aside.row_count for message in found)
        if rows or batchId is None or self._options["recordEmptyBatches"]:
            self._changes.apply(found, note=self._options["userMetadata"])

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int | None = None) -> None:  # noqa: ARG002, N803
        """Deletes the tasks' files."""
        self._changes.abandon(messages)

    def _txn(self) -> Txn | None:
        raise NotImplementedError


class StreamOfChangesWriter(BeginsInTask, _Writer, DataSourceStreamArrowWriter):
    """Applies the events of each micro-batch in one commit, once: its txn has the query's id and the batch id."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        path = table_path(options, call="start")
        super().__init__(parse_options(options, "stream write of changes"), path, schema, overwrite=overwrite)

    def _txn(self) -> Txn | None:
        return batch_txn(self._changes.location)


class BatchOfChangesWriter(_Writer, DataSourceArrowWriter):
    """Applies the events of a batch in one commit; once if txnAppId and txnVersion are set."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        path = table_path(options, call="save")
        parsed = parse_options(options, "batch write of changes")
        check_txn_pair(parsed["txnAppId"], parsed["txnVersion"])
        super().__init__(parsed, path, schema, overwrite=overwrite)

    def _txn(self) -> Txn | None:
        app_id, txn_version = self._options["txnAppId"], self._options["txnVersion"]
        return None if app_id is None else Txn(app_id=app_id, txn_version=txn_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """Change events with the columns of `source`, what they mean, and the table with the columns of `target`."""

    location: str
    storage_options: Mapping[str, str] = field(repr=False)
    asked: Asking
    source: pa.Schema
    target: Struct
    partition_columns: tuple[str, ...]
    how: Folding
    sizes: Sizes = field(default_factory=Sizes)

    def set_aside(self, batches: Iterator[pa.RecordBatch], txn: Txn | None, *, task: int) -> EventsSetAside:
        """Keeps the events of a task for the commit."""
        log = open_log(self.location, self.storage_options)
        chunks = in_chunks(batches, self.sizes.task)
        with naming(log.url), named_as_options():
            events = (batch_of(chunk, self.asked, self.target, self.partition_columns).events for chunk in chunks)
            aside = set_aside(events, self.how, log.store, task=task, sizes=self.sizes)
        return EventsSetAside(aside=aside, how=self.how, txn=txn)

    @waited_for()
    def apply(self, messages: Sequence[EventsSetAside], *, note: str | None) -> None:
        """Applies the events of all tasks in one commit, unless the table has their txn. Deletes the tasks' files.

        If the batch was not committed, or if that is not known, it gets its events again when it runs again.
        """
        log, state = newest_state(self.location, self.storage_options)
        asides, txn = [message.aside for message in messages], messages[0].txn

        @named_as_options()
        def prepared(target: TargetRows) -> Transaction | None:
            target, batch = fitted(target, self.source.empty_table(), self.asked)
            how = batch.how
            if how != messages[0].how:
                raise ConflictError(
                    f"The columns of {TABLE} changed after Spark's tasks had read the events of a batch. Nothing was "
                    "committed. Run the batch again.",
                    url=TABLE,
                    winner=target.snapshot.version,
                    error_class="DELTA_METADATA_CHANGED",
                )
            parts = applied(target, asides, how, now_ms=now_ms(), sizes=self.sizes)
            transaction = joined(target, parts, how, txn=txn, now_ms=now_ms())
            return transaction and replace(transaction, user_metadata=note)

        try:
            change(log, state, prepared, txn=txn)
        finally:
            delete_asides(log.store, asides)

    def abandon(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Deletes the tasks' files. A commit that still runs then fails, because events are missing."""
        asides = [message.aside for message in messages if isinstance(message, EventsSetAside)]
        delete_asides(open_log(self.location, self.storage_options).store, asides)


@waited_for()
def _planned(path: str, schema: StructType, options: ParsedOptions, *, overwrite: bool) -> _Changes:
    """Checks that events with Spark's `schema` can be applied to the table at `path` as `options` say."""
    if overwrite:
        raise UnsupportedOptionError(
            option="keys",
            remedy="Overwrites and complete mode replace the rows of a table. Use append mode, or leave keys out.",
        )
    log, state = newest_state(path, options.storage)
    with naming(log.url), named_as_options():
        source = changes_schema(schema)
        asked = asking(arguments_of(options))
        target, batch = fitted(TargetRows(changeable(state)), source.empty_table(), asked)
    return _Changes(
        location=log.location,
        storage_options=options.storage,
        asked=asked,
        source=source,
        target=target.snapshot.schema,
        partition_columns=target.snapshot.metadata.partition_columns,
        how=batch.how,
    )
