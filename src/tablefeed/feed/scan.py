"""One task's share of a batch: small, frozen values that cross to where the rows are read, and the reading.

Planned where the log is known, read where it is not: a task carries all that its files need.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from tablefeed.delta import features, partition_values
from tablefeed.errors import DataFileError, ObjectNotFoundError
from tablefeed.feed.table_log import open_log
from tablefeed.log.plan import pack
from tablefeed.model.actions import AddFile, Version
from tablefeed.model.schema import DataType, Struct
from tablefeed.store import Store, open_store

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 65_536
"""Rows of one Arrow batch. Measured: 8k rows cost up to 3x in the hand-over to Spark, more than 64k gain nothing."""

TASK_BYTES = 128 << 20
"""Bytes of Parquet in one task where there are more than the cores take at once (Spark's maxPartitionBytes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFile:
    """One data file to read whole: its decoded path, size in bytes, and partition values as the log has them."""

    path: str
    size_bytes: int
    partition_values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanTask:
    """Files of one table that one task reads, in order. `partition_types` gives the types of the partition columns."""

    url: str
    storage_options: Mapping[str, str]
    files: tuple[ScanFile, ...]
    partition_types: Mapping[str, DataType]


def scan_file(add: AddFile, *, url: str) -> ScanFile:
    """Gives what a task needs of `add`; refuses by name what a reader of whole files would get wrong."""
    features.refuse_deletion_vectors([add], url=url)
    return ScanFile(path=add.path, size_bytes=add.size_bytes, partition_values=add.partition_values)


def partition_types(schema: Struct, partition_columns: Sequence[str]) -> dict[str, DataType]:
    """Gives the types of the partition columns by name."""
    return {f.name: f.type for f in schema if f.name in partition_columns}


def balanced_tasks(
    files: Sequence[ScanFile],
    *,
    url: str,
    storage_options: Mapping[str, str],
    partition_types: Mapping[str, DataType],
) -> list[ScanTask]:
    """Spreads `files` over tasks of much the same size: one a core, more where they are over `TASK_BYTES`."""
    sizes = [f.size_bytes for f in files]
    count = max(os.cpu_count() or 1, -(-sum(sizes) // TASK_BYTES))
    return [
        ScanTask(
            url=url,
            storage_options=storage_options,
            files=tuple(files[i] for i in task),
            partition_types=partition_types,
        )
        for task in pack(sizes, task_count=count)
    ]


def snapshot_tasks(location: str, *, version: int, storage_options: Mapping[str, str]) -> list[ScanTask]:
    """Gives the live files of the table at `location` as of `version`, as balanced tasks."""
    from tablefeed.delta.columns import to_add_files

    snapshot = open_log(location, storage_options).load(Version(version))
    url = snapshot.log.url
    files = [scan_file(add, url=url) for batch in snapshot.readable_files() for add in to_add_files(batch)]
    kinds = partition_types(snapshot.schema, snapshot.metadata.partition_columns)
    return balanced_tasks(files, url=location, storage_options=storage_options, partition_types=kinds)


def read_task(task: ScanTask, schema: pa.Schema, *, store: Store | None = None) -> Iterator[pa.RecordBatch]:
    """Gives the rows of `task` as batches of exactly `schema`, of some 64k rows each, over the bounds of files.

    Raises DataFileError where a file is gone or is not what the log says.
    """
    from tablefeed.data.windows import coalesced

    return coalesced(_read_files(task, schema, store), most_rows=BATCH_ROWS)


def _read_files(task: ScanTask, schema: pa.Schema, store: Store | None) -> Iterator[pa.RecordBatch]:
    from tablefeed.data.read import FileColumns, ReadPlan, read_batches

    store = store or _store(task.url, tuple(sorted(task.storage_options.items())))
    plan = ReadPlan(url=store.url, schema=schema, batch_rows=BATCH_ROWS)
    for file in task.files:
        try:
            source = store.open_input(file.path)
        except ObjectNotFoundError as error:
            raise DataFileError(
                f"The data file {file.path} of {store.url} is gone, though the log still names it: VACUUM or another "
                "hand removed it. Restart from a newer version, or keep deleted files longer "
                "(delta.deletedFileRetentionDuration).",
                url=store.url,
                path=file.path,
                error_class="DELTA_FILE_NOT_FOUND",
            ) from error
        with source:
            constants = _constants(file, task, schema, store.url)
            yield from read_batches(source, plan, FileColumns(path=file.path, constants=constants))


def _constants(file: ScanFile, task: ScanTask, schema: pa.Schema, url: str) -> dict[str, pa.Scalar]:
    import pyarrow as pa

    def refuse(reason: str) -> DataFileError:
        return DataFileError(
            f"The log of {url} describes the data file {file.path} wrongly: {reason}.", url=url, path=file.path
        )

    constants = {}
    for name, kind in task.partition_types.items():
        if name in schema.names:
            value = partition_values.parse(file.partition_values.get(name), kind, refuse=refuse)
            constants[name] = pa.scalar(value, type=schema.field(name).type)
    return constants


@lru_cache(maxsize=32)
def _store(url: str, storage_options: tuple[tuple[str, str], ...]) -> Store:
    return open_store(url, dict(storage_options))
