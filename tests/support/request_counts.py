"""Requests to an object store by kind, as a gateway in front of the server has counted them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from support.gateway import Gateway
from tablefeed.feed.upkeep.background import wait_until_done

KINDS = ("GET", "HEAD", "PUT", "LIST", "DELETE")
"""GET reads bytes, HEAD gives the size and the time of an object, PUT writes or sends a part."""


def counted(gateway: Gateway, call: Callable[[], object]) -> Counter[str]:
    """The requests of `call`, and of the work in the background that it begins."""
    gateway.requests.clear()
    call()
    wait_until_done()
    return Counter(kind_of(gateway, told) for told in gateway.requests)


def kind_of(gateway: Gateway, told: str) -> str:
    """The kind of one request, `METHOD /path`."""
    method, _, path = told.partition(" ")
    parts = urlsplit(path)
    query = parse_qs(parts.query, keep_blank_values=True)
    if method == "GET" and ({"list-type", "comp"} & query.keys() or parts.path.endswith("/o")):
        return "LIST"
    if method == "GET" and gateway.scheme == "gs" and "alt" not in query:
        return "HEAD"  # Google's JSON interface
    return "PUT" if method == "POST" else method
