"""Live files as users see them, and by their rows: what is told of them beside the log's own columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta.columns import STRING_MAP, decode_paths
from tablefeed.delta.stats_columns import record_counts

NUM_RECORDS = pa.field("num_records", pa.int64())
"""How many rows the statistics of a file count, deleted ones included; null where they do not say."""

DESCRIPTION = pa.schema(
    [
        ("path", pa.string()),
        ("size_bytes", pa.int64()),
        ("modified_ms", pa.int64()),
        ("partition_values", STRING_MAP),
        NUM_RECORDS,
        ("has_deletion_vector", pa.bool_()),
    ]
)


def described(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Gives live files (`tablefeed.delta.columns.FILE_COLUMNS`) in the columns of `DESCRIPTION`."""
    return pa.RecordBatch.from_arrays(
        [
            decode_paths(batch["log_path"]),
            batch["size_bytes"],
            batch["modified_ms"],
            batch["partition_values"],
            record_counts(batch["stats"]),
            pc.is_valid(batch["deletion_vector"]),
        ],
        schema=DESCRIPTION,
    )


def with_num_records(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Gives live files with the column `NUM_RECORDS` after their own."""
    return batch.append_column(NUM_RECORDS, record_counts(batch["stats"]))
