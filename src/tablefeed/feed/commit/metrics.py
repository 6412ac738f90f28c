"""The operationMetrics of a commit's commitInfo, under Delta-Spark's names."""

from __future__ import annotations

from collections.abc import Sequence

from tablefeed.delta.checkpoint.checksum_writer import FileCounts
from tablefeed.delta.commit_info import Optimize, StreamingUpdate, optimize_metrics
from tablefeed.delta.stats.stats_text import num_records
from tablefeed.feed.commit.operations import Operation
from tablefeed.feed.write.row_replacement import Rewriting
from tablefeed.model.actions import AddFile, RemoveFile


def metrics(
    operation: Operation,
    files: Sequence[AddFile],
    folded: Sequence[RemoveFile],
    *,
    replaced: FileCounts,
    replaced_rows: int | None,
    rewriting: Rewriting | None,
) -> dict[str, int]:
    """Counts what `operation` writes and what it removes: the files `folded` or `replaced`, or those of `rewriting`.

    Removed rows are counted for a replaceWhere alone, as Delta-Spark does. `replaced_rows` is None where a file has no
    row count.
    """
    if isinstance(operation, Optimize):
        return optimize_metrics(files, folded)
    written = {
        "numOutputRows": sum(num_records(f.stats) or 0 for f in files),
        "numOutputBytes": sum(f.size_bytes for f in files),
    }
    if rewriting is not None:
        return _rewritten(rewriting, len(files), written)
    removed = {"numRemovedFiles": replaced.file_count}
    if isinstance(operation, StreamingUpdate):
        return {**removed, "numAddedFiles": len(files), **written}
    if operation.mode == "Append":
        return {"numFiles": len(files), **written}
    rows = {} if operation.predicate is None else _rows_removed(replaced, replaced_rows)
    return {"numFiles": len(files), **removed, "numRemovedBytes": replaced.size_bytes, **rows, **written}


def _rows_removed(replaced: FileCounts, row_count: int | None) -> dict[str, int]:
    """Counts for files that are removed whole: none of their rows is copied, and no change file is written."""
    if row_count is None:
        return {"numAddedChangeFiles": 0}
    return {
        "numAddedChangeFiles": 0,
        "numDeletedRows": row_count - (replaced.deleted_rows or 0),
        "numCopiedRows": 0,
    }


def _rewritten(rewriting: Rewriting, file_count: int, written: dict[str, int]) -> dict[str, int]:
    return {
        "numFiles": file_count + len(rewriting.added),
        "numOutputRows": written["numOutputRows"] + rewriting.copied_rows,
        "numOutputBytes": written["numOutputBytes"] + sum(file.size_bytes for file in rewriting.added),
        "numRemovedFiles": len(rewriting.removed),
        "numRemovedBytes": sum(file.size_bytes for file in rewriting.removed),
        "numAddedChangeFiles": len(rewriting.changes),
        "numDeletedRows": rewriting.deleted_rows,
        "numCopiedRows": rewriting.copied_rows,
    }
