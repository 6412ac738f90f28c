"""Writes version checksums, each computed from the one before (PROTOCOL.md, "Version Checksum File").

A wrong checksum stops Delta-Spark's readers. So a field that does not follow for certain from the checksum before is
left out, and where a required field is not known, no checksum is written. To bound the size, long lists are left out,
as Delta-Spark does (Checksum.scala).
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from tablefeed.delta import fields, names
from tablefeed.delta.paths import file_key
from tablefeed.delta.properties import MOST_LEAVES, TableProperties
from tablefeed.model.action_fields import BadActionError, read_object
from tablefeed.model.actions import AddFile, Commit, DeletionVector, Facts, RemoveFile
from tablefeed.model.shown import shown

MOST_TXNS, MOST_DOMAINS, MOST_FILES = 100, 10, 50
"""The longest lists that a checksum holds; Delta-Spark's defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCounts:
    """What a checksum says of the live files of one version. None: not known.

    `histogram` is the file counts and the total bytes of each size bin, `deleted_histogram` the file counts of each
    bin of deleted rows. `files` is every live file, None also where there are more than MOST_FILES.
    """

    file_count: int = 0
    size_bytes: int = 0
    histogram: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    vector_count: int | None = None
    deleted_rows: int | None = None
    deleted_histogram: tuple[int, ...] | None = None
    files: tuple[AddFile, ...] | None = None


def no_files() -> FileCounts:
    """The counts of a table without files: what the first version begins with."""
    return replace(_tallied(()), files=())


def read_counts(data: bytes, *, table_id: str) -> FileCounts | None:
    """The counts in the checksum `data`; None where it is malformed, lacks a required field or has another table id."""
    try:
        values = orjson.loads(data)
        if values["metadata"]["id"] != table_id or values["numMetadata"] != 1 or values["numProtocol"] != 1:
            return None
        return _counts(values)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):  # BadActionError is a ValueError
        return None


def counts_after(before: FileCounts, commit: Commit, also_removed: FileCounts | None = None) -> FileCounts | None:
    """The counts after `commit`, whose adds must not have been live before; None where they cannot be known.

    They cannot where a remove has no size, or where a count would become negative. `also_removed` counts live files
    that the commit removes besides those in `commit.files`.
    """
    if any(file.size_bytes is None for file in commit.removed):
        return None
    added = _tallied((file.size_bytes, file.deletion_vector) for file in commit.added)
    removed = _tallied((file.size_bytes or 0, file.deletion_vector) for file in commit.removed)
    after = summed(summed(before, added, 1), removed, -1)
    gone = no_files() if also_removed is None else also_removed
    after = summed(after, gone, -1)
    return replace(after, files=_files_after(before, after, commit, gone)) if _counts_something(after) else None


def encode_checksum(counts: FileCounts, facts: Facts, *, txn_id: str | None, schema_changed: bool) -> bytes | None:
    """The checksum of the version with `counts` and `facts`, one line; None where a required field is not known.

    `txn_id` is the commit's own. `schema_changed` says whether the commit changed the metadata. If so, files are not
    listed, as in Delta-Spark: their statistics may be of columns that no longer exist.
    """
    metadata, protocol = facts.metadata, facts.protocol
    if metadata is None or protocol is None:
        return None
    properties = TableProperties.of(metadata)
    if properties.keeps_commit_times and facts.in_commit_timestamp_ms is None:
        return None
    has_vectors = "deletionVectors" in (protocol.writer_features or ())
    txns = None if properties.txns_ms is not None else _few(facts.txns.values(), MOST_TXNS)
    domains = _few(facts.domains.values(), MOST_DOMAINS)
    files = None if schema_changed or not _lists_files(properties) else counts.files
    values: dict[str, Any] = {
        "txnId": txn_id,
        "tableSizeBytes": counts.size_bytes,
        "numFiles": counts.file_count,
        "numDeletedRecordsOpt": counts.deleted_rows if has_vectors else None,
        "numDeletionVectorsOpt": counts.vector_count if has_vectors else None,
        "numMetadata": 1,
        "numProtocol": 1,
        "inCommitTimestampOpt": facts.in_commit_timestamp_ms if properties.keeps_commit_times else None,
        "setTransactions": None if txns is None else [_fields(txn) for txn in txns],
        "domainMetadata": None if domains is None else [_fields(domain) for domain in domains],
        "metadata": _fields(metadata),
        "protocol": _fields(protocol),
        "fileSizeHistogram": _written_histogram(counts),
        "deletedRecordCountsHistogramOpt": (
            {"deletedRecordCounts": counts.deleted_histogram} if has_vectors and counts.deleted_histogram else None
        ),
        # As in a snapshot: dataChange of the commit that added the file does not matter any more.
        "allFiles": None if files is None else [_fields(replace(f, data_change=False)) for f in files],
    }
    present = {name: value for name, value in values.items() if value is not None}
    return orjson.dumps(present, default=dict, option=orjson.OPT_APPEND_NEWLINE)


_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
SIZE_BINS: Sequence[int] = (
    0,
    *(_KIB << power for power in range(3, 10)),
    *(_MIB << power for power in range(3)),
    *range(8 * _MIB, 40 * _MIB, 4 * _MIB),
    *range(40 * _MIB, 120 * _MIB, 8 * _MIB),
    *range(120 * _MIB, 144 * _MIB, 4 * _MIB),
    *range(144 * _MIB, 576 * _MIB, 16 * _MIB),
    *range(576 * _MIB, 1408 * _MIB, 64 * _MIB),
    *range(1408 * _MIB, 2048 * _MIB, 128 * _MIB),
    *range(2048 * _MIB, 4096 * _MIB, 256 * _MIB),
    *(_GIB << power for power in range(2, 9)),
)
"""Where the size bins begin: Delta-Spark's, which it compares ("File Size Histogram Schema" names no bins)."""

DELETED_BINS = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 2**31 - 1)
"""Where the bins of deleted rows begin ("Deleted Record Counts Histogram Schema")."""


def _tallied(files: Iterable[tuple[int, DeletionVector | None]]) -> FileCounts:
    # In plain Python: a commit has few files, mostly one, and for so few Arrow's calls would be the largest cost.
    histogram = [0] * len(SIZE_BINS), [0] * len(SIZE_BINS)
    deleted_histogram = [0] * len(DELETED_BINS)
    file_count = size_sum = vector_count = deleted_sum = 0
    for size_bytes, vector in files:
        deleted_rows = 0 if vector is None else vector.cardinality
        file_count, size_sum = file_count + 1, size_sum + size_bytes
        vector_count, deleted_sum = vector_count + (vector is not None), deleted_sum + deleted_rows
        if size_bytes >= 0:
            size_bin = bisect_right(SIZE_BINS, size_bytes) - 1
            histogram[0][size_bin] += 1
            histogram[1][size_bin] += size_bytes
        if deleted_rows >= 0:
            deleted_histogram[bisect_right(DELETED_BINS, deleted_rows) - 1] += 1
    return FileCounts(
        file_count=file_count,
        size_bytes=size_sum,
        histogram=(tuple(histogram[0]), tuple(histogram[1])),
        vector_count=vector_count,
        deleted_rows=deleted_sum,
        deleted_histogram=tuple(deleted_histogram),
    )


def summed(counts: FileCounts, more: FileCounts, sign: int) -> FileCounts:
    """`counts` plus `more`, or minus it where `sign` is -1. A number that either does not know is not known."""

    def of(one: int | None, other: int | None) -> int | None:
        return None if one is None or other is None else one + sign * other

    def of_bins(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(map(operator.add if sign > 0 else operator.sub, one, other))  # all have the same bins

    bins, more_bins = counts.histogram, more.histogram
    deleted, more_deleted = counts.deleted_histogram, more.deleted_histogram
    return FileCounts(
        file_count=counts.file_count + sign * more.file_count,
        size_bytes=counts.size_bytes + sign * more.size_bytes,
        histogram=(of_bins(bins[0], more_bins[0]), of_bins(bins[1], more_bins[1])) if bins and more_bins else None,
        vector_count=of(counts.vector_count, more.vector_count),
        deleted_rows=of(counts.deleted_rows, more.deleted_rows),
        deleted_histogram=of_bins(deleted, more_deleted) if deleted and more_deleted else None,
    )


def _counts_something(counts: FileCounts) -> bool:
    """Whether no number is negative. A negative number means that the counts before were not the table's."""
    numbers = [counts.file_count, counts.size_bytes, counts.vector_count or 0, counts.deleted_rows or 0]
    bins = [*(counts.histogram or ()), counts.deleted_histogram or ()]
    return min(numbers) >= 0 and all(min(each, default=0) >= 0 for each in bins)


def _counts(values: Mapping[str, Any]) -> FileCounts:
    histogram = values.get("fileSizeHistogram", values.get("histogramOpt"))  # Delta-Spark's earlier name
    same_bins = histogram is not None and histogram["sortedBinBoundaries"] == list(SIZE_BINS)
    deleted = values.get("deletedRecordCountsHistogramOpt")
    listed = values.get("allFiles")
    return FileCounts(
        file_count=_whole(values["numFiles"]),
        size_bytes=_whole(values["tableSizeBytes"]),
        histogram=(
            (_wholes(histogram["fileCounts"], SIZE_BINS), _wholes(histogram["totalBytes"], SIZE_BINS))
            if same_bins
            else None
        ),
        vector_count=_whole_or_none(values.get("numDeletionVectorsOpt")),
        deleted_rows=_whole_or_none(values.get("numDeletedRecordsOpt")),
        deleted_histogram=None if deleted is None else _wholes(deleted["deletedRecordCounts"], DELETED_BINS),
        files=None if listed is None else tuple(_read_add(add) for add in listed),
    )


def _read_add(values: Any) -> AddFile:  # Any: JSON
    file = fields.read_file(names.ADD, read_object(values))
    if not isinstance(file, AddFile):
        raise BadActionError("is not an add")
    return file


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{shown(value)} is not a count")
    return value


def _whole_or_none(value: object) -> int | None:
    return None if value is None else _whole(value)


def _wholes(value: Any, bins: Sequence[int]) -> tuple[int, ...]:  # Any: JSON
    numbers = tuple(value)
    if len(numbers) != len(bins):
        raise ValueError("it does not have one number for each bin")
    if {*map(type, numbers)} != {int} or min(numbers) < 0:
        raise ValueError("it has a number that is not a count")
    return numbers


def _files_after(before: FileCounts, after: FileCounts, commit: Commit, gone: FileCounts) -> tuple[AddFile, ...] | None:
    if before.files is None or gone.files is None or max(before.file_count, after.file_count) > MOST_FILES:
        return () if after.file_count == 0 else None
    removed = {file_key(file) for file in gone.files}
    live = {key: file for file in before.files if (key := file_key(file)) not in removed}
    for file in commit.files:
        if isinstance(file, RemoveFile):
            live.pop(file_key(file), None)
        elif isinstance(file, AddFile):
            live[file_key(file)] = file
    # Where the listed files do not match the counts, the list cannot be trusted.
    files = tuple(live.values())
    same = len(files) == after.file_count and sum(f.size_bytes for f in files) == after.size_bytes
    return files if same else None


def _lists_files(properties: TableProperties) -> bool:
    """Whether Delta-Spark would list the files of a table with `properties`. Its rule is used: it compares the list."""
    has_statistics = properties.has_stats_as_text or properties.has_stats_as_struct
    most = properties.indexed_leaves
    return has_statistics and most is not None and most <= MOST_LEAVES


def _few(actions: Iterable[Any], most: int) -> list[Any] | None:  # Any: one kind of action
    listed = list(actions)
    return listed if len(listed) <= most else None


def _fields(action: Any) -> object:  # Any: what `write_action` takes
    (written,) = fields.write_action(action).values()
    return written


def _written_histogram(counts: FileCounts) -> Mapping[str, Sequence[int]] | None:
    if counts.histogram is None:
        return None
    files, sizes = counts.histogram
    return {"sortedBinBoundaries": SIZE_BINS, "fileCounts": files, "totalBytes": sizes}
