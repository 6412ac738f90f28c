"""Rows with the ids and commit versions that they keep (PROTOCOL.md, "Reader Requirements for Row Tracking")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tablefeed.delta.row_tracking import IdColumns
from tablefeed.errors import TABLE, LogError
from tablefeed.feed.scan.delta_task import DeltaTask, ParquetFile
from tablefeed.feed.scan.task import read_task
from tablefeed.model.actions import AddFile
from tablefeed.store import Store

if TYPE_CHECKING:
    import pyarrow as pa


def read_with_ids(
    task: DeltaTask,
    files: Iterable[tuple[AddFile, ParquetFile]],
    schema: pa.Schema,
    columns: IdColumns,
    *,
    store: Store,
) -> Iterator[pa.RecordBatch]:
    """Gives the rows of `files` in the columns of `schema`, and behind them those of `columns`, without nulls.

    Raises LogError for a file whose action does not say which ids its rows have, and as `read_task`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    place = f"{columns.row_id} place"
    found = pa.schema([*schema, *(pa.field(name, pa.int64()) for name in columns)])
    for add, file in files:
        if add.base_row_id is None or add.default_row_commit_version is None:
            raise LogError(
                f"The log of {TABLE} does not say which ids the rows of the file {add.path} have, so they cannot be "
                "kept. Nothing was committed. Turn row tracking off and on again in Spark, which gives them ids.",
            )
        rows = replace(task, files=(file,))
        for batch in read_task(rows, found.append(pa.field(place, pa.int64())), store=store, positions=place):
            ids = pc.coalesce(batch[columns.row_id], pc.add(batch[place], add.base_row_id))
            versions = pc.coalesce(batch[columns.row_version], pa.scalar(add.default_row_commit_version, pa.int64()))
            yield pa.RecordBatch.from_arrays([*batch.columns[: len(schema)], ids, versions], schema=found)
