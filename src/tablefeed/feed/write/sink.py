"""Writes rows to a table exactly once: planned on the driver, written by tasks, committed on the driver.

Each of the three steps may run in another process, so each passes a small value to the next. Written files are
invisible until one put commits them (docs/exactly-once.md covers every point at which a process can crash).
`tablefeed.data` knows Parquet, `tablefeed.delta` the log's bytes, and `tablefeed.log.transaction` what is a conflict.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tablefeed.delta import features, paths
from tablefeed.delta.file_layout import Codec, file_shape
from tablefeed.delta.schema.column_mapping import files_schema, mapping_mode
from tablefeed.delta.schema.iceberg_compat import check_compatible, file_tags, stores_partition_columns
from tablefeed.delta.schema.schema_string import from_arrow, from_spark, parse_schema, to_arrow
from tablefeed.delta.stats.clustering import check_clustered, check_same_clustering, clustering_columns, new_clustering
from tablefeed.delta.stats.indexed_columns import check_indexed, statistics_shape
from tablefeed.errors import UnsupportedOptionError
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.align import Alignment, align, aligned, check_zone
from tablefeed.feed.write.evolution import SchemaMode, check_storable
from tablefeed.feed.write.identity import columns_to_make, names_in_files
from tablefeed.feed.write.replacement import Replacement, as_replaced, check_replaceable, planned_replacement
from tablefeed.feed.write.row_rules import Kept, check_kept, filled_columns, keeping, rules_in_force
from tablefeed.feed.write.table_change import Target, changed_table, new_table, replaced_table
from tablefeed.feed.write.write_plan import (
    MOST_TOLD,
    Planned,
    WritePlan,
    check_partitioning,
    check_text,
    discard,
    file_directory,
    logged_values,
)
from tablefeed.feed.write.write_rules import TYPEMAP_PREFIX, WriteRules
from tablefeed.log.transaction import WriteKind
from tablefeed.model.actions import AddFile, Metadata, Txn
from tablefeed.model.rules import IdentityColumn
from tablefeed.model.schema import Struct
from tablefeed.model.statistics import LeafPath
from tablefeed.store import Within, open_store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.write import Compression, FileLayout, WrittenFile


def plan_write(
    log: TableLog,
    snapshot: Snapshot | None,
    incoming: pa.Schema | Struct,
    *,
    partition_by: Sequence[str],
    kind: WriteKind,
    rules: WriteRules | None = None,
    now_ms: int | None = None,
) -> WritePlan:
    """Plans a write of rows with the schema `incoming` to the table, or to a new table where `snapshot` is None.

    The table's schema stays, or changes as `rules` allow. `incoming` is a Struct where Spark's schema says more than
    Arrow's: `rows_of_spark` gives it. `now_ms` is the time of the write, which column defaults may use; None: the time
    of this call. Raises TableError for rows that do not fit and for a table that cannot be written, and OptionError.
    """
    rules = rules or WriteRules()
    rows = incoming if isinstance(incoming, Struct) else from_arrow(incoming, url=log.url)
    if log.has_splits:
        from tablefeed.feed.write.split_write import plan_splits

        return plan_splits(log, snapshot, rows, partition_by=partition_by, rules=rules)
    for column in rules.index_as:
        remedy = "Only IndexTables tables are indexed; leave it out, or set tableFormat=indextables for a new one."
        raise UnsupportedOptionError(option=f"{TYPEMAP_PREFIX}{column}", remedy=remedy)
    if snapshot is None:
        target = new_table(rows, partition_by=partition_by, rules=rules, url=log.url)
    else:
        target = _existing(snapshot, rows, partition_by=partition_by, kind=kind, rules=rules)
    check_storable(target.schema, url=log.url)
    check_zone(target.schema, rows, rules.assignment, url=log.url)
    draft = Metadata(
        table_id="",
        schema_string="",
        partition_columns=target.partition_columns,
        configuration=target.configuration,
    )
    clustered_by = _clustering(snapshot, target, rules, url=log.url)
    before = () if snapshot is None else snapshot.metadata.partition_columns
    check_compatible(target.configuration, target.schema, target.partition_columns, before=before, url=log.url)
    check_clustered(clustered_by, target.schema, target.partition_columns, url=log.url)
    if snapshot is None or target.metadata is not None:
        check_indexed(target.configuration, target.schema, target.partition_columns, url=log.url)
    alignment, identity, kept = _fitted(target, rows, rules, kind=kind, now_ms=now_ms, url=log.url)
    mapping = mapping_mode(draft, url=log.url)
    replaces = planned_replacement(rules, target, kind=kind, mapping=mapping)
    if snapshot is not None:
        check_replaceable(replaces, target, url=log.url)
    in_files = names_in_files(target.schema, mapping)
    # From the statistics of identity columns the commit computes their new high-water marks.
    counted = (*clustered_by, *((in_files[column.name],) for column in identity))
    return WritePlan(
        location=log.location,
        storage_options=log.storage_options,
        found=None if snapshot is None else Planned.of(snapshot),
        schema_string=target.schema_string,
        partition_columns=target.partition_columns,
        configuration=dict(target.configuration) if snapshot is None else {},
        metadata=target.metadata,
        protocol=None if snapshot is None or target.protocol == snapshot.protocol else target.protocol,
        mapping=mapping,
        alignment=alignment,
        rules=rules,
        shape=file_shape(
            target.configuration,
            codec=rules.codec,
            most_rows=rules.most_rows_of_a_file,
            gathered=rules.gathers_files,
            url=log.url,
        ),
        replaces=replaces,
        kept=kept,
        identity=identity,
        recorded={} if snapshot is None else _recorded(snapshot.facts.txns.values()),
        statistics=statistics_shape(target.schema, draft, target.protocol, also=counted, url=log.url),
        clustered_by=clustered_by,
        stores_partitions=stores_partition_columns(
            None if snapshot is None else snapshot.protocol, target.configuration
        ),
        file_tags=file_tags(target.configuration),
    )


def rows_of_spark(schema_json: str, *, url: str) -> Struct:
    """Gives the schema of a DataFrame's rows for `plan_write`, from Spark's JSON (`schema_string.from_spark`)."""
    return from_spark(schema_json, url=url)


def _clustering(snapshot: Snapshot | None, target: Target, rules: WriteRules, *, url: str) -> tuple[LeafPath, ...]:
    if snapshot is None:
        return new_clustering(rules.cluster_by, target.schema, target.partition_columns, target.configuration)
    actual = clustering_of(snapshot)
    check_same_clustering(rules.cluster_by, actual, snapshot.schema, url=url)
    return actual


def _recorded(txns: Collection[Txn]) -> dict[str, int]:
    newest = txns if len(txns) <= MOST_TOLD else sorted(txns, key=lambda txn: -(txn.last_updated_ms or 0))
    return {txn.app_id: txn.txn_version for txn in newest}


def clustering_of(snapshot: Snapshot) -> tuple[LeafPath, ...]:
    """Gives the columns by which a table is clustered, by their names in files."""
    return clustering_columns(snapshot.protocol, snapshot.facts.domains, url=snapshot.log.url)


def _existing(
    snapshot: Snapshot, rows: Struct, *, partition_by: Sequence[str], kind: WriteKind, rules: WriteRules
) -> Target:
    metadata, protocol, url = snapshot.metadata, snapshot.protocol, snapshot.log.url
    features.check_writable(protocol, metadata, url=url, removes=kind is WriteKind.OVERWRITE)
    if rules.schema is SchemaMode.OVERWRITE and kind is WriteKind.OVERWRITE:
        return replaced_table(metadata, protocol, snapshot.schema, rows, partition_by=partition_by, url=url)
    check_partitioning(partition_by, metadata.partition_columns, url)
    return changed_table(metadata, protocol, snapshot.schema, rows, rules=rules, url=url)


def _fitted(
    target: Target, rows: Struct, rules: WriteRules, *, kind: WriteKind, now_ms: int | None, url: str
) -> tuple[Alignment, tuple[IdentityColumn, ...], Kept | None]:
    """The alignment of columns, the identity columns to generate, and the rules that rows must keep.

    The rules are compiled once here, so that a rule that no task could evaluate is refused before any task runs.
    """
    schema, partition_by = target.schema, target.partition_columns
    if kind is WriteKind.OPTIMIZE:
        # These are the table's own rows: they have all values, and were checked against its rules when first written.
        return align(schema, rows, partition_columns=partition_by, url=url), (), None
    identity = columns_to_make(schema, rows, target.protocol, partition_columns=partition_by, url=url)
    in_force = rules_in_force(schema, target.configuration, target.protocol, url=url)
    filled = filled_columns(in_force) | {column.name for column in identity}
    alignment = align(schema, rows, partition_columns=partition_by, filled=filled, url=url)
    if in_force is None:
        return alignment, identity, None
    kept = Kept(
        rules=in_force,
        absent=frozenset(c.name for c, source in zip(schema, alignment.sources, strict=True) if source is None),
        partition_by=partition_by,
        zone=rules.assignment.zone,
        now_ms=time.time_ns() // 1_000_000 if now_ms is None else now_ms,
    )
    check_kept(kept, schema, url=url)
    return alignment, identity, kept


def write_task(
    plan: WritePlan,
    batches: Iterable[pa.RecordBatch],
    *,
    task: int,
    task_count: int | None = None,
    txn: Txn | None = None,
    now_ms: int,
) -> tuple[AddFile, ...]:
    """Writes the rows of one task to new data files, durable when this returns; gives the adds for a commit.

    `task`, from 0, is unique among the tasks of a write, and `task_count` is their number, None: not known. Identity
    values are unique by it. `txn` is what the commit will record; it is part of the names of splits. A random part
    makes file names differ between attempts of one task. Raises InvalidRowsError, SchemaMismatchError,
    UnsupportedExpressionError, StoreError and NotExclusiveError, after it tried to delete its files.
    """
    if plan.has_splits:
        from tablefeed.feed.write.split_write import write_split_task

        return write_split_task(plan, batches, task=task, txn=txn, now_ms=now_ms)
    from tablefeed.data.identity import IdentityValues, turns
    from tablefeed.data.write import NewFile, write_files

    store = open_store(plan.location, for_store(plan.storage_options))
    schema = parse_schema(plan.schema_string, url=store.url)
    begun: list[str] = []
    # If the table was deleted meanwhile, its folder is not created again.
    within = None if plan.found is None else Within(directory="")

    def new_file(values: Mapping[str, pa.Scalar], number: int) -> NewFile:
        check_text(values, url=store.url)
        directory = file_directory(plan, schema, values)
        name = f"part-{task:05d}-{uuid.uuid4()}.c{number:03d}{plan.shape.codec}.parquet"
        path = f"{directory}/{name}" if directory else name
        begun.append(path)
        return NewFile(path=path, opened=store.create(path, within=within))

    rows = aligned(batches, plan.alignment, to_arrow(schema), plan.rules.assignment, url=store.url)
    if plan.identity:
        rows = map(IdentityValues(plan.identity, turns(task, task_count=task_count), url=store.url), rows)
    if plan.kept is not None:
        rows = keeping(rows, plan.kept, schema, url=store.url)
    rows = as_replaced(rows, plan.replaces, url=store.url)
    try:
        written = write_files(rows, file_layout(plan, schema, url=store.url), new_file)
        adds = tuple(_added(plan, schema, file, now_ms=now_ms) for file in written)
        Replacement(plan.replaces, (), url=store.url).check(adds)
    except BaseException:
        discard(store, begun)
        raise
    return adds


def file_layout(plan: WritePlan, schema: Struct, *, url: str) -> FileLayout:
    """Gives the layout of files for rows of `schema`, the table's schema, under `plan`."""
    from tablefeed.data.write import FileLayout

    return FileLayout(
        url=url,
        schema=to_arrow(schema),
        partition_by=plan.partition_columns,
        stored_as=files_schema(schema, plan.mapping, url=url),
        leaves=plan.statistics.leaves,
        stores_partitions=plan.stores_partitions,
        compression=_COMPRESSION[plan.shape.codec],
        most_file_rows=plan.shape.most_rows,
    ).of_files_of(plan.shape.target_bytes)


def _added(plan: WritePlan, schema: Struct, file: WrittenFile, *, now_ms: int) -> AddFile:
    from tablefeed.delta.stats.stats_text import encode_stats

    return AddFile(
        path=file.path,
        log_path=paths.encode_path(file.path),
        partition_values=logged_values(plan, schema, file.partition_values),
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
