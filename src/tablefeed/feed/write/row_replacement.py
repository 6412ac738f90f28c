"""Overwrites the rows that match a predicate: files with some matching rows are rewritten without them.

This is `replaceWhere` on columns that are not partition columns. The commit does it on the driver, before its put.
Rows are streamed, so memory does not grow with them. A file is first read in the predicate's columns alone; if some of
its rows stay, all columns are read to copy those. Rows that stay are not checked against the table's rules again. As
in every write, the files belong to the table only after the put.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tablefeed.delta import names, paths
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.feed.scan.delta_task import DeltaTask, delta_columns
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.delta_write import file_layout, file_path, logged_values, write_delta_task
from tablefeed.feed.write.orphans import deleted_on_error, new_files
from tablefeed.feed.write.replacement import matches
from tablefeed.feed.write.rewriting import Rewriting
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.log.changes import ChangeType
from tablefeed.model.actions import AddFile, CdcFile, FileAction
from tablefeed.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.predicate import RowFilter
    from tablefeed.data.write import FileLayout


class RowReplacement:
    """Finds and reads the files that a write under `plan` has to rewrite; `rows` is the plan's predicate."""

    def __init__(self, plan: DeltaPlan, rows: RowFilter, log: TableLog) -> None:
        from tablefeed.feed.scan.pruning import Pruner

        self._rows, self._log = rows, log
        self._schema = to_arrow(plan.schema)
        columns = delta_columns(plan.schema, plan.metadata_after)
        self._scan = DeltaTask(url=log.location, storage_options=log.storage_options, columns=columns)
        self._pruner = Pruner(rows, schema=plan.schema, columns=columns)

    def reads(self, file: FileAction) -> bool:
        """Whether `file`, which another commit added or removed, may have a row that this write replaces."""
        if isinstance(file, CdcFile):
            return False
        if file.partition_values is None:
            return True  # a remove may leave out its partition values
        return self._pruner.choose([file.partition_values], [file.stats])[0]

    def found(self, state: Snapshot) -> Iterator[tuple[AddFile, int, int]]:
        """Gives the live files of `state` with matching rows, each with the numbers of matching and of other rows."""
        from tablefeed.delta.columns import to_add_files

        for batch in self._pruner.matching(state.live_files(with_stats=True)):
            for add in to_add_files(batch):
                matched = rows = 0
                for read in read_task(self._scan.of([add]), self._rows.fields, store=self._log.store):
                    matched += matches(read, self._rows).true_count
                    rows += read.num_rows
                if matched:
                    yield add, matched, rows - matched

    def rows_of(self, files: Sequence[AddFile], *, replaced: bool) -> Iterator[pa.RecordBatch]:
        """Gives the rows of `files` that are replaced, or those that stay, in all of the table's columns."""
        import pyarrow.compute as pc

        for batch in read_task(self._scan.of(files), self._schema, store=self._log.store):
            held = matches(batch.select(self._rows.fields.names), self._rows)
            yield batch.filter(held if replaced else pc.invert(held))

    def all_rows_of(self, files: Sequence[AddFile]) -> Iterator[pa.RecordBatch]:
        """Gives all rows of `files`, in all of the table's columns."""
        return read_task(self._scan.of(files), self._schema, store=self._log.store)


def rewritten(log: TableLog, state: Snapshot, plan: DeltaPlan, new: Sequence[AddFile], *, now_ms: int) -> Rewriting:
    """Rewrites each file of `state` in which some rows match the predicate of `plan`; `new` are the new rows' files.

    Writes nothing where `plan` has no predicate by row. Raises DataFileError and LogError for a table that cannot be
    read, and as `sink.write_task`; before that it tries to delete the files that it wrote.
    """
    rows = plan.replaces.by_row
    if rows is None:
        return Rewriting()
    replacement = RowReplacement(plan, rows, log)
    found = list(replacement.found(state))
    removed = tuple(add for add, _, _ in found)
    # Files of one partition follow each other, so that few files are open at a time.
    partly = sorted((add for add, _, stay in found if stay), key=_partition)
    rewriting = Rewriting(removed=removed, deleted_rows=sum(matched for _, matched, _ in found))
    if not partly:
        return rewriting  # whole files are removed: adds and removes imply the changes
    again = plan.for_table_rows(len(plan.schema.fields))
    staying = replacement.rows_of(partly, replaced=False)
    rewriting = replace(rewriting, added=write_delta_task(again, staying, task=0, now_ms=now_ms))
    if TableProperties.of(plan.metadata_after).records_changes:
        with deleted_on_error(log.store) as begun:
            begun += (file.path for file in rewriting.written)
            changes = _changes(replacement, sorted(removed, key=_partition), sorted(new, key=_partition))
            rewriting = replace(rewriting, changes=_write_changes(plan, changes, store=log.store))
    return rewriting


def _changes(
    replacement: RowReplacement, removed: Sequence[AddFile], new: Sequence[AddFile]
) -> Iterator[pa.RecordBatch]:
    # "Add CDC File": if a commit has such files, readers take its changes from them alone.
    yield from _marked(replacement.rows_of(removed, replaced=True), ChangeType.DELETE)
    yield from _marked(replacement.all_rows_of(new), ChangeType.INSERT)


def _partition(add: AddFile) -> list[tuple[str, str]]:
    return sorted((name, "" if text is None else f"={text}") for name, text in add.partition_values.items())


# --- change data files ("Change Data Files"): the rows that a commit changed, with the column `_change_type` --------


def _marked(batches: Iterable[pa.RecordBatch], change: ChangeType) -> Iterator[pa.RecordBatch]:
    """Gives `batches` with `change` in `_change_type`, as the last column."""
    import pyarrow as pa

    for batch in batches:
        yield batch.append_column(names.CHANGE_TYPE, pa.repeat(pa.scalar(change.value), batch.num_rows))


def _write_changes(plan: DeltaPlan, rows: Iterable[pa.RecordBatch], *, store: Store) -> tuple[CdcFile, ...]:
    """Writes `rows`, the table's columns and `_change_type`, to change data files; they are durable when this returns.

    Raises as `sink.write_task`, after it tried to delete its files.
    """
    from tablefeed.data.write import write_files

    def path_of(values: Mapping[str, pa.Scalar], number: int) -> str:
        name = f"cdc-00000-{uuid.uuid4()}.c{number:03d}{plan.shape.codec}.parquet"
        return f"{names.CHANGES_DIR}/{file_path(plan, name, values)}"

    with new_files(store, path_of) as new_file:
        written = write_files(rows, _with_change_type(file_layout(plan)), new_file)
    return tuple(
        CdcFile(
            path=file.path,
            log_path=paths.encode_path(file.path),
            partition_values=logged_values(plan, file.partition_values),
            size_bytes=file.size_bytes,
        )
        for file in written
    )


def _with_change_type(layout: FileLayout) -> FileLayout:
    import pyarrow as pa

    column = pa.field(names.CHANGE_TYPE, pa.string())
    return replace(
        layout,
        schema=layout.schema.append(column),
        # The column belongs to the feed, not to the table: its name is not mapped, and it has no field id.
        stored_as=None if layout.stored_as is None else layout.stored_as.append(column),
        leaves=(),
    )
