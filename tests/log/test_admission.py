"""What a stream of appends takes of each commit, and which commits it will not pass by silently."""

from __future__ import annotations

from functools import partial

import pytest

from support.actions import add, commit, remove
from tablefeed.errors import TABLE, ChangeRefusedError
from tablefeed.log.admission import ChangePolicy, delivered_files, first_said
from tablefeed.model.actions import CdcFile, Commit

STRICT = ChangePolicy()
DELETES = ChangePolicy(ignore_deletes=True)
CHANGES = ChangePolicy(ignore_changes=True)
SKIP = ChangePolicy(skip_change_commits=True)


v7 = partial(commit, 7)
APPEND = v7(add("b"), add("a"))
DELETE = v7(remove("a"), remove("b"))
UPDATE = v7(remove("a"), add("a2"), add("new"))
OPTIMIZE = v7(remove("a", data_change=False), remove("b", data_change=False), add("ab", data_change=False))


def paths(commit: Commit, policy: ChangePolicy) -> list[str]:
    return [f.path for f in delivered_files(commit, policy)]


def refusal(commit: Commit, policy: ChangePolicy) -> ChangeRefusedError:
    with pytest.raises(ChangeRefusedError) as caught:
        delivered_files(commit, policy)
    return caught.value


def test_the_files_of_an_append_are_delivered_in_the_order_of_the_log() -> None:
    assert paths(APPEND, STRICT) == ["b", "a"]


def test_a_commit_that_only_moves_rows_delivers_nothing_and_is_no_change() -> None:
    assert paths(OPTIMIZE, STRICT) == []


def test_a_file_that_a_commit_says_again_is_delivered_the_first_time_and_counted_each_time() -> None:
    files = delivered_files(v7(add("a"), add("b"), add("a"), add("c")), STRICT)

    assert [(index, file.path) for index, file in first_said(files)] == [(0, "a"), (1, "b"), (3, "c")]


def test_an_index_counts_the_files_that_change_data_and_no_others() -> None:
    mixed = v7(add("moved", data_change=False), add("first"), add("moved2", data_change=False), add("second"))

    assert paths(mixed, STRICT) == ["first", "second"]


def test_files_of_row_changes_are_no_appended_rows() -> None:
    cdc = CdcFile(path="_change_data/c", log_path="_change_data/c", partition_values={}, size_bytes=1)

    assert paths(v7(add("a"), cdc), STRICT) == ["a"]


def test_a_commit_that_deletes_is_refused_unless_deletes_are_let_through() -> None:
    assert refusal(DELETE, STRICT).error_class == "DELTA_SOURCE_IGNORE_DELETE"
    assert [paths(DELETE, policy) for policy in (DELETES, CHANGES, SKIP)] == [[], [], []]


def test_a_commit_that_rewrites_is_refused_unless_changes_are_let_through() -> None:
    assert refusal(UPDATE, STRICT).error_class == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
    assert refusal(UPDATE, DELETES).error_class == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"


def test_ignore_changes_delivers_rewritten_files_whole() -> None:
    assert paths(UPDATE, CHANGES) == ["a2", "new"]


def test_skip_change_commits_delivers_nothing_of_a_commit_that_rewrites_whatever_else_is_set() -> None:
    assert paths(UPDATE, SKIP) == []
    assert paths(UPDATE, ChangePolicy(ignore_deletes=True, ignore_changes=True, skip_change_commits=True)) == []


@pytest.mark.parametrize("policy", [DELETES, CHANGES, SKIP])
def test_no_policy_touches_an_append(policy: ChangePolicy) -> None:
    assert paths(APPEND, policy) == ["b", "a"]


def test_a_delete_by_deletion_vector_removes_and_adds_so_it_is_a_change_and_not_a_delete() -> None:
    by_vector = v7(remove("a"), add("a"))

    assert refusal(by_vector, DELETES).error_class == "DELTA_SOURCE_TABLE_IGNORE_CHANGES"


def test_a_delete_beside_files_that_only_move_rows_is_a_delete_and_not_a_change() -> None:
    purge = v7(remove("a"), add("b", data_change=False))

    assert refusal(purge, STRICT).error_class == "DELTA_SOURCE_IGNORE_DELETE"
    assert paths(purge, DELETES) == []


def test_a_refusal_names_the_version_the_table_what_was_done_and_the_options_that_pass_it() -> None:
    info = {"operation": "MERGE", "operationParameters": {"predicate": "id = 1"}}
    merge = refusal(v7(remove("a"), add("b"), info=info), STRICT)
    delete = refusal(DELETE, STRICT)

    assert (merge.version, merge.url) == (7, TABLE)
    for said in ("Version 7", TABLE, "MERGE ({'predicate': 'id = 1'})", "skipChangeCommits", "ignoreChanges"):
        assert said in merge.message
    for said in ("Version 7", TABLE, "example a)", "skipChangeCommits", "ignoreDeletes"):
        assert said in delete.message


def test_a_change_without_provenance_is_shown_by_a_file_that_it_removed() -> None:
    assert "rows: a." in refusal(UPDATE, STRICT).message
    assert "rows: a." in refusal(v7(remove("a"), add("b"), info={"timestamp": 1}), STRICT).message
