"""Finds the rules that a table has for its rows, on the driver, and applies them to rows, in every task.

`tablefeed.delta.schema.rules` reads the rules from the log; `tablefeed.data.rule_evaluation` evaluates their SQL. For
a table without rules no SQL engine is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tablefeed.delta import features
from tablefeed.delta.schema.rules import table_rules
from tablefeed.errors import naming
from tablefeed.feed.timestamp_text import zone_text
from tablefeed.model.actions import Protocol
from tablefeed.model.rules import TableRules
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


def rules_in_force(
    schema: Struct, configuration: Mapping[str, str], protocol: Protocol, *, url: str
) -> TableRules | None:
    """Gives the rules that rows of the table must keep; None where it has none.

    As in Delta-Spark, a generation expression is ignored where the protocol does not support `generatedColumns`; other
    rules hold under every protocol. Raises UnsupportedFeatureError for a rule in an unknown form.
    """
    rules = table_rules(schema, configuration, url=url)
    if rules.generated and "generatedColumns" not in features.supported_features(protocol):
        rules = replace(rules, generated={})
    return rules if rules.needs_sql or rules.limits else None


def filled_columns(rules: TableRules | None) -> frozenset[str]:
    """Gives the columns that rows may leave out, because a rule fills them, as the schema spells them."""
    return frozenset() if rules is None else frozenset((*rules.generated, *rules.defaults))


def check_kept(kept: Kept, schema: Struct, *, url: str) -> None:
    """Raises UnsupportedExpressionError for a rule that no task can evaluate, SchemaMismatchError for a bad default."""
    _built(kept, schema, url)


def keeping(batches: Iterable[pa.RecordBatch], kept: Kept, schema: Struct, *, url: str) -> Iterator[pa.RecordBatch]:
    """Gives `batches`, which are of `schema`, with absent columns filled. Raises InvalidRowsError for a broken rule.

    For a rule that cannot be evaluated in this process the call itself raises, before it reads a batch.
    """
    return map(_built(kept, schema, url), batches)


def _built(kept: Kept, schema: Struct, url: str) -> RowRules:
    from tablefeed.data.rule_evaluation import RowRules, Setting

    zone = None if kept.zone is None else zone_text(kept.zone)
    setting = Setting(absent=kept.absent, partition_by=kept.partition_by, time_zone=zone, now_us=kept.now_ms * 1000)
    with naming(url):
        return RowRules(kept.rules, schema, setting)
