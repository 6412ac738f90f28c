"""A catalog's server on this machine: the part of Unity Catalog's published interface that readers ask.

That is api/all.yaml, and of the newer api/delta.yaml a table and its credentials. It keeps what a test registers,
answers as Unity Catalog's own server does, and can misbehave.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

API = "/api/2.1/unity-catalog"
NEWER_TABLE = re.compile(
    r"GET /delta/v1/catalogs/([^/]+)/schemas/([^/]+)/tables/([^/]+?)(/credentials\?operation=\w+)?"
)
TOKEN = "dapi-0123456789abcdef"  # noqa: S105 - of no server but this
Answer = tuple[int, dict[str, Any]]  # Any: JSON


_NO_CREDENTIALS = dict.fromkeys(
    ("aws_temp_credentials", "azure_user_delegation_sas", "gcp_oauth_token", "expiration_time")
)


@dataclass(kw_only=True)
class FakeCatalog:
    """`answers` may answer a request, told as `METHOD /path`, in place of the server. `vends` gives the credentials.

    `ratified` holds per table id the newest version and the file names of the commits that the server still has. With
    `delta_api_only` it answers about managed tables only by the newer interface.
    """

    uri: str = ""
    token: str | None = TOKEN
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    ratified: dict[str, tuple[int, dict[int, str]]] = field(default_factory=dict)
    page: int = 10
    delta_api_only: bool = False
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
        if (named := NEWER_TABLE.fullmatch(told)) is not None:
            return self._newer(".".join(map(unquote, named.groups()[:3])), named[4])
        self.asked.append(body)
        table = next((t for t in self.tables.values() if t["table_id"] == body.get("table_id")), None)
        if table is None:
            return _error(404, "TABLE_NOT_FOUND", f"Table not found: {body.get('table_id')}")
        is_managed = table["table_type"] == "MANAGED"
        if self.delta_api_only and is_managed:
            setting = "server.managed-table.use-delta-api-only=true"
            return _error(400, "INVALID_ARGUMENT", f"This Unity Catalog endpoint is disabled when {setting}.")
        if told == "POST /temporary-table-credentials":
            return 200, {**_NO_CREDENTIALS, "url": table["storage_location"], **self.vends(body)}
        if told == "GET /delta/preview/commits":
            only_managed = "Only managed tables are supported for Delta commits"
            return self._commits(table, body) if is_managed else _error(400, "INVALID_ARGUMENT", only_managed)
        return 404, {"raw": "404 Not Found"}

    def _newer(self, name: str, operation: str | None) -> Answer:
        table = self.tables.get(name)
        if table is None:
            message = f"Table not found: {name}"
            return 404, {"error": {"message": message, "type": "NoSuchTableException", "code": 404, "stack": None}}
        place = table["storage_location"]
        if operation is not None:
            self.asked.append({"operation": operation.rpartition("=")[2]})
            vended = self.vends(self.asked[-1])
            keys = vended.get("aws_temp_credentials") or {}
            config = {f"s3.{key.replace('_', '-')}": value for key, value in keys.items()}
            given = {"prefix": place, "operation": "READ", "config": config}
            return 200, {"storage-credentials": [{**given, "expiration-time-ms": vended.get("expiration_time")}]}
        latest, staged = self.ratified[table["table_id"]]
        commits = [{"version": version, "file-name": file} for version, file in sorted(staged.items(), reverse=True)]
        metadata = {"table-uuid": table["table_id"], "location": place, "properties": table["properties"]}
        return 200, {"metadata": metadata, "commits": commits, "latest-table-version": latest}

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
