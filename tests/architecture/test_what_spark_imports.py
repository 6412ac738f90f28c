"""What Spark's Python processes import for us: each of them pays for it, and each query starts some."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import tablefeed
from tablefeed.delta.columns import to_add_files
from tablefeed.feed.scan.table_scan import table_scan

_PROGRAM = """
import sys
import {before}
before = set(sys.modules)
{then}
print(*sorted(set(sys.modules) - before))
"""

_WRITER_AND_READER = "tablefeed.spark.at_load, tablefeed.spark.partition, tablefeed.spark.sink, tablefeed.spark.source"
_MOST = 160
"""Modules and packages of ours for a query from table to table."""

_FOR_SOME = frozenset({"duckdb", "fastavro", "fsspec", "gzip", "s3fs", "sqlglot", "tantivy", "watchfiles"})
"""What only some tables need."""

_SLOW = _FOR_SOME | {"pandas", "pyarrow.compute", "pyarrow.dataset", "pyarrow.parquet"}
"""What takes tens of milliseconds of a processor each, and is not needed to find that a table has nothing new."""

_BASE = "pyspark.sql.datasource"
_PLANNER = "pyspark.sql.streaming.python_streaming_source_runner"
"""The module of Spark's process that plans a stream. It has pyarrow."""

_LOADED = """
from pyspark_tablefeed import DefaultSource
source = DefaultSource({{"path": {path!r}}})
schema = source.schema()
"""


def ran(then: str, *, after: str = _BASE) -> list[str]:
    """The modules that `then` brings where those of `after` are there already."""
    program = _PROGRAM.format(before=after, then=then)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


def imported(what: str, *, after: str = _BASE) -> list[str]:
    """The modules that importing `what` brings where those of `after` are there already."""
    return ran(f"import {what}", after=after)


def rooms(loaded: list[str]) -> set[str]:
    """The rooms of ours that have a module in `loaded` (`feed.stream`, `delta`)."""
    ours = (name.split(".")[1:] for name in loaded if name.startswith("tablefeed."))
    return {".".join(parts[:2]) if parts[0] == "feed" else parts[0] for parts in ours if len(parts) > 1}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A Delta table of three commits, which has no checkpoint."""
    for number in range(3):
        tablefeed.append(tmp_path / "t", pa.table({"id": [number]}))
    return tmp_path / "t"


def test_the_shim_imports_nothing_that_the_base_class_did_not() -> None:
    """Spark imports every top-level `pyspark_*` module in each of its Python processes."""
    assert imported("pyspark_tablefeed") == ["pyspark_tablefeed"]


def test_a_process_that_passes_a_stream_reader_on_imports_nothing_that_plans_or_reads() -> None:
    """For each query Spark starts a process that makes a reader and pickles it, and nothing else."""
    loaded = imported("tablefeed.spark.source, tablefeed.spark.analysis", after="pyspark.sql.streaming.datasource")

    assert [name for name in loaded if name.startswith("tablefeed")] == [
        "tablefeed",
        "tablefeed._version",
        "tablefeed.errors",
        "tablefeed.spark",
        "tablefeed.spark.analysis",
        "tablefeed.spark.char",
        "tablefeed.spark.plain_errors",
        "tablefeed.spark.release",
        "tablefeed.spark.source",
        "tablefeed.spark.worker",
    ]


def test_the_schema_of_a_table_is_found_without_pyarrow(table: Path) -> None:
    loaded = ran(_LOADED.format(path=str(table)))

    assert {"pyarrow", "numpy", *_SLOW}.intersection(loaded) == set()
    assert rooms(loaded).isdisjoint({"feed.scan", "feed.upkeep"})


def test_a_planner_that_finds_nothing_new_imports_nothing_that_reads_files_or_computes(table: Path) -> None:
    plan = """
from pyspark.sql.streaming.datasource import ReadAllAvailable
reader = source.streamReader(schema)
end = {{"sourceVersion": 1, "reservoirId": {table_id!r}, "reservoirVersion": 3}}
end |= {{"index": -1, "isStartingVersion": False}}
reader.prepareForTriggerAvailableNow()
assert reader.latestOffset(end, ReadAllAvailable()) == end
reader.reportLatestOffset()
reader.commit(end)
"""
    table_id = tablefeed.open_table(table).table_id

    loaded = ran(_LOADED.format(path=str(table)) + plan.format(table_id=table_id), after=_PLANNER)

    assert _SLOW.intersection(loaded) == set()
    assert rooms(loaded).isdisjoint({"feed.upkeep"})


def test_a_write_is_planned_without_pyarrow_and_without_what_commits(table: Path) -> None:
    plan = f"""
from pyspark.sql.types import LongType, StructType
from pyspark_tablefeed import DefaultSource
DefaultSource({{"path": {str(table)!r}}}).streamWriter(StructType().add("id", LongType()), False)
"""
    loaded = ran(plan)

    assert {"pyarrow", "numpy", *_SLOW}.intersection(loaded) == set()
    assert {"tablefeed.feed.commit.loop", "tablefeed.feed.upkeep.after_commit"}.isdisjoint(loaded)


def test_an_append_is_committed_without_pyarrow(table: Path) -> None:
    """The files are named in the message; the log before has no checkpoint, and none is due."""
    commit = f"""
from pyspark.sql.types import LongType, StructType
from pyspark_tablefeed import DefaultSource
writer = DefaultSource({{"path": {str(table)!r}}}).streamWriter(StructType().add("id", LongType()), False)
from tablefeed.model.actions import AddFile, Txn
from tablefeed.spark.written import Written
file = AddFile(path="a", log_path="a", partition_values={{}}, size_bytes=1, modified_ms=0, data_change=True)
writer.commit([Written(plan=writer._plan.about("q"), files=(file,), txn=Txn(app_id="q", txn_version=0))], 0)
"""
    (table / "a").touch()
    loaded = ran(commit)

    assert tablefeed.open_table(table).txn_version("q") == 0
    assert {"pyarrow", "numpy", *_SLOW}.intersection(loaded) == set()


def test_a_task_that_reads_partitioned_files_imports_neither_pandas_nor_what_plans(tmp_path: Path) -> None:
    """pyarrow imports pandas, where it is installed, for each Python value that it makes a scalar of."""
    rows = pa.table({"id": [1], "day": pa.array([9], pa.date32()), "of": ["a"], "n": pa.array([3], pa.int32())})
    tablefeed.append(tmp_path, rows, partition_by=["day", "of", "n"])
    table = tablefeed.open_table(tmp_path)
    task = table_scan(table._snapshot).of(add for files in table._snapshot.live_files() for add in to_add_files(files))
    schema = rows.schema.append(pa.field("more", pa.int64()))
    (tmp_path / "task").write_bytes(pickle.dumps((task, schema)))
    read = f"""
import pickle
from pathlib import Path
from tablefeed.feed.scan.task import read_task
task, schema = pickle.loads(Path({str(tmp_path / "task")!r}).read_bytes())
assert sum(batch.num_rows for batch in read_task(task, schema)) == 1
"""
    loaded = ran(read, after="pyarrow")

    assert {"pandas", "pyarrow.dataset", *_FOR_SOME}.intersection(loaded) == set()
    assert rooms(loaded).isdisjoint({"feed.stream", "feed.write", "feed.commit", "feed.upkeep"})


def test_a_query_of_delta_tables_imports_of_the_other_log_nothing_but_its_names() -> None:
    loaded = imported(_WRITER_AND_READER)

    of_the_other = [name for name in loaded if "indextables" in name or name.rpartition(".")[2].startswith("index_")]
    assert of_the_other == ["tablefeed.indextables", "tablefeed.indextables.names"]


def test_a_query_imports_neither_what_only_some_tables_need_nor_much_of_ours() -> None:
    loaded = imported(f"{_WRITER_AND_READER}, tablefeed.spark.stream_planner")

    assert _FOR_SOME.intersection(loaded) == set()
    assert len([name for name in loaded if name.startswith("tablefeed")]) <= _MOST
