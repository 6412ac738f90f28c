"""Tables that a write makes clustered: what their logs say, what they cannot be, and that a later write agrees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from support.logs import a_log, a_write, actions_of, add, metadata, protocol, put, said, still
from tablefeed.errors import (
    ConflictError,
    ConflictingOptionsError,
    IllegalOptionError,
    OptionError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from tablefeed.feed.commit.loop import commit
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.write.write_rules import WriteRules

ROWS = pa.table(
    {
        "id": [1, 2],
        "Place": [{"city": "a", "at": {"x": 1.5}}, {"city": "b", "at": None}],
        "ok": [True, False],
        "tags": [["t"], []],
        "raw": [b"1", b"2"],
    }
)


def domains(table: Path, version: int) -> list[Any]:
    return [(each["domain"], json.loads(each["configuration"])) for each in said(table, version, "domainMetadata")]


def test_the_log_of_the_table_says_by_which_columns_as_delta_spark_does(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, cluster_by=["ID", "place.at.X"])

    assert domains(tmp_path, 0) == [
        (
            "delta.clustering",
            {"clusteringColumns": [["id"], ["Place", "at", "x"]], "domainName": "delta.clustering"},
        )
    ]
    assert said(tmp_path, 0, "protocol") == [
        {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": WITH_CLUSTERING}
    ]
    assert said(tmp_path, 0, "metaData")[0]["configuration"] == {}
    assert tablefeed.open_table(tmp_path).to_arrow().num_rows == 2


WITH_CLUSTERING = ["appendOnly", "clustering", "domainMetadata", "invariants"]


def test_columns_of_a_mapped_table_are_named_as_its_files_name_them(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, cluster_by="place.city", properties={"delta.columnMapping.mode": "name"})

    fields = {f["name"]: f for f in json.loads(said(tmp_path, 0, "metaData")[0]["schemaString"])["fields"]}
    place = fields["Place"]
    city = next(f for f in place["type"]["fields"] if f["name"] == "city")
    path = [each["metadata"]["delta.columnMapping.physicalName"] for each in (place, city)]
    assert domains(tmp_path, 0)[0][1]["clusteringColumns"] == [path]
    stats = json.loads(said(tmp_path, 0, "add")[0]["stats"])
    assert stats["minValues"][path[0]][path[1]] == "a"


def test_rows_that_track_ids_and_clustering_each_have_their_domain(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, cluster_by=["id"], properties={"delta.enableRowTracking": "true"})

    assert sorted(name for name, _ in domains(tmp_path, 0)) == ["delta.clustering", "delta.rowTracking"]


def test_a_name_with_a_dot_stands_in_backticks(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"a.b": [1], "c": [2]}), cluster_by=["`a.b`"])

    assert domains(tmp_path, 0)[0][1]["clusteringColumns"] == [["a.b"]]


@pytest.mark.parametrize(
    ("columns", "error_class"),
    [
        (["nothing"], "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (["Place.nothing"], "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (["id.x"], "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (["tags.element"], "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (["Place"], "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        (["id", "ok"], "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        (["tags"], "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        (["raw"], "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        (["id", "ID"], "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (["id", "Place.city", "Place.at.x", "ok", "raw"], "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
        (["id,Place.city"], "DELTA_ILLEGAL_OPTION"),
        (["a..b"], "DELTA_ILLEGAL_OPTION"),
        ([""], "DELTA_ILLEGAL_OPTION"),
    ],
)
def test_columns_that_cannot_cluster_are_refused_by_name_and_no_table_is_made(
    tmp_path: Path, columns: list[str], error_class: str
) -> None:
    with pytest.raises(IllegalOptionError, match=error_class):
        tablefeed.append(tmp_path / "t", ROWS, cluster_by=columns)

    assert not (tmp_path / "t" / "_delta_log").exists()


@pytest.mark.parametrize(
    ("properties", "column", "is_taken"),
    [
        ({}, "c31", True),
        ({}, "c32", False),
        ({"delta.dataSkippingNumIndexedCols": "1"}, "c1", False),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, "c39", True),
        ({"delta.dataSkippingStatsColumns": "c39"}, "c39", True),
        ({"delta.dataSkippingStatsColumns": "c39"}, "c0", False),
    ],
)
def test_a_column_of_which_the_table_has_no_statistics_is_refused(
    tmp_path: Path,
    properties: dict[str, str],
    column: str,
    is_taken: bool,  # noqa: FBT001
) -> None:
    rows = pa.table({f"c{number}": [1] for number in range(40)})

    if is_taken:
        tablefeed.append(tmp_path, rows, cluster_by=[column], properties=properties)
        assert json.loads(said(tmp_path, 0, "add")[0]["stats"])["minValues"][column] == 1
    else:
        with pytest.raises(IllegalOptionError, match="DELTA_CLUSTERING_COLUMN_MISSING_STATS"):
            tablefeed.append(tmp_path, rows, cluster_by=[column], properties=properties)


def test_a_table_is_clustered_or_partitioned(tmp_path: Path) -> None:
    with pytest.raises(ConflictingOptionsError, match="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY"):
        tablefeed.append(tmp_path, ROWS, cluster_by=["id"], partition_by=["ok"])


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_table_that_is_there_is_clustered_by_the_same_columns_or_the_write_is_refused(
    tmp_path: Path, mode: Any
) -> None:
    tablefeed.append(tmp_path, ROWS, cluster_by=["id", "Place.city"])

    tablefeed.append(tmp_path, ROWS, mode=mode, cluster_by=["ID", "place.city"])
    tablefeed.append(tmp_path, ROWS, mode=mode)
    for columns in (["id"], ["Place.city", "id"]):
        with pytest.raises(SchemaMismatchError, match=r"is clustered by id, Place\.city, not by") as caught:
            tablefeed.append(tmp_path, ROWS, mode=mode, cluster_by=columns)
        assert caught.value.error_class == "DELTA_CLUSTERING_COLUMNS_MISMATCH"
    with pytest.raises(OptionError):
        tablefeed.append(tmp_path, ROWS, mode=mode, cluster_by=["nothing"])

    assert tablefeed.open_table(tmp_path).version == 2
    assert domains(tmp_path, 1) == []


def test_a_table_that_is_not_clustered_does_not_become_so(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS)

    with pytest.raises(SchemaMismatchError, match="clustered by no column, not by id"):
        tablefeed.append(tmp_path, ROWS, cluster_by=["id"])


def test_a_property_does_not_make_a_table_clustered(tmp_path: Path) -> None:
    with pytest.raises((IllegalOptionError, UnsupportedFeatureError)):
        tablefeed.append(tmp_path, ROWS, properties={"delta.feature.clustering": "supported"})


def test_a_table_that_another_made_first_is_clustered_as_ours_would_be_or_stops_us() -> None:
    for theirs, stands in (([["id"]], True), ([], False)):
        log = a_log()
        ours = a_write(log, None, "ours", rules=WriteRules(cluster_by=(("id",),)))
        listed = protocol(1, 7, writerFeatures=WITH_CLUSTERING)
        domain = {"clusteringColumns": theirs, "domainName": "delta.clustering"}
        action = {"domain": "delta.clustering", "configuration": json.dumps(domain), "removed": False}
        put(log.store, 0, [listed, metadata(), {"domainMetadata": action}, add("theirs")])
        if stands:
            commit(log, None, ours, still())
            assert [a for a in actions_of(log, 1) if "domainMetadata" in a] == []
        else:
            with pytest.raises(ConflictError, match="clustered by other columns"):
                commit(log, None, ours, still())


def test_names_in_errors_are_the_tables_and_not_its_files(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, cluster_by="Place.city", properties={"delta.columnMapping.mode": "name"})

    with pytest.raises(SchemaMismatchError, match=r"is clustered by Place\.city, not by id"):
        tablefeed.append(tmp_path, ROWS, cluster_by="id")
    assert open_log(str(tmp_path)).load().version == 0
