from __future__ import annotations

from collections.abc import Iterable

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tablefeed.errors import LogError, TableNotFoundError
from tablefeed.indextables import names
from tablefeed.indextables.log import listing
from tablefeed.indextables.log.listing import Log
from tablefeed.indextables.log.retention import Retention, expired, unnamed
from tablefeed.model.actions import Version

DAY = 24 * 3_600_000
NOW = 100 * DAY
URL = "mem://events"


def a_log(*, commits: Iterable[int] = (), states: Iterable[int] = (), checkpoints: Iterable[int] = ()) -> Log:
    """A log of versions a day apart, of which 99 was written just now."""
    named = [(names.commit_name(v), v) for v in commits]
    named += [(names.state_name(v), v) for v in states]
    named += [(names.checkpoint_name(v), v) for v in checkpoints]
    files = [names.parse_name(name, size_bytes=1, modified_ms=(version + 1) * DAY) for name, version in named]
    return listing.read_listing(file for file in files if file is not None)


def gone(log: Log, *, versions: int = 2, unreadable: Iterable[str] = ()) -> tuple[list[int], list[int]]:
    """The versions whose commits or checkpoints go, and those whose states do."""
    found = expired(log, Retention(versions=versions), unreadable=tuple(unreadable), now_ms=NOW)
    return [file.version for file in found.commits], [file.version for file in found.states]


def test_states_go_after_a_week_and_commits_after_a_month() -> None:
    log = a_log(commits=range(100), states=range(1, 100))

    assert gone(log) == (list(range(1, 70)), list(range(1, 70)))


def test_a_state_that_a_kept_commit_is_read_from_stays() -> None:
    log = a_log(commits=[0, *range(60, 100)], states=range(60, 100))

    assert gone(log) == (list(range(60, 70)), list(range(60, 70)))


def test_states_beside_commits_that_go_back_to_the_first_are_the_base_of_none() -> None:
    assert gone(a_log(commits=range(100), states=[90, 91, 98, 99])) == ([], [90, 91])


def test_a_log_of_states_keeps_those_of_a_week_and_its_first_commit() -> None:
    assert gone(a_log(commits=[0], states=range(1, 100))) == ([], list(range(1, 93)))


def test_the_newest_versions_are_kept_however_old_they_are() -> None:
    assert gone(a_log(commits=[0], states=range(1, 20))) == ([], list(range(1, 18)))
    assert gone(a_log(commits=[0], states=range(1, 20)), versions=5) == ([], list(range(1, 15)))
    assert gone(a_log(commits=range(20), checkpoints=[10, 18])) == ([*range(1, 10), 10, 10, *range(11, 18)], [])


def test_commits_without_a_checkpoint_all_stay() -> None:
    assert gone(a_log(commits=range(20))) == ([], [])


def test_a_checkpoint_that_cannot_be_read_is_no_base() -> None:
    log = a_log(commits=range(20), checkpoints=[5, 15])

    assert gone(log, unreadable=[names.checkpoint_name(15)]) == ([1, 2, 3, 4], [])


def test_no_number_of_versions_below_one_can_be_kept() -> None:
    with pytest.raises(ValueError, match="the newest version is always kept"):
        Retention(versions=0)


def test_manifests_go_where_no_state_names_them_and_no_writer_can_be_about_to() -> None:
    manifests = [("manifests/a", 5), ("manifests/b", 5), ("manifests/c", 6)]

    assert unnamed(manifests, {"manifests/a"}, old_ms=5) == ("manifests/b",)


VERSIONS = st.sets(st.integers(1, 99), max_size=12)


@given(st.booleans(), VERSIONS, VERSIONS, VERSIONS, st.integers(1, 4))
def test_whatever_goes_the_newest_versions_and_every_kept_commit_can_be_read_as_before(
    has_first: bool,  # noqa: FBT001
    commits: set[int],
    states: set[int],
    checkpoints: set[int],
    versions: int,
) -> None:
    log = a_log(commits={*commits, *([0] if has_first else [])}, states=states, checkpoints=checkpoints)
    found = expired(log, Retention(versions=versions), now_ms=NOW)
    went = frozenset(file.name for file in (*found.commits, *found.states))
    files = [*log.commits.values(), *log.states.values(), *log.checkpoints.values()]
    left = listing.read_listing(file for file in files if file.name not in went)

    assert left.newest == log.newest
    newest = log.newest or 0
    for version in {*left.commits, *range(newest - versions + 1, newest + 1)}:
        assert _can_be_read(left, version) == _can_be_read(log, version)


def _can_be_read(log: Log, version: int) -> bool:
    try:
        listing.segment_of(log, Version(version), url=URL)
    except (LogError, TableNotFoundError):
        return False
    return True
