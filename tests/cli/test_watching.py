"""tail, lag and offsets: a table that grows, and the checkpoint of a query that reads it."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from cli.tables import QUERY_ID, a_checkpoint, rows
from support.command_line import ended, run, started
from tablefeed.feed.stream.spark_checkpoint import offset_text
from tablefeed.model.actions import Version
from tablefeed.model.offset import EventTime, Offset

Query = Callable[..., Path]


def offset(path: Path, version: int, index: int = -1, *, in_snapshot: bool = False) -> str:
    """An offset as Delta-Spark writes it."""
    return (
        f'{{"sourceVersion":1,"reservoirId":"{tablefeed.open_table(path).table_id}","reservoirVersion":{version},'
        f'"index":{index},"isStartingVersion":{str(in_snapshot).lower()}}}'
    )


@pytest.fixture
def query(tmp_path: Path) -> Query:
    """Makes the checkpoint of a query whose batches end at the given offsets; the last `unfinished` are not done."""

    return partial(a_checkpoint, tmp_path / "checkpoint")


# --- tail ------------------------------------------------------------------------------------------------------------


def test_tail_gives_the_commits_from_a_version_on(orders: Path) -> None:
    commits = run("tail", orders, "--from", "1", "-n", "3", "--json").records

    assert [(c["version"], c["operation"]) for c in commits] == [(1, "WRITE"), (2, "WRITE"), (3, "DELETE")]


def test_tail_begins_with_the_first_commit_at_or_after_a_time(orders: Path) -> None:
    at_ms = next(tablefeed.open_table(orders, version=2).history()).committed_at_ms
    assert at_ms is not None

    def first_since(ms: int) -> list[int]:
        at = datetime.fromtimestamp(ms / 1000, UTC).isoformat()
        return [c["version"] for c in run("tail", orders, "--from", at, "-n", "1", "--json").records]

    assert (first_since(0), first_since(at_ms), first_since(at_ms + 1)) == ([0], [2], [3])


def test_tail_gives_the_changed_rows_with_their_types(orders: Path) -> None:
    done = run("tail", orders, "--from", "2", "-n", "2", "--rows", "--json", "--columns", "id,_change_type")

    assert sorted(map(json.dumps, done.records)) == sorted(
        map(
            json.dumps,
            [
                {"id": 4, "_change_type": "insert"},
                {"id": 5, "_change_type": "insert"},
                {"id": 2, "_change_type": "delete"},
            ],
        )
    )


def test_rows_have_a_header_again_after_their_columns_changed(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    with ended(started("tail", tmp_path, "--from", "0", "-n", "3", "--rows", "--where", "id < 9")) as process:
        assert process.stdout is not None
        first = [process.stdout.readline() for _ in range(2)]
        tablefeed.append(tmp_path, pa.table({"id": [2]}))
        second = process.stdout.readline()
        tablefeed.append(tmp_path, pa.table({"id": [3], "name": ["n"]}), merge_schema=True)
        third = process.stdout.read().splitlines()

    assert (first[0].split()[:2], second.split()[0]) == ([b"id", b"_change_type"], b"2")
    assert [line.split()[:2] for line in third] == [[b"id", b"name"], [b"3", b"n"]]


def test_rows_of_a_table_that_records_no_changes_are_computed_and_have_one_header(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1, 2]}))
    tablefeed.delete(tmp_path, "id = 1")

    done = run("tail", tmp_path, "--from", "0", "-n", "2", "--rows", "--columns", "id,_change_type")

    assert [line.split() for line in done.out.splitlines()] == [
        ["id", "_change_type"],
        ["1", "insert"],
        ["2", "insert"],
        ["1", "delete"],
    ]


def test_a_commit_is_shown_within_50_ms_and_ctrl_c_ends_it_in_peace(orders: Path) -> None:
    with ended(started("tail", orders, "--from", "3", "--json")) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["version"] == 3
        took_s = []
        for number in range(5):
            tablefeed.append(orders, rows(number))
            landed = time.perf_counter()
            assert json.loads(process.stdout.readline())["version"] == 4 + number
            took_s.append(time.perf_counter() - landed)
        process.send_signal(signal.SIGINT)

        assert process.wait() == 130
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")
    assert min(took_s) < 0.050


# --- lag -------------------------------------------------------------------------------------------------------------


def test_lag_counts_what_the_query_has_not_delivered(orders: Path, query: Query) -> None:
    checkpoint = query(offset(orders, 1), offset(orders, 2))

    (found,) = run("lag", checkpoint, "--table", orders, "--json").records

    sizes = [f.size_bytes for f in next(c for c in tablefeed.open_table(orders).commits() if c.version == 2).added]
    assert found.pop("seconds_behind") > 0
    assert found == {
        "source": 0,
        "table": str(orders),
        "versions_behind": 2,
        "files_outstanding": len(sizes),
        "bytes_outstanding": sum(sizes),
        "snapshot_percent": None,
    }


def test_a_batch_that_is_not_done_counts_as_not_delivered(orders: Path, query: Query) -> None:
    checkpoint = query(offset(orders, 3), offset(orders, 4), unfinished=1)

    assert run("lag", checkpoint, "--table", orders, "--json").records[0]["versions_behind"] == 1


def test_files_that_a_batch_took_of_a_version_are_delivered(orders: Path, query: Query) -> None:
    checkpoint = query(offset(orders, 2, 0))

    (found,) = run("lag", checkpoint, "--table", orders, "--json").records

    assert (found["versions_behind"], found["files_outstanding"]) == (2, 1)


def test_a_query_in_its_snapshot_says_how_much_is_delivered(orders: Path, query: Query) -> None:
    checkpoint = query(offset(orders, 2, 0, in_snapshot=True))

    (found,) = run("lag", checkpoint, "--table", orders, "--json").records

    assert (found["versions_behind"], found["files_outstanding"]) == (2, 3)
    assert 0 < found["snapshot_percent"] < 100


def test_a_query_that_has_everything_is_not_behind(orders: Path, query: Query) -> None:
    done = run("lag", query(offset(orders, 4)), "--table", orders, "--max-versions", "0", "--max-seconds", "0")

    assert done.code == 0
    assert ["versions", "behind", "0"] in [line.split() for line in done.out.splitlines()]


@pytest.mark.parametrize("limit", [["--max-versions", "1"], ["--max-seconds", "0"]])
def test_a_query_that_is_further_behind_than_allowed_is_found_by_the_exit_code(
    limit: list[str], orders: Path, query: Query
) -> None:
    assert run("lag", query(offset(orders, 2)), "--table", orders, *limit).code == 1


def test_lag_without_the_table_says_which_one_it_needs(orders: Path, query: Query) -> None:
    done = run("lag", query(offset(orders, 2)))

    assert done.code == 3
    assert f"the table with the id {tablefeed.open_table(orders).table_id}" in done.err
    assert "--table" in done.err


def test_sources_that_are_no_tables_are_left_out(orders: Path, query: Query) -> None:
    checkpoint = query(('{"topic":{"0":5}}', offset(orders, 3), "-"))

    assert [r["source"] for r in run("lag", checkpoint, "--table", orders, "--json").records] == [1]


# --- offsets ---------------------------------------------------------------------------------------------------------


def test_offsets_are_shown_as_they_are_and_in_words(orders: Path, query: Query) -> None:
    end = offset(orders, 2, 0)
    checkpoint = query(offset(orders, 1), end, unfinished=1)

    assert run("offsets", "show", checkpoint).out.splitlines() == [
        f"batch 1 of query {QUERY_ID}: not done",
        f"  source 0: {end}",
        "    1 files of version 2, and all before it, are delivered",
    ]
    assert [b["batch"] for b in run("offsets", "show", checkpoint, "-n", "5", "--json").records] == [1, 0]


def test_a_folder_that_is_no_checkpoint_is_refused(orders: Path) -> None:
    done = run("offsets", "show", orders)

    assert (done.code, done.out) == (3, "")
    assert "is no checkpoint of a query" in done.err


def test_a_query_that_can_go_on_passes_the_check(orders: Path, query: Query) -> None:
    done = run("offsets", "check", query(offset(orders, 2)), "--table", orders)

    assert (done.code, done.out) == (0, "The query can go on.\n")


def test_a_query_whose_commits_are_gone_is_found(orders: Path, query: Query) -> None:
    checkpoint = query(offset(orders, 2))
    tablefeed.checkpoint(orders)
    for version in range(3):
        (orders / "_delta_log" / f"{version:020d}.json").unlink()

    done = run("offsets", "check", checkpoint, "--table", orders, "--json")

    assert done.code == 1
    assert "version 2 is missing" in done.records[0]["problems"][0]


@pytest.mark.parametrize(
    ("end", "problem"), [("{}", None), ('{"reservoirId":1}', "sourceVersion"), ("after", "the newest version is 3")]
)
def test_an_offset_that_cannot_be_used_is_found(end: str, problem: str | None, orders: Path, query: Query) -> None:
    done = run("offsets", "check", query(offset(orders, 9) if end == "after" else end), "--table", orders)

    assert done.code == (0 if problem is None else 1)
    assert (problem or "The query can go on") in done.out


def test_a_table_that_was_made_anew_is_found(orders: Path, query: Query, tmp_path: Path) -> None:
    tablefeed.append(tmp_path / "other", pa.table({"id": [1]}))

    done = run("offsets", "check", query(offset(orders, 2)), "--table", tmp_path / "other")

    assert done.code == 1
    assert "reads the table with the id" in done.out


def test_a_reset_is_shown_first_and_written_when_asked(orders: Path, query: Query) -> None:
    checkpoint = query(offset(orders, 4))
    asked = ["offsets", "reset", checkpoint, "--table", orders, "--to", "2"]

    shown = run(*asked)
    files = sorted(path.name for path in (checkpoint / "offsets").glob("[0-9]*"))
    written = run(*asked, "--write", "--json")

    assert (shown.code, files) == (0, ["0"])
    assert written.records == [{"batch": 1, "offset": offset(orders, 2), "written": True, "unfinished": False}]
    assert (checkpoint / "offsets" / "1").read_text() == (
        f'v1\n{{"batchWatermarkMs":0,"conf":{{}}}}\n{offset(orders, 2)}'
    )
    assert (checkpoint / "commits" / "1").read_bytes() == (checkpoint / "commits" / "0").read_bytes()
    assert run("lag", checkpoint, "--table", orders, "--json").records[0]["versions_behind"] == 2


def test_a_reset_keeps_the_other_sources_and_goes_after_a_batch_that_is_not_done(orders: Path, query: Query) -> None:
    other = '{"topic":{"0":5}}'
    checkpoint = query((other, offset(orders, 2)), (other, offset(orders, 3)), unfinished=1)

    done = run("offsets", "reset", checkpoint, "--table", orders, "--to", "latest", "--write")

    assert done.code == 0
    assert "Batch 1 was planned and not done" in done.err
    assert (checkpoint / "offsets" / "2").read_text().splitlines()[2:] == [other, offset(orders, 4)]


def test_a_reset_is_of_a_source_that_reads_the_table_and_of_the_named_one_where_several_do(
    orders: Path, query: Query
) -> None:
    at, other = offset(orders, 2), '{"topic":{"0":5}}'
    checkpoint = query((other, at, at))
    reset = ("offsets", "reset", checkpoint, "--table", orders, "--to", 3, "--write")

    unnamed, foreign, absent = run(*reset), run(*reset, "--source", 0), run(*reset, "--source", 3)
    done = run(*reset, "--source", 2)

    assert "2 sources of the query" in unnamed.err
    assert "Source 0 of the query" in foreign.err
    assert "does not read the table" in foreign.err
    assert "must be from 0 to 2" in absent.err
    assert ([each.code for each in (unnamed, foreign, absent)], done.code) == ([3, 3, 3], 0)
    assert (checkpoint / "offsets" / "1").read_text().splitlines()[2:] == [other, at, offset(orders, 3)]


def old_text(orders: Path, version: int) -> str:
    """The start of a version as JARs that wrote format 3 have it."""
    table_id = tablefeed.open_table(orders).table_id
    return (
        f'{{"sourceVersion":3,"reservoirId":"{table_id}","reservoirVersion":{version},"index":-100,'
        '"isStartingVersion":false}'
    )


def by_event_time(orders: Path) -> str:
    at = EventTime(column="day", before_us=5)
    table_id = tablefeed.open_table(orders).table_id
    return offset_text(Offset(table_id=table_id, version=Version(1), in_snapshot=True, event_time=at))


def batches(checkpoint: Path) -> list[str]:
    return sorted(path.name for path in (checkpoint / "offsets").glob("[0-9]*"))


@pytest.mark.parametrize("to", ["jar", "tablefeed"])
def test_offsets_that_both_sources_read_need_no_conversion(to: str, orders: Path, query: Query) -> None:
    checkpoint = query(offset(orders, 1), offset(orders, 2, 0))

    done = run("offsets", "convert", checkpoint, "--to", to, "--write")

    assert (done.code, done.out[:19]) == (0, "Nothing to convert:")
    assert batches(checkpoint) == ["0", "1"]


@pytest.mark.parametrize("to", ["jar", "tablefeed"])
def test_a_position_in_an_older_text_is_written_in_todays_after_it_is_shown(
    to: str, orders: Path, query: Query
) -> None:
    other = '{"topic":{"0":5}}'
    checkpoint = query((other, old_text(orders, 2)))

    shown = run("offsets", "convert", checkpoint, "--to", to)
    assert f"batch 1 would end at {offset(orders, 2)} in source 1" in shown.out
    assert batches(checkpoint) == ["0"]
    written = run("offsets", "convert", checkpoint, "--to", to, "--write", "--json")

    assert written.records == [{"batch": 1, "offsets": [other, offset(orders, 2)], "written": True}]
    assert (checkpoint / "offsets" / "1").read_text().splitlines()[2:] == [other, offset(orders, 2)]
    assert (checkpoint / "commits" / "1").exists()
    assert run("offsets", "convert", checkpoint, "--to", to, "--json").records[0]["batch"] is None


def test_a_query_goes_to_the_jar_when_its_newest_batch_began_after_the_snapshot_by_event_time(
    orders: Path, query: Query
) -> None:
    checkpoint = query(by_event_time(orders), offset(orders, 2))

    assert "Nothing to convert" in run("offsets", "convert", checkpoint, "--to", "tablefeed").out
    done = run("offsets", "convert", checkpoint, "--to", "jar", "--write", "--json")

    assert done.records == [{"batch": 2, "offsets": [offset(orders, 2)], "written": True}]
    assert "Nothing to convert" in run("offsets", "convert", checkpoint, "--to", "jar").out


def test_a_conversion_that_was_killed_between_its_two_files_is_ended_by_the_same_call(
    orders: Path, query: Query
) -> None:
    checkpoint = query(old_text(orders, 2))
    asked = ["offsets", "convert", checkpoint, "--to", "jar", "--write"]
    run(*asked)
    (checkpoint / "commits" / "1").unlink()

    assert run(*asked).code == 0
    assert (checkpoint / "commits" / "1").exists()
    assert batches(checkpoint) == ["0", "1"]


def test_a_batch_without_rows_that_the_query_did_not_end_is_ended_before_the_conversion(
    orders: Path, query: Query
) -> None:
    checkpoint = query(old_text(orders, 2), old_text(orders, 2), unfinished=1)

    done = run("offsets", "convert", checkpoint, "--to", "jar", "--write", "--json")

    assert done.records == [{"batch": 2, "offsets": [offset(orders, 2)], "written": True}]
    assert (checkpoint / "offsets" / "2").read_text().splitlines()[2:] == [offset(orders, 2)]
    assert {path.name for path in (checkpoint / "commits").glob("[0-9]*")} == {"0", "1", "2"}


@pytest.mark.parametrize("why", ["is planned but not finished", "The Delta JAR has no offset", "keeps state"])
def test_a_conversion_that_would_lose_rows_or_state_is_refused(why: str, orders: Path, query: Query) -> None:
    match why:
        case "is planned but not finished":
            checkpoint = query(old_text(orders, 2), old_text(orders, 3), unfinished=1)
        case "keeps state":
            checkpoint = query(old_text(orders, 2))
            (checkpoint / "state" / "0" / "0").mkdir(parents=True)
            (checkpoint / "state" / "0" / "0" / "1.delta").write_bytes(b"x")
        case _:
            checkpoint = query(by_event_time(orders))
    before = batches(checkpoint)

    done = run("offsets", "convert", checkpoint, "--to", "jar", "--write")

    assert done.code == 3
    assert why in done.err
    assert batches(checkpoint) == before


@pytest.mark.parametrize("to", ["6", "9"])
def test_a_reset_to_a_version_that_does_not_exist_is_refused(to: str, orders: Path, query: Query) -> None:
    checkpoint = query(offset(orders, 4))

    assert run("offsets", "reset", checkpoint, "--table", orders, "--to", to, "--write").code == 3
    assert [path.name for path in (checkpoint / "offsets").glob("[0-9]*")] == ["0"]


def test_a_reset_of_a_query_with_state_is_refused(orders: Path, query: Query) -> None:
    checkpoint = query(offset(orders, 4))
    (checkpoint / "state" / "0" / "0").mkdir(parents=True)
    (checkpoint / "state" / "0" / "0" / "1.delta").write_bytes(b"x")

    done = run("offsets", "reset", checkpoint, "--table", orders, "--to", "2", "--write")

    assert done.code == 3
    assert "keeps state" in done.err
    assert [path.name for path in (checkpoint / "offsets").glob("[0-9]*")] == ["0"]
