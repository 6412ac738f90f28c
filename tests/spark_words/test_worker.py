"""What a Python worker is asked for; no JVM is needed to see it."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from tablefeed.spark.worker import PLANNING, acknowledge_at_once


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="TCP_QUICKACK is Linux's")
def test_connections_acknowledge_at_once_and_stay_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as near:
        far, _ = server.accept()
        with far, open("/proc/self/stat", "rb"):  # noqa: PTH123 - a descriptor that is no socket
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
            acknowledge_at_once()
            assert near.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK) == 1
            far.sendall(b"still here")
            assert near.recv(10) == b"still here"


@pytest.mark.parametrize(("module", "finds_it"), [(PLANNING, False), ("pyspark.daemon", True)])
def test_only_a_process_that_plans_does_without_pandas(module: str, *, finds_it: bool) -> None:
    pytest.importorskip("pandas")
    program = f"""
import sys
from importlib.machinery import ModuleSpec

import pyarrow as pa
from tablefeed.spark.worker import plan_without_pandas

sys.modules["__main__"].__spec__ = ModuleSpec({module!r}, None)
plan_without_pandas()
pa.array([1])
print("pandas" in sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ended.stdout == f"{finds_it}\n"
