"""What our commits call themselves, in Delta-Spark's words: for callers that may not know the dialect."""

from __future__ import annotations

from tablefeed.delta.commit_info import Optimize, StreamingUpdate, Write
from tablefeed.log.transaction import WriteKind

Operation = StreamingUpdate | Write | Optimize


def micro_batch(query_id: str, batch_id: int) -> Operation:
    """The batch `batch_id` of a streaming query in append mode."""
    return StreamingUpdate(output_mode="Append", query_id=query_id, epoch_id=batch_id)


def batch_write(kind: WriteKind, partition_columns: tuple[str, ...]) -> Operation:
    """A batch append or overwrite."""
    if kind is WriteKind.APPEND:
        return Write(mode="Append", partition_by=partition_columns)
    return Write(mode="Overwrite", partition_by=partition_columns)
