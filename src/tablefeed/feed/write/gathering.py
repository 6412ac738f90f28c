"""Combines the small files of many tasks into larger ones before the commit: Delta-Spark's optimised writes.

The JAR shuffles rows before its tasks write them. A Python sink cannot: Spark has already given each task its rows. So
here the driver rewrites the tasks' files before it commits. Rows are streamed, and the rows of a file keep their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tablefeed.delta.schema.schema_string import parse_schema, to_arrow
from tablefeed.feed.scan.task import ScanTask, read_task, scan_file, table_columns
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.feed.write.align import Alignment
from tablefeed.feed.write.sink import write_task
from tablefeed.feed.write.write_plan import WritePlan, discard
from tablefeed.model.actions import AddFile, Metadata
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
    bins = list(_bins(files, plan.shape.target_bytes or GATHERED_BYTES)) if plan.shape.is_gathered else []
    if not bins:
        yield tuple(files)
        return
    store = open_store(plan.location, for_store(plan.storage_options))
    small = {add.path for each in bins for add in each}
    larger = _rewritten(plan, bins, store, now_ms=now_ms)
    try:
        yield (*(add for add in files if add.path not in small), *larger)
    finally:
        discard(store, small)  # the commit does not name them, whether it succeeded or not


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


def _rewritten(plan: WritePlan, bins: Sequence[Sequence[AddFile]], store: Store, *, now_ms: int) -> tuple[AddFile, ...]:
    schema = parse_schema(plan.schema_string, url=store.url)
    arrow = to_arrow(schema)
    columns = table_columns(schema, _metadata(plan), url=store.url)
    again = _as_written(plan, len(arrow))
    larger: list[AddFile] = []
    try:
        for number, adds in enumerate(bins):
            task = ScanTask(
                url=plan.location,
                storage_options=plan.storage_options,
                files=tuple(scan_file(add) for add in adds),
                columns=columns,
            )
            larger += write_task(again, read_task(task, arrow, store=store), task=number, now_ms=now_ms)
    except BaseException:
        discard(store, (add.path for add in larger))
        raise
    return tuple(larger)


def _as_written(plan: WritePlan, column_count: int) -> WritePlan:
    """The plan for rows that were written under `plan`: all columns are filled and were checked against the rules."""
    return replace(
        plan,
        alignment=Alignment(sources=tuple(range(column_count))),
        identity=(),
        kept=None,
    )


def _metadata(plan: WritePlan) -> Metadata:
    """The table's metadata after the commit, as far as the files depend on it."""
    if plan.metadata is not None:
        return plan.metadata
    configuration = plan.configuration if plan.found is None else plan.found.configuration
    return Metadata(
        table_id="",
        schema_string=plan.schema_string,
        partition_columns=plan.partition_columns,
        configuration=configuration,
    )
