"""Statistics and partition values of other writers: no file is pruned that has a row which a filter lets through.

Each column of each table is asked for with filters of its own values, file by file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from support.corpus import corpus_folder
from tablefeed.delta.columns import to_add_files
from tablefeed.errors import TablefeedError
from tablefeed.feed.scan.arrow_filter import read_filter
from tablefeed.feed.scan.pruning import Pruner
from tablefeed.feed.scan.table_scan import table_scan
from tablefeed.feed.scan.task import read_task
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.actions import AddFile

_FOLDER = corpus_folder()
_TABLES = set(json.loads((_FOLDER / "delta" / "expected.json").read_text("utf-8"))["tables"]) if _FOLDER else set()
_TABLES -= {"kernelrs-data-tar/300k-add-files-100-col-partitioned"}  # it has no data, and takes seconds

MOST_FILES = 200
"""Of one table: some have hundreds of thousands, and no data."""

PRUNED = {
    "dat/multi_partitioned",
    "delta-golden/data-skipping-basic-stats-all-types",
    "delta-golden/data-skipping-basic-stats-all-types-columnmapping-id",
    "delta-golden/dv-with-columnmapping",
    "delta-golden/type-widening",
    "deltars/delta-0.8.0-partitioned",
    "deltars/delta-2.2.0-partitioned-types",
    "deltars/partition-type-primitives",
    "kernelrs-data/parsed-stats",
    "kernelrs-data/timestamp-truncation-stats",
}
"""Tables of which some filter has to rule a file out, whatever else."""

MISTOLD = {("kernelrs-data/parsed-stats", "ts_col")}
"""Columns that the files have not, of which statistics tell all the same: made by hand, for a test of parsing."""

Files = list[tuple[AddFile, pa.Table]]


@pytest.mark.parametrize("table", sorted(_TABLES) or ["the corpus is absent"])
def test_no_file_is_pruned_that_has_a_row_to_give(corpus: Path, table: str) -> None:
    try:
        snapshot = open_log(str(corpus / "delta" / table)).load()
        files = list(_rows_of_files(snapshot))
    except TablefeedError:  # refused, or without data: test_delta_tables.py knows which
        assert table not in PRUNED
        return
    leaves = [(path, column) for path, column in _leaves(snapshot, files) if (table, path[0]) not in MISTOLD]
    ruled_out = sum(_asked(snapshot, files, condition) for leaf in leaves for condition in _filters(*leaf))

    assert ruled_out > 0 or table not in PRUNED


def _rows_of_files(snapshot: Snapshot) -> Iterator[tuple[AddFile, pa.Table]]:
    scan, schema = table_scan(snapshot), snapshot.arrow_schema
    adds = (add for batch in snapshot.live_files(with_stats=True) for add in to_add_files(batch.slice(0, MOST_FILES)))
    for add in islice(adds, MOST_FILES):
        yield add, pa.Table.from_batches(read_task(scan.of([add]), schema, store=snapshot.log.store), schema)


def _filters(path: tuple[str, ...], column: pa.ChunkedArray) -> Iterator[pc.Expression]:
    name = pc.field(*path)
    yield name.is_null()
    values = column.drop_null().unique()
    # Three values: as arrays of one, since Python's dates do not reach to some.
    picked = sorted({0, len(values) // 2, len(values) - 1}) if len(values) else []
    for value in (values.slice(index, 1) for index in picked):
        yield from (name == value[0], name != value[0], name < value[0], name >= value[0], ~(name >= value[0]))
        yield name.isin(value)


def _leaves(snapshot: Snapshot, files: Files) -> Iterator[tuple[tuple[str, ...], pa.ChunkedArray]]:
    rows = pa.concat_tables([snapshot.arrow_schema.empty_table(), *(rows for _, rows in files)])
    for field in rows.schema:
        if pa.types.is_struct(field.type):
            for index, member in enumerate(field.type):
                if not pa.types.is_nested(member.type):
                    yield (field.name, member.name), pc.struct_field(rows[field.name], [index])
        elif not pa.types.is_nested(field.type):
            yield (field.name,), rows[field.name]


def _asked(snapshot: Snapshot, files: Files, condition: pc.Expression) -> int:
    """How many files are ruled out, none of them wrongly."""
    columns = table_scan(snapshot).columns
    pruner = Pruner(read_filter(condition, snapshot.arrow_schema), schema=snapshot.schema, columns=columns)
    chosen = pruner.choose([add.partition_values for add, _ in files], [add.stats for add, _ in files])
    for (add, rows), may in zip(files, chosen, strict=True):
        assert may or _matching(rows, condition) == 0, f"{add.path} by {condition}: {add.stats}"
    return len(files) - sum(chosen)


def _matching(rows: pa.Table, condition: pc.Expression) -> int:
    try:
        return int(rows.filter(condition).num_rows)
    except pa.ArrowException:  # a comparison that Arrow has not: nobody can read by it
        return 0
