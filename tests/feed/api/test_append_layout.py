"""How files lie that `tablefeed.append` makes, and what its commit says, where the caller chooses. Its log, too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

import tablefeed
from tablefeed.feed.upkeep.after_commit import wait_until_done

ROWS = pa.table({"id": [1, 2, 3]})


def files(table: Path) -> list[tuple[int, str]]:
    """Rows and codec of each data file, the largest first."""
    found = [pq.ParquetFile(path).metadata for path in table.glob("*.parquet")]
    return sorted(((file.num_rows, file.row_group(0).column(0).compression) for file in found), reverse=True)


def log_files(table: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in (table / "_delta_log").glob(pattern))


def ids_by_delta_rs(table: Path) -> list[int]:
    return sorted(DeltaTable(str(table)).to_pyarrow_table()["id"].to_pylist())


def test_the_codec_of_a_write_goes_before_the_tables(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, compression="ZSTD", properties={"delta.parquet.compression.codec": "gzip"})
    tablefeed.append(tmp_path, ROWS)

    assert files(tmp_path) == [(3, "ZSTD"), (3, "GZIP")]


def test_no_file_has_more_rows_than_the_write_says(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, max_records_per_file=2)

    assert files(tmp_path) == [(2, "SNAPPY"), (1, "SNAPPY")]
    assert ids_by_delta_rs(tmp_path) == [1, 2, 3]


def test_what_the_user_says_of_a_commit_is_in_its_history(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, user_metadata="nightly")
    tablefeed.append(tmp_path, ROWS)

    told = [info.fields.get("userMetadata") for info in tablefeed.open_table(tmp_path).history()]
    assert told == [None, "nightly"]


def test_each_so_many_commits_are_one_compaction_file_too(tmp_path: Path) -> None:
    for _ in range(4):
        tablefeed.append(tmp_path, ROWS, log_compaction_every=2)
    wait_until_done()

    ranges = [f"{first:020d}.{first + 1:020d}.compacted.json" for first in (0, 2)]
    assert log_files(tmp_path, "*.compacted.json") == ranges


def test_a_checkpoint_has_parts_of_about_so_many_actions(tmp_path: Path) -> None:
    for _ in range(3):
        tablefeed.append(tmp_path, ROWS, checkpoint_part_size=2, properties={"delta.checkpointInterval": "2"})
        wait_until_done()

    assert len(log_files(tmp_path, f"{2:020d}.checkpoint.*.parquet")) > 1
    for version in (0, 1):
        (tmp_path / "_delta_log" / f"{version:020d}.json").unlink()
    assert ids_by_delta_rs(tmp_path) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
