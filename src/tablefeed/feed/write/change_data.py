"""Change data files ("Change Data Files"): the rows that a commit changed, with the column `_change_type`."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tablefeed.delta import names, paths
from tablefeed.feed.write.delta_write import file_layout, file_path, logged_values
from tablefeed.feed.write.orphans import new_files
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.log.changes import ChangeType
from tablefeed.model.actions import CdcFile
from tablefeed.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.write import FileLayout


def with_change(batches: Iterable[pa.RecordBatch], change: ChangeType) -> Iterator[pa.RecordBatch]:
    """Gives `batches` with `change` in `_change_type`, as the last column."""
    import pyarrow as pa

    for batch in batches:
        yield batch.append_column(names.CHANGE_TYPE, pa.repeat(pa.scalar(change.value), batch.num_rows))


def write_changes(plan: DeltaPlan, rows: Iterable[pa.RecordBatch], *, store: Store) -> tuple[CdcFile, ...]:
    """Writes `rows`, the table's columns and `_change_type`, to change data files; they are durable when this returns.

    Raises as `sink.write_task`, after it tried to delete its files.
    """
    from tablefeed.data.write import write_files

    def path_of(values: Mapping[str, pa.Scalar], number: int) -> str:
        name = f"cdc-00000-{uuid.uuid4()}.c{number:03d}{plan.shape.suffix}.parquet"
        return f"{names.CHANGES_DIR}/{file_path(plan, name, values)}"

    with new_files(store, path_of) as new_file:
        written = write_files(rows, _with_change_type(file_layout(plan)), new_file)
    return tuple(
        CdcFile(
            path=file.path,
            log_path=paths.encode_path(file.path),
            partition_values=logged_values(plan, file.partition_values),
            size_bytes=file.size_bytes,
        )
        for file in written
    )


def _with_change_type(layout: FileLayout) -> FileLayout:
    import pyarrow as pa

    column = pa.field(names.CHANGE_TYPE, pa.string())
    return replace(
        layout,
        schema=layout.schema.append(column),
        # The column belongs to the feed, not to the table: its name is not mapped, and it has no field id.
        stored_as=None if layout.stored_as is None else layout.stored_as.append(column),
        leaves=(),
    )
