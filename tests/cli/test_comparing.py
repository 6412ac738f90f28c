"""diff and verify: what two versions, or two tables, do not have in common."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import tablefeed
from cli.tables import rows
from support.command_line import run
from support.gateway import Gateway
from support.object_stores import serve_another_s3
from tablefeed.feed.api.differences import differences
from tablefeed.store import open_store


def test_diff_gives_the_rows_between_two_versions(orders: Path) -> None:
    done = run("diff", orders, "1", "3", "--json")

    assert done.code == 1
    (found,) = done.records
    assert (found["rows_removed"], found["rows_added"], found["schema"]) == (1, 2, [])
    assert sorted((r["_difference"], r["id"]) for r in found["examples"]) == [
        ("added", 4),
        ("added", 5),
        ("removed", 2),
    ]


def test_files_of_both_versions_are_not_read(orders: Path) -> None:
    whole = {f.path for f in next(c for c in tablefeed.open_table(orders).commits() if c.version == 1).added}
    removed = {f.path for f in next(iter(tablefeed.open_table(orders).commits())).removed}
    for path in whole - removed:
        (orders / path).unlink()

    assert run("diff", orders, "1", "3").code == 1


def test_files_of_one_name_on_two_servers_are_read(gateway: Gateway) -> None:
    url, here = gateway.url("orders"), gateway.options
    tablefeed.append(url, pa.table({"id": [1]}), storage_options=here)
    with serve_another_s3(gateway.bucket) as other:
        copy, original = open_store(url, other.options), open_store(url, here)
        (file,) = (
            each["path"]
            for batch in tablefeed.open_table(url, storage_options=here).files()
            for each in batch.to_pylist()
        )
        copy.copy([f"_delta_log/{0:020d}.json"], original)
        with copy.create(file) as changed:
            parquet.write_table(pa.table({"id": [2]}), changed)

        found = differences(url, url, storage_options=here, right_storage_options=other.options)

    assert found.rows["id"].to_pylist() == [1, 2]


def test_a_row_that_was_only_moved_to_another_file_is_no_difference(tmp_path: Path) -> None:
    for number in range(3):
        tablefeed.append(tmp_path, pa.table({"id": [number, number]}))
    tablefeed.optimize(tmp_path)

    done = run("diff", tmp_path, "2", "3")

    assert (done.code, done.out) == (0, "version 2 and version 3: equal\n")


def test_a_row_counts_as_often_as_it_is_there(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1, 1, 2]}))
    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    (found,) = run("diff", tmp_path, "0", "1", "--json").records

    assert [(r["_difference"], r["id"]) for r in found["examples"]] == [("added", 1)]


def test_columns_that_only_one_version_has_are_named(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1], "old": ["x"]}))
    tablefeed.append(tmp_path, pa.table({"id": [1], "new": [1.5]}), mode="overwrite", overwrite_schema=True)

    done = run("diff", tmp_path, "0", "1")

    assert done.code == 1
    assert done.out.splitlines()[1:] == ["column old string was removed", "column new double was added"]


def test_a_renamed_column_and_a_new_one_of_the_old_name_are_not_taken_for_one(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("b", pa.int64())])
    tablefeed.create(tmp_path, schema, properties={"delta.columnMapping.mode": "name"})
    tablefeed.append(tmp_path, pa.table({"id": [1], "a": [10], "b": [20]}, schema=schema))
    tablefeed.alter(tmp_path, rename_columns={"a": "c"})
    tablefeed.alter(tmp_path, rename_columns={"b": "a"})

    (found,) = run("diff", tmp_path, "1", "3", "--columns", "id,a", "--json").records

    assert [(r["_difference"], r["a"]) for r in found["examples"]] == [("removed", 10), ("added", 20)]


def test_verify_finds_the_one_row_of_many_that_differs(tmp_path: Path) -> None:
    table = pa.table({"id": range(20_000), "x": [float(i) for i in range(20_000)]})
    tablefeed.append(tmp_path / "a", table)
    tablefeed.append(tmp_path / "b", table.slice(10_000))
    tablefeed.append(tmp_path / "b", table.slice(0, 10_000))
    assert run("verify", tmp_path / "a", tmp_path / "b").code == 0

    tablefeed.update(tmp_path / "b", {"x": "0.5"}, "id = 7")
    done = run("verify", tmp_path / "a", tmp_path / "b", "--rows")

    assert done.code == 1
    assert done.out.splitlines() == [
        '{"_difference":"removed","id":7,"x":7.0}',
        '{"_difference":"added","id":7,"x":0.5}',
    ]


def test_verify_of_a_part_looks_only_at_that(orders: Path, tmp_path: Path) -> None:
    tablefeed.append(tmp_path / "copy", rows(1, 3, 4), partition_by=["day"])

    assert run("verify", orders, tmp_path / "copy").code == 1
    assert run("verify", orders, tmp_path / "copy", "--where", "id <= 4").code == 0
    assert run("verify", orders, tmp_path / "copy", "--at", "1", "--where", "id = 1", "--columns", "name").code == 0


def test_tables_that_are_partitioned_in_another_way_differ(orders: Path, tmp_path: Path) -> None:
    tablefeed.append(tmp_path / "copy", rows(1, 3, 4, 5))

    done = run("verify", orders, tmp_path / "copy")

    assert done.code == 1
    assert done.out.splitlines()[1:] == ["was partitioned by day, is by nothing"]


@pytest.mark.parametrize("arguments", [["--format", "csv"], ["-o", "d.csv"]])
def test_a_format_is_for_rows(arguments: list[str], orders: Path) -> None:
    done = run("diff", orders, "1", "2", *arguments)

    assert done.code == 2
    assert done.err.splitlines()[-1].endswith("needs --rows")


def test_a_column_with_the_name_of_the_side_is_refused(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"_difference": ["added"], "id": [1]}))

    refused = run("diff", tmp_path, "0", "0")

    assert refused.code == 3
    assert "have a column '_difference'" in refused.err
    assert run("diff", tmp_path, "0", "0", "--columns", "id").code == 0


def test_times_that_python_does_not_have_are_compared_at_every_depth(tmp_path: Path) -> None:
    at = pa.array([0, 1, 2], pa.int32())
    far = pa.array([2**62, -(2**62)], pa.timestamp("us"))
    inner = pa.StructArray.from_arrays([far], fields=[pa.field("at", far.type)])
    rows = pa.table({"list": pa.ListArray.from_arrays(at, inner), "map": pa.MapArray.from_arrays(at, far, inner)})
    for name, count in (("a", 2), ("b", 1)):
        tablefeed.append(tmp_path / name, rows.slice(0, count))

    (found,) = run("verify", tmp_path / "a", tmp_path / "b", "--json").records

    assert (found["rows_removed"], found["rows_added"]) == (1, 0)
    assert found["examples"][0]["list"] == [{"at": "-144169-06-28 09:59:32.612096"}]
