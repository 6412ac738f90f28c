"""doctor: each finding on a table that has it, with its remedy; and none on a table that is well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

import tablefeed
from support.command_line import Ran, run, run_without_rights
from support.logs import change_actions, protocol, said

IDS = pa.schema([("id", pa.int64())])


def found(done: Ran) -> dict[str, dict[str, Any]]:  # Any: JSON
    return {each["topic"]: each for each in done.records}


def test_a_table_that_is_well_has_no_problem_and_no_warning_but_of_what_it_lacks(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))

    done = run("doctor", tmp_path, "--files", "--json")

    assert done.code == 0
    statuses = {topic: each["status"] for topic, each in found(done).items()}
    assert statuses.pop("change feed") == "warning"
    assert set(statuses.values()) == {"ok"}
    assert {*statuses} == {
        *("log", "read", "stream", "write", "Delta JAR", "delta-rs", "checkpoint", "clocks", "files", "data files")
    }


def test_a_table_that_records_no_changes_is_not_to_be_read_with_its_change_feed(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1, 2]}))
    tablefeed.delete(tmp_path, "id = 1")

    done = found(run("doctor", tmp_path, "--json"))

    assert done["stream"]["remedy"] == "Set skipChangeCommits=true to leave them out."
    assert (done["checkpoint"]["status"], done["checkpoint"]["text"]) == ("ok", "there is none yet")


def test_a_log_of_indextables_that_was_truncated_lacks_nothing(corpus: Path) -> None:
    done = run("doctor", corpus / "indextables" / "it053_json_skip", "--json")

    assert done.code == 0
    assert found(done)["log"]["text"] == "it has every commit from version 5 to 6"


def test_commits_that_stop_a_stream_are_named_with_the_options(orders: Path) -> None:
    done = run("doctor", orders)

    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert done.code == 0
    assert any(line.startswith("warning stream") and "version 3 (DELETE)" in line for line in lines)
    assert any("readChangeFeed=true" in line for line in lines)
    assert "ok change feed commits record the changes of rows" in lines


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"delta.feature.typeWidening": "supported"}, "does not read tables with typeWidening"),
        ({"delta.enableRowTracking": "true"}, "does not write tables with domainMetadata, rowTracking"),
        ({"delta.columnMapping.mode": "name"}, "to_pyarrow_table gives nulls"),
    ],
)
def test_what_delta_rs_cannot_do_is_said(properties: dict[str, str], said: str, tmp_path: Path) -> None:
    tablefeed.create(tmp_path, IDS, properties=properties)

    finding = found(run("doctor", tmp_path, "--json"))["delta-rs"]

    assert finding["status"] == "warning"
    assert said in finding["text"]
    assert finding["remedy"]


@pytest.mark.parametrize("feature", ["typeWidening", "rowTracking", "inCommitTimestamp", "vacuumProtocolCheck"])
def test_what_is_said_of_delta_rs_is_so(feature: str, tmp_path: Path) -> None:
    rows = pa.table({"id": [1]})
    tablefeed.create(tmp_path, IDS, properties={f"delta.feature.{feature}": "supported"})
    tablefeed.append(tmp_path, rows)
    text = found(run("doctor", tmp_path, "--json"))["delta-rs"]["text"]

    assert feature in text
    with pytest.raises(Exception, match="Unsupported"):
        write_deltalake(str(tmp_path), rows, mode="append")
    if "does not read" in text:
        with pytest.raises(Exception, match="Unsupported"):
            pa.table(QueryBuilder().register("t", DeltaTable(str(tmp_path))).execute("select * from t"))
    else:
        assert DeltaTable(str(tmp_path)).to_pyarrow_table().num_rows == 1


def test_a_table_that_we_cannot_write_is_a_problem_that_names_the_feature(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    unknown = protocol(1, 7, writerFeatures=["collations"])
    change_actions(tmp_path, 0, lambda action: "protocol" in action and action.update(unknown))

    done = run("doctor", tmp_path, "--json")

    assert done.code == 1
    assert "collations" in found(done)["write"]["text"]
    assert "version 4.4 does not know collations" in found(done)["Delta JAR"]["text"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("delta.compatibility.symlinkFormatManifest.enabled", "true"), ("delta.universalFormat.enabledFormats", "hudi")],
)
def test_what_the_jar_writes_beside_the_log_after_each_commit_is_a_warning(
    name: str, text: str, tmp_path: Path
) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    asked = {"configuration": {name: text}}
    change_actions(tmp_path, 0, lambda action: "metaData" in action and action["metaData"].update(asked))

    done = run("doctor", tmp_path, "--json")

    assert found(done)["write"]["status"] == "warning"
    assert name in found(done)["write"]["text"]


def test_missing_commits_are_a_problem_although_the_table_can_be_read(tmp_path: Path) -> None:
    for number in range(4):
        tablefeed.append(tmp_path, pa.table({"id": [number]}))
    tablefeed.checkpoint(tmp_path)
    (tmp_path / "_delta_log" / f"{1:020d}.json").unlink()

    done = run("doctor", tmp_path, "--json")

    assert done.code == 1
    assert found(done)["log"]["text"].startswith("versions 1 to 1 are missing")
    assert found(done)["read"]["status"] == "ok"


def test_a_damaged_commit_before_a_checkpoint_is_a_problem_beside_the_other_findings(tmp_path: Path) -> None:
    for number in range(4):
        tablefeed.append(tmp_path, pa.table({"id": [number]}))
    tablefeed.checkpoint(tmp_path)
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_text("{")

    done = run("doctor", tmp_path, "--json")

    assert done.code == 1
    assert f"{1:020d}.json" in found(done)["log"]["text"]
    assert (found(done)["read"]["status"], found(done)["write"]["status"]) == ("ok", "ok")


def test_a_commit_that_may_not_be_read_is_a_problem_beside_the_other_findings(tmp_path: Path) -> None:
    for number in range(3):
        tablefeed.append(tmp_path, pa.table({"id": [number]}))
    tablefeed.checkpoint(tmp_path)
    (tmp_path / "_delta_log" / f"{1:020d}.json").chmod(0)

    done = run_without_rights("doctor", tmp_path, "--json")

    assert done.code == 1, done.err
    assert f"{1:020d}.json" in found(done)["log"]["text"]
    assert (found(done)["read"]["status"], found(done)["write"]["status"]) == ("ok", "ok")


def test_a_table_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("{")

    done = run("doctor", tmp_path, "--json")

    assert (done.code, found(done)["read"]["status"]) == (1, "problem")


def test_a_data_file_that_is_missing_or_of_another_size_is_a_problem(tmp_path: Path) -> None:
    for number in range(2):
        tablefeed.append(tmp_path, pa.table({"id": [number]}))
    one, two = sorted(tmp_path.glob("*.parquet"))
    one.unlink()
    two.write_bytes(b"x")

    done = run("doctor", tmp_path, "--files", "--json")

    assert done.code == 1
    assert f"{one.name} is missing" in found(done)["data files"]["text"]
    assert f"{two.name} has 1 bytes" in found(done)["data files"]["text"]
    assert run("doctor", tmp_path).code == 0


def test_a_writer_whose_clock_is_ahead_is_named(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    ahead = said(tmp_path, 0, "commitInfo")[0]["timestamp"] + 3_600_000
    change_actions(tmp_path, 0, lambda action: action.get("commitInfo", {}).update(timestamp=ahead))

    finding = found(run("doctor", tmp_path, "--json"))["clocks"]

    assert finding["status"] == "warning"
    assert finding["text"].startswith("version 0 says that it was made 35")


def test_a_log_without_a_checkpoint_for_long_is_a_warning(tmp_path: Path) -> None:
    tablefeed.create(tmp_path, IDS, properties={"delta.checkpointInterval": "1000"})
    log = tmp_path / "_delta_log"
    for version in range(1, 103):
        (log / f"{version:020d}.json").write_text('{"commitInfo":{"timestamp":1,"operation":"WRITE"}}\n')

    finding = found(run("doctor", tmp_path, "--json"))["checkpoint"]

    assert (finding["status"], finding["remedy"]) == ("warning", "Run tablefeed checkpoint.")


def test_a_table_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    assert run("doctor", tmp_path / "none").code == 3


def test_an_indextables_table_is_for_tablefeed_alone(tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}), table_format="indextables")

    findings = found(run("doctor", tmp_path, "--json"))

    assert (findings["read"]["status"], findings["write"]["status"]) == ("ok", "ok")
    assert findings["Delta JAR"]["status"] == findings["delta-rs"]["status"] == "warning"
