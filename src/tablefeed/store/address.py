"""Parses paths and URLs as users write them, and gives the form that errors show. Opens nothing.

A text without a scheme is a local path; a relative one begins at the working directory. One that begins with `~` is
refused: a shell would expand it, and Spark would make a folder of that name. Only a `file:` URL is percent-decoded.
Hadoop's scheme names are mapped to fsspec's.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote

from tablefeed.errors import StoreConfigError

_SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfs",
    "wasb": "abfs",
    "wasbs": "abfs",
    "az": "abfs",
}
_NEVER_A_PATH = {*_SCHEMES, "memory", "hdfs", "http", "https"}
"""Schemes that begin no local path: `s3:bucket` is a mistake, but `10:30/orders` is a directory."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
_USER = re.compile(r"://([^?#]*)@")
_QUERY = re.compile(r"[?#](.+)", re.DOTALL)
_SIGNATURE = re.compile(r"[?&]sig=")
"""In the query of a URL that Azure has signed."""

_PART = re.compile(r"[^:&=]{6,}")
"""A password, or a value in a query. A shorter one is as likely to be in other words of an error."""
_MISTYPED_USER = re.compile(r"\A([A-Za-z][A-Za-z0-9+.-]+:/?)[^?#:]*:[^?#]*@")
"""A user and a password where the slashes after the scheme are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a store's root is: `location` is an absolute path where `scheme` is "file", else a URL for fsspec."""

    scheme: str
    location: str


def parse_address(text: str | os.PathLike[str]) -> Address:
    """Parses what the user wrote. Raises StoreConfigError where it is no valid path or URL, or holds credentials."""
    text = os.fspath(text)
    if not text:
        raise StoreConfigError("The path is empty. Give the path or URL of the table.", url="")
    _refuse_nul(text, shown_as=text)
    match = _URL.match(text)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", text)
    if scheme == "file":
        return Address(scheme="file", location=_path_of_file_url(rest, shown_as=text))
    if scheme == "dbfs":
        path = shown(text).partition(":")[2].lstrip("/").removeprefix("dbfs/")
        raise StoreConfigError(
            f"{shown(text)!r} is a path of Databricks, whose scheme dbfs: is not known here. Where the cluster mounts "
            f"DBFS, write /dbfs/{path}; else the URL of the store behind it.",
            url=shown(text),
        )
    if rest.startswith("//") and scheme:
        return Address(scheme=_SCHEMES.get(scheme, scheme), location=_remote(scheme, rest))
    if (scheme and rest.startswith("/")) or scheme in _NEVER_A_PATH or "://" in text:
        raise StoreConfigError(
            f"{shown(text)!r} is neither a path nor a URL. A URL is scheme://...; a local path with a colon "
            "starts with ./ or /.",
            url=shown(text),
        )
    if not scheme and text.partition("/")[0] == "~":
        raise StoreConfigError(
            f"The home directory in {text!r} is not filled in here. Write {str(Path(text).expanduser())!r}, or "
            f"{'./' + text!r} for a folder that is named '~'.",
            url=text,
        )
    return Address(scheme="file", location=str(Path(text).absolute()))


def shown(url: str) -> str:
    """Gives `url` as errors may show it: without a user, a password, a query or a fragment. Paths stay as they are."""
    scheme, is_url, rest = url.partition("://")
    if not is_url or not _URL.fullmatch(f"{scheme}:"):
        return _MISTYPED_USER.sub(r"\1", url)
    if _holds_password(rest.partition("/")[0]) and "@" in rest:
        rest = rest.rpartition("@")[2]
    authority, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    user, _, host = authority.rpartition("@")
    # In Azure's URLs container@account is an address, not a user.
    is_container = _SCHEMES.get(scheme.lower()) == "abfs" and ":" not in user
    return f"{scheme}://{authority if is_container else host}{slash}{path}"


def credentials(url: str) -> tuple[str, ...]:
    """Gives the parts of `url` that `shown` leaves out because they may be credentials, the longer first.

    They are given as they are written, and as clients may write them: apart, decoded and encoded.
    """
    shows = shown(url)
    wholes = {*_USER.findall(url), *_QUERY.findall(url)} if shows != url else set()
    parts = {*wholes, *(part for whole in wholes for part in _PART.findall(whole))}
    plain = {*parts, *map(unquote, parts)}
    spelled = {spell(part) for part in plain for spell in (str, quote, quote_plus)}
    return tuple(sorted((part for part in spelled if part not in shows), key=lambda part: (-len(part), part)))


def share_a_folder(one: str, other: str) -> bool:
    """Says whether one of two tables, given by their urls, is in the folder of the other.

    VACUUM of other writers deletes the files of a table that is in their table's folder.
    """
    outer, inner = sorted(f"{url.rstrip('/')}/" for url in (one, other))
    return inner.startswith(outer)


def split_absolute(name: str) -> tuple[str, str] | None:
    """Splits a URL from a log into its file system's root and the name below it; None where it is no URL."""
    if ":/" not in name:
        return None
    match = _URL.fullmatch(name)
    if match is None or not match[2].startswith("/"):
        return None
    authority, path = "", match[2]
    if path.startswith("//"):
        authority, _, path = path[2:].partition("/")
    return f"{match[1]}://{authority}/", path.lstrip("/")


def _path_of_file_url(rest: str, *, shown_as: str) -> str:
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        rest = slash + path if host in ("", "localhost") else ""
    if not rest.startswith("/"):
        text = shown(shown_as)
        raise StoreConfigError(f"{text!r} is not a file of this machine. Write file:///path.", url=text)
    try:
        path = unquote(rest, errors="strict")
    except UnicodeDecodeError as error:
        text = shown(shown_as)
        raise StoreConfigError(
            f"{text!r} is not UTF-8 once its %XX are decoded. Write a local path.", url=text
        ) from error
    _refuse_nul(path, shown_as=shown_as)
    return str(Path(path))


def _refuse_nul(text: str, *, shown_as: str) -> None:
    if "\0" in text:
        raise StoreConfigError(
            f"{shown(shown_as)!r} contains a NUL character, which no path or URL may contain.", url=shown(shown_as)
        )


def _remote(scheme: str, rest: str) -> str:
    fsspec_scheme = _SCHEMES.get(scheme, scheme)
    authority = rest[2:].partition("/")[0]
    has_user = "@" in authority and fsspec_scheme != "abfs"  # in Azure's URLs container@account is an address
    holds_credentials = has_user or _holds_password(authority) or _SIGNATURE.search(rest) is not None
    if fsspec_scheme in _SCHEMES.values() and holds_credentials:
        url = shown(f"{scheme}:{rest}")
        raise StoreConfigError(
            f"The URL of {url} carries credentials. Take them out of it and pass them as storage options.", url=url
        )
    return f"{fsspec_scheme}:{rest}"


def _holds_password(authority: str) -> bool:
    """Says whether `authority` has a colon that belongs neither to a port nor to an Amazon resource name."""
    _, colon, after = authority.rpartition("@")[2].partition(":")
    password_in_user = ":" in authority.rpartition("@")[0]
    return password_in_user or (bool(colon) and not after.isdecimal() and not authority.startswith("arn:"))
