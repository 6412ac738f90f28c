"""inspect, log, cat and changes: what they print of a table, and in which formats."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import tablefeed
from support.command_line import run, run_without_rights, started
from tablefeed.cli.rows import whole_file


def test_inspect_says_what_the_table_is(orders: Path) -> None:
    (facts,) = run("inspect", orders, "--json").records

    assert {name: facts[name] for name in ("format", "version", "partition_columns", "rows")} == {
        "format": "delta",
        "version": 3,
        "partition_columns": ["day"],
        "rows": 4,
    }
    assert facts["files"]["count"] == sum(batch.num_rows for batch in tablefeed.open_table(orders).files())
    assert facts["columns"][0] == {"name": "id", "type": "int64", "nullable": True}
    assert facts["properties"] == {"delta.enableChangeDataFeed": "true"}
    assert [(w["commits"], w["last_version"]) for w in facts["writers"]] == [(4, 3)]


def test_inspect_of_a_file_with_more_rows_than_a_float_counts(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    log_file = tmp_path / "_delta_log" / f"{0:020d}.json"
    log_file.write_text(log_file.read_text().replace('\\"numRecords\\":1', f'\\"numRecords\\":{2**63 - 1}'))

    (facts,) = run("inspect", tmp_path, "--json").records

    assert facts["rows"] == 2**63 - 1


def test_inspect_for_people_names_the_features_and_the_columns(orders: Path) -> None:
    done = run("inspect", orders, "--at", "1")

    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert ["version", "1"] in lines
    assert ["features", "appendOnly,", "changeDataFeed,", "invariants"] in lines
    assert ["day", "date32[day]", "true"] in lines


def damaged(table: Path, version: int) -> str:
    """Puts half a line in place of a commit, and gives the name of its file."""
    file = table / "_delta_log" / f"{version:020d}.json"
    file.write_text('{"add": {')
    return file.name


def test_a_damaged_commit_before_a_checkpoint_is_named_beside_all_that_can_be_read(orders: Path) -> None:
    tablefeed.checkpoint(orders)
    name = damaged(orders, 1)

    people, program, log = run("inspect", orders), run("inspect", orders, "--json"), run("log", orders, "--json")

    assert (people.code, program.code, log.code) == (1, 1, 1)
    facts = program.records[0]
    assert (facts["version"], facts["files"]["count"], facts["writers"][0]["commits"]) == (3, 3, 3)
    assert [name in problem for problem in facts["problems"]] == [True]
    assert name in people.out
    assert [commit["version"] for commit in log.records] == [3, 2, 0]
    assert name in log.err


def test_a_damaged_commit_that_the_newest_version_needs_leaves_the_version_before_it(orders: Path) -> None:
    name = damaged(orders, 3)
    damaged(orders, 2)

    inspected, log = run("inspect", orders, "--json"), run("log", orders, "--json")

    facts = inspected.records[0]
    assert (inspected.code, facts["version"], facts["rows"]) == (1, 1, 3)
    assert [f"{2:020d}.json" in problem and "version 1" in problem for problem in facts["problems"]] == [True]
    assert (log.code, [commit["version"] for commit in log.records]) == (1, [1, 0])
    asked = run("inspect", orders, "--at", 3)
    assert (asked.code, asked.out, name in asked.err or f"{2:020d}.json" in asked.err) == (3, "", True)


def test_a_commit_that_may_not_be_read_is_named_beside_all_that_can_be_read(orders: Path) -> None:
    tablefeed.checkpoint(orders)
    file = orders / "_delta_log" / f"{1:020d}.json"
    file.chmod(0)

    inspected, log = run_without_rights("inspect", orders, "--json"), run_without_rights("log", orders, "--json")

    assert (inspected.code, log.code) == (1, 1), inspected.err + log.err
    assert [f"{file.name}" in each and "Permission denied" in each for each in inspected.records[0]["problems"]] == [
        True
    ]
    assert [commit["version"] for commit in log.records] == [3, 2, 0]
    assert file.name in log.err


def test_a_commit_that_may_not_be_read_and_that_the_newest_version_needs_leaves_the_version_before_it(
    orders: Path,
) -> None:
    file = orders / "_delta_log" / f"{2:020d}.json"
    file.chmod(0)

    done = run_without_rights("inspect", orders, "--json")

    facts = done.records[0]
    assert (done.code, facts["version"], facts["rows"]) == (1, 1, 3)
    assert [file.name in problem and "version 1" in problem for problem in facts["problems"]] == [True]


def test_a_missing_commit_that_the_newest_version_needs_leaves_the_version_before_it(orders: Path) -> None:
    (orders / "_delta_log" / f"{2:020d}.json").unlink()

    done = run("inspect", orders, "--json")

    facts = done.records[0]
    assert (done.code, facts["version"], len(facts["problems"])) == (1, 1, 1)
    assert "version 2 is missing" in facts["problems"][0]


def test_a_table_of_which_no_version_can_be_read_is_an_error(orders: Path) -> None:
    name = damaged(orders, 0)

    done = run("inspect", orders)

    assert (done.code, done.out, name in done.err) == (3, "", True)


def test_log_gives_the_commits_newest_first(orders: Path) -> None:
    commits = run("log", orders, "--json").records

    assert [(c["version"], c["operation"]) for c in commits] == [
        (3, "DELETE"),
        (2, "WRITE"),
        (1, "WRITE"),
        (0, "CREATE TABLE"),
    ]
    assert commits[2]["txns"] == {"loader": 7}
    assert commits[2]["info"]["userMetadata"] == "the first"


def test_log_gives_what_json_cannot_hold_as_texts(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    log_file = tmp_path / "_delta_log" / f"{0:020d}.json"
    lines = [line for line in log_file.read_text().splitlines() if '"commitInfo"' not in line]
    deep = "[" * 300 + "]" * 300
    log_file.write_text("\n".join([*lines, r'{"commitInfo":{"userMetadata":"a\ud800","deep":' + deep + "}}"]))

    (commit,) = run("log", tmp_path, "--json").records

    assert commit["info"]["userMetadata"] == r"a\ud800"
    inner = commit["info"]["deep"]
    while isinstance(inner, list):
        (inner,) = inner
    assert inner == "a value that nests too deep to be shown"


@pytest.mark.parametrize(
    ("asked", "versions"),
    [("1..3", [3, 2]), ("..1", [1, 0]), ("2..", [3]), ("2", [2]), ("0..0", []), ("..", [3, 2, 1, 0])],
)
def test_a_range_has_the_commits_after_its_begin_up_to_its_end(asked: str, versions: list[int], orders: Path) -> None:
    assert [c["version"] for c in run("log", orders, asked, "--json").records] == versions


def test_log_has_commits_that_a_cleanup_left_before_the_earliest_version_that_can_be_read(tmp_path: Path) -> None:
    for number in range(6):
        tablefeed.append(tmp_path, pa.table({"id": [number]}))
        if number == 4:
            tablefeed.checkpoint(tmp_path)
    for version in (0, 1):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()

    def versions(*arguments: str) -> list[int]:
        return [commit["version"] for commit in run("log", tmp_path, *arguments, "--json").records]

    assert versions() == [5, 4, 3, 2]
    assert (versions("3"), versions("1..3"), versions("..3"), versions("..3", "-n", "1")) == ([3], [3, 2], [3, 2], [3])
    gone = run("log", tmp_path, "1")
    assert (gone.code, gone.out) == (3, "")
    assert "Version 1 of" in gone.err


def test_a_line_of_the_log_can_say_what_files_changed(orders: Path) -> None:
    one, two = run("log", orders, "--oneline", "--stat", "-n", "2").out.splitlines()

    assert one.startswith("3 20")
    assert "Z DELETE  -1 files (" in one
    assert "Z WRITE  +2 files (" in two


def test_cat_gives_the_rows_that_are_asked_for(orders: Path) -> None:
    done = run("cat", orders, "--where", "id > 2 AND day = DATE'2026-01-02'", "--columns", "name,id")

    assert sorted(done.out.splitlines()) == ['{"name":"n3","id":3}', '{"name":"n5","id":5}']


def test_cat_reads_an_older_version(orders: Path) -> None:
    assert len(run("cat", orders, "--at", "1").records) == 3


def test_changes_have_their_types_and_versions(orders: Path) -> None:
    done = run("changes", orders, "--from", "2", "--columns", "id,_change_type,_commit_version", "--format", "table")

    assert [line.split() for line in done.out.splitlines()] == [
        ["id", "_change_type", "_commit_version"],
        ["4", "insert", "2"],
        ["5", "insert", "2"],
        ["2", "delete", "3"],
    ]


def test_changes_that_are_not_recorded_can_be_computed(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1, 2]}))
    tablefeed.delete(tmp_path, "id = 1")

    refused = run("changes", tmp_path)
    computed = run("changes", tmp_path, "--deduplication-mode", "dropCarryovers", "--from", "1")

    assert refused.code == 3
    assert [(r["id"], r["_change_type"]) for r in computed.records] == [(1, "delete")]


EVERY_KIND = pa.table(
    {
        "text": ['a,"b"\n', "", None],
        "bytes": [b"\0", b"", None],
        "list": [["x", None], [], None],
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "struct": [{"a": 1}, {"a": None}, None],
        "number": [1.5, float("nan"), None],
        "exact": pa.array(["1.10", "-2.00", None]).cast(pa.decimal128(10, 2)),
        "flag": [True, False, None],
    }
)


def test_json_lines_keep_nulls_apart_from_empty_values(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, EVERY_KIND)

    assert run("cat", tmp_path, "--json").records == [
        {
            "text": 'a,"b"\n',
            "bytes": "AA==",
            "list": ["x", None],
            "map": {"k": 1},
            "struct": {"a": 1},
            "number": 1.5,
            "exact": "1.10",
            "flag": True,
        },
        {
            "text": "",
            "bytes": "",
            "list": [],
            "map": {},
            "struct": {"a": None},
            "number": "NaN",
            "exact": "-2.00",
            "flag": False,
        },
        dict.fromkeys(EVERY_KIND.column_names),
    ]


def test_csv_has_nested_values_as_json(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, EVERY_KIND)

    text = run("cat", tmp_path, "--format", "csv").out

    assert list(csv.reader(io.StringIO(text))) == [
        EVERY_KIND.column_names,
        ['a,"b"\n', "AA==", '["x",null]', '{"k":1}', '{"a":1}', "1.5", "1.10", "true"],
        ["", "", "[]", "{}", '{"a":null}', "nan", "-2.00", "false"],
        [""] * 8,
    ]
    assert text.splitlines()[-1] == "," * 7  # null; an empty text is ""


def test_csv_has_times_without_quotes(tmp_path: Path) -> None:
    tablefeed.append(
        tmp_path, pa.table({"at": pa.array([0, None], pa.timestamp("us")), "day": pa.array([0, 1], pa.date32())})
    )

    assert run("cat", tmp_path, "--format", "csv").out.splitlines()[1:] == [
        "1970-01-01 00:00:00.000000,1970-01-01",
        ",1970-01-02",
    ]


def test_a_table_on_a_terminal_cannot_move_its_cursor(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"a": ["\x1b[2J", "x" * 100]}))

    _, first, second = run("cat", tmp_path, "--format", "table").out.splitlines()

    assert first == "\\x1b[2J"
    assert second == "x" * 59 + "…"


def test_columns_are_aligned_by_the_width_of_their_characters(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"a": ["\u65e5\u672c", "e\u0301", "abcd"], "n": [1, 2, 3]}))

    assert run("cat", tmp_path, "--format", "table").out.splitlines() == [
        "a     n",
        "\u65e5\u672c  1",
        "e\u0301     2",
        "abcd  3",
    ]


@pytest.mark.parametrize("name", ["o.parquet", "o.arrow"])
def test_a_binary_file_has_the_rows_and_types_of_the_table(name: str, tmp_path: Path) -> None:
    tablefeed.append(tmp_path / "t", EVERY_KIND)
    output = tmp_path / name

    done = run("cat", tmp_path / "t", "-o", output)
    read = (
        parquet.read_table(output) if name.endswith("parquet") else pa.ipc.open_stream(output.read_bytes()).read_all()
    )

    assert (done.code, done.out) == (0, "")
    assert read.to_pydict() | {"number": 0} == EVERY_KIND.to_pydict() | {"number": 0}
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "t"]


def test_a_file_that_fails_halfway_is_not_there(orders: Path, tmp_path: Path) -> None:
    output = tmp_path / "o.csv"
    output.write_text("before")
    for data_file in orders.rglob("*.parquet"):
        data_file.write_bytes(b"damaged")

    done = run("cat", orders, "-o", output)

    assert done.code == 3
    assert output.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["o.csv"]


@pytest.mark.parametrize("shape", ["parquet", "arrow"])
def test_rows_that_break_off_in_a_pipe_are_not_taken_for_all_rows(shape: str, tmp_path: Path) -> None:
    for start in (0, 3):
        tablefeed.append(tmp_path / "t", pa.table({"id": range(start, start + 3)}))
    last = next(tablefeed.open_table(tmp_path / "t").files())["path"].to_pylist()[-1]
    (tmp_path / "t" / last).unlink()

    with started("cat", tmp_path / "t", "--format", shape) as process:
        out, _ = process.communicate()
    copied = run("append", tmp_path / "copy", "-", "--format", shape, data=out)

    assert (process.returncode, copied.code) == (3, 2)
    assert "cannot be read" in copied.err
    assert not (tmp_path / "copy").exists()


def test_outputs_that_are_written_at_once_to_one_folder_are_both_whole(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a.csv") as first, whole_file(tmp_path / "b.csv") as second:
        first.write(b"a")
        second.write(b"b")

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.csv": b"a", "b.csv": b"b"}


def test_an_output_keeps_its_permissions(orders: Path, tmp_path: Path) -> None:
    (tmp_path / "o.csv").touch(mode=0o600)

    assert run("cat", orders, "-o", tmp_path / "o.csv").code == 0

    assert (tmp_path / "o.csv").stat().st_mode & 0o777 == 0o600


def test_an_output_that_is_a_link_stays_one(orders: Path, tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "o.csv")

    assert run("cat", orders, "-o", tmp_path / "link.csv").code == 0

    assert (tmp_path / "link.csv").readlink() == tmp_path / "o.csv"
    assert len((tmp_path / "o.csv").read_text().splitlines()) == 5


def test_a_text_that_is_not_utf_8_is_refused_by_formats_that_cannot_hold_it(tmp_path: Path) -> None:
    texts = pa.StringArray.from_buffers(1, *pa.array([b"\xff"]).buffers()[1:])
    tablefeed.append(tmp_path / "t", pa.table({"s": texts}))

    for shape in ("jsonl", "table"):
        done = run("cat", tmp_path / "t", "--format", shape)
        assert (done.code, done.err.count("\n")) == (3, 1)
        assert "is not UTF-8: b'\\xff'" in done.err
    assert run("cat", tmp_path / "t", "-o", tmp_path / "o.parquet").code == 0


def test_the_limit_ends_the_rows(orders: Path) -> None:
    assert len(run("cat", orders, "-n", "3").records) == 3
    assert run("cat", orders, "-n", "0", "--format", "table").out.split() == ["id", "name", "day"]


@pytest.mark.parametrize("limit", [2**63 - 1, 2**63, 2**64, 10**30])
def test_a_limit_can_be_larger_than_any_number_of_rows(limit: int, orders: Path) -> None:
    assert len(run("cat", orders, "-n", limit).records) == 4
    assert run("diff", orders, "0", "1", "-n", limit).code == 1
    assert len(run("log", orders, "0..2", "-n", limit, "--json").records) == 2
