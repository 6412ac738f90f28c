"""What one commit changed, as its actions tell it: the rows of the change data feed before any file is opened."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from support import actions
from tablefeed.errors import TABLE, ChangeDataError
from tablefeed.log.changes import ChangedFile, ChangeType, changed_files, implied_changes
from tablefeed.model.actions import AddFile, CdcFile, DeletionVector, FileAction, RemoveFile

INSERT, DELETE = ChangeType.INSERT, ChangeType.DELETE
NO_ROWS = {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": "0"}


def vector(name: str) -> DeletionVector:
    return DeletionVector(storage_type="u", path_or_inline=name, offset=1, size_bytes=34, cardinality=2)


D1, D2 = vector("one"), vector("two")


def add(path: str, dv: DeletionVector | None = None, **more: Any) -> AddFile:
    return actions.add(path, partition_values={"day": "1"}, deletion_vector=dv, **more)


def remove(path: str, dv: DeletionVector | None = None, **more: Any) -> RemoveFile:
    return actions.remove(path, deletion_vector=dv, **more)


def cdc(path: str) -> CdcFile:
    return CdcFile(path=path, log_path=path, partition_values={"day": "1"}, size_bytes=5)


v7 = partial(actions.commit, 7)


Told = tuple[int, str, ChangeType | None, DeletionVector | None, DeletionVector | None]


def told(changes: tuple[ChangedFile, ...]) -> list[Told]:
    """Index, path, change, and the rows: without those of the first vector, and only those of the second."""
    return [(c.index, c.path, c.change_type, c.deletion_vector, c.only_in) for c in changes]


def changes(*files: FileAction, info: Mapping[str, object] | None = None) -> list[Told]:
    return told(changed_files(v7(*files, info=info)))


def test_added_files_are_inserted_and_removed_ones_deleted_in_the_order_of_the_log() -> None:
    assert changes(add("b"), remove("c"), add("a")) == [
        (0, "b", INSERT, None, None),
        (1, "c", DELETE, None, None),
        (2, "a", INSERT, None, None),
    ]


def test_where_a_commit_has_files_of_changes_they_alone_count() -> None:
    assert changes(remove("a"), cdc("_change_data/c2"), add("b"), cdc("_change_data/c1")) == [
        (0, "_change_data/c2", None, None, None),
        (1, "_change_data/c1", None, None, None),
    ]


MOVED = [remove("a", data_change=False), add("b", data_change=False)]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        # What only moves rows is no change and has no number.
        (MOVED, []),
        ([*MOVED, add("new")], [(0, "new", INSERT, None, None)]),
        # A removed file's deleted rows are not deleted again, and an added file's are not inserted.
        ([remove("a", D1)], [(0, "a", DELETE, D1, None)]),
        ([add("a", D1)], [(0, "a", INSERT, D1, None)]),
        # A first deletion vector deletes its rows and one that goes inserts them again; of two the difference counts.
        ([remove("a"), add("a", D1)], [(0, "a", DELETE, None, D1)]),
        ([remove("a", D1), add("a")], [(1, "a", INSERT, None, D1)]),
        ([remove("a", D1), add("a", D2)], [(0, "a", DELETE, D1, D2), (1, "a", INSERT, D2, D1)]),
        ([add("a", D2), remove("a", D1)], [(0, "a", INSERT, D2, D1), (1, "a", DELETE, D1, D2)]),
        # An action without a changed row has its number all the same.
        ([remove("a"), add("a", D1), add("new")], [(0, "a", DELETE, None, D1), (2, "new", INSERT, None, None)]),
        # An action that comes twice gives its rows once and keeps both numbers.
        (
            [remove("a"), remove("a"), add("b", D1), add("b", D1)],
            [(0, "a", DELETE, None, None), (2, "b", INSERT, D1, None)],
        ),
        # Beside a file of changes neither an add of the same file nor a contradiction matters.
        ([add("a"), cdc("a")], [(0, "a", None, None, None)]),
        ([add("a", D1), add("a", D2), cdc("c")], [(0, "c", None, None, None)]),
    ],
)
def test_what_changed_follows_from_the_vectors_and_the_order_of_the_actions(
    files: list[FileAction], expected: list[Told]
) -> None:
    assert changes(*files) == expected


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([add("a", D1), add("a", D2)], "the file a is listed twice, with different deletion vectors"),
        ([remove("a"), remove("a", D2)], "the file a is listed twice, with different deletion vectors"),
        ([remove("a"), add("a")], "is added and removed with the same deletion vector"),
        ([add("a", D1), remove("a", D1)], "is added and removed with the same deletion vector"),
        ([remove("a", data_change=False), add("a", D1)], "but only one of the two changes data"),
        ([remove("a", D1), add("a", data_change=False)], "but only one of the two changes data"),
    ],
)
def test_a_commit_that_contradicts_itself_about_a_file_is_refused(files: list[FileAction], reason: str) -> None:
    with pytest.raises(ChangeDataError, match=reason) as caught:
        changes(*files)
    assert (caught.value.version, caught.value.url) == (7, TABLE)


def test_a_merge_that_counted_no_row_changed_none_but_what_it_recorded() -> None:
    info = {"operation": "MERGE", "operationMetrics": NO_ROWS}

    assert changes(remove("a"), add("b"), info=info) == []
    assert changes(cdc("c"), info=info) == [(0, "c", None, None, None)]


@pytest.mark.parametrize(
    "info",
    [
        {"operation": "MERGE", "operationMetrics": {**NO_ROWS, "numTargetRowsDeleted": "1"}},
        {"operation": "MERGE", "operationMetrics": {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0"}},
        {"operation": "MERGE"},
        {"operation": "UPDATE", "operationMetrics": NO_ROWS},
        {"operation": "MERGE", "operationMetrics": "0"},
    ],
)
def test_a_merge_that_did_not_count_all_its_rows_as_none_is_told_by_its_files(info: Mapping[str, object]) -> None:
    assert len(changes(remove("a"), add("b"), info=info)) == 2


def test_what_files_imply_does_not_look_at_what_was_recorded() -> None:
    merge = v7(remove("a"), cdc("c"), add("b"), info={"operation": "MERGE", "operationMetrics": NO_ROWS})

    assert told(implied_changes(merge)) == [(0, "a", DELETE, None, None), (1, "b", INSERT, None, None)]


def test_partition_values_are_the_actions_own_and_absent_where_a_remove_leaves_them_out() -> None:
    found = changed_files(v7(remove("a"), remove("b", partition_values={"day": None}), add("c")))

    assert [change.partition_values for change in found] == [None, {"day": None}, {"day": "1"}]
    assert [change.size_bytes for change in found] == [0, 0, 10]


def test_a_remove_without_partition_values_has_those_of_the_add_of_its_file() -> None:
    (change,) = changed_files(v7(remove("a"), add("a", D1)))

    assert change.partition_values == {"day": "1"}
