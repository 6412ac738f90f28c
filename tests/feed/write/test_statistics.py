"""What the log says of files that are written: of which columns, and nothing that a row contradicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablefeed
from support.logs import a_log, col, meta, protocol, said, struct
from tablefeed.errors import IllegalOptionError, SchemaMismatchError
from tablefeed.store import open_store

STRUCT = pa.struct([("x", pa.int64()), ("flags", pa.list_(pa.bool_()))])
ROWS = pa.table(
    {
        "id": [1, 2],
        "st": pa.array([{"x": None, "flags": [True]}, None], STRUCT),
        "ok": [True, None],
        "p": ["a", "a"],
        "name": ["n" * 40, None],
    }
)


def stats_of(path: Path) -> dict[str, Any]:
    """The statistics of the one file of the newest version."""
    (add,) = said(path, tablefeed.open_table(path).version, "add")
    parsed: dict[str, Any] = json.loads(add["stats"])
    return parsed


def test_statistics_are_of_every_column_but_those_that_partition(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, partition_by="p")

    assert stats_of(tmp_path) == {
        "numRecords": 2,
        "minValues": {"id": 1, "st": {}, "name": "n" * 32},
        "maxValues": {"id": 2, "st": {}, "name": "n" * 32 + "\x7f"},
        "nullCount": {"id": 0, "st": {"x": 2, "flags": 1}, "ok": 1, "name": 1},
    }


def test_a_table_says_of_how_many_leaves_there_are_statistics_and_later_writes_obey(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, partition_by="p", properties={"delta.dataSkippingNumIndexedCols": "2"})
    tablefeed.append(tmp_path, ROWS)

    assert stats_of(tmp_path) == {
        "numRecords": 2,
        "minValues": {"id": 1, "st": {}},
        "maxValues": {"id": 2, "st": {}},
        "nullCount": {"id": 0, "st": {"x": 2}},
    }


def test_a_table_says_of_which_columns_there_are_statistics_and_how_long_their_texts_are(tmp_path: Path) -> None:
    properties = {
        "delta.dataSkippingStatsColumns": "NAME, `st`.flags",
        "delta.dataSkippingStringPrefixLength": "3",
        "delta.columnMapping.mode": "name",
    }
    tablefeed.append(tmp_path, ROWS, properties=properties)
    tablefeed.append(tmp_path, ROWS)

    stats = stats_of(tmp_path)
    (name,) = stats["minValues"]
    assert name.startswith("col-")
    assert (stats["minValues"], stats["maxValues"]) == ({name: "nnn"}, {name: "nnn\x7f"})
    inner = next(count for count in stats["nullCount"].values() if isinstance(count, dict))
    assert list(inner.values()) == [1]
    assert stats["nullCount"][name] == 1
    assert len(stats["nullCount"]) == 2


def test_a_table_without_indexed_columns_has_counts_alone_and_with_deletion_vectors_says_that_bounds_are_tight(
    tmp_path: Path,
) -> None:
    properties = {"delta.dataSkippingNumIndexedCols": "0", "delta.enableDeletionVectors": "true"}
    tablefeed.append(tmp_path, ROWS, properties=properties)

    assert stats_of(tmp_path) == {"numRecords": 2, "tightBounds": True}


def test_a_column_without_a_type_is_counted_null_although_no_file_has_it(tmp_path: Path) -> None:
    nothing = col("nothing", "void")
    told = meta(col("id"), nothing, col("st", struct(col("x"), nothing)))
    a_log(open_store(str(tmp_path)), v0=[protocol(), told])

    tablefeed.append(tmp_path, pa.table({"id": [1, 2], "st": [{"x": 1}, None]}))

    assert stats_of(tmp_path)["nullCount"] == {"id": 0, "nothing": 2, "st": {"x": 1, "nothing": 2}}
    assert tablefeed.open_table(tmp_path).to_arrow()["id"].to_pylist() == [1, 2]
    (file,) = tmp_path.glob("*.parquet")
    assert [column.path for column in pq.ParquetFile(file).schema] == ["id", "st.x"]


@pytest.mark.parametrize("named", ["p", "ok", "gone", "st.y", "id, id", "st, st.x"])
def test_no_table_is_made_that_names_a_column_which_can_have_no_statistics(tmp_path: Path, named: str) -> None:
    with pytest.raises(SchemaMismatchError, match=r"delta\.dataSkippingStatsColumns"):
        tablefeed.append(tmp_path, ROWS, partition_by="p", properties={"delta.dataSkippingStatsColumns": named})
    assert list(tmp_path.iterdir()) == []


def test_a_list_of_columns_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IllegalOptionError, match="list of columns"):
        tablefeed.append(tmp_path, ROWS, properties={"delta.dataSkippingStatsColumns": "id name"})


def test_an_overwrite_keeps_the_columns_that_the_table_names_for_statistics(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, properties={"delta.dataSkippingStatsColumns": "name"})

    with pytest.raises(SchemaMismatchError, match="no column 'name'"):
        tablefeed.append(tmp_path, ROWS.drop_columns("name"), mode="overwrite", overwrite_schema=True)
    tablefeed.append(tmp_path, ROWS.drop_columns("ok"), mode="overwrite", overwrite_schema=True)

    assert list(stats_of(tmp_path)["nullCount"]) == ["name"]
