"""Tables of other writers, replayed from their log files alone, have the live files that other readers see."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablefeed.delta import names
from tablefeed.delta.columns import decode_paths
from tablefeed.errors import LogGapError, VersionNotFoundError
from tablefeed.feed.snapshot.segment_reader import Reading, SegmentReader
from tablefeed.log.replay import live_files
from tablefeed.log.segment import LogSegment, build_segment
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile
from tablefeed.store import LocalStore

# A benchmark's table: replaying it is a matter of seconds.
_TOO_LARGE = frozenset({"kernelrs-data-tar/300k-add-files-100-col-partitioned"})
# `/x` and `file:/x` are one file to Delta-Spark, for whose tests these were made, and to us, but not to other readers.
_ONE_FILE_BY_TWO_NAMES = (
    "delta-golden/canonicalized-paths-normal-b",
    "delta-golden/canonicalized-paths-special-a",
    "delta-golden/canonicalized-paths-special-b",
    "kernelrs-golden-tar/canonicalized-paths-normal-a",
    "kernelrs-golden-tar/canonicalized-paths-normal-b",
    "kernelrs-golden-tar/canonicalized-paths-special-a",
)
# The readers were shown more of these logs than the folders hold.
_CUT_OFF = {("deltars-errlogs/table_c", "13"): LogGapError, ("kafka-ingest/zero_offset", "1"): VersionNotFoundError}


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


def _listing(log: Path) -> list[LogFile]:
    found = (names.parse_name(file.name, size_bytes=file.stat().st_size, modified_ms=0) for file in log.iterdir())
    return [file for file in found if file is not None]


def _live(log: Path, segment: LogSegment) -> Iterator[pa.RecordBatch]:
    reader = SegmentReader(LocalStore(str(log.parent)))
    return live_files(*reader.files(Reading(segment=segment), with_stats=False))


def _described(batches: Iterator[pa.RecordBatch]) -> tuple[int, int, str]:
    paths: list[str] = []
    size_bytes = 0
    for batch in batches:
        paths += decode_paths(batch["log_path"]).to_pylist()
        size_bytes += pc.sum(batch["size_bytes"]).as_py() or 0
    return len(paths), size_bytes, hashlib.sha256("\n".join(sorted(paths)).encode()).hexdigest()


def _versions(corpus: Path) -> Iterator[tuple[str, str, dict[str, object]]]:
    tables = json.loads((corpus / "delta/expected.json").read_text(encoding="utf-8"))["tables"]
    for table, expected in tables.items():
        for version, files in expected["files"].items():
            if "active" in files and table not in _TOO_LARGE:
                yield table, version, files


def test_every_version_has_the_files_that_other_readers_see(corpus: Path) -> None:
    wrong: list[str] = []
    right = 0
    for table, version, files in _versions(corpus):
        if (table, version) in _CUT_OFF or (table in _ONE_FILE_BY_TWO_NAMES and version == "1"):
            continue
        log = corpus / "delta" / table / names.LOG_DIR
        segment = build_segment(_listing(log), version=Version(int(version)))
        if _described(_live(log, segment)) == (files["active"], files["bytes"], files["paths_sha256"]):
            right += 1
        else:
            wrong.append(f"{table} at {version}")

    assert wrong == []
    assert right > 450


@pytest.mark.parametrize("table", _ONE_FILE_BY_TWO_NAMES)
def test_a_remove_by_another_spelling_of_the_path_removes_the_file(corpus: Path, table: str) -> None:
    log = corpus / "delta" / table / names.LOG_DIR

    assert _described(_live(log, build_segment(_listing(log), version=Version(1))))[0] == 0


@pytest.mark.parametrize(("table", "version"), sorted(_CUT_OFF))
def test_what_the_log_no_longer_holds_is_refused(corpus: Path, table: str, version: str) -> None:
    log = corpus / "delta" / table / names.LOG_DIR

    with pytest.raises(_CUT_OFF[table, version]):
        build_segment(_listing(log), version=Version(int(version)))


def test_a_table_reads_the_same_from_every_checkpoint_that_it_has(corpus: Path) -> None:
    for table in _CHECKPOINTED:
        log = corpus / "delta" / table / names.LOG_DIR
        listing = _listing(log)
        with_checkpoint = build_segment(listing, version=None)
        without = frozenset(file.name for file in with_checkpoint.checkpoint)
        from_commits = build_segment(listing, version=None, without=without)
        assert _described(_live(log, with_checkpoint)) == _described(_live(log, from_commits))
        assert len(from_commits.commits) > len(with_checkpoint.commits)
