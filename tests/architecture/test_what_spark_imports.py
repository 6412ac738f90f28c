"""What Spark's Python processes import for us: each of them pays for it, and each query starts some."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys
import {before}
before = set(sys.modules)
import {after}
print(*sorted(set(sys.modules) - before))
"""

_WRITER_AND_READER = "tablefeed.spark.analysis, tablefeed.spark.sink, tablefeed.spark.source"
_MOST = 160
"""Modules and packages of ours for a query from table to table."""


def imported(what: str, *, after: str) -> list[str]:
    """The modules that `what` brings where those of `after` are there already."""
    program = _PROGRAM.format(before=after, after=what)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


def test_the_shim_imports_nothing_that_the_base_class_did_not() -> None:
    """Spark imports every top-level `pyspark_*` module in each of its Python processes."""
    assert imported("pyspark_tablefeed", after="pyspark.sql.datasource") == ["pyspark_tablefeed"]


def test_a_query_of_delta_tables_imports_of_the_other_log_nothing_but_its_names() -> None:
    loaded = imported(_WRITER_AND_READER, after="pyspark.sql.datasource")

    of_the_other = [name for name in loaded if "indextables" in name or name.rpartition(".")[2].startswith("index_")]
    assert of_the_other == ["tablefeed.indextables", "tablefeed.indextables.names"]


def test_a_query_imports_neither_what_only_some_tables_need_nor_much_of_ours() -> None:
    loaded = imported(_WRITER_AND_READER, after="pyspark.sql.datasource")

    for_some = {"duckdb", "fastavro", "fsspec", "gzip", "s3fs", "sqlglot", "tantivy", "watchfiles"}
    assert for_some.intersection(loaded) == set()
    assert len([name for name in loaded if name.startswith("tablefeed")]) <= _MOST
