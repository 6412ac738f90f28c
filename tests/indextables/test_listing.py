from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tablefeed.errors import LogError, LogGapError, TableNotFoundError, VersionNotFoundError
from tablefeed.indextables import names
from tablefeed.indextables.log import listing
from tablefeed.indextables.log.listing import Log, StateChange
from tablefeed.model.actions import Version
from tablefeed.model.logfile import LogFile

URL = "mem://t"


def log(*, json: str = "", states: str = "", checkpoints: str = "", extra: tuple[str, ...] = ()) -> Log:
    """The log with these versions: `log(json="0 1 2", states="1 2")`."""
    found = [names.commit_name(int(v)) for v in json.split()]
    found += [names.state_name(int(v)) for v in states.split()]
    found += [names.checkpoint_name(int(v)) for v in checkpoints.split()]
    return listing.read_listing(file for name in (*found, *extra) for file in [listed(name)] if file is not None)


def listed(name: str) -> LogFile | None:
    return names.parse_name(name, size_bytes=1, modified_ms=1)


def segment(
    found: Log, version: int | None = None, *, without: frozenset[str] = frozenset()
) -> tuple[str | None, list[int]]:
    """The base's name, and the versions of the commits after it."""
    got = listing.segment_of(found, None if version is None else Version(version), url=URL, without=without)
    return None if got.base is None else got.base.name, [file.version for file in got.commits]


def test_a_state_directory_without_its_manifest_is_no_state() -> None:
    found = log(json="0", states="1", extra=(f"{names.state_dir(2)}/manifest-1234abcd.avro", names.state_dir(3)))

    assert found.newest == 1


def test_a_state_that_turns_out_to_be_absent_is_as_if_it_were_not_listed() -> None:
    found = log(json="0", states="1 2")

    assert found.with_states({Version(2): None}).newest == 1
    assert found.newest == 2


def test_a_segment_names_the_states_that_it_is_read_from() -> None:
    def states(found: Log, version: int) -> set[int]:
        return {*listing.segment_of(found, Version(version), url=URL).state_versions}

    assert states(log(json="0", states="1 2 3"), 3) == {3}
    assert states(log(json="0 1", states="1 2 3"), 3) == {1, 3}
    assert states(log(json="0 1 2", checkpoints="1"), 2) == set()


def test_what_hadoop_and_others_leave_behind_is_no_part_of_the_log() -> None:
    left = (".00000000000000000009.json.crc", "_last_checkpoint", "manifests/manifest-1234abcd.avro", "9.json")

    assert log(json="0", extra=(*left, f"{10**20 - 1}.json")).newest == 0


def test_a_state_v0_is_never_a_version() -> None:
    found = log(json="0", states="0 1")

    assert segment(found, 0) == (None, [0])
    with pytest.raises(TableNotFoundError):
        listing.segment_of(log(states="0"), None, url=URL)


@pytest.mark.parametrize(
    ("found", "version", "base", "commits"),
    [
        (log(json="0 1 2"), 2, None, [0, 1, 2]),
        (log(json="0 1 2 3 4", checkpoints="2"), 4, names.checkpoint_name(2), [3, 4]),
        (log(json="0 1 2 3 4", checkpoints="2"), 1, None, [0, 1]),
        (log(json="0", states="1 2 3"), 2, names.state_name(2), []),
        (log(json="0 1 2 3", states="1 2"), 3, names.state_name(2), [3]),
        (log(json="0 1 2 3", states="2", checkpoints="2"), 3, names.state_name(2), [3]),
        (log(json="0 5 6", checkpoints="5"), 6, names.checkpoint_name(5), [6]),
        (log(json="0 1 2", states="3 4"), 4, names.state_name(4), []),
        (log(states="7 8"), 8, names.state_name(8), []),
    ],
)
def test_a_version_is_read_from_its_nearest_base_and_the_commits_after_it(
    found: Log, version: int, base: str | None, commits: list[int]
) -> None:
    assert segment(found, version) == (base, commits)


def test_an_unreadable_checkpoint_gives_way_to_the_one_before_it_or_to_the_commits() -> None:
    found = log(json="0 1 2 3 4", checkpoints="2 4")
    last, first = names.checkpoint_name(4), names.checkpoint_name(2)

    assert segment(found, without=frozenset({last})) == (first, [3, 4])
    assert segment(found, without=frozenset({last, first})) == (None, [0, 1, 2, 3, 4])


def test_an_unreadable_newest_state_never_takes_the_table_back() -> None:
    found = log(json="0", states="1 2 3")

    with pytest.raises(LogGapError, match="Version 3 cannot be rebuilt"):
        listing.segment_of(found, None, url=URL, without=frozenset({names.state_name(3)}))


@pytest.mark.parametrize(
    ("found", "version", "expected", "next_found"),
    [
        (log(json="0 5 6", checkpoints="5"), 3, 1, 5),
        (log(json="0 5 6"), 6, 1, 5),
        (log(json="0 1 3"), 3, 2, 3),
        (log(json="0 1 2 4 5", checkpoints="2"), 5, 3, 4),
        (log(json="0", states="1 2 5"), 4, 3, 5),
    ],
)
def test_a_hole_is_named_by_its_first_version(found: Log, version: int, expected: int, next_found: int) -> None:
    with pytest.raises(LogGapError, match=r"^\[INDEXTABLES_VERSIONS_NOT_CONTIGUOUS\]") as gap:
        listing.segment_of(found, Version(version), url=URL)

    assert (gap.value.expected, gap.value.found) == (expected, next_found)


@pytest.mark.parametrize("far", [log(json=f"0 1 {2**62}"), log(json="0", states=f"1 {2**62}", checkpoints="3")])
def test_a_hole_of_any_length_takes_no_time(far: Log) -> None:
    with pytest.raises(LogGapError) as gap:
        listing.segment_of(far, Version(2**62 - 1), url=URL)

    assert gap.value.found == 2**62


def test_versions_outside_the_log_are_named() -> None:
    with pytest.raises(VersionNotFoundError, match=r"\[INDEXTABLES_VERSION_NOT_FOUND\].*holds versions 7 to 8"):
        listing.segment_of(log(states="7 8"), Version(9), url=URL)
    with pytest.raises(VersionNotFoundError, match="holds versions 7 to 8"):
        listing.segment_of(log(states="7 8"), Version(6), url=URL)


@pytest.mark.parametrize(
    ("found", "earliest", "earliest_change"),
    [
        (log(json="0 1 2"), 0, 0),
        (log(json="0", states="0 1 2 3"), 0, 0),
        (log(json="0 5 6", checkpoints="5"), 0, 5),
        (log(states="7 8 9"), 7, 8),
        (log(json="0", states="4 5"), 0, 5),
        (log(json="0", states="1 2 5 6"), 0, 6),
        (log(json="0 1 2", states="3 4"), 0, 0),
        (log(json="5 6", checkpoints="5"), 5, 5),
        (log(states="7"), 7, None),
    ],
)
def test_changes_are_told_from_the_last_hole_on(found: Log, earliest: int, earliest_change: int | None) -> None:
    assert (found.earliest, found.earliest_change) == (earliest, earliest_change)


def test_a_version_is_told_by_its_commit_and_else_by_the_states_around_it() -> None:
    found = log(json="0 1 2", states="1 2 3 4")
    by_commit = listing.change_source(found, Version(2), url=URL)
    by_states = listing.change_source(found, Version(4), url=URL)

    assert isinstance(by_commit, LogFile)
    assert by_commit.name == names.commit_name(2)
    assert isinstance(by_states, StateChange)
    assert by_states.after.name == names.state_name(4)
    assert by_states.before.base is not None
    assert by_states.before.base.name == names.state_name(3)


def test_the_first_state_is_told_from_the_empty_table_and_not_from_state_v0() -> None:
    change = listing.change_source(log(json="0", states="0 1"), Version(1), url=URL)

    assert isinstance(change, StateChange)
    assert change.before.base is None
    assert [file.name for file in change.before.commits] == [names.commit_name(0)]


def test_a_change_between_two_states_is_not_told_where_one_is_gone() -> None:
    with pytest.raises(LogGapError, match="version 3 is missing"):
        listing.change_source(log(json="0", states="1 2 4"), Version(4), url=URL)


def test_a_commit_that_follows_a_state_of_another_generation_is_refused() -> None:
    with pytest.raises(LogError, match=r"^\[INDEXTABLES_MIXED_LOG\].*version 9 is a JSON commit after version 8"):
        listing.segment_of(log(json="0 9", states="1 2 3 4 5 6 7 8"), None, url=URL)


@pytest.mark.parametrize(
    ("found", "twin"),
    [
        (log(json="0 1", states="1 2 3 4"), 1),
        (log(json="0 1 2", states="1"), 1),
        (log(json="0 9", states="1 2 8 9"), 9),
        (log(json="0 1 2 3", states="1 2 3 4 5"), 3),
        (log(json="0", states="1 2 3"), None),
        (log(json="0 1 2 3", checkpoints="2"), None),
        (log(json="0 1 2", states="3 4"), None),
    ],
)
def test_a_version_that_is_a_commit_and_a_state_is_to_be_held_against_each_other(found: Log, twin: int | None) -> None:
    segment = listing.segment_of(found, None, url=URL)

    assert (segment.twin and segment.twin.commit.version) == twin


def test_the_metadata_of_a_state_is_looked_for_in_commit_0_then_in_older_states_and_in_state_v0_last() -> None:
    found = log(json="0", states="0 1 2 3")

    assert [file.name for file in listing.metadata_sources(found, Version(3))] == [
        names.commit_name(0),
        names.state_name(2),
        names.state_name(1),
        names.state_name(0),
    ]


versions = st.sets(st.integers(0, 9))


@given(versions, versions, versions)
def test_a_segment_has_no_hole_and_ends_at_its_version(json: set[int], states: set[int], checkpoints: set[int]) -> None:
    found = log(
        json=" ".join(map(str, json)), states=" ".join(map(str, states)), checkpoints=" ".join(map(str, checkpoints))
    )
    for version in range(10):
        try:
            got = listing.segment_of(found, Version(version), url=URL)
        except (LogError, TableNotFoundError):
            continue
        covered = [got.base.version] if got.base else []
        covered += [file.version for file in got.commits]
        assert covered[-1] == version
        assert covered == list(range(covered[0], version + 1))
        assert got.base is not None or covered[0] == 0


@given(versions, versions)
def test_every_version_from_the_earliest_change_on_has_a_source(json: set[int], states: set[int]) -> None:
    found = log(json=" ".join(map(str, json)), states=" ".join(map(str, states)))
    if found.earliest_change is not None and found.newest is not None:
        for version in range(found.earliest_change, found.newest + 1):
            listing.change_source(found, Version(version), url=URL)


@given(st.text(max_size=60) | st.from_regex(r"\A[0-9]{20}\.(json|checkpoint\.[a-z0-9]+\.[0-9]{5}\.json)\Z"))
def test_any_name_is_a_log_file_or_none(name: str) -> None:
    file = listed(name)

    assert file is None or (file.name == name and 0 <= file.version < 2**63)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("manifests/manifest-1234abcd.avro", "manifests/manifest-1234abcd.avro"),
        (f"{names.state_dir(4)}/manifest-1.avro", f"{names.state_dir(4)}/manifest-1.avro"),
        ("manifest-1.avro", f"{names.state_dir(7)}/manifest-1.avro"),
        ("../../other/manifest-1.avro", None),
        ("manifests/../../x.avro", None),
        ("/etc/passwd", None),
        ("..", None),
        ("", None),
    ],
)
def test_a_manifest_path_has_three_forms_and_never_leaves_the_log(path: str, name: str | None) -> None:
    assert names.manifest_name(path, version=7) == name
