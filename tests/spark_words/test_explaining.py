"""The plain message in the texts that Spark makes of an error: of a load, of a query, of a task, with a cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import run
from tablefeed.errors import TableError
from tablefeed.spark import explain

LOAD = """[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source tablefeed: Traceback (most recent call last):
  File "/x/at_load.py", line 38, in analyse
    raise A
tablefeed.errors.ObjectNotFoundError: There is no _last_checkpoint at /t.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/x/at_load.py", line 40, in analyse
    raise B
tablefeed.errors.TableNotFoundError: [DELTA_TABLE_NOT_FOUND] There is no table at /t. Check the path. SQLSTATE: 38000
"""
TASK = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted due to stage failure: Task 0 failed
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
tablefeed.errors.DataFileError: The data file a of /t is gone. Restore it.

\tat org.apache.spark.api.python.BasePythonRunner.run(PythonRunner.scala:1)
Driver stacktrace:
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
tablefeed.errors.DataFileError: The data file a of /t is gone. Restore it.
"""
ROW = """[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call last):
tablefeed.errors.InvalidRowsError: [DELTA_X] CHECK constraint small (id < 3) violated by row with values:
 - day : a
 - id : 7
Nothing of this write to /t was committed: correct the row.

\tat org.apache.spark.api.python.BasePythonRunner.run(PythonRunner.scala:1)
"""
UDF = """org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] The Python worker failed: Traceback (most recent call last):
  File "/x/job.py", line 28, in bad
    raise ValueError("no such day")
ValueError: no such day
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner.run(PythonRunner.scala:1)
"""  # noqa: E501 - as Spark writes it
FOREACH_BATCH = """py4j.Py4JException: An exception was raised. Return Message: Traceback (most recent call last):
  File "/x/job.py", line 22, in write
    prices["x"]
KeyError: 'x'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/x/job.py", line 23, in write
    raise ValueError("no price")
ValueError: no price

\tat py4j.Protocol.getReturnValue(Protocol.java:1)
"""
BATCH = """The Python worker failed:
Traceback (most recent call last):
  File "/x/job.py", line 28, in bad
ValueError: no such day"""
SMALL = (
    "[DELTA_X] CHECK constraint small (id < 3) violated by row with values: - day : a - id : 7 Nothing of this write"
)


@pytest.mark.parametrize(
    ("error", "plain"),
    [
        (LOAD, "[DELTA_TABLE_NOT_FOUND] There is no table at /t. Check the path."),
        (RuntimeError(TASK), "The data file a of /t is gone. Restore it."),
        (ROW, f"{SMALL} to /t was committed: correct the row."),
        (TableError("It is wrong.\nDo this."), "It is wrong. Do this."),
        (ValueError("[SPARKS_OWN] Not ours. SQLSTATE: 42000\n\tat x"), "[SPARKS_OWN] Not ours."),
        ("org.apache.spark.SparkException: [SPARKS_OWN] Not ours.\n\tat x", "[SPARKS_OWN] Not ours."),
        (UDF, "[PYTHON_EXCEPTION] The Python worker failed: ValueError: no such day"),
        (FOREACH_BATCH, "An exception was raised. Return Message: ValueError: no price"),
        (BATCH, "The Python worker failed: ValueError: no such day"),
    ],
    ids=["load", "task", "values of a row", "ours", "not ours", "of Java", "a function", "foreachBatch", "a batch"],
)
def test_the_message_of_the_raised_error_is_given_alone(error: BaseException | str, plain: str) -> None:
    assert explain(error) == plain


def test_the_command_line_finds_each_message_of_a_log_once(tmp_path: Path) -> None:
    log = tmp_path / "query.log"
    log.write_bytes(b"INFO M\xfcller begun\n" + f"{LOAD}{TASK}".encode())  # a log may have texts of any encoding

    assert run("explain", log).out.splitlines() == [explain(LOAD), explain(TASK)]
    log.write_text("INFO begun\n")
    done = run("explain", log)
    assert (done.code, done.out) == (1, "")
