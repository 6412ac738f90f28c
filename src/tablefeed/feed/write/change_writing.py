"""Writes the rows that a commit changed to files of their own ("Change Data Files"), with the column `_change_type`."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tablefeed.delta import names, paths
from tablefeed.delta.schema.schema_string import parse_schema
from tablefeed.errors import StoreError
from tablefeed.feed.write.sink import file_layout
from tablefeed.feed.write.write_plan import WritePlan, file_directory, logged_values
from tablefeed.log.changes import ChangeType
from tablefeed.model.actions import CdcFile
from tablefeed.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

    from tablefeed.data.write import FileLayout


def marked(batches: Iterable[pa.RecordBatch], change: ChangeType) -> Iterator[pa.RecordBatch]:
    """Gives `batches` with `change` in `_change_type`, as the last column."""
    import pyarrow as pa

    for batch in batches:
        yield batch.append_column(names.CHANGE_TYPE, pa.repeat(pa.scalar(change.value), batch.num_rows))


def write_changes(plan: WritePlan, rows: Iterable[pa.RecordBatch], *, store: Store) -> tuple[CdcFile, ...]:
    """Writes `rows`, the table's columns and `_change_type`, to change data files; they are durable when this returns.

    Raises as `write_task`, after it tried to delete its files.
    """
    from tablefeed.data.write import NewFile, write_files

    schema = parse_schema(plan.schema_string, url=store.url)
    begun: list[str] = []

    def new_file(values: Mapping[str, pa.Scalar], number: int) -> NewFile:
        name = f"cdc-00000-{uuid.uuid4()}.c{number:03d}{plan.shape.codec}.parquet"
        path = "/".join(filter(None, (names.CHANGES_DIR, file_directory(plan, schema, values), name)))
        begun.append(path)
        return NewFile(path=path, opened=store.create(path))

    try:
        written = write_files(rows, _with_change_type(file_layout(plan, schema, url=store.url)), new_file)
    except BaseException:
        for path in begun:
            with suppress(StoreError):  # no commit names it, and the first error matters more
                store.delete(path)
        raise
    return tuple(
        CdcFile(
            path=file.path,
            log_path=paths.encode_path(file.path),
            partition_values=logged_values(plan, schema, file.partition_values),
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
