"""Tables as they should not be: each is an error of ours that names the table, what is wrong and what to do now."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import tablefeed
from support.logs import LONG_ID, Action, a_log, add, commit_path, metadata, protocol
from tablefeed import errors
from tablefeed.store import LocalStore

ROWS = pa.table({"id": [1]})


def append_a_row(path: Path) -> object:
    return tablefeed.append(path, ROWS)


EVERY_WAY_IN: list[Callable[[Path], object]] = [
    tablefeed.open_table,
    lambda path: tablefeed.appends(path).read_all(),
    lambda path: tablefeed.changes(path).read_all(),
    tablefeed.follow,
]
READ_IN = EVERY_WAY_IN[:3]
FIRST, SECOND = "00000000000000000000.json", "00000000000000000001.json"


def a_good_table(path: Path) -> Path:
    recorded = {"delta.enableChangeDataFeed": "true"}
    for row in (1, 2):
        write_deltalake(str(path), pa.table({"id": [row]}), mode="append", configuration=recorded)
    return path


# --- no table --------------------------------------------------------------------------------------------------------


def nothing(path: Path) -> None:
    path.rmdir()


def a_file(path: Path) -> None:
    path.rmdir()
    path.write_text("")


def an_empty_log(path: Path) -> None:
    (path / "_delta_log").mkdir()


def a_log_of_other_files(path: Path) -> None:
    an_empty_log(path)
    (path / "_delta_log" / "_last_checkpoint").write_text('{"version":0,"size":1}')
    (path / "_delta_log" / ".00000000000000000000.json.crc").write_text("")


@pytest.mark.parametrize(
    ("made", "way_in", "reason"),
    [
        *((nothing, way_in, "Check the path") for way_in in EVERY_WAY_IN),
        *((a_file, way_in, r"it is a file\. Give the table's folder") for way_in in [*EVERY_WAY_IN, append_a_row]),
        *((an_empty_log, way_in, "none with a commit") for way_in in EVERY_WAY_IN),
        (a_log_of_other_files, tablefeed.open_table, "none with a commit"),
    ],
)
def test_a_path_without_a_log_is_no_table_and_none_is_made_there(
    tmp_path: Path, made: Callable[[Path], None], way_in: Callable[[Path], object], reason: str
) -> None:
    path = tmp_path / "t"
    path.mkdir()
    made(path)
    there = sorted(tmp_path.rglob("*"))

    with pytest.raises(errors.TableNotFoundError, match=reason) as caught:
        way_in(path)

    assert str(caught.value).startswith("[DELTA_TABLE_NOT_FOUND] ")
    assert str(path) in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == there


def test_a_table_of_the_other_format_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "_transaction_log").mkdir()
    (tmp_path / "_transaction_log" / FIRST).write_text("{}")

    with pytest.raises(errors.LogError, match="INDEXTABLES_STATE_INCONSISTENT"):
        tablefeed.open_table(tmp_path)


# --- a log that cannot be read ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way_in", [*READ_IN, append_a_row])
@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('{"commitInfo":{}}\n{"add":{"path":"x","par', 2, "the last line is cut off"),
        (json.dumps(metadata()) + "\n" + json.dumps(metadata()) + "\n", 2, "a second time"),
    ],
)
def test_a_log_file_that_cannot_be_read_is_named_with_the_line(
    tmp_path: Path, way_in: Callable[[Path], object], text: str, line: int, reason: str
) -> None:
    (a_good_table(tmp_path) / commit_path(1)).write_text(text)

    with pytest.raises(errors.CorruptLogError, match=reason) as caught:
        way_in(tmp_path)

    assert (caught.value.log_file, caught.value.line) == (SECOND, line)
    assert str(tmp_path) in str(caught.value)
    assert not (tmp_path / commit_path(2)).exists()


@pytest.mark.parametrize("way_in", [*EVERY_WAY_IN, append_a_row])
def test_a_version_that_is_missing_between_others_is_named(tmp_path: Path, way_in: Callable[[Path], object]) -> None:
    a_good_table(tmp_path)
    write_deltalake(str(tmp_path), pa.table({"id": [3]}), mode="append")
    (tmp_path / commit_path(1)).unlink()

    with pytest.raises(errors.LogGapError, match="version 1 is missing") as caught:
        way_in(tmp_path)
    assert caught.value.error_class == "DELTA_VERSIONS_NOT_CONTIGUOUS"
    assert "Restore the missing log files" in str(caught.value)


@pytest.mark.parametrize(("said", "missing"), [(metadata(), "protocol"), (protocol(), "metadata")])
def test_a_log_that_never_says_what_the_table_is_is_damaged(said: Action, missing: str) -> None:
    with pytest.raises(errors.LogError, match=f"DELTA_STATE_RECOVER_ERROR.*holds no {missing} action") as caught:
        a_log(v0=[said, add("a")]).load()
    assert "memory:orders" in str(caught.value)


UNREADABLE = ("", "5", "{", '{"type":"struct"}', '{"type":"struct","fields":[{"name":"id"}]}')
UNKNOWN = [LONG_ID.replace('"long"', kind) for kind in ('"from the future"', '"decimal(99,1)"')]


@pytest.mark.parametrize("schema", [*UNREADABLE, *UNKNOWN])
def test_a_schema_that_cannot_be_read_is_our_error(schema: str) -> None:
    log = a_log(v0=[protocol(), metadata(schema)])

    with pytest.raises(errors.TablefeedError, match="memory:orders"):
        _ = log.load().arrow_schema


@pytest.mark.parametrize(
    ("partition_columns", "said"),
    [(["ID"], "by 'ID', which is no column"), (["day"], "by 'day', which is no column"), (["id", "id"], "twice")],
)
def test_a_table_that_is_partitioned_by_what_is_no_column_of_it_is_refused(
    tmp_path: Path, partition_columns: list[str], said: str
) -> None:
    a_log(LocalStore(str(tmp_path)), v0=[protocol(), metadata(partition_columns=partition_columns), add("a")])

    for way_in in READ_IN:
        with pytest.raises(errors.LogError, match=said):
            way_in(tmp_path)


# --- what is not supported -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("required", "features"),
    [
        (protocol(4, 8), "reader version 4"),
        (protocol(3, 7, readerFeatures=["fromTheFuture"], writerFeatures=["fromTheFuture"]), "fromTheFuture"),
        (protocol(3, 7, readerFeatures=["catalogManaged"], writerFeatures=["catalogManaged"]), "catalogManaged"),
    ],
)
def test_a_protocol_that_is_not_known_is_refused_by_name_with_the_word_to_upgrade(
    tmp_path: Path, required: dict[str, object], features: str
) -> None:
    a_log(LocalStore(str(tmp_path)), v0=[required, metadata()])

    for way_in in (*EVERY_WAY_IN, append_a_row):
        with pytest.raises(errors.UnsupportedFeatureError, match="Upgrade tablefeed") as caught:
            way_in(tmp_path)
        assert features in str(caught.value)
        assert str(caught.value).startswith("[DELTA_")


def test_a_feature_that_binds_writers_alone_refuses_writing_and_not_reading(tmp_path: Path) -> None:
    listed = protocol(1, 7, writerFeatures=["fromTheFuture"])
    a_log(LocalStore(str(tmp_path)), v0=[listed, metadata()])

    assert tablefeed.open_table(tmp_path).to_arrow().num_rows == 0
    with pytest.raises(errors.UnsupportedFeatureError, match=r"DELTA_UNSUPPORTED_FEATURES_FOR_WRITE.*fromTheFuture"):
        tablefeed.append(tmp_path, ROWS)
