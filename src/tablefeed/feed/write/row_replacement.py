"""An overwrite of the rows of a predicate: files that have some of them are written anew without them.

For `replaceWhere` on columns that are no partition columns. The commit does this on the driver, before its put: rows
are streamed, so that memory does not grow with them, and of a file they are read twice where some of them stay, first
by the predicate's columns alone. Rows that stay were held against the table's rules when they came, and are asked
nothing. As everywhere, what is written here is part of the table by the put alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tablefeed.delta.change_feed import records_changes
from tablefeed.delta.schema.schema_string import parse_schema, to_arrow
from tablefeed.delta.stats.stats_text import num_records
from tablefeed.errors import StoreError
from tablefeed.feed.scan.task import RowFilter, ScanTask, read_task, scan_file, table_columns
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.align import Alignment
from tablefeed.feed.write.change_writing import marked, write_changes
from tablefeed.feed.write.replacement import matches
from tablefeed.feed.write.sink import write_task
from tablefeed.feed.write.write_plan import WritePlan
from tablefeed.feed.write.write_rules import Scope
from tablefeed.log.changes import ChangeType
from tablefeed.model.actions import AddFile, CdcFile, FileAction, Metadata

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """What makes way and what takes its place beside the new rows: files as the log has them.

    `removed` are all files with rows of the predicate, `added` hold the `copied_rows` of theirs that stay. `changes`
    tell of all rows that went and came; there are none where adds and removes tell it, or nobody asks.
    """

    removed: tuple[AddFile, ...] = ()
    added: tuple[AddFile, ...] = ()
    changes: tuple[CdcFile, ...] = ()
    deleted_rows: int = 0

    @property
    def written(self) -> tuple[AddFile | CdcFile, ...]:
        """The files that were written."""
        return self.added + self.changes

    @property
    def copied_rows(self) -> int:
        """Rows that are in other files now."""
        return sum(num_records(file.stats) or 0 for file in self.added)


class RowReplacement:
    """What a write under `plan`, whose predicate `rows` is, has to look into."""

    def __init__(self, plan: WritePlan, rows: RowFilter, log: TableLog) -> None:
        from tablefeed.feed.scan.pruning import Pruner

        self._rows, self._log = rows, log
        schema = parse_schema(plan.schema_string, url=log.url)
        self._schema = to_arrow(schema)
        self._columns = table_columns(schema, _metadata(plan), url=log.url)
        self._pruner = Pruner(rows.condition, schema=schema, columns=self._columns)

    def reads(self, file: FileAction) -> bool:
        """Whether `file`, of another commit, may have a row that this write would have had to see."""
        if isinstance(file, CdcFile):
            return False
        if file.partition_values is None:
            return True  # a remove need not say whose it was
        return self._pruner.choose([file.partition_values], [file.stats])[0]

    def found(self, state: Snapshot) -> Iterator[tuple[AddFile, int, int]]:
        """Gives the live files of `state` with rows of the predicate: how many these are, and how many stay."""
        from tablefeed.delta.columns import to_add_files

        for batch in self._pruner.matching(state.live_files(with_stats=True)):
            for add in to_add_files(batch):
                matched = rows = 0
                for read in read_task(self._task([add]), self._rows.fields, store=self._log.store):
                    matched += matches(read, self._rows, url=self._log.url).true_count
                    rows += read.num_rows
                if matched:
                    yield add, matched, rows - matched

    def rows_of(self, files: Sequence[AddFile], *, replaced: bool) -> Iterator[pa.RecordBatch]:
        """Gives the rows of `files` that make way, or those that stay, in all of the table's columns."""
        import pyarrow.compute as pc

        for batch in read_task(self._task(files), self._schema, store=self._log.store):
            held = matches(batch.select(self._rows.fields.names), self._rows, url=self._log.url)
            yield batch.filter(held if replaced else pc.invert(held))

    def all_rows_of(self, files: Sequence[AddFile]) -> Iterator[pa.RecordBatch]:
        """Gives the rows of `files`."""
        return read_task(self._task(files), self._schema, store=self._log.store)

    def _task(self, files: Sequence[AddFile]) -> ScanTask:
        return ScanTask(
            url=self._log.location,
            storage_options=self._log.storage_options,
            files=tuple(scan_file(add) for add in files),
            columns=self._columns,
        )


def reader_of(plan: WritePlan, log: TableLog) -> Callable[[FileAction], bool] | None:
    """Gives what says whether a rival's file is one that a write under `plan` had to see; None: no predicate by row."""
    rows = plan.replaces.by_row
    return None if rows is None else RowReplacement(plan, rows, log).reads


def rewritten(log: TableLog, state: Snapshot, plan: WritePlan, new: Sequence[AddFile], *, now_ms: int) -> Rewriting:
    """Writes what of `state` stays when `new`, the files of a write under `plan`, replace the rows of its predicate.

    Where it raises, its files are gone again: DataFileError and LogError for a table that cannot be read, and as
    `write_task`.
    """
    rows = plan.replaces.by_row
    if rows is None:
        return Rewriting()
    replacement = RowReplacement(plan, rows, log)
    found = list(replacement.found(state))
    removed = tuple(add for add, _, _ in found)
    # A partition after the other: few files are open at a time.
    partly = sorted((add for add, _, stay in found if stay), key=_partition)
    rewriting = Rewriting(removed=removed, deleted_rows=sum(matched for _, matched, _ in found))
    if not partly:
        return rewriting  # whole files go: adds and removes tell the changes
    staying = replacement.rows_of(partly, replaced=False)
    rewriting = replace(rewriting, added=write_task(_of_staying_rows(plan), staying, task=0, now_ms=now_ms))
    if records_changes(_metadata(plan).configuration):
        try:
            changes = _changes(replacement, sorted(removed, key=_partition), sorted(new, key=_partition))
            rewriting = replace(rewriting, changes=write_changes(plan, changes, store=log.store))
        except BaseException:
            drop(log, rewriting)
            raise
    return rewriting


def drop(log: TableLog, rewriting: Rewriting) -> None:
    """Deletes the files that were written, which no commit names."""
    for file in rewriting.written:
        # What stays is for VACUUM, and there is an error to tell of.
        with suppress(StoreError):
            log.store.delete(file.path)


def _changes(
    replacement: RowReplacement, removed: Sequence[AddFile], new: Sequence[AddFile]
) -> Iterator[pa.RecordBatch]:
    # "Add CDC File": where a commit has one, readers take its changes from such files alone.
    yield from marked(replacement.rows_of(removed, replaced=True), ChangeType.DELETE)
    yield from marked(replacement.all_rows_of(new), ChangeType.INSERT)


def _of_staying_rows(plan: WritePlan) -> WritePlan:
    """The plan by which the table's own rows are written: as they are, held against nothing."""
    columns = len(parse_schema(plan.schema_string, url=plan.location).fields)
    return replace(
        plan,
        alignment=Alignment(sources=tuple(range(columns))),
        kept=None,
        identity=(),
        replaces=replace(plan.replaces, scope=Scope.TABLE),
    )


def _metadata(plan: WritePlan) -> Metadata:
    if plan.metadata is not None or plan.found is None:
        return plan.metadata or Metadata(table_id="", schema_string=plan.schema_string)
    return Metadata(
        table_id=plan.found.table_id,
        schema_string=plan.schema_string,
        partition_columns=plan.partition_columns,
        configuration=plan.found.configuration,
    )


def _partition(add: AddFile) -> list[tuple[str, str]]:
    return sorted((name, "" if text is None else f"={text}") for name, text in add.partition_values.items())
