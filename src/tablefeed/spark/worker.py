"""Process-wide settings for Spark's Python workers, which Spark re-uses from batch to batch.

The JVM sends a task in small pieces. Its kernel holds each piece back until the one before is acknowledged, and the
worker's kernel delays the acknowledgement by 40 ms: a large part of a micro-batch. `acknowledge_at_once` avoids that.

A worker collects garbage after each task. With Spark, Arrow and tablefeed loaded that takes some 10 ms of a core in
each of about four processes of a micro-batch, just when Spark writes its own logs. `settle` avoids that. Importing
tablefeed makes the collector look through all that Spark has imported before. `Begins` avoids that.

Arrow imports pandas, wherever that is installed, when it first makes an array from Python values: about 0.3 s of a
core. The process that plans a stream is started anew for each query and has no use for it. `plan_without_pandas`
avoids that.

The process that plans a stream sends its offsets as JSON, and Spark compares them as text. Delta-Spark's JSON has no
blanks, but that of Python's `json.dumps` has. `write_json_without_blanks` removes them.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import socket
import stat
import sys
from contextlib import suppress
from functools import cache
from typing import Any, Self

from tablefeed.spark.plain_errors import PlainErrors
from tablefeed.spark.release import RELEASE

LOG_LEVEL = "TABLEFEED_LOG_LEVEL"
"""The environment variable that names the level of tablefeed's logs in the processes of Spark."""


class Begins(PlainErrors):
    """Makes the garbage collector ignore what Spark has imported, before an object of the class is made or unpickled.

    For the objects that Spark passes from process to process: what their methods and states need is imported later.
    Another version of tablefeed refuses them.
    """

    def __new__(cls, *_args: object, **_options: object) -> Self:
        """Python calls this before it loads the state of a pickled object."""
        _begin()
        return super().__new__(cls)

    def __getstate__(self) -> dict[str, Any]:
        """The state for a process with the same version of tablefeed; another one refuses it."""
        return {"_release": RELEASE, **self.__dict__}


class BeginsInTask(Begins):
    """As `Begins`, for what a stream sends to its tasks: to restore it is the first code of tablefeed there."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        acknowledge_at_once()
        self.__dict__.update(state)


@cache
def _begin() -> None:
    gc.freeze()
    # No code of the user runs in a worker that could set the level there.
    if (level := os.environ.get(LOG_LEVEL, "").upper()) in logging.getLevelNamesMapping():
        logging.getLogger("tablefeed").setLevel(level)


@cache
def settle() -> None:
    """Makes the garbage collector ignore all objects that exist now. Only the first call in a process does anything.

    Call it when all that a task needs has been imported. Of the objects that exist now, only reference cycles stay in
    memory because of it.
    """
    gc.collect()
    gc.freeze()


def write_json_without_blanks() -> None:
    """Makes `json.dumps` of this process write no blanks where its caller names no separators.

    PySpark calls it without separators in the process that plans a stream, and has no setting for them. Call this in
    that process only.
    """
    json.JSONEncoder.item_separator, json.JSONEncoder.key_separator = ",", ":"


def plan_without_pandas() -> None:
    """Makes Arrow find no pandas in this process, if it is one that only plans a stream and has not imported it yet.

    Arrow looks for pandas once. Tasks run in processes that may also run functions of users, who need pandas: so this
    does nothing there.
    """
    main = sys.modules["__main__"].__spec__
    if main is None or main.name != PLANNING or "pandas" in sys.modules:
        return
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """A finder that says that pandas is not installed."""

    @staticmethod
    def find_spec(name: str, _path: object, _target: object = None) -> None:
        """Raises for pandas, and leaves other modules to the other finders."""
        if name == "pandas":
            raise ModuleNotFoundError(name)


PLANNING = "pyspark.sql.streaming.python_streaming_source_runner"
"""The module that Spark runs as the process which plans one stream."""


def acknowledge_at_once() -> None:
    """Makes the kernel acknowledge received TCP data of this process without delay, now and for a while.

    Call it early in a task: the last pieces of the task are held back while it is unpickled. It never fails, and does
    nothing where the kernel has no such setting (only Linux has it) or a connection is a Unix socket, which needs none.
    """
    if not hasattr(socket, "TCP_QUICKACK"):
        return
    with suppress(OSError):
        for entry in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, not paths
            with suppress(OSError):
                _acknowledge(int(entry))


def _acknowledge(descriptor: int) -> None:
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return
    connection = socket.socket(fileno=os.dup(descriptor))
    with connection:
        if connection.family in (socket.AF_INET, socket.AF_INET6) and connection.type == socket.SOCK_STREAM:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
