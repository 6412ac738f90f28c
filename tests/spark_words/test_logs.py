"""Log lines as Spark's JSON formatter writes them: the facts of a line are fields. No JVM."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.logger.logger import JSONFormatter

import tablefeed
from scenarios.sinks import Sink


def test_a_commit_and_its_replay_are_one_line_each_whose_facts_are_fields(tmp_path: Path) -> None:
    written = io.StringIO()
    handler, logger = logging.StreamHandler(written), logging.getLogger("tablefeed.feed.commit.loop")
    handler.setFormatter(JSONFormatter())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        for _ in range(2):
            Sink(tmp_path / "t", {}).run(7, pa.table({"id": [1]}))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)

    commit, replay = (json.loads(line) for line in written.getvalue().splitlines())
    table = f"table={tmp_path / 't'}"
    assert (
        commit["msg"]
        == f"commit {table} version=0 operation=STREAMING UPDATE files=1 lost=0 app_id=query txn_version=7"
    )
    assert (commit["level"], commit["logger"]) == ("INFO", "tablefeed.feed.commit.loop")
    facts: dict[str, Any] = {"table": str(tmp_path / "t"), "app_id": "query", "txn_version": "7"}
    assert commit["context"] == {
        **facts,
        "event": "commit",
        "version": "0",
        "operation": "STREAMING UPDATE",
        "files": "1",
        "lost": "0",
    }
    assert replay["context"] == {**facts, "event": "replay", "recorded": "7"}


def test_a_commit_is_logged_where_a_factory_of_the_user_gives_each_record_a_context(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = logging.getLogRecordFactory()

    def in_request(*given: Any, **named: Any) -> logging.LogRecord:
        record = made(*given, **named)
        record.__dict__["context"] = "request 7"
        return record

    logging.setLogRecordFactory(in_request)
    try:
        with caplog.at_level(logging.INFO, "tablefeed.feed.commit.loop"):
            tablefeed.append(tmp_path / "t", pa.table({"id": [1]}))
    finally:
        logging.setLogRecordFactory(made)

    [line] = caplog.records
    assert line.getMessage() == f"commit table={tmp_path / 't'} version=0 operation=WRITE files=1 lost=0"
    assert line.__dict__["context"] == "request 7"


@pytest.mark.parametrize(("text", "level"), [("info", logging.INFO), ("loud", logging.NOTSET), ("", logging.NOTSET)])
def test_a_variable_sets_the_level_where_no_code_of_the_user_runs(text: str, level: int) -> None:
    script = "import logging, tablefeed.spark.worker as w; w.Begins(); print(logging.getLogger('tablefeed').level)"
    environment = {**os.environ, "TABLEFEED_LOG_LEVEL": text}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.split() == [str(level)]
