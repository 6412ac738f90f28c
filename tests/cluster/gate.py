"""A server at which tasks of a query wait until the test lets them go on: it says when, and on which worker."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATIENCE_S = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What an attempt of a task says of itself at the gate."""

    batch: int
    task: int
    attempt: int
    cwd: str
    home: str
    sees_driver: bool
    package: str


class Gate:
    """Holds each visit until `opens` is true for it; `opens` gets all visits so far, the new one last."""

    def __init__(self) -> None:
        self.url = ""
        self.visits: list[Visit] = []
        self.opens: Callable[[Visit, list[Visit]], bool] = lambda _visit, _visits: True
        self._moved = threading.Condition()
        self._released = False

    def wait_for(self, found: Callable[[list[Visit]], bool]) -> None:
        """Waits until the visits so far are as `found` says."""
        with self._moved:
            if not self._moved.wait_for(lambda: found(self.visits), PATIENCE_S):
                raise AssertionError(f"the tasks did not come as expected: {self.visits}")

    def release(self) -> None:
        """Lets all go on, now and later."""
        with self._moved:
            self._released = True
            self._moved.notify_all()

    def pass_through(self, visit: Visit) -> None:
        """Returns when `visit` may go on."""
        with self._moved:
            self.visits.append(visit)
            self._moved.notify_all()
            self._moved.wait_for(lambda: self._released or self.opens(visit, self.visits), PATIENCE_S)


@contextmanager
def a_gate() -> Iterator[Gate]:
    """A gate at a free port of this machine, until the block ends."""
    gate = Gate()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            gate.pass_through(Visit(**json.loads(body)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Says nothing."""

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                return  # the task was killed while it waited

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    gate.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield gate
    finally:
        gate.release()
        server.shutdown()
        server.server_close()
        thread.join()
