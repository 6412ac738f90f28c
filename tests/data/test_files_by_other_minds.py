"""What is written here, another reader reads and prunes right; what other writers wrote, is read here."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from support.logs import add, commit_path, metadata, protocol
from tablefeed.data.read import FileColumns, ReadPlan, read_batches
from tablefeed.data.write import FileLayout, NewFile, write_files
from tablefeed.delta.schema.arrow_schema import from_arrow, to_arrow
from tablefeed.delta.schema.schema_string import format_schema, parse_schema
from tablefeed.delta.stats.stats_text import StatisticsShape, encode_stats
from tablefeed.store import LocalStore

SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("s", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("d", pa.decimal128(9, 2)),
    ]
)
LEAVES = tuple((name,) for name in SCHEMA.names)
SHAPE = StatisticsShape(leaves=LEAVES, bounded=LEAVES)


def committed(folder: Path, files: Sequence[Sequence[Mapping[str, Any]]]) -> DeltaTable:
    """A table of one commit with one file for each sequence of rows, opened by delta-rs."""
    adds = []
    for number, rows in enumerate(files):
        path = f"part-{number}.parquet"
        new = NewFile(path=path, opened=(folder / path).open("wb"))
        batches = pa.Table.from_pylist(list(rows), schema=SCHEMA).to_batches()
        (file,) = write_files(batches, FileLayout(schema=SCHEMA), lambda *_, new=new: new)
        adds.append(add(path, size=file.size_bytes, stats=encode_stats(file.statistics, SHAPE)))
    actions = [protocol(), metadata(format_schema(from_arrow(SCHEMA))), *adds]
    # delta-rs misreads a character that JSON escapes as two.
    lines = [json.dumps(action, ensure_ascii=False) + "\n" for action in actions]
    LocalStore(str(folder)).replace(commit_path(0), "".join(lines).encode())
    return DeltaTable(str(folder))


# U+10FFFF has no bound above it: where it fills a prefix the maximum is absent, which delta-rs takes for a bound.
LETTERS = st.characters(codec="utf-8", exclude_characters="\U0010ffff")
TEXTS = st.text(LETTERS, max_size=5) | st.sampled_from(["a", "é", "\uffff", "\U00010000"]).map(lambda c: c * 40)
TIMES = st.integers(-3000, 3000).map(lambda us: datetime.fromtimestamp(0, UTC).replace(microsecond=us % 3000))
ROWS = st.fixed_dictionaries(
    {
        "row": st.integers(0, 9),
        "x": st.none() | st.sampled_from([-1.5, -0.0, 0.0, 2.5, math.inf, -math.inf]),
        "f": st.none() | st.sampled_from([0.5, 0.1, -3.0]),
        "s": st.none() | TEXTS,
        "t": st.none() | TIMES,
        "d": st.none() | st.integers(-300, 300).map(lambda n: Decimal(n) / 100),
    }
)


@settings(max_examples=15)
@given(st.lists(st.lists(ROWS, min_size=1, max_size=4), min_size=1, max_size=4), st.data())
def test_delta_rs_prunes_no_row_that_a_filter_wants(files: list[list[dict[str, Any]]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        dataset = committed(Path(name), files).to_pyarrow_dataset()
        everything = dataset.to_table()
        assert everything.num_rows == sum(map(len, files))
        for column in SCHEMA.names:
            wanted = data.draw(st.sampled_from([row[column] for rows in files for row in rows]))
            if wanted is None:
                conditions = [pc.field(column).is_null()]
            else:
                value, here = pa.scalar(wanted, SCHEMA.field(column).type), pc.field(column)
                conditions = [here == value, here >= value, here <= value, here > value, here < value]
            for condition in conditions:
                assert dataset.to_table(filter=condition).num_rows == everything.filter(condition).num_rows


def test_a_reader_for_whom_nan_is_the_largest_finds_it(tmp_path: Path) -> None:
    nan = {"row": 0, "x": math.nan}
    table = committed(tmp_path, [[{"row": 1, "x": 1.0}, nan], [{"row": 2, "x": -0.0}], [nan, {"row": 3, "x": None}]])

    def count(condition: str) -> int:
        query = QueryBuilder().register("t", table).execute(f"SELECT row FROM t WHERE {condition}")  # noqa: S608
        return sum(len(batch) for batch in pa.table(query).to_batches())

    assert [count(c) for c in ("x > 5", "isnan(x)", "x <= 0", "x >= 1", "x IS NULL")] == [2, 2, 1, 3, 1]


def test_a_timestamp_between_two_milliseconds_is_found(tmp_path: Path) -> None:
    moment = datetime(2024, 1, 1, 0, 0, 0, 123_456, UTC)
    dataset = committed(tmp_path, [[{"row": 1, "t": moment}]]).to_pyarrow_dataset()
    assert dataset.to_table(filter=pc.field("t") == pa.scalar(moment, SCHEMA.field("t").type)).num_rows == 1


PLAIN_TABLES = [
    "dat/all_primitive_types",
    "dat/multi_partitioned",
    "dat/partitioned_with_null",
    "dat/with_schema_change",
    "delta-golden/124-decimal-decode-bug",
    "delta-golden/data-reader-array-complex-objects",
    "delta-golden/data-reader-array-primitives",
    "delta-golden/data-reader-date-types-PST",
    "delta-golden/data-reader-nested-struct",
    "delta-golden/hive/deltatbl-column-names-case-insensitive",
    "delta-golden/hive/deltatbl-map-types-correctly",
    "delta-golden/kernel-timestamp-TIMESTAMP_MILLIS",
    "delta-golden/parquet-all-types",
    "delta-golden/parquet-all-types-legacy-format",
    "delta-golden/time-travel-schema-changes-b",
    "deltars/delta-2.2.0-partitioned-types",
    "delta-golden/snapshot-data3",
    "delta-golden/time-travel-start",
    "deltars/http_requests",
    "deltars/simple_table",
    "kernelrs-data/external-table-different-nullability",
    "kernelrs-data/timestamp-truncation-stats",
]


@pytest.mark.parametrize("name", PLAIN_TABLES)
def test_the_files_of_other_writers_hold_what_delta_rs_finds_in_them(name: str, corpus: Path) -> None:
    folder = corpus / "delta" / name
    table = DeltaTable(str(folder))
    schema = to_arrow(parse_schema(table.schema().to_json()))
    stored = pa.schema([field for field in schema if field.name not in table.metadata().partition_columns])
    plan = ReadPlan(schema=stored, batch_rows=1000)
    paths = pa.table(table.get_add_actions()).column("path").to_pylist()
    batches = [
        batch
        for path in map(unquote, paths)
        for batch in read_batches(str(folder / path), plan, FileColumns(path=path))
    ]
    ours = pa.Table.from_batches(batches, schema=stored)
    theirs = table.to_pyarrow_table(columns=stored.names)
    assert ours.num_rows > 0
    assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, theirs.to_pylist()))
