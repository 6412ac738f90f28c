"""Which files of a listing give a version, and what is said where none do."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablefeed.errors import LogError, LogGapError, TableNotFoundError, VersionNotFoundError
from tablefeed.log.segment import (
    LogSegment,
    build_segment,
    earliest_reproducible,
    earliest_version,
)
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile, LogFileKind


def commits(*versions: int) -> list[LogFile]:
    return [_file(f"{v:020d}.json", LogFileKind.COMMIT, v) for v in versions]


def checkpoint(version: int) -> list[LogFile]:
    return [_file(f"{version:020d}.checkpoint.parquet", LogFileKind.CHECKPOINT, version)]


def parts(version: int, *, of: int, without: int | None = None) -> list[LogFile]:
    names = {part: f"{version:020d}.checkpoint.{part:010d}.{of:010d}.parquet" for part in range(1, of + 1)}
    return [
        _file(name, LogFileKind.CHECKPOINT_PART, version, part=part, part_count=of)
        for part, name in names.items()
        if part != without
    ]


def v2_checkpoint(version: int, *, uuid: str = "80a083e8") -> list[LogFile]:
    name = f"{version:020d}.checkpoint.{uuid}-7026-4e79-81be-64bd76c43a11.json"
    return [_file(name, LogFileKind.CHECKPOINT_V2, version)]


def compaction(first: int, last: int) -> list[LogFile]:
    name = f"{first:020d}.{last:020d}.compacted.json"
    return [_file(name, LogFileKind.COMPACTION, first, last_version=Version(last))]


def _file(name: str, kind: LogFileKind, version: int, **more: Any) -> LogFile:
    return LogFile(name=name, kind=kind, version=Version(version), size_bytes=1, modified_ms=1, **more)


def built(listing: list[LogFile], version: int | None = None, without: frozenset[str] = frozenset()) -> LogSegment:
    return build_segment(listing, version=None if version is None else Version(version), without=without)


def test_without_a_checkpoint_the_newest_version_is_all_commits() -> None:
    assert built(commits(0, 1, 2)) == LogSegment(version=Version(2), checkpoint=(), commits=tuple(commits(0, 1, 2)))


def test_a_version_is_its_newest_checkpoint_and_the_commits_after_it() -> None:
    listing = commits(0, 1, 2, 3, 4, 5) + checkpoint(1) + checkpoint(3)

    assert built(listing) == LogSegment(
        version=Version(5), checkpoint=tuple(checkpoint(3)), commits=tuple(commits(4, 5))
    )
    assert built(listing, 3) == LogSegment(version=Version(3), checkpoint=tuple(checkpoint(3)), commits=())


def test_an_older_version_is_not_read_from_a_newer_checkpoint() -> None:
    segment = built(commits(0, 1, 2, 3) + checkpoint(1) + checkpoint(3), 2)

    assert segment == LogSegment(version=Version(2), checkpoint=tuple(checkpoint(1)), commits=tuple(commits(2)))


def test_commits_that_cleanup_took_are_not_missed_behind_a_checkpoint() -> None:
    segment = built(commits(5, 6, 7) + checkpoint(5))

    assert segment == LogSegment(version=Version(7), checkpoint=tuple(checkpoint(5)), commits=tuple(commits(6, 7)))


def test_a_checkpoint_alone_is_a_version() -> None:
    assert built(checkpoint(2)) == LogSegment(version=Version(2), checkpoint=tuple(checkpoint(2)), commits=())


def test_a_checkpoint_in_parts_is_taken_in_the_order_of_its_parts() -> None:
    listing = commits(0, 1) + parts(1, of=3)

    assert built(listing[::-1]).checkpoint == tuple(parts(1, of=3))


@pytest.mark.parametrize("absent", [1, 2, 3])
def test_a_checkpoint_that_lacks_a_part_is_no_checkpoint(absent: int) -> None:
    segment = built(commits(0, 1, 2) + checkpoint(0) + parts(2, of=3, without=absent))

    assert segment == LogSegment(version=Version(2), checkpoint=tuple(checkpoint(0)), commits=tuple(commits(1, 2)))


def test_parts_of_two_checkpoints_of_one_version_are_not_mixed() -> None:
    listing = commits(0, 1) + parts(1, of=2, without=1) + parts(1, of=3, without=2)

    assert built(listing).checkpoint == ()


def test_of_one_version_the_greatest_uuid_goes_first_then_the_most_parts_then_the_single_file() -> None:
    low, high = v2_checkpoint(1, uuid="0" * 8), v2_checkpoint(1, uuid="f" * 8)
    order = [high, low, parts(1, of=3), parts(1, of=2), checkpoint(1)]
    listing = [file for files in order[::-1] for file in files]
    unreadable: frozenset[str] = frozenset()

    for expected in order:
        assert built(listing, without=unreadable).checkpoint == tuple(expected)
        unreadable |= _names(expected[-1:])


def test_without_an_unreadable_checkpoint_the_one_before_it_is_taken() -> None:
    listing = commits(0, 1, 2, 3) + checkpoint(1) + checkpoint(3)

    segment = built(listing, without=_names(checkpoint(3)))

    assert segment == LogSegment(version=Version(3), checkpoint=tuple(checkpoint(1)), commits=tuple(commits(2, 3)))


def test_a_hole_between_commits_names_what_is_missing() -> None:
    with pytest.raises(LogGapError, match="versions 2 to 3 are missing") as caught:
        built(commits(0, 1, 4, 5))
    assert (caught.value.expected, caught.value.found) == (2, 4)
    assert caught.value.error_class == "DELTA_VERSIONS_NOT_CONTIGUOUS"


@pytest.mark.parametrize(
    ("listing", "version", "without", "missing", "truncated"),
    [
        (checkpoint(1) + commits(0, 1, 3), None, [], (2, 3), True),  # Delta-Spark's class right behind a checkpoint
        (commits(0, 1, 3) + checkpoint(3), 2, [], (2, 3), False),
        # The newest version stays the newest, though its only file is unreadable.
        (commits(0, 1) + checkpoint(3), None, checkpoint(3), (2, 3), False),
        # A compaction does not replace a commit that is gone.
        (commits(0, 2, 3) + compaction(0, 2), None, [], (1, 2), False),
    ],
)
def test_a_version_behind_a_hole_or_in_one_is_a_gap(
    listing: list[LogFile], version: int | None, without: list[LogFile], missing: tuple[int, int], *, truncated: bool
) -> None:
    with pytest.raises(LogGapError) as caught:
        built(listing, version, without=_names(without))
    assert (caught.value.expected, caught.value.found) == missing
    assert (caught.value.error_class == "DELTA_TRUNCATED_TRANSACTION_LOG") == truncated


def test_a_hole_before_the_checkpoint_or_after_the_version_does_no_harm() -> None:
    listing = commits(0, 1, 2, 4, 5, 6, 8) + checkpoint(5)

    assert built(listing, 6).commits == tuple(commits(6))
    assert built(listing, 2).commits == tuple(commits(0, 1, 2))


def test_a_log_that_is_cut_off_at_its_begin_and_has_no_checkpoint_is_truncated() -> None:
    with pytest.raises(LogError, match=r"DELTA_TRUNCATED_TRANSACTION_LOG.*before version 3 are gone"):
        built(commits(3, 4) + parts(3, of=2, without=2))


@pytest.mark.parametrize(
    ("listing", "version", "earliest", "latest"),
    [
        (commits(*range(8)), 8, 0, 7),
        (commits(*range(8)), 99, 0, 7),
        (commits(3, 4, 5, 6) + checkpoint(5), 4, 5, 6),  # of a log that was cleaned up, though its commit is there
    ],
)
def test_a_version_after_the_newest_or_before_the_first_checkpoint_is_not_there(
    listing: list[LogFile], version: int, earliest: int, latest: int
) -> None:
    with pytest.raises(VersionNotFoundError) as caught:
        built(listing, version)
    assert (caught.value.version, caught.value.earliest, caught.value.latest) == (version, earliest, latest)


@pytest.mark.parametrize(
    "listing",
    [
        [],
        parts(3, of=2, without=1),
        [_file("00000000000000000003.crc", LogFileKind.CHECKSUM, 3)],
        compaction(3, 5),
        compaction(0, 5),
    ],
)
def test_a_log_without_a_commit_and_a_whole_checkpoint_is_no_table(listing: list[LogFile]) -> None:
    with pytest.raises(TableNotFoundError, match="no commit and no complete checkpoint"):
        built(listing)
    assert (earliest_version(listing), earliest_reproducible(listing)) == (None, None)


def test_a_checkpoint_with_a_uuid_in_its_name_is_a_checkpoint() -> None:
    listing = commits(2, 3) + v2_checkpoint(2)

    assert built(listing) == LogSegment(
        version=Version(3), checkpoint=tuple(v2_checkpoint(2)), commits=tuple(commits(3))
    )
    assert (built(v2_checkpoint(4)).version, earliest_reproducible(listing)) == (4, 2)
    with pytest.raises(LogError, match="DELTA_TRUNCATED_TRANSACTION_LOG"):
        built(listing, without=_names(v2_checkpoint(2)))


# --- compactions -----------------------------------------------------------------------------------------------------


def test_a_compaction_from_the_logs_begin_stands_for_its_commits() -> None:
    segment = built(commits(0, 1, 2, 3) + compaction(0, 2))

    assert segment.tail == (*compaction(0, 2), *commits(3))
    assert segment.commits == tuple(commits(0, 1, 2, 3))


def test_the_compaction_that_covers_most_goes_first() -> None:
    listing = commits(*range(7)) + compaction(0, 2) + compaction(0, 4)

    assert built(listing).tail == (*compaction(0, 4), *commits(5, 6))
    assert built(listing, without=_names(compaction(0, 4))).tail == (*compaction(0, 2), *commits(3, 4, 5, 6))
    assert built(listing, 4).tail == (*compaction(0, 2), *commits(3, 4))


def test_the_newest_commit_is_read_itself_though_a_compaction_covers_it() -> None:
    assert built(commits(0, 1, 2) + compaction(0, 2)).tail == tuple(commits(0, 1, 2))


def test_a_compaction_over_an_earlier_state_is_not_read_for_it_may_lack_removes() -> None:
    later = commits(0, 1, 2, 3, 4) + compaction(1, 3)
    behind_a_checkpoint = later + checkpoint(0) + compaction(0, 3)

    assert built(later).tail == tuple(commits(0, 1, 2, 3, 4))
    assert built(behind_a_checkpoint).tail == tuple(commits(1, 2, 3, 4))


def test_what_can_be_left_out_for_an_unreadable_file_is_the_compaction_or_the_checkpoint() -> None:
    compacted = built(commits(0, 1, 2) + compaction(0, 1))
    based = built(commits(2, 3) + parts(2, of=2))

    assert compacted.replaceable(compaction(0, 1)[0].name) == _names(compaction(0, 1))
    assert compacted.replaceable(commits(2)[0].name) == frozenset()
    for name in (parts(2, of=2)[0].name, "_delta_log/_sidecars/a.parquet", commits(3)[0].name):
        assert based.replaceable(name) == _names(parts(2, of=2))


def test_the_checksum_of_a_segment_is_that_of_its_version() -> None:
    checksums = [_file(f"{v:020d}.crc", LogFileKind.CHECKSUM, v) for v in (1, 2)]

    assert built(commits(0, 1, 2, 3) + checksums, 2).checksum == checksums[1]
    assert built(commits(0, 1, 2, 3) + checksums).checksum is None


def test_the_bounds_of_a_log_are_those_of_its_commits_and_whole_checkpoints() -> None:
    listing = commits(3, 5, 6, 7) + checkpoint(5) + parts(9, of=2, without=1)

    assert built(listing).version == 7
    assert earliest_version(listing) == 5
    assert earliest_reproducible(listing) == 5
    assert earliest_reproducible(listing + commits(0)) == 0
    assert built(listing + checkpoint(8)).version == 8


def test_a_name_that_a_listing_gives_twice_is_one_file() -> None:
    listing = commits(0, 1) + parts(1, of=2, without=2)
    newer = LogFile(name=listing[1].name, kind=LogFileKind.COMMIT, version=Version(1), size_bytes=9, modified_ms=9)

    assert built([*listing, newer, *listing]) == LogSegment(
        version=Version(1), checkpoint=(), commits=(listing[0], newer)
    )


@pytest.mark.parametrize(
    ("version", "base", "tail"),
    [(2, [], [0, 2]), (2, [], [1, 2]), (2, [], [0, 1]), (2, [1], [1, 2]), (2, [0, 1], [2]), (2, [2], [3])],
)
def test_a_segment_with_a_gap_cannot_be_built(version: int, base: list[int], tail: list[int]) -> None:
    files = tuple(file for v in base for file in checkpoint(v))

    with pytest.raises(ValueError, match="no segment of version 2"):
        LogSegment(version=Version(version), checkpoint=files, commits=tuple(commits(*tail)))


@pytest.mark.parametrize(
    "beside",
    [{"checkpoint": tuple(checkpoint(0)), "commits": tuple(commits(1, 2, 3))}, {"commits": tuple(commits(0, 1, 2))}],
)
def test_a_segment_with_a_compaction_that_does_not_begin_it_cannot_be_built(beside: dict[str, Any]) -> None:
    version = beside["commits"][-1].version

    with pytest.raises(ValueError, match="no segment"):
        LogSegment(version=version, **{"checkpoint": (), **beside}, compaction=compaction(0, 2)[0])


@st.composite
def _listings(draw: st.DrawFn) -> list[LogFile]:
    versions = st.integers(0, 8)
    listing = commits(*draw(st.sets(versions)))
    for version in draw(st.sets(versions, max_size=3)):
        listing += checkpoint(version)
    for version in draw(st.sets(versions, max_size=3)):
        listing += parts(version, of=draw(st.integers(1, 3)), without=draw(st.none() | st.integers(1, 3)))
    for version in draw(st.sets(versions, max_size=2)):
        listing += v2_checkpoint(version, uuid=draw(st.sampled_from(["0" * 8, "f" * 8])))
    for first in draw(st.sets(versions, max_size=2)):
        listing += compaction(first, first + draw(st.integers(1, 3)))
    return listing + draw(st.lists(st.sampled_from(listing))) if listing else listing


@given(_listings(), st.none() | st.integers(0, 9), st.randoms())
def test_the_order_of_a_listing_does_not_matter(listing: list[LogFile], version: int | None, random: Random) -> None:
    shuffled = list(listing)
    random.shuffle(shuffled)

    assert _outcome(shuffled, version) == _outcome(listing, version)


@given(_listings(), st.integers(0, 9))
def test_a_segment_is_found_exactly_where_a_checkpoint_or_the_start_and_unbroken_commits_lead_to_the_version(
    listing: list[LogFile], version: int
) -> None:
    present = {file.version for file in listing if file.kind is LogFileKind.COMMIT}
    bases = [-1] + [v for v in range(9) if _is_whole(listing, v)]
    reachable = any(base <= version and set(range(base + 1, version + 1)) <= present for base in bases)

    assert isinstance(_outcome(listing, version), LogSegment) == reachable


def _is_whole(listing: list[LogFile], version: int) -> bool:
    names = {file.name for file in listing}
    candidates = [checkpoint(version), *(parts(version, of=count) for count in range(1, 4))]
    candidates += [v2_checkpoint(version, uuid=digit * 8) for digit in "0f"]
    return any(_names(candidate) <= names for candidate in candidates)


def _outcome(listing: list[LogFile], version: int | None) -> LogSegment | str:
    try:
        return built(listing, version)
    except (LogError, TableNotFoundError) as error:
        return error.message


def _names(files: list[LogFile]) -> frozenset[str]:
    return frozenset(file.name for file in files)
