"""What the features of a table ask of an optimize: its rows stay as they are, whatever rules a write would keep."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tablefeed
from support.commits import raced
from support.logs import Action, col, metadata, protocol, put, said, struct
from support.maintained import ids, live, rows_of
from tablefeed.errors import ConflictError, LogError
from tablefeed.feed.snapshot.open_log import open_log
from tablefeed.feed.upkeep.background import wait_until_done
from tablefeed.feed.upkeep.optimize import Folding, fold
from tablefeed.store import LocalStore

ALL = Folding(target_bytes=1 << 30)


Column = dict[str, object]


def told(
    path: Path, *features: str, columns: list[Column] | None = None, configuration: dict[str, str] | None = None
) -> list[Action]:
    """A protocol and a metadata of the table at `path`, for another writer's commit: no more changes than is asked."""
    now = open_log(str(path)).load().metadata
    schema = now.schema_string if columns is None else json.dumps(struct(*columns))
    changed = metadata(schema, table_id=now.table_id, configuration={**now.configuration, **(configuration or {})})
    return [protocol(1, 7, writerFeatures=["appendOnly", "invariants", *features]), changed]


def two_files(path: Path, **properties: str) -> None:
    for n in (1, 2):
        tablefeed.append(path, pa.table({"id": [n], "x": [n * 10]}), properties=properties)


# --- rules -----------------------------------------------------------------------------------------------------------


def test_identity_columns_keep_their_values_and_their_marks(tmp_path: Path) -> None:
    two_files(tmp_path)
    always = {"start": 1, "step": 1, "allowExplicitInsert": False, "highWaterMark": 2}
    columns = [col("id", notes={f"delta.identity.{key}": value for key, value in always.items()}), col("x")]
    put(LocalStore(str(tmp_path)), 2, told(tmp_path, "identityColumns", columns=columns))

    assert tablefeed.optimize(tmp_path).version == 3

    assert rows_of(tmp_path) == [{"id": 1, "x": 10}, {"id": 2, "x": 20}]
    assert said(tmp_path, 3, "metaData") == []
    assert "tags" not in said(tmp_path, 3, "commitInfo")[0]
    tablefeed.append(tmp_path, pa.table({"x": [30]}))
    assert ids(tmp_path) == [1, 2, 3]


INVARIANT = json.dumps({"expression": {"expression": "x > 99"}})
RULES: dict[str, tuple[Column, dict[str, str]]] = {
    "a generated column with other values": (col("x", notes={"delta.generationExpression": "id * 2"}), {}),
    "a generation that is not evaluated here": (col("x", notes={"delta.generationExpression": "no_such(id)"}), {}),
    "a default": (col("x", notes={"CURRENT_DEFAULT": "7"}), {}),
    "a constraint that is not evaluated here": (col("x"), {"delta.constraints.c": "no_such(id)"}),
    "an invariant": (col("x", notes={"delta.invariants": INVARIANT}), {}),
}


@pytest.mark.parametrize(("x", "configuration"), RULES.values(), ids=RULES)
def test_no_rule_is_asked_and_no_value_computed_anew(tmp_path: Path, x: Column, configuration: dict[str, str]) -> None:
    two_files(tmp_path)
    features = ("checkConstraints", "generatedColumns", "allowColumnDefaults")
    put(LocalStore(str(tmp_path)), 2, told(tmp_path, *features, columns=[col("id"), x], configuration=configuration))

    assert tablefeed.optimize(tmp_path).files_removed == 2

    assert rows_of(tmp_path) == [{"id": 1, "x": 10}, {"id": 2, "x": 20}]
    assert said(tmp_path, 3, "metaData") == []


# --- clustering ------------------------------------------------------------------------------------------------------


def cluster(path: Path, version: int, column_name: str) -> None:
    value = json.dumps({"clusteringColumns": [[column_name]]})
    domain = {"domain": "delta.clustering", "configuration": value, "removed": False}
    put(LocalStore(str(path)), version, [*told(path, "clustering", "domainMetadata"), {"domainMetadata": domain}])


def test_folded_files_of_a_clustered_table_have_statistics_of_its_clustering_columns(tmp_path: Path) -> None:
    for n in range(2):
        tablefeed.append(tmp_path, pa.table({f"c{number}": [n] for number in range(40)}))
    cluster(tmp_path, 2, "c39")

    assert tablefeed.optimize(tmp_path).files_removed == 2

    (added,) = said(tmp_path, 3, "add")
    stats = json.loads(added["stats"])
    assert (stats["minValues"]["c39"], stats["maxValues"]["c39"], "c38" in stats["minValues"]) == (0, 1, False)
    assert "clusteringProvider" not in added


@pytest.mark.parametrize("is_in_checkpoint", [False, True])
def test_what_another_writer_clustered_is_left_as_it_is(tmp_path: Path, is_in_checkpoint: bool) -> None:  # noqa: FBT001
    interval = "2" if is_in_checkpoint else "100"
    for n in range(4):
        tablefeed.append(tmp_path, pa.table({"id": [n]}), properties={"delta.checkpointInterval": interval})
    wait_until_done()
    cluster(tmp_path, 4, "id")
    theirs = [said(tmp_path, version, "add")[0] for version in (0, 1)]
    clustered = [{"add": {**each, "dataChange": False, "clusteringProvider": "liquid"}} for each in theirs]
    put(LocalStore(str(tmp_path)), 5, clustered)
    tablefeed.append(tmp_path, pa.table({"id": [4]}))
    wait_until_done()
    assert (tmp_path / f"_delta_log/{6:020d}.checkpoint.parquet").exists() == is_in_checkpoint

    outcome = tablefeed.optimize(tmp_path)

    assert (outcome.files_removed, outcome.files_added) == (3, 1)
    assert {each["path"] for each in theirs} < set(live(tmp_path))
    assert ids(tmp_path) == [0, 1, 2, 3, 4]


# --- Iceberg, commit times -------------------------------------------------------------------------------------------


def test_folded_files_of_a_table_for_iceberg_hold_partition_columns_and_say_for_which_version(tmp_path: Path) -> None:
    for n in range(2):
        rows = pa.table({"id": [n], "p": ["here"]})
        tablefeed.append(tmp_path, rows, partition_by="p", properties={"delta.enableIcebergCompatV2": "true"})

    tablefeed.optimize(tmp_path)

    (added,) = said(tmp_path, 2, "add")
    stored = pq.read_table(tmp_path / added["path"], partitioning=None)
    assert added["tags"] == {"ICEBERG_COMPAT_VERSION": "2"}
    assert stored.column(1).to_pylist() == ["here", "here"]
    assert rows_of(tmp_path) == [{"id": 0, "p": "here"}, {"id": 1, "p": "here"}]


# --- rivals ----------------------------------------------------------------------------------------------------------


def test_a_rival_that_began_to_track_rows_is_never_followed_by_rows_with_other_ids(tmp_path: Path) -> None:
    two_files(tmp_path)
    version = 2

    def tracks() -> None:
        on = {
            "delta.enableRowTracking": "true",
            "delta.rowTracking.materializedRowIdColumnName": "_row-id",
            "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version",
        }
        put(LocalStore(str(tmp_path)), version, told(tmp_path, "rowTracking", "domainMetadata", configuration=on))

    with pytest.raises(ConflictError):
        fold(raced(tmp_path, tracks).load(), ALL, plans=1)
    (tmp_path / f"_delta_log/{version:020d}.json").unlink()
    with pytest.raises(LogError, match="does not say which ids the rows"):
        fold(raced(tmp_path, tracks).load(), ALL)

    assert tablefeed.open_table(tmp_path).version == version
    assert len(list(tmp_path.glob("*.parquet"))) == 2


def test_after_a_rival_that_turned_another_feature_on_it_is_planned_anew(tmp_path: Path) -> None:
    two_files(tmp_path)
    on = {"delta.enableInCommitTimestamps": "true"}
    info: Action = {"commitInfo": {"inCommitTimestamp": 4_000_000_000_000, "operation": "SET TBLPROPERTIES"}}

    def turns_on() -> None:
        put(LocalStore(str(tmp_path)), 2, [info, *told(tmp_path, "inCommitTimestamp", configuration=on)])

    assert fold(raced(tmp_path, turns_on).load(), ALL).version == 3

    assert said(tmp_path, 3, "commitInfo")[0]["inCommitTimestamp"] == 4_000_000_000_001
    assert ids(tmp_path) == [1, 2]
