"""Rows into a table, exactly once: planned on the driver, written by tasks, committed on the driver.

The three steps may each run in another process, so each hands the next a small value. What is written is invisible
until the one put that commits it (docs/exactly-once.md argues every crash window). Parquet is `tablefeed.data`'s,
the log's bytes `tablefeed.delta`'s, what a rival's commit means `tablefeed.log.transaction`'s.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tablefeed.delta import features, partition_values, paths
from tablefeed.delta.schema import format_schema, from_arrow, parse_schema, to_arrow
from tablefeed.errors import SchemaMismatchError, StoreError, TableNotFoundError
from tablefeed.feed.align import Alignment, align, aligned, new_table_schema
from tablefeed.feed.table_files import for_store
from tablefeed.feed.table_log import Snapshot, TableLog
from tablefeed.log.transaction import WriteKind
from tablefeed.model.actions import AddFile, Version
from tablefeed.model.schema import DataType, Struct
from tablefeed.store import open_store

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What tasks write against. Small; crosses to every task and back to the commit.

    `table_id` and `version` are None where the table is not there yet: this write makes it.
    """

    location: str
    storage_options: Mapping[str, str]
    table_id: str | None
    version: Version | None
    schema_string: str
    partition_columns: tuple[str, ...]
    alignment: Alignment
    recorded: Mapping[str, int]
    """The newest version that each application has recorded in the table, by its id."""


def plan_write(
    log: TableLog, snapshot: Snapshot | None, incoming: pa.Schema, *, partition_by: Sequence[str], kind: WriteKind
) -> WritePlan:
    """Fits `incoming` to the table as it is, or to a new one. Raises TableError for what does not fit or is refused."""
    rows = from_arrow(incoming, url=log.url)
    if snapshot is None:
        schema = new_table_schema(rows, partition_columns=partition_by, url=log.url)
        partition_columns = _spelled_as(schema, partition_by)
    else:
        features.check_writable(snapshot.protocol, snapshot.metadata, url=log.url, removes=kind is WriteKind.OVERWRITE)
        schema, partition_columns = snapshot.schema, snapshot.metadata.partition_columns
        _check_partitioning(partition_by, partition_columns, log.url)
    return WritePlan(
        location=log.location,
        storage_options=log.storage_options,
        table_id=None if snapshot is None else snapshot.metadata.table_id,
        version=None if snapshot is None else snapshot.version,
        schema_string=format_schema(schema) if snapshot is None else snapshot.metadata.schema_string,
        partition_columns=partition_columns,
        alignment=align(schema, rows, partition_columns=partition_columns, url=log.url),
        recorded={} if snapshot is None else {t.app_id: t.txn_version for t in snapshot.facts.txns.values()},
    )


def write_task(plan: WritePlan, batches: Iterable[pa.RecordBatch], *, task: int, now_ms: int) -> tuple[AddFile, ...]:
    """Writes the rows of one task to new data files, durable when this returns; gives what a commit says of them.

    `task` numbers the files for people; a random part keeps the names of twin attempts apart. Where it raises, its
    files are gone again. Raises InvalidRowsError, StoreError, NotExclusiveError.
    """
    from tablefeed.data.write import FileLayout, NewFile, write_files
    from tablefeed.delta.stats import encode_stats

    store = open_store(plan.location, for_store(plan.storage_options))
    schema = parse_schema(plan.schema_string, url=store.url)
    begun: list[str] = []

    def new_file(values: Mapping[str, pa.Scalar], number: int) -> NewFile:
        texts = _texts(plan, schema, values, partition_values.directory_text)
        directory = paths.partition_directory(texts.items())
        path = f"{directory}{'/' if directory else ''}part-{task:05d}-{uuid.uuid4()}.c{number:03d}.snappy.parquet"
        begun.append(path)
        return NewFile(path=path, opened=store.create(path))

    arrow = to_arrow(schema)
    layout = FileLayout(url=store.url, schema=arrow, partition_by=plan.partition_columns)
    try:
        written = write_files(aligned(batches, plan.alignment, arrow, url=store.url), layout, new_file)
    except BaseException:
        for path in begun:
            # The first error is the one to raise, and what stays here is named by no commit.
            with suppress(StoreError):
                store.delete(path)
        raise
    return tuple(
        AddFile(
            path=file.path,
            log_path=paths.encode_path(file.path),
            partition_values=_texts(plan, schema, file.partition_values, partition_values.serialise),
            size_bytes=file.size_bytes,
            modified_ms=now_ms,
            data_change=True,
            stats=encode_stats(file.statistics),
        )
        for file in written
    )


def current_snapshot(log: TableLog) -> Snapshot | None:
    """Gives the newest state of a table, None where there is none."""
    try:
        return log.load()
    except TableNotFoundError:
        if log.store.is_file_at_root():
            raise
        return None


def caught_up(log: TableLog, known: Snapshot | None) -> Snapshot | None:
    """Gives the newest state of a table last seen as `known`, None where there is no table, or none any more."""
    if known is None:
        return current_snapshot(log)
    try:
        return log.advance(known)
    except TableNotFoundError:
        return None


def _texts(
    plan: WritePlan,
    schema: Struct,
    values: Mapping[str, pa.Scalar],
    text: Callable[[partition_values.PartitionValue | None, DataType], str | None],
) -> dict[str, str | None]:
    kinds = {f.name: f.type for f in schema}
    return {name: text(_plain(values[name]), kinds[name]) for name in plan.partition_columns}


def _plain(value: pa.Scalar) -> partition_values.PartitionValue | None:
    # Dates are days and timestamps microseconds there: as_py would make objects of both.
    plain: partition_values.PartitionValue | None
    plain = value.value if value.is_valid and hasattr(value, "value") else value.as_py()
    return plain


def _spelled_as(schema: Struct, names: Sequence[str]) -> tuple[str, ...]:
    spelling = {f.name.lower(): f.name for f in schema}
    return tuple(spelling[name.lower()] for name in names)


def _check_partitioning(asked: Sequence[str], actual: Sequence[str], url: str) -> None:
    if asked and [n.lower() for n in asked] != [n.lower() for n in actual]:
        raise SchemaMismatchError(
            f"{url} is partitioned by ({', '.join(actual)}), not by ({', '.join(asked)}). Leave partitionBy out: an "
            "existing table keeps its partitioning.",
            url=url,
            error_class="DELTA_METADATA_MISMATCH",
        )
