"""What tests put between a client and a server of an object store: it can misbehave in front of any of them.

The servers are real ones on this machine, started and ended by the tests: tests/support/object_stores.py.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

_HOP_BY_HOP = {
    *("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length", "date", "server")
}
Headers = dict[str, str]
Answer = tuple[int, Headers, bytes]


@dataclass(kw_only=True)
class Gateway:
    """A bucket of a server, and what stands between the client and that server. A request is told as `METHOD /path`.

    `throttles`, `contends`, `expires` and `refuses` say of a request whether it is not done and answered that there are
    too many, that another one came between, that the credentials have expired or that they are wrong. `loses` says
    whether it is done and not answered, `stalls` whether it is neither done nor answered before the test ends.
    `passes_conditions_over` says whether the server does not know the condition of a request. `page_entries` makes it
    one that answers a listing with so many entries at most, `forgets_pages` with the first of them whichever page is
    asked for. `answers` may give an answer in place of the server.
    """

    scheme: str
    endpoint: str = ""
    bucket: str = ""
    throttles: Callable[[str], bool] = lambda _: False
    contends: Callable[[str], bool] = lambda _: False
    expires: Callable[[str], bool] = lambda _: False
    refuses: Callable[[str], bool] = lambda _: False
    loses: Callable[[str], bool] = lambda _: False
    stalls: Callable[[str], bool] = lambda _: False
    passes_conditions_over: Callable[[str], bool] = lambda _: False
    page_entries: int | None = None
    forgets_pages: bool = False
    answers: Callable[[str], Answer | None] = lambda _: None
    requests: list[str] = field(default_factory=list)
    signed: list[str] = field(default_factory=list)  # how each request says whose it is
    ended: threading.Event = field(default_factory=threading.Event)

    slow_down: ClassVar[Answer]
    conflict: ClassVar[Answer] = (409, {}, b"")
    expired: ClassVar[Answer]
    refused: ClassVar[Answer]

    @property
    def options(self) -> dict[str, str]:
        """The storage options that lead here."""
        raise NotImplementedError

    @property
    def secrets(self) -> list[str]:
        """What of those options nobody may see, as it is and percent-decoded."""
        raise NotImplementedError

    @property
    def delta_rs(self) -> tuple[str, dict[str, str]]:
        """The scheme of delta-rs and its storage options that lead here."""
        raise NotImplementedError

    def make_bucket(self) -> None:
        """Makes the empty bucket."""
        raise NotImplementedError

    def without_condition(self, path: str, headers: Headers) -> tuple[str, Headers]:
        """The request as a server reads it that knows no condition."""
        return path, {name: value for name, value in headers.items() if name.lower() != "if-none-match"}

    def in_pages(self, told: str) -> str:
        """What to add to the query of a listing for `page_entries`; empty for any other request."""
        listing, parameter = {"s3": ("list-type=2", "max-keys"), "gs": ("delimiter=", "maxResults")}.get(
            self.scheme, ("comp=list", "maxresults")
        )
        asked = self.page_entries is not None and told.startswith("GET") and listing in told
        return f"&{parameter}={self.page_entries}" if asked else ""

    def url(self, path: str) -> str:
        """The URL of `path` in the bucket."""
        return f"{self.scheme}://{self.bucket}/{path}"

    def begin(self) -> None:
        """Behaves well from now on, with a new empty bucket."""
        self.throttles = self.contends = self.loses = self.stalls = lambda _: False
        self.expires = self.refuses = self.passes_conditions_over = self.loses
        self.page_entries, self.forgets_pages, self.answers = None, False, lambda _: None
        self.ended.set()
        self.ended.clear()
        self.bucket = f"lake-{uuid.uuid4()}"
        self.make_bucket()
        self.requests.clear()


@contextlib.contextmanager
def standing_before(gateway: Gateway, behind: tuple[str, int], *, one_write_at_a_time: bool) -> Iterator[None]:
    """Lets the gateway answer at its endpoint, which is set, until the block ends."""
    writing = threading.Lock() if one_write_at_a_time else None
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(gateway, behind, writing))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    gateway.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield
    finally:
        gateway.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(gateway: Gateway, behind: tuple[str, int], writing: threading.Lock | None) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self._body()
            told = f"{self.command} {self.path}"
            gateway.requests.append(told)
            gateway.signed.append(self.headers.get("Authorization", ""))
            for misbehaves, (status, headers, data) in (
                (gateway.throttles, gateway.slow_down),
                (gateway.contends, gateway.conflict),
                (gateway.expires, gateway.expired),
                (gateway.refuses, gateway.refused),
            ):
                if misbehaves(told):
                    self._answer(status, list(headers.items()), data)
                    return
            if (given := gateway.answers(told)) is not None:
                self._answer(given[0], list(given[1].items()), given[2])
                return
            if gateway.stalls(told):
                gateway.ended.wait()
                self.close_connection = True
                return
            path = self.path + gateway.in_pages(told)
            if gateway.forgets_pages:
                path = re.sub(r"&(continuation-token|pageToken|marker)=[^&]*", "", path)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            if gateway.passes_conditions_over(told):
                path, headers = gateway.without_condition(path, headers)
            with writing if writing and self.command in ("PUT", "POST") else contextlib.nullcontext():
                connection = http.client.HTTPConnection(*behind)
                with contextlib.suppress(BrokenPipeError):  # it answered before it had all
                    connection.request(self.command, path, body=body, headers=headers)
                answer = connection.getresponse()
                data = answer.read()
                connection.close()
            if gateway.loses(told):
                self.close_connection = True
                return
            self._answer(answer.status, answer.getheaders(), data, length=answer.getheader("Content-Length"))

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = forward  # noqa: N815 - the base class's names

        def log_message(self, *_: object) -> None:
            """Says nothing."""

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)

        def _answer(
            self, status: int, headers: list[tuple[str, str]], data: bytes, *, length: str | None = None
        ) -> None:
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(data)))
            with contextlib.suppress(ConnectionError):  # a client that gave up, or needs no more
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

    return Handler
