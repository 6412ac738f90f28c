"""A table's commits and live files in numbers, for `inspect` and `report`. Memory holds no file by itself.

Both are added up in Arrow: commits in one row each, files by their partition and size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.delta.properties import TableProperties
from tablefeed.delta.stats.stats_columns import record_counts
from tablefeed.feed.api.table import Table
from tablefeed.feed.snapshot.files import DESCRIPTION
from tablefeed.feed.upkeep.auto_compact import LEAST_FILES
from tablefeed.feed.upkeep.optimize import BEHIND_BYTES
from tablefeed.model.actions import Commit
from tablefeed.model.shown import shown

_TXN = pa.struct([("app_id", pa.string()), ("txn_version", pa.int64())])

COMMITS = pa.schema(
    [
        ("version", pa.int64()),
        ("committed_at_ms", pa.int64()),
        ("operation", pa.string()),
        ("writer", pa.string()),
        ("user", pa.string()),
        ("files_added", pa.int64()),
        ("files_removed", pa.int64()),
        ("bytes_added", pa.float64()),
        ("bytes_removed", pa.float64()),
        ("rows_added", pa.float64()),
        ("txns", pa.list_(_TXN)),
    ]
)
"""One row for each commit. `rows_added` counts the rows in the files that were added, also those that a rewrite kept;
null where a file has no statistics. `user` is null where the commit names none. Sums are floats: they cannot overflow.
"""

_ROWS_AT_ONCE = 1000
_FURTHEST_MS = 2**61
"""From 1970: the difference of two such times is a long, too."""


def commits_of(table: Table, limit: int | None = None, *, problems: list[str]) -> pa.Table:
    """Gives the newest `limit` commits of `table`, all by default, in the columns of `COMMITS`, the newest first.

    A commit that cannot be read is left out; what is wrong with it is added to `problems`.
    """
    rows = map(_row, table.commits(limit, on_unreadable=lambda error: problems.append(error.message)))
    batches = []
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        batches.append(pa.RecordBatch.from_pylist(some, schema=COMMITS))
    return pa.Table.from_batches(batches, schema=COMMITS)


def writers_in(commits: pa.Table) -> list[dict[str, Any]]:
    """Gives each writer in `commits` with its number of commits and its last version, the newest writer first."""
    found = commits.group_by("writer", use_threads=False).aggregate([("version", "count"), ("version", "max")])
    columns = (found["writer"], found["version_count"], found["version_max"])
    return [
        {"writer": writer, "commits": count, "last_version": last}
        for writer, count, last in zip(*(column.to_pylist() for column in columns), strict=True)
    ]


def _row(commit: Commit) -> dict[str, object]:
    info, added, removed = commit.info or {}, commit.added, commit.removed
    counts = record_counts(pa.array([file.stats for file in added], pa.string()))
    return {
        "version": commit.version,
        "committed_at_ms": max(min(commit.committed_at_ms or 0, _FURTHEST_MS), -_FURTHEST_MS),
        "operation": _text(info, "operation") or "unknown operation",
        "writer": _text(info, "engineInfo", "clientVersion") or "unknown",
        "user": _text(info, "userName", "userId"),
        "files_added": len(added),
        "files_removed": len(removed),
        "bytes_added": float(sum(file.size_bytes for file in added)),
        "bytes_removed": float(sum(file.size_bytes or 0 for file in removed)),
        "rows_added": None
        if counts.null_count
        else float(pc.sum(pc.cast(counts, pa.float64(), safe=False)).as_py() or 0),
        "txns": [{"app_id": txn.app_id, "txn_version": txn.txn_version} for txn in commit.txns],
    }


def _text(info: Mapping[str, object], *names: str) -> str | None:
    found = next((info[name] for name in names if info.get(name)), None)
    return found if found is None or isinstance(found, str) else shown(found)


# --- files -----------------------------------------------------------------------------------------------------------

_SUMS = ("files", "size_bytes", "rows", "rows_unknown", "with_deletion_vector", "small_files")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFiles:
    """The live files, added up in `grouped` by partition and size class. `by` has the names of the partition columns.

    A file is in size class n if it has at least 2^n bytes and less than 2^(n + 1); an empty file is in class 0. It is
    small if it has less than `small_bytes`, as for auto compaction.
    """

    grouped: pa.Table
    by: tuple[str, ...]
    small_bytes: int

    @property
    def totals(self) -> dict[str, Any]:
        """The sums over all files, and the sizes of the smallest and the largest, None without files.

        `rows` is None where files lack statistics or have deletion vectors.
        """
        found = _added_up(self.grouped, []).to_pylist()[0]
        found |= {name: found[name] or 0 for name in _SUMS}
        is_known = not (found["rows_unknown"] or found["with_deletion_vector"])
        return {**found, "rows": found["rows"] if is_known else None}

    def by_size(self) -> pa.Table:
        """Gives the sums for each `size_class`, the smallest first."""
        return _added_up(self.grouped, ["size_class"]).sort_by("size_class")

    def by_partition(self) -> pa.Table:
        """Gives the sums for each partition, the largest first. Its values are the texts in the columns 0, 1..."""
        keys = _keys(self.by)
        order = [("size_bytes", "descending"), ("files", "descending"), *((key, "ascending") for key in keys)]
        return _added_up(self.grouped, keys).sort_by(order)

    def crowded(self) -> int:
        """Gives the number of partitions with so many small files that auto compaction would fold them."""
        is_crowded = pc.greater_equal(_added_up(self.grouped, _keys(self.by))["small_files"], LEAST_FILES)
        return pc.sum(is_crowded).as_py() or 0


def live_files_of(table: Table, *, by: Sequence[str] = ()) -> LiveFiles:
    """Adds up the live files of `table`, apart for each value of the partition columns `by`."""
    small_bytes = (TableProperties.of(table.metadata).target_file_bytes or BEHIND_BYTES) // 2
    keys, enough = [*_keys(by), "size_class"], _ROWS_AT_ONCE
    kept = _added_up(_counted(pa.RecordBatch.from_pylist([], DESCRIPTION), by, small_bytes), keys)
    for batch in table.files():
        kept = pa.concat_tables([kept, _added_up(_counted(batch, by, small_bytes), keys)])
        if kept.num_rows > enough:
            kept = _added_up(kept, keys)
            enough = 2 * kept.num_rows + _ROWS_AT_ONCE
    return LiveFiles(grouped=_added_up(kept, keys), by=tuple(by), small_bytes=small_bytes)


def _keys(by: Sequence[str]) -> list[str]:
    return [str(index) for index in range(len(by))]


def _counted(files: pa.RecordBatch, by: Sequence[str], small_bytes: int) -> pa.Table:
    """Each file as a group of one."""
    sizes, counts = files["size_bytes"], files["num_records"]
    exponents = pc.floor(pc.log2(pc.cast(pc.max_element_wise(sizes, 1), pa.float64(), safe=False)))
    values = {
        key: pc.map_lookup(files["partition_values"], pa.scalar(name), "first")
        for key, name in zip(_keys(by), by, strict=True)
    }
    numbers = {
        "size_class": exponents,
        "files": pa.repeat(1, files.num_rows),
        "size_bytes": sizes,
        "rows": pc.coalesce(counts, 0),
        "rows_unknown": pc.is_null(counts),
        "with_deletion_vector": files["has_deletion_vector"],
        "small_files": pc.less(sizes, small_bytes),
        "least_bytes": sizes,
        "most_bytes": sizes,
    }
    return pa.table({**values, **{name: pc.cast(column, pa.int64()) for name, column in numbers.items()}})


def _added_up(groups: pa.Table, keys: Sequence[str]) -> pa.Table:
    asked = [*((name, "sum") for name in _SUMS), ("least_bytes", "min"), ("most_bytes", "max")]
    found = groups.group_by(list(keys), use_threads=False).aggregate(asked)
    return found.select([*keys, *("_".join(pair) for pair in asked)]).rename_columns([*keys, *(n for n, _ in asked)])
