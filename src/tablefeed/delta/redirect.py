"""The table that a redirected table names, in Delta-Spark's TableRedirectConfiguration (not in PROTOCOL.md)."""

from __future__ import annotations

import re

import orjson

from tablefeed.delta import names
from tablefeed.delta.properties import TableProperties

_PLACES = ("destPath", "redirectDest", "tablePath")  # the key of Delta-Spark's code, and the two of its comments

_CREDENTIALS = re.compile(r"(?s)(?<=//)[^/@]*:[^/]*@|\?.*")
"""A user with a password, and a query, which may be a signature. A user alone is a container of Azure."""


def redirection(properties: TableProperties) -> str | None:
    """The other table and the state of the redirection, as text for an error; None if no table is named.

    The text has no credentials that the location may have.
    """
    for name in (names.REDIRECT_READER_WRITER, names.REDIRECT_WRITER_ONLY):
        try:
            value = orjson.loads(properties.texts.get(name, ""))
            spec = value["spec"]
            spec = orjson.loads(spec) if isinstance(spec, str) else spec
            place = next(spec[key] for key in _PLACES if key in spec)
            if isinstance(place, str):
                return f"{_CREDENTIALS.sub('', place)} ({value['state']})"
        except (orjson.JSONDecodeError, TypeError, KeyError, StopIteration):
            continue
    return None
