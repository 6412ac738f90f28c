"""Tables that a write makes clustered: what their logs say, what they cannot be, and that a later write agrees."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablefeed
from support.commits import a_write, still
from support.logs import a_log, add, metadata, protocol, put, said
from tablefeed import errors
from tablefeed.feed.commit.loop import commit
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


WITH_CLUSTERING = ["appendOnly", "clustering", "domainMetadata", "invariants"]


def domains(table: Path, version: int) -> list[Any]:
    return [(each["domain"], json.loads(each["configuration"])) for each in said(table, version, "domainMetadata")]


def test_the_log_of_the_table_says_by_which_columns_as_delta_spark_does(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, cluster_by=["ID", "place.at.X"])

    domain = {"clusteringColumns": [["id"], ["Place", "at", "x"]], "domainName": "delta.clustering"}
    assert domains(tmp_path, 0) == [("delta.clustering", domain)]
    assert said(tmp_path, 0, "protocol") == [protocol(1, 7, writerFeatures=WITH_CLUSTERING)["protocol"]]
    assert said(tmp_path, 0, "metaData")[0]["configuration"] == {}
    assert tablefeed.open_table(tmp_path).to_arrow().num_rows == 2


def test_columns_of_a_mapped_table_are_named_as_its_files_name_them(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, ROWS, cluster_by="place.city", properties={"delta.columnMapping.mode": "name"})

    _, place, *_ = json.loads(said(tmp_path, 0, "metaData")[0]["schemaString"])["fields"]
    city = place["type"]["fields"][0]
    path = [each["metadata"]["delta.columnMapping.physicalName"] for each in (place, city)]
    assert domains(tmp_path, 0)[0][1]["clusteringColumns"] == [path]
    stats = json.loads(said(tmp_path, 0, "add")[0]["stats"])
    assert stats["minValues"][path[0]][path[1]] == "a"


def test_a_name_with_a_dot_is_in_backticks_and_row_tracking_has_a_domain_of_its_own(tmp_path: Path) -> None:
    rows = pa.table({"a.b": [1], "c": [2]})
    tablefeed.append(tmp_path, rows, cluster_by=["`a.b`"], properties={"delta.enableRowTracking": "true"})

    found = dict(domains(tmp_path, 0))
    assert sorted(found) == ["delta.clustering", "delta.rowTracking"]
    assert found["delta.clustering"]["clusteringColumns"] == [["a.b"]]


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
    with pytest.raises(errors.IllegalOptionError, match=error_class):
        tablefeed.append(tmp_path / "t", ROWS, cluster_by=columns)

    assert not (tmp_path / "t" / "_delta_log").exists()


@pytest.mark.parametrize(
    ("properties", "taken", "refused"),
    [
        ({}, "c31", "c32"),
        ({"delta.dataSkippingNumIndexedCols": "1"}, "c0", "c1"),
        ({"delta.dataSkippingNumIndexedCols": "-1"}, "c39", None),
        ({"delta.dataSkippingStatsColumns": "c39"}, "c39", "c0"),
    ],
)
def test_a_column_of_which_the_table_has_no_statistics_is_refused(
    tmp_path: Path, properties: dict[str, str], taken: str, refused: str | None
) -> None:
    rows = pa.table({f"c{number}": [1] for number in range(40)})

    if refused is not None:
        with pytest.raises(errors.IllegalOptionError, match="DELTA_CLUSTERING_COLUMN_MISSING_STATS"):
            tablefeed.append(tmp_path, rows, cluster_by=[refused], properties=properties)
    tablefeed.append(tmp_path, rows, cluster_by=[taken], properties=properties)

    assert json.loads(said(tmp_path, 0, "add")[0]["stats"])["minValues"][taken] == 1


def test_a_table_is_clustered_or_partitioned(tmp_path: Path) -> None:
    with pytest.raises(errors.ConflictingOptionsError, match="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY"):
        tablefeed.append(tmp_path, ROWS, cluster_by=["id"], partition_by=["ok"])


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_table_that_is_there_is_clustered_by_the_same_columns_or_the_write_is_refused(
    tmp_path: Path, mode: Any
) -> None:
    tablefeed.append(tmp_path, ROWS, cluster_by=["id", "Place.city"])

    tablefeed.append(tmp_path, ROWS, mode=mode, cluster_by=["ID", "place.city"])
    tablefeed.append(tmp_path, ROWS, mode=mode)
    for columns in (["id"], ["Place.city", "id"]):
        with pytest.raises(errors.SchemaMismatchError, match=r"COLUMNS_MISMATCH.*clustered by id, Place\.city, not"):
            tablefeed.append(tmp_path, ROWS, mode=mode, cluster_by=columns)
    with pytest.raises(errors.OptionError):
        tablefeed.append(tmp_path, ROWS, mode=mode, cluster_by=["nothing"])

    assert tablefeed.open_table(tmp_path).version == 2
    assert domains(tmp_path, 1) == []


def test_a_property_does_not_make_a_table_clustered(tmp_path: Path) -> None:
    with pytest.raises((errors.IllegalOptionError, errors.UnsupportedFeatureError)):
        tablefeed.append(tmp_path, ROWS, properties={"delta.feature.clustering": "supported"})


def test_a_table_that_another_made_first_is_clustered_as_ours_would_be_or_stops_us() -> None:
    stops = pytest.raises(errors.ConflictError, match="clustered by other columns")
    for theirs, outcome in (([["id"]], nullcontext()), ([], stops)):
        log = a_log()
        ours = a_write(log, None, "ours", rules=WriteRules(cluster_by=(("id",),)))
        listed = protocol(1, 7, writerFeatures=WITH_CLUSTERING)
        domain = {"clusteringColumns": theirs, "domainName": "delta.clustering"}
        action = {"domain": "delta.clustering", "configuration": json.dumps(domain), "removed": False}
        put(log.store, 0, [listed, metadata(), {"domainMetadata": action}, add("theirs")])
        with outcome:
            commit(log, None, ours, still())
            assert said(log, 1, "domainMetadata") == []


@pytest.mark.parametrize(
    ("columns", "named"), [("Place.city", r"Place\.city"), ((), "no column")], ids=["others", "none"]
)
def test_a_table_does_not_become_clustered_by_others_and_the_error_has_its_names_and_not_those_of_its_files(
    tmp_path: Path, columns: Sequence[str], named: str
) -> None:
    tablefeed.append(tmp_path, ROWS, cluster_by=columns, properties={"delta.columnMapping.mode": "name"})

    with pytest.raises(errors.SchemaMismatchError, match=f"clustered by {named}, not by id"):
        tablefeed.append(tmp_path, ROWS, cluster_by="id")
    assert tablefeed.open_table(tmp_path).version == 0
