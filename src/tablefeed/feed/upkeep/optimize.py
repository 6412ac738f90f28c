"""Small files folded into larger ones, in commits that change no row: `tablefeed.optimize`.

The files are chosen as by Delta-Spark's OPTIMIZE: in each partition those below the target size, and those with many
deleted rows, packed by size into bins up to the target. A bin of two files or more becomes one file, so a second run
has less to do. Unlike there, a file with many deleted rows is rewritten even alone, as by REORG TABLE. Rows are written
as they are: no table rule is checked and no value is made. Readers of changes skip such commits because their files
have `dataChange` false. Where another commit changed one of the folded files, that commit wins and the work is planned
again.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.predicate import Unknown, columns_in
from tablefeed.delta import row_tracking
from tablefeed.delta.columns import FILE_COLUMNS, to_add_files
from tablefeed.delta.commit_info import Optimize
from tablefeed.delta.stats.stats_columns import record_counts
from tablefeed.errors import ConflictError, IllegalOptionError, naming_its_table
from tablefeed.feed.arguments import location, shown_filter, store_options, whole_number
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Surroundings, Transaction
from tablefeed.feed.progress_lines import logged
from tablefeed.feed.scan.arrow_filter import checked_filter
from tablefeed.feed.scan.delta_task import DeltaColumns, delta_columns
from tablefeed.feed.scan.pruning import Pruner
from tablefeed.feed.snapshot.open_log import open_maintained
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.feed.upkeep.after_commit import USUAL, UpkeepOptions, behind, surroundings
from tablefeed.feed.write.delta_plan import plan_delta_write
from tablefeed.feed.write.evolution import check_voids
from tablefeed.feed.write.gathering import rewritten_in_bins
from tablefeed.log.conflicts import WriteKind
from tablefeed.log.replay import without_statistics
from tablefeed.model.actions import AddFile
from tablefeed.model.outcome import Committed, Optimized
from tablefeed.model.progress import OnProgress, Progress, unreported

if TYPE_CHECKING:
    from tablefeed.data.predicate import RowFilter

logger = logging.getLogger(__name__)

TARGET_BYTES = 1 << 30
"""Delta-Spark's default size of a file that OPTIMIZE makes."""

BEHIND_BYTES = 128 << 20
"""The target size of files that are folded in the background, as in Delta-Spark's auto compaction."""

DELETED_SHARE = 0.05
"""The share of deleted rows above which a file of any size is rewritten: `maxDeletedRowsRatio` in Delta-Spark."""

DELETED_SHARE_ALONE = 0.5
"""The same for a file that a fold in the background rewrites alone, so that it becomes half as large or smaller."""

FILES_OF_A_COMMIT = 10_000
"""About how many files one commit folds; no bin is split. Several commits keep finished work, and need less memory."""

_COUNTS = tuple(each.name for each in fields(Optimized) if each.name != "version")

PLANS = 3
"""How often the work is planned, each time on the table as other commits have left it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """What is folded, and how large files become. `rows` are chosen by partition columns alone; None: everything.

    `predicate` is the choice as the log records it. `auto`: the fold runs by itself, again and again. Then a file is
    folded only with smaller files that together have at least half of its size. So a row is rewritten only when its
    file grows by half or more, and not each time. Partitions with fewer than `least_files` files to fold do not change,
    except for files with many deleted rows: those where these are more than `deleted_share` of all.
    """

    target_bytes: int
    rows: RowFilter | None = None
    predicate: tuple[str, ...] = ()
    auto: bool = False
    least_files: int = 2
    deleted_share: float = DELETED_SHARE


def optimize(
    url: str | os.PathLike[str],
    *,
    where: str | pc.Expression | None = None,
    target_size_bytes: int | None = None,
    max_deleted_rows_ratio: float = DELETED_SHARE,
    storage_options: Mapping[str, str] | None = None,
    on_progress: OnProgress | None = None,
) -> Optimized:
    """Folds the small files of the table at `url` into files of about `target_size_bytes`; no row changes.

    Rows that deletion vectors delete are left behind. A file of any size is rewritten without them where they are more
    than `max_deleted_rows_ratio` of its rows; 0: where there are any. `where` chooses partitions: a predicate of
    Spark's SQL, or an expression of pyarrow's, over partition columns alone. The target is the table's
    `delta.targetFileSize`, or 1 GiB. The files that were folded stay on disk for readers of older versions, until
    `vacuum` deletes them. Rows are streamed; a large table gets several commits. Nothing is clustered, and clustered
    files of other writers are not changed. `on_progress` is called as files are merged, and begins at 0 again where the
    work is planned again. An error that it raises ends the work; commits that were made stay. Raises
    ConflictError where other commits keep changing the same files, else as `append`.
    """
    log = open_maintained(location(url), store_options(storage_options))
    snapshot = log.load_for_files()
    target = wanted_bytes(snapshot)
    if target_size_bytes is not None:
        target = whole_number(target_size_bytes, argument="target_size_bytes", least=1)
    share = max_deleted_rows_ratio
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise IllegalOptionError(option="max_deleted_rows_ratio", value=str(share), explain="must be from 0 to 1")
    rows, predicate = _partitions(where, snapshot)
    folding = Folding(target_bytes=target, rows=rows, predicate=predicate, deleted_share=share)
    return fold(snapshot, folding, on_progress=logged(on_progress, url=log.url))


@naming_its_table
def fold(
    snapshot: Snapshot,
    folding: Folding,
    *,
    plans: int = PLANS,
    around: Surroundings | None = None,
    on_progress: OnProgress = unreported,
) -> Optimized:
    """Folds the files of `snapshot`; plans again where other commits changed them, at most `plans` times in all.

    `around`: see `loop.commit`; None: the usual ones.
    """
    around = around or surroundings()
    commits: list[Optimized] = []
    for left in range(plans - 1, -1, -1):
        try:
            for done in _folded(snapshot, folding, around, on_progress):
                commits.append(done)  # noqa: PERF402 - those before a conflict count
            break
        except ConflictError as conflict:
            if not left:
                raise
            logger.info("optimize planned anew table=%s: %s", snapshot.log.url, conflict)
            snapshot = snapshot.log.load_for_files()
    totals = {name: sum(getattr(done, name) for done in commits) for name in _COUNTS}
    return Optimized(version=commits[-1].version if commits else None, **totals)


def fold_behind(snapshot: Snapshot, upkeep: UpkeepOptions = USUAL) -> None:
    """Folds small files of the table in the background; does nothing more after a conflict with another commit."""

    def fold_once() -> None:
        folding = Folding(target_bytes=wanted_bytes(snapshot, BEHIND_BYTES), auto=True)
        try:
            fold(snapshot.log.load_for_files(), folding, plans=1, around=surroundings(upkeep))
        except ConflictError as conflict:
            logger.info("optimize dropped table=%s: %s", snapshot.log.url, conflict)

    behind(snapshot, "optimize", fold_once, upkeep)


def wanted_bytes(snapshot: Snapshot, default: int = TARGET_BYTES) -> int:
    """Gives the file size in bytes that the table's properties ask for, else `default`."""
    return snapshot.properties.target_file_bytes or default


# --- what is asked -------------------------------------------------------------------------------------------------


def _partitions(where: object, snapshot: Snapshot) -> tuple[RowFilter | None, tuple[str, ...]]:
    if isinstance(where, str):
        from tablefeed.feed.scan.where import row_filter

        rows: RowFilter | None = row_filter(where, snapshot.schema)
    else:
        rows = checked_filter(where, snapshot.arrow_schema, table=snapshot.schema, url=snapshot.log.url)
    if rows is None:
        return None, ()
    shown = shown_filter(where)
    asked = {column.path[0] for column in columns_in(rows.predicate)}
    # What cannot be read names no column in its tree, but may ask about any.
    if rows.predicate == Unknown(frozenset()) or not asked <= {*snapshot.metadata.partition_columns}:
        named = ", ".join(snapshot.metadata.partition_columns)
        which = f"these are {named}" if named else "the table has none"
        raise IllegalOptionError(option="where", value=shown, explain=f"must name partition columns only; {which}")
    return rows, (shown,)


# --- which files ---------------------------------------------------------------------------------------------------


def _candidates(snapshot: Snapshot, folding: Folding, columns: DeltaColumns) -> pa.Table:
    """Gives the live files that may be folded, in columns, without their statistics.

    The last column (`_ALONE`) says which are rewritten even alone.
    """
    alone_share = DELETED_SHARE_ALONE if folding.auto else folding.deleted_share
    pruner = None if folding.rows is None else Pruner(folding.rows, schema=snapshot.schema, columns=columns)
    found: list[pa.RecordBatch] = []
    for batch in snapshot.live_files(with_stats=True):
        counts = record_counts(batch["stats"])
        deleted = pc.struct_field(batch["deletion_vector"], "cardinality")
        share = pc.divide(pc.cast(deleted, pa.float64()), pc.cast(counts, pa.float64()))
        # Without statistics the share is not known: a file with a vector is chosen, and its new file has statistics.
        worn, alone = (
            pc.and_(batch["deletion_vector"].is_valid(), pc.coalesce(pc.greater(share, most), _TRUE))
            for most in (folding.deleted_share, alone_share)
        )
        small = pc.less(batch["size_bytes"], folding.target_bytes)
        # "Clustered Table": only the clustering implementation that ordered a file may rewrite it.
        chosen = pc.and_(pc.or_(small, worn), batch["clustering_provider"].is_null())
        if pruner is not None:
            chosen = pc.and_(chosen, pruner.may_match(batch["partition_values"], batch["stats"]))
        found.append(without_statistics(batch).append_column(_ALONE, alone).filter(chosen))
    return pa.Table.from_batches(found, FILE_COLUMNS.append(_ALONE)).combine_chunks()


_ALONE = pa.field("alone", pa.bool_())
_TRUE = pa.scalar(value=True)
_WHOLE = 1 << 62


def _bins(files: pa.Table, folding: Folding) -> Iterator[list[int]]:
    """Gives bins of row numbers of `files`: of one partition, the smallest first, up to the target size.

    A bin has two files or more, or one that is rewritten even alone.
    """
    partitions = [tuple(sorted(pairs)) for pairs in files["partition_values"].to_pylist()]
    crowded = {partition for partition, count in Counter(partitions).items() if count >= folding.least_files}
    sizes, alone = files["size_bytes"].to_pylist(), files[_ALONE.name].to_pylist()
    order = pc.sort_indices(files, sort_keys=[(name, "ascending") for name in ("size_bytes", "log_path", "key")])
    open_bins: dict[tuple[tuple[str, str | None], ...], tuple[list[int], int]] = {}
    for row in order.to_pylist():
        if partitions[row] not in crowded and not alone[row]:
            continue
        rows, size_bytes = open_bins.get(partitions[row], ([], 0))
        too_large = size_bytes + sizes[row] > folding.target_bytes or (folding.auto and sizes[row] > 2 * size_bytes)
        if rows and too_large:
            if len(rows) > 1 or alone[rows[0]]:
                yield rows
            rows, size_bytes = [], 0
        rows.append(row)
        open_bins[partitions[row]] = (rows, size_bytes + sizes[row])
    yield from (rows for rows, _ in open_bins.values() if len(rows) > 1 or alone[rows[0]])


def _commits(bins: Iterator[list[int]]) -> Iterator[list[list[int]]]:
    """Groups `bins` by the commit that folds them."""
    gathered: list[list[int]] = []
    for rows in bins:
        if gathered and sum(map(len, gathered)) + len(rows) > FILES_OF_A_COMMIT:
            yield gathered
            gathered = []
        gathered.append(rows)
    if gathered:
        yield gathered


# --- the work ------------------------------------------------------------------------------------------------------


def _folded(snapshot: Snapshot, folding: Folding, around: Surroundings, on_progress: OnProgress) -> Iterator[Optimized]:
    """Folds, and gives the outcome of each commit after it was made."""
    log = snapshot.log
    check_voids(snapshot.schema)
    plan = plan_delta_write(log, snapshot, snapshot.schema, kind=WriteKind.OPTIMIZE)
    # A bin becomes one file, however its rows compress. Otherwise the number of files might never fall.
    plan = replace(
        plan,
        shape=replace(plan.shape, target_bytes=_WHOLE),
        carried=row_tracking.id_columns(snapshot.properties, snapshot.schema) or (),
    )
    columns = delta_columns(snapshot.schema, snapshot.metadata)
    files = _candidates(snapshot, folding, columns)
    state = snapshot
    all_bins = list(_bins(files, folding))
    progress = Progress(step="files merged", done=0, total=sum(map(len, all_bins)))
    for bins in _commits(iter(all_bins)):
        folded = [tuple(_values(files, rows)) for rows in bins]
        in_order = (sorted(each, key=lambda add: (add.modified_ms, add.log_path)) for each in folded)
        oldest_first = _reported(in_order, progress, on_progress)
        progress = replace(progress, done=progress.done + sum(map(len, folded)))
        written = rewritten_in_bins(plan, oldest_first, log.store, now_ms=around.now_ms())
        transaction = Transaction(
            plan=plan,
            files=tuple(replace(add, data_change=False) for add in written),
            kind=WriteKind.OPTIMIZE,
            operation=Optimize(predicate=folding.predicate, auto=folding.auto),
            folded=tuple(add for each in folded for add in each),
        )
        done, state = commit(log, state, transaction, around)
        if isinstance(done, Committed):
            yield _outcome(done, transaction)


def _reported(bins: Iterable[list[AddFile]], progress: Progress, on_progress: OnProgress) -> Iterator[list[AddFile]]:
    """Gives `bins`, and reports each when the next is asked for: then its rows are written."""
    on_progress(progress)
    for each in bins:
        yield each
        progress = replace(progress, done=progress.done + len(each))
        on_progress(progress)


def _values(files: pa.Table, rows: Sequence[int]) -> Iterator[AddFile]:
    for batch in files.select(FILE_COLUMNS.names).take(rows).combine_chunks().to_batches():
        yield from to_add_files(batch)


def _outcome(done: Committed, transaction: Transaction) -> Optimized:
    return Optimized(
        version=done.version,
        files_removed=len(transaction.folded),
        files_added=len(transaction.files),
        bytes_removed=sum(add.size_bytes for add in transaction.folded),
        bytes_added=sum(add.size_bytes for add in transaction.files),
        deletion_vectors_removed=sum(add.deletion_vector is not None for add in transaction.folded),
    )
