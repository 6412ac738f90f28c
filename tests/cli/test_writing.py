"""append, delete, apply-changes and replicate: whole commits or none, once with a txn."""

from __future__ import annotations

import json
import math
import signal
import subprocess
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from cli.tables import rows
from support.command_line import ended, run, started
from support.logs import a_log, col, meta, protocol
from support.maintained import ids
from tablefeed.store import LocalStore


@pytest.mark.parametrize("shape", ["csv", "jsonl", "parquet", "arrow"])
def test_what_cat_wrote_can_be_appended(shape: str, orders: Path, tmp_path: Path) -> None:
    output = tmp_path / f"rows.{shape}"
    assert run("cat", orders, "-o", output).code == 0

    done = run("append", orders, output)

    assert (done.code, done.out) == (0, "committed version 4\n")
    assert ids(orders) == [1, 1, 3, 3, 4, 4, 5, 5]
    assert tablefeed.open_table(orders).to_arrow()["day"].null_count == 0


_FAR_DAYS, _FAR_US = [0, -719_163, -(2**31), 2**31 - 1], [0, -1, 10**15 + 1, -(2**62), 2**62]
LEAVES = [
    pa.array([True, False]),
    *(pa.array([-(2 ** (bits - 1)), 2 ** (bits - 1) - 1], f"int{bits}") for bits in (8, 16, 32, 64)),
    pa.array([0.1, -0.0, 3.4028234663852886e38, 1e-45, math.inf, -math.inf, math.nan], pa.float32()),
    pa.array([0.1, -0.0, 1.7976931348623157e308, 5e-324, math.inf, -math.inf, math.nan], pa.float64()),
    pa.array(["12345678901234567.25", "-2.00", "0.00"]).cast(pa.decimal128(20, 2)),
    pa.array(["1E-30", f"-{'9' * 8}.{'9' * 30}"]).cast(pa.decimal128(38, 30)),
    pa.array(["NA", "", "null", 'a,"b"\n', "\r", " x ", "\u00e9\U0001f600"]),
    pa.array([b"\0\xff", b"", b"x"]),
    pa.array(_FAR_DAYS, pa.int32()).cast(pa.date32()),
    pa.array(_FAR_US, pa.timestamp("us", tz="UTC")),
    pa.array(_FAR_US, pa.timestamp("us")),
]


def every_place_of(leaf: pa.Array) -> pa.Table:
    """The values with a null: as a column, and in lists, structs and maps, with a key of a map."""
    values = pa.concat_arrays([leaf, pa.nulls(1, leaf.type)])
    at = pa.array(range(len(values) + 1), pa.int32())
    struct = pa.StructArray.from_arrays([values], fields=[pa.field("m", leaf.type)])
    of_pairs = pa.MapArray.from_arrays(pa.array([0, *([len(leaf)] * len(values))], pa.int32()), leaf, leaf)
    of_structs = pa.MapArray.from_arrays(at, struct, values)
    lists = pa.ListArray.from_arrays(at, pa.ListArray.from_arrays(at, struct))
    return pa.table({"v": values, "struct": struct, "list": lists, "map": of_pairs, "of structs": of_structs})


@pytest.mark.parametrize("shape", ["csv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: str(leaf.type))
def test_values_of_every_type_come_back_as_they_were_at_every_depth(leaf: pa.Array, shape: str, tmp_path: Path) -> None:
    table = every_place_of(leaf)
    names = {"delta.columnMapping.mode": "name"}  # for the blank in a name
    for name in ("t", "copy"):
        tablefeed.create(tmp_path / name, table.schema, properties=names)
    tablefeed.append(tmp_path / "t", table)
    output = tmp_path / f"rows.{shape}"
    assert run("cat", tmp_path / "t", "-o", output).code == 0

    assert run("append", tmp_path / "copy", output).err == ""

    done = run("verify", tmp_path / "t", tmp_path / "copy")
    assert (done.code, done.out, done.err) == (0, "version 1 and version 1: equal\n", "")


@pytest.mark.parametrize("shape", ["csv", "jsonl"])
def test_a_null_of_a_table_of_one_column_comes_back(shape: str, tmp_path: Path) -> None:
    tablefeed.append(tmp_path / "t", pa.table({"a": ["x", None, ""]}))
    lines = run("cat", tmp_path / "t", "--format", shape).out

    assert run("append", tmp_path / "new", "-", "--format", shape, data=lines.encode()).code == 0

    assert tablefeed.open_table(tmp_path / "new").to_arrow()["a"].to_pylist() == ["x", None, ""]


@pytest.mark.parametrize("shape", ["csv", "jsonl"])
def test_the_nulls_of_a_void_column_come_back(shape: str, tmp_path: Path) -> None:
    tablefeed.create(tmp_path, pa.schema([("id", pa.int64()), ("v", pa.string())]))
    log_file = tmp_path / "_delta_log" / f"{0:020d}.json"
    log_file.write_text(log_file.read_text().replace("string", "void"))
    log_file.with_suffix(".crc").unlink()
    data = {"csv": b"id,v\n9,\n", "jsonl": b'{"id":9,"v":null}\n'}[shape]

    assert run("append", tmp_path, "-", "--format", shape, data=data).code == 0

    assert run("cat", tmp_path, "--format", shape).out.encode().endswith(data.splitlines()[-1] + b"\n")


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

    assert first.records == [{"outcome": "Committed", "version": 4, "written": True}]
    assert second.records == [{"outcome": "AlreadyApplied", "version": 4, "recorded_txn_version": 1}]
    assert ids(orders).count(9) == 1


TYPES = pa.schema(
    [
        ("price", pa.float64()),
        ("ratio", pa.float32()),
        ("count", pa.int32()),
        ("exact", pa.decimal128(6, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("prices", pa.map_(pa.string(), pa.list_(pa.float64()))),
        ("tags", pa.list_(pa.string())),
        ("codes", pa.map_(pa.int32(), pa.string())),
        ("point", pa.struct([("x", pa.int64())])),
        ("flag", pa.bool_()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
    ]
)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"price": 1.5}\n\n{"price": true}\n', "line 3: 'price' is double, which does not hold true"),
        ('{"price": 1e400}', "'price' is double, which does not hold 1E+400"),
        ('{"price": "12_3"}', """'price' is double, which does not hold "12_3\""""),
        ('{"price": "1.5"}', """'price' is double, which does not hold "1.5\""""),
        ('{"price": "infinity"}', """'price' is double, which does not hold "infinity\""""),
        ('{"ratio": 1e300}', "line 1: 'ratio' is float, which does not hold 1E+300"),
        (f'{{"ratio": 1{"0" * 40}}}', "'ratio' is float, which does not hold 1000"),
        ('{"count": 9.5}', "'count' is int32, which does not hold 9.5"),
        ('{"count": 1e99999}', "'count' is int32, which does not hold 1E+99999"),
        ('{"count": 2147483648}', "'count' is int32, which does not hold 2147483648"),
        ('{"count": "1"}', """'count' is int32, which does not hold "1\""""),
        ('{"count": 1e9999999999999999999}', "line 1: a number has a too large exponent"),
        ('{"exact": 1.234}', "'exact' is decimal128(6, 2), which does not hold 1.234"),
        ('{"exact": 1E-41}', "'exact' is decimal128(6, 2), which does not hold 1E-41"),
        ('{"exact": "1_0"}', """'exact' is decimal128(6, 2), which does not hold "1_0\""""),
        ('{"exact": "\u0661"}', "'exact' is decimal128(6, 2), which does not hold"),
        ('{"exact": NaN}', "'exact' is decimal128(6, 2), which does not hold NaN"),
        ('{"text": "\\ud800"}', """'text' is string, which does not hold "\\ud800\""""),
        ('{"at": "2026-01-01T00:00:00"}', "a time needs its zone here, as in 2026-01-31 12:00:00Z"),
        ('{"codes": {"01": "x"}}', "which does not hold"),
        ('{"flag": 1}', "'flag' is bool, which does not hold 1"),
        ('{"text": 1.10}', "'text' is string, which does not hold 1.10"),
        ('{"bytes": "?"}', """'bytes' is binary, which does not hold "?"; bytes are base64"""),
        ('{"prices": {"one": [1.5, false]}}', "'prices.value' is double, which does not hold false"),
        ('{"prices": [["one"]]}', "which does not hold"),
        ('{"tags": "abc"}\n', "'tags' is list<element: string>, which does not hold"),
        ('{"point": {"x": 1, "z": 2}}\n', "'point' has no member 'z'"),
        ('{"text": "a", "text": "b"}', "line 1: the key 'text' is there twice"),
        ('{"point": {"x": 1, "x": 2}}', "line 1: the key 'x' is there twice"),
        ('{"text": "a", "Text": "b"}', "column 'Text' is there twice, once as 'text'"),
        ('{"new": 1.5}\n{"new": true}\n', "'new' is double, which does not hold true"),
        ('{"new": 1.5}\n{"new": "x"}\n', "no type of a column holds all values of 'new'"),
    ],
)
def test_a_json_value_that_does_not_fit_its_column_is_refused(lines: str, said: str, tmp_path: Path) -> None:
    tablefeed.create(tmp_path / "table", TYPES)
    (tmp_path / "r.jsonl").write_text(lines)

    done = run("append", tmp_path / "table", tmp_path / "r.jsonl")

    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert tablefeed.open_table(tmp_path / "table").version == 0


@pytest.mark.parametrize(
    ("column", "field"),
    [
        *(("price", field) for field in ("1e400", "1_0", " 1", "0x1p3", "nan(1)", "\uff11", "true")),
        *(("ratio", field) for field in ("1e300", "-1e39")),
        *(("count", field) for field in ("0x10", "1_0", "1.0", "2147483648", "\uff11", '""')),
        *(("exact", field) for field in ("12345.6", "1.234", "1E-41", "1_0", "nan")),
        *(("day", field) for field in ("2026-02-30", "20260101", "2026-01-01 23:00:00", "+10000-01-01 23:00:00")),
        *(("at", field) for field in ("2026-01-01 00:00:00", "+10000-01-01 00:00:00", "+999999-01-01 00:00:00Z")),
        *(("local", field) for field in ("2026-01-01 00:00:00Z", "+10000-01-01 00:00:00Z")),
        *(("flag", field) for field in ("yes", "2")),
        *(("point", field) for field in ('"{""y"":1}"', "1", "{")),
        ("bytes", "?"),
    ],
)
def test_a_field_of_csv_that_does_not_fit_its_column_is_refused(column: str, field: str, tmp_path: Path) -> None:
    tablefeed.create(tmp_path / "table", TYPES)

    done = run("append", tmp_path / "table", "-", "--format", "csv", data=f"text,{column}\n,\n,{field}\n".encode())

    assert done.code == 2
    assert f"row 2: {column!r} " in " ".join(done.err.split())
    assert tablefeed.open_table(tmp_path / "table").version == 0


def test_a_stream_of_arrow_that_ends_without_its_mark_is_refused(tmp_path: Path) -> None:
    rows, stream = pa.table({"id": [7]}), pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        writer.write_table(rows)
    whole = stream.getvalue().to_pybytes()

    done = run("append", tmp_path, "-", "--format", "arrow", data=whole[:-8])
    assert (done.code, "may be cut off" in " ".join(done.err.split())) == (2, True)
    assert run("append", tmp_path, "-", "--format", "arrow", data=whole).code == 0


def test_a_json_object_without_keys_is_a_row_of_nulls(tmp_path: Path) -> None:
    tablefeed.create(tmp_path, TYPES)

    assert run("append", tmp_path, "-", "--format", "jsonl", data=b"{}\n{}\n").code == 0

    assert tablefeed.open_table(tmp_path).to_arrow().to_pylist() == [dict.fromkeys(TYPES.names)] * 2


@pytest.mark.parametrize("data", ["ID,Day\n9,2026-01-01\n", '{"ID":9,"Day":"2026-01-01"}'])
def test_columns_are_matched_without_case(data: str, orders: Path) -> None:
    shape = "csv" if data.startswith("ID") else "jsonl"

    assert run("append", orders, "-", "--format", shape, data=data.encode()).code == 0

    assert {"id": 9, "name": None, "day": date(2026, 1, 1)} in tablefeed.open_table(orders).to_arrow().to_pylist()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.csv", "id,name,day\nx,n,2026-01-01\n", "cannot be read"),
        ("r.csv", "id,name,day\n1,n,noon\n", "row 1: 'day' is date32"),
        ("r.csv", "id,day,day\n1,2026-01-01,2026-01-02\n", "column 'day' is there twice"),
        ("r.csv", 'id,name\n1,n\n2,"cut', "it ends within a quoted value"),
        ("r.csv", 'id,name\n1,n\n2,"cut\n', "it ends within a quoted value"),
        ("r.csv", 'id,"name', "cannot be read"),
        ("r.csv", 'name\n"n"\n"', "it ends within a quoted value"),
        ("r.jsonl", '{"id": ' + "[" * 100_000, "too deep"),
        ("r.jsonl", "[1]\n", "line 1 is not a JSON object"),
        ("r.jsonl", '{"id": "one"}\n', "cannot be read"),
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


@pytest.mark.parametrize("whole", ["9223372036854775809", "-9007199254740993"])
def test_a_whole_number_in_csv_is_refused_if_the_guessed_type_would_round_it(whole: str, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("id\n0.5\n 9007199254740992\n1e300\n\n")
    assert run("append", tmp_path / "exact", tmp_path / "r.csv").code == 0
    assert tablefeed.open_table(tmp_path / "exact").to_arrow()["id"].to_pylist() == [0.5, 2.0**53, 1e300, None]
    (tmp_path / "r.csv").write_text(f"id\n0.5\n9007199254740992\n{whole}\n")

    done = run("append", tmp_path / "t", tmp_path / "r.csv")

    assert (done.code, (tmp_path / "t").exists()) == (2, False)
    assert f"row 3: 'id' is double, which does not hold \"{whole}\"" in done.err


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
    assert run("delete", orders, "id > 99").out == "nothing to commit: the table is at version 3\n"
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


def test_rows_get_values_that_depend_on_a_time_zone_in_the_zone_that_is_given(tmp_path: Path) -> None:
    told = protocol(1, 7, writerFeatures=["generatedColumns", "domainMetadata"])
    day = col("day", "date", notes={"delta.generationExpression": "CAST(at AS DATE)"})
    a_log(LocalStore(str(tmp_path)), v0=[told, meta(col("id"), col("at", "timestamp"), day)])
    (tmp_path / "e.csv").write_text("id,at\n1,2024-06-01 23:00:00Z\n")
    events = ["apply-changes", tmp_path, tmp_path / "e.csv", "--keys", "id", "--sequence-by", "at"]

    for command in (["append", tmp_path, tmp_path / "e.csv"], events):
        refused, unknown = run(*command), run(*command, "--time-zone", "Mars")
        assert (refused.code, "--time-zone" in refused.err) == (3, True), refused.err
        assert (unknown.code, "'--time-zone'" in unknown.err) == (3, True), unknown.err
        assert run(*command, "--time-zone", "Europe/Berlin").code == 0
        found = tablefeed.open_table(tmp_path).to_arrow(columns=["day"])["day"].to_pylist()
        assert found == [date(2024, 6, 2)]
        tablefeed.delete(tmp_path, "true")


def test_a_copy_is_made_and_brought_up_to_date(orders: Path, tmp_path: Path) -> None:
    first = run("replicate", orders, tmp_path / "copy", "--verify", "--json")
    tablefeed.append(orders, rows(6))
    second = run("replicate", orders, tmp_path / "copy", "--verify")

    assert (first.code, first.records[0]["source_version"]) == (0, 3)
    assert second.out.startswith("version 1 of the target has the rows of version 4: 1 commits made")
    assert ids(tmp_path / "copy") == ids(orders)
