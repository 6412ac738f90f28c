"""Plans a write to a Delta table. delta_write.py writes its tasks' rows; entry.py builds their commit."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Sequence

from tablefeed.delta import features, row_tracking
from tablefeed.delta.file_layout import file_shape
from tablefeed.delta.new_properties import checked_properties, is_kept
from tablefeed.delta.schema.column_mapping import mapping_mode
from tablefeed.delta.schema.iceberg_compat import check_compatible, file_tags, stores_partition_columns
from tablefeed.delta.schema.schema_string import format_schema
from tablefeed.delta.stats.clustering import check_clustered, check_same_clustering, clustering_columns, new_clustering
from tablefeed.delta.stats.indexed_columns import check_indexed, statistics_shape
from tablefeed.errors import UnsupportedOptionError
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.align import Alignment, align, check_zone
from tablefeed.feed.write.evolution import check_has_columns, check_storable, check_voids
from tablefeed.feed.write.replacement import check_recordable, check_replaceable, planned_replacement
from tablefeed.feed.write.row_rules import (
    Kept,
    built_rules,
    columns_to_make,
    filled_columns,
    names_in_files,
    rules_in_force,
)
from tablefeed.feed.write.table_change import Target, changed_table, new_table, replaced_table
from tablefeed.feed.write.write_plan import MOST_RECORDED, DeltaPlan, Planned, check_partitioning
from tablefeed.feed.write.write_rules import TYPEMAP_PREFIX, WriteRules
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import Metadata, Protocol, Txn
from tablefeed.model.rules import IdentityColumn
from tablefeed.model.schema import Struct
from tablefeed.model.statistics import LeafPath


def plan_delta_write(
    log: TableLog,
    snapshot: Snapshot | None,
    rows: Struct,
    *,
    partition_by: Sequence[str] = (),
    kind: WriteKind,
    rules: WriteRules | None = None,
    now_ms: int | None = None,
    adds_rows: bool = True,
) -> DeltaPlan:
    """Plans as `sink.plan_write` does, for an existing Delta table or a new one.

    Without `adds_rows`, files have only rows that the table has already: they keep its rules.
    """
    rules = rules or WriteRules()
    for column in rules.index_as:
        remedy = "Only IndexTables tables are indexed; leave it out, or set tableFormat=indextables for a new one."
        raise UnsupportedOptionError(option=f"{TYPEMAP_PREFIX}{column}", remedy=remedy)
    if snapshot is None:
        target = new_table(rows, partition_by=partition_by, rules=rules, declared=kind is WriteKind.DEFINE)
    else:
        target = _existing(snapshot, rows, partition_by=partition_by, kind=kind, rules=rules)
    check_storable(target.schema)
    if kind is not WriteKind.OPTIMIZE:
        check_has_columns(target.schema, target.partition_columns)
        check_voids(target.schema)
    check_zone(target.schema, rows, rules.assignment)
    clustered_by = _clustering(snapshot, target, rules)
    before = () if snapshot is None else snapshot.metadata.partition_columns
    check_compatible(target.properties, target.schema, target.partition_columns, before=before)
    check_clustered(clustered_by, target.schema, target.partition_columns)
    if snapshot is None or target.metadata is not None:
        check_indexed(target.properties, target.schema, target.partition_columns)
    alignment, identity, kept = _fitted(target, rows, rules, kind=kind, now_ms=now_ms, adds_rows=adds_rows)
    mapping = mapping_mode(target.properties)
    replaces = planned_replacement(rules, target, kind=kind, mapping=mapping)
    if snapshot is not None:
        check_replaceable(replaces, target)
        if kind is WriteKind.CHANGE:
            check_recordable(target)
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
    features.check_writable(snapshot.protocol, snapshot.metadata, removes=kind.removes)
    if rules.overwrites_schema and kind is WriteKind.OVERWRITE:
        return replaced_table(snapshot, rows, partition_by=partition_by)
    check_partitioning(partition_by, snapshot.metadata.partition_columns)
    return changed_table(snapshot, rows, rules=rules)


def _fitted(
    target: Target, rows: Struct, rules: WriteRules, *, kind: WriteKind, now_ms: int | None, adds_rows: bool
) -> tuple[Alignment, tuple[IdentityColumn, ...], Kept | None]:
    """The alignment of columns, the identity columns to generate, and the rules that rows must keep.

    The rules are compiled once here, so that a rule that no task could evaluate is refused before any task runs.
    """
    schema, partition_by = target.schema, target.partition_columns
    if kind is WriteKind.OPTIMIZE or not adds_rows:
        # These are the table's own rows: they have all values, and were checked against its rules when first written.
        return align(schema, rows, partition_columns=partition_by), (), None
    identity: tuple[IdentityColumn, ...] = ()
    if kind is not WriteKind.CHANGE:  # rows that change keep their values
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
    built_rules(kept, schema)  # raises for a rule that no task can evaluate
    return alignment, identity, kept
