"""Names of tables in a catalog, `uc://catalog.schema.table`, and the settings that lead to the catalog's server.

A part may be in backticks, as in SQL. Unity Catalog allows no dot, slash or blank in a part, so none is accepted here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tablefeed.errors import StoreConfigError

SCHEME = "uc://"

URI, TOKEN = "uc_uri", "uc_token"
"""The storage options for the catalog's server, and for the token that is sent to it."""

TABLE_ID, LOCATION = "uc_table_id", "uc_location"
"""Options that are set after a name was looked up, so that tasks open the same table."""

_OWN = frozenset({URI, TOKEN, TABLE_ID, LOCATION})
_ENVIRONMENTS = (("UC_URI", "UC_TOKEN"), ("DATABRICKS_HOST", "DATABRICKS_TOKEN"))
"""The variables that Unity Catalog's and Databricks' clients read. A token goes only to the server of its pair."""

_API = "/api/2.1/unity-catalog"
_PART = r"(?:`((?:[^`]|``)+)`|([^`.]+))"
_NAME = re.compile(rf"{_PART}\.{_PART}\.{_PART}")
_NOT_IN_A_PART = re.compile(r"[./\s\x00-\x1f\x7f\ud800-\udfff]")
_IN_A_TOKEN, _IN_AN_ADDRESS = re.compile(r"[ -~]*"), re.compile(r"[!-~]*")
"""What an HTTP request can carry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A catalog's server: `uri` with the path of its API, and the token that is sent to it. None: no token is sent."""

    uri: str
    token: str | None = field(repr=False)


def is_name(location: object) -> bool:
    """Says whether `location` names a table of a catalog, well formed or not."""
    return isinstance(location, str) and location[: len(SCHEME)].lower() == SCHEME


def full_name(location: str) -> str:
    """Gives the name in `location` as `catalog.schema.table`. Raises StoreConfigError where it has no such form."""
    found = _NAME.fullmatch(location[len(SCHEME) :])
    parts = [quoted.replace("``", "`") if quoted else bare for quoted, bare in _pairs(found)]
    if not parts or any(_NOT_IN_A_PART.search(part) for part in parts):
        raise StoreConfigError(
            f"{location!r} names no table of a catalog. Write uc://catalog.schema.table; a part may be in "
            "backticks, and has no dot, slash or blank.",
            url=location,
        )
    return ".".join(parts)


def server(options: Mapping[str, str], environment: Mapping[str, str], *, url: str) -> Server:
    """Gives the server that `options` name, or else `environment`. Raises StoreConfigError where neither does."""
    given = own_options(options)
    for name, value in given.items():
        _check_text(name, value, url=url)
    pairs = [(environment.get(uri), environment.get(token)) for uri, token in _ENVIRONMENTS]
    uri = given.get(URI) or next((uri for uri, _ in pairs if uri), None)
    token = given.get(TOKEN) or next((token for of_uri, token in pairs if of_uri == uri), None)
    if not uri:
        raise StoreConfigError(
            f"The server of the catalog of {url} is not known. Set the storage option {URI} (in Spark "
            f"storage.{URI}) or the environment variable {_ENVIRONMENTS[0][0]}, and {TOKEN} or "
            f"{_ENVIRONMENTS[0][1]} if it asks for a token.",
            url=url,
        )
    if not _IN_A_TOKEN.fullmatch(token or ""):
        raise StoreConfigError(
            f"The token for the catalog of {url} has a character that no token has, such as the line end of the file "
            f"that it was read from. Correct {TOKEN} or {_ENVIRONMENTS[0][1]}.",
            url=url,
        )
    return Server(uri=_checked(uri if "://" in uri else f"https://{uri}", url=url), token=token or None)


def own_options(options: Mapping[str, str]) -> dict[str, str]:
    """Gives those of `options` that are for the catalog, by their names in lower case."""
    return {name.lower(): value for name, value in options.items() if name.lower() in _OWN}


def without_own_options(options: Mapping[str, str]) -> dict[str, str]:
    """Gives those of `options` that are not for the catalog."""
    return {name: value for name, value in options.items() if name.lower() not in _OWN}


def _pairs(found: re.Match[str] | None) -> list[tuple[str | None, str]]:
    return list(zip(found.groups()[::2], found.groups()[1::2], strict=True)) if found else []


def _check_text(name: str, value: object, *, url: str) -> None:
    if value is not None and not isinstance(value, str):
        raise StoreConfigError(
            f"The storage option {name} for {url} is a {type(value).__name__}. Give a text.", url=url
        )


def _checked(uri: str, *, url: str) -> str:
    try:
        parts = urlsplit(uri)
        sent = (parts.hostname or " ").encode("idna").decode() + parts.path
        is_plain = parts.port != 0 and not ("@" in parts.netloc or parts.query or parts.fragment)
    except ValueError:  # for a host or a port that is none
        is_plain = False
    if not is_plain or parts.scheme not in ("http", "https") or not _IN_AN_ADDRESS.fullmatch(sent):
        raise StoreConfigError(
            f"The server of the catalog of {url} must be http://host or https://host, without a user or a query. "
            f"Correct {URI}.",
            url=url,
        )
    path = parts.path.rstrip("/").removesuffix(_API)
    return f"{parts.scheme}://{parts.netloc}{path}{_API}"
