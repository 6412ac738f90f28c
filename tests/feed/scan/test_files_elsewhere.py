"""What a log names outside its table is not opened without leave, and is shown all the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablefeed
from support.logs import Action, add, info, metadata, protocol
from support.recorded import cdc, log, recorded
from tablefeed.errors import DataFileError, IllegalOptionError, LogError
from tablefeed.feed.scan.snapshot_tasks import snapshot_tasks
from tablefeed.feed.scan.task import read_task

ALLOWED = {"allow_absolute_paths": "true"}
FORBIDDEN = {"allow_absolute_paths": "false"}
WAYS_OUT = ["../secret", "%2E%2E/secret", "x/../../secret", "{root}/t/../secret"]
CLONES_WAYS = ["{root}/secret", "file:{root}/secret", "file://{root}/secret"]
"""As a shallow clone names the files of its source."""


def a_table(root: Path, *actions: Action) -> Path:
    """A table at `root`/t, whose version 1 has these actions, and two files: its own `own` and `secret` beside it."""
    table = log(root / "t", v0=[protocol(), metadata()], v1=actions)
    (table / "x").mkdir()
    pq.write_table(pa.table({"id": [1]}), table / "own")
    pq.write_table(pa.table({"id": [9]}), root / "secret")
    return table


@pytest.mark.parametrize("way", WAYS_OUT)
def test_a_data_file_outside_the_table_is_refused_when_rows_are_read_and_shown_when_they_are_not(
    tmp_path: Path, way: str
) -> None:
    path = way.format(root=tmp_path)
    table = a_table(tmp_path, add(path, size=1), info(operation="WRITE"))
    opened = tablefeed.open_table(table)

    assert sum(batch.num_rows for batch in opened.files()) == 1
    assert [commit.fields.get("operation") for commit in opened.history()] == ["WRITE", None]
    for rows in (opened.to_arrow, tablefeed.appends(table, start_version=1).read_all):
        with pytest.raises(LogError, match="outside the table; it was not opened"):
            rows()


@pytest.mark.parametrize("way", CLONES_WAYS)
def test_a_shallow_clone_is_read_unless_the_caller_forbids_it(tmp_path: Path, way: str) -> None:
    table = a_table(tmp_path, *(add(path, size=1) for path in ("own", way.format(root=tmp_path))))

    assert sorted(tablefeed.open_table(table).to_arrow()["id"].to_pylist()) == [1, 9]
    with pytest.raises(LogError, match="outside the table; it was not opened"):
        tablefeed.open_table(table, storage_options=FORBIDDEN).to_arrow()


def test_a_file_of_another_scheme_is_refused(tmp_path: Path) -> None:
    table = a_table(tmp_path, add("s3://bucket/secret", size=1))

    with pytest.raises(LogError, match="outside the table; it was not opened"):
        tablefeed.open_table(table).to_arrow()


@pytest.mark.parametrize("way", WAYS_OUT)
def test_it_is_read_where_the_caller_allows_it(tmp_path: Path, way: str) -> None:
    table = a_table(tmp_path, *(add(path, size=1) for path in ("own", way.format(root=tmp_path))))

    assert sorted(tablefeed.open_table(table, storage_options=ALLOWED).to_arrow()["id"].to_pylist()) == [1, 9]
    assert tablefeed.appends(table, start_version=1, storage_options=ALLOWED).read_all().num_rows == 2


def test_an_absolute_path_below_the_root_needs_no_leave(tmp_path: Path) -> None:
    table = a_table(tmp_path, add(f"file://{tmp_path}/t/own", size=1))

    assert tablefeed.open_table(table, storage_options=FORBIDDEN).to_arrow()["id"].to_pylist() == [1]


def test_leave_goes_with_a_task_to_where_it_is_read(tmp_path: Path) -> None:
    table = a_table(tmp_path, add("../secret", size=1))

    for options, refused in (({}, True), (ALLOWED, False)):
        (task,) = (t for t in snapshot_tasks(str(table), version=1, storage_options=options) if t.files)
        rows = read_task(task, pa.schema([("id", pa.int64())]))
        if refused:
            with pytest.raises(LogError, match="outside the table"):
                list(rows)
        else:
            assert [batch["id"].to_pylist() for batch in rows] == [[9]]


def test_a_recorded_change_file_outside_the_table_is_refused(tmp_path: Path) -> None:
    table = a_table(tmp_path, recorded(), cdc("../secret"))

    with pytest.raises(LogError, match="outside the table; it was not opened"):
        tablefeed.changes(table, start_version=1).read_all()


@pytest.mark.parametrize("kind", ["p", "u"])
def test_a_deletion_vector_outside_the_table_is_refused(tmp_path: Path, kind: str) -> None:
    place = {"p": f"file://{tmp_path}/t/../secret", "u": "../" + "0" * 20}[kind]
    vector = {"storageType": kind, "pathOrInlineDv": place, "offset": 0, "sizeInBytes": 4, "cardinality": 1}
    features = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"])
    table = a_table(tmp_path, features, add("own", size=1, deletionVector=vector))

    with pytest.raises(LogError, match="outside the table; it was not opened"):
        tablefeed.open_table(table).to_arrow()
    with pytest.raises(DataFileError):  # it was opened, and is none
        tablefeed.open_table(table, storage_options=ALLOWED).to_arrow()


def test_a_deletion_vector_that_is_gone_has_another_error_class_than_a_damaged_one(tmp_path: Path) -> None:
    place = f"file://{tmp_path}/t/vector"
    vector = {"storageType": "p", "pathOrInlineDv": place, "offset": 0, "sizeInBytes": 4, "cardinality": 1}
    features = protocol(3, 7, readerFeatures=["deletionVectors"], writerFeatures=["deletionVectors"])
    table = a_table(tmp_path, features, add("own", size=1, deletionVector=vector))

    with pytest.raises(DataFileError, match=r"^\[DELTA_FILE_NOT_FOUND\]"):
        tablefeed.open_table(table).to_arrow()
    (table / "vector").write_bytes(b"none")
    with pytest.raises(DataFileError, match=r"^\[DELTA_DELETION_VECTOR_INVALID\]"):
        tablefeed.open_table(table).to_arrow()


@pytest.mark.parametrize("value", ["yes", "", "1"])
def test_leave_that_is_neither_true_nor_false_is_refused_before_anything_is_read(tmp_path: Path, value: str) -> None:
    with pytest.raises(IllegalOptionError, match="must be 'true' or 'false'"):
        tablefeed.open_table(tmp_path, storage_options={"allow_absolute_paths": value})


def test_the_store_is_not_told_of_the_leave(tmp_path: Path) -> None:
    table = a_table(tmp_path, add("own", size=1))
    url = f"local://{table}"  # a file system of fsspec's that would refuse an option that it does not know

    assert tablefeed.open_table(url, storage_options=ALLOWED).to_arrow()["id"].to_pylist() == [1]
