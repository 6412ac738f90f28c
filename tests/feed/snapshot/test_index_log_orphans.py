"""JSON commits beside states that know nothing of them: which are certain to be nobody's, and which are refused."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from support.index_log import METADATA, IndexLog, add, json_log, log_in, remove, state_log, states_of
from support.logs import live_paths
from tablefeed.errors import LogError
from tablefeed.feed.snapshot.index_log import IndexTablesLog
from tablefeed.indextables import names
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import AddFile, FileAction, Version

pytest.importorskip("fastavro")

A, B, C = {"aaaaaaaa": [add("a")]}, {"bbbbbbbb": [add("b")]}, {"cccccccc": [add("c")]}
STATES = {1: A, 2: {**A, **B}, 3: {**A, **B, **C}}
"""Made at the times 1001, 1002 and 1003."""
LATER = 5_000


def orphan(number: int = 1, *, ms: int = LATER) -> AddFile:
    return add(f"orphan-{number}", ms=ms)


def a_log(*parts: Mapping[str, bytes]) -> IndexTablesLog:
    return log_in({name: data for part in parts for name, data in part.items()})[0]


def made_by(writer: Writer) -> dict[str, bytes]:
    return json_log({0: ()}, writer=writer)


def native(versions: Mapping[int, Iterable[FileAction]]) -> dict[str, bytes]:
    return json_log(versions, writer=Writer.NATIVE)


def checkpointed(version: int) -> dict[str, bytes]:
    """The states, that of `version` with metadata, as CHECKPOINT writes it."""
    log = IndexLog(STATES_AS_BYTES)
    state = log.state(log.log.states[Version(version)])
    return {**STATES_AS_BYTES, **state_log({version: replace(state, metadata=METADATA)})}


SCALA = made_by(Writer.SCALA)
STATES_AS_BYTES = states_of(STATES)
CHECKPOINTED = checkpointed(3)


def added(log: IndexTablesLog) -> dict[int, list[str]]:
    """The paths that each version adds."""
    found = {version: log.commit(Version(version)) for version in range(1, 4)}
    return {version: [file.path for file in commit.added] for version, commit in found.items() if commit is not None}


def test_commits_of_a_native_writer_behind_the_states_of_a_table_are_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = a_log(SCALA, native({1: [orphan(1)], 2: [orphan(2)]}), STATES_AS_BYTES)

    with caplog.at_level(logging.WARNING):
        assert live_paths(log) == ["a", "b", "c"]
        assert live_paths(log, 1) == ["a"]
        assert added(log) == {1: ["a"], 2: ["b"], 3: ["c"]}
    assert [record.getMessage().partition(" files=")[0] for record in caplog.records] == [
        f"passed over orphan commit table=memory:t file={names.commit_name(version)}" for version in (2, 1)
    ]


def test_the_versions_of_a_log_with_orphans_are_those_of_its_states() -> None:
    log = a_log(SCALA, native({1: [orphan()]}), STATES_AS_BYTES)

    assert [file.version for file in log.listing() if file.kind == "commit"] == [0, 1, 2, 3]
    assert log.load().version == 3


@pytest.mark.parametrize(
    ("table", "commits"),
    [
        (made_by(Writer.NATIVE), native({1: [orphan()]})),
        ({}, native({1: [orphan()]})),
        (SCALA, json_log({1: [orphan()]})),
        (SCALA, native({1: [orphan(ms=1001)]})),
        (SCALA, native({1: [orphan(ms=1)]})),
        (SCALA, native({1: [remove("a")]})),
        (SCALA, native({1: [orphan(), add("a", ms=LATER)]})),
        (SCALA, native({1: [orphan(), remove("b")]})),
    ],
    ids=[
        "a table that a native writer made",
        "a table whose maker is not known",
        "a commit that Scala reads",
        "a commit as old as the state",
        "a commit older than the state",
        "a commit that only removes",
        "a commit of which the state holds a part",
        "a commit that removes what there was not yet",
    ],
)
def test_what_someone_may_have_seen_is_refused(table: dict[str, bytes], commits: dict[str, bytes]) -> None:
    log = a_log(table, commits, STATES_AS_BYTES if table else CHECKPOINTED)

    with pytest.raises(LogError, match=r"^\[INDEXTABLES_MIXED_LOG\].*version 1 is a JSON commit and a state"):
        log.load()
    with pytest.raises(LogError, match=r"^\[INDEXTABLES_MIXED_LOG\]"):
        log.commit(Version(1))


def test_beside_a_state_that_may_be_a_native_one_a_commit_is_refused() -> None:
    commits = native({3: [orphan()]})

    assert live_paths(a_log(SCALA, commits, STATES_AS_BYTES)) == ["a", "b", "c"]
    with pytest.raises(LogError, match=r"^\[INDEXTABLES_MIXED_LOG\]"):
        a_log(SCALA, commits, CHECKPOINTED).load()


def test_a_commit_behind_the_newest_state_is_refused_whatever_was_passed_over() -> None:
    commits = native({1: [orphan(1)], 2: [orphan(2)], 3: [orphan(3)], 4: [orphan(4)]})
    log = a_log(SCALA, commits, STATES_AS_BYTES)

    with pytest.raises(LogError, match=r"^\[INDEXTABLES_MIXED_LOG\].*version 4 is a JSON commit after version 3"):
        log.load()
    assert live_paths(log, 3) == ["a", "b", "c"]


def test_where_a_native_writer_went_on_from_the_states_its_lost_commits_are_told_by_the_states() -> None:
    # It counted up to the newest state, and from there on its own state holds what it committed.
    commits = native({1: [orphan(1)], 2: [orphan(2)], 3: [orphan(3)], 4: [add("d", ms=LATER)]})
    log = a_log(SCALA, commits, states_of({**STATES, 4: {**STATES[3], "d" * 16: [add("d", ms=LATER)]}}))

    assert live_paths(log) == ["a", "b", "c", "d"]
    assert added(log) == {1: ["a"], 2: ["b"], 3: ["c"]}
    last = log.commit(Version(4))
    assert last is not None
    assert [file.path for file in last.added] == ["d"]


def test_an_orphan_is_no_step_between_states_of_which_one_is_gone() -> None:
    files = {name: data for name, data in STATES_AS_BYTES.items() if name != names.state_name(2)}
    log = a_log(SCALA, native({1: [orphan(1)], 2: [orphan(2)]}), files)

    assert live_paths(log) == ["a", "b", "c"]
    with pytest.raises(LogError):
        log.commit(Version(3))


def test_a_commit_that_its_state_holds_is_told_by_itself() -> None:
    log = a_log(
        made_by(Writer.NATIVE),
        native({1: [add("a")], 2: [add("b")], 3: [add("c"), remove("a")]}),
        states_of({1: A, 2: {**A, **B}, 3: {**B, **C}}),
    )

    assert added(log) == {1: ["a"], 2: ["b"], 3: ["c"]}
    assert live_paths(log) == ["b", "c"]
