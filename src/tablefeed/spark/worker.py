"""Manners in Spark's Python workers, which are kept and used again from batch to batch.

The JVM sends a task in small pieces, and its kernel holds each back until the one before is acknowledged: which a
worker's kernel does by delaying for 40 ms, a good part of a micro-batch.

After each task a worker collects garbage. With Spark, Arrow and us loaded that is some 10 ms of a core for nothing,
in each of the four or so processes of a micro-batch, and it falls on the moment when Spark writes its own logs.

The process that plans a stream sends its offsets as JSON, and Spark compares them as texts. Delta-Spark's texts have no
blanks, those of Python's `json.dumps` have.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import stat
from contextlib import suppress
from functools import cache


@cache
def settle() -> None:
    """Takes what this process has loaded by now out of the collector's sight; once a process, and at no task's cost.

    Call it when all that a task needs has been imported. Nothing is kept alive by it but cycles among what is there.
    """
    gc.collect()
    gc.freeze()


def write_json_without_blanks() -> None:
    """Makes `json.dumps` of this process write no blanks where its caller names no separators.

    PySpark calls it without separators in the process that plans a stream, and has no setting for them. Call this in
    that process only.
    """
    json.JSONEncoder.item_separator, json.JSONEncoder.key_separator = ",", ":"


def acknowledge_at_once() -> None:
    """Has the kernel acknowledge what this process's TCP connections have received, now and for a while.

    Call it early in a task: while it is unpickled, its last pieces are held back. Does nothing where that cannot be
    asked for (no Linux; a Unix socket, which has no such wait), and never fails.
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
