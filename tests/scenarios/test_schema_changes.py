"""A table whose schema changes before, under or after a DataFrame (DeltaSourceSuite)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType

from scenarios.streams import append, commit, mapped, stream
from support.logs import Action, add, metadata, protocol
from support.recorded import data_file, schema
from tablefeed.errors import SchemaChangedError, TablefeedError

ID, MORE = ("id", "string"), ("newcol", "string")
CHANGED = "DELTA_SCHEMA_CHANGED_WITH_VERSION"
INCOMPATIBLE = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
WIDENING = protocol(3, 7, readerFeatures=["typeWidening"], writerFeatures=["typeWidening"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return tmp_path / "table"


def test_the_schema_may_change_before_a_streaming_query_starts(table: Path) -> None:
    append(table, id=["0"])
    append(table, id=["1"])
    append(table, id=["2"], value=["2"])
    query = stream(table)

    query.run()

    assert query.rows == [("0", None), ("1", None), ("2", "2")]


def test_the_schema_may_not_change_after_a_streaming_query_started(table: Path) -> None:
    two_strings(table)
    query = stream(table)
    live = query.start()
    live.processAllAvailable()
    commit(table, 3, metadata(schema(("id", "integer"), ("value", "integer"))))

    with pytest.raises(SchemaChangedError) as caught:
        live.processAllAvailable()
    assert caught.value.error_class == CHANGED


# --- a restart, with a new DataFrame or the one from before ----------------------------------------------------------


def two_strings(table: Path, *, nullable: bool = True) -> None:
    commit(table, 0, protocol(), metadata(schema(ID, nullable=nullable)))
    for version in (1, 2):
        commit(table, version, add(data_file(table, f"{version}.parquet", id=[str(version)])))


def test_add_column_restarting_with_a_new_data_frame_recovers(table: Path) -> None:
    two_strings(table)
    query = stream(table)
    live = query.start()
    live.processAllAvailable()
    commit(table, 3, metadata(schema(ID, MORE)))
    commit(table, 4, add(data_file(table, "4.parquet", id=["10"], newcol=["a"])))

    with pytest.raises(SchemaChangedError) as caught:
        live.processAllAvailable()
    assert caught.value.error_class == CHANGED
    assert query.run() == [[("10", "a")]]


def test_add_column_restarting_with_a_stale_data_frame_fails(table: Path) -> None:
    two_strings(table)
    query = stream(table)
    stale = query.frame()
    query.run(stale)
    commit(table, 3, metadata(schema(ID, MORE)))
    commit(table, 4, add(data_file(table, "4.parquet", id=["10"], newcol=["a"])))

    for _ in range(2):
        with pytest.raises(SchemaChangedError) as caught:
            query.run(stale)
        assert caught.value.error_class == CHANGED
    assert query.rows == ["1", "2"]


def test_relax_nullability_restarting_with_a_new_data_frame_recovers(table: Path) -> None:
    two_strings(table, nullable=False)
    query = stream(table)
    live = query.start()
    live.processAllAvailable()
    commit(table, 3, metadata(schema(ID)))
    commit(table, 4, add(data_file(table, "4.parquet", id=pa.array([None], pa.string()))))

    with pytest.raises(SchemaChangedError) as caught:
        live.processAllAvailable()
    assert caught.value.error_class == CHANGED
    query.run()
    assert query.rows == [None, "1", "2"]


def test_handling_nullability_schema_changes(table: Path) -> None:
    """What may be null is read over the change by a new DataFrame, and not where the newest schema forbids nulls."""
    two_strings(table, nullable=False)
    query = stream(table)
    query.run()
    live = query.start()
    commit(table, 3, add(data_file(table, "3.parquet", id=["3"])))
    commit(table, 4, metadata(schema(ID)))
    commit(table, 5, add(data_file(table, "5.parquet", id=["5"])))
    with pytest.raises(SchemaChangedError):
        live.processAllAvailable()
    query.run()
    assert query.rows == ["1", "2", "3", "5"]
    commit(table, 6, metadata(schema(ID, nullable=False)))
    commit(table, 7, add(data_file(table, "7.parquet", id=["7"])))

    with pytest.raises(SchemaChangedError) as caught:
        stream(table, startingVersion="5").run()
    assert caught.value.error_class == "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"


def widened(table: Path) -> None:
    commit(table, 3, metadata(schema(("id", "long")), configuration={"delta.enableTypeWidening": "true"}))
    commit(table, 4, add(data_file(table, "4.parquet", id=pa.array([2**31], pa.int64()))))


def two_integers(table: Path) -> None:
    commit(table, 0, WIDENING, metadata(schema(("id", "integer")), configuration={"delta.enableTypeWidening": "true"}))
    for version in (1, 2):
        commit(table, version, add(data_file(table, f"{version}.parquet", id=pa.array([version], pa.int32()))))


def test_type_widening_restarting_with_a_new_data_frame_recovers(table: Path) -> None:
    two_integers(table)
    query = stream(table)
    live = query.start()
    live.processAllAvailable()
    widened(table)

    with pytest.raises(SchemaChangedError) as caught:
        live.processAllAvailable()
    assert caught.value.error_class == CHANGED
    assert query.frame().schema["id"].dataType == LongType()
    query.run()
    assert query.rows == [1, 2, 2**31]


def test_a_stale_data_frame_does_not_go_on_over_a_change_that_its_rows_would_not_keep_to(tmp_path: Path) -> None:
    """Nulls in a column that it says has none, or numbers beyond its type."""
    two_strings(tmp_path / "relaxed", nullable=False)
    two_integers(tmp_path / "widened")
    queries = [stream(tmp_path / name) for name in ("relaxed", "widened")]
    stale = [query.frame() for query in queries]
    for query, frame in zip(queries, stale, strict=True):
        query.run(frame)
    commit(queries[0].table, 3, metadata(schema(ID)))
    widened(queries[1].table)

    for query, frame in zip(queries, stale, strict=True):
        for _ in range(2):
            with pytest.raises(SchemaChangedError) as caught:
                query.run(frame)
            assert caught.value.error_class == CHANGED


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param(schema(ID, MORE), id="snapshotHasExtraColumn"),
        pytest.param(schema(("other", "string")), id="analysisHasExtraColumn, columnRenamed"),
        pytest.param(schema(("id", "long")), id="columnTypeChanged"),
        pytest.param(schema(("ID", "string")), id="columnNameCaseDiffers"),
    ],
)
def test_a_stale_data_frame_is_refused_though_its_query_went_past_the_change(table: Path, columns: str) -> None:
    two_strings(table)
    query = stream(table)
    stale = query.frame()
    query.run(stale)
    commit(table, 3, metadata(columns))
    commit(table, 4, add(data_file(table, "4.parquet", id=["4"])))
    query.stand_at(4)

    with pytest.raises(SchemaChangedError) as caught:
        query.run(stale)
    assert caught.value.error_class == CHANGED
    assert query.rows == ["1", "2"]


def test_a_stale_data_frame_of_the_same_columns_goes_on(table: Path) -> None:
    """A struct among them, and a partition at the end."""
    inner = {"type": "struct", "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}]}
    columns = schema(("id", "long"), ("data", inner), ("part", "long"))

    def write(version: int) -> None:
        data = pa.array([{"x": version}], pa.struct({"x": pa.int32()}))
        file = data_file(table, f"{version}.parquet", id=[version], data=data)
        commit(table, version, add(file, partitionValues={"part": "7"}))

    commit(table, 0, protocol(), metadata(columns, partition_columns=["part"]))
    write(1)
    query = stream(table)
    stale = query.frame()
    query.run(stale)
    properties = {"delta.appendOnly": "true"}
    commit(table, 2, metadata(columns, partition_columns=["part"], configuration=properties))
    write(3)

    query.run(stale)

    assert query.batches == [[(1, {"x": 1}, 7)], [(3, {"x": 3}, 7)]]


# --- columns that go or get another name -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "then", [mapped(id=(1, "string")), mapped(id=(1, "string"), renamed_value=(2, "string"))], ids=["drop", "rename"]
)
def test_drop_or_rename_column_fails_with_the_non_additive_schema_change_error(table: Path, then: Action) -> None:
    commit(table, 0, protocol(2, 5), mapped(id=(1, "string"), value=(2, "string")))
    commit(table, 1, add(data_file(table, "1.parquet", **{"col-1": ["1"], "col-2": ["a"]})))
    query = stream(table)
    live = query.start()
    live.processAllAvailable()
    commit(table, 2, then)

    with pytest.raises(SchemaChangedError) as caught:
        live.processAllAvailable()
    assert caught.value.error_class == INCOMPATIBLE


def test_no_schema_throws_an_exception(table: Path) -> None:
    (table / "_delta_log").mkdir(parents=True)

    with pytest.raises(TablefeedError) as caught:
        stream(table).frame()
    assert caught.value.error_class == "DELTA_SCHEMA_NOT_SET"
