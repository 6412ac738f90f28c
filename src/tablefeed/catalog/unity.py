"""Unity Catalog's REST interface, as far as reading and writing a table needs it (`api/all.yaml` of its repository).

A server can be set to answer about managed tables only by its newer API (`api/delta.yaml`), which is then asked.

A request is sent again if the server is down or busy, until a deadline. No redirect is followed: it could carry the
token to another server. No error shows the token or a credential.
"""

from __future__ import annotations

import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, IncompleteRead
from typing import Any, NoReturn
from urllib.parse import quote

from tablefeed.catalog.names import Server
from tablefeed.errors import (
    LogError,
    StoreConfigError,
    StoreError,
    TableError,
    TableNotFoundError,
    TableReplacedError,
    UnsupportedFeatureError,
)

DEADLINE_S = 30.0
"""How long a request is tried again: the restart of a server takes less, and a batch can wait as long."""

TIMEOUT_S = 10.0
"""How long one answer is waited for."""

_DELTA_API_ONLY = "use-delta-api-only"
"""The server's setting that refuses requests about managed tables unless they are of its newer API (`api/delta.yaml`).
Its refusal names the setting."""

_RETRIED = frozenset({429, 500, 502, 503, 504})
_LONGEST_TEXT = 300
_MOST_BYTES = 16 << 20
_DELTA, _WITH_FILES = "DELTA", ("MANAGED", "EXTERNAL")
_NEWER_KEYS = {
    "s3.access-key-id": "access_key_id",
    "s3.secret-access-key": "secret_access_key",
    "s3.session-token": "session_token",
    "azure.sas-token": "sas_token",
    "gcs.oauth-token": "oauth_token",
}
"""The fields of credentials in the newer API, and their names in the older one."""

_MANAGED_BY_CATALOG = ("delta.feature.catalogManaged", "delta.feature.catalogOwned-preview")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """A table with files, as the catalog describes it. `table_id` is the catalog's id, not that in the table's log.

    `is_managed`: its commits count only once the catalog has ratified them (the feature catalogManaged).
    """

    name: str
    table_id: str
    location: str
    is_managed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Credentials of a store, by the names of the answer's fields; empty for files on this machine.

    `expires_at_ms` is None if the answer has no such time.
    """

    values: Mapping[str, str] = field(repr=False)
    expires_at_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratified:
    """What the catalog has ratified: the newest version, and the file names of commits that may be unpublished."""

    latest: int
    staged: Mapping[int, str]


class UnityCatalog:
    """One server of a catalog. `clock_s` gives seconds and never goes back.

    Raises StoreConfigError where the server refuses the token, TableNotFoundError where it has no such table, and
    StoreError where it gives no answer that can be used.
    """

    def __init__(
        self,
        server: Server,
        *,
        clock_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.server, self._clock_s, self._sleep = server, clock_s, sleep
        self._opener = urllib.request.build_opener(_NoRedirect)

    def table(self, name: str) -> CatalogTable:
        """Gives the table that `name` means now. Raises UnsupportedFeatureError unless it is a Delta table."""
        answer = self._ask(f"GET /tables/{quote(name, safe='.')}", None, name)
        kind, data_format = str(answer.get("table_type")), str(answer.get("data_source_format"))
        if kind not in _WITH_FILES or data_format != _DELTA:
            what = f"a {data_format} table" if kind in _WITH_FILES else f"a {kind.replace('_', ' ').lower()}"
            raise UnsupportedFeatureError(
                f"{name} is {what} in its catalog. tablefeed reads only Delta tables with files of their own. "
                "Nothing was read. Name a Delta table.",
                url=name,
                features=(data_format if kind in _WITH_FILES else kind,),
            )
        if not answer.get("storage_location"):
            raise TableError(
                f"The catalog gives no location for {name}, so its files cannot be found. Give the table a location.",
                url=name,
            )
        properties = self._object(answer, "properties", name)
        return CatalogTable(
            name=name,
            table_id=self._text(answer, "table_id", name),
            location=self._text(answer, "storage_location", name),
            is_managed=any(str(properties.get(key)).lower() == "supported" for key in _MANAGED_BY_CATALOG),
        )

    def credentials(self, table: CatalogTable, *, to_write: bool) -> Credentials:
        """Gives new credentials for the files of `table`. Raises TableReplacedError if the name means another table."""
        operation = "READ_WRITE" if to_write else "READ"
        answer = self._ask(
            "POST /temporary-table-credentials",
            {"table_id": table.table_id, "operation": operation},
            table.name,
            instead=lambda: self._newer_credentials(table, operation),
        )
        kinds = ("aws_temp_credentials", "azure_user_delegation_sas", "gcp_oauth_token", "config")
        values = {
            k: v
            for kind in kinds
            for k, v in self._object(answer, kind, table.name).items()
            if isinstance(v, str) and v
        }
        try:
            # Some catalogs write 64-bit numbers as JSON strings.
            expires_at_ms: int | None = int(float(answer["expiration_time"]))
        except (KeyError, TypeError, ValueError, OverflowError):
            expires_at_ms = None
        return Credentials(values=values, expires_at_ms=expires_at_ms)

    def ratified(self, table: CatalogTable) -> Ratified:
        """Gives what is ratified of `table`, whose commits the catalog manages. Raises as `credentials`."""
        staged: dict[int, str] = {}
        start = 0
        while True:
            asked = {"table_id": table.table_id, "table_uri": table.location, "start_version": start}
            answer = self._ask(
                "GET /delta/preview/commits", asked, table.name, instead=lambda: self._newer_commits(table)
            )
            try:
                latest = int(answer["latest_table_version"])
                page = {int(commit["version"]): str(commit["file_name"]) for commit in answer.get("commits") or ()}
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise self._unusable(table.name, "it has no list of commits with their versions and names") from error
            if latest < 0:
                raise self._unusable(table.name, f"its newest version is {latest}")
            staged.update(page)
            if not page or max(page) >= latest:
                return Ratified(latest=latest, staged=staged)
            if max(page) < start:
                raise LogError(
                    f"The catalog lists the commits of {table.name} out of order. Nothing was read. Ask the "
                    "administrator of the catalog.",
                    url=table.name,
                )
            start = max(page) + 1

    def _newer_commits(self, table: CatalogTable) -> dict[str, Any]:
        """Gives the newer API's answer about commits in the older one's words. It has all commits."""
        answer = self._ask(f"GET {_newer_path(table)}", None, table.name)
        table_id = self._text(self._object(answer, "metadata", table.name), "table-uuid", table.name)
        if table_id != table.table_id:
            raise replaced(table.name, f"the id {table.table_id}", f"the id {table_id}")
        commits = [
            {**commit, "file_name": commit.get("file-name")} for commit in self._objects(answer, "commits", table)
        ]
        return {"commits": commits, "latest_table_version": answer.get("latest-table-version")}

    def _newer_credentials(self, table: CatalogTable, operation: str) -> dict[str, Any]:
        """Gives the newer API's answer about credentials in the older one's words."""
        answer = self._ask(f"GET {_newer_path(table)}/credentials?operation={operation}", None, table.name)
        given = self._objects(answer, "storage-credentials", table)
        found = next((one for one in given if one.get("prefix") == table.location), None)
        if found is None:  # the newer API is asked by the name; a managed table's location has its id
            raise replaced(table.name, table.location, str([one.get("prefix") for one in given]))
        config = self._object(found, "config", table.name)
        values = {_NEWER_KEYS.get(key, key): value for key, value in config.items()}
        return {"config": values, "expiration_time": found.get("expiration-time-ms")}

    def _ask(
        self,
        request_line: str,
        body: Mapping[str, object] | None,
        name: str,
        *,
        instead: Callable[[], dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Gives the server's answer to `GET /path`, a JSON object. `name` is the table that errors name.

        `instead` gives the answer if the server is set to answer about managed tables only by its newer API.
        """
        method, path = request_line.split(" ")
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self.server.token:
            headers["Authorization"] = f"Bearer {self.server.token}"
        sent = None if body is None else json.dumps(body).encode()
        deadline_s, attempt = self._clock_s() + DEADLINE_S, 0
        while True:
            # The scheme is checked where the server is read from the settings (names.py).
            request = urllib.request.Request(self.server.uri + path, sent, headers, method=method)  # noqa: S310
            try:
                with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                    data = answer.read(_MOST_BYTES)
                    if answer.length:
                        raise IncompleteRead(data)
                    return self._parsed(data, name)
            except urllib.error.HTTPError as error:
                with error:
                    said, has_code = self._said(error)
                if error.code == 400 and _DELTA_API_ONLY in said and instead is not None:
                    return instead()
                if error.code not in _RETRIED:
                    self._refuse(error.code, said, name, is_known=has_code)
                failure, wait_s = f"answered {error.code}: {said}", error.headers.get("Retry-After")
            except (OSError, HTTPException) as error:
                failure, wait_s = f"cannot be reached: {self._masked(str(error))}", None
            attempt += 1
            asked_s = float(wait_s) if wait_s and wait_s.isdecimal() else 0.0
            pause_s = asked_s or _pause_s(attempt)
            if self._clock_s() + pause_s > deadline_s:
                raise StoreError(
                    f"The catalog at {self.server.uri} {failure}. It was asked {attempt} times about {name}. Start "
                    "again when the server answers.",
                    url=name,
                )
            self._sleep(pause_s)

    def _parsed(self, data: bytes, name: str) -> dict[str, Any]:
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise self._unusable(name, "it is not JSON") from error
        if not isinstance(answer, dict):
            raise self._unusable(name, "it is not a JSON object")
        return answer

    def _text(self, answer: Mapping[str, Any], key: str, name: str) -> str:
        value = answer.get(key)
        if not isinstance(value, str) or not value:
            raise self._unusable(name, f"it has no {key}")
        return value

    def _object(self, answer: Mapping[str, Any], key: str, name: str) -> Mapping[str, Any]:
        """The object under `key`, empty where there is none."""
        value = answer.get(key) or {}
        if not isinstance(value, dict):
            raise self._unusable(name, f"it has no {key} that is an object")
        return value

    def _objects(self, answer: Mapping[str, Any], key: str, table: CatalogTable) -> list[dict[str, Any]]:
        """The objects in the list under `key`, empty where there is none."""
        values = answer.get(key) or []
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise self._unusable(table.name, f"it has no {key} that is a list of objects")
        return values

    def _refuse(self, status: int, text: str, name: str, *, is_known: bool) -> NoReturn:
        """Raises the error for an answer. `is_known`: it is the catalog's own, not of a proxy or another server."""
        said = f"The catalog at {self.server.uri} answered {status} about {name}: {text}."
        if status == 401:
            remedy = "Give a valid token as the storage option uc_token or as UC_TOKEN."
            raise StoreConfigError(f"{said} {remedy}", url=name) from None
        if status == 403:
            raise StoreConfigError(f"{said} Ask for the permission, or give another token.", url=name) from None
        if status == 404 and is_known:
            raise TableNotFoundError(
                f"{said} Check the name; a table that was dropped, or dropped and created again, is not the table that "
                "was opened.",
                url=name,
            ) from None
        raise StoreError(f"{said} Check uc_uri and the name of the table.", url=name) from None

    def _said(self, error: urllib.error.HTTPError) -> tuple[str, bool]:
        """What the server says, in one short line and without the token, and whether it gives a code of a catalog."""
        text, has_code = str(error.reason), False
        try:
            answer = json.loads(error.read(_MOST_BYTES))
        except (OSError, HTTPException, ValueError, RecursionError):
            answer = None
        if isinstance(answer, dict):
            newer = answer.get("error")
            own = newer if isinstance(newer, dict) else answer
            text, has_code = str(own.get("message") or text), bool(own.get("error_code") or own.get("type"))
        return self._masked(" ".join(text.split()))[:_LONGEST_TEXT].rstrip("."), has_code

    def _masked(self, text: str) -> str:
        return text.replace(self.server.token, "***") if self.server.token else text

    def _unusable(self, name: str, why: str) -> StoreError:
        return StoreError(
            f"The answer of the catalog at {self.server.uri} about {name} cannot be used: {why}. Check uc_uri.",
            url=name,
        )


def replaced(name: str, expected: str, found: str) -> TableReplacedError:
    """The error for a name that means another table now."""
    return TableReplacedError(
        f"{name} means another table now: its catalog gives {found}, and gave {expected} when the table was opened. It "
        "was dropped and created again, or renamed. Open it again; a stream restarts from a new checkpoint.",
        url=name,
    )


def _newer_path(table: CatalogTable) -> str:
    catalog, schema, base_name = (quote(part, safe="") for part in table.name.split("."))
    return f"/delta/v1/catalogs/{catalog}/schemas/{schema}/tables/{base_name}"


def _pause_s(attempt: int) -> float:
    return random.uniform(0.5, 1) * min(0.2 * 2.0**attempt, 5.0)  # noqa: S311 - no secret


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Follows no redirect: the answer becomes an error with its status."""
