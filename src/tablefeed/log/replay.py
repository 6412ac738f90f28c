"""What a table is, by its log: facts folded from commits, live files reconciled from columns.

The rules are PROTOCOL.md, "Action Reconciliation". Facts are values; files are batches of columns that the dialect
made, of which only `key`, `is_add`, `modified_ms`, `log_path` and `stats` have a meaning here: no value per file is
ever built. pyarrow computes; nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.model.actions import Commit, Facts


def fold(facts: Facts, commits: Iterable[Commit]) -> Facts:
    """The facts after `commits`, which come in log order; `facts` itself is not changed.

    The newest metadata and protocol win, and of each application the txn latest in log order, even when its version
    falls, as Delta-Spark has it. A domain's tombstone removes it. The in-commit timestamp is the newest commit's own:
    None where its info has none.
    """
    protocol, metadata, timestamp_ms = facts.protocol, facts.metadata, facts.in_commit_timestamp_ms
    txns, domains = dict(facts.txns), dict(facts.domains)
    for commit in commits:
        protocol = commit.protocol or protocol
        metadata = commit.metadata or metadata
        txns.update((txn.app_id, txn) for txn in commit.txns)
        for domain in commit.domains:
            if domain.removed:
                domains.pop(domain.domain, None)
            else:
                domains[domain.domain] = domain
        timestamp_ms = _in_commit_timestamp_ms(commit)
    return Facts(protocol=protocol, metadata=metadata, txns=txns, domains=domains, in_commit_timestamp_ms=timestamp_ms)


def live_files(checkpoint: Iterable[pa.RecordBatch], tail: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The files of the table: those of `checkpoint` that `tail` does not speak of, then those that `tail` ends with.

    `checkpoint` holds adds alone, each key once; `tail` holds adds and removes in log order. Of each key the last row
    of `tail` decides, so that an add for a live key takes the place of the one before. Order: the checkpoint's, then
    the tail's by the row that decided. The tail is held in memory, the checkpoint is not. Batches may be empty.
    """
    rows = list(tail)
    if not rows:
        yield from checkpoint
        return
    decided = _last_of_each_key(pa.Table.from_batches(rows))
    rows.clear()
    for batch in checkpoint:
        yield batch.filter(pc.invert(pc.is_in(batch["key"], value_set=decided["key"])))
    yield from decided.filter(decided["is_add"]).to_batches()


def sorted_for_stream(files: Iterable[pa.RecordBatch], *, schema: pa.Schema) -> pa.RecordBatch:
    """All `files`, of `schema`, as one batch in the order in which a stream delivers its initial snapshot.

    The order is Delta-Spark's (DeltaSourceSnapshot), for offsets count these files: by modification time, then by the
    bytes of the path as logged, still percent-encoded; by key where one path is live with two deletion vectors, which
    Delta-Spark leaves open. `stats` is null: no stream asks, and it is most of the bytes. Not done: Delta-Spark first
    normalises `.`, `..` and `//` in a path, and puts its default file system before an absolute one without a scheme.
    """
    table = pa.Table.from_batches([without_statistics(batch) for batch in files], schema)
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in ("modified_ms", "log_path", "key")])
    return pa.RecordBatch.from_arrays([column.take(order).combine_chunks() for column in table.columns], schema=schema)


def without_statistics(batch: pa.RecordBatch) -> pa.RecordBatch:
    """`batch` with `stats` null: they are most of what a file takes in memory."""
    index = batch.schema.get_field_index("stats")
    field = batch.schema.field(index)
    return batch.set_column(index, field, pa.nulls(batch.num_rows, field.type))


# "In-Commit Timestamps": the field of commitInfo, which the model keeps as its writer wrote it
_IN_COMMIT_TIMESTAMP = "inCommitTimestamp"


def _in_commit_timestamp_ms(commit: Commit) -> int | None:
    value = (commit.info or {}).get(_IN_COMMIT_TIMESTAMP)
    return value if isinstance(value, int) else None


def _last_of_each_key(rows: pa.Table) -> pa.Table:
    """The last row of each key, in the order of the rows."""
    ones = pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)
    numbered = pa.table({"key": rows["key"], "row": pc.cumulative_sum(ones)})
    last = numbered.group_by("key", use_threads=False).aggregate([("row", "max")])["row_max"]
    if len(last) == rows.num_rows:
        return rows
    return rows.take(pc.subtract(last.take(pc.sort_indices(last)), 1))
