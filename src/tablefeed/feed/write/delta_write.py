"""Plans a write to a Delta table and writes its tasks' rows to Parquet files. entry.py builds their commit.

`tablefeed.data` knows Parquet, `tablefeed.delta` the log's bytes.
"""

from __future__ import annotations

import random
import string
import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tablefeed.delta import features, paths, row_tracking
from tablefeed.delta.file_layout import Codec, file_shape
from tablefeed.delta.new_properties import checked_properties, is_kept
from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.delta.schema.column_mapping import MappingMode, mapping_mode
from tablefeed.delta.schema.iceberg_compat import check_compatible, file_tags, stores_partition_columns
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.delta.schema.stored_schema import files_schema
from tablefeed.delta.stats.clustering import check_clustered, check_same_clustering, clustering_columns, new_clustering
from tablefeed.delta.stats.indexed_columns import check_indexed, statistics_shape
from tablefeed.errors import UnsupportedOptionError
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.align import Alignment, align, aligned, check_zone
from tablefeed.feed.write.evolution import check_has_columns, check_storable
from tablefeed.feed.write.orphans import new_files
from tablefeed.feed.write.replaced_rows import as_replaced, check_partitions
from tablefeed.feed.write.replacement import check_replaceable, planned_replacement
from tablefeed.feed.write.row_rules import (
    Kept,
    check_kept,
    columns_to_make,
    filled_columns,
    keeping,
    names_in_files,
    rules_in_force,
)
from tablefeed.feed.write.table_change import Target, changed_table, new_table, replaced_table
from tablefeed.feed.write.write_plan import (
    MOST_RECORDED,
    DeltaPlan,
    Planned,
    check_partitioning,
    check_text,
    partition_path,
    partition_texts,
)
from tablefeed.feed.write.write_rules import TYPEMAP_PREFIX, WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Metadata, Protocol, Txn
from tablefeed.model.rules import IdentityColumn
from tablefeed.model.schema import Struct
from tablefeed.model.statistics import LeafPath
from tablefeed.store import Within, open_store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.write import Compression, FileLayout, WrittenFile


def plan_delta_write(
    log: TableLog,
    snapshot: Snapshot | None,
    rows: Struct,
    *,
    partition_by: Sequence[str] = (),
    kind: WriteKind,
    rules: WriteRules | None = None,
    now_ms: int | None = None,
) -> DeltaPlan:
    """Plans as `sink.plan_write` does, for an existing Delta table or a new one."""
    rules = rules or WriteRules()
    for column in rules.index_as:
        remedy = "Only IndexTables tables are indexed; leave it out, or set tableFormat=indextables for a new one."
        raise UnsupportedOptionError(option=f"{TYPEMAP_PREFIX}{column}", remedy=remedy)
    if snapshot is None:
        target = new_table(rows, partition_by=partition_by, rules=rules)
    else:
        target = _existing(snapshot, rows, partition_by=partition_by, kind=kind, rules=rules)
    check_storable(target.schema)
    if kind is not WriteKind.OPTIMIZE:
        check_has_columns(target.schema, target.partition_columns)
    check_zone(target.schema, rows, rules.assignment)
    clustered_by = _clustering(snapshot, target, rules)
    before = () if snapshot is None else snapshot.metadata.partition_columns
    check_compatible(target.properties, target.schema, target.partition_columns, before=before)
    check_clustered(clustered_by, target.schema, target.partition_columns)
    if snapshot is None or target.metadata is not None:
        check_indexed(target.properties, target.schema, target.partition_columns)
    alignment, identity, kept = _fitted(target, rows, rules, kind=kind, now_ms=now_ms)
    mapping = mapping_mode(target.properties)
    replaces = planned_replacement(rules, target, kind=kind, mapping=mapping)
    if snapshot is not None:
        check_replaceable(replaces, target)
    in_files = names_in_files(target.schema, mapping)
    # From the statistics of identity columns the commit computes their new high-water marks.
    counted = (*clustered_by, *((in_files[column.name],) for column in identity))
    recorded = () if snapshot is None else _newest_first(snapshot.facts.txns.values())
    plan = DeltaPlan(
        location=log.location,
        url=log.url,
        storage_options=log.storage_options,
        found=None if snapshot is None else Planned.of(snapshot),
        schema=target.schema,
        partition_columns=target.partition_columns,
        configuration=dict(target.properties.texts) if snapshot is None else {},
        metadata=target.metadata,
        protocol=None if snapshot is None or target.protocol == snapshot.protocol else target.protocol,
        mapping=mapping,
        alignment=alignment,
        rules=rules,
        shape=file_shape(
            target.properties,
            codec=rules.codec,
            most_rows=rules.most_rows_of_a_file,
            gathered=rules.gathers_files,
        ),
        replaces=replaces,
        kept=kept,
        identity=identity,
        recorded={txn.app_id: txn.txn_version for txn in recorded},
        records_all=True,
        statistics=statistics_shape(
            target.schema, target.properties, target.protocol, partition_columns=target.partition_columns, also=counted
        ),
        clustered_by=clustered_by,
        stores_partitions=stores_partition_columns(None if snapshot is None else snapshot.protocol, target.properties),
        file_tags=file_tags(target.properties),
    )
    if snapshot is None:
        new_protocol_and_metadata(plan, created_ms=0)  # so that it is refused before a file is written
    return plan


def new_protocol_and_metadata(plan: DeltaPlan, *, created_ms: int) -> tuple[Protocol, Metadata]:
    """Gives the actions that make the table of `plan`. Raises UnsupportedFeatureError for properties not handled."""
    protocol = features.required_protocol(plan.schema, plan.configuration)
    kept = {name: value for name, value in plan.configuration.items() if is_kept(name)}
    metadata = Metadata(
        table_id=str(uuid.uuid4()),
        schema_string=format_schema(plan.schema),
        partition_columns=plan.partition_columns,
        configuration=row_tracking.with_column_names(kept, protocol, new_name=lambda: str(uuid.uuid4())),
        created_ms=created_ms,
    )
    features.check_writable(protocol, metadata, removes=False)
    return protocol, metadata


def _clustering(snapshot: Snapshot | None, target: Target, rules: WriteRules) -> tuple[LeafPath, ...]:
    if snapshot is None:
        return new_clustering(rules.cluster_by, target.schema, target.partition_columns, target.properties)
    actual = clustering_of(snapshot)
    check_same_clustering(rules.cluster_by, actual, snapshot.schema)
    return actual


def _newest_first(txns: Collection[Txn]) -> Collection[Txn]:
    """Gives `txns` in an order of which `MOST_RECORDED` may be kept: where there are more, the newest first."""
    return txns if len(txns) <= MOST_RECORDED else sorted(txns, key=lambda txn: -(txn.last_updated_ms or 0))


def clustering_of(snapshot: Snapshot) -> tuple[LeafPath, ...]:
    """Gives the columns by which a table is clustered, by their names in files."""
    return clustering_columns(snapshot.protocol, snapshot.facts.domains)


def _existing(
    snapshot: Snapshot, rows: Struct, *, partition_by: Sequence[str], kind: WriteKind, rules: WriteRules
) -> Target:
    checked_properties(rules.properties)  # As in Delta-Spark, an existing table keeps its own: they are only checked.
    features.check_writable(snapshot.protocol, snapshot.metadata, removes=kind is WriteKind.OVERWRITE)
    if rules.overwrites_schema and kind is WriteKind.OVERWRITE:
        return replaced_table(snapshot, rows, partition_by=partition_by)
    check_partitioning(partition_by, snapshot.metadata.partition_columns)
    return changed_table(snapshot, rows, rules=rules)


def _fitted(
    target: Target, rows: Struct, rules: WriteRules, *, kind: WriteKind, now_ms: int | None
) -> tuple[Alignment, tuple[IdentityColumn, ...], Kept | None]:
    """The alignment of columns, the identity columns to generate, and the rules that rows must keep.

    The rules are compiled once here, so that a rule that no task could evaluate is refused before any task runs.
    """
    schema, partition_by = target.schema, target.partition_columns
    if kind is WriteKind.OPTIMIZE:
        # These are the table's own rows: they have all values, and were checked against its rules when first written.
        return align(schema, rows, partition_columns=partition_by), (), None
    identity = columns_to_make(schema, rows, target.protocol, partition_columns=partition_by)
    in_force = rules_in_force(schema, target.properties.texts, target.protocol)
    filled = filled_columns(in_force) | {column.name for column in identity}
    alignment = align(schema, rows, partition_columns=partition_by, filled=filled)
    if in_force is None:
        return alignment, identity, None
    kept = Kept(
        rules=in_force,
        absent=frozenset(c.name for c, source in zip(schema, alignment, strict=True) if source is None),
        partition_by=partition_by,
        zone=rules.assignment.zone,
        now_ms=time.time_ns() // 1_000_000 if now_ms is None else now_ms,
    )
    check_kept(kept, schema)
    return alignment, identity, kept


def write_delta_task(
    plan: DeltaPlan, batches: Iterable[pa.RecordBatch], *, task: int, task_count: int | None = None, now_ms: int
) -> tuple[AddFile, ...]:
    """Writes as `sink.write_task` does, to Parquet files."""
    from tablefeed.data.identity_values import IdentityValues, turns
    from tablefeed.data.write import write_files

    store = open_store(plan.location, for_store(plan.storage_options))
    # If the table was deleted meanwhile, its folder is not created again.
    within = None if plan.found is None else Within(directory="")

    rows = aligned(batches, plan.alignment, to_arrow(plan.schema), plan.rules.assignment)
    if plan.identity:
        rows = map(IdentityValues(plan.identity, turns(task, task_count=task_count)), rows)
    if plan.kept is not None:
        rows = keeping(rows, plan.kept, plan.schema)
    rows = as_replaced(rows, plan.replaces)

    def path_of(values: Mapping[str, pa.Scalar], number: int) -> str:
        name = f"part-{task:05d}-{uuid.uuid4()}.c{number:03d}{plan.shape.codec}.parquet"
        return file_path(plan, name, values)

    with new_files(store, path_of, within=within) as new_file:
        written = write_files(rows, file_layout(plan), new_file)
        adds = tuple(_added(plan, file, now_ms=now_ms) for file in written)
        check_partitions(adds, plan.replaces)
    return adds


def file_path(plan: DeltaPlan, name: str, values: Mapping[str, pa.Scalar]) -> str:
    """Gives the path, below the table's root, of a new file `name` of the partition with `values`.

    Raises InvalidRowsError for a value that cannot be written to the log.
    """
    if plan.mapping is MappingMode.NONE and not plan.shape.random_folders:
        return partition_path(name, plan.schema, values)
    check_text(values)
    # Paths never contain names or values of mapped columns. As in Delta-Spark, random letters spread the files.
    letters = random.choices(string.ascii_letters + string.digits, k=plan.shape.folder_letters)  # noqa: S311 - no secret
    return f"{''.join(letters)}/{name}"


def logged_values(plan: DeltaPlan, values: Mapping[str, pa.Scalar]) -> dict[str, str | None]:
    """Gives the texts of partition `values` in the log, by the columns' names in files."""
    in_files = names_in_files(plan.schema, plan.mapping)
    return {in_files[name]: text for name, text in partition_texts(plan.schema, values).items()}


def file_layout(plan: DeltaPlan) -> FileLayout:
    """Gives the layout of files under `plan`."""
    from tablefeed.data.write import FileLayout

    return FileLayout(
        schema=to_arrow(plan.schema),
        partition_by=plan.partition_columns,
        stored_as=files_schema(plan.schema, plan.mapping),
        leaves=plan.statistics.leaves,
        stores_partitions=plan.stores_partitions,
        compression=_COMPRESSION[plan.shape.codec],
        most_file_rows=plan.shape.most_rows,
    ).of_files_of(plan.shape.target_bytes)


def _added(plan: DeltaPlan, file: WrittenFile, *, now_ms: int) -> AddFile:
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
