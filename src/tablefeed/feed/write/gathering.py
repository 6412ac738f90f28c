"""Combines the small files of many tasks into larger ones before the commit: Delta-Spark's optimised writes.

The JAR shuffles rows before its tasks write them. A Python sink cannot: Spark has already given each task its rows. So
here the driver rewrites the tasks' files before it commits. Rows are streamed, and the rows of a file keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from tablefeed.errors import naming_its_table
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.feed.write.orphans import delete_orphans, deleted_on_error
from tablefeed.feed.write.write_plan import DeltaPlan, WritePlan
from tablefeed.model.actions import AddFile
from tablefeed.store import Store, open_store

GATHERED_BYTES = 128 << 20
"""The target size of files where the table names none, as in Delta-Spark's optimised writes."""

SMALL_SHARE = 4
"""A file is small below the target size divided by this. Larger files are not worth another pass over their rows."""


@contextmanager
def gathered(plan: WritePlan, files: Sequence[AddFile], *, now_ms: int) -> Iterator[tuple[AddFile, ...]]:
    """Gives the files to commit: `files`, written under `plan`; small ones are combined where the plan asks for it.

    The small files are deleted when the context ends, with or without an error. Where writing a larger file fails, the
    larger files are deleted, and the small ones stay.
    """
    if not isinstance(plan, DeltaPlan) or not plan.shape.is_gathered:
        yield tuple(files)
        return
    bins = list(_bins(files, plan.shape.target_bytes or GATHERED_BYTES))
    store = open_store(plan.location, for_store(plan.storage_options))
    small = {add.path for each in bins for add in each}
    larger = rewritten_in_bins(plan, bins, store, now_ms=now_ms)
    try:
        yield (*(add for add in files if add.path not in small), *larger)
    finally:
        delete_orphans(store, small)  # the commit does not name them, whether it succeeded or not


def _bins(files: Iterable[AddFile], target_bytes: int) -> Iterator[list[AddFile]]:
    """Gives groups of two or more small files of one partition, in order, each group of at most `target_bytes`."""
    by_partition: dict[tuple[tuple[str, str | None], ...], list[AddFile]] = {}
    for add in files:
        if add.size_bytes * SMALL_SHARE < target_bytes:
            by_partition.setdefault(tuple(sorted(add.partition_values.items())), []).append(add)
    for adds in by_partition.values():
        taken: list[AddFile] = []
        for add in adds:
            if taken and sum(each.size_bytes for each in taken) + add.size_bytes > target_bytes:
                yield taken
                taken = []
            taken.append(add)
        if len(taken) > 1:
            yield taken


@naming_its_table
def rewritten_in_bins(
    plan: DeltaPlan, bins: Iterable[Sequence[AddFile]], store: Store, *, now_ms: int
) -> tuple[AddFile, ...]:
    """Writes the rows of each bin of the table's files to new files under `plan`; deletes these where it raises.

    Where the plan carries ids, rows keep those that they have in the table. Raises LogError where these are not known.
    """
    from tablefeed.delta.row_tracking import IdColumns
    from tablefeed.delta.schema.arrow_schema import to_arrow
    from tablefeed.feed.scan.delta_task import DeltaTask, delta_columns
    from tablefeed.feed.scan.row_ids import read_with_ids
    from tablefeed.feed.scan.task import read_task
    from tablefeed.feed.write.delta_write import write_delta_task

    arrow = to_arrow(plan.schema)
    columns = delta_columns(plan.schema, plan.metadata_after)
    scan = DeltaTask(url=plan.location, storage_options=plan.storage_options, columns=columns)
    again = plan.for_table_rows(len(arrow))
    written: list[AddFile] = []
    with deleted_on_error(store) as paths:
        for number, adds in enumerate(bins):
            if plan.carried:
                files = [(add, scan.file(add)) for add in adds]
                rows = read_with_ids(scan, files, arrow, IdColumns(*plan.carried), store=store)
            else:
                rows = read_task(scan.of(adds), arrow, store=store)
            written += write_delta_task(again, rows, task=number, now_ms=now_ms, store=store)
            paths[:] = [add.path for add in written]
    return tuple(written)
