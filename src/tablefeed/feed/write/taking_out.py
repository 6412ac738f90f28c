"""Takes rows out of live files: by deletion vectors where the table has them, else by files without these rows.

A file of which no row stays is removed, whatever the table has. All files that are written belong to the table only
after the commit; where something raises here, they are deleted.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyroaring import BitMap64

from tablefeed.delta import features
from tablefeed.delta.deletion_vectors import encode
from tablefeed.delta.stats.stats_text import loose, num_records
from tablefeed.feed.scan.vectors import deleted_positions
from tablefeed.feed.snapshot.table_files import TableFiles
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.write.change_data import with_change, write_changes
from tablefeed.feed.write.delta_write import random_folder, write_delta_task
from tablefeed.feed.write.orphans import deleted_on_error
from tablefeed.feed.write.rewriting import Rewriting, by_partition
from tablefeed.feed.write.target_rows import Hit, TargetRows
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.log.changes import ChangeType
from tablefeed.model.actions import AddFile
from tablefeed.store import Within

if TYPE_CHECKING:
    import pyarrow as pa


def taken_out(
    plan: DeltaPlan,
    target: TargetRows,
    hits: Sequence[Hit],
    *,
    now_ms: int,
    changes: Callable[[], Iterator[pa.RecordBatch]] | None,
    updates: bool,
) -> Rewriting:
    """Takes the rows of `hits` out of their files; `updates` says whether new rows take the place of some.

    `changes` gives the rows that the commit changes, with `_change_type`. They are written where the table records
    changes, unless adds and removes imply them. None: the caller writes them. Copied rows keep the ids and versions
    that the table gave them; raises UnsupportedFeatureError and LogError where these are not known.
    """
    if hits:
        target.check_rows_may_go()
    properties = target.snapshot.properties
    has_vectors = features.may_write_vectors(target.snapshot.protocol, properties)
    emptied: list[Hit] = []
    marked: list[Hit] = []
    copied: list[Hit] = []
    for hit in hits:
        can_be_marked = has_vectors and num_records(hit.file.stats) is not None
        (emptied if not hit.rows_left else marked if can_be_marked else copied).append(hit)
    rewriting = Rewriting(
        removed=tuple(hit.file for hit in (*emptied, *marked, *copied)),
        deleted_rows=sum(len(hit.positions) for hit in hits),
    )
    with deleted_on_error(target.snapshot.log.store) as begun:
        rewriting = _marked(rewriting, plan, target, marked)
        begun += rewriting.paths
        if copied:
            rows = target.rows_beside(copied)
            again = replace(plan.for_table_rows(len(plan.schema.fields)), carried=target.id_columns or ())
            rewriting = replace(
                rewriting,
                added=write_delta_task(again, rows, task=0, now_ms=now_ms, store=target.snapshot.log.store),
            )
            begun += (file.path for file in rewriting.added)
        if changes is not None and properties.records_changes and (copied or updates):
            rewriting = replace(rewriting, changes=write_changes(plan, changes(), store=target.snapshot.log.store))
    return rewriting


def _marked(rewriting: Rewriting, plan: DeltaPlan, target: TargetRows, hits: Sequence[Hit]) -> Rewriting:
    """Gives `rewriting` with the files of `hits` marked; their vectors are durable when this returns."""
    if not hits:
        return rewriting
    log = target.snapshot.log
    files = TableFiles(log.store, storage_options=log.storage_options)
    vectors = [hit.positions | _deleted(files, hit.file) for hit in hits]
    described, file = encode(vectors, file_id=uuid.uuid4(), folder=random_folder(plan))
    adds = tuple(
        replace(hit.file, deletion_vector=vector, stats=loose(hit.file.stats), data_change=True)
        for hit, vector in zip(hits, described, strict=True)
    )
    with log.store.create(file.path, within=Within(directory="")) as opened:
        opened.write(file.data)
    return replace(rewriting, marked=adds, vectors=file.path)


def _deleted(files: TableFiles, file: AddFile) -> BitMap64:
    vector = file.deletion_vector
    return BitMap64() if vector is None else deleted_positions(files, vector, of_file=file.path)


def counts(rewriting: Rewriting) -> dict[str, int]:
    """Gives what the commit of `rewriting` counts in operationMetrics, besides rows, under Delta-Spark's names."""
    marked = {add.path for add in rewriting.marked}
    had = [file for file in rewriting.removed if file.deletion_vector is not None]
    again = sum(file.path in marked for file in had)
    return {
        "numRemovedFiles": len(rewriting.gone),
        "numRemovedBytes": sum(file.size_bytes for file in rewriting.gone),
        "numAddedFiles": len(rewriting.added),
        "numAddedBytes": sum(file.size_bytes for file in rewriting.added),
        "numAddedChangeFiles": len(rewriting.changes),
        "numDeletionVectorsAdded": len(rewriting.marked),
        "numDeletionVectorsUpdated": again,
        "numDeletionVectorsRemoved": len(had),
    }


# --- replaceWhere on columns that are not partition columns: the commit does it on the driver, before its put ---------


def target_of(plan: DeltaPlan, state: Snapshot) -> TargetRows:
    """Gives the rows of `state` in the columns that the table has after the write of `plan`."""
    return TargetRows(replace(state, metadata=plan.metadata_after))


def rewritten(state: Snapshot, plan: DeltaPlan, new: Sequence[AddFile], *, now_ms: int) -> Rewriting:
    """Takes the rows that match the predicate of `plan` out of the files of `state`; `new` are the new rows' files.

    Writes nothing where `plan` has no predicate by row. Raises as `TargetRows` and `taken_out`.
    """
    rows = plan.replaces.by_row
    if rows is None:
        return Rewriting()
    target = target_of(plan, state)
    hits = list(target.hits(rows))

    def changes() -> Iterator[pa.RecordBatch]:
        # "Add CDC File": if a commit has such files, readers take its changes from them alone.
        yield from with_change(target.rows_of(hits), ChangeType.DELETE)
        yield from with_change(target.read(sorted(new, key=by_partition), target.schema), ChangeType.INSERT)

    return taken_out(plan, target, hits, now_ms=now_ms, changes=changes, updates=False)
