"""A server of S3 on this machine: moto's, behind a gateway that puts one after the other and can misbehave."""

from __future__ import annotations

import contextlib
import http.client
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HOP_BY_HOP = {
    *("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length", "date", "server")
}
_CONFLICT = (
    b"<Error><Code>ConditionalRequestConflict</Code><Message>A conflicting operation occurred during processing of "
    b"this conditional request.</Message></Error>"
)
_SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


@dataclass(kw_only=True)
class Gateway:
    """What stands between a client and the server. A request is told as `METHOD /path`.

    `throttles`, `contends` and `loses` say of a request whether it is answered 503 and not done, 409 and not done, or
    done and not answered. `passes_conditions_over` makes
    it a server that does not know conditional puts.
    """

    endpoint: str = ""
    bucket: str = ""
    throttles: Callable[[str], bool] = lambda _: False
    contends: Callable[[str], bool] = lambda _: False
    loses: Callable[[str], bool] = lambda _: False
    passes_conditions_over: bool = False
    requests: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Behaves well from now on, with a new empty bucket."""
        self.throttles = self.contends = self.loses = lambda _: False
        self.passes_conditions_over = False
        self.bucket = f"lake-{uuid.uuid4()}"
        import s3fs  # takes half a second, which most runs of a few tests need not wait for

        s3fs.S3FileSystem(
            key="i",
            secret="s",  # noqa: S106 - nobody checks it
            endpoint_url=self.endpoint,
            client_kwargs={"region_name": "eu-west-1"},
        ).mkdir(self.bucket)
        self.requests.clear()

    @property
    def options(self) -> dict[str, str]:
        """The storage options that lead here."""
        return {
            "aws_access_key_id": "AKIA-id",
            "aws_secret_access_key": "pa55w0rd",
            "aws_region": "eu-west-1",
            "aws_endpoint_url": self.endpoint,
        }


@contextlib.contextmanager
def serve_s3() -> Iterator[Gateway]:
    """A server with an empty bucket; it ends with the block."""
    from moto.server import ThreadedMotoServer

    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    behind = moto.get_host_and_port()
    gateway = Gateway()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(gateway, behind))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    gateway.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        gateway.begin()
        yield gateway
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        moto.stop()


def _handler(gateway: Gateway, behind: tuple[str, int]) -> type[BaseHTTPRequestHandler]:
    writing = threading.Lock()  # moto looks whether an object exists, and then writes it

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self._body()
            told = f"{self.command} {self.path}"
            gateway.requests.append(told)
            if gateway.throttles(told):
                self._answer(503, [], _SLOW_DOWN)
                return
            if gateway.contends(told):
                self._answer(409, [], _CONFLICT)
                return
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP_BY_HOP}
            if gateway.passes_conditions_over:
                headers = {name: value for name, value in headers.items() if name.lower() != "if-none-match"}
            with writing if self.command in ("PUT", "POST") else contextlib.nullcontext():
                connection = http.client.HTTPConnection(*behind)
                connection.request(self.command, self.path, body=body, headers=headers)
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
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    return Handler
