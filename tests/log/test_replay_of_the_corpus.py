"""Tables of other writers are the same read from a checkpoint and from the commits before it."""

from __future__ import annotations

from pathlib import Path

from tablefeed.delta import names
from tablefeed.feed.snapshot.segment_reader import Reading, SegmentReader
from tablefeed.log.replay import live_files
from tablefeed.log.segment import LogSegment, build_segment
from tablefeed.store import LocalStore

# One of each kind, with all of its commits.
_CHECKPOINTED = (
    "dat/with_checkpoint",
    "delta-golden/125-iterator-bug",
    "delta-golden/multi-part-checkpoint",
    "delta-golden/v2-checkpoint-parquet",
    "delta-kernel/kernel-pagination-v2-checkpoint-json",
    "kernelrs-data-tar/v2-checkpoints-json-without-sidecars",
    "kernelrs-data-tar/v2-checkpoints-parquet-with-sidecars",
    "kernelrs-data-tar/v2-checkpoints-parquet-without-sidecars",
    "kernelrs-data-tar/v2-classic-checkpoint-json",
    "kernelrs-data/v2-parquet-sidecars-struct-stats-only",
)


def _live(table: Path, segment: LogSegment) -> list[tuple[str, int]]:
    reader = SegmentReader(LocalStore(str(table)))
    live = live_files(*reader.files(Reading(segment=segment), with_stats=False))
    return sorted((row["key"], row["size_bytes"]) for batch in live for row in batch.to_pylist())


def test_a_table_reads_the_same_from_every_checkpoint_that_it_has(corpus: Path) -> None:
    for name in _CHECKPOINTED:
        table = corpus / "delta" / name
        entries = (table / names.LOG_DIR).iterdir()
        found = [names.parse_name(e.name, size_bytes=e.stat().st_size, modified_ms=0) for e in entries]
        listing = [log_file for log_file in found if log_file is not None]

        with_checkpoint = build_segment(listing, version=None)
        without = frozenset(file.name for file in with_checkpoint.checkpoint)
        from_commits = build_segment(listing, version=None, without=without)

        assert _live(table, with_checkpoint) == _live(table, from_commits)
        assert len(from_commits.commits) > len(with_checkpoint.commits)
