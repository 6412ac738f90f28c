"""Writes the rows of a task to Parquet files of a Delta table, as its plan says (delta_plan.py).

`tablefeed.data` knows Parquet, `tablefeed.delta` the log's bytes.
"""

from __future__ import annotations

import random
import string
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from tablefeed.delta import paths
from tablefeed.delta.file_layout import Codec
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.delta.schema.column_mapping import MappingMode
from tablefeed.delta.schema.stored_schema import files_schema
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.feed.write.align import aligned
from tablefeed.feed.write.orphans import new_files
from tablefeed.feed.write.replaced_rows import as_replaced, check_partitions
from tablefeed.feed.write.row_rules import keeping, names_in_files
from tablefeed.feed.write.write_plan import DeltaPlan, check_text, partition_path, partition_texts
from tablefeed.model.actions import AddFile
from tablefeed.store import Store, Within, open_store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.write import Compression, FileLayout, WrittenFile


def write_delta_task(
    plan: DeltaPlan,
    batches: Iterable[pa.RecordBatch],
    *,
    task: int,
    task_count: int | None = None,
    now_ms: int,
    store: Store | None = None,
) -> tuple[AddFile, ...]:
    """Writes as `sink.write_task` does, to Parquet files."""
    return write_table_rows(plan, _rows(plan, batches, task, task_count), task=task, now_ms=now_ms, store=store)


def write_table_rows(
    plan: DeltaPlan, rows: Iterable[pa.RecordBatch], *, task: int, now_ms: int, store: Store | None = None
) -> tuple[AddFile, ...]:
    """Writes as `write_delta_task` does, for rows with the table's columns that keep its rules."""
    from tablefeed.data.write import write_files

    store = store or open_store(plan.location, for_store(plan.storage_options))
    # If the table was deleted meanwhile, its folder is not created again.
    within = None if plan.found is None else Within(directory="")

    with new_files(store, new_path(plan, task), within=within) as new_file:
        written = write_files(rows, file_layout(plan), new_file)
        adds = tuple(added(plan, file, now_ms=now_ms) for file in written)
        check_partitions(adds, plan.replaces)
    return adds


def new_path(plan: DeltaPlan, task: int) -> Callable[[Mapping[str, pa.Scalar], int], str]:
    """Gives what names the new files of the task `task`, as `orphans.new_files` asks."""

    def path_of(values: Mapping[str, pa.Scalar], number: int) -> str:
        name = f"part-{task:05d}-{uuid.uuid4()}.c{number:03d}{plan.shape.suffix}.parquet"
        return file_path(plan, name, values)

    return path_of


def _rows(
    plan: DeltaPlan, batches: Iterable[pa.RecordBatch], task: int, task_count: int | None
) -> Iterator[pa.RecordBatch]:
    """Gives `batches` in the table's columns, as its rules ask for, with the columns that rows carry behind them."""
    import pyarrow as pa

    from tablefeed.data.identity_values import IdentityValues, turns

    carried: deque[list[pa.Array]] = deque()

    def brought() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            carried.append([batch[name] for name in plan.carried])
            yield batch
            del batch  # here and below: so that the next batch is not made while a large one is held

    rows = aligned(brought(), plan.alignment, to_arrow(plan.schema), plan.rules.assignment)
    if plan.identity:
        rows = map(IdentityValues(plan.identity, turns(task, task_count=task_count)), rows)
    if plan.kept is not None:
        rows = keeping(rows, plan.kept, plan.schema)
    schema = _with_carried(to_arrow(plan.schema), plan)
    for batch in as_replaced(rows, plan.replaces):  # each step before gives one batch for each
        yield pa.RecordBatch.from_arrays([*batch.columns, *carried.popleft()], schema=schema)
        del batch


def _with_carried(columns: pa.Schema, plan: DeltaPlan) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([*columns, *(pa.field(name, pa.int64()) for name in plan.carried)])


def file_path(plan: DeltaPlan, name: str, values: Mapping[str, pa.Scalar]) -> str:
    """Gives the path, below the table's root, of a new file `name` of the partition with `values`.

    Raises InvalidRowsError for a value that cannot be written to the log.
    """
    if plan.mapping is MappingMode.NONE and not plan.shape.random_folders:
        return partition_path(name, plan.schema, values)
    check_text(values)
    return f"{random_folder(plan)}/{name}"


def random_folder(plan: DeltaPlan) -> str:
    """Gives the name of a folder for a new file; "" where new files are not spread over folders with random names."""
    if plan.mapping is MappingMode.NONE and not plan.shape.random_folders:
        return ""
    # Paths never contain names or values of mapped columns. As in Delta-Spark, random letters spread the files.
    return "".join(random.choices(string.ascii_letters + string.digits, k=plan.shape.folder_letters))  # noqa: S311 - no secret


def logged_values(plan: DeltaPlan, values: Mapping[str, pa.Scalar]) -> dict[str, str | None]:
    """Gives the texts of partition `values` in the log, by the columns' names in files."""
    in_files = names_in_files(plan.schema, plan.mapping)
    return {in_files[name]: text for name, text in partition_texts(plan.schema, values).items()}


def file_layout(plan: DeltaPlan) -> FileLayout:
    """Gives the layout of files under `plan`."""
    from tablefeed.data.write import FileLayout

    stored_as = files_schema(plan.schema, plan.mapping)
    return FileLayout(
        schema=_with_carried(to_arrow(plan.schema), plan),
        partition_by=plan.partition_columns,
        stored_as=None if stored_as is None else _with_carried(stored_as, plan),
        leaves=plan.statistics.leaves,
        stores_partitions=plan.stores_partitions,
        compression=None if plan.shape.codec is None else _COMPRESSION[plan.shape.codec],
        data_pages=plan.shape.data_pages,
        most_file_rows=plan.shape.most_rows,
    ).of_files_of(plan.shape.target_bytes)


def added(plan: DeltaPlan, file: WrittenFile, *, now_ms: int) -> AddFile:
    """Gives the add of a written file."""
    from tablefeed.delta.stats.stats_text import encode_stats

    return AddFile(
        path=file.path,
        log_path=paths.encode_path(file.path),
        partition_values=logged_values(plan, file.partition_values),
        size_bytes=file.size_bytes,
        modified_ms=now_ms,
        data_change=True,
        stats=encode_stats(file.statistics, plan.statistics),
        tags=plan.file_tags,
    )


_COMPRESSION: Mapping[Codec, Compression] = {
    Codec.SNAPPY: "snappy",
    Codec.ZSTD: "zstd",
    Codec.GZIP: "gzip",
    Codec.BROTLI: "brotli",
    Codec.LZ4_RAW: "lz4",
    Codec.UNCOMPRESSED: "none",
}
"""Arrow's names of the codecs: its lz4 is Parquet's LZ4_RAW."""
