"""Adds that are read many at once say what they say one by one, or are left to be read one by one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.commit_columns import decode_commit_columns
from tablefeed.delta import adds, columns
from tablefeed.delta.adds import read_adds, runs
from tablefeed.delta.codec import decode_commit
from tablefeed.delta.columns import FileRows, decode_commit_into, to_add_files
from tablefeed.errors import CorruptLogError
from tablefeed.model.actions import AddFile, Version

SCHEMA = b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'


@pytest.fixture(autouse=True)
def runs_of_two_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adds, "_FEWEST_LINES", 2)


def an_add(path: object = "a", **more: object) -> bytes:
    values = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 2, "dataChange": True, **more}
    return json.dumps({"add": values}, separators=(",", ":")).encode() + b"\n"


def in_columns(data: bytes) -> list[AddFile]:
    batches, _ = decode_commit_columns(data, version=Version(7), log_file="7.json", modified_ms=0)
    return [add for batch in batches for add in to_add_files(batch)]


def one_by_one(data: bytes) -> list[AddFile]:
    return list(decode_commit(data, version=Version(7), log_file="7.json", modified_ms=None).added)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"partitionValues": {"p": "1", "q": "2026-01-01 00:00:00"}},
        {"stats": '{"numRecords":1}', "baseRowId": 5, "defaultRowCommitVersion": 0},
        {"path": "p=%2541/a%20b", "tags": None, "deletionVector": None},
        {"path": 'é\u2028"\\\x01\U0001f600', "partitionValues": {"é": "\U0001f600"}},
    ],
)
def test_adds_that_look_alike_are_read_at_once_and_say_the_same(more: dict[str, Any]) -> None:
    lines = [an_add(**more), an_add("other", **{k: v for k, v in more.items() if k != "path"})]

    assert read_adds(lines) is not None
    assert in_columns(b"".join(lines)) == one_by_one(b"".join(lines))


@pytest.mark.parametrize(
    "more",
    [
        {"partitionValues": {"p": None}},  # or left out: in columns of members it would be the same
        {"partitionValues": {"q": "1"}},
        {"tags": {"k": "v"}},
        {"deletionVector": {"storageType": "i", "pathOrInlineDv": "a", "sizeInBytes": 1, "cardinality": 1}},
        {"unheard": 1},
    ],
)
def test_what_does_not_look_alike_is_read_one_by_one_and_says_the_same(more: dict[str, Any]) -> None:
    lines = [an_add(partitionValues={"p": "1"}), an_add(**{"path": "b", "partitionValues": {"p": "2"}, **more})]

    assert read_adds(lines) is None
    assert in_columns(b"".join(lines)) == one_by_one(b"".join(lines))


@pytest.mark.parametrize(
    "bad",
    [
        b'{"add":{"path":"x"}}\n',
        an_add(size=1.0),
        an_add(size=2**63),
        an_add(size=2**64),
        an_add(size="1"),
        an_add(size=True),
        an_add(size=None),
        an_add(modificationTime=None),
        an_add(dataChange=1),
        an_add(dataChange=None),
        an_add(path=1),
        an_add(path=None),
        an_add(stats={}),
        an_add(baseRowId=1.0),
        an_add(partitionValues={"p": 1}),
        an_add(partitionValues=[]),
        an_add(partitionValues=None),
        an_add(deletionVector={"storageType": "u"}),
        an_add(deletionVector=[]),
        b'{"remove":{"path":"r"}}\n',
        b'{"metaData":{}}\n',
        b"{\n",
        b'{"add":{},"txn":{"appId":"a","version":1}}\n',
        an_add("\xff").replace(b"\\u00ff", b"\xff"),
        an_add()[:-3] + b"\n",
        an_add()[:-1] + b" x\n",
    ],
)
def test_a_bad_line_among_them_is_told_as_when_it_is_read_alone(bad: bytes) -> None:
    data = SCHEMA + an_add() + an_add("b") + bad + an_add("c")

    told = []
    for read in (in_columns, one_by_one):
        with pytest.raises(CorruptLogError) as caught:
            read(data)
        told.append((caught.value.line, str(caught.value)))
    assert told[0] == told[1]
    assert told[0][0] == 4


def test_lines_that_hold_two_adds_or_half_of_one_are_not_taken_for_whole_ones() -> None:
    two, half = an_add()[:-1] + an_add("b"), an_add().replace(b',"size"', b',\n"size"')

    for lines in ([an_add("c"), two], [an_add("c"), *half.splitlines(keepends=True)]):
        assert read_adds(lines) is None


def test_runs_keep_the_order_of_lines_and_their_numbers() -> None:
    data = SCHEMA + an_add() + an_add("b") + b"\n" + an_add("c") + SCHEMA + b"\n" + an_add("d") + an_add("e") + b"\n"

    found = list(runs(data))

    assert all(data[run.begin :].startswith(b"".join(run.lines)) for run in found)
    assert [(run.first_line, len(run.lines), run.only_adds) for run in found] == [
        (1, 1, False),
        (2, 2, True),
        (5, 1, False),
        (6, 2, False),
        (8, 2, True),
    ]


def test_a_run_ends_where_it_would_take_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(an_add(path) for path in "abcdefg")
    monkeypatch.setattr(adds, "_MOST_LINES", 3)
    assert [len(run.lines) for run in runs(data)] == [3, 3, 1]
    monkeypatch.setattr(adds, "_MOST_BYTES", 2 * len(an_add()))
    assert [len(run.lines) for run in runs(data)] == [2, 2, 2, 1]
    assert [add.path for add in in_columns(data)] == list("abcdefg")


@pytest.mark.parametrize("data", [b"", b"\n", b"\n \n"])
def test_a_file_without_a_line_is_empty_here_too(data: bytes) -> None:
    with pytest.raises(CorruptLogError, match="it is empty"):
        in_columns(data)


def test_blank_lines_before_and_between_adds_are_passed_over() -> None:
    data = b"\n" + an_add() + an_add("b") + b" \n\n" + an_add("c") + an_add("d") + b"\n"

    assert [add.path for add in in_columns(data)] == ["a", "b", "c", "d"]


def test_a_remove_between_adds_of_one_path_keeps_its_place() -> None:
    gone = b'{"remove":{"path":"a","dataChange":true}}\n'
    data = an_add() + an_add("b") + gone + an_add() + an_add("c")

    batches, _ = decode_commit_columns(data, version=Version(7), log_file="7.json", modified_ms=0)

    order = [(row["key"], row["is_add"]) for batch in batches for row in batch.select(["key", "is_add"]).to_pylist()]
    assert order == [("a", True), ("b", True), ("a", False), ("a", True), ("c", True)]


_text = st.text(max_size=4)
_adds = st.fixed_dictionaries(
    {"path": _text.filter(bool), "partitionValues": st.fixed_dictionaries({"p": _text, "é": _text})},
    optional={
        "stats": st.none() | _text,
        "size": st.integers(-(2**64), 2**64),
        "baseRowId": st.none() | st.integers(0, 9),
    },
)


@settings(max_examples=150)
@given(values=st.lists(_adds, min_size=2, max_size=5), ascii_only=st.booleans())
def test_whatever_adds_say_they_say_at_once_too(*, values: list[dict[str, Any]], ascii_only: bool) -> None:
    whole = [{"size": 1, "modificationTime": 2, "dataChange": True, **each} for each in values]
    try:
        data = "".join(json.dumps({"add": v}, separators=(",", ":"), ensure_ascii=ascii_only) + "\n" for v in whole)
        encoded = data.encode()
    except UnicodeEncodeError:
        return

    def outcome(read: Any) -> object:
        try:
            return read(encoded)
        except CorruptLogError as error:
            return str(error)

    assert outcome(in_columns) == outcome(one_by_one)


def test_every_small_commit_of_the_corpus_says_the_same_at_once(corpus: Path) -> None:
    at_once = 0
    for log_file in sorted((corpus / "delta").glob("**/_delta_log/" + "[0-9]" * 20 + ".json")):
        if log_file.stat().st_size < 10_000_000:
            data = log_file.read_bytes()
            value = decode_commit(data, version=Version(7), log_file="7.json", modified_ms=0)
            batches, commit = decode_commit_columns(data, version=Version(7), log_file="7.json", modified_ms=0)
            assert commit == replace(value, files=())
            assert [add for batch in batches for add in to_add_files(batch)] == list(value.added)
            at_once += sum(run.only_adds and read_adds(run.lines) is not None for run in runs(data))
    assert at_once > 50


def test_statistics_that_are_not_asked_for_are_null() -> None:
    rows = FileRows(with_stats=False)
    decode_commit_into(
        rows, an_add(stats="{}") + an_add("b", stats="{}"), version=Version(7), log_file="7.json", modified_ms=None
    )

    (batch,) = rows.full()
    assert batch["stats"].null_count == 2
    assert batch.schema == columns.FILE_COLUMNS
    assert pa.types.is_map(batch["partition_values"].type)
