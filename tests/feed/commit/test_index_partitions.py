"""A partition's value that may be written to an IndexTables table is read back as it is, whatever its type."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tablefeed
from support.commits import still, written
from support.index_tables import live, log_of, rows_of
from tablefeed.errors import InvalidRowsError, UnsupportedFeatureError
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.write.sink import write_task
from tablefeed.feed.write.write_plan import SplitPlan
from tablefeed.indextables import names
from tablefeed.indextables.log import version_file
from tablefeed.indextables.log.version_file import Writer
from tablefeed.indextables.split.indexing import Indexing, Style
from tablefeed.model.actions import AddFile, Version

UTC_US = pa.timestamp("us", "UTC")
FIRST, LAST = datetime(1678, 1, 1), datetime(2262, 1, 1)  # noqa: DTZ001 - a split holds nanoseconds since 1970
MOMENTS = st.datetimes(FIRST, LAST, timezones=st.just(UTC))
WRITTEN: Mapping[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(FIRST.date(), LAST.date()),
    UTC_US: MOMENTS | MOMENTS.map(lambda moment: moment.replace(microsecond=0)),
    pa.string(): st.text(max_size=40)
    | st.sampled_from(["", " ", "a b/c:d%", "%41", "__HIVE_DEFAULT_PARTITION__", "2024-01-01 00:00:00", "9", "null"]),
}


@pytest.mark.parametrize("kind", WRITTEN, ids=str)
@settings(max_examples=5)
@given(data=st.data())
def test_a_value_that_the_log_alone_tells_is_read_back_or_refused_before_it_is_committed(
    kind: pa.DataType, data: st.DataObject
) -> None:
    value = data.draw(WRITTEN[kind] | st.none())
    rows = pa.table({"id": pa.array([1], pa.int64()), "p": pa.array([value], kind)})

    with TemporaryDirectory() as directory:
        table = Path(directory) / "table"
        try:
            write_by_arrow(table, rows)
        except InvalidRowsError:
            assert rows_of(table) == []
            assert not [*table.rglob("*.split")]
        else:
            assert rows_of(table) == sorted(map(repr, rows.to_pylist()))


def test_the_writer_by_arrow_knows_whole_seconds_alone(tmp_path: Path) -> None:
    moments = (datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, microsecond=1, tzinfo=UTC))
    whole, part = (pa.table({"id": [1], "p": pa.array([moment], UTC_US)}) for moment in moments)

    write_by_arrow(tmp_path / "whole", whole)
    with pytest.raises(InvalidRowsError, match="no IndexTables log can hold"):
        write_by_arrow(tmp_path / "part", part)

    assert [add.partition_values for add in live(tmp_path / "whole")] == [{"p": "2024-01-01 00:00:00"}]


def write_by_arrow(table: Path, rows: pa.Table) -> None:
    """Appends `rows` to a new table whose splits leave the partition column `p` out."""
    tablefeed.append(table, rows.slice(0, 0), table_format="indextables", partition_by=["p"])
    log = log_of(table)
    empty = written(log, rows.slice(0, 0))
    assert isinstance(empty.plan, SplitPlan)
    plan = replace(empty.plan, indexing=Indexing(style=Style.ARROW, columns=("id",)))
    files = write_task(plan, rows.to_batches(), task=0, now_ms=1)
    commit(log, None, replace(empty, plan=plan, files=files), still())


@pytest.mark.parametrize("kind", WRITTEN, ids=str)
@settings(max_examples=5)
@given(data=st.data())
def test_every_partition_type_that_is_written_is_read_back(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(WRITTEN[kind] | st.none(), min_size=1, max_size=4))
    rows = pa.table({"id": pa.array(range(len(values)), pa.int64()), "p": pa.array(values, kind)})

    with TemporaryDirectory() as directory:
        table = Path(directory) / "table"
        tablefeed.append(table, rows, table_format="indextables", partition_by=["p"])

        assert rows_of(table) == sorted(map(repr, rows.to_pylist()))
        asked = pc.field("p") == pa.scalar(values[0], kind)
        kept = tablefeed.open_table(table).to_arrow(filter=asked).to_pylist()
        assert sorted(map(repr, kept)) == sorted(map(repr, rows.filter(asked).to_pylist()))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.decimal128(9, 2), Decimal("1.50")),
        (pa.timestamp("us"), FIRST),
        (pa.int16(), 1),
        (pa.int8(), 1),
        (pa.binary(), b""),
    ],
    ids=str,
)
def test_a_partition_type_that_indextables_does_not_write_is_refused_before_a_file_is_written(
    kind: pa.DataType, value: object, tmp_path: Path
) -> None:
    rows = pa.table({"id": [1], "p": pa.array([value], kind)})

    with pytest.raises(UnsupportedFeatureError, match="column p is"):
        tablefeed.append(tmp_path / "table", rows, table_format="indextables", partition_by=["p"])
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize("text", ["2024-01-01T00:00:00Z", "2024-01-01T00%3A00%3A00Z", "2024-01-01 00:00:00"])
def test_a_timestamp_that_the_split_stores_is_read_whatever_its_writer_calls_the_partition(
    tmp_path: Path, text: str
) -> None:
    table = tmp_path / "table"
    rows = pa.table({"id": [1], "p": pa.array([datetime(2024, 1, 1, tzinfo=UTC)], UTC_US)})
    tablefeed.append(table, rows, table_format="indextables", partition_by=["p"])

    call_partition(table, {"p": text})

    assert rows_of(table) == sorted(map(repr, rows.to_pylist()))


def test_a_timestamp_is_called_as_java_calls_an_instant(tmp_path: Path) -> None:
    moments = [datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2024, 1, 1, microsecond=500_000, tzinfo=UTC)]
    rows = pa.table({"id": [1, 2], "p": pa.array(moments, UTC_US)})

    tablefeed.append(tmp_path / "table", rows, table_format="indextables", partition_by=["p"])

    texts = {add.partition_values["p"] for add in live(tmp_path / "table")}
    assert texts == {"1969-12-31T23:59:59Z", "2024-01-01T00:00:00.500Z"}


def call_partition(table: Path, values: Mapping[str, str]) -> None:
    """Gives the files of version 1 other partition values, in a log of commits alone."""
    log = table / names.LOG_DIR
    commit = log_of(table).commit(Version(1))
    assert commit is not None
    files = tuple(
        replace(add, log_path=add.path, partition_values=values) for add in commit.files if isinstance(add, AddFile)
    )
    for state in log.glob("state-v*"):
        shutil.rmtree(state)
    (log / names.LAST_CHECKPOINT).unlink()
    data = version_file.encode_commit(replace(commit, files=files), writer=Writer.SCALA)
    (log / names.commit_name(1)).write_bytes(data)
