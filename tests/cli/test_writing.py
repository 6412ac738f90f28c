"""append, delete, apply-changes and replicate: whole commits or none, once with a txn."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from cli.tables import rows
from cli.test_looking import EVERY_KIND
from support.command_line import ended, run, started


def ids(table: Path) -> list[int]:
    return sorted(tablefeed.open_table(table).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("shape", ["csv", "jsonl", "parquet", "arrow"])
def test_what_cat_wrote_can_be_appended(shape: str, orders: Path, tmp_path: Path) -> None:
    output = tmp_path / f"rows.{shape}"
    assert run("cat", orders, "-o", output).code == 0

    done = run("append", orders, output)

    assert (done.code, done.out) == (0, "committed version 4\n")
    assert ids(orders) == [1, 1, 3, 3, 4, 4, 5, 5]
    assert tablefeed.open_table(orders).to_arrow()["day"].null_count == 0


KINDS = pa.table(
    {
        "text": ["NA", "", None, 'a,"b"\n'],
        "bytes": [b"\0\xff", b"", None, b"x"],
        "number": [1.5, float("inf"), None, -0.25],
        "exact": pa.array(["12345678901234567.25", "-2.00", None, "0.00"]).cast(pa.decimal128(20, 2)),
        "flag": [True, False, None, True],
        "at": pa.array([1, -1, None, 10**15], pa.timestamp("us", tz="UTC")),
        "local": pa.array([1, -1, None, 10**15], pa.timestamp("us")),
        "day": pa.array([1, -1, None, 20_000], pa.date32()),
        "whole": [2**62, -1, None, 0],
    }
)


@pytest.mark.parametrize("shape", ["csv", "jsonl", "parquet", "arrow"])
def test_values_of_every_type_come_back_as_they_were(shape: str, tmp_path: Path) -> None:
    tablefeed.append(tmp_path / "t", KINDS)
    output = tmp_path / f"rows.{shape}"
    assert run("cat", tmp_path / "t", "-o", output).code == 0

    assert run("append", tmp_path / "t", output, "--mode", "overwrite").code == 0

    assert tablefeed.open_table(tmp_path / "t").to_arrow().to_pydict() == KINDS.to_pydict()


def test_json_lines_bring_nested_values_back(tmp_path: Path) -> None:
    nested = EVERY_KIND.select(["list", "map", "struct", "flag"])
    tablefeed.append(tmp_path / "t", nested)
    lines = run("cat", tmp_path / "t", "--json").out

    assert run("append", tmp_path / "t", "-", "--format", "jsonl", "--mode", "overwrite", data=lines.encode()).code == 0

    assert tablefeed.open_table(tmp_path / "t").to_arrow().to_pydict() == nested.to_pydict()


def test_several_files_make_one_commit(orders: Path, tmp_path: Path) -> None:
    for number in (7, 8):
        (tmp_path / f"{number}.csv").write_text(f"id,name,day\n{number},x,2026-01-01\n")

    assert run("append", orders, tmp_path / "7.csv", tmp_path / "8.csv").code == 0

    assert tablefeed.open_table(orders).version == 4
    assert ids(orders)[-2:] == [7, 8]


def test_later_files_of_a_new_table_have_the_types_of_the_first(orders: Path, tmp_path: Path) -> None:
    run("cat", orders, "-o", tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("id,name,day\n9,12,\n")
    (tmp_path / "c.csv").write_text("id,day\n9,\n")

    assert run("append", tmp_path / "t", tmp_path / "a.parquet", tmp_path / "b.csv").code == 0
    found = tablefeed.open_table(tmp_path / "t")
    assert found.schema == tablefeed.open_table(orders).schema
    assert {"id": 9, "name": "12", "day": None} in found.to_arrow().to_pylist()

    done = run("append", tmp_path / "u", tmp_path / "a.parquet", tmp_path / "c.csv")
    assert done.code == 2
    assert "its columns are id, day, and those of" in done.err


def test_a_txn_is_committed_once(orders: Path, tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text('{"id": 9, "name": "n", "day": "2026-01-01"}\n')
    asked = ["append", orders, tmp_path / "r.jsonl", "--app-id", "nightly", "--txn-version", "1", "--json"]

    first, second = run(*asked), run(*asked)

    assert first.records == [{"outcome": "Committed", "version": 4}]
    assert second.records == [{"outcome": "AlreadyApplied", "version": 4, "recorded_txn_version": 1}]
    assert ids(orders).count(9) == 1


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"price": 1.5}\n{"price": true}\n', "true and false are no numbers"),
        ('{"prices": {"one": [1.5, false]}}\n', "true and false are no numbers"),
        ('{"tags": "abc"}\n', "'tags' is a list"),
        ('{"at": {"x": 1, "z": 2}}\n', "'at' has no member 'z'"),
        ('{"new": 1.5}\n{"new": true}\n', "true and false are no numbers"),
    ],
)
def test_a_json_value_that_does_not_fit_its_column_is_refused(lines: str, said: str, tmp_path: Path) -> None:
    members: list[tuple[str, pa.DataType]] = [
        ("price", pa.float64()),
        ("prices", pa.map_(pa.string(), pa.list_(pa.float64()))),
        ("tags", pa.list_(pa.string())),
        ("at", pa.struct([("x", pa.int64())])),
    ]
    tablefeed.create(tmp_path / "table", pa.schema(members))
    (tmp_path / "r.jsonl").write_text(lines)

    done = run("append", tmp_path / "table", tmp_path / "r.jsonl")

    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert tablefeed.open_table(tmp_path / "table").to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.csv", "id,name,day\nx,n,2026-01-01\n", "cannot be read"),
        ("r.csv", "id,name,day\n1,n,noon\n", "column 'day' is no date32"),
        ("r.csv", "id,day,day\n1,2026-01-01,2026-01-02\n", "column 'day' is there twice"),
        ("r.jsonl", '{"id": ' + "[" * 100_000, "too deep"),
        ("r.jsonl", "[1]\n", "a line is not a JSON object"),
        ("r.jsonl", '{"id": "one"}\n', "cannot be read"),
        ("r.jsonl", '{"id": 9.5}\n', "Could not convert 9.5"),
        ("r.jsonl", '{"id": 1', "cannot be read"),
        ("r.parquet", "no parquet", "cannot be read"),
        ("r.txt", "x", "give it for"),
        ("none/r.csv", None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_nothing_is_written(
    name: str, text: str | None, said: str, orders: Path, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    before = sorted(orders.rglob("*"))

    done = run("append", orders, tmp_path / name)

    assert done.code == 2
    assert said in done.err.splitlines()[-1]
    assert "Traceback" not in done.err
    assert sorted(orders.rglob("*")) == before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_write_that_is_interrupted_leaves_no_commit_and_no_file(number: int, code: int, orders: Path) -> None:
    before = sorted(orders.rglob("*"))
    many = pa.table({"id": range(400_000), "name": ["n" * 50] * 400_000, "day": pa.array([1] * 400_000, pa.date32())})
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, many.schema) as writer:
        writer.write_table(many, max_chunksize=20_000)
    data = stream.getvalue().to_pybytes()

    with ended(started("append", orders, "-", "--format", "arrow", stdin=subprocess.PIPE)) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(data[: len(data) - 1000])  # it waits for the rest
        process.stdin.flush()
        process.send_signal(number)

        assert process.wait(timeout=60) == code
        assert b"Traceback" not in process.stderr.read()
    assert sorted(orders.rglob("*")) == before


def test_delete_deletes_what_the_predicate_names(orders: Path) -> None:
    assert run("delete", orders, "id >= 4").out == "committed version 4\n"
    assert ids(orders) == [1, 3]


def test_events_are_applied_in_their_order(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    tablefeed.create(tmp_path / "t", schema, properties={"delta.feature.domainMetadata": "supported"})
    events = [
        {"id": 1, "v": "b", "ts": 2, "op": "u"},
        {"id": 1, "v": "a", "ts": 1, "op": "u"},
        {"id": 2, "v": "x", "ts": 1, "op": "d"},
    ]
    (tmp_path / "e.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))

    done = run(
        *["apply-changes", tmp_path / "t", tmp_path / "e.jsonl", "--keys", "id", "--sequence-by", "ts"],
        *["--apply-as-deletes", "op = 'd'", "--except-column-list", "ts,op"],
    )

    assert done.code == 0, done.err
    assert tablefeed.open_table(tmp_path / "t").to_arrow().to_pylist() == [{"id": 1, "v": "b"}]


def test_a_copy_is_made_and_brought_up_to_date(orders: Path, tmp_path: Path) -> None:
    first = run("replicate", orders, tmp_path / "copy", "--verify", "--json")
    tablefeed.append(orders, rows(6))
    second = run("replicate", orders, tmp_path / "copy", "--verify")

    assert (first.code, first.records[0]["source_version"]) == (0, 3)
    assert second.out.startswith("version 1 of the target has the rows of version 4: 1 commits made")
    assert ids(tmp_path / "copy") == ids(orders)
