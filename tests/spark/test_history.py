"""`tablefeed.spark.history` gives commits as a DataFrame."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import tablefeed
from tablefeed.spark import history

pytestmark = pytest.mark.usefixtures("few_rows")


def test_commits_are_rows_with_the_columns_of_describe_history(session: SparkSession, tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1, 2]}), user_metadata="first")
    tablefeed.delete(tmp_path, "id = 1")

    rows = history(session, str(tmp_path)).orderBy("version").collect()

    assert [(row.version, row.operation, row.userMetadata) for row in rows] == [
        (0, "WRITE", "first"),
        (1, "DELETE", None),
    ]
    assert rows[0].operationMetrics["numOutputRows"] == "2"
    assert rows[1].operationParameters == {"predicate": '["id = 1"]'}
    assert rows[1].timestamp >= rows[0].timestamp
    assert history(session, str(tmp_path), limit=1).count() == 1


def test_a_field_of_another_type_is_null(session: SparkSession, tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    (commit,) = (tmp_path / "_delta_log").glob("*0.json")
    info = {"operation": 5, "readVersion": True, "isBlindAppend": "yes", "operationParameters": {"mode": ["a"]}}
    lines = [line for line in commit.read_text().splitlines() if not line.startswith('{"commitInfo"')]
    commit.write_text("\n".join([*lines, json.dumps({"commitInfo": info})]))

    (row,) = history(session, str(tmp_path)).collect()

    assert (row.operation, row.readVersion, row.isBlindAppend) == (None, None, None)
    assert row.operationParameters == {"mode": '["a"]'}


def test_a_parameter_that_nests_deeper_than_json_can_be_written_says_so(session: SparkSession, tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    (commit,) = (tmp_path / "_delta_log").glob("*0.json")
    lines = [line for line in commit.read_text().splitlines() if not line.startswith('{"commitInfo"')]
    deep = '{"commitInfo":{"operationParameters":{"mode":' + "[" * 1000 + "]" * 1000 + "}}}"
    commit.write_text("\n".join([*lines, deep]))

    (row,) = history(session, str(tmp_path)).collect()

    assert "nests too deep" in row.operationParameters["mode"]


def test_a_text_that_is_not_unicode_is_null(session: SparkSession, tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}))
    (commit,) = (tmp_path / "_delta_log").glob("*0.json")
    info = {"operation": "WRITE", "userMetadata": "\ud800", "operationParameters": {"mode": "\udfff"}}
    lines = [line for line in commit.read_text().splitlines() if not line.startswith('{"commitInfo"')]
    commit.write_text("\n".join([*lines, json.dumps({"commitInfo": info})]))

    (row,) = history(session, str(tmp_path)).collect()

    assert (row.operation, row.userMetadata, row.operationParameters) == ("WRITE", None, None)


def test_a_time_that_no_timestamp_has_is_null(session: SparkSession, tmp_path: Path) -> None:
    tablefeed.append(tmp_path, pa.table({"id": [1]}), properties={"delta.enableInCommitTimestamps": "true"})
    (commit,) = (tmp_path / "_delta_log").glob("*0.json")
    commit.write_text(re.sub(r'"inCommitTimestamp":\d+', f'"inCommitTimestamp":{2**62}', commit.read_text()))

    (row,) = history(session, str(tmp_path)).collect()

    assert row.timestamp is None
