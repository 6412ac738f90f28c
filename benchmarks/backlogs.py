"""Streams that begin far behind, read changes, or are late in a long log. Rows are counted in the first round."""

from __future__ import annotations

from benchmarks import changes, questions, workloads
from benchmarks.bench import Bench, counts, drain, expect, median_ms, whole_s
from benchmarks.workloads import OLD, YOUNG


def catch_up(bench: Bench) -> dict[str, float]:
    """Reads all commits of a long log to `noop`, many files a batch."""
    size = bench.workload
    options = {"startingVersion": "0", "maxFilesPerTrigger": str(size.backlog_batch_files)}
    stream = bench.stream(workloads.backlog_table(bench.tables), **options)
    if bench.is_first:
        expect(counts(bench, stream), {(): size.backlog_commits * size.backlog_rows}, what="rows of the backlog")
    return {questions.CATCH_UP.key: size.backlog_commits / whole_s(bench, stream)}


def change_feed(bench: Bench) -> dict[str, float]:
    """Reads the changes of all versions of a table to `noop`."""
    expected = changes.change_counts(bench.workload.inserted_rows)
    stream = bench.stream(workloads.changes_table(bench.tables), startingVersion="0", readChangeFeed="true")
    if bench.is_first:
        expect(counts(bench, stream, "_change_type"), expected, what="changes by their type")
    return {questions.CHANGE_FEED.key: sum(expected.values()) / whole_s(bench, stream)}


def old_log(bench: Bench) -> dict[str, float]:
    """Reads one file a batch, early in a short log and late in a long one."""
    took_ms: dict[int, float] = {}
    for after in (YOUNG, OLD):
        table = workloads.log_table(bench.tables, after)
        stream = bench.stream(table, startingVersion=str(after + 1), maxFilesPerTrigger="1")
        batches = drain(bench, stream)
        expect(len(batches), bench.workload.old_log_batches, what="batches at the end of a log")
        took_ms[after] = median_ms(batches)
    return {questions.OLD_LOG.key: took_ms[OLD], questions.GROWTH.key: took_ms[OLD] / took_ms[YOUNG]}
