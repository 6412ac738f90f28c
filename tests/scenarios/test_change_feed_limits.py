"""How batches of a stream of row changes are limited: files of changes are not parted, and none is waited for in vain.

The stories are those of DeltaCDCStreamSuite (docs/scenarios/delta-cdc-stream.md).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scenarios.queries import Stream
from scenarios.tables import Table
from support.recorded import VECTORS, removed, vector

ONE = [{"maxFilesPerTrigger": "1"}, {"maxBytesPerTrigger": "1b"}]
one_at_a_time = pytest.mark.parametrize("limit", [pytest.param(limit, id=next(iter(limit))) for limit in ONE])


def changes(table: Table, **options: str) -> Stream:
    stream = Stream.on(table.path, readChangeFeed="true", **options)
    return replace(stream, feed_columns=True)


def a_table(path: Path, *names: str, mapping: str = "") -> Table:
    """Partitioned by part, and without rows in version 0."""
    table = Table(path / "table", partition_columns=("part",))
    return table.create(*names, kind="long", mapping=mapping, enableChangeDataFeed="true")


@pytest.fixture(params=["", "name", "id"])
def updated_twice(tmp_path: Path, request: pytest.FixtureRequest) -> Table:
    """1: two files. 2 and 3: each of their rows updated, with two files of changes."""
    table = a_table(tmp_path, "id", "part", "col3", mapping=request.param)
    table.append_at_once((0, 0, 0), (1, 1, 0))
    table.update(((0, 0, 0), (0, 0, 10)), ((1, 1, 0), (1, 1, 10)))
    table.update(((0, 0, 10), (0, 0, 20)), ((1, 1, 10), (1, 1, 20)))
    return table


UPDATED_TWICE = [
    (0, 0, 0, "update_preimage", 2),
    (0, 0, 10, "update_postimage", 2),
    (0, 0, 10, "update_preimage", 3),
    (0, 0, 20, "update_postimage", 3),
    (1, 1, 0, "update_preimage", 2),
    (1, 1, 10, "update_postimage", 2),
    (1, 1, 10, "update_preimage", 3),
    (1, 1, 20, "update_postimage", 3),
]


def with_rows(stream: Stream) -> list[int]:
    return [rows for rows in stream.rows_per_batch if rows]


@one_at_a_time
def test_files_come_one_by_one_and_files_of_changes_with_their_commit(tmp_path: Path, limit: dict[str, str]) -> None:
    table = a_table(tmp_path, "id", "part")
    table.append_at_once((0, 0), (1, 1))
    table.append((4, -1))
    table.delete((4, -1))
    table.update(((0, 0), (10, 0)), ((1, 1), (11, 1)))
    table.update(((10, 0), (20, 0)), ((11, 1), (21, 1)))
    stream = changes(table, startingVersion="0", **limit)

    assert stream.run() == sorted(
        [
            (0, 0, "insert", 1),
            (1, 1, "insert", 1),
            (4, -1, "insert", 2),
            (4, -1, "delete", 3),
            (0, 0, "update_preimage", 4),
            (10, 0, "update_postimage", 4),
            (1, 1, "update_preimage", 4),
            (11, 1, "update_postimage", 4),
            (10, 0, "update_preimage", 5),
            (20, 0, "update_postimage", 5),
            (11, 1, "update_preimage", 5),
            (21, 1, "update_postimage", 5),
        ],
        key=repr,
    )
    assert with_rows(stream) == [1, 1, 1, 1, 4, 4]


@one_at_a_time
def test_the_snapshot_comes_file_by_file(tmp_path: Path, limit: dict[str, str]) -> None:
    table = a_table(tmp_path, "id", "part")
    table.append((0, 0), (1, 0), (2, 0))
    table.append_at_once((3, 0), (4, 0))
    stream = changes(table, **limit)

    assert stream.run() == [(number, 0, "insert", 4) for number in range(5)]
    assert stream.rows_per_batch == [1, 1, 1, 1, 1]


@one_at_a_time
def test_a_commit_of_more_than_the_limit_is_not_waited_for_in_vain(updated_twice: Table, limit: dict[str, str]) -> None:
    stream = changes(updated_twice, startingVersion="2", **limit)

    assert stream.run() == UPDATED_TWICE
    assert stream.rows_per_batch == [4, 4]


@pytest.mark.parametrize("bounded", [False, True])
def test_commits_with_files_of_changes_are_not_parted(
    updated_twice: Table,
    bounded: bool,  # noqa: FBT001
) -> None:
    stream = replace(changes(updated_twice, startingVersion="0", maxFilesPerTrigger="3"), bounded=bounded)

    assert stream.run() == sorted([(0, 0, 0, "insert", 1), (1, 1, 0, "insert", 1), *UPDATED_TWICE], key=repr)
    assert stream.rows_per_batch == [2, 4, 4]


@pytest.mark.parametrize("by", ["files", "bytes"])
def test_nothing_behind_a_commit_that_does_not_fit_is_taken_before_it(tmp_path: Path, by: str) -> None:
    table = a_table(tmp_path, "id", "part", "col3")
    table.append_at_once((0, 0, 0), (1, 1, 0))
    size_bytes = sum(table.adds[name]["add"]["size"] for name in table.live)
    table.update(((0, 0, 0), (0, 0, 1)), ((1, 1, 0), (1, 1, 1)))
    table.append((10, 0, 2))
    # A file of changes counts with the byte that its action names: two are one too many.
    limit = {"maxFilesPerTrigger": "3"} if by == "files" else {"maxBytesPerTrigger": str(size_bytes + 1)}
    stream = changes(table, startingVersion="0", **limit)

    assert (10, 0, 2, "insert", 3) in stream.run()
    assert stream.rows_per_batch == [2, 5]


def test_a_commit_that_takes_a_vector_away_is_not_parted(tmp_path: Path) -> None:
    table = a_table(tmp_path, "id", "part")
    table.commit(VECTORS)
    name = table.append_file((1, 0), (2, 0), (3, 0))
    table.delete_by_vector((name, [1]))
    gone = removed(name, partitionValues={"part": "0"}, deletionVector=vector(1))
    table.commit(gone, table.adds[name], table.added((4, 0)))
    stream = changes(table, startingVersion="4", maxFilesPerTrigger="1")

    assert stream.run() == [(2, 0, "insert", 4), (4, 0, "insert", 4)]
    assert with_rows(stream) == [2]


SNAPSHOT: dict[str, str] = {}
FROM_1 = {"startingVersion": "1"}
FILES, BYTES = ONE
CUTS = [
    pytest.param(2, SNAPSHOT, {}, [(3, -1)], id="Initial snapshot (all inserts)"),
    pytest.param(0, SNAPSHOT, {}, [(1, -1)], id="Empty table (no data files)"),
    pytest.param(5, SNAPSHOT, {}, [(6, -1)], id="Multiple inserts (5 versions)"),
    pytest.param(2, SNAPSHOT, FILES, [(2, 0), (3, -1)], id="Rate limited (maxFiles=1)"),
    pytest.param(2, SNAPSHOT, BYTES, [(2, 0), (3, -1)], id="Rate limited (maxBytes=1)"),
    pytest.param(2, FROM_1, {}, [(3, -1)], id="Delta log (two inserts)"),
    pytest.param(2, FROM_1, FILES, [(2, -1), (3, -1)], id="Delta log rate limited (maxFiles=1)"),
    pytest.param(2, FROM_1, BYTES, [(2, -1), (3, -1)], id="Delta log rate limited (maxBytes=1)"),
]


@pytest.mark.parametrize(("commits", "start", "limit", "ends"), CUTS)
def test_inserts_are_cut_by_file_in_the_snapshot_and_in_the_log(
    tmp_path: Path, commits: int, start: dict[str, str], limit: dict[str, str], ends: list[tuple[int, int]]
) -> None:
    table = a_table(tmp_path, "id", "part")
    table.append(*((number, 0) for number in range(commits)))
    stream = changes(table, **start, **limit)

    versions = range(1, commits + 1) if start else [commits] * commits
    assert stream.run() == [(number, 0, "insert", version) for number, version in enumerate(versions)]
    assert stream.ends == ends
