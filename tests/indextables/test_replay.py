from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from support.index_log import IndexLog, add, json_log, remove, rows_by_version, state_log, states_of
from tablefeed.errors import ChangeDataError, CorruptLogError, LogError
from tablefeed.indextables import names
from tablefeed.indextables.log import replay, version_file
from tablefeed.indextables.log.version_file import Writer
from tablefeed.model.actions import AddFile, FileAction, Version

pytest.importorskip("fastavro")


def a_log(states: Mapping[int, Mapping[str, Iterable[AddFile]]], **dead: tuple[str, ...]) -> IndexLog:
    """Commit 0 and these states; `dead` are the tombstones by version, as `v2=("a",)`."""
    tombstones = {int(version[1:]): paths for version, paths in dead.items()}
    return IndexLog({**json_log({0: ()}), **states_of(states, tombstones)})


def changed(log: IndexLog, version: int) -> list[tuple[str, str, bool]]:
    """What `version` changed: add or remove, path, whether data changed."""
    commit = log.change(version)
    removed = [("-", file.path, file.data_change) for file in commit.removed]
    return removed + [("+", file.path, file.data_change) for file in commit.added]


A, B, C = {"a": [add("a", rows=2)]}, {"b": [add("b", rows=3)]}, {"c": [add("c", rows=4)]}


def test_what_a_state_has_more_was_added_and_what_it_lacks_was_removed() -> None:
    log = a_log({1: A, 2: {**A, **B}, 3: B})

    assert changed(log, 1) == [("+", "a", True)]
    assert changed(log, 2) == [("+", "b", True)]
    assert changed(log, 3) == [("-", "a", True)]


def test_a_tombstone_removes_a_file_of_a_shared_manifest() -> None:
    log = a_log({1: {"ab": [add("a"), add("b")]}, 2: {"ab": [add("a"), add("b")]}}, v2=("a",))

    assert changed(log, 2) == [("-", "a", True)]


def test_a_rewritten_state_with_the_same_files_changes_nothing() -> None:
    log = a_log({1: {**A, **B}, 2: {"ab": [add("a", rows=2, ms=99), add("b", rows=3)]}})

    assert log.change(2).files == ()
    assert log.change(2).committed_at_ms == 1002


def test_a_compaction_of_a_state_only_table_changes_no_rows() -> None:
    log = a_log({1: {**A, **B}, 2: {"ab": [add("ab", rows=5, data_change=False)]}})

    assert changed(log, 2) == [("-", "a", False), ("-", "b", False), ("+", "ab", False)]
    assert rows_by_version(log, [2]) == [(0, 0, 0)]


def test_files_added_beside_a_compaction_are_data() -> None:
    log = a_log({1: {**A, **B}, 2: {"ab": [add("ab", rows=5, data_change=False)], **C}})

    assert changed(log, 2) == [("-", "a", False), ("-", "b", False), ("+", "ab", False), ("+", "c", True)]


def test_an_overwrite_takes_rows_away() -> None:
    assert changed(a_log({1: {**A, **B}, 2: C}), 2) == [("-", "a", True), ("-", "b", True), ("+", "c", True)]


@pytest.mark.parametrize(
    "after",
    [
        {"ab": [add("ab", rows=4, data_change=False)]},
        {"ab": [add("ab", rows=None, data_change=False)]},
        {**A, **B, "ab": [add("ab", rows=5, data_change=False)]},
        {"c": [add("c", rows=3), add("d", rows=2, data_change=False)]},
    ],
    ids=["fewer rows", "unknown rows", "nothing removed", "part of the rows"],
)
def test_a_rewrite_whose_rows_do_not_balance_is_refused(after: Mapping[str, Iterable[AddFile]]) -> None:
    with pytest.raises(ChangeDataError, match=r"^\[INDEXTABLES_CHANGES_UNKNOWN\]") as refused:
        a_log({1: {**A, **B}, 2: after}).change(2)

    assert refused.value.version == 2


def test_a_removed_file_keeps_what_is_needed_to_read_its_rows() -> None:
    (gone,) = a_log({1: {**A, **B}, 2: B}).change(2).removed

    assert (gone.path, gone.size_bytes, gone.partition_values, gone.deletion_timestamp_ms) == ("a", 10, {}, 1002)


def test_an_append_to_a_state_reads_the_manifest_that_it_wrote_and_no_other() -> None:
    log = a_log({1: {**A, **B}, 2: {**A, **B, **C}})
    before, after = (log.state(log.log.states[Version(version)]) for version in (1, 2))

    assert replay.compared(before, after) == ((), (after.manifests[2],))
    kept = {name: data for name, data in log.files.items() if name not in {m.name for m in before.manifests}}
    assert changed(IndexLog(kept), 2) == [("+", "c", True)]


def test_a_path_that_comes_twice_is_refused_where_it_would_be_told_as_new() -> None:
    log = a_log({1: A, 2: {**A, "again": [add("a", rows=9)]}})

    with pytest.raises(LogError, match=r"^\[INDEXTABLES_STATE_INCONSISTENT\].*adds 1 files and removes 0"):
        log.change(2)


def test_a_table_that_went_from_commits_to_states_is_one_feed() -> None:
    commits = json_log({0: (), 1: [add("a", rows=2)], 2: [add("b", rows=3)]})
    log = IndexLog({**commits, **states_of({3: {**A, **B, **C}, 4: C})})

    assert changed(log, 3) == [("+", "c", True)]
    assert changed(log, 4) == [("-", "a", True), ("-", "b", True)]
    assert rows_by_version(log, range(5)) == [(0, 0, 0), (2, 1, 0), (3, 1, 0), (4, 1, 0), (0, 0, 2)]
    assert log.snapshot().files.keys() == {"c"}


def test_commits_after_the_last_state_of_a_native_log_are_replayed_onto_it() -> None:
    commits = json_log({0: (), 1: [add("a")], 2: [add("b"), remove("a")]}, writer=Writer.NATIVE)
    log = IndexLog({**commits, **states_of({1: A})})

    assert log.snapshot().files.keys() == {"b"}


ORPHAN = json_log({0: (), 1: [add("orphan")]}, writer=Writer.NATIVE)


@pytest.mark.parametrize(
    ("commits", "states", "said"),
    [
        (ORPHAN, {1: A, 2: {**A, **B}}, "version 1 is a JSON commit and a state.*'orphan'"),
        (json_log({0: (), 1: [add("a")], 2: [add("b")]}), {1: C}, "does not hold 'a'"),
        (json_log({0: (), 1: [add("a")], 2: [remove("a")]}), {2: A}, "still holds 'a', which the commit removes"),
        (json_log({0: (), 9: [add("lost")]}), {8: A, 9: {**A, **B}}, "version 9"),
    ],
    ids=["an orphan", "a state without its commits", "a state before its commit", "a commit that states grew past"],
)
def test_a_commit_and_a_state_of_one_version_that_disagree_are_refused(
    commits: Mapping[str, bytes], states: Mapping[int, Mapping[str, Iterable[AddFile]]], said: str
) -> None:
    with pytest.raises(LogError, match=rf"^\[INDEXTABLES_MIXED_LOG\].*{said}"):
        IndexLog({**commits, **states_of(states)}).snapshot()


def test_a_universal_table_whose_chain_of_commits_stopped_is_one_feed() -> None:
    commits = json_log({0: (), 1: [add("a", rows=2)], 2: [add("b", rows=3)]})
    log = IndexLog({**commits, **states_of({1: A, 2: {**A, **B}, 3: {**A, **B, **C}})})

    assert rows_by_version(log, range(4)) == [(0, 0, 0), (2, 1, 0), (3, 1, 0), (4, 1, 0)]
    assert log.snapshot().files.keys() == {"a", "b", "c"}


def test_an_unreadable_state_gives_way_to_the_commits_of_a_native_log() -> None:
    commits = json_log({0: (), 1: [add("a")], 2: [add("b")]}, writer=Writer.NATIVE)
    states = {**states_of({1: A, 2: {**A, **B}}), names.state_name(2): b"Obj\x01 and no more"}

    assert IndexLog({**commits, **states}).snapshot().files.keys() == {"a", "b"}


def test_an_unreadable_state_of_a_state_only_table_is_named_and_never_passed_over() -> None:
    log = a_log({1: A, 2: {**A, **B}})
    damaged = IndexLog({**log.files, names.state_name(2): b"Obj\x01 and no more"})

    with pytest.raises(CorruptLogError, match=names.state_name(2)):
        damaged.snapshot()
    assert damaged.snapshot(1).files.keys() == {"a"}


def test_the_metadata_of_a_state_is_that_of_commit_0_where_the_state_has_none() -> None:
    log = a_log({1: A})
    metadata = log.snapshot(1).facts.metadata

    assert metadata is not None
    assert metadata.table_id == "t"


def test_without_commit_0_an_older_state_tells_the_metadata() -> None:
    log = a_log({0: C, 1: A, 2: {**A, **B}})
    told = version_file.decode_commit(
        log.files[names.commit_name(0)], version=Version(0), url="u", log_file="0", modified_ms=1
    ).metadata
    zeroth = log.log.zeroth
    assert zeroth is not None
    files = {**log.files, **state_log({0: replace(log.state(zeroth), metadata=told)})}
    del files[names.commit_name(0)]

    assert IndexLog(files).snapshot(2).facts.metadata == told


Step = tuple[str, int, int]
"""An operation, a number to choose by, rows."""
steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "drop", "merge", "overwrite", "nothing"]), st.integers(0, 99), st.integers(1, 9)
    ),
    max_size=8,
)


def _histories(script: list[Step]) -> tuple[dict[int, list[FileAction]], dict[int, list[AddFile]]]:
    """The same history as the files of each commit, and as what is live after it."""
    live: dict[str, AddFile] = {}
    commits: dict[int, list[FileAction]] = {0: []}
    states: dict[int, list[AddFile]] = {}
    for version, step in enumerate(script, 1):
        commits[version] = _actions(step, live, version)
        for file in commits[version]:
            if isinstance(file, AddFile):
                live[file.path] = file
            else:
                del live[file.path]
        states[version] = [live[path] for path in sorted(live)]
    return commits, states


def _actions(step: Step, live: Mapping[str, AddFile], version: int) -> list[FileAction]:
    (operation, choice, rows), old = step, sorted(live)
    if operation == "append":
        return [add(f"v{version}-{n}", rows=rows + n) for n in range(choice % 3 + 1)]
    if operation == "drop" and old:
        return [remove(old[choice % len(old)])]
    if operation == "merge" and len(old) > 1:
        merged = old[: 2 + choice % (len(old) - 1)]
        splits = [live[path].split for path in merged]
        total = sum((split.num_records or 0) if split else 0 for split in splits)
        removes = [remove(path, data_change=False) for path in merged]
        return [*removes, add(f"v{version}-m", rows=total, data_change=False)]
    if operation == "overwrite":
        return [*(remove(path) for path in old), add(f"v{version}-o", rows=rows)]
    return []


@given(steps, st.booleans())
def test_one_history_is_one_feed_by_commits_and_by_states(script: list[Step], one_manifest: bool) -> None:  # noqa: FBT001
    commits, states = _histories(script)
    by_commits = IndexLog(json_log(commits))
    manifests = {
        version: {f"v{version}": live} if one_manifest else {file.path: [file] for file in live}
        for version, live in states.items()
    }
    by_states = IndexLog({**json_log({0: ()}), **states_of(manifests)})

    for version in range(len(script) + 1):
        assert sorted(changed(by_states, version)) == sorted(changed(by_commits, version))
        assert by_states.snapshot(version).files == by_commits.snapshot(version).files
