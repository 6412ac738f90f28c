"""A catalog's server on this machine: the part of Unity Catalog's published interface (api/all.yaml) that readers ask.

It keeps what a test registers, answers in the words of the interface, and can misbehave.
"""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

API = "/api/2.1/unity-catalog"
TOKEN = "dapi-0123456789abcdef"  # noqa: S105 - of no server but this
Answer = tuple[int, dict[str, Any]]  # Any: JSON


@dataclass(kw_only=True)
class FakeCatalog:
    """`answers` may answer a request, told as `METHOD /path`, in place of the server. `vends` gives the credentials.

    `ratified` holds per table id the newest version and the file names of the commits that the server still has.
    """

    uri: str = ""
    token: str | None = TOKEN
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    ratified: dict[str, tuple[int, dict[int, str]]] = field(default_factory=dict)
    page: int = 10
    vends: Callable[[dict[str, Any]], dict[str, Any]] = lambda _: {}
    answers: Callable[[str], Answer | None] = lambda _: None
    requests: list[str] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def options(self) -> dict[str, str]:
        """The storage options that lead here."""
        return {"uc_uri": self.uri, **({"uc_token": self.token} if self.token else {})}

    def register(self, name: str, location: object, **more: Any) -> str:
        """Makes `name` a Delta table at `location`, a new one where it was one before; gives its id."""
        table_id = str(uuid.uuid4())
        what = {"table_type": "EXTERNAL", "data_source_format": "DELTA", "properties": {}}
        self.tables[name] = {**what, "storage_location": str(location), "table_id": table_id, **more}
        return table_id

    def manage(self, name: str, location: object, latest: int, **staged: str) -> str:
        """Makes `name` a table whose commits the catalog manages; `staged` are file names as `v7="..."`."""
        table_id = self.register(
            name, location, table_type="MANAGED", properties={"delta.feature.catalogManaged": "supported"}
        )
        self.ratify(name, latest, **staged)
        return table_id

    def ratify(self, name: str, latest: int, **staged: str) -> None:
        """Sets what is ratified of the table `name`."""
        names = {int(version.removeprefix("v")): file for version, file in staged.items()}
        self.ratified[self.tables[name]["table_id"]] = (latest, names)

    def answer(self, method: str, path: str, token: str | None, body: dict[str, Any]) -> Answer:
        told = f"{method} {path}"
        self.requests.append(told)
        if (given := self.answers(told)) is not None:
            return given
        if token != (None if self.token is None else f"Bearer {self.token}"):
            return _error(401, "UNAUTHENTICATED", f"Invalid token {token}.")
        if method == "GET" and path.startswith("/tables/"):
            found = self.tables.get(unquote(path.removeprefix("/tables/")))
            return (200, found) if found else _error(404, "TABLE_NOT_FOUND", f"Table not found: {path}")
        self.asked.append(body)
        table = next((t for t in self.tables.values() if t["table_id"] == body.get("table_id")), None)
        if table is None:
            return _error(404, "TABLE_NOT_FOUND", f"Table not found: {body.get('table_id')}")
        if told == "POST /temporary-table-credentials":
            return 200, self.vends(body)
        if told == "GET /delta/preview/commits":
            return self._commits(table, body)
        return _error(404, "NOT_FOUND", path)

    def _commits(self, table: dict[str, Any], body: dict[str, Any]) -> Answer:
        if body["table_uri"] != table["storage_location"]:
            return _error(400, "INVALID_ARGUMENT", "table_uri does not match")
        latest, staged = self.ratified[table["table_id"]]
        first = max(body["start_version"], min(staged, default=0))
        page = [
            {
                "version": version,
                "timestamp": 1,
                "file_name": file,
                "file_size": 1,
                "file_modification_timestamp": 1,
            }
            for version, file in sorted(staged.items(), reverse=True)
            if first <= version < first + self.page
        ]
        return 200, {"commits": page, "latest_table_version": latest}


@contextlib.contextmanager
def serve_catalog() -> Iterator[FakeCatalog]:
    """An empty catalog, whose server ends with the block."""
    catalog = FakeCatalog()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(catalog))
    server.daemon_threads = True
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True)
    thread.start()
    catalog.uri = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield catalog
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(catalog: FakeCatalog) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def serve(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.removeprefix(API)
            body = json.loads(data) if data else {}
            status, answer = catalog.answer(self.command, path, self.headers.get("Authorization"), body)
            text = answer["raw"].encode() if "raw" in answer else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(text)), **answer.get("headers", {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = serve  # noqa: N815 - the base class's names

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    return Handler


def _error(status: int, code: str, message: str) -> Answer:
    return status, {"error_code": code, "message": message, "details": []}
