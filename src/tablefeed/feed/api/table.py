"""`tablefeed.open_table`: reads one table at one version, without Spark.

Results are Arrow data; nothing here writes. A `Table` is a fixed snapshot: open it again to see later commits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING

from tablefeed.errors import TablefeedError
from tablefeed.feed.api.opening import table_at
from tablefeed.feed.arguments import delivered, selected, shown_filter, text, whole_number
from tablefeed.feed.progress_lines import logged
from tablefeed.feed.scan.table_scan import table_scan
from tablefeed.feed.scan.task import ScanTask, read_task
from tablefeed.feed.snapshot.same_table import SameTable
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog, is_of_one_commit, required_commit
from tablefeed.feed.snapshot.timeline import file_times
from tablefeed.model.actions import Commit, CommitInfo, Metadata, Protocol
from tablefeed.model.cached import cached_property
from tablefeed.model.logfile import LogFileKind
from tablefeed.model.progress import OnProgress, Progress
from tablefeed.model.read_plan import ReadPlan

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    from tablefeed.data.predicate import Predicate, RowFilter


def open_table(
    url: str | os.PathLike[str],
    *,
    version: int | None = None,
    timestamp: str | datetime | date | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Table:
    """Opens the table at `url` as of `version` or `timestamp`, by default the newest version.

    `timestamp` means the newest version committed at or before it; one without a zone is in UTC. Raises
    TableNotFoundError, VersionNotFoundError, UnsupportedFeatureError, TableError for a timestamp outside the log,
    OptionError, LogError, StoreError.
    """
    log, at = table_at(url, version=version, timestamp=timestamp, storage_options=storage_options)
    return Table(log.load_for_files(at))


_SHOWN = 30
"""The columns that a notebook shows."""


class Table:
    """One version of a table. Metadata and protocol are in memory; files and rows are read when they are asked for.

    Raises OffsetError where another table is at the path by then, and TableNotFoundError where none is.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __repr__(self) -> str:
        rows = "" if self._known_rows is None else f", rows={self._known_rows}"
        return f"Table({self.url!r}, version={self.version}{rows})"

    def _repr_html_(self) -> str:
        from tablefeed.wording.elements import fact_sheet

        rows = "not counted yet" if self._known_rows is None else f"{self._known_rows:,}"
        columns = [f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in self.schema]
        more = [f"and {len(columns) - _SHOWN:,} more"] if len(columns) > _SHOWN else []
        facts = [
            ("version", [f"{self.version:,}"]),
            ("rows", [rows]),
            ("partitioned by", [", ".join(self.partition_columns) or "none"]),
            ("columns", [*columns[:_SHOWN], *more]),
        ]
        return fact_sheet(f"Table {self.url}", facts)

    @cached_property
    def _known_rows(self) -> int | None:
        """The number of rows, where the statistics that are in memory say it. Nothing is read."""
        from tablefeed.feed.snapshot.files import row_count

        files = self._snapshot.loaded_files()
        return None if files is None else row_count(files)

    @property
    def url(self) -> str:
        """Where the table is, for people: without credentials."""
        return self._log.url

    @property
    def version(self) -> int:
        """The version that was opened."""
        return self._snapshot.version

    @property
    def table_id(self) -> str:
        """The table's id. A table that is deleted and created again at the same path has another id."""
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
        """The protocol versions and table features that readers and writers of this table must support."""
        return self._snapshot.protocol

    def files(self) -> Iterator[pa.RecordBatch]:
        """Gives the live files in columns, many to a batch, in no stated order.

        Columns: path (decoded; relative to the table where the path in the log is), size_bytes, modified_ms,
        partition_values (a map from the names in `partition_columns` to texts; null stays null), num_records (null
        where unknown), has_deletion_vector.
        """
        from tablefeed.feed.snapshot.files import described

        partitions = table_scan(self._snapshot).columns.partitions
        logged = {column.physical_name: name for name, column in partitions.items()}
        for batch in self._live_files(with_stats=True):
            yield described(batch, logged)

    def to_batches(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | str | None = None,  # noqa: A002
        on_progress: OnProgress | None = None,
    ) -> pa.RecordBatchReader:
        """Gives the rows for which `filter` is true, with the columns in `columns`, in that order; None: all.

        `filter` is a pyarrow expression, or a predicate in Spark's SQL, which needs `tablefeed[where]`.
        Files that the log's partition values and statistics rule out are not opened. Of the others, only the columns in
        `columns` and `filter` are read; all columns where those in `filter` cannot be determined. `on_progress` is
        called after each file; for their number, the list of files is then read twice.
        """
        from tablefeed.feed.scan.arrow_filter import checked_filter

        wanted = selected(self.schema, columns, url=self._log.url)
        row_filter = checked_filter(filter, self.schema, table=self._snapshot.schema, url=self._log.url)
        return delivered(
            partial(self._rows, row_filter=row_filter, on_progress=on_progress), wanted, row_filter, url=self._log.url
        )

    def plan(self, *, filter: pc.Expression | str | None = None) -> ReadPlan:  # noqa: A002
        """Says which part of the table a read with `filter` opens. Only the log is read; see `to_batches`."""
        from tablefeed.delta.stats.stats_columns import record_counts
        from tablefeed.feed.scan.arrow_filter import checked_filter
        from tablefeed.feed.scan.pruning import MAY_MATCH, Pruner

        row_filter = checked_filter(filter, self.schema, table=self._snapshot.schema, url=self._log.url)
        batches, files_of_table = self._live_files(with_stats=True), 0
        if row_filter is not None:
            columns = table_scan(self._snapshot).columns
            batches = Pruner(row_filter, schema=self._snapshot.schema, columns=columns).marked(batches)
        sizes: list[int] = []
        counts: list[int | None] = []
        for batch in batches:
            files_of_table += batch.num_rows
            opened = batch if row_filter is None else batch.filter(batch[MAY_MATCH.name])
            sizes += opened["size_bytes"].to_pylist()
            counts += record_counts(opened["stats"]).to_pylist()
        return ReadPlan(
            filter=None if filter is None else shown_filter(filter),
            files=len(sizes),
            files_of_table=files_of_table,
            bytes=sum(sizes),
            rows=None if None in counts else sum(count for count in counts if count),
        )

    def to_arrow(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | str | None = None,  # noqa: A002
        on_progress: OnProgress | None = None,
    ) -> pa.Table:
        """Gives the rows of `to_batches` as one table, in memory."""
        return self.to_batches(columns=columns, filter=filter, on_progress=on_progress).read_all()

    def to_pandas(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | str | None = None,  # noqa: A002
        on_progress: OnProgress | None = None,
    ) -> pd.DataFrame:
        """Gives the rows of `to_batches` as a DataFrame of pandas, in memory. Raises ImportError without pandas."""
        import pandas as pd

        frame = self.to_batches(columns=columns, filter=filter, on_progress=on_progress).read_pandas()
        assert isinstance(frame, pd.DataFrame)  # noqa: S101 - pyarrow has no types
        return frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Gives the rows as a stream to programs that know Arrow's PyCapsule interface: DuckDB, Polars, pyarrow.

        Each call begins anew. A file is read when the stream comes to it.
        """
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def history(self, limit: int | None = None) -> Iterator[CommitInfo]:
        """Gives each commit's info, the newest first, at most `limit` (None: all). Unknown fields are kept.

        Only commits that the log still has are given. A commit without commitInfo has no fields.
        """
        return (
            CommitInfo(version=commit.version, committed_at_ms=at_ms, fields=dict(commit.info or {}))
            for commit, at_ms in self._timed_commits(limit)
        )

    def commits(
        self, limit: int | None = None, *, on_unreadable: Callable[[TablefeedError], None] | None = None
    ) -> Iterator[Commit]:
        """Gives each commit as `history` does, with its files and all that it changed.

        A commit that cannot be read is left out where `on_unreadable` is given, which is called with the error. It
        counts for `limit`. By default, the error is raised.
        """
        timed = self._timed_commits(limit, on_unreadable)
        return (replace(commit, committed_at_ms=at_ms) for commit, at_ms in timed)

    def txn_version(self, app_id: str) -> int | None:
        """Gives the newest txn version of the application `app_id` in this table; None where the table has none."""
        txn = self._snapshot.facts.txns.get(text(app_id, argument="app_id"))
        return None if txn is None else txn.txn_version

    @property
    def _log(self) -> TableLog:
        return self._snapshot.log

    def _timed_commits(
        self, limit: int | None, on_unreadable: Callable[[TablefeedError], None] | None = None
    ) -> Iterator[tuple[Commit, int]]:
        if limit is not None:
            limit = whole_number(limit, argument="limit", least=0)
        return self._newest_first(limit, on_unreadable)

    def _refuse_other(self) -> None:
        """Raises OffsetError where another table is at the path now, and TableNotFoundError where none is."""
        SameTable(self._snapshot, remedy="Open the table again.").compare()

    def _newest_first(
        self, limit: int | None, on_unreadable: Callable[[TablefeedError], None] | None
    ) -> Iterator[tuple[Commit, int]]:
        self._refuse_other()
        log_files = [
            f for f in self._log.listing() if f.kind is LogFileKind.COMMIT and f.version <= self._snapshot.version
        ]
        times = file_times(log_files, self._snapshot)
        for log_file in log_files[::-1][:limit]:
            try:
                commit = required_commit(self._log, log_file)
            except TablefeedError as error:
                if on_unreadable is None or not is_of_one_commit(error):
                    raise
                on_unreadable(error)
                continue
            yield commit, times.get(commit.version, commit.committed_at_ms or log_file.modified_ms)

    def _rows(
        self, schema: pa.Schema, row_filter: RowFilter | None, on_progress: OnProgress | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the files that may have rows that pass `row_filter`. The rows are not filtered here."""
        from tablefeed.delta.columns import to_add_files

        scan = table_scan(self._snapshot)
        total = None if on_progress is None else sum(batch.num_rows for batch in self._files(scan, row_filter))
        report = logged(on_progress, url=self._log.url)
        adds = (add for batch in self._files(scan, row_filter) for add in to_add_files(batch))
        for done, add in enumerate(adds, start=1):
            yield from read_task(scan.of([add]), schema, store=self._log.store)
            report(Progress(step="files read", done=done, total=total))

    def _files(self, scan: ScanTask, row_filter: RowFilter | None) -> Iterator[pa.RecordBatch]:
        if row_filter is None:
            return self._live_files()
        from tablefeed.feed.scan.pruning import Pruner

        pruner = Pruner(row_filter, schema=self._snapshot.schema, columns=scan.columns)
        return pruner.matching(self._live_files(with_stats=True, asked=row_filter.predicate))

    def _live_files(self, *, with_stats: bool = False, asked: Predicate | None = None) -> Iterator[pa.RecordBatch]:
        """Gives `Snapshot.live_files`. Where the log is read for them, it must still be that of the table."""
        if self._snapshot.loaded_files() is None:
            self._refuse_other()
        return self._snapshot.live_files(with_stats=with_stats, asked=asked)
