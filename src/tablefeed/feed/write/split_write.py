"""Plans a write to an IndexTables table and writes its tasks' rows to splits. index_commit.py commits them.

The schema of such a table never changes: IndexTables does not change it either. Options that only Delta tables have are
refused by name.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow.compute as pc

from tablefeed.delta.schema.arrow_schema import to_arrow
from tablefeed.errors import (
    TABLE,
    DataFileError,
    IllegalOptionError,
    InvalidRowsError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    UnsupportedOptionError,
)
from tablefeed.feed.arguments import word
from tablefeed.feed.snapshot.index_log import IndexSnapshot, IndexTablesLog
from tablefeed.feed.snapshot.table_files import for_store
from tablefeed.feed.snapshot.table_log import Snapshot, TableLog
from tablefeed.feed.write.align import align, aligned, check_new_table, check_zone
from tablefeed.feed.write.evolution import Merging, as_new, has, merged
from tablefeed.feed.write.orphans import new_files
from tablefeed.feed.write.table_change import spelled_as
from tablefeed.feed.write.write_plan import Planned, SplitPlan, check_partitioning, partition_path, partition_texts
from tablefeed.feed.write.write_rules import TYPEMAP_PREFIX, Scope, WriteRules
from tablefeed.indextables.log import columns, protocol
from tablefeed.indextables.log.partition_values import Constants, timestamp_text
from tablefeed.indextables.split.damage import DamagedSplitError
from tablefeed.indextables.split.indexing import Indexed, Indexing
from tablefeed.indextables.split.split_file import read_index
from tablefeed.indextables.split.split_name import newest_of_each, split_name
from tablefeed.indextables.split.table_indexing import indexing_of
from tablefeed.model.actions import AddFile, Txn
from tablefeed.model.schema import Primitive, Struct
from tablefeed.store import Store, open_store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.split_writer import SplitLayout, WrittenSplit


def plan_split_write(
    log: TableLog, snapshot: Snapshot | None, rows: Struct, *, partition_by: Sequence[str], rules: WriteRules
) -> SplitPlan:
    """Plans as `sink.plan_write` does, for an existing IndexTables table or a new one.

    Raises UnsupportedOptionError for an option that only Delta tables have.
    """
    from tablefeed.data.split_index import require_tantivy
    from tablefeed.indextables.split.index_schema import check_types

    _refuse_rules(rules)
    require_tantivy()
    variant = next((column.name for column in rows if has(column.type, Primitive("variant"))), None)
    if variant is not None:
        raise UnsupportedFeatureError(
            f"{TABLE} cannot be written: column {variant} is or has a variant, which no IndexTables table has. Cast "
            "it to a string first (to_json).",
            features=("variant",),
        )
    if snapshot is None:
        check_new_table(rows, partition_columns=partition_by, any_name=True)
        schema = as_new(rows)
        partition_columns = spelled_as(schema, partition_by)
    else:
        protocol.refuse_writing(snapshot.protocol, url=log.url)
        check_partitioning(partition_by, snapshot.metadata.partition_columns)
        advice = "Drop the column, or write to another table."
        how = Merging(policy=rules.assignment.policy, takes_void=rules.takes_void, advice=advice)
        schema = merged(snapshot.schema, rows, how)
        partition_columns = snapshot.metadata.partition_columns
    check_types(to_arrow(schema), partition_by=partition_columns)
    check_zone(schema, rows, rules.assignment)
    indexing, named = _indexing(log, snapshot, to_arrow(schema), partition_columns, rules.index_as)
    return SplitPlan(
        location=log.location,
        url=log.url,
        storage_options=log.storage_options,
        found=None if snapshot is None else Planned.of(snapshot),
        schema=schema,
        partition_columns=partition_columns,
        alignment=align(schema, rows, partition_columns=partition_columns),
        rules=rules,
        recorded={},
        records_all=False,
        indexing=indexing,
        named=named,
    )


def _indexing(
    log: TableLog,
    snapshot: Snapshot | None,
    schema: pa.Schema,
    partition_columns: tuple[str, ...],
    asked: Mapping[str, str],
) -> tuple[Indexing, Mapping[str, int]]:
    """How new splits index the columns: like the table's splits, or as `asked` where no split was ever written.

    Also gives what `SplitPlan.named` has.
    """
    wanted, there, named = _asked(schema, asked), None, dict[str, int]()
    if isinstance(snapshot, IndexSnapshot) and isinstance(log, IndexTablesLog):
        there, named = _indexing_of_table(log, snapshot, schema, partition_by=partition_columns)
    if there is None:
        return Indexing(strings={name: way for name, way in wanted.items() if way is not Indexed.STRING}), named
    for name, way in wanted.items():
        if there.of(name) is not way:
            raise UnsupportedOptionError(
                option=f"{TYPEMAP_PREFIX}{name}",
                remedy=f"The splits of {log.url} index {name} as {there.of(name)}, and those of a table are alike. "
                "Leave it out, or write to another table.",
            )
    return there, named


# how the splits of a table index its columns, so that new splits do the same
_known: WeakKeyDictionary[IndexTablesLog, tuple[str, Indexing]] = WeakKeyDictionary()
"""By log: the id of its table, and how that table's splits index its columns."""


def _indexing_of_table(
    log: IndexTablesLog, snapshot: IndexSnapshot, schema: pa.Schema, *, partition_by: Sequence[str]
) -> tuple[Indexing | None, dict[str, int]]:
    """Gives how the splits of `snapshot` index the columns of `schema`, the table's; None if it never had a split.

    The first time, and after a write of unknown outcome, it reads the live splits, and also gives the txns in their
    names (`SplitPlan.named`).

    Raises UnsupportedFeatureError, which names the column or feature, where they index in a way that we cannot write,
    LogError for an invalid doc mapping, and DataFileError where the split that is read is damaged.
    """
    table_id, (known_id, known) = snapshot.metadata.table_id, _known.get(log, ("", None))
    if known is not None and known_id == table_id and not log.in_doubt:
        return known, {}
    known, named = _found(log, snapshot, schema, partition_by)
    if known is not None:
        _known[log] = table_id, known
    return known, named


def _found(
    log: IndexTablesLog, snapshot: IndexSnapshot, schema: pa.Schema, partition_by: Sequence[str]
) -> tuple[Indexing | None, dict[str, int]]:
    registry, named = snapshot.doc_mappings, dict[str, int]()
    told: dict[str, None] = {}
    one: AddFile | None = None
    for batch in log.files_of(snapshot.version, snapshot.unreadable):
        told |= dict.fromkeys(text for text in pc.unique(batch["doc_mapping"].cast("string")).to_pylist() if text)
        for key, version in newest_of_each(batch["log_path"].to_pylist()).items():
            named[key] = max(version, named.get(key, -1))
        refs = pc.unique(batch["doc_mapping_ref"]).to_pylist()
        told |= dict.fromkeys(registry[ref] for ref in refs if ref in registry)
        if batch.num_rows and one is None:
            (one,) = columns.to_add_files(batch.slice(0, 1))
    if one is None and not registry:
        return None, named
    index = [] if one is None else _fields(log, one)
    return indexing_of(told or registry.values(), schema, partition_by=partition_by, index=index, url=log.url), named


def _fields(log: IndexTablesLog, add: AddFile) -> list[dict[str, Any]]:  # Any: JSON
    def read(offset: int, length: int) -> bytes:
        return log.store.read(add.path, start=offset, end=offset + length)

    split = add.split
    footer = None
    if split is not None and split.footer_start is not None and split.footer_end is not None:
        footer = split.footer_start, split.footer_end
    try:
        return read_index(read, size_bytes=add.size_bytes, footer=footer)
    except DamagedSplitError as error:
        raise DataFileError(
            f"The split {add.path} of {TABLE} {error}. Nothing was written: restore it, or overwrite the table.",
            path=add.path,
        ) from error


def _asked(schema: pa.Schema, asked: Mapping[str, str]) -> dict[str, Indexed]:
    by_name = {field.name.lower(): field for field in schema}
    found: dict[str, Indexed] = {}
    for name, way in asked.items():
        column = by_name.get(name.lower())
        if column is None or column.type != "string":
            explain = f"is for a column of strings, and the table has no such column {name!r}"
            raise IllegalOptionError(option=f"{TYPEMAP_PREFIX}{name}", value=way, explain=explain)
        found[column.name] = word(Indexed, way, argument=f"{TYPEMAP_PREFIX}{name}")
    return found


def write_split_task(
    plan: SplitPlan,
    batches: Iterable[pa.RecordBatch],
    *,
    task: int,
    txn: Txn | None,
    now_ms: int,
    store: Store | None = None,
) -> tuple[AddFile, ...]:
    """Writes as `sink.write_task` does, to splits, whose names contain `txn`."""
    from tablefeed.data.split_writer import SplitLayout, write_splits

    store = store or open_store(plan.location, for_store(plan.storage_options))
    schema, arrow = plan.schema, to_arrow(plan.schema)

    def added(written: WrittenSplit) -> AddFile:
        texts = _texts(schema, written.partition_values, layout)
        return AddFile(
            path=written.path,
            log_path=written.path,
            partition_values=texts,
            size_bytes=written.size_bytes,
            modified_ms=now_ms,
            data_change=True,
            split=written.split,
        )

    layout = SplitLayout(schema=arrow, partition_by=plan.partition_columns, indexing=plan.indexing).of_at_most(
        plan.rules.most_rows_of_a_file
    )
    rows = aligned(batches, plan.alignment, arrow, plan.rules.assignment)

    def path_of(values: Mapping[str, pa.Scalar], _number: int) -> str:
        return partition_path(split_name(task, txn, chance=uuid.uuid4()), schema, values)

    with new_files(store, path_of) as new_file:
        return tuple(added(written) for written in write_splits(rows, layout, new_file))


def _texts(schema: Struct, values: Mapping[str, pa.Scalar], layout: SplitLayout) -> dict[str, str | None]:
    """Gives the texts of partition values for the log, as the writer of the table's other splits spells them.

    Raises InvalidRowsError where only the log holds a value, and its text would be read back as another value.
    """
    texts = partition_texts(schema, values)
    for field in schema:
        if field.type == Primitive("timestamp") and field.name in values and values[field.name].is_valid:
            texts[field.name] = timestamp_text(values[field.name].value, layout.indexing.style)
    _check_texts(texts, values, layout)
    return texts


def _check_texts(texts: Mapping[str, str | None], values: Mapping[str, pa.Scalar], layout: SplitLayout) -> None:
    import pyarrow as pa

    alone = set(layout.partition_by).difference(layout.indexing.columns or layout.schema.names)

    def refused(reason: str) -> InvalidRowsError:
        return InvalidRowsError(
            f"The rows for {TABLE} have a partition value that no IndexTables log can hold: {reason}. Nothing of "
            "this write was committed. Correct or filter the rows.",
        )

    columns = [field for field in layout.schema if field.name in alone]
    for name, told in Constants(texts=texts, columns=pa.schema(columns), refuse=refused).items():
        if not told.equals(values[name]) and repr(told.as_py()) != repr(values[name].as_py()):
            raise refused(f"{values[name].as_py()!r} of {name} would be read as {told.as_py()!r}")


def check_same_table(plan: SplitPlan, state: Snapshot) -> None:
    """Raises SchemaMismatchError where another writer created the table meanwhile, not as `plan` would create it."""
    if state.schema != plan.schema or state.metadata.partition_columns != plan.partition_columns:
        raise SchemaMismatchError(
            f"Nothing was written to {TABLE}: another writer has created the table with other columns or "
            "partitions. Run the write again.",
        )


def _refuse_rules(rules: WriteRules) -> None:
    fixed = "The schema of an IndexTables table is that of its first write: write to another table, or leave it out."
    for option, is_set in (("mergeSchema", rules.merges_schema), ("overwriteSchema", rules.overwrites_schema)):
        if is_set:
            raise UnsupportedOptionError(option=option, remedy=fixed)
    whole = "An overwrite of an IndexTables table replaces all of it; leave it out."
    if rules.replace_where is not None or rules.scope is not Scope.TABLE:
        option = "partitionOverwriteMode" if rules.replace_where is None else "replaceWhere"
        raise UnsupportedOptionError(option=option, remedy=whole)
    asked: Mapping[str, object] = {
        "compression": rules.codec,
        "clusterBy": rules.cluster_by,
        "optimizeWrite": rules.gathers_files,
        **rules.delta_upkeep,
        **rules.properties,
    }
    for option in (name for name, value in asked.items() if value):
        raise UnsupportedOptionError(option=option, remedy="Only Delta tables have it; leave it out.")
