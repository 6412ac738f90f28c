"""The operations that our commits report, in Delta-Spark's words, for callers that must not import the dialect."""

from __future__ import annotations

from typing import Literal

from tablefeed.delta.commit_info import Optimize, StreamingUpdate, Write
from tablefeed.feed.write.evolution import SchemaMode
from tablefeed.feed.write.write_rules import Scope, WriteRules
from tablefeed.log.conflicts import WriteKind

Operation = StreamingUpdate | Write | Optimize


def micro_batch(kind: WriteKind, query_id: str, batch_id: int) -> Operation:
    """The operation of a micro-batch: append mode for an append, else complete mode, where each batch has all rows."""
    mode: Literal["Append", "Complete"] = "Append" if kind is WriteKind.APPEND else "Complete"
    return StreamingUpdate(output_mode=mode, query_id=query_id, epoch_id=batch_id)


def batch_write(kind: WriteKind, partition_columns: tuple[str, ...], rules: WriteRules | None = None) -> Operation:
    """The operation of an append or overwrite under `rules`, outside a stream."""
    rules = rules or WriteRules()
    replaces = kind is not WriteKind.APPEND
    return Write(
        mode="Overwrite" if replaces else "Append",
        partition_by=partition_columns,
        predicate=rules.replace_where if replaces else None,
        is_dynamic=replaces and rules.scope is Scope.PARTITIONS,
        can_overwrite_schema=SchemaMode.OVERWRITE in rules.asked,
        can_merge_schema=SchemaMode.MERGE in rules.asked,
    )
