"""`tablefeed.append`: Arrow rows committed to a table without Spark."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tablefeed.errors import ConflictingOptionsError, IllegalOptionError, SchemaMismatchError
from tablefeed.feed.commit import Surroundings, Transaction, commit, new_table
from tablefeed.feed.operations import batch_write
from tablefeed.feed.sink import current_snapshot, plan_write, write_task
from tablefeed.feed.table_log import open_log
from tablefeed.log.transaction import WriteKind
from tablefeed.model.actions import Txn
from tablefeed.model.outcome import AlreadyApplied, Committed

if TYPE_CHECKING:
    import pyarrow as pa


def append(
    url: str | os.PathLike[str],
    data: Any,
    *,
    mode: Literal["append", "overwrite"] = "append",
    partition_by: Sequence[str] = (),
    app_id: str | None = None,
    txn_version: int | None = None,
    merge_schema: bool = False,
    properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Committed | AlreadyApplied:
    """Commits the rows of `data` to the table at `url` in one version, making the table where there is none.

    `data` is a pyarrow Table, RecordBatch or RecordBatchReader, anything with `__arrow_c_stream__`, or an iterable of
    record batches; it is read once and never held whole. With `app_id` and `txn_version` the rows are committed once:
    where the table records that application at that version or above, nothing is written and AlreadyApplied comes
    back. "overwrite" replaces all rows in the same version. `properties` are a new table's. Raises
    SchemaMismatchError, InvalidRowsError, ConflictError, CommitUnknownError, NotExclusiveError, OptionError.
    """
    _check_arguments(mode, app_id, txn_version, merge_schema=merge_schema)
    kind = WriteKind(mode)
    reader = _reader(data, os.fspath(url))
    log = open_log(os.fspath(url), storage_options)
    state = current_snapshot(log)
    plan = plan_write(log, state, reader.schema, partition_by=tuple(partition_by), kind=kind)
    txn = None if app_id is None or txn_version is None else Txn(app_id=app_id, txn_version=txn_version)
    if txn is not None and state is not None and plan.recorded.get(txn.app_id, -1) >= txn.txn_version:
        return AlreadyApplied(version=state.version, recorded_txn_version=plan.recorded[txn.app_id])
    if state is None:
        new_table(plan, properties or {}, now_ms=_now_ms())  # refused before a file is written
    files = write_task(plan, reader, task=0, now_ms=_now_ms())
    transaction = Transaction(
        plan=plan,
        files=files,
        kind=kind,
        operation=batch_write(kind, plan.partition_columns),
        txn=txn,
        properties=dict(properties or {}) if state is None else {},
    )
    outcome, _ = commit(log, state, transaction, Surroundings(now_ms=_now_ms, sleep=time.sleep))
    return outcome


def _check_arguments(mode: str, app_id: str | None, txn_version: int | None, *, merge_schema: bool) -> None:
    if mode not in ("append", "overwrite"):
        raise IllegalOptionError(option="mode", value=mode, explain="must be 'append' or 'overwrite'")
    if merge_schema:
        raise IllegalOptionError(
            option="merge_schema", value="True", explain="is not supported by this version; add the columns first"
        )
    if (app_id is None) != (txn_version is None):
        raise ConflictingOptionsError(options=("app_id", "txn_version"), remedy="Give both or neither.")
    if txn_version is not None and txn_version < 0:
        raise IllegalOptionError(option="txn_version", value=str(txn_version), explain="must be at least 0")


def _reader(data: Any, url: str) -> pa.RecordBatchReader:
    import pyarrow as pa

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if isinstance(data, Iterable):
        batches = iter(data)
        first = next(batches, None)
        if isinstance(first, pa.RecordBatch):
            return pa.RecordBatchReader.from_batches(first.schema, _chain(first, batches))
    raise SchemaMismatchError(
        f"The rows for {url} are a {type(data).__name__}: give a pyarrow Table, RecordBatchReader, an object with "
        "__arrow_c_stream__, or a non-empty iterable of record batches.",
        url=url,
    )


def _chain(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
