"""`tablefeed.append`: Arrow rows committed to a table without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tablefeed.data.assignment import Assignment, Policy
from tablefeed.errors import (
    ConflictingOptionsError,
    IllegalOptionError,
    IncompleteOptionsError,
    SchemaMismatchError,
)
from tablefeed.feed.arguments import column_names, location, store_options, switch, text, whole_number, word, zone
from tablefeed.feed.commit.collisions import OnCollision, check_collision
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.commit.transaction import Transaction, batch_write
from tablefeed.feed.snapshot.known_state import newest_state, remember
from tablefeed.feed.snapshot.table_format import TableFormat
from tablefeed.feed.upkeep.after_commit import UpkeepOptions, now_ms, surroundings
from tablefeed.feed.upkeep.auto_compact import compact_if_wanted
from tablefeed.feed.upkeep.background import waited_for
from tablefeed.feed.write.sink import plan_write, write_task
from tablefeed.feed.write.write_rules import Scope, WriteRules, codec, column_paths
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import Txn
from tablefeed.model.outcome import AlreadyApplied, Committed
from tablefeed.model.statistics import LeafPath

if TYPE_CHECKING:
    import pyarrow as pa


@waited_for()
def append(
    url: str | os.PathLike[str],
    data: Any,
    *,
    mode: Literal["append", "overwrite"] = "append",
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    table_format: Literal["delta", "indextables"] | None = None,
    index_as: Mapping[str, str] | None = None,
    app_id: str | None = None,
    txn_version: int | None = None,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    store_assignment: Literal["ansi", "strict", "legacy"] = "ansi",
    time_zone: str | None = None,
    txn_version_collision: Literal["skip", "warn", "fail"] = "warn",
    replace_where: str | None = None,
    partition_overwrite_mode: Literal["static", "dynamic"] = "static",
    compression: str | None = None,
    max_records_per_file: int | None = None,
    user_metadata: str | None = None,
    log_compaction_every: int | None = None,
    checkpoint_part_size: int | None = None,
    properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Committed | AlreadyApplied:
    """Commits the rows of `data` to the table at `url` in one version. Creates the table if there is none.

    `data` is a pyarrow Table, RecordBatch or RecordBatchReader, an object with `__arrow_c_stream__`, or a non-empty
    iterable of record batches. It is read once, batch by batch.

    - `mode`: "append" adds the rows; "overwrite" replaces all rows of the table by them.
    - `replace_where`: an overwrite replaces only the rows for which this predicate is true. It must be true for all
      rows of `data`.
    - `partition_overwrite_mode`: with "dynamic" an overwrite replaces only the partitions that `data` has rows for.
    - `app_id` and `txn_version`: the rows are committed once. If the table already records that application at that
      version or a later one, nothing is written, and AlreadyApplied is returned.
    - `txn_version_collision`: what also happens if that is a later one. "skip": nothing; "warn": a warning; "fail": a
      CommitError.
    - `partition_by`: the partition columns of a new table. An existing table must have them.
    - `cluster_by`: the columns, such as "id" and "place.city", by which other writers cluster a new table. An existing
      table must have them.
    - `table_format`: the format of a new table, by default "delta". An existing table must have it.
    - `properties`: those of a new table.
    - `index_as`: how an IndexTables table that is new, or never had rows, indexes columns of strings: "string" (as one
      term; the default), "text", "json" or "ip".
    - `merge_schema`: columns that the table lacks are added, and types are widened where the table allows that.
    - `overwrite_schema`: an overwritten table gets the schema of `data`, and `partition_by`.
    - `store_assignment`: how values are cast to the table's types, as in Spark. "ansi": a value that does not fit is
      refused; "strict": only casts that lose nothing are allowed; "legacy": numbers are wrapped, and other values that
      do not fit become null.
    - `time_zone`: the zone in which dates, timestamps without zone and texts are read as instants.
    - `compression`: the codec of data files: "snappy", "zstd", "gzip", "brotli", "lz4_raw" or "uncompressed"; None: the
      table's.
    - `max_records_per_file`: the most rows in a data file; None: any number.
    - `user_metadata`: a text in the commit, shown by `Table.history`.
    - `log_compaction_every`: a log compaction file is written after each so many commits; None: none.
    - `checkpoint_part_size`: about how many actions a file of a checkpoint has; None: one file has all.

    Raises SchemaMismatchError, InvalidRowsError, ConflictError, CommitUnknownError, NotExclusiveError, CommitError,
    OptionError, TableError.
    """
    kind = _kind(mode)
    merge = switch(merge_schema, argument="merge_schema")
    overwrite = switch(overwrite_schema, argument="overwrite_schema")
    if overwrite and kind is not WriteKind.OVERWRITE:
        raise ConflictingOptionsError(
            options=("mode", "overwrite_schema"), remedy="Only an overwrite replaces the schema. Set mode='overwrite'."
        )
    upkeep = UpkeepOptions(
        part_actions=_count(checkpoint_part_size, "checkpoint_part_size"),
        compact_every=_count(log_compaction_every, "log_compaction_every", least=2),
    )
    rules = WriteRules(
        merges_schema=merge,
        overwrites_schema=overwrite,
        assignment=Assignment(policy=word(Policy, store_assignment, argument="store_assignment"), zone=zone(time_zone)),
        properties=texts(properties, argument="properties"),
        scope=word(Scope, partition_overwrite_mode, argument="partition_overwrite_mode"),
        cluster_by=_cluster_by(cluster_by),
        index_as=texts(index_as, argument="index_as"),
        replace_where=None if replace_where is None else text(replace_where, argument="replace_where"),
        codec=None if compression is None else codec(text(compression, argument="compression"), "compression"),
        most_rows_of_a_file=_count(max_records_per_file, "max_records_per_file"),
        delta_upkeep={"log_compaction_every": upkeep.compact_every, "checkpoint_part_size": upkeep.part_actions},
    )
    txn = txn_of(app_id, txn_version)
    on_collision = word(OnCollision, txn_version_collision, argument="txn_version_collision")
    note = None if user_metadata is None else text(user_metadata, argument="user_metadata")
    partition_by = column_names(
        (partition_by,) if isinstance(partition_by, str) else partition_by, argument="partition_by"
    )
    if len({*partition_by}) < len(partition_by):
        raise IllegalOptionError(option="partition_by", value=", ".join(partition_by), explain="names a column twice")
    made_as = None if table_format is None else word(TableFormat, table_format, argument="table_format")
    location_, options = location(url), store_options(storage_options)
    log, state = newest_state(location_, options, table_format=made_as)
    reader = reader_of(data, log.url)
    plan = plan_write(log, state, reader.schema, partition_by=partition_by, kind=kind, rules=rules)
    if txn is not None and state is not None and plan.recorded.get(txn.app_id, -1) >= txn.txn_version:
        recorded = plan.recorded[txn.app_id]
        check_collision(txn, recorded, on_collision, url=log.url)
        return AlreadyApplied(version=state.version, recorded_txn_version=recorded)
    files = write_task(plan, _small_batches(reader), task=0, task_count=1, txn=txn, now_ms=now_ms(), store=log.store)
    transaction = Transaction(
        plan=plan,
        files=files,
        kind=kind,
        operation=batch_write(kind, plan.partition_columns, rules),
        txn=txn,
        user_metadata=note,
        on_collision=on_collision,
    )
    outcome, after = commit(log, state, transaction, surroundings(upkeep))
    remember(log, after)
    if isinstance(outcome, Committed):
        compact_if_wanted(after, len(files), upkeep)
    return outcome


_BATCH_BYTES = 128 << 20
"""Far below 2 GiB, the most that a column of texts has in one batch of a table's types: rows differ in size."""


def _small_batches(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    from tablefeed.data.windows import cut

    return cut(reader, most_bytes=_BATCH_BYTES)


def _kind(mode: object) -> WriteKind:
    if not isinstance(mode, str) or mode not in ("append", "overwrite"):
        raise IllegalOptionError(option="mode", value=str(mode), explain="must be 'append' or 'overwrite'")
    return WriteKind(mode)


def _cluster_by(given: object) -> tuple[LeafPath, ...]:
    names = column_names((given,) if isinstance(given, str) else given, argument="cluster_by")
    paths = [column_paths(name, "cluster_by") for name in names]
    if any(len(each) > 1 for each in paths):
        raise IllegalOptionError(option="cluster_by", value=", ".join(names), explain="must be a list of columns")
    return tuple(path for each in paths for path in each)


def txn_of(app_id: str | None, txn_version: int | None) -> Txn | None:
    """Gives the txn of a write. Raises IncompleteOptionsError where only one of both is given."""
    if app_id is None and txn_version is None:
        return None
    if txn_version is None:
        raise IncompleteOptionsError(given="app_id", missing="txn_version")
    if app_id is None:
        raise IncompleteOptionsError(given="txn_version", missing="app_id")
    return Txn(
        app_id=text(app_id, argument="app_id"), txn_version=whole_number(txn_version, argument="txn_version", least=0)
    )


def _count(given: object, argument: str, *, least: int = 1) -> int | None:
    return None if given is None else whole_number(given, argument=argument, least=least)


def texts(given: object, *, argument: str) -> dict[str, str]:
    """Gives an argument that maps names to texts as a dict, empty for None. Raises IllegalOptionError."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise IllegalOptionError(option=argument, value=str(given), explain="must map names to values, both text")
    return {text(name, argument=argument): text(given[name], argument=f"{argument}[{name!r}]") for name in given}


def reader_of(data: Any, url: str) -> pa.RecordBatchReader:
    """Gives what a user passed as rows for the table at `url` as batches. Raises SchemaMismatchError."""
    import pyarrow as pa

    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(data)
        except (pa.ArrowException, ValueError) as error:  # pandas raises ValueError for two columns of one name
            raise SchemaMismatchError(f"The rows for {url} are not a table: {error}.", url=url) from error
    if isinstance(data, Iterable):
        batches = iter(data)
        first = next(batches, None)
        if isinstance(first, pa.RecordBatch):
            return pa.RecordBatchReader.from_batches(first.schema, _chain(first, batches, url))
    raise SchemaMismatchError(
        f"The rows for {url} are a {type(data).__name__}. Give a pyarrow Table, a RecordBatchReader, an object with "
        "__arrow_c_stream__, or a non-empty iterable of record batches.",
        url=url,
    )


def _chain(first: pa.RecordBatch, rest: Iterator[Any], url: str) -> Iterator[pa.RecordBatch]:
    # pyarrow does not compare a batch's columns with the first batch's: it would match them by position.
    import pyarrow as pa

    yield first
    for batch in rest:
        if not isinstance(batch, pa.RecordBatch) or batch.schema != first.schema:
            found = batch.schema if isinstance(batch, pa.RecordBatch) else type(batch).__name__
            raise SchemaMismatchError(
                f"The rows for {url} do not have one schema: the first batch has {first.schema.to_string()!r}, another "
                f"is {str(found)!r}. Nothing was committed. Give batches of one schema.",
                url=url,
            )
        yield batch
