"""The public face of one table at one version: `tablefeed.open_table`.

Arrow out; nothing here writes. A table is a fixed snapshot: open it again to see what came since.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING

from tablefeed.errors import ConflictingOptionsError
from tablefeed.feed.arguments import (
    delivered,
    location,
    selected,
    store_options,
    text,
    whole_number,
)
from tablefeed.feed.scan.task import ScanTask, read_task, scan_file, table_columns
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.snapshot.timeline import file_times, parse_timestamp, version_at
from tablefeed.model.actions import CommitInfo, Metadata, Protocol, Version
from tablefeed.model.logfile import LogFileKind

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc


def open_table(
    url: str | os.PathLike[str],
    *,
    version: int | None = None,
    timestamp: str | datetime | date | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Table:
    """Opens the table at `url` as of `version` or `timestamp`, by default the newest version.

    `timestamp` means the newest version committed at or before it, in UTC where it names no zone. Raises
    TableNotFoundError, VersionNotFoundError, UnsupportedFeatureError, LogError, StoreError.
    """
    if version is not None and timestamp is not None:
        raise ConflictingOptionsError(options=("version", "timestamp"), remedy="Give one of them.")
    if version is not None:
        version = whole_number(version, argument="version")
    log = open_log(location(url), store_options(storage_options))
    if timestamp is not None:
        version = version_at(log, parse_timestamp(timestamp, argument="timestamp"))
    return Table(log.load_for_files(None if version is None else Version(version)))


class Table:
    """One version of a table. Facts are loaded; files and rows are read when asked for, in bounded memory."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __repr__(self) -> str:
        return f"Table({self._log.url!r}, version={self.version})"

    @property
    def version(self) -> int:
        """The version that this is."""
        return self._snapshot.version

    @property
    def table_id(self) -> str:
        """The id that the table got when it was made; a table made anew at the same place has another."""
        return self.metadata.table_id

    @property
    def schema(self) -> pa.Schema:
        """The columns in the table's order, partition columns included."""
        return self._snapshot.arrow_schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The names of the partition columns, in partitioning order."""
        return self.metadata.partition_columns

    @property
    def metadata(self) -> Metadata:
        """The table's identity, schema text and properties."""
        return self._snapshot.metadata

    @property
    def protocol(self) -> Protocol:
        """What readers and writers of this table must know."""
        return self._snapshot.protocol

    def files(self) -> Iterator[pa.RecordBatch]:
        """Gives the live files in columns, many to a batch, in no stated order.

        Columns: path (decoded; relative to the table where the log's is), size_bytes, modified_ms, partition_values
        (map of text by the names of `partition_columns`, also where the log has others for them; null is null),
        num_records (null where unknown), has_deletion_vector.
        """
        from tablefeed.feed.snapshot.files import described

        columns = table_columns(self._snapshot.schema, self.metadata, url=self._log.url)
        logged = {column.physical_name: name for name, column in columns.partitions.items()}
        for batch in self._snapshot.live_files(with_stats=True):
            yield described(batch, logged)

    def to_batches(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
    ) -> pa.RecordBatchReader:
        """Gives the rows, `columns` in the order asked for, those that `filter` lets through.

        Files that the log's partition values and statistics rule out are not opened, and of the others the columns
        alone are read that are asked for or that `filter` names.
        """
        wanted = selected(self.schema, columns, url=self._log.url)
        rows = partial(self._rows, condition=filter)
        return delivered(rows, wanted, filter, available=self.schema, url=self._log.url)

    def to_arrow(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
    ) -> pa.Table:
        """Gives the rows as one table, in memory."""
        return self.to_batches(columns=columns, filter=filter).read_all()

    def history(self, limit: int | None = None) -> Iterator[CommitInfo]:
        """Gives each commit's info, the newest first, at most `limit`; unknown fields are kept.

        Only as far back as the log still has commits. A commit without commitInfo has empty fields.
        """
        if limit is not None:
            limit = whole_number(limit, argument="limit", least=0)
        return self._history(limit)

    def txn_version(self, app_id: str) -> int | None:
        """Gives the newest version that the application `app_id` recorded here, None where it recorded none."""
        txn = self._snapshot.facts.txns.get(text(app_id, argument="app_id"))
        return None if txn is None else txn.txn_version

    @property
    def _log(self) -> TableLog:
        return self._snapshot.log

    def _history(self, limit: int | None) -> Iterator[CommitInfo]:
        log_files = [
            f for f in self._log.listing() if f.kind is LogFileKind.COMMIT and f.version <= self._snapshot.version
        ]
        times = file_times(log_files, self.metadata, url=self._log.url)
        for log_file in log_files[::-1][:limit]:
            commit = self._log.required_commit(log_file)
            at_ms = times.get(commit.version, commit.committed_at_ms or log_file.modified_ms)
            yield CommitInfo(version=commit.version, committed_at_ms=at_ms, fields=dict(commit.info or {}))

    def _rows(self, schema: pa.Schema, condition: pc.Expression | None) -> Iterator[pa.RecordBatch]:
        """The rows of the files that may have one that `condition` lets through."""
        from tablefeed.delta.columns import to_add_files

        columns = table_columns(self._snapshot.schema, self.metadata, url=self._log.url)
        if condition is None:
            files = self._snapshot.live_files()
        else:
            from tablefeed.feed.scan.pruning import Pruner

            pruner = Pruner(condition, schema=self._snapshot.schema, columns=columns)
            files = pruner.matching(self._snapshot.live_files(with_stats=True, asked=condition))
        for batch in files:
            for add in to_add_files(batch):
                task = ScanTask(
                    url=self._log.location,
                    storage_options=self._log.storage_options,
                    files=(scan_file(add),),
                    columns=columns,
                )
                yield from read_task(task, schema, store=self._log.store)
