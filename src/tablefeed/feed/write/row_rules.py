"""Which rules of a table a write keeps, and its rows held against them: found on the driver, kept by every task.

What the log says is `tablefeed.delta.schema.rules`', what the SQL means `tablefeed.data.rules`'. A table without rules
costs nothing here: no engine is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tablefeed.delta import features
from tablefeed.delta.schema.rules import table_rules
from tablefeed.feed.timestamp_text import zone_text
from tablefeed.model.actions import Protocol
from tablefeed.model.rules import TableRules
from tablefeed.model.schema import Struct

if TYPE_CHECKING:
    from datetime import tzinfo

    import pyarrow as pa

    from tablefeed.data.rules import RowRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What rows of one write are held against. Small; crosses to every task.

    `absent` are the columns that the rows do not bring, `partition_by` those that partition the table, `zone` is where
    days and clocks are meant (None: nobody said), `now_ms` the moment of the write, the same for all of its tasks.
    """

    rules: TableRules
    absent: frozenset[str]
    partition_by: tuple[str, ...]
    zone: tzinfo | None
    now_ms: int


def rules_in_force(
    schema: Struct, configuration: Mapping[str, str], protocol: Protocol, *, url: str
) -> TableRules | None:
    """Gives the rules of a table that its rows must keep, None where there are none.

    A generation expression counts where the protocol supports it, as for Delta-Spark; the others wherever they stand.
    Raises UnsupportedFeatureError for a rule in a form that is not known.
    """
    rules = table_rules(schema, configuration, url=url)
    if rules.generated and not features.is_supported("generatedColumns", protocol):
        rules = replace(rules, generated={})
    return rules if rules.needs_sql or rules.limits else None


def filled_columns(rules: TableRules | None) -> frozenset[str]:
    """Gives the columns that rows need not bring, as the schema spells them."""
    return frozenset() if rules is None else frozenset((*rules.generated, *rules.defaults))


def check_kept(kept: Kept, schema: Struct, *, url: str) -> None:
    """Raises UnsupportedExpressionError for a rule that no task could hold rows against."""
    _built(kept, schema, url)


def keeping(batches: Iterable[pa.RecordBatch], kept: Kept, schema: Struct, *, url: str) -> Iterator[pa.RecordBatch]:
    """Gives `batches`, which are of `schema`, with absent columns filled. Raises InvalidRowsError for what is broken.

    A rule that cannot be evaluated where this runs raises at once, before a batch is asked for.
    """
    return map(_built(kept, schema, url), batches)


def _built(kept: Kept, schema: Struct, url: str) -> RowRules:
    from tablefeed.data.rules import RowRules, Setting

    zone = None if kept.zone is None else zone_text(kept.zone)
    setting = Setting(
        url=url, absent=kept.absent, partition_by=kept.partition_by, time_zone=zone, now_us=kept.now_ms * 1000
    )
    return RowRules(kept.rules, schema, setting)
