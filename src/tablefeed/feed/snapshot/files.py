"""Live files as users see them: the columns of `Table.files`, and the number of rows from the statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta.columns import STRING_MAP, decode_paths
from tablefeed.delta.stats.stats_columns import record_counts

NUM_RECORDS = pa.field("num_records", pa.int64())
"""How many rows a file has by its statistics, deleted rows included; null where the statistics do not say."""

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


def described(batch: pa.RecordBatch, partitions: Mapping[str, str]) -> pa.RecordBatch:
    """Gives live files (`tablefeed.delta.columns.FILE_COLUMNS`) in the columns of `DESCRIPTION`.

    `partitions` maps the log's name of a partition column to the user's name. A key that is not in it stays as it is.
    """
    return pa.RecordBatch.from_arrays(
        [
            decode_paths(batch["log_path"]),
            batch["size_bytes"],
            batch["modified_ms"],
            _renamed(batch["partition_values"], partitions),
            record_counts(batch["stats"]),
            pc.is_valid(batch["deletion_vector"]),
        ],
        schema=DESCRIPTION,
    )


def row_count(files: Iterable[pa.RecordBatch]) -> int | None:
    """Gives the number of rows in live files; None where statistics lack it, or deletion vectors delete some."""
    rows = 0
    for batch in files:
        counts = record_counts(batch["stats"])
        if counts.null_count or batch["deletion_vector"].null_count < batch.num_rows:
            return None
        rows += pc.sum(counts).as_py() or 0
    return rows


def with_num_records(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Gives live files with the column `NUM_RECORDS` after their own."""
    return batch.append_column(NUM_RECORDS, record_counts(batch["stats"]))


def _renamed(values: pa.MapArray, names: Mapping[str, str]) -> pa.MapArray:
    if all(key == name for key, name in names.items()):
        return values
    known = pc.index_in(values.keys, value_set=pa.array(names.keys(), pa.string()))
    keys = pc.coalesce(pa.array(names.values(), pa.string()).take(known), values.keys)
    entries = pa.StructArray.from_arrays([keys, values.items], fields=[STRING_MAP.key_field, STRING_MAP.item_field])
    validity_and_offsets = values.buffers()[:2]
    return pa.Array.from_buffers(
        STRING_MAP, len(values), validity_and_offsets, values.null_count, values.offset, children=[entries]
    )
