"""The rules of a table for its rows, and its identity columns: found on the driver, applied in every task.

`tablefeed.delta.schema.rules` reads the rules from the log; `tablefeed.data.rule_evaluation` evaluates their SQL. For
a table without rules no SQL engine is loaded.

The values of identity columns follow the high-water marks that the plan read. If another commit moves a mark in
between, it changes the table's metadata, and so the write conflicts with it. The write must run again, with other
values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tablefeed.delta import features
from tablefeed.delta.schema.column_mapping import MappingMode, physical_name
from tablefeed.delta.schema.identity import identity_columns, with_high_water_marks
from tablefeed.delta.schema.rules import table_rules
from tablefeed.delta.stats.stats_text import long_bounds
from tablefeed.errors import TABLE, SchemaMismatchError
from tablefeed.feed.timestamp_text import zone_text
from tablefeed.model.actions import AddFile, Protocol
from tablefeed.model.rules import IdentityColumn, TableRules
from tablefeed.model.schema import Struct

if TYPE_CHECKING:
    from datetime import tzinfo

    import pyarrow as pa

    from tablefeed.data.rule_evaluation import RowRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The rules that the rows of one write must keep. Small; sent to every task.

    `absent` are the columns that the rows do not have, `partition_by` the partition columns. `zone` is the time zone of
    dates and of timestamps without zone (None: not given). `now_ms` is the time of the write, the same for all tasks.
    """

    rules: TableRules
    absent: frozenset[str]
    partition_by: tuple[str, ...]
    zone: tzinfo | None
    now_ms: int


def rules_in_force(schema: Struct, configuration: Mapping[str, str], protocol: Protocol) -> TableRules | None:
    """Gives the rules that rows of the table must keep; None where it has none.

    As in Delta-Spark, a generation expression is ignored where the protocol does not support `generatedColumns`; other
    rules hold under every protocol. Raises UnsupportedFeatureError for a rule in an unknown form.
    """
    rules = table_rules(schema, configuration)
    if rules.generated and "generatedColumns" not in features.supported_features(protocol):
        rules = replace(rules, generated={})
    return rules if rules.needs_sql or rules.limits else None


def filled_columns(rules: TableRules | None) -> frozenset[str]:
    """Gives the columns that rows may leave out, because a rule fills them, as the schema spells them."""
    return frozenset() if rules is None else frozenset((*rules.generated, *rules.defaults))


def keeping(batches: Iterable[pa.RecordBatch], kept: Kept, schema: Struct) -> Iterator[pa.RecordBatch]:
    """Gives `batches`, which are of `schema`, with absent columns filled. Raises InvalidRowsError for a broken rule.

    For a rule that cannot be evaluated in this process the call itself raises, before it reads a batch.
    """
    return map(built_rules(kept, schema), batches)


def built_rules(kept: Kept, schema: Struct) -> RowRules:
    """Gives what fills and checks one batch after the other, as `keeping` does.

    Raises UnsupportedExpressionError for a rule that no task can evaluate, SchemaMismatchError for a bad default.
    """
    from tablefeed.data.rule_evaluation import RowRules, Setting

    zone = None if kept.zone is None else zone_text(kept.zone)
    setting = Setting(absent=kept.absent, partition_by=kept.partition_by, time_zone=zone, now_us=kept.now_ms * 1000)
    return RowRules(kept.rules, schema, setting)


def columns_to_make(
    schema: Struct, rows: Struct, protocol: Protocol, *, partition_columns: Sequence[str]
) -> tuple[IdentityColumn, ...]:
    """Gives the identity columns that `rows` lack; none where the protocol does not support the feature.

    Raises SchemaMismatchError where `rows` have a column that is GENERATED ALWAYS, and UnsupportedFeatureError for a
    column whose values cannot be generated.
    """
    columns = check_brought(schema, rows, protocol, partition_columns=partition_columns)
    brought = {name.lower() for name in rows.names}
    return tuple(column for column in columns if column.name.lower() not in brought)


def check_brought(
    schema: Struct, rows: Struct, protocol: Protocol, *, partition_columns: Sequence[str]
) -> tuple[IdentityColumn, ...]:
    """Gives all identity columns of a table, after the checks of `columns_to_make`; raises as that does."""
    if "identityColumns" not in features.supported_features(protocol):
        return ()
    brought = {name.lower() for name in rows.names}
    columns = identity_columns(schema, partition_columns=partition_columns)
    for column in columns:
        if column.name.lower() in brought and not column.takes_given:
            raise SchemaMismatchError(
                f"The rows have a column {column.name!r}, which {TABLE} makes itself (GENERATED ALWAYS AS IDENTITY). "
                "Drop it from the rows.",
                error_class="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
            )
    return columns


def names_in_files(schema: Struct, mapping: MappingMode) -> dict[str, str]:
    """Gives the names that top-level columns have in files and statistics, by their names in the table."""
    return {column.name: column.name if mapping is MappingMode.NONE else physical_name(column) for column in schema}


def marks_moved(
    schema: Struct, made: Sequence[IdentityColumn], files: Iterable[AddFile], mapping: MappingMode
) -> Struct:
    """Gives `schema` with the mark of each column in `made` at its last value, from the statistics of `files`."""
    in_files = names_in_files(schema, mapping)
    texts = [file.stats or "" for file in files]
    marks: dict[str, int] = {}
    for column in made:
        bounds = [bound for text in texts for bound in long_bounds(text, in_files[column.name])]
        marks[column.name] = max(bounds) if column.step > 0 else min(bounds)
    return with_high_water_marks(schema, marks)
