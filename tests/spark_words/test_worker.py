"""What a Python worker is asked for; no JVM is needed to see it."""

from __future__ import annotations

import socket
import sys

import pytest

from tablefeed.spark.worker import acknowledge_at_once


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
