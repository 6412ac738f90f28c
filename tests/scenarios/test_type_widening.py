"""What becomes of a stream over a column whose type changes, with its schema tracked and without.

The stories are those of TypeWideningStreamingSourceSuite and its variant with schema tracking; what becomes of the
queries behind such a stream is told in tests/spark/test_widened_types.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.queries import BLOCKED, METADATA_EVOLUTION, SCHEMA_CHANGED, Stream
from scenarios.tables import Column, Table
from support.logs import protocol
from support.recorded import removed

WIDENING = protocol(3, 7, readerFeatures=["typeWidening"], writerFeatures=["typeWidening", "appendOnly", "invariants"])
ALLOWED = {"allowSourceColumnTypeChange": "always"}


@pytest.fixture(params=[pytest.param(False, id="untracked"), pytest.param(True, id="tracked")])
def tracks(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def a_table(path: Path, *columns: Column) -> Table:
    table = Table(path / "table", columns=columns, configuration={"delta.enableTypeWidening": "true"})
    table.commit(WIDENING, table.metadata)
    return table


def a_stream(table: Table, tracks: bool) -> Stream:  # noqa: FBT001
    stream = Stream.on(table.path, ignoreDeletes="true")
    return stream.tracked if tracks else stream


def test_a_column_that_is_widened_and_narrowed_again_stops_a_stream_for_good(
    tmp_path: Path,
    tracks: bool,  # noqa: FBT001
) -> None:
    table = a_table(tmp_path, Column(name="a", kind="byte"))
    table.append((1,))
    stream = a_stream(table, tracks)
    assert stream.run() == [(1,)]
    table.widen("a", "integer")
    stream.goes_down(METADATA_EVOLUTION if tracks else SCHEMA_CHANGED)
    if tracks:
        stream.fails(BLOCKED)

    stream.run(**ALLOWED)
    table.append((123456789,))
    assert stream.process() == [(123456789,)]
    _, widened = table.live
    restored = removed(widened)
    table.columns = (Column(name="a", kind="byte"),)
    table.commit(table.metadata, restored)
    stream.goes_down(METADATA_EVOLUTION if tracks else SCHEMA_CHANGED)

    for _ in range(2):
        stream.fails(SCHEMA_CHANGED)
        assert stream.rows == []


@pytest.mark.parametrize("to", [pytest.param("byte", id="narrowing"), pytest.param("string", id="arbitrary")])
def test_a_type_that_is_not_wider_stops_a_stream_for_good(
    tmp_path: Path,
    tracks: bool,  # noqa: FBT001
    to: str,
) -> None:
    table = a_table(tmp_path, Column(name="a", kind="integer"))
    table.append((1,))
    stream = a_stream(table, tracks)
    assert stream.run() == [(1,)]
    table.overwrite_schema(Column(name="a", kind=to))
    stream.goes_down(METADATA_EVOLUTION if tracks else SCHEMA_CHANGED)

    table.append(("2" if to == "string" else 2,))
    stream.fails(SCHEMA_CHANGED)
    assert stream.rows == []


def test_a_widened_column_is_read_when_an_untracked_stream_is_started_again(tmp_path: Path) -> None:
    table = a_table(tmp_path, Column(name="a", kind="byte"))
    table.append((1,))
    stream = a_stream(table, tracks=False)
    assert stream.run() == [(1,)]
    table.widen("a", "integer")
    stream.goes_down(SCHEMA_CHANGED)

    assert stream.run() == []
    table.append((123456789,))
    assert stream.process() == [(123456789,)]


def test_a_table_that_says_its_type_again_stops_no_stream(tmp_path: Path) -> None:
    table = a_table(tmp_path, Column(name="a", kind="byte"))
    table.append((1,))
    stream = a_stream(table, tracks=False)
    stream.run()
    table.widen("a", "byte")
    table.append((100,))

    assert stream.process() == [(1,), (100,)]


@pytest.mark.parametrize("word", [pytest.param("always", id="unblock stream"), pytest.param("2", id="unblock version")])
def test_a_tracked_stream_goes_on_over_a_wider_type_at_the_users_word(tmp_path: Path, word: str) -> None:
    table = a_table(tmp_path, Column(name="widened", kind="byte"), Column(name="other", kind="byte"))
    table.append((1, 1))
    stream = a_stream(table, tracks=True)
    stream.run()
    assert table.widen("widened", "integer") == 2
    stream.goes_down(METADATA_EVOLUTION)
    assert "widened: byte to integer" in stream.fails(BLOCKED).message

    assert stream.run(allowSourceColumnTypeChange=word) == []
    table.append((123456789, 1))
    assert stream.process() == [(123456789, 1)]


def test_a_tracked_stream_needs_two_words_over_a_drop_and_a_wider_type(tmp_path: Path) -> None:
    table = a_table(tmp_path, Column(name="a", kind="byte"), Column(name="b", kind="integer"))
    stream = a_stream(table, tracks=True)
    stream.run()
    table.append((1, 1))
    assert stream.process() == [(1, 1)]
    table.overwrite_schema(Column(name="a", kind="integer"))
    stream.goes_down(METADATA_EVOLUTION)

    error = stream.fails(BLOCKED)
    for said in (
        "allowSourceColumnDrop",
        "allowSourceColumnTypeChange",
        "a: byte to integer",
        "between versions 0 and 2",
    ):
        assert said in error.message, said
    stream.fails(BLOCKED, allowSourceColumnDrop="always")

    stream.run(**ALLOWED)
    table.append((2,))
    assert stream.process() == [(2,)]


def test_a_wider_column_that_stopped_an_untracked_stream_waits_for_the_users_word_when_it_is_tracked(
    tmp_path: Path,
) -> None:
    table = a_table(tmp_path, Column(name="a", kind="byte"))
    table.append((1,))
    stream = a_stream(table, tracks=False)
    assert stream.run() == [(1,)]
    table.widen("a", "integer")
    table.append((123456789,))
    stream.goes_down(SCHEMA_CHANGED)

    tracked = stream.tracked
    tracked.fails(METADATA_EVOLUTION)
    tracked.fails(METADATA_EVOLUTION)
    tracked.fails(BLOCKED)
    assert tracked.run(**ALLOWED) == [(123456789,)]
